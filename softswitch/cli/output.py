"""How commands print data: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

PIPE_WIDTH = 200  # columns of a table that does not go to a terminal


def show_json(value: Any) -> None:
    """One indented JSON document on standard output."""
    print(json.dumps(value, indent=2))


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on standard output; a cell that is too long for the terminal is wrapped."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell_text(value)) for value in row))
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def cell_text(value: object) -> str:
    """A value in a table for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)
