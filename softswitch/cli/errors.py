"""How a command ends other than well: one line on standard error and an exit code."""

from __future__ import annotations

import typer


class CommandError(typer.TyperException):
    """A failure: exit code 1."""


class UsageError(typer.TyperException):
    """A command line that makes no sense: exit code 2. The message names the valid choices."""

    exit_code = 2
