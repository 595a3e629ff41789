"""What the worker is doing, in a file that the supervisor can still read when the worker is dead."""

from __future__ import annotations

import ctypes as c
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Self

COUNTS = ("cases", "packets", "calls", "refused", "events", "mutants", "generated", "built", "rpcs", "texts")


class Journal(c.Structure):
    """``step`` and ``doing`` say where in which ``case`` the worker is; the counts are of all cases."""

    _fields_ = (
        ("case", c.c_char * 512), ("doing", c.c_char * 512), ("step", c.c_uint64),
        *((name, c.c_uint64) for name in COUNTS),
    )  # fmt: skip

    @classmethod
    def create(cls, path: Path) -> Self:
        """A new journal, all zero."""
        path.write_bytes(bytes(c.sizeof(cls)))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Another process's journal."""
        with path.open("r+b") as file:
            return cls.from_buffer(mmap.mmap(file.fileno(), 0))

    def begin(self, case: str) -> None:
        """A case starts."""
        self.case, self.doing, self.step = case.encode()[-511:], b"", 0
        self.add("cases")

    def note(self, doing: str) -> None:
        """The next step of the case starts."""
        self.doing = doing.encode("utf-8", "replace")[:511]
        self.step += 1

    def add(self, name: str, count: int = 1) -> None:
        """Count something."""
        setattr(self, name, getattr(self, name) + count)

    def where(self) -> tuple[bytes, int]:
        """Changes with every step."""
        return self.case, self.step

    def counts(self) -> Mapping[str, int]:
        """All counts by name."""
        return {name: getattr(self, name) for name in COUNTS}
