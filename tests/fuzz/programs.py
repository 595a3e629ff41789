"""The programs that are fuzzed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from softswitch import bmv2_json
from softswitch import model as m
from softswitch.codegen import generate
from softswitch.json_node import ProgramError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "tests/p4/build", ROOT / "p4src/build")


def find(paths: Iterable[Path]) -> list[Path]:
    """The JSON files among the paths and in the folders among them; of programs that the softswitch takes."""
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    return [file for file in files if _is_taken(file)]


def _is_taken(path: Path) -> bool:
    try:
        generate(load(path))
    except ProgramError:
        return False
    return True


@cache
def own() -> list[Path]:
    """The repository's programs."""
    return find(FOLDERS)


@cache
def load(path: Path) -> m.Program:
    """The program."""
    return bmv2_json.load(path)


@cache
def source(path: Path) -> str:
    """Its C."""
    return generate(load(path))


@cache
def document(path: Path) -> str:
    """Its JSON without what is for people only: where things stand in the P4 source."""
    return json.dumps(_without(json.loads(path.read_bytes())))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in ("source_info", "pragmas")}
    return [_without(item) for item in value] if isinstance(value, list) else value
