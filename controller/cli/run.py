"""``polyplane up`` and ``down``: the controller as a process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from controller.api import Api, ApiError, NoController, call, running_already, serving
from controller.events import Event
from controller.places import default_memory
from controller.react import Controller
from softswitch.cli.errors import CommandError
from softswitch.cli.output import show_json

from .change import show_updates
from .common import DIFFERENT, Context, Json, MemoryFile, context

Timeout = Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait for all devices.")]


def up(
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Make the devices hold what they should, and end.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Go on in the background.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written (exit code 4).")] = False,
    election_id: Annotated[int, typer.Option(min=2, help="The highest of several controllers is primary.")] = 10,
    memory: MemoryFile = None,
    log_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Of --detach.")] = None,
    timeout: Timeout = 30.0,
    as_json: Json = False,
) -> int:
    """Bring the fabric under control and keep it so, until SIGINT, SIGTERM or 'polyplane down'."""
    options = context(ctx)
    if dry_run:
        return _dry_run(options, memory, timeout, as_json)
    remembered = memory or default_memory(options.intent)
    if detach:
        return _detach(options, remembered, election_id, log_file, timeout, as_json)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    logging.getLogger("finsy").setLevel(logging.CRITICAL)
    return asyncio.run(_run(options, remembered, election_id, timeout, once=once, as_json=as_json))


async def _run(
    options: Context, memory: Path, election_id: int, timeout: float, *, once: bool, as_json: bool
) -> int:  # fmt: skip
    controller = Controller(options.intent, memory, election_id=election_id)
    api = Api(controller)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, api.stopped.set)
    controller.log.listeners.append(_print_json if as_json else _print_event)
    async with serving(api, options.socket_path), controller.running():
        ready = asyncio.create_task(controller.until(controller.converged))
        stopped = asyncio.create_task(api.stopped.wait())
        await asyncio.wait({ready, stopped}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            _say_ready(controller, as_json)
        elif once and not stopped.done():
            raise CommandError(_late(controller, timeout))
        if not once:
            await stopped
        for task in (ready, stopped):
            task.cancel()
    return 0


def _say_ready(controller: Controller, as_json: bool) -> None:
    intent = controller.intent
    entries = sum(map(len, controller.desired.values()))
    if as_json:
        ready = {"fabric": intent.name, "devices": len(intent.devices), "links": len(intent.links), "entries": entries}
        print(json.dumps({"ready": ready}), flush=True)
    else:
        print(
            f"{intent.name} is under control: {len(intent.devices)} devices, {len(intent.links)} links, "
            f"{entries} entries",
            flush=True,
        )


def _late(controller: Controller, timeout: float) -> str:
    late = []
    for name, session in controller.sessions.items():
        if controller.holds.get(name) != controller.desired[name]:
            late.append(f"{name} ({session.last_error or session.state})")
    return f"after {timeout:g} s not in sync: {', '.join(late)}"


def event_line(event: dict[str, Any]) -> str:
    """An event for people."""
    at = datetime.fromtimestamp(event["time"]).strftime("%H:%M:%S.%f")[:-3]
    line = f"{at} {event['kind']} {event['subject']}"
    if event["evidence"]:
        line += f": {event['evidence']}"
    return f"{line} -> {event['reaction']}" if event["reaction"] else line


def _print_event(event: Event) -> None:
    print(event_line(event.as_dict()), file=sys.stderr, flush=True)


def _print_json(event: Event) -> None:
    print(json.dumps({"event": event.as_dict()}), flush=True)


def _dry_run(options: Context, memory: Path | None, timeout: float, as_json: bool) -> int:
    """By the intent file as it is now, and by the fabric's health as the controller knows it, or knew it last."""
    file = options.intent.source.resolve()
    try:
        answer = options.call("diff", intent=str(file), timeout=timeout)
    except NoController:
        answer = options.read_devices(memory, timeout).answer()
    return DIFFERENT if show_updates(answer, as_json) else 0


def _detach(
    options: Context, memory: Path, election_id: int, log_file: Path | None, timeout: float, as_json: bool
) -> int:
    words = [sys.executable, "-m", "controller.cli", "-f", str(options.intent_file.resolve())]
    words += ["--socket", str(options.socket_path.resolve()), "up", "--memory", str(memory.resolve())]
    words += ["--election-id", str(election_id)]
    log_path = log_file or memory.with_suffix(".log")
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(NoController):
        options.call("status")
        raise ApiError(running_already(options.socket_path))
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            cwd=Path(__file__).resolve().parents[2],
        )  # fmt: skip
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CommandError(f"the controller ended with exit code {process.returncode}; see {log_path}")
        with contextlib.suppress(NoController):
            state = call(options.socket_path, "status")
            if state["converged"]:
                answer = {"pid": process.pid, "socket": str(options.socket_path), "log": str(log_path)}
                if as_json:
                    show_json(answer)
                else:
                    print(f"controller {process.pid} has {options.intent.name} under control; its log is {log_path}")
                return 0
        time.sleep(0.05)
    raise CommandError(f"after {timeout:g} s not every device is in sync; the controller {process.pid} goes on trying")


def down(ctx: typer.Context, timeout: Timeout = 10.0, as_json: Json = False) -> int:
    """End the controller. The fabric forwards on as it is, and looks after its own links."""
    options = context(ctx)
    options.call("stop")
    deadline = time.monotonic() + timeout
    while options.socket_path.exists():
        if time.monotonic() > deadline:
            raise CommandError(f"the controller has not ended after {timeout:g} s")
        time.sleep(0.02)
    if as_json:
        show_json({"stopped": True})
    else:
        print(f"the controller of {options.intent.name} has ended; the fabric forwards on")
    return 0
