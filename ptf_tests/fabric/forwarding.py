"""Routes, rewriting, protection, drops by reason, packets to and from the controller."""

from __future__ import annotations

import finsy as fy

from ptf_tests import base
from ptf_tests import packets as p


class Forwarding(base.P4Test):
    """10.1.0.0/16 and fd00:1::/32 lead to port 2."""

    def set_up(self) -> None:
        self.basics()
        self.group(1, [2])
        self.add("route_ipv4", {"dst_addr": "10.1.0.0/16"}, "ipv4_via", group_id=1)
        self.add("route_ipv6", {"dst_addr": "fd00:1::/32"}, "ipv6_via", group_id=1)


class Ipv4IsRouted(Forwarding):
    def runTest(self) -> None:
        self.send(1, p.ipv4(ttl=64))
        self.expect(2, p.routed(p.ipv4(ttl=63), 2))
        self.expect_silence()


class Ipv4WithOptionsIsRouted(Forwarding):
    def runTest(self) -> None:
        options = bytes.fromhex("9404000001010100")
        self.send(1, p.ipv4(ttl=2, options=options))
        self.expect(2, p.routed(p.ipv4(ttl=1, options=options), 2))


class Ipv6IsRouted(Forwarding):
    def runTest(self) -> None:
        self.send(1, p.ipv6(hop_limit=64))
        self.expect(2, p.routed(p.ipv6(hop_limit=63), 2))
        self.expect_silence()


class TheLongestPrefixWins(Forwarding):
    def runTest(self) -> None:
        self.group(2, [3])
        self.add("route_ipv4", {"dst_addr": "10.1.7.0/24"}, "ipv4_via", group_id=2)
        self.send(1, p.ipv4(dst="10.1.7.1"))
        self.expect(3, p.routed(p.ipv4(dst="10.1.7.1", ttl=63), 3))


class DropsAreCountedByReason(Forwarding):
    def runTest(self) -> None:
        good = p.ipv4()
        arp = p.ROUTER_MAC.to_bytes(6, "big") + bytes(6) + b"\x08\x06" + bytes(46)
        for packet, reason in (
            (p.ipv4(ttl=1), p.TTL),
            (p.ipv6(hop_limit=0), p.TTL),
            (p.ipv4(dst="10.2.0.1"), p.NO_ROUTE),
            (p.ipv6(dst="fd00:2::1"), p.NO_ROUTE),
            (p.ipv4(mac=0x020000000999), p.NOT_OUR_MAC),
            (good[:24] + b"\xff\xff" + good[26:], p.BAD_CHECKSUM),
            (good[:20], p.PARSER_ERROR),
            (good[:14] + b"\x65" + good[15:], p.PARSER_ERROR),
            (arp, p.NOT_IP),
            (p.timer(2), p.TIMER_MISPLACED),
            (p.heartbeat(1, 1, 1, 1), p.HEARTBEAT_MISPLACED),
        ):
            self.send(1, packet)
            self.expect_drop(reason)


class EntriesThatLeadNowhereDrop(Forwarding):
    def runTest(self) -> None:
        self.add("route_ipv4", {"dst_addr": "10.3.0.0/16"}, "ipv4_via", group_id=77)
        self.add("route_ipv4", {"dst_addr": "10.4.0.0/16"}, "ipv4_discard")
        self.group(5, [])
        self.add("route_ipv4", {"dst_addr": "10.5.0.0/16"}, "ipv4_via", group_id=5)
        for third, reason in ((3, p.NO_GROUP), (4, p.ROUTE_DISCARD), (5, p.NO_MEMBER)):
            self.send(1, p.ipv4(dst=f"10.{third}.0.1"))
            self.expect_drop(reason)


class APortWithoutAnEntryTakesNothing(base.P4Test):
    def runTest(self) -> None:
        self.send(1, p.ipv4())
        self.expect_drop(p.PORT_UNUSED)


class TheTimersPortTakesOnlyTimers(Forwarding):
    def runTest(self) -> None:
        for packet in (p.ipv4(), p.heartbeat(1, 1, 1, 1)):
            self.send(p.TIMER_PORT, packet)
            self.expect_drop(p.PORT_UNUSED)


