"""The client's side of the control socket."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from pathlib import Path
from typing import Any, Self

from .operations import ControlError


def default_socket(device_id: int) -> Path:
    """Where the switch of that device id listens unless told otherwise."""
    directory = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(directory) / f"softswitch-{device_id}.sock"


class ControlClient:
    """A connection to a running switch. Raises ControlError where nothing listens."""

    def __init__(self, path: Path, timeout_s: float = 10.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise ControlError(f"no switch listens on {path} ({error.strerror or error}); see --socket") from error
        self._lines = self._socket.makefile("rb")

    def call(self, name: str, **args: object) -> Any:
        """The result of a call of ``operations``, as JSON values. Raises ControlError with the switch's refusal."""
        request = json.dumps({"call": name, "args": args}) + "\n"
        try:
            self._socket.sendall(request.encode())
            line = self._lines.readline()
        except OSError as error:
            raise ControlError(f"the switch does not answer ({error.strerror or error})") from error
        if not line:
            raise ControlError("the switch closed the connection")
        answer = json.loads(line)
        if "error" in answer:
            raise ControlError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
