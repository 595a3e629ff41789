"""What ``softswitch describe`` says of a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from softswitch.cli import main

BUILD = Path(__file__).parent / "p4" / "build"


def describe(program: str, capsys: pytest.CaptureFixture[str]) -> dict[str, list[dict[str, object]]]:
    assert main(["describe", str(BUILD / program), "--json"]) == 0
    described: dict[str, list[dict[str, object]]] = json.loads(capsys.readouterr().out)
    return described


def test_a_table_with_its_key_and_actions(capsys: pytest.CaptureFixture[str]) -> None:
    tables = {table["name"]: table for table in describe("tables.json", capsys)["tables"]}
    assert tables["TablesIngress.lpm_match"] == {
        "name": "TablesIngress.lpm_match",
        "pipeline": "ingress",
        "match": "lpm",
        "size": 64,
        "key": [
            {"name": "hdr.request.flag", "match": "exact", "width": 1},
            {"name": "hdr.request.address", "match": "lpm", "width": 32},
        ],
        "actions": ["TablesIngress.set_lpm", "TablesIngress.drop", "NoAction"],
        "default": "TablesIngress.set_lpm(value=0xffff)",
        "default_const": False,
        "entries": 0,
        "profile": None,
        "direct_counter": False,
        "direct_meter": None,
        "idle_timeout": False,
        "compiler_made": False,
    }


def test_text_names_every_table_that_can_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", str(BUILD / "tables.json")]) == 0
    text = capsys.readouterr().out
    assert (
        "table TablesIngress.range_match (ingress, range, size 64)\n    key      hdr.request.word: range, 16 bits"
        in text
    )
    assert "    default  TablesIngress.set_const(value=0x9) (const)\n    with     4 entries of the program" in text


def test_a_broken_program_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.json"
    path.write_text("{}")
    assert main(["describe", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"softswitch: {path}: top level: has no key ")
    assert error.count("\n") == 1
