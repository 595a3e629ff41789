"""Random calls: ports, queues, faults and packet generators."""

from __future__ import annotations

from softswitch.device import Fault, QueueConfig
from tests.fuzz.calls import SECOND, Caller, Calls
from tests.fuzz.values import STRINGS


class PortCalls(Caller):
    """``port_calls``."""

    def port_calls(self) -> Calls:
        """All that has to do with ports."""
        return [self.port, self.queue, self.queue_statistics, self.port_rate, self.fault, self.generator, self.pcap]

    def port(self) -> None:
        """Add, remove, up, down, look."""
        number = self.port_number()
        match self.rng.randrange(6):
            case 0:
                self.device.port_remove(number)
            case 1:
                self.device.port_add(number, self.rng.choice(("", "", "", *STRINGS)))
            case 2:
                self.device.port_info(number)
            case _:
                self.device.port_set_up(number, bool(self.rng.randrange(2)))

    def _rate(self) -> int:
        return self.values.maybe_wild(self.rng.choice((0, 0, 1, 7, 10**3, 10**6, 10**9, 10**15, 10**15 + 1)), 30)

    def queue(self) -> None:
        """A queue's configuration."""
        port, priority = self.port_number(), self.values.maybe_wild(self.rng.randrange(9), 40)
        depth = self.values.maybe_wild(self.rng.choice((0, 1, 2, 64, 1000)), 40)
        config = QueueConfig(self._rate(), self._rate(), depth, self.rng.choice((0, 0, 1, 1500, 2**63, 2**64)))
        self.device.queue_set(port, config, self.rng.choice((None, priority)))
        self.device.queue(port, priority)

    def queue_statistics(self) -> None:
        """A queue's counters."""
        priority = self.values.maybe_wild(self.rng.randrange(9), 20)
        self.device.queue_stats(self.port_number(), priority, clear_max=bool(self.rng.randrange(2)))

    def port_rate(self) -> None:
        """A link's rate."""
        self.device.port_rate_set(self.port_number(), self._rate())

    def fault(self) -> None:
        """The faults of a port."""
        rng = self.rng
        if rng.randrange(5) == 0:
            self.device.faults_clear()
            return
        chances = [rng.choice((0.0, 0.0, 0.1, 0.5, 1.0)) for _ in range(5)]
        if rng.randrange(12) == 0:
            chances[rng.randrange(5)] = rng.choice((-0.1, 1.1, float("nan"), float("inf"), 10**400))
        times = [self.values.maybe_wild(rng.choice((0, 0, 1, 1000, 10**6, SECOND, 2**60, 2**60 + 1)), 30) for _ in "dj"]
        direction = rng.choice(("rx", "tx", "rx", "tx", "both")) if rng.randrange(10) == 0 else rng.choice(("rx", "tx"))
        port = self.port_number()
        loss, enter, leave, corrupt, duplicate = chances
        delay, jitter = times
        fault = Fault(loss, enter, leave, corrupt, duplicate, delay, jitter, self._rate(), rng.randrange(8) == 0)
        self.device.fault_set(port, direction, fault)
        self.device.fault(port, direction)

    def generator(self) -> None:
        """A packet generator; few at a time, as each makes packets in every step."""
        ident = self.values.maybe_wild(self.rng.choice((0, 1, 63, 64)), 20)
        if self.rng.randrange(3) == 0 or len(self.generators) > 2:
            ident = self.rng.choice([ident, *self.generators])
            self.device.pktgen_clear(ident)
            self.generators.pop(ident, None)
            return
        least = 1 if self.alone else 10**5
        interval = self.rng.choice((0, least, least, 10**6, SECOND, 2**60, 2**60 + 1, -1, 2**64))
        count = self.rng.choice((0, 0, 1, 5, 2**64 - 1, -1))
        self.device.pktgen_set(ident, self.port_number(), interval, self.packets.packet(), count)
        self.generators[ident] = interval

    def pcap(self) -> None:
        """A tap of a port."""
        path = self.rng.choice((None, str(self.scratch / "tap.pcap"), "/dev/full", "/nonexistent/x", "a\0b", "\ud800"))
        self.device.pcap(self.port_number(), path)
