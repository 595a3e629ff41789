"""What a switch knows of its links. The test is the neighbor: it sends the timers and the other end's heartbeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptf_tests import base
from ptf_tests import packets as p
from ptf_tests.p4runtime import PORT_EVENT


class Health(base.LinkTest):
    """A watched link at port 2, and a group with it and port 3, which is not watched."""

    def set_up(self) -> None:
        super().set_up()
        self.basics()
        self.group(1, [2], watched=[2])
        self.add("route_ipv4", {"dst_addr": "10.1.0.0/16"}, "ipv4_via", group_id=1)
        self.watch(2)

    def expect_use(self, used: bool) -> None:
        """Whether the link carries packets where it is the only one."""
        self.send(1, p.ipv4())
        if used:
            self.expect(2, p.routed(p.ipv4(ttl=63), 2))
        else:
            self.expect_drop(p.NO_MEMBER)


class ATimerBecomesAHeartbeat(Health):
    def runTest(self) -> None:
        first, second = self.tick(2), self.tick(2)
        sequence, count = (int.from_bytes(first[at : at + 4], "big") for at in (20, 30))
        self.assertGreater(p.time_of(second), p.time_of(first))
        self.assertEqual(second, p.heartbeat(self.OWN, 2, sequence + 1, count + 1, p.DOWN, p.time_of(second)))


class HeartbeatsCountWhatWasSentOnTheLink(Health):
    def runTest(self) -> None:
        self.bring_up(2)
        before = int.from_bytes(self.tick(2)[30:34], "big")
        for _ in range(3):
            self.expect_use(True)
        self.assertEqual(int.from_bytes(self.tick(2)[30:34], "big"), before + 4)


class ALinkComesUpThroughProbation(Health):
    def runTest(self) -> None:
        self.expect_use(False)
        self.beat(2)
        self.expect_event(port=2, state=p.PROBATION, old_state=p.DOWN, reason=p.HEARD, device=2, device_port=2)
        for _ in range(self.PROBATION):
            self.beat(2)
        self.expect_event(port=2, state=p.UP, old_state=p.PROBATION, reason=p.CLEAN)
        self.expect_use(True)


class ThreeMissedHeartbeatsAreDownAndTwoAreNot(Health):
    def runTest(self) -> None:
        self.bring_up(2)
        for state in (p.UP, p.UP, p.UP):
            self.assertEqual(p.rx_state_of(self.tick(2)), state)
        self.beat(2)  # the third is there in time: the first timer came before it was due
        for state in (p.UP, p.UP, p.UP, p.DOWN):
            self.assertEqual(p.rx_state_of(self.tick(2)), state)
        self.expect_event(port=2, state=p.DOWN, old_state=p.UP, reason=p.MISSED, rx_state=p.DOWN, device=0)
        self.expect_use(False)


class ALinkWithoutACarrierIsDownAtOnce(Health):
    def runTest(self) -> None:
        self.bring_up(2)
        self.assertEqual(p.rx_state_of(self.tick(2, is_down=True)), p.DOWN)
        self.expect_event(port=2, state=p.DOWN, old_state=p.UP, reason=p.CARRIER, rx_state=p.DOWN, device=0)
        self.expect_use(False)
        self.tick(2)
        self.beat(2)
        self.expect_event(port=2, state=p.PROBATION, old_state=p.DOWN, reason=p.HEARD)


class APortWithoutALinkTellsOfItsCarrierToo(Health):
    def runTest(self) -> None:
        for is_down in (True, False):
            for _ in range(1 + p.REPEAT_TIMERS):  # told first and last
                self.send(p.TIMER_PORT, p.timer(1, is_down))
                self.tick(2)
            first = self.expect_event(kind=PORT_EVENT, port=1, is_down=is_down)
            last = self.expect_event(kind=PORT_EVENT, port=1, is_down=is_down)
            self.assertGreater(last["time"], first["time"])
        for is_down in (True, False):
            self.send(p.TIMER_PORT, p.timer(3, is_down))
            self.expect_event(kind=PORT_EVENT, port=3, is_down=is_down)


class AFailureOfTheOtherDirectionIsSeen(Health):
    def runTest(self) -> None:
        self.bring_up(2)
        self.beat(2, rx_state=p.DOWN)
        self.expect_event(port=2, state=p.DOWN, reason=p.NEIGHBOR, rx_state=p.UP, neighbor_rx_state=p.DOWN)
        self.expect_use(False)
        self.beat(2, rx_state=p.PROBATION)
        self.expect_event(port=2, state=p.PROBATION, reason=p.NEIGHBOR)
        self.beat(2)
        self.expect_event(port=2, state=p.UP, reason=p.NEIGHBOR)
        self.expect_use(True)


class LossOfDataIsDegradedWithDirectionAndRate(Health):
    def runTest(self) -> None:
        self.bring_up(2)
        self.beat(2, lost=1)  # a window begins after the first loss
        for _ in range(4):
            # with the heartbeat, the lost one and the packet of sync, twenty
            self.data(2, p.ipv4(dst="10.9.0.1"), count=17)
            self.beat(2, lost=1)
        event = self.expect_event(port=2, state=p.DEGRADED, reason=p.LOSS, rx_state=p.DEGRADED, lost=4)
        self.assertEqual((event["expected"], event["neighbor_rx_state"]), (4 * 20, p.UP))
        self.assertEqual(p.rx_state_of(self.tick(2)), p.DEGRADED)


class TheLossOfAGrayLinkIsToldAnewAndThenOverTwoWindows(Health):
    def runTest(self) -> None:
        self.bring_up(2)
        self.beat(2, lost=1)
        # heartbeats, and the losses that are told then: degraded, three quarters, the end of a window, two windows
        for beats, lost in ((4, 4), (5, 9), (5, 14), (5, 19), (20, 39)):
            for _ in range(beats):
                self.data(2, p.ipv4(dst="10.9.0.1"), count=17)  # twenty, as above
                self.beat(2, lost=1)
            self.expect_event(port=2, state=p.DEGRADED, reason=p.LOSS, lost=lost, expected=20 * lost)
        for _ in range(20):
            self.beat(2)
        self.expect_event(port=2, state=p.DEGRADED, reason=p.LOSS, lost=20, expected=20 * 20 + 20 * 2)
        for _ in range(20):
            self.beat(2)
        self.expect_event(port=2, state=p.PROBATION, old_state=p.DEGRADED, reason=p.CLEAN, lost=0)


class LossThatTheNeighborSeesIsDegradedToo(Health):
    def runTest(self) -> None:
        self.bring_up(2)
        self.beat(2, rx_state=p.DEGRADED)
        self.expect_event(port=2, state=p.DEGRADED, reason=p.NEIGHBOR, rx_state=p.UP, neighbor_rx_state=p.DEGRADED)
        self.expect_use(True)  # there is none better


class ADegradedLinkIsUsedOnlyWhereNothingBetterIsLeft(Health):
    def runTest(self) -> None:
        self.watch(3)
        self.bring_up(2, 3)
        self.group(2, [2, 3], watched=[2, 3])
        self.spray(2, "spray_rr")
        self.add("route_ipv4", {"dst_addr": "10.1.2.0/24"}, "ipv4_via", group_id=2)
        self.beat(2, rx_state=p.DEGRADED)
        for _ in range(3):
            self.send(1, p.ipv4(dst="10.1.2.1"))
            self.expect(3, p.routed(p.ipv4(dst="10.1.2.1", ttl=63), 3))
        self.silence(3)
        self.send(1, p.ipv4(dst="10.1.2.1"))
        self.expect(2, p.routed(p.ipv4(dst="10.1.2.1", ttl=63), 2))


class AMiscabledLinkIsToldOnceAndNeverUsed(Health):
    def runTest(self) -> None:
        self.bring_up(2)
        for _ in range(3):
            self.beat(2, device=77, device_port=9)
        self.expect_event(port=2, state=p.DOWN, old_state=p.UP, reason=p.MISCABLED, device=77, device_port=9)
        self.expect_use(False)
        self.beat(2)
        self.expect_event(port=2, state=p.PROBATION, reason=p.HEARD, device=2, device_port=2)


class AWindowWithoutAnEventIsToldAgain(Health):
    def runTest(self) -> None:
        self.bring_up(2)  # takes one timer
        heartbeats = [p.time_of(self.tick(2)) for _ in self.beats(self.HEALTH["window_heartbeats"] - 1)]
        event = self.expect_event(port=2, state=p.UP, old_state=p.UP, reason=p.CLEAN, device=2, device_port=2)
        self.assertTrue(heartbeats[-2] < event["time"] <= heartbeats[-1])
        self.beat(2, device=77, device_port=9)
        self.expect_event(port=2, state=p.DOWN, old_state=p.UP, reason=p.MISCABLED, device=77, device_port=9)
        for _ in range(self.HEALTH["window_heartbeats"]):
            self.tick(2)
        self.expect_event(port=2, state=p.DOWN, old_state=p.DOWN, reason=p.MISCABLED, device=77, device_port=9)

    def beats(self, count: int) -> Iterator[None]:
        """That many of the neighbor's heartbeats, one at a time."""
        for _ in range(count):
            self.beat(2)
            yield


