"""The demo as root: four hosts with SmartNICs on four planes, the controller, traffic, an incast, a plane that dies.

The network is :mod:`mininet_topos`, the controller ``polyplane up``: what a user would start. The plane dies by SIGKILL
to its switch, and comes back when that is started again.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.api import ApiError, call
from mininet_topos.intent import intent, write_intent
from mininet_topos.multiplane import multiplane
from mininet_topos.network import FabricNet, Settings, running
from mininet_topos.queues import QueueSettings, set_queues
from mininet_topos.targets import Target
from scripts.lib.demo_report import Fault, Report, Spread
from scripts.lib.demo_traffic import Pair, Traffic

PLANES = ("p1", "p2", "p3", "p4")
NICS = ("n1", "n2", "n3", "n4")
VICTIM = "p2"
RING: tuple[Pair, ...] = (("h1", "h2"), ("h2", "h3"), ("h3", "h4"), ("h4", "h1"))
INCAST: tuple[Pair, ...] = (("h2", "h1"), ("h3", "h1"), ("h4", "h1"))
DSCP, DATA_QUEUE = 26, 1
INTENT = {
    "classes": {
        "control": {"dscp": 48, "queue": 7, "spray": "ecmp"},
        "data": {"dscp": DSCP, "queue": DATA_QUEUE, "spray": "spray_rr", "ecn": "ramp"},
        "other": {"queue": 0, "spray": "ecmp"},
    },
    "ecn_profiles": {"ramp": {"mode": "ramp", "kmin": 8, "kmax": 32, "pmax": 0.5}},
}
DEPTH = 1024  # packets; the incast is to be marked, not dropped
MISSED_LIMIT = 3
FIRST = -10  # niceness of the fabric: who is not given the processor in time looks dead to its neighbours
PHASE_S = 3.0
QUIET_S = 0.5  # between what a phase changes and its first packet, or its last packet and what comes then
UP_S = 60.0  # the longest wait for the controller; a loaded machine takes its time
LINKS_S = 60.0  # and then for all links
ARRIVED_S = 4.0  # for packets in queues
LOG_LINES = 20
BACK_S = 20.0  # and for the plane to be whole again


class DemoError(Exception):
    """The fabric did not get as far as the story needs; the text says what was awaited."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What a target can do on two cores with all of the fabric on them."""

    heartbeat_us: int
    flow_pps: int
    incast_queue_pps: int  # of each plane's queue to h1: a little less than what it gets
    health: dict[str, int]


PACES = {
    Target.SOFTSWITCH: Pace(50_000, 200, 140, {"probation": 10}),
    # under contention BMv2 loses packets at its input, on all links alike: that is no reason to avoid one of them
    Target.BMV2: Pace(100_000, 40, 22, {"probation": 10, "avoid_degraded": 0}),
}


