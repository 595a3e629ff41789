"""The C interface of ``runtime/sw.h`` as ctypes sees it: structures and prototypes."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from pathlib import Path
from typing import Any

from softswitch.device_types import DeviceError

NO_PORT = 0xFFFFFFFF
EVENT_MAX = 65536

u8p, u32, u64, i32, i64 = c.c_char_p, c.c_uint32, c.c_uint64, c.c_int32, c.c_int64
dev = c.c_void_p
BOUNDS: dict[object, tuple[int, int]] = {u32: (0, 2**32 - 1), u64: (0, 2**64 - 1), i32: (-(2**31), 2**31 - 1)}


class Record(c.Structure):
    """A structure whose integers do not wrap: what does not fit is INVALID_ARGUMENT."""

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
            fits = not isinstance(value, int) or isinstance(getattr(self, name), float) or getattr(self, name) == value
        except OverflowError:  # an integer beyond what a double holds
            fits = False
        if not fits:
            raise DeviceError("INVALID_ARGUMENT", f"{name} is out of range: {value:#x}")


class Config(Record):
    """sw_config."""

    _fields_ = [
        ("seed", u64), ("cpu_port", u32), ("drop_port", u32), ("priorities", u32), ("tick_ns", u32),
        ("realtime", c.c_bool),
    ]  # fmt: skip


class EntrySpec(Record):
    """sw_entry_spec."""

    _fields_ = [
        ("key", u8p), ("mask", u8p), ("priority", i32), ("action", u32), ("args", u8p), ("args_len", u32),
        ("target", u64), ("target_is_group", c.c_bool), ("idle_timeout_ns", u64),
    ]  # fmt: skip


class EntryStats(Record):
    """sw_entry_stats."""

    _fields_ = [("packets", u64), ("bytes", u64), ("idle_ns", u64)]


class GroupMember(Record):
    """sw_group_member."""

    _fields_ = [("member", u64), ("weight", u32), ("watch_port", u32)]


class MeterConfig(Record):
    """sw_meter_config."""

    _fields_ = [
        ("cir", c.c_double), ("cburst", c.c_double), ("pir", c.c_double), ("pburst", c.c_double),
        ("configured", c.c_bool),
    ]  # fmt: skip


class QueueConfig(Record):
    """sw_queue_config."""

    _fields_ = [("rate_pps", u64), ("rate_bps", u64), ("depth_packets", u32), ("depth_bytes", u64)]


class QueueStats(Record):
    """sw_queue_stats."""

    _fields_ = [
        ("packets", u64), ("bytes", u64), ("drops", u64), ("drop_bytes", u64), ("depth", u32), ("depth_max", u32),
        ("queued_bytes", u64),
    ]  # fmt: skip


class Fault(Record):
    """sw_fault."""

    _fields_ = [
        ("loss", c.c_double), ("burst_enter", c.c_double), ("burst_exit", c.c_double), ("corrupt", c.c_double),
        ("duplicate", c.c_double), ("delay_ns", u64), ("jitter_ns", u64), ("rate_bps", u64), ("down", c.c_bool),
    ]  # fmt: skip


class Pktgen(Record):
    """sw_pktgen."""

    _fields_ = [
        ("port", u32), ("interval_ns", u64), ("count", u64), ("data", u8p), ("len", u32), ("watches", c.c_bool),
        ("watched_port", u32), ("watched_at", u32),
    ]  # fmt: skip


class Replica(Record):
    """sw_replica."""

    _fields_ = [("port", u32), ("rid", u32)]


class Event(Record):
    """sw_event."""

    _fields_ = [("type", u32), ("a", u32), ("b", u64), ("time", u64), ("count", u32), ("len", u32)]


class DigestConfig(Record):
    """sw_digest_config."""

    _fields_ = [("enabled", c.c_bool), ("max_list_size", u32), ("max_timeout_ns", u64), ("ack_timeout_ns", u64)]


class PortInfo(Record):
    """sw_port_info."""

    _fields_ = [
        ("exists", c.c_bool), ("up", c.c_bool), ("ifname", c.c_char * 32), ("rx_packets", u64), ("rx_bytes", u64),
        ("tx_packets", u64), ("tx_bytes", u64), ("rx_drops", u64), ("tx_drops", u64), ("fault_drops", u64),
        ("fault_corrupt", u64), ("fault_duplicates", u64),
    ]  # fmt: skip


class Stats(Record):
    """sw_stats."""

    _fields_ = [
        ("received", u64), ("transmitted", u64), ("dropped", u64), ("no_buffer", u64), ("loop_drops", u64),
        ("parser_errors", u64), ("queue_drops", u64), ("unknown_group", u64), ("no_live_member", u64),
        ("index_errors", u64), ("assert_failures", u64), ("event_drops", u64 * 8),
    ]  # fmt: skip


class OutputHeader(Record):
    """sw_output."""

    _fields_ = [("port", u32), ("len", u32), ("time", u64)]


_P = c.POINTER
_HANDLE = _P(u64)
PROTOTYPES: dict[str, tuple[object, list[object]]] = {
    "sw_create": (dev, [_P(Config)]),
    "sw_destroy": (None, [dev]),
    "sw_stats_get": (None, [dev, _P(Stats)]),
    "sw_inject": (i32, [dev, u32, u8p, u32, u64]),
    "sw_advance": (i32, [dev, u64]),
    "sw_outputs_take": (u32, [dev, c.c_void_p, u32]),
    "sw_packet_out": (i32, [dev, u32, u8p, u32]),
    "sw_start": (i32, [dev]),
    "sw_stop": (i32, [dev]),
    "sw_now": (u64, [dev]),
    "sw_bench": (u64, [dev, u32, _P(c.c_char_p), _P(u32), u32, u64]),
    "sw_trace_take": (u32, [dev, c.c_void_p, u32]),
    "sw_table_add": (i32, [dev, u32, _P(EntrySpec), _HANDLE]),
    "sw_table_modify": (i32, [dev, u32, u64, _P(EntrySpec)]),
    "sw_table_delete": (i32, [dev, u32, u64]),
    "sw_table_find": (i32, [dev, u32, _P(EntrySpec), _HANDLE]),
    "sw_table_set_default": (i32, [dev, u32, u32, u8p, u32]),
    "sw_table_set_default_target": (i32, [dev, u32, u64, c.c_bool]),
    "sw_table_reset_default": (i32, [dev, u32]),
    "sw_table_count": (i64, [dev, u32]),
    "sw_entry_stats_get": (i32, [dev, u32, u64, _P(EntryStats)]),
    "sw_entry_counter_set": (i32, [dev, u32, u64, u64, u64]),
    "sw_entry_meter_get": (i32, [dev, u32, u64, _P(MeterConfig)]),
    "sw_entry_meter_set": (i32, [dev, u32, u64, _P(MeterConfig)]),
    "sw_member_add": (i32, [dev, u32, u32, u8p, u32, _HANDLE]),
    "sw_member_modify": (i32, [dev, u32, u64, u32, u8p, u32]),
    "sw_member_delete": (i32, [dev, u32, u64]),
    "sw_group_add": (i32, [dev, u32, _P(GroupMember), u32, u32, _HANDLE]),
    "sw_group_modify": (i32, [dev, u32, u64, _P(GroupMember), u32]),
    "sw_group_delete": (i32, [dev, u32, u64]),
    "sw_value_set_add": (i32, [dev, u32, u8p, u8p]),
    "sw_value_set_delete": (i32, [dev, u32, u8p, u8p]),
    "sw_value_set_clear": (i32, [dev, u32]),
    "sw_counter_get": (i32, [dev, u32, u64, _P(u64), _P(u64)]),
    "sw_counter_set": (i32, [dev, u32, u64, u64, u64]),
    "sw_meter_get": (i32, [dev, u32, u64, _P(MeterConfig)]),
    "sw_meter_set": (i32, [dev, u32, u64, _P(MeterConfig)]),
    "sw_register_get": (i32, [dev, u32, u64, c.c_void_p]),
    "sw_register_set": (i32, [dev, u32, u64, u8p]),
    "sw_mcast_set": (i32, [dev, u32, _P(Replica), u32]),
    "sw_mcast_delete": (i32, [dev, u32]),
    "sw_clone_set": (i32, [dev, u32, _P(Replica), u32, u32]),
    "sw_clone_delete": (i32, [dev, u32]),
    "sw_event_next": (i32, [dev, _P(Event), c.c_void_p, u32, c.c_int]),
    "sw_event_wake": (None, [dev]),
    "sw_digest_set": (i32, [dev, u32, _P(DigestConfig)]),
    "sw_digest_ack": (i32, [dev, u32, u64]),
    "sw_queue_set": (i32, [dev, u32, u32, _P(QueueConfig)]),
    "sw_queue_get": (i32, [dev, u32, u32, _P(QueueConfig)]),
    "sw_queue_stats_get": (i32, [dev, u32, u32, _P(QueueStats), c.c_bool]),
    "sw_port_rate_set": (i32, [dev, u32, u64]),
    "sw_fault_set": (i32, [dev, u32, c.c_int, _P(Fault)]),
    "sw_fault_get": (i32, [dev, u32, c.c_int, _P(Fault)]),
    "sw_faults_clear": (i32, [dev]),
    "sw_pktgen_set": (i32, [dev, u32, _P(Pktgen)]),
    "sw_pktgen_clear": (i32, [dev, u32]),
    "sw_port_add": (i32, [dev, u32, u8p]),
    "sw_port_remove": (i32, [dev, u32]),
    "sw_port_set_up": (i32, [dev, u32, c.c_bool]),
    "sw_port_get": (i32, [dev, u32, _P(PortInfo)]),
    "sw_port_pcap": (i32, [dev, u32, u8p]),
}


def open_library(path: Path) -> c.CDLL:
    """Load a compiled program and declare its functions. Each program is a library of its own."""
    library = c.CDLL(str(path), use_errno=True)
    for name, (result, args) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = args
        setattr(library, name, _checked(name, function, args))
    return library


def _checked(name: str, function: Callable[..., Any], args: list[object]) -> Callable[..., Any]:
    """The function with its integers checked; ctypes would cut them to their low bits."""
    numbers = [(at, *BOUNDS[kind]) for at, kind in enumerate(args) if kind in BOUNDS]

    def call(*values: Any) -> Any:
        for at, low, high in numbers:
            if not low <= values[at] <= high:
                raise DeviceError("INVALID_ARGUMENT", f"{name}: an argument is out of range: {values[at]:#x}")
        return function(*values)

    return call
