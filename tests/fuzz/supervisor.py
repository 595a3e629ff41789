"""Starts workers under the sanitizers and reports what ends them."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from softswitch.toolchain import RUNTIME, compiler
from tests.fuzz.journal import Journal
from tests.fuzz.programs import ROOT

HANG_S = 120  # without a new step
LEAK_CHECK = "import ctypes; ctypes.CDLL(None).__lsan_do_recoverable_leak_check()"


class Unavailable(Exception):
    """There are no sanitizers here."""


@cache
def environment() -> dict[str, str]:
    """The environment in which a sanitized program can be loaded into Python. Raises Unavailable."""
    command = [*compiler(), "-print-file-name=libasan.so"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    library = done.stdout.strip()
    if done.returncode or not Path(library).is_absolute():
        raise Unavailable(f"{shlex.join(compiler())} has no libasan.so: the sanitizers need gcc")
    options = (
        "allocator_may_return_null=1:max_allocation_size_mb=2000:handle_abort=0:detect_stack_use_after_return=1:"
        "strict_string_checks=1:leak_check_at_exit=0"
    )
    env = os.environ | {"LD_PRELOAD": library, "ASAN_OPTIONS": options, "UBSAN_OPTIONS": "print_stacktrace=1"}
    if subprocess.run([sys.executable, "-c", LEAK_CHECK], env=env, capture_output=True, check=False).returncode:
        env["ASAN_OPTIONS"] += ":detect_leaks=0"  # the system does not let LeakSanitizer look
    return env


@dataclass(slots=True)
class Result:
    """What a run did, and the report of what it found."""

    counts: Counter[str] = field(default_factory=Counter)
    finding: str = ""


def run(arguments: list[str], result: Result) -> None:
    """One worker, to its end."""
    env = environment()
    with tempfile.TemporaryDirectory(prefix="softswitch-fuzz-") as folder:
        scratch = Path(folder)
        journal = Journal.create(scratch / "journal")
        log = scratch / "log"
        command = [sys.executable, "-m", "tests.fuzz.worker", str(scratch / "journal"), folder, *arguments]
        with log.open("wb") as out:
            worker = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out)
        hang = _watch(worker, journal)
        result.counts.update(journal.counts())
        text = log.read_text("utf-8", "replace")
        if hang or worker.returncode:
            result.finding = _report(journal, hang, text)
        elif leaks := _leaks(text):
            result.finding = "\n".join([*leaks, "FINDING: memory leaks", f"reproduce: with {shlex.join(arguments)}"])


def _leaks(log: str) -> list[str]:
    """LeakSanitizer's reports of the runtime and of generated programs. (Python loses memory on purpose.)"""
    ours = [part for part in log.split("\n\n") if "program.so" in part or str(RUNTIME) in part]
    return [part for part in ours if " leak of " in part][:5]


def _watch(worker: subprocess.Popen[bytes], journal: Journal) -> bool:
    """Wait for the end. True where the worker hung and had to be ended."""
    try:
        while True:
            at = journal.where()
            try:
                worker.wait(HANG_S)
                return False
            except subprocess.TimeoutExpired:
                if journal.where() == at:
                    worker.send_signal(signal.SIGABRT)  # which makes it tell where it is
                    worker.wait()
                    return True
    except BaseException:
        worker.kill()
        worker.wait()
        raise


def _report(journal: Journal, hang: bool, log: str) -> str:
    case, doing = journal.case.decode(), journal.doing.decode("utf-8", "replace")
    lines = log.strip().splitlines()
    shown = [*lines[:20], "...", *lines[-60:]] if len(lines) > 82 else lines
    what = f"no progress for {HANG_S} s" if hang else "the worker ended"
    return "\n".join([
        *shown,
        f"FINDING: {what} in step {journal.step} ({doing}) of {case}",
        f"reproduce: python -m tests.fuzz --case {shlex.quote(case)}",
    ])  # fmt: skip


def fuzz(seconds: float, seed: int, programs: list[Path], kinds: list[str]) -> Result:
    """Workers one after the other until the time is over, or a finding."""
    result, rng, end = Result(), random.Random(seed), time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not result.finding:
        paths = [str(path) for path in programs]
        run(["run", str(rng.getrandbits(32)), f"{left:.1f}", ",".join(kinds), *paths], result)
    return result
