"""Plans: what every device holds, in every state of health that can be drawn."""

from __future__ import annotations

import functools
from pathlib import Path

import finsy as fy
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from controller.codec import check
from controller.entities import TableEntry
from controller.groups import Forwarding
from controller.intent import load_intent
from controller.model import Intent, Role
from controller.paths import FabricView, Use
from controller.plan import Planner, plan
from controller.programs import program_for

EXAMPLES = Path(__file__).resolve().parent.parent / "controller/examples"
INTENTS = [load_intent(EXAMPLES / name) for name in ("single-tier.yaml", "leaf-spine.yaml")]


def views_of(intent: Intent) -> st.SearchStrategy[FabricView]:
    """Any state of the intent's links, switches and planes."""
    links = st.sampled_from([link.name for link in intent.links])
    switches = [device.name for device in intent.devices if device.role is not Role.NIC]
    names = st.one_of(links, st.sampled_from([*switches, *intent.planes]))
    return st.builds(
        FabricView,
        down=st.frozensets(links, max_size=4),
        gray=st.frozensets(links, max_size=4),
        dead=st.frozensets(st.sampled_from(switches), max_size=2),
        drained=st.frozensets(names, max_size=4),
    )


@st.composite
def views(draw: st.DrawFn) -> tuple[Intent, FabricView]:
    """An intent, and any state of it."""
    intent = draw(st.sampled_from(INTENTS))
    return intent, draw(views_of(intent))


@functools.lru_cache(maxsize=16)
def planned(intent: Intent, view: FabricView) -> dict[str, Forwarding]:
    return Planner(intent).forwarding(view)


def walks(intent: Intent, view: FabricView, start: str, host: str) -> list[list[str]]:
    """Every way that the groups allow from a device to a host: names of links, empty for delivery on the spot."""
    forwarding = planned(intent, view)
    port_of = {
        device.name: {link.at(device.name).port: link for link in intent.links_of[device.name]}
        for device in intent.devices
    }
    found: list[list[str]] = []

    def of_nic(one: Forwarding, device: str) -> frozenset[int]:
        """What the NIC's data plane does: of the ports left it takes those whose link is well, or else any."""
        avoided = {host.name: ports for host, ports in one.avoided}.get(host, frozenset())
        left = one.groups[0].usable - avoided
        well = frozenset(port for port in left if port_of[device][port].name not in view.gray)
        return well or left

    def walk(device: str, path: list[str]) -> None:
        assert len(path) <= 6, f"a loop: {path}"
        groups = {group.group_id: group for group in forwarding[device].groups}
        if intent.device_by_name[device].role is Role.NIC:
            if path:
                assert any(one.name == host for one in intent.hosts_of[device])
                found.append(path)
                return
            ports = of_nic(forwarding[device], device)
        else:
            (number,) = [number for one, number in forwarding[device].routes if one.name == host]
            ports = groups[number].usable
        for port in ports:
            link = port_of[device].get(port)
            if link is not None:
                walk(link.other(device).device, [*path, link.name])

    walk(start, [])
    return found


def test_a_nic_uses_every_plane_for_every_other_host() -> None:
    intent, view = INTENTS[1], FabricView()
    planes = {intent.link_by_name[path[0]].plane for path in walks(intent, view, "nic1", "h4")}
    assert planes == {"plane1", "plane2"}
    assert len(walks(intent, view, "nic1", "h4")) == 4  # two spines in each plane
    assert len(walks(intent, view, "nic1", "h2")) == 2  # the same leaf: no spine


@settings(max_examples=300, deadline=None)
@given(views())
def test_no_walk_loops_or_takes_a_dead_link_and_none_ends_in_the_middle(drawn: tuple[Intent, FabricView]) -> None:
    intent, view = drawn
    for device in intent.devices:
        if device.role is not Role.NIC:
            continue
        for host in intent.hosts:
            for path in walks(intent, view, device.name, host.name):
                assert all(view.use(intent.link_by_name[name]) is not Use.DOWN for name in path)


