"""``scripts/bench switch``: how fast the softswitch is, in memory and between veth pairs beside BMv2."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import fabric, memory
from bench import router as r
from bench.machine import Machine
from bench.overload import Overload, Peak, find_peak, overload
from bench.quota import QuotaError, cpu_quota
from bench.targets import BMV2, SOFTSWITCH, Target, bmv2_path, running
from bench.veth import BenchError, Network, network

LENGTHS = (64, 1500)  # bytes of a frame, without its checksum
ROUTES = (10, 1000, 100_000)
ACL = (10, 1000)
VETH_ROUTES, VETH_ACL, VETH_PACKETS = 1000, 10, 4096
LOADERS = {r.PROGRAM.stem: memory.load_router, fabric.PROGRAM.stem: fabric.load}  # for the runs in memory
OVERLOAD_SHARE = 0.2  # of a processor for the switch, so that one processor can offer ten times its peak
OVERLOAD_TIMES = 2  # as long as the other runs: queues fill up first

Note = Callable[[str], None]  # what is being done, for the impatient


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, and for how long each."""

    lengths: tuple[int, ...] = LENGTHS
    routes: tuple[int, ...] = ROUTES
    acl: tuple[int, ...] = ACL
    memory_s: float = 1.0
    veth_s: float = 0.5
    veth: bool = True


QUICK = Plan(routes=(10, 1000), memory_s=0.2, veth_s=0.3)


@dataclass(frozen=True, slots=True)
class VethResult:
    """One switch with frames of one length: its peak, and, where it could be limited, how it bears overload."""

    switch: str
    length: int  # bytes
    peak: Peak
    overload: Overload | None


@dataclass(slots=True)
class Results:
    """All that was measured, and what was not."""

    machine: Machine
    memory: list[memory.MemoryResult] = field(default_factory=list)
    veth: list[VethResult] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)  # what: why

    def ratio(self, result: VethResult) -> float | None:
        """The lossless rate to BMv2's with frames of that length; None where BMv2 was not measured."""
        for other in self.veth:
            if (other.switch, other.length) == (BMV2.name, result.length) and other.peak.lossless:
                return result.peak.lossless / other.peak.lossless
        return None

    def as_json(self) -> dict[str, Any]:
        """Plain values; rates are packets a second."""
        veth = [
            {"switch": one.switch, "bytes": one.length, "pps": round(one.peak.lossless), "limit": one.peak.limit,
             "ratio_to_bmv2": _rounded(self.ratio(one)), "most_pps": round(one.peak.most),
             "overload": None if one.overload is None else _overload_as_json(one.overload)}
            for one in self.veth
        ]  # fmt: skip
        in_memory = [
            {"program": one.program, "routes": one.routes, "ternary": one.acl, "bytes": one.length,
             "traffic": one.traffic, "pps": round(one.pps), "ratio_to_wanted": _rounded(one.ratio)}
            for one in self.memory
        ]  # fmt: skip
        return {
            "benchmark": "switch",
            "machine": asdict(self.machine),
            "memory": {"wanted_pps": memory.WANTED_PPS, "results": in_memory},
            "veth": {"program": r.PROGRAM.stem, "routes": VETH_ROUTES, "ternary": VETH_ACL, "results": veth},
            "skipped": self.skipped,
        }


def _overload_as_json(told: Overload) -> dict[str, Any]:
    typical = told.typical
    return {
        "processor_share": told.share, "rounds": len(told.rounds), "peak_pps": round(typical.peak),
        "offered_pps": round(typical.offered), "pps": round(typical.carried),
        "offered_to_peak": _rounded(typical.factor), "kept": _rounded(typical.kept),
        "kept_least": _rounded(told.worst.kept),
    }  # fmt: skip


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 3)


def run(plan: Plan, note: Note) -> Results:
    """Measure all of the plan that this machine can. Raises BenchError where a switch does not work."""
    bmv2 = bmv2_path()
    results = Results(Machine.here(bmv2))
    for program in LOADERS:
        for routes in plan.routes:
            for acl in plan.acl:
                note(f"in memory: {program}, {routes} routes, {acl} ternary entries")
                results.memory += in_memory(plan, program, routes, acl)
    if not plan.veth:
        results.skipped["veth"] = "--memory-only"
    elif os.geteuid() != 0 or shutil.which("ip") is None:
        results.skipped["veth"] = "not root, or no ip command"
    else:
        targets = [SOFTSWITCH] if bmv2 is None else [SOFTSWITCH, BMV2]
        results.veth += over_veth(plan, targets, results.skipped, note)
        if bmv2 is None:
            results.skipped["bmv2"] = "no simple_switch_grpc on PATH"
    return results


def in_memory(plan: Plan, program: str, routes: int, acl: int) -> Iterator[memory.MemoryResult]:
    """The speeds of one program and its tables, with every length of packet and both kinds of traffic."""
    router = r.make_router(routes, acl)
    with LOADERS[program](router) as device:
        for length in plan.lengths:
            packets = r.make_packets(router, length, min(memory.PACKETS_MAX, memory.PACKET_BYTES // length))
            for traffic, sent in (("random", packets), ("flow", packets[:1])):
                pps = memory.measure(device, sent, plan.memory_s)
                yield memory.MemoryResult(program, routes, acl, length, traffic, pps)


def over_veth(plan: Plan, targets: list[Target], skipped: dict[str, str], note: Note) -> Iterator[VethResult]:
    """Every switch with every length of frame; what cannot be measured goes to ``skipped``. Needs root."""
    logging.getLogger("finsy").setLevel(logging.ERROR)
    router = r.make_router(VETH_ROUTES, VETH_ACL)
    frames = {length: r.make_packets(router, length, VETH_PACKETS) for length in plan.lengths}
    for target in targets:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="polyplane-bench-")))
            net = stack.enter_context(network(folder))
            pid = stack.enter_context(running(target, net, router, folder))
            for length in plan.lengths:
                note(f"over veth: {target.name}, {length} bytes")
                peak = _peak(target, net, frames[length], plan.veth_s)
                try:
                    with cpu_quota(pid, OVERLOAD_SHARE):
                        loaded = _overload(target, net, frames[length], plan.veth_s)
                except QuotaError as error:
                    loaded, skipped["overload"] = None, str(error)
                yield VethResult(target.name, length, peak, loaded)


def _peak(target: Target, net: Network, frames: list[bytes], seconds: float) -> Peak:
    peak = find_peak(lambda rate: net.offer(frames, rate, seconds))
    if not peak.lossless:
        raise BenchError(f"{target.name} does not forward")
    return peak


def _overload(target: Target, net: Network, frames: list[bytes], seconds: float) -> Overload:
    peak, longer = _peak(target, net, frames, seconds), OVERLOAD_TIMES * seconds
    return overload(lambda rate: net.offer(frames, rate, longer), peak, OVERLOAD_SHARE)
