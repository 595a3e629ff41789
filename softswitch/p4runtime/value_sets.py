"""ValueSetEntry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy.proto import p4r

from softswitch.device import Device
from softswitch.device_types import DeviceError, Lpm, MatchValue, Range, Ternary
from softswitch.p4runtime.entity import lookup, only_modify, selected
from softswitch.p4runtime.errors import exhausted, exists, from_device, unimplemented
from softswitch.p4runtime.match import KeyReader, MatchKey
from softswitch.p4runtime.p4info import Field, ValueSetInfo


class ValueSets:
    """Parser value sets."""

    def __init__(self, infos: Mapping[int, ValueSetInfo], device: Device) -> None:
        self._infos = infos
        self._device = device
        self._bodies = {i: p4r.ValueSetEntry(value_set_id=i).SerializeToString() for i in infos}
        self._readers = {i: KeyReader(f"value set {info.name}", info.fields) for i, info in infos.items()}

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.ValueSetEntry) -> None:
        info = lookup(self._infos, message.value_set_id, "value set")
        what = f"value set {info.name}"
        only_modify(kind, "value sets")
        if len(message.members) > info.size:
            raise exhausted(f"{what}: {len(message.members)} members are more than its size {info.size}")
        reader, keys = self._readers[info.id], set[MatchKey]()
        for member in message.members:
            key = reader.read(member.match)
            if key in keys:
                raise exists(f"{what}: two members are the same")
            keys.add(key)
        members = [_concatenated(info.fields, key, what) for key in keys]
        try:
            self._device.value_set_replace(info.name, members)
        except DeviceError as error:
            raise from_device(error, what) from error
        self._bodies[info.id] = message.SerializeToString()

    def read(self, message: p4r.ValueSetEntry) -> Iterator[p4r.Entity]:
        bodies = [self._bodies[i.id] for i in selected(self._infos, message.value_set_id, "value set")]
        return (p4r.Entity(value_set_entry=p4r.ValueSetEntry.FromString(body)) for body in bodies)


def _concatenated(fields: tuple[Field, ...], key: MatchKey, what: str) -> tuple[int, int]:
    """Value and mask of a member as one bit string, the first field in the highest bits."""
    value = mask = 0
    for field, part in zip(fields, key, strict=True):
        part_value, part_mask = _value_and_mask(field.width, part, f"{what}: match field {field.name}")
        value = value << field.width | part_value
        mask = mask << field.width | part_mask
    return value, mask


def _value_and_mask(width: int, part: MatchValue, what: str) -> tuple[int, int]:
    full = (1 << width) - 1
    if part is None:
        return 0, 0
    if isinstance(part, Lpm):
        return part.value, full ^ (full >> part.prefix_len)
    if isinstance(part, Ternary):
        return part.value, part.mask
    if isinstance(part, Range):
        if part.low != part.high:
            raise unimplemented(f"{what}: ranges are not supported in value sets")
        return part.low, full
    return part, full
