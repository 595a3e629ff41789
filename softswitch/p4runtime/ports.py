"""Port numbers as the controller writes them. They are not translated: 0 to 511, as v1model's PortId_t."""

from __future__ import annotations

from softswitch.p4runtime.errors import invalid

MAX_PORT = 511


def port_number(raw: bytes, what: str) -> int:
    """The port of a byte string; INVALID_ARGUMENT where it is none."""
    number = int.from_bytes(raw, "big")
    if not raw or number > MAX_PORT:
        raise invalid(f"{what}: {raw.hex() or 'the empty string'} is not a port; valid: 0 to {MAX_PORT}")
    return number
