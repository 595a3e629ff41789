"""Bugs of the engine that were found by comparing with BMv2, each with the least that showed it.

What is expected is what simple_switch_grpc 1.15.5 gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4r

from softswitch import bmv2_json
from softswitch.device import Device
from tests.differential.ours import Ours
from tests.p4runtime_client import INSERT, MODIFY, Program, exact, lpm, update


class Bench:
    """A device in virtual time with its program."""

    def __init__(self, folder: Path, name: str) -> None:
        self.program = Program.load(folder, name)
        self.ours = Ours(self.program, seed=0)

    def write(self, kind: p4r.Update.Type.ValueType, **entity: object) -> None:
        assert self.ours.write(update(kind, **entity)) == ""

    def send(self, port: int, packet: str) -> list[tuple[int, str]]:
        return [(out, data.hex()) for out, data in self.ours.send(port, bytes.fromhex(packet))]

    def member(self, profile: str, ident: int, action: str, *values: int) -> None:
        member = p4r.ActionProfileMember(action_profile_id=self.program.id(profile), member_id=ident)
        member.action.CopyFrom(self.program.action(action, *values))
        self.write(INSERT, action_profile_member=member)


@pytest.fixture
def profiles(programs: Path) -> Iterator[Bench]:
    bench = Bench(programs, "profiles")
    yield bench
    bench.ours.close()


def test_miss_in_a_table_without_default_action_is_no_hit(profiles: Bench) -> None:
    packet = "08ff05352cf38200000001000062"

    assert profiles.send(4, packet) == [(4, "00000000000000000000" + packet)]


def test_member_runs_in_each_table_that_shares_its_profile(profiles: Bench) -> None:
    profiles.member("shared_profile", 30, "drop")
    for table, match in (("exact_profile", exact(1, 8)), ("ternary_profile", None)):
        entry = profiles.program.entry(table, [match] if match else [], None, priority=0 if match else 1)
        entry.action.action_profile_member_id = 30
        profiles.write(INSERT, table_entry=entry)

    assert profiles.send(4, "08ff05352cf38200000001000062") == []
    assert profiles.send(4, "07ff05352cf38200000001000062") == []


def test_action_set_counts_every_copy_of_an_action_before_the_next_action(profiles: Bench) -> None:
    entry = profiles.program.entry("selected", [exact(1, 2)], None)
    for value, weight in ((1, 3), (6, 1)):
        action = profiles.program.action("set_selected", value)
        entry.action.action_profile_action_set.action_profile_actions.add(action=action, weight=weight)
    profiles.write(INSERT, table_entry=entry)

    packet = "0069020000000200000002000252"

    assert profiles.send(1, packet) == [(1, "00000000000600000001" + packet)]


def test_weighted_members_are_copied_in_the_order_of_their_ids(profiles: Bench) -> None:
    profiles.member("spread_selector", 29, "NoAction")
    profiles.member("spread_selector", 28, "set_spread", 0x9344)
    profiles.member("spread_selector", 24, "set_spread", 3)
    group = p4r.ActionProfileGroup(action_profile_id=profiles.program.id("spread_selector"), group_id=12, max_size=8)
    for member, weight in ((29, 1), (28, 2), (24, 2)):
        group.members.add(member_id=member, weight=weight)
    profiles.write(INSERT, action_profile_group=group)
    entry = profiles.program.entry("spread", [lpm(1, 0, 6)], None)
    entry.action.action_profile_group_id = 12
    profiles.write(INSERT, table_entry=entry)

    packet = "4431030000000560f2e7c5000304"

    assert profiles.send(1, packet) == [(1, "00000000000093440400" + packet)]


def test_argument_of_a_default_action_may_begin_with_a_zero_byte(programs: Path) -> None:
    bench = Bench(programs, "tables")
    entry = bench.program.entry("wide_match", [], bench.program.action("set_wide", 7), is_default_action=True)
    bench.write(MODIFY, table_entry=entry)

    ((port, data),) = bench.send(3, "69450dbd465e62adb8b43e6ea6d9f9dce31b73cf4653aa1000425313541c")
    bench.ours.close()

    assert (port, data[24:28]) == (3, "0007")


def test_mark_to_drop_marks_the_header_that_it_is_given(programs: Path) -> None:
    """p4c copies standard_metadata for an action with it as a parameter, and copies it back at the end."""
    tree = json.loads((programs / "l3_router.json").read_text())
    metadata = next(h for h in tree["headers"] if h["name"] == "standard_metadata")
    tree["headers"].append(metadata | {"name": "copy", "id": max(h["id"] for h in tree["headers"]) + 1})
    for action in tree["actions"]:
        for primitive in action["primitives"]:
            if primitive["op"] == "mark_to_drop":
                primitive["parameters"] = [{"type": "header", "value": "copy"}]

    with Device(bmv2_json.loads(json.dumps(tree).encode())) as device:
        (output,) = device.inject(1, bytes(14), 0)

    assert (output.port, output.data) == (0, bytes(14))
