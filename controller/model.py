"""What an intent file says, as values: planes, switches, NICs, hosts, links, traffic classes and profiles.

Everything here is immutable and already checked (see :mod:`controller.intent`); names refer to each other safely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network
from pathlib import Path

MAX_PORT = 63  # port sets are 64-bit masks; port 0 is left to the targets' "unset" value


class Role(StrEnum):
    """What a device is in its plane. Traffic goes up and then down: NIC, leaf, spine, leaf, NIC."""

    NIC = "nic"
    PLANE = "plane"  # the only switch of a single-tier plane
    LEAF = "leaf"
    SPINE = "spine"

    @property
    def tier(self) -> int:
        """Height in the plane; links join different heights only."""
        return {"nic": 0, "plane": 1, "leaf": 1, "spine": 2}[self.value]


class Spray(StrEnum):
    """How a class's packets choose a member of a group; numbers are in :mod:`controller.tables`."""

    ECMP = "ecmp"
    RANDOM = "spray_random"
    ROUND_ROBIN = "spray_rr"
    ADAPTIVE = "spray_adaptive"


class EcnMode(StrEnum):
    """How an egress queue marks."""

    NONE = "none"
    STEP = "step"
    RAMP = "ramp"
    EARLY_DROP = "early_drop"


@dataclass(frozen=True, slots=True, order=True)
class PortRef:
    """A port of a device, written ``device:port``."""

    device: str
    port: int

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


@dataclass(frozen=True, slots=True)
class Device:
    """A P4Runtime device: a switch of one plane, or a NIC (whose ``plane`` is empty)."""

    name: str
    role: Role
    plane: str
    device_id: int
    address: str  # HOST:PORT of P4Runtime
    mac: int  # its own address as a router, 48 bits
    control: Path | None = None  # the softswitch's control socket, for faults and queues
    thrift_port: int | None = None  # BMv2's, for queues


@dataclass(frozen=True, slots=True)
class Host:
    """An end station and where it is attached: a NIC's host port, or a switch's port."""

    name: str
    mac: int
    attached: PortRef
    ipv4: IPv4Interface | None = None
    ipv6: IPv6Interface | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between two devices of different height. ``upper`` is the end nearer to the spine."""

    name: str
    plane: str
    lower: PortRef
    upper: PortRef

    def at(self, device: str) -> PortRef:
        """The end at ``device``."""
        return self.lower if self.lower.device == device else self.upper

    def other(self, device: str) -> PortRef:
        """The end that is not at ``device``."""
        return self.upper if self.lower.device == device else self.lower


@dataclass(frozen=True, slots=True)
class EcnProfile:
    """Marking by queue depth in packets (BMv2, softswitch): a step at ``kmin``, or a ramp to ``pmax`` at ``kmax``."""

    name: str
    mode: EcnMode
    kmin: int = 0
    kmax: int = 0
    pmax: float = 0.0


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """Packets by DSCP: their queue (higher is served first), their way of choosing members, their marking."""

    name: str
    number: int
    dscp: tuple[int, ...]
    queue: int
    spray: Spray
    ecn: str
    max_age_us: int = 1000  # spray_adaptive: queue samples older than this count as empty


@dataclass(frozen=True, slots=True)
class HealthProfile:
    """When the data plane calls a link down, gray or well again; periods are counted in heartbeats.

    A link is down after ``missed_limit`` missed in a row, and well again after ``probation`` clean ones: twice as many
    for each failure, up to ``max_doublings`` times, until ``forgive`` clean ones in a row. It is degraded when of the
    packets of a ``window`` at least ``min_lost`` and ``loss_ppm`` of a million are lost.
    """

    heartbeat_us: int = 10_000
    missed_limit: int = 3
    probation: int = 100
    max_doublings: int = 6
    forgive: int = 10_000
    window: int = 100
    min_lost: int = 4
    loss_ppm: int = 500
    avoid_degraded: int = 1  # 0: the data plane goes on using degraded links; the controller decides
    silence_ms: int = 3000  # nothing for so long, by the counters, is a link down although no device has told


class AclAction(StrEnum):
    """What an access rule does."""

    PERMIT = "permit"
    DENY = "deny"
    PUNT = "punt"  # to the controller


@dataclass(frozen=True, slots=True)
class AclRule:
    """What switches do with packets that match every field given; None matches all, and so do no ``ports``."""

    action: AclAction
    ports: tuple[PortRef, ...] = ()
    ether_type: int | None = None
    src_addr: IPv4Network | IPv6Network | None = None
    dst_addr: IPv4Network | IPv6Network | None = None
    protocol: int | None = None
    l4_src_port: int | None = None
    l4_dst_port: int | None = None


@dataclass(frozen=True, slots=True)
class Postcards:
    """Of the class's packets that leave ``threshold`` packets or more in a queue, the controller gets this share."""

    traffic_class: int
    threshold: int
    share: float