class ProbationIsTwiceAsLongAfterAFailure(Health):
    HEALTH: Mapping[str, int] = {**base.LinkTest.HEALTH, "probation_max_doublings": 1}

    def runTest(self) -> None:
        for _ in range(1 + 2 * self.PROBATION):
            self.beat(2)
        self.assertEqual(p.rx_state_of(self.tick(2)), p.UP)
        self.silence(2)
        for _ in range(2 * self.PROBATION):
            self.beat(2)
        self.assertEqual(p.rx_state_of(self.tick(2)), p.PROBATION)
        self.beat(2)
        self.assertEqual(p.rx_state_of(self.tick(2)), p.UP)


class LossInProbationStartsItAnew(Health):
    def runTest(self) -> None:
        self.beat(2)
        self.expect_event(state=p.PROBATION)
        for _ in range(self.PROBATION - 1):
            self.beat(2)
        self.beat(2, lost=1)
        for _ in range(self.PROBATION - 1):
            self.beat(2)
        self.assertEqual(p.rx_state_of(self.tick(2)), p.PROBATION)
        self.beat(2)
        self.expect_event(state=p.UP, reason=p.CLEAN)


class ANeighborThatStartsAnewIsNoLoss(Health):
    def runTest(self) -> None:
        self.sequence[2], self.sent[2] = 1000, 50_000
        self.bring_up(2)
        self.sequence[2], self.sent[2] = 0, 0
        for _ in range(5):
            self.beat(2)
        self.assertEqual(p.rx_state_of(self.tick(2)), p.UP)
        for _ in range(3):
            self.tick(2)
        self.expect_event(state=p.DOWN, old_state=p.UP, reason=p.MISSED)


