"""The demo's live table, and what its measurements come to."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from controller.cli.run import event_line
from scripts.lib.demo_traffic import Result, Traffic

EVEN = 0.02  # how far a plane's share may be from an even one
LIVE = ("up", "degraded")
SHOWN = 8  # events of a phase that was not as it should be


@dataclass(frozen=True, slots=True)
class Spread:
    """Packets that the NICs sent into each plane while a phase was watched."""

    phase: str
    packets: dict[str, int]

    def shares(self) -> dict[str, float]:
        """By plane; all zero where nothing was sent."""
        total = sum(self.packets.values()) or 1
        return {plane: packets / total for plane, packets in self.packets.items()}

    def is_even(self, without: str | None = None) -> bool:
        """Whether every plane has its share, and the one left out has nothing."""
        used = len(self.packets) - (without is not None)
        wanted = {plane: 0.0 if plane == without else 1 / used for plane in self.packets}
        shares = self.shares()
        return self.packets.get(without or "", 0) == 0 and all(abs(shares[p] - wanted[p]) <= EVEN for p in wanted)


@dataclass(frozen=True, slots=True)
class Fault:
    """The plane that was killed, when (seconds since the epoch), and the controller's diary from then on."""

    plane: str
    time: float
    events: list[dict[str, Any]]

    def first(self, kind: str) -> dict[str, Any] | None:
        """The first event of a kind."""
        return next((event for event in self.events if event["kind"] == kind), None)

    def after_s(self, kind: str) -> float | None:
        """Seconds from the fault to that."""
        event = self.first(kind)
        return None if event is None else event["time"] - self.time


