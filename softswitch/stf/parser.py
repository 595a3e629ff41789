"""Reads STF text into statements. One statement a line; ``#`` starts a comment; keywords in any case.

The grammar is the one of p4c's STF tools with the commands of its BMv2 driver, and on top of it ``VALUE&&&MASK`` and
``LOW->HIGH`` (also ``LOW..HIGH``) for fields, which that grammar cannot say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from .syntax import (
    ActionCall,
    Add,
    CheckCounter,
    Command,
    Expect,
    KeyValue,
    NoPacket,
    Number,
    Packet,
    RemoveAll,
    SetDefault,
    Statement,
    StfError,
    Wait,
)

MAX_PORT = 511
MAX_DIGITS = 3000  # of a number; the widest field has 8,192 bits

_NAME = r"[A-Za-z_$][\w$]*(?:\[\d+\])?"
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<quoted>"[^"]+")
  | (?P<number>0[xX][0-9a-fA-F*]+ | 0[bB][01*]+ | 0[oO][0-7*]+ | \d+(?:\.(?=\d)\d+)?)
  | (?P<name>{_NAME}(?:\.{_NAME})*)
  | (?P<symbol>&&& | -> | \.\. | [=!<>]= | [<>=:,/()])
  )""",
    re.VERBOSE,
)
_BASES = {"0x": 16, "0b": 2, "0o": 8}
_LONGEST_NUMBER = 4096  # characters
_RELATIONS = ("==", "!=", "<=", "<", ">=", ">")

# What follows each command: n a name, i an integer, i+ one or more, r+ one or more rates.
_COMMANDS = {
    "mirroring_add": "i i",
    "mirroring_add_mc": "i i",
    "mirroring_delete": "i",
    "mirroring_get": "i",
    "mc_mgrp_create": "i",
    "mc_node_create": "i i+",
    "mc_node_update": "i i+",
    "mc_node_associate": "i i",
    "counter_read": "n i",
    "counter_write": "n i i i",
    "register_read": "n i",
    "register_write": "n i i",
    "register_reset": "n",
    "meter_get_rates": "n i",
    "meter_set_rates": "n i r+",
    "meter_array_set_rates": "n r+",
}


def parse_file(path: Path) -> list[Statement]:
    """The statements of a file. Raises StfError, and OSError where the file cannot be read."""
    return parse(path.read_text(encoding="utf-8", errors="replace"), path.name)


def parse(text: str, file: str = "<stf>") -> list[Statement]:
    """The statements of a text; ``file`` is what errors call it. Raises StfError."""
    statements = []
    for number, line in enumerate(text.splitlines(), 1):
        code = _without_comment(line).strip()
        if code:
            statements.append(_LineParser(file, number, code).statement())
    return statements


def _without_comment(line: str) -> str:
    quoted = False
    for at, char in enumerate(line):
        if char == '"':
            quoted = not quoted
        elif char == "#" and not quoted:
            return line[:at]
    return line


