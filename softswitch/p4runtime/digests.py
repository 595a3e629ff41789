"""DigestEntry: which digests are sent, and how they are bundled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy.proto import p4r

from softswitch.device import Device
from softswitch.device_types import DeviceError
from softswitch.p4runtime.entity import DELETE, INSERT, MODIFY, lookup, selected, unknown_update
from softswitch.p4runtime.errors import exists, from_device, invalid, not_found
from softswitch.p4runtime.p4info import DigestInfo


class Digests:
    """Digest configurations. A digest is silent until an entry is inserted."""

    def __init__(self, infos: Mapping[int, DigestInfo], device: Device) -> None:
        self._infos = infos
        self._device = device
        self._bodies: dict[int, bytes] = {}

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.DigestEntry) -> None:
        info = lookup(self._infos, message.digest_id, "digest")
        what = f"digest {info.name}"
        if kind not in (INSERT, MODIFY, DELETE):
            raise unknown_update(kind)
        if kind == INSERT and info.id in self._bodies:
            raise exists(f"{what} is already configured")
        if kind != INSERT and info.id not in self._bodies:
            raise not_found(f"{what} is not configured")
        config = message.config
        if kind != DELETE and min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise invalid(f"{what}: timeouts and list size must not be negative")
        try:
            if kind == DELETE:
                self._device.digest_set(info.name, enabled=False)
                del self._bodies[info.id]
                return
            self._device.digest_set(
                info.name,
                enabled=True,
                max_list_size=config.max_list_size,
                max_timeout_ns=config.max_timeout_ns,
                ack_timeout_ns=config.ack_timeout_ns,
            )
        except DeviceError as error:
            raise from_device(error, what) from error
        self._bodies[info.id] = message.SerializeToString()

    def read(self, message: p4r.DigestEntry) -> Iterator[p4r.Entity]:
        infos = selected(self._infos, message.digest_id, "digest")
        bodies = [self._bodies[info.id] for info in infos if info.id in self._bodies]
        return (p4r.Entity(digest_entry=p4r.DigestEntry.FromString(body)) for body in bodies)
