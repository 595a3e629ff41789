"""The values that a :class:`softswitch.device.Device` takes and gives."""

from __future__ import annotations

from dataclasses import dataclass


class DeviceError(Exception):
    """A refused operation. ``code`` is a P4Runtime canonical name: NOT_FOUND, ALREADY_EXISTS, RESOURCE_EXHAUSTED,
    INVALID_ARGUMENT, FAILED_PRECONDITION (in use), INTERNAL."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Output:
    """A packet that left in virtual time."""

    port: int
    data: bytes
    time_ns: int


@dataclass(frozen=True, slots=True)
class Lpm:
    """The first ``prefix_len`` bits of a field."""

    value: int
    prefix_len: int


@dataclass(frozen=True, slots=True)
class Ternary:
    """The bits of a field that are set in ``mask``."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class Range:
    """A field from ``low`` to ``high``, both included."""

    low: int
    high: int


# What an entry asks of a field: an int is an exact match; None (or a field left out) is "don't care" where the field is
# lpm, ternary or range. An int serves for these kinds too; a valid field takes 0 or 1.
MatchValue = int | Lpm | Ternary | Range | None


@dataclass(frozen=True, slots=True)
class Call:
    """An action with its arguments in the order of the program."""

    action: str
    args: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the table's action profile."""

    handle: int


@dataclass(frozen=True, slots=True)
class Group:
    """A group of the table's action selector."""

    handle: int


Target = Call | Member | Group


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member in a group: chosen in proportion to ``weight``, and not while ``watch_port`` is down."""

    member: int
    weight: int = 1
    watch_port: int | None = None


@dataclass(frozen=True, slots=True)
class EntryStats:
    """An entry's direct counter and the time since its last hit."""

    packets: int
    bytes: int
    idle_ns: int


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """Rates per second and bursts, in bytes or packets as the meter counts (RFC 2698)."""

    cir: float
    cburst: float
    pir: float
    pburst: float


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """An egress queue; 0 is no limit."""

    rate_pps: int = 0
    rate_bps: int = 0
    depth_packets: int = 64
    depth_bytes: int = 0


@dataclass(frozen=True, slots=True)
class QueueStats:
    """What went through a queue and what it dropped; packets that wait, the most that ever waited, bytes that wait."""

    packets: int
    bytes: int
    drops: int
    drop_bytes: int
    depth: int
    depth_max: int
    queued_bytes: int


@dataclass(frozen=True, slots=True)
class Watch:
    """The byte at ``offset`` of a generator's packets is 1 while ``port`` is down, and 0 while it is up."""

    port: int
    offset: int


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong on one direction of a port. Probabilities per packet; see ``sw_fault`` in runtime/sw.h."""

    loss: float = 0.0
    burst_enter: float = 0.0
    burst_exit: float = 0.0
    corrupt: float = 0.0
    duplicate: float = 0.0
    delay_ns: int = 0
    jitter_ns: int = 0
    rate_bps: int = 0
    down: bool = False


@dataclass(frozen=True, slots=True)
class PortInfo:
    """A port's state and counters; ``ifname`` is empty for a port in memory."""

    exists: bool
    up: bool
    ifname: str
    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    rx_drops: int
    tx_drops: int
    fault_drops: int
    fault_corrupt: int
    fault_duplicates: int


@dataclass(frozen=True, slots=True)
class Replica:
    """A copy of a multicast or cloned packet: its port and egress_rid."""

    port: int
    rid: int = 0


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet that left through the CPU port."""

    data: bytes
    time_ns: int


@dataclass(frozen=True, slots=True)
class DigestList:
    """Samples of a digest, each the values of its fields."""

    digest: str
    list_id: int
    samples: tuple[tuple[int, ...], ...]
    time_ns: int


@dataclass(frozen=True, slots=True)
class IdleTimeout:
    """An entry that nothing hit for its timeout."""

    table: str
    handle: int
    time_ns: int


@dataclass(frozen=True, slots=True)
class PortEvent:
    """A port went up or down."""

    port: int
    up: bool
    time_ns: int


@dataclass(frozen=True, slots=True)
class LogMessage:
    """What log_msg, or a failed assertion, says."""

    text: str
    time_ns: int


Event = PacketIn | DigestList | IdleTimeout | PortEvent | LogMessage
