"""The parser of BMv2 JSON."""

from __future__ import annotations

from collections.abc import Mapping

from softswitch import model as m
from softswitch.json_node import Node
from softswitch.parse_expressions import (
    Names,
    read_expression,
    read_field,
    read_lookahead,
    read_primitive,
    read_stack_field,
    read_union_member,
    read_union_stack_field,
)


def read_parser(
    node: Node, names: Names, value_sets: Mapping[str, m.ValueSet], errors: Mapping[str, int]
) -> m.Parser:
    """The parser with all its states; transitions name states that exist."""
    states: dict[str, m.ParserState] = {}
    known = {n["name"].text() for n in node["parse_states"].items()}
    for n in node["parse_states"].items():
        state = _state(n, names, value_sets, known, errors)
        if state.name in states:
            raise n.fail(f"the state {state.name!r} is there twice")
        states[state.name] = state
    start = node.get("init_state")
    return m.Parser(node["name"].text(), start.named("parser state", states.get).name if start else None, states)


def _state(
    node: Node, names: Names, value_sets: Mapping[str, m.ValueSet], known: set[str], errors: Mapping[str, int]
) -> m.ParserState:
    key = tuple(_key_part(n, names) for n in node.items("transition_key"))
    widths = [key_width(part, names) for part in key]
    transitions = tuple(_transition(n, widths, value_sets, known) for n in node.items("transitions"))
    ops = tuple(_op(n, names, errors) for n in node["parser_ops"].items())
    return m.ParserState(node["name"].text(), ops, key, transitions, node.path)


def key_width(part: m.Expr, names: Names) -> int:
    """Bits of one part of a transition key."""
    match part:
        case m.Lookahead():
            return part.width
        case m.StackField():
            return names.stacks[part.stack].type.by_name[part.field].width
        case m.UnionStackField():
            union = names.unions[names.union_stacks[part.stack].unions[0]]
            header = union.headers[union.members.index(part.member)]
            return names.headers[header].type.by_name[part.field].width
        case m.FieldRef():
            return 1 if part.field == "$valid$" else names.headers[part.header].type.by_name[part.field].width
    raise AssertionError(part)


def _key_part(node: Node, names: Names) -> m.Expr:
    kind, value = node["type"].text(), node["value"]
    match kind:
        case "field":
            return read_field(value, names)
        case "stack_field":
            return read_stack_field(value, names)
        case "union_stack_field":
            return read_union_stack_field(value, names)
        case "lookahead":
            return read_lookahead(value)
    raise node["type"].fail(f"must be field, stack_field, union_stack_field or lookahead, is {kind!r}")


def _split(node: Node, widths: list[int]) -> tuple[int, ...]:
    """Split a hex string of byte-padded parts into one integer per part."""
    value = node.hexstr()
    total = sum((w + 7) // 8 for w in widths)
    if value < 0 or value >> (8 * total):
        raise node.fail(f"must fit {total} bytes, is {node.text()}")
    parts: list[int] = []
    for width in reversed(widths):
        nbytes = (width + 7) // 8
        parts.append(value & ((1 << 8 * nbytes) - 1))
        value >>= 8 * nbytes
    return tuple(reversed(parts))


def _transition(
    node: Node, widths: list[int], value_sets: Mapping[str, m.ValueSet], known: set[str]
) -> m.Transition:
    target = node.get("next_state")
    if target is not None and target.text() not in known:
        raise target.fail(f"names no parser state: {target.text()!r}")
    next_state = target.text() if target is not None else None
    kind = node["type"].text() if node.has("type") else "hexstr"
    if kind == "default" or (kind == "hexstr" and node["value"].value == "default"):
        return m.Transition("default", next_state)
    if kind == "parse_vset":
        value_set = node["value"].named("parser value set", value_sets.get)
        if node.has("mask"):
            raise node["mask"].fail("a mask over a value set is not supported")
        if value_set.width != sum(widths):
            raise node.fail(f"value set {value_set.name!r} has {value_set.width} bits, the key {sum(widths)}")
        return m.Transition("value_set", next_state, value_set=value_set.name)
    if kind != "hexstr":
        raise node["type"].fail(f"must be default, hexstr or parse_vset, is {kind!r}")
    values = _split(node["value"], widths)
    full = tuple((1 << 8 * ((w + 7) // 8)) - 1 for w in widths)
    return m.Transition("value", next_state, values, _split(node["mask"], widths) if node.has("mask") else full)


def _op(node: Node, names: Names, errors: Mapping[str, int]) -> m.ParserOp:
    op = node["op"].text()
    params = node["parameters"]
    match op:
        case "extract" | "extract_VL":
            target = _extract_target(params[0], names)
            length = read_expression(params[1], names) if op == "extract_VL" else None
            return _checked_extract(m.ParserOp(op, node.path, target, length), node, names)
        case "set":
            return m.ParserOp(op, node.path, read_field(params[0]["value"], names), read_expression(params[1], names))
        case "verify":
            error = params[1]
            code = m.Const(error.number()) if isinstance(error.value, int) else read_expression(error, names)
            return m.ParserOp(op, node.path, read_expression(params[0], names), code)
        case "shift":
            return m.ParserOp("advance", node.path, None, m.Const(8 * params[0].number()))
        case "advance":
            return m.ParserOp(op, node.path, None, read_expression(params[0], names))
        case "primitive":
            return m.ParserOp(op, node.path, call=read_primitive(params[0], names))
    raise node["op"].fail(f"parser operation {op!r} is not supported")


def _extract_target(node: Node, names: Names) -> m.Expr | m.UnionMember:
    kind = node["type"].text()
    match kind:
        case "regular":
            return m.Named("header", node["value"].named("header", names.headers.get).name)
        case "stack":
            return m.Named("header_stack", node["value"].named("header stack", names.stacks.get).name)
        case "union_stack":
            return read_union_member(node["value"], names)
    raise node["type"].fail(f"must be regular, stack or union_stack, is {kind!r}")


def extract_type(target: m.Expr | m.UnionMember, names: Names) -> m.HeaderType:
    """The type of the header that an extract fills."""
    match target:
        case m.Named("header", name):
            return names.headers[name].type
        case m.Named("header_stack", name):
            return names.stacks[name].type
        case m.UnionMember(stack, member):
            union = names.unions[names.union_stacks[stack].unions[0]]
            return names.headers[union.headers[union.members.index(member)]].type
    raise AssertionError(target)


def _checked_extract(op: m.ParserOp, node: Node, names: Names) -> m.ParserOp:
    assert op.target is not None
    header_type = extract_type(op.target, names)
    if (op.op == "extract_VL") != (header_type.varbit is not None):
        raise node.fail(f"{op.op} does not fit header type {header_type.name!r}")
    if header_type.fixed_bits % 8:
        raise node.fail(f"header type {header_type.name!r} is not whole bytes long")
    return op
