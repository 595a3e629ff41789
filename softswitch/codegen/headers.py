"""Headers, stacks and unions in C: which struct an expression means."""

from __future__ import annotations

from dataclasses import dataclass, replace

from softswitch import model as m
from softswitch.codegen.names import Layout
from softswitch.codegen.values import U64, Value, Widths, convert
from softswitch.json_node import ProgramError


def some(expr: m.Expr | None) -> m.Expr:
    """An operand that the reader has made sure of."""
    assert expr is not None
    return expr


@dataclass(frozen=True, slots=True)
class HeaderValue:
    """A header in C: its lvalue and type; ``siblings`` are the other members of its union."""

    code: str
    type: m.HeaderType
    metadata: bool = False
    siblings: tuple[str, ...] = ()
    varbit_name: str = ""

    @property
    def valid(self) -> str:
        """Code that tells whether it is valid; metadata always is."""
        return "1" if self.metadata else f"{self.code}.valid"

    @property
    def nbytes(self) -> str:
        """Code of its length in bytes."""
        varbit = self.type.varbit
        return f"{self.type.fixed_bits // 8}" + (f" + {self.code}.{self.varbit_name}_bits / 8" if varbit else "")


class Headers:
    """What the expressions of one place (an action, a parser state, ...) mean; ``path`` names the place in errors."""

    def __init__(self, layout: Layout, widths: Widths, registers: dict[str, str], path: str,
                 action: m.Action | None = None) -> None:  # fmt: skip
        self.layout = layout
        self.program = layout.program
        self.widths = widths
        self.registers = registers
        self.path = path
        self.action = action

    def fail(self, message: str) -> ProgramError:
        """An error at this place."""
        return ProgramError(self.path, message)

    def data(self, expr: m.Expr, need: int | None = None) -> Value:
        """A number; see :class:`softswitch.codegen.expressions.Expressions`."""
        raise NotImplementedError

    def header(self, expr: m.Expr) -> HeaderValue:
        """A header instance, perhaps a stack's element at a computed index."""
        match expr:
            case m.Named("header", name):
                h = self.program.headers[name]
                siblings = tuple(self.layout.header(s) for s in self.layout.siblings(name))
                return self._header_value(self.layout.header(name), h.type, h.metadata, siblings)
            case m.Op("dereference_header_stack", left, right):
                stack = self._stack_name(some(left))
                return self.array_element(stack, convert(self.data(some(right)), U64))
            case m.Op("access_union_header", left, _, _, offset):
                members = self.union_members(some(left))
                if offset is None or offset >= len(members):
                    raise self.fail(f"access_union_header {offset}: the union has {len(members)} members")
                return members[offset]
        raise self.fail("a header is wanted here")

    def union_members(self, expr: m.Expr) -> list[HeaderValue]:
        """The members of a union, perhaps one of a stack's at a computed index."""
        match expr:
            case m.Named("header_union", name):
                return [self.header(m.Named("header", h)) for h in self.program.unions[name].headers]
            case m.Op("dereference_union_stack", m.Named("header_union_stack", stack), right):
                index = convert(self.data(some(right)), U64)
                return [self.union_stack_element(stack, member, index) for member in self.union_stack_members(stack)]
        raise self.fail("a header union is wanted here")

    def union_stack_members(self, stack: str) -> tuple[str, ...]:
        """What the members of a union stack's unions are called."""
        return self.program.unions[self.program.union_stacks[stack].unions[0]].members

    def array_element(self, array: str, index: str) -> HeaderValue:
        """An element of a stack (or ``stack.member`` of a union stack) at a computed index."""
        column = self.layout.arrays[array][1]
        return self._header_value(self.layout.element(array, index), self.program.headers[column[0]].type)

    def union_stack_element(self, stack: str, member: str, index: str) -> HeaderValue:
        """A member of a union stack's element at a computed index."""
        value = self.array_element(f"{stack}.{member}", index)
        others = [other for other in self.union_stack_members(stack) if other != member]
        return replace(value, siblings=tuple(self.layout.element(f"{stack}.{other}", index) for other in others))

    def _header_value(
        self, code: str, header_type: m.HeaderType, metadata: bool = False, siblings: tuple[str, ...] = ()
    ) -> HeaderValue:
        varbit = header_type.varbit
        name = self.layout.fields[header_type.name][varbit.name] if varbit else ""
        return HeaderValue(code, header_type, metadata, siblings, name)

    def last(self, stack: str) -> HeaderValue:
        """The element that was extracted last."""
        return self.array_element(stack, f"{self.layout.next[stack]} - 1")

    def _stack_name(self, expr: m.Expr) -> str:
        match expr:
            case m.Named("header_stack", name):
                return name
        raise self.fail("a header stack is wanted here")
