"""A JSON value that knows where it stands, so that every complaint names the place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


class ProgramError(Exception):
    """A program that cannot be run. ``path`` is the place in the JSON, e.g. ``pipelines[0].tables[2].key[1]``."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or 'top level'}: {message}")
        self.path = path
        self.message = message


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the JSON document and its path. Every accessor raises :class:`ProgramError` on another type."""

    value: Any
    path: str = ""

    def fail(self, message: str) -> ProgramError:
        """An error that names this place."""
        return ProgramError(self.path, message)

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def __getitem__(self, key: str | int) -> Node:
        if isinstance(key, int):
            items = self._typed(list, "a list")
            if not 0 <= key < len(items):
                raise self.fail(f"has no element {key}; it has {len(items)}")
            return Node(items[key], f"{self.path}[{key}]")
        members = self._typed(dict, "an object")
        if key not in members:
            raise self.fail(f"has no key {key!r}; keys are {', '.join(sorted(map(str, members))) or 'none'}")
        return Node(members[key], f"{self.path}.{key}" if self.path else key)

    def get(self, key: str) -> Node | None:
        """The member, or None where it is missing or null."""
        return self[key] if self.has(key) else None

    def items(self, key: str | None = None) -> Iterator[Node]:
        """The elements of a list, or of a member that is a list (nothing where it is missing)."""
        if key is not None:
            member = self.get(key)
            return iter(()) if member is None else member.items()
        count = len(self._typed(list, "a list"))
        return (self[i] for i in range(count))

    def pairs(self) -> Iterator[tuple[str, Node]]:
        """The members of an object."""
        return ((key, self[key]) for key in self._typed(dict, "an object"))

    def _typed(self, kind: type[T], what: str) -> T:
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            raise self.fail(f"must be {what}, is {self.value!r:.60}")
        return self.value

    def text(self) -> str:
        """A string."""
        text = self._typed(str, "a string")
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            raise self.fail("must be text, has half a surrogate pair")
        return text

    def flag(self) -> bool:
        """A boolean."""
        return self._typed(bool, "true or false")

    def number(self, low: int = 0, high: int = 2**31 - 1) -> int:
        """An integer within bounds."""
        value = self._typed(int, "an integer")
        if not low <= value <= high:
            raise self.fail(f"must be within {low}..{high}, is {value}")
        return value

    def hexstr(self) -> int:
        """An integer written in hexadecimal, perhaps negative."""
        text = self.text()
        try:
            return int(text, 16)
        except ValueError:
            raise self.fail(f"must be a hexadecimal number, is {text!r:.60}") from None

    def named(self, what: str, table: Callable[[str], T | None]) -> T:
        """The object of that name."""
        name = self.text()
        found = table(name)
        if found is None:
            raise self.fail(f"names no {what}: {name!r:.60}")
        return found
