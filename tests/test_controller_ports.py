"""Ports that lead to hosts: what the controller makes of what their devices tell of carriers."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from controller import report
from controller.device import PortDigest, SessionDown, SessionState, SessionUp
from controller.events import EventLog
from controller.health import HealthTracker
from controller.intent import load_intent
from controller.memory import Memory
from controller.model import PortRef
from controller.react import Controller
from controller.records import PortState, Remembered
from ptf_tests.packets import REPEAT_TIMERS, TIMER_PORT, timer
from tests.controller_fabric import EXAMPLES, Fabric

WAIT_S = 30.0
END = PortRef("nic1", 1)  # leads to host h1
LINK_END = PortRef("nic1", 2)  # leads to a plane
NO_END = PortRef("nic1", 9)  # leads to nothing


@pytest.fixture
def health() -> HealthTracker:
    made = HealthTracker(load_intent(EXAMPLES / "single-tier.yaml"), EventLog(), time.monotonic)
    made.on_session(SessionUp(END.device, SessionState.PRIMARY, ()))
    return made


def told(end: PortRef, is_down: int) -> PortDigest:
    return PortDigest(end.device, {"port": end.port, "is_down": is_down, "time": 0}, 0.0)


def port_events(log: EventLog) -> list[tuple[str, str, str]]:
    return [(one.kind, one.subject, one.evidence) for one in log.since() if one.kind.startswith("port-")]


def test_what_changes_is_an_event_and_what_is_told_again_is_none(health: HealthTracker) -> None:
    states = [health.port_state(END)]
    for is_down in (0, 0, 1, 1, 0, 0):
        health.on_port(told(END, is_down))
        states.append(health.port_state(END))
    up, down = PortState.UP, PortState.DOWN
    assert states == [PortState.UNKNOWN, up, up, down, down, up, up]
    assert port_events(health.log) == [
        ("port-down", "nic1:1", "no carrier; it leads to host h1"),
        ("port-up", "nic1:1", "carrier; it leads to host h1"),
    ]


def test_a_port_that_was_never_up_is_an_event(health: HealthTracker) -> None:
    health.on_port(told(END, 1))
    assert [kind for kind, _, _ in port_events(health.log)] == ["port-down"]


def test_without_a_session_the_state_is_unknown(health: HealthTracker) -> None:
    health.on_port(told(END, 0))
    health.on_session(SessionDown(END.device, "gone"))
    assert health.port_state(END) is PortState.UNKNOWN


@pytest.mark.parametrize("end", [LINK_END, NO_END], ids=["a link's", "unused"])
def test_a_port_without_a_host_is_not_missed(health: HealthTracker, end: PortRef) -> None:
    """A link's end may tell before the entry that makes it one is there, and not again."""
    health.on_port(told(end, 1))
    assert (health.down_ports(), port_events(health.log)) == ((), [])


def test_ports_that_are_down_are_remembered(health: HealthTracker, tmp_path: Path) -> None:
    health.on_port(told(END, 1))
    Memory(tmp_path / "memory.json").save(health.remember())
    health.restore(Remembered())
    assert health.port_state(END) is PortState.UNKNOWN
    health.restore(Memory(tmp_path / "memory.json").load())
    assert health.down_ports() == (END,)
    health.on_port(told(END, 0))
    assert health.down_ports() == ()
    assert [kind for kind, _, _ in port_events(health.log)] == ["port-down", "port-up"]


def tick(fabric: Fabric, times: int = 1, *, is_down: bool = False) -> None:
    """Timers of the host's port."""
    for _ in range(times):
        fabric.inject(END.device, TIMER_PORT, timer(END.port, is_down))


def test_a_cable_that_was_put_back_while_no_controller_ran_is_told(tmp_path: Path) -> None:
    async def body(fabric: Fabric) -> None:
        first = Controller(fabric.intent, tmp_path / "memory.json")
        async with first.running():
            await first.until(first.converged)
            await asyncio.to_thread(tick, fabric, is_down=True)
            await first.until(lambda: first.tracker.port_state(END) is PortState.DOWN)
            assert report.status(first)["down_ports"] == [{"port": "nic1:1", "leads_to": "host h1"}]
        tick(fabric)
        second = Controller(fabric.intent, tmp_path / "memory.json")
        async with second.running():
            while not second.converged():
                await asyncio.to_thread(fabric.beat)
            assert second.tracker.port_state(END) is PortState.DOWN, "remembered"
            await asyncio.to_thread(tick, fabric, REPEAT_TIMERS)
            await second.until(lambda: second.tracker.port_state(END) is PortState.UP)
            assert report.status(second)["down_ports"] == []

    async def limited() -> None:
        async with asyncio.timeout(WAIT_S):
            with Fabric("single-tier.yaml", tmp_path) as fabric:
                await body(fabric)

    asyncio.run(limited())
