"""Match keys: FieldMatch messages to the device's match values.

Rules are those of "Match Format" in the P4Runtime specification. Byte strings that are valid but not in their shortest
form are rewritten in the message itself, so that what is stored is what the server will answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from finsy.proto import p4r

from softswitch import model
from softswitch.device_types import Lpm, MatchValue, Range, Ternary
from softswitch.p4runtime import bytestrings
from softswitch.p4runtime.errors import P4Error, invalid, unknown_id
from softswitch.p4runtime.p4info import Field, Match

MatchKey = tuple[MatchValue, ...]


class KeyReader:
    """Reads the match of one table's entries (or one value set's members). Errors name ``owner`` and the field."""

    def __init__(self, owner: str, fields: Sequence[Field]) -> None:
        self._owner = owner
        self._fields = {f.id: (i, f, _READERS[f.match], f"{owner}: match field {f.name}") for i, f in enumerate(fields)}
        self._template: list[MatchValue] = [None] * len(fields)
        self._all = tuple(fields)
        self._required = tuple((i, f) for i, f in enumerate(fields) if f.match is Match.EXACT)

    def read(self, matches: Iterable[p4r.FieldMatch]) -> MatchKey:
        """The value of each field in order, None for a field that is not there. Raises P4Error INVALID_ARGUMENT."""
        values = self._template.copy()
        for match in matches:
            known = self._fields.get(match.field_id)
            if known is None:
                raise invalid(f"{self._owner}: {unknown_id('match field', match.field_id, self._all).message}")
            index, field, reader, what = known
            if values[index] is not None:
                raise invalid(f"{what} is there twice")
            values[index] = reader(field, match, what)
        for index, field in self._required:
            if values[index] is None:
                raise invalid(f"{self._owner}: match field {field.name} ({field.id}) is missing; it is an exact match")
        return tuple(values)


def _wrong_kind(field: Field, match: p4r.FieldMatch, what: str) -> P4Error:
    given = match.WhichOneof("field_match_type") or "nothing"
    return invalid(f"{what} is matched as {field.match.value}, not as {given}")


def _read_exact(field: Field, match: p4r.FieldMatch, what: str) -> MatchValue:
    if not match.HasField("exact"):
        raise _wrong_kind(field, match, what)
    raw = match.exact.value
    value = bytestrings.decode(raw, field.width, what)
    if not bytestrings.is_canonical(raw):
        match.exact.value = bytestrings.encode(value)
    return value


def _read_optional(field: Field, match: p4r.FieldMatch, what: str) -> MatchValue:
    if not match.HasField("optional"):
        raise _wrong_kind(field, match, what)
    raw = match.optional.value
    value = bytestrings.decode(raw, field.width, what)
    if not bytestrings.is_canonical(raw):
        match.optional.value = bytestrings.encode(value)
    return value


def _read_lpm(field: Field, match: p4r.FieldMatch, what: str) -> MatchValue:
    if not match.HasField("lpm"):
        raise _wrong_kind(field, match, what)
    lpm = match.lpm
    raw, length = lpm.value, lpm.prefix_len
    value = bytestrings.decode(raw, field.width, what)
    if not 0 < length <= field.width:
        hint = "; leave a don't care field out" if length == 0 else ""
        raise invalid(f"{what}: the prefix length {length} is not in 1..{field.width}{hint}")
    if value & ((1 << (field.width - length)) - 1):
        raise invalid(f"{what}: the value 0x{value:x} has bits beyond its prefix length {length}")
    if not bytestrings.is_canonical(raw):
        lpm.value = bytestrings.encode(value)
    return Lpm(value, length)


def _read_ternary(field: Field, match: p4r.FieldMatch, what: str) -> MatchValue:
    if not match.HasField("ternary"):
        raise _wrong_kind(field, match, what)
    ternary = match.ternary
    raw, raw_mask = ternary.value, ternary.mask
    value = bytestrings.decode(raw, field.width, what)
    mask = bytestrings.decode(raw_mask, field.width, f"{what}, mask")
    if not mask:
        raise invalid(f"{what}: the mask is 0; leave a don't care field out")
    if value & ~mask:
        raise invalid(f"{what}: the value 0x{value:x} has bits outside its mask 0x{mask:x}")
    if not bytestrings.is_canonical(raw):
        ternary.value = bytestrings.encode(value)
    if not bytestrings.is_canonical(raw_mask):
        ternary.mask = bytestrings.encode(mask)
    return Ternary(value, mask)


def _read_range(field: Field, match: p4r.FieldMatch, what: str) -> MatchValue:
    if not match.HasField("range"):
        raise _wrong_kind(field, match, what)
    bounds = match.range
    low = bytestrings.decode(bounds.low, field.width, f"{what}, low")
    high = bytestrings.decode(bounds.high, field.width, f"{what}, high")
    if low > high:
        raise invalid(f"{what}: the low end 0x{low:x} is above the high end 0x{high:x}")
    if low == 0 and high == (1 << field.width) - 1:
        raise invalid(f"{what}: the range is the whole field; leave a don't care field out")
    bounds.low, bounds.high = bytestrings.encode(low), bytestrings.encode(high)
    return Range(low, high)


_READERS: dict[Match, Callable[[Field, p4r.FieldMatch, str], MatchValue]] = {
    Match.EXACT: _read_exact,
    Match.OPTIONAL: _read_optional,
    Match.LPM: _read_lpm,
    Match.TERNARY: _read_ternary,
    Match.RANGE: _read_range,
}


def from_program(field: Field, part: model.EntryField) -> MatchValue:
    """The match value of an entry that is written in the program; None where it is don't care."""
    full = (1 << field.width) - 1
    if field.match is Match.EXACT:
        return part.value
    if field.match is Match.LPM:
        return Lpm(part.value, part.prefix_len) if part.prefix_len > 0 else None
    if field.match is Match.RANGE:
        return None if (part.value, part.high) == (0, full) else Range(part.value, part.high)
    if part.mask & full == 0:
        return None
    if field.match is Match.OPTIONAL:
        return part.value
    return Ternary(part.value & part.mask, part.mask & full)


def to_message(field: Field, value: MatchValue) -> p4r.FieldMatch:
    """The FieldMatch of a value that is not None."""
    message = p4r.FieldMatch(field_id=field.id)
    if isinstance(value, Lpm):
        message.lpm.value, message.lpm.prefix_len = bytestrings.encode(value.value), value.prefix_len
    elif isinstance(value, Ternary):
        message.ternary.value, message.ternary.mask = bytestrings.encode(value.value), bytestrings.encode(value.mask)
    elif isinstance(value, Range):
        message.range.low, message.range.high = bytestrings.encode(value.low), bytestrings.encode(value.high)
    elif isinstance(value, int):
        kind = message.optional if field.match is Match.OPTIONAL else message.exact
        kind.value = bytestrings.encode(value)
    return message
