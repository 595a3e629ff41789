"""ActionProfileMember, ActionProfileGroup and action sets (one-shot programming)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from finsy.proto import p4r

from softswitch.device import Device
from softswitch.device_types import DeviceError, GroupMember
from softswitch.p4runtime import bytestrings
from softswitch.p4runtime.actions import ActionReader
from softswitch.p4runtime.entity import DELETE, INSERT, MODIFY, lookup, selected, unknown_update
from softswitch.p4runtime.errors import exhausted, exists, from_device, invalid, not_found, unimplemented
from softswitch.p4runtime.p4info import P4Index, ProfileInfo
from softswitch.p4runtime.ports import port_number

MAX_GROUPS = 1 << 16
"""Most groups of one selector."""

WatchKind = p4r.ActionProfileGroup.Member | p4r.ActionProfileAction


@dataclass(frozen=True, slots=True)
class Stored:
    """A member or group: its handle on the device, and the message as it is read."""

    handle: int
    body: bytes


@dataclass(frozen=True, slots=True)
class ActionSet:
    """What a one-shot entry made on the device."""

    group: int
    members: tuple[int, ...]


class Profile:
    """One action profile or selector."""

    def __init__(self, info: ProfileInfo, device: Device, actions: ActionReader) -> None:
        self.info = info
        self.members: dict[int, Stored] = {}
        self.groups: dict[int, Stored] = {}
        self._sets = 0
        self._device = device
        self._actions = actions
        self._what = f"action profile {info.name}"

    # -- members

    def member_write(self, kind: p4r.Update.Type.ValueType, message: p4r.ActionProfileMember) -> None:
        ident, what = message.member_id, f"{self._what}: member {message.member_id}"
        stored = self.members.get(ident)
        if ident == 0:
            raise invalid(f"{self._what}: 0 is not a valid member id")
        if kind == DELETE:
            self._delete_member(stored, ident, what)
            return
        if kind not in (INSERT, MODIFY):
            raise unknown_update(kind)
        self._refuse_sets()
        if not message.HasField("action"):
            raise invalid(f"{what} needs an action")
        call = self._actions.read(message.action, self.info.actions, what)
        try:
            if kind == INSERT:
                if stored is not None:
                    raise exists(f"{what} already exists")
                handle = self._device.member_add(self.info.name, call)
            else:
                if stored is None:
                    raise not_found(f"{what} does not exist")
                handle = stored.handle
                self._device.member_modify(self.info.name, handle, call)
        except DeviceError as error:
            raise from_device(error, what) from error
        self.members[ident] = Stored(handle, message.SerializeToString())

    def _delete_member(self, stored: Stored | None, ident: int, what: str) -> None:
        if stored is None:
            raise not_found(f"{what} does not exist")
        try:
            self._device.member_delete(self.info.name, stored.handle)
        except DeviceError as error:
            raise from_device(error, what) from error
        del self.members[ident]

    # -- groups

    def group_write(self, kind: p4r.Update.Type.ValueType, message: p4r.ActionProfileGroup) -> None:
        ident, what = message.group_id, f"{self._what}: group {message.group_id}"
        if not self.info.selector:
            raise invalid(f"{self._what} has no selector, so it has no groups")
        if ident == 0:
            raise invalid(f"{self._what}: 0 is not a valid group id")
        stored = self.groups.get(ident)
        if kind == DELETE:
            self._delete_group(stored, ident, what)
        elif kind == INSERT:
            self._refuse_sets()
            if stored is not None:
                raise exists(f"{what} already exists")
            self._insert_group(message, what)
        elif kind == MODIFY:
            if stored is None:
                raise not_found(f"{what} does not exist")
            self._modify_group(stored, message, what)
        else:
            raise unknown_update(kind)

    def _insert_group(self, message: p4r.ActionProfileGroup, what: str) -> None:
        if not 0 <= message.max_size <= (self.info.max_group_size or message.max_size):
            raise invalid(f"{what}: max_size {message.max_size} is not in 0..{self.info.max_group_size}")
        if len(self.groups) >= MAX_GROUPS:
            raise exhausted(f"{self._what} has {MAX_GROUPS} groups, which is the limit")
        members = self._group_members(message, what)
        try:
            handle = self._device.group_add(self.info.name, members)
        except DeviceError as error:
            raise from_device(error, what) from error
        self.groups[message.group_id] = Stored(handle, message.SerializeToString())

    def _modify_group(self, stored: Stored, message: p4r.ActionProfileGroup, what: str) -> None:
        size = p4r.ActionProfileGroup.FromString(stored.body).max_size
        if message.max_size not in (0, size):  # 0: unset; simple_switch_grpc keeps the size, too
            raise invalid(f"{what}: max_size cannot change from {size} to {message.max_size}")
        message.max_size = size
        members = self._group_members(message, what)
        try:
            self._device.group_modify(self.info.name, stored.handle, members)
        except DeviceError as error:
            raise from_device(error, what) from error
        self.groups[message.group_id] = Stored(stored.handle, message.SerializeToString())

    def _delete_group(self, stored: Stored | None, ident: int, what: str) -> None:
        if stored is None:
            raise not_found(f"{what} does not exist")
        try:
            self._device.group_delete(self.info.name, stored.handle)
        except DeviceError as error:
            raise from_device(error, what) from error
        del self.groups[ident]

    def _limit(self, message: p4r.ActionProfileGroup) -> int:
        """Most members (or their weights) a group may have; 0: no limit."""
        return message.max_size or self.info.max_group_size

    def _group_members(self, message: p4r.ActionProfileGroup, what: str) -> list[GroupMember]:
        members: dict[int, GroupMember] = {}
        for part in message.members:
            who = f"{what}: member {part.member_id}"
            if part.member_id in members:
                raise invalid(f"{who} is there twice; give it a weight instead")
            stored = self.members.get(part.member_id)
            if stored is None:
                raise not_found(f"{who} does not exist")
            members[part.member_id] = self._weighted(stored.handle, part, who)
        size = self._size(message.members)
        limit = self._limit(message)
        if limit and size > limit:
            raise exhausted(f"{what}: {self._counted(size)} is more than its size {limit}")
        return [members[ident] for ident in sorted(members)]  # in the order in which BMv2 makes copies for weights

    # -- action sets

    def set_create(self, message: p4r.ActionProfileActionSet, what: str) -> ActionSet:
        """Make the members and the group of a one-shot entry. Raises P4Error and leaves nothing behind."""
        if not self.info.selector:
            raise invalid(f"{what}: {self._what} has no selector, so it takes no action sets")
        if self.members or self.groups:
            raise invalid(f"{what}: {self._what} is programmed with members and groups, so it takes no action sets")
        if message.action_selection_mode not in (0, p4r.ActionProfileActionSet.HASH) or message.size_semantics:
            raise unimplemented(f"{what}: action_selection_mode and size_semantics cannot be chosen per entry")
        parts = message.action_profile_actions
        limit = self.info.max_group_size
        size = self._size(parts)
        if limit and size > limit:
            raise invalid(f"{what}: {self._counted(size)} is more than the largest group, {limit}")
        calls = [self._actions.read(part.action, self.info.actions, what) for part in parts]
        shapes = [self._weighted(0, part, what) for part in parts]
        handles: list[int] = []
        members: list[GroupMember] = []
        try:
            for call, shape in zip(calls, shapes, strict=True):
                for _ in range(shape.weight):  # as BMv2, which has no weights
                    handles.append(self._device.member_add(self.info.name, call))
                    members.append(replace(shape, member=handles[-1], weight=1))
            group = self._device.group_add(self.info.name, members)
        except DeviceError as error:
            for handle in handles:
                self._device.member_delete(self.info.name, handle)
            raise from_device(error, what) from error
        self._sets += 1
        return ActionSet(group, tuple(handles))

    def set_delete(self, action_set: ActionSet) -> None:
        """Take back what ``set_create`` made; no entry uses it any more."""
        self._device.group_delete(self.info.name, action_set.group)
        for handle in action_set.members:
            self._device.member_delete(self.info.name, handle)
        self._sets -= 1

    # -- both

    def _refuse_sets(self) -> None:
        if self._sets:
            raise invalid(f"{self._what} is programmed with action sets, so it takes no members and groups")

    def _weighted(self, handle: int, part: WatchKind, who: str) -> GroupMember:
        if part.weight <= 0:
            raise invalid(f"{who}: the weight {part.weight} is not positive")
        largest = self.info.max_member_weight
        if largest and part.weight > largest:
            raise invalid(f"{who}: the weight {part.weight} is more than {largest}")
        return GroupMember(handle, part.weight, self._watch_port(part, who))

    def _watch_port(self, part: WatchKind, who: str) -> int | None:
        if part.watch_port:
            port = port_number(part.watch_port, f"{who}: watch_port")
            part.watch_port = bytestrings.encode(port)
        else:
            port = part.watch  # deprecated; 0 is none
            if port == 0:
                return None
        if not self._device.port_info(port).exists:
            known = ", ".join(map(str, self._device.ports())) or "none"
            raise invalid(f"{who}: there is no port {port} to watch; ports: {known}")
        return port

    def _size(self, parts: Sequence[WatchKind]) -> int:
        return len(parts) if self.info.by_members else sum(part.weight for part in parts)

    def _counted(self, size: int) -> str:
        return f"the number of members, {size}," if self.info.by_members else f"the sum of weights, {size},"


class Profiles:
    """All profiles of a pipeline."""

    def __init__(self, index: P4Index, device: Device, actions: ActionReader) -> None:
        self._infos = index.profiles
        self._profiles = {i: Profile(info, device, actions) for i, info in index.profiles.items()}

    def __getitem__(self, ident: int) -> Profile:
        return self._profiles[lookup(self._infos, ident, "action profile").id]

    def select(self, ident: int) -> list[Profile]:
        """The profile of that id, all for 0."""
        return [self._profiles[info.id] for info in selected(self._infos, ident, "action profile")]


class Members:
    """Action profile members."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.ActionProfileMember) -> None:
        self._profiles[message.action_profile_id].member_write(kind, message)

    def read(self, message: p4r.ActionProfileMember) -> Iterator[p4r.Entity]:
        found = _stored([p.members for p in self._profiles.select(message.action_profile_id)], message.member_id)
        return (p4r.Entity(action_profile_member=p4r.ActionProfileMember.FromString(s.body)) for s in found)


class Groups:
    """Action profile groups."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.ActionProfileGroup) -> None:
        self._profiles[message.action_profile_id].group_write(kind, message)

    def read(self, message: p4r.ActionProfileGroup) -> Iterator[p4r.Entity]:
        found = _stored([p.groups for p in self._profiles.select(message.action_profile_id)], message.group_id)
        return (p4r.Entity(action_profile_group=p4r.ActionProfileGroup.FromString(s.body)) for s in found)


def _stored(stores: Sequence[Mapping[int, Stored]], ident: int) -> list[Stored]:
    if ident:
        return [store[ident] for store in stores if ident in store]
    return [stored for store in stores for stored in store.values()]
