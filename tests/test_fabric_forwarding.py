"""fabric.p4: routes, rewriting, drops by reason, packets to and from the controller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ptf_tests import packets as p
from softswitch.device import Lpm, MeterConfig, Ternary
from tests import fabric as f


@pytest.fixture
def switch() -> Iterator[f.Fabric]:
    made = f.Fabric()
    made.basics()
    made.route("10.1.0.0/16", 1, [2])
    made.route("fd00:1::/32", 1, [2])
    yield made
    made.close()


def test_an_ipv4_packet_is_routed_and_its_checksum_is_right(switch: f.Fabric) -> None:
    [out] = switch.send(1, p.ipv4(ttl=64), 0)
    assert (out.port, out.data) == (2, p.routed(p.ipv4(ttl=63), 2))
    assert switch.drops() == {}


def test_an_ipv4_packet_with_options_is_routed_and_its_checksum_is_right(switch: f.Fabric) -> None:
    options = bytes.fromhex("9404000001010100")
    [out] = switch.send(1, p.ipv4(ttl=2, options=options), 0)
    assert (out.port, out.data) == (2, p.routed(p.ipv4(ttl=1, options=options), 2))


def test_an_ipv6_packet_is_routed(switch: f.Fabric) -> None:
    [out] = switch.send(1, p.ipv6(hop_limit=64), 0)
    assert (out.port, out.data) == (2, p.routed(p.ipv6(hop_limit=63), 2))


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (p.ipv4(ttl=1), p.TTL),
        (p.ipv4(ttl=0), p.TTL),
        (p.ipv6(hop_limit=1), p.TTL),
        (p.ipv6(hop_limit=0), p.TTL),
        (p.ipv4(dst="10.2.0.1"), p.NO_ROUTE),
        (p.ipv6(dst="fd00:2::1"), p.NO_ROUTE),
        (p.ipv4(mac=0x020000000999), p.NOT_OUR_MAC),
        (p.ipv4()[:24] + b"\xff\xff" + p.ipv4()[26:], p.BAD_CHECKSUM),
        (p.ipv4(options=b"\1\1\1\0")[:24] + b"\xff\xff" + p.ipv4(options=b"\1\1\1\0")[26:], p.BAD_CHECKSUM),
        (p.ipv4()[:20], p.PARSER_ERROR),
        (p.ipv4()[:14] + b"\x65" + p.ipv4()[15:], p.PARSER_ERROR),
        (p.ROUTER_MAC.to_bytes(6, "big") + bytes(6) + b"\x08\x06" + bytes(46), p.NOT_IP),
        (p.timer(2), p.TIMER_MISPLACED),
        (p.heartbeat(1, 1, 1, 1), p.HEARTBEAT_MISPLACED),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_what_is_not_forwarded_is_dropped_and_counted_by_reason(switch: f.Fabric, packet: bytes, reason: int) -> None:
    assert switch.send(1, packet, 0) == []
    assert switch.drops() == {reason: 1}


def test_entries_that_lead_nowhere_drop_and_count(switch: f.Fabric) -> None:
    switch.add("route_ipv4", {"dst_addr": Lpm(0x0A030000, 16)}, "ipv4_via", 77)
    switch.add("route_ipv4", {"dst_addr": Lpm(0x0A040000, 16)}, "ipv4_discard")
    switch.route("10.5.0.0/16", 5, [])
    switch.route("10.6.0.0/16", 6, [5], watched=[5])
    for third in (3, 4, 5, 6):
        assert switch.send(1, p.ipv4(dst=f"10.{third}.0.1"), 0) == []
    assert switch.drops() == {p.NO_GROUP: 1, p.ROUTE_DISCARD: 1, p.NO_MEMBER: 2}


def test_a_port_without_an_entry_takes_nothing() -> None:
    switch = f.Fabric()
    switch.basics(ports=[2])
    switch.route("10.1.0.0/16", 1, [2])
    assert switch.send(1, p.ipv4(), 0) == []
    assert switch.drops() == {p.PORT_UNUSED: 1}


def test_nothing_leaves_where_no_neighbor_is_known() -> None:
    switch = f.Fabric()
    switch.basics(ports=[1])
    switch.route("10.1.0.0/16", 1, [2])
    assert switch.send(1, p.ipv4(), 0) == []
    assert switch.drops() == {p.NO_NEIGHBOR: 1}


def test_a_host_port_takes_only_its_own_source_addresses(switch: f.Fabric) -> None:
    switch.add("port", {"port": 1}, "set_role", p.HOST)
    switch.add("source_guard_ipv4", {"port": 1, "src_addr": Lpm(0x0A000001, 32)}, "accept_source")
    switch.add("source_guard_ipv6", {"port": 1, "src_addr": Lpm(0xFD << 120 | 1, 128)}, "accept_source")
    assert len(switch.send(1, p.ipv4(src="10.0.0.1"), 0)) == 1
    assert len(switch.send(1, p.ipv6(src="fd00::1"), 0)) == 1
    assert switch.send(1, p.ipv4(src="10.0.0.2"), 0) == []
    assert switch.send(1, p.ipv6(src="fd00::2"), 0) == []
    assert switch.drops() == {p.SOURCE_GUARD: 2}
    assert len(switch.send(2, p.ipv4(src="10.0.0.2"), 0)) == 1  # a fabric port


def test_the_access_list_denies_and_punts(switch: f.Fabric) -> None:
    switch.add("acl", {"l4_dst_port": Ternary(23, 0xFFFF)}, "acl_deny", priority=10)
    switch.add("acl", {"l4_dst_port": Ternary(53, 0xFFFF)}, "acl_punt", priority=10)
    assert switch.send(1, p.ipv4(dport=23), 0) == []
    switch.send(1, p.ipv4(dport=53), 0)
    switch.drain()
    assert switch.packets_in == [bytes([0, 0b1_0000001]) + p.ipv4(dport=53)]
    assert switch.drops() == {p.ACL: 1}


def test_packets_to_the_controller_are_metered(switch: f.Fabric) -> None:
    switch.add("acl", {"l4_dst_port": Ternary(53, 0xFFFF)}, "acl_punt", priority=10)
    switch.device.meter_set(switch.names["punt_meter"], 1, MeterConfig(1, 3, 1, 3))
    for _ in range(10):
        switch.send(1, p.ipv4(dport=53), 0)
    switch.drain()
    assert len(switch.packets_in) == 3
    assert switch.drops() == {p.PUNT_RATE: 7}


def test_a_packet_from_the_controller_leaves_by_the_port_it_names(switch: f.Fabric) -> None:
    [out] = switch.device.packet_out((9 << 7).to_bytes(2, "big") + p.ipv4())
    assert (out.port, out.data) == (9, p.ipv4())
