"""CounterEntry and DirectCounterEntry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy.proto import p4r

from softswitch.device import Device
from softswitch.p4runtime.entity import cells, lookup, only_modify, selected
from softswitch.p4runtime.p4info import ArrayInfo
from softswitch.p4runtime.resources import check_counts, counter_data
from softswitch.p4runtime.tables import Tables


class Counters:
    """Counter arrays."""

    def __init__(self, infos: Mapping[int, ArrayInfo], device: Device) -> None:
        self._infos = infos
        self._device = device

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.CounterEntry) -> None:
        info = lookup(self._infos, message.counter_id, "counter")
        what = f"counter {info.name}"
        only_modify(kind, "cells of a counter")
        indices = cells(message.index if message.HasField("index") else None, info.size, what)
        if not message.HasField("data"):
            return
        check_counts(message.data, what)
        for index in indices:
            self._device.counter_set(info.name, index, message.data.packet_count, message.data.byte_count)

    def read(self, message: p4r.CounterEntry) -> Iterator[p4r.Entity]:
        infos = selected(self._infos, message.counter_id, "counter")
        index = message.index if message.HasField("index") and message.counter_id else None
        wanted = [(info, cells(index, info.size, f"counter {info.name}")) for info in infos]
        return (self._entity(info, i) for info, indices in wanted for i in indices)

    def _entity(self, info: ArrayInfo, index: int) -> p4r.Entity:
        data = counter_data(*self._device.counter(info.name, index))
        entry = p4r.CounterEntry(counter_id=info.id, index=p4r.Index(index=index), data=data)
        return p4r.Entity(counter_entry=entry)


class DirectCounters:
    """The counters of tables' entries."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.DirectCounterEntry) -> None:
        only_modify(kind, "direct counters")
        table = self._tables.table(message.table_entry.table_id)
        table.direct.require_counter()
        handle = table.handle(message.table_entry)
        if message.HasField("data"):
            check_counts(message.data, f"table {table.info.name}")
            table.direct.set_counter(handle, message.data)

    def read(self, message: p4r.DirectCounterEntry) -> Iterator[p4r.Entity]:
        entry = message.table_entry
        if entry.table_id:
            tables = [self._tables.table(entry.table_id)]
            tables[0].direct.require_counter()
        else:
            tables = [t for t in self._tables if t.info.counter]
        wanted = [(table, table.keys(entry)) for table in tables]
        return (
            p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=key, data=data))
            for table, keys in wanted
            for key, handle in keys
            if (data := table.direct.counter(handle)) is not None
        )
