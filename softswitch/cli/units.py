"""Numbers with units, as the command line takes them."""

from __future__ import annotations

import re
from decimal import Decimal

from typer import BadParameter

_SCALES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_DURATIONS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def amount(text: str) -> int:
    """``10``, ``64k``, ``2.5M``, ``10G``: a count or rate in decimal multiples."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKMGT]?)", text)
    if match is None:
        raise BadParameter(f"{text!r} is not a number, possibly with k, M, G or T after it")
    return _scaled(match[1], _SCALES[match[2]])


def duration_ns(text: str) -> int:
    """``10us``, ``1.5ms``, ``1s``: a time in nanoseconds. A unit is required, except for 0."""
    if text == "0":
        return 0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)", text)
    if match is None:
        raise BadParameter(f"{text!r} is not a time with a unit: ns, us, ms or s")
    return _scaled(match[1], _DURATIONS_NS[match[2]])


def _scaled(number: str, scale: int) -> int:
    value = Decimal(number) * scale
    if value >= 1 << 63:
        raise BadParameter(f"{number:.40} is too large")
    return round(value)


def index(text: str, end: int) -> int | None:
    """A number from 0 to ``end`` - 1; None for any other text."""
    return int(text) if text.isdecimal() and len(text) <= 20 and int(text) < end else None


def probability(text: str) -> float:
    """``0.01`` or ``1%``."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 1:
        raise BadParameter(f"{text!r} is not a probability: 0 to 1, or 0% to 100%")
    return value


def packet(text: str) -> bytes:
    """Bytes in hexadecimal, with or without blanks or a leading 0x."""
    try:
        data = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        data = b""
    if not data:
        raise BadParameter(f"{text!r} is not a packet in hexadecimal")
    return data


def uint64(text: str | int) -> int:
    """0 to 2^64 - 1: device ids and seeds. An option's default comes as a number."""
    number = index(str(text), 1 << 64)
    if number is None:
        raise BadParameter(f"{text!r} is not a number from 0 to {(1 << 64) - 1}")
    return number


def port_number(text: str) -> int:
    """0 to 511."""
    port = index(text, 512)
    if port is None:
        raise BadParameter(f"{text!r} is not a port number: 0 to 511")
    return port
