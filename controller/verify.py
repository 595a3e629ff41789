"""Proves from installed entries alone that hosts reach each other, by which planes, and by which members.

Nothing of the plan is believed: packets are followed through the tables as the devices read them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from controller.entities import Entity, Lpm, TableEntry
from controller.groups import UDP_GROUP
from controller.intent_checks import show_mac
from controller.model import Host, Intent, PortRef, Role
from controller.paths import FabricView, Use
from controller.plan import Planner
from controller.tables import acl


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that the installed entries do wrong, at a device or between two hosts."""

    subject: str
    message: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Tables:
    """A device's entries, ready for lookup."""

    ports: frozenset[int]
    stations: frozenset[int]
    neighbors: dict[int, int]  # egress port -> destination MAC
    groups: dict[int, int]  # id -> port mask
    routes: dict[str, tuple[tuple[Lpm, int | None], ...]]  # table -> prefixes, longest first; None: not forwarded
    own: dict[tuple[str, int], int]  # family and address of a NIC's host -> host port
    drained: int  # port mask
    avoided: dict[tuple[str, int], int]  # family and address of a destination -> port mask


def verify(
    intent: Intent, view: FabricView, installed: Mapping[str, frozenset[Entity]], unread: Mapping[str, str]
) -> list[Finding]:
    """All findings, in order; none is a proof. Of devices that are not in ``installed``, ``unread`` says why."""
    checker = _Checker(intent, view, {name: _tables(entities) for name, entities in installed.items()})
    findings = {Finding(name, f"could not be read: {why}") for name, why in unread.items()}
    findings |= _members(intent, view, checker.tables)
    findings |= _access_list(intent, installed)
    for source in intent.hosts:
        for target in intent.hosts:
            if source is not target:
                findings |= checker.pair(source, target)
    return sorted(findings | checker.findings)


def _tables(entities: Iterable[Entity]) -> _Tables:
    by_table: dict[str, list[TableEntry]] = {}
    for entity in entities:
        if isinstance(entity, TableEntry):
            by_table.setdefault(entity.table, []).append(entity)

    def exact(table: str, key: str) -> dict[int, dict[str, int]]:
        found = {}
        for one in by_table.get(table, []):
            value = dict(one.match).get(key)
            if isinstance(value, int):
                found[value] = dict(one.params)
        return found

    routes = {}
    for table in ("route_ipv4", "route_ipv6"):
        prefixes = []
        for one in by_table.get(table, []):
            prefix = dict(one.match).get("dst_addr", Lpm(0, 0))
            if isinstance(prefix, Lpm):
                prefixes.append((prefix, dict(one.params).get("group_id")))
        routes[table] = tuple(sorted(prefixes, key=lambda route: -route[0].prefix_len))
    own = {
        (family, address): params["port"]
        for family in ("ipv4", "ipv6")
        for address, params in exact(f"host_{family}", "addr").items()
    }
    drained = [dict(one.params).get("ports", 0) for one in by_table.get("drain", [])]
    avoided = {
        (family, prefix.value): dict(one.params)["ports"]
        for family in ("ipv4", "ipv6")
        for one in by_table.get(f"reach_{family}", [])
        for prefix in [dict(one.match).get("dst_addr")]
        if isinstance(prefix, Lpm)
    }
    return _Tables(
        own=own,
        avoided=avoided,
        drained=drained[0] if drained else 0,
        ports=frozenset(exact("port", "port")),
        stations=frozenset(exact("station", "dst_addr")),
        neighbors={port: params["dst_addr"] for port, params in exact("neighbor", "port").items()},
        groups={number: params["ports"] for number, params in exact("group", "group_id").items()},
        routes=routes,
    )


def ports_of(mask: int) -> list[int]:
    """The ports of a mask."""
    return [port for port in range(mask.bit_length()) if mask >> port & 1]


def _members(intent: Intent, view: FabricView, tables: Mapping[str, _Tables]) -> set[Finding]:
    """Groups whose members are not those that the fabric's health asks for."""
    findings = set()
    for name, forwarding in Planner(intent).forwarding(view).items():
        if name not in tables:
            continue
        for group in forwarding.groups:
            found = tables[name].groups.get(group.group_id)
            if found is not None and ports_of(found) != sorted(group.ports):
                said = f"group {group.group_id} has ports {ports_of(found)}, should have {sorted(group.ports)}"
                findings.add(Finding(name, said))
    return findings


def _access_list(intent: Intent, installed: Mapping[str, frozenset[Entity]]) -> set[Finding]:
    """Rules that a device lacks, or has too much."""
    findings = set()
    for device in intent.devices:
        if device.role is Role.NIC or device.name not in installed:
            continue
        name, entities, wanted = device.name, installed[device.name], set(acl(intent, device))
        found = {one for one in entities if isinstance(one, TableEntry) and one.table == "acl"}
        findings |= {Finding(name, f"access rule missing: {one}") for one in wanted - found}
        findings |= {Finding(name, f"access rule too much: {one}") for one in found - wanted}
    return findings


