"""From the names and numbers of an STF file to the objects and match values of a program.

Names may be those of the JSON or an unambiguous end of them. Values follow p4c's BMv2 driver: a number for an lpm or
ternary field matches the digits that are written, ``*`` stands for digits that do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from softswitch.device import Call, Lpm, MatchValue, Range, Ternary
from softswitch.model import Action, KeyField, Program, Table

from .syntax import ActionCall, KeyValue


class ResolveError(Exception):
    """A name that is not in the program, or a value that does not fit; the message names the valid choices."""


def resolve_name(kind: str, name: str, known: Iterable[str], owner: str = "the program") -> str:
    """The known name that is ``name``, or ends in ``.name``, or ends in ``name``: the first rule that holds for one."""
    names = list(dict.fromkeys(known))
    if name in names:
        return name
    for ending in ("." + name, name):
        found = [candidate for candidate in names if candidate.endswith(ending)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ResolveError(f"{kind} {name!r} is ambiguous: {', '.join(found)}")
    raise ResolveError(f"no {kind} {name!r}; {owner} has {', '.join(names) or 'none'}")


def find_table(program: Program, name: str) -> Table:
    """The table that the name means."""
    return program.tables[resolve_name("table", name, program.tables)]


def find_call(program: Program, table: Table, call: ActionCall) -> Call:
    """The call with its arguments in the order of the action's parameters."""
    actions = {program.actions[ident].name: program.actions[ident] for ident in table.actions}
    action = actions[resolve_name("action", call.action, actions, f"table {table.name}")]
    return Call(action.name, _arguments(action, call.args))


def _arguments(action: Action, given: tuple[tuple[str, int], ...]) -> tuple[int, ...]:
    names = [param.name for param in action.params]
    takes = f"action {action.name} takes {', '.join(names) or 'no arguments'}"
    values: dict[str, int] = {}
    for position, (name, value) in enumerate(given):
        if not name and position < len(names):
            name = names[position]
        if name not in names or name in values:
            raise ResolveError(f"unexpected argument {name or value!r}; {takes}")
        values[name] = value
    missing = [name for name in names if name not in values]
    if missing:
        raise ResolveError(f"argument {missing[0]!r} is missing; {takes}")
    for param in action.params:
        if values[param.name] >> param.width:
            raise ResolveError(f"argument {param.name} = {values[param.name]:#x} does not fit {param.width} bits")
    return tuple(values[name] for name in names)


def find_key(table: Table, keys: tuple[tuple[str, KeyValue], ...]) -> dict[str, MatchValue]:
    """Match values by field name. A field that is not given is "don't care", and 0 where it has to be exact."""
    fields = {field.name: field for field in table.key}
    match: dict[str, MatchValue] = {field.name: 0 if field.match in ("exact", "valid") else None for field in table.key}
    for name, value in keys:
        field = fields[_find_field(table, name, fields)]
        match[field.name] = _match_value(field, value)
    return match


def _find_field(table: Table, name: str, fields: Mapping[str, KeyField]) -> str:
    name = re.sub(r"\$(\d+)", r"[\1]", name)
    forms = [name, name + "$", name + ".$valid$"]
    if name.endswith(".valid"):
        forms.append(name.removesuffix("valid") + "$valid$")
    for form in forms:
        if form in fields:
            return form
    endings = ["." + name, "." + name + "$"] + ([".$valid$", "$valid$"] if name == "valid" else [])
    found = [field for field in fields if field.endswith(tuple(endings)) or field in endings]
    if len(found) == 1:
        return found[0]
    if found:
        raise ResolveError(f"key field {name!r} of table {table.name} is ambiguous: {', '.join(found)}")
    raise ResolveError(f"table {table.name} has no key field {name!r}; it has {', '.join(fields) or 'none'}")


def _match_value(field: KeyField, value: KeyValue) -> MatchValue:
    full = (1 << field.width) - 1
    number = value.number.value
    if number > full:
        raise ResolveError(f"{value} does not fit the {field.width} bits of {field.name}")
    if field.match in ("exact", "valid"):
        if value.number.has_wildcard or (value.mask, value.high, value.prefix_len) != (None, None, None):
            raise ResolveError(f"{field.name} is an exact field and takes a plain number, not {value}")
        return number
    if field.match == "lpm":
        return _lpm(field, value)
    if field.match == "range":
        if value.number.has_wildcard or value.mask is not None or value.prefix_len is not None:
            raise ResolveError(f"{field.name} is a range field and takes LOW->HIGH or a number, not {value}")
        high = number if value.high is None else value.high
        if not number <= high <= full:
            raise ResolveError(f"{value} is no range within the {field.width} bits of {field.name}")
        return Range(number, high)
    if value.high is not None:
        raise ResolveError(f"{field.name} is a ternary field and takes no range: {value}")
    mask = _ternary_mask(value, field.width) & full
    return Ternary(number & mask, mask)


def _lpm(field: KeyField, value: KeyValue) -> Lpm:
    if value.mask is not None or value.high is not None:
        raise ResolveError(f"{field.name} is an lpm field and takes VALUE/LENGTH, not {value}")
    length = value.prefix_len
    if length is None:
        digits = value.number.digits
        length = field.width if value.number.base == 10 else value.number.bits_per_digit * len(digits.rstrip("*"))
        length = min(length, field.width)
    if length > field.width:
        raise ResolveError(f"prefix length {length} is longer than the {field.width} bits of {field.name}")
    keep = ((1 << length) - 1) << (field.width - length)
    return Lpm(value.number.value & keep, length)


def _ternary_mask(value: KeyValue, width: int) -> int:
    if value.mask is not None:
        return value.mask
    if value.prefix_len is not None:
        if value.prefix_len > width:
            raise ResolveError(f"prefix length {value.prefix_len} is longer than {width} bits")
        return ((1 << value.prefix_len) - 1) << (width - value.prefix_len)
    bits = value.number.bits_per_digit
    if not bits:
        return (1 << width) - 1
    mask = 0
    for digit in value.number.digits:
        mask = mask << bits | (0 if digit == "*" else (1 << bits) - 1)
    return mask
