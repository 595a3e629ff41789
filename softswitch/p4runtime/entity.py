"""What every kind of entity offers to Write and Read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

from finsy.proto import p4r

from softswitch.p4runtime.errors import Code, Named, P4Error, invalid, unknown_id

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE

N = TypeVar("N", bound=Named)


class Entities(Protocol):
    """One kind of entity of one pipeline. ``message`` is the field of p4.v1.Entity that is set.

    ``read`` checks the request and notes what there is before it returns; values that packets change (counters,
    registers) are read as the iterator advances. Both raise P4Error.
    """

    def write(self, kind: p4r.Update.Type.ValueType, message: Any) -> None: ...
    def read(self, message: Any) -> Iterator[p4r.Entity]: ...


def lookup(items: Mapping[int, N], ident: int, kind: str) -> N:
    """The item of that id, or INVALID_ARGUMENT naming the valid ones."""
    item = items.get(ident)
    if item is None:
        raise unknown_id(kind, ident, items.values())
    return item


def selected(items: Mapping[int, N], ident: int, kind: str) -> list[N]:
    """What a read asks for: all items for id 0, else the one."""
    return [lookup(items, ident, kind)] if ident else list(items.values())


def only_modify(kind: p4r.Update.Type.ValueType, what: str) -> None:
    """Refuse INSERT and DELETE of something that always exists."""
    if kind != MODIFY:
        raise invalid(f"{what} always exist: they can be modified, not inserted or deleted")


def unknown_update(kind: p4r.Update.Type.ValueType) -> P4Error:
    """The error of an update without a type."""
    return invalid(f"unknown update type {kind}; valid: INSERT, MODIFY, DELETE")


def cells(index: p4r.Index | None, size: int, what: str) -> range:
    """The cells of an array that ``index`` stands for: one, or all where it is None.
    INVALID_ARGUMENT below 0, OUT_OF_RANGE beyond the end."""
    if index is None:
        return range(size)
    number = index.index
    if number < 0:
        raise invalid(f"{what}: the index {number} is negative")
    if number >= size:
        raise P4Error(Code.OUT_OF_RANGE, f"{what}: the index {number} is not in 0..{size - 1}")
    return range(number, number + 1)
