"""Broken programs: BMv2 JSON with a few things changed, and text that is cut or flipped."""

from __future__ import annotations

import copy
import json
import random
from collections import defaultdict
from typing import Any

from tests.fuzz.values import STRINGS, WILD

NUMBERS = (*WILD, 0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 128, 129, 255, 8192, 8193, 2**24, 2**28)
HEX = ("0x", "0x0", "-0x1", "0x1", "0xffffffffffffffff", "0x10000000000000000", "-0x8000000000000000", "0x" + "f" * 70,
       "0x" + "f" * 5000, "1", "zz", "0x1_0", " 0x1")  # fmt: skip
RETYPED: tuple[Any, ...] = (None, True, False, 0, -1, 1.5, float("inf"), "", "x", [], {}, [[]], [1, 2],
                            {"type": "hexstr", "value": "0x1"})  # fmt: skip


class Mutator:
    """Makes mutants of one JSON document; ``others`` are documents whose parts it may borrow."""

    def __init__(self, rng: random.Random, document: str, others: list[str]) -> None:
        self.rng, self.document = rng, document
        self.own, self.borrowed = _by_name([document]), _by_name([document, *others])

    def text(self) -> bytes:
        """A document that may be no JSON."""
        data = bytearray(self.document.encode())
        match self.rng.randrange(4):
            case 0:
                del data[self.rng.randrange(len(data)) :]
            case 1:
                start = self.rng.randrange(len(data))
                del data[start : start + self.rng.randrange(1, 200)]
            case 2:
                for _ in range(self.rng.randrange(1, 4)):
                    data[self.rng.randrange(len(data))] = self.rng.randrange(256)
            case _:
                start, end = sorted(self.rng.randrange(len(data)) for _ in "ab")
                at = self.rng.randrange(len(data))
                data[at:at] = data[start : min(end, start + 1000)]
        return bytes(data)

    def structural(self) -> bytes:
        """A JSON document with one to four changes."""
        root = json.loads(self.document)
        for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 4))):
            places: list[tuple[str, Any, Any]] = []
            self._places("", root, places)
            if places:
                self._change(*self.rng.choice(places))
        return json.dumps(root).encode()

    def _places(self, name: str, value: Any, places: list[tuple[str, Any, Any]]) -> None:
        """All (member's name, container, key) below a value."""
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            inner = key if isinstance(key, str) else name
            places.append((inner, value, key))
            self._places(inner, item, places)

    def _change(self, name: str, container: Any, key: Any) -> None:
        rng = self.rng
        kind = rng.randrange(20)
        if kind < 2:
            del container[key]
        elif kind < 4 and isinstance(container, list):
            container.insert(rng.randrange(len(container) + 1), copy.deepcopy(container[key]))
        elif kind == 4 and isinstance(container, list):
            other = rng.randrange(len(container))
            container[key], container[other] = container[other], container[key]
        elif kind == 5:
            container[key] = copy.deepcopy(rng.choice(RETYPED))
        elif kind < 13:
            container[key] = self._another(container[key], name)
        else:
            container[key] = self._varied(container[key], name)

    def _another(self, value: Any, name: str) -> Any:
        """What stands under that name elsewhere; mostly of the same type, in the same document."""
        pool = (self.own if self.rng.randrange(8) else self.borrowed)[name]
        alike = [x for x in pool if type(x) is type(value)] if self.rng.randrange(8) else pool
        return copy.deepcopy(self.rng.choice(alike or [value]))

    def _varied(self, value: Any, name: str) -> Any:
        rng = self.rng
        match value:
            case bool():
                return not value
            case int():
                return rng.choice((*NUMBERS, value - 1, value + 1, 2 * value, -value))
            case str() if value.startswith(("0x", "-0x")):
                return rng.choice((*HEX, hex(rng.getrandbits(rng.choice((8, 32, 64, 128, 256))))))
            case str():
                strings = [x for x in self.borrowed[rng.choice((name, name, "name", "op"))] if isinstance(x, str)]
                return rng.choice(STRINGS) if not strings or rng.randrange(8) == 0 else rng.choice(strings)
        return self._another(value, name)


def _by_name(documents: list[str]) -> dict[str, list[Any]]:
    """All values of the documents by the name of their member; elements of a list have the list's."""
    pool: dict[str, list[Any]] = defaultdict(list)

    def collect(name: str, value: Any) -> None:
        pool[name].append(value)
        for key, item in value.items() if isinstance(value, dict) else ():
            collect(key, item)
        for item in value if isinstance(value, list) else ():
            collect(name, item)

    for text in documents:
        collect("", json.loads(text))
    return pool
