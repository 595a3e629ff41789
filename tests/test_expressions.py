"""Generated C against arithmetic on Python integers: random expressions over fields of all widths."""

from __future__ import annotations

import json
import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from softswitch import bmv2_json
from softswitch.codegen import generate
from softswitch.device import Device
from softswitch.json_node import ProgramError

UNSIGNED = (1, 3, 8, 9, 16, 17, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 200, 256, 320)
SIGNED = (2, 8, 16, 31, 32, 63, 64, 65, 100, 127, 128, 130, 256)
INPUTS = [(f"u{w}", w, False) for w in UNSIGNED] + [(f"s{w}", w, True) for w in SIGNED]
RESULTS = 60
Json = dict[str, Any]
BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def padded(fields: list[tuple[str, int, bool]]) -> list[list[Any]]:
    bits = sum(width for _, width, _ in fields)
    pad = [["pad", -bits % 8, False]] if bits % 8 else []
    return [[name, width, signed] for name, width, signed in fields] + pad


def operation(op: str, left: Json | None, right: Json, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right, **more}}


def constant(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


class Generator:
    """Random numbers and conditions as BMv2 JSON."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def leaf(self) -> Json:
        if self.rng.random() < 0.3:
            value = self.rng.choice([0, 1, self.rng.getrandbits(self.rng.choice([8, 16, 32, 64, 128, 200]))])
            return constant(-value if self.rng.random() < 0.2 else value)
        return {"type": "field", "value": ["in", self.rng.choice(INPUTS)[0]]}

    def amount(self) -> Json:
        if self.rng.random() < 0.5:
            return constant(self.rng.choice([0, 1, 7, 8, 31, 32, 63, 64, 65, 127, 128, 200, 511]))
        return {"type": "field", "value": ["in", self.rng.choice(["u3", "u8", "u9"])]}

    def number(self, depth: int) -> Json:
        if depth == 0 or self.rng.random() < 0.1:
            return self.leaf()
        op = self.rng.choice(["+", "-", "*", "&", "|", "^", "~", "<<", ">>", "two_comp_mod", "usat_cast", "sat_cast",
                              "?", "b2d", "mask", "mask"])  # fmt: skip
        if op == "mask":
            width = self.rng.choice(UNSIGNED)
            return operation("&", self.number(depth - 1), constant((1 << width) - 1))
        if op in ("two_comp_mod", "usat_cast", "sat_cast"):
            return operation(op, self.number(depth - 1), constant(self.rng.choice(UNSIGNED)))
        if op in ("<<", ">>"):
            return operation(op, self.number(depth - 1), self.amount())
        if op == "~":
            return operation(op, None, self.number(depth - 1))
        if op == "b2d":
            return operation(op, None, self.condition(depth - 1))
        if op == "?":
            return operation(op, self.number(depth - 1), self.number(depth - 1), cond=self.condition(depth - 1))
        return operation(op, self.number(depth - 1), self.number(depth - 1))

    def condition(self, depth: int) -> Json:
        op = self.rng.choice(["==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "d2b"])
        if op == "d2b":
            return operation(op, None, self.number(max(depth - 1, 0)))
        if op == "not" and depth > 0:
            return operation(op, None, self.condition(depth - 1))
        if op in ("and", "or") and depth > 0:
            return operation(op, self.condition(depth - 1), self.condition(depth - 1))
        op = op if op in ("==", "!=", "<", "<=", ">", ">=") else "=="
        return operation(op, self.number(max(depth - 1, 0)), self.number(max(depth - 1, 0)))


def evaluate(e: Json, fields: dict[str, int]) -> int:
    """What BMv2 computes, with integers of any size."""
    if e["type"] == "hexstr":
        return int(e["value"], 16)
    if e["type"] == "field":
        return fields[e["value"][1]]
    value = e["value"]
    op = value["op"]
    right = evaluate(value["right"], fields)
    left = evaluate(value["left"], fields) if value["left"] is not None else 0
    match op:
        case "?":
            return left if evaluate(value["cond"], fields) else right
        case "two_comp_mod":
            return signed(left, right)
        case "usat_cast":
            return min(max(left, 0), (1 << right) - 1)
        case "sat_cast":
            return min(max(left, -(1 << (right - 1))), (1 << (right - 1)) - 1)
        case "d2b" | "b2d":
            return int(bool(right))
        case "not":
            return int(not right)
        case "~":
            return ~right
        case "and" | "or":
            return int(bool(left) and bool(right)) if op == "and" else int(bool(left) or bool(right))
    return int(BINARY[op](left, right))


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def program(expressions: list[Json], outputs: list[tuple[str, int, bool]]) -> bytes:
    primitives = [{"op": "add_header", "parameters": [{"type": "header", "value": "out"}]}]
    primitives += [
        {"op": "assign", "parameters": [{"type": "field", "value": ["out", name]}, expression]}
        for (name, _, _), expression in zip(outputs, expressions, strict=True)
    ]
    table = {
        "name": "t", "id": 0, "key": [], "match_type": "exact", "type": "simple", "max_size": 1,
        "with_counters": False, "support_timeout": False, "direct_meters": None, "action_ids": [0], "actions": ["a"],
        "base_default_next": None, "next_tables": {"a": None},
        "default_entry": {"action_id": 0, "action_const": True, "action_data": [], "action_entry_const": True},
    }  # fmt: skip
    standard = [["ingress_port", 9, False], ["packet_length", 32, False], ["instance_type", 32, False],
                ["egress_spec", 9, False], ["egress_port", 9, False], ["pad", 5, False]]  # fmt: skip
    extract = {"op": "extract", "parameters": [{"type": "regular", "value": "in"}]}
    state = {"name": "start", "id": 0, "parser_ops": [extract], "transition_key": [],
             "transitions": [{"type": "default", "value": None, "mask": None, "next_state": None}]}  # fmt: skip
    empty = {"name": "egress", "id": 1, "init_table": None, "tables": [], "conditionals": [], "action_profiles": []}
    document = {
        "header_types": [
            {"name": "in_t", "id": 0, "fields": padded(INPUTS)},
            {"name": "out_t", "id": 1, "fields": padded(outputs)},
            {"name": "standard_metadata", "id": 2, "fields": standard},
        ],
        "headers": [
            {"name": "in", "id": 0, "header_type": "in_t", "metadata": False},
            {"name": "out", "id": 1, "header_type": "out_t", "metadata": False},
            {"name": "standard_metadata", "id": 2, "header_type": "standard_metadata", "metadata": True},
        ],
        "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": [state]}],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["out"]}],
        "actions": [{"name": "a", "id": 0, "runtime_data": [], "primitives": primitives}],
        "pipelines": [
            {**empty, "name": "ingress", "id": 0, "init_table": "t", "tables": [table]},
            empty,
        ],
    }  # fmt: skip
    return json.dumps(document).encode()


def supported(expression: Json, output: tuple[str, int, bool]) -> bool:
    """Whether the generator takes it: a shift whose result has no bound in 16,384 bits is refused."""
    try:
        generate(bmv2_json.loads(program([expression], [output])))
    except ProgramError as error:
        assert "no bound" in error.message
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_equal_integer_arithmetic(seed: int) -> None:
    rng = random.Random(seed)
    generator = Generator(rng)
    outputs: list[tuple[str, int, bool]] = []
    expressions: list[Json] = []
    while len(outputs) < RESULTS:
        is_signed = rng.random() < 0.4
        output = (f"r{len(outputs)}", rng.choice(SIGNED if is_signed else UNSIGNED), is_signed)
        expression = generator.number(rng.choice([1, 2, 3, 4]))
        if supported(expression, output):
            outputs.append(output)
            expressions.append(expression)
    total = sum(width for _, width, _ in outputs)
    with Device(bmv2_json.loads(program(expressions, outputs)), werror=True) as device:
        for round_number in range(200):
            fields, packet = random_packet(rng)
            (output_packet,) = device.inject(1, packet, round_number)
            bits = int.from_bytes(output_packet.data, "big") >> (-total % 8)
            for (name, width, _), expression in reversed(list(zip(outputs, expressions, strict=True))):
                got = bits & ((1 << width) - 1)
                assert got == evaluate(expression, fields) & ((1 << width) - 1), (name, width, expression, fields)
                bits >>= width


def random_packet(rng: random.Random) -> tuple[dict[str, int], bytes]:
    """Values of the input fields, many of them at their limits, and the packet that carries them."""
    fields: dict[str, int] = {}
    bits = total = 0
    for name, width, is_signed in INPUTS:
        full = (1 << width) - 1
        value = rng.choice([0, 1, full, full >> 1, full - 1, 1 << (width - 1), rng.getrandbits(width)]) & full
        fields[name] = signed(value, width) if is_signed else value
        bits, total = bits << width | value, total + width
    pad = -total % 8
    return fields, (bits << pad).to_bytes((total + pad) // 8, "big")
