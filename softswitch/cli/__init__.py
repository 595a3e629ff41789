"""The ``softswitch`` command.

Data goes to standard output, everything else to standard error. Exit codes: 0 for success, 1 for a failure (a test that
fails, a program that does not load, a switch that does not answer), 2 for a command line that makes no sense.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from .ctl import ctl_app
from .describe import describe
from .run import normalize_run_arguments, run
from .stf import stf
from .trace import trace

app = typer.Typer(
    help="The embedded P4 target: runs p4c's BMv2 JSON natively and speaks P4Runtime.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.add_typer(ctl_app, name="ctl")
app.command()(stf)
app.command()(describe)
app.command()(trace)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["run"]:
        words = normalize_run_arguments(words)
    try:
        code = app(words, prog_name="softswitch", standalone_mode=False)
    except typer.TyperException as error:
        print(f"softswitch: {error.format_message()}", file=sys.stderr)
        return error.exit_code
    except typer.Abort:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except _failures() as error:
        print(f"softswitch: {error}", file=sys.stderr)
        return 1
    return code if isinstance(code, int) else 0


def _failures() -> tuple[type[Exception], ...]:
    """What a command may raise to end in one line and exit code 1."""
    from softswitch.control import ControlError
    from softswitch.device import DeviceError
    from softswitch.json_node import ProgramError
    from softswitch.stf.syntax import StfError
    from softswitch.toolchain import ToolchainError

    return (ControlError, DeviceError, ProgramError, StfError, ToolchainError, OSError)
