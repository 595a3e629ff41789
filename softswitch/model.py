"""The typed model of a P4 program, as p4c describes it to BMv2.

Plain values: what :mod:`softswitch.bmv2_json` reads and :mod:`softswitch.codegen` compiles. Names and order are those
of the JSON; widths are bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, slots=True)
class FieldType:
    """A field of a header type. ``width`` is its largest width for a varbit field."""

    name: str
    width: int
    signed: bool = False
    saturating: bool = False
    varbit: bool = False


@dataclass(frozen=True)
class HeaderType:
    """``fields`` in wire order; ``max_bytes`` bounds the whole header where it has a varbit field, else 0."""

    name: str
    fields: tuple[FieldType, ...]
    max_bytes: int = 0

    @cached_property
    def by_name(self) -> Mapping[str, FieldType]:
        """Fields by name."""
        return {f.name: f for f in self.fields}

    @property
    def varbit(self) -> FieldType | None:
        """The varbit field, if there is one."""
        return next((f for f in self.fields if f.varbit), None)

    @property
    def fixed_bits(self) -> int:
        """Bits of the header without its varbit field."""
        return sum(f.width for f in self.fields if not f.varbit)


@dataclass(frozen=True, slots=True)
class Header:
    """A header or metadata instance."""

    name: str
    ident: int
    type: HeaderType
    metadata: bool


@dataclass(frozen=True, slots=True)
class Stack:
    """A header stack; ``headers`` are its elements' names, in order."""

    name: str
    type: HeaderType
    headers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """A header union; ``headers`` are its members' names, ``members`` what the type calls them."""

    name: str
    headers: tuple[str, ...]
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnionStack:
    """A stack of header unions, which all have the same members."""

    name: str
    unions: tuple[str, ...]


# ---- expressions -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    """An integer of any size."""

    value: int


@dataclass(frozen=True, slots=True)
class Bool:
    """true or false."""

    value: bool


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of a header instance; ``$valid$`` is its validity."""

    header: str
    field: str


@dataclass(frozen=True, slots=True)
class StackField:
    """A field of the last element that was pushed or extracted."""

    stack: str
    field: str


@dataclass(frozen=True, slots=True)
class UnionStackField:
    """A field of a member of a union stack's last element."""

    stack: str
    member: str
    field: str


@dataclass(frozen=True, slots=True)
class Local:
    """Parameter number ``index`` of the enclosing action."""

    index: int


@dataclass(frozen=True, slots=True)
class RegisterRef:
    """A cell of a register array."""

    register: str
    index: Expr


@dataclass(frozen=True, slots=True)
class Lookahead:
    """``width`` bits, ``offset`` bits ahead in the packet."""

    offset: int
    width: int


@dataclass(frozen=True, slots=True)
class Named:
    """A named object: ``kind`` is header, header_stack, header_union, header_union_stack, calculation, meter_array,
    counter_array, register_array or extern."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """A string argument."""

    value: str


@dataclass(frozen=True, slots=True)
class Vector:
    """A parameters_vector: what log_msg prints."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Op:
    """An operation. ``offset`` is the literal right operand of access_field and access_union_header."""

    op: str
    left: Expr | None
    right: Expr | None
    cond: Expr | None = None
    offset: int | None = None


Expr = (
    Const | Bool | FieldRef | StackField | UnionStackField | Local | RegisterRef | Lookahead | Named | Text | Vector
    | Op
)  # fmt: skip


# ---- parser, actions, pipelines --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Primitive:
    """A call of a primitive. ``path`` is where it stands in the JSON, ``source`` the P4 text where known."""

    op: str
    args: tuple[Expr, ...]
    path: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class ParserOp:
    """extract, extract_VL, set, verify, advance or primitive.

    extract: ``target`` is Named header/header_stack or UnionMember; extract_VL has its length in ``value`` (bits).
    set: ``target`` is a FieldRef, ``value`` the expression. verify: ``target`` is the condition, ``value`` the error.
    advance: ``value`` in bits. primitive: ``call``.
    """

    op: str
    path: str
    target: Expr | UnionMember | None = None
    value: Expr | None = None
    call: Primitive | None = None


@dataclass(frozen=True, slots=True)
class UnionMember:
    """A member of the next element of a union stack."""

    stack: str
    member: str


@dataclass(frozen=True, slots=True)
class Transition:
    """``kind`` is default, value or value_set. ``values`` and ``masks`` have an integer for each key part."""

    kind: str
    next_state: str | None
    values: tuple[int, ...] = ()
    masks: tuple[int, ...] = ()
    value_set: str = ""


@dataclass(frozen=True, slots=True)
class ParserState:
    """One state; ``key`` parts are FieldRef, StackField, UnionStackField or Lookahead."""

    name: str
    ops: tuple[ParserOp, ...]
    key: tuple[Expr, ...]
    transitions: tuple[Transition, ...]
    path: str


@dataclass(frozen=True, slots=True)
class Parser:
    """States by name; ``start`` is None where there is nothing to parse."""

    name: str
    start: str | None
    states: Mapping[str, ParserState]


@dataclass(frozen=True, slots=True)
class Param:
    """An action parameter."""

    name: str
    width: int


@dataclass(frozen=True, slots=True)
class Action:
    """An action; several actions may share a name, ``ident`` is what tells them apart."""

    name: str
    ident: int
    params: tuple[Param, ...]
    primitives: tuple[Primitive, ...]
    path: str


