"""The C runtime by itself: ``runtime/sw.h`` through ctypes, with ``forward_program.c`` as its program."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_int, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from softswitch.toolchain import Build, compile_program

OK, ENOENT, EEXIST, EINVAL, EBUSY, EIO = 0, -1, -2, -4, -5, -7
RX, TX = 0, 1
CPU_PORT = 510  # forward_program.c sends there
EV_PACKET_IN, EV_PORT = 1, 4
SECOND = 1_000_000_000
SANITIZE = "SW_TEST_SANITIZE"  # environment: build with ASan and UBSan (their library has to be preloaded)


class Config(Structure):
    _fields_ = [
        ("seed", c_uint64),
        ("cpu_port", c_uint32),
        ("drop_port", c_uint32),
        ("priorities", c_uint32),
        ("tick_ns", c_uint32),
        ("realtime", c_bool),
    ]


class Stats(Structure):
    _fields_ = [
        *((name, c_uint64) for name in (
            "received", "transmitted", "dropped", "no_buffer", "loop_drops", "parser_errors", "queue_drops",
            "unknown_group", "no_live_member", "index_errors", "assert_failures",
        )),
        ("event_drops", c_uint64 * 8),
    ]  # fmt: skip


class Queue(Structure):
    _fields_ = [
        ("rate_pps", c_uint64),
        ("rate_bps", c_uint64),
        ("depth_packets", c_uint32),
        ("depth_bytes", c_uint64),
    ]


class QueueStats(Structure):
    _fields_ = [
        ("packets", c_uint64),
        ("bytes", c_uint64),
        ("drops", c_uint64),
        ("drop_bytes", c_uint64),
        ("depth", c_uint32),
        ("depth_max", c_uint32),
        ("queued_bytes", c_uint64),
    ]


class Fault(Structure):
    _fields_ = [
        ("loss", c_double),
        ("burst_enter", c_double),
        ("burst_exit", c_double),
        ("corrupt", c_double),
        ("duplicate", c_double),
        ("delay_ns", c_uint64),
        ("jitter_ns", c_uint64),
        ("rate_bps", c_uint64),
        ("down", c_bool),
    ]


class Generator(Structure):
    _fields_ = [
        ("port", c_uint32),
        ("interval_ns", c_uint64),
        ("count", c_uint64),
        ("data", c_char_p),
        ("len", c_uint32),
        ("watches", c_bool),
        ("watched_port", c_uint32),
        ("watched_at", c_uint32),
    ]


class PortInfo(Structure):
    _fields_ = [
        ("exists", c_bool),
        ("up", c_bool),
        ("ifname", c_char * 32),
        *((name, c_uint64) for name in (
            "rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_drops", "tx_drops",
            "fault_drops", "fault_corrupt", "fault_duplicates",
        )),
    ]  # fmt: skip


class Event(Structure):
    _fields_ = [
        ("type", c_uint32),
        ("a", c_uint32),
        ("b", c_uint64),
        ("time", c_uint64),
        ("count", c_uint32),
        ("len", c_uint32),
    ]


class OutputHead(Structure):
    _fields_ = [("port", c_uint32), ("len", c_uint32), ("time", c_uint64)]


_CALLS: dict[str, tuple[type | None, tuple[object, ...]]] = {  # result and arguments after the device
    "sw_destroy": (None, ()),
    "sw_inject": (c_int, (c_uint32, c_char_p, c_uint32, c_uint64)),
    "sw_advance": (c_int, (c_uint64,)),
    "sw_outputs_take": (c_uint32, (c_void_p, c_uint32)),
    "sw_packet_out": (c_int, (c_uint32, c_char_p, c_uint32)),
    "sw_start": (c_int, ()),
    "sw_stop": (c_int, ()),
    "sw_now": (c_uint64, ()),
    "sw_bench": (c_uint64, (c_uint32, POINTER(c_char_p), POINTER(c_uint32), c_uint32, c_uint64)),
    "sw_stats_get": (None, (POINTER(Stats),)),
    "sw_queue_set": (c_int, (c_uint32, c_uint32, POINTER(Queue))),
    "sw_queue_get": (c_int, (c_uint32, c_uint32, POINTER(Queue))),
    "sw_queue_stats_get": (c_int, (c_uint32, c_uint32, POINTER(QueueStats), c_bool)),
    "sw_port_rate_set": (c_int, (c_uint32, c_uint64)),
    "sw_fault_set": (c_int, (c_uint32, c_int, POINTER(Fault))),
    "sw_fault_get": (c_int, (c_uint32, c_int, POINTER(Fault))),
    "sw_faults_clear": (c_int, ()),
    "sw_pktgen_set": (c_int, (c_uint32, POINTER(Generator))),
    "sw_pktgen_clear": (c_int, (c_uint32,)),
    "sw_port_add": (c_int, (c_uint32, c_char_p)),
    "sw_port_remove": (c_int, (c_uint32,)),
    "sw_port_set_up": (c_int, (c_uint32, c_bool)),
    "sw_port_get": (c_int, (c_uint32, POINTER(PortInfo))),
    "sw_port_pcap": (c_int, (c_uint32, c_char_p)),
    "sw_event_next": (c_int, (POINTER(Event), c_void_p, c_uint32, c_int)),
}


@cache
def library() -> ctypes.CDLL:
    """The runtime with the forwarding program, compiled at first use."""
    source = Path(__file__).with_name("forward_program.c").read_text()
    build = Build(sanitize=bool(os.environ.get(SANITIZE)), werror=True)
    lib = ctypes.CDLL(str(compile_program(source, build)), use_errno=True)
    for name, (result, arguments) in _CALLS.items():
        call = getattr(lib, name)
        call.restype, call.argtypes = result, (c_void_p, *arguments)
    lib.sw_create.restype, lib.sw_create.argtypes = c_void_p, (POINTER(Config),)
    return lib


@dataclass(frozen=True, slots=True)
class Output:
    """A packet that left in virtual time."""

    port: int
    data: bytes
    time: int


class RuntimeDevice:
    """One device. Calls return what the C calls return."""

    def __init__(self, *, seed: int = 1, priorities: int = 1, realtime: bool = False) -> None:
        self._lib = library()
        config = Config(seed, CPU_PORT, 511, priorities, 1, realtime)
        self._dev = c_void_p(self._lib.sw_create(byref(config)))
        assert self._dev
        self._buffer = ctypes.create_string_buffer(1 << 20)

    def close(self) -> None:
        self._lib.sw_destroy(self._dev)

    def call(self, name: str, *arguments: object) -> int:
        """``sw_`` NAME of this device."""
        result: int = getattr(self._lib, f"sw_{name}")(self._dev, *arguments)
        return result

    def _bytes(self, start: int, length: int) -> bytes:
        return ctypes.string_at(ctypes.addressof(self._buffer) + start, length)

    # virtual time
    def outputs(self) -> list[Output]:
        found = []
        while n := self.call("outputs_take", self._buffer, len(self._buffer)):
            at = 0
            while at < n:
                head = OutputHead.from_buffer(self._buffer, at)
                start = at + ctypes.sizeof(OutputHead)
                found.append(Output(head.port, self._bytes(start, head.len), head.time))
                at = start + (head.len + 7) // 8 * 8
        return found

    def inject(self, port: int, packet: bytes, now: int) -> list[Output]:
        assert self.call("inject", port, packet, len(packet), now) == OK
        return self.outputs()

    def advance(self, now: int) -> list[Output]:
        assert self.call("advance", now) == OK
        return self.outputs()

    # control
    def queue_set(self, port: int, priority: int = 0, *, pps: int = 0, bps: int = 0, packets: int = 64,
                  nbytes: int = 0) -> int:  # fmt: skip
        return self.call("queue_set", port, priority, byref(Queue(pps, bps, packets, nbytes)))

    def queue_stats(self, port: int, priority: int = 0, *, clear_max: bool = False) -> QueueStats:
        stats = QueueStats()
        assert self.call("queue_stats_get", port, priority, byref(stats), clear_max) == OK
        return stats

    def fault_set(self, port: int, direction: int, **fault: float) -> int:
        return self.call("fault_set", port, direction, byref(Fault(**fault)))

    def pktgen_set(self, ident: int, port: int, interval_ns: int, packet: bytes, count: int = 0, *watch: int) -> int:
        generator = Generator(port, interval_ns, count, packet, len(packet), bool(watch), *watch)
        return self.call("pktgen_set", ident, byref(generator))

    def port_add(self, port: int, ifname: str) -> int:
        return self.call("port_add", port, ifname.encode())

    def port(self, port: int) -> PortInfo:
        info = PortInfo()
        self.call("port_get", port, byref(info))
        return info

    def stats(self) -> Stats:
        stats = Stats()
        self.call("stats_get", byref(stats))
        return stats

    def event(self, timeout_ms: int = 0) -> tuple[Event, bytes] | None:
        event = Event()
        if self.call("event_next", byref(event), self._buffer, len(self._buffer), timeout_ms) != 1:
            return None
        return event, self._bytes(0, event.len)

    def port_event(self, timeout_ms: int = 0) -> tuple[int, bool] | None:
        """The next event, which has to be a port's."""
        found = self.event(timeout_ms)
        if found is None:
            return None
        assert found[0].type == EV_PORT
        return found[0].a, bool(found[0].b)


@contextmanager
def runtime_device(*, seed: int = 1, priorities: int = 1, realtime: bool = False) -> Iterator[RuntimeDevice]:
    """A device that is given back at the end."""
    device = RuntimeDevice(seed=seed, priorities=priorities, realtime=realtime)
    try:
        yield device
    finally:
        device.close()
