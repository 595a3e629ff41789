"""Values that packets and table entries both draw from, so that entries are hit and branches are taken."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from softswitch import model as m

WIDEST = 2048  # bits of a base value; a field takes as many of the low ones as it has
SMALL = range(1, 9)  # groups and sessions live here
PORT_BITS = 9  # as v1model's PortId_t
PORTS = (0, 1, 2, 3, 4, 5, 6, 7, 509, 510)  # 510 is the CPU port
HEXSTR = re.compile("0x[0-9a-fA-F]+")


class Pool:
    """A few base values for one run. The constants of the program are among those drawn."""

    def __init__(self, rng: random.Random, program: m.Program) -> None:
        self._rng = rng
        few = rng.random() < 0.5  # values, so that packets get through several tables one after the other
        self._common = 0.93 if few else 0.75
        self._constants = sorted(set(_hexstrs(json.loads(program.text)))) or [0]
        # a byte or a 16-bit word repeated looks the same from whichever byte or word a slice starts
        repeats = [self._repeat(8), self._repeat(16)]
        self._bases = [
            0, *rng.sample(SMALL, 3), *rng.choices(self._constants, k=3), *repeats, rng.getrandbits(WIDEST),
            (1 << WIDEST) - 1,
        ]  # fmt: skip
        self._ports: tuple[int, ...] = PORTS
        if few:
            self._bases, self._ports = rng.sample(self._bases, 3), tuple(rng.sample(PORTS, 3))

    def _repeat(self, width: int) -> int:
        return int.from_bytes(self._rng.getrandbits(width).to_bytes(width // 8, "big") * (WIDEST // width), "big")

    def draw(self, width: int) -> int:
        """A value of ``width`` bits."""
        kind = self._rng.random()
        if width <= 8 and self._rng.random() < 0.3:  # operations, flags
            return self._rng.randrange(32) & ((1 << width) - 1)
        if width == PORT_BITS and kind < 0.7:
            return self._rng.choice(self._ports)
        if kind < self._common:
            value = self._rng.choice(self._bases)
        elif kind < 0.96:
            value = self._rng.choice(self._constants) + self._rng.choice((0, 0, 0, 1, -1))
        elif kind < 0.98:
            value = self._rng.choice(SMALL)
        else:
            value = self._rng.getrandbits(width)
        return value & ((1 << width) - 1)


def _hexstrs(node: Any) -> Iterator[int]:
    """Every constant of the JSON."""
    if isinstance(node, str) and HEXSTR.fullmatch(node):
        yield int(node, 16)
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _hexstrs(item)
