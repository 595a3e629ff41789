"""Tables, action profiles and value sets of a device."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from softswitch import model as m
from softswitch import native
from softswitch.device_base import DeviceBase, to_bytes
from softswitch.device_types import (
    Call,
    DeviceError,
    EntryStats,
    Group,
    GroupMember,
    Lpm,
    MatchValue,
    MeterConfig,
    Range,
    Target,
    Ternary,
)


class TablesMixin(DeviceBase):
    """Entries and what they point to. Handles are never used twice."""

    def table_add(
        self, table: str, match: Mapping[str, MatchValue], target: Target, *, priority: int = 0,
        idle_timeout_ns: int = 0,
    ) -> int:  # fmt: skip
        """Add an entry and return its handle. ``priority``: larger wins, in tables with ternary or range fields.

        Raises DeviceError: ALREADY_EXISTS, RESOURCE_EXHAUSTED (full), NOT_FOUND (a name), INVALID_ARGUMENT.
        """
        spec = self._spec(table, match, priority)
        self._aim(spec, self.program.tables[table], target)
        spec.idle_timeout_ns = idle_timeout_ns
        handle = c.c_uint64()
        result = self.lib.sw_table_add(self._native(), self._tables[table], c.byref(spec), c.byref(handle))
        self._check(result, f"add to table {table}")
        return handle.value

    def table_modify(self, table: str, handle: int, target: Target, *, idle_timeout_ns: int = 0) -> None:
        """Give an entry another target and idle timeout. Its counter and meter stay."""
        spec = native.EntrySpec(idle_timeout_ns=idle_timeout_ns)
        index = self._number("table", table, self._tables)
        self._aim(spec, self.program.tables[table], target)
        self._check(self.lib.sw_table_modify(self._native(), index, handle, c.byref(spec)), f"modify table {table}")

    def table_delete(self, table: str, handle: int) -> None:
        """Remove an entry."""
        index = self._number("table", table, self._tables)
        self._check(self.lib.sw_table_delete(self._native(), index, handle), f"delete from table {table}")

    def table_find(self, table: str, match: Mapping[str, MatchValue], *, priority: int = 0) -> int | None:
        """The handle of the entry with exactly this match and priority."""
        spec = self._spec(table, match, priority)
        handle = c.c_uint64()
        result = self.lib.sw_table_find(self._native(), self._tables[table], c.byref(spec), c.byref(handle))
        return None if result == -1 else (self._check(result, f"find in table {table}"), handle.value)[1]

    def table_set_default(self, table: str, target: Target) -> None:
        """What a miss does."""
        index = self._number("table", table, self._tables)
        if isinstance(target, Call):
            action, args = self._table_call(self.program.tables[table], target)
            result = self.lib.sw_table_set_default(self._native(), index, action, args, len(args))
        else:
            spec = native.EntrySpec()
            self._aim(spec, self.program.tables[table], target)
            result = self.lib.sw_table_set_default_target(self._native(), index, spec.target, spec.target_is_group)
        self._check(result, f"default of table {table}")

    def table_reset_default(self, table: str) -> None:
        """A miss does again what the program says."""
        index = self._number("table", table, self._tables)
        self._check(self.lib.sw_table_reset_default(self._native(), index), f"default of table {table}")

    def table_count(self, table: str) -> int:
        """How many entries there are."""
        count: int = self.lib.sw_table_count(self._native(), self._number("table", table, self._tables))
        return count

    def entry_stats(self, table: str, handle: int) -> EntryStats:
        """The direct counter and the time since the last hit; handle 0 is the default entry."""
        stats = native.EntryStats()
        index = self._number("table", table, self._tables)
        self._check(self.lib.sw_entry_stats_get(self._native(), index, handle, c.byref(stats)), f"entry of {table}")
        return EntryStats(stats.packets, stats.bytes, stats.idle_ns)

    def entry_counter_set(self, table: str, handle: int, packets: int, nbytes: int) -> None:
        """Set a direct counter."""
        index = self._number("table", table, self._tables)
        result = self.lib.sw_entry_counter_set(self._native(), index, handle, packets, nbytes)
        self._check(result, f"counter of {table}")

    def entry_meter(self, table: str, handle: int) -> MeterConfig | None:
        """A direct meter's configuration; None where it has none and every packet is green."""
        config = native.MeterConfig()
        index = self._number("table", table, self._tables)
        self._check(self.lib.sw_entry_meter_get(self._native(), index, handle, c.byref(config)), f"meter of {table}")
        return meter_from_native(config)

    def entry_meter_set(self, table: str, handle: int, config: MeterConfig | None) -> None:
        """Configure a direct meter, or take its configuration away."""
        index = self._number("table", table, self._tables)
        result = self.lib.sw_entry_meter_set(self._native(), index, handle, c.byref(meter_to_native(config)))
        self._check(result, f"meter of {table}")

    # ---- action profiles -----------------------------------------------------------------------------------

    def member_add(self, profile: str, call: Call) -> int:
        """Add a member and return its handle."""
        index = self._number("action profile", profile, self._profiles)
        action, args = self._call(call, self._profile_actions[profile])
        handle = c.c_uint64()
        result = self.lib.sw_member_add(self._native(), index, action, args, len(args), c.byref(handle))
        self._check(result, f"add a member to {profile}")
        return handle.value

    def member_modify(self, profile: str, handle: int, call: Call) -> None:
        """Give a member another action."""
        index = self._number("action profile", profile, self._profiles)
        action, args = self._call(call, self._profile_actions[profile])
        result = self.lib.sw_member_modify(self._native(), index, handle, action, args, len(args))
        self._check(result, f"modify a member of {profile}")

    def member_delete(self, profile: str, handle: int) -> None:
        """Remove a member; FAILED_PRECONDITION while a group or an entry uses it."""
        index = self._number("action profile", profile, self._profiles)
        self._check(self.lib.sw_member_delete(self._native(), index, handle), f"delete a member of {profile}")

    def group_add(self, profile: str, members: Sequence[GroupMember], max_size: int = 0) -> int:
        """Add a group and return its handle. ``max_size`` bounds the sum of weights; 0 is no bound."""
        index = self._number("action profile", profile, self._profiles)
        handle = c.c_uint64()
        native_members = _group_members(members)
        result = self.lib.sw_group_add(
            self._native(), index, native_members, len(members), max_size, c.byref(handle)
        )  # fmt: skip
        self._check(result, f"add a group to {profile}")
        return handle.value

    def group_modify(self, profile: str, handle: int, members: Sequence[GroupMember]) -> None:
        """Give a group other members."""
        index = self._number("action profile", profile, self._profiles)
        result = self.lib.sw_group_modify(self._native(), index, handle, _group_members(members), len(members))
        self._check(result, f"modify a group of {profile}")

    def group_delete(self, profile: str, handle: int) -> None:
        """Remove a group; FAILED_PRECONDITION while an entry uses it."""
        index = self._number("action profile", profile, self._profiles)
        self._check(self.lib.sw_group_delete(self._native(), index, handle), f"delete a group of {profile}")

    # ---- value sets ----------------------------------------------------------------------------------------

    def value_set_replace(self, name: str, members: Iterable[tuple[int, int]]) -> None:
        """Make a parser value set hold exactly these (value, mask) members."""
        index = self._number("parser value set", name, self._value_sets)
        width = self.program.value_sets[name].width
        encoded = [tuple(to_bytes(x, width, name) for x in member) for member in members]
        self._check(self.lib.sw_value_set_clear(self._native(), index), name)
        for value, mask in encoded:
            self._check(self.lib.sw_value_set_add(self._native(), index, value, mask), name)

    # ---- encoding ------------------------------------------------------------------------------------------

    def _spec(self, table: str, match: Mapping[str, MatchValue], priority: int) -> native.EntrySpec:
        self._number("table", table, self._tables)
        description = self.program.tables[table]
        unknown = set(match) - {f.name for f in description.key}
        if unknown:
            known = ", ".join(f.name for f in description.key)
            raise DeviceError("INVALID_ARGUMENT", f"table {table} has no key field {min(unknown)!r}; it has: {known}")
        keys, masks = bytearray(), bytearray()
        for field in description.key:
            key, mask = encode_field(field, match.get(field.name), table)
            keys += key
            masks += mask
        return native.EntrySpec(key=bytes(keys), mask=bytes(masks), priority=priority)

    def _aim(self, spec: native.EntrySpec, table: m.Table, target: Target) -> None:
        """Put the target into the spec."""
        if isinstance(target, Call):
            spec.action, args = self._table_call(table, target)
            spec.args, spec.args_len = args, len(args)
        elif table.impl == "simple" or (isinstance(target, Group) and table.impl != "indirect_ws"):
            raise DeviceError("INVALID_ARGUMENT", f"entries of table {table.name} cannot name a {_kind(target)}")
        else:
            spec.target, spec.target_is_group = target.handle, isinstance(target, Group)

    def _table_call(self, table: m.Table, call: Call) -> tuple[int, bytes]:
        if table.impl != "simple":
            raise DeviceError("INVALID_ARGUMENT", f"entries of table {table.name} name a member or a group")
        return self._call(call, self._table_actions[table.name])

    def _call(self, call: Call, known: Mapping[str, m.Action]) -> tuple[int, bytes]:
        action = known.get(call.action)
        if action is None:
            names = ", ".join(known)
            raise DeviceError("INVALID_ARGUMENT", f"there is no action {call.action!r} here; there are: {names}")
        if len(call.args) != len(action.params):
            wanted = ", ".join(p.name for p in action.params) or "no parameters"
            raise DeviceError("INVALID_ARGUMENT", f"action {action.name} takes {wanted}; {len(call.args)} given")
        data = b"".join(
            to_bytes(arg, p.width, f"{action.name}.{p.name}") for p, arg in zip(action.params, call.args, strict=True)
        )
        return self._action_index[action.ident], data

    @cached_property
    def _table_actions(self) -> dict[str, dict[str, m.Action]]:
        """What the entries of each table can run, by name."""
        actions = self.program.actions
        return {
            t.name: {
                actions[i].name: actions[i] for i in (*t.actions, *([] if t.default is None else [t.default.action]))
            }
            for t in self.program.tables.values()
        }

    @cached_property
    def _profile_actions(self) -> dict[str, dict[str, m.Action]]:
        """What the members of each action profile can run, by name."""
        return {
            profile: {
                self.program.actions[i].name: self.program.actions[i]
                for t in self.program.tables.values()
                if t.profile == profile
                for i in t.actions
            }
            for profile in self.program.profiles
        }