@dataclass(frozen=True, slots=True)
class Protection:
    """Rates of packets to the controller, packets a second and packets of burst."""

    to_controller_pps: int = 200
    to_controller_burst: int = 50


@dataclass(frozen=True, slots=True)
class Damping:
    """How long, in milliseconds, a link must stay well before the controller uses it again; doubled by each flap."""

    hold_ms: int = 500
    max_hold_ms: int = 30_000
    forget_ms: int = 60_000


class UnknownName(LookupError):
    """There is no plane, device or link of a name; the text says which there are."""


@dataclass(frozen=True)
class Intent:
    """A checked intent file."""

    name: str
    source: Path
    planes: tuple[str, ...]
    devices: tuple[Device, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
    classes: tuple[TrafficClass, ...]
    ecn_profiles: tuple[EcnProfile, ...]
    health: HealthProfile = field(default_factory=HealthProfile)
    protection: Protection = field(default_factory=Protection)
    acl: tuple[AclRule, ...] = ()
    postcards: tuple[Postcards, ...] = ()
    damping: Damping = field(default_factory=Damping)
    tick_ns: int = 1000  # of the devices' clocks

    @cached_property
    def device_by_name(self) -> dict[str, Device]:
        """Devices by name."""
        return {device.name: device for device in self.devices}

    @cached_property
    def link_by_name(self) -> dict[str, Link]:
        """Links by name."""
        return {link.name: link for link in self.links}

    def links_named(self, name: str) -> list[Link]:
        """The links that a plane, a device or a link stands for. Raises UnknownName."""
        names = [*self.planes, *self.device_by_name, *self.link_by_name]
        if name not in names:
            raise UnknownName(f"no plane, device or link {name!r}; there are {', '.join(names)}")
        return [one for one in self.links if name in (one.name, one.plane, one.lower.device, one.upper.device)]

    @cached_property
    def link_at(self) -> dict[PortRef, Link]:
        """The link that ends at a port."""
        return {end: link for link in self.links for end in (link.lower, link.upper)}

    def leads_to(self, end: PortRef) -> str:
        """What is at the other end of the cable of a port in use."""
        if end in self.link_at:
            return str(self.link_at[end].other(end.device))
        return "host " + ", ".join(host.name for host in self.hosts_of[end.device] if host.attached == end)

    @cached_property
    def links_of(self) -> dict[str, tuple[Link, ...]]:
        """The links of a device, by its port number."""
        found: dict[str, list[Link]] = {device.name: [] for device in self.devices}
        for link in self.links:
            found[link.lower.device].append(link)
            found[link.upper.device].append(link)
        return {name: tuple(sorted(links, key=lambda link: link.at(name).port)) for name, links in found.items()}

    @cached_property
    def hosts_of(self) -> dict[str, tuple[Host, ...]]:
        """The hosts attached to a device, by its port number."""
        found: dict[str, list[Host]] = {device.name: [] for device in self.devices}
        for host in self.hosts:
            found[host.attached.device].append(host)
        return {name: tuple(sorted(hosts, key=lambda host: host.attached)) for name, hosts in found.items()}
