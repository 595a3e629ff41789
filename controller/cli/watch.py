"""``polyplane watch``: the fabric, live."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from softswitch.cli.output import cell_text

from .common import Context, Json, context
from .run import event_line
from .show import LINKS, PLANES, QUEUES, Column, cells, down_ports_line

STYLES = {"up": "green", "gray": "yellow", "degraded": "yellow", "held": "yellow", "probation": "yellow",
          "down": "red", "miscabled": "red", "drained": "cyan"}  # fmt: skip
EVENTS_SHOWN = 8


def watch(
    ctx: typer.Context,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0.1)] = 1.0,
    count: Annotated[int, typer.Option(min=0, help="End after so many views; 0 goes on until Ctrl-C.")] = 0,
    as_json: Json = False,
) -> int:
    """Planes, links that are not well, busy queues and the last events, again and again. JSON is one view a line."""
    options, seen = context(ctx), 0
    try:
        with Live(console=Console(), auto_refresh=False, transient=False) if not as_json else _Nothing() as live:
            while True:
                view = _view(options)
                if as_json:
                    print(json.dumps(view), flush=True)
                elif isinstance(live, Live):
                    live.update(_render(view), refresh=True)
                seen += 1
                if seen == count:
                    return 0
                time.sleep(interval)
    except KeyboardInterrupt:
        return 0


class _Nothing:
    """No live display."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _view(options: Context) -> dict[str, Any]:
    return {
        "time": time.time(),
        "status": options.call("status"),
        "links": options.call("links"),
        "queues": options.call("queues"),
        "events": options.call("events")[-EVENTS_SHOWN:],
    }


def _render(view: dict[str, Any]) -> RenderableType:
    status = view["status"]
    unwell = [link for link in view["links"] if link["state"] != "up" or link["drained"]]
    busy = sorted(view["queues"], key=lambda row: -row["tx_pps"])[:8]
    title = Text(f"{status['fabric']}: ") + Text(
        "healthy" if status["healthy"] else "NOT HEALTHY", style="green" if status["healthy"] else "bold red"
    )
    parts: list[RenderableType] = [title, _table("planes", PLANES, status["planes"])]
    if unwell:
        parts.append(_table("links not well", LINKS, unwell))
    if status["down_ports"]:
        parts.append(Text(down_ports_line(status), style=STYLES["down"]))
    parts += [_table("busiest queues", QUEUES, busy), *(Text(event_line(event)) for event in view["events"])]
    return Group(*parts)


def _table(title: str, columns: tuple[Column, ...] | Any, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", pad_edge=False)
    for heading, _, _ in columns:
        table.add_column(heading, overflow="fold")
    for row in cells(rows, columns):
        table.add_row(*(Text(cell_text(cell), style=STYLES.get(str(cell), "")) for cell in row))
    return table
