"""What a case works with."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.journal import Journal


@dataclass(frozen=True, slots=True)
class Bench:
    """A program, a seed, and where to write what is done."""

    program: Path
    seed: int
    journal: Journal
    scratch: Path

    def rng(self, part: str = "") -> random.Random:
        """Random numbers of the case, or of a part of it."""
        return random.Random(f"{self.program.stem} {self.seed} {part}")
