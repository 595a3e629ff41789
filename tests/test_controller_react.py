"""The running controller on a fabric of softswitches: each failure has its event, its evidence and its reaction."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from controller import report
from controller.device import SessionState
from controller.events import Event
from controller.model import AclAction, AclRule, PortRef, Postcards
from controller.react import SETTLE_S, Controller
from controller.records import DeviceState, LinkState, PlaneState
from tests.controller_fabric import Fabric

WAIT_S = 30.0
ACL = 8  # of drop_reason_t
PROBATION = 12  # beats after which a new link is up on both ends


@pytest.fixture
def single(tmp_path: Path) -> Iterator[Fabric]:
    with Fabric("single-tier.yaml", tmp_path) as fabric:
        yield fabric


@pytest.fixture
def clos(tmp_path: Path) -> Iterator[Fabric]:
    with Fabric("leaf-spine.yaml", tmp_path) as fabric:
        yield fabric


def controller_of(fabric: Fabric, tmp_path: Path, election_id: int = 10, poll_s: float = 0.2) -> Controller:
    return Controller(fabric.intent, tmp_path / "memory.json", election_id=election_id, poll_s=poll_s)


@contextlib.asynccontextmanager
async def brought_up(fabric: Fabric, tmp_path: Path) -> AsyncIterator[Controller]:
    """A controller whose fabric is well: everything installed, all links up."""
    controller = controller_of(fabric, tmp_path)
    async with controller.running():
        await controller.until(controller.converged)
        await beat(fabric, PROBATION)
        await controller.until(lambda: all(one.state is LinkState.UP for one in controller.tracker.links.values()))
        yield controller


async def beat(fabric: Fabric, times: int) -> None:
    await asyncio.to_thread(fabric.beat, times)


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(WAIT_S):
            await body()

    asyncio.run(limited())


def events(controller: Controller, *kinds: str) -> list[Event]:
    return [event for event in controller.log.since() if event.kind in kinds]


def writes(controller: Controller) -> list[Event]:
    return events(controller, "reconciled", "rerouted")


def states(controller: Controller) -> dict[str, str]:
    return {name: record.state for name, record in controller.tracker.links.items()}


def state_of(controller: Controller, link: str) -> LinkState:
    return controller.tracker.links[link].state


def send(fabric: Fabric, source: str, destination: str, count: int) -> int:
    """Data packets from host to host; how many arrive."""
    hosts = {host.name: host for host in fabric.intent.hosts}
    one, two = hosts[source], hosts[destination]
    assert one.ipv4 is not None and two.ipv4 is not None
    router = fabric.intent.device_by_name[one.attached.device].mac
    fabric.delivered.clear()
    for number in range(count):
        packet = Ether(src=one.mac.to_bytes(6, "big"), dst=router.to_bytes(6, "big")) / IP(
            src=str(one.ipv4.ip), dst=str(two.ipv4.ip), tos=26 << 2
        )
        fabric.inject(one.attached.device, one.attached.port, bytes(packet / UDP(sport=4000 + number, dport=4791)))
    return sum(end == two.attached for end, _ in fabric.delivered)


def test_a_fabric_is_brought_up_and_hosts_reach_each_other_over_all_planes(clos: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        async with brought_up(clos, tmp_path):
            assert await asyncio.to_thread(send, clos, "h1", "h4", 64) == 64
            assert await asyncio.to_thread(send, clos, "h1", "h2", 64) == 64

    run(body)


def test_a_second_controller_writes_nothing_and_loses_nothing(single: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        async with brought_up(single, tmp_path):
            pass
        assert await asyncio.to_thread(send, single, "h1", "h2", 64) == 64, "it forwards without a controller"
        again = controller_of(single, tmp_path)
        async with again.running():
            while not again.converged():
                await beat(single, 1)  # heartbeats go on meanwhile
            assert writes(again) == []
            assert await asyncio.to_thread(send, single, "h1", "h2", 64) == 64

    run(body)


def test_a_failed_link_is_seen_confirmed_routed_around_and_taken_back(clos: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        async with brought_up(clos, tmp_path) as controller:
            link = clos.link("p1-leaf1", "p1-spine1")
            clos.cut.add(link.name)
            await beat(clos, 4)
            await controller.until(
                lambda: bool(events(controller, "link-confirmed") and events(controller, "rerouted"))
            )
            (down,) = events(controller, "link-down")
            assert down.subject == link.name and "says down (heartbeats missed)" in down.evidence
            (confirmed,) = events(controller, "link-confirmed")
            assert confirmed.evidence.count("says down") == 2
            (reroute,) = events(controller, "rerouted")
            assert reroute.reaction.startswith("1 writes on 1 devices")  # the other leaf; this one skips it by itself
            assert controller.tracker.plane_state("plane1") is PlaneState.DEGRADED
            assert await asyncio.to_thread(send, clos, "h4", "h1", 64) == 64

            clos.cut.clear()
            await beat(clos, 2 * PROBATION + 4)  # probation is doubled by the failure
            await controller.until(lambda: bool(events(controller, "link-restored")))
            await controller.until(controller.converged)
            (held,) = events(controller, "link-held")
            assert held.reaction.startswith("used again in 0.1")
            assert controller.tracker.plane_state("plane1") is PlaneState.UP

    run(body)


def test_a_plane_that_fails_is_called_down_and_the_other_carries_all(single: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        async with brought_up(single, tmp_path) as controller:
            single.cut.update(link.name for link in single.intent.links if link.plane == "plane1")
            await beat(single, 4)
            await controller.until(lambda: bool(events(controller, "plane-down")))
            await controller.until(controller.converged)
            assert controller.tracker.device_state("p1") is DeviceState.UP, "it has a session: it lives"
            assert await asyncio.to_thread(send, single, "h1", "h2", 64) == 64

    run(body)


def test_a_lost_session_is_no_dead_switch_until_no_neighbour_hears_it(single: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        async with brought_up(single, tmp_path) as controller:
            await asyncio.to_thread(single.lose_session, "p1")
            await controller.until(lambda: bool(events(controller, "session-lost")))
            await beat(single, 6)
            assert controller.tracker.device_state("p1") is DeviceState.UNMANAGED
            assert events(controller, "rerouted", "link-down", "device-dead") == []
            assert await asyncio.to_thread(send, single, "h1", "h2", 64) == 64, "it still carries its share"

            single.dead.add("p1")
            await beat(single, 4)
            await controller.until(lambda: bool(events(controller, "device-dead")))
            (dead,) = events(controller, "device-dead")
            assert (dead.subject, dead.evidence) == ("p1", "no session, and none of 2 neighbours hears it")
            await controller.until(lambda: controller.sessions["nic1"].state is SessionState.PRIMARY)
            assert await asyncio.to_thread(send, single, "h1", "h2", 64) == 64

            single.dead.clear()
            await asyncio.to_thread(single.restore_session, "p1")
            await controller.until(controller.converged)
            (back,) = events(controller, "device-back")
            assert back.subject == "p1"

    run(body)


def test_a_switch_that_restarts_empty_is_filled_again(single: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        async with brought_up(single, tmp_path) as controller:
            await asyncio.to_thread(single.restart, "p1")
            await controller.until(lambda: len(events(controller, "reconciled")) == 5)
            await controller.until(controller.converged)
            assert events(controller, "reconciled")[-1].subject == "p1"
            assert await asyncio.to_thread(send, single, "h1", "h2", 64) >= 32
            await beat(single, 3 * PROBATION)
            await controller.until(lambda: controller.tracker.plane_state("plane1") is PlaneState.UP)
            assert await asyncio.to_thread(send, single, "h1", "h2", 64) == 64

    run(body)


def test_a_gray_link_is_named_with_direction_and_loss_and_avoided(clos: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        async with brought_up(clos, tmp_path) as controller:
            link = clos.link("p1-leaf1", "p1-spine1")
            clos.loses[link.upper] = 10
            await beat(clos, 90)
            await controller.until(lambda: state_of(controller, link.name) is LinkState.GRAY)
            await controller.until(lambda: controller.tracker.links[link.name].loss()[0] > 0)
            upwards, downwards = controller.tracker.links[link.name].loss()
            assert 0.05 <= upwards <= 0.2 and downwards == 0
            said = f"{link.upper} says degraded (loss), lost 5 of"
            await controller.until(lambda: any(said in event.evidence for event in events(controller, "link-gray")))
            await controller.until(controller.converged)
            before = clos.arrived(link.upper), clos.arrived(link.lower)
            assert await asyncio.to_thread(send, clos, "h1", "h4", 64) == 64
            assert await asyncio.to_thread(send, clos, "h4", "h1", 64) == 64
            assert (clos.arrived(link.upper), clos.arrived(link.lower)) == before

    run(body)


def test_a_link_that_flaps_is_held_back_longer_each_time(single: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        async with brought_up(single, tmp_path) as controller:
            link = single.link("nic1", "p1")
            for flap in (1, 2):
                single.cut.add(link.name)
                await beat(single, 4)
                await controller.until(lambda: state_of(controller, link.name) is LinkState.DOWN)
                single.cut.clear()
                await beat(single, PROBATION << flap)
                await controller.until(lambda flap=flap: len(events(controller, "link-restored")) == flap)  # type: ignore[misc]
            reactions = [event.reaction for event in events(controller, "link-held")]
            assert reactions[0].startswith("used again in 0.1") and reactions[-1].startswith("used again in 0.2")
            assert events(controller, "link-restored")[-1].evidence == "well since its 2nd failure"

    run(body)


def test_miscabled_links_are_named_with_who_was_heard_and_never_used(single: Fabric, tmp_path: Path) -> None:
    one, two = PortRef("nic1", 2), PortRef("nic2", 2)
    upper_one, upper_two = PortRef("p1", 1), PortRef("p1", 2)
    single.cabling |= {one: upper_two, two: upper_one, upper_one: two, upper_two: one}

    async def body() -> None:
        controller = controller_of(single, tmp_path)
        async with controller.running():
            await controller.until(controller.converged)
            await beat(single, PROBATION)
            await controller.until(lambda: len(events(controller, "link-confirmed")) == 2)
            said = {event.subject: event.evidence for event in events(controller, "link-miscabled", "link-confirmed")}
            assert "p1:1 says down (miscabled: heard nic2:2)" in said["nic1:2-p1:1"]
            assert "nic1:2 says down (miscabled: heard p1:2)" in said["nic1:2-p1:1"]
            await controller.until(lambda: controller.tracker.plane_state("plane2") is PlaneState.UP)
            assert await asyncio.to_thread(send, single, "h1", "h2", 64) == 64

    run(body)


@pytest.mark.parametrize("name", ["plane1", "p1-spine1", "p1-leaf1"])
def test_draining_and_giving_back_lose_nothing(clos: Fabric, tmp_path: Path, name: str) -> None:
    async def body() -> None:
        async with brought_up(clos, tmp_path) as controller:
            for change in (controller.tracker.drain, controller.tracker.undrain):
                change(name)
                controller.nudge()
                sent = received = 0
                while sent == 0 or not controller.converged():
                    received += await asyncio.to_thread(send, clos, "h1", "h4", 16)
                    sent += 16
                assert received == sent
                if change == controller.tracker.drain:
                    before = {end: clos.arrived(end) for end in drained_ends(clos, name)}
                    assert await asyncio.to_thread(send, clos, "h1", "h4", 64) == 64
                    assert {end: clos.arrived(end) for end in before} == before, "nothing crosses what is drained"

    run(body)


def drained_ends(fabric: Fabric, name: str) -> list[PortRef]:
    links = [one for one in fabric.intent.links if name in (one.plane, one.lower.device, one.upper.device)]
    return [end for link in links for end in (link.lower, link.upper)]


def test_a_drain_and_a_failure_are_remembered_by_the_next_controller(clos: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        link = clos.link("p2-leaf1", "p2-spine1")
        async with brought_up(clos, tmp_path) as controller:
            controller.tracker.drain("plane1")
            controller.nudge()
            clos.cut.add(link.name)
            await beat(clos, 4)
            await controller.until(lambda: state_of(controller, link.name) is LinkState.DOWN and controller.converged())
        again = controller_of(clos, tmp_path)
        async with again.running():
            while not again.converged():
                await beat(clos, 1)
            assert (again.tracker.drained, state_of(again, link.name)) == ({"plane1"}, LinkState.DOWN)
            assert writes(again) == []

    run(body)


def test_what_failed_while_no_controller_watched_is_found_by_counters(clos: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        link = clos.link("p1-leaf1", "p1-spine1")
        async with brought_up(clos, tmp_path):
            pass
        clos.cut.add(link.name)
        await beat(clos, 4)
        again = controller_of(clos, tmp_path)
        async with again.running():
            while not again.converged():
                await beat(clos, 1)
            assert state_of(again, link.name) is LinkState.DOWN
            assert await asyncio.to_thread(send, clos, "h4", "h1", 64) == 64

    run(body)


def test_what_the_access_list_denies_is_dropped_and_counted_until_the_rule_goes(single: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        open_to_all = single.intent
        (h2,) = [host for host in single.intent.hosts if host.name == "h2"]
        assert h2.ipv4 is not None
        rule = AclRule(AclAction.DENY, (), None, None, IPv4Network(h2.ipv4.ip), 17, None, 4791)
        single.intent = dataclasses.replace(open_to_all, acl=(rule,))
        async with brought_up(single, tmp_path):
            assert await asyncio.to_thread(send, single, "h1", "h2", 32) == 0
            assert await asyncio.to_thread(send, single, "h2", "h1", 32) == 32
            drops = {name: single.drops(name, ACL) for name in ("p1", "p2")}
            assert sum(drops.values()) == 32
            assert all(drops.values()), "each plane has dropped its share"
        single.intent = open_to_all
        again = controller_of(single, tmp_path)
        async with again.running():
            await again.until(again.converged)
            assert sorted(event.subject for event in writes(again)) == ["p1", "p2"]
            assert await asyncio.to_thread(send, single, "h1", "h2", 32) == 32

    run(body)


def test_a_postcard_is_an_event_that_says_whose_packet_waited_where(single: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        (data,) = [one for one in single.intent.classes if one.name == "data"]
        single.intent = dataclasses.replace(single.intent, postcards=(Postcards(data.number, threshold=0, share=1.0),))
        async with brought_up(single, tmp_path) as controller:
            assert await asyncio.to_thread(send, single, "h1", "h2", 2) == 2
            await controller.until(lambda: len(events(controller, "postcard")) == 2)
            assert {(event.subject, event.evidence) for event in events(controller, "postcard")} == {
                (port, "data packet 10.0.0.1 -> 10.0.0.2 waited 0 us in queue 1 and left 0 packets behind")
                for port in ("p1:2", "p2:2")
            }

    run(body)


def test_what_links_were_before_the_controller_started_is_remembered(single: Fabric, tmp_path: Path) -> None:
    gray, returning = single.link("nic1", "p1"), single.link("nic2", "p2")

    async def body() -> None:
        async with brought_up(single, tmp_path) as controller:
            single.loses[gray.upper] = 10
            await beat(single, 90)
            await controller.until(lambda: state_of(controller, gray.name) is LinkState.GRAY)
            single.loses.clear()
            single.cut.add(returning.name)
            await beat(single, 4)
            await controller.until(lambda: state_of(controller, returning.name) is LinkState.DOWN)
            single.cut.clear()
            await beat(single, 2)
            await controller.until(lambda: state_of(controller, returning.name) is LinkState.PROBATION)
            await controller.until(controller.converged)
            before = states(controller)
            assert sorted(before.values()) == ["gray", "probation", "up", "up"]
        again = controller_of(single, tmp_path)
        async with again.running():
            await again.until(lambda: bool(events(again, "session-up")))
            assert states(again) == before
            assert again.desired == controller.desired, "so nothing is written"

    run(body)


@pytest.mark.parametrize("patience", [SETTLE_S, 0.0], ids=["asked in time", "before any device has answered"])
def test_a_controller_without_memory_hears_of_every_link_before_it_writes(
    single: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr("controller.react.SETTLE_S", patience)
    gray = single.link("nic1", "p1")
    to_p1, to_p2 = single.link("nic2", "p1"), single.link("nic2", "p2")

    async def body() -> None:
        async with brought_up(single, tmp_path) as controller:
            single.loses[gray.upper] = 10
            crossed = {to_p1.lower: to_p2.upper, to_p2.upper: to_p1.lower, to_p2.lower: to_p1.upper}
            single.cabling |= crossed | {to_p1.upper: to_p2.lower}
            known = {gray.name: "gray", single.link("nic1", "p2").name: "up"}
            known |= {to_p1.name: "miscabled", to_p2.name: "miscabled"}
            await beat(single, 150)  # half a window after what was told again
            await controller.until(lambda: states(controller) == known and controller.converged())
        (tmp_path / "memory.json").unlink()
        again = controller_of(single, tmp_path)
        async with again.running():
            while len(events(again, "session-up")) < len(again.sessions):
                await beat(single, 1)  # so seldom that no window ends
                await asyncio.sleep(0.02)
            settled = time.monotonic() + 2 * SETTLE_S
            while time.monotonic() < settled:
                await beat(single, 1)  # so seldom that no window ends
                await asyncio.sleep(0.02)
            assert not again.converged(), "not all is known"
            while not again.converged():
                await beat(single, 1)
            assert states(again) == known
            assert writes(again) == []

    run(body)


def test_of_links_without_a_session_at_either_end_nothing_is_known(single: Fabric, tmp_path: Path) -> None:
    async def body() -> None:
        async with brought_up(single, tmp_path) as controller:
            for name in ("nic1", "p1"):
                single.lose_session(name)
                await controller.until(lambda name=name: controller.sessions[name].state is SessionState.CLOSED)  # type: ignore[misc]
            await controller.until(lambda: controller.tracker.device_state("p1") is DeviceState.UNMANAGED)
            states = {row["link"]: row["state"] for row in report.links(controller)}
            assert states == dict.fromkeys(states, "up") | {single.link("nic1", "p1").name: "unknown"}
            assert report.status(controller)["links"]["unknown"] == 1

    run(body)


def test_a_backup_changes_nothing_until_it_takes_over_in_the_sessions_that_it_has(
    single: Fabric, tmp_path: Path
) -> None:
    async def body() -> None:
        backup = controller_of(single, tmp_path, election_id=5, poll_s=3600)  # nothing but the devices' word moves it
        async with backup.running():
            async with brought_up(single, tmp_path):
                await backup.until(lambda: len(events(backup, "not-primary")) == 4)
                assert {session.state for session in backup.sessions.values()} == {SessionState.BACKUP}
            while not backup.converged():
                await beat(single, 1)
            assert {session.state for session in backup.sessions.values()} == {SessionState.PRIMARY}
            assert len(events(backup, "session-up")) == 4
            assert events(backup, "session-lost") == []
            assert writes(backup) == []

    run(body)
