"""Byte strings of P4Runtime: big-endian integers, in the shortest form where the server writes them.

See "Bytestrings" in the P4Runtime specification: any length is taken as long as the value fits the width; the empty
string never is.
"""

from __future__ import annotations

from softswitch.p4runtime.errors import invalid


def encode(value: int) -> bytes:
    """The canonical form of an unsigned value: the fewest bytes, at least one."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def decode(raw: bytes, width: int, what: str) -> int:
    """The value of ``raw``, a bit<width>; INVALID_ARGUMENT names ``what`` and the width where it does not fit."""
    value = int.from_bytes(raw, "big")
    if not raw:
        raise invalid(f"{what}: the value is empty; a bit<{width}> needs at least one byte")
    if value >> width:
        raise invalid(f"{what}: the value 0x{value:x} does not fit in bit<{width}>")
    return value


def is_canonical(raw: bytes) -> bool:
    """True for the shortest form of an unsigned value. ``raw`` is not empty."""
    return raw[0] != 0 or len(raw) == 1


def encode_signed(value: int) -> bytes:
    """The canonical form of a signed value: two's complement in the fewest bytes, at least one."""
    magnitude = ~value if value < 0 else value
    return value.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def decode_signed(raw: bytes, width: int, what: str) -> int:
    """The value of ``raw``, an int<width>."""
    value = int.from_bytes(raw, "big", signed=True)
    if not raw:
        raise invalid(f"{what}: the value is empty; an int<{width}> needs at least one byte")
    if not -(1 << (width - 1)) <= value < 1 << (width - 1):
        raise invalid(f"{what}: the value {value} does not fit in int<{width}>")
    return value
