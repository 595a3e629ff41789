"""Where the files of a fabric are unless told otherwise: the one place that names them.

A name is the fabric's and a digest of its first device's address. Fabrics that run side by side share no device, so
their files differ even where their names do not; a fabric keeps its files when its intent is edited or moved.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from controller.model import Intent


def default_socket(intent: Intent) -> Path:
    """Where the controller listens."""
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(folder) / f"polyplane-{_name(intent)}.sock"


def default_memory(intent: Intent) -> Path:
    """Where what must survive a restart is kept."""
    return _state(intent, "json")


def default_baseline(intent: Intent) -> Path:
    """Where counters are kept to be compared with."""
    return _state(intent, "baseline.json")


def _state(intent: Intent, suffix: str) -> Path:
    folder = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(folder) / "polyplane" / f"{_name(intent)}.{suffix}"


def _name(intent: Intent) -> str:
    address = intent.devices[0].address
    return f"{intent.name}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"
