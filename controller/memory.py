"""What must survive a restart of the controller, in a JSON file: what ends of links told last, which links have failed
and when, and what is drained. Times in the file are seconds since 1970."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from controller.health import UNKNOWN, EndReport, Failure, HealthTracker
from controller.model import PortRef

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remembered:
    """The contents of a memory file."""

    ends: tuple[tuple[PortRef, EndReport], ...] = ()
    failures: tuple[Failure, ...] = ()  # in monotonic seconds, as the tracker's
    drained: tuple[str, ...] = ()


@dataclass
class Memory:
    """Reads and writes the file; writes only what changed."""

    path: Path
    _last: dict[str, Any] = field(default_factory=dict)

    def load(self) -> Remembered:
        """What is remembered; nothing where there is no file. A file that makes no sense is logged and left alone."""
        try:
            data = json.loads(self.path.read_text())
            ends = []
            for item in data["ends"]:
                report = item["report"] | {"heard": tuple(item["report"]["heard"])}
                ends.append((PortRef(item["device"], item["port"]), EndReport(**report)))
            failures = [_shifted(Failure(**item), -_monotonic_zero()) for item in data["failures"]]
            return Remembered(tuple(ends), tuple(failures), tuple(map(str, data["drained"])))
        except FileNotFoundError:
            return Remembered()
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.error("%s is not a memory of this controller: %r", self.path, error)
            return Remembered()

    def save(self, tracker: HealthTracker) -> None:
        """Remember what the tracker knows."""
        data = {
            "ends": list(_ends(tracker)),
            "failures": [asdict(_shifted(failure, _monotonic_zero())) for failure in tracker.failures()],
            "drained": sorted(tracker.drained),
        }
        if data == self._last:
            return
        temporary = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(data, indent=1))
            os.replace(temporary, self.path)
            self._last = data
        except OSError as error:
            log.error("%s cannot be written: %s", self.path, error)


def _ends(tracker: HealthTracker) -> Iterable[dict[str, Any]]:
    for record in tracker.links.values():
        for end, report in record.ends.items():
            if report.state != UNKNOWN:
                yield {"device": end.device, "port": end.port, "report": asdict(report)}


def _monotonic_zero() -> float:
    """When the monotonic clock was 0, in seconds since 1970; to a tenth, in which it does not wander."""
    return round(time.time() - time.monotonic(), 1)


def _shifted(failure: Failure, seconds: float) -> Failure:
    return replace(failure, time=round(failure.time + seconds, 3), held_until=round(failure.held_until + seconds, 3))
