"""The runtime's tables: lookups against a plain model, entries, default entries, counters, idle timeouts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.native.fake import (
    EEXIST,
    EFULL,
    EINVAL,
    ENOENT,
    EV_IDLE,
    EXACT1,
    EXACT2,
    EXACT5,
    KEYLESS,
    LPM20,
    LPM32,
    LPM_MIXED,
    NO_ACTION,
    NOP,
    OK,
    RANGE2,
    SECOND,
    SET,
    SMALL,
    TERNARY1,
    TERNARY2,
    WIDE,
    Fake,
    Refused,
    fake_device,
    set_args,
)


@pytest.fixture
def device() -> Iterator[Fake]:
    with fake_device() as made:
        yield made


def key(*fields: tuple[int, int]) -> bytes:
    """(value, width in bits) fields, each padded to bytes."""
    return b"".join(value.to_bytes((width + 7) // 8, "big") for value, width in fields)


def key32(value: int) -> bytes:
    return value.to_bytes(4, "big")


# ---- a model: every entry is tried ----


@dataclass(frozen=True, slots=True)
class Field:
    kind: str  # exact, lpm, ternary, range
    width: int


@dataclass(frozen=True, slots=True)
class Entry:
    values: tuple[int, ...]
    masks: tuple[int, ...]
    priority: int

    def match(self, fields: tuple[Field, ...]) -> tuple[bytes, bytes]:
        return (
            key(*((v, f.width) for v, f in zip(self.values, fields, strict=True))),
            key(*((m, f.width) for m, f in zip(self.masks, fields, strict=True))),
        )

    def hits(self, fields: tuple[Field, ...], packet: tuple[int, ...]) -> bool:
        return all(
            v <= p <= m if f.kind == "range" else (p & m) == v
            for f, v, m, p in zip(fields, self.values, self.masks, packet, strict=True)
        )


class Model:
    """The table's contents by handle. BMv2's slots: the lowest free one, and the lower one wins a tie."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self.entries: dict[int, tuple[int, Entry]] = {}

    def add(self, handle: int, entry: Entry) -> None:
        taken = {slot for slot, _ in self.entries.values()}
        self.entries[handle] = next(slot for slot in range(len(taken) + 1) if slot not in taken), entry

    def lookup(self, packet: tuple[int, ...]) -> int:
        best, rank = 0, (0, 0, 0)
        for handle, (slot, entry) in self.entries.items():
            if not entry.hits(self.fields, packet):
                continue
            prefix = sum(m.bit_count() for f, m in zip(self.fields, entry.masks, strict=True) if f.kind == "lpm")
            lpm_table = not any(f.kind in ("ternary", "range") for f in self.fields)
            this = (entry.priority, prefix if lpm_table else 0, -slot)
            if best == 0 or this > rank:
                best, rank = handle, this
        return best


