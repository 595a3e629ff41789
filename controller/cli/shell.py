"""``polyplane shell``: p4runtime-shell on one device."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from softswitch.cli.errors import CommandError, UsageError

from .common import context

PYTHON = Path(__file__).resolve().parents[2] / ".venv-shell/bin/python"


def shell(
    ctx: typer.Context,
    device: Annotated[str, typer.Argument(metavar="DEVICE")],
    election_id: Annotated[int, typer.Option(min=0, help="Below the controller's: the shell reads only.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the command as JSON and do not run it.")] = False,
) -> int:
    """Open p4runtime-shell on a device, beside the controller. It lives in .venv-shell, by requirements-shell.txt."""
    devices = context(ctx).intent.device_by_name
    if device not in devices:
        raise UsageError(f"no device {device!r}; there are {', '.join(devices)}")
    one = devices[device]
    command = [
        str(PYTHON), "-m", "p4runtime_sh", "--grpc-addr", one.address, "--device-id", str(one.device_id),
        "--election-id", f"0,{election_id}",
    ]  # fmt: skip
    if as_json:
        print(json.dumps({"command": command}))
        return 0
    if not PYTHON.exists():
        raise CommandError(f"no {PYTHON.parent.parent}; make it with: python3 -m venv .venv-shell && "
                           ".venv-shell/bin/pip install -r requirements-shell.txt")  # fmt: skip
    return subprocess.run(command, check=False, env=dict(os.environ)).returncode