class AHostPortTakesOnlyItsOwnSources(Forwarding):
    def runTest(self) -> None:
        self.modify("port", {"port": 1}, "set_role", role=p.HOST)
        self.add("source_guard_ipv4", {"port": 1, "src_addr": "10.0.0.1/32"}, "accept_source")
        self.add("source_guard_ipv6", {"port": 1, "src_addr": "fd00::1/128"}, "accept_source")
        self.send(1, p.ipv4(src="10.0.0.1"))
        self.expect(2, p.routed(p.ipv4(src="10.0.0.1", ttl=63), 2))
        self.send(1, p.ipv6(src="fd00::1"))
        self.expect(2, p.routed(p.ipv6(src="fd00::1", hop_limit=63), 2))
        self.send(1, p.ipv4(src="10.0.0.2"))
        self.expect_drop(p.SOURCE_GUARD)
        self.send(1, p.ipv6(src="fd00::2"))
        self.expect_drop(p.SOURCE_GUARD)
        self.send(3, p.ipv4(src="10.0.0.2"))
        self.expect(2, p.routed(p.ipv4(src="10.0.0.2", ttl=63), 2))


class TheAccessListDenies(Forwarding):
    def runTest(self) -> None:
        self.add("acl", {"l4_dst_port": 23}, "acl_deny", priority=10)
        self.add("acl", {"ipv4_src_addr": "10.0.0.9", "l4_dst_port": 23}, "acl_permit", priority=20)
        self.send(1, p.ipv4(dport=23))
        self.expect_drop(p.ACL)
        self.send(1, p.ipv4(src="10.0.0.9", dport=23))
        self.expect(2, p.routed(p.ipv4(src="10.0.0.9", dport=23, ttl=63), 2))


class TheControllerGetsWhatTheAccessListPunts(Forwarding):
    def runTest(self) -> None:
        self.add("acl", {"l4_dst_port": 53}, "acl_punt", priority=10)
        self.send(1, p.ipv4(dport=53))
        packet = self.expect_packet_in()
        self.assertEqual((packet.payload, packet.metadata), (p.ipv4(dport=53), {"ingress_port": 1, "reason": 1}))


class TheAccessListSeesWhatIsNotIp(Forwarding):
    def runTest(self) -> None:
        self.add("acl", {"ether_type": 0x0806}, "acl_punt", priority=10)
        packet = b"\xff" * 6 + bytes(6) + b"\x08\x06" + bytes(46)
        self.send(1, packet)
        self.assertEqual(self.expect_packet_in().payload, packet)


class TheControllerGetsWhatARoutePunts(Forwarding):
    def runTest(self) -> None:
        self.add("route_ipv6", {"dst_addr": "fd00:9::/32"}, "ipv6_punt")
        self.send(4, p.ipv6(dst="fd00:9::1"))
        packet = self.expect_packet_in()
        self.assertEqual((packet.payload, packet.metadata), (p.ipv6(dst="fd00:9::1"), {"ingress_port": 4, "reason": 2}))


class PacketsToTheControllerAreMetered(Forwarding):
    def runTest(self) -> None:
        self.add("acl", {"l4_dst_port": 53}, "acl_punt", priority=10)
        config = fy.P4MeterConfig(cir=1, cburst=3, pir=1, pburst=3)
        self.p4.modify(fy.P4MeterEntry("punt_meter", index=1, config=config))
        try:
            self.send(1, p.ipv4(dport=53), count=10)
            self.until(lambda: self.counter("drops", p.PUNT_RATE) - self.drops_before[p.PUNT_RATE] >= 6, "drops")
            for _ in range(3):
                self.expect_packet_in()
        finally:
            self.p4.modify(fy.P4MeterEntry("punt_meter", index=1))


class TheControllerSendsByAnyPort(Forwarding):
    def runTest(self) -> None:
        self.p4.send(fy.P4PacketOut(p.ipv4(), egress_port=3, _pad=0))
        self.expect(3, p.ipv4())
        self.expect_silence()
