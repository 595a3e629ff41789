"""P4 programs, the C that is generated from them and the runtime compile without a warning."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from softswitch import bmv2_json
from softswitch.codegen import generate
from softswitch.toolchain import Build, compile_program
from tests.conftest import ROOT

MANIFEST = json.loads((ROOT / "p4src/build/MANIFEST.json").read_text())["programs"]


@pytest.mark.parametrize("source", MANIFEST)
@pytest.mark.parametrize("build", [Build(werror=True), Build(werror=True, trace=True)], ids=["plain", "trace"])
def test_program_compiles_with_warnings_as_errors(source: str, build: Build) -> None:
    [program] = [ROOT / path for path in MANIFEST[source]["outputs"] if path.endswith(".json")]
    assert compile_program(generate(bmv2_json.load(program)), build).is_file()


@pytest.mark.p4c
@pytest.mark.parametrize("source", [source for source in MANIFEST if source.startswith("p4src/")])
def test_p4_source_compiles_without_a_word(source: str, tmp_path: Path) -> None:
    """--Werror lets warnings of the kind "unsupported" through."""
    words = ["p4c-bm2-ss", "--std", "p4-16", "-o", str(tmp_path / "out.json"), source]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_every_p4_file_belongs_to_a_program() -> None:
    used = {source for program in MANIFEST.values() for source in program["sources"]}
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "p4src").rglob("*.p4")} - used == set()