@dataclass
class Report:
    """What was measured. Times are seconds; ``window_s`` is how long a dead link may go unseen.

    ``failure`` says why the story was not told to its end; ``events`` is the controller's diary, and where it could not
    be asked, ``log`` the end of what it printed.
    """

    target: str
    heartbeat_us: int
    window_s: float
    results: list[Result] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    fault: Fault = field(default_factory=lambda: Fault("", 0.0, []))
    events: list[dict[str, Any]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    failure: str = ""
    begun: dict[str, float] = field(default_factory=dict)  # phases, and when (seconds since the epoch)
    queue_marks: int = 0
    duplicates: int = 0
    back_s: float = 0.0
    took_s: float = 0.0
    _traffic: Traffic | None = None
    _shown: tuple[float, tuple[int, int, int]] = (0.0, (0, 0, 0))
    _started: float = 0.0

    # ---- phases ----------------------------------------------------------------------------------------------------

    def begin(self, phase: str) -> None:
        """A phase begins, and the one before it ends."""
        self.begun[phase] = time.time()

    @property
    def phase(self) -> str:
        """The current one."""
        return list(self.begun)[-1] if self.begun else ""

    def events_of(self, phase: str) -> list[dict[str, Any]]:
        """What the controller told between its beginning and that of the next."""
        started = self.begun.get(phase, float("inf"))
        ended = min((at for at in self.begun.values() if at > started), default=float("inf"))
        return [event for event in self.events if started <= event["time"] < ended]

    # ---- live ------------------------------------------------------------------------------------------------------

    def start(self, traffic: Traffic) -> None:
        """The live table's head; its first line follows a second later."""
        self._traffic = traffic
        self._started = time.monotonic()
        self._shown = (self._started, (0, 0, 0))
        print(f"{'s':>5s}  {'phase':16s}{'sent/s':>8s}{'recv/s':>8s}{'CE/s':>6s}   packets a second into each plane")

    def tick(self, planes: Callable[[], list[tuple[str, float]]]) -> None:
        """A line of the live table, where the last one is a second old."""
        now, (then, before) = time.monotonic(), self._shown
        if self._traffic is None or now - then < 1:
            return
        totals = self._traffic.totals()
        sent, received, marked = ((new - old) / (now - then) for old, new in zip(before, totals, strict=True))
        self._shown = (now, totals)
        columns = "".join(f"{f'{pps:.0f}' if state in LIVE else state:>7s}" for state, pps in planes())
        passed = now - self._started
        print(f"{passed:5.1f}  {self.phase:16s}{sent:8.0f}{received:8.0f}{marked:6.0f}  {columns}", flush=True)

    # ---- conclusions -----------------------------------------------------------------------------------------------

    @property
    def last_lost_s(self) -> float | None:
        """From the fault to the sending of the last packet that it cost; None where it cost none."""
        lost = [at for result in self.results if result.phase == f"{self.fault.plane} killed" for at in result.lost_at]
        return max(lost) - self.fault.time if lost else None

    def _phases(self) -> list[tuple[str, bool, str]]:
        checks = []
        for result in self.results:
            if result.sent:
                allowed = result.phase == f"{self.fault.plane} killed"
                kinds = Counter(event["kind"] for event in self.events_of(result.phase))
                told = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no events"
                figures = f"{result.lost} of {result.sent} lost; {told}"
                checks.append((result.phase, result.lost == 0 or allowed, figures))
        return checks

    def checks(self) -> list[tuple[str, bool, str]]:
        """What is claimed, whether it holds, and the figures; of a story without its end, what phases lost."""
        checks, plane = self._phases(), self.fault.plane
        if self.failure:
            return checks
        last = self.last_lost_s
        within = last is None or last <= self.window_s
        figures = "none" if last is None else f"{last * 1000:.0f} ms after the fault"
        checks.append(("last lost packet sent", within, f"{figures} (may be {self.window_s * 1000:.0f})"))
        for spread in self.spreads:
            without = plane if spread.phase == f"{plane} killed" else None
            shares = "  ".join(f"{name} {share:.1%}" for name, share in spread.shares().items())
            checks.append((f"spread {spread.phase}", spread.is_even(without), shares))
        received = sum(result.marked for result in self.results if result.phase == "incast")
        figures = f"{self.queue_marks} by the queues, {received} received"
        checks.append(("incast packets ECN-marked", received > 0 and self.queue_marks > 0, figures))
        checks.append(self._detection())
        return checks

    def _detection(self) -> tuple[str, bool, str]:
        event, after = self.fault.first("link-down"), self.fault.after_s("link-down")
        if event is None or after is None:
            return "detected by", False, "nobody"
        witness = next((part for part in event["evidence"].split("; ") if "says down" in part), event["evidence"])
        return "detected by", True, f"{witness}, told after {after * 1000:.0f} ms"

    @property
    def good(self) -> bool:
        """Whether the story came to its end and every claim holds."""
        return not self.reasons()

    def reasons(self) -> list[str]:
        """Why it is not good."""
        failure = [f"{self.phase or 'start'}: {self.failure}"] if self.failure else []
        return failure + [f"{name}: {figures}" for name, holds, figures in self.checks() if not holds]

    def show(self) -> None:
        """The summary."""
        print("\n======== summary")
        for name, holds, figures in self.checks():
            print(f"  {name:28s} {figures}{'' if holds else '  <- not as it should be'}")
            self._show_events([] if holds else self.events_of(name))
        if self.failure:
            print(f"  {self.phase or 'start':28s} {self.failure}")
            self._show_events(self.events_of(self.phase))
        else:
            self._show_times()
        print("".join(f"    {line}\n" for line in self.log), end="")
        print(f"  {'took':28s} {self.took_s:.1f} s on {self.target}, heartbeat {self.heartbeat_us / 1000:g} ms")
        print(f"  {'verdict':28s} {'good' if self.good else 'NOT GOOD: ' + '; '.join(self.reasons())}", flush=True)

    @staticmethod
    def _show_events(events: list[dict[str, Any]]) -> None:
        for event in events[:SHOWN]:
            print(f"    {event_line(event)}")
        if len(events) > SHOWN:
            print(f"    and {len(events) - SHOWN} more events")

    def _show_times(self) -> None:
        for kind, words in (("plane-down", "controller: plane is down"), ("device-dead", "controller: switch is dead")):
            after = self.fault.after_s(kind)
            print(f"  {words:28s} {'never' if after is None else f'{after * 1000:.0f} ms after the fault'}")
        print(f"  {'plane whole again':28s} {self.back_s:.1f} s after the restart of its switch")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        last, detected = self.last_lost_s, self.fault.first("link-down")
        results = {result.phase: result for result in self.results}
        return {
            "target": self.target,
            "good": self.good,
            "reasons": self.reasons(),
            "heartbeat_us": self.heartbeat_us,
            "phases": [
                {"phase": r.phase, "sent": r.sent, "received": r.received, "lost": r.lost, "marked": r.marked}
                | {"events": self.events_of(r.phase)}
                for r in (results.get(phase, Result(phase, 0, 0, 0, ())) for phase in self.begun)
            ],
            "duplicates": self.duplicates,
            "spread": {spread.phase: spread.packets for spread in self.spreads},
            "queue_marks": self.queue_marks,
            "fault": {
                "plane": self.fault.plane,
                "detection_window_s": self.window_s,
                "last_lost_s": last,
                "detected_s": self.fault.after_s("link-down"),
                "detected_link": detected["subject"] if detected else None,
                "evidence": detected["evidence"] if detected else None,
                "plane_down_s": self.fault.after_s("plane-down"),
                "device_dead_s": self.fault.after_s("device-dead"),
                "plane_back_s": self.back_s,
            },
            "took_s": self.took_s,
            "events": self.events,
            "controller_log": self.log,
            "checks": [{"claim": name, "holds": holds, "figures": figures} for name, holds, figures in self.checks()],
        }
