"""What a program offers to a control plane, as JSON values: tables, actions, state and headers with their sizes.

Widths are bits, sizes are entries or cells unless a name says otherwise.
"""

from __future__ import annotations

import re
from typing import Any

from softswitch.model import Call, HeaderType, Program, Table


def describe(program: Program) -> dict[str, Any]:
    """The whole description, in the order of the program's JSON."""
    pipelines = (program.ingress, program.egress)
    headers = [one for one in program.headers.values() if not one.metadata]
    return {
        "program": program.name,
        "tables": [
            _table(program, pipeline.name, node)
            for pipeline in pipelines
            for node in pipeline.nodes.values()
            if isinstance(node, Table)
        ],
        "actions": _actions(program),
        "profiles": [
            {"name": one.name, "size": one.max_size, "selector": one.algo} for one in program.profiles.values()
        ],
        "counters": [
            {"name": one.name, "size": None if one.table else one.size, "direct_table": one.table}
            for one in program.counters.values()
        ],
        "meters": [
            {"name": one.name, "size": None if one.table else one.size, "unit": one.unit, "direct_table": one.table}
            for one in program.meters.values()
        ],
        "registers": [
            {"name": one.name, "size": one.size, "width": one.width} for one in program.registers.values()
        ],
        "digests": [_digest(program, name) for name in program.digests],
        "value_sets": [{"name": one.name, "width": one.width} for one in program.value_sets.values()],
        "headers": [
            {"name": one.name, "type": one.type.name, "bytes": _header_bytes(one.type), "varbit": bool(one.type.varbit)}
            for one in headers
        ],
        "parser_states": list(program.parser.states),
    }  # fmt: skip


def _table(program: Program, pipeline: str, table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "pipeline": pipeline,
        "match": table.match,
        "size": table.max_size,
        "key": [{"name": field.name, "match": field.match, "width": field.width} for field in table.key],
        "actions": [program.actions[ident].name for ident in table.actions],
        "default": None if table.default is None else _call(program, table.default),
        "default_const": table.default_action_const or table.default_entry_const,
        "entries": len(table.entries),
        "profile": table.profile,
        "direct_counter": table.with_counters,
        "direct_meter": table.direct_meter,
        "idle_timeout": table.with_ageing,
        "compiler_made": compiler_made(table),
    }


def compiler_made(table: Table) -> bool:
    """p4c wraps each piece of a control in a table without a key, and makes a table of each ``switch`` over a value;
    nobody can write to those."""
    if table.name.startswith("tbl_"):
        return not table.key
    return re.fullmatch(r"switch_\d+_table", table.name) is not None


def _call(program: Program, call: Call) -> str:
    action = program.actions[call.action]
    arguments = (f"{param.name}={value:#x}" for param, value in zip(action.params, call.args, strict=True))
    return f"{action.name}({', '.join(arguments)})"


def _actions(program: Program) -> list[dict[str, Any]]:
    """Actions that an entry or a default can name, each name once."""
    offered = {ident for table in program.tables.values() if not compiler_made(table) for ident in table.actions}
    by_name = {program.actions[ident].name: program.actions[ident] for ident in sorted(offered)}
    return [
        {"name": action.name, "parameters": [{"name": one.name, "width": one.width} for one in action.params]}
        for action in by_name.values()
    ]


def _digest(program: Program, ident: int) -> dict[str, Any]:
    digest = program.digests[ident]
    fields = [
        {"name": f"{ref.header}.{ref.field}", "width": program.field_type(ref).width} for ref in digest.fields
    ]  # fmt: skip
    return {"name": digest.name, "fields": fields}


def _header_bytes(kind: HeaderType) -> int:
    """Bytes on the wire; the most there can be where a header has a varbit field."""
    if kind.max_bytes:
        return kind.max_bytes
    return (sum(field.width for field in kind.fields) + 7) // 8
