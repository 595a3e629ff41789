"""P4Runtime entities in canonical form: hashable values that are equal exactly when a device behaves the same.

Names are P4Info aliases, numbers are plain integers, don't-care fields are left out. :mod:`controller.codec` turns them
into finsy's entities and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class Lpm:
    """A prefix; bits of ``value`` beyond it are zero."""

    value: int
    prefix_len: int


@dataclass(frozen=True, slots=True, order=True)
class Ternary:
    """A value under a mask; bits of ``value`` outside of it are zero."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Values within ``low..high``."""

    low: int
    high: int


Match: TypeAlias = int | Lpm | Ternary | Range


@dataclass(frozen=True, slots=True)
class TableEntry:
    """An entry of a table, or with no ``match`` and ``default``, the table's default action."""

    table: str
    match: tuple[tuple[str, Match], ...]
    action: str
    params: tuple[tuple[str, int], ...] = ()
    priority: int = 0
    default: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What identifies it on a device."""
        return ("table", self.table, self.match, self.priority, self.default)

    def __str__(self) -> str:
        match = ", ".join(f"{name}={show_match(value)}" for name, value in self.match)
        params = ", ".join(f"{name}={show_number(value)}" for name, value in self.params)
        rank = f" priority {self.priority}" if self.priority else ""
        return f"{self.table}[{'default' if self.default else match}]{rank} -> {self.action}({params})"


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest that the device sends. Times are nanoseconds."""

    name: str
    max_list_size: int
    max_timeout_ns: int
    ack_timeout_ns: int

    @property
    def key(self) -> tuple[object, ...]:
        """What identifies it on a device."""
        return ("digest", self.name)

    def __str__(self) -> str:
        return f"digest {self.name} (at most {self.max_list_size}, {self.max_timeout_ns} ns)"


@dataclass(frozen=True, slots=True)
class Meter:
    """A cell of an indirect meter; rates are units a second, bursts are units."""

    name: str
    index: int
    cir: int
    cburst: int
    pir: int
    pburst: int

    @property
    def key(self) -> tuple[object, ...]:
        """What identifies it on a device."""
        return ("meter", self.name, self.index)

    def __str__(self) -> str:
        return f"meter {self.name}[{self.index}] {self.cir}/s burst {self.cburst}, {self.pir}/s burst {self.pburst}"


@dataclass(frozen=True, slots=True)
class CloneSession:
    """Where copies of packets go that the program makes under this number; ``packet_length_bytes`` 0: all of them."""

    session_id: int
    ports: tuple[int, ...]
    packet_length_bytes: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        """What identifies it on a device."""
        return ("clone session", self.session_id)

    def __str__(self) -> str:
        return f"clone session {self.session_id} to {', '.join(map(str, self.ports))}"


Entity: TypeAlias = TableEntry | Digest | Meter | CloneSession
Key: TypeAlias = tuple[object, ...]


def entry(
    table: str, match: Mapping[str, Match], action: str, params: Mapping[str, int] | None = None, *, priority: int = 0
) -> TableEntry:
    """A table entry from plain mappings."""
    return TableEntry(table, tuple(sorted(match.items())), action, tuple(sorted((params or {}).items())), priority)


def show_match(value: Match) -> str:
    """A match value as people write it."""
    match value:
        case Lpm(number, length):
            return f"{show_number(number)}/{length}"
        case Ternary(number, mask):
            return f"{show_number(number)}&&&{mask:#x}"
        case Range(low, high):
            return f"{low}..{high}"
        case int(number):
            return show_number(number)


def show_number(value: int) -> str:
    """Small numbers in decimal, large ones (addresses, masks) in hexadecimal."""
    return str(value) if value < 65536 else f"{value:#x}"
