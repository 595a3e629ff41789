"""P4Info, indexed for the server and checked against the program that it describes.

Ids are P4Info's, names are those of the P4 program (the same in P4Info and BMv2 JSON), widths are bits.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeVar

from finsy.proto import p4i, p4t

from softswitch import model
from softswitch.describe import compiler_made
from softswitch.p4runtime import values
from softswitch.p4runtime.errors import Code, P4Error, invalid, shortened

_LOG = logging.getLogger(__name__)


class OtherProgram(P4Error):
    """A P4Info and a program that do not belong together."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.INVALID_ARGUMENT, message)


class Match(Enum):
    """Match kinds; the value is the field of FieldMatch that carries it."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"
    OPTIONAL = "optional"

    @property
    def needs_priority(self) -> bool:
        """True where entries of such a key are ordered by priority."""
        return self in (Match.TERNARY, Match.RANGE, Match.OPTIONAL)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a key, a parameter or a packet's metadata. ``key`` is its name on the device."""

    id: int
    name: str
    key: str
    width: int
    match: Match = Match.EXACT


@dataclass(frozen=True, slots=True)
class ActionInfo:
    """An action; ``params`` in the order of the arguments."""

    id: int
    name: str
    params: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table. ``actions`` has the scope of each action, ``profile`` the id of its implementation or 0."""

    id: int
    name: str
    fields: tuple[Field, ...]
    actions: Mapping[int, p4i.ActionRef.Scope.ValueType]
    size: int
    profile: int
    const: bool
    const_default: bool
    default: p4i.TableActionCall
    counter: int
    meter: int
    meter_type: p4i.MeterSpec.Type.ValueType
    idle_timeout: bool
    program: model.Table

    @property
    def needs_priority(self) -> bool:
        """True where every entry has a priority."""
        return any(f.match.needs_priority for f in self.fields)


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """An action profile or selector. ``by_members``: sizes count members, not weights."""

    id: int
    name: str
    size: int
    selector: bool
    max_group_size: int
    by_members: bool
    max_member_weight: int
    actions: frozenset[int]


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """A counter or meter array, or (``table`` set) a direct one. ``meter_type`` is P4Info's."""

    id: int
    name: str
    size: int
    table: int = 0
    meter_type: p4i.MeterSpec.Type.ValueType = p4i.MeterSpec.TWO_RATE_THREE_COLOR


@dataclass(frozen=True, slots=True)
class RegisterInfo:
    """A register array and the type of a cell."""

    id: int
    name: str
    size: int
    type: p4t.P4DataTypeSpec


@dataclass(frozen=True, slots=True)
class ValueSetInfo:
    """A parser value set: the fields of a member and how many members it holds."""

    id: int
    name: str
    size: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class DigestInfo:
    """A digest and the type of what it carries."""

    id: int
    name: str
    type: p4t.P4DataTypeSpec


@dataclass(frozen=True, slots=True)
class PacketField:
    """A metadata field of packets to or from the controller; ``bits`` is its width on the wire, ``width`` what it may
    hold (they differ where the type is translated)."""

    id: int
    name: str
    width: int
    bits: int


@dataclass(frozen=True)
class P4Index:
    """Everything of a P4Info by id. ``headers``: packet_in and packet_out by name."""

    p4info: p4i.P4Info
    program: model.Program
    tables: Mapping[int, TableInfo] = field(default_factory=dict)
    actions: Mapping[int, ActionInfo] = field(default_factory=dict)
    profiles: Mapping[int, ProfileInfo] = field(default_factory=dict)
    counters: Mapping[int, ArrayInfo] = field(default_factory=dict)
    meters: Mapping[int, ArrayInfo] = field(default_factory=dict)
    direct_counters: Mapping[int, ArrayInfo] = field(default_factory=dict)
    direct_meters: Mapping[int, ArrayInfo] = field(default_factory=dict)
    registers: Mapping[int, RegisterInfo] = field(default_factory=dict)
    value_sets: Mapping[int, ValueSetInfo] = field(default_factory=dict)
    digests: Mapping[int, DigestInfo] = field(default_factory=dict)
    headers: Mapping[str, tuple[PacketField, ...]] = field(default_factory=dict)


