"""Commands that compare and change: drain, undrain, diff, apply, verify."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from controller.verify import verify as find
from softswitch.cli.errors import CommandError
from softswitch.cli.output import show_json, show_table

from .common import DIFFERENT, UNHEALTHY, Json, MemoryFile, NoController, context

Name = Annotated[str, typer.Argument(metavar="PLANE|DEVICE|LINK")]
Timeout = Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How long a device may take to answer.")]


def drain(ctx: typer.Context, name: Name, as_json: Json = False) -> int:
    """Move traffic off a plane, a device or a link, without loss. Where it is the only way, it is used on."""
    return _mark(ctx, "drain", name, as_json)


def undrain(ctx: typer.Context, name: Name, as_json: Json = False) -> int:
    """Give a drained plane, device or link back."""
    return _mark(ctx, "undrain", name, as_json)


def _mark(ctx: typer.Context, call: str, name: str, as_json: bool) -> int:
    options = context(ctx)
    options.links_of(name)
    answer = options.call(call, name=name)
    if as_json:
        show_json(answer)
    else:
        print(f"drained: {', '.join(answer['drained']) or 'nothing'}")
    if answer["pending"]:
        raise CommandError(f"not yet carried out on {', '.join(answer['pending'])}; see 'polyplane events'")
    return 0


def show_updates(answer: dict[str, Any], as_json: bool) -> bool:
    """Differences by device; whether there are any. Devices that could not be read are a failure."""
    if as_json:
        show_json(answer)
    else:
        for device, updates in answer["updates"].items():
            for update in updates:
                print(f"{device}: {update}")
    if answer["errors"]:
        raise CommandError("\n".join(f"{device} was not read: {error}" for device, error in answer["errors"].items()))
    return any(answer["updates"].values())


def diff(ctx: typer.Context, memory: MemoryFile = None, timeout: Timeout = 5.0, as_json: Json = False) -> int:
    """What would have to be written to make the devices hold what they should: + new, ~ changed, - gone."""
    options = context(ctx)
    try:
        answer = options.call("diff")
    except NoController:
        answer = options.read_devices(memory, timeout).answer()
    return DIFFERENT if show_updates(answer, as_json) else 0


def apply(ctx: typer.Context, as_json: Json = False) -> int:
    """Read every device back and write what differs. The controller does so by itself when a session comes up."""
    answer = context(ctx).call("apply")
    different = show_updates(answer, as_json)
    if not different and not as_json:
        print("nothing to write", file=sys.stderr)
    return 0


def verify(ctx: typer.Context, memory: MemoryFile = None, timeout: Timeout = 5.0, as_json: Json = False) -> int:
    """Prove from what is installed that hosts reach each other, by every plane that is well and the right members."""
    options = context(ctx)
    try:
        findings = options.call("verify")
    except NoController:
        installed = options.read_devices(memory, timeout)
        held = {name: entities for name, entities in installed.entities.items() if name not in installed.blank}
        unread = installed.errors | installed.blank
        findings = [one.as_dict() for one in find(options.intent, installed.view, held, unread)]
    if as_json:
        show_json(findings)
    elif findings:
        show_table("", ("where", "what"), [(one["subject"], one["message"]) for one in findings])
    else:
        hosts = len(options.intent.hosts)
        limits = ", but for what the access list denies" if options.intent.acl else ""
        print(f"{hosts * (hosts - 1)} pairs of hosts reach each other by every plane that is well{limits}")
    return UNHEALTHY if findings else 0
