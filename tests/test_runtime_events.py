"""Events and digest lists of the runtime."""

from __future__ import annotations

import ctypes as c
import threading
from collections.abc import Iterator

import pytest

from softswitch.native import EVENT_MAX, DigestConfig
from tests.native.fake import (
    EINVAL,
    ENOENT,
    EV_DIGEST,
    EV_IDLE,
    EV_LOG,
    EV_PACKET_IN,
    EV_PORT,
    MS,
    OK,
    SECOND,
    Event,
    Fake,
    fake_device,
)

NEVER = (1 << 64) - 1
D6, D8 = range(2)


@pytest.fixture
def device() -> Iterator[Fake]:
    with fake_device() as made:
        yield made


def push(device: Fake, kind: int, number: int, data: bytes = b"") -> None:
    device.call("fake_event", kind, number, data, len(data))


def drain(device: Fake) -> list[Event]:
    found = []
    while (event := device.event()) is not None:
        found.append(event)
    return found


# ---- events ----


def test_events_are_read_in_the_order_of_arrival(device: Fake) -> None:
    kinds = [EV_LOG, EV_PACKET_IN, EV_PORT, EV_PACKET_IN, EV_IDLE, EV_DIGEST]
    for number, kind in enumerate(kinds):
        device.clock(number * 10)
        push(device, kind, number, bytes([number]) * number)
    assert [(e.type, e.b, e.time, e.data) for e in drain(device)] == [
        (kind, number, number * 10, bytes([number]) * number) for number, kind in enumerate(kinds)
    ]


def test_a_flood_of_one_kind_drops_of_that_kind_only(device: Fake) -> None:
    for number in range(200_000):
        push(device, EV_IDLE, number)
    push(device, EV_PACKET_IN, 1, b"packet")
    drops = device.stats().event_drops
    events = drain(device)
    assert [e.b for e in events[:-1]] == list(range(200_000 - drops[EV_IDLE]))
    assert events[-1].data == b"packet"
    assert 0 < drops[EV_IDLE] < 150_000
    assert [drops[kind] for kind in (EV_PACKET_IN, EV_DIGEST, EV_PORT, EV_LOG)] == [0] * 4


def test_the_ring_wraps_without_losing_or_mixing_records(device: Fake) -> None:
    wanted: list[int] = []
    number = 0
    for _ in range(60):  # never empty, and longer than the ring altogether
        for _ in range(90):
            before = device.stats().event_drops[EV_PACKET_IN]
            push(device, EV_PACKET_IN, number, number.to_bytes(4, "big") * (number * 37 % 1000))
            if device.stats().event_drops[EV_PACKET_IN] == before:
                wanted.append(number)
            number += 1
        for _ in range(70):
            event = device.event()
            assert event is not None
            assert event.b == wanted.pop(0)
            assert event.data == event.b.to_bytes(4, "big") * (event.b * 37 % 1000)
    assert [e.b for e in drain(device)] == wanted


def test_events_longer_than_the_buffer_or_the_limit_are_dropped(device: Fake) -> None:
    push(device, EV_LOG, 1, bytes(100))
    push(device, EV_LOG, 2, bytes(EVENT_MAX + 1))
    push(device, EV_LOG, 3)
    event = device.event(cap=99)
    assert event is not None
    assert (event.result, event.b, event.length) == (EINVAL, 1, 100)
    assert [e.b for e in drain(device)] == [3]
    assert device.stats().event_drops[EV_LOG] == 1


def test_a_waiting_reader_gets_an_event_or_is_woken(device: Fake) -> None:
    found: list[Event | None] = []
    for act in (lambda: push(device, EV_PORT, 7), lambda: device.call("sw_event_wake")):
        reader = threading.Thread(target=lambda: found.append(device.event(timeout_ms=60_000)))
        reader.start()
        act()
        reader.join(timeout=60)
        assert not reader.is_alive()
    assert [event and event.b for event in found] == [7, None]
    assert device.event(timeout_ms=1) is None


# ---- digests ----


def digest_set(
    device: Fake, digest: int = D6, *, size: int = 0, timeout: int = 0, ack: int = 0, on: bool = True
) -> int:
    return device.call("sw_digest_set", digest, c.byref(DigestConfig(on, size, timeout, ack)))


def learn(device: Fake, *samples: int, digest: int = D6) -> None:
    for sample in samples:
        device.call("fake_digest", digest, sample.to_bytes((6, 8)[digest], "big"))


