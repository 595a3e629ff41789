"""TableEntry: the entries of every table, as the controller wrote them.

The device matches packets; what it does not keep (metadata, one-shot action sets, the form of an entry) is kept here,
as the serialized TableEntry that a read answers with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from finsy.proto import p4i, p4r

from softswitch.device import Device
from softswitch.device_types import Call, DeviceError, Group, Member, Target
from softswitch.p4runtime.actions import ActionReader
from softswitch.p4runtime.direct import DirectResources
from softswitch.p4runtime.entity import DELETE, INSERT, MODIFY, lookup, unknown_update
from softswitch.p4runtime.errors import Code, denied, exhausted, exists, from_device, invalid, not_found, unimplemented
from softswitch.p4runtime.initial import default_action, initial_entries
from softswitch.p4runtime.match import KeyReader, MatchKey
from softswitch.p4runtime.p4info import P4Index, TableInfo
from softswitch.p4runtime.profiles import ActionSet, Profile, Profiles
from softswitch.p4runtime.resources import COLOUR_COUNTS

METADATA_MAX = 4096
"""Longest metadata kept with an entry, bytes."""

DEFAULT_HANDLE = 0
Key = tuple[int, MatchKey]


@dataclass(frozen=True, slots=True)
class Record:
    """One entry. ``body`` is its TableEntry without direct resources, ``action`` the id of its action or 0."""

    handle: int
    body: bytes
    action: int
    const: bool = False
    action_set: ActionSet | None = None


class Table:
    """One table's entries and default entry."""

    def __init__(self, info: TableInfo, device: Device, actions: ActionReader, profile: Profile | None) -> None:
        self.info = info
        self.direct = DirectResources(info, device)
        self._device = device
        self._actions = actions
        self._profile = profile
        self._what = f"table {info.name}"
        self._keys = KeyReader(self._what, info.fields)
        self._names = tuple(f.key for f in info.fields)
        self._records: dict[Key, Record] = {}
        self._by_handle: dict[int, Key] = {}  # of tables with idle timeouts
        self._snapshot: list[Record] | None = None  # all records, shared by reads until the next write
        self._needs_priority = info.needs_priority
        self._initial_default = default_action(info, actions)
        self._default = self._default_record(self._initial_default)
        for entry, priority, key in initial_entries(info, actions):
            handle = device.table_find(info.name, dict(zip(self._names, key, strict=True)), priority=priority)
            if handle is not None:
                record = Record(handle, entry.SerializeToString(), entry.action.action.action_id, info.const)
                self._records[priority, key] = record
        self._initial = frozenset(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def default_changed(self) -> bool:
        """True once the controller has set another default entry than the program's."""
        return self._default != self._default_record(self._initial_default)

    def has_removed(self, entry: p4r.TableEntry) -> bool:
        """True for an entry of the program that the controller has deleted since."""
        key = self._key(entry)
        return key in self._initial and key not in self._records

    # -- writing

    def write(self, kind: p4r.Update.Type.ValueType, entry: p4r.TableEntry) -> None:
        """INSERT, MODIFY or DELETE. Raises P4Error; the table is then as it was."""
        if entry.is_default_action:
            self._check_common(entry)
            self._modify_default(kind, entry)
            return
        key = self._key(entry)
        self._snapshot = None
        if kind == INSERT:
            self._check_common(entry)
            self._insert(key, entry)
        elif kind == MODIFY:
            self._check_common(entry)
            self._modify(key, entry)
        elif kind == DELETE:
            self._delete(key, entry)
        else:
            raise unknown_update(kind)

    def _every(self) -> list[Record]:
        if self._snapshot is None:
            self._snapshot = list(self._records.values())
        return self._snapshot

    def _key(self, entry: p4r.TableEntry) -> Key:
        priority = entry.priority
        if self._needs_priority:
            if priority <= 0:
                raise invalid(f"{self._what}: the priority {priority} is not positive; every entry needs one")
        elif priority:
            raise invalid(f"{self._what}: the priority {priority} is set, but the key needs none")
        return priority, self._keys.read(entry.match)

    def _check_common(self, entry: p4r.TableEntry) -> None:
        """What INSERT and MODIFY have in common, apart from key and action."""
        info, what = self.info, self._what
        if entry.is_const:
            raise invalid(f"{what}: is_const must not be set in a write")
        if entry.HasField("time_since_last_hit"):
            raise invalid(f"{what}: time_since_last_hit must not be set in a write")
        if entry.idle_timeout_ns and (not info.idle_timeout or entry.idle_timeout_ns < 0 or entry.is_default_action):
            reason = "is negative" if entry.idle_timeout_ns < 0 else "is set, but idle timeouts are not supported here"
            raise invalid(f"{what}: idle_timeout_ns {entry.idle_timeout_ns} {reason}")
        if len(entry.metadata) > METADATA_MAX:
            raise invalid(f"{what}: metadata of {len(entry.metadata)} bytes; at most {METADATA_MAX} are kept")
        self.direct.check(entry)

    def _insert(self, key: Key, entry: p4r.TableEntry) -> None:
        what = self._what
        if not self.info.fields:
            raise invalid(f"{what} has no key: only its default entry can be written")
        if self.info.const:
            raise denied(f"{what} is constant: its entries cannot be inserted")
        if not entry.HasField("action"):
            raise invalid(f"{what}: an entry needs an action")
        if key in self._records:
            raise exists(f"{what}: the entry already exists")
        target, action_set = self._target(entry.action)
        try:
            handle = self._device.table_add(
                self.info.name,
                dict(zip(self._names, key[1], strict=True)),
                target,
                priority=key[0],
                idle_timeout_ns=entry.idle_timeout_ns,
            )
        except DeviceError as error:
            if action_set is not None and self._profile is not None:
                self._profile.set_delete(action_set)
            if error.code == Code.RESOURCE_EXHAUSTED.name:
                raise exhausted(f"{what} is full: it holds {len(self._records)} entries") from error
            raise from_device(error, what) from error
        if entry.HasField("counter_data") or entry.HasField("meter_config"):
            self.direct.modify(handle, entry)
        self._records[key] = Record(handle, _body(entry), entry.action.action.action_id, action_set=action_set)
        if self.info.idle_timeout:
            self._by_handle[handle] = key

    def _modify(self, key: Key, entry: p4r.TableEntry) -> None:
        record = self._records.get(key)
        if record is None:
            raise not_found(f"{self._what}: there is no such entry")
        if record.const:
            if entry.HasField("action"):
                raise denied(f"{self._what} is constant: only direct resources of its entries can be modified")
        else:
            record = self._retarget(record, entry)
            self._records[key] = record
        self.direct.modify(record.handle, entry)

    def _retarget(self, record: Record, entry: p4r.TableEntry) -> Record:
        """The record with the action, timeout and metadata of ``entry``, the device brought in line."""
        old = p4r.TableEntry.FromString(record.body)
        action_set = record.action_set
        if entry.HasField("action"):
            target, action_set = self._target(entry.action)
        else:
            entry.action.CopyFrom(old.action)
            target = self._kept_target(record, old.action)
        try:
            self._device.table_modify(self.info.name, record.handle, target, idle_timeout_ns=entry.idle_timeout_ns)
        except DeviceError as error:
            if action_set is not None and action_set is not record.action_set and self._profile is not None:
                self._profile.set_delete(action_set)
            raise from_device(error, self._what) from error
        if record.action_set is not None and record.action_set is not action_set and self._profile is not None:
            self._profile.set_delete(record.action_set)
        return replace(record, body=_body(entry), action=entry.action.action.action_id, action_set=action_set)

    def _kept_target(self, record: Record, action: p4r.TableAction) -> Target:
        if record.action_set is not None:
            return Group(record.action_set.group)
        return self._target(action)[0]

    def _delete(self, key: Key, entry: p4r.TableEntry) -> None:
        if entry.is_const:
            raise invalid(f"{self._what}: is_const must not be set in a write")
        record = self._records.get(key)
        if self.info.const:
            raise denied(f"{self._what} is constant: its entries cannot be deleted")
        if record is None:
            raise not_found(f"{self._what}: there is no such entry")
        try:
            self._device.table_delete(self.info.name, record.handle)
        except DeviceError as error:
            raise from_device(error, self._what) from error
        del self._records[key]
        self._by_handle.pop(record.handle, None)
        if record.action_set is not None and self._profile is not None:
            self._profile.set_delete(record.action_set)

    # -- actions

    def _target(self, action: p4r.TableAction) -> tuple[Target, ActionSet | None]:
        """What the device is to do on a hit; makes the group of an action set."""
        kind = action.WhichOneof("type")
        if self._profile is None:
            if kind != "action":
                raise invalid(f"{self._what} takes an action, not {kind}")
            return self._call(action.action, p4i.ActionRef.DEFAULT_ONLY, "in entries"), None
        if kind == "action_profile_member_id":
            return Member(self._stored(action.action_profile_member_id, "member")), None
        if kind == "action_profile_group_id":
            return Group(self._stored(action.action_profile_group_id, "group")), None
        if kind == "action_profile_action_set":
            made = self._profile.set_create(action.action_profile_action_set, self._what)
            return Group(made.group), made
        raise invalid(f"{self._what} takes a member, a group or an action set of {self._profile.info.name}, not {kind}")

    def _stored(self, ident: int, kind: str) -> int:
        assert self._profile is not None
        store = self._profile.members if kind == "member" else self._profile.groups
        if ident not in store:
            raise not_found(f"{self._what}: {kind} {ident} of action profile {self._profile.info.name} does not exist")
        return store[ident].handle

    def _call(self, action: p4r.Action, refused: p4i.ActionRef.Scope.ValueType, where: str) -> Call:
        call = self._actions.read(action, self.info.actions, self._what)
        if self.info.actions[action.action_id] == refused:
            scope = p4i.ActionRef.Scope.Name(refused)
            raise denied(f"{self._what}: action {call.action} is {scope}: it cannot be used {where}")
        return call

    # -- the default entry

    def _default_record(self, action: p4r.Action | None) -> Record:
        entry = p4r.TableEntry(table_id=self.info.id, is_default_action=True)
        if action is not None:
            entry.action.action.CopyFrom(action)
        return Record(DEFAULT_HANDLE, entry.SerializeToString(), entry.action.action.action_id)

    def _modify_default(self, kind: p4r.Update.Type.ValueType, entry: p4r.TableEntry) -> None:
        what = f"{self._what}, default entry"
        if kind != MODIFY:
            raise invalid(f"{what}: it always exists; it can be modified, not inserted or deleted")
        if entry.match or entry.priority:
            raise invalid(f"{what}: match and priority must not be set")
        if self._profile is not None:
            raise invalid(f"{what}: it cannot be changed, as the table has action profile {self._profile.info.name}")
        if self.info.const_default:
            raise denied(f"{what}: it is constant")
        try:
            if not entry.HasField("action"):
                self._device.table_reset_default(self.info.name)
                self._default = self._default_record(self._initial_default)
            elif entry.action.WhichOneof("type") != "action":
                raise invalid(f"{what}: it takes an action, not {entry.action.WhichOneof('type')}")
            else:
                call = self._call(entry.action.action, p4i.ActionRef.TABLE_ONLY, "as default action")
                self._device.table_set_default(self.info.name, call)
                self._default = Record(DEFAULT_HANDLE, _body(entry), entry.action.action.action_id)
        except DeviceError as error:
            raise from_device(error, what) from error
        self.direct.modify(DEFAULT_HANDLE, entry)

    # -- reading

    def handle(self, entry: p4r.TableEntry) -> int:
        """The device's handle of an entry that is named by its key; NOT_FOUND where there is none."""
        if entry.is_default_action:
            return DEFAULT_HANDLE
        record = self._records.get(self._key(entry))
        if record is None:
            raise not_found(f"{self._what}: there is no such entry")
        return record.handle

    def keys(self, wanted: p4r.TableEntry) -> list[tuple[p4r.TableEntry, int]]:
        """Key and handle of the entries that a direct resource's read asks for; NOT_FOUND for one that is not there."""
        if wanted.is_default_action:
            return [(p4r.TableEntry(table_id=self.info.id, is_default_action=True), DEFAULT_HANDLE)]
        if wanted.match:
            self.handle(wanted)
        found = []
        for record in self._select(wanted):
            entry = p4r.TableEntry.FromString(record.body)
            key = p4r.TableEntry(table_id=self.info.id, match=entry.match, priority=entry.priority)
            found.append((key, record.handle))
        return found

    def read(self, wanted: p4r.TableEntry) -> Iterator[p4r.Entity]:
        """The entries that a TableEntry of a read selects."""
        if wanted.HasField("time_since_last_hit") and wanted.table_id:
            if not self.info.idle_timeout:
                raise invalid(f"{self._what}: time_since_last_hit is set, but the table has no idle timeout")
            if wanted.is_default_action:
                raise invalid(f"{self._what}: time_since_last_hit is set, but default entries have no idle timeout")
        if wanted.HasField("meter_counter_data"):
            raise unimplemented(f"{self._what}: {COLOUR_COUNTS}")
        records = [self._default] if wanted.is_default_action else self._select(wanted)
        direct = wanted if _has_direct(wanted) else None
        return (e for r in records if (e := self._entity(r, direct)) is not None)

    def _select(self, wanted: p4r.TableEntry) -> list[Record]:
        if not wanted.table_id:
            return self._every()
        if wanted.match:
            match = self._keys.read(wanted.match)
            if self._needs_priority and not wanted.priority:
                records = [record for (_, key), record in self._records.items() if key == match]
            else:
                exact = self._records.get((wanted.priority, match))
                records = [] if exact is None else [exact]
        elif wanted.priority:
            records = [record for (priority, _), record in self._records.items() if priority == wanted.priority]
        else:
            records = self._every()
        if wanted.action.action.action_id:
            records = [record for record in records if record.action == wanted.action.action.action_id]
        if wanted.metadata or wanted.controller_metadata:
            records = [record for record in records if _has_metadata(record, wanted)]
        return records

    def _entity(self, record: Record, wanted: p4r.TableEntry | None) -> p4r.Entity | None:
        """The record as an answer; None where direct resources are asked for and it is gone by now."""
        entity = p4r.Entity()
        entry = entity.table_entry
        entry.MergeFromString(record.body)
        return entity if wanted is None or self.direct.fill(entry, record.handle, wanted) else None

    def idle_entry(self, handle: int) -> p4r.TableEntry | None:
        """The entry of that handle, for an idle-timeout notification; None for one that is gone."""
        key = self._by_handle.get(handle)
        record = self._records.get(key) if key is not None else None  # the events' thread holds no lock
        if record is None:
            return None
        entry = p4r.TableEntry.FromString(record.body)
        entry.ClearField("action")
        return entry


class Tables:
    """All tables of a pipeline."""

    def __init__(self, index: P4Index, device: Device, actions: ActionReader, profiles: Profiles) -> None:
        self._infos = index.tables
        self._tables = {
            i: Table(info, device, actions, profiles[info.profile] if info.profile else None)
            for i, info in index.tables.items()
        }
        self.by_name = {table.info.name: table for table in self._tables.values()}

    def __iter__(self) -> Iterator[Table]:
        return iter(self._tables.values())

    def __contains__(self, ident: int) -> bool:
        return ident in self._tables

    def table(self, ident: int) -> Table:
        """The table of that id; INVALID_ARGUMENT where there is none."""
        table = self._tables.get(ident)
        return self._tables[lookup(self._infos, ident, "table").id] if table is None else table

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.TableEntry) -> None:
        self.table(message.table_id).write(kind, message)

    def read(self, message: p4r.TableEntry) -> Iterator[p4r.Entity]:
        tables = [self.table(message.table_id)] if message.table_id else list(self)
        found = [table.read(message) for table in tables]
        return (entity for entities in found for entity in entities)


def _has_direct(entry: p4r.TableEntry) -> bool:
    return (
        entry.HasField("counter_data")
        or entry.HasField("meter_config")
        or entry.HasField("meter_counter_data")
        or entry.HasField("time_since_last_hit")
    )


def _body(entry: p4r.TableEntry) -> bytes:
    """What is kept of a written entry."""
    if not _has_direct(entry):
        return entry.SerializeToString()
    kept = p4r.TableEntry()
    kept.CopyFrom(entry)
    kept.ClearField("counter_data")
    kept.ClearField("meter_config")
    return kept.SerializeToString()


def _has_metadata(record: Record, wanted: p4r.TableEntry) -> bool:
    entry = p4r.TableEntry.FromString(record.body)
    return wanted.metadata in (b"", entry.metadata) and wanted.controller_metadata in (0, entry.controller_metadata)
