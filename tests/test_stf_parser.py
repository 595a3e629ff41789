"""STF text to statements, and what errors say."""

from __future__ import annotations

import pytest

from softswitch.stf.parser import parse
from softswitch.stf.syntax import (
    ActionCall,
    Add,
    CheckCounter,
    Command,
    Expect,
    KeyValue,
    NoPacket,
    Number,
    Packet,
    RemoveAll,
    SetDefault,
    StfError,
    Wait,
)


def test_packet_joins_its_digit_groups() -> None:
    assert parse("packet 3 0a0b 0C") == [Packet(1, 3, b"\x0a\x0b\x0c")]


def test_keywords_take_any_case_and_comments_are_skipped() -> None:
    assert parse("# first\n\nPACKET 0 00 # last\nWait") == [Packet(3, 0, b"\x00"), Wait(4)]


@pytest.mark.parametrize(
    ("text", "pattern", "exact"),
    [
        ("expect 1 0a ** ff", "0A**FF", False),
        ("expect 1 0a $", "0A", True),
        ("expect 1 *1$", "*1", True),
        ("expect 1 $", "", True),
        ("expect 1", None, False),
    ],
)
def test_expect_keeps_wildcards_and_the_exact_end(text: str, pattern: str | None, exact: bool) -> None:
    assert parse(text) == [Expect(1, 1, pattern, exact)]


def test_add_with_priority_masks_and_alias() -> None:
    text = "add test1 100 data.$valid:0b1 data.f1:0x****0101 act(val:0x7f, port:2) = A"
    keys = (("data.$valid", KeyValue(Number(2, "1"))), ("data.f1", KeyValue(Number(16, "****0101"))))
    call = ActionCall("act", (("val", 0x7F), ("port", 2)))
    assert parse(text) == [Add(1, "test1", 100, keys, call, "A")]


def test_add_without_priority_or_keys() -> None:
    assert parse("add c.t c.a()") == [Add(1, "c.t", None, (), ActionCall("c.a", ()), None)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0x0a00/24", KeyValue(Number(16, "0a00"), prefix_len=24)),
        ("0x0a&&&0xf0", KeyValue(Number(16, "0a"), mask=0xF0)),
        ("1->9", KeyValue(Number(10, "1"), high=9)),
        ("1..9", KeyValue(Number(10, "1"), high=9)),
        ("0b1*0", KeyValue(Number(2, "1*0"))),
    ],
)
def test_key_value_forms(value: str, expected: KeyValue) -> None:
    (statement,) = parse(f"add t f:{value} a()")
    assert isinstance(statement, Add)
    assert statement.keys == (("f", expected),)


def test_quoted_names_and_stack_elements() -> None:
    (statement,) = parse('add "a b" hdr.stack[1].f:1 extra$0.h:2 x.y()')
    assert isinstance(statement, Add)
    assert (statement.table, [name for name, _ in statement.keys]) == ("a b", ["hdr.stack[1].f", "extra$0.h"])


def test_other_statements() -> None:
    text = "setdefault t a(1)\nremove all\nno_packet\ncheck_counter c(2) packets >= 3\ncheck_counter c($A)"
    assert parse(text) == [
        SetDefault(1, "t", ActionCall("a", (("", 1),))),
        RemoveAll(2),
        NoPacket(3),
        CheckCounter(4, "c", 2, "packets", ">=", 3),
        CheckCounter(5, "c", "$A", None, "==", 0),
    ]


def test_commands_take_names_numbers_and_rates() -> None:
    text = "mirroring_add 5 4\nmc_node_create 400 6 7\nregister_write a.r 1 0x10\nmeter_set_rates m 0 0.5:4 1:5"
    assert parse(text) == [
        Command(1, "mirroring_add", "", (5, 4), ()),
        Command(2, "mc_node_create", "", (400, 6, 7), ()),
        Command(3, "register_write", "a.r", (1, 16), ()),
        Command(4, "meter_set_rates", "m", (0,), ((0.5, 4), (1.0, 5))),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("packet 1 abc", "packet data has an odd number of digits (3)"),
        ("packet 1 0xab", "packet data '0XAB' has characters other than hexadecimal digits"),
        ("packet 1", "packet needs hexadecimal data after the port"),
        ("packet x 00", "packet needs a port number, not 'x'"),
        ("packet 512 00", "port 512 is not within 0..511"),
        ("expect 1 0$0", "expected data '0$0' has characters other than hexadecimal digits, '*' and a last '$'"),
        ("add t f:1 a(x:1 y:2)", "add: expected ',', not 'y'"),
        ("add t f:1 a(x:1", "add: expected ',' at the end of the line"),
        ("add t f:1 a(x:0x*1)", "add: the argument's value cannot hold '*': 0x*1"),
        ("add t f:@", "cannot read '@'"),
        ("wait 1", "unexpected '1' after the statement"),
        ("remove some", "only 'remove all' is known"),
        ("check_counter c(1) frames == 1", "a counter counts 'packets' or 'bytes', not 'frames'"),
        ("check_counter c(1) bytes ~ 1", "cannot read '~ 1'"),
    ],
)
def test_errors_name_file_line_and_reason(text: str, message: str) -> None:
    with pytest.raises(StfError) as caught:
        parse("\n" + text, "some.stf")
    assert str(caught.value) == f"some.stf:2: {message}"


def test_unknown_statement_lists_the_known_ones() -> None:
    with pytest.raises(StfError, match=r"unknown statement 'send'; known are add, check_counter, counter_read, "):
        parse("send 1 00")
