"""The runtime's tables, state and events through ctypes, with ``fake_program.c`` instead of a generated program."""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from softswitch import native
from softswitch.toolchain import Build, compile_program
from tests.native.runtime import SANITIZE

OK, ENOENT, EEXIST, EFULL, EINVAL, EBUSY = 0, -1, -2, -3, -4, -5
EXACT1, EXACT2, EXACT5, LPM32, LPM20, LPM_MIXED, TERNARY1, TERNARY2, RANGE2, INDIRECT, SELECTOR, KEYLESS, SMALL = range(
    13
)
NOP, SET, WIDE = range(3)
NO_ACTION, DROP_ACTION = 0xFFFFFFFF, 0xFFFFFFFE
PLAIN, SELECTING = range(2)
EV_PACKET_IN, EV_DIGEST, EV_IDLE, EV_PORT, EV_LOG = range(1, 6)
MS = 1_000_000
SECOND = 1_000_000_000


class _Result(c.Structure):
    _fields_ = [("handle", c.c_uint64), ("action", c.c_uint32), ("args", c.c_ubyte * 48)]


_FAKES: dict[str, tuple[object, list[object]]] = {
    "fake_apply": (None, [native.dev, c.c_uint32, c.c_char_p, c.c_uint32, c.c_uint32, c.POINTER(_Result)]),
    "fake_clock": (None, [native.dev, c.c_uint64]),
    "fake_count": (None, [native.dev, c.c_uint32, c.c_uint64, c.c_uint32]),
    "fake_meter": (c.c_uint32, [native.dev, c.c_uint32, c.c_uint64, c.c_uint32]),
    "fake_meter_direct": (c.c_uint32, [native.dev, c.c_char_p]),
    "fake_register": (c.c_void_p, [native.dev, c.c_uint32, c.c_uint64]),
    "fake_digest": (None, [native.dev, c.c_uint32, c.c_char_p]),
    "fake_clones": (
        c.c_uint32,
        [native.dev, c.c_uint32, c.POINTER(c.c_uint32), c.POINTER(native.Replica), c.c_uint32],
    ),
    "fake_event": (None, [native.dev, c.c_uint32, c.c_uint64, c.c_char_p, c.c_uint32]),
    "sw_value_set_has": (c.c_bool, [native.dev, c.c_uint32, c.c_char_p]),
    "sw_table_sweep": (None, [native.dev, c.c_uint64]),
    "sw_digest_sweep": (None, [native.dev, c.c_uint64]),
    "sw_digest_next": (c.c_uint64, [native.dev]),
}
HASHES = ("crc16", "crc32", "crcCCITT", "csum16", "xor16", "cksum16", "identity", "xxh64", "hash_ex")


@cache
def library() -> c.CDLL:
    """The runtime with the fake program."""
    source = Path(__file__).with_name("fake_program.c").read_text()
    lib = native.open_library(compile_program(source, Build(sanitize=bool(os.environ.get(SANITIZE)), werror=True)))
    hashes = {f"sw_{name}": (c.c_uint64, [c.c_char_p, c.c_size_t]) for name in HASHES}
    for name, (result, args) in {**_FAKES, **hashes}.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = args
    return lib


def set_args(port: int, mac: int = 0) -> bytes:
    """Arguments of action ``set``."""
    return port.to_bytes(2, "big") + mac.to_bytes(6, "big")


@dataclass(frozen=True, slots=True)
class Hit:
    """What a table decided; ``handle`` 0 is a miss."""

    handle: int
    action: int
    args: bytes

    @property
    def port(self) -> int:
        """First argument of action ``set``."""
        return int.from_bytes(self.args[:2], "little")


@dataclass(frozen=True, slots=True)
class Event:
    """An event, of which ``result`` is what sw_event_next returned."""

    result: int
    type: int
    a: int
    b: int
    time: int
    count: int
    length: int
    data: bytes


class Refused(Exception):
    """A call that should give a handle gave an error instead; ``args[0]`` is its code."""


