"""ECN marks, early drops, postcards and counters, by the depth that a packet leaves behind in its queue."""

from __future__ import annotations

import finsy as fy

from ptf_tests import base
from ptf_tests import packets as p

POSTCARD_SESSION, POSTCARD_LENGTH, POSTCARD_REASON = 500, 128, 3
RATE_PPS = 5  # a burst is in the queue long before the second packet of it leaves


class Ecn(base.P4Test):
    """Packets from port 1 go to port 2, whose queues send five packets a second."""

    def set_up(self) -> None:
        self.basics()
        self.group(1, [2])
        self.add("route_ipv4", {"dst_addr": "10.1.0.0/16"}, "ipv4_via", group_id=1)
        self.add("route_ipv6", {"dst_addr": "fd00:1::/32"}, "ipv6_via", group_id=1)
        self.queue_set(2, RATE_PPS, base.DEPTH)

    def step(self, threshold: int, drop: int = 0, traffic_class: int = p.DATA) -> None:
        key = {"port": 2, "traffic_class": traffic_class}
        self.add("ecn_profile", key, "step", threshold=threshold, drop_not_ect=drop)

    def burst(self, packets: list[bytes], left: int | None = None) -> list[bytes]:
        """What leaves. The first packet goes alone; the others come at once, the i-th of n leaves n-i-1 behind."""
        seen: list[bytes] = []
        for packet in packets:
            self.send(1, packet)
            if not seen:
                seen.append(self.receive(2)[1])
        seen += [self.receive(2)[1] for _ in range((left or len(packets)) - 1)]
        self.expect_silence()
        return seen

    def marks(self, packet: bytes, count: int = 5) -> list[int]:
        """The ECN fields of a burst without the first."""
        return [p.ecn_of(seen) for seen in self.burst([packet] * (count + 1))[1:]]


class AStepMarksIpv4(Ecn):
    def runTest(self) -> None:
        self.step(3)
        index = 2 * 8 + 3
        before = [self.counter(name, index) for name in ("queue_packets", "queue_marked")]
        self.assertEqual(self.marks(p.ipv4(ecn=p.ECT0)), [p.CE, p.CE, p.ECT0, p.ECT0, p.ECT0])
        after = [self.counter(name, index) for name in ("queue_packets", "queue_marked")]
        self.assertEqual([new - old for new, old in zip(after, before, strict=True)], [6, 2])


class AStepMarksIpv6(Ecn):
    def runTest(self) -> None:
        self.step(3)
        self.assertEqual(self.marks(p.ipv6(ecn=p.ECT1)), [p.CE, p.CE, p.ECT1, p.ECT1, p.ECT1])


class AMarkedPacketIsOtherwiseUnchanged(Ecn):
    def runTest(self) -> None:
        self.step(0)
        for sent, expected in (
            (p.ipv4(ecn=p.ECT0), p.ipv4(ecn=p.CE, ttl=63)),
            (p.ipv4(ecn=p.ECT1, options=b"\x94\x04\0\0"), p.ipv4(ecn=p.CE, ttl=63, options=b"\x94\x04\0\0")),
            (p.ipv6(ecn=p.ECT1), p.ipv6(ecn=p.CE, hop_limit=63)),
        ):
            self.send(1, sent)
            self.expect(2, p.routed(expected, 2))


class OnlyEctIsMarkedAndCeStaysCe(Ecn):
    def runTest(self) -> None:
        self.step(0)
        for ecn, expected in ((p.NOT_ECT, p.NOT_ECT), (p.ECT1, p.CE), (p.ECT0, p.CE), (p.CE, p.CE)):
            self.send(1, p.ipv4(ecn=ecn))
            self.expect(2, p.routed(p.ipv4(ecn=expected, ttl=63), 2))


class NotEctIsDroppedEarlyWhereTheProfileSaysSo(Ecn):
    def runTest(self) -> None:
        self.step(3, drop=1)
        before = self.counter("queue_early_drops", 2 * 8 + 3)
        self.assertEqual(len(self.burst([p.ipv4(ecn=p.NOT_ECT)] * 6, left=4)), 4)
        self.assertEqual(self.counter("queue_early_drops", 2 * 8 + 3) - before, 2)


class TheControlClassIsNeverMarked(Ecn):
    def runTest(self) -> None:
        for traffic_class in p.DSCP:
            self.step(0, traffic_class=traffic_class)
        self.assertEqual(self.marks(p.ipv4(dscp=p.DSCP[p.CONTROL], ecn=p.ECT0), 3), [p.ECT0] * 3)


class TheDepthIsThatOfThePacketsOwnQueue(Ecn):
    def runTest(self) -> None:
        self.step(3)
        data, other = p.ipv4(dscp=p.DSCP[p.DATA]), p.ipv4(dscp=p.DSCP[p.OTHER])
        self.assertEqual([p.ecn_of(packet) for packet in self.burst([other] * 5 + [data] * 3)], [p.ECT0] * 8)


class ARampNeverMarksUpToKMinAndAlwaysFromKMaxOn(Ecn):
    def runTest(self) -> None:
        key = {"port": 2, "traffic_class": p.DATA}
        self.add("ecn_profile", key, "ramp", k_min=1, k_max=3, p_max=0, drop_not_ect=0)
        self.assertEqual(self.marks(p.ipv4(ecn=p.ECT0)), [p.CE, p.CE, p.ECT0, p.ECT0, p.ECT0])
        self.modify("ecn_profile", key, "ramp", k_min=1, k_max=3, p_max=2 * 65536, drop_not_ect=0)
        self.assertEqual(self.marks(p.ipv4(ecn=p.ECT0)), [p.CE, p.CE, p.CE, p.ECT0, p.ECT0])


class PacketsAreCountedByDepth(Ecn):
    def runTest(self) -> None:
        cells = [(2 * 8 + 3) * 16 + bits for bits in range(4)]
        before = [self.counter("queue_depths", cell) for cell in cells]
        self.burst([p.ipv4()] * 6)  # leave 0, 4, 3, 2, 1, 0 behind
        after = [self.counter("queue_depths", cell) for cell in cells]
        self.assertEqual([new - old for new, old in zip(after, before, strict=True)], [2, 1, 2, 1])


class DeepQueuesSendPostcards(Ecn):
    def runTest(self) -> None:
        self.install(fy.P4CloneSessionEntry(POSTCARD_SESSION, replicas=[p.CPU_PORT]))
        self.add("postcard_profile", {"port": 2, "traffic_class": p.DATA}, "send_postcards", threshold=2, share=65536)
        self.burst([p.ipv4(payload=bytes([number]) * 200) for number in range(5)])
        for number, left_behind in ((1, 3), (2, 2)):
            card = self.expect_packet_in()
            self.assertEqual(card.metadata, {"ingress_port": 2, "reason": POSTCARD_REASON})
            queue, name = card.payload[:2]
            enq, deq, waited = (int.from_bytes(card.payload[at : at + 4], "big") for at in (2, 6, 10))
            self.assertEqual((queue, name, enq, deq), (3, p.DATA, number - 1, left_behind))
            self.assertGreaterEqual(waited, 150_000)  # ticks, of two hundred thousand
            original = p.routed(p.ipv4(payload=bytes([number]) * 200, ttl=63), 2)
            self.assertEqual(card.payload[20:], original[: POSTCARD_LENGTH - 22])
        self.assertTrue(self.p4.packets_in.empty())
