"""The demo in virtual time: a P4 router, a plane that goes bad, and what the operator does about it."""

from __future__ import annotations

from scripts.lib.demo_lab import LabNetwork
from scripts.lib.demo_plan import PLANE_A, PLANE_B, Counters, Probe, routes

LOSS = 0.3


def run() -> int:
    """The story with its network; 0 when everything went as it should."""
    with LabNetwork() as network:
        return story(network)


def tell(step: int, text: str) -> None:
    print(f"{step}. {text}", flush=True)


def story(network: LabNetwork) -> int:
    """Tell it; 0 when everything went as it should."""
    network.install()
    tell(1, f"the router has {len(routes()):,} routes; h2 is reached by {PLANE_A.name}")
    healthy = network.probe()
    tell(2, f"h1 asks h2: {describe(healthy)}")

    network.lose(PLANE_A, LOSS)
    faulty = network.probe()
    tell(3, f"{PLANE_A.name} now loses {LOSS:.0%} of its packets: {describe(faulty)}")

    network.route_by(PLANE_B)
    rerouted = network.probe()
    tell(4, f"one route is moved to {PLANE_B.name}: {describe(rerouted)}")

    network.restore()
    network.route_by(PLANE_A)
    restored = network.probe()
    tell(5, f"the fault is gone and the route is back on {PLANE_A.name}: {describe(restored)}")

    counters = network.counters()
    return summarize([healthy, faulty, rerouted, restored], counters)


def describe(probe: Probe) -> str:
    return f"{probe.lost} of {probe.sent} lost"


def summarize(probes: list[Probe], counters: Counters) -> int:
    healthy, faulty, rerouted, restored = probes
    # every request and every reply passes the access list once
    expected = sum(probe.sent + probe.received for probe in probes)
    dropped = counters.fault_drops[PLANE_A.port]
    facts = [
        ("lost while healthy", healthy.lost == 0, f"{healthy.lost} of {healthy.sent}"),
        ("lost on the faulty plane", faulty.lost > 0, f"{faulty.lost} of {faulty.sent}"),
        ("counted as lost by the switch", dropped == faulty.lost, f"{dropped}"),
        ("lost after moving the route", rerouted.lost == 0, f"{rerouted.lost} of {rerouted.sent}"),
        ("lost after restoring", restored.lost == 0, f"{restored.lost} of {restored.sent}"),
        ("counted by the access list", counters.icmp == expected, f"{counters.icmp} of {expected}"),
        (f"sent into {PLANE_A.name}", True, f"{counters.sent[PLANE_A.port]}"),
        (f"sent into {PLANE_B.name}", True, f"{counters.sent[PLANE_B.port]}"),
    ]
    print("\n======== summary")
    for name, good, value in facts:
        print(f"  {name:30s} {value:>12s}  {'' if good else '<- not as it should be'}".rstrip())
    return 0 if all(good for _, good, _ in facts) else 1
