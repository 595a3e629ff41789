"""What counters and meters hold: CounterData and MeterConfig, checked and converted."""

from __future__ import annotations

from finsy.proto import p4i, p4r

from softswitch.device_types import MeterConfig
from softswitch.p4runtime.errors import invalid, unimplemented

_INT64_MAX = (1 << 63) - 1
COLOUR_COUNTS = "meters have no counters per colour"
_GREEN = -1  # every field: as simple_switch_grpc takes it, the same as no configuration


def counter_data(packets: int, nbytes: int) -> p4r.CounterData:
    """The message; int64 on the wire, so larger counts stay at its maximum."""
    return p4r.CounterData(packet_count=min(packets, _INT64_MAX), byte_count=min(nbytes, _INT64_MAX))


def check_counts(data: p4r.CounterData, what: str) -> None:
    """Refuse negative counts."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid(f"{what}: counts must not be negative, are {data.packet_count} packets, {data.byte_count} bytes")


def meter_config(config: p4r.MeterConfig, kind: p4i.MeterSpec.Type.ValueType, what: str) -> MeterConfig | None:
    """The device's configuration; None for a meter that marks everything green. Raises P4Error."""
    rates = {name: getattr(config, name) for name in ("cir", "cburst", "pir", "pburst")}
    if all(value == _GREEN for value in rates.values()):
        return None
    negative = [f"{name} {value}" for name, value in rates.items() if value < 0]
    if negative:
        raise invalid(f"{what}: {', '.join(negative)} is negative")
    if kind != p4i.MeterSpec.TWO_RATE_THREE_COLOR and (config.pir, config.pburst) != (config.cir, config.cburst):
        raise invalid(f"{what}: a single-rate meter needs pir and pburst equal to cir and cburst")
    if config.eburst:
        if kind == p4i.MeterSpec.SINGLE_RATE_THREE_COLOR:
            raise unimplemented(f"{what}: excess bursts (eburst) are not supported")
        raise invalid(f"{what}: eburst is for single-rate three-colour meters only")
    if config.pir < config.cir:
        raise invalid(f"{what}: pir {config.pir} is below cir {config.cir}")
    return MeterConfig(**rates)


def meter_message(config: MeterConfig) -> p4r.MeterConfig:
    """The message of a configuration."""
    return p4r.MeterConfig(
        cir=int(config.cir), cburst=int(config.cburst), pir=int(config.pir), pburst=int(config.pburst)
    )
