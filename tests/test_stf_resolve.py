"""From the names and numbers of an STF file to a program's objects and match values."""

from __future__ import annotations

from pathlib import Path

import pytest

from softswitch import bmv2_json
from softswitch.device import Call, Lpm, MatchValue, Range, Ternary
from softswitch.model import Program
from softswitch.stf.parser import parse
from softswitch.stf.resolve import ResolveError, find_call, find_key, find_table, resolve_name
from softswitch.stf.syntax import Add

PROGRAM = Path(__file__).parent / "p4" / "build" / "tables.json"


@pytest.fixture(scope="module")
def program() -> Program:
    return bmv2_json.load(PROGRAM)


def add(text: str) -> Add:
    (statement,) = parse(f"add {text}")
    assert isinstance(statement, Add)
    return statement


def match(program: Program, text: str) -> dict[str, MatchValue]:
    statement = add(text)
    return find_key(find_table(program, statement.table), statement.keys)


def test_a_name_may_be_an_unambiguous_end() -> None:
    assert resolve_name("table", "b.c", ["a.b.c", "x.c"]) == "a.b.c"
    assert resolve_name("table", "c", ["a.b.c", "x.dc"]) == "a.b.c"
    assert resolve_name("table", "dc", ["a.b.c", "x.adc"]) == "x.adc"


def test_an_ambiguous_or_unknown_name_lists_the_choices() -> None:
    with pytest.raises(ResolveError, match=r"table 'c' is ambiguous: a\.c, b\.c"):
        resolve_name("table", "c", ["a.c", "b.c"])
    with pytest.raises(ResolveError, match=r"no table 'd'; the program has a\.c, b\.c"):
        resolve_name("table", "d", ["a.c", "b.c"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0x0a00****", Lpm(0x0A000000, 16)),
        ("0x0a000001/8", Lpm(0x0A000000, 8)),
        ("0x0a010065", Lpm(0x0A010065, 32)),
        ("167837953", Lpm(0x0A010101, 32)),
    ],
)
def test_lpm_values(program: Program, value: str, expected: Lpm) -> None:
    assert match(program, f"lpm_match address:{value} drop()") == {
        "hdr.request.flag": 0,
        "hdr.request.address": expected,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0x**25", Ternary(0x25, 0xFF)),
        ("0x25**", Ternary(0x2500, 0xFF00)),
        ("0x25", Ternary(0x25, 0xFF)),  # the digits that are written, as p4c's driver has it
        ("37", Ternary(0x25, 0xFFFF)),
        ("0x25&&&0x0f", Ternary(0x05, 0x0F)),
    ],
)
def test_ternary_values(program: Program, value: str, expected: Ternary) -> None:
    key = match(program, f"ternary_match word:{value} drop()")
    assert key == {"hdr.request.word": expected, "hdr.request.address": None, "hdr.request.narrow": None}


def test_range_and_exact_values(program: Program) -> None:
    assert match(program, "range_match word:1->0x10 narrow:7 drop()") == {
        "hdr.request.word": Range(1, 16),
        "hdr.request.narrow": Range(7, 7),
    }
    assert match(program, "exact_match request.word:5 drop()") == {"hdr.request.narrow": 0, "hdr.request.word": 5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exact_match nowhere:1 drop()", "table TablesIngress.exact_match has no key field 'nowhere'; it has "
         "hdr.request.narrow, hdr.request.word"),
        ("exact_match word:0x1* drop()", "hdr.request.word is an exact field and takes a plain number, not 0x1*"),
        ("exact_match narrow:128 drop()", "128 does not fit the 7 bits of hdr.request.narrow"),
        ("lpm_match address:1->2 drop()", "hdr.request.address is an lpm field and takes VALUE/LENGTH, not 1->0x2"),
        ("lpm_match address:1/33 drop()", "prefix length 33 is longer than the 32 bits of hdr.request.address"),
        ("range_match word:2->1 drop()", "2->0x1 is no range within the 16 bits of hdr.request.word"),
        ("ternary_match word:1->2 drop()", "hdr.request.word is a ternary field and takes no range: 1->0x2"),
    ],
)  # fmt: skip
def test_wrong_keys_are_explained(program: Program, text: str, message: str) -> None:
    with pytest.raises(ResolveError) as caught:
        match(program, text)
    assert str(caught.value) == message


def test_arguments_go_by_name_or_position(program: Program) -> None:
    for text in ("exact_match word:1 set_exact(value:5)", "exact_match word:1 set_exact(5)"):
        statement = add(text)
        table = find_table(program, statement.table)
        assert find_call(program, table, statement.call) == Call("TablesIngress.set_exact", (5,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("set_exact()", "argument 'value' is missing; action TablesIngress.set_exact takes value"),
        ("set_exact(other:1)", "unexpected argument 'other'; action TablesIngress.set_exact takes value"),
        ("drop(1)", "unexpected argument 1; action TablesIngress.drop takes no arguments"),
        ("set_exact(65536)", "argument value = 0x10000 does not fit 16 bits"),
        ("set_lpm(1)", "no action 'set_lpm'; table TablesIngress.exact_match has "
         "TablesIngress.set_exact, TablesIngress.drop, NoAction"),
    ],
)  # fmt: skip
def test_wrong_calls_are_explained(program: Program, call: str, message: str) -> None:
    statement = add(f"exact_match word:1 {call}")
    with pytest.raises(ResolveError) as caught:
        find_call(program, find_table(program, statement.table), statement.call)
    assert str(caught.value) == message
