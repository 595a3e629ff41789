"""MeterEntry and DirectMeterEntry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy.proto import p4r

from softswitch.device import Device
from softswitch.p4runtime.entity import cells, lookup, only_modify, selected
from softswitch.p4runtime.errors import unimplemented
from softswitch.p4runtime.p4info import ArrayInfo
from softswitch.p4runtime.resources import COLOUR_COUNTS, meter_config, meter_message
from softswitch.p4runtime.tables import Tables


class Meters:
    """Meter arrays."""

    def __init__(self, infos: Mapping[int, ArrayInfo], device: Device) -> None:
        self._infos = infos
        self._device = device

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.MeterEntry) -> None:
        info = lookup(self._infos, message.meter_id, "meter")
        what = f"meter {info.name}"
        only_modify(kind, "cells of a meter")
        if message.HasField("counter_data"):
            raise unimplemented(f"{what}: {COLOUR_COUNTS}")
        indices = cells(message.index if message.HasField("index") else None, info.size, what)
        config = meter_config(message.config, info.meter_type, what) if message.HasField("config") else None
        for index in indices:
            self._device.meter_set(info.name, index, config)

    def read(self, message: p4r.MeterEntry) -> Iterator[p4r.Entity]:
        infos = selected(self._infos, message.meter_id, "meter")
        if message.HasField("counter_data"):
            raise unimplemented(COLOUR_COUNTS)
        index = message.index if message.HasField("index") and message.meter_id else None
        wanted = [(info, cells(index, info.size, f"meter {info.name}")) for info in infos]
        return (self._entity(info, i) for info, indices in wanted for i in indices)

    def _entity(self, info: ArrayInfo, index: int) -> p4r.Entity:
        entry = p4r.MeterEntry(meter_id=info.id, index=p4r.Index(index=index))
        config = self._device.meter(info.name, index)
        if config is not None:
            entry.config.CopyFrom(meter_message(config))
        return p4r.Entity(meter_entry=entry)


class DirectMeters:
    """The meters of tables' entries."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.DirectMeterEntry) -> None:
        only_modify(kind, "direct meters")
        table = self._tables.table(message.table_entry.table_id)
        table.direct.require_meter()
        if message.HasField("counter_data"):
            raise unimplemented(f"table {table.info.name}: {COLOUR_COUNTS}")
        config = table.direct.meter_config(message.config) if message.HasField("config") else None
        table.direct.set_meter(table.handle(message.table_entry), config)

    def read(self, message: p4r.DirectMeterEntry) -> Iterator[p4r.Entity]:
        if message.HasField("counter_data"):
            raise unimplemented(COLOUR_COUNTS)
        entry = message.table_entry
        if entry.table_id:
            tables = [self._tables.table(entry.table_id)]
            tables[0].direct.require_meter()
        else:
            tables = [t for t in self._tables if t.info.meter]
        wanted = [(table, table.keys(entry)) for table in tables]
        return (
            p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=key, config=table.direct.meter(handle)))
            for table, keys in wanted
            for key, handle in keys
        )