@settings(max_examples=300, deadline=None)
@given(views())
def test_every_host_is_reached_over_every_plane_that_is_wholly_well(drawn: tuple[Intent, FabricView]) -> None:
    intent, view = drawn
    well = {
        plane
        for plane in intent.planes
        if all(view.use(link) is Use.GOOD for link in intent.links if link.plane == plane)
    }
    for source in intent.hosts:
        for host in intent.hosts:
            if source != host:
                paths = walks(intent, view, source.attached.device, host.name)
                assert {intent.link_by_name[path[0]].plane for path in paths} >= well


@settings(max_examples=300, deadline=None)
@given(views())
def test_worse_links_carry_traffic_only_where_nothing_better_leads(drawn: tuple[Intent, FabricView]) -> None:
    """Drained is better than down, gray better than drained: the worst link of each way is as good as it can be."""
    intent, view = drawn
    for source in intent.hosts:
        for host in intent.hosts:
            if source != host:
                used = walks(intent, view, source.attached.device, host.name)
                possible = walks(intent, FabricView(), source.attached.device, host.name)
                best = min(worst(intent, view, path) for path in possible)
                assert {worst(intent, view, path) for path in used} <= ({best} - {Use.DOWN})


def worst(intent: Intent, view: FabricView, path: list[str]) -> Use:
    return max(view.use(intent.link_by_name[name]) for name in path)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(INTENTS).flatmap(lambda intent: st.tuples(st.just(intent), st.lists(views_of(intent), max_size=6)))
)
def test_a_plan_is_the_same_whatever_was_planned_before(drawn: tuple[Intent, list[FabricView]]) -> None:
    intent, changes = drawn
    planner = Planner(intent)
    for view in changes:
        assert planner.plan(view) == plan(intent, view)
    assert planner.plan(FabricView()) == plan(intent)


def test_a_change_makes_only_the_entities_that_are_new() -> None:
    """What is the same before and after is the same object."""
    planner = Planner(INTENTS[1])
    before = planner.plan(FabricView())
    after = planner.plan(FabricView(down=frozenset({"nic3:2-p1-leaf2:1"})))
    planned = {name for name in after if after[name] is not before[name]}
    assert planned == {"nic1", "nic2", "nic4", "nic3", "p1-leaf2"}, "others, and both ends"
    made = {name: {id(entity) for entity in entities} for name, entities in before.items()}
    remade = [e for name in after for e in after[name] if e in before[name] and id(e) not in made[name]]
    assert {entity.table for entity in remade if isinstance(entity, TableEntry)} <= {"group", "drain"}


@settings(max_examples=100, deadline=None)
@given(views())
def test_no_group_uses_a_dead_link_and_every_route_has_its_group(drawn: tuple[Intent, FabricView]) -> None:
    intent, view = drawn
    dead = {
        device.name: {link.at(device.name).port for link in intent.links_of[device.name] if view.use(link) is Use.DOWN}
        for device in intent.devices
    }
    for name, one in Planner(intent).forwarding(view).items():
        for group in one.groups:
            assert not group.usable & (dead[name] | one.drained)
            assert group.ports - group.usable <= dead[name] | one.drained, "the data plane leaves these out by itself"
    for name, entities in plan(intent, view).items():
        entries = [entity for entity in entities if isinstance(entity, TableEntry)]
        assert len({entity.key for entity in entries}) == len(entries)
        groups = {str(dict(one.match)["group_id"]): dict(one.params) for one in entries if one.table == "group"}
        for port in dead[name]:  # it may stay in a group only where the data plane leaves it out by itself
            assert all(params["watched_ports"] >> port & 1 for params in groups.values() if params["ports"] >> port & 1)
        routes = [str(dict(one.params)["group_id"]) for one in entries if one.table.startswith("route_")]
        if intent.device_by_name[name].role is Role.NIC:
            assert (routes, sorted(groups)) == ([], ["1", "2"])
        else:
            assert set(routes) == groups.keys()


def test_a_failed_link_changes_one_group_on_each_device_that_cannot_see_it_and_no_route() -> None:
    intent = INTENTS[1]
    before, after = plan(intent), plan(intent, FabricView(down=frozenset({"p1-leaf1:3-p1-spine1:1"})))
    changed = {name: after[name] - before[name] for name in before if after[name] != before[name]}
    assert {name: [str(entity) for entity in entities] for name, entities in changed.items()} == {
        "p1-leaf2": ["group[group_id=64] -> set_members(ports=16, watched_ports=16)"],
    }


