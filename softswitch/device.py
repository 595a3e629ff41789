"""One loaded device: a P4 program running on the native runtime.

The Python face of ``runtime/sw.h``. Names are those of the P4 program (as in BMv2 JSON and P4Info), values are Python
integers, times are nanoseconds on the device's clock. Every method may be called from any thread.
"""

from __future__ import annotations

import ctypes as c
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from softswitch import model as m
from softswitch import native
from softswitch.codegen import generate
from softswitch.device_ports import PortsMixin
from softswitch.device_state import StateMixin
from softswitch.device_tables import TablesMixin
from softswitch.device_types import (
    Call,
    DeviceError,
    DigestList,
    EntryStats,
    Event,
    Fault,
    Group,
    GroupMember,
    IdleTimeout,
    LogMessage,
    Lpm,
    MatchValue,
    Member,
    MeterConfig,
    Output,
    PacketIn,
    PortEvent,
    PortInfo,
    QueueConfig,
    QueueStats,
    Range,
    Replica,
    Target,
    Ternary,
    Watch,
)
from softswitch.toolchain import Build, compile_program

__all__ = [
    "Call", "Device", "DeviceError", "DigestList", "EntryStats", "Event", "Fault", "Group", "GroupMember",
    "IdleTimeout", "LogMessage", "Lpm", "MatchValue", "Member", "MeterConfig", "Output", "PacketIn", "PortEvent",
    "PortInfo", "QueueConfig", "QueueStats", "Range", "Replica", "Target", "Ternary", "Watch",
]  # fmt: skip

PACKET_IN, DIGEST, IDLE, PORT, LOG = range(1, 6)
DROP_COUNTS = {PACKET_IN: "packet_in", DIGEST: "digest", IDLE: "idle", PORT: "port", LOG: "log"}
OUTPUT_CHUNK = 1 << 16


