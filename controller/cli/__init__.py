"""The ``polyplane`` command.

Data goes to standard output, everything else to standard error. Exit codes: 0 fine, 1 failed, 2 a command line or an
intent file that makes no sense, 3 the fabric is not healthy (``status``, ``verify``), 4 installed and intended differ
(``diff``, ``up --dry-run``), 5 no controller is running.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .change import apply, diff, drain, undrain, verify
from .common import Context, NoController
from .counters import counters_app
from .fault import fault_app
from .run import down, up
from .shell import shell
from .show import events, links, planes, ports, queues, status
from .watch import watch

app = typer.Typer(
    help="Operates a multi-plane fabric: brings it up, watches it, drains it, says what is wrong.",
    epilog="Exit codes: 0 fine, 1 failed, 2 usage or intent file, 3 fabric not healthy, "
    "4 installed and intended differ, 5 no controller running.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Intent = Annotated[
    Path, typer.Option("--intent", "-f", metavar="FILE", envvar="POLYPLANE_INTENT", help="What the fabric should be.")
]
Socket = Annotated[
    Path | None, typer.Option("--socket", metavar="PATH", help="Of the controller; otherwise by the fabric.")
]


@app.callback()
def common(ctx: typer.Context, intent: Intent = Path("fabric.yaml"), socket: Socket = None) -> None:
    """Options before the command."""
    ctx.obj = Context(intent, socket)


for command in (
    up,
    down,
    status,
    planes,
    links,
    ports,
    queues,
    watch,
    drain,
    undrain,
    diff,
    apply,
    verify,
    events,
    shell,
):
    app.command()(command)
app.add_typer(fault_app, name="fault")
app.add_typer(counters_app, name="counters")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what matters arrives as exceptions
    from controller.api import ApiError
    from controller.intent import IntentError
    from controller.programs import ProgramMissing
    from softswitch.control import ControlError

    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(words, prog_name="polyplane", standalone_mode=False)
    except typer.TyperException as error:
        print(f"polyplane: {error.format_message()}", file=sys.stderr)
        return error.exit_code
    except IntentError as error:
        print(error, file=sys.stderr)
        return 2
    except typer.Abort:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except NoController as error:
        print(f"polyplane: {error}", file=sys.stderr)
        return 5
    except (ApiError, ControlError, ProgramMissing, OSError) as error:
        print(f"polyplane: {error}", file=sys.stderr)
        return 1
    return code if isinstance(code, int) else 0
