"""The demo's network in virtual time: the same compiled program, no process, no interface, no clock."""

from __future__ import annotations

import struct
from types import TracebackType
from typing import Self

from scripts.lib.demo_plan import (
    H1,
    H2,
    H2_NETWORK,
    LINKS,
    PLANE_A,
    PLANE_B,
    PROGRAM,
    PROTOCOL_ICMP,
    TO_H1,
    Counters,
    Link,
    Probe,
    routes,
)
from softswitch import bmv2_json
from softswitch.device import Call, Device, Fault, Lpm, Output, Ternary

PROBES = 200
INTERVAL_NS = 2_000_000
ICMP_ECHO_REQUEST = 8
ICMP_ECHO_REPLY = 0


class LabNetwork:
    """A device under our clock; h1 and h2 are the few lines that answer echo requests."""

    def __init__(self) -> None:
        self._now_ns = 0
        self._sequence = 0
        self._device = Device(bmv2_json.load(PROGRAM), seed=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._device.close()

    def install(self) -> None:
        add = self._device.table_add
        for link in LINKS:
            forward = Call("RouterIngress.forward", (link.port, link.host_mac))
            add("RouterIngress.neighbour", {"nexthop_id": link.nexthop}, forward)
            add("RouterIngress.router_port", {"port": link.port}, Call("RouterIngress.set_source", (link.router_mac,)))
        for prefix, nexthop in routes():
            match = {"dst_addr": Lpm(int(prefix.network_address), prefix.prefixlen)}
            handle = add("RouterIngress.route_ipv4", match, Call("RouterIngress.route_via", (nexthop,)))
            if prefix == H2_NETWORK:
                self._route = handle
        icmp = {"protocol": Ternary(PROTOCOL_ICMP, 0xFF)}
        self._acl_entry = add("RouterIngress.acl", icmp, Call("RouterIngress.acl_permit"), priority=10)

    def route_by(self, plane: Link) -> None:
        target = Call("RouterIngress.route_via", (plane.nexthop,))
        self._device.table_modify("RouterIngress.route_ipv4", self._route, target)

    def lose(self, plane: Link, probability: float) -> None:
        self._device.fault_set(plane.port, "tx", Fault(loss=probability))

    def restore(self) -> None:
        self._device.faults_clear()

    def probe(self) -> Probe:
        received = 0
        for _ in range(PROBES):
            self._now_ns += INTERVAL_NS
            self._sequence += 1
            request = echo(ICMP_ECHO_REQUEST, self._sequence)
            for output in self._device.inject(TO_H1.port, request, self._now_ns):
                received += self._answer(output)
        return Probe(PROBES, received)

    def _answer(self, output: Output) -> int:
        """What h2 does with a request, and how many replies reached h1."""
        if output.port not in (PLANE_A.port, PLANE_B.port):
            return 0
        replies = self._device.inject(output.port, echo(ICMP_ECHO_REPLY, self._sequence), self._now_ns)
        return sum(reply.port == TO_H1.port for reply in replies)

    def counters(self) -> Counters:
        ports = {link.port: self._device.port_info(link.port) for link in LINKS}
        return Counters(
            icmp=self._device.entry_stats("RouterIngress.acl", self._acl_entry).packets,
            sent={port: info.tx_packets for port, info in ports.items()},
            fault_drops={port: info.fault_drops for port, info in ports.items()},
        )


def echo(kind: int, sequence: int) -> bytes:
    """An ICMP echo request from h1 to h2, or the reply, as it enters the router."""
    source, destination, link = (H1, H2, TO_H1) if kind == ICMP_ECHO_REQUEST else (H2, H1, PLANE_A)
    ethernet = struct.pack("!6s6sH", link.router_mac.to_bytes(6, "big"), link.host_mac.to_bytes(6, "big"), 0x0800)
    data = bytes(56)
    icmp = struct.pack("!BBHHH", kind, 0, 0, 1, sequence) + data
    icmp = icmp[:2] + checksum(icmp) + icmp[4:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(icmp), sequence, 0, 64, PROTOCOL_ICMP, 0, source.packed,
                     destination.packed)  # fmt: skip
    return ethernet + ip[:10] + checksum(ip) + ip[12:] + icmp


def checksum(data: bytes) -> bytes:
    """The Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)