def build(p4info: p4i.P4Info, program: model.Program) -> P4Index:
    """Index ``p4info``. Raises P4Error INVALID_ARGUMENT where it does not describe ``program``."""
    _check_same_program(p4info, program)
    widths = {a.name: tuple(p.width for p in a.params) for a in program.actions.values()}
    actions = {a.preamble.id: _action(p4info, a, widths) for a in p4info.actions if a.preamble.name in widths}
    direct_counters = {c.preamble.id: _array(c, table=c.direct_table_id) for c in p4info.direct_counters}
    direct_meters = {m.preamble.id: _direct_meter(m) for m in p4info.direct_meters}
    tables: dict[int, TableInfo] = {}
    for table in _present(p4info.tables, program.tables, "table"):
        tables[table.preamble.id] = _table(p4info, table, program, actions, (direct_counters, direct_meters))
    return P4Index(
        p4info=p4info,
        program=program,
        tables=tables,
        actions=actions,
        profiles={
            p.preamble.id: _profile(p, tables)
            for p in _present(p4info.action_profiles, program.profiles, "action profile")
        },
        counters={
            c.preamble.id: _array(c, size=program.counters[c.preamble.name].size)
            for c in _present(p4info.counters, program.counters, "counter")
        },
        meters={
            m.preamble.id: _meter(m, program.meters[m.preamble.name].size)
            for m in _present(p4info.meters, program.meters, "meter")
        },
        direct_counters={i: c for i, c in direct_counters.items() if c.table in tables},
        direct_meters={i: m for i, m in direct_meters.items() if m.table in tables},
        registers={
            r.preamble.id: RegisterInfo(
                r.preamble.id,
                r.preamble.name,
                program.registers[r.preamble.name].size,
                values.checked(r.type_spec, p4info, f"register {r.preamble.name}"),
            )
            for r in _present(p4info.registers, program.registers, "register")
        },
        value_sets={
            v.preamble.id: ValueSetInfo(
                v.preamble.id, v.preamble.name, v.size, tuple(_match_field(p4info, f, f.name) for f in v.match)
            )
            for v in _present(p4info.value_sets, program.value_sets, "value set")
        },
        digests={
            d.preamble.id: DigestInfo(
                d.preamble.id, d.preamble.name, values.checked(d.type_spec, p4info, f"digest {d.preamble.name}")
            )
            for d in _present(p4info.digests, {f.name: f for f in program.digests.values()}, "digest")
        },
        headers={h.preamble.name: _packet_header(p4info, h, program) for h in p4info.controller_packet_metadata},
    )


def _check_same_program(p4info: p4i.P4Info, program: model.Program) -> None:
    """Refuse the P4Info of another program: some of its objects are not in this one, and either none of them is, or
    this one has others.

    P4Info may have more than the program, as the compiler removes what cannot be reached from the program alone, and
    less, as what is ``@hidden`` is not in P4Info. Digests of a type without a name have one name in P4Info and another
    in the program.
    """
    digests = p4info.digests if all(digest.type_spec.HasField("struct") for digest in p4info.digests) else ()
    tables = [table for table in program.tables.values() if not compiler_made(table)]
    called = {program.actions[ident].name for table in tables for ident in table.actions}
    kinds: Sequence[tuple[str, Iterable[_WithPreamble], Iterable[str]]] = (
        ("table", p4info.tables, (table.name for table in tables)),
        ("action", p4info.actions, sorted({action.name for action in program.actions.values()})),
        ("action profile", p4info.action_profiles, program.profiles),
        ("counter", (*p4info.counters, *p4info.direct_counters), program.counters),
        ("meter", (*p4info.meters, *p4info.direct_meters), program.meters),
        ("register", p4info.registers, program.registers),
        ("value set", p4info.value_sets, program.value_sets),
        ("digest", digests, (digest.name for digest in program.digests.values() if digests)),
    )
    described = [(kind, item.preamble.name) for kind, items, _ in kinds for item in items]
    present = [(kind, name) for kind, _, names in kinds for name in names]
    strange = [f"{kind} {name}" for kind, name in described if (kind, name) not in present]
    missing = [
        f"{kind} {name}"
        for kind, name in present
        if (kind, name) not in described and (kind != "action" or name in called)
    ]
    if strange and (missing or len(strange) == len(described)):
        raise OtherProgram(
            f"the P4Info is of another program; in P4Info alone: {shortened(strange)}; "
            f"in the program alone: {shortened(missing)}"
        )


