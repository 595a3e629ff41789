"""The runtime and every generated program compile without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from softswitch import bmv2_json
from softswitch.codegen import generate
from softswitch.toolchain import Build, compile_program
from tests.conftest import PROGRAMS


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.json")), ids=lambda path: path.stem)
@pytest.mark.parametrize("build", [Build(werror=True), Build(werror=True, trace=True)], ids=["plain", "trace"])
def test_program_compiles_with_warnings_as_errors(program: Path, build: Build) -> None:
    assert compile_program(generate(bmv2_json.load(program)), build).is_file()