def changes(view: FabricView) -> dict[str, list[str]]:
    """What a view changes in the leaf-spine fabric, by device."""
    before, after = plan(INTENTS[1]), plan(INTENTS[1], view)
    return {name: sorted(map(str, after[name] - before[name])) for name in before if after[name] != before[name]}


def test_draining_a_plane_is_one_write_on_each_nic_and_moves_no_other_flow() -> None:
    assert changes(FabricView(drained=frozenset({"plane1"}))) == {
        f"nic{i}": ["drain[default] -> drain_ports(ports=4)"] for i in (1, 2, 3, 4)
    }


def test_draining_a_spine_is_one_write_on_each_of_its_leaves() -> None:
    assert changes(FabricView(drained=frozenset({"p1-spine2"}))) == {
        f"p1-leaf{i}": ["drain[default] -> drain_ports(ports=16)"] for i in (1, 2)
    }


def test_the_last_way_is_used_although_it_is_drained() -> None:
    assert changes(FabricView(drained=frozenset({"plane1", "plane2"}))) == {}


def test_a_plane_that_does_not_reach_a_host_is_avoided_for_that_host_alone() -> None:
    assert changes(FabricView(down=frozenset({"nic3:2-p1-leaf2:1"}))) == {
        nic: [
            "reach_ipv4[dst_addr=0xa000003/32] -> avoid_ports(ports=4)",
            "reach_ipv6[dst_addr=0xfd000000000000000000000000000003/128] -> avoid_ports(ports=4)",
        ]
        for nic in ("nic1", "nic2", "nic4")
    }


def test_a_plane_that_fails_as_a_whole_needs_no_write_at_all() -> None:
    """Every NIC sees its own link down."""
    down = frozenset(link.name for link in INTENTS[0].links if link.plane == "plane1")
    assert plan(INTENTS[0], FabricView(down=down)) == plan(INTENTS[0])


def test_a_plane_that_leads_nowhere_from_a_nic_is_one_write() -> None:
    cut = frozenset({"nic2:2-p1:2"})
    after = plan(INTENTS[0], FabricView(down=cut))
    (change,) = after["nic1"] - plan(INTENTS[0])["nic1"]
    assert str(change) == "drain[default] -> drain_ports(ports=4)"


def of_table(name: str, table: str) -> list[str]:
    """What is planned for a table of a device of the single-tier fabric."""
    entries = [entity for entity in plan(INTENTS[0])[name] if isinstance(entity, TableEntry) and entity.table == table]
    return [str(entity) for entity in sorted(entries, key=lambda one: (-one.priority, one.match))]


def test_access_rules_go_to_every_switch_or_to_the_ports_that_they_name() -> None:
    allowed = (
        "acl[ether_type=2048&&&0xffff, ipv4_src_addr=0xa000000&&&0xffffff00, l4_dst_port=22&&&0xffff, "
        "port=1&&&0x1ff, protocol=6&&&0xff] priority 1000000 -> acl_permit()"
    )
    refused = "acl[l4_dst_port=22&&&0xffff, protocol=6&&&0xff] priority 999999 -> acl_deny()"
    assert of_table("p1", "acl") == of_table("p2", "acl") == [allowed, refused]
    assert of_table("nic1", "acl") == []


def test_postcards_are_sent_by_the_queues_of_their_class_on_every_port_of_a_switch() -> None:
    assert of_table("p1", "postcard_profile") == [
        f"postcard_profile[port={port}, traffic_class=2] -> send_postcards(share=655, threshold=64)" for port in (1, 2)
    ]
    assert "clone session 500 to 510" in {str(entity) for entity in plan(INTENTS[0])["p1"]}


@pytest.mark.parametrize("intent", INTENTS, ids=["single-tier", "leaf-spine"])
def test_the_programs_know_everything_that_is_planned(intent: Intent) -> None:
    planner = Planner(intent)
    views = [FabricView(), FabricView(drained=frozenset({"plane1"}), down=frozenset({intent.links[-1].name}))]
    for device in intent.devices:
        schema = fy.P4Schema(program_for(device.role).p4info)
        for view in views:
            for entity in planner.plan(view)[device.name]:
                check(entity, schema)
