"""What the commands share: the intent, the controller's socket, exit codes, units."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from controller.api import NoController, call
from controller.intent import load_intent
from controller.memory import Memory
from controller.model import Intent, Link, UnknownName
from controller.places import default_memory, default_socket
from controller.readonly import Installed, read_devices, remembered_view
from softswitch.cli.errors import UsageError

__all__ = ["DIFFERENT", "UNHEALTHY", "Context", "Json", "MemoryFile", "NoController", "context", "rate"]

UNHEALTHY = 3
DIFFERENT = 4

Json = Annotated[bool, typer.Option("--json", help="JSON on standard output.")]
MemoryFile = Annotated[
    Path | None,
    typer.Option("--memory", metavar="FILE", help="What must survive a restart; otherwise by the fabric."),
]


@dataclass
class Context:
    """What the options before the command say."""

    intent_file: Path
    socket: Path | None

    @cached_property
    def intent(self) -> Intent:
        """The intent file, checked. Raises IntentError."""
        return load_intent(self.intent_file)

    @property
    def socket_path(self) -> Path:
        """Where the controller listens."""
        return self.socket or default_socket(self.intent)

    def read_devices(self, memory: Path | None, timeout: float) -> Installed:
        """What the devices hold, with no controller to ask: what it knew last is in its memory, or in the one given."""
        remembered = Memory(memory or default_memory(self.intent)).load()
        view = remembered_view(self.intent, remembered)
        return asyncio.run(read_devices(self.intent, view, timeout))

    def links_of(self, name: str) -> list[Link]:
        """The links that a plane, a device or a link stands for. Raises UsageError where there is none of that name."""
        try:
            return self.intent.links_named(name)
        except UnknownName as error:
            raise UsageError(str(error)) from error

    def call(self, name: str, /, **args: Any) -> Any:
        """Ask the running controller. Raises NoController and ApiError."""
        return call(self.socket_path, name, **args)


def context(ctx: typer.Context) -> Context:
    """The options before the command."""
    found = ctx.obj
    assert isinstance(found, Context)
    return found


def rate(value: float, unit: str = "") -> str:
    """A rate with a decimal prefix: 1.5k, 2.35M."""
    for prefix in ("", "k", "M", "G", "T"):
        if abs(value) < 1000:
            return f"{value:.3g}{prefix}{unit}" if value else "0"
        value /= 1000
    return f"{value:.3g}P{unit}"
