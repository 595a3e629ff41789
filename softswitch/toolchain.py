"""Find a C compiler and make a generated program into a shared library, cached by content."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CHOICES = "cc (gcc), clang, or the Python package ziglang"
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
    words = tuple(os.environ.get("CC", "").split())
    if words:
        if shutil.which(words[0]) is None:
            raise ToolchainError(f"CC names {words[0]!r}, which is not there; set CC to {CHOICES}, or unset it")
        return words
    for name in ("cc", "clang"):
        found = shutil.which(name)
        if found:
            return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise ToolchainError(f"no C compiler: install {CHOICES}, or set CC")


def cache_directory() -> Path:
    """Where compiled programs are kept: $XDG_CACHE_HOME/softswitch or ~/.cache/softswitch.

    Raises :class:`ToolchainError` where it cannot be made.
    """
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(root) / "softswitch"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


def _unwritable(path: Path, error: OSError) -> ToolchainError:
    return ToolchainError(
        f"cannot keep compiled programs in {path}: {error.strerror}; "
        "set XDG_CACHE_HOME to a directory that can be written"
    )


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip()[:4000] or "it said nothing"
        raise ToolchainError(f"{command[0]} failed on {command[-1]} with exit status {done.returncode}:\n{said}")


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
    sources = sorted(RUNTIME.glob("*.c"))

    def make(scratch: Path) -> None:
        commands = [
            [*compiler(), *build.flags, "-c", "-o", f"{scratch}/{source.stem}.o", str(source)] for source in sources
        ]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_run, commands))

    names = [f"{source.stem}.o" for source in sources]
    directory = _cached(f"runtime-{_key(build)}", names, make)
    return [directory / name for name in names]


def compile_program(source: str, build: Build, keep: Path | None = None) -> Path:
    """The shared library of a generated program. ``keep``: a directory that gets ``program.c`` as well.

    Raises :class:`ToolchainError`.
    """
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / "program.c").write_text(source)

    def make(scratch: Path) -> None:
        program = scratch / "program.c"
        program.write_text(source)
        objects = [str(path) for path in runtime_objects(build)]
        _run([*compiler(), *build.flags, "-shared", "-I", str(RUNTIME), "-o", f"{scratch}/program.so", *objects,
              str(program)])  # fmt: skip

    return _cached(f"program-{_key(build, source)}", ["program.so"], make) / "program.so"


_DIGESTS = "SHA256"


def _cached(name: str, files: Sequence[str], make: Callable[[Path], None]) -> Path:
    """The directory ``name`` of the cache with ``files`` as ``make`` wrote them; made anew where one is missing or
    damaged (a full disk, a crash), as a library that is cut short kills the process that runs it."""
    entry = cache_directory() / name
    if _intact(entry, files):
        return entry
    try:
        scratch = Path(tempfile.mkdtemp(prefix="tmp", dir=entry.parent))
    except OSError as error:
        raise _unwritable(entry.parent, error) from error
    try:
        make(scratch)
        (scratch / _DIGESTS).write_text(_digests(scratch, files))
        _publish(scratch, entry, files)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return entry


def _digests(directory: Path, files: Sequence[str]) -> str:
    return "".join(f"{hashlib.sha256((directory / name).read_bytes()).hexdigest()}  {name}\n" for name in files)


def _intact(entry: Path, files: Sequence[str]) -> bool:
    try:
        return (entry / _DIGESTS).read_text() == _digests(entry, files)
    except (OSError, UnicodeDecodeError):
        return False


def _publish(made: Path, entry: Path, files: Sequence[str]) -> None:
    """Give what was made its name in the cache; somebody else may have been faster.

    A damaged entry is moved away first, not written over: somebody may have loaded it.
    """
    while True:
        try:
            made.rename(entry)
            return
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise _unwritable(entry.parent, error) from error
        if _intact(entry, files):
            return
        with tempfile.TemporaryDirectory(prefix="tmp", dir=entry.parent) as away, suppress(FileNotFoundError):
            entry.rename(Path(away) / entry.name)
