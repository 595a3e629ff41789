"""``scripts/bench controller``: its results' shape, and what it plans; times depend on the machine."""

from __future__ import annotations

import json
import os

import pytest

from bench import cli, controller, planning, reaction, reconciling
from bench.machine import Machine
from bench.planning import Change, Planning
from bench.reaction import Reaction, Times
from bench.reconciling import Reconciled
from bench.targets import SOFTSWITCH
from controller.intent import load_intent
from controller.plan import plan

MACHINE = Machine("CPU", 2, "6.1", "2026-01-31", 0.5, {"python": "3.11"})
PLANNED = Planning(64, 36, 384, 11856, 160.0, 5.5, [Change("a leaf dies", 80.0, 2.0, 365, 35)])
RECONCILED = Reconciled("softswitch", 100_000, 8.0, 99_999, 4.0, 0, 120.0)
REACTED = Reaction(
    "softswitch", 8, 80.0, Times(70.0, 75.5), Times(4.0, 9.25), takeover_ms=Times(300, 350), restart_ms=Times(400, 500)
)


def results() -> controller.Results:
    """As if measured, without BMv2."""
    return controller.Results(MACHINE, PLANNED, [REACTED], [RECONCILED], {"bmv2": "no simple_switch_grpc on PATH"})


def test_json_has_every_figure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    plans: list[controller.Plan] = []

    def run(plan: controller.Plan, note: object) -> controller.Results:
        plans.append(plan)
        return results()

    monkeypatch.setattr(controller, "run", run)
    assert cli.main(["controller", "--quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert plans == [controller.QUICK]
    assert list(told) == ["benchmark", "machine", "reaction", "planning", "reconcile", "skipped"]
    assert told["benchmark"] == "controller" and told["machine"]["date"] == "2026-01-31"
    assert told["reaction"]["results"] == [
        {"switch": "softswitch", "samples": 8, "due_ms": 80.0, "detection_ms": {"median": 70.0, "longest": 75.5},
         "reroute_ms": {"median": 4.0, "longest": 9.25}, "takeover_ms": {"median": 300, "longest": 350},
         "restart_ms": {"median": 400, "longest": 500}}
    ]  # fmt: skip
    assert told["planning"]["changes"] == [
        {"change": "a leaf dies", "plan_ms": 80.0, "to_full_plan": 2.0, "writes": 365, "devices": 35}
    ]
    assert told["reconcile"]["results"] == [
        {"switch": "softswitch", "entries": 100_000, "first_s": 8.0, "first_writes": 99_999, "second_s": 4.0,
         "second_writes": 0, "memory_mib": 120.0}
    ]  # fmt: skip


def test_text_is_tables_and_names_what_was_skipped() -> None:
    lines = [" ".join(line.split()) for line in controller.text(results()).splitlines()]
    assert "softswitch 8 70 75.5 80 4 9.25" in lines
    assert "softswitch 3 300 350 400 75%" in lines
    assert "a leaf dies 80 2 x faster 365 35" in lines
    assert "softswitch 100,000 8 99,999 4 0 50% 120" in lines
    assert "skipped: bmv2: no simple_switch_grpc on PATH" in lines


def test_without_root_the_reaction_is_skipped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(controller, "bmv2_path", lambda: None)
    monkeypatch.setattr(planning, "measure", lambda times: PLANNED)
    monkeypatch.setattr(reconciling, "measure", lambda target, entries: RECONCILED)
    told = controller.run(controller.QUICK, lambda doing: None)
    assert told.reconcile == [RECONCILED] and told.reaction == []
    assert told.skipped["reaction"] == "not root, or no mnexec of Mininet"


def test_the_planned_fabric_has_64_switches_and_each_change_its_writes() -> None:
    planned = planning.measure(1)
    assert (planned.switches, planned.nics, planned.links) == (64, 36, 8 * (6 * 2 + 36))
    by_name = {one.change: one for one in planned.changes}
    assert (by_name["none"].writes, by_name["none"].devices) == (0, 0)
    failed = by_name["a NIC's link fails"]
    assert failed.devices == 35, "every NIC but the one that sees it itself"
    assert by_name["a plane is drained"].devices == 36


def test_a_second_reconcile_writes_nothing() -> None:
    told = reconciling.measure(SOFTSWITCH, 300)
    assert (told.entries, told.second_writes) == (300, 0)
    assert told.first_writes >= 300 - 10, "what a device has from the start is not written"


def test_routes_make_the_number_of_entries_full() -> None:
    entities = plan(load_intent(reconciling.INTENT))[reconciling.DEVICE]
    assert len(reconciling.with_routes(entities, 1000)) == 1000


def test_no_cable_is_pulled_twice_and_every_nic_keeps_half_of_its_planes() -> None:
    cables = [reaction.cable(at) for at in range(reaction.SAMPLES_MAX)]
    assert len(set(cables)) == reaction.SAMPLES_MAX
    assert sorted(nic for nic, _ in cables) == ["n1", "n1", "n2", "n2", "n3", "n3", "n4", "n4"]


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.mininet
def test_a_pulled_cable_is_seen_and_routed_around() -> None:
    told = reaction.measure("softswitch", 1)
    assert told.samples == 1 and told.detection_ms.median > 0 and told.reroute_ms.median > 0