class _WithPreamble(Protocol):
    @property
    def preamble(self) -> p4i.Preamble: ...


P = TypeVar("P", bound=_WithPreamble)


def _present(items: Iterable[P], known: Container[str], kind: str) -> Iterator[P]:
    """The items that the program has. p4c drops what cannot be reached from BMv2 JSON, but not from P4Info."""
    for item in items:
        if item.preamble.name in known:
            yield item
        else:
            _LOG.warning("%s %s is in P4Info only: the compiler removed it from the program", kind, item.preamble.name)


def _refuse_strings(p4info: p4i.P4Info, type_name: str, what: str) -> None:
    """Values that the controller sees as strings have no translation here."""
    new_type = p4info.type_info.new_types.get(type_name)
    if new_type is not None and new_type.translated_type.HasField("sdn_string"):
        raise invalid(
            f"{what} has type {type_name}, which is translated to strings (@p4runtime_translation with string): "
            "only translation to bit<W> is supported"
        )


def _action(p4info: p4i.P4Info, action: p4i.Action, widths: Mapping[str, tuple[int, ...]]) -> ActionInfo:
    name = action.preamble.name
    device = widths[name]
    if len(device) != len(action.params):
        raise invalid(f"action {name} has {len(action.params)} parameters in P4Info, {len(device)} in the program")
    params: list[Field] = []
    for param, width in zip(action.params, device, strict=True):
        _refuse_strings(p4info, param.type_name.name, f"parameter {param.name} of action {name}")
        bits = _bits(param.bitwidth, f"parameter {param.name} of action {name}")
        params.append(Field(param.id, param.name, param.name, min(bits, width)))
    return ActionInfo(action.preamble.id, name, tuple(params))


def _bits(bitwidth: int, what: str) -> int:
    """A width that P4Info says; INVALID_ARGUMENT where it is none."""
    if bitwidth <= 0:
        raise invalid(f"{what} has the width {bitwidth}; widths are 1 bit and more")
    return bitwidth


_MATCHES = {
    p4i.MatchField.EXACT: Match.EXACT,
    p4i.MatchField.LPM: Match.LPM,
    p4i.MatchField.TERNARY: Match.TERNARY,
    p4i.MatchField.RANGE: Match.RANGE,
    p4i.MatchField.OPTIONAL: Match.OPTIONAL,
}


def _match_field(p4info: p4i.P4Info, match: p4i.MatchField, key: str, width: int | None = None) -> Field:
    kind = _MATCHES.get(match.match_type)
    if kind is None:
        raise invalid(
            f"match field {match.name} has the match kind {match.other_match_type or match.match_type!r}; "
            f"valid: {', '.join(m.value for m in Match)}"
        )
    _refuse_strings(p4info, match.type_name.name, f"match field {match.name}")
    bits = _bits(match.bitwidth, f"match field {match.name}")
    return Field(match.id, match.name, key, bits if width is None else min(bits, width), kind)


