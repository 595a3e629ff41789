"""The runtime's traffic manager, faults, generator and in-memory ports, in virtual time."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from ctypes import byref
from pathlib import Path

import pytest

from tests.native.runtime import (
    CPU_PORT,
    EEXIST,
    EINVAL,
    ENOENT,
    EV_PACKET_IN,
    OK,
    RX,
    SECOND,
    TX,
    Fault,
    Queue,
    RuntimeDevice,
    runtime_device,
)


@pytest.fixture
def device() -> Iterator[RuntimeDevice]:
    with runtime_device() as made:
        yield made


def frame(number: int, length: int = 100) -> bytes:
    """A packet that is simply forwarded, told apart by its number."""
    return bytes([0, 0]) + number.to_bytes(4, "big") + bytes(length - 6)


def number_of(packet: bytes) -> int:
    return int.from_bytes(packet[2:6], "big")


def send(device: RuntimeDevice, count: int, now: int, length: int = 100) -> list[int]:
    """Inject frames 0..count-1 on port 0 at once; the times at which they have left so far."""
    return [out.time for i in range(count) for out in device.inject(0, frame(i, length), now)]


def times(device: RuntimeDevice, until: int) -> list[int]:
    return [out.time for out in device.advance(until)]


# ---- without rates ----------------------------------------------------------------------------------------


def test_a_packet_leaves_in_the_same_instant(device: RuntimeDevice) -> None:
    out = device.inject(4, frame(7), 1234)
    assert [(one.port, one.data, one.time) for one in out] == [(5, frame(7), 1234)]


def test_queues_without_a_rate_hold_and_drop_nothing(device: RuntimeDevice) -> None:
    out = device.inject(0, b"M\xc8" + bytes(62), 5)
    assert len(out) == 200
    stats = device.queue_stats(1)
    assert (stats.packets, stats.bytes, stats.drops, stats.depth, stats.depth_max) == (200, 200 * 64, 0, 0, 0)
    assert device.inject(0, b"Q\0\xff\xff", 6)[0].data == b"Q\0\0\0"


def test_time_does_not_go_back(device: RuntimeDevice) -> None:
    device.advance(100)
    assert device.call("inject", 0, frame(0), 100, 99) == EINVAL
    assert device.call("advance", 99) == EINVAL
    assert device.call("now") == 100


def test_a_jump_of_years_is_crossed_at_once(device: RuntimeDevice) -> None:
    now = 56 * 365 * 86400 * SECOND
    assert [out.time for out in device.inject(0, frame(0), now)] == [now]


def test_bad_packets_and_ports_are_refused(device: RuntimeDevice) -> None:
    assert device.call("inject", 512, frame(0), 100, 0) == EINVAL
    assert device.call("inject", 0, bytes(10241), 10241, 0) == EINVAL
    assert len(device.inject(0, bytes(10240), 0)[0].data) == 10240
    assert len(device.inject(0, b"", 0)[0].data) == 0


# ---- rates and depths ---------------------------------------------------------------------------------------


def test_packet_rate_spaces_packets(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=1000)
    assert send(device, 4, now=50) == [50]
    assert times(device, SECOND) == [1_000_050, 2_000_050, 3_000_050]
    assert send(device, 1, now=5 * SECOND) == [5 * SECOND]  # what was not used is not saved up


def test_packet_rate_is_exact_where_a_nanosecond_is_not_enough(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=3, packets=0)
    send(device, 7, now=0)
    assert times(device, 2 * SECOND) == [333333334, 666666667, 1000000000, 1333333334, 1666666667, 2000000000]


def test_bit_rate_takes_the_frames_own_bits(device: RuntimeDevice) -> None:
    device.queue_set(1, bps=8_000_000)
    assert send(device, 3, now=0, length=1500) == [0]
    assert times(device, SECOND) == [1_500_000, 3_000_000]


def test_several_small_frames_fit_a_nanosecond_at_terabits(device: RuntimeDevice) -> None:
    device.queue_set(1, bps=2_048_000_000_000)  # 64 bytes take a quarter of a nanosecond
    send(device, 10, now=0, length=64)
    assert times(device, 10) == [1, 1, 1, 1, 2, 2, 2, 2, 3]


def test_port_rate_is_shared_and_the_highest_priority_goes_first() -> None:
    with runtime_device(priorities=3) as device:
        device.call("port_rate_set", 1, 8_000_000)
        for i, priority in enumerate((0, 0, 1, 2, 1)):
            device.inject(0, b"P" + bytes([priority]) + i.to_bytes(4, "big") + bytes(94), 0)
        out = device.advance(SECOND)
        assert [number_of(one.data) for one in out] == [3, 2, 4, 1]
        assert [one.time for one in out] == [100_000, 200_000, 300_000, 400_000]


def test_a_queue_at_its_rate_lets_lower_priorities_go() -> None:
    with runtime_device(priorities=2) as device:
        device.queue_set(1, 1, pps=10)
        device.call("port_rate_set", 1, 8_000_000)
        left = [device.inject(0, b"P" + bytes([p]) + bytes(98), 0) for p in (1, 1, 0, 0)]
        assert [len(one) for one in left] == [1, 0, 0, 0]
        out = device.advance(SECOND)
        assert [(one.data[1], one.time) for one in out] == [(0, 100_000), (0, 200_000), (1, 100_000_000)]


def test_a_priority_that_is_not_there_drops(device: RuntimeDevice) -> None:
    assert device.inject(0, b"P\x01", 0) == []
    assert device.stats().queue_drops == 1


def test_depth_in_packets_drops_the_tail(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=1, packets=3)
    send(device, 6, now=0)
    stats = device.queue_stats(1)
    assert (stats.packets, stats.drops, stats.drop_bytes, stats.depth, stats.queued_bytes) == (1, 2, 200, 3, 300)
    assert [number_of(out.data) for out in device.advance(10 * SECOND)] == [1, 2, 3]
    assert device.stats().queue_drops == 2


def test_the_default_depth_is_64_packets(device: RuntimeDevice) -> None:
    queue = Queue()
    assert device.call("queue_get", 1, 0, byref(queue)) == OK
    assert (queue.rate_pps, queue.rate_bps, queue.depth_packets, queue.depth_bytes) == (0, 0, 64, 0)
    device.call("port_rate_set", 1, 1)
    send(device, 70, now=0)
    assert (device.queue_stats(1).depth, device.queue_stats(1).drops) == (64, 5)


def test_depth_in_bytes_drops_what_does_not_fit(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=1, packets=0, nbytes=250)
    send(device, 4, now=0)
    device.inject(0, frame(9, 50), 0)
    assert (device.queue_stats(1).queued_bytes, device.queue_stats(1).drops) == (250, 1)
    assert [number_of(out.data) for out in device.advance(10 * SECOND)] == [1, 2, 9]


def test_the_watermark_is_kept_until_it_is_cleared(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=1)
    send(device, 5, now=0)
    device.advance(2 * SECOND)
    assert device.queue_stats(1, clear_max=True).depth_max == 4
    assert device.queue_stats(1).depth_max == 2


def test_queue_depths_are_those_before_and_after_the_packet(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=1)
    out = [one for _ in range(3) for one in device.inject(0, b"Q\0\0\0", 0)] + device.advance(5 * SECOND)
    assert [(one.data[2], one.data[3]) for one in out] == [(0, 0), (0, 1), (1, 0)]


def test_a_new_rate_takes_effect_at_once(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=1)
    send(device, 4, now=0)
    device.advance(SECOND // 2)
    device.queue_set(1, pps=4)
    assert times(device, SECOND) == [SECOND // 2, 3 * SECOND // 4, SECOND]


def test_a_rate_that_is_taken_away_lets_everything_go(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=1)
    send(device, 4, now=0)
    device.queue_set(1)
    assert times(device, 10) == [0, 0, 0]
    assert send(device, 1, now=20) == [20]


def test_what_egress_drops_takes_no_time_on_the_wire(device: RuntimeDevice) -> None:
    device.call("port_rate_set", 1, 8_000_000)
    assert send(device, 1, now=0) == [0]
    device.inject(0, b"E" + bytes(99), 0)
    device.inject(0, frame(1), 0)
    assert times(device, SECOND) == [100_000]


def test_bad_queue_settings_are_refused(device: RuntimeDevice) -> None:
    assert device.queue_set(512) == EINVAL
    assert device.queue_set(1, 1) == EINVAL
    assert device.queue_set(1, bps=10**16) == EINVAL
    assert device.call("port_rate_set", 1, 10**16) == EINVAL


# ---- loops --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["R", "B"])
def test_a_packet_that_loops_for_ever_is_dropped(device: RuntimeDevice, op: str) -> None:
    assert device.inject(0, op.encode() + bytes(63), 0) == []
    assert device.stats().loop_drops > 0
    assert send(device, 1, now=0) == [0]


def test_a_packet_resubmitted_for_ever_ends_after_10000_passes(device: RuntimeDevice) -> None:
    device.inject(0, b"R" + bytes(63), 0)
    stats = device.stats()
    assert (stats.received, stats.loop_drops, stats.dropped) == (1, 1, 0)


def test_egress_clones_for_ever_end_after_10000(device: RuntimeDevice) -> None:
    assert len(device.inject(0, b"L" + bytes(63), 0)) == 10_001
    assert device.stats().loop_drops == 1


def test_a_loop_that_takes_time_may_go_on(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=1_000_000)
    left = device.inject(0, b"L" + bytes(63), 0) + device.advance(20_000_000)
    assert len(left) == 20_001
    assert device.stats().loop_drops == 0


def test_recirculated_packets_come_out_after_their_passes(device: RuntimeDevice) -> None:
    assert [out.data[1] for out in device.inject(0, b"A\x05" + bytes(62), 0)] == [5]


# ---- faults -------------------------------------------------------------------------------------------------


def survivors(device: RuntimeDevice, count: int) -> list[int]:
    return [number_of(out.data) for i in range(count) for out in device.inject(0, frame(i), i)]


def test_loss_takes_its_share_and_is_counted(device: RuntimeDevice) -> None:
    device.fault_set(0, RX, loss=0.1)
    left = survivors(device, 10_000)
    assert len(left) + device.port(0).fault_drops == 10_000
    assert 900 <= device.port(0).fault_drops <= 1100


def test_the_same_seed_loses_the_same_packets() -> None:
    def lost(seed: int) -> list[int]:
        with runtime_device(seed=seed) as device:
            device.fault_set(1, TX, loss=0.5)
            return survivors(device, 200)

    assert lost(3) == lost(3)
    assert lost(3) != lost(4)


def test_a_fault_changes_neither_the_programs_random_numbers_nor_other_ports() -> None:
    def drawn(fault_on_port: int | None) -> list[bytes]:
        with runtime_device() as device:
            device.fault_set(3, TX, loss=0.5)
            if fault_on_port is not None:
                device.fault_set(fault_on_port, RX, loss=0.5)
            for i in range(10):
                device.inject(0, frame(0), i)
            return [out.data for i in range(100) for out in device.inject(2, b"X" + bytes(15), 20 + i)]

    assert drawn(0) == drawn(None)
    assert 20 < len(drawn(None)) < 80


def test_bursts_lose_runs_of_packets(device: RuntimeDevice) -> None:
    device.fault_set(0, RX, burst_enter=0.01, burst_exit=0.1)
    left = survivors(device, 20_000)
    lost = sorted(set(range(20_000)) - set(left))
    bursts = 1 + sum(b - a > 1 for a, b in itertools.pairwise(lost))
    assert 1400 <= len(lost) <= 2300  # 1/11 of the time is bad
    assert 8 <= len(lost) / bursts <= 12


def test_corruption_flips_one_bit(device: RuntimeDevice) -> None:
    device.fault_set(1, TX, corrupt=1)
    out = device.inject(0, frame(0), 0)[0].data
    assert sum((a ^ b).bit_count() for a, b in zip(out, frame(0), strict=True)) == 1
    assert device.port(1).fault_corrupt == 1


def test_duplicates_follow_their_original(device: RuntimeDevice) -> None:
    device.fault_set(0, RX, duplicate=1)
    assert [number_of(out.data) for i in range(2) for out in device.inject(0, frame(i), i)] == [0, 0, 1, 1]
    assert device.port(0).fault_duplicates == 2


def test_delay_is_exact_in_both_directions(device: RuntimeDevice) -> None:
    device.fault_set(0, RX, delay_ns=1000)
    device.fault_set(1, TX, delay_ns=500)
    assert device.inject(0, frame(0), 10) == []
    assert times(device, 1509) == []
    assert times(device, 1510) == [1510]


def test_jitter_reorders_within_its_bounds(device: RuntimeDevice) -> None:
    device.fault_set(1, TX, delay_ns=100, jitter_ns=1000)
    for i in range(50):
        device.inject(0, frame(i), 0)
    out = device.advance(5000)
    assert sorted(number_of(one.data) for one in out) == list(range(50))
    assert [number_of(one.data) for one in out] != list(range(50))
    assert all(100 <= one.time <= 1100 for one in out)


def test_a_cap_queues_and_a_new_one_takes_effect_at_once(device: RuntimeDevice) -> None:
    device.fault_set(1, TX, rate_bps=8_000_000)
    assert send(device, 4, now=0) == [0]
    assert times(device, 100_000) == [100_000]
    device.fault_set(1, TX, rate_bps=4_000_000)
    assert times(device, 300_000) == [300_000]
    assert device.call("faults_clear") == OK
    assert times(device, 300_001) == [300_000]
    assert send(device, 1, now=400_000) == [400_000]


def test_a_caps_queue_holds_1000_packets(device: RuntimeDevice) -> None:
    device.fault_set(0, RX, rate_bps=8_000_000)
    send(device, 1101, now=0)
    assert device.port(0).fault_drops == 100
    assert len(times(device, SECOND)) == 1000


def test_down_loses_everything_silently(device: RuntimeDevice) -> None:
    device.fault_set(0, RX, down=True)
    assert survivors(device, 3) == []
    assert device.event() is None
    assert (device.port(0).up, device.port(0).fault_drops) == (True, 3)
    device.fault_set(0, RX)
    assert send(device, 1, now=10) == [10]


def test_faults_read_back_and_bad_ones_are_refused(device: RuntimeDevice) -> None:
    assert device.fault_set(0, RX, loss=0.25, jitter_ns=7) == OK
    fault = Fault()
    assert device.call("fault_get", 0, RX, byref(fault)) == OK
    assert (fault.loss, fault.jitter_ns) == (0.25, 7)
    for bad in ({"loss": 1.5}, {"loss": float("nan")}, {"corrupt": -0.1}, {"rate_bps": 10**16}):
        assert device.fault_set(0, RX, **bad) == EINVAL
    assert device.fault_set(512, RX) == EINVAL
    assert device.fault_set(0, 2) == EINVAL


# ---- packet generator -----------------------------------------------------------------------------------------


def test_generated_packets_come_at_their_interval_as_often_as_asked(device: RuntimeDevice) -> None:
    device.advance(5)
    assert device.pktgen_set(3, 0, 100, frame(9), count=3) == OK
    out = device.advance(1000)
    assert [(one.port, number_of(one.data), one.time) for one in out] == [(1, 9, 105), (1, 9, 205), (1, 9, 305)]


def test_a_generator_is_replaced_and_cleared(device: RuntimeDevice) -> None:
    device.pktgen_set(0, 0, 100, frame(1))
    assert len(times(device, 250)) == 2
    device.pktgen_set(0, 0, 1000, frame(2))
    assert times(device, 1250) == [1250]
    assert device.call("pktgen_clear", 0) == OK
    assert times(device, 10_000) == []
    assert device.call("pktgen_clear", 0) == ENOENT


def test_bad_generators_are_refused(device: RuntimeDevice) -> None:
    assert device.pktgen_set(64, 0, 100, frame(0)) == EINVAL
    assert device.pktgen_set(0, 512, 100, frame(0)) == EINVAL
    assert device.pktgen_set(0, 0, 0, frame(0)) == EINVAL
    assert device.pktgen_set(0, 0, 100, b"") == EINVAL
    assert device.pktgen_set(0, 0, 100, b"123", 0, 512, 0) == EINVAL
    assert device.pktgen_set(0, 0, 100, b"123", 0, 1, 3) == EINVAL


def test_a_generator_tells_whether_a_port_is_down(device: RuntimeDevice) -> None:
    at = len(frame(9)) - 1
    device.pktgen_set(0, 0, 100, frame(9), 0, 5, at)
    told = []
    for up in (True, False, False, True):
        device.call("port_set_up", 5, up)
        told += [one.data[at] for one in device.advance(device.call("now") + 100)]
    assert told == [0, 1, 1, 0]


# ---- ports ----------------------------------------------------------------------------------------------------


def test_a_port_that_is_down_passes_nothing_and_tells(device: RuntimeDevice) -> None:
    assert device.call("port_set_up", 1, False) == OK
    assert device.call("port_set_up", 1, False) == OK
    assert device.port_event() == (1, False)
    assert device.port_event() is None
    assert send(device, 1, now=0) == []
    assert device.inject(1, frame(0), 0) == []
    assert (device.port(1).tx_drops, device.port(1).rx_drops) == (1, 1)
    device.call("port_set_up", 1, True)
    assert device.port_event() == (1, True)
    assert send(device, 1, now=0) == [0]


def test_ports_can_be_removed_and_added(device: RuntimeDevice) -> None:
    assert device.port_add(1, "") == EEXIST
    assert device.port_add(1, "eth0") == EINVAL
    assert device.call("port_remove", 1) == OK
    assert device.call("port_remove", 1) == ENOENT
    assert device.call("inject", 1, frame(0), 100, 0) == ENOENT
    assert device.call("port_remove", CPU_PORT) == EINVAL
    assert device.port_add(1, "") == OK
    assert [device.port_event(), device.port_event()] == [(1, False), (1, True)]


def test_ports_count_packets_and_bytes(device: RuntimeDevice) -> None:
    send(device, 3, now=0, length=64)
    assert (device.port(0).rx_packets, device.port(0).rx_bytes) == (3, 192)
    assert (device.port(1).tx_packets, device.port(1).tx_bytes) == (3, 192)
    stats = device.stats()
    assert (stats.received, stats.transmitted, stats.dropped) == (3, 3, 0)


def test_packets_to_the_cpu_port_are_events_and_outputs(device: RuntimeDevice) -> None:
    assert [out.port for out in device.inject(0, b"C123", 77)] == [CPU_PORT]
    found = device.event()
    assert found is not None
    assert (found[0].type, found[0].time, found[1]) == (EV_PACKET_IN, 77, b"C123")


def test_packet_out_comes_in_on_the_cpu_port(device: RuntimeDevice) -> None:
    device.advance(9)
    assert device.call("packet_out", CPU_PORT, b"\0hello", 6) == OK
    assert [(out.port, out.data, out.time) for out in device.outputs()] == [(CPU_PORT ^ 1, b"\0hello", 9)]
    assert device.port(CPU_PORT).rx_packets == 1


def test_a_tap_writes_both_directions_with_virtual_time(device: RuntimeDevice, tmp_path: Path) -> None:
    path = tmp_path / "port0.pcap"
    assert device.call("port_pcap", 0, str(path).encode()) == OK
    device.inject(0, frame(1, 60), 2 * SECOND + 3)
    device.inject(1, frame(2, 70), 2 * SECOND + 4)
    assert device.call("port_pcap", 0, None) == OK
    device.inject(0, frame(3), 3 * SECOND)
    header = bytes.fromhex("4d3cb2a1 0200 0400 00000000 00000000 ffff0000 01000000")
    records = [(2, 3, 60, frame(1, 60)), (2, 4, 70, frame(2, 70))]
    body = b"".join(b"".join(v.to_bytes(4, "little") for v in (s, ns, n, n)) + data for s, ns, n, data in records)
    assert path.read_bytes() == header + body
    assert device.call("port_pcap", 0, str(tmp_path / "no/such").encode()) < 0
    assert device.call("port_pcap", 512, None) == EINVAL


# ---- all together ---------------------------------------------------------------------------------------------


def test_the_pools_limit_drops_and_is_counted(device: RuntimeDevice) -> None:
    device.queue_set(1, pps=1, packets=0)
    send(device, 65_600, now=0, length=16)
    assert device.stats().no_buffer == 63  # one has left, 65,536 wait
    device.queue_set(1)
    assert len(times(device, 1)) == 65_536
    assert send(device, 1, now=2) == [2]


def test_a_busy_mix_is_deterministic() -> None:
    def run() -> list[tuple[int, bytes, int]]:
        with runtime_device(seed=11, priorities=2) as device:
            device.call("port_rate_set", 1, 800_000_000)
            device.queue_set(1, 1, pps=100_000, packets=8)
            device.fault_set(0, RX, loss=0.05, duplicate=0.05, corrupt=0.05, delay_ns=200, jitter_ns=3000)
            device.fault_set(1, TX, burst_enter=0.02, burst_exit=0.2, rate_bps=500_000_000)
            device.pktgen_set(0, 0, 1777, b"X" + bytes(40))
            out = []
            for i in range(2000):
                op = b"PPXQMA"[i % 6 : i % 6 + 1]
                out += device.inject(0, op + bytes([i % 2]) + bytes(30 + i % 100), i * 500)
            out += device.advance(10_000_000)
            return [(one.port, one.data, one.time) for one in out]

    first = run()
    assert first == run()
    assert [time for _, _, time in first] == sorted(time for _, _, time in first)
    assert len(first) > 2000


def test_bench_counts_what_leaves_and_keeps_no_outputs(device: RuntimeDevice) -> None:
    packets = (ctypes.c_char_p * 2)(frame(0), frame(1))
    lengths = (ctypes.c_uint32 * 2)(100, 60)
    assert device.call("bench", 0, packets, lengths, 2, 1001) > 0
    assert (device.port(1).tx_packets, device.port(1).tx_bytes) == (1001, 501 * 100 + 500 * 60)
    assert device.outputs() == []
