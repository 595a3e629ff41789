"""Logging of ``softswitch run``: levels by simple_switch's names, text or JSON lines."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from .errors import UsageError

LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}


class _JsonFormatter(logging.Formatter):
    """One JSON object a line: time (seconds since 1970), level, logger, message."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": round(record.created, 6), "level": record.levelname.lower(), "logger": record.name}
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        return json.dumps(fields | {"message": message})


def set_up_logging(level: str, path: Path | None, *, as_json: bool) -> None:
    """Logs to a file, or to standard error. Raises UsageError for an unknown level, OSError for a bad file."""
    if level not in LEVELS:
        raise UsageError(f"--log-level: {level!r} is not one of {', '.join(LEVELS)}")
    handler = logging.FileHandler(path) if path else logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_JsonFormatter() if as_json else text)
    logging.basicConfig(level=LEVELS[level], handlers=[handler])
