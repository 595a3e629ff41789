"""Bits side by side to 64-bit words, in C."""

from __future__ import annotations

from collections.abc import Iterable

Piece = tuple[str, int]  # a C expression without bits above its width, and that width
ZERO = "0"  # the code of a piece of zero bits, of any width


def chunks(items: Iterable[Piece]) -> list[tuple[str, int]]:
    """Pack pieces, a whole number of bytes together, into (code, bytes): 8 bytes each, and what is left.

    Who reads the bytes soon, a checksum, a lookup or a copy, reads large words, and small stores would hold it up.
    """
    result: list[tuple[str, int]] = []
    word: list[Piece] = []
    used = 0
    for code, bits in items:
        while bits:
            take = min(bits, 64 - used)
            word.append((_part(code, bits, take), take))
            used, bits = used + take, bits - take
            if bits:
                code = _low(code, bits)
            if used == 64:
                result.append((_join(word, used), 8))
                word, used = [], 0
    if word:
        result.append((_join(word, used), used // 8))
    return result


def _part(code: str, bits: int, take: int) -> str:
    """The upper ``take`` of the ``bits``."""
    return code if take == bits or code == ZERO else f"(({code}) >> {bits - take})"


def _low(code: str, bits: int) -> str:
    return code if code == ZERO else f"(({code}) & {(1 << bits) - 1:#x}ULL)"


def _join(word: list[Piece], total: int) -> str:
    parts: list[str] = []
    for code, bits in word:
        total -= bits
        shifted = f"{code} << {total}" if code.startswith("(uint64_t)") else f"(uint64_t)({code}) << {total}"
        if code != ZERO:
            parts.append(shifted if total else code)
    return " | ".join(parts) or ZERO
