"""The direct counter and meter of a table's entries."""

from __future__ import annotations

from finsy.proto import p4r

from softswitch.device import Device
from softswitch.device_types import DeviceError, MeterConfig
from softswitch.p4runtime.errors import invalid, unimplemented
from softswitch.p4runtime.p4info import TableInfo
from softswitch.p4runtime.resources import COLOUR_COUNTS, check_counts, counter_data, meter_config, meter_message


class DirectResources:
    """What one table's entries have besides key and action. Handle 0 is the default entry."""

    def __init__(self, info: TableInfo, device: Device) -> None:
        self._info = info
        self._device = device
        self._what = f"table {info.name}"

    def require_counter(self) -> None:
        """Raises P4Error INVALID_ARGUMENT where entries have no counter."""
        if not self._info.counter:
            raise invalid(f"{self._what} has no direct counter")

    def require_meter(self) -> None:
        """Raises P4Error INVALID_ARGUMENT where entries have no meter."""
        if not self._info.meter:
            raise invalid(f"{self._what} has no direct meter")

    def check(self, entry: p4r.TableEntry) -> None:
        """Refuse what ``modify`` could not do. Raises P4Error."""
        if entry.HasField("meter_counter_data"):
            raise unimplemented(f"{self._what}: {COLOUR_COUNTS}")
        if entry.HasField("counter_data"):
            self.require_counter()
            check_counts(entry.counter_data, self._what)
        if entry.HasField("meter_config"):
            self.require_meter()
            self.meter_config(entry.meter_config)

    def meter_config(self, message: p4r.MeterConfig) -> MeterConfig | None:
        """The device's configuration; None for a meter that marks everything green. Raises P4Error."""
        return meter_config(message, self._info.meter_type, self._what)

    def modify(self, handle: int, entry: p4r.TableEntry) -> None:
        """Write the resources that ``entry`` sets; an unset meter becomes green."""
        if entry.HasField("counter_data"):
            self.set_counter(handle, entry.counter_data)
        if self._info.meter:
            self.set_meter(handle, self.meter_config(entry.meter_config) if entry.HasField("meter_config") else None)

    def set_counter(self, handle: int, data: p4r.CounterData) -> None:
        """Set an entry's counter."""
        self._device.entry_counter_set(self._info.name, handle, data.packet_count, data.byte_count)

    def set_meter(self, handle: int, config: MeterConfig | None) -> None:
        """Configure an entry's meter."""
        self._device.entry_meter_set(self._info.name, handle, config)

    def counter(self, handle: int) -> p4r.CounterData | None:
        """An entry's counter; None for an entry that is gone."""
        try:
            stats = self._device.entry_stats(self._info.name, handle)
        except DeviceError:
            return None
        return counter_data(stats.packets, stats.bytes)

    def meter(self, handle: int) -> p4r.MeterConfig | None:
        """An entry's meter configuration; None where it has none, or is gone."""
        try:
            config = self._device.entry_meter(self._info.name, handle)
        except DeviceError:
            return None
        return None if config is None else meter_message(config)

    def fill(self, entry: p4r.TableEntry, handle: int, wanted: p4r.TableEntry) -> bool:
        """Put the resources that ``wanted`` sets into ``entry``; False for an entry that is gone."""
        try:
            stats = self._device.entry_stats(self._info.name, handle)
        except DeviceError:
            return False
        if wanted.HasField("counter_data") and self._info.counter:
            entry.counter_data.CopyFrom(counter_data(stats.packets, stats.bytes))
        if wanted.HasField("time_since_last_hit") and self._info.idle_timeout and not entry.is_default_action:
            entry.time_since_last_hit.elapsed_ns = stats.idle_ns
        if wanted.HasField("meter_config") and self._info.meter:
            config = self.meter(handle)
            if config is not None:
                entry.meter_config.CopyFrom(config)
        return True
