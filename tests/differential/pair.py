"""Both switches with one program: every step goes to both, and tells what came out differently."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

from finsy.proto import p4r

from tests.differential.bmv2 import Bmv2, Bmv2Died, Bmv2Error
from tests.differential.ours import Ours
from tests.differential.state import Cells, State, one_line
from tests.differential.unspecified import VALUES, Outputs, differ
from tests.p4runtime_client import Failure, Program

INT64_MAX = (1 << 63) - 1  # where BMv2's Thrift server stops, for wider registers too
Messages = list[tuple[int, bytes]]
PATIENCE_S = 2.0  # for messages to the controller, which BMv2 sends on their own time


@dataclass(frozen=True, slots=True)
class Arrival:
    """A packet arrives on ``port``; ``then``, if something left, the controller sends one."""

    port: int
    packet: bytes
    then: p4r.PacketOut | None = None

    def __str__(self) -> str:
        then = "" if self.then is None else f", then packet-out {one_line(self.then)}"
        return f"packet on port {self.port}: {self.packet.hex()}{then}"


@dataclass(frozen=True, slots=True)
class Check:
    """Compare what the controllers got, counters and registers."""

    def __str__(self) -> str:
        return "check"


Step = p4r.Update | Arrival | Check


@dataclass(frozen=True, slots=True)
class Difference:
    """What each switch made of something."""

    what: str
    bmv2: str
    ours: str

    def __str__(self) -> str:
        return f"{self.what}\n  BMv2:       {self.bmv2}\n  softswitch: {self.ours}"


@dataclass(slots=True)
class Tally:
    """What was done and compared."""

    updates: int = 0
    packets: int = 0
    unspecified: int = 0  # packets whose outcome depends on something that may differ
    outputs: int = 0
    packet_ins: int = 0
    digests: int = 0
    cells: int = 0

    def add(self, other: Tally) -> None:
        """Sum up."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


