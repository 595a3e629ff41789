"""Expressions and primitive calls of BMv2 JSON."""

from __future__ import annotations

from dataclasses import dataclass

from softswitch import model as m
from softswitch.json_node import Node

UNARY = {"~", "not", "valid", "valid_union", "d2b", "b2d", "last_stack_index", "size_stack"}
BINARY = {
    "+", "-", "*", "/", "%", "<<", ">>", "==", "!=", ">", ">=", "<", "<=", "and", "or", "&", "|", "^",
    "two_comp_mod", "usat_cast", "sat_cast", "dereference_header_stack", "dereference_union_stack",
}  # fmt: skip
LITERAL = {"access_field", "access_union_header"}


@dataclass(frozen=True, slots=True)
class Names:
    """What an expression can name."""

    headers: dict[str, m.Header]
    stacks: dict[str, m.Stack]
    unions: dict[str, m.Union]
    union_stacks: dict[str, m.UnionStack]
    registers: dict[str, m.Register]
    counters: dict[str, m.Counter]
    meters: dict[str, m.Meter]
    calculations: dict[str, m.Calculation]

    def of(self, kind: str) -> dict[str, object] | None:
        """The objects of a named kind."""
        return {
            "header": self.headers, "header_stack": self.stacks, "header_union": self.unions,
            "header_union_stack": self.union_stacks, "register_array": self.registers,
            "counter_array": self.counters, "meter_array": self.meters, "calculation": self.calculations,
        }.get(kind)  # type: ignore[return-value]  # fmt: skip


def read_field(node: Node, names: Names) -> m.FieldRef:
    """A ``[header, field]`` pair."""
    header = node[0].named("header", names.headers.get)
    field = node[1].text()
    if field != "$valid$" and field not in header.type.by_name:
        raise node[1].fail(f"header {header.name!r} has no field {field!r}; it has {', '.join(header.type.by_name)}")
    return m.FieldRef(header.name, field)


def read_stack_field(node: Node, names: Names) -> m.StackField:
    """A ``[stack, field]`` pair: the field of the stack's last element."""
    stack = node[0].named("header stack", names.stacks.get)
    return m.StackField(stack.name, node[1].named(f"field of {stack.type.name}", stack.type.by_name.get).name)


def read_union_member(node: Node, names: Names) -> m.UnionMember:
    """A ``[union stack, member, ...]`` list."""
    stack = node[0].named("header union stack", names.union_stacks.get)
    member = node[1].text()
    if member not in names.unions[stack.unions[0]].members:
        raise node[1].fail(f"union stack {stack.name!r} has no member {member!r}")
    return m.UnionMember(stack.name, member)


def read_union_stack_field(node: Node, names: Names) -> m.UnionStackField:
    """A ``[union stack, member, field]`` list."""
    where = read_union_member(node, names)
    union = names.unions[names.union_stacks[where.stack].unions[0]]
    header = names.headers[union.headers[union.members.index(where.member)]]
    field = node[2].named(f"field of {header.type.name}", header.type.by_name.get)
    return m.UnionStackField(where.stack, where.member, field.name)


def read_lookahead(node: Node) -> m.Lookahead:
    """An ``[offset, width]`` pair in bits."""
    return m.Lookahead(node[0].number(0, 1 << 20), node[1].number(1, 8192))


def read_expression(node: Node, names: Names, params: int = 0) -> m.Expr:
    """A type-value object, as an expression. ``params``: how many parameters the enclosing action has."""
    kind, value = node["type"].text(), node["value"]
    match kind:
        case "expression":
            return _operation(value, names, params) if value.has("op") else read_expression(value, names, params)
        case "field":
            return read_field(value, names)
        case "hexstr":
            return m.Const(value.hexstr())
        case "bool":
            return m.Bool(value.flag())
        case "local" | "runtime_data":
            return m.Local(value.number(0, params - 1))
        case "stack_field":
            return read_stack_field(value, names)
        case "union_stack_field":
            return read_union_stack_field(value, names)
        case "lookahead":
            return read_lookahead(value)
        case "register":
            register = value[0].named("register array", names.registers.get)
            return m.RegisterRef(register.name, read_expression(value[1], names, params))
        case "string":
            return m.Text(value.text())
        case "parameters_vector":
            items = value.items() if value.value != {} else ()  # p4c writes {} where nothing is printed
            return m.Vector(tuple(read_expression(n, names, params) for n in items))
    table = names.of(kind)
    if table is None:
        raise node["type"].fail(f"{kind!r} is not a supported kind of value")
    value.named(kind.replace("_", " "), table.get)
    return m.Named(kind, value.text())


def _operation(node: Node, names: Names, params: int) -> m.Expr:
    op = node["op"].text()
    if op not in UNARY | BINARY | LITERAL | {"?"}:
        raise node["op"].fail(f"operator {op!r} is not supported")
    left, right = node.get("left"), node.get("right")
    if op in LITERAL:
        return m.Op(op, read_expression(node["left"], names, params), None, None, node["right"].number())
    read = [read_expression(n, names, params) if n is not None else None for n in (left, right)]
    if read[0] is None and op in ("+", "-"):
        read[0] = m.Const(0)
    if read[1] is None or (op in BINARY | {"?"} and read[0] is None):
        raise node.fail(f"operator {op!r} lacks an operand")
    if op == "?":
        return m.Op(op, read[0], read[1], read_expression(node["cond"], names, params))
    return m.Op(op, read[0] if op in BINARY else None, read[1])


def read_primitive(node: Node, names: Names, params: int = 0) -> m.Primitive:
    """A primitive call of an action, a parser state or a deparser."""
    info = node.get("source_info")
    source = ""
    if info is not None and info.has("source_fragment"):
        source = info["source_fragment"].text()
    args = tuple(read_expression(n, names, params) for n in node.items("parameters"))
    return m.Primitive(node["op"].text(), args, node.path, source)
