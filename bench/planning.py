"""What a change in the fabric's health costs the controller before it writes: planning and comparing, 64 switches."""

from __future__ import annotations

import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from controller.entities import Entity
from controller.intent import load_intent
from controller.model import Intent, Link, Role
from controller.paths import FabricView
from controller.plan import Planner
from controller.reconcile import difference
from mininet_topos.intent import intent as intent_of
from mininet_topos.intent import write_intent
from mininet_topos.live import Network, Node
from mininet_topos.multiplane import multiplane

PLANES, LEAVES, SPINES, HOSTS = 8, 6, 2, 36  # 64 switches
HEARTBEAT_US = 20_000
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the healthy fabric: the median time to plan and to compare with what devices hold, and its writes."""

    change: str
    plan_ms: float
    to_full_plan: float  # how many times faster than planning all anew
    writes: int
    devices: int  # written to


@dataclass(frozen=True, slots=True)
class Planning:
    """A fabric and what planning it costs. ``full_ms`` is the first plan, ``memory_mib`` that of planner and plan."""

    switches: int
    nics: int
    links: int
    entities: int
    full_ms: float
    memory_mib: float
    changes: list[Change]


def measure(times: int) -> Planning:
    """Plan each change ``times`` times, from the healthy fabric."""
    intent = large_fabric()
    full_ms = statistics.median(_milliseconds(lambda: Planner(intent).plan(FabricView())) for _ in range(times))
    tracemalloc.start()
    planner = Planner(intent)
    healthy = planner.plan(FabricView())
    memory = tracemalloc.get_traced_memory()[0] / MIB
    tracemalloc.stop()
    changes = [_measure(planner, healthy, name, view, full_ms, times) for name, view in views(intent).items()]
    return Planning(
        switches=sum(device.role is not Role.NIC for device in intent.devices),
        nics=sum(device.role is Role.NIC for device in intent.devices),
        links=len(intent.links),
        entities=sum(map(len, healthy.values())),
        full_ms=round(full_ms, 1),
        memory_mib=round(memory, 1),
        changes=changes,
    )


def _measure(
    planner: Planner, healthy: dict[str, frozenset[Entity]], name: str, view: FabricView, full_ms: float, times: int
) -> Change:
    spent, changes = [], {}
    for _ in range(times):
        planner.plan(FabricView())
        started = time.perf_counter()
        desired = planner.plan(view)
        changes = {
            device: difference(entities, healthy[device])
            for device, entities in desired.items()
            if entities != healthy[device]
        }
        spent.append((time.perf_counter() - started) * 1000)
    plan_ms = statistics.median(spent)
    return Change(name, round(plan_ms, 1), round(full_ms / plan_ms, 1), sum(map(len, changes.values())), len(changes))


def views(intent: Intent) -> dict[str, FabricView]:
    """The changes, by what they are called."""

    def first(lower: Role) -> Link:
        return next(link for link in intent.links if intent.device_by_name[link.lower.device].role is lower)

    return {
        "none": FabricView(),
        "a NIC's link fails": FabricView(down=frozenset([first(Role.NIC).name])),
        "a leaf's uplink fails": FabricView(down=frozenset([first(Role.LEAF).name])),
        "a spine dies": FabricView(dead=frozenset([first(Role.LEAF).upper.device])),
        "a leaf dies": FabricView(dead=frozenset([first(Role.LEAF).lower.device])),
        "a plane is drained": FabricView(drained=frozenset([intent.planes[0]])),
    }


def large_fabric() -> Intent:
    """Eight planes of six leaves and two spines, and hosts with a NIC on every plane."""
    topology = multiplane(PLANES, HOSTS, LEAVES, SPINES)
    nodes = {
        device.name: Node(device.name, str(device.role), 0, {}, device_id=device.device_id, grpc=f"unix:/{device.name}")
        for device in topology.devices
    }
    with tempfile.TemporaryDirectory(prefix="polyplane-bench-") as folder:
        path = Path(folder) / "fabric.yaml"
        write_intent(path, intent_of(topology, Network("bench", topology.name, nodes, topology.links), HEARTBEAT_US))
        return load_intent(path)


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