def encode_field(field: m.KeyField, value: MatchValue, table: str) -> tuple[bytes, bytes]:
    """Key and mask bytes of one field; for a range its ends. Raises DeviceError."""
    width, what = field.width, f"{table}: {field.name}"
    full = (1 << width) - 1
    match field.match, value:
        case ("exact" | "valid", int(number)):
            pair = number, full
        case ("exact" | "valid", None):
            raise DeviceError("INVALID_ARGUMENT", f"{what} is exact and needs a value")
        case (("lpm" | "ternary"), None):
            pair = 0, 0
        case (("lpm" | "ternary"), int(number)):
            pair = number, full
        case ("lpm", Lpm(number, length)) if 0 <= length <= width:
            mask = full & ~((1 << (width - length)) - 1)
            pair = to_int(number, width, what) & mask, mask
        case ("ternary", Ternary(number, mask)):
            pair = to_int(number, width, what) & mask, mask
        case ("range", None):
            pair = 0, full
        case ("range", int(number)):
            pair = number, number
        case ("range", Range(low, high)) if low <= high:
            pair = low, high
        case _:
            raise DeviceError("INVALID_ARGUMENT", f"{what} is a {width}-bit {field.match} field, not {value!r}")
    return to_bytes(pair[0], width, what), to_bytes(pair[1], width, what)


def to_int(value: int, width: int, what: str) -> int:
    """The value, if it fits."""
    return int.from_bytes(to_bytes(value, width, what), "big")


def _kind(target: Target) -> str:
    return type(target).__name__.lower()


def _group_members(members: Sequence[GroupMember]) -> c.Array[native.GroupMember]:
    return (native.GroupMember * len(members))(
        *(
            native.GroupMember(g.member, g.weight, native.NO_PORT if g.watch_port is None else g.watch_port)
            for g in members
        )
    )


def meter_to_native(config: MeterConfig | None) -> native.MeterConfig:
    """sw_meter_config of a configuration."""
    if config is None:
        return native.MeterConfig()
    return native.MeterConfig(config.cir, config.cburst, config.pir, config.pburst, True)


def meter_from_native(config: native.MeterConfig) -> MeterConfig | None:
    """A configuration of sw_meter_config."""
    if not config.configured:
        return None
    return MeterConfig(config.cir, config.cburst, config.pir, config.pburst)
