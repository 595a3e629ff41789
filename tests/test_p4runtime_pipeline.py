"""SetForwardingPipelineConfig and GetForwardingPipelineConfig."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4d, p4i, p4r

from softswitch.device_types import Call, Member
from tests.p4runtime_client import INSERT, Bench, Controller, Failure, Program, exact, lpm, ternary, update


@pytest.fixture
def bench(programs: Path) -> Iterator[Bench]:
    with Bench(Program.load(programs, "l3_router"), loaded=False) as made:
        made.controller.arbitrate()
        yield made


def _route(program: Program, nexthop: int = 1) -> p4r.TableEntry:
    return program.entry("route_ipv4", [lpm(1, 1 << 24, 8)], program.action("route_via", nexthop))


def test_commit_makes_a_device_and_clears_what_was_there(bench: Bench) -> None:
    controller, config = bench.controller, bench.program.config(cookie=0)
    controller.set_pipeline(config)
    controller.insert(table_entry=_route(bench.program))
    controller.set_pipeline(config)
    assert len(bench.target.devices) == 2 and bench.target.devices[0].closed
    assert controller.entries(p4r.TableEntry()) == []
    controller.insert(table_entry=_route(bench.program))
    assert len(bench.device.tables["RouterIngress.route_ipv4"]) == 1


@pytest.mark.parametrize(
    ("kind", "p4info", "device_config"),
    [
        ("ALL", True, True),
        ("COOKIE_ONLY", False, False),
        ("P4INFO_AND_COOKIE", True, False),
        ("DEVICE_CONFIG_AND_COOKIE", False, True),
    ],
)
def test_the_config_is_read_back_in_parts(bench: Bench, kind: str, p4info: bool, device_config: bool) -> None:
    assert bench.controller.get_pipeline(kind) == p4r.GetForwardingPipelineConfigResponse()
    config = bench.program.config(cookie=77)
    bench.controller.set_pipeline(config)
    expected = p4r.ForwardingPipelineConfig(cookie=config.cookie)
    if p4info:
        expected.p4info.CopyFrom(config.p4info)
    if device_config:
        expected.p4_device_config = config.p4_device_config
    answer = bench.controller.get_pipeline(kind)
    assert answer.config == expected
    bench.controller.set_pipeline(bench.program.config())
    assert not bench.controller.get_pipeline(kind).config.HasField("cookie")


def test_verify_changes_nothing(bench: Bench) -> None:
    bench.controller.set_pipeline(bench.program.config(), "VERIFY")
    assert bench.target.devices == []
    assert bench.controller.get_pipeline() == p4r.GetForwardingPipelineConfigResponse()


def test_a_saved_config_takes_writes_and_becomes_live_with_commit(bench: Bench, programs: Path) -> None:
    controller = bench.controller
    controller.set_pipeline(bench.program.config(cookie=1))
    controller.insert(table_entry=_route(bench.program))
    live = bench.device
    tables = Program.load(programs, "tables")
    controller.set_pipeline(tables.config(cookie=2), "VERIFY_AND_SAVE")
    assert controller.get_pipeline("COOKIE_ONLY").config.cookie.cookie == 2
    entry = tables.entry("exact_match", [exact(1, 1), exact(2, 1)], tables.action("drop"))
    controller.insert(table_entry=entry)
    controller.send(packet=p4r.PacketOut(payload=b"p", metadata=[p4r.PacketMetadata(metadata_id=1, value=b"\1")]))
    assert controller.arbitrate().status.code == 0
    assert bench.device is live and live.sent == [b"\0\x80p"], "packets go to the live program"
    assert len(live.tables["RouterIngress.route_ipv4"]) == 1

    controller.set_pipeline(None, "COMMIT")
    assert live.closed and len(bench.device.tables["TablesIngress.exact_match"]) == 1
    assert controller.entries(p4r.TableEntry(table_id=entry.table_id)) == [entry]
    with pytest.raises(Failure) as failure:
        controller.set_pipeline(None, "COMMIT")
    assert failure.value == Failure("NOT_FOUND", "there is no saved config; VERIFY_AND_SAVE comes first")


def test_reconcile_keeps_all_state(bench: Bench, programs: Path) -> None:
    program = Program.load(programs, "stateful")
    controller = bench.controller
    controller.set_pipeline(program.config())
    counts = p4r.CounterData(packet_count=3, byte_count=4)
    meter = p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
    entities = [
        p4r.Entity(table_entry=program.entry("counted", [exact(1, 5)], program.action("pass_entry"), metadata=b"x")),
        p4r.Entity(
            counter_entry=p4r.CounterEntry(counter_id=program.id("both_counter"), index=p4r.Index(index=2), data=counts)
        ),
        p4r.Entity(
            meter_entry=p4r.MeterEntry(meter_id=program.id("byte_meter"), index=p4r.Index(index=2), config=meter)
        ),
        p4r.Entity(
            register_entry=p4r.RegisterEntry(
                register_id=program.id("word_register"), index=p4r.Index(index=2), data=p4d.P4Data(bitstring=b"\7")
            )
        ),
    ]
    controller.write(update(INSERT, table_entry=entities[0].table_entry))
    controller.modify(
        direct_counter_entry=p4r.DirectCounterEntry(
            table_entry=p4r.TableEntry(table_id=entities[0].table_entry.table_id, match=[exact(1, 5)]), data=counts
        )
    )
    for entity in entities[1:]:
        controller.write(p4r.Update(type=p4r.Update.MODIFY, entity=entity))
    default = program.entry("counted", [], program.action("count_entry", 9), is_default_action=True)
    controller.modify(table_entry=default)
    old = bench.device

    controller.set_pipeline(program.config(cookie=5), "RECONCILE_AND_COMMIT")
    new = bench.device
    assert old.closed and new is not old
    assert (new.counters, new.meters, new.registers) == (old.counters, old.meters, old.registers)
    (entry,) = new.tables["StatefulIngress.counted"].values()
    assert (entry.target, entry.packets, entry.bytes) == (Call("StatefulIngress.pass_entry"), 3, 4)
    assert new.defaults["StatefulIngress.counted"].target == Call("StatefulIngress.count_entry", (9,))
    assert controller.entries(p4r.TableEntry(table_id=entities[0].table_entry.table_id)) == [entities[0].table_entry]


def test_entries_of_the_program_can_be_changed_and_stay_so_when_reconciled(bench: Bench, programs: Path) -> None:
    program = Program.load(programs, "initial_entries")
    controller, action = bench.controller, program.action
    controller.set_pipeline(program.config())
    initial = [
        program.entry("by_priority", [ternary(1, 0x12, 0xFF)], action("set", 2), priority=3),
        program.entry("by_priority", [ternary(1, 0x10, 0xF0)], action("set", 1), priority=2),
        program.entry("by_priority", [], action("set", 3), priority=1),
        program.entry("exactly", [exact(1, 0x12)], action("add", 16)),
        program.entry("exactly", [exact(1, 0x34)], action("add", 32)),
    ]
    assert controller.entries(p4r.TableEntry()) == initial
    controller.delete(table_entry=initial[1])
    controller.delete(table_entry=initial[3])
    initial[0].action.action.CopyFrom(action("add", 7))
    controller.modify(table_entry=initial[0])
    changed = [initial[0], initial[2], initial[4]]
    assert controller.entries(p4r.TableEntry()) == changed
    controller.set_pipeline(program.config(), "RECONCILE_AND_COMMIT")
    assert controller.entries(p4r.TableEntry()) == changed
    targets = [e.target for t in bench.device.tables.values() for e in t.values()]
    assert targets == [
        Call("InitialIngress.add", (7,)),
        Call("InitialIngress.set", (3,)),
        Call("InitialIngress.add", (32,)),
    ]


def test_reconcile_keeps_profiles_and_what_points_to_them(bench: Bench, programs: Path) -> None:
    program = Program.load(programs, "profiles")
    controller = bench.controller
    controller.set_pipeline(program.config())
    member = p4r.ActionProfileMember(
        action_profile_id=program.id("flow_selector"), member_id=4, action=program.action("select_port", 3)
    )
    group = p4r.ActionProfileGroup(action_profile_id=member.action_profile_id, group_id=6)
    group.members.add(member_id=4, weight=1)
    entry = program.entry("selected", [exact(1, 1)], None)
    entry.action.action_profile_member_id = 4
    controller.insert(action_profile_member=member)
    controller.insert(action_profile_group=group)
    controller.insert(table_entry=entry)
    controller.set_pipeline(program.config(), "RECONCILE_AND_COMMIT")
    (handle,) = bench.device.members["ProfilesIngress.flow_selector"]
    (on_device,) = bench.device.tables["ProfilesIngress.selected"].values()
    assert on_device.target == Member(handle)
    assert [e.action_profile_group for e in controller.read(action_profile_group=p4r.ActionProfileGroup())] == [group]


def test_reconcile_refuses_what_cannot_be_kept(bench: Bench, programs: Path) -> None:
    controller = bench.controller
    controller.set_pipeline(bench.program.config(cookie=1))
    controller.insert(table_entry=_route(bench.program))
    with pytest.raises(Failure) as failure:
        controller.set_pipeline(Program.load(programs, "tables").config(), "RECONCILE_AND_COMMIT")
    assert failure.value.code == "INVALID_ARGUMENT"
    assert failure.value.message.startswith(
        f"the forwarding state cannot be preserved: unknown table id {_route(bench.program).table_id}; valid: "
    )
    assert controller.entries(p4r.TableEntry()) == [_route(bench.program)]
    assert controller.get_pipeline("COOKIE_ONLY").config.cookie.cookie == 1


def _changed(
    config: p4r.ForwardingPipelineConfig, p4info: p4i.P4Info | None = None, json: bytes | None = None
) -> p4r.ForwardingPipelineConfig:
    changed = p4r.ForwardingPipelineConfig()
    changed.CopyFrom(config)
    if p4info is not None:
        changed.p4info.CopyFrom(p4info)
    if json is not None:
        changed.p4_device_config = json
    return changed


def test_bad_configs_are_refused_and_change_nothing(bench: Bench) -> None:
    good = bench.program.config(cookie=3)
    bench.controller.set_pipeline(good)
    duplicate, strings, fewer, narrow = (p4i.P4Info() for _ in range(4))
    for info in (duplicate, strings, fewer, narrow):
        info.CopyFrom(good.p4info)
    duplicate.tables[1].preamble.id = duplicate.tables[0].preamble.id
    strings.type_info.new_types["name_t"].translated_type.sdn_string.SetInParent()
    strings.tables[0].match_fields[0].type_name.name = "name_t"
    del fewer.tables[0].match_fields[0]
    narrow.tables[0].match_fields[0].bitwidth = -1
    first, second = (t.preamble.name for t in good.p4info.tables[:2])
    field = good.p4info.tables[0].match_fields[0].name
    cases = [
        (_changed(good, json=b""), "p4_device_config is empty; it must be the BMv2 JSON that p4c-bm2-ss writes"),
        (
            _changed(good, p4info=duplicate),
            f"tables: {second} has the id {duplicate.tables[0].preamble.id}, as {first} has",
        ),
        (
            _changed(good, p4info=strings),
            f"match field {field} has type name_t, which is translated to strings (@p4runtime_translation with "
            "string): only translation to bit<W> is supported",
        ),
        (_changed(good, p4info=narrow), f"match field {field} has the width -1; widths are 1 bit and more"),
        (
            _changed(good, p4info=fewer),
            f"table {first} has {len(fewer.tables[0].match_fields)} match fields in P4Info, "
            f"{len(good.p4info.tables[0].match_fields)} in the program",
        ),
    ]
    for config, message in cases:
        for action in ("VERIFY", "VERIFY_AND_SAVE", "VERIFY_AND_COMMIT", "RECONCILE_AND_COMMIT"):
            with pytest.raises(Failure) as failure:
                bench.controller.set_pipeline(config, action)
            assert failure.value == Failure("INVALID_ARGUMENT", message)
    with pytest.raises(Failure) as failure:
        bench.controller.set_pipeline(_changed(good, json=b"{"))
    assert failure.value.code == "INVALID_ARGUMENT"
    assert failure.value.message.startswith("p4_device_config: ")
    assert bench.controller.get_pipeline().config == good
    assert len(bench.target.devices) == 1


def test_a_program_that_the_target_cannot_run_is_refused(bench: Bench) -> None:
    bench.target.refuse = "no C compiler"
    with pytest.raises(Failure) as failure:
        bench.controller.set_pipeline(bench.program.config())
    assert failure.value == Failure("INVALID_ARGUMENT", "the program cannot be realized: no C compiler")


def test_actions_need_or_refuse_a_config(bench: Bench) -> None:
    cases = [
        (
            "UNSPECIFIED",
            None,
            "unknown action 0; valid: VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT, COMMIT, RECONCILE_AND_COMMIT",
        ),
        ("VERIFY_AND_COMMIT", None, "VERIFY_AND_COMMIT needs a config"),
        ("COMMIT", bench.program.config(), "COMMIT takes no config: it commits the one that VERIFY_AND_SAVE saved"),
    ]
    for action, config, message in cases:
        with pytest.raises(Failure) as failure:
            bench.controller.set_pipeline(config, action)
        assert failure.value == Failure("INVALID_ARGUMENT", message)


def test_a_program_from_files_is_there_from_the_start(bench: Bench) -> None:
    bench.server.load(bench.program.p4info, bench.program.json)
    config = bench.controller.get_pipeline().config
    assert config == bench.program.config()
    with Controller(bench.port, election_id=None) as reader:
        assert reader.entries(p4r.TableEntry()) == []


def test_capabilities_tell_the_version(bench: Bench) -> None:
    answer = bench.controller.stub.Capabilities(p4r.CapabilitiesRequest())
    assert answer.p4runtime_api_version == "1.4.1"


def test_the_p4info_of_another_program_is_refused(bench: Bench, programs: Path) -> None:
    config = bench.program.config()
    config.p4info.CopyFrom(Program.load(programs, "stateful").p4info)
    with pytest.raises(Failure) as failure:
        bench.controller.set_pipeline(config)
    assert failure.value == Failure(
        "INVALID_ARGUMENT",
        "the P4Info is of another program; in P4Info alone: table StatefulIngress.counted, "
        "table StatefulIngress.policed, action NoAction, action StatefulIngress.registers.read_all, "
        "action StatefulIngress.registers.write_all, action StatefulIngress.registers.add_all, "
        "action StatefulIngress.count_entry, action StatefulIngress.pass_entry and 19 more; in the program alone: "
        "table RouterIngress.acl, table RouterIngress.route_ipv4, table RouterIngress.route_ipv6, "
        "table RouterIngress.neighbour, table RouterIngress.router_port, action RouterIngress.acl_deny, "
        "action RouterIngress.acl_permit, action RouterIngress.acl_punt and 6 more",
    )
    assert bench.target.devices == []


@pytest.mark.parametrize(
    ("field", "kind"), [("tables", "table"), ("actions", "action"), ("direct_counters", "counter")]
)
def test_a_p4info_with_one_other_name_is_refused(bench: Bench, field: str, kind: str) -> None:
    config = bench.program.config()
    described = getattr(config.p4info, field)[0].preamble
    old, described.name = described.name, f"{described.name}_v2"
    with pytest.raises(Failure) as failure:
        bench.controller.set_pipeline(config)
    assert failure.value.message == (
        f"the P4Info is of another program; in P4Info alone: {kind} {old}_v2; in the program alone: {kind} {old}"
    )


def test_digests_without_a_named_type_have_other_names_in_p4info_and_are_accepted(bench: Bench, programs: Path) -> None:
    """What p4c makes of ``digest(1, {a, b})``: digest_0 in P4Info, tuple_1 in the program."""
    config = Program.load(programs, "digests").config()
    digest = config.p4info.digests[0]
    digest.preamble.name = digest.preamble.alias = "digest_0"
    digest.type_spec.tuple.members.add().bitstring.bit.bitwidth = 8
    bench.controller.set_pipeline(config)
    with pytest.raises(Failure) as failure:
        bench.controller.insert(digest_entry=p4r.DigestEntry(digest_id=digest.preamble.id))
    assert failure.value.details[0][1].startswith(f"unknown digest id {digest.preamble.id}; ")


def test_a_p4info_may_describe_what_the_compiler_removed(bench: Bench) -> None:
    config = bench.program.config()
    removed = config.p4info.tables.add()
    removed.CopyFrom(config.p4info.tables[0])
    removed.preamble.id, removed.preamble.name = removed.preamble.id + 1000, "RouterIngress.unreachable"
    bench.controller.set_pipeline(config)
    with pytest.raises(Failure) as failure:
        bench.controller.insert(table_entry=p4r.TableEntry(table_id=removed.preamble.id))
    assert failure.value.details[0][1].startswith(f"unknown table id {removed.preamble.id}; ")