@dataclass(frozen=True, slots=True)
class KeyField:
    """A field of a table key. ``match`` is exact, lpm, ternary, range or valid; ``mask`` a static mask or None."""

    name: str
    match: str
    target: FieldRef
    width: int
    mask: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes it takes in the key."""
        return (self.width + 7) // 8


@dataclass(frozen=True, slots=True)
class Call:
    """An action (by ``ident``) with its arguments."""

    action: int
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EntryField:
    """What an entry of the program asks of a key field: ``mask`` (ternary), ``prefix_len`` (lpm), ``high`` (range)."""

    value: int
    mask: int = -1
    prefix_len: int = -1
    high: int = -1


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry written in the program. Smaller ``priority`` wins, as in BMv2."""

    fields: tuple[EntryField, ...]
    call: Call
    priority: int


@dataclass(frozen=True)
class Table:
    """A match-action table. ``impl`` is simple, indirect or indirect_ws; ``match`` exact, lpm, ternary or range."""

    name: str
    match: str
    impl: str
    profile: str | None
    max_size: int
    key: tuple[KeyField, ...]
    actions: tuple[int, ...]
    with_counters: bool
    with_ageing: bool
    direct_meter: str | None
    next_by_action: Mapping[int, str | None]
    next_hit: str | None
    next_miss: str | None
    splits_on_hit: bool
    base_next: str | None
    default: Call | None
    default_action_const: bool
    default_entry_const: bool
    entries: tuple[Entry, ...]
    path: str

    @cached_property
    def key_bytes(self) -> int:
        """Bytes of a key."""
        return sum(f.nbytes for f in self.key)


@dataclass(frozen=True, slots=True)
class Conditional:
    """An if of a control."""

    name: str
    condition: Expr
    true_next: str | None
    false_next: str | None
    path: str


@dataclass(frozen=True, slots=True)
class ActionCall:
    """A direct call of an action without parameters."""

    name: str
    action: int
    next: str | None
    path: str


Node = Table | Conditional | ActionCall


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A control: its nodes by name."""

    name: str
    first: str | None
    nodes: Mapping[str, Node]


@dataclass(frozen=True, slots=True)
class Profile:
    """An action profile; with a selector where ``algo`` is set."""

    name: str
    max_size: int
    algo: str | None
    inputs: tuple[Expr, ...]
    path: str


# ---- state and the rest ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter array; a direct one is bound to a table."""

    name: str
    size: int
    table: str | None


@dataclass(frozen=True, slots=True)
class Meter:
    """A meter array; a direct one writes its colour to ``result``."""

    name: str
    size: int
    unit: str
    rates: int
    table: str | None
    result: FieldRef | None


@dataclass(frozen=True, slots=True)
class Register:
    """A register array."""

    name: str
    size: int
    width: int


@dataclass(frozen=True, slots=True)
class CalcConst:
    """A constant in a calculation's input."""

    value: int
    width: int


@dataclass(frozen=True, slots=True)
class Payload:
    """What follows the parsed headers."""


@dataclass(frozen=True, slots=True)
class Calculation:
    """A hash over ``inputs``: FieldRef, CalcConst, Named header, Payload."""

    name: str
    algo: str
    inputs: tuple[FieldRef | CalcConst | Named | Payload, ...]
    path: str


@dataclass(frozen=True, slots=True)
class Checksum:
    """A field that must equal a calculation where ``condition`` holds."""

    name: str
    target: FieldRef
    calculation: str
    condition: Expr | None
    verify: bool
    update: bool
    path: str


@dataclass(frozen=True, slots=True)
class FieldList:
    """Fields that a clone, resubmit or recirculate keeps, or that a digest carries."""

    name: str
    ident: int
    fields: tuple[FieldRef, ...]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A parser value set."""

    name: str
    width: int


@dataclass(frozen=True)
class Program:
    """A whole program. Order in each tuple is the order of the JSON; the native side uses the index."""

    name: str
    text: bytes
    header_types: tuple[HeaderType, ...]
    headers: Mapping[str, Header]
    stacks: Mapping[str, Stack]
    unions: Mapping[str, Union]
    union_stacks: Mapping[str, UnionStack]
    errors: Mapping[str, int]
    parser: Parser
    deparser: tuple[str, ...]
    deparser_calls: tuple[Primitive, ...]
    ingress: Pipeline
    egress: Pipeline
    actions: Mapping[int, Action]
    profiles: Mapping[str, Profile]
    counters: Mapping[str, Counter]
    meters: Mapping[str, Meter]
    registers: Mapping[str, Register]
    calculations: Mapping[str, Calculation]
    checksums: tuple[Checksum, ...]
    field_lists: Mapping[int, FieldList]
    digests: Mapping[int, FieldList]
    value_sets: Mapping[str, ValueSet]
    aliases: Mapping[str, FieldRef]
    tables: Mapping[str, Table] = field(default_factory=dict)

    def field_type(self, ref: FieldRef) -> FieldType:
        """The type of a field; ``$valid$`` is one bit."""
        if ref.field == "$valid$":
            return VALID
        return self.headers[ref.header].type.by_name[ref.field]

    def standard(self, name: str) -> FieldRef | None:
        """The field that stands for ``header.field`` of simple_switch, through the aliases; None if there is none."""
        if name in self.aliases:
            return self.aliases[name]
        header, _, fname = name.partition(".")
        if header in self.headers and fname in self.headers[header].type.by_name:
            return FieldRef(header, fname)
        return None


VALID = FieldType("$valid$", 1)
