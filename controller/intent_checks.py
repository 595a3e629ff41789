"""How the parts of an intent file fit together: nothing used twice, no dangling name, no impossible cabling."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface

from controller.model import Device, Host, Link, PortRef, Role
from controller.yaml_source import Value

MAX_PLANES = 8


@dataclass(slots=True)
class Located:
    """What a file says, with where it says it."""

    planes: list[tuple[str, Value]] = field(default_factory=list)
    devices: list[tuple[Device, Value]] = field(default_factory=list)
    hosts: list[tuple[Host, Value]] = field(default_factory=list)
    links: list[tuple[str, PortRef, PortRef, Value]] = field(default_factory=list)
    plane_ports: dict[str, tuple[tuple[int, ...], Value]] = field(default_factory=dict)


def check_intent(located: Located, root: Value) -> tuple[Link, ...]:
    """Notes what does not fit together; the links, their ends in order of height."""
    if not located.planes:
        root.wrong("there are no planes")
    if len(located.planes) > MAX_PLANES:
        located.planes[MAX_PLANES][1].wrong(f"at most {MAX_PLANES} planes, this is plane {MAX_PLANES + 1}")
    _unique("plane", ((name, value) for name, value in located.planes))
    _unique("device", ((device.name, value) for device, value in located.devices))
    _unique("device_id", ((device.device_id, value) for device, value in located.devices))
    _unique("address", ((device.address, value) for device, value in located.devices))
    _unique("host", ((host.name, value) for host, value in located.hosts))
    _unique("link", ((name, value) for name, _, _, value in located.links))
    _check_macs(located)
    _check_addresses(located)
    _check_roles(located)
    _check_nic_ports(located)
    _check_ports(located)
    return _links(located)


def _unique(what: str, given: Iterable[tuple[Hashable, Value]]) -> None:
    seen: dict[Hashable, Value] = {}
    for name, value in given:
        if name in ("", 0):
            continue  # missing; noted already
        if name in seen:
            value.wrong(f"{what} {name!r} is used already in line {seen[name].line} ({seen[name].key})")
        else:
            seen[name] = value


def _check_macs(located: Located) -> None:
    by_id = {device.device_id: (device.mac, value) for device, value in reversed(located.devices) if device.device_id}
    macs = [given for given in by_id.values() if given[0]]  # an id given twice is noted already
    macs.sort(key=lambda given: given[1].line)
    macs += [(host.mac, value) for host, value in located.hosts if host.mac]
    seen: dict[int, Value] = {}
    for mac, value in macs:
        if mac in seen:
            value.wrong(f"Ethernet address {show_mac(mac)} is used already in line {seen[mac].line} ({seen[mac].key})")
        seen.setdefault(mac, value)


def show_mac(mac: int) -> str:
    """An Ethernet address as people write it."""
    return ":".join(f"{octet:02x}" for octet in mac.to_bytes(6, "big"))


def _check_addresses(located: Located) -> None:
    for family in ("ipv4", "ipv6"):
        given = [(host, value, getattr(host, family)) for host, value in located.hosts if getattr(host, family)]
        owners: dict[object, tuple[Host, Value]] = {}
        subnets: dict[object, tuple[Host, IPv4Interface | IPv6Interface]] = {}
        for host, value, address in given:
            if address.ip in owners:
                other, where = owners[address.ip]
                value.wrong(f"{family} {address.ip} overlaps host {other.name!r} in line {where.line}")
                continue
            owners[address.ip] = (host, value)
            for network, (other, theirs) in subnets.items():
                if network != address.network and theirs.network.overlaps(address.network):
                    value.wrong(
                        f"{family} {address} overlaps {theirs} of host {other.name!r}; "
                        "subnets must be the same or disjoint"
                    )
                    break
            subnets.setdefault(address.network, (host, address))


def _check_roles(located: Located) -> None:
    for plane, where in located.planes:
        roles = [device.role for device, _ in located.devices if device.plane == plane]
        if not roles:
            where.wrong(f"plane {plane!r} has no switches")
        elif Role.PLANE in roles and len(roles) > 1:
            where.wrong(f"plane {plane!r} has a switch of role 'plane' beside others; use 'leaf' and 'spine'")
        elif Role.SPINE in roles and Role.LEAF not in roles:
            where.wrong(f"plane {plane!r} has spines but no leaf")


def _check_nic_ports(located: Located) -> None:
    host_ports = {host.attached for host, _ in located.hosts}
    for nic, (ports, value) in located.plane_ports.items():
        if len(set(ports)) < len(ports):
            value.wrong(f"a port is listed twice: {list(ports)}")
        if len(ports) < len(located.planes):
            value.wrong(f"{len(located.planes)} planes need as many plane ports, NIC {nic!r} has {len(ports)}")
        if len(ports) > MAX_PLANES:
            value.wrong(f"at most {MAX_PLANES} plane ports, NIC {nic!r} has {len(ports)}")
        for port in ports:
            if PortRef(nic, port) in host_ports:
                value.wrong(f"port {port} is the host port already")


def _check_ports(located: Located) -> None:
    devices = {device.name: device for device, _ in located.devices}
    used: dict[PortRef, Value] = {}
    ends = [(host.attached, value) for host, value in located.hosts]
    ends += [(end, value) for _, one, two, value in located.links for end in (one, two)]
    for end, value in ends:
        if not end.port:
            continue
        if end.device not in devices:
            value.wrong(f"unknown device {end.device!r}; devices are {', '.join(sorted(devices))}")
            continue
        if end in used:
            value.wrong(f"port {end} is used already in line {used[end].line} ({used[end].key})")
        used.setdefault(end, value)
    for _, one, two, value in located.links:
        for end in (one, two):
            ports = located.plane_ports.get(end.device)
            if ports is not None and end.port and end.port not in ports[0]:
                value.wrong(f"port {end} is not a plane port of the NIC; those are {', '.join(map(str, ports[0]))}")


def _links(located: Located) -> tuple[Link, ...]:
    devices = {device.name: device for device, _ in located.devices}
    links: list[Link] = []
    for name, one, two, value in located.links:
        if one.device not in devices or two.device not in devices:
            continue
        first, second = devices[one.device], devices[two.device]
        if abs(first.role.tier - second.role.tier) != 1:
            value.wrong(f"cannot join {first.role} {first.name!r} and {second.role} {second.name!r}; {CABLING}")
            continue
        if first.role.tier > second.role.tier:
            first, second, one, two = second, first, two, one
        if first.plane and first.plane != second.plane:
            value.wrong(f"joins planes {first.plane!r} and {second.plane!r}; planes are independent")
        links.append(Link(name, second.plane, one, two))
    return tuple(links)


CABLING = "links join a NIC with a leaf or plane switch, or a leaf with a spine"
