"""Commands that show: status, planes, links, ports, queues, events."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from controller.events import KINDS
from softswitch.cli.errors import UsageError
from softswitch.cli.output import show_json, show_table

from .common import UNHEALTHY, Json, context, rate
from .run import event_line

Sort = Annotated[str | None, typer.Option(metavar="COLUMN", help="Sort by this column, largest numbers first.")]
Row = dict[str, Any]
# heading, key in JSON, how it is shown
Column = tuple[str, str, Callable[[Any], object]]


def plain(value: Any) -> object:
    """As it is; an empty text is a dash."""
    return "-" if value == "" else value


def percent(value: float) -> str:
    """A share."""
    return f"{100 * value:.3g} %" if value else "0"


def bits(value: float) -> str:
    """A rate in bits a second."""
    return rate(value, "b/s")


PLANES: Sequence[Column] = (
    ("plane", "plane", plain), ("state", "state", plain), ("links", "links", plain), ("up", "links_up", plain),
    ("not well", "links_not_well", plain), ("packets/s", "rx_pps", rate), ("rate", "rx_bps", bits),
    ("marks/s", "marked_pps", rate),
)  # fmt: skip
DEVICES: Sequence[Column] = (
    ("device", "device", plain), ("role", "role", plain), ("plane", "plane", plain), ("state", "state", plain),
    ("session", "session", plain), ("in sync", "in_sync", plain), ("entries", "entries", plain),
    ("lacks", "lacks", lambda names: ", ".join(names) or "-"), ("error", "error", plain),
)  # fmt: skip
LINKS: Sequence[Column] = (
    ("link", "link", plain), ("plane", "plane", plain), ("state", "state", plain), ("drained", "drained", plain),
    ("loss up", "loss_up", percent), ("loss down", "loss_down", percent), ("up/s", "up_pps", rate),
    ("down/s", "down_pps", rate), ("flaps", "flaps", plain), ("evidence", "evidence", plain),
)  # fmt: skip
PORTS: Sequence[Column] = (
    ("device", "device", plain), ("port", "port", plain), ("leads to", "leads_to", plain), ("state", "state", plain),
    ("rx packets", "rx_packets", plain), ("rx/s", "rx_pps", rate), ("rx rate", "rx_bps", bits),
    ("forwarded", "forwarded_packets", plain), ("forwarded/s", "forwarded_pps", rate),
    ("forwarded rate", "forwarded_bps", bits),
)  # fmt: skip
QUEUES: Sequence[Column] = (
    ("device", "device", plain), ("port", "port", plain), ("queue", "queue", plain),
    ("classes", "classes", lambda names: ", ".join(names) or "-"), ("packets", "tx_packets", plain),
    ("packets/s", "tx_pps", rate), ("rate", "tx_bps", bits), ("marked", "marked_packets", plain),
    ("marks/s", "marked_pps", rate), ("early drops", "early_drops", plain),
)  # fmt: skip


def cells(rows: Sequence[Row], columns: Sequence[Column]) -> list[list[object]]:
    """Rows for a table."""
    return [[shown(row[key]) for _, key, shown in columns] for row in rows]


def status(ctx: typer.Context, as_json: Json = False) -> int:
    """Planes, devices and links at a glance. Exit code 3 where the fabric is not healthy."""
    state = context(ctx).call("status")
    if as_json:
        show_json(state)
    else:
        word = "healthy" if state["healthy"] else "NOT HEALTHY"
        backup = [one["device"] for one in state["devices"] if one["session"] == "backup"]
        others = f", another controller is primary of {', '.join(backup)}" if backup else ""
        print(f"{state['fabric']}: {word}{others}")
        show_table("", [name for name, _, _ in PLANES], cells(state["planes"], PLANES))
        show_table("", [name for name, _, _ in DEVICES], cells(state["devices"], DEVICES))
        print("links: " + ", ".join(f"{count} {name}" for name, count in state["links"].items() if count))
        if state["down_ports"]:
            print(down_ports_line(state))
        print(f"drained: {', '.join(state['drained']) or 'nothing'}")
        if state["last_event"]:
            print(f"last event: {event_line(state['last_event'])}")
    return 0 if state["healthy"] else UNHEALTHY


def down_ports_line(state: dict[str, Any]) -> str:
    """The ports without a carrier of a status that has some."""
    ports = (f"{one['port']} ({one['leads_to']})" for one in state["down_ports"])
    return f"ports without a carrier: {', '.join(ports)}"


def planes(ctx: typer.Context, sort: Sort = None, as_json: Json = False) -> int:
    """Planes: state, links, traffic that enters by them, ECN marks."""
    return _rows(ctx, "planes", PLANES, sort, as_json)


def links(ctx: typer.Context, sort: Sort = None, as_json: Json = False) -> int:
    """Links: state, loss by direction, packets a second, and what both ends say."""
    return _rows(ctx, "links", LINKS, sort, as_json)


def ports(ctx: typer.Context, sort: Sort = None, as_json: Json = False) -> int:
    """Ports in use: what they lead to and what passed."""
    return _rows(ctx, "ports", PORTS, sort, as_json)


def queues(ctx: typer.Context, sort: Sort = None, as_json: Json = False) -> int:
    """Egress queues that were used: rates, ECN marks, early drops."""
    return _rows(ctx, "queues", QUEUES, sort, as_json)


def _rows(ctx: typer.Context, call: str, columns: Sequence[Column], sort: str | None, as_json: bool) -> int:
    names = {heading: key for heading, key, _ in columns} | {key: key for _, key, _ in columns}
    if sort is not None and sort not in names:
        raise UsageError(f"--sort: no column {sort!r}; columns are {', '.join(heading for heading, _, _ in columns)}")
    rows: list[Row] = context(ctx).call(call)
    if sort is not None:
        values = [row[names[sort]] for row in rows]
        rows.sort(key=lambda row: row[names[sort]], reverse=all(isinstance(value, int | float) for value in values))
    if as_json:
        show_json(rows)
    else:
        show_table("", [heading for heading, _, _ in columns], cells(rows, columns))
    return 0


def events(
    ctx: typer.Context,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what happens.")] = False,
    kind: Annotated[list[str] | None, typer.Option(help="Only events of this kind; may be repeated.")] = None,
    as_json: Json = False,
) -> int:
    """What happened, when, on whose evidence, and what was done. With --follow, JSON is one event a line."""
    import json

    if unknown := set(kind or ()).difference(KINDS):
        raise UsageError(f"--kind: no kind {min(unknown)!r}; kinds are {', '.join(KINDS)}")
    options, since = context(ctx), 0
    while True:
        found = options.call("events", since=since)
        since = found[-1]["number"] if found else since
        chosen = [event for event in found if not kind or event["kind"] in kind]
        if as_json and not follow:
            show_json(chosen)
        for event in chosen if follow or not as_json else []:
            print(json.dumps(event) if as_json else event_line(event), flush=True)
        if not follow:
            return 0
        time.sleep(0.2)
