"""The P4 programs, the runtime and every generated program compile without a warning."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from softswitch import bmv2_json
from softswitch.codegen import generate
from softswitch.toolchain import Build, compile_program
from tests.conftest import PROGRAMS, ROOT

P4_PROGRAMS = sorted((ROOT / "p4src/v1model").glob("*.p4"))
COMPILED = sorted([*PROGRAMS.glob("*.json"), *(ROOT / f"p4src/build/{path.stem}.json" for path in P4_PROGRAMS)])


@pytest.mark.parametrize("program", COMPILED, ids=lambda path: path.stem)
@pytest.mark.parametrize("build", [Build(werror=True), Build(werror=True, trace=True)], ids=["plain", "trace"])
def test_program_compiles_with_warnings_as_errors(program: Path, build: Build) -> None:
    assert compile_program(generate(bmv2_json.load(program)), build).is_file()


@pytest.mark.p4c
@pytest.mark.parametrize("program", P4_PROGRAMS, ids=lambda path: path.stem)
def test_p4c_has_nothing_to_say(program: Path, tmp_path: Path) -> None:
    words = ["p4c-bm2-ss", "--std", "p4-16", "-o", str(tmp_path / "out.json"), str(program)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
