"""Random packets: most follow a random walk through the program's parser, some are cut, mutated or noise."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from softswitch import model as m
from tests.differential.pool import Pool

MAX_STATES = 40
MAX_BYTES = 1500
PORTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 255, 300, 509)


@dataclass
class _Bits:
    """A packet in the making: ``value`` holds ``length`` bits. ``later`` are bits to set once they are there."""

    value: int = 0
    length: int = 0
    fields: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    later: list[tuple[int, int, int, int]] = field(default_factory=list)

    def append(self, value: int, width: int) -> None:
        self.value = self.value << width | value
        self.length += width
        due, self.later = self.later, []
        for item in due:
            self.force(*item)

    def get(self, offset: int, width: int) -> int | None:
        """Bits of the packet; None where it is too short yet."""
        if offset + width > self.length:
            return None
        return self.value >> (self.length - offset - width) & ((1 << width) - 1)

    def force(self, offset: int, width: int, value: int, mask: int) -> None:
        """Set the masked bits of a field, now or when the packet is long enough."""
        if offset + width > self.length:
            self.later.append((offset, width, value, mask))
            return
        mask &= (1 << width) - 1
        shift = self.length - offset - width
        self.value = self.value & ~(mask << shift) | (value & mask) << shift

    def bytes(self) -> bytes:
        size = (self.length + 7) // 8
        return (self.value << (size * 8 - self.length)).to_bytes(size, "big")


class Packets:
    """Makes packets for one program."""

    def __init__(self, rng: random.Random, program: m.Program, pool: Pool) -> None:
        self._rng, self._program, self._pool = rng, program, pool

    def packet(self) -> tuple[int, bytes]:
        """A port and a packet of 1 to 1,500 bytes."""
        rng = self._rng
        port = rng.choice(PORTS[:5] if rng.random() < 0.8 else PORTS)
        kind = rng.random()
        if kind < 0.08:
            return port, rng.randbytes(rng.randint(1, rng.choice((8, 40, 100, MAX_BYTES))))
        bits = self._walk()
        data = bits.bytes() + self._payload()
        if kind < 0.2:
            data = data[: rng.randint(1, max(1, len(data)))]
        elif kind < 0.3 and data:
            mutable = bytearray(data)
            for _ in range(rng.randint(1, 3)):
                mutable[rng.randrange(len(mutable))] ^= 1 << rng.randrange(8)
            data = bytes(mutable)
        return port, data[:MAX_BYTES] or b"\0"

    def _payload(self) -> bytes:
        rng = self._rng
        kind = rng.random()
        if kind < 0.25:
            return b""
        return rng.randbytes(rng.randint(1, 64) if kind < 0.95 else rng.randint(64, MAX_BYTES))

    def _walk(self) -> _Bits:
        bits, parser = _Bits(), self._program.parser
        state = parser.states[parser.start] if parser.start is not None else None
        for _ in range(MAX_STATES):
            if state is None:
                break
            for op in state.ops:
                self._op(bits, op)
            if not state.transitions:
                break
            # rather on than out: most ways out of a parser are short
            weights = [4 if one.next_state else 1 for one in state.transitions]
            (transition,) = self._rng.choices(state.transitions, weights)
            self._steer(bits, state.key, transition)
            state = None if transition.next_state is None else parser.states[transition.next_state]
        if bits.later:
            needed = max(offset + width for offset, width, _, _ in bits.later) - bits.length
            bits.append(self._rng.getrandbits(needed), needed)
        if self._rng.random() < 0.8:
            self._checksums(bits)
        return bits

    # ---- one state -----------------------------------------------------------------------------------------

    def _op(self, bits: _Bits, op: m.ParserOp) -> None:
        if op.op in ("extract", "extract_VL"):
            header = self._extracted(bits, op.target)
            if header is not None:
                self._header(bits, self._program.headers[header], op.value if op.op == "extract_VL" else None)
        elif op.op == "advance" and op.value is not None:
            length = self._evaluate(bits, op.value)
            if length is not None and 0 < length <= MAX_BYTES * 8:
                bits.append(self._rng.getrandbits(length), length)
        elif op.op == "set" and isinstance(op.target, m.FieldRef):
            # what the parser copies into metadata can be steered by where it was copied from
            place = self._place(bits, op.value)
            if place is not None:
                bits.fields[op.target.header, op.target.field] = place

    def _place(self, bits: _Bits, source: object) -> tuple[int, int] | None:
        """Where in the packet a field or lookahead lies: offset and width in bits."""
        match source:
            case m.Lookahead(offset, width):
                return bits.length + offset, width
            case m.FieldRef(header, name):
                return bits.fields.get((header, name))
            case m.StackField(stack, name):
                headers = self._program.stacks[stack].headers
                last = min(bits.used.get(stack, 0), len(headers)) - 1
                return bits.fields.get((headers[last], name))
        return None

    def _extracted(self, bits: _Bits, target: object) -> str | None:
        """The header that an extraction fills."""
        if isinstance(target, m.UnionMember):
            stack = self._program.union_stacks[target.stack]
            index = bits.used.get(stack.name, 0)
            bits.used[stack.name] = index + 1
            union = self._program.unions[stack.unions[min(index, len(stack.unions) - 1)]]
            return union.headers[union.members.index(target.member)]
        if not isinstance(target, m.Named):
            return None
        if target.kind == "header":
            return target.name
        stack_headers = self._program.stacks[target.name].headers
        index = bits.used.get(target.name, 0)
        bits.used[target.name] = index + 1
        return stack_headers[min(index, len(stack_headers) - 1)]

    def _header(self, bits: _Bits, header: m.Header, length: m.Expr | None) -> None:
        for one in header.type.fields:
            if one.varbit:
                width = self._varbit(bits, one, length)
                bits.append(self._rng.getrandbits(width) if width else 0, width)
                continue
            bits.fields[header.name, one.name] = (bits.length, one.width)
            bits.append(self._pool.draw(one.width), one.width)

    def _varbit(self, bits: _Bits, one: m.FieldType, length: m.Expr | None) -> int:
        """The width that the packet asks for, tried for some values of what it depends on."""
        if length is None:
            return 0
        for _ in range(16 if self._rng.random() < 0.85 else 1):
            width = self._evaluate(bits, length)
            if width is not None and 0 <= width <= one.width and width % 8 == 0:
                return width
            for ref in _references(length):
                if (ref.header, ref.field) in bits.fields:
                    offset, size = bits.fields[ref.header, ref.field]
                    bits.force(offset, size, self._rng.getrandbits(size), -1)
        return self._rng.randint(0, one.width // 8) * 8

    def _steer(self, bits: _Bits, key: tuple[m.Expr, ...], transition: m.Transition) -> None:
        """Make the packet take the transition, as far as its key lies in the packet."""
        if transition.kind != "value":
            return
        for part, value, mask in zip(key, transition.values, transition.masks or (-1,) * len(key), strict=False):
            place = self._place(bits, part)
            if place is not None:
                bits.force(*place, value, mask)

    def _evaluate(self, bits: _Bits, expression: m.Expr | None) -> int | None:
        """An expression over constants and fields of the packet; None for anything else."""
        match expression:
            case m.Const(value):
                return value
            case m.FieldRef(header, name) if (header, name) in bits.fields:
                return bits.get(*bits.fields[header, name])
            case m.Op(op, left, right):
                a, b = self._evaluate(bits, left), self._evaluate(bits, right)
                return None if a is None or b is None else _operate(op, a, b)
        return None

    # ---- checksums -----------------------------------------------------------------------------------------

    def _checksums(self, bits: _Bits) -> None:
        """Make the ones' complement sums right, so that programs that verify them go on."""
        for checksum in self._program.checksums:
            calculation = self._program.calculations[checksum.calculation]
            place = bits.fields.get((checksum.target.header, checksum.target.field))
            if calculation.algo != "csum16" or place is None:
                continue
            value = length = 0
            for item in calculation.inputs:
                if isinstance(item, m.FieldRef) and (item.header, item.field) in bits.fields:
                    where = bits.fields[item.header, item.field]
                    value, length = value << where[1] | (bits.get(*where) or 0), length + where[1]
                elif isinstance(item, m.CalcConst):
                    value, length = value << item.width | item.value, length + item.width
            bits.force(*place, _csum16(value << (-length % 16)), -1)


def _csum16(value: int) -> int:
    total = 0
    while value:
        total += value & 0xFFFF
        value >>= 16
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _operate(op: str, a: int, b: int) -> int | None:
    operations: Mapping[str, int] = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b}
    if op in operations:
        return operations[op]
    if op in ("<<", ">>") and 0 <= b < 64:
        return a << b if op == "<<" else a >> b
    return None


def _references(expression: object) -> list[m.FieldRef]:
    if isinstance(expression, m.FieldRef):
        return [expression]
    if isinstance(expression, m.Op):
        return _references(expression.left) + _references(expression.right)
    return []
