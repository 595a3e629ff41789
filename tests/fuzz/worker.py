"""Runs cases until its time is over; ends with a traceback or a sanitizer's report on a finding."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import random
import sys
import time
from pathlib import Path

from tests.fuzz.bench import Bench
from tests.fuzz.cases import KINDS
from tests.fuzz.journal import Journal

GROWTH_MB = 1500  # then a new worker takes over: every program that was loaded stays in memory


def run_case(name: str, journal: Journal, scratch: Path) -> None:
    """A case by its name: KIND:PROGRAM:SEED."""
    kind, program, seed = name.split(":")
    journal.begin(name)
    KINDS[kind][1](Bench(Path(program), int(seed), journal, scratch))


def run(seed: int, seconds: float, programs: list[Path], kinds: list[str], journal: Journal, scratch: Path) -> None:
    """Random cases of these kinds; each kind gets its share of the time."""
    faulthandler.enable()
    rng = random.Random(seed)
    spent = dict.fromkeys(kinds, 0.0)
    end, limit = time.monotonic() + seconds, _resident_mb() + GROWTH_MB
    while time.monotonic() < end and _resident_mb() < limit:
        kind = min(kinds, key=lambda k: spent[k] / KINDS[k][0])
        start = time.monotonic()
        run_case(f"{kind}:{rng.choice(programs)}:{rng.getrandbits(32)}", journal, scratch)
        spent[kind] += time.monotonic() - start


def _resident_mb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def _report_leaks() -> None:
    """Have LeakSanitizer write what it finds to standard error, where it can."""
    ctypes.CDLL(None).__lsan_do_recoverable_leak_check()


def main(arguments: list[str]) -> None:
    """``JOURNAL SCRATCH case NAME`` or ``JOURNAL SCRATCH run SEED SECONDS KIND,KIND PROGRAM...``."""
    del os.environ["LD_PRELOAD"]  # the compilers that are started need no sanitizer
    journal, scratch = Journal.open(Path(arguments[0])), Path(arguments[1])
    if arguments[2] == "case":
        faulthandler.enable()
        run_case(arguments[3], journal, scratch)
    else:
        seed, seconds, kinds, *paths = arguments[3:]
        run(int(seed), float(seconds), [Path(p) for p in paths], kinds.split(","), journal, scratch)
    _report_leaks()


if __name__ == "__main__":
    main(sys.argv[1:])
