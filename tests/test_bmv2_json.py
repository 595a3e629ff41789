"""Programs that are refused: the error names the construct and its place in the JSON."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from softswitch.bmv2_json import load, loads
from softswitch.codegen import generate
from softswitch.json_node import ProgramError

BUILD = Path(__file__).parent / "p4" / "build"
ROUTER: dict[str, Any] = json.loads((BUILD / "l3_router.json").read_text())


def refused(document: dict[str, Any]) -> str:
    with pytest.raises(ProgramError) as error:
        generate(loads(json.dumps(document).encode()))
    return str(error.value)


@pytest.fixture
def router() -> dict[str, Any]:
    return copy.deepcopy(ROUTER)


@pytest.mark.parametrize("path", sorted(BUILD.glob("*.json")), ids=lambda p: p.stem)
def test_own_programs_are_read_and_generated(path: Path) -> None:
    program = load(path)
    assert set(program.tables) == {
        t["name"] for p in json.loads(path.read_text())["pipelines"] for t in p["tables"]
    }
    assert "const sw_program sw_the_program" in generate(program)


def test_text_that_is_not_json() -> None:
    with pytest.raises(ProgramError, match=r"^top level: is not JSON: "):
        loads(b'{"actions": [')


def test_missing_key_names_the_object_and_what_it_has() -> None:
    assert refused({"header_types": [{"id": 1}]}) == (
        "header_types[0]: has no key 'fields'; keys are id"
    )


def test_unknown_primitive(router: dict[str, Any]) -> None:
    router["actions"][0]["primitives"] = [{"op": "teleport", "parameters": []}]
    assert refused(router) == "actions[0].primitives[0]: primitive 'teleport' is not supported"


def test_wrong_number_of_parameters(router: dict[str, Any]) -> None:
    router["actions"][0]["primitives"] = [{"op": "truncate", "parameters": []}]
    assert refused(router) == "actions[0].primitives[0]: primitive 'truncate' takes 1 parameters, not 0"


def test_unknown_hash_algorithm(router: dict[str, Any]) -> None:
    router["calculations"][0]["algo"] = "random"
    assert refused(router) == (
        "calculations[0].algo: hash algorithm 'random' is not supported; supported are crc16, crc32, crcCCITT, csum16, "
        "cksum16, xor16, identity, xxh64, bmv2_hash, hash_ex, crc8_custom, crc16_custom, crc32_custom, crc64_custom"
    )


def test_user_defined_extern(router: dict[str, Any]) -> None:
    router["extern_instances"] = [{"name": "x", "id": 0, "type": "my_extern"}]
    assert refused(router) == "extern_instances[0]: extern 'my_extern' is not supported"


def test_field_that_does_not_exist(router: dict[str, Any]) -> None:
    key = router["pipelines"][0]["tables"][2]["key"][0]
    key["target"] = ["ethernet", "colour"]
    assert refused(router) == (
        "pipelines[0].tables[2].key[0].target[1]: header 'ethernet' has no field 'colour'; "
        "it has dst_addr, src_addr, ether_type"
    )


def test_control_flow_that_comes_back(router: dict[str, Any]) -> None:
    first = router["pipelines"][0]["init_table"]
    for table in router["pipelines"][0]["tables"]:
        table["next_tables"] = dict.fromkeys(table["next_tables"], first)
    assert refused(router).startswith("pipelines[0]: the control flow comes back to ")


def test_next_node_that_does_not_exist(router: dict[str, Any]) -> None:
    router["pipelines"][0]["init_table"] = "nowhere"
    assert refused(router) == "pipelines[0].init_table: names no table, conditional or action call: 'nowhere'"


def test_other_major_version(router: dict[str, Any]) -> None:
    router["__meta__"]["version"] = [3, 0]
    assert refused(router) == "__meta__.version: major version must be 2"
