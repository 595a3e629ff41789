"""Runs: each has a folder, and a mark in the environment of all that it starts, so that a killed one can be removed.

A run is called ``PID-START-N`` after the process that owns it (START: the kernel's start time of that process, in clock
ticks, because numbers of processes are used again) and how many it had before. When the owner is gone, whatever carries
its mark is a leftover. Namespaces and interfaces need no care of their own: they have no names outside, and end with
their last process.
"""

from __future__ import annotations

import itertools
import os
import re
import select
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUNS = Path("/run/polyplane")
MARK = "POLYPLANE_RUN"
PATIENCE_S = 5.0

_numbers = itertools.count(1)  # of this process's runs


@dataclass(frozen=True, slots=True)
class Run:
    """A run by its name, alive or not."""

    name: str

    @property
    def folder(self) -> Path:
        """Sockets, logs and network.json."""
        return RUNS / self.name

    @property
    def owner(self) -> int:
        """The number of the owning process."""
        return int(self.name.partition("-")[0])

    @property
    def alive(self) -> bool:
        """Whether the owner still runs."""
        return self.name.rpartition("-")[0] == f"{self.owner}-{_start_time(self.owner)}"

    def environment(self) -> dict[str, str]:
        """This process's environment with the mark."""
        return os.environ | {MARK: self.name}

    def processes(self) -> list[int]:
        """What carries the mark, without this process and those that it descends from."""
        spared = set(_ancestry())
        return [pid for pid, name in _marked() if name == self.name and pid not in spared]

    def remove(self) -> list[int]:
        """Ends every process of the run and removes the folder; the processes that were ended."""
        ended: list[int] = []
        while found := [pid for pid in self.processes() if pid not in ended]:  # one may have started another meanwhile
            ended += [pid for pid in found if _kill(pid, self.name)]
        shutil.rmtree(self.folder, ignore_errors=True)
        return ended


def begin() -> Run:
    """A new run, owned by this process. Raises OSError."""
    RUNS.mkdir(mode=0o755, exist_ok=True)
    run = Run(f"{os.getpid()}-{_start_time(os.getpid())}-{next(_numbers)}")
    run.folder.mkdir(mode=0o700)
    return run


def all_runs() -> list[Run]:
    """Every run that has a folder or a process, alive or not."""
    names = {path.name for path in RUNS.glob("*")} | {name for _, name in _marked()}
    return [Run(name) for name in sorted(names) if re.fullmatch(r"\d+-\d+-\d+", name)]


def leftovers() -> list[Run]:
    """The runs whose owner is gone."""
    return [run for run in all_runs() if not run.alive]


def _start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of the process; None where there is none, or only its exit status."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _ancestry() -> Iterator[int]:
    pid = os.getpid()
    while pid > 0:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def _mark_of(pid: int) -> str | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    found = re.search(rb"(?:^|\0)" + MARK.encode() + rb"=([^\0]*)", environment)
    return found[1].decode(errors="replace") if found else None


def _numbering_of(pid: int | str) -> str | None:
    """The PID namespace of a process: a run's owner has the number in its name in that of the run only."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def _marked() -> Iterator[tuple[int, str]]:
    here = _numbering_of("self")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or (name := _mark_of(int(entry.name))) is None:
            continue
        if _numbering_of(entry.name) == here:  # what a container runs is for the container to clean
            yield int(entry.name), name


def _kill(pid: int, mark: str) -> bool:
    """Kills the process if it still is the one that carries the mark, and waits for its end."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if _mark_of(pid) != mark:
            return False
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        select.select([fd], [], [], PATIENCE_S)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
