"""Whether an intent fits into the tables of the programs, found before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import finsy as fy

from controller.entities import TableEntry
from controller.model import Intent, Role
from controller.plan import plan
from controller.programs import Program, program_for

# Which part of an intent file fills a table.
_FILLED_BY = {
    "group": "links", "spray_mode": "links", "link": "links", "neighbor": "links", "port": "links",
    "ecn_profile": "classes", "traffic_class": "classes", "acl": "acl", "postcard_profile": "postcards",
}  # fmt: skip
_HOSTS = "nics"


def table_sizes(program: Program) -> dict[str, int]:
    """How many entries each table of a program takes."""
    return {table.alias: table.size for table in fy.P4Schema(program.p4info).tables}


def overflows(
    intent: Intent,
    programs: Callable[[Role], Program] = program_for,
    sizes: Mapping[Role, Mapping[str, int]] | None = None,
) -> list[tuple[str, str]]:
    """What does not fit: the part of the file, and what is wrong with it. ``sizes`` replaces the programs' own."""
    found: list[tuple[str, str]] = []
    known: dict[Role, Mapping[str, int]] = dict(sizes or {})
    for name, entities in plan(intent).items():
        role = intent.device_by_name[name].role
        if role not in known:
            known[role] = table_sizes(programs(role))
        used = Counter(entity.table for entity in entities if isinstance(entity, TableEntry) and not entity.default)
        for table, count in sorted(used.items()):
            size = known[role].get(table, 0)
            if count > size:
                section = _FILLED_BY.get(table, _HOSTS)
                found.append((section, f"{name} needs {count} entries in table {table}, which takes at most {size}"))
    return found
