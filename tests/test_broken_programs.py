"""Programs as no compiler writes them, found by mutation: each is refused with a reason, or its C compiles."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from softswitch.bmv2_json import loads
from softswitch.codegen import generate
from softswitch.device import Device
from softswitch.json_node import ProgramError
from softswitch.toolchain import FLAGS, RUNTIME, compiler

BUILD = Path(__file__).parent / "p4/build"
Json = dict[str, Any]


def program(name: str) -> Json:
    document: Json = json.loads((BUILD / f"{name}.json").read_text())
    return document


def generated(document: Json) -> str:
    return generate(loads(json.dumps(document).encode()))


def refused(document: Json) -> str:
    with pytest.raises(ProgramError) as error:
        generated(document)
    return str(error.value)


def compiles(document: Json) -> bool:
    command = [*compiler(), *FLAGS, "-w", "-fsyntax-only", "-I", str(RUNTIME), "-x", "c", "-"]
    return subprocess.run(command, input=generated(document), text=True, check=False).returncode == 0


def hexstr(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def expression(op: str, left: Json | None, right: Json | int, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right, **more}}


def field(name: str) -> Json:
    return {"type": "field", "value": name.split(".")}


TTL, CHECKSUM = field("ipv4.ttl"), field("ipv4.checksum")


def assigning(source: Json) -> Json:
    """The router, one of whose actions assigns an expression to ipv4.checksum."""
    document = program("l3_router")
    document["actions"][0]["primitives"] = [{"op": "assign", "parameters": [CHECKSUM, source]}]
    return document


def renamed(document: Json, old: str, new: str) -> Json:
    renewed: Json = json.loads(json.dumps(document).replace(json.dumps(old), json.dumps(new)))
    return renewed


# ---- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", ["ipv4_t", "parse_ipv4", "RouterIngress.acl", "RouterIngress.forward", "ttl", "ipv4"])
@pytest.mark.parametrize("new", ["*/ int x; /*", "/*/", "\\", '"', "a\nb", "é", "linux", "NULL", "asm", "valid", "9"])
def test_names_that_are_no_identifiers(old: str, new: str) -> None:
    assert compiles(renamed(program("l3_router"), old, new))


def test_name_with_half_a_surrogate_pair() -> None:
    document = renamed(program("l3_router"), "ethernet_t", "\ud800")
    assert refused(document) == "header_types[4].name: must be text, has half a surrogate pair"


def test_field_called_like_the_length_of_a_varbit_field() -> None:
    document = program("parser_features")
    options = next(t for t in document["header_types"] if any(f[1] == "*" for f in t["fields"]))
    varbit = next(f[0] for f in options["fields"] if f[1] == "*")
    assert compiles(renamed(document, options["fields"][0][0], f"{varbit}_bits"))


@pytest.mark.parametrize("kind", ["tables", "conditionals"])
def test_two_nodes_of_one_name(kind: str) -> None:
    document = program("l3_router")
    nodes = document["pipelines"][0][kind]
    nodes[1]["name"] = nodes[0]["name"]
    assert refused(document).endswith(f"{kind}[1]: the name {nodes[0]['name']!r} is taken")


def test_table_of_both_controls() -> None:
    document = program("l3_router")
    ingress, egress = document["pipelines"]
    egress["tables"] = [dict(ingress["tables"][0])]
    assert refused(document) == "pipelines[1].tables[0]: the name 'tbl_l3_router248' is taken"


def test_stack_called_like_a_header() -> None:
    document = program("headers")
    document["header_stacks"][0]["name"] = document["headers"][0]["name"] = "both"
    document["header_stacks"] = document["header_stacks"][:1]
    assert refused(document) == "top level: a header and a stack, or two stacks, have the name 'both'"


# ---- actions and tables ------------------------------------------------------------------------------------


def test_actions_of_one_name_with_other_parameters() -> None:
    document = program("l3_router")
    document["actions"][1]["runtime_data"] = [{"name": "port", "bitwidth": 9}]
    assert refused(document) == "actions[1]: another action 'RouterIngress.drop' has other parameters"


def test_table_with_two_actions_of_one_name() -> None:
    document = program("l3_router")
    table = document["pipelines"][0]["tables"][2]
    table["action_ids"] += [0, 1]
    assert refused(document) == "pipelines[0].tables[2].action_ids: two actions have one name"


def test_entry_with_an_action_of_another_table() -> None:
    document = program("initial_entries")
    index, table = next((i, t) for i, t in enumerate(document["pipelines"][0]["tables"]) if t.get("entries"))
    table["action_ids"] = [table["default_entry"]["action_id"]]
    assert refused(document) == f"pipelines[0].tables[{index}].entries: an entry's action is not one of the table's"


def test_key_that_is_too_long() -> None:
    document = program("l3_router")
    document["pipelines"][0]["tables"][7]["key"] *= 33  # IPv6 addresses
    document["pipelines"][0]["tables"][7]["match_type"] = "ternary"
    assert refused(document) == "pipelines[0].tables[7].key: takes 528 bytes; 512 is the most"


# ---- expressions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [1 << 14, 1 << 64, 1 << 300])
@pytest.mark.parametrize("op", ["<<", ">>"])
def test_shift_by_a_huge_constant(op: str, amount: int) -> None:
    assert compiles(assigning(expression(op, TTL, hexstr(amount))))


def test_exact_shift_by_a_huge_constant() -> None:
    compared = expression("==", expression("<<", TTL, hexstr(1 << 64)), hexstr(0))
    assert refused(assigning(expression("b2d", None, compared))).startswith(
        "actions[0].primitives[0]: an intermediate value has no bound"
    )


@pytest.mark.parametrize("op", ["<<", ">>"])
def test_shift_by_a_negative_constant(op: str) -> None:
    shift = expression(op, TTL, hexstr(-1))
    assert refused(assigning(shift)) == "actions[0].primitives[0]: a shift by a negative number"


def test_shift_by_what_is_negative_at_times() -> None:
    amount = expression("-", hexstr(-5), TTL)
    assert compiles(assigning(expression("b2d", None, expression("==", expression("<<", TTL, amount), hexstr(0)))))


def test_header_as_a_number() -> None:
    header = expression("access_union_header", {"type": "header", "value": "ipv4"}, 0)
    assert refused(assigning(header)) == "actions[0].primitives[0]: access_union_header is not a number"


def test_choice_of_nothing() -> None:
    choice = expression("?", None, TTL, cond={"type": "bool", "value": True})
    assert refused(assigning(choice)).endswith("operator '?' lacks an operand")


def test_constant_that_is_too_wide() -> None:
    compared = expression("==", TTL, hexstr((1 << 20_000) - 1))
    assert "has no bound" in refused(assigning(expression("b2d", None, compared)))


def test_expression_that_is_nested_too_deeply() -> None:
    deep = TTL
    for _ in range(300):
        deep = expression("^", deep, TTL)
    assert refused(assigning(deep)) == "top level: expressions are nested too deeply"


# ---- headers -----------------------------------------------------------------------------------------------


def test_metadata_in_the_deparser() -> None:
    document = program("l3_router")
    document["deparsers"][0]["order"].append("scalars")
    assert refused(document) == "deparsers[0].order[5]: 'scalars' is metadata, which no packet carries"


def test_header_that_the_deparser_removes_is_not_emitted() -> None:
    document = program("queueing")
    header = {"type": "header", "value": "queue"}
    document["deparsers"][0]["primitives"] = [{"op": "remove_header", "parameters": [header]}]
    packet = bytes(range(60))
    with Device(loads(json.dumps(document).encode())) as device:
        assert [output.data for output in device.inject(1, packet, 0)] == [packet]


def test_union_stack_of_different_unions() -> None:
    document = program("headers")
    union = document["header_unions"][0]
    small, large = (h["header_type"] for h in document["headers"] if h["id"] in union["header_ids"])
    for ident, kind in ((90, large), (91, small)):
        document["headers"].append({"name": f"h{ident}", "id": ident, "header_type": kind, "metadata": False})
    document["header_unions"].append({**union, "name": "other", "id": 90, "header_ids": [90, 91]})
    document["header_union_stacks"] = [{"name": "stack", "id": 0, "header_union_ids": [union["id"], 90]}]
    assert refused(document) == "header_union_stacks[0]: a union stack needs unions, all of one type"


def test_standard_metadata_field_of_variable_length() -> None:
    document = program("l3_router")
    standard = document["header_types"][1]
    standard["fields"] = [["ingress_port", 16, False], ["egress_spec", "*", False], ["egress_port", 16, False]]
    standard["max_length"] = 64
    document["field_aliases"] = []
    for key in ("parsers", "actions", "checksums", "calculations"):
        document[key] = []
    document["parsers"] = [{"name": "p", "id": 0, "init_state": None, "parse_states": []}]
    document["pipelines"] = [{"name": n, "id": 0, "init_table": None} for n in ("ingress", "egress")]
    assert compiles(document)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d["learn_lists"][0].update(elements=[{"type": "field", "value": ["wide", "value"]}] * 4097),
            "learn_lists[0]: a digest of more than 65536 bytes is not supported",
        ),
        (
            lambda d: d["calculations"].append(
                {"name": "c", "id": 9, "algo": "crc16", "input": [{"type": "field", "value": ["wide", "value"]}] * 4097}
            ),
            "calculations[0]: an input of more than 524288 bits is not supported",
        ),
    ],
)
def test_more_bytes_than_a_message_or_a_stack_has(change: Callable[[Json], None], message: str) -> None:
    document = program("digests")
    change(document)
    assert refused(document) == message
