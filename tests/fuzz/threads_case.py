"""Control calls and reads of events beside packets, on several threads. Only the seed is the same every time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from softswitch.device import Device
from tests.fuzz import programs
from tests.fuzz.bench import Bench
from tests.fuzz.calls import CPU_PORT
from tests.fuzz.monkey import Monkey

CASE_S = 3.0


def threads_case(bench: Bench) -> None:
    """Two threads with packets and calls, two with calls only, one that reads events."""
    stop, problems = threading.Event(), list[BaseException]()
    program = programs.load(bench.program)
    with Device(program, seed=bench.seed, cpu_port=CPU_PORT, priorities=2, sanitize=True) as device:
        monkeys = [Monkey(device, bench.rng(str(i)), bench.journal, bench.scratch, alone=False) for i in range(4)]

        def steps(monkey: Monkey, act: Callable[[], None]) -> None:
            try:
                while not stop.is_set():
                    act()
            except BaseException as problem:  # told by the thread that started this one
                problems.append(problem)
                stop.set()

        acts = [(x, x.step) for x in monkeys[:2]] + [(x, x.call) for x in monkeys[2:]]
        threads = [threading.Thread(target=steps, args=act) for act in acts]
        for thread in threads:
            thread.start()
        end = time.monotonic() + CASE_S
        while time.monotonic() < end and not stop.is_set():
            device.next_event(10)
        stop.set()
        for thread in threads:
            thread.join()
    if problems:
        raise problems[0]
