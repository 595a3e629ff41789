"""Random calls: counters, meters, registers, multicast groups, clone sessions and digests."""

from __future__ import annotations

from softswitch.device import Replica
from tests.fuzz.calls import SECOND, Caller, Calls
from tests.fuzz.finding import require


class StateCalls(Caller):
    """``state_calls``."""

    def state_calls(self) -> Calls:
        """All that has to do with state; rarely with such that the program has not."""
        program = self.program
        calls: list[tuple[object, Calls]] = [
            (True, [self.multicast, self.clone]), (program.counters, [self.counter]), (program.meters, [self.meter]),
            (program.registers, [self.register]), (program.digests, [self.digest, self.digest_ack]),
        ]  # fmt: skip
        return [call for objects, some in calls for call in some if objects or self.rng.randrange(20) == 0]

    def counter(self) -> None:
        """A counter."""
        name = self.values.maybe_name(list(self.program.counters))
        index = self._index(self.program.counters[name].size if name in self.program.counters else 1)
        self.device.counter(name, index)
        self.device.counter_set(name, index, self._count(), self._count())

    def meter(self) -> None:
        """A meter."""
        name = self.values.maybe_name(list(self.program.meters))
        index = self._index(self.program.meters[name].size if name in self.program.meters else 1)
        self.device.meter_set(name, index, self._meter_config())
        self.device.meter(name, index)

    def register(self) -> None:
        """A register."""
        name = self.values.maybe_name(list(self.program.registers))
        known = self.program.registers.get(name)
        index, width = self._index(known.size if known else 1), known.width if known else 8
        self.device.register(name, index)
        value = self.values.maybe_wild(self.values.bits(width), 30)
        self.device.register_set(name, index, value)
        got = self.device.register(name, index)
        require(got == value or not self.alone, f"register {name}[{index}] is {got:#x}, not {value:#x}")

    def _replicas(self) -> list[Replica]:
        rng = self.rng
        count = rng.choice((0, 1, 1, 2, 3, 70))
        return [Replica(self.port_number(), self.values.maybe_wild(rng.randrange(4), 60)) for _ in range(count)]

    def multicast(self) -> None:
        """A multicast group."""
        group = self.values.maybe_wild(self.rng.choice((0, 1, 1, 2, 3, 100, 65535, 65536)), 20)
        if self.rng.randrange(4):
            self.device.multicast_set(group, self._replicas())
        else:
            self.device.multicast_delete(group)

    def clone(self) -> None:
        """A clone session."""
        session = self.values.maybe_wild(self.rng.choice((0, 1, 2, 5, 100, 250, 32767, 32768)), 20)
        if self.rng.randrange(4):
            self.device.clone_set(session, self._replicas(), self.values.maybe_wild(self.rng.choice((0, 0, 1, 64)), 20))
        else:
            self.device.clone_delete(session)

    def _digest_name(self) -> str:
        return self.values.maybe_name([digest.name for digest in self.program.digests.values()])

    def digest(self) -> None:
        """A digest's configuration."""
        times = (0, 0, 1, 10**6, SECOND, 2**63, 2**64 - 1, 2**64, -1)
        self.device.digest_set(
            self._digest_name(), enabled=self.rng.randrange(6) > 0,
            max_list_size=self.values.maybe_wild(self.rng.choice((0, 1, 2, 10)), 20),
            max_timeout_ns=self.rng.choice(times), ack_timeout_ns=self.rng.choice(times),
        )  # fmt: skip

    def digest_ack(self) -> None:
        """An acknowledgement: of a list that was sent, or of none."""
        name, ident = self.rng.choice(self.lists) if self.lists else (self._digest_name(), 1)
        self.device.digest_ack(name, self.values.maybe_wild(ident, 6))
