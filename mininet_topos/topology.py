"""What is connected to what: switches, SmartNICs, hosts, links. Values only; :mod:`mininet_topos.network` runs them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Interface, IPv6Interface

MAX_PORT = 63  # the P4 programs keep sets of ports in 64 bits
MAX_PLANES = 8
NIC_HOST_PORT = 9  # plane k is port k
FIRST_NIC_ID = 1001  # device ids of switches count from 1


class TopologyError(ValueError):
    """A network that cannot be; the message names the value and the valid ones."""


class Role(StrEnum):
    """What a device is in its plane, by the names of the controller's intent file."""

    NIC = "nic"
    PLANE = "plane"  # the only switch of a single-tier plane
    LEAF = "leaf"
    SPINE = "spine"


@dataclass(frozen=True, slots=True)
class Device:
    """A switch, or a SmartNIC (whose ``plane`` is empty)."""

    name: str
    role: Role
    device_id: int
    plane: str = ""

    @property
    def mac(self) -> str:
        """Its address as a router: the one that the controller gives a device for which the intent has none."""
        return mac_text(0x025050000000 | self.device_id)


@dataclass(frozen=True, slots=True)
class Host:
    """An end station: one interface, both address families, the first address of each network as gateway."""

    name: str
    mac: str
    ipv4: IPv4Interface
    ipv6: IPv6Interface
    gateway_mac: str | None = None  # a fixed neighbour, where nobody answers ARP and ND

    @property
    def gateways(self) -> tuple[str, str]:
        """IPv4 and IPv6 gateway."""
        return str(self.ipv4.network[1]), str(self.ipv6.network[1])


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link, written ``node:port``; a host's only port is 0."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"


@dataclass(frozen=True, slots=True)
class Link:
    """A cable."""

    a: End
    b: End

    def at(self, node: str) -> End:
        """The end that is at ``node``."""
        return self.a if self.a.node == node else self.b

    def other(self, node: str) -> End:
        """The end that is not at ``node``."""
        return self.b if self.a.node == node else self.a


@dataclass(frozen=True)
class Topology:
    """A whole network. Raises TopologyError where it does not fit together."""

    name: str
    devices: tuple[Device, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        names = [device.name for device in self.devices] + [host.name for host in self.hosts]
        for name in names:
            if names.count(name) > 1:
                raise TopologyError(f"two nodes are called {name!r}")
        used: set[End] = set()
        for end in (end for link in self.links for end in (link.a, link.b)):
            if end.node not in names:
                raise TopologyError(f"link end {end}: no such node; nodes are {', '.join(names)}")
            if end in used:
                raise TopologyError(f"port {end} has two links")
            low = 0 if end.node in self.host_names else 1
            if not low <= end.port <= (MAX_PORT if low else 0):
                raise TopologyError(f"port {end}: a device's ports are 1..{MAX_PORT}, a host's only port is 0")
            used.add(end)

    @cached_property
    def host_names(self) -> frozenset[str]:
        """The names that are hosts."""
        return frozenset(host.name for host in self.hosts)

    def links_of(self, node: str) -> tuple[Link, ...]:
        """The links that end at a node, by its port number."""
        found = [link for link in self.links if node in (link.a.node, link.b.node)]
        return tuple(sorted(found, key=lambda link: link.at(node).port))

    def timer_ports(self, device: str) -> tuple[int, ...]:
        """The ports of a device that get timers: all, where any exchanges heartbeats."""
        return tuple(link.at(device).port for link in self.links_of(device)) if self.link_ports(device) else ()

    def link_ports(self, device: str) -> tuple[int, ...]:
        """The ports of a device that lead to another device: those that exchange heartbeats."""
        links = self.links_of(device)
        return tuple(link.at(device).port for link in links if link.other(device).node not in self.host_names)


def make_host(number: int, gateway_mac: str | None = None) -> Host:
    """``h<number>``, 1..255: 10.0.<number>.2/24 and fd00:0:0:<number>::2/64, MAC 02:00:00:00:01:<number>."""
    return Host(
        name=f"h{number}",
        mac=mac_text(0x020000000100 + number),
        ipv4=IPv4Interface(f"10.0.{number}.2/24"),
        ipv6=IPv6Interface(f"fd00:0:0:{number:x}::2/64"),
        gateway_mac=gateway_mac,
    )


def mac_text(mac: int) -> str:
    """02:00:00:00:00:01"""
    return mac.to_bytes(6, "big").hex(":")


def check_count(what: str, value: int, low: int, high: int) -> None:
    """Raises TopologyError where ``value`` is not within ``low..high``."""
    if not low <= value <= high:
        raise TopologyError(f"{what} must be within {low}..{high}, is {value}")
