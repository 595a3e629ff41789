"""Runs a directory of tests, NAME.json with NAME.stf, each in a process of its own so that none can disturb another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Case:
    """A test of the corpus."""

    name: str
    program: Path
    test: Path


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a test came out; ``reasons`` is empty for a pass."""

    name: str
    reasons: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.reasons


def cases(directory: Path) -> list[Case]:
    """Every NAME.stf of the directory by name; its program is NAME.json, which need not be there."""
    return [Case(test.stem, test.with_suffix(".json"), test) for test in sorted(directory.glob("*.stf"))]


def run_corpus(directory: Path, *, jobs: int = 0, timeout_s: float = 120.0) -> Iterator[Verdict]:
    """Verdicts in the order of names. ``jobs``: how many at a time, 0 for one per processor."""
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        yield from pool.map(lambda case: _run_case(case, timeout_s), cases(directory))


def _run_case(case: Case, timeout_s: float) -> Verdict:
    if not case.program.is_file():
        return Verdict(case.name, (f"no program {case.program.name}",))
    command = [sys.executable, "-m", "softswitch", "stf", str(case.program), str(case.test), "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return Verdict(case.name, (f"no result within {timeout_s:g} s",))
    if done.returncode < 0:
        return Verdict(case.name, (f"crashed: {signal.Signals(-done.returncode).name}",))
    if done.stdout:
        return Verdict(case.name, tuple(json.loads(done.stdout)[0]["problems"]))
    complaint = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return Verdict(case.name, (complaint[-1],))
