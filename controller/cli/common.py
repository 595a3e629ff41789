"""What the commands share: the intent, the controller's socket, exit codes, units."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from controller.api import NoController, call, default_socket
from controller.intent import load_intent
from controller.model import Intent, Link, UnknownName
from softswitch.cli.errors import UsageError

__all__ = ["DIFFERENT", "UNHEALTHY", "Context", "Json", "NoController", "context", "default_memory", "rate"]

UNHEALTHY = 3
DIFFERENT = 4

Json = Annotated[bool, typer.Option("--json", help="JSON on standard output.")]


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
        return self.socket or default_socket(self.intent.name)

    def links_of(self, name: str) -> list[Link]:
        """The links that a plane, a device or a link stands for. Raises UsageError where there is none of that name."""
        try:
            return self.intent.links_named(name)
        except UnknownName as error:
            raise UsageError(str(error)) from error

    def call(self, name: str, /, **args: Any) -> Any:
        """Ask the running controller. Raises NoController and ApiError."""
        return call(self.socket_path, name, **args)


def default_memory(fabric: str) -> Path:
    """Where what must survive a restart is kept unless told otherwise."""
    folder = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(folder) / "polyplane" / f"{fabric}.json"


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
