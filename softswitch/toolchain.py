"""Find a C compiler and make a generated program into a shared library, cached by content."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

RUNTIME = Path(__file__).parent / "runtime"
FLAGS = ("-std=gnu11", "-fPIC", "-pthread", "-Wall", "-Wextra")
# This machine's instructions are worth 15 % (popcnt, above all); -O3 and -flto are worth nothing, measured.
NATIVE = ("-march=native",) if platform.machine() == "x86_64" else ()
OPTIMIZED = ("-O2", *NATIVE, "-fno-semantic-interposition")
# -O0: a large program compiles five times as fast, and runs as fast under the sanitizers
SANITIZED = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


class ToolchainError(Exception):
    """There is no C compiler, or it refused the program."""


@dataclass(frozen=True, slots=True)
class Build:
    """How to compile: ``trace`` records every step of a packet, ``sanitize`` is ASan and UBSan, ``werror`` makes
    warnings errors, ``defines`` are macros as NAME or NAME=VALUE."""

    trace: bool = False
    sanitize: bool = False
    werror: bool = False
    defines: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """Compiler flags."""
        extra = (("-DSW_TRACE",) if self.trace else ()) + (("-Werror",) if self.werror else ())
        extra += tuple(f"-D{define}" for define in self.defines)
        return FLAGS + (SANITIZED if self.sanitize else OPTIMIZED) + extra


@cache
def compiler() -> tuple[str, ...]:
    """The command of the C compiler: ``cc``, ``clang`` or ``python -m ziglang cc``, the first that is there.

    The environment variable CC names another. Raises :class:`ToolchainError` where there is none.
    """
    if os.environ.get("CC"):
        return tuple(os.environ["CC"].split())
    for name in ("cc", "clang"):
        found = shutil.which(name)
        if found:
            return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise ToolchainError("no C compiler: install cc (gcc), clang, or the Python package ziglang, or set CC")


def cache_directory() -> Path:
    """Where compiled programs are kept: $XDG_CACHE_HOME/softswitch or ~/.cache/softswitch."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(root) / "softswitch"
    path.mkdir(parents=True, exist_ok=True)
    return path


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolchainError(f"{' '.join(command[:1])} failed on {command[-1]}:\n{done.stderr.strip()[:4000]}")


@cache
def _compiler_version() -> str:
    done = subprocess.run([*compiler(), "--version"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@cache
def _processor() -> str:
    """What "native" means here: machines of different kinds may share a home directory."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))


@cache
def _runtime_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(RUNTIME.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _key(build: Build, *parts: str) -> str:
    text = "\0".join([" ".join(compiler()), _compiler_version(), _processor(), _runtime_digest(), *build.flags, *parts])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def runtime_objects(build: Build) -> list[Path]:
    """The runtime's object files for these flags, compiled at first use."""
    directory = cache_directory() / f"runtime-{_key(build)}"
    if not directory.is_dir():
        with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
            sources = sorted(RUNTIME.glob("*.c"))
            commands = [
                [*compiler(), *build.flags, "-c", "-o", f"{scratch}/{source.stem}.o", str(source)] for source in sources
            ]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(_run, commands))
            _publish(Path(scratch), directory)
    return sorted(directory.glob("*.o"))


def _publish(made: Path, target: Path) -> None:
    """Move what was made into the cache; somebody else may have been faster."""
    staging = Path(tempfile.mkdtemp(dir=target.parent))
    for path in made.iterdir():
        shutil.move(path, staging / path.name)
    try:
        staging.rename(target)
    except OSError:
        shutil.rmtree(staging)
        if not target.is_dir():
            raise


def compile_program(source: str, build: Build, keep: Path | None = None) -> Path:
    """The shared library of a generated program. ``keep``: a directory that gets ``program.c`` as well.

    Raises :class:`ToolchainError`.
    """
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / "program.c").write_text(source)
    directory = cache_directory() / f"program-{_key(build, source)}"
    library = directory / "program.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
            program = Path(scratch) / "program.c"
            program.write_text(source)
            objects = [str(path) for path in runtime_objects(build)]
            _run([*compiler(), *build.flags, "-shared", "-I", str(RUNTIME), "-o", f"{scratch}/program.so", *objects,
                  str(program)])  # fmt: skip
            _publish(Path(scratch), directory)
    return library
