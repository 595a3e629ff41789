"""Packets a second in memory, on one core: a packet's whole path but for the wires at its ends."""

from __future__ import annotations

from dataclasses import dataclass

from bench import router as r
from softswitch import bmv2_json
from softswitch.device import Call, Device, Lpm, MatchValue, Ternary

WANTED_PPS = 1_000_000  # at 1,000 routes
PACKET_BYTES = 24 << 20  # of a run's distinct packets: together they stay in the last cache
PACKETS_MAX = 65536
SLICE = 20_000  # packets at least between two looks at the clock
NS = 1e9


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """``random`` sends packets to every route in turn, ``flow`` one packet over and over."""

    program: str
    routes: int
    acl: int
    length: int  # bytes
    traffic: str  # "random" or "flow"
    pps: float

    @property
    def ratio(self) -> float:
        """To the wanted speed."""
        return self.pps / WANTED_PPS


def load_router(router: r.Router) -> Device:
    """A device in virtual time with the router's entries."""
    device = Device(bmv2_json.load(r.PROGRAM))
    for at, rule in enumerate(router.acl):
        device.table_add("RouterIngress.acl", acl_match(rule), Call("RouterIngress.acl_permit"),
                         priority=len(router.acl) - at)  # fmt: skip
    for prefix, nexthop in router.routes:
        device.table_add("RouterIngress.route_ipv4", {"dst_addr": Lpm(prefix.value, prefix.length)},
                         Call("RouterIngress.route_via", (nexthop,)))  # fmt: skip
    for nexthop in range(1, r.NEXTHOPS + 1):
        device.table_add("RouterIngress.neighbour", {"nexthop_id": nexthop},
                         Call("RouterIngress.forward", (r.OUT_PORT, r.NEXTHOP_MAC + nexthop)))  # fmt: skip
    device.table_add("RouterIngress.router_port", {"port": r.OUT_PORT},
                     Call("RouterIngress.set_source", (r.ROUTER_MAC,)))  # fmt: skip
    return device


def acl_match(rule: r.AclRule) -> dict[str, MatchValue]:
    """The rule as a key of the table; what is any has no mask."""
    return {
        "ingress_port": Ternary(0, 0),
        "src_addr": Ternary(rule.source.value, rule.source.mask),
        "dst_addr": Ternary(rule.destination.value, rule.destination.mask),
        "protocol": Ternary(rule.protocol or 0, 0 if rule.protocol is None else 0xFF),
        "l4_src_port": Ternary(0, 0),
        "l4_dst_port": Ternary(rule.port or 0, 0 if rule.port is None else 0xFFFF),
    }


def measure(device: Device, packets: list[bytes], seconds: float) -> float:
    """Packets a second over at least ``seconds``, after a tenth of that to warm up.

    Raises RuntimeError where a packet was not forwarded: then it would not be the speed of forwarding.
    """
    count = len(packets) * -(-SLICE // len(packets))
    for duration in (seconds / 10, seconds):
        before, sent, taken = device.stats()["transmitted"], 0, 0
        while taken < duration * NS:
            taken += device.bench(r.IN_PORT, packets, count)
            sent += count
        forwarded = device.stats()["transmitted"] - before
        if forwarded != sent:
            raise RuntimeError(f"the switch forwarded {forwarded} of {sent} packets")
    return sent / taken * NS
