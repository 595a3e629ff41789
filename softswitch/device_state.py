"""Counters, meters, registers, digests, multicast groups and clone sessions of a device."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence

from softswitch import native
from softswitch.device_base import DeviceBase, to_bytes
from softswitch.device_tables import meter_from_native, meter_to_native
from softswitch.device_types import DeviceError, MeterConfig, Replica


class StateMixin(DeviceBase):
    """Arrays by name and index; an index beyond the array is INVALID_ARGUMENT."""

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of a counter."""
        packets, nbytes = c.c_uint64(), c.c_uint64()
        number = self._number("counter", name, self._counters)
        result = self.lib.sw_counter_get(self._native(), number, index, c.byref(packets), c.byref(nbytes))
        self._check(result, f"counter {name}[{index}]")
        return packets.value, nbytes.value

    def counter_set(self, name: str, index: int, packets: int, nbytes: int) -> None:
        """Set a counter."""
        number = self._number("counter", name, self._counters)
        self._check(self.lib.sw_counter_set(self._native(), number, index, packets, nbytes), f"counter {name}[{index}]")

    def meter(self, name: str, index: int) -> MeterConfig | None:
        """A meter's configuration; None where it has none and every packet is green."""
        config = native.MeterConfig()
        number = self._number("meter", name, self._meters)
        self._check(self.lib.sw_meter_get(self._native(), number, index, c.byref(config)), f"meter {name}[{index}]")
        return meter_from_native(config)

    def meter_set(self, name: str, index: int, config: MeterConfig | None) -> None:
        """Configure a meter, or take its configuration away."""
        number = self._number("meter", name, self._meters)
        result = self.lib.sw_meter_set(self._native(), number, index, c.byref(meter_to_native(config)))
        self._check(result, f"meter {name}[{index}]")

    def register(self, name: str, index: int) -> int:
        """The value of a register cell."""
        number = self._number("register", name, self._registers)
        buffer = c.create_string_buffer((self.program.registers[name].width + 7) // 8)
        self._check(self.lib.sw_register_get(self._native(), number, index, buffer), f"register {name}[{index}]")
        return int.from_bytes(buffer.raw, "big")

    def register_set(self, name: str, index: int, value: int) -> None:
        """Set a register cell."""
        number = self._number("register", name, self._registers)
        data = to_bytes(value, self.program.registers[name].width, f"register {name}")
        self._check(self.lib.sw_register_set(self._native(), number, index, data), f"register {name}[{index}]")

    def multicast_set(self, group: int, replicas: Sequence[Replica]) -> None:
        """Create a multicast group, or replace its replicas."""
        array = _replicas(replicas)
        result = self.lib.sw_mcast_set(self._native(), group, array, len(array))
        self._check(result, f"multicast group {group}")

    def multicast_delete(self, group: int) -> None:
        """Remove a multicast group."""
        self._check(self.lib.sw_mcast_delete(self._native(), group), f"multicast group {group}")

    def clone_set(self, session: int, replicas: Sequence[Replica], truncate_bytes: int = 0) -> None:
        """Create a clone session, or replace its replicas; copies are cut to ``truncate_bytes`` unless that is 0."""
        array = _replicas(replicas)
        result = self.lib.sw_clone_set(self._native(), session, array, len(array), truncate_bytes)
        self._check(result, f"clone session {session}")

    def clone_delete(self, session: int) -> None:
        """Remove a clone session."""
        self._check(self.lib.sw_clone_delete(self._native(), session), f"clone session {session}")

    def digest_set(
        self, name: str, *, enabled: bool, max_list_size: int = 0, max_timeout_ns: int = 0, ack_timeout_ns: int = 0
    ) -> None:
        """Turn a digest on or off. A list goes out with ``max_list_size`` samples (0: as many as fit) or
        ``max_timeout_ns`` after its first; a sample is not repeated until its list is acknowledged or
        ``ack_timeout_ns`` passed."""
        number = self._number("digest", name, self._digests)
        config = native.DigestConfig(enabled, max_list_size, max_timeout_ns, ack_timeout_ns)
        self._check(self.lib.sw_digest_set(self._native(), number, c.byref(config)), f"digest {name}")

    def digest_ack(self, name: str, list_id: int) -> None:
        """Acknowledge a digest list; one that is not known any more is ignored."""
        number = self._number("digest", name, self._digests)
        result = self.lib.sw_digest_ack(self._native(), number, list_id)
        if result != -1:
            self._check(result, f"digest {name}")


def _replicas(replicas: Sequence[Replica]) -> c.Array[native.Replica]:
    for replica in replicas:
        if not 0 <= replica.port < 512 or not 0 <= replica.rid < 1 << 16:
            raise DeviceError("INVALID_ARGUMENT", f"{replica}: ports are 0..511, egress_rid 0..65535")
    return (native.Replica * len(replicas))(*(native.Replica(r.port, r.rid) for r in replicas))