class _LineParser:
    """Recursive descent over the tokens of one line."""

    def __init__(self, file: str, line: int, code: str) -> None:
        self._file, self._line = file, line
        keyword, _, self._rest = code.partition(" ") if " " in code else code.partition("\t")
        self._keyword = keyword.strip().lower()
        self._tokens: list[tuple[str, str]] = []
        self._at = 0

    def statement(self) -> Statement:
        keyword, rest = self._keyword, self._rest.strip()
        if keyword == "packet":
            return self._packet(rest)
        if keyword == "expect":
            return self._expect(rest)
        readers: dict[str, Callable[[], Statement]] = {
            "add": self._add,
            "setdefault": self._set_default,
            "remove": self._remove,
            "check_counter": self._check_counter,
            "no_packet": lambda: NoPacket(self._line),
            "wait": lambda: Wait(self._line),
        }
        reader = self._command if keyword in _COMMANDS else readers.get(keyword)
        if reader is None:
            known = ", ".join(sorted(["packet", "expect", *readers, *_COMMANDS]))
            self._fail(f"unknown statement {keyword!r}; known are {known}")
        self._tokens = self._tokenize(rest)
        statement = reader()
        if self._at < len(self._tokens):
            self._fail(f"unexpected {self._tokens[self._at][1]!r} after the statement")
        return statement

    # -- packets ------------------------------------------------------------------------------------------

    def _packet(self, rest: str) -> Packet:
        port, digits = self._port_and_digits(rest)
        if not digits:
            self._fail("packet needs hexadecimal data after the port")
        if not re.fullmatch(r"[0-9A-F]+", digits):
            self._fail(f"packet data {digits!r} has characters other than hexadecimal digits")
        if len(digits) % 2:
            self._fail(f"packet data has an odd number of digits ({len(digits)})")
        return Packet(self._line, port, bytes.fromhex(digits))

    def _expect(self, rest: str) -> Expect:
        port, digits = self._port_and_digits(rest)
        exact = digits.endswith("$")
        pattern = digits.removesuffix("$")
        if not re.fullmatch(r"[0-9A-F*]*", pattern):
            self._fail(f"expected data {digits!r} has characters other than hexadecimal digits, '*' and a last '$'")
        return Expect(self._line, port, pattern if digits else None, exact)

    def _port_and_digits(self, rest: str) -> tuple[int, str]:
        words = rest.split()
        if not words or not words[0].isdecimal():
            self._fail(f"{self._keyword} needs a port number, not {words[0] if words else 'nothing'!r}")
        if len(words[0]) > 3 or int(words[0]) > MAX_PORT:
            self._fail(f"port {words[0]} is not within 0..{MAX_PORT}")
        return int(words[0]), "".join(words[1:]).upper()

    # -- tables -------------------------------------------------------------------------------------------

    def _add(self) -> Add:
        table = self._name("a table")
        priority = self._integer("a priority") if self._peek_kind() == "number" else None
        keys = []
        while self._peek_kind(1) == "symbol" and self._peek(1) == ":":
            field = self._name("a key field")
            self._symbol(":")
            keys.append((field, self._key_value()))
        call = self._call()
        alias = None
        if self._peek() == "=":
            self._symbol("=")
            alias = self._name("an alias for the entry")
        return Add(self._line, table, priority, tuple(keys), call, alias)

    def _set_default(self) -> SetDefault:
        return SetDefault(self._line, self._name("a table"), self._call())

    def _remove(self) -> RemoveAll:
        if self._name("'all'").lower() != "all":
            self._fail("only 'remove all' is known")
        return RemoveAll(self._line)

    def _key_value(self) -> KeyValue:
        number = self._number("a value")
        after = self._peek()
        if after == "/":
            self._symbol("/")
            return KeyValue(number, prefix_len=self._integer("a prefix length"))
        if after == "&&&":
            self._symbol("&&&")
            return KeyValue(number, mask=self._integer("a mask"))
        if after in ("->", ".."):
            self._symbol(after)
            return KeyValue(number, high=self._integer("the upper end of the range"))
        return KeyValue(number)

    def _call(self) -> ActionCall:
        action = self._name("an action")
        self._symbol("(")
        args: list[tuple[str, int]] = []
        while self._peek() != ")":
            if args:
                self._symbol(",")
            name = ""
            if self._peek_kind() == "name":
                name = self._name("an argument")
                self._symbol(":")
            args.append((name, self._integer("the argument's value")))
        self._symbol(")")
        return ActionCall(action, tuple(args))

    # -- counters and commands ----------------------------------------------------------------------------

    def _check_counter(self) -> CheckCounter:
        counter = self._name("a counter")
        self._symbol("(")
        by_name = self._peek_kind() in ("name", "quoted")
        index: int | str = self._name("an index") if by_name else self._integer("an index")
        self._symbol(")")
        if self._peek() is None:
            return CheckCounter(self._line, counter, index, None, "==", 0)
        unit = self._name("'packets' or 'bytes'").lower()
        if unit not in ("packets", "bytes"):
            self._fail(f"a counter counts 'packets' or 'bytes', not {unit!r}")
        relation = self._peek()
        if relation not in _RELATIONS:
            self._fail(f"expected one of {' '.join(_RELATIONS)}, not {relation!r}")
        self._symbol(relation)
        return CheckCounter(self._line, counter, index, unit, relation, self._integer("a number"))

    def _command(self) -> Command:
        name = ""
        numbers: list[int] = []
        rates: list[tuple[float, int]] = []
        for part in _COMMANDS[self._keyword].split():
            if part == "n":
                name = self._name("a name")
            elif part == "r+":
                while self._peek() is not None or not rates:
                    rates.append(self._rate())
            else:
                numbers.append(self._integer("a number"))
                while part == "i+" and self._peek() is not None:
                    numbers.append(self._integer("a number"))
        return Command(self._line, self._keyword, name, tuple(numbers), tuple(rates))

    def _rate(self) -> tuple[float, int]:
        kind, text = self._next("a rate")
        if kind != "number" or text[:2].lower() in _BASES:
            self._fail(f"expected a rate as UNITS_PER_MICROSECOND:BURST, not {text!r}")
        self._symbol(":")
        return float(text), self._integer("a burst")

    # -- tokens -------------------------------------------------------------------------------------------

    def _tokenize(self, text: str) -> list[tuple[str, str]]:
        tokens, at = [], 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                self._fail(f"cannot read {text[at:].strip()[:20]!r}")
            token = match.group(match.lastgroup)
            tokens.append((match.lastgroup, token.strip('"')))
            at = match.end()
        return tokens

    def _peek(self, ahead: int = 0) -> str | None:
        at = self._at + ahead
        return self._tokens[at][1] if at < len(self._tokens) else None

    def _peek_kind(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def _next(self, wanted: str) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            self._fail(f"{self._keyword}: expected {wanted} at the end of the line")
        self._at += 1
        return self._tokens[self._at - 1]

    def _name(self, wanted: str) -> str:
        kind, text = self._next(wanted)
        if kind not in ("name", "quoted"):
            self._fail(f"{self._keyword}: expected {wanted}, not {text!r}")
        return text

    def _number(self, wanted: str) -> Number:
        kind, text = self._next(wanted)
        if kind != "number" or "." in text:
            self._fail(f"{self._keyword}: expected {wanted}, not {text!r}")
        if len(text) > MAX_DIGITS:
            self._fail(f"{self._keyword}: {wanted} has {len(text)} digits, which is more than {MAX_DIGITS}")
        base = _BASES.get(text[:2].lower(), 10)
        if len(text) > _LONGEST_NUMBER:
            self._fail(f"{self._keyword}: {wanted} of {len(text)} digits is too long")
        return Number(base, text if base == 10 else text[2:])

    def _integer(self, wanted: str) -> int:
        number = self._number(wanted)
        if number.has_wildcard:
            self._fail(f"{self._keyword}: {wanted} cannot hold '*': {number}")
        return number.value

    def _symbol(self, symbol: str) -> None:
        kind, text = self._next(repr(symbol))
        if kind != "symbol" or text != symbol:
            self._fail(f"{self._keyword}: expected {symbol!r}, not {text!r}")

    def _fail(self, message: str) -> NoReturn:
        raise StfError(self._file, self._line, message)
