"""The statements of a Simple Test Framework (STF) file, as values.

STF is the line-oriented format in which p4c keeps packet tests beside its sample programs. A statement knows the
line it came from, so that whoever runs it can name the place. Parsing is in ``stf.parser``, meaning in ``stf.runner``.
"""

from __future__ import annotations

from dataclasses import dataclass


class StfError(Exception):
    """A statement that cannot be read or carried out; the message begins with ``file:line:``."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")
        self.file, self.line, self.message = file, line, message


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written: ``digits`` has no prefix and may hold ``*`` for digits that do not matter."""

    base: int
    digits: str

    @property
    def bits_per_digit(self) -> int:
        """4, 3 or 1; 0 for decimal digits, which are no whole number of bits."""
        return {16: 4, 8: 3, 2: 1, 10: 0}[self.base]

    @property
    def value(self) -> int:
        """The number with every ``*`` read as 0."""
        return int(self.digits.replace("*", "0"), self.base)

    @property
    def has_wildcard(self) -> bool:
        return "*" in self.digits

    def __str__(self) -> str:
        return {16: "0x", 8: "0o", 2: "0b", 10: ""}[self.base] + self.digits


@dataclass(frozen=True, slots=True)
class KeyValue:
    """What one field has to match: a number, and at most one of a prefix length, a mask and an upper end."""

    number: Number
    prefix_len: int | None = None
    mask: int | None = None
    high: int | None = None

    def __str__(self) -> str:
        if self.prefix_len is not None:
            return f"{self.number}/{self.prefix_len}"
        if self.mask is not None:
            return f"{self.number}&&&{self.mask:#x}"
        return f"{self.number}->{self.high:#x}" if self.high is not None else str(self.number)


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action with named arguments; where a name is empty, the argument stands for its position."""

    action: str
    args: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Add:
    """``add TABLE [PRIORITY] FIELD:VALUE ... ACTION(ARG:VALUE, ...) [= ALIAS]``; the larger priority wins."""

    line: int
    table: str
    priority: int | None
    keys: tuple[tuple[str, KeyValue], ...]
    call: ActionCall
    alias: str | None


@dataclass(frozen=True, slots=True)
class SetDefault:
    """``setdefault TABLE ACTION(ARG:VALUE, ...)``"""

    line: int
    table: str
    call: ActionCall


@dataclass(frozen=True, slots=True)
class RemoveAll:
    """``remove all``: takes away every entry that the file added."""

    line: int


@dataclass(frozen=True, slots=True)
class Packet:
    """``packet PORT HEX ...``"""

    line: int
    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Expect:
    """``expect PORT [HEX ...] [$]``: the next packet on a port. ``pattern`` None takes any packet; it holds upper-case
    hexadecimal digits and ``*``; a longer packet matches too, unless ``exact`` (the ``$``)."""

    line: int
    port: int
    pattern: str | None
    exact: bool


@dataclass(frozen=True, slots=True)
class NoPacket:
    """``no_packet``: the last packet sent makes no packet leave on any port of the test."""

    line: int


@dataclass(frozen=True, slots=True)
class Wait:
    """``wait``: lets a second pass."""

    line: int


@dataclass(frozen=True, slots=True)
class CheckCounter:
    """``check_counter NAME(INDEX) [packets|bytes OP NUMBER]``. ``index`` is a number, or the alias of an entry for a
    direct counter. ``unit`` None: packets and bytes alike."""

    line: int
    counter: str
    index: int | str
    unit: str | None
    relation: str
    number: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command that BMv2's runtime command line has too (``mirroring_add 5 4``): an optional name, then integers,
    then rates as (units a microsecond, burst in units)."""

    line: int
    verb: str
    name: str
    numbers: tuple[int, ...]
    rates: tuple[tuple[float, int], ...]


Statement = Add | SetDefault | RemoveAll | Packet | Expect | NoPacket | Wait | CheckCounter | Command
