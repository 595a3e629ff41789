"""fabric.p4: ECN marks, early drops and counters of queues, by the depth that a packet leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ptf_tests import packets as p
from softswitch.device import QueueConfig, Replica
from tests import fabric as f

QUEUE = {p.CONTROL: 7, p.DATA: 3, p.OTHER: 0}
Make = Callable[..., bytes]


@pytest.fixture
def switch() -> Iterator[f.Fabric]:
    """Port 2 sends a packet a second."""
    made = f.Fabric(seed=5)
    made.basics()
    made.route("10.1.0.0/16", 1, [2])
    made.route("fd00:1::/32", 1, [2])
    made.device.queue_set(2, QueueConfig(rate_pps=1, depth_packets=10_000))
    yield made
    made.close()


def burst(switch: f.Fabric, packets: list[bytes]) -> list[bytes]:
    """All packets come at once; what has left in the end, in order. The i-th of n leaves n-i-1 behind."""
    outs = [out for packet in packets for out in switch.send(1, packet, switch.device.now())]
    outs += switch.device.advance(switch.device.now() + (len(packets) + 1) * f.SECOND)
    return [out.data for out in outs if out.port == 2]


def marks(switch: f.Fabric, count: int, make: Make = p.ipv4, **fields: int) -> list[int]:
    """The ECN fields of a burst, those behind the first packet, which finds no queue."""
    return [p.ecn_of(packet) for packet in burst(switch, [make(**fields)] * (count + 1))[1:]]


def step(switch: f.Fabric, threshold: int, drop: int = 0, traffic_class: int = p.DATA) -> None:
    switch.add("ecn_profile", {"port": 2, "traffic_class": traffic_class}, "step", threshold, drop)


@pytest.mark.parametrize("make", [p.ipv4, p.ipv6])
@pytest.mark.parametrize("ecn", [p.ECT0, p.ECT1])
def test_a_step_marks_from_the_threshold_on(switch: f.Fabric, make: Make, ecn: int) -> None:
    step(switch, 4)
    assert marks(switch, 8, make, ecn=ecn) == [p.CE] * 4 + [ecn] * 4
    assert switch.counter("queue_marked", 2 * 8 + 3) == 4
    assert switch.counter("queue_packets", 2 * 8 + 3) == 9


@pytest.mark.parametrize("make", [p.ipv4, p.ipv6])
def test_a_marked_packet_is_otherwise_unchanged_and_its_checksum_is_right(switch: f.Fabric, make: Make) -> None:
    step(switch, 0)
    hops = {"ttl": 63} if make is p.ipv4 else {"hop_limit": 63}
    [marked] = burst(switch, [make(ecn=p.ECT1)])
    assert marked[12:] == make(ecn=p.CE, **hops)[12:]


def test_a_marked_packet_with_options_has_the_right_checksum(switch: f.Fabric) -> None:
    step(switch, 0)
    options = bytes.fromhex("94040000")
    [marked] = burst(switch, [p.ipv4(options=options)])
    assert marked[12:] == p.ipv4(ecn=p.CE, ttl=63, options=options)[12:]


def test_not_ect_is_never_marked_and_ce_stays_ce(switch: f.Fabric) -> None:
    step(switch, 1)
    assert marks(switch, 8, ecn=p.NOT_ECT) == [p.NOT_ECT] * 8
    assert marks(switch, 8, ecn=p.CE) == [p.CE] * 8
    assert switch.counter("queue_marked", 2 * 8 + 3) == 0


def test_not_ect_is_dropped_early_where_the_profile_says_so(switch: f.Fabric) -> None:
    step(switch, 4, drop=1)
    assert len(burst(switch, [p.ipv4(ecn=p.NOT_ECT)] * 9)) == 5
    assert switch.counter("queue_early_drops", 2 * 8 + 3) == 4
    assert switch.register("tx_packets", 2) == 5, "what never left is no loss of the link"
    assert marks(switch, 8) == [p.CE] * 4 + [p.ECT0] * 4


def test_a_ramp_drops_not_ect_early_where_the_profile_says_so(switch: f.Fabric) -> None:
    switch.add("ecn_profile", {"port": 2, "traffic_class": p.DATA}, "ramp", 3, 4, 65536, 1)
    assert len(burst(switch, [p.ipv4(ecn=p.NOT_ECT)] * 9)) == 5
    assert switch.counter("queue_early_drops", 2 * 8 + 3) == 4


def test_the_control_class_is_never_marked(switch: f.Fabric) -> None:
    for name in (p.CONTROL, p.DATA, p.OTHER):
        step(switch, 0, traffic_class=name)
    assert marks(switch, 8, dscp=48) == [p.ECT0] * 8
    assert marks(switch, 8, dscp=0) == [p.CE] * 8


def test_the_depth_is_that_of_the_packets_own_queue(switch: f.Fabric) -> None:
    step(switch, 4, traffic_class=p.DATA)
    data, other = p.ipv4(dscp=26), p.ipv4(dscp=0)
    left = burst(switch, [data] * 4 + [other] * 20)
    assert [p.ecn_of(packet) for packet in left] == [p.ECT0] * 24


def test_without_a_profile_nothing_is_marked(switch: f.Fabric) -> None:
    assert marks(switch, 30) == [p.ECT0] * 30


def test_a_ramp_never_marks_up_to_k_min_and_always_from_k_max_on(switch: f.Fabric) -> None:
    switch.add("ecn_profile", {"port": 2, "traffic_class": p.DATA}, "ramp", 10, 20, 32768, 0)
    seen = marks(switch, 40)
    assert seen[:20] == [p.CE] * 20  # 39 to 20 left behind
    assert seen[29:] == [p.ECT0] * 11  # 10 to 0
    assert p.CE in seen[20:29]


def test_a_ramps_chance_rises_to_p_max(switch: f.Fabric) -> None:
    switch.add("ecn_profile", {"port": 2, "traffic_class": p.DATA}, "ramp", 0, 1000, 65536 // 2, 0)
    seen = marks(switch, 1000)
    parts = [sum(ecn == p.CE for ecn in seen[at : at + 250]) for at in range(0, 1000, 250)]
    # a chance of 1/2 * depth / 1000: on average 109, 78, 47 and 16 in these quarters, give or take three deviations
    for part, (low, high) in zip(parts, ((86, 132), (56, 100), (28, 66), (4, 28)), strict=True):
        assert low <= part <= high


def test_a_ramp_of_no_length_is_a_step(switch: f.Fabric) -> None:
    switch.add("ecn_profile", {"port": 2, "traffic_class": p.DATA}, "ramp", 4, 4, 65536, 0)
    assert marks(switch, 8) == [p.CE] * 4 + [p.ECT0] * 4


def test_packets_are_counted_by_the_depth_they_left_behind(switch: f.Fabric) -> None:
    burst(switch, [p.ipv4()] * 11)  # leave 0, 9, 8, ... 0 behind
    base = (2 * 8 + 3) * 16
    assert [switch.counter("queue_depths", base + bits) for bits in range(6)] == [2, 1, 2, 4, 2, 0]


def test_deep_queues_send_postcards(switch: f.Fabric) -> None:
    switch.device.clone_set(500, [Replica(p.CPU_PORT, 1)])
    switch.add("postcard_profile", {"port": 2, "traffic_class": p.DATA}, "send_postcards", 3, 65536)
    packets = [p.ipv4(payload=bytes([n]) * 200) for n in range(6)]
    left = burst(switch, packets)
    switch.drain()
    assert len(switch.packets_in) == 2  # of those that left 4 and 3 behind
    for card, original, behind in zip(switch.packets_in, left[1:], (4, 3), strict=False):
        assert len(card) == 128
        assert card[:2] == (2 << 7 | 3).to_bytes(2, "big")
        queue, name = card[2], card[3]
        enq, deq, waited = (int.from_bytes(card[at : at + 4], "big") for at in (4, 8, 12))
        assert (queue, name, enq, deq, waited) == (3, p.DATA, 4 - behind, behind, (5 - behind) * 1_000_000)
        assert card[22:] == original[: 128 - 22]


def test_a_packet_that_was_dropped_early_sends_no_postcard(switch: f.Fabric) -> None:
    step(switch, 4, drop=1)
    switch.device.clone_set(500, [Replica(p.CPU_PORT, 1)])
    switch.add("postcard_profile", {"port": 2, "traffic_class": p.DATA}, "send_postcards", 0, 65536)
    burst(switch, [p.ipv4(ecn=p.NOT_ECT)] * 9)
    switch.drain()
    assert len(switch.packets_in) == 5


def test_postcards_are_sampled(switch: f.Fabric) -> None:
    switch.device.clone_set(500, [Replica(p.CPU_PORT, 1)])
    switch.add("postcard_profile", {"port": 2, "traffic_class": p.DATA}, "send_postcards", 0, 65536 // 4)
    burst(switch, [p.ipv4()] * 400)
    switch.drain()
    assert 74 <= len(switch.packets_in) <= 126  # 100, give or take three deviations
