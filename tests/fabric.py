"""fabric.p4 in virtual time: a switch with short names, packets, and links between switches that lose packets."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ptf_tests import packets as p
from softswitch import bmv2_json
from softswitch import model as m
from softswitch.device import Call, Device, DigestList, Lpm, MatchValue, Output, PacketIn

BUILD = Path(__file__).resolve().parent.parent / "p4src/build"
MS = 1_000_000  # ns
SECOND = 1_000_000_000
INTERVAL = 10 * MS  # between heartbeats


@dataclass(frozen=True, slots=True)
class Event:
    """A link_event_t."""

    port: int
    state: int
    old_state: int
    reason: int
    rx_state: int
    neighbor_rx_state: int
    device: int
    device_port: int
    lost: int
    expected: int
    flaps: int
    time: int  # ticks


@dataclass(frozen=True, slots=True)
class Health:
    """The arguments of set_health."""

    missed: int = 3
    min_interval: int = 0
    probation: int = 20
    max_doublings: int = 6
    forgive: int = 10_000
    window: int = 100
    min_lost: int = 4
    loss_ppm: int = 500
    avoid_degraded: int = 1


@cache
def program(name: str) -> m.Program:
    return bmv2_json.load(BUILD / f"{name}.json")


class Fabric:
    """A device running ``fabric``, told what to do by the names that P4Info has."""

    def __init__(self, *, seed: int = 0, name: str = "fabric", cpu_port: int | None = p.CPU_PORT) -> None:
        self.device = Device(program(name), seed=seed, cpu_port=cpu_port, priorities=8)
        found = self.device.program
        self.names = {full.rsplit(".", 1)[-1]: full for group in (
            found.tables, found.counters, found.meters, found.registers) for full in group}  # fmt: skip
        self.actions = {action.name.rsplit(".", 1)[-1]: action.name for action in found.actions.values()}
        self.events: list[Event] = []  # that told something new
        self.repeats: list[Event] = []  # of what had been told
        self._told: dict[int, Event] = {}  # last, of each port, less old state, loss and time
        self.packets_in: list[bytes] = []

    def close(self) -> None:
        self.device.close()

    def add(self, table: str, match: Mapping[str, MatchValue], action: str, *args: int, priority: int = 0) -> int:
        """Add an entry, or give it another action."""
        full, call = self.names[table], Call(self.actions[action], args)
        found = self.device.table_find(full, match, priority=priority)
        if found is not None:
            self.device.table_modify(full, found, call)
            return found
        return self.device.table_add(full, match, call, priority=priority)

    def counter(self, name: str, index: int) -> int:
        """Packets."""
        return self.device.counter(self.names[name], index)[0]

    def drops(self) -> dict[int, int]:
        """Packets by reason, reasons without any left out."""
        return {reason: count for reason in range(32) if (count := self.counter("drops", reason))}

    def register(self, name: str, index: int) -> int:
        return self.device.register(self.names[name], index)

    def basics(self, ports: Iterable[int] = range(1, 64), role: int = p.FABRIC) -> None:
        """Ports in use with neighbors, classes with queues, the router's address."""
        for port in ports:
            self.add("port", {"port": port}, "set_role", role)
            self.add("neighbor", {"port": port}, "set_macs", p.ROUTER_MAC, p.neighbor_mac(port))
        for name, dscp in p.DSCP.items():
            queue = {p.CONTROL: 7, p.DATA: 3, p.OTHER: 0}[name]
            self.add("traffic_class", {"dscp": dscp}, "set_class", name, queue)
        self.add("station", {"dst_addr": p.ROUTER_MAC}, "accept_station")

    def route(self, prefix: str, group: int, ports: Iterable[int], watched: Iterable[int] = ()) -> None:
        """A route, and the group that it leads to."""
        net = ipaddress.ip_network(prefix)
        match = {"dst_addr": Lpm(int(net.network_address), net.prefixlen)}
        self.add(f"route_ipv{net.version}", match, f"ipv{net.version}_via", group)
        self.group(group, ports, watched)

    def group(self, group: int, ports: Iterable[int], watched: Iterable[int] = ()) -> None:
        self.add("group", {"group_id": group}, "set_members", p.mask(ports), p.mask(watched))

    def spray(self, group: int, action: str, *args: int, traffic_class: int = p.DATA) -> None:
        self.add("spray_mode", {"group_id": group, "traffic_class": traffic_class}, action, *args)

    def watch(self, port: int, own: int, neighbor: int, neighbor_port: int) -> None:
        """Heartbeats on a port, judged by health profile 1."""
        self.add("link", {"port": port}, "watch_link", own, neighbor, neighbor_port, 1)

    def health(self, health: Health) -> None:
        args = tuple(getattr(health, name) for name in health.__dataclass_fields__)
        self.add("health_profile", {"profile_id": 1}, "set_health", *args)
        self.device.digest_set("link_event_t", enabled=True, max_list_size=1)

    def drain(self) -> list[Event]:
        """Link events since the last call. Repetitions go to ``repeats``, packets-in to ``packets_in``."""
        fresh: list[Event] = []
        while (event := self.device.next_event(0)) is not None:
            if isinstance(event, DigestList):
                fresh += [told for sample in event.samples if not self._is_repeat(told := Event(*sample))]
            elif isinstance(event, PacketIn):
                self.packets_in.append(event.data)
        self.events += fresh
        return fresh

    def _is_repeat(self, event: Event) -> bool:
        told = replace(event, old_state=0, lost=0, expected=0, time=0)
        last, self._told[event.port] = self._told.get(event.port), told
        if told == last and event.state == event.old_state and not event.expected:
            self.repeats.append(event)
            return True
        return False

    def send(self, port: int, packet: bytes, now: int) -> list[Output]:
        return self.device.inject(port, packet, now)


def number(address: str) -> int:
    """An IP address as tables take it."""
    return int(ipaddress.ip_address(address))


Loss = Callable[[bytes], bool]  # whether a packet is lost


def no_loss(packet: bytes) -> bool:
    return False


@dataclass(slots=True)
class Network:
    """Switches and the wires between their ports: ``wires`` leads from an end to the end that hears it."""

    switches: dict[int, Fabric]
    wires: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    losses: dict[tuple[int, int], Loss] = field(default_factory=dict)
    arrived: list[tuple[int, Output]] = field(default_factory=list)  # where no wire leads on
    now: int = 0

    def wire(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        """Connect two ends, each a switch and a port."""
        self.wires |= {a: b, b: a}

    def send(self, switch: int, port: int, packet: bytes) -> None:
        """A packet comes to a port now, and whatever follows from it."""
        waiting = [(switch, port, packet)]
        while waiting:
            at, into, data = waiting.pop(0)
            for out in self.switches[at].send(into, data, self.now):
                end = (at, out.port)
                if end not in self.wires:
                    self.arrived.append((at, out))
                elif not self.losses.get(end, no_loss)(out.data):
                    waiting.append((*self.wires[end], out.data))

    def beat(self, step: Callable[[], Any] | None = None, *, count: int = 1) -> None:
        """Let ``count`` heartbeat intervals pass, with ``step`` in the middle of each."""
        for _ in range(count):
            for ident in self.switches:
                for port in sorted(port for at, port in self.wires if at == ident):
                    self.send(ident, p.TIMER_PORT, p.timer(port))
            self.now += INTERVAL // 2
            if step is not None:
                step()
            self.now += INTERVAL - INTERVAL // 2
            for switch in self.switches.values():
                switch.drain()
