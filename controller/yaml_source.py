"""YAML with positions: every value knows its line and its dotted key, and problems are collected, not thrown.

A getter that finds something wrong notes a :class:`Problem` and returns a stand-in, so that one reading of a file finds
everything that is wrong with it. Whoever reads must ask ``Problems`` at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_network
from pathlib import Path

import yaml

_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a file. ``line`` counts from 1, ``key`` is dotted: ``planes[0].switches[1].role``."""

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}"
        return f"{where}: {self.key}: {self.message}" if self.key else f"{where}: {self.message}"


class IntentError(ValueError):
    """An intent file that cannot be used; ``problems`` are all that was found, in order of line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(slots=True)
class Problems:
    """Collects what is wrong with ``file``."""

    file: str
    found: list[Problem] = field(default_factory=list)

    def add(self, line: int, key: str, message: str) -> None:
        """Note a problem."""
        self.found.append(Problem(self.file, line, key, message))

    def check(self) -> None:
        """Raise IntentError if anything was found."""
        if self.found:
            raise IntentError(self.found)


@dataclass(frozen=True, slots=True)
class Value:
    """A YAML node with its dotted key."""

    node: yaml.Node
    key: str
    problems: Problems

    @property
    def line(self) -> int:
        """Line in the file, from 1."""
        return int(self.node.start_mark.line) + 1

    def wrong(self, message: str) -> None:
        """Note a problem with this value."""
        self.problems.add(self.line, self.key, message)

    def mapping(self, required: Sequence[str] = (), optional: Sequence[str] = ()) -> dict[str, Value]:
        """The members of a mapping whose keys are known. Required ones may be missing afterwards; that is noted."""
        known = (*required, *optional)
        members = self.members()
        for name in [name for name in members if name not in known]:
            value = members.pop(name)
            self.problems.add(value.line, value.key, f"unknown key {name!r}; valid keys are {', '.join(known)}")
        if isinstance(self.node, yaml.MappingNode):
            for name in required:
                if name not in members:
                    self.wrong(f"key {name!r} is missing")
        return members

    def members(self) -> dict[str, Value]:
        """The members of a mapping with any keys."""
        if not isinstance(self.node, yaml.MappingNode):
            self.wrong(f"must be a mapping, is {self._shown()}")
            return {}
        found: dict[str, Value] = {}
        for key_node, value_node in self.node.value:
            name = str(key_node.value)
            key = f"{self.key}.{name}" if self.key else name
            if name in found:
                self.problems.add(key_node.start_mark.line + 1, key, f"key {name!r} is given twice")
            found[name] = Value(value_node, key, self.problems)
        return found

    def items(self) -> list[Value]:
        """The items of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.wrong(f"must be a list, is {self._shown()}")
            return []
        return [Value(node, f"{self.key}[{i}]", self.problems) for i, node in enumerate(self.node.value)]

    def items_or_one(self) -> list[Value]:
        """The items of a list, or the value alone."""
        return self.items() if isinstance(self.node, yaml.SequenceNode) else [self]

    def text(self) -> str:
        """A non-empty scalar as it is written."""
        if not isinstance(self.node, yaml.ScalarNode) or not self.node.value:
            self.wrong(f"must be text, is {self._shown()}")
            return ""
        return str(self.node.value)

    def integer(self, low: int, high: int, stand_in: int | None = None) -> int:
        """An integer within ``low..high`` (decimal or 0x)."""
        instead = low if stand_in is None else stand_in
        text = self._scalar()
        try:
            number = int(text, 0)
        except ValueError:
            self.wrong(f"must be an integer within {low}..{high}, is {self._shown()}")
            return instead
        if not low <= number <= high:
            self.wrong(f"must be within {low}..{high}, is {number}")
            return instead
        return number

    def number(self, low: float, high: float) -> float:
        """A number within ``low..high``."""
        try:
            number = float(self._scalar())
        except ValueError:
            number = float("nan")
        if not low <= number <= high:
            self.wrong(f"must be a number within {low:g}..{high:g}, is {self._shown()}")
            return low
        return number

    def choice(self, choices: Sequence[str]) -> str:
        """One of the ``choices``."""
        text = self._scalar()
        if text not in choices:
            self.wrong(f"must be one of {', '.join(choices)}, is {self._shown()}")
            return choices[0]
        return text

    def mac(self) -> int:
        """A unicast Ethernet address as ``02:00:00:00:00:01``."""
        parts = self._scalar().split(":")
        try:
            octets = [int(part, 16) for part in parts]
        except ValueError:
            octets = []
        if len(octets) != 6 or any(not 0 <= octet <= 255 for octet in octets) or octets[0] & 1:
            self.wrong(f"must be a unicast Ethernet address such as 02:00:00:00:00:01, is {self._shown()}")
            return 0
        return int.from_bytes(bytes(octets), "big")

    def ipv4(self) -> IPv4Interface | None:
        """An address with prefix length, ``10.0.0.1/24``; without one, /32."""
        try:
            return IPv4Interface(self._scalar())
        except ValueError:
            self.wrong(f"must be an IPv4 address such as 10.0.0.1/24, is {self._shown()}")
            return None

    def ipv6(self) -> IPv6Interface | None:
        """An address with prefix length, ``fd00::1/64``; without one, /128."""
        try:
            return IPv6Interface(self._scalar())
        except ValueError:
            self.wrong(f"must be an IPv6 address such as fd00::1/64, is {self._shown()}")
            return None

    def prefix(self) -> IPv4Network | IPv6Network | None:
        """A set of addresses, ``10.0.0.0/8`` or ``fd00::/8``."""
        try:
            return ip_network(self._scalar())
        except ValueError:
            self.wrong(f"must be a prefix such as 10.0.0.0/8 or fd00::/8 without host bits, is {self._shown()}")
            return None

    def _scalar(self) -> str:
        return str(self.node.value) if isinstance(self.node, yaml.ScalarNode) else ""

    def _shown(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        return "empty" if self.node.tag == _TAG + "null" and not self.node.value else repr(self.node.value)


def read_yaml(path: Path) -> Value:
    """The root of a YAML file. Raises IntentError where the file cannot be read or is not YAML."""
    problems = Problems(str(path))
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise IntentError([Problem(str(path), 1, "", f"cannot be read: {error.strerror or error}")]) from error
    except UnicodeDecodeError as error:
        raise IntentError([Problem(str(path), 1, "", f"is not UTF-8 text: {error.reason}")]) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise IntentError([Problem(str(path), line, "", f"is not YAML: {error.problem}")]) from error
    except yaml.YAMLError as error:
        raise IntentError([Problem(str(path), 1, "", f"is not YAML: {error}")]) from error
    if node is None:
        raise IntentError([Problem(str(path), 1, "", "is empty")])
    return Value(node, "", problems)
