"""What a controller reads back: entries and counters, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4i, p4r

from softswitch.p4runtime.p4info import Match, P4Index, TableInfo
from tests.p4runtime_client import octets

Cells = dict[object, str]  # values of entries and counters by index or match, of registers by index


def units(index: P4Index) -> dict[int, p4i.CounterSpec.Unit.ValueType]:
    """What each counter counts."""
    found = {one.preamble.id: one.spec.unit for one in index.p4info.counters}
    return found | {one.preamble.id: one.spec.unit for one in index.p4info.direct_counters}


def one_line(message: object) -> str:
    """A protobuf message as text."""
    return " ".join(str(message).split())


class State:
    """Knows what to ask for, and makes answers comparable."""

    def __init__(self, index: P4Index) -> None:
        self._index = index
        self._units = units(index)

    def questions(self) -> Iterator[p4r.Entity]:
        """Entities to read."""
        for counter in self._index.counters:
            yield p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter))
        for table in self._index.tables.values():
            # PI cannot read a table that has entries of the program, and shows other priorities for constant ones
            if not table.program.entries:
                entry = p4r.TableEntry(table_id=table.id)
                yield p4r.Entity(table_entry=entry)
                if table.counter:
                    yield p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry))

    def cells(self, answer: Sequence[p4r.Entity]) -> Cells:
        """An answer by index or match."""
        return dict(map(self._cell, answer))

    def _cell(self, entity: p4r.Entity) -> tuple[object, str]:
        if entity.HasField("counter_entry"):
            counter = entity.counter_entry
            return counter.index.index, self._count(counter.counter_id, counter.data)
        if entity.HasField("direct_counter_entry"):
            entry = entity.direct_counter_entry.table_entry
            table = self._index.tables[entry.table_id]
            return self._key(table, entry), self._count(table.counter, entity.direct_counter_entry.data)
        entry = entity.table_entry
        return self._key(self._index.tables[entry.table_id], entry), one_line(entry.action)

    def _count(self, counter: int, data: p4r.CounterData) -> str:
        """Only what the counter counts: after a write, the rest has no meaning."""
        unit = self._units[counter]
        if unit == p4i.CounterSpec.BYTES:
            return f"{data.byte_count} bytes"
        packets = f"{data.packet_count} packets"
        return packets if unit == p4i.CounterSpec.PACKETS else f"{packets}, {data.byte_count} bytes"

    def _key(self, table: TableInfo, entry: p4r.TableEntry) -> object:
        """What tells an entry from others. PI tells of a range that it is the whole field, where nothing was said."""
        whole = {
            one.id: p4r.FieldMatch.Range(low=b"\0", high=octets((1 << one.width) - 1))
            for one in table.fields
            if one.match is Match.RANGE
        }
        said = [match for match in entry.match if match.range != whole.get(match.field_id)]
        return tuple(sorted(match.SerializeToString(deterministic=True) for match in said)), entry.priority
