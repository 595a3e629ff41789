"""The committed compiler output is what the sources say, and scripts/build-p4 notices where it is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MANIFEST = "p4src/build/MANIFEST.json"


def build_p4(tree: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) if path is None else {**os.environ, "PATH": path}
    command = [sys.executable, str(tree / "scripts/build-p4"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture
def tree(tmp_path: Path, root: Path) -> Path:
    """A copy of what build-p4 works on."""
    for folder in ("p4src", "tests/p4"):
        shutil.copytree(root / folder, tmp_path / folder)
    (tmp_path / "scripts").mkdir()
    shutil.copy(root / "scripts/build-p4", tmp_path / "scripts/build-p4")
    return tmp_path


@pytest.fixture
def one_program(tree: Path) -> Path:
    """The same with a single program, which compiles quickly."""
    for folder in ("tests/p4", "p4src/v1model"):
        for source in (tree / folder).glob("*.p4"):
            if source.name != "digests.p4":
                source.unlink()
    return tree


def test_committed_output_belongs_to_the_committed_sources(root: Path) -> None:
    done = build_p4(root, "--check", path="")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("are up to date (not recompiled: p4c-bm2-ss is not on PATH)\n")


@pytest.mark.p4c
def test_recompiling_changes_nothing(root: Path) -> None:
    done = build_p4(root, "--check")
    assert done.returncode == 0, done.stdout


def test_no_machine_path_is_in_the_output(root: Path) -> None:
    for source, entry in json.loads((root / MANIFEST).read_text())["programs"].items():
        program, _ = (path for path in entry["outputs"])
        text = (root / program).read_text()
        assert json.loads(text)["program"] == source
        assert str(root) not in text


def test_changed_source_is_named(tree: Path) -> None:
    source = tree / "tests/p4/digests.p4"
    source.write_text(source.read_text() + "\n")
    done = build_p4(tree, "--check", path="")
    assert done.returncode == 1
    assert "tests/p4/digests.p4: tests/p4/digests.p4 has changed since it was compiled\n1 differences" in done.stdout


def test_changed_include_is_named_for_every_program_that_includes_it(tree: Path) -> None:
    include = tree / "tests/p4/include/ethernet.p4"
    include.write_text(include.read_text() + "\n")
    done = build_p4(tree, "--check", path="")
    assert done.returncode == 1
    for name in ("digests", "l3_router"):
        line = f"tests/p4/{name}.p4: tests/p4/include/ethernet.p4 has changed since it was compiled\n"
        assert line in done.stdout


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "tests/p4/build/digests.json: missing"),
        (lambda path: path.write_text("{}"), "tests/p4/build/digests.json: is not what the compiler wrote"),
        (
            lambda path: path.with_name("stray.json").write_text("{}"),
            "tests/p4/build/stray.json: no program makes it",
        ),
    ],
    ids=["missing", "edited", "stray"],
)
def test_damaged_output_is_named(tree: Path, damage: object, message: str) -> None:
    assert callable(damage)
    damage(tree / "tests/p4/build/digests.json")
    done = build_p4(tree, "--check", path="")
    assert done.returncode == 1
    assert message in done.stdout.splitlines()


def test_program_without_manifest_entry_is_named(tree: Path) -> None:
    shutil.copy(tree / "tests/p4/digests.p4", tree / "tests/p4/added.p4")
    done = build_p4(tree, "--check", path="")
    assert done.returncode == 1
    assert "tests/p4/added.p4: not in the manifest" in done.stdout.splitlines()


def test_removed_program_is_named(tree: Path) -> None:
    (tree / "tests/p4/digests.p4").unlink()
    done = build_p4(tree, "--check", path="")
    assert done.returncode == 1
    assert "tests/p4/digests.p4: in the manifest, but gone" in done.stdout.splitlines()


def test_missing_manifest_is_an_error(tree: Path) -> None:
    (tree / MANIFEST).unlink()
    done = build_p4(tree, "--check", path="")
    assert done.returncode == 1
    assert done.stdout == f"{MANIFEST}: missing; run scripts/build-p4\n"


def test_without_compiler_building_says_so_and_writes_nothing(tree: Path) -> None:
    before = (tree / MANIFEST).read_bytes()
    done = build_p4(tree, path="")
    assert done.returncode == 3
    assert done.stdout.startswith("scripts/build-p4: p4c-bm2-ss is not on PATH")
    assert (tree / MANIFEST).read_bytes() == before


@pytest.mark.p4c
def test_build_restores_what_was_damaged(one_program: Path, root: Path) -> None:
    output = one_program / "tests/p4/build/digests.json"
    committed = output.read_bytes()
    output.write_text("{}")
    (one_program / "tests/p4/build/stray.json").write_text("{}")
    done = build_p4(one_program)
    assert done.returncode == 0, done.stderr
    assert "1 programs compiled by p4c-bm2-ss" in done.stdout
    assert not (one_program / "tests/p4/build/stray.json").exists()
    assert build_p4(one_program, "--check").returncode == 0
    if json.loads((one_program / MANIFEST).read_text())["compiler"] == committed_compiler(root):
        assert output.read_bytes() == committed


@pytest.mark.p4c
def test_program_that_does_not_compile_leaves_everything_as_it_was(one_program: Path) -> None:
    source = one_program / "tests/p4/digests.p4"
    source.write_text(source.read_text().replace("digest<learn_t>", "digests<learn_t>"))
    before = (one_program / MANIFEST).read_bytes()
    done = build_p4(one_program)
    assert done.returncode == 1
    assert done.stderr.startswith("scripts/build-p4: tests/p4/digests.p4: does not compile")
    assert (one_program / MANIFEST).read_bytes() == before


@pytest.mark.p4c
def test_compiler_warning_is_an_error(one_program: Path) -> None:
    source = one_program / "tests/p4/digests.p4"
    source.write_text(source.read_text().replace("struct learn_t", "const bit<8> UNUSED = 1;\n\nstruct learn_t"))
    done = build_p4(one_program)
    assert done.returncode == 1
    assert "'UNUSED' is unused" in done.stderr


def committed_compiler(root: Path) -> str:
    return str(json.loads((root / MANIFEST).read_text())["compiler"])
