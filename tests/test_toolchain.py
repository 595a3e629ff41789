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
from softswitch.toolchain import Build, ToolchainError, compile_program, compiler, runtime_objects

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
    only(monkeypatch, "ccache")
    monkeypatch.setenv("CC", "ccache gcc")
    assert compiler() == ("ccache", "gcc")


def test_a_cc_that_is_not_there_is_an_error_that_names_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nowhere/gcc -O3")
    with pytest.raises(ToolchainError) as error:
        compiler()
    assert str(error.value) == (
        "CC names '/nowhere/gcc', which is not there; "
        "set CC to cc (gcc), clang, or the Python package ziglang, or unset it"
    )


def test_a_compiler_that_fails_without_a_word_shows_its_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "false")
    with pytest.raises(ToolchainError, match=r"^false failed on .*\.c with exit status 1:\nit said nothing$"):
        compile_program("", Build())
    assert list((tmp_path / "softswitch").iterdir()) == []


def test_a_cache_that_cannot_be_made_is_an_error_that_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ToolchainError) as error:
        compile_program("", Build())
    assert str(error.value) == (
        f"cannot keep compiled programs in {tmp_path}/file/softswitch: Not a directory; "
        "set XDG_CACHE_HOME to a directory that can be written"
    )


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for tests that want the runtime compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "missing", "no digests", "a file"])
def test_a_damaged_entry_of_the_cache_is_made_anew(
    shared_cache: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache))
    source = f"/* {damage} */ int answer(void) {{ return 42; }}"
    library = compile_program(source, Build())
    whole = library.read_bytes()
    if damage == "missing":
        library.unlink()
    elif damage == "no digests":
        (library.parent / "SHA256").unlink()
    elif damage == "a file":
        shutil.rmtree(library.parent)
        library.parent.touch()
    else:
        half = len(whole) // 2
        library.write_bytes({"cut": whole[:half], "empty": b"", "changed": whole[:half] + bytes(half)}[damage])
    assert compile_program(source, Build()) == library
    assert len(library.read_bytes()) == len(whole)
    stamp = library.stat().st_mtime_ns
    compile_program(source, Build())
    assert library.stat().st_mtime_ns == stamp
    assert [path.name for path in (shared_cache / "softswitch").iterdir() if path.name.startswith("tmp")] == []


def test_damaged_objects_of_the_runtime_are_made_anew(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache))
    objects = runtime_objects(Build())
    objects[0].write_bytes(b"")
    objects[1].unlink()
    assert runtime_objects(Build()) == objects
    assert all(path.stat().st_size for path in objects)


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
    with pytest.raises(ToolchainError, match=r"failed on .*program\.c with exit status 1:\n.*error: "):
        compile_program("not C", Build())
