"""What must survive a restart of the controller, in a JSON file. Times in the file are seconds since 1970."""

from __future__ import annotations

import json
import logging
import os
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from controller.model import PortRef
from controller.records import EndReport, Failure, Remembered

log = logging.getLogger(__name__)


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
            down_ports = [PortRef(**item) for item in data["down_ports"]]
            return Remembered(tuple(ends), tuple(failures), tuple(down_ports), tuple(map(str, data["drained"])))
        except FileNotFoundError:
            return Remembered()
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.error("%s is not a memory of this controller: %r", self.path, error)
            return Remembered()

    def save(self, remembered: Remembered) -> None:
        """Remember this instead of what was remembered before."""
        data = {
            "ends": [asdict(end) | {"report": asdict(report)} for end, report in remembered.ends],
            "failures": [asdict(_shifted(failure, _monotonic_zero())) for failure in remembered.failures],
            "down_ports": [asdict(end) for end in remembered.down_ports],
            "drained": remembered.drained,
        }
        if data == self._last:
            return
        temporary = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(data))
            os.replace(temporary, self.path)
            self._last = data
        except OSError as error:
            log.error("%s cannot be written: %s", self.path, error)


def _monotonic_zero() -> float:
    """When the monotonic clock was 0, in seconds since 1970; to a tenth, in which it does not wander."""
    return round(time.time() - time.monotonic(), 1)


def _shifted(failure: Failure, seconds: float) -> Failure:
    return replace(failure, time=round(failure.time + seconds, 3), held_until=round(failure.held_until + seconds, 3))
