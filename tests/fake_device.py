"""A device without packets: what the P4Runtime server's tests run against, so that they need no compiler.

It refuses what the real one refuses (a full table, a member in use) and lets tests raise events and make time pass.
"""

from __future__ import annotations

import queue
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from softswitch import model
from softswitch.device import Device
from softswitch.device_types import (
    Call,
    DeviceError,
    EntryStats,
    Event,
    Group,
    GroupMember,
    MatchValue,
    Member,
    MeterConfig,
    PortInfo,
    Replica,
    Target,
)
from softswitch.p4runtime.pipeline import TargetError


@dataclass
class FakeEntry:
    """One entry of a table."""

    match: dict[str, MatchValue]
    priority: int
    target: Target
    idle_timeout_ns: int = 0
    packets: int = 0
    bytes: int = 0
    idle_ns: int = 0
    meter: MeterConfig | None = None


@dataclass
class FakeDevice:
    """Holds whatever is written to it. ``sent`` are the packets of packet-outs."""

    program: model.Program
    known_ports: list[int] = field(default_factory=lambda: [1, 2])
    sent: list[bytes] = field(default_factory=list)
    acked: list[tuple[str, int]] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self.tables: dict[str, dict[int, FakeEntry]] = {name: {} for name in self.program.tables}
        self.defaults = {name: FakeEntry({}, 0, Call("")) for name in self.program.tables}
        self.members: dict[str, dict[int, Call]] = {name: {} for name in self.program.profiles}
        self.groups: dict[str, dict[int, list[GroupMember]]] = {name: {} for name in self.program.profiles}
        self.counters: dict[tuple[str, int], tuple[int, int]] = {}
        self.meters: dict[tuple[str, int], MeterConfig | None] = {}
        self.registers: dict[tuple[str, int], int] = {}
        self.value_sets: dict[str, list[tuple[int, int]]] = {}
        self.multicast: dict[int, list[Replica]] = {}
        self.clones: dict[int, tuple[list[Replica], int]] = {}
        self.digests: dict[str, dict[str, int | bool]] = {}
        self.calls = 0
        self._next = 0
        self._events: queue.Queue[Event | None] = queue.Queue()
        for table in self.program.tables.values():
            worst = max((e.priority for e in table.entries), default=0)
            for entry in table.entries:
                self._install(table, entry, worst)

    def _install(self, table: model.Table, entry: model.Entry, worst: int) -> None:
        from softswitch.p4runtime.match import from_program
        from softswitch.p4runtime.p4info import Field, Match

        match: dict[str, MatchValue] = {}
        for key, part in zip(table.key, entry.fields, strict=True):
            kind = Match.EXACT if key.match == "valid" else Match(key.match)
            match[key.name] = from_program(Field(0, key.name, key.name, key.width, kind), part)
        priority = worst + 1 - entry.priority if table.match in ("ternary", "range") else 0
        action = self.program.actions[entry.call.action].name
        self.table_add(table.name, match, Call(action, entry.call.args), priority=priority)

    def _handle(self) -> int:
        self._next += 1
        return self._next

    def close(self) -> None:
        self.closed = True
        self.wake()

    # -- packets and events

    def emit(self, event: Event) -> None:
        """Let the server find an event."""
        self._events.put(event)

    def next_event(self, timeout_ms: int) -> Event | None:
        try:
            return self._events.get(timeout=timeout_ms / 1000) if timeout_ms else self._events.get_nowait()
        except queue.Empty:
            return None

    def wake(self) -> None:
        self._events.put(None)

    def ports(self) -> list[int]:
        return self.known_ports

    def port_info(self, port: int) -> PortInfo:
        exists = port in self.known_ports
        return PortInfo(exists, exists, "", 0, 0, 0, 0, 0, 0, 0, 0, 0)

    # -- tables

    def table_add(
        self,
        table: str,
        match: Mapping[str, MatchValue],
        target: Target,
        *,
        priority: int = 0,
        idle_timeout_ns: int = 0,
    ) -> int:
        self.calls += 1
        entries = self.tables[table]
        if len(entries) >= self.program.tables[table].max_size:
            raise DeviceError("RESOURCE_EXHAUSTED", "the table is full")
        handle = self._handle()
        entries[handle] = FakeEntry(dict(match), priority, target, idle_timeout_ns)
        return handle

    def table_modify(self, table: str, handle: int, target: Target, *, idle_timeout_ns: int = 0) -> None:
        entry = self.tables[table][handle]
        entry.target, entry.idle_timeout_ns = target, idle_timeout_ns

    def table_delete(self, table: str, handle: int) -> None:
        del self.tables[table][handle]

    def table_find(self, table: str, match: Mapping[str, MatchValue], *, priority: int = 0) -> int | None:
        for handle, entry in self.tables[table].items():
            if entry.match == dict(match) and entry.priority == priority:
                return handle
        return None

    def table_set_default(self, table: str, target: Target) -> None:
        self.defaults[table].target = target

    def table_reset_default(self, table: str) -> None:
        self.defaults[table] = FakeEntry({}, 0, Call(""))

    def _entry(self, table: str, handle: int) -> FakeEntry:
        entry = self.tables[table].get(handle) if handle else self.defaults[table]
        if entry is None:
            raise DeviceError("NOT_FOUND", "no such entry")
        return entry

    def entry_stats(self, table: str, handle: int) -> EntryStats:
        entry = self._entry(table, handle)
        return EntryStats(entry.packets, entry.bytes, entry.idle_ns)

    def entry_counter_set(self, table: str, handle: int, packets: int, nbytes: int) -> None:
        entry = self._entry(table, handle)
        entry.packets, entry.bytes = packets, nbytes

    def entry_meter(self, table: str, handle: int) -> MeterConfig | None:
        return self._entry(table, handle).meter

    def entry_meter_set(self, table: str, handle: int, config: MeterConfig | None) -> None:
        self._entry(table, handle).meter = config

    # -- profiles

    def member_add(self, profile: str, call: Call) -> int:
        if len(self.members[profile]) >= self.program.profiles[profile].max_size:
            raise DeviceError("RESOURCE_EXHAUSTED", "the profile is full")
        handle = self._handle()
        self.members[profile][handle] = call
        return handle

    def member_modify(self, profile: str, handle: int, call: Call) -> None:
        self.members[profile][handle] = call

    def member_delete(self, profile: str, handle: int) -> None:
        in_group = any(m.member == handle for group in self.groups[profile].values() for m in group)
        if in_group or self._targeted(profile, Member(handle)):
            raise DeviceError("FAILED_PRECONDITION", "in use")
        del self.members[profile][handle]

    def group_add(self, profile: str, members: Sequence[GroupMember]) -> int:
        handle = self._handle()
        self.groups[profile][handle] = list(members)
        return handle

    def group_modify(self, profile: str, handle: int, members: Sequence[GroupMember]) -> None:
        self.groups[profile][handle] = list(members)

    def group_delete(self, profile: str, handle: int) -> None:
        if self._targeted(profile, Group(handle)):
            raise DeviceError("FAILED_PRECONDITION", "in use")
        del self.groups[profile][handle]

    def _targeted(self, profile: str, target: Target) -> bool:
        tables = [t.name for t in self.program.tables.values() if t.profile == profile]
        return any(entry.target == target for name in tables for entry in self.tables[name].values())

    # -- state

    def counter(self, name: str, index: int) -> tuple[int, int]:
        return self.counters.get((name, index), (0, 0))

    def counter_set(self, name: str, index: int, packets: int, nbytes: int) -> None:
        self.counters[name, index] = packets, nbytes

    def meter(self, name: str, index: int) -> MeterConfig | None:
        return self.meters.get((name, index))

    def meter_set(self, name: str, index: int, config: MeterConfig | None) -> None:
        self.meters[name, index] = config

    def register(self, name: str, index: int) -> int:
        return self.registers.get((name, index), 0)

    def register_set(self, name: str, index: int, value: int) -> None:
        self.registers[name, index] = value

    def value_set_replace(self, name: str, members: Iterable[tuple[int, int]]) -> None:
        self.value_sets[name] = sorted(members)

    def multicast_set(self, group: int, replicas: Sequence[Replica]) -> None:
        self.multicast[group] = list(replicas)

    def multicast_delete(self, group: int) -> None:
        del self.multicast[group]

    def clone_set(self, session: int, replicas: Sequence[Replica], truncate_bytes: int = 0) -> None:
        self.clones[session] = list(replicas), truncate_bytes

    def clone_delete(self, session: int) -> None:
        del self.clones[session]

    def digest_set(self, name: str, *, enabled: bool, **config: int) -> None:
        self.digests[name] = {"enabled": enabled, **config}

    def digest_ack(self, name: str, list_id: int) -> None:
        self.acked.append((name, list_id))


class FakeTarget:
    """Makes fake devices. ``devices`` are those that were activated, the last one runs; ``refuse`` is an error."""

    def __init__(self) -> None:
        self.devices: list[FakeDevice] = []
        self.refuse = ""

    @property
    def device(self) -> FakeDevice:
        """The device that runs."""
        return self.devices[-1]

    def build(self, program: model.Program) -> Device:
        if self.refuse:
            raise TargetError(self.refuse)
        return cast(Device, FakeDevice(program))

    def activate(self, device: Device) -> None:
        if self.devices:
            self.devices[-1].close()
        self.devices.append(cast(FakeDevice, device))

    def packet_out(self, packet: bytes) -> None:
        self.device.sent.append(packet)