def _table(
    p4info: p4i.P4Info,
    table: p4i.Table,
    program: model.Program,
    actions: Mapping[int, ActionInfo],
    direct: tuple[Mapping[int, ArrayInfo], Mapping[int, ArrayInfo]],
) -> TableInfo:
    name, target = table.preamble.name, program.tables[table.preamble.name]
    if len(table.match_fields) != len(target.key):
        raise invalid(
            f"table {name} has {len(table.match_fields)} match fields in P4Info, {len(target.key)} in the program"
        )
    counters, meters = direct
    meter = next((i for i in table.direct_resource_ids if i in meters), 0)
    return TableInfo(
        id=table.preamble.id,
        name=name,
        fields=tuple(
            _match_field(p4info, f, k.name, k.width) for f, k in zip(table.match_fields, target.key, strict=True)
        ),
        actions={ref.id: ref.scope for ref in table.action_refs if ref.id in actions},
        size=target.max_size,
        profile=table.implementation_id,
        const=table.is_const_table,
        const_default=table.const_default_action_id != 0,
        default=table.initial_default_action,
        counter=next((i for i in table.direct_resource_ids if i in counters), 0),
        meter=meter,
        meter_type=meters[meter].meter_type if meter else p4i.MeterSpec.TWO_RATE_THREE_COLOR,
        idle_timeout=table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
        program=target,
    )


def _profile(profile: p4i.ActionProfile, tables: Mapping[int, TableInfo]) -> ProfileInfo:
    users = [tables[i] for i in profile.table_ids if i in tables]
    return ProfileInfo(
        id=profile.preamble.id,
        name=profile.preamble.name,
        size=profile.size,
        selector=profile.with_selector,
        max_group_size=profile.max_group_size,
        by_members=profile.HasField("sum_of_members"),
        max_member_weight=profile.sum_of_members.max_member_weight,
        actions=frozenset(a for t in users for a in t.actions),
    )


def _array(counter: p4i.Counter | p4i.DirectCounter, *, size: int = 0, table: int = 0) -> ArrayInfo:
    return ArrayInfo(counter.preamble.id, counter.preamble.name, size, table)


def _meter(meter: p4i.Meter, size: int) -> ArrayInfo:
    return ArrayInfo(meter.preamble.id, meter.preamble.name, size, meter_type=meter.spec.type)


def _direct_meter(meter: p4i.DirectMeter) -> ArrayInfo:
    return ArrayInfo(meter.preamble.id, meter.preamble.name, 0, meter.direct_table_id, meter.spec.type)


def _packet_header(
    p4info: p4i.P4Info, header: p4i.ControllerPacketMetadata, program: model.Program
) -> tuple[PacketField, ...]:
    for metadata in header.metadata:
        _refuse_strings(p4info, metadata.type_name.name, f"packet metadata {metadata.name}")
    names = [m.name for m in header.metadata]
    layouts = (t.fields for t in program.header_types if [f.name for f in t.fields] == names)
    said = [_bits(m.bitwidth, f"packet metadata {m.name}") for m in header.metadata]
    widths = [f.width for f in next(layouts, ())] or said
    return tuple(
        PacketField(m.id, m.name, min(bits, width), width)
        for m, bits, width in zip(header.metadata, said, widths, strict=True)
    )


def check_unique(p4info: p4i.P4Info) -> None:
    """Refuse a P4Info in which two objects have one id, or one has the id 0."""
    seen: dict[int, str] = {}
    for descriptor, items in p4info.ListFields():
        if descriptor.name in ("pkg_info", "type_info", "externs"):
            continue
        for item in items:
            ident, name = item.preamble.id, item.preamble.name
            if ident == 0:
                raise invalid(f"{descriptor.name}: {name} has the id 0, which is not valid")
            if ident in seen:
                raise invalid(f"{descriptor.name}: {name} has the id {ident}, as {seen[ident]} has")
            seen[ident] = name