class Draw:
    """Random values from a small pool, so that entries and packets meet."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, width: int) -> int:
        kind = self.random.randrange(3)
        if kind == 0:
            return self.random.getrandbits(width)
        value = self.random.randrange(6) << max(width - 3, 0) if kind == 1 else self.random.randrange(40)
        return value & ((1 << width) - 1)

    def entry(self, fields: tuple[Field, ...]) -> Entry:
        values, masks = [], []
        for field in fields:
            full = (1 << field.width) - 1
            value, mask = self.value(field.width), full
            if field.kind == "lpm":
                mask = full ^ full >> self.random.randrange(field.width + 1)
            elif field.kind == "ternary":
                mask = self.random.choice([0, full, full, self.value(field.width), full ^ 0xF & full])
            elif field.kind == "range":
                value, mask = sorted((value, self.random.choice([value, full, self.value(field.width)])))
            values.append(value if field.kind == "range" else value & mask)
            masks.append(mask)
        has_priority = any(f.kind in ("ternary", "range") for f in fields)
        return Entry(tuple(values), tuple(masks), self.random.randrange(1, 50) if has_priority else 0)


def exact(*widths: int) -> tuple[Field, ...]:
    return tuple(Field("exact", width) for width in widths)


TABLES = {
    "exact, one word": (EXACT1, exact(32)),
    "exact, two words": (EXACT2, exact(48, 9, 16)),
    "exact, five words": (EXACT5, exact(128, 128, 8)),
    "lpm": (LPM32, (Field("lpm", 32),)),
    "lpm of no whole bytes": (LPM20, (Field("lpm", 20),)),
    "lpm with exact fields": (LPM_MIXED, (Field("exact", 12), Field("lpm", 128), Field("exact", 8))),
    "ternary, one word": (TERNARY1, (Field("ternary", 32), Field("exact", 9))),
    "ternary, two words": (
        TERNARY2,
        (Field("ternary", 32), Field("exact", 4), Field("lpm", 32), Field("ternary", 9)),
    ),
    "range": (RANGE2, (Field("range", 16), Field("ternary", 8), Field("range", 12))),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("most", [6, 150])
def test_lookup_agrees_with_trying_every_entry(device: Fake, name: str, most: int) -> None:
    table, fields = TABLES[name]
    draw, model = Draw(most), Model(fields)
    matches: dict[tuple[bytes, bytes, int], int] = {}
    for step in range(10 * most):
        entry = draw.entry(fields)
        match = *entry.match(fields), entry.priority
        if match in matches:
            assert device.find(table, match[0], match[1], priority=match[2]) == matches[match]
            with pytest.raises(Refused, match=str(EEXIST)):
                device.add(table, match[0], match[1], priority=match[2])
        elif len(model.entries) < most and draw.random.random() < 0.7:
            handle = device.add(table, match[0], match[1], priority=match[2], port=step & 511)
            model.add(handle, entry)
            matches[match] = handle
        elif model.entries:
            handle = draw.random.choice(list(model.entries))
            gone = model.entries.pop(handle)[1]
            assert device.delete(table, handle) == OK
            del matches[*gone.match(fields), gone.priority]
            assert device.find(table, *gone.match(fields), priority=gone.priority) is None
        packets = [tuple(draw.value(f.width) for f in fields)]
        if model.entries and step % 2:
            near = draw.random.choice(list(model.entries.values()))[1]
            packets.append(tuple(draw.random.choice([v, m, v | draw.value(f.width) & ~m & ((1 << f.width) - 1)])
                                 for f, v, m in zip(fields, near.values, near.masks, strict=True)))  # fmt: skip
        for packet in packets:
            packet_key = key(*((p, f.width) for p, f in zip(packet, fields, strict=True)))
            assert device.apply(table, packet_key).handle == model.lookup(packet)
    assert device.call("sw_table_count", table) == len(model.entries)
    for handle in model.entries:
        assert device.delete(table, handle) == OK
    assert device.call("sw_table_count", table) == 0


def test_a_large_exact_table_finds_every_entry_and_deletes_them_again(device: Fake) -> None:
    handles = {i: device.add(EXACT1, key32(i * 7919), port=i % 512) for i in range(20_000)}
    assert all(device.apply(EXACT1, key32(i * 7919)).handle == handle for i, handle in handles.items())
    assert all(device.delete(EXACT1, handles[i]) == OK for i in range(0, 20_000, 2))
    assert [device.apply(EXACT1, key32(i * 7919)).handle for i in range(4)] == [0, handles[1], 0, handles[3]]


def test_many_ternary_rules_of_one_mask_go_in_the_order_of_priority(device: Fake) -> None:
    mask = b"\xff\xff\xff\xff\x01\xff"
    handles = [device.add(TERNARY1, key32(i) + b"\0\1", mask, priority=i + 1) for i in range(100)]
    overall = device.add(TERNARY1, b"\0\0\0\0\0\1", b"\0\0\0\0\1\xff", priority=50)
    assert device.apply(TERNARY1, key32(99) + b"\0\1").handle == handles[99]
    assert device.apply(TERNARY1, key32(20) + b"\0\1").handle == overall
    for handle in reversed(handles):  # the best rule goes each time
        assert device.delete(TERNARY1, handle) == OK
        assert device.apply(TERNARY1, key32(0) + b"\0\1").handle == overall


# ---- entries ----


@pytest.mark.parametrize(
    ("table", "match_key", "mask", "error"),
    [
        (EXACT2, key((0, 48), (512, 9)) + bytes(2), None, EINVAL),  # wider than the field
        (LPM32, key32(1), None, EINVAL),  # no mask
        (LPM32, key32(1), b"\xff\x00\xff\x00", EINVAL),  # no prefix
        (RANGE2, b"\0\5\0\0\0", b"\0\4\xff\0\0", EINVAL),  # low above high
        (RANGE2, b"\0\0\0\0\0", b"\0\4\xff\x1f\xff", EINVAL),  # high above the field
        (KEYLESS, b"", None, EINVAL),
        (99, key32(1), None, ENOENT),
    ],
)
def test_bad_matches_are_refused(device: Fake, table: int, match_key: bytes, mask: bytes | None, error: int) -> None:
    with pytest.raises(Refused, match=str(error)):
        device.add(table, match_key, mask)


@pytest.mark.parametrize(
    ("action", "args"), [(SET, bytes(7)), (SET, bytes(9)), (SET, b"\x02" + bytes(7)), (NOP, b"\0"), (3, b"")]
)
def test_bad_actions_are_refused(device: Fake, action: int, args: bytes) -> None:
    with pytest.raises(Refused, match=str(EINVAL)):
        device.add(EXACT1, key32(1), action=action, args=args)
    assert device.call("sw_table_count", EXACT1) == 0


def test_a_full_table_refuses_more_but_tells_duplicates(device: Fake) -> None:
    first = device.add(SMALL, key32(1))
    device.add(SMALL, key32(2))
    with pytest.raises(Refused, match=str(EFULL)):
        device.add(SMALL, key32(3))
    with pytest.raises(Refused, match=str(EEXIST)):
        device.add(SMALL, key32(2))
    assert device.delete(SMALL, first) == OK
    assert device.add(SMALL, key32(3)) != first


def test_handles_start_at_one_and_are_not_reused(device: Fake) -> None:
    assert [device.add(EXACT1, key32(i)) for i in range(3)] == [1, 2, 3]
    assert device.delete(EXACT1, 2) == OK
    again = device.add(EXACT1, key32(1))
    assert again not in (1, 2, 3)
    assert device.delete(EXACT1, 2) == ENOENT
    assert device.apply(EXACT1, key32(1)).handle == again


def test_arguments_arrive_as_native_integers(device: Fake) -> None:
    device.add(EXACT1, key32(1), args=set_args(0x123, 0xA1B2C3D4E5F6))
    args = bytes(range(1, 17)) + bytes(range(101, 126))
    device.add(EXACT1, key32(2), action=WIDE, args=args)
    hit = device.apply(EXACT1, key32(1))
    assert (hit.action, hit.port, hit.args[8:16]) == (SET, 0x123, bytes.fromhex("f6e5d4c3b2a10000"))
    assert device.apply(EXACT1, key32(2)).args == bytes(range(16, 0, -1)) + bytes(range(125, 100, -1)) + bytes(7)


def test_modify_changes_what_an_entry_does_and_keeps_its_counter(device: Fake) -> None:
    handle = device.add(EXACT1, key32(1), port=1)
    device.apply(EXACT1, key32(1))
    assert device.modify(EXACT1, handle, port=2) == OK
    assert device.apply(EXACT1, key32(1)).port == 2
    assert device.entry_stats(EXACT1, handle)[:2] == (2, 200)
    assert device.modify(EXACT1, handle + 1, port=2) == ENOENT


# ---- default entries ----


def test_a_table_without_default_action_does_nothing_on_a_miss(device: Fake) -> None:
    assert device.apply(EXACT1, key32(1)).action == NO_ACTION


def test_default_entries_are_set_and_reset(device: Fake) -> None:
    assert (device.apply(KEYLESS).action, device.apply(KEYLESS).port) == (SET, 7)
    args = set_args(9)
    assert device.call("sw_table_set_default", KEYLESS, SET, args, len(args)) == OK
    assert device.apply(KEYLESS).port == 9
    assert device.call("sw_table_set_default", KEYLESS, SET, args, 3) == EINVAL
    assert device.call("sw_table_reset_default", KEYLESS) == OK
    assert device.apply(KEYLESS).port == 7
    assert device.call("sw_table_set_default", 99, NOP, b"", 0) == ENOENT


# ---- counters and idle timeouts ----


def test_entries_count_packets_and_received_bytes(device: Fake) -> None:
    handle = device.add(SMALL, key32(1))
    for length in (64, 1500):
        device.apply(SMALL, key32(1), length=length)
    device.apply(SMALL, key32(2), length=10)
    assert device.entry_stats(SMALL, handle)[:2] == (2, 1564)
    assert device.entry_stats(SMALL, 0)[:2] == (1, 10)
    assert device.call("sw_entry_counter_set", SMALL, handle, 5, 6) == OK
    assert device.entry_stats(SMALL, handle)[:2] == (5, 6)


def sweep(device: Fake, now: int) -> list[tuple[int, int]]:
    """(table, handle) of the entries that are said to be idle at that time."""
    device.clock(now)
    device.call("sw_table_sweep", now)
    found = []
    while (event := device.event()) is not None:
        assert (event.type, event.time) == (EV_IDLE, now)
        found.append((event.a, event.b))
    return found


def test_an_idle_entry_is_reported_once_until_it_is_hit_again(device: Fake) -> None:
    handle = device.add(SMALL, key32(1), idle_timeout_ns=3 * SECOND)
    assert sweep(device, 2 * SECOND) == []
    device.apply(SMALL, key32(1))
    assert sweep(device, 5 * SECOND - 1) == []
    assert device.entry_stats(SMALL, handle)[2] == 3 * SECOND - 1
    assert sweep(device, 5 * SECOND) == [(SMALL, handle)]
    assert sweep(device, 60 * SECOND) == []
    device.apply(SMALL, key32(1))
    assert sweep(device, 63 * SECOND - 1) == []
    assert sweep(device, 63 * SECOND) == [(SMALL, handle)]


def test_modify_starts_or_stops_the_timeout(device: Fake) -> None:
    handle = device.add(SMALL, key32(1), idle_timeout_ns=SECOND)
    device.clock(SECOND // 2)
    assert device.modify(SMALL, handle, idle_timeout_ns=SECOND) == OK
    assert sweep(device, SECOND) == []
    assert sweep(device, 3 * SECOND // 2) == [(SMALL, handle)]
    assert device.modify(SMALL, handle) == OK
    assert sweep(device, 100 * SECOND) == []


def test_a_deleted_entry_is_not_reported(device: Fake) -> None:
    gone = device.add(SMALL, key32(1), idle_timeout_ns=SECOND)
    kept = device.add(SMALL, key32(2), idle_timeout_ns=SECOND)
    assert device.delete(SMALL, gone) == OK
    assert sweep(device, SECOND) == [(SMALL, kept)]


@pytest.mark.parametrize("step", [SECOND // 100, SECOND, 50 * SECOND])
def test_timeouts_of_any_length_expire_at_the_first_sweep_after(device: Fake, step: int) -> None:
    timeouts = [SECOND // 10 * (i + 1) ** 2 for i in range(30)]
    due = {device.add(EXACT1, key32(i), idle_timeout_ns=t): t for i, t in enumerate(timeouts)}
    now, seen = 0, {}
    while now < 100 * SECOND:
        now += step
        seen.update({handle: now for _, handle in sweep(device, now)})
    assert seen == {handle: -(-t // step) * step for handle, t in due.items()}


def test_all_calls_refuse_an_unknown_table(device: Fake) -> None:
    calls: list[Callable[[], int]] = [
        lambda: device.call("sw_table_delete", 99, 1),
        lambda: device.call("sw_table_reset_default", 99),
        lambda: device.call("sw_table_count", 99),
        lambda: device.call("sw_entry_counter_set", 99, 0, 0, 0),
    ]
    assert [call() for call in calls] == [ENOENT] * 4
