"""What a run was measured on, and with what."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

from softswitch.toolchain import ToolchainError, compiler


@dataclass(frozen=True, slots=True)
class Machine:
    """The computer, the date (UTC), how busy it was when the run began, and the versions of what took part."""

    cpu: str
    cores: int
    kernel: str
    date: str  # YYYY-MM-DD
    load: float  # runnable processes, average over a minute
    versions: dict[str, str]

    @classmethod
    def here(cls, bmv2: str | None) -> Machine:
        """This machine now; ``bmv2`` is the path of simple_switch_grpc, or None."""
        versions = {"python": platform.python_version(), "compiler": _compiler(), "polyplane": _revision()}
        if bmv2 is not None:
            versions["bmv2"] = f"{first_line(bmv2, '--version')} ({bmv2})"
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        return cls(_cpu(), os.cpu_count() or 1, platform.release(), date, round(os.getloadavg()[0], 1), versions)

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"{self.cpu}, {self.cores} cores, Linux {self.kernel}, {self.date}, load {self.load}; {versions}"


def first_line(*words: str) -> str:
    """The first line that a command prints, or "unknown"."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    except OSError:
        return "unknown"
    lines = done.stdout.splitlines()
    return lines[0].strip() if lines and done.returncode == 0 else "unknown"


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()
    return platform.machine()


def _compiler() -> str:
    try:
        return first_line(*compiler(), "--version")
    except ToolchainError:
        return "none"


def _revision() -> str:
    return first_line("git", "describe", "--always", "--dirty")
