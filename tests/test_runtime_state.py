"""Counters, meters, registers, multicast groups and clone sessions of the runtime."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator

import pytest

from softswitch.native import MeterConfig, Replica
from tests.native.fake import EINVAL, ENOENT, EXACT1, OK, SECOND, SMALL, Fake, fake_device

GREEN, YELLOW, RED = range(3)
INDEXED, DIRECT = range(2)
BYTES, PACKETS, ONE_RATE, DIRECT_METER = range(4)
R8, R64, R65, R128, R200, R12 = range(6)


@pytest.fixture
def device() -> Iterator[Fake]:
    with fake_device() as made:
        yield made


# ---- counters ----


def counter(device: Fake, index: int) -> tuple[int, int]:
    packets, nbytes = c.c_uint64(), c.c_uint64()
    assert device.call("sw_counter_get", INDEXED, index, c.byref(packets), c.byref(nbytes)) == OK
    return packets.value, nbytes.value


def test_counters_count_packets_and_received_bytes(device: Fake) -> None:
    for index, length in ((1, 64), (1, 100), (3, 1500), (4, 9), (1 << 63, 9)):
        device.call("fake_count", INDEXED, index, length)
    assert [counter(device, i) for i in range(4)] == [(0, 0), (2, 164), (0, 0), (1, 1500)]
    assert device.stats().index_errors == 2
    assert device.call("sw_counter_set", INDEXED, 1, 7, 8) == OK
    assert counter(device, 1) == (7, 8)


def test_counters_out_of_range_are_refused(device: Fake) -> None:
    assert device.call("sw_counter_set", INDEXED, 4, 0, 0) == EINVAL
    assert device.call("sw_counter_set", DIRECT, 0, 0, 0) == ENOENT
    assert device.call("sw_counter_set", 2, 0, 0, 0) == ENOENT


# ---- meters ----


def configure(device: Fake, meter: int, cir: float, cburst: float, pir: float, pburst: float, index: int = 0) -> int:
    return device.call("sw_meter_set", meter, index, c.byref(MeterConfig(cir, cburst, pir, pburst, True)))


def colours(device: Fake, meter: int, packets: int, length: int = 100) -> list[int]:
    return [device.call("fake_meter", meter, 0, length) for _ in range(packets)]


def test_an_unconfigured_meter_is_green(device: Fake) -> None:
    assert colours(device, BYTES, 100) == [GREEN] * 100


def test_a_packet_meter_goes_from_green_to_yellow_to_red(device: Fake) -> None:
    assert configure(device, PACKETS, cir=10, cburst=2, pir=20, pburst=4) == OK
    assert colours(device, PACKETS, 6) == [GREEN] * 2 + [YELLOW] * 2 + [RED] * 2
    device.clock(SECOND // 10)  # one committed token, two peak ones
    assert colours(device, PACKETS, 3) == [GREEN, YELLOW, RED]
    device.clock(100 * SECOND)  # full again, and no more than that
    assert colours(device, PACKETS, 5) == [GREEN] * 2 + [YELLOW] * 2 + [RED]


def test_a_byte_meter_pays_by_length_and_a_red_packet_pays_nothing(device: Fake) -> None:
    assert configure(device, BYTES, cir=1000, cburst=150, pir=1000, pburst=300) == OK
    assert colours(device, BYTES, 2, 100) == [GREEN, YELLOW]
    assert colours(device, BYTES, 1, 101) == [RED]
    assert colours(device, BYTES, 1, 50) == [GREEN]
    assert colours(device, BYTES, 2, 50) == [YELLOW, RED]


def test_a_one_rate_meter_is_green_or_yellow(device: Fake) -> None:
    assert configure(device, ONE_RATE, cir=10, cburst=2, pir=0, pburst=0) == OK
    assert colours(device, ONE_RATE, 4) == [GREEN] * 2 + [YELLOW] * 2


@pytest.mark.parametrize(
    "config", [(10, 2, 9, 4), (-1, 2, 9, 4), (1, -1, 9, 4), (1, 2, 9, -1), (float("nan"), 2, 9, 4)]
)
def test_bad_rates_are_refused(device: Fake, config: tuple[float, float, float, float]) -> None:
    assert configure(device, PACKETS, *config) == EINVAL
    assert colours(device, PACKETS, 10) == [GREEN] * 10


def test_meters_are_read_back_and_reset(device: Fake) -> None:
    config = MeterConfig()
    assert configure(device, PACKETS, cir=10, cburst=1, pir=20, pburst=1) == OK
    assert device.call("sw_meter_get", PACKETS, 0, c.byref(config)) == OK
    assert (config.cir, config.cburst, config.pir, config.pburst, config.configured) == (10, 1, 20, 1, True)
    assert device.call("sw_meter_set", PACKETS, 0, c.byref(MeterConfig())) == OK
    assert device.call("sw_meter_get", PACKETS, 0, c.byref(config)) == OK
    assert not config.configured
    assert colours(device, PACKETS, 10) == [GREEN] * 10
    assert configure(device, PACKETS, 1, 1, 1, 1, index=4) == EINVAL
    assert configure(device, DIRECT_METER, 1, 1, 1, 1) == ENOENT
    assert device.call("fake_meter", PACKETS, 4, 100) == GREEN
    assert device.stats().index_errors == 1


def test_a_direct_meter_belongs_to_its_entry(device: Fake) -> None:
    keys = [bytes(3) + bytes([i]) for i in range(2)]
    entries = [device.add(SMALL, key) for key in keys]
    limit = c.byref(MeterConfig(1, 1, 1, 2, True))
    assert device.call("sw_entry_meter_set", SMALL, entries[0], limit) == OK
    assert [device.call("fake_meter_direct", keys[0]) for _ in range(3)] == [GREEN, YELLOW, RED]
    assert [device.call("fake_meter_direct", keys[1]) for _ in range(3)] == [GREEN] * 3
    config = MeterConfig()
    assert device.call("sw_entry_meter_get", SMALL, entries[0], c.byref(config)) == OK
    assert (config.configured, config.pburst) == (True, 2)
    assert device.call("sw_entry_meter_set", SMALL, 77, limit) == ENOENT
    assert device.call("sw_entry_meter_set", EXACT1, device.add(EXACT1, keys[0]), limit) == ENOENT


# ---- registers ----


@pytest.mark.parametrize(
    ("reg", "width", "stride"),
    [(R8, 8, 8), (R64, 64, 8), (R65, 65, 16), (R128, 128, 16), (R200, 200, 32), (R12, 12, 8)],
)
def test_registers_keep_values_of_any_width_as_native_integers(device: Fake, reg: int, width: int, stride: int) -> None:
    nbytes = (width + 7) // 8
    for index in range(4):
        value = (1 << width) - 1 - index
        assert device.call("sw_register_set", reg, index, value.to_bytes(nbytes, "big")) == OK
    for index in range(4):
        value = (1 << width) - 1 - index
        cell = device.call("fake_register", reg, index)
        assert int.from_bytes(c.string_at(cell, stride), "little") == value
        read = c.create_string_buffer(nbytes)
        assert device.call("sw_register_get", reg, index, read) == OK
        assert int.from_bytes(read.raw, "big") == value
    assert device.call("fake_register", reg, 1) - device.call("fake_register", reg, 0) == stride


def test_registers_out_of_range_are_refused_and_counted(device: Fake) -> None:
    assert device.call("fake_register", R8, 4) is None
    assert device.stats().index_errors == 1
    assert device.call("sw_register_set", R8, 4, b"\0") == EINVAL
    assert device.call("sw_register_set", R12, 0, b"\x10\x00") == EINVAL
    assert device.call("sw_register_set", 6, 0, b"\0") == ENOENT


# ---- multicast groups and clone sessions ----


def replicas(*pairs: tuple[int, int]) -> c.Array[Replica]:
    return (Replica * len(pairs))(*(Replica(*pair) for pair in pairs))


@pytest.mark.parametrize(
    ("group", "pairs", "result"),
    [
        (1, [(1, 1), (2, 1), (1, 2)], OK),
        (65535, [], OK),
        (0, [(1, 1)], EINVAL),
        (65536, [(1, 1)], EINVAL),
        (1, [(512, 1)], EINVAL),
        (1, [(1, 65536)], EINVAL),
    ],
)
def test_multicast_groups(device: Fake, group: int, pairs: list[tuple[int, int]], result: int) -> None:
    assert device.call("sw_mcast_set", group, replicas(*pairs), len(pairs)) == result
    assert device.call("sw_mcast_delete", group) == (OK if result == OK else ENOENT)
    assert device.call("sw_mcast_delete", group) == ENOENT


def test_clone_sessions_are_replaced_and_deleted(device: Fake) -> None:
    assert device.call("sw_clone_set", 5, replicas((1, 0)), 1, 0) == OK
    assert device.call("sw_clone_set", 5, replicas((1, 0), (2, 0)), 2, 128) == OK
    assert device.call("sw_clone_set", 32768, replicas((1, 0)), 1, 0) == EINVAL
    assert device.clones(5) == (128, [(1, 0), (2, 0)])
    assert device.call("sw_clone_delete", 5) == OK
    assert device.clones(5) is None
    assert device.call("sw_clone_delete", 5) == ENOENT
