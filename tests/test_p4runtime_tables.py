"""TableEntry: keys, actions, default entries, constant tables, reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4r

from softswitch.device_types import Call, Lpm, Range, Ternary
from tests.p4runtime_client import (
    DELETE,
    INSERT,
    MODIFY,
    Bench,
    Failure,
    Program,
    exact,
    lpm,
    optional,
    range_,
    ternary,
)

NAME = "TablesIngress"


@pytest.fixture
def bench(programs: Path) -> Iterator[Bench]:
    with Bench(Program.load(programs, "tables")) as made:
        yield made


def _id(bench: Bench, table: str) -> int:
    return bench.program.id(table)


@pytest.mark.parametrize(
    ("table", "action", "match", "priority", "stored"),
    [
        ("exact_match", "set_exact", [exact(1, 5), exact(2, 700)], 0, {"narrow": 5, "word": 700}),
        ("lpm_match", "set_lpm", [exact(1, 1), lpm(2, 0x0A000000, 8)], 0, {"flag": 1, "address": Lpm(0x0A000000, 8)}),
        ("lpm_match", "set_lpm", [exact(1, 0)], 0, {"flag": 0, "address": None}),
        (
            "ternary_match",
            "set_ternary",
            [ternary(1, 0x0A00, 0xFF00)],
            3,
            {"word": Ternary(0x0A00, 0xFF00), "address": None, "narrow": None},
        ),
        ("range_match", "set_range", [range_(1, 5, 900)], 9, {"word": Range(5, 900), "narrow": None}),
        ("optional_match", "set_optional", [optional(1, 1 << 47)], 1, {"mac": 1 << 47, "narrow": None}),
    ],
)
def test_an_entry_of_each_match_kind_reaches_the_device_and_is_read_back_as_written(
    bench: Bench, table: str, action: str, match: list[p4r.FieldMatch], priority: int, stored: dict[str, object]
) -> None:
    entry = bench.program.entry(table, match, bench.program.action(action, 77), priority=priority, metadata=b"m\0")
    bench.controller.insert(table_entry=entry)
    (on_device,) = bench.device.tables[f"{NAME}.{table}"].values()
    assert {name.split(".")[-1]: value for name, value in on_device.match.items()} == stored
    assert on_device.priority == priority
    assert on_device.target == Call(f"{NAME}.{action}", (77,))
    assert bench.controller.entries(p4r.TableEntry(table_id=entry.table_id)) == [entry]
    bench.controller.delete(table_entry=p4r.TableEntry(table_id=entry.table_id, match=match, priority=priority))
    assert bench.device.tables[f"{NAME}.{table}"] == {}
    assert bench.controller.entries(p4r.TableEntry(table_id=entry.table_id)) == []


def test_byte_strings_are_taken_in_any_length_and_answered_in_the_shortest(bench: Bench) -> None:
    written = bench.program.entry("mixed", [], bench.program.action("set_mixed", 0), priority=1)
    written.match.add(field_id=1).exact.value = b"\0\0\1"
    address = written.match.add(field_id=2)
    address.lpm.value, address.lpm.prefix_len = b"\0\0\0\0\x01\0", 24
    mac = written.match.add(field_id=3)
    mac.ternary.value, mac.ternary.mask = b"\0\0\x05", b"\0\xff"
    word = written.match.add(field_id=4)
    word.range.low, word.range.high = b"\0\0", b"\0\0\x10"
    written.match.add(field_id=5).optional.value = b"\0\x7f"
    written.action.action.params[0].value = b"\0\0\0\x09"
    bench.controller.insert(table_entry=written)
    (read,) = bench.controller.entries(p4r.TableEntry(table_id=written.table_id))
    assert read.match[0].exact.value == b"\1"
    assert read.match[1].lpm.value == b"\1\0"
    assert (read.match[2].ternary.value, read.match[2].ternary.mask) == (b"\5", b"\xff")
    assert (read.match[3].range.low, read.match[3].range.high) == (b"\0", b"\x10")
    assert read.match[4].optional.value == b"\x7f"
    assert read.action.action.params[0].value == b"\x09"
    assert bench.refused(INSERT, table_entry=read) == (
        "ALREADY_EXISTS",
        f"table {NAME}.mixed: the entry already exists",
    )


def _raw(kind: str, **values: object) -> p4r.FieldMatch:
    match = p4r.FieldMatch(field_id=1)
    message = getattr(match, kind)
    message.SetInParent()
    for name, value in values.items():
        setattr(message, name, value)
    return match


@pytest.mark.parametrize(
    ("table", "match", "message"),
    [
        ("exact_match", [], "match field hdr.request.narrow (1) is missing; it is an exact match"),
        ("exact_match", [exact(1, 5)], "match field hdr.request.word (2) is missing; it is an exact match"),
        ("exact_match", [exact(1, 5), exact(1, 5)], "match field hdr.request.narrow is there twice"),
        (
            "exact_match",
            [exact(9, 5)],
            "unknown match field id 9; valid: hdr.request.narrow (1), hdr.request.word (2)",
        ),
        ("exact_match", [exact(1, 128)], "match field hdr.request.narrow: the value 0x80 does not fit in bit<7>"),
        (
            "exact_match",
            [_raw("exact")],
            "match field hdr.request.narrow: the value is empty; a bit<7> needs at least one byte",
        ),
        ("exact_match", [ternary(1, 1, 1)], "match field hdr.request.narrow is matched as exact, not as ternary"),
        (
            "exact_match",
            [p4r.FieldMatch(field_id=1)],
            "match field hdr.request.narrow is matched as exact, not as nothing",
        ),
        ("lpm_match", [lpm(2, 0, 33)], "match field hdr.request.address: the prefix length 33 is not in 1..32"),
        (
            "lpm_match",
            [lpm(2, 0, 0)],
            "match field hdr.request.address: the prefix length 0 is not in 1..32; leave a don't care field out",
        ),
        (
            "lpm_match",
            [lpm(2, 0x0A000001, 8)],
            "match field hdr.request.address: the value 0xa000001 has bits beyond its prefix length 8",
        ),
        (
            "ternary_match",
            [ternary(1, 0, 0)],
            "match field hdr.request.word: the mask is 0; leave a don't care field out",
        ),
        (
            "ternary_match",
            [ternary(1, 3, 1)],
            "match field hdr.request.word: the value 0x3 has bits outside its mask 0x1",
        ),
        (
            "ternary_match",
            [ternary(1, 1, 1 << 16)],
            "match field hdr.request.word, mask: the value 0x10000 does not fit in bit<16>",
        ),
        (
            "range_match",
            [range_(1, 6, 5)],
            "match field hdr.request.word: the low end 0x6 is above the high end 0x5",
        ),
        (
            "range_match",
            [range_(1, 0, 0xFFFF)],
            "match field hdr.request.word: the range is the whole field; leave a don't care field out",
        ),
        ("optional_match", [exact(1, 5)], "match field hdr.request.mac is matched as optional, not as exact"),
    ],
)
def test_a_malformed_key_is_refused_by_name(
    bench: Bench, table: str, match: list[p4r.FieldMatch], message: str
) -> None:
    priority = 0 if table in ("exact_match", "lpm_match") else 1
    entry = bench.program.entry(table, match, bench.program.action("NoAction"), priority=priority)
    assert bench.refused(INSERT, table_entry=entry) == ("INVALID_ARGUMENT", f"table {NAME}.{table}: {message}")
    assert bench.device.calls == 7  # the entries of the program


@pytest.mark.parametrize(
    ("table", "match", "priority", "message"),
    [
        ("ternary_match", [], 0, "the priority 0 is not positive; every entry needs one"),
        ("ternary_match", [], -1, "the priority -1 is not positive; every entry needs one"),
        ("exact_match", [exact(1, 1), exact(2, 1)], 5, "the priority 5 is set, but the key needs none"),
    ],
)
def test_priority_is_there_exactly_where_the_key_needs_it(
    bench: Bench, table: str, match: list[p4r.FieldMatch], priority: int, message: str
) -> None:
    entry = bench.program.entry(table, match, bench.program.action("NoAction"), priority=priority)
    assert bench.refused(INSERT, table_entry=entry) == ("INVALID_ARGUMENT", f"table {NAME}.{table}: {message}")


def test_actions_are_checked(bench: Bench) -> None:
    table, key = f"table {NAME}.exact_match", [exact(1, 1), exact(2, 1)]

    def refused(action: p4r.Action) -> tuple[str, str]:
        return bench.refused(INSERT, table_entry=bench.program.entry("exact_match", key, action))

    set_exact = bench.program.action("set_exact", 1)
    other = bench.program.action("set_lpm", 1)
    valid = ", ".join(f"{n} ({bench.program.id(n)})" for n in (f"{NAME}.set_exact", f"{NAME}.drop", "NoAction"))
    assert refused(other) == ("INVALID_ARGUMENT", f"{table}: unknown action id {other.action_id}; valid: {valid}")
    set_exact.params[0].value = b"\1\0\0"
    assert refused(set_exact) == (
        "INVALID_ARGUMENT",
        f"action {NAME}.set_exact: parameter value: the value 0x10000 does not fit in bit<16>",
    )
    set_exact.params[0].param_id = 4
    assert refused(set_exact) == (
        "INVALID_ARGUMENT",
        f"action {NAME}.set_exact: unknown parameter id 4; valid: value (1)",
    )
    del set_exact.params[:]
    assert refused(set_exact) == ("INVALID_ARGUMENT", f"action {NAME}.set_exact: parameter value (1) is missing")
    no_action = bench.program.entry("exact_match", key, None)
    assert bench.refused(INSERT, table_entry=no_action) == ("INVALID_ARGUMENT", f"{table}: an entry needs an action")
    no_action.action.action_profile_member_id = 3
    assert bench.refused(INSERT, table_entry=no_action) == (
        "INVALID_ARGUMENT",
        f"{table} takes an action, not action_profile_member_id",
    )


def test_unknown_tables_are_refused_with_the_valid_ones(bench: Bench) -> None:
    code, message = bench.refused(INSERT, table_entry=p4r.TableEntry(table_id=7))
    assert code == "INVALID_ARGUMENT"
    assert message.startswith(f"unknown table id 7; valid: {NAME}.exact_match ({_id(bench, 'exact_match')}), ")
    assert message.endswith("and 2 more")
    assert bench.refused(INSERT, table_entry=p4r.TableEntry())[0] == "INVALID_ARGUMENT"


def test_modify_changes_action_and_metadata_and_needs_the_entry(bench: Bench) -> None:
    key = [exact(1, 1), exact(2, 1)]
    entry = bench.program.entry("exact_match", key, bench.program.action("set_exact", 1), controller_metadata=4)
    missing = ("NOT_FOUND", f"table {NAME}.exact_match: there is no such entry")
    assert bench.refused(MODIFY, table_entry=entry) == missing
    assert bench.refused(DELETE, table_entry=entry) == missing
    bench.controller.insert(table_entry=entry)
    entry.action.action.CopyFrom(bench.program.action("drop"))
    entry.metadata = b"new"
    bench.controller.modify(table_entry=entry)
    assert bench.controller.entries(p4r.TableEntry(table_id=entry.table_id)) == [entry]
    (on_device,) = bench.device.tables[f"{NAME}.exact_match"].values()
    assert on_device.target == Call(f"{NAME}.drop")
    bench.controller.modify(table_entry=p4r.TableEntry(table_id=entry.table_id, match=key, metadata=b"kept action"))
    entry.metadata, entry.controller_metadata = b"kept action", 0
    assert bench.controller.entries(p4r.TableEntry(table_id=entry.table_id)) == [entry]
    assert on_device.target == Call(f"{NAME}.drop")


def test_a_full_table_refuses_more(bench: Bench) -> None:
    entries = [
        bench.program.entry("exact_match", [exact(1, 1), exact(2, i)], bench.program.action("drop")) for i in range(65)
    ]
    for entry in entries[:64]:
        bench.controller.insert(table_entry=entry)
    assert bench.refused(INSERT, table_entry=entries[64]) == (
        "RESOURCE_EXHAUSTED",
        f"table {NAME}.exact_match is full: it holds 64 entries",
    )


def test_the_default_entry_is_modified_reset_and_read(bench: Bench) -> None:
    table = _id(bench, "lpm_match")
    wanted = p4r.TableEntry(table_id=table, is_default_action=True)
    initial = bench.program.entry("lpm_match", [], bench.program.action("set_lpm", 0xFFFF), is_default_action=True)
    assert bench.controller.entries(wanted) == [initial]
    changed = bench.program.entry("lpm_match", [], bench.program.action("set_lpm", 3), is_default_action=True)
    bench.controller.modify(table_entry=changed)
    assert bench.controller.entries(wanted) == [changed]
    assert bench.device.defaults[f"{NAME}.lpm_match"].target == Call(f"{NAME}.set_lpm", (3,))
    bench.controller.modify(table_entry=wanted)
    assert bench.controller.entries(wanted) == [initial]
    what = f"table {NAME}.lpm_match, default entry"
    for kind in (INSERT, DELETE):
        assert bench.refused(kind, table_entry=changed) == (
            "INVALID_ARGUMENT",
            f"{what}: it always exists; it can be modified, not inserted or deleted",
        )
    changed.priority = 3
    assert bench.refused(MODIFY, table_entry=changed) == (
        "INVALID_ARGUMENT",
        f"{what}: match and priority must not be set",
    )
    constant = bench.program.entry("ternary_match", [], bench.program.action("drop"), is_default_action=True)
    assert bench.refused(MODIFY, table_entry=constant) == (
        "PERMISSION_DENIED",
        f"table {NAME}.ternary_match, default entry: it is constant",
    )


def test_a_table_without_key_takes_no_entries(bench: Bench) -> None:
    entry = bench.program.entry("keyless", [], bench.program.action("set_keyless", 1))
    assert bench.refused(INSERT, table_entry=entry) == (
        "INVALID_ARGUMENT",
        f"table {NAME}.keyless has no key: only its default entry can be written",
    )


def test_constant_entries_can_be_read_but_not_changed(bench: Bench) -> None:
    table = _id(bench, "const_entries")
    entries = bench.controller.entries(p4r.TableEntry(table_id=table))
    action = bench.program.action
    expected = [
        bench.program.entry("const_entries", [ternary(1, 0x0A00, 0xFF00)], action("set_const", 1), priority=4),
        bench.program.entry(
            "const_entries", [ternary(1, 0x0A0B, 0xFFFF), ternary(2, 0x10, 0x70)], action("set_const", 2), priority=3
        ),
        bench.program.entry(
            "const_entries", [ternary(1, 0, 0xF000), ternary(2, 1, 1)], action("set_const", 3), priority=2
        ),
        bench.program.entry("const_entries", [ternary(2, 0x7F, 0x7F)], action("set_const", 4), priority=1),
    ]
    for entry in expected:
        entry.is_const = True
    assert entries == expected
    entry = expected[0]
    entry.is_const = False
    what = f"table {NAME}.const_entries is constant"
    assert bench.refused(DELETE, table_entry=entry) == ("PERMISSION_DENIED", f"{what}: its entries cannot be deleted")
    assert bench.refused(MODIFY, table_entry=entry) == (
        "PERMISSION_DENIED",
        f"{what}: only direct resources of its entries can be modified",
    )
    entry.priority = 9
    assert bench.refused(INSERT, table_entry=entry) == ("PERMISSION_DENIED", f"{what}: its entries cannot be inserted")
    entry.is_const = True
    assert bench.refused(INSERT, table_entry=entry) == (
        "INVALID_ARGUMENT",
        f"table {NAME}.const_entries: is_const must not be set in a write",
    )


def test_reads_filter_by_key_action_priority_and_metadata(bench: Bench) -> None:
    action, program = bench.program.action, bench.program
    first = program.entry("ternary_match", [ternary(1, 1, 0xF)], action("drop"), priority=5, metadata=b"a")
    second = program.entry("ternary_match", [ternary(1, 2, 0xF)], action("set_ternary", 1), priority=5)
    third = program.entry("ternary_match", [], action("drop"), priority=6, controller_metadata=8)
    for entry in (first, second, third):
        bench.controller.insert(table_entry=entry)
    table = first.table_id
    read = bench.controller.entries
    assert read(p4r.TableEntry(table_id=table)) == [first, second, third]
    assert read(p4r.TableEntry(table_id=table, priority=5)) == [first, second]
    assert read(p4r.TableEntry(table_id=table, priority=6)) == [third]
    assert read(p4r.TableEntry(table_id=table, match=first.match)) == [first]
    assert read(p4r.TableEntry(table_id=table, match=first.match, priority=5)) == [first]
    assert read(p4r.TableEntry(table_id=table, match=first.match, priority=6)) == []
    assert read(p4r.TableEntry(table_id=table, metadata=b"a")) == [first]
    assert read(p4r.TableEntry(table_id=table, controller_metadata=8)) == [third]
    only_drop = p4r.TableEntry(table_id=table)
    only_drop.action.action.action_id = program.id("drop")
    assert read(only_drop) == [first, third]
    constant = 4 + 3  # const_entries and validity
    assert len(read(p4r.TableEntry())) == constant + 3
    defaults = read(p4r.TableEntry(is_default_action=True))
    assert [e.table_id for e in defaults] == [t.preamble.id for t in program.p4info.tables]


def test_metadata_is_bounded(bench: Bench) -> None:
    entry = bench.program.entry("exact_match", [exact(1, 1), exact(2, 1)], bench.program.action("drop"))
    entry.metadata = bytes(4097)
    assert bench.refused(INSERT, table_entry=entry) == (
        "INVALID_ARGUMENT",
        f"table {NAME}.exact_match: metadata of 4097 bytes; at most 4096 are kept",
    )


def test_idle_timeouts_are_refused_where_the_table_has_none(bench: Bench) -> None:
    entry = bench.program.entry("exact_match", [exact(1, 1), exact(2, 1)], bench.program.action("drop"))
    entry.idle_timeout_ns = 5
    what = f"table {NAME}.exact_match"
    assert bench.refused(INSERT, table_entry=entry) == (
        "INVALID_ARGUMENT",
        f"{what}: idle_timeout_ns 5 is set, but idle timeouts are not supported here",
    )
    wanted = p4r.TableEntry(table_id=entry.table_id)
    wanted.time_since_last_hit.SetInParent()
    with pytest.raises(Failure) as failure:
        bench.controller.entries(wanted)
    assert failure.value.details == (
        ("INVALID_ARGUMENT", f"{what}: time_since_last_hit is set, but the table has no idle timeout"),
    )
