"""Differences and the Writes that carry them out."""

from __future__ import annotations

import random
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from controller.entities import Lpm, TableEntry, entry
from controller.intent import load_intent
from controller.plan import FabricView, plan
from controller.reconcile import Verb, batches, difference
from controller.tables import rank

EXAMPLES = Path(__file__).resolve().parent.parent / "controller/examples"
INTENT = load_intent(EXAMPLES / "leaf-spine.yaml")


def entries(numbers: dict[int, int]) -> list[TableEntry]:
    return [
        entry("neighbor", {"port": port}, "set_macs", {"src_addr": 1, "dst_addr": mac}) for port, mac in numbers.items()
    ]


def test_only_the_difference_is_written() -> None:
    change = difference(entries({1: 10, 2: 20, 3: 30}), entries({2: 20, 3: 31, 4: 40}))
    assert [str(update) for update in change.updates()] == [
        "+ neighbor[port=1] -> set_macs(dst_addr=10, src_addr=1)",
        "~ neighbor[port=3] -> set_macs(dst_addr=30, src_addr=1)",
        "- neighbor[port=4] -> set_macs(dst_addr=40, src_addr=1)",
    ]


@given(st.randoms(use_true_random=False))
def test_the_order_of_neither_side_matters(rng: random.Random) -> None:
    installed, desired = (
        list(plan(INTENT, view)["p1-leaf1"]) for view in (FabricView(), FabricView(dead=frozenset({"p1-spine2"})))
    )
    expected = batches(difference(desired, installed), rank)
    rng.shuffle(installed)
    rng.shuffle(desired)
    assert batches(difference(desired, installed), rank) == expected


@given(st.dictionaries(st.integers(1, 20), st.integers(0, 3)), st.dictionaries(st.integers(1, 20), st.integers(0, 3)))
def test_carrying_it_out_gives_what_was_desired(before: dict[int, int], after: dict[int, int]) -> None:
    held = {entity.key: entity for entity in entries(before)}
    for write in batches(difference(entries(after), held.values()), rank, size=3):
        assert 1 <= len(write) <= 3
        for update in write:
            key = update.entity.key
            assert (key in held) is (update.verb is not Verb.INSERT)
            if update.verb is Verb.DELETE:
                del held[key]
            else:
                assert isinstance(update.entity, TableEntry)
                held[key] = update.entity
    assert set(held.values()) == set(entries(after))
    assert len(difference(entries(after), held.values())) == 0


def test_what_an_entry_leads_to_comes_before_it_and_goes_after_it() -> None:
    whole = plan(INTENT)["p1-leaf1"]
    build = [update.entity for write in batches(difference(whole, []), rank) for update in write]
    order = [entity.table for entity in build if isinstance(entity, TableEntry)]
    assert order.index("group") > max(i for i, table in enumerate(order) if table == "neighbor")
    assert order.index("route_ipv4") > max(i for i, table in enumerate(order) if table == "group")
    assert order.index("port") > max(i for i, table in enumerate(order) if table.startswith("route"))
    tear_down = [update.entity for write in batches(difference([], whole), rank) for update in write]
    assert [rank(entity) for entity in tear_down] == sorted((rank(entity) for entity in whole), reverse=True)


def test_a_route_moves_to_its_new_group_before_the_old_group_goes() -> None:
    route = {"dst_addr": Lpm(1, 32)}

    def holding(group: int) -> list[TableEntry]:
        members = {"ports": 2, "watched_ports": 2}
        return [entry("group", {"group_id": group}, "set_members", members),
                entry("route_ipv4", route, "ipv4_via", {"group_id": group})]  # fmt: skip

    change = difference(holding(65), holding(64))
    steps = [
        (update.verb, update.entity.table)
        for write in batches(change, rank)
        for update in write
        if isinstance(update.entity, TableEntry)
    ]
    assert steps == [(Verb.INSERT, "group"), (Verb.MODIFY, "route_ipv4"), (Verb.DELETE, "group")]


def test_two_entities_with_one_key_are_refused() -> None:
    with pytest.raises(ValueError, match=r"two different entities with one key: neighbor\[port=1\]"):
        difference(entries({1: 10}) + entries({1: 11}), [])
