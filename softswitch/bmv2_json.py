"""BMv2 JSON, as p4c-bm2-ss writes it, to :class:`softswitch.model.Program`.

Format: behavioral-model's docs/JSON_format.md, version 2. Whatever the softswitch does not implement is refused here
with the construct and its place; docs/limits.md lists it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from softswitch import model as m
from softswitch.json_node import Node, ProgramError
from softswitch.parse_controls import read_pipeline, read_profiles
from softswitch.parse_expressions import Names, read_expression, read_field, read_primitive
from softswitch.parse_parser import read_parser

__all__ = ["ProgramError", "load", "loads"]

T = TypeVar("T")

MAX_FIELD_BITS = 8192
MAX_ARRAY = 1 << 28
MAX_DIGEST_BYTES = 65536  # SW_EVENT_MAX
MAX_VALUE_SET_BITS = 4096  # SW_KEY_WORDS
CORE_ERRORS = (
    "NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout",
    "ParserInvalidArgument",
)  # fmt: skip


def load(path: str | Path) -> m.Program:
    """Read a program from a file. Raises OSError, or :class:`ProgramError` naming the JSON path."""
    return loads(Path(path).read_bytes())


def loads(text: bytes) -> m.Program:
    """Read a program from the bytes of a BMv2 JSON document."""
    try:
        root = Node(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ProgramError("", f"is not JSON: {error}") from None
    try:
        return _program(root, text)
    except RecursionError:
        raise ProgramError("", "expressions are nested too deeply") from None


def _program(root: Node, text: bytes) -> m.Program:
    meta = root.get("__meta__")
    if meta is not None and meta["version"][0].number() != 2:
        raise meta["version"].fail("major version must be 2")
    for instance in root.items("extern_instances"):
        raise instance.fail(f"extern {instance['type'].text()!r} is not supported")
    types = _unique(root.items("header_types"), _header_type)
    headers = _unique(root.items("headers"), lambda n: _header(n, types))
    by_id = {h.ident: h for h in headers.values()}
    unions = _unions(root, by_id)
    registers = _unique(root.items("register_arrays"), _register)
    counters = _unique(root.items("counter_arrays"), _counter)
    names = Names(
        headers=headers,
        stacks=_unique(root.items("header_stacks"), lambda n: _stack(n, types, by_id)),
        unions={u.name: u for u in unions.values()},
        union_stacks=_unique(root.items("header_union_stacks"), lambda n: _union_stack(n, unions, headers)),
        registers=registers,
        counters=counters,
        meters={},
        calculations={},
    )
    names.meters.update(_unique(root.items("meter_arrays"), lambda n: _meter(n, names)))
    names.calculations.update(_unique(root.items("calculations"), lambda n: _calculation(n, names)))
    _check_instances(root, names)
    value_sets = _unique(root.items("parse_vsets"), _value_set)
    actions = _actions(root, names)
    pipelines = {p["name"].text(): p for p in root["pipelines"].items()}
    _check_distinct(pipelines.values())
    for wanted in ("ingress", "egress"):
        if wanted not in pipelines:
            raise root["pipelines"].fail(f"has no pipeline {wanted!r}")
    ingress, egress = (read_pipeline(pipelines[n], names, actions) for n in ("ingress", "egress"))
    tables = {n.name: n for p in (ingress, egress) for n in p.nodes.values() if isinstance(n, m.Table)}
    deparser = root["deparsers"][0]
    return m.Program(
        name=root["program"].text() if root.has("program") else "",
        text=text,
        header_types=tuple(types.values()),
        headers=headers,
        stacks=names.stacks,
        unions=names.unions,
        union_stacks=names.union_stacks,
        errors=_errors(root),
        parser=read_parser(root["parsers"][0], names, value_sets, _errors(root)),
        deparser=tuple(_emitted(n, headers) for n in deparser["order"].items()),
        deparser_calls=tuple(read_primitive(n, names) for n in deparser.items("primitives")),
        ingress=ingress,
        egress=egress,
        actions=actions,
        profiles={p.name: p for n in pipelines.values() for p in read_profiles(n, names)},
        counters=counters,
        meters=names.meters,
        registers=registers,
        calculations=names.calculations,
        checksums=tuple(_checksum(n, names) for n in root.items("checksums")),
        field_lists={f.ident: f for f in (_field_list(n, names) for n in root.items("field_lists"))},
        digests={f.ident: f for f in (_digest(n, names) for n in root.items("learn_lists"))},
        value_sets=value_sets,
        aliases={a[0].text(): read_field(a[1], names) for a in root.items("field_aliases")},
        tables=tables,
    )


def _check_instances(root: Node, names: Names) -> None:
    """Headers and stacks share the names of the program's variables."""
    taken = set(names.headers)
    members = {f"{s.name}.{m}": s for s in names.union_stacks.values() for m in names.unions[s.unions[0]].members}
    for name in (*names.stacks, *names.union_stacks, *members):
        if name in taken:
            raise root.fail(f"a header and a stack, or two stacks, have the name {name!r}")
        taken.add(name)


