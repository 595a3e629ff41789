"""ActionProfileMember, ActionProfileGroup and one-shot action sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r

from softswitch.device_types import Call, Group, GroupMember, Member
from tests.p4runtime_client import DELETE, INSERT, MODIFY, Bench, Program, exact

FLOW = "ProfilesIngress.flow_selector"
SHARED = "ProfilesIngress.shared_profile"


@pytest.fixture
def bench(programs: Path) -> Iterator[Bench]:
    with Bench(Program.load(programs, "profiles")) as made:
        yield made


def _member(bench: Bench, ident: int, port: int) -> p4r.ActionProfileMember:
    return p4r.ActionProfileMember(
        action_profile_id=bench.program.id("flow_selector"),
        member_id=ident,
        action=bench.program.action("select_port", port),
    )


def _group(bench: Bench, ident: int, *members: tuple[int, int, int], max_size: int = 0) -> p4r.ActionProfileGroup:
    """Members are (id, weight, watched port or 0)."""
    group = p4r.ActionProfileGroup(
        action_profile_id=bench.program.id("flow_selector"), group_id=ident, max_size=max_size
    )
    for member, weight, port in members:
        added = group.members.add(member_id=member, weight=weight)
        if port:
            added.watch_port = bytes([port])
    return group


def _entry(bench: Bench, key: int, **target: Any) -> p4r.TableEntry:
    entry = bench.program.entry("selected", [exact(1, key)], None)
    entry.action.MergeFrom(p4r.TableAction(**target))
    return entry


def test_members_groups_and_entries_reach_the_device_and_are_read_back(bench: Bench) -> None:
    controller, device = bench.controller, bench.device
    members = [_member(bench, i, i) for i in (1, 2)]
    for member in members:
        controller.insert(action_profile_member=member)
    group = _group(bench, 7, (1, 1, 0), (2, 3, 2), max_size=8)
    controller.insert(action_profile_group=group)
    to_group, to_member = (
        _entry(bench, 1, action_profile_group_id=7),
        _entry(bench, 2, action_profile_member_id=2),
    )
    controller.insert(table_entry=to_group)
    controller.insert(table_entry=to_member)

    first, second = device.members[FLOW]
    assert device.members[FLOW] == {
        first: Call("ProfilesIngress.select_port", (1,)),
        second: Call("ProfilesIngress.select_port", (2,)),
    }
    ((handle, stored),) = device.groups[FLOW].items()
    assert stored == [GroupMember(first, 1, None), GroupMember(second, 3, 2)]
    targets = [entry.target for entry in device.tables["ProfilesIngress.selected"].values()]
    assert targets == [Group(handle), Member(second)]
    assert [
        e.action_profile_member for e in controller.read(action_profile_member=p4r.ActionProfileMember())
    ] == members
    assert [e.action_profile_group for e in controller.read(action_profile_group=p4r.ActionProfileGroup())] == [group]
    one = p4r.ActionProfileMember(action_profile_id=members[0].action_profile_id, member_id=2)
    assert [e.action_profile_member for e in controller.read(action_profile_member=one)] == [members[1]]
    assert controller.entries(p4r.TableEntry(table_id=to_group.table_id)) == [to_group, to_member]

    members[0].action.CopyFrom(bench.program.action("drop"))
    controller.modify(action_profile_member=members[0])
    assert device.members[FLOW][first] == Call("ProfilesIngress.drop")
    group = _group(bench, 7, (2, 1, 0), max_size=8)
    controller.modify(action_profile_group=group)
    assert device.groups[FLOW][handle] == [GroupMember(second, 1, None)]
    assert [e.action_profile_group for e in controller.read(action_profile_group=p4r.ActionProfileGroup())] == [group]


def test_what_is_in_use_cannot_be_deleted(bench: Bench) -> None:
    controller = bench.controller
    controller.insert(action_profile_member=_member(bench, 1, 1))
    controller.insert(action_profile_member=_member(bench, 2, 2))
    controller.insert(action_profile_group=_group(bench, 7, (1, 1, 0)))
    controller.insert(table_entry=_entry(bench, 1, action_profile_group_id=7))
    controller.insert(table_entry=_entry(bench, 2, action_profile_member_id=2))
    what = f"action profile {FLOW}"
    in_use = [
        (("action_profile_member", _member(bench, 1, 1)), f"{what}: member 1: in use"),
        (("action_profile_member", _member(bench, 2, 2)), f"{what}: member 2: in use"),
        (("action_profile_group", _group(bench, 7)), f"{what}: group 7: in use"),
    ]
    for (kind, message), text in in_use:
        assert bench.refused(DELETE, **{kind: message}) == ("FAILED_PRECONDITION", text)
    controller.delete(table_entry=_entry(bench, 1))
    controller.delete(table_entry=_entry(bench, 2))
    for kind, message in (in_use[2][0], in_use[0][0], in_use[1][0]):
        controller.delete(**{kind: message})
    assert bench.device.members[FLOW] == {} and bench.device.groups[FLOW] == {}


def test_members_are_checked(bench: Bench) -> None:
    member = _member(bench, 1, 1)
    what = f"action profile {FLOW}"
    assert bench.refused(MODIFY, action_profile_member=member) == ("NOT_FOUND", f"{what}: member 1 does not exist")
    assert bench.refused(DELETE, action_profile_member=member) == ("NOT_FOUND", f"{what}: member 1 does not exist")
    bench.controller.insert(action_profile_member=member)
    assert bench.refused(INSERT, action_profile_member=member) == (
        "ALREADY_EXISTS",
        f"{what}: member 1 already exists",
    )
    member.member_id = 0
    assert bench.refused(INSERT, action_profile_member=member) == (
        "INVALID_ARGUMENT",
        f"{what}: 0 is not a valid member id",
    )
    member.member_id = 2
    member.ClearField("action")
    assert bench.refused(INSERT, action_profile_member=member) == (
        "INVALID_ARGUMENT",
        f"{what}: member 2 needs an action",
    )
    member.action.CopyFrom(bench.program.action("set_first", 1))
    code, message = bench.refused(INSERT, action_profile_member=member)
    assert code == "INVALID_ARGUMENT"
    assert message.startswith(f"{what}: member 2: unknown action id {member.action.action_id}; valid: ")
    member.action_profile_id = 5
    assert bench.refused(INSERT, action_profile_member=member)[1].startswith("unknown action profile id 5; valid: ")


def test_a_full_profile_refuses_more_members(bench: Bench) -> None:
    size = 32
    members = [
        p4r.ActionProfileMember(
            action_profile_id=bench.program.id("shared_profile"),
            member_id=i + 1,
            action=bench.program.action("set_first", i),
        )
        for i in range(size + 1)
    ]
    for member in members[:size]:
        bench.controller.insert(action_profile_member=member)
    assert bench.refused(INSERT, action_profile_member=members[size]) == (
        "RESOURCE_EXHAUSTED",
        f"action profile {SHARED}: member 33: the profile is full",
    )


def test_groups_are_checked(bench: Bench) -> None:
    for i in (1, 2):
        bench.controller.insert(action_profile_member=_member(bench, i, i))
    what = f"action profile {FLOW}: group 7"

    def refused(group: p4r.ActionProfileGroup) -> tuple[str, str]:
        return bench.refused(INSERT, action_profile_group=group)

    assert refused(_group(bench, 7, (3, 1, 0))) == ("NOT_FOUND", f"{what}: member 3 does not exist")
    assert refused(_group(bench, 7, (1, 0, 0))) == (
        "INVALID_ARGUMENT",
        f"{what}: member 1: the weight 0 is not positive",
    )
    assert refused(_group(bench, 7, (1, 1, 0), (1, 1, 0))) == (
        "INVALID_ARGUMENT",
        f"{what}: member 1 is there twice; give it a weight instead",
    )
    assert refused(_group(bench, 7, (1, 1, 9))) == (
        "INVALID_ARGUMENT",
        f"{what}: member 1: there is no port 9 to watch; ports: 1, 2",
    )
    assert refused(_group(bench, 7, (1, 3, 0), (2, 2, 0), max_size=4)) == (
        "RESOURCE_EXHAUSTED",
        f"{what}: the sum of weights, 5, is more than its size 4",
    )
    assert refused(_group(bench, 0)) == ("INVALID_ARGUMENT", f"action profile {FLOW}: 0 is not a valid group id")
    bench.controller.insert(action_profile_group=_group(bench, 7, (1, 1, 0), max_size=4))
    assert refused(_group(bench, 7)) == ("ALREADY_EXISTS", f"{what} already exists")
    assert bench.refused(MODIFY, action_profile_group=_group(bench, 7, max_size=5)) == (
        "INVALID_ARGUMENT",
        f"{what}: max_size cannot change from 4 to 5",
    )
    assert bench.refused(MODIFY, action_profile_group=_group(bench, 8)) == (
        "NOT_FOUND",
        f"action profile {FLOW}: group 8 does not exist",
    )
    no_selector = _group(bench, 7)
    no_selector.action_profile_id = bench.program.id("shared_profile")
    assert refused(no_selector) == (
        "INVALID_ARGUMENT",
        f"action profile {SHARED} has no selector, so it has no groups",
    )


def test_entries_need_existing_members_and_the_right_kind_of_target(bench: Bench) -> None:
    what = "table ProfilesIngress.selected"
    assert bench.refused(INSERT, table_entry=_entry(bench, 1, action_profile_member_id=4)) == (
        "NOT_FOUND",
        f"{what}: member 4 of action profile {FLOW} does not exist",
    )
    assert bench.refused(INSERT, table_entry=_entry(bench, 1, action_profile_group_id=4)) == (
        "NOT_FOUND",
        f"{what}: group 4 of action profile {FLOW} does not exist",
    )
    direct = bench.program.entry("selected", [exact(1, 1)], bench.program.action("drop"))
    assert bench.refused(INSERT, table_entry=direct) == (
        "INVALID_ARGUMENT",
        f"{what} takes a member, a group or an action set of {FLOW}, not action",
    )
    default = p4r.TableEntry(table_id=direct.table_id, is_default_action=True)
    assert bench.refused(MODIFY, table_entry=default) == (
        "INVALID_ARGUMENT",
        f"{what}, default entry: it cannot be changed, as the table has action profile {FLOW}",
    )


def _one_shot(bench: Bench, key: int, *parts: tuple[int, int, bytes]) -> p4r.TableEntry:
    """Parts are (port, weight, watched port)."""
    entry = bench.program.entry("selected", [exact(1, key)], None)
    for port, weight, watch in parts:
        added = entry.action.action_profile_action_set.action_profile_actions.add(weight=weight)
        added.action.CopyFrom(bench.program.action("select_port", port))
        if watch:
            added.watch_port = watch
    return entry


def test_one_shot_entries_make_and_remove_their_members_and_group(bench: Bench) -> None:
    controller, device = bench.controller, bench.device
    entry = _one_shot(bench, 1, (1, 1, b""), (2, 2, b"\2"), (2, 1, b""))
    controller.insert(table_entry=entry)
    assert [call.args for call in device.members[FLOW].values()] == [(1,), (2,), (2,), (2,)]
    handles = list(device.members[FLOW])
    ((_, group),) = device.groups[FLOW].items()
    assert group == [GroupMember(h, 1, watched) for h, watched in zip(handles, (None, 2, 2, None), strict=True)]
    assert controller.entries(p4r.TableEntry(table_id=entry.table_id)) == [entry]
    assert controller.read(action_profile_member=p4r.ActionProfileMember()) == []

    changed = _one_shot(bench, 1, (9, 1, b""))
    controller.modify(table_entry=changed)
    assert [call.args for call in device.members[FLOW].values()] == [(9,)]
    assert controller.entries(p4r.TableEntry(table_id=entry.table_id)) == [changed]
    controller.delete(table_entry=changed)
    assert device.members[FLOW] == {} and device.groups[FLOW] == {}


def test_one_shots_and_members_do_not_mix(bench: Bench) -> None:
    entry = _one_shot(bench, 1, (1, 1, b""))
    bench.controller.insert(table_entry=entry)
    assert bench.refused(INSERT, action_profile_member=_member(bench, 1, 1)) == (
        "INVALID_ARGUMENT",
        f"action profile {FLOW} is programmed with action sets, so it takes no members and groups",
    )
    bench.controller.delete(table_entry=entry)
    bench.controller.insert(action_profile_member=_member(bench, 1, 1))
    assert bench.refused(INSERT, table_entry=entry) == (
        "INVALID_ARGUMENT",
        f"table ProfilesIngress.selected: action profile {FLOW} is programmed with members and groups, so it takes no "
        "action sets",
    )


def test_a_refused_one_shot_leaves_nothing_behind(bench: Bench) -> None:
    entry = _one_shot(bench, 1, (1, 1, b""), (2, 0, b""))
    assert bench.refused(INSERT, table_entry=entry) == (
        "INVALID_ARGUMENT",
        "table ProfilesIngress.selected: the weight 0 is not positive",
    )
    too_many = _one_shot(bench, 1, *[(i, 1, b"") for i in range(65)])
    assert bench.refused(INSERT, table_entry=too_many)[0] == "RESOURCE_EXHAUSTED"
    assert bench.device.members[FLOW] == {} and bench.device.groups[FLOW] == {}
