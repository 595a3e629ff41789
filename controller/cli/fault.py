"""``polyplane fault``: what goes wrong on emulated links, for those who want to see what happens then."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from controller.model import Device, Intent, Link, PortRef
from softswitch.cli.errors import CommandError, UsageError
from softswitch.cli.output import show_json, show_table
from softswitch.cli.run_config import parse_fault
from softswitch.control import ControlClient

from .common import Context, Json, context

fault_app = typer.Typer(
    help="Loss, delay and failure of links and planes, on softswitch devices.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Target = Annotated[str, typer.Argument(metavar="PLANE|DEVICE|LINK")]


@fault_app.command("set")
def set_fault(
    ctx: typer.Context,
    target: Target,
    what: Annotated[str, typer.Argument(metavar="NAME=VALUE,...", help="down, or such as loss=1%,delay=1ms")],
    towards: Annotated[str | None, typer.Option(metavar="DEVICE", help="Only packets towards this end.")] = None,
    as_json: Json = False,
) -> int:
    """Make links fail or misbehave, in both directions unless --towards says which."""
    options = context(ctx)
    changes = _changes(what)
    links = _links(options, target)
    if towards is not None and not any(towards in (link.lower.device, link.upper.device) for link in links):
        raise UsageError(f"--towards: {towards!r} is no end of {target}")
    done = []
    for link in links:
        for end in _ends(link, towards):
            _call(options.intent, end, "faults.set", direction="rx", **changes)
            done.append({"end": str(end), "link": link.name} | changes)
    _show(done, as_json)
    return 0


@fault_app.command()
def clear(ctx: typer.Context, target: Annotated[str | None, typer.Argument(metavar="[PLANE|DEVICE|LINK]")] = None,
          as_json: Json = False) -> int:  # fmt: skip
    """Take faults away: of a plane, a device or a link, or all."""
    options = context(ctx)
    intent = options.intent
    links = list(intent.links) if target is None else _links(options, target)
    cleared = [end for link in links for end in (link.lower, link.upper) if _device(intent, end).control or target]
    for end in cleared:
        _call(intent, end, "faults.reset")
    _show([{"end": str(end)} for end in cleared], as_json)
    return 0


@fault_app.command()
def show(ctx: typer.Context, as_json: Json = False) -> int:
    """Faults that are set."""
    intent, rows = context(ctx).intent, []
    for link in intent.links:
        for end in (link.lower, link.upper):
            if _device(intent, end).control is None:
                continue
            for fault in _call(intent, end, "faults.show"):
                active = {name: value for name, value in fault.items() if value and name not in ("port", "direction")}
                if active:
                    rows.append({"end": str(end), "link": link.name, "direction": fault["direction"]} | active)
    _show(rows, as_json)
    return 0


def _changes(what: str) -> dict[str, Any]:
    """The fault as the control socket takes it, by the syntax of ``softswitch run --fault``; ``down`` is all lost."""
    if what == "down":
        return {"down": True}
    try:
        fault = parse_fault(f"1:{what}").fault
    except typer.BadParameter as error:
        raise UsageError(str(error).replace("1:", "", 1)) from error
    return {name: value for name, value in dataclasses.asdict(fault).items() if value}


def _links(options: Context, target: str) -> list[Link]:
    links = options.links_of(target)
    if not links:
        raise UsageError(f"{target} has no links")
    return links


def _ends(link: Link, towards: str | None) -> Iterable[PortRef]:
    return [end for end in (link.lower, link.upper) if towards in (None, end.device)]


def _device(intent: Intent, end: PortRef) -> Device:
    return intent.device_by_name[end.device]


def _call(intent: Intent, end: PortRef, name: str, **args: Any) -> Any:
    control = _device(intent, end).control
    if control is None:
        raise CommandError(
            f"{end.device} has no 'control' socket in {intent.source}: faults can be made on softswitch devices only"
        )
    with ControlClient(control) as client:
        return client.call(name, port=end.port, **args)


def _show(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        show_json(rows)
        return
    if not rows:
        print("no faults", file=sys.stderr)
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    show_table("", columns, [[row.get(name) for name in columns] for row in rows])
