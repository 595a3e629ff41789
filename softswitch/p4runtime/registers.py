"""RegisterEntry."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from softswitch.device import Device
from softswitch.device_types import DeviceError
from softswitch.p4runtime import values
from softswitch.p4runtime.entity import cells, lookup, only_modify, selected
from softswitch.p4runtime.errors import from_device, invalid
from softswitch.p4runtime.p4info import P4Index, RegisterInfo


class Registers:
    """Register arrays."""

    def __init__(self, index: P4Index, device: Device) -> None:
        self._infos = index.registers
        self._p4info = index.p4info
        self._device = device

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.RegisterEntry) -> None:
        info = lookup(self._infos, message.register_id, "register")
        what = f"register {info.name}"
        only_modify(kind, "cells of a register")
        indices = cells(message.index if message.HasField("index") else None, info.size, what)
        if not message.HasField("data"):
            raise invalid(f"{what}: data must be set")
        value = values.decode(info.type, message.data, what, self._p4info)
        try:
            for index in indices:
                self._device.register_set(info.name, index, value)
        except DeviceError as error:
            raise from_device(error, what) from error

    def read(self, message: p4r.RegisterEntry) -> Iterator[p4r.Entity]:
        infos = selected(self._infos, message.register_id, "register")
        index = message.index if message.HasField("index") and message.register_id else None
        wanted = [(info, cells(index, info.size, f"register {info.name}")) for info in infos]
        return (self._entity(info, i) for info, indices in wanted for i in indices)

    def _entity(self, info: RegisterInfo, index: int) -> p4r.Entity:
        cell = iter((self._device.register(info.name, index),))
        entry = p4r.RegisterEntry(
            register_id=info.id, index=p4r.Index(index=index), data=values.encode(info.type, cell, self._p4info)
        )
        return p4r.Entity(register_entry=entry)
