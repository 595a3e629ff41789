"""Loading a program for a command, with errors that name the file."""

from __future__ import annotations

from pathlib import Path

from softswitch.model import Program

from .errors import CommandError, UsageError


def load_program(path: Path) -> Program:
    """The program in a BMv2 JSON file. A file that is not there is a usage error, a bad one a failure."""
    from softswitch import bmv2_json
    from softswitch.json_node import ProgramError

    if not path.is_file():
        raise UsageError(f"no file {str(path)!r}; PROGRAM.json is what p4c-bm2-ss writes with -o")
    try:
        return bmv2_json.load(path)
    except ProgramError as error:
        raise CommandError(f"{path}: {error}") from error