class AFullQueueIsNoReasonToBeDown(Health):
    QUEUE = 2 * 8 + base.QUEUE_OF[p.DATA]

    def runTest(self) -> None:
        self.bring_up(2)
        up_since, carried = self.since, self.counter("queue_packets", self.QUEUE)
        self.queue_set(2, 50, 10)
        for _ in range(10):
            self.send(1, p.ipv4(), count=10)  # far more than leave
            self.send(p.TIMER_PORT, p.timer(2))
            self.beat(2)
        self.wait_until_empty()
        carried = self.counter("queue_packets", self.QUEUE) - carried
        self.assertLess(carried, 100)
        seen = [self.receive(2)[1] for _ in range(carried + 10)]
        heartbeats = [packet for packet in seen if packet[12:14] == p.ETHERTYPE_HEARTBEAT.to_bytes(2, "big")]
        self.assertEqual([p.rx_state_of(packet) for packet in heartbeats], [p.UP] * 10)
        self.silence(2)
        self.since = up_since
        self.expect_event(state=p.DOWN, old_state=p.UP, reason=p.MISSED)

    def wait_until_empty(self) -> None:
        """Until a packet leaves none behind."""
        cell = self.QUEUE * 16
        emptied = self.counter("queue_depths", cell)
        self.until(lambda: self.counter("queue_depths", cell) > emptied, "the queue to be empty")


class HeartbeatsRideTheControlClass(Health):
    def runTest(self) -> None:
        self.bring_up(2)
        self.queue_set(2, 5, base.DEPTH)
        self.send(1, p.ipv4(), count=4)
        self.receive(2)
        self.tick(2)  # overtakes three packets
        self.assertEqual([self.receive(2)[1][12:14] for _ in range(3)], [b"\x08\x00"] * 3)
