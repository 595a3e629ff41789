"""Just enough of BMv2's Thrift server for what its P4Runtime server does not do: registers and parser value sets."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Sequence

I32, I64, STRING, LIST, STOP = 8, 10, 11, 15, 0
VERSION_CALL = 0x80010001
EXCEPTION = 3


class Thrift:
    """A connection to the service ``standard``, in Thrift's binary protocol. Raises OSError and ValueError."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._file = self._socket.makefile("rb")

    def close(self) -> None:
        """Break off."""
        self._file.close()
        self._socket.close()

    def registers(self, name: str) -> Sequence[int]:
        """The low 64 bits of every cell of a register array."""
        result = self._call("bm_register_read_all", name)
        item, count = self._take(">bi")
        if (result, item) != (LIST, I64):
            raise ValueError(f"register {name}: a result of type {result} with items of type {item}")
        cells = self._take(f">{count}Q")
        self._take(">b")
        return cells

    def value_set(self, name: str, members: Iterable[bytes]) -> None:
        """Make a parser value set hold these values, each as wide as a member in whole bytes."""
        self._call("bm_parse_vset_clear", name)
        for member in members:
            self._call("bm_parse_vset_add", name, member)

    def _call(self, method: str, *texts: str | bytes) -> int:
        """Call with the context 0 and text arguments. Returns the type of the result, STOP where there is none."""
        name = f"standard:{method}".encode()
        call = struct.pack(">Ii", VERSION_CALL, len(name)) + name + struct.pack(">i", 0)
        call += struct.pack(">bhi", I32, 1, 0)
        for field, text in enumerate(texts, 2):
            data = text.encode() if isinstance(text, str) else text
            call += struct.pack(">bhi", STRING, field, len(data)) + data
        self._socket.sendall(call + struct.pack(">b", STOP))
        version, length = self._take(">Ii")
        self._file.read(length)
        self._take(">i")
        (kind,) = self._take(">b")
        if version & 0xFF == EXCEPTION or (kind != STOP and self._take(">h") != (0,)):
            raise ValueError(f"{method}({', '.join(map(repr, texts))}) was refused")
        return kind

    def _take(self, layout: str) -> tuple[int, ...]:
        size = struct.calcsize(layout)
        data = self._file.read(size)
        if len(data) != size:
            raise ValueError("the Thrift server closed the connection")
        return struct.unpack(layout, data)
