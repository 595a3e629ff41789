"""On a Mininet fabric: from a pulled cable to its report, from there to the last write; and from primary to backup."""

from __future__ import annotations

import asyncio
import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mininet.log import setLogLevel

from bench.veth import BenchError
from controller.device import SessionState
from controller.events import Event
from controller.intent import load_intent
from controller.model import Intent
from controller.react import Controller
from controller.records import LinkState
from mininet_topos import live
from mininet_topos.errors import NodeError
from mininet_topos.intent import intent as intent_of
from mininet_topos.intent import write_intent
from mininet_topos.multiplane import multiplane
from mininet_topos.network import Settings, running
from mininet_topos.targets import Target
from mininet_topos.topology import TopologyError

PLANES = HOSTS = 4
SAMPLES_MAX = 8  # cables, so that every plane keeps half of its NICs and every NIC half of its planes
TAKEOVERS = 3
PROBATION = 10  # heartbeats until the fabric is up; what is measured does not depend on it
UP_S, REACT_S = 120.0, 20.0
MS = 1000.0


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds: the median of the samples, and the longest."""

    median: float
    longest: float

    @classmethod
    def of(cls, seconds: list[float]) -> Times:
        """Of samples in seconds."""
        return cls(round(statistics.median(seconds) * MS, 1), round(max(seconds) * MS, 1))


@dataclass(frozen=True, slots=True)
class Reaction:
    """One kind of switch. ``due_ms`` is the most that the heartbeats allow: as many missed as make a link down.

    ``takeover_ms`` is from the end of the primary until the backup knows that every device is as it should be,
    ``restart_ms`` what a controller takes for that from its start where none ran.
    """

    switch: str
    samples: int
    due_ms: float
    detection_ms: Times
    reroute_ms: Times
    takeover_ms: Times
    restart_ms: Times


def measure(switch: str, samples: int) -> Reaction:
    """Pull so many cables of NICs, one after the other. Needs root, Mininet and the main thread. Raises BenchError."""
    logging.getLogger("finsy").setLevel(logging.CRITICAL)
    setLogLevel("warning")
    topology, settings = multiplane(PLANES, HOSTS), Settings(Target(switch))
    try:
        with tempfile.TemporaryDirectory(prefix="polyplane-bench-") as name, running(topology, settings) as net:
            path, network = Path(name) / "fabric.yaml", net.live()
            write_intent(path, intent_of(topology, network, settings.interval_us))
            intent = load_intent(path)
            memory = Path(name) / "memory.json"
            found = asyncio.run(_measure(intent, network, memory, samples))
            takeovers = [asyncio.run(_take_over(intent, memory)) for _ in range(TAKEOVERS)]
    except (NodeError, TopologyError, live.LiveError) as error:
        raise BenchError(f"{switch}: {error}") from error
    except TimeoutError as error:
        raise BenchError(f"{switch}: the fabric does not come up, or a failure is not seen") from error
    due_ms = (intent.health.missed_limit + 1) * intent.health.heartbeat_us / MS
    firsts, seconds = zip(*found, strict=True), zip(*takeovers, strict=True)
    return Reaction(switch, samples, due_ms, *(Times.of(list(one)) for one in (*firsts, *seconds)))


async def _measure(intent: Intent, network: live.Network, memory: Path, samples: int) -> list[tuple[float, float]]:
    """Seconds from the cable to the report and from there to the last write, of every sample."""
    intent = replace(intent, health=replace(intent.health, probation=PROBATION))
    controller = Controller(intent, memory)
    controller.log.clock = time.monotonic
    found = []
    async with controller.running():
        await _until(controller, UP_S, lambda: controller.converged() and _all_up(controller))
        for at in range(samples):
            found.append(await _pull(controller, network, *cable(at)))
    return found


async def _take_over(intent: Intent, memory: Path) -> tuple[float, float]:
    """Seconds until a backup has taken over, and that the controller before it took to start."""
    primary, backup = Controller(intent, memory), Controller(intent, memory, election_id=5)
    started = time.monotonic()
    async with primary.running():
        await _until(primary, UP_S, primary.converged)
        restart = time.monotonic() - started
        waiting = asyncio.create_task(backup.run())
        await _until(backup, UP_S, lambda: all(one.state is SessionState.BACKUP for one in backup.sessions.values()))
        ended = time.monotonic()
    try:
        await _until(backup, UP_S, backup.converged)
        return time.monotonic() - ended, restart
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def cable(at: int) -> tuple[str, str]:
    """A NIC and a plane's switch: another pair for every number below SAMPLES_MAX."""
    plane, second = at % PLANES, at // PLANES
    return f"n{(plane + second) % HOSTS + 1}", f"p{plane + 1}s1"


async def _pull(controller: Controller, network: live.Network, nic: str, switch: str) -> tuple[float, float]:
    link = next(one for one in controller.intent.links if {one.lower.device, one.upper.device} == {nic, switch})

    def after(number: int, kind: str, subject: str) -> Event | None:
        events = controller.log.since(number)
        return next((one for one in events if (one.kind, one.subject) == (kind, subject)), None)

    before = max((event.number for event in controller.log.since()), default=0)
    started = time.monotonic()
    await asyncio.to_thread(network.set_link, nic, switch, False)
    down = await _wait(controller, lambda: after(before, "link-down", link.name))
    rerouted = await _wait(controller, lambda: after(down.number, "rerouted", controller.intent.name))
    await _until(controller, REACT_S, controller.converged)
    return down.time - started, rerouted.time - down.time


async def _wait(controller: Controller, found: Callable[[], Event | None]) -> Event:
    await _until(controller, REACT_S, lambda: found() is not None)
    event = found()
    assert event is not None
    return event


def _all_up(controller: Controller) -> bool:
    return all(record.state is LinkState.UP for record in controller.tracker.links.values())


async def _until(controller: Controller, seconds: float, condition: Callable[[], bool]) -> None:
    """Wait for something that a step of the controller brings. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        await controller.until(condition)
