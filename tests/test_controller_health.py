"""Health without devices: what notices make of links, planes and devices; counters as evidence; proofs from entries."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from controller.device import LinkDigest, PacketIn, SessionDown, SessionState, SessionUp
from controller.entities import Entity, TableEntry
from controller.events import EventLog
from controller.health import HealthTracker
from controller.intent import load_intent
from controller.memory import Memory
from controller.model import AclAction, AclRule, PortRef
from controller.paths import FabricView
from controller.plan import plan
from controller.postcards import POSTCARD, REASON, Mailbox
from controller.records import (
    DEGRADED,
    DOWN,
    PROBATION,
    UP,
    DeviceState,
    EndReport,
    Failure,
    LinkState,
    PlaneState,
    Remembered,
)
from controller.telemetry import Rate, Snapshot, Telemetry, silent_ports
from controller.verify import Finding, verify

EXAMPLES = Path(__file__).resolve().parent.parent / "controller/examples"
INTENT = load_intent(EXAMPLES / "single-tier.yaml")
LINK = "nic1:2-p1:1"
LOWER, UPPER = PortRef("nic1", 2), PortRef("p1", 1)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def tracker(clock: Clock | None = None) -> HealthTracker:
    return HealthTracker(INTENT, EventLog(clock=lambda: 0.0), clock or Clock())


def digest(end: PortRef, state: int, *, reason: int = 0, **values: int) -> LinkDigest:
    whole = {
        "port": end.port, "state": state, "old_state": 0, "reason": reason, "rx_state": state, "neighbor_rx_state": UP,
        "device": 0, "device_port": 0, "lost": 0, "expected": 0, "flaps": 0, "time": 0,
    }  # fmt: skip
    return LinkDigest(end.device, whole | values, 0.0)


def kinds(health: HealthTracker) -> list[str]:
    return [event.kind for event in health.log.since()]


def test_a_link_is_as_bad_as_its_worse_end_says() -> None:
    health = tracker()
    for end, state, expected in (
        (LOWER, PROBATION, LinkState.PROBATION), (UPPER, UP, LinkState.PROBATION), (LOWER, UP, LinkState.UP),
        (UPPER, DEGRADED, LinkState.GRAY), (LOWER, DOWN, LinkState.DOWN),
    ):  # fmt: skip
        health.on_digest(digest(end, state))
        assert health.links[LINK].state is expected


def test_a_new_link_in_probation_is_as_good_as_any_and_one_that_was_down_is_not() -> None:
    health = tracker()
    health.on_digest(digest(LOWER, PROBATION))
    assert health.view() == FabricView()
    health.on_digest(digest(LOWER, DOWN))
    assert health.view() == FabricView(down=frozenset({LINK}))
    health.on_digest(digest(LOWER, PROBATION))
    assert health.view() == FabricView(gray=frozenset({LINK}))


def test_a_link_that_comes_back_is_held_for_longer_after_each_failure_and_forgiven_in_time() -> None:
    clock = Clock()
    health = tracker(clock)
    held = []
    for wait in (0.0, 1.0, 1.0, 100.0):
        clock.now += wait
        health.on_digest(digest(LOWER, DOWN))
        health.on_digest(digest(LOWER, UP))
        assert health.links[LINK].state is LinkState.HELD
        release = health.next_release()
        assert release is not None
        held.append(round(release - clock.now, 3))
        assert health.tick() is False
        clock.now = release
        assert health.tick() is True
        assert health.view() == FabricView()
    assert held == [0.5, 1.0, 2.0, 0.5]


def test_the_direction_and_the_share_of_loss_are_those_of_the_end_that_receives() -> None:
    health = tracker()
    health.on_digest(digest(UPPER, DEGRADED, reason=4, lost=7, expected=1000))
    health.on_digest(digest(LOWER, DEGRADED, rx_state=UP, reason=6))
    assert health.links[LINK].loss() == (0.007, 0.0)
    assert health.log.since()[0].evidence == (
        "nic1:2 has not told; p1:1 says degraded (loss), lost 7 of 1000 towards it"
    )


def test_a_session_that_is_lost_says_nothing_of_the_device() -> None:
    health = tracker()
    health.on_session(SessionUp("p1", SessionState.PRIMARY, ()))
    assert health.device_state("p1") is DeviceState.UP
    health.on_session(SessionDown("p1", "UNAVAILABLE"))
    assert (health.device_state("p1"), health.view()) == (DeviceState.UNMANAGED, FabricView())
    health.on_digest(digest(LOWER, DOWN, reason=2))
    assert health.device_state("p1") is DeviceState.UNMANAGED, "one neighbour is not all"
    health.on_digest(digest(PortRef("nic2", 2), DOWN, reason=2))
    assert health.device_state("p1") is DeviceState.DEAD
    assert health.view().dead == {"p1"}
    assert kinds(health)[-2:] == ["link-down", "device-dead"]


def test_a_device_with_a_session_is_not_dead_whatever_its_neighbours_say() -> None:
    health = tracker()
    health.on_session(SessionUp("p1", SessionState.PRIMARY, ()))
    for end in (LOWER, PortRef("nic2", 2)):
        health.on_digest(digest(end, DOWN, reason=2))
    assert health.device_state("p1") is DeviceState.UP
    assert health.plane_state("plane1") is PlaneState.DOWN


def test_an_end_where_nothing_arrives_is_down_although_nobody_told() -> None:
    before, after = (
        Snapshot(1.0, {("rx", 1): (10, 0), ("rx", 2): (5, 0)}),
        Snapshot(4.0, {("rx", 1): (10, 0), ("rx", 2): (9, 0)}),
    )
    assert silent_ports(before, after) == {1}
    health = tracker()
    for end in (LOWER, UPPER):
        health.on_digest(digest(end, UP))
    health.on_silence(UPPER)
    assert health.links[LINK].state is LinkState.DOWN
    assert "p1:1 says down (heartbeats missed)" in health.log.since()[-2].evidence


def test_what_is_remembered_is_taken_up_until_it_is_told_anew(tmp_path: Path) -> None:
    first = tracker()
    first.on_digest(digest(LOWER, DOWN, reason=2))
    first.on_digest(digest(PortRef("nic2", 2), DOWN, reason=3, device=1, device_port=9))
    first.drain("plane2")
    Memory(tmp_path / "memory.json").save(first.remember())
    second = tracker()
    second.restore(Memory(tmp_path / "memory.json").load())
    assert second.view() == first.view()
    second.on_digest(digest(LOWER, UP))
    assert second.links[LINK].state is LinkState.HELD
    assert second.links["nic2:2-p1:2"].state is LinkState.MISCABLED


def test_how_often_a_link_failed_and_until_when_it_is_held_is_remembered(tmp_path: Path) -> None:
    clock = Clock()
    clock.now = time.monotonic()
    first = tracker(clock)
    for state in (DOWN, UP, DOWN, UP):
        first.on_digest(digest(LOWER, state))
    Memory(tmp_path / "memory.json").save(first.remember())
    second = tracker(clock)
    second.restore(Memory(tmp_path / "memory.json").load())
    before, after = first.links[LINK], second.links[LINK]
    assert (after.state, after.flaps) == (before.state, before.flaps) == (LinkState.HELD, 2)
    assert after.held_until == pytest.approx(before.held_until, abs=0.2)
    clock.now = before.held_until + 0.2
    assert second.tick()
    assert after.state is LinkState.UP


def test_what_is_told_again_changes_nothing() -> None:
    health = tracker()
    health.on_digest(digest(LOWER, DEGRADED, reason=4, lost=3, expected=100))
    before = (health.version, kinds(health))
    health.on_digest(digest(LOWER, DEGRADED, reason=4, lost=3, expected=100))
    assert (health.version, kinds(health)) == before


def test_a_memory_that_makes_no_sense_is_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    for text in ("", "[]", '{"ends": [{"device": 1}], "drained": []}'):
        path.write_text(text)
        assert Memory(path).load().ends == ()
    restored = tracker()
    gone = PortRef("gone", 1)
    failure = Failure("gone", 1, 0, 0, True)
    restored.restore(Remembered(((gone, EndReport(state=DOWN)),), (failure,), (gone,), ("gone",)))
    assert restored.remember() == Remembered()
    assert restored.view() == FabricView()


def test_rates_are_between_the_last_two_polls_and_a_restart_begins_anew() -> None:
    telemetry = Telemetry()
    end = PortRef("p1", 1)
    telemetry.add("p1", Snapshot(10.0, {("rx", 1): (100, 1000)}))
    assert telemetry.port("rx", end) == Rate(100, 1000)
    telemetry.add("p1", Snapshot(12.0, {("rx", 1): (300, 5000)}, {("marked", 1, 2): (4, 400)}))
    assert telemetry.port("rx", end) == Rate(300, 5000, 100.0, 16000.0)
    assert telemetry.queue("marked", end, 2) == Rate(4, 400, 2.0, 1600.0)
    telemetry.add("p1", Snapshot(13.0, {("rx", 1): (5, 50)}))
    assert telemetry.port("rx", end) == Rate(5, 50)
    assert telemetry.at("p1", 12.0) is None


def without(installed: dict[str, frozenset[Entity]], device: str, table: str) -> dict[str, frozenset[Entity]]:
    kept = frozenset(one for one in installed[device] if not (isinstance(one, TableEntry) and one.table == table))
    return installed | {device: kept}


def test_what_is_planned_is_proved_and_what_is_missing_is_found() -> None:
    for example in ("single-tier.yaml", "leaf-spine.yaml"):
        intent = load_intent(EXAMPLES / example)
        assert verify(intent, FabricView(), plan(intent), {}) == []
    whole = plan(INTENT)
    found = {
        table: [
            str(one.message)
            for one in verify(INTENT, FabricView(), without(whole, "p1", table), {})
            if one.subject == "p1"
        ]
        for table in ("neighbor", "group", "station", "port")
    }
    assert found["neighbor"] == ["port 1 has no neighbor", "port 2 has no neighbor"]
    assert found["group"] == [
        "packets for h1 are to take group 1, which is missing", "packets for h2 are to take group 2, which is missing",
    ]  # fmt: skip
    nic = [one for one in verify(INTENT, FabricView(), without(whole, "p1", "station"), {}) if one.subject == "nic1"]
    assert nic == [Finding("nic1", "port 2 leads to p1:1, which does not take frames for 02:50:50:00:00:0b")]
    missing = {name: entities for name, entities in whole.items() if name != "p2"}
    found_without = verify(INTENT, FabricView(), missing, {"p2": "it is gone"})
    assert Finding("p2", "could not be read: it is gone") in found_without
    assert Finding("h1 -> h2", "ipv4 does not use plane2") in found_without


def test_access_rules_that_are_missing_or_too_much_are_found() -> None:
    denied = dataclasses.replace(INTENT, acl=(*INTENT.acl, AclRule(AclAction.DENY, protocol=17)))
    (rule,) = plan(denied)["p1"] - plan(INTENT)["p1"]
    assert verify(denied, FabricView(), plan(denied), {}) == []
    missing = verify(denied, FabricView(), plan(denied) | {"p1": plan(INTENT)["p1"]}, {})
    assert missing == [Finding("p1", f"access rule missing: {rule}")]
    extra = verify(INTENT, FabricView(), plan(INTENT) | {"p1": plan(denied)["p1"]}, {})
    assert extra == [Finding("p1", f"access rule too much: {rule}")]


def test_a_group_with_a_wrong_member_is_found() -> None:
    whole = plan(INTENT)
    (group,) = [
        one for one in whole["p1"] if isinstance(one, TableEntry) and one.table == "group" and one.match[0][1] == 1
    ]
    wrong = dataclasses.replace(group, params=(("ports", 4), ("watched_ports", 4)))
    installed = whole | {"p1": whole["p1"] - {group} | {wrong}}
    messages = [str(one.message) for one in verify(INTENT, FabricView(), installed, {})]
    assert "group 1 has ports [2], should have [1]" in messages
    assert "ipv4 does not use plane1" in messages


def postcard(port: int, frame: bytes = b"", waited: int = 250) -> PacketIn:
    return PacketIn("p1", POSTCARD.pack(1, 2, 70, 64, waited) + frame, {"ingress_port": port, "reason": REASON})


def test_of_the_postcards_of_a_queue_one_a_second_is_told_with_how_many_there_were() -> None:
    log, now = EventLog(), [0.0]
    mailbox = Mailbox(INTENT, log, lambda: now[0])
    for at, port in ((0.0, 1), (0.4, 1), (0.5, 2), (0.9, 1), (1.0, 1)):
        now[0] = at
        mailbox.take(postcard(port))
    said = "data packet waited 250 us in queue 1 and left 64 packets behind"
    assert [(event.kind, event.subject, event.evidence) for event in log.since()] == [
        ("postcard", "p1:1", said), ("postcard", "p1:2", said),
        ("postcard", "p1:1", f"{said}; 2 more since the last one told"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (bytes(12) + b"\x08\x00" + bytes(12) + bytes([10, 0, 0, 1, 10, 0, 0, 2]), " 10.0.0.1 -> 10.0.0.2"),
        (bytes(12) + b"\x86\xdd" + bytes(8) + bytes(15) + b"\1" + bytes(15) + b"\2", " ::1 -> ::2"),
        (bytes(12) + b"\x08\x00" + bytes(19), ""),
        (b"", ""),
    ],
    ids=["IPv4", "IPv6", "cut short", "nothing"],
)
def test_a_postcard_names_the_addresses_of_its_packet(frame: bytes, said: str) -> None:
    log = EventLog()
    Mailbox(INTENT, log, lambda: 0.0).take(postcard(1, frame))
    assert log.since()[0].evidence.startswith(f"data packet{said} waited")


def test_a_postcard_tells_a_long_wait_to_the_microsecond() -> None:
    log = EventLog()
    Mailbox(INTENT, log, lambda: 0.0).take(postcard(1, waited=1_279_163))
    assert log.since()[0].evidence.startswith("data packet waited 1279163 us")


def test_a_postcard_that_is_too_short_is_a_stray_report() -> None:
    log = EventLog()
    Mailbox(INTENT, log, lambda: 0.0).take(PacketIn("p1", bytes(5), {"ingress_port": 1, "reason": REASON}))
    assert [(event.kind, event.subject, event.evidence) for event in log.since()] == [
        ("stray-report", "p1:1", "a postcard of 5 bytes"),
    ]  # fmt: skip
