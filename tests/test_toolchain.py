"""Finding a compiler, caching, and what the generated C looks like from outside."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from softswitch.bmv2_json import load
from softswitch.codegen import generate
from softswitch.device import Device
from softswitch.toolchain import Build, ToolchainError, compile_program, compiler

PROGRAM = Path(__file__).parent / "p4" / "build" / "l3_router.json"


@pytest.fixture(autouse=True)
def forget_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CC", raising=False)
    compiler.cache_clear()
    yield
    compiler.cache_clear()


def only(monkeypatch: pytest.MonkeyPatch, *names: str, zig: bool = False) -> None:
    """A machine on which only these compilers are to be found."""
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in names else None)
    spec = types.SimpleNamespace() if zig else None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if name == "ziglang" else None)


def test_cc_comes_before_clang_and_clang_before_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for names in (("cc", "clang"), ("clang",), ()):
        only(monkeypatch, *names, zig=True)
        compiler.cache_clear()
        found.append(compiler())
    assert found == [("/bin/cc",), ("/bin/clang",), (sys.executable, "-m", "ziglang", "cc")]


def test_no_compiler_is_an_error_that_names_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch)
    with pytest.raises(ToolchainError) as error:
        compiler()
    assert str(error.value) == (
        "no C compiler: install cc (gcc), clang, or the Python package ziglang, or set CC"
    )


def test_cc_variable_names_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "ccache gcc")
    assert compiler() == ("ccache", "gcc")


def test_the_same_source_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = generate(load(PROGRAM))
    first = compile_program(source, Build())
    stamp = first.stat().st_mtime_ns
    assert compile_program(source, Build()) == first
    assert first.stat().st_mtime_ns == stamp
    assert compile_program(source, Build(trace=True)) != first
    assert [path.name for path in (tmp_path / "softswitch").iterdir() if path.name.startswith("tmp")] == []


def test_keep_c_writes_one_function_for_each_table_and_state(tmp_path: Path) -> None:
    program = load(PROGRAM)
    Device(program, keep_c=tmp_path).close()
    text = (tmp_path / "program.c").read_text()
    for name in [*program.tables, *program.parser.states, *(a.name for a in program.actions.values())]:
        assert f"/* {name} */" in text


def test_a_program_that_does_not_compile_shows_the_compilers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"failed on .*program\.c:\n.*error: "):
        compile_program("not C", Build())