def lists(device: Fake) -> list[tuple[int, int, list[int]]]:
    """(digest, list id, samples) of what was sent."""
    found = []
    for event in drain(device):
        assert event.type == EV_DIGEST
        size = (6, 8)[event.a]
        samples = [int.from_bytes(event.data[i : i + size], "big") for i in range(0, event.length, size)]
        assert len(samples) == event.count
        found.append((event.a, event.b, samples))
    return found


def test_a_digest_that_is_not_enabled_sends_nothing(device: Fake) -> None:
    learn(device, 1, 2)
    assert lists(device) == []
    assert digest_set(device) == OK
    learn(device, 3)
    assert digest_set(device, on=False) == OK
    learn(device, 4)
    assert lists(device) == [(D6, 1, [3])]
    assert digest_set(device, 2) == ENOENT


def test_without_a_timeout_every_sample_goes_at_once(device: Fake) -> None:
    assert digest_set(device, size=10) == OK
    assert digest_set(device, D8, size=10) == OK
    learn(device, 1, 1)
    learn(device, 5, digest=D8)
    assert lists(device) == [(D6, 1, [1]), (D6, 2, [1]), (D8, 1, [5])]


def test_a_list_goes_when_it_is_full_of_distinct_samples(device: Fake) -> None:
    assert digest_set(device, size=3, timeout=SECOND) == OK
    learn(device, 1, 2, 1, 2)
    assert lists(device) == []
    learn(device, 3, 1, 4, 5)
    assert lists(device) == [(D6, 1, [1, 2, 3]), (D6, 2, [1, 4, 5])]


def test_a_list_goes_when_its_first_sample_is_old_enough(device: Fake) -> None:
    assert digest_set(device, size=100, timeout=10 * MS) == OK
    assert device.call("sw_digest_next") == NEVER
    device.clock(5 * MS)
    learn(device, 1)
    device.clock(9 * MS)
    learn(device, 2)
    assert device.call("sw_digest_next") == 15 * MS
    device.call("sw_digest_sweep", 15 * MS - 1)
    assert lists(device) == []
    device.call("sw_digest_sweep", 15 * MS)
    assert lists(device) == [(D6, 1, [1, 2])]
    assert device.call("sw_digest_next") == NEVER


def test_samples_are_held_back_until_their_list_is_acknowledged(device: Fake) -> None:
    assert digest_set(device, size=1, ack=SECOND) == OK
    learn(device, 1, 2, 1, 2)
    assert lists(device) == [(D6, 1, [1]), (D6, 2, [2])]
    assert device.call("sw_digest_ack", D6, 2) == OK
    assert device.call("sw_digest_ack", D6, 99) == OK
    learn(device, 1, 2)
    assert lists(device) == [(D6, 3, [2])]
    assert device.call("sw_digest_ack", D6, 2) == OK  # again: changes nothing
    learn(device, 2)
    assert lists(device) == []
    assert device.call("sw_digest_ack", 2, 1) == ENOENT


def test_samples_are_held_back_no_longer_than_the_ack_timeout(device: Fake) -> None:
    assert digest_set(device, size=1, ack=SECOND) == OK
    learn(device, 1)
    device.clock(SECOND - 1)
    learn(device, 1, 2)
    device.clock(SECOND)
    learn(device, 1, 2)
    assert lists(device) == [(D6, 1, [1]), (D6, 2, [2]), (D6, 3, [1])]


def test_a_shorter_list_size_sends_what_has_been_gathered(device: Fake) -> None:
    assert digest_set(device, timeout=SECOND) == OK
    learn(device, 1, 2)
    assert digest_set(device, size=2, timeout=SECOND) == OK
    assert lists(device) == [(D6, 1, [1, 2])]


def test_unacknowledged_samples_do_not_grow_without_bound(device: Fake) -> None:
    assert digest_set(device, ack=SECOND) == OK
    learn(device, *range(40_000))
    assert len(lists(device)) == 40_000
    learn(device, 0, 39_999)  # the first was forgotten, the last is still held
    assert lists(device) == [(D6, 40_001, [0])]


def test_a_list_that_nobody_could_read_is_not_held_back(device: Fake) -> None:
    assert digest_set(device, ack=SECOND) == OK
    sample = 0
    while not device.stats().event_drops[EV_DIGEST]:
        sample += 1
        learn(device, sample)
    drain(device)
    learn(device, sample, sample - 1)
    assert [samples for _, _, samples in lists(device)] == [[sample]]
