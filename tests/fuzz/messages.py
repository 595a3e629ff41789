"""Random P4Runtime messages: entities that fit a P4Info, then changed here and there."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeVar

from finsy.proto import p4i, p4r
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.fuzz.values import STRINGS, Values

NUMBERS = (0, 1, 2, 3, 7, 63, 255, 510, 511, 512, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63,
           2**64 - 1)  # fmt: skip
OCTETS = (b"", b"\0", b"\1", b"\0\1", b"\xff", b"\xff" * 8, b"\xff" * 16, bytes(200), b"x" * 3)
M = TypeVar("M", bound=Message)
IDS = (0, 1, 2, 3, 7)  # of members, groups, sessions


class Messages:
    """Makes messages for one P4Info."""

    def __init__(self, info: p4i.P4Info, rng: random.Random) -> None:
        self.info, self.rng, self.values = info, rng, Values(rng)
        self.actions = {action.preamble.id: action for action in info.actions}
        kinds: list[tuple[object, Callable[[], p4r.Entity]]] = [
            (info.tables, self._table_entry), (info.tables, self._table_entry), (info.tables, self._table_entry),
            (info.action_profiles, self._member), (info.action_profiles, self._group), (info.counters, self._counter),
            (info.meters, self._meter), (info.direct_counters, self._direct_counter),
            (info.direct_meters, self._direct_meter), (info.registers, self._register), (info.digests, self._digest),
            (info.value_sets, self._value_set), (True, self._replication),
        ]  # fmt: skip
        self._kinds = [make for objects, make in kinds if objects]

    def entity(self) -> p4r.Entity:
        """Any entity; one in three is changed."""
        entity = self.rng.choice(self._kinds)()
        return self.changed(entity) if self.rng.randrange(3) == 0 else entity

    def update(self) -> p4r.Update:
        """An update, mostly an insert."""
        kinds: list[Any] = [p4r.Update.INSERT, p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE]
        if self.rng.randrange(30) == 0:
            kinds = [p4r.Update.UNSPECIFIED, 7]
        return p4r.Update(type=self.rng.choice(kinds), entity=self.entity())

    # ---- changes -------------------------------------------------------------------------------------------

    def changed(self, message: M) -> M:
        """The message with one to three changes."""
        for _ in range(self.rng.randrange(1, 4)):
            self._change(self.rng.choice(self._inner(message)))
        return message

    def _inner(self, message: Message) -> list[Message]:
        found = [message]
        for field, value in message.ListFields():
            if field.message_type is not None and not _is_map(field):
                for item in value if field.is_repeated else [value]:
                    found += self._inner(item)
        return found

    def _change(self, message: Message) -> None:
        fields = [field for field in message.DESCRIPTOR.fields if not _is_map(field)]
        if not fields:
            return
        field = self.rng.choice(fields)
        kind = self.rng.randrange(4)
        if kind == 0:
            message.ClearField(field.name)
        elif field.is_repeated:
            items = getattr(message, field.name)
            if items and kind == 1:
                del items[self.rng.randrange(len(items))]
            elif field.message_type is None:
                items.append(self._scalar(field))
            elif items:
                items.add().CopyFrom(self.rng.choice(items))
            else:
                self._change(items.add())
        elif field.message_type is not None:
            inner = getattr(message, field.name)
            inner.SetInParent()
            self._change(inner)
        else:
            setattr(message, field.name, self._scalar(field))

    def _scalar(self, field: FieldDescriptor) -> Any:
        rng = self.rng
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
                return rng.choice((*OCTETS, rng.randbytes(rng.randrange(20))))
            case FieldDescriptor.CPPTYPE_STRING:
                return rng.choice([text for text in STRINGS if text.isascii()])
            case FieldDescriptor.CPPTYPE_BOOL:
                return rng.randrange(2) == 1
            case FieldDescriptor.CPPTYPE_ENUM:
                return rng.choice((*field.enum_type.values_by_number, 99, -1))
            case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
                return rng.choice((0.0, 0.5, -1.0, float("inf"), float("nan")))
            case FieldDescriptor.CPPTYPE_INT32:
                return rng.choice([n for n in NUMBERS if n < 2**31] + [-1, -(2**31)])
            case FieldDescriptor.CPPTYPE_INT64:
                return rng.choice([n for n in NUMBERS if n < 2**63] + [-1, -(2**63)])
            case FieldDescriptor.CPPTYPE_UINT32:
                return rng.choice([n for n in NUMBERS if n < 2**32])
        return rng.choice(NUMBERS)

    # ---- entities ------------------------------------------------------------------------------------------

    def octets(self, width: int) -> bytes:
        """A value of that many bits (0: any), mostly in canonical form."""
        value = self.values.bits(width or 16)
        data = value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big")
        return bytes(self.rng.randrange(2)) + data if self.rng.randrange(20) == 0 else data

    def _match(self, field: p4i.MatchField) -> p4r.FieldMatch:
        match = p4r.FieldMatch(field_id=field.id)
        value, width = self.octets(field.bitwidth), field.bitwidth
        number = int.from_bytes(value, "big")
        if field.match_type == p4i.MatchField.EXACT:
            match.exact.value = value
        elif field.match_type == p4i.MatchField.LPM:
            length = self.rng.randrange(1, width + 1)
            match.lpm.prefix_len = length
            match.lpm.value = _octets(number >> (width - length) << (width - length))
        elif field.match_type == p4i.MatchField.TERNARY:
            mask = self.values.bits(width) or 1
            match.ternary.value, match.ternary.mask = _octets(number & mask), _octets(mask)
        elif field.match_type == p4i.MatchField.RANGE:
            low, high = sorted((number, self.values.bits(width)))
            match.range.low, match.range.high = _octets(low), _octets(high)
        else:
            match.optional.value = value
        return match

    def _matched(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        """The match fields: all that must be there, some of the others."""
        entry.table_id = table.preamble.id
        kinds = {field.match_type for field in table.match_fields}
        for field in table.match_fields:
            if field.match_type == p4i.MatchField.EXACT or self.rng.randrange(4):
                entry.match.append(self._match(field))
        if kinds & {p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL}:
            entry.priority = self.rng.randrange(1, 6)

    def _action(self, ids: list[int]) -> p4r.Action:
        info = self.actions[self.rng.choice(ids)]
        action = p4r.Action(action_id=info.preamble.id)
        for param in info.params:
            action.params.add(param_id=param.id, value=self.octets(param.bitwidth))
        return action

    def _table_entry(self) -> p4r.Entity:
        rng, table = self.rng, self.rng.choice(self.info.tables)
        entity = p4r.Entity()
        entry = entity.table_entry
        self._matched(table, entry)
        refs = [ref.id for ref in table.action_refs]
        if table.implementation_id:
            kind = rng.randrange(5)
            if kind < 2:
                entry.action.action_profile_member_id = rng.choice(IDS)
            elif kind < 4:
                entry.action.action_profile_group_id = rng.choice(IDS)
            else:
                one_shot = entry.action.action_profile_action_set.action_profile_actions
                for _ in range(rng.randrange(1, 4)):
                    one_shot.add(action=self._action(refs), weight=rng.randrange(1, 4))
        elif refs:
            entry.action.action.CopyFrom(self._action(refs))
        if rng.randrange(12) == 0:
            entry.ClearField("match")
            entry.is_default_action = True
            entry.priority = 0
        if rng.randrange(8) == 0:
            entry.idle_timeout_ns = rng.choice((1, 10**9, 2**63 - 1))
        return entity

    def _profile(self) -> tuple[int, list[int]]:
        profile = self.rng.choice(self.info.action_profiles)
        refs = [ref.id for t in self.info.tables if t.preamble.id in profile.table_ids for ref in t.action_refs]
        return profile.preamble.id, refs or list(self.actions)

    def _member(self) -> p4r.Entity:
        profile, refs = self._profile()
        return p4r.Entity(
            action_profile_member=p4r.ActionProfileMember(
                action_profile_id=profile, member_id=self.rng.choice(IDS), action=self._action(refs)
            )
        )

    def _group(self) -> p4r.Entity:
        profile, _ = self._profile()
        entity = p4r.Entity()
        entity.action_profile_group.action_profile_id = profile
        entity.action_profile_group.group_id = self.rng.choice(IDS)
        for _ in range(self.rng.randrange(4)):
            member = entity.action_profile_group.members.add(member_id=self.rng.choice(IDS), weight=1)
            if self.rng.randrange(3) == 0:
                member.watch_port = b"\1"
        return entity

    def _index(self, size: int) -> p4r.Index:
        return p4r.Index(index=self.rng.choice((0, 1, max(size - 1, 0), size, -1)))

    def _counter(self) -> p4r.Entity:
        info = self.rng.choice(self.info.counters)
        return p4r.Entity(
            counter_entry=p4r.CounterEntry(
                counter_id=info.preamble.id, index=self._index(info.size), data=p4r.CounterData(packet_count=3)
            )
        )

    def _meter_config(self) -> p4r.MeterConfig:
        rng = self.rng
        cir, pir, pburst = rng.choice((0, 1, 10**9)), rng.choice((0, 10**9)), rng.choice((1, 2**62))
        return p4r.MeterConfig(cir=cir, cburst=1, pir=pir, pburst=pburst)

    def _meter(self) -> p4r.Entity:
        info = self.rng.choice(self.info.meters)
        return p4r.Entity(
            meter_entry=p4r.MeterEntry(
                meter_id=info.preamble.id, index=self._index(info.size), config=self._meter_config()
            )
        )

    def _direct(self, ident: int) -> p4r.TableEntry:
        entry = p4r.TableEntry()
        self._matched(next(t for t in self.info.tables if t.preamble.id == ident), entry)
        return entry

    def _direct_counter(self) -> p4r.Entity:
        info = self.rng.choice(self.info.direct_counters)
        return p4r.Entity(
            direct_counter_entry=p4r.DirectCounterEntry(
                table_entry=self._direct(info.direct_table_id), data=p4r.CounterData(byte_count=5)
            )
        )

    def _direct_meter(self) -> p4r.Entity:
        info = self.rng.choice(self.info.direct_meters)
        return p4r.Entity(
            direct_meter_entry=p4r.DirectMeterEntry(
                table_entry=self._direct(info.direct_table_id), config=self._meter_config()
            )
        )

    def _register(self) -> p4r.Entity:
        info = self.rng.choice(self.info.registers)
        entry = p4r.RegisterEntry(register_id=info.preamble.id, index=self._index(info.size))
        entry.data.bitstring = self.octets(info.type_spec.bitstring.bit.bitwidth)
        return p4r.Entity(register_entry=entry)

    def _digest(self) -> p4r.Entity:
        config = p4r.DigestEntry.Config(
            max_timeout_ns=self.rng.choice((0, 10**6, 2**63 - 1)), max_list_size=self.rng.choice((0, 1, 5)),
            ack_timeout_ns=self.rng.choice((0, 10**9)),
        )  # fmt: skip
        info = self.rng.choice(self.info.digests)
        return p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=info.preamble.id, config=config))

    def _value_set(self) -> p4r.Entity:
        info = self.rng.choice(self.info.value_sets)
        entity = p4r.Entity()
        entity.value_set_entry.value_set_id = info.preamble.id
        for _ in range(self.rng.randrange(3)):
            entity.value_set_entry.members.add().match.extend(self._match(field) for field in info.match)
        return entity

    def _replication(self) -> p4r.Entity:
        rng, entity = self.rng, p4r.Entity()
        engine = entity.packet_replication_engine_entry
        if rng.randrange(2):
            engine.multicast_group_entry.multicast_group_id = rng.choice((1, 2, 5))
            replicas = engine.multicast_group_entry.replicas
        else:
            engine.clone_session_entry.session_id = rng.choice((1, 5, 100))
            engine.clone_session_entry.packet_length_bytes = rng.choice((0, 0, 64))
            replicas = engine.clone_session_entry.replicas
        for _ in range(rng.randrange(4)):
            replicas.add(egress_port=rng.choice((1, 2, 3, 510)), instance=rng.randrange(3))
        return entity


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _octets(value: int) -> bytes:
    return value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big")
