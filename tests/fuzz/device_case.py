"""One program under packets and control calls."""

from __future__ import annotations

import time

from softswitch.device import Device
from tests.fuzz import programs
from tests.fuzz.bench import Bench
from tests.fuzz.calls import CPU_PORT
from tests.fuzz.monkey import Monkey

STEPS = 600
CASE_S = 10.0  # a case that is slow ends here: what it did until then is the same every time


def device_case(bench: Bench) -> None:
    """Packets and control calls in random order."""
    rng = bench.rng()
    with Device(
        programs.load(bench.program), seed=rng.getrandbits(64), cpu_port=rng.choice((None, CPU_PORT, CPU_PORT, 64)),
        drop_port=rng.choice((511, 511, 0)), priorities=rng.randrange(1, 9), tick_ns=rng.choice((1000, 1, 10**9)),
        trace=rng.randrange(8) == 0, sanitize=True,
    ) as device:  # fmt: skip
        monkey = Monkey(device, rng, bench.journal, bench.scratch)
        deadline = time.monotonic() + CASE_S
        for _ in range(STEPS):
            monkey.step()
            if time.monotonic() > deadline:
                break
        monkey.finish()
