"""What happened, when, on whose evidence, and what was done about it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

KEPT = 10_000
Kind = Literal[
    "link-down",
    "link-confirmed",
    "link-gray",
    "link-miscabled",
    "link-probation",
    "link-held",
    "link-restored",
    "link-up",
    "link-unknown",
    "port-down",
    "port-up",
    "device-dead",
    "device-back",
    "session-lost",
    "session-up",
    "plane-degraded",
    "plane-down",
    "plane-up",
    "plane-drained",
    "reconciled",
    "rerouted",
    "drained",
    "undrained",
    "postcard",
    "stray-report",
    "not-primary",
    "refused",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the fabric's diary.

    ``kind`` is one of KINDS, ``subject`` the link, device or plane, ``evidence`` what was seen and who
    saw it, ``reaction`` what the controller did. ``time`` is seconds since the epoch.
    """

    kind: Kind
    subject: str
    evidence: str = ""
    reaction: str = ""
    time: float = 0.0
    number: int = 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass
class EventLog:
    """The last events, oldest first; every event has a number one higher than the one before."""

    clock: Callable[[], float] = time.time
    listeners: list[Callable[[Event], None]] = field(default_factory=list)
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=KEPT))
    _next: int = 1

    def add(self, kind: Kind, subject: str, evidence: str = "", reaction: str = "") -> Event:
        """Note that something happened, now."""
        event = Event(kind, subject, evidence, reaction, self.clock(), self._next)
        self._next += 1
        self._events.append(event)
        for listener in self.listeners:
            listener(event)
        return event

    def since(self, number: int = 0) -> list[Event]:
        """The events after event ``number``."""
        return [event for event in self._events if event.number > number]
