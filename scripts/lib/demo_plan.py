"""What the demo in virtual time builds: two hosts, a router between them, and two planes towards the second host.

::

    h1 (10.0.1.2) --- port 1 [ softswitch: l3_router ] port 2 --- plane A --- h2 (10.0.2.2)
                                                       port 3 --- plane B ---
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

PROGRAM = Path("tests/p4/build/l3_router.json")

H1 = IPv4Address("10.0.1.2")
H2 = IPv4Address("10.0.2.2")
H1_NETWORK = IPv4Network("10.0.1.0/24")
H2_NETWORK = IPv4Network("10.0.2.0/24")
PROTOCOL_ICMP = 1
FILLER_ROUTES = 998  # with the two of the hosts: a thousand


@dataclass(frozen=True, slots=True)
class Link:
    """A port of the router and the host's interface at its other end; a link is also a next hop of that number."""

    port: int
    name: str
    router_mac: int
    host_mac: int

    @property
    def nexthop(self) -> int:
        return self.port


TO_H1 = Link(1, "h1", 0x020000000001, 0x020000000101)
PLANE_A = Link(2, "plane A", 0x020000000002, 0x02000000020A)
PLANE_B = Link(3, "plane B", 0x020000000003, 0x02000000020B)
LINKS = (TO_H1, PLANE_A, PLANE_B)


@dataclass(frozen=True, slots=True)
class Probe:
    """Echo requests from h1 to h2 and what came back."""

    sent: int
    received: int

    @property
    def lost(self) -> int:
        return self.sent - self.received


@dataclass(frozen=True, slots=True)
class Counters:
    """What the switch counted: packets by the access list's entry for ICMP, sent by port, lost to faults by port."""

    icmp: int
    sent: dict[int, int]
    fault_drops: dict[int, int]


def routes() -> list[tuple[IPv4Network, int]]:
    """(prefix, next hop): the two hosts, and as many others as make the table worth the name."""
    filler = [(IPv4Network((0xAC100000 + (i << 8), 24)), PLANE_A.nexthop) for i in range(FILLER_ROUTES)]
    return [(H1_NETWORK, TO_H1.nexthop), (H2_NETWORK, PLANE_A.nexthop), *filler]
