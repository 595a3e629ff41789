"""Random calls: tables, action profiles and value sets."""

from __future__ import annotations

from softswitch import model as m
from softswitch.device import Call, Group, GroupMember, Lpm, MatchValue, Member, Range, Target, Ternary
from tests.fuzz.calls import SECOND, Caller, Calls
from tests.fuzz.values import STRINGS


class TableCalls(Caller):
    """``table_calls`` and ``profile_calls``."""

    def table_calls(self) -> Calls:
        """All that has to do with tables."""
        return [
            self.add, self.add, self.add, self.modify, self.delete, self.find, self.set_default, self.reset_default,
            self.statistics, self.entry_counter, self.entry_meter,
        ]  # fmt: skip

    def profile_calls(self) -> Calls:
        """All that has to do with action profiles."""
        return [
            self.member_add, self.member_modify, self.member_delete, self.group_add, self.group_modify,
            self.group_delete,
        ]  # fmt: skip

    # ---- tables --------------------------------------------------------------------------------------------

    def _table(self) -> str:
        """Mostly one that takes entries: p4c makes tables without a key of statements."""
        keyed = [name for name, table in self.program.tables.items() if table.key]
        return self.values.maybe_name(keyed if keyed and self.rng.randrange(12) else list(self.program.tables))

    def _match(self, name: str) -> dict[str, MatchValue]:
        table = self.program.tables.get(name)
        if table is None:
            return {"x": 1}
        match = {f.name: self._field(f) for f in table.key}
        if self.rng.randrange(60) == 0:
            match[self.rng.choice(STRINGS)] = 1
        if match and self.rng.randrange(40) == 0:
            match.pop(self.rng.choice(list(match)))
        return match

    def _field(self, f: m.KeyField) -> MatchValue:
        rng, width = self.rng, f.width
        value = self.values.maybe_wild(self.values.bits(1 if f.match == "valid" else width), 60)
        kind = rng.choice((f.match, f.match, f.match, "exact", "none")) if rng.randrange(4) == 0 else f.match
        match kind:
            case "lpm":
                return Lpm(value, self.values.maybe_wild(rng.randrange(width + 1), 60))
            case "ternary":
                mask = rng.choice(((1 << width) - 1, 0, self.values.bits(width), rng.getrandbits(width)))
                return Ternary(value, self.values.maybe_wild(mask, 60))
            case "range":
                other = self.values.bits(width)
                return Range(min(value, other), max(value, other)) if rng.randrange(20) else Range(value, other)
            case "none":
                return None
        return value

    def _target(self, name: str) -> Target:
        table = self.program.tables.get(name)
        if table is None or not table.actions:
            return Call("x")
        profile = table.profile
        if profile is None or self.rng.randrange(40) == 0:
            return self.rng.choice((Member(1), Group(1), self._call(table.actions), self._call(table.actions)))
        if self.rng.randrange(2) and self.groups[profile]:
            return Group(self._handle(self.groups[profile]))
        return Member(self._handle(self.members[profile]))

    def _timeout(self) -> int:
        return self.values.maybe_wild(self.rng.choice((0, 0, 1, 10**6, SECOND, 60 * SECOND, 2**62, 2**64 - 1)), 40)

    def _priority(self) -> int:
        return self.values.maybe_wild(self.rng.randrange(1, 8), 20)

    def add(self) -> None:
        """A table entry."""
        name = self._table()
        match, target = self._match(name), self._target(name)
        handle = self.device.table_add(name, match, target, priority=self._priority(), idle_timeout_ns=self._timeout())
        self._new(name, handle, self.entries[name])

    def modify(self) -> None:
        """A table entry."""
        name = self._table()
        handle = self._handle(self.entries.get(name, []))
        self.device.table_modify(name, handle, self._target(name), idle_timeout_ns=self._timeout())

    def delete(self) -> None:
        """A table entry; not one of the program's own, whose handles come first."""
        name = self._table()
        handle = self._handle(self.entries.get(name, []))
        if name in self.entries and (handle in self.entries[name] or not self.alone):
            self._forget(self.entries[name], handle, lambda: self.device.table_delete(name, handle))
        elif not 0 < handle <= self.own.get(name, 0):
            self._refused(lambda: self.device.table_delete(name, handle), "an entry that is not there was deleted")

    def find(self) -> None:
        """A table entry."""
        name = self._table()
        self.device.table_find(name, self._match(name), priority=self._priority())

    def set_default(self) -> None:
        """A default entry."""
        name = self._table()
        self.device.table_set_default(name, self._target(name))

    def reset_default(self) -> None:
        """A default entry."""
        self.device.table_reset_default(self._table())

    def statistics(self) -> None:
        """Of an entry."""
        name = self._table()
        self.device.entry_stats(name, self._handle(self.entries.get(name, [])))

    def entry_counter(self) -> None:
        """A direct counter."""
        name = self._table()
        handle = self._handle(self.entries.get(name, []))
        self.device.entry_counter_set(name, handle, self._count(), self._count())

    def entry_meter(self) -> None:
        """A direct meter."""
        name = self._table()
        handle = self._handle(self.entries.get(name, []))
        self.device.entry_meter_set(name, handle, self._meter_config())
        self.device.entry_meter(name, handle)

    def value_set(self) -> None:
        """A parser value set."""
        name = self.values.maybe_name(list(self.program.value_sets))
        width = self.program.value_sets[name].width if name in self.program.value_sets else 8
        members = {
            (self.values.maybe_wild(self.values.bits(width), 30), self.rng.getrandbits(width) | self.values.bits(width))
            for _ in range(self.rng.randrange(6))
        }
        self.device.value_set_replace(name, sorted(members))

    # ---- action profiles -----------------------------------------------------------------------------------

    def _profile(self) -> tuple[str, list[int], list[int]]:
        name = self.values.maybe_name(list(self.program.profiles))
        return name, self.members.get(name, []), self.groups.get(name, [])

    def _member_call(self, profile: str) -> Call:
        return self._call([i for t in self.program.tables.values() if t.profile == profile for i in t.actions])

    def member_add(self) -> None:
        """A member."""
        name, members, _ = self._profile()
        self._new(f"members of {name}", self.device.member_add(name, self._member_call(name)), members)

    def member_modify(self) -> None:
        """A member."""
        name, members, _ = self._profile()
        self.device.member_modify(name, self._handle(members), self._member_call(name))

    def member_delete(self) -> None:
        """A member."""
        name, members, _ = self._profile()
        handle = self._handle(members)
        self._forget(members, handle, lambda: self.device.member_delete(name, handle))

    def _group_members(self, members: list[int]) -> list[GroupMember]:
        rng = self.rng
        return [
            GroupMember(
                self._handle(members), self.values.maybe_wild(rng.randrange(1, 4), 60),
                rng.choice((None, None, 1, 2, self.port_number())),
            )
            for _ in range(rng.randrange(5))
        ]  # fmt: skip

    def group_add(self) -> None:
        """A group."""
        name, members, groups = self._profile()
        size = self.rng.choice((0, 0, 1, 3, 100, -1, 2**32, 2**32 - 1))
        self._new(f"groups of {name}", self.device.group_add(name, self._group_members(members), size), groups)

    def group_modify(self) -> None:
        """A group."""
        name, members, groups = self._profile()
        self.device.group_modify(name, self._handle(groups), self._group_members(members))

    def group_delete(self) -> None:
        """A group."""
        name, _, groups = self._profile()
        handle = self._handle(groups)
        self._forget(groups, handle, lambda: self.device.group_delete(name, handle))
