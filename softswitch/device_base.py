"""What all parts of a device share: the native library, its handle, and how refusals become errors."""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Mapping
from typing import Self

from softswitch import model as m
from softswitch import native
from softswitch.device_types import DeviceError

CODES = {
    -1: ("NOT_FOUND", "there is no such object"),
    -2: ("ALREADY_EXISTS", "it is already there"),
    -3: ("RESOURCE_EXHAUSTED", "it is full"),
    -4: ("INVALID_ARGUMENT", "an argument is out of range"),
    -5: ("FAILED_PRECONDITION", "it is in use"),
    -6: ("RESOURCE_EXHAUSTED", "out of memory"),
    -7: ("INTERNAL", "the operating system refused"),
}


class DeviceBase:
    """A native device and the numbers of its program's names."""

    program: m.Program

    def __init__(self, program: m.Program, library: c.CDLL, config: native.Config) -> None:
        self.program = program
        self.lib = library
        self.ptr: int | None = library.sw_create(c.byref(config))
        if not self.ptr:
            raise DeviceError("RESOURCE_EXHAUSTED", "the device does not fit into memory")
        self._tables = {name: i for i, name in enumerate(program.tables)}
        self._profiles = {name: i for i, name in enumerate(program.profiles)}
        self._counters = {name: i for i, name in enumerate(program.counters)}
        self._meters = {name: i for i, name in enumerate(program.meters)}
        self._registers = {name: i for i, name in enumerate(program.registers)}
        self._value_sets = {name: i for i, name in enumerate(program.value_sets)}
        self._digests = {d.name: i for i, d in enumerate(program.digests.values())}
        self._action_index = {ident: i for i, ident in enumerate(program.actions)}

    def close(self) -> None:
        """Stop the device and give its memory back; what is called after that raises DeviceError."""
        if self.ptr:
            self.lib.sw_destroy(self.ptr)
            self.ptr = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _native(self) -> int:
        if not self.ptr:
            raise DeviceError("FAILED_PRECONDITION", "the device is closed")
        return self.ptr

    @staticmethod
    def _number(what: str, name: str, table: Mapping[str, int]) -> int:
        """The native index of a named object."""
        if name not in table:
            known = ", ".join(sorted(table)) or "none"
            raise DeviceError("NOT_FOUND", f"there is no {what} {name!r}; there are: {known}")
        return table[name]

    @staticmethod
    def _check(result: int, what: str) -> int:
        """The result, or the error that a negative one means."""
        if result < 0:
            code, reason = CODES.get(result, ("INTERNAL", f"error {result}"))
            if result == -7 and c.get_errno():
                reason = os.strerror(c.get_errno())
            raise DeviceError(code, f"{what}: {reason}")
        return result


def to_bytes(value: int, width: int, what: str) -> bytes:
    """Big-endian, byte-padded. Raises DeviceError where the value does not fit ``width`` bits."""
    if not 0 <= value < 1 << width:
        raise DeviceError("INVALID_ARGUMENT", f"{what}: {value:#x} does not fit {width} bits")
    return value.to_bytes((width + 7) // 8, "big")