def _check_distinct(pipelines: Iterable[Node]) -> None:
    """Tables and action profiles have names of their own, whatever their control."""
    for key in ("tables", "action_profiles"):
        taken: set[str] = set()
        for node in (n for pipeline in pipelines for n in pipeline.items(key)):
            if node["name"].text() in taken:
                raise node.fail(f"the name {node['name'].text()!r} is taken")
            taken.add(node["name"].text())


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def _unique(nodes: Iterable[Node], read: Callable[[Node], N]) -> dict[str, N]:
    """Read named objects; two of one name are an error."""
    found: dict[str, N] = {}
    for node in nodes:
        item = read(node)
        if item.name in found:
            raise node.fail(f"the name {item.name!r} is taken")
        found[item.name] = item
    return found


def _header_type(node: Node) -> m.HeaderType:
    max_bytes = node["max_length"].number(0, MAX_FIELD_BITS // 8) if node.has("max_length") else 0
    fields: list[m.FieldType] = []
    fixed = sum(f[1].number(1, MAX_FIELD_BITS) for f in node["fields"].items() if f[1].value != "*")
    for f in node["fields"].items():
        signed, saturating = (len(f.value) > i and bool(f[i].value) for i in (2, 3))  # p4c writes 0 for bool fields
        varbit = f[1].value == "*"
        width = max_bytes * 8 - fixed if varbit else f[1].number(1, MAX_FIELD_BITS)
        if varbit and (width <= 0 or any(g.varbit for g in fields)):
            raise f.fail("a header has one varbit field, and max_length must leave room for it")
        if varbit and sum(g.width for g in fields) % 8:
            raise f.fail("a varbit field that does not start on a byte is not supported")
        if signed and width < 2:
            raise f.fail("a signed field has at least 2 bits")
        fields.append(m.FieldType(f[0].text(), width, signed, saturating, varbit))
    if len({f.name for f in fields}) != len(fields):
        raise node.fail("two fields have one name")
    if node.has("length_exp"):
        raise node["length_exp"].fail("length expressions of header types (P4_14) are not supported")
    return m.HeaderType(node["name"].text(), tuple(fields), max_bytes)


def _header(node: Node, types: Mapping[str, m.HeaderType]) -> m.Header:
    header_type = node["header_type"].named("header type", types.get)
    metadata = node["metadata"].flag()
    if not metadata and header_type.fixed_bits % 8:
        raise node.fail(f"header type {header_type.name!r} has {header_type.fixed_bits} bits, not whole bytes")
    return m.Header(node["name"].text(), node["id"].number(), header_type, metadata)


def _by_id(node: Node, by_id: Mapping[int, T], what: str) -> T:
    found = by_id.get(node.number())
    if found is None:
        raise node.fail(f"is no {what}'s id")
    return found


def _stack(node: Node, types: Mapping[str, m.HeaderType], by_id: Mapping[int, m.Header]) -> m.Stack:
    header_type = node["header_type"].named("header type", types.get)
    headers = tuple(_by_id(n, by_id, "header") for n in node["header_ids"].items())
    if not headers or any(h.type != header_type or h.metadata for h in headers):
        raise node.fail("a stack needs headers, all of its own type")
    return m.Stack(node["name"].text(), header_type, tuple(h.name for h in headers))


def _unions(root: Node, by_id: Mapping[int, m.Header]) -> dict[int, m.Union]:
    members = {
        n["name"].text(): tuple(h[0].text() for h in n["headers"].items()) for n in root.items("header_union_types")
    }
    unions: dict[int, m.Union] = {}
    for node in root.items("header_unions"):
        names = node["union_type"].named("header union type", members.get)
        headers = tuple(_by_id(n, by_id, "header") for n in node["header_ids"].items())
        if len(headers) != len(names) or not headers:
            raise node.fail(f"has {len(headers)} headers, its type {len(names)}")
        if any(h.metadata for h in headers):
            raise node.fail("metadata cannot be in a union")
        unions[node["id"].number()] = m.Union(node["name"].text(), tuple(h.name for h in headers), names)
    return unions


def _union_stack(node: Node, unions: Mapping[int, m.Union], headers: Mapping[str, m.Header]) -> m.UnionStack:
    found = tuple(_by_id(n, unions, "header union") for n in node["header_union_ids"].items())
    types = [(u.members, [headers[h].type for h in u.headers]) for u in found]
    if not found or any(t != types[0] for t in types):
        raise node.fail("a union stack needs unions, all of one type")
    return m.UnionStack(node["name"].text(), tuple(u.name for u in found))


def _register(node: Node) -> m.Register:
    return m.Register(
        node["name"].text(), node["size"].number(0, MAX_ARRAY), node["bitwidth"].number(1, MAX_FIELD_BITS)
    )


def _binding(node: Node) -> str | None:
    direct = node.get("is_direct")
    return node["binding"].text() if direct is not None and direct.flag() else None


def _counter(node: Node) -> m.Counter:
    table = _binding(node)
    return m.Counter(node["name"].text(), 0 if table else node["size"].number(0, MAX_ARRAY), table)


def _meter(node: Node, names: Names) -> m.Meter:
    table = _binding(node)
    unit = node["type"].text()
    if unit not in ("bytes", "packets"):
        raise node["type"].fail(f"must be 'bytes' or 'packets', is {unit!r}")
    result = read_field(node["result_target"], names) if table else None
    size = 0 if table else node["size"].number(0, MAX_ARRAY)
    return m.Meter(node["name"].text(), size, unit, node["rate_count"].number(1, 2), table, result)


def _value_set(node: Node) -> m.ValueSet:
    return m.ValueSet(node["name"].text(), node["compressed_bitwidth"].number(1, MAX_VALUE_SET_BITS))


def _calculation(node: Node, names: Names) -> m.Calculation:
    inputs: list[m.FieldRef | m.CalcConst | m.Named | m.Payload] = []
    for item in node["input"].items():
        kind = item["type"].text()
        if kind == "field":
            inputs.append(read_field(item["value"], names))
        elif kind == "hexstr":
            width = item["bitwidth"].number(1, MAX_FIELD_BITS)
            inputs.append(m.CalcConst(item["value"].hexstr() & ((1 << width) - 1), width))
        elif kind == "header":
            inputs.append(m.Named("header", item["value"].named("header", names.headers.get).name))
        elif kind == "payload":
            inputs.append(m.Payload())
        else:
            raise item["type"].fail(f"must be field, hexstr, header or payload, is {kind!r}")
    return m.Calculation(node["name"].text(), node["algo"].text(), tuple(inputs), node.path)


def _checksum(node: Node, names: Names) -> m.Checksum:
    if node["type"].text() != "generic":
        raise node["type"].fail(f"checksum type {node['type'].text()!r} is not supported, only 'generic'")
    condition = node.get("if_cond")
    verify, update = node.get("verify"), node.get("update")
    return m.Checksum(
        node["name"].text(),
        read_field(node["target"], names),
        node["calculation"].named("calculation", names.calculations.get).name,
        read_expression(condition, names) if condition is not None else None,
        verify.flag() if verify is not None else True,
        update.flag() if update is not None else True,
        node.path,
    )


def _emitted(node: Node, headers: Mapping[str, m.Header]) -> str:
    header = node.named("header", headers.get)
    if header.metadata:
        raise node.fail(f"{header.name!r} is metadata, which no packet carries")
    return header.name


def _digest(node: Node, names: Names) -> m.FieldList:
    digest = _field_list(node, names)
    types = [m.VALID if f.field == "$valid$" else names.headers[f.header].type.by_name[f.field] for f in digest.fields]
    if sum((t.width + 7) // 8 for t in types) > MAX_DIGEST_BYTES:
        raise node.fail(f"a digest of more than {MAX_DIGEST_BYTES} bytes is not supported")
    return digest


def _field_list(node: Node, names: Names) -> m.FieldList:
    fields = [read_field(n["value"], names) for n in node["elements"].items() if n["type"].text() == "field"]
    return m.FieldList(node["name"].text(), node["id"].number(1, 65535), tuple(fields))


def _errors(root: Node) -> dict[str, int]:
    """Errors by name; the core library's get unused numbers where the program does not number them, as in BMv2."""
    errors = {e[0].text(): e[1].number() for e in root.items("errors")}
    free = max(errors.values(), default=-1) + 1
    for name in CORE_ERRORS:
        if name not in errors:
            errors[name] = free
            free += 1
    return errors


def _actions(root: Node, names: Names) -> dict[int, m.Action]:
    actions: dict[int, m.Action] = {}
    by_name: dict[str, tuple[m.Param, ...]] = {}  # p4c writes an action once for each table that has it
    for node in root["actions"].items():
        params = tuple(
            m.Param(p["name"].text(), p["bitwidth"].number(1, MAX_FIELD_BITS)) for p in node["runtime_data"].items()
        )
        primitives = tuple(read_primitive(p, names, len(params)) for p in node["primitives"].items())
        ident = node["id"].number()
        if ident in actions:
            raise node["id"].fail(f"the action id {ident} is taken")
        actions[ident] = m.Action(node["name"].text(), ident, params, primitives, node.path)
        if by_name.setdefault(actions[ident].name, params) != params:
            raise node.fail(f"another action {actions[ident].name!r} has other parameters")
    return actions
