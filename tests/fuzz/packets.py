"""Packets that get somewhere: made by a walk through the program's parser, then perhaps broken."""

from __future__ import annotations

import random

from softswitch import model as m
from tests.fuzz.values import Values

PACKET_MAX = 10240  # SW_PACKET_MAX
STEPS = 24


class PacketMaker:
    """Makes packets for one program."""

    def __init__(self, program: m.Program, rng: random.Random, values: Values) -> None:
        self.program, self.rng, self.values = program, rng, values

    def packet(self) -> bytes:
        """A packet: noise, or parsed headers and a payload, whole, cut, flipped or too long."""
        rng = self.rng
        if rng.randrange(8) == 0:
            return rng.randbytes(self._length())
        data = bytearray(_Walk(self).headers())
        data += rng.randbytes(self._length())
        if rng.randrange(6) == 0:
            del data[rng.randrange(len(data) + 1) :]
        if data and rng.randrange(6) == 0:
            for _ in range(rng.randrange(1, 5)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)

    def _length(self) -> int:
        kind = self.rng.randrange(40)
        if kind == 0:
            return self.rng.choice((PACKET_MAX - 1, PACKET_MAX, PACKET_MAX + 1, 9000, 65535, 70000))
        return self.rng.choice((0, 0, 1, 20, 46, 64, 100, 1400)) if kind < 30 else self.rng.randrange(1600)


class _Walk:
    """One way through the parser. The bits so far are a number; fields that a select reads are set afterwards."""

    def __init__(self, maker: PacketMaker) -> None:
        self.program, self.rng, self.values = maker.program, maker.rng, maker.values
        self.bits, self.length = 0, 0
        self.where: dict[tuple[str, str], tuple[int, int]] = {}  # header or stack, field -> bit, width
        self.ahead: list[tuple[int, int, int]] = []  # bit, width and value of what lookahead() should find

    def headers(self) -> bytes:
        """The headers along a random path."""
        name = self.program.parser.start
        for _ in range(STEPS):
            if name is None or self.length > 8 * PACKET_MAX:
                break
            state = self.program.parser.states[name]
            for op in state.ops:
                self._op(op)
            name = self._leave(state)
        for bit, width, value in self.ahead:
            self._grow(bit + width)
            self._put(bit, width, value)
        self._grow((self.length + 7) // 8 * 8)
        return self.bits.to_bytes(self.length // 8, "big")

    def _op(self, op: m.ParserOp) -> None:
        match op.target:
            case m.Named("header", name) if op.op.startswith("extract"):
                self._header(name, self.program.headers[name].type)
            case m.Named("header_stack", name):
                self._header(name, self.program.stacks[name].type)
            case m.UnionMember(stack, member):
                union = self.program.unions[self.program.union_stacks[stack].unions[0]]
                header = self.program.headers[union.headers[union.members.index(member)]]
                self._header(f"{stack}.{member}", header.type)
            case _ if op.op == "advance":
                self._grow(self.length + 8 * self.rng.randrange(8))

    def _header(self, name: str, header_type: m.HeaderType) -> None:
        for f in header_type.fields:
            width = 8 * self.rng.randrange(f.width // 8 + 1) if f.varbit else f.width
            self.where[name, f.name] = (self.length, width)
            self.bits = self.bits << width | (self.values.bits(width) if width else 0)
            self.length += width

    def _leave(self, state: m.ParserState) -> str | None:
        if not state.transitions:
            return None
        transition = self.rng.choice(state.transitions)
        for part, value in zip(state.key, transition.values, strict=False):
            match part:
                case m.Lookahead(offset, width):
                    self.ahead.append((self.length + offset, width, value))
                case m.FieldRef(owner, field) | m.StackField(owner, field):
                    self._set((owner, field), value)
                case m.UnionStackField(stack, member, field):
                    self._set((f"{stack}.{member}", field), value)
        return transition.next_state

    def _set(self, place: tuple[str, str], value: int) -> None:
        if place in self.where:
            self._put(*self.where[place], value)

    def _put(self, bit: int, width: int, value: int) -> None:
        shift = self.length - bit - width
        mask = (1 << width) - 1
        self.bits = self.bits & ~(mask << shift) | (value & mask) << shift

    def _grow(self, length: int) -> None:
        if length > self.length:
            self.bits <<= length - self.length
            self.length = length