class Story:
    """Tells it on a running network and keeps what it measured."""

    def __init__(self, net: FabricNet, pace: Pace, report: Report) -> None:
        self.net, self.pace, self.report = net, pace, report
        self.folder = net.run_of.folder
        self.socket = self.folder / "controller.sock"
        self.log_file = self.folder / "controller.log"

    def ask(self, name: str, **args: Any) -> Any:
        """A call of the controller's. Raises DemoError."""
        try:
            return call(self.socket, name, **args)
        except ApiError as error:
            raise DemoError(f"controller: {error}") from error

    def bring_up(self) -> None:
        """The intent file, and the controller in the background; the run's end is its end. Raises DemoError."""
        self.report.begin("bring-up")
        path = self.folder / "fabric.yaml"
        health = {"heartbeat_us": self.pace.heartbeat_us, "missed_limit": MISSED_LIMIT} | self.pace.health
        content = intent(self.net.topology, self.net.live(), self.pace.heartbeat_us) | INTENT | {"health": health}
        write_intent(path, content)
        words = ["polyplane", "-f", str(path), "--socket", str(self.socket), "up", "--detach", "--timeout", str(UP_S)]
        words += ["--memory", str(self.folder / "controller.memory"), "--log-file", str(self.log_file)]
        done = subprocess.run(words, env=self.net.run_of.environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise DemoError(done.stderr.strip() or f"polyplane up --detach ended with {done.returncode}")
        self.wait_for_planes(LINKS_S)

    def wait_for_planes(self, seconds: float) -> None:
        """Until every link of every plane is up and every device holds what it should. Raises DemoError."""
        deadline = time.monotonic() + seconds
        while True:
            status = self.ask("status")
            states = {row["plane"]: row["links"] - row["links_up"] for row in status["planes"]}
            if status["converged"] and status["healthy"] and not any(states.values()):
                return
            if time.monotonic() > deadline:
                raise DemoError(f"after {seconds:g} s the fabric is not healthy; links that are not up: {states}")
            self.watch(0.25)

    def watch(self, seconds: float) -> None:
        """Lets time pass, with a line of the live table each second."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.25))
            self.report.tick(self.planes_now)

    def wait_for_packets(self) -> None:
        """Until all that was sent has arrived, within limits."""
        deadline = time.monotonic() + ARRIVED_S
        while len(set(self.traffic.totals()[:2])) > 1 and time.monotonic() < deadline:
            self.watch(0.1)

    def planes_now(self) -> list[tuple[str, float]]:
        """State of each plane, and packets a second that the NICs send into it."""
        states = [row["state"] for row in self.ask("planes")]
        rates: Counter[int] = Counter()
        for row in self.ask("ports"):
            if row["device"] in NICS:
                rates[row["port"]] += row["forwarded_pps"]
        return [(state, rates[number]) for number, state in enumerate(states, 1)]

    def sent_into_planes(self) -> list[int]:
        """By plane: packets that all NICs together have sent into it, read now."""
        counters = self.ask("counters")
        return [
            sum(counters[nic].get(f"port {plane} forwarded", [0])[0] for nic in NICS)
            for plane in range(1, len(PLANES) + 1)
        ]

    def marks(self) -> int:
        """Packets that egress queues of all devices have marked, read now."""
        return sum(
            count[0]
            for counters in self.ask("counters").values()
            for name, count in counters.items()
            if name.endswith(f"queue {DATA_QUEUE} marked")
        )

    def spread_over(self, phase: str, seconds: float) -> None:
        """Watches for that long, and notes what the NICs sent into each plane meanwhile."""
        before = self.sent_into_planes()
        self.watch(seconds)
        after = self.sent_into_planes()
        packets = [new - old for old, new in zip(before, after, strict=True)]
        self.report.spreads.append(Spread(phase, dict(zip(PLANES, packets, strict=True))))

    def limit_incast(self, pps: int) -> None:
        """Limits the queue of every plane that leads to h1; 0 is no limit."""
        network = self.net.live()
        for plane in PLANES:
            set_queues(network.node(f"{plane}s1"), 1, QueueSettings(rate_pps=pps, depth_packets=DEPTH), DATA_QUEUE)

    def begin(self, phase: str, pairs: Sequence[Pair]) -> None:
        self.traffic.begin(phase, pairs)
        self.report.begin(phase)

    def tell(self) -> None:
        """The story, from the first packet to the last. Raises DemoError, LiveError, NodeError."""
        pairs = tuple(dict.fromkeys((*RING, *INCAST)))
        with Traffic(self.net.live(), pairs, DSCP, self.pace.flow_pps) as self.traffic:
            self.report.start(self.traffic)
            try:
                self.begin("warm-up", RING)
                self.watch(1.0)
                self.begin("healthy", RING)
                self.spread_over("healthy", PHASE_S)
                self.incast()
                self.kill()
                self.restore()
                self.begin("end", ())
            finally:
                self.traffic.begin("", ())
                time.sleep(2 * QUIET_S)
                self.report.results = [self.traffic.result(phase) for phase in self.traffic.phases]
                self.report.duplicates = self.traffic.duplicates

    def read_diary(self) -> None:
        """The controller's events, or else the end of its log, while the run's folder is there."""
        try:
            self.report.events = self.ask("events")
        except DemoError:
            with contextlib.suppress(OSError):
                self.report.log = self.log_file.read_text().splitlines()[-LOG_LINES:]

    def incast(self) -> None:
        """Three hosts send to the fourth, through queues that are a little too slow."""
        before = self.marks()
        self.limit_incast(self.pace.incast_queue_pps)
        self.begin("incast", INCAST)
        self.spread_over("incast", PHASE_S)
        self.begin("queues empty", ())
        self.wait_for_packets()
        self.limit_incast(0)
        self.report.queue_marks = self.marks() - before

    def kill(self) -> None:
        """The switch of the victim dies without a word."""
        victim = self.net[f"{VICTIM}s1"]
        seen = max((event["number"] for event in self.ask("events")), default=0)
        self.begin(f"{VICTIM} killed", RING)
        self.watch(QUIET_S)
        killed = time.time()
        self.report.fault = Fault(VICTIM, killed, [])
        for process in victim.processes:
            process.kill()
        self.watch(self.report.window_s + QUIET_S)
        self.spread_over(f"{VICTIM} killed", PHASE_S)
        events = self.ask("events", since=seen)
        self.report.fault = Fault(VICTIM, killed, [event for event in events if event["time"] >= killed])

    def restore(self) -> None:
        """The switch is started again; the controller does the rest."""
        self.begin(f"{VICTIM} coming back", RING)
        started = time.monotonic()
        victim = self.net[f"{VICTIM}s1"]
        victim.stop()
        victim.launch()
        victim.wait_ready()
        self.wait_for_planes(BACK_S)
        self.report.back_s = time.monotonic() - started
        self.begin("restored", RING)
        self.spread_over("restored", PHASE_S)


def run(target: Target, json_file: Path | None) -> int:
    """The demo; 0 when everything went as it should. Raises DemoError, TopologyError, NodeError, LiveError, OSError.

    However it ends, the summary is shown and the file written.
    """
    pace = PACES[target]
    report = Report(str(target), pace.heartbeat_us, (MISSED_LIMIT + 2) * pace.heartbeat_us / 1e6)
    if json_file is not None:
        json_file.touch()  # fails now, not at the end
    started = time.monotonic()
    with contextlib.suppress(PermissionError):  # a container may have no right to that
        os.nice(FIRST)
    settings = Settings(target, pace.heartbeat_us)
    try:
        print(f"starting 4 hosts with SmartNICs and 4 planes on {target}", flush=True)
        with running(multiplane(len(PLANES), len(NICS)), settings) as net:
            story = Story(net, pace, report)
            try:
                story.bring_up()
                print(f"under control after {time.monotonic() - started:.1f} s\n", flush=True)
                story.tell()
            finally:
                story.read_diary()
    except BaseException as error:
        ended = isinstance(error, KeyboardInterrupt | SystemExit)
        report.failure = "interrupted" if ended else str(error) or repr(error)
        raise
    finally:
        report.took_s = time.monotonic() - started
        if json_file is not None:
            json_file.write_text(json.dumps(report.as_dict(), indent=2) + "\n")
        report.show()
    return 0 if report.good else 1
