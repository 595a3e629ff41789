"""Random values that a program is likely to treat differently from each other."""

from __future__ import annotations

import random

from softswitch import model as m

WILD = (-1, -(2**31), -(2**63), -(10**30), 512, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1,
        2**64, 2**64 + 1, 10**30)  # fmt: skip
STRINGS = ("", "x", "ingress", "a\0b", "é" * 40, "\ud800", "*/ int x; /*", '"', "\\", "%s%n", "\n", "linux", "NULL",
           "int", "x" * 5000)  # fmt: skip


class Values:
    """Numbers: small ones, edges, and constants that the program compares with."""

    def __init__(self, rng: random.Random, program: m.Program | None = None) -> None:
        self.rng = rng
        self._constants = [0x800, 0x86DD, 0x8100, 6, 17, 4, 5]
        if program is not None:
            for state in program.parser.states.values():
                self._constants += [value for t in state.transitions for value in t.values]
            for table in program.tables.values():
                self._constants += [part.value for entry in table.entries for part in entry.fields]

    def bits(self, width: int) -> int:
        """A number of ``width`` bits."""
        rng, full = self.rng, (1 << width) - 1
        kind = rng.randrange(8)
        if kind < 3:
            return rng.randrange(4) & full
        if kind < 5:
            return rng.choice(self._constants) & full
        if kind == 5:
            return full >> rng.choice((0, 0, 1, width // 2))
        return rng.getrandbits(width)

    def maybe_wild(self, valid: int, one_in: int = 12) -> int:
        """The valid number, or one out of any range."""
        return self.rng.choice(WILD) if self.rng.randrange(one_in) == 0 else valid

    def maybe_name(self, names: list[str]) -> str:
        """One of the names; rarely something else, always where there is none."""
        if not names or self.rng.randrange(50) == 0:
            return self.rng.choice(STRINGS)
        return self.rng.choice(names)
