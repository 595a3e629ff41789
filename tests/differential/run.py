"""One program, one seed: random steps for both switches until they differ, and the fewest steps that show it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finsy.proto import p4r

from softswitch.p4runtime.p4info import P4Index
from tests.differential.entities import Entities
from tests.differential.ours import Ours
from tests.differential.packets import Packets
from tests.differential.pair import Arrival, Check, Difference, Pair, Step, Tally, is_ordered, steps_text
from tests.differential.pool import Pool
from tests.p4runtime_client import Program, octets

CHURN = 0.12  # chance of a change of entries before a packet
PACKET_OUT = 0.2  # chance of a packet-out after a packet that leaves, where the program has a header for it
CHECK_EVERY = 100  # packets between two comparisons of state
SHORTEN_S = 60.0  # time to make a reproducer shorter


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference and how to get it."""

    program: str
    seed: int
    difference: Difference
    steps: Sequence[str]
    trace: Sequence[str]

    def __str__(self) -> str:
        lines = [f"{self.program}, seed {self.seed}: {self.difference}", "  steps:"]
        lines += [f"    {step}" for step in self.steps]
        lines += ["  what the softswitch did at the last step:", *(f"    {line}" for line in self.trace)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run. ``over``: why it ended early without a difference."""

    tally: Tally
    finding: Finding | None
    over: str


class Steps:
    """The random steps of one run. What was accepted decides what can follow."""

    def __init__(self, name: str, seed: int, index: P4Index) -> None:
        self._rng = random.Random(f"{name} {seed}")
        self._index = index
        self._pool = Pool(self._rng, index.program)
        self._packets = Packets(self._rng, index.program, self._pool)
        self.entities = Entities(self._rng, index, self._pool, ordered=is_ordered(seed))

    def generate(self, packets: int) -> Iterator[Step]:
        """Entries, then packets with changes of entries between them."""
        yield from self.entities.initial()
        for count in range(1, packets + 1):
            if self._rng.random() < CHURN:
                yield from self.entities.churn()
            yield Arrival(*self._packets.packet(), self._packet_out())
            if count % CHECK_EVERY == 0 or count == packets:
                yield Check()

    def _packet_out(self) -> p4r.PacketOut | None:
        if "packet_out" not in self._index.headers or self._rng.random() >= PACKET_OUT:
            return None
        message = p4r.PacketOut(payload=self._packets.packet()[1])
        for one in self._index.headers["packet_out"]:
            message.metadata.add(metadata_id=one.id, value=octets(self._pool.draw(one.width)))
        return message


def run(name: str, program: Program, seed: int, packets: int) -> Result:
    """Send so many packets, or until there is a difference. Raises Bmv2Error where BMv2 does not start."""
    pair = Pair(program, seed)
    done: list[Step] = []
    found: Sequence[Difference] = ()
    try:
        steps = Steps(name, seed, pair.ours.pipeline.index)
        for step in steps.generate(packets):
            done.append(step)
            found = pair.apply(step)
            if found or pair.over:
                break
            if isinstance(step, p4r.Update) and pair.accepted:
                steps.entities.done(step)
    finally:
        pair.close()
    return Result(pair.tally, _finding(name, program, seed, done, found[0]) if found else None, pair.over)


def _finding(name: str, program: Program, seed: int, steps: list[Step], first: Difference) -> Finding:
    shorter, difference = _shorten(program, seed, steps, first)
    shown = _trace(program, seed, shorter) if isinstance(shorter[-1], Arrival) else []
    return Finding(name, seed, difference, list(steps_text(shorter)), shown)


def _shorten(program: Program, seed: int, steps: list[Step], difference: Difference) -> tuple[list[Step], Difference]:
    """Leave out steps as long as something differs; larger parts first."""
    size, deadline = len(steps) // 2, time.monotonic() + SHORTEN_S
    while size:
        start = 0
        while start < len(steps) - 1 and time.monotonic() < deadline:
            fewer = steps[:start] + steps[start + size :]
            found = _replay(program, seed, fewer)
            if found is None:
                start += size
            else:
                steps, difference = found
        size //= 2
    return steps, difference


def _replay(program: Program, seed: int, steps: list[Step]) -> tuple[list[Step], Difference] | None:
    """The steps up to the first difference, and that."""
    pair = Pair(program, seed)
    try:
        for count, step in enumerate(steps, 1):
            found = pair.apply(step)
            if found:
                return steps[:count], found[0]
            if pair.over:
                break
    finally:
        pair.close()
    return None


def _trace(program: Program, seed: int, steps: Sequence[Step]) -> Sequence[str]:
    """What the softswitch does at the last step."""
    ours = Ours(program, seed, trace=True)
    try:
        for step in steps:
            ours.device.take_trace()
            if isinstance(step, Arrival):
                ours.send(step.port, step.packet)
            elif isinstance(step, p4r.Update):
                ours.write(step)
        return ours.device.take_trace()
    finally:
        ours.close()