class Pair:
    """BMv2 and the softswitch. Raises Bmv2Error where BMv2 does not start."""

    def __init__(self, program: Program, seed: int) -> None:
        self.tally = Tally()
        self.accepted = False  # the last update, by BMv2
        self.over = ""  # why nothing more can be compared
        self.ours = Ours(program, seed)
        self._others = [Ours(program, seed, unspecified=value) for value in VALUES]
        self._state = State(self.ours.pipeline.index)
        self._ordered = is_ordered(seed)
        self._differences: list[Difference] = []
        try:
            self._bmv2 = Bmv2(program)
        except Bmv2Error:
            self._close_ours()
            raise

    def close(self) -> None:
        """End both."""
        self._bmv2.close()
        self._close_ours()

    def _close_ours(self) -> None:
        for one in self._all():
            one.close()

    def _all(self) -> Sequence[Ours]:
        return self.ours, *self._others

    def apply(self, step: Step) -> Sequence[Difference]:
        """Do a step on both."""
        self._differences = []
        try:
            match step:
                case Arrival():
                    self._arrival(step)
                case Check():
                    self._messages()
                    self._entities()
                    self._registers()
                case _:
                    self._write(step)
        except Bmv2Died as error:
            self.over = str(error)
        except Bmv2Error as error:
            self._differ(str(step), str(error), "goes on")
        return self._differences

    def _differ(self, what: str, theirs: str, ours: str) -> None:
        self._differences.append(Difference(what, theirs, ours))

    # ---- steps ---------------------------------------------------------------------------------------------

    def _write(self, change: p4r.Update) -> None:
        self.tally.updates += 1
        try:
            if change.entity.HasField("value_set_entry"):
                self._value_set(change.entity.value_set_entry)
            else:
                self._bmv2.controller.write(change)
            theirs = ""
        except Failure as failure:
            code, message = failure.details[0] if failure.details else (failure.code, failure.message)
            theirs = f"{code}: {message}"
        ours = self.ours.write(change)
        for other in self._others:
            other.write(change)
        self.accepted = not theirs
        if bool(theirs) != bool(ours):
            self._differ(f"write {one_line(change)}", theirs or "done", ours or "done")

    def _value_set(self, entry: p4r.ValueSetEntry) -> None:
        """BMv2 takes these by Thrift: the fields of a member without padding between them."""
        info = self.ours.pipeline.index.value_sets[entry.value_set_id]
        width = sum(one.width for one in info.fields)
        members: list[bytes] = []
        for member in entry.members:
            value = 0
            for one, match in zip(info.fields, member.match, strict=True):
                value = value << one.width | int.from_bytes(match.exact.value, "big")
            members.append(value.to_bytes((width + 7) // 8, "big"))
        self._bmv2.thrift.value_set(info.name, members)

    def _arrival(self, step: Arrival) -> None:
        self.tally.packets += 1
        ours, *others = (one.send(step.port, step.packet) for one in self._all())
        stats = self.ours.device.stats()
        if stats["loop_drops"]:
            self.over = "a packet goes round for ever, in BMv2 without an end"
            return
        if stats["index_errors"]:
            self.over = "an array index is out of range, which BMv2 does not check"
            return
        if step.then is not None and ours:
            theirs = self._bmv2.send_both(step.port, step.packet, len(ours), step.then)
            ours += self.ours.packet_out(step.then)
            for one, outputs in zip(self._others, others, strict=True):
                outputs += one.packet_out(step.then)
        else:
            theirs = self._bmv2.send(step.port, step.packet)
        self.tally.outputs += len(theirs)
        self.tally.unspecified += any(other != ours for other in others)
        if differ(theirs, ours, others, ordered=self._ordered):
            self._differ(str(step), _show(theirs), _show(ours))

    # ---- what the control plane sees -----------------------------------------------------------------------

    def _messages(self) -> None:
        """Packet-ins and digests since the last check, in order."""
        bmv2, ours = self._bmv2, self.ours
        _await(lambda: bmv2.has(len(ours.packet_ins), len(ours.digests)))
        self.tally.packet_ins += len(bmv2.packet_ins)
        self.tally.digests += len(bmv2.digests)
        self._sequence("packet-in", bmv2.packet_ins, ours.packet_ins, [one.packet_ins for one in self._others])
        self._sequence("digest", bmv2.digests, ours.digests, [one.digests for one in self._others])

    def _sequence(self, what: str, theirs: Messages, ours: Messages, others: Sequence[Messages]) -> None:
        """Compare and forget. Different digests are handed over by different threads."""
        if differ(theirs, ours, others, ordered=self._ordered):
            self._differ(f"{what}s: {len(theirs)} and {len(ours)}", _show(theirs), _show(ours))
        for side in (theirs, ours, *others):
            side.clear()

    def _entities(self) -> None:
        """Entries and counters."""
        for entity in self._state.questions():
            theirs = self._bmv2.controller.read(entity)
            self.tally.cells += len(theirs)
            sides = [theirs, *(one.read(entity) for one in self._all())]
            self._same(one_line(entity), *map(self._state.cells, sides))

    def _registers(self) -> None:
        for name in self.ours.pipeline.index.program.registers:
            cells = self._bmv2.thrift.registers(name)
            self.tally.cells += len(cells)
            sides = (
                _numbered([min(one.device.register(name, i), INT64_MAX) for i in range(len(cells))])
                for one in self._all()
            )
            self._same(f"register {name}", _numbered(cells), *sides)

    def _same(self, what: str, theirs: Cells, ours: Cells, *others: Cells) -> None:
        """Where an array depends on something unspecified, so may the index that was used, and nothing can be said."""
        if any(other != ours for other in others):
            return
        for key in theirs | ours:
            if theirs.get(key) != ours.get(key):
                self._differ(f"{what} [{key}]", str(theirs.get(key)), str(ours.get(key)))
                return


def is_ordered(seed: int) -> bool:
    """Whether packets of one port are compared in order.

    Nobody says in which order the copies of a multicast packet are made (BMv2 has them in a hash table), and its
    threads race where they go on in different egress queues. So half of the runs have groups of one copy, and order;
    the others have larger groups.
    """
    return seed % 2 == 1


def _await(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < deadline:
        time.sleep(0.002)


def _show(outputs: Outputs) -> str:
    return ", ".join(f"{port}: {data.hex()}" for port, data in sorted(outputs, key=lambda o: o[0])) or "nothing"


def _numbered(cells: Sequence[int]) -> Cells:
    return {i: str(cell) for i, cell in enumerate(cells)}


def steps_text(steps: Sequence[Step]) -> Iterator[str]:
    """Steps as a report shows them."""
    for step in steps:
        yield f"write {one_line(step)}" if isinstance(step, p4r.Update) else str(step)