class Fake:
    """A device in virtual time."""

    def __init__(self) -> None:
        self._lib = library()
        config = native.Config(cpu_port=native.NO_PORT, drop_port=511, priorities=1, tick_ns=1000)
        self._dev = c.c_void_p(self._lib.sw_create(c.byref(config)))
        assert self._dev

    def call(self, name: str, *args: object) -> int:
        """The C function of that name with this device."""
        result: int = getattr(self._lib, name)(self._dev, *args)
        return result

    def _handle(self, name: str, *args: object) -> int:
        handle = c.c_uint64()
        result = self.call(name, *args, c.byref(handle))
        if result != OK:
            raise Refused(result)
        return handle.value

    def clock(self, now_ns: int) -> None:
        """Move the clock without doing what falls due."""
        self.call("fake_clock", now_ns)

    # tables
    def add(self, table: int, key: bytes, mask: bytes | None = None, *, priority: int = 0, port: int = 0,
            action: int = SET, args: bytes | None = None, target: int = 0, group: bool = False,
            idle_timeout_ns: int = 0) -> int:  # fmt: skip
        """A new entry's handle; it does ``set(port)`` unless told otherwise. Raises :class:`Refused`."""
        spec = entry_spec(key, mask, priority, action, set_args(port) if args is None else args, target, group)
        spec.idle_timeout_ns = idle_timeout_ns
        return self._handle("sw_table_add", table, c.byref(spec))

    def modify(self, table: int, handle: int, *, port: int = 0, target: int = 0, group: bool = False,
               idle_timeout_ns: int = 0) -> int:  # fmt: skip
        """Let the entry do ``set(port)``, or point at the target."""
        spec = entry_spec(b"", None, 0, SET, set_args(port), target, group)
        spec.idle_timeout_ns = idle_timeout_ns
        return self.call("sw_table_modify", table, handle, c.byref(spec))

    def delete(self, table: int, handle: int) -> int:
        """Delete an entry."""
        return self.call("sw_table_delete", table, handle)

    def find(self, table: int, key: bytes, mask: bytes | None = None, *, priority: int = 0) -> int | None:
        """The handle of the entry with that match."""
        try:
            return self._handle("sw_table_find", table, c.byref(entry_spec(key, mask, priority)))
        except Refused as error:
            assert error.args[0] == ENOENT
            return None

    def apply(self, table: int, key: bytes = b"", *, hash_value: int = 0, length: int = 100) -> Hit:
        """What the table decides about a packet with that key."""
        result = _Result()
        self.call("fake_apply", table, key, hash_value, length, c.byref(result))
        return Hit(result.handle, result.action, bytes(result.args))

    def entry_stats(self, table: int, handle: int) -> tuple[int, int, int]:
        """Packets, bytes, ns since the last hit."""
        stats = native.EntryStats()
        assert self.call("sw_entry_stats_get", table, handle, c.byref(stats)) == OK
        return stats.packets, stats.bytes, stats.idle_ns

    # action profiles
    def member(self, profile: int, port: int) -> int:
        """A new member that does ``set(port)``."""
        args = set_args(port)
        return self._handle("sw_member_add", profile, SET, args, len(args))

    def group(self, members: Sequence[tuple[int, int, int]], max_size: int = 0, profile: int = SELECTING) -> int:
        """A new group of (member, weight, watch port)."""
        return self._handle("sw_group_add", profile, _members(members), len(members), max_size)

    def group_modify(self, handle: int, members: Sequence[tuple[int, int, int]]) -> int:
        """Other members for a group."""
        return self.call("sw_group_modify", SELECTING, handle, _members(members), len(members))

    def clones(self, session: int) -> tuple[int, list[tuple[int, int]]] | None:
        """Truncation and (port, rid) replicas of a clone session."""
        truncate, replicas = c.c_uint32(), (native.Replica * 8)()
        n = self.call("fake_clones", session, c.byref(truncate), replicas, len(replicas))
        return None if n == 0xFFFFFFFF else (truncate.value, [(r.port, r.rid) for r in replicas[:n]])

    # events
    def event(self, timeout_ms: int = 0, cap: int = native.EVENT_MAX) -> Event | None:
        """The next event."""
        event = native.Event()
        buffer = c.create_string_buffer(cap)
        result = self.call("sw_event_next", c.byref(event), buffer, cap, timeout_ms)
        if result == 0:
            return None
        data = buffer.raw[: event.len] if result == 1 else b""
        return Event(result, event.type, event.a, event.b, event.time, event.count, event.len, data)

    def stats(self) -> native.Stats:
        """Statistics."""
        stats = native.Stats()
        self.call("sw_stats_get", c.byref(stats))
        return stats


def entry_spec(key: bytes, mask: bytes | None, priority: int = 0, action: int = NOP, args: bytes = b"",
               target: int = 0, group: bool = False) -> native.EntrySpec:  # fmt: skip
    """sw_entry_spec."""
    return native.EntrySpec(key, mask, priority, action, args, len(args), target, group, 0)


def _members(members: Sequence[tuple[int, int, int]]) -> c.Array[native.GroupMember]:
    return (native.GroupMember * len(members))(*(native.GroupMember(*m) for m in members))


@contextmanager
def fake_device() -> Iterator[Fake]:
    """A device that is given back at the end."""
    device = Fake()
    try:
        yield device
    finally:
        device.call("sw_destroy")
