"""Random packets and control calls on one device, in random order."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from softswitch.device import Device, DeviceError, DigestList, Output
from tests.fuzz.calls import SECOND, Calls
from tests.fuzz.calls_ports import PortCalls
from tests.fuzz.calls_state import StateCalls
from tests.fuzz.calls_tables import TableCalls
from tests.fuzz.finding import require
from tests.fuzz.journal import Journal

CODES = {"NOT_FOUND", "ALREADY_EXISTS", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "INTERNAL"}
GENERATED = 300  # packets that generators may make in one step
LAST = 2**62  # of the clock: SW_TIME_MAX


class Monkey(TableCalls, StateCalls, PortCalls):
    """Does random things to a device. ``step`` takes each error that is documented, and raises all others."""

    def __init__(
        self, device: Device, rng: random.Random, journal: Journal, scratch: Path, *, alone: bool = True
    ) -> None:  # fmt: skip
        """Others may do things to the device as well, unless ``alone``: then less is sure, and the clock goes slow."""
        super().__init__(device, rng, journal, scratch, alone)
        self.drains = alone and rng.randrange(3) > 0
        self._traffic: Calls = [self.inject, self.advance, self.packet_out]
        self._tables, self._state, self._ports = self.table_calls(), self.state_calls(), self.port_calls()
        if self.program.value_sets:
            self._state.append(self.value_set)
        self._profiles = self.profile_calls() if self.program.profiles else self._tables

    # ---- driving -------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One packet, or one call."""
        self._act(self.rng.randrange(20))

    def call(self) -> None:
        """One call that lets no time pass."""
        self._act(self.rng.randrange(11, 20))

    def _act(self, kind: int) -> None:
        if kind < 11:
            calls = self._traffic
        elif kind < 15:
            calls = self._tables
        elif kind < 16:
            calls = self._profiles
        elif kind < 18:
            calls = self._state
        else:
            calls = self._ports
        self.control(self.rng.choice(calls))
        if self.drains:
            self.drain()

    def control(self, call: Callable[[], object]) -> None:
        """A call that may be refused."""
        self.journal.note(call.__name__)
        self.journal.add("calls")
        try:
            call()
        except DeviceError as error:
            require(error.code in CODES, f"{call.__name__}: code {error.code!r}")
            require(bool(str(error)), f"{call.__name__}: no message")
            require("out of memory" not in str(error), f"{call.__name__}: {error}")
            self.journal.add("refused")

    def finish(self) -> None:
        """What must hold in the end, and the end."""
        self.journal.note("finish")
        for name, live in self.entries.items():
            count = self.device.table_count(name)
            require(count == len(live) + self.own[name], f"{name} has {count} entries, not {len(live)} added ones")
        if self.rng.randrange(4) == 0:
            for ident in self.generators:
                self.device.pktgen_clear(ident)
            self.device.advance(LAST)
            self.control(self.inject)
        self.drain()
        self.device.stats()

    def drain(self) -> None:
        """Read all events."""
        while (event := self.device.next_event(0)) is not None:
            self.journal.add("events")
            if isinstance(event, DigestList):
                self.lists.append((event.digest, event.list_id))
                del self.lists[:-20]

    # ---- packets -------------------------------------------------------------------------------------------

    def take(self, outputs: list[Output]) -> None:
        """Check outputs."""
        times = [output.time_ns for output in outputs]
        require(times == sorted(times), "outputs are not in order of time")
        require(all(0 <= o.port < 512 and o.data for o in outputs), "an output has no port or no bytes")

    def _later(self) -> int:
        if not self.alone:
            return self.device.now() + self.rng.choice((0, 1, 1000, 10**6))
        step = self.rng.choice((0, 0, 1, 999, 1000, 10**5, 10**6, 10**8, SECOND, 61 * SECOND, 10**15))
        if self.generators:
            step = min(step, GENERATED * min(self.generators.values()) // len(self.generators))
        return min(self.device.now() + step, LAST)

    def _at(self) -> int:
        """A time for a packet; rarely one that has passed or never comes."""
        if self.rng.randrange(60) == 0:
            return self.rng.choice((self.device.now() - 1, -1, LAST + 1, 2**64 - 1, 2**64))
        return self._later()

    def inject(self) -> None:
        """Some packets."""
        for _ in range(self.rng.randrange(1, 8)):
            self.journal.add("packets")
            self.take(self.device.inject(self.port_number(), self.packets.packet(), self._at()))

    def advance(self) -> None:
        """Let time pass."""
        self.take(self.device.advance(self._at()))

    def packet_out(self) -> None:
        """A packet of the control plane."""
        self.journal.add("packets")
        self.take(self.device.packet_out(self.packets.packet()))
