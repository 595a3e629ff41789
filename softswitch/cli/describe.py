"""``softswitch describe``: what is in a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .output import show_json, show_table
from .programs import load_program


def describe(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.json", help="BMv2 JSON of the program.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print a program's tables, actions, counters, meters, registers, digests and headers, with widths and sizes."""
    from softswitch.describe import describe as describe_program

    description = describe_program(load_program(program))
    if as_json:
        show_json(description)
    else:
        _show(description)


def _show(description: dict[str, Any]) -> None:
    print(f"program {description['program']}\n")
    for table in description["tables"]:
        if not table["compiler_made"]:
            _show_table(table)
    actions = [(one["name"], _fields(one["parameters"])) for one in description["actions"]]
    _section("actions", ("action", "parameters"), actions)
    _section("action profiles", ("profile", "size", "selector"), _rows(description["profiles"], "name size selector"))
    _section("counters", ("counter", "size", "of table"), _rows(description["counters"], "name size direct_table"))
    _section(
        "meters", ("meter", "size", "unit", "of table"), _rows(description["meters"], "name size unit direct_table")
    )
    _section("registers", ("register", "size", "bits"), _rows(description["registers"], "name size width"))
    digests = [(one["name"], _fields(one["fields"])) for one in description["digests"]]
    _section("digests", ("digest", "fields"), digests)
    _section("value sets", ("value set", "bits"), _rows(description["value_sets"], "name width"))
    _section("headers", ("header", "type", "bytes", "varbit"), _rows(description["headers"], "name type bytes varbit"))


def _show_table(table: dict[str, Any]) -> None:
    extras = [name.replace("_", " ") for name in ("direct_counter", "direct_meter", "idle_timeout") if table[name]]
    if table["profile"]:
        extras.append(f"profile {table['profile']}")
    if table["entries"]:
        extras.append(f"{table['entries']} entries of the program")
    print(f"table {table['name']} ({table['pipeline']}, {table['match']}, size {table['size']})")
    for field in table["key"]:
        print(f"    key      {field['name']}: {field['match']}, {field['width']} bits")
    for action in table["actions"]:
        print(f"    action   {action}")
    if table["default"] is not None:
        print(f"    default  {table['default']}{' (const)' if table['default_const'] else ''}")
    if extras:
        print(f"    with     {', '.join(extras)}")
    print()


def _section(title: str, columns: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        show_table(title, columns, rows)


def _rows(items: list[dict[str, Any]], names: str) -> list[tuple[object, ...]]:
    return [tuple(item[name] for name in names.split()) for item in items]


def _fields(fields: list[dict[str, Any]]) -> str:
    return ", ".join(f"{one['name']}: {one['width']}" for one in fields) or "-"
