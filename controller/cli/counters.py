"""``polyplane counters``: a snapshot before a run, the difference after it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from controller.places import default_baseline
from softswitch.cli.errors import CommandError
from softswitch.cli.output import show_json, show_table

from .common import Context, Json, context

counters_app = typer.Typer(help="Counters before and after a run.", no_args_is_help=True, rich_markup_mode=None)
File = Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Of the baseline; otherwise by the fabric.")]


def _file(options: Context, given: Path | None) -> Path:
    return given or default_baseline(options.intent)


@counters_app.command()
def baseline(ctx: typer.Context, file: File = None, as_json: Json = False) -> int:
    """Keep all counters as they are now."""
    options = context(ctx)
    path, counters = _file(options, file), options.call("counters")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"time": time.time(), "counters": counters}))
    kept = {"file": str(path), "devices": len(counters), "counters": sum(map(len, counters.values()))}
    if as_json:
        show_json(kept)
    else:
        print(f"{kept['counters']} counters of {kept['devices']} devices kept in {path}")
    return 0


@counters_app.command()
def delta(
    ctx: typer.Context,
    file: File = None,
    match: Annotated[str, typer.Option(metavar="TEXT", help="Only counters whose name has this in it.")] = "",
    as_json: Json = False,
) -> int:
    """What has been counted since the baseline."""
    options = context(ctx)
    path = _file(options, file)
    try:
        before = json.loads(path.read_text())
        rows = [row for row in changes(before["counters"], options.call("counters")) if match in row["counter"]]
        seconds = time.time() - before["time"]
    except FileNotFoundError:
        raise CommandError(f"no baseline {path}; 'polyplane counters baseline' makes one") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{path} is not a baseline: {error!r}") from error
    if as_json:
        show_json({"seconds": seconds, "changes": rows})
    else:
        columns = ("device", "counter", "packets", "bytes")
        show_table(f"since {seconds:.1f} s", columns, [[row[name] for name in columns] for row in rows])
    return 0


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """Counters that moved. One that went back belongs to a device that started anew, and counts from zero."""
    rows = []
    for device, counters in after.items():
        for name, (packets, octets) in counters.items():
            old_packets, old_octets = before.get(device, {}).get(name, (0, 0))
            if packets < old_packets:
                old_packets = old_octets = 0
            if packets != old_packets:
                moved = {"packets": packets - old_packets, "bytes": octets - old_octets}
                rows.append({"device": device, "counter": name} | moved)
    return rows
