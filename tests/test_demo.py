"""scripts/demo tells its story, for real where it can, and leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mininet_topos import runs
from mininet_topos.targets import Target
from scripts.lib import demo_fabric
from scripts.lib.demo_report import Fault, Report, Spread
from scripts.lib.demo_traffic import Result
from tests.mininet_support import NEEDS_MININET

PLANES = ("p1", "p2", "p3", "p4")


@pytest.fixture
def no_leftovers() -> Iterator[None]:
    before = set(runs.all_runs())
    yield
    # runs of others may be up; none may be there whose owner is gone
    assert [run for run in runs.all_runs() if run not in before and not run.alive] == []


needs_mininet = [*NEEDS_MININET, pytest.mark.usefixtures("no_leftovers")]


class TestForReal:
    pytestmark = needs_mininet

    @pytest.mark.slow
    def test_traffic_outlives_a_plane(self, root: Path, tmp_path: Path) -> None:
        words: list[str | Path] = [root / "scripts/demo", "--target", "softswitch", "--json", tmp_path / "demo.json"]
        done = subprocess.run(words, cwd="/", capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "======== summary" in done.stdout
        said = json.loads((tmp_path / "demo.json").read_text())
        lost = {phase["phase"]: phase["lost"] for phase in said["phases"]}
        assert lost.pop("p2 killed") > 0
        assert set(lost.values()) == {0}
        assert said["good"] and said["fault"]["last_lost_s"] <= said["fault"]["detection_window_s"]
        assert said["spread"]["p2 killed"]["p2"] == 0
        assert said["queue_marks"] == sum(phase["marked"] for phase in said["phases"]) > 0

    @pytest.mark.parametrize(
        ("when", "sent", "status"),
        [
            ("starting", signal.SIGINT, 130),
            ("under control", signal.SIGINT, 130),
            ("under control", signal.SIGTERM, 143),
        ],
    )
    def test_interruption_leaves_a_report_and_nothing_else_behind(
        self, root: Path, tmp_path: Path, when: str, sent: signal.Signals, status: int
    ) -> None:
        path = tmp_path / "demo.json"
        words: list[str | Path] = [root / "scripts/demo", "--target", "softswitch", "--json", path]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, process_group=0) as demo:
            try:
                assert demo.stdout is not None
                assert any(line.startswith(when) for line in demo.stdout)
                demo.send_signal(sent)
                summary = demo.stdout.read()
                assert demo.wait(timeout=30) == status
            finally:
                demo.kill()
        said = json.loads(path.read_text())
        assert not said["good"] and said["reasons"][0].endswith(": interrupted")
        assert f"NOT GOOD: {said['reasons'][0]}" in summary

    def test_a_fabric_that_does_not_come_up_is_reported_with_what_its_controller_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        endless = replace(demo_fabric.PACES[Target.SOFTSWITCH], health={"probation": 65535})
        monkeypatch.setitem(demo_fabric.PACES, Target.SOFTSWITCH, endless)
        monkeypatch.setattr(demo_fabric, "LINKS_S", 0.0)
        monkeypatch.setattr("os.nice", lambda _: 0)
        with pytest.raises(demo_fabric.DemoError, match=r"after 0 s"):
            demo_fabric.run(Target.SOFTSWITCH, tmp_path / "demo.json")
        said = json.loads((tmp_path / "demo.json").read_text())
        (reason,) = said["reasons"]
        assert "bring-up: after 0 s the fabric is not healthy; links that are not up: {'p1': 4," in reason
        (phase,) = said["phases"]
        assert phase["phase"] == "bring-up" and "session-up" in {event["kind"] for event in phase["events"]}
        assert f"NOT GOOD: {reason}" in capfd.readouterr().out


@pytest.mark.parametrize("word", [["--json", "never.json"], ["--target", "softswitch"]])
def test_options_of_the_fabric_are_refused_in_virtual_time(root: Path, tmp_path: Path, word: list[str]) -> None:
    words: list[str | Path] = [root / "scripts/demo", "--lab", *word]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--target and --json are of the story with network namespaces, which --lab does without" in done.stderr


def report(lost_after_s: float, packets: tuple[int, ...] = (400, 0, 400, 400)) -> Report:
    """A run that lost one packet, sent so long after the plane died."""
    made = Report("softswitch", 50_000, window_s=0.25, queue_marks=7)
    made.results = [Result("incast", 100, 100, 7, ()), Result("p2 killed", 100, 99, 0, (1000.0 + lost_after_s,))]
    made.spreads = [Spread("p2 killed", dict(zip(PLANES, packets, strict=True)))]
    event = {"kind": "link-down", "evidence": "n1:2 says down (heartbeats missed)", "subject": "n1:2", "time": 1000.2}
    made.fault = Fault("p2", 1000.0, [event])
    return made


def test_loss_within_the_detection_window_is_good() -> None:
    assert report(0.2).good
    assert report(0.2).as_dict()["fault"]["last_lost_s"] == pytest.approx(0.2)


def test_loss_after_the_detection_window_is_not_good() -> None:
    assert not report(0.3).good


def test_loss_before_the_fault_is_not_good() -> None:
    made = report(0.2)
    made.results.append(Result("healthy", 100, 99, 0, (990.0,)))
    assert not made.good


def test_a_loss_is_told_with_the_events_of_its_phase(capsys: pytest.CaptureFixture[str]) -> None:
    made = report(0.2)
    made.begun = {"healthy": 980.0, "incast": 991.0, "p2 killed": 999.0}
    made.results.insert(0, Result("healthy", 100, 99, 0, (990.0,)))
    gone = {"kind": "link-down", "subject": "n3:1-p1s1:3", "evidence": "heartbeats missed", "reaction": ""}
    made.events = [gone | {"time": at} for at in (979.0, 990.0, 991.0)]
    assert made.reasons() == ["healthy: 1 of 100 lost; 1 link-down"]
    made.show()
    summary = capsys.readouterr().out
    assert summary.count("link-down n3:1-p1s1:3: heartbeats missed\n") == 1
    assert "NOT GOOD: healthy: 1 of 100 lost; 1 link-down\n" in summary
    phases = {phase["phase"]: phase["events"] for phase in made.as_dict()["phases"]}
    assert [len(events) for events in phases.values()] == [1, 1, 0]


def test_a_story_that_does_not_come_to_its_end_is_not_good_for_that_reason() -> None:
    made = Report("softswitch", 50_000, window_s=0.25, failure="n1 does not answer")
    assert made.reasons() == ["start: n1 does not answer"]
    made.begun = {"bring-up": 1.0}
    assert not made.good and made.as_dict()["reasons"] == ["bring-up: n1 does not answer"]


@pytest.mark.parametrize("packets", [(600, 0, 300, 300), (400, 1, 400, 400), (0, 0, 0, 0)])
def test_uneven_spread_or_traffic_into_a_dead_plane_is_not_good(packets: tuple[int, ...]) -> None:
    assert not report(0.2, packets).good


def test_demo_in_virtual_time_is_the_same_every_time(root: Path) -> None:
    told = [
        subprocess.run([root / "scripts/demo", "--lab"], capture_output=True, text=True, timeout=120) for _ in range(2)
    ]
    assert [run.returncode for run in told] == [0, 0], told[0].stdout + told[0].stderr
    assert told[0].stdout == told[1].stdout
