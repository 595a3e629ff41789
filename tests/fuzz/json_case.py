"""Mutated programs: loading one raises a documented error, or it runs."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from softswitch import bmv2_json
from softswitch import model as m
from softswitch.codegen import generate
from softswitch.device import Device, DeviceError
from softswitch.json_node import ProgramError
from softswitch.toolchain import FLAGS, RUNTIME, compiler
from tests.fuzz import programs
from tests.fuzz.bench import Bench
from tests.fuzz.calls import CPU_PORT
from tests.fuzz.finding import require
from tests.fuzz.monkey import Monkey
from tests.fuzz.mutants import Mutator

MUTANTS = 60  # in one case
BUILDS = 2  # of them at most that run
STEPS = 60
RUN_S = 5.0


def json_case(bench: Bench) -> None:
    """Some mutants of a program."""
    rng = bench.rng()
    document, original = programs.document(bench.program), programs.source(bench.program)
    borrowed = [programs.document(path) for path in rng.sample(programs.own(), 2)]
    mutator = Mutator(rng, document, borrowed)
    seen, built = {original}, 0
    for number in range(MUTANTS):
        bench.journal.note(f"mutant {number}: load")
        bench.journal.add("mutants")
        text = mutator.text() if rng.randrange(5) == 0 else mutator.structural()
        (bench.scratch / "mutant.json").write_bytes(text)
        loaded = _load(text)
        if loaded is None or loaded[1] in seen:
            continue
        program, source = loaded
        seen.add(source)
        bench.journal.add("generated")
        bench.journal.note(f"mutant {number}: compile")
        _compile(source, bench.scratch)
        if built < BUILDS and rng.randrange(4) == 0:
            built += 1
            _run(bench, number, program)


def _load(text: bytes) -> tuple[m.Program, str] | None:
    """The program and its C; None where it is refused."""
    try:
        program = bmv2_json.loads(text)
        return program, generate(program)
    except ProgramError as error:
        require(bool(error.message), "a ProgramError has no message")
        return None


def _compile(source: str, scratch: Path) -> None:
    """Have the compiler check the C: what is wrong with a program is to be found before."""
    path = scratch / "mutant.c"
    path.write_text(source)
    command = [*compiler(), *FLAGS, "-w", "-DSW_TRACE", "-fsyntax-only", "-I", str(RUNTIME), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"the C of a mutant does not compile:\n{done.stderr[:3000]}")


def _run(bench: Bench, number: int, program: m.Program) -> None:
    """Packets and control calls on the mutant."""
    bench.journal.note(f"mutant {number}: build")
    try:
        device = Device(program, cpu_port=CPU_PORT, priorities=2, sanitize=True)
    except DeviceError as error:
        require(error.code != "INTERNAL" and bool(str(error)), f"a mutant's device: {error.code}: {error}")
        return
    bench.journal.add("built")
    try:
        monkey = Monkey(device, bench.rng(str(number)), bench.journal, bench.scratch)
        deadline = time.monotonic() + RUN_S
        for _ in range(STEPS):
            monkey.step()
            if time.monotonic() > deadline:
                break
        monkey.finish()
    finally:
        device.close()
        shutil.rmtree(Path(device.lib._name).parent)
