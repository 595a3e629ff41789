"""The ``polyplane`` command in this process, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.cli import main
from controller.intent import load_intent
from controller.places import default_socket


class Cli:
    """The command on one intent file, on its default socket or another. A call asserts the exit code."""

    def __init__(self, intent: Path, capsys: pytest.CaptureFixture[str], socket: Path | None = None) -> None:
        self.intent, self.capsys = intent, capsys
        self.socket = socket or default_socket(load_intent(intent))
        self.options = ["-f", str(intent), *(["--socket", str(socket)] if socket else [])]

    def __call__(self, *words: str, code: int = 0) -> str:
        self.capsys.readouterr()
        found = main([*self.options, *words])
        out, self.err = self.capsys.readouterr()
        assert (found, self.err if found != code else "") == (code, "")
        return out

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code))
