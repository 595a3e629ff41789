"""STF files carried out on the device in virtual time, and the command that runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from softswitch import bmv2_json
from softswitch.cli import main
from softswitch.model import Program
from softswitch.stf.parser import parse
from softswitch.stf.runner import Result, run
from softswitch.stf.syntax import StfError

BUILD = Path(__file__).parent / "p4" / "build"


@pytest.fixture(scope="module")
def replication() -> Program:
    return bmv2_json.load(BUILD / "replication.json")


@pytest.fixture(scope="module")
def stateful() -> Program:
    return bmv2_json.load(BUILD / "stateful.json")


@pytest.fixture(scope="module")
def tables() -> Program:
    return bmv2_json.load(BUILD / "tables.json")


def run_text(program: Program, text: str) -> Result:
    return run(program, parse(text, "t.stf"), "t.stf")


def request(*, flags: str = "00", ports: str = "00", session: str = "00") -> str:
    """A packet of replication.p4: the request and an empty trace."""
    return flags + ports + session + "0000000000" + 16 * "00"


def test_multicast_nodes_make_copies_in_the_order_of_association(replication: Program) -> None:
    result = run_text(
        replication,
        f"""
        mc_mgrp_create 1
        mc_node_create 400 6 3
        mc_node_create 401 3
        mc_node_associate 1 1
        mc_node_associate 1 0
        packet 0 {request(flags="80", ports="01")}
        expect 3 8001 ** 0000000000 01 00 01 05 0003 0191
        expect 3 8001 ** 0000000000 01 00 01 05 0003 0190
        expect 6 8001 ** 0000000000 01 00 01 05 0006 0190
        """,
    )
    assert result.problems == ()


def test_mirroring_to_a_port_and_to_a_group(replication: Program) -> None:
    clone = request(flags="40", ports="08", session="20")
    result = run_text(
        replication,
        f"""
        mirroring_add 2 5
        packet 0 {clone}
        expect 1
        expect 5 4008 20 0000000000 **** **01
        mc_mgrp_create 9
        mirroring_add_mc 2 9
        mc_node_create 7 4
        mc_node_associate 9 0
        mirroring_get 2
        packet 0 {clone}
        expect 1
        expect 4 4008 20 0000000000 **** **01 0004 0007
        mirroring_delete 2
        packet 0 {clone}
        expect 1
        """,
    )
    assert result == Result((), ("mirroring session 2: multicast group 9",))


def test_counters_registers_and_meters(stateful: Program) -> None:
    result = run_text(
        stateful,
        """
        add counted key:1 count_entry(mark:9) = ONE
        register_write word_register 3 0x1234
        meter_array_set_rates byte_meter 1:100 2:200
        meter_set_rates packet_meter 3 0.000001:1 0.000002:2
        meter_get_rates packet_meter 3
        packet 2 00 03 01 0000000000000000
        expect 2 00 ** ** ** 00001234
        packet 2 00 03 01 0000000000000000
        expect 2 01 ** ** ** 00001234
        check_counter both_counter(3) packets == 2
        check_counter both_counter(3) bytes == 22
        check_counter both_counter(4)
        check_counter entry_counter($ONE) packets == 2
        counter_write both_counter 4 7 70
        counter_read both_counter 4
        counter_read entry_counter 0
        register_read word_register 3
        register_reset word_register
        register_read word_register 3
        """,
    )
    assert result == Result(
        (),
        (
            "packet_meter[3] = 1:1 2:2 (a second)",
            "both_counter[4] = 70 bytes, 7 packets",
            "entry_counter[0] = 22 bytes, 2 packets",
            "word_register[3] = 4660",
            "word_register[3] = 0",
        ),
    )


def test_a_counter_that_differs_is_a_problem(stateful: Program) -> None:
    result = run_text(stateful, "packet 0 0000000000000000000000\nexpect 0\ncheck_counter both_counter(0) packets > 1")
    assert result.problems == ("t.stf:3: counter both_counter(0): expected packets > 1, got 1",)


def test_remove_all_takes_the_files_entries_away(stateful: Program) -> None:
    packet = "packet 1 0000 01 0000000000000000"
    result = run_text(
        stateful,
        f"""
        add counted key:1 count_entry(mark:9)
        {packet}
        expect 1 {"*" * 2 * 72} **** 09
        remove all
        setdefault counted count_entry(mark:8)
        {packet}
        expect 1 {"*" * 2 * 72} **** 08
        """,
    )
    assert result.problems == ()


def test_no_packet_fails_where_the_last_packet_makes_one(replication: Program) -> None:
    result = run_text(
        replication,
        f"""
        packet 0 {request(flags="02")}
        no_packet
        packet 0 {request(ports="08")}
        no_packet
        expect 1
        """,
    )
    (problem,) = result.problems
    assert problem.startswith("t.stf:5: port 1: expected no packet, got 0008")


def test_ports_that_the_test_does_not_name_are_not_watched(replication: Program) -> None:
    assert run_text(replication, f"packet 0 {request(ports='38')}").problems == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add ternary_match word:0x1* drop()", "table TablesIngress.ternary_match has ternary keys: a priority must "
         "follow its name"),
        ("add no_such word:1 drop()", "no table 'no_such'; the program has "),
        ("mc_node_associate 1 0", "no multicast node 0; there are 0, numbered from 0"),
        ("mirroring_get 3", "no mirroring session 3"),
        ("register_read r 0", "no register 'r'; the program has none"),
        ("mirroring_add 4294967297 1", "4294967297 is out of range"),
        ("add ternary_match 99999999999 word:1 drop()", "priority 99999999999 is out of range"),
    ],
)  # fmt: skip
def test_a_statement_that_cannot_be_carried_out_names_its_line(tables: Program, text: str, message: str) -> None:
    with pytest.raises(StfError) as caught:
        run_text(tables, "# comment\n" + text)
    assert str(caught.value).startswith(f"t.stf:2: {message}")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """One test that passes, one that fails, one without a program, one that cannot be read."""
    for name in ("good", "bad", "unreadable"):
        shutil.copy(BUILD / "replication.json", tmp_path / f"{name}.json")
    (tmp_path / "good.stf").write_text(f"packet 0 {request(ports='08')}\nexpect 1\n")
    (tmp_path / "bad.stf").write_text(f"packet 0 {request(ports='08')}\nexpect 2\n")
    (tmp_path / "lonely.stf").write_text("wait\n")
    (tmp_path / "unreadable.stf").write_text("packet 1\n")
    return tmp_path


def test_stf_command_reports_each_test(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = str(corpus / "good.json")
    assert main(["stf", program, str(corpus / "good.stf"), str(corpus / "bad.stf")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "good.stf: passed",
        "bad.stf: port 2: expected 1 packet, got 0",
        "bad.stf:2: port 2: no packet for any packet",
        "bad.stf: failed",
    ]
    assert main(["stf", program, str(corpus / "good.stf"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"test": "good.stf", "passed": True, "problems": [], "notes": []},
    ]


def test_corpus_ends_with_the_sum_and_lists_failures_with_reasons(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stf", "--corpus", str(corpus)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 passed, 3 failed"
    failed = [line.strip().split(maxsplit=1) for line in lines[3:-2]]
    assert failed == [
        ["bad", "bad.stf: port 2: expected 1 packet, got 0 (and 1 more)"],
        ["lonely", "no program lonely.json"],
        ["unreadable", "unreadable.stf:1: packet needs hexadecimal data after the port"],
    ]
