"""What all random calls of a device share: the values they take, and what is known of the device."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from softswitch.device import Call, Device, DeviceError, MeterConfig
from tests.fuzz.finding import Finding, require
from tests.fuzz.journal import Journal
from tests.fuzz.packets import PacketMaker
from tests.fuzz.values import Values

CPU_PORT = 510
SECOND = 10**9
Calls = list[Callable[[], object]]


class Caller:
    """A device and what was done to it."""

    def __init__(self, device: Device, rng: random.Random, journal: Journal, scratch: Path, alone: bool) -> None:
        self.device, self.program, self.rng, self.journal, self.scratch = device, device.program, rng, journal, scratch
        self.alone = alone
        self.values = Values(rng, device.program)
        self.packets = PacketMaker(device.program, rng, self.values)
        self.entries: dict[str, set[int]] = {name: set() for name in self.program.tables}
        self.own = {name: len(table.entries) for name, table in self.program.tables.items()}
        self.members: dict[str, list[int]] = {name: [] for name in self.program.profiles}
        self.groups: dict[str, list[int]] = {name: [] for name in self.program.profiles}
        self.gone = [0, 2**32 + 1]  # handles that are not valid (any more)
        self.seen: set[tuple[str, int]] = set()
        self.lists: list[tuple[str, int]] = []  # digest lists that came
        self.generators: dict[int, int] = {}  # id -> interval

    def port_number(self) -> int:
        """Mostly one of a few ports."""
        rng = self.rng
        return self.values.maybe_wild(rng.choice((0, 1, 1, 2, 2, 3, 4, 9, CPU_PORT, 511, rng.randrange(512))), 40)

    def _handle(self, live: list[int] | set[int]) -> int:
        """A handle: mostly a valid one."""
        if live and self.rng.randrange(10):
            return self.rng.choice(sorted(live))
        return self.values.maybe_wild(self.rng.choice(self.gone), 4)

    def _count(self) -> int:
        return self.values.maybe_wild(self.rng.choice((0, 1, 2**40, 2**64 - 1)), 20)

    def _meter_config(self) -> MeterConfig | None:
        numbers = (0, 1, 10.5, 1e3, 1e9, 1e300, -1, float("inf"), float("nan"), 2**70, 10**400)
        if self.rng.randrange(5) == 0:
            return None
        rate, burst = self.rng.choice(numbers[:5]), self.rng.choice(numbers[:5])
        config = [rate, burst, rate * 2, burst]
        if self.rng.randrange(6) == 0:
            config[self.rng.randrange(4)] = self.rng.choice(numbers)
        return MeterConfig(*config)

    def _index(self, size: int) -> int:
        return self.values.maybe_wild(self.rng.choice((0, 1, max(size - 1, 0), size, self.rng.randrange(size + 1))), 20)

    def _call(self, actions: tuple[int, ...] | list[int]) -> Call:
        if self.rng.randrange(40) == 0 or not actions:
            actions = list(self.program.actions)
        action = self.program.actions[self.rng.choice(list(actions))]
        args = [self.values.maybe_wild(self.values.bits(p.width), 60) for p in action.params]
        if self.rng.randrange(60) == 0:
            args.append(1)
        return Call(action.name, tuple(args))

    def _new(self, where: str, handle: int, live: set[int] | list[int]) -> None:
        require((where, handle) not in self.seen, f"handle {handle} of {where} is used again")
        self.seen.add((where, handle))
        live.add(handle) if isinstance(live, set) else live.append(handle)

    def _forget(self, live: set[int] | list[int], handle: int, delete: Callable[[], None]) -> None:
        """Delete what ``live`` has or has not, and see that the answer fits."""
        known = handle in live
        try:
            delete()
        except DeviceError as error:
            sure = known and self.alone and error.code != "FAILED_PRECONDITION"
            require(not sure, f"cannot delete {handle}: {error}")
            raise
        require(known or not self.alone, f"deleted {handle}, which was not there")
        if known:
            live.remove(handle)
            self.gone = [*self.gone[-20:], handle]

    def _refused(self, call: Callable[[], object], what: str) -> None:
        try:
            call()
        except DeviceError:
            return
        raise Finding(what)
