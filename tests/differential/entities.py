"""Random P4Runtime updates for one program: valid ones, in an order that both servers accept."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from finsy.proto import p4i, p4r

from softswitch.p4runtime.p4info import ArrayInfo, Match, P4Index, TableInfo, ValueSetInfo
from tests.differential.fields import field_match
from tests.differential.pool import PORTS, Pool
from tests.differential.state import units
from tests.p4runtime_client import DELETE, INSERT, MODIFY, exact, octets, update

ENTRIES = 16  # at most, of one table at the start
MEMBERS = 6
COPIES = 5  # of a multicast packet; half of the runs have one
GROUPS = range(1, 9)
SESSIONS = range(1, 9)


@dataclass
class Profile:
    """What is in one action profile. ``oneshot``: its tables use action sets instead of members and groups."""

    info: p4i.ActionProfile
    oneshot: bool
    members: set[int] = field(default_factory=set)
    groups: dict[int, frozenset[int]] = field(default_factory=dict)


class Entities:
    """Makes updates. What was accepted has to be told by :meth:`done`, as later updates build on it.

    ``ordered``: groups and clone sessions make one copy, so that it is certain in which order packets leave a port.
    """

    def __init__(self, rng: random.Random, index: P4Index, pool: Pool, *, ordered: bool) -> None:
        self._rng, self._index, self._pool = rng, index, pool
        self.ordered = ordered
        self._entries: dict[int, dict[bytes, p4r.TableEntry]] = {i: {} for i in index.tables}
        self._priorities: dict[int, Iterator[int]] = {i: iter(rng.sample(range(1, 10_000), 5000)) for i in index.tables}
        self._profiles = {
            p.preamble.id: Profile(p, p.with_selector and rng.random() < 0.3)
            for p in index.p4info.action_profiles
            if p.preamble.id in index.profiles
        }
        dropping = {a.name for a in index.program.actions.values() if any("drop" in p.op for p in a.primitives)}
        self._dropping = {i for i, action in index.actions.items() if action.name in dropping}
        self._units = units(index)
        self._multicast: set[int] = set()
        self._clones: set[int] = set()

    # ---- what to write -------------------------------------------------------------------------------------

    def initial(self) -> Iterator[p4r.Update]:
        """Updates to begin with, each to be sent once the one before was answered."""
        for digest in self._index.digests:
            yield update(INSERT, digest_entry=self._digest(digest))
        for value_set in self._index.value_sets.values():
            if all(one.match is Match.EXACT for one in value_set.fields):  # others BMv2 has not
                yield update(MODIFY, value_set_entry=self._value_set(value_set))
        for _ in GROUPS:
            yield self._multicast_update()
        for _ in SESSIONS:
            yield self._clone_update()
        for profile in self._profiles.values():
            if not profile.oneshot:
                for _ in range(self._rng.randint(1, MEMBERS)):
                    yield self._member(profile)
                for _ in range(self._rng.randint(1, MEMBERS) if profile.info.with_selector else 0):
                    yield self._group(profile)
        for table in self._index.tables.values():
            if self._rng.random() < 0.4:
                yield from self._default(table)
            for _ in range(self._rng.randint(4, ENTRIES) if self._rng.random() < 0.85 else 0):
                yield from self._insert(table)
            if table.meter:
                for _ in range(3):
                    yield from self._direct(table)
        for _ in range(6 * len(self._index.meters)):
            yield from self._meter()

    def churn(self) -> Iterator[p4r.Update]:
        """A random change of what is there."""
        kind = self._rng.random()
        if kind < 0.1:
            yield self._multicast_update()
        elif kind < 0.2:
            yield self._clone_update()
        elif kind < 0.3:
            yield from self._rng.choice((self._meter, self._counter))()
        elif kind < 0.5 and self._profiles:
            profile = self._rng.choice(list(self._profiles.values()))
            if not profile.oneshot:
                grouped = profile.info.with_selector and self._rng.random() < 0.6
                yield self._group(profile) if grouped else self._member(profile)
        elif self._index.tables:
            table = self._rng.choice(list(self._index.tables.values()))
            kind = self._rng.random()
            if kind < 0.1:
                yield from self._default(table)
            elif kind < 0.35:
                yield from self._insert(table)
            elif kind < 0.5:
                yield from self._direct(table)
            else:
                yield from self._change(table)

    def done(self, accepted: p4r.Update) -> None:
        """Remember an update that was accepted."""
        entity, kind = accepted.entity, accepted.entity.WhichOneof("entity")
        removed = accepted.type == DELETE
        if kind == "table_entry" and not entity.table_entry.is_default_action:
            entry = entity.table_entry
            entries = self._entries[entry.table_id]
            if removed:
                del entries[_key(entry)]
            else:
                entries[_key(entry)] = entry
        elif kind == "action_profile_member":
            member = entity.action_profile_member
            _toggle(self._profiles[member.action_profile_id].members, member.member_id, removed)
        elif kind == "action_profile_group":
            group = entity.action_profile_group
            groups = self._profiles[group.action_profile_id].groups
            groups.pop(group.group_id, None)
            if not removed:
                groups[group.group_id] = frozenset(one.member_id for one in group.members)
        elif kind == "packet_replication_engine_entry":
            replication = entity.packet_replication_engine_entry
            if replication.HasField("multicast_group_entry"):
                _toggle(self._multicast, replication.multicast_group_entry.multicast_group_id, removed)
            else:
                _toggle(self._clones, replication.clone_session_entry.session_id, removed)

    # ---- tables --------------------------------------------------------------------------------------------

    def _insert(self, table: TableInfo) -> Iterator[p4r.Update]:
        entries = self._entries[table.id]
        # a table with entries of the program cannot be told from a full one by what was written
        room = table.size - len(table.program.entries) - len(entries)
        if table.const or not table.fields or room <= 0:
            return
        if any(one.width == 0 for one in table.fields):  # of type error: PI takes no value for it
            return
        entry = p4r.TableEntry(table_id=table.id, match=self._match(table))
        if table.needs_priority:
            entry.priority = next(self._priorities[table.id])  # all differ: of equal ones nobody says which wins
        if _key(entry) not in entries and self._aim(entry, table):
            yield update(INSERT, table_entry=entry)

    def _change(self, table: TableInfo) -> Iterator[p4r.Update]:
        """Modify or delete an entry."""
        entries = self._entries[table.id]
        if not entries:
            return
        entry = p4r.TableEntry()
        entry.CopyFrom(entries[self._rng.choice(list(entries))])
        if self._rng.random() < 0.5:
            key = p4r.TableEntry(table_id=table.id, match=entry.match, priority=entry.priority)
            yield update(DELETE, table_entry=key)
        elif self._aim(entry, table):
            yield update(MODIFY, table_entry=entry)

    def _default(self, table: TableInfo) -> Iterator[p4r.Update]:
        # P4Runtime lets nobody change the default entry of an indirect table
        if table.const_default or table.profile:
            return
        entry = p4r.TableEntry(table_id=table.id, is_default_action=True)
        if self._rng.random() < 0.8:
            self._aim(entry, table)
        yield update(MODIFY, table_entry=entry)

    def _direct(self, table: TableInfo) -> Iterator[p4r.Update]:
        """Set the direct meter or counter of an entry."""
        if not self._entries[table.id]:
            return
        entry = self._rng.choice(list(self._entries[table.id].values()))
        key = p4r.TableEntry(table_id=table.id, match=entry.match, priority=entry.priority)
        if table.meter and self._rng.random() < 0.7:
            yield update(MODIFY, direct_meter_entry=p4r.DirectMeterEntry(table_entry=key, config=self._rates()))
        elif table.counter:
            yield update(
                MODIFY, direct_counter_entry=p4r.DirectCounterEntry(table_entry=key, data=self._count(table.counter))
            )

    def _match(self, table: TableInfo) -> list[p4r.FieldMatch]:
        care = min(0.85, 0.1 + 2 / len(table.fields))
        matches = (field_match(self._rng, self._pool, one, care) for one in table.fields)
        return [one for one in matches if one is not None]

    def _aim(self, entry: p4r.TableEntry, table: TableInfo) -> bool:
        """Give the entry an action, member or group; False where there is none to give."""
        entry.ClearField("action")
        if table.meter and not entry.is_default_action:
            # without it the meter is in its default state, but in BMv2 in that of the entry before, if there was one
            entry.meter_config.CopyFrom(self._rates())
        profile = self._profiles.get(table.profile)
        if profile is None:
            action = self._table_action(table, entry.is_default_action)
            if action is not None:
                entry.action.action.CopyFrom(action)
            return action is not None
        if profile.oneshot:
            return self._action_set(entry, table, profile)
        if profile.groups and self._rng.random() < 0.7:
            entry.action.action_profile_group_id = self._rng.choice(sorted(profile.groups))
        elif profile.members:
            entry.action.action_profile_member_id = self._rng.choice(sorted(profile.members))
        return entry.HasField("action")

    def _action_set(self, entry: p4r.TableEntry, table: TableInfo, profile: Profile) -> bool:
        # BMv2 has no limit on all actions together; the entry's old ones are there until it has the new ones
        left = profile.info.size - sum(
            action.weight
            for other in self._index.tables.values()
            if other.profile == table.profile
            for stored in self._entries[other.id].values()
            for action in stored.action.action_profile_action_set.action_profile_actions
        )
        weights = self._weights(min(profile.info.max_group_size or 4, 6, left))
        for weight in weights:
            action = self._table_action(table, False)
            if action is not None:
                entry.action.action_profile_action_set.action_profile_actions.add(action=action, weight=weight)
        return entry.HasField("action")

    def _table_action(self, table: TableInfo, default: bool) -> p4r.Action | None:
        wrong = p4i.ActionRef.TABLE_ONLY if default else p4i.ActionRef.DEFAULT_ONLY
        usable = [i for i, scope in table.actions.items() if scope != wrong]
        return self._one_of(usable) if usable else None

    def _one_of(self, actions: Sequence[int]) -> p4r.Action:
        """One of the actions; rather one that does not drop, after which nothing can be seen."""
        (chosen,) = self._rng.choices(actions, [0.2 if i in self._dropping else 1 for i in actions])
        return self._action(chosen)

    def _action(self, ident: int) -> p4r.Action:
        action = p4r.Action(action_id=ident)
        for param in self._index.actions[ident].params:
            action.params.add(param_id=param.id, value=octets(self._pool.draw(param.width)))
        return action

    # ---- action profiles -----------------------------------------------------------------------------------

    def _member(self, profile: Profile) -> p4r.Update:
        rng = self._rng
        used = self._used(profile, "member")
        member = p4r.ActionProfileMember(action_profile_id=profile.info.preamble.id, member_id=rng.randint(1, 40))
        if member.member_id in profile.members and member.member_id not in used and rng.random() < 0.4:
            return update(DELETE, action_profile_member=member)
        actions = sorted(self._index.profiles[profile.info.preamble.id].actions)
        member.action.CopyFrom(self._one_of(actions))
        kind = MODIFY if member.member_id in profile.members else INSERT
        return update(kind, action_profile_member=member)

    def _group(self, profile: Profile) -> p4r.Update:
        """A group always has members: BMv2 dies of a packet that hits an empty one."""
        rng = self._rng
        group = p4r.ActionProfileGroup(action_profile_id=profile.info.preamble.id, group_id=rng.randint(1, 12))
        known = group.group_id in profile.groups
        if known and group.group_id not in self._used(profile, "group") and rng.random() < 0.3:
            return update(DELETE, action_profile_group=group)
        limit = min(profile.info.max_group_size or 8, 8)
        members = rng.sample(sorted(profile.members), min(len(profile.members), rng.randint(1, min(limit, 5))))
        for member, weight in zip(members, self._weights(limit), strict=False):
            group.members.add(member_id=member, weight=weight)
        if not group.members:
            return self._member(profile)
        if known:
            return update(MODIFY, action_profile_group=group)
        group.max_size = limit
        return update(INSERT, action_profile_group=group)

    def _weights(self, limit: int) -> Sequence[int]:
        """Weights of 1 and more, whose sum is within ``limit``."""
        weights: list[int] = []
        while limit > 0 and (not weights or self._rng.random() < 0.75):
            weight = 1 if self._rng.random() < 0.6 else self._rng.randint(1, min(limit, 3))
            weights.append(weight)
            limit -= weight
        return weights

    def _used(self, profile: Profile, what: str) -> set[int]:
        """Members or groups that something refers to."""
        used = {i for members in profile.groups.values() for i in members} if what == "member" else set[int]()
        for table in self._index.tables.values():
            if table.profile == profile.info.preamble.id:
                for entry in self._entries[table.id].values():
                    if entry.action.WhichOneof("type") == f"action_profile_{what}_id":
                        used.add(getattr(entry.action, f"action_profile_{what}_id"))
        return used

    # ---- the rest ------------------------------------------------------------------------------------------

    def _multicast_update(self) -> p4r.Update:
        ident = self._rng.choice(GROUPS)
        entry = p4r.MulticastGroupEntry(multicast_group_id=ident)
        engine = p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
        if ident in self._multicast and self._rng.random() < 0.25:
            return update(DELETE, packet_replication_engine_entry=engine)
        engine.multicast_group_entry.replicas.extend(self._replicas())
        kind = MODIFY if ident in self._multicast else INSERT
        return update(kind, packet_replication_engine_entry=engine)

    def _clone_update(self) -> p4r.Update:
        """Clone sessions are not truncated: BMv2 ignores packet_length_bytes."""
        ident = self._rng.choice(SESSIONS)
        engine = p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry(session_id=ident))
        if ident in self._clones and self._rng.random() < 0.25:
            return update(DELETE, packet_replication_engine_entry=engine)
        engine.clone_session_entry.replicas.extend(self._replicas())
        kind = MODIFY if ident in self._clones else INSERT
        return update(kind, packet_replication_engine_entry=engine)

    def _replicas(self) -> list[p4r.Replica]:
        rng = self._rng
        count = 1 if self.ordered else rng.randint(1, COPIES)
        pairs = {(rng.choice(PORTS), rng.choice((0, 1, 1, 2, 3, 65535))) for _ in range(count)}
        return [p4r.Replica(egress_port=port, instance=rid) for port, rid in rng.sample(sorted(pairs), len(pairs))]

    def _value_set(self, value_set: ValueSetInfo) -> p4r.ValueSetEntry:
        entry = p4r.ValueSetEntry(value_set_id=value_set.id)
        values = {tuple(self._pool.draw(one.width) for one in value_set.fields) for _ in range(min(value_set.size, 6))}
        for value in sorted(values):
            match = [exact(one.id, part) for one, part in zip(value_set.fields, value, strict=True)]
            entry.members.add(match=match)
        return entry

    def _digest(self, ident: int) -> p4r.DigestEntry:
        """Every sample at once, and no memory of what was sent: what else happens depends on the clock."""
        config = p4r.DigestEntry.Config(max_list_size=1, max_timeout_ns=0, ack_timeout_ns=0)
        return p4r.DigestEntry(digest_id=ident, config=config)

    def _meter(self) -> Iterator[p4r.Update]:
        for meter in self._some(self._index.meters):
            index = p4r.Index(index=self._rng.randrange(meter.size))
            yield update(MODIFY, meter_entry=p4r.MeterEntry(meter_id=meter.id, index=index, config=self._rates()))

    def _counter(self) -> Iterator[p4r.Update]:
        for counter in self._some(self._index.counters):
            index = p4r.Index(index=self._rng.randrange(counter.size))
            yield update(
                MODIFY, counter_entry=p4r.CounterEntry(counter_id=counter.id, index=index, data=self._count(counter.id))
            )

    def _some(self, arrays: Mapping[int, ArrayInfo]) -> list[ArrayInfo]:
        """One of the arrays, if there are any."""
        return [self._rng.choice(list(arrays.values()))] if arrays else []

    def _count(self, counter: int) -> p4r.CounterData:
        """What the counter counts; the rest has no meaning."""
        data = p4r.CounterData(packet_count=self._rng.getrandbits(20), byte_count=self._rng.getrandbits(40))
        if self._units[counter] == p4i.CounterSpec.BYTES:
            data.ClearField("packet_count")
        elif self._units[counter] == p4i.CounterSpec.PACKETS:
            data.ClearField("byte_count")
        return data

    def _rates(self) -> p4r.MeterConfig:
        """Rates that give nothing back while the run lasts, so that colours do not depend on the clock."""
        small, large = sorted((self._rng.choice((1, 2, 5, 200)), self._rng.choice((1, 3, 400, 1 << 30))))
        return p4r.MeterConfig(cir=0, cburst=small, pir=0, pburst=large)


def _key(entry: p4r.TableEntry) -> bytes:
    """What tells the entries of a table apart."""
    return p4r.TableEntry(match=entry.match, priority=entry.priority).SerializeToString(deterministic=True)


def _toggle(group: set[int], item: int, removed: bool) -> None:
    (group.discard if removed else group.add)(item)
