"""What the switch benchmarks have the L3 router do: its entries and its traffic, from a seed.

The program is tests/p4/l3_router.p4; an IPv4 packet passes its access list, routes, neighbours and ports.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests/p4/build/l3_router.json"
P4INFO = ROOT / "tests/p4/build/l3_router.p4info.txtpb"

IN_PORT, OUT_PORT = 1, 2
NEXTHOPS = 64
ROUTER_MAC = 0x02_00_00_00_00_01
NEXTHOP_MAC = 0x02_00_00_00_01_00  # and up, by next hop
TCP, UDP = 6, 17
HEADERS = 42  # bytes: Ethernet, IPv4, UDP

# Shares of prefix lengths, in per cent: about those of an Internet routing table.
PREFIX_LENGTHS = {24: 60, 23: 10, 22: 11, 21: 5, 20: 5, 19: 3, 18: 1, 17: 1, 16: 2, 14: 1, 12: 1}
ACL_PREFIXES = (0, 8, 16, 24, 32)


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first ``length`` bits of an IPv4 address; the others are zero."""

    value: int
    length: int

    @property
    def mask(self) -> int:
        return 0xFFFFFFFF << (32 - self.length) & 0xFFFFFFFF

    def address(self, rng: random.Random) -> int:
        """Any address with this prefix."""
        return self.value | rng.getrandbits(32) & ~self.mask & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class AclRule:
    """An entry of the access list that permits; None is any. The first of the list has the highest priority."""

    source: Prefix
    destination: Prefix
    protocol: int | None
    port: int | None  # destination


@dataclass(frozen=True, slots=True)
class Router:
    """The entries: routes to next hops 1..NEXTHOPS, which are all at OUT_PORT, and the access list."""

    routes: tuple[tuple[Prefix, int], ...]
    acl: tuple[AclRule, ...]


def make_router(routes: int, acl: int, seed: int = 1) -> Router:
    """Random distinct routes in 1.0.0.0-223.255.255.255, and rules about destinations that have a route."""
    rng = random.Random(seed)
    lengths = rng.choices(list(PREFIX_LENGTHS), list(PREFIX_LENGTHS.values()), k=routes)
    table: dict[Prefix, int] = {}
    for length in lengths:
        while (prefix := _prefix(rng.randrange(1 << 24, 224 << 24), length)) in table:
            pass
        table[prefix] = rng.randint(1, NEXTHOPS)
    prefixes = list(table)
    rules = dict.fromkeys(_rule(rng, rng.choice(prefixes)) for _ in range(acl))
    while len(rules) < acl:
        rules[_rule(rng, rng.choice(prefixes))] = None
    return Router(tuple(table.items()), tuple(rules))


def _prefix(address: int, length: int) -> Prefix:
    return Prefix(address & Prefix(0, length).mask, length)


def _rule(rng: random.Random, route: Prefix) -> AclRule:
    protocol = rng.choice((None, TCP, UDP))
    return AclRule(
        source=_prefix(rng.randrange(1 << 24, 224 << 24), rng.choice(ACL_PREFIXES)),
        destination=_prefix(route.address(rng), max(route.length, rng.choice(ACL_PREFIXES))),
        protocol=protocol,
        port=None if protocol is None else rng.choice((None, rng.randrange(1, 1024))),
    )


def make_packets(router: Router, length: int, count: int, seed: int = 2) -> list[bytes]:
    """UDP frames of ``length`` bytes to routes chosen at random, every other one made to match an access-list rule."""
    rng = random.Random(seed)
    payload = bytes(length - HEADERS)
    packets = []
    for i in range(count):
        rule = rng.choice(router.acl) if router.acl and i % 2 else None
        if rule is None:
            source, port = rng.getrandbits(32), rng.getrandbits(16)
            destination = rng.choice(router.routes)[0].address(rng)
        else:
            source, destination = rule.source.address(rng), rule.destination.address(rng)
            port = rng.getrandbits(16) if rule.port is None else rule.port
        packets.append(_frame(source, destination, rng.getrandbits(16), port, payload))
    return packets


def _frame(source: int, destination: int, source_port: int, port: int, payload: bytes) -> bytes:
    ethernet = ROUTER_MAC.to_bytes(6, "big") + bytes.fromhex("0200000000ff0800")
    udp = struct.pack("!HHHH", source_port, port, 8 + len(payload), 0)
    header = struct.pack("!BBHHHBBHII", 0x45, 0, 28 + len(payload), 0, 0, 64, UDP, 0, source, destination)
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return b"".join((ethernet, header[:10], checksum.to_bytes(2, "big"), header[12:], udp, payload))
