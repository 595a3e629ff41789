"""C values with known bounds.

BMv2 computes with integers of any size and cuts a result to its field at assignment. The generated C does the same
with the smallest type that cannot overflow: every value carries the interval that its true value lies in, and an
operation on intervals tells which C type holds the result. Where only the low bits count (the operand of a mask, an
assignment to an unsigned field), ``cong`` says how many low bits of the C value agree with the true value, and machine
arithmetic may wrap.
"""

from __future__ import annotations

from dataclasses import dataclass

U64 = "uint64_t"
I64 = "int64_t"
U128 = "u128"
I128 = "i128"
WIDE = "wide"

MAX_BITS = 16384  # wider intermediate values are refused


@dataclass(frozen=True, slots=True)
class Value:
    """A C expression. ``low``..``high`` bounds its true value; ``cong`` is None where the C value is exact, else only
    that many low bits are right and the C type is unsigned."""

    code: str
    low: int
    high: int
    ctype: str
    cong: int | None = None


def bits_of(low: int, high: int) -> int:
    """Bits of a two's complement (or unsigned, where nothing is negative) number that holds the interval."""
    if low >= 0:
        return max(high.bit_length(), 1)
    return max((-low - 1).bit_length(), high.bit_length()) + 1


def ctype_for(low: int, high: int) -> str:
    """The smallest C type that holds the interval."""
    if low >= 0:
        if high < 1 << 64:
            return U64
        if high < 1 << 128:
            return U128
    else:
        if low >= -(1 << 63) and high < 1 << 63:
            return I64
        if low >= -(1 << 127) and high < 1 << 127:
            return I128
    return WIDE


def modular_type(bits: int) -> str:
    """The unsigned type whose arithmetic keeps that many low bits right."""
    return U64 if bits <= 64 else U128 if bits <= 128 else WIDE


class Widths:
    """Remembers how many limbs the program's ``wide`` needs: a sign bit more than its widest interval."""

    def __init__(self) -> None:
        self.bits = 128

    def note(self, low: int, high: int) -> None:
        """A wide value of this interval occurs."""
        self.bits = max(self.bits, bits_of(low, high) + (low >= 0))

    @property
    def limbs(self) -> int:
        """W_LIMBS."""
        return (self.bits + 63) // 64


def literal(value: int, ctype: str) -> str:
    """An integer constant of that C type."""
    if ctype == U64:
        return f"{value}ULL" if value < 1 << 16 else f"{value:#x}ULL"
    if ctype == I64:
        return f"(int64_t){value & ((1 << 64) - 1):#x}ULL" if value < 0 else f"{value}LL"
    if ctype in (U128, I128):
        pattern = value & ((1 << 128) - 1)
        code = f"((u128){pattern >> 64:#x}ULL << 64 | {pattern & ((1 << 64) - 1):#x}ULL)"
        return code if ctype == U128 else f"(i128){code}"
    count = max((bits_of(value, value) + 64) // 64, 1)
    limbs = [value >> (64 * i) & ((1 << 64) - 1) for i in range(count)]
    array = ", ".join(f"{limb:#x}ULL" for limb in limbs)
    return f"{'w_load_signed' if value < 0 else 'w_load'}((const uint64_t[]){{{array}}}, {count})"


def convert(value: Value, ctype: str) -> str:
    """The value's code as another C type; the caller knows that it fits, or that only low bits count."""
    code = value.code
    if value.ctype == ctype:
        return code
    if ctype == WIDE:
        if value.ctype in (U64, U128):
            return f"w_u128({code})"
        return f"w_i128({code})"
    if value.ctype == WIDE:
        code = f"w_low128({code})"
        return code if ctype == U128 else f"({ctype}){code}"
    return f"({ctype})({code})" if not code.isidentifier() else f"({ctype}){code}"


def const(value: int, widths: Widths) -> Value:
    """A constant."""
    ctype = ctype_for(value, value)
    if ctype == WIDE:
        widths.note(value, value)
    return Value(literal(value, ctype), value, value, ctype)


def low_bits(value: Value, bits: int) -> str:
    """Code of the low ``bits`` bits, as the modular type of that many bits."""
    ctype = modular_type(bits)
    code = convert(value, ctype)
    if value.cong is None and value.low >= 0 and value.high < 1 << bits:
        return code
    if ctype == WIDE:
        return f"w_mask({code}, {bits})"
    if bits in (64, 128):
        return code
    return f"(({code}) & {literal((1 << bits) - 1, ctype)})"
