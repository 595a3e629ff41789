"""Counters of all devices, polled: rates by port and queue, marks, drops, ends of links where nothing arrives."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import finsy as fy

from controller.device import DeviceSession
from controller.model import PortRef

HISTORY = 60  # polls kept
QUEUES_PER_PORT = 8
DROP_REASONS = (
    "none", "port_unused", "parser_error", "bad_checksum", "not_ip", "not_our_mac", "ttl", "source_guard", "acl",
    "no_route", "route_discard", "no_group", "no_member", "no_neighbor", "punt_rate", "heartbeat_misplaced",
    "timer_misplaced", "not_for_host",
)  # fmt: skip
# counter in the P4Info, and its name here: by queue index, and direct counters by the port of their entry
QUEUE_COUNTERS = {"queue_packets": "tx", "queue_marked": "marked", "queue_early_drops": "early_drops"}
ARRIVALS = "port_counter"
PORT_COUNTERS = {ARRIVALS: "rx", "neighbor_counter": "forwarded"}

Count = tuple[int, int]  # packets, bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A device's counters at one time. Keys are ``(name, port)``, ``(name, port, queue)`` and drop reasons."""

    time: float
    ports: dict[tuple[str, int], Count] = field(default_factory=dict)
    queues: dict[tuple[str, int, int], Count] = field(default_factory=dict)
    drops: dict[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rate:
    """What passed: packets and bytes in all and a second."""

    packets: int = 0
    bytes: int = 0
    pps: float = 0.0
    bps: float = 0.0  # bits a second


async def take_snapshot(session: DeviceSession, now: float) -> Snapshot:
    """Reads a device's counters. Raises P4ClientError and NotPrimary."""
    snapshot = Snapshot(now)
    schema = session.schema
    direct = {counter.alias for counter in schema.direct_counters}
    indirect = {counter.alias for counter in schema.counters}
    for counter in PORT_COUNTERS.keys() & direct:
        await _read_ports(session, counter, snapshot)
    for counter in QUEUE_COUNTERS.keys() & indirect:
        for answer in await session.read_counters(fy.P4CounterEntry(counter)):
            if answer.data is not None and answer.data.packet_count:
                port, queue = divmod(int(answer.index), QUEUES_PER_PORT)
                snapshot.queues[QUEUE_COUNTERS[counter], port, queue] = _count(answer.data)
    if "drops" in indirect:
        for answer in await session.read_counters(fy.P4CounterEntry("drops")):
            if answer.data is not None and answer.data.packet_count:
                reason = DROP_REASONS[answer.index] if answer.index < len(DROP_REASONS) else str(answer.index)
                snapshot.drops[reason] = _count(answer.data)
    return snapshot


async def take_arrivals(session: DeviceSession, now: float) -> Snapshot:
    """Reads no more than what arrived at each port. Raises P4ClientError and NotPrimary."""
    snapshot = Snapshot(now)
    await _read_ports(session, ARRIVALS, snapshot)
    return snapshot


async def _read_ports(session: DeviceSession, counter: str, snapshot: Snapshot) -> None:
    for answer in await session.read_counters(fy.P4DirectCounterEntry(counter)):
        match = answer.table_entry.match if answer.table_entry is not None else None
        if match and answer.data is not None:
            snapshot.ports[PORT_COUNTERS[counter], int(match["port"])] = _count(answer.data)


def _count(data: Any) -> Count:
    return int(data.packet_count), int(data.byte_count)


class Telemetry:
    """A short history of every device's counters."""

    def __init__(self) -> None:
        self._history: dict[str, deque[Snapshot]] = {}

    def add(self, device: str, snapshot: Snapshot) -> None:
        """Keep a snapshot. Counters that went back (the device restarted) begin a new history."""
        history = self._history.setdefault(device, deque(maxlen=HISTORY))
        if history and went_back(history[-1], snapshot):
            history.clear()
        history.append(snapshot)

    def latest(self, device: str) -> Snapshot | None:
        """The last snapshot, if any."""
        history = self._history.get(device)
        return history[-1] if history else None

    def at(self, device: str, time: float) -> Snapshot | None:
        """The last snapshot that is not younger than ``time``, if the history reaches back so far."""
        older = [snapshot for snapshot in self._history.get(device, ()) if snapshot.time <= time]
        return older[-1] if older else None

    def port(self, name: str, end: PortRef) -> Rate:
        """Packets of a port: ``rx`` that arrived, ``forwarded`` that were sent on its way."""
        return self._rate(end.device, "ports", (name, end.port))

    def queue(self, name: str, end: PortRef, queue: int) -> Rate:
        """Packets of an egress queue: ``tx``, ``marked`` and ``early_drops``."""
        return self._rate(end.device, "queues", (name, end.port, queue))

    def drops(self, device: str) -> dict[str, Rate]:
        """Ingress drops of a device by reason."""
        latest = self.latest(device)
        return {reason: self._rate(device, "drops", reason) for reason in (latest.drops if latest else {})}

    def _rate(self, device: str, kind: str, key: Any) -> Rate:
        history = self._history.get(device)
        if not history:
            return Rate()
        packets, octets = getattr(history[-1], kind).get(key, (0, 0))
        if len(history) < 2:
            return Rate(packets, octets)
        before, seconds = getattr(history[-2], kind).get(key, (0, 0)), history[-1].time - history[-2].time
        if seconds <= 0:
            return Rate(packets, octets)
        return Rate(packets, octets, (packets - before[0]) / seconds, (octets - before[1]) * 8 / seconds)


def went_back(before: Snapshot, after: Snapshot) -> bool:
    """Whether a counter is lower than it was: the device has started anew."""
    return any(after.ports.get(key, (0, 0))[0] < count[0] for key, count in before.ports.items())


def silent_ports(before: Snapshot, after: Snapshot) -> set[int]:
    """Ports at which nothing arrived between two snapshots."""
    return {
        port
        for (name, port), count in after.ports.items()
        if name == "rx" and (name, port) in before.ports and count[0] <= before.ports[name, port][0]
    }