class _Checker:
    """Follows packets. What is wrong at a device is noted once, whoever runs into it."""

    def __init__(self, intent: Intent, view: FabricView, tables: Mapping[str, _Tables]) -> None:
        self.intent, self.view, self.tables = intent, view, tables
        self.findings: set[Finding] = set()
        self._reached: dict[tuple[str, str, str], frozenset[str]] = {}

    def pair(self, source: Host, target: Host) -> set[Finding]:
        """What is wrong between two hosts: no way, or not by every plane by which there should be one."""
        subject = f"{source.name} -> {target.name}"
        found = set()
        for family in ("ipv4", "ipv6"):
            if getattr(source, family) is None or getattr(target, family) is None:
                continue
            planes = self._planes(source.attached.device, target, family, ())
            expected = self._expected(source, target)
            if expected and not planes:
                found.add(Finding(subject, f"no {family} packet arrives"))
            elif missing := expected - planes:
                found.add(Finding(subject, f"{family} does not use {', '.join(sorted(missing))}"))
        return found

    def _expected(self, source: Host, target: Host) -> frozenset[str]:
        """Planes in which every link is well: there must be a way by each."""
        if source.attached.device == target.attached.device:
            return frozenset({""})
        links = self.intent.links
        well = set(self.intent.planes)
        well -= {link.plane for link in links if self.view.use(link) is not Use.GOOD}
        for host in (source, target):
            device = self.intent.device_by_name[host.attached.device]
            at_hand = {link.plane for link in self.intent.links_of[device.name]} if not device.plane else {device.plane}
            well &= at_hand
        return frozenset(well)

    def _planes(self, device: str, target: Host, family: str, path: tuple[str, ...]) -> frozenset[str]:
        """The planes by which packets that are at the device arrive at the target; '' where none is crossed."""
        key = (device, target.name, family)  # a NIC is either the first or the last
        if key in self._reached:
            return self._reached[key]
        if device in path:
            self.findings.add(Finding(device, f"packets for {target.name} go in a loop: {' '.join((*path, device))}"))
            return frozenset()
        arrived: set[str] = set()
        for port in self._out(device, target, family, path):
            arrived |= self._beyond(device, port, target, family, (*path, device))
        self._reached[key] = frozenset(arrived)
        return self._reached[key]

    def _out(self, device: str, target: Host, family: str, path: tuple[str, ...]) -> list[int]:
        """The ports by which the device sends packets for the target on."""
        tables = self.tables.get(device)
        if tables is None:
            return []
        address = int(getattr(target, family).ip)
        if self.intent.device_by_name[device].role is Role.NIC:
            if path:
                return [tables.own[family, address]] if (family, address) in tables.own else []
            avoided = tables.avoided.get((family, address), 0)
            return [port for port in self._group(device, UDP_GROUP, target) if not avoided >> port & 1]
        width = 32 if family == "ipv4" else 128
        for prefix, group in tables.routes[f"route_{family}"]:
            if address >> (width - prefix.prefix_len) == prefix.value >> (width - prefix.prefix_len):
                return [] if group is None else self._group(device, group, target)
        return []

    def _group(self, device: str, group: int, target: Host) -> list[int]:
        tables = self.tables[device]
        if group not in tables.groups:
            said = f"packets for {target.name} are to take group {group}, which is missing"
            self.findings.add(Finding(device, said))
            return []
        return ports_of(tables.groups[group] & ~tables.drained)

    def _beyond(self, device: str, port: int, target: Host, family: str, path: tuple[str, ...]) -> frozenset[str]:
        mac = self.tables[device].neighbors.get(port)
        if mac is None:
            self.findings.add(Finding(device, f"port {port} has no neighbor"))
            return frozenset()
        link = self.intent.link_at.get(PortRef(device, port))
        if link is None:
            if target.attached != PortRef(device, port) or mac != target.mac:
                said = f"packets for {target.name} leave by port {port} to {show_mac(mac)}"
                self.findings.add(Finding(device, said))
                return frozenset()
            return frozenset({""})
        if self.view.use(link) is Use.DOWN:
            return frozenset()
        beyond = link.other(device)
        there = self.tables.get(beyond.device)
        if there is None:
            return frozenset()
        if mac not in there.stations or beyond.port not in there.ports:
            why = (
                f"does not take frames for {show_mac(mac)}" if mac not in there.stations else "has that port not in use"
            )
            self.findings.add(Finding(device, f"port {port} leads to {beyond}, which {why}"))
            return frozenset()
        return frozenset(plane or link.plane for plane in self._planes(beyond.device, target, family, path))