class Device(TablesMixin, StateMixin, PortsMixin):
    """A program with its tables, state, queues and ports.

    In virtual time (the default) :meth:`inject` and :meth:`advance` move its clock and return what left; the same
    calls with the same ``seed`` give the same result. With ``realtime`` it runs on network interfaces in a thread of
    its own, from :meth:`start` to :meth:`stop`.
    """

    def __init__(
        self, program: m.Program, *, seed: int = 0, cpu_port: int | None = None, drop_port: int = 511,
        priorities: int = 1, tick_ns: int = 1000, realtime: bool = False, keep_c: Path | None = None,
        trace: bool = False, sanitize: bool = False, werror: bool = False, defines: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Compile and load ``program``; the entries that it contains are in its tables.

        ``tick_ns`` is the unit of the data plane's timestamps (BMv2: a microsecond), ``priorities`` the egress queues
        of a port (1..8), ``keep_c`` a directory for the generated C; the rest is as
        :class:`softswitch.toolchain.Build` says. Raises ProgramError (not supported), ToolchainError (no compiler) and
        DeviceError.
        """
        build = Build(trace=trace, sanitize=sanitize, werror=werror, defines=defines)
        library = native.open_library(compile_program(generate(program), build, keep_c))
        for what, value, low, high in (
            ("priorities", priorities, 1, 8), ("drop_port", drop_port, 0, 511), ("tick_ns", tick_ns, 1, 10**9),
            ("cpu_port", 1 if cpu_port is None else cpu_port, 1, 510), ("seed", seed, 0, 2**64 - 1),
        ):  # fmt: skip
            if not low <= value <= high:
                raise DeviceError("INVALID_ARGUMENT", f"{what} must be within {low}..{high}, is {value}")
        cpu = native.NO_PORT if cpu_port is None else cpu_port
        super().__init__(program, library, native.Config(seed, cpu, drop_port, priorities, tick_ns, realtime))
        self.priorities, self.realtime, self.cpu_port = priorities, realtime, cpu_port
        self._outputs = c.create_string_buffer(OUTPUT_CHUNK)
        self._taking = threading.Lock()  # who fills _outputs and has not read it yet
        self._event_data = c.create_string_buffer(native.EVENT_MAX)
        try:
            for table in program.tables.values():
                self._install_entries(table)
        except DeviceError:
            self.close()
            raise

    def _install_entries(self, table: m.Table) -> None:
        """The program's own entries. JSON counts priorities from the best down, the device from the worst up."""
        worst = max((entry.priority for entry in table.entries), default=0)
        for entry in table.entries:
            match = {f.name: _match_value(f, part) for f, part in zip(table.key, entry.fields, strict=True)}
            call = Call(self.program.actions[entry.call.action].name, entry.call.args)
            ranked = any(f.match in ("ternary", "range") for f in table.key)
            self.table_add(table.name, match, call, priority=worst + 1 - entry.priority if ranked else 0)

    # ---- packets -------------------------------------------------------------------------------------------

    def inject(self, port: int, packet: bytes, now: int) -> list[Output]:
        """A packet arrives on ``port`` at ``now``, which is not before the clock. Returns what has left by then."""
        self._check(self.lib.sw_inject(self._native(), port, packet, len(packet), now), f"inject on port {port}")
        return list(self._take_outputs())

    def advance(self, now: int) -> list[Output]:
        """Let time pass until ``now``; returns what left meanwhile, in order of time."""
        self._check(self.lib.sw_advance(self._native(), now), f"advance to {now}")
        return list(self._take_outputs())

    def packet_out(self, packet: bytes) -> list[Output]:
        """The control plane's packet arrives on the CPU port, now. Returns outputs in virtual time only."""
        if self.cpu_port is None:
            raise DeviceError("FAILED_PRECONDITION", "the device has no CPU port")
        self._check(self.lib.sw_packet_out(self._native(), self.cpu_port, packet, len(packet)), "packet out")
        return [] if self.realtime else list(self._take_outputs())

    def _take_outputs(self) -> Iterator[Output]:
        header = c.sizeof(native.OutputHeader)
        while data := self._take(self.lib.sw_outputs_take):
            at = 0
            while at < len(data):
                record = native.OutputHeader.from_buffer_copy(data, at)
                at += header
                yield Output(record.port, data[at : at + record.len], record.time)
                at += (record.len + 7) // 8 * 8

    def take_trace(self) -> list[str]:
        """With ``trace``: a JSON object for each step since the last call."""
        text = bytearray()
        while data := self._take(self.lib.sw_trace_take):
            text += data
        return text.decode("utf-8", "replace").splitlines()

    def _take(self, take: Callable[..., int]) -> bytes:
        """What there is, as much as fits the buffer."""
        with self._taking:
            return c.string_at(self._outputs, take(self._native(), self._outputs, len(self._outputs)))

    def bench(self, port: int, packets: Sequence[bytes], count: int) -> int:
        """Receive ``count`` packets on ``port``, the given ones over and over, as fast as it goes.

        Returns the nanoseconds of processor time that this took. What leaves is counted in :meth:`stats` and thrown
        away; the device's clock stands still meanwhile.
        """
        if not packets:
            raise DeviceError("INVALID_ARGUMENT", "bench needs a packet")
        data = (c.c_char_p * len(packets))(*packets)
        lengths = (c.c_uint32 * len(packets))(*map(len, packets))
        taken: int = self.lib.sw_bench(self._native(), port, data, lengths, len(packets), count)
        return taken

    # ---- real time -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to forward (real time)."""
        self._check(self.lib.sw_start(self._native()), "start")

    def stop(self) -> None:
        """Stop forwarding; what waits in queues is lost."""
        self._check(self.lib.sw_stop(self._native()), "stop")

    def now(self) -> int:
        """The device's clock, ns."""
        clock: int = self.lib.sw_now(self._native())
        return clock

    def stats(self) -> dict[str, int]:
        """The device's counters by name."""
        stats = native.Stats()
        self.lib.sw_stats_get(self._native(), c.byref(stats))
        counts = {name: getattr(stats, name) for name, *_ in native.Stats._fields_ if name != "event_drops"}
        return counts | {f"{name}_events_lost": stats.event_drops[i] for i, name in DROP_COUNTS.items()}

    # ---- events --------------------------------------------------------------------------------------------

    def next_event(self, timeout_ms: int) -> Event | None:
        """Wait for the next event, at most ``timeout_ms``. One thread at a time."""
        event = native.Event()
        buffer = self._event_data
        result = self.lib.sw_event_next(self._native(), c.byref(event), buffer, len(buffer), timeout_ms)
        if result <= 0:
            return None
        data = buffer.raw[: event.len]
        match event.type:
            case 1:
                return PacketIn(data, event.time)
            case 2:
                return self._digest_list(event, data)
            case 3:
                return IdleTimeout(list(self.program.tables)[event.a], event.b, event.time)
            case 4:
                return PortEvent(event.a, bool(event.b), event.time)
        return LogMessage(data.decode("utf-8", "replace"), event.time)

    def wake(self) -> None:
        """Make a waiting :meth:`next_event` return None."""
        self.lib.sw_event_wake(self._native())

    def _digest_list(self, event: native.Event, data: bytes) -> DigestList:
        digest = list(self.program.digests.values())[event.a]
        sizes = [(self.program.field_type(f).width + 7) // 8 for f in digest.fields]
        samples: list[tuple[int, ...]] = []
        at = 0
        for _ in range(event.count):
            values: list[int] = []
            for size in sizes:
                values.append(int.from_bytes(data[at : at + size], "big"))
                at += size
            samples.append(tuple(values))
        return DigestList(digest.name, event.b, tuple(samples), event.time)


def _match_value(field: m.KeyField, part: m.EntryField) -> MatchValue:
    match field.match:
        case "lpm":
            return Lpm(part.value, part.prefix_len)
        case "ternary":
            return Ternary(part.value, part.mask)
        case "range":
            return Range(part.value, part.high)
    return part.value
