"""The few calls of BMv2's Thrift services that P4Runtime does not have: rates and depths of queues.

Thrift's binary protocol over plain TCP: https://github.com/apache/thrift/blob/master/doc/specs/thrift-binary-protocol.md
A call is a header (version and type, name, sequence number) and a struct of the arguments; the answer is likewise.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Self

_VERSION = 0x80010000
_CALL, _REPLY = 1, 2
_STOP, _I32, _I64, _STRING, _STRUCT = 0, 8, 10, 11, 12
_RETRY_S = 0.02


class ThriftError(Exception):
    """The switch refuses a call or does not answer."""


class SimpleSwitchClient:
    """A connection to ``--thrift-port`` of a simple_switch; it must be made in the namespace of the switch."""

    def __init__(self, port: int, timeout_s: float = 10.0) -> None:
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        except OSError as error:
            raise ThriftError(f"no simple_switch listens on Thrift port {port}: {error}") from error
        self._stream = self._socket.makefile("rb")
        self._sequence = 0

    def check(self) -> None:
        """Ask for what changes nothing. Raises ThriftError where the switch does not know its own services yet."""
        self._call("simple_switch:get_time_elapsed_us")

    def set_queue_rate(self, port: int, priority: int, packets_per_second: int) -> None:
        """How fast one queue of a port is drained; 0 is no limit. Raises ThriftError."""
        arguments = _integer(1, port), _integer(2, priority), _long(3, packets_per_second)
        self._call("simple_switch:set_egress_priority_queue_rate", *arguments)

    def set_queue_depth(self, port: int, priority: int, packets: int) -> None:
        """How many packets one queue of a port holds. Raises ThriftError."""
        arguments = _integer(1, port), _integer(2, priority), _integer(3, packets)
        self._call("simple_switch:set_egress_priority_queue_depth", *arguments)

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, name: str, *arguments: bytes) -> None:
        self._sequence += 1
        header = struct.pack("!I", _VERSION | _CALL) + _counted(name) + struct.pack("!I", self._sequence)
        try:
            self._socket.sendall(header + b"".join(arguments) + bytes([_STOP]))
            refusal = self._answer()
        except OSError as error:
            raise ThriftError(f"{name}: the switch does not answer: {error}") from error
        if refusal:
            raise ThriftError(f"{name}: {refusal}")

    def _answer(self) -> str:
        """Reads one answer; empty, or why the call was refused."""
        (version,) = self._read("!I")
        self._bytes(self._read("!I")[0] + 4)  # the name again, and the sequence number
        text, refused = "refused", version & 0xFF != _REPLY
        depth = 1  # of structs: an exception that the call declares is a struct in the answer
        while depth:
            (kind,) = self._read("!B")
            if kind == _STOP:
                depth -= 1
                continue
            self._read("!H")
            if kind == _STRUCT:
                depth, refused = depth + 1, True
            elif kind == _I32:
                refused |= self._read("!i")[0] != 0
            elif kind == _I64:
                self._read("!q")
            elif kind == _STRING:
                text = self._bytes(self._read("!I")[0]).decode(errors="replace")
            else:
                raise ThriftError(f"an answer of unknown type {kind}")
        return text if refused else ""

    def _read(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self._bytes(struct.calcsize(layout)))

    def _bytes(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) < count:
            raise ThriftError("the switch closed the Thrift connection")
        return data


def wait_until_served(port: int, seconds: float, is_alive: Callable[[], bool]) -> None:
    """Returns once a simple_switch answers there, which is a little after it serves P4Runtime.

    Raises ThriftError with the last failure after that time, or at once when the switch is not alive any more.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            with SimpleSwitchClient(port) as client:
                client.check()
            return
        except ThriftError:
            if time.monotonic() > deadline or not is_alive():
                raise
        time.sleep(_RETRY_S)


def _counted(text: str) -> bytes:
    return struct.pack("!I", len(text.encode())) + text.encode()


def _integer(number: int, value: int) -> bytes:
    return struct.pack("!BHi", _I32, number, value)


def _long(number: int, value: int) -> bytes:
    return struct.pack("!BHq", _I64, number, value)
