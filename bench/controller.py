"""``scripts/bench controller``: how fast the controller reacts, and what large fabrics and tables cost it."""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import asdict, dataclass, field
from typing import Any

from bench import planning, reaction, reconciling
from bench.machine import Machine
from bench.report import columns
from bench.switch import Note
from bench.targets import BMV2, SOFTSWITCH, Target, bmv2_path
from bench.veth import BenchError


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure: cables pulled, times a change is planned, entries of the table."""

    samples: int = reaction.SAMPLES_MAX
    times: int = 20
    entries: int = 100_000


QUICK = Plan(samples=3, times=5, entries=10_000)

REACTION_HEAD = ("switch", "cables", "detected, ms", "longest", "due within", "rerouted, ms", "longest")
TAKEOVER_HEAD = ("switch", "takeovers", "taken over, ms", "longest", "start without another, ms", "to that")
PLANNING_HEAD = ("change", "plan and compare, ms", "to planning all", "writes", "devices")
RECONCILE_HEAD = ("switch", "entries", "into empty, s", "writes", "again, s", "writes", "to first", "memory, MiB")
METHOD = """\
Reaction: {planes} planes, {hosts} hosts with NICs, one controller. Detected: from before a NIC's cable is pulled to the
digest in the controller; due: as long as the heartbeats allow. Rerouted: from the digest to the last write
acknowledged. Taken over: from the end of the primary until the backup knows that every device is as it should be;
beside it, the same from the start of a controller where none ran. Planning all: the first plan of an intent, with
nothing kept. Memory: of the controller's process, beyond what it had."""


@dataclass(slots=True)
class Results:
    """All that was measured, and what was not."""

    machine: Machine
    planning: planning.Planning
    reaction: list[reaction.Reaction] = field(default_factory=list)
    reconcile: list[reconciling.Reconciled] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # what: why

    def as_json(self) -> dict[str, Any]:
        """Plain values; times are in the unit of their names."""
        reactions = list(map(asdict, self.reaction))
        return {
            "benchmark": "controller",
            "machine": asdict(self.machine),
            "reaction": {"planes": reaction.PLANES, "hosts": reaction.HOSTS, "results": reactions},
            "planning": asdict(self.planning),
            "reconcile": {"results": list(map(asdict, self.reconcile))},
            "skipped": self.skipped,
        }


def run(plan: Plan, note: Note) -> Results:
    """Measure all of the plan that this machine can; a part that does not work is among what was skipped."""
    logging.getLogger("finsy").setLevel(logging.CRITICAL)
    bmv2 = bmv2_path()
    machine = Machine.here(bmv2)
    note("planning 64 switches")
    results = Results(machine, planning.measure(plan.times))
    targets = [SOFTSWITCH] if bmv2 is None else [SOFTSWITCH, BMV2]
    if bmv2 is None:
        results.skipped["bmv2"] = "no simple_switch_grpc on PATH"
    for target in targets:
        _reconcile(results, target, plan, note)
    if os.geteuid() != 0 or shutil.which("mnexec") is None:
        results.skipped["reaction"] = "not root, or no mnexec of Mininet"
        return results
    for target in targets:
        _react(results, target, plan, note)
    return results


def _reconcile(results: Results, target: Target, plan: Plan, note: Note) -> None:
    note(f"reconciling {plan.entries:,} entries: {target.name}")
    try:
        results.reconcile.append(reconciling.measure(target, plan.entries))
    except BenchError as error:
        results.skipped[f"reconcile, {target.name}"] = str(error)


def _react(results: Results, target: Target, plan: Plan, note: Note) -> None:
    note(f"pulling {plan.samples} cables: {target.name}")
    try:
        results.reaction.append(reaction.measure(target.name, plan.samples))
    except BenchError as error:
        results.skipped[f"reaction, {target.name}"] = str(error)


def text(results: Results) -> str:
    """Tables in columns."""
    plan = results.planning
    parts = [str(results.machine)]
    if results.reaction:
        parts += ["", *columns(REACTION_HEAD, reaction_rows(results))]
        parts += ["", *columns(TAKEOVER_HEAD, takeover_rows(results))]
    parts += [
        "",
        f"{plan.switches} switches, {plan.nics} NICs, {plan.links} links, {plan.entities:,} entries:"
        f" planning all takes {plan.full_ms:g} ms and {plan.memory_mib:g} MiB",
        *columns(PLANNING_HEAD, planning_rows(results)),
    ]
    if results.reconcile:
        parts += ["", *columns(RECONCILE_HEAD, reconcile_rows(results))]
    parts += [f"skipped: {what}: {why}" for what, why in results.skipped.items()]
    return "\n".join([*parts, "", METHOD.format(planes=reaction.PLANES, hosts=reaction.HOSTS)])


def reaction_rows(results: Results) -> list[list[str]]:
    """A row for each switch."""
    return [
        [one.switch, str(one.samples), f"{one.detection_ms.median:g}", f"{one.detection_ms.longest:g}",
         f"{one.due_ms:g}", f"{one.reroute_ms.median:g}", f"{one.reroute_ms.longest:g}"]
        for one in results.reaction
    ]  # fmt: skip


def takeover_rows(results: Results) -> list[list[str]]:
    """A row for each switch."""
    return [
        [one.switch, str(reaction.TAKEOVERS), f"{one.takeover_ms.median:g}", f"{one.takeover_ms.longest:g}",
         f"{one.restart_ms.median:g}", f"{one.takeover_ms.median / one.restart_ms.median:.0%}"]
        for one in results.reaction
    ]  # fmt: skip


def planning_rows(results: Results) -> list[list[str]]:
    """A row for each change of the fabric."""
    return [
        [one.change, f"{one.plan_ms:g}", f"{one.to_full_plan:g} x faster", str(one.writes), str(one.devices)]
        for one in results.planning.changes
    ]


def reconcile_rows(results: Results) -> list[list[str]]:
    """A row for each switch."""
    return [
        [one.switch, f"{one.entries:,}", f"{one.first_s:g}", f"{one.first_writes:,}", f"{one.second_s:g}",
         str(one.second_writes), f"{one.second_s / one.first_s:.0%}", f"{one.memory_mib:g}"]
        for one in results.reconcile
    ]  # fmt: skip
