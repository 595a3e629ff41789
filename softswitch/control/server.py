"""The switch's side of the control socket: a thread that answers one JSON line by another."""

from __future__ import annotations

import json
import logging
import os
import socket
import socketserver
import threading
from pathlib import Path

from .operations import ControlError, Controlled, perform

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 1 << 20


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        while True:
            try:
                line = self.rfile.readline(MAX_REQUEST_BYTES + 1)
                if not line:
                    return
                too_long = len(line) > MAX_REQUEST_BYTES
                self.wfile.write(self._answer(line, too_long) + b"\n")
                if too_long:
                    return
            except OSError:  # the client went away
                return

    def _answer(self, line: bytes, too_long: bool) -> bytes:
        try:
            if too_long:
                raise ControlError(f"the request is longer than {MAX_REQUEST_BYTES} bytes")
            return json.dumps({"result": perform(self.server.switch, line)}).encode()
        except ControlError as error:
            return json.dumps({"error": str(error)}).encode()
        except Exception as error:  # a bug, told to the client; the switch goes on
            log.exception("control request failed")
            return json.dumps({"error": f"internal error: {error!r}"}).encode()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: str, switch: Controlled) -> None:
        self.switch = switch
        super().__init__(path, _Handler)


class ControlServer:
    """Serves ``switch`` on a Unix socket that only its owner can open, from construction to ``close``."""

    def __init__(self, switch: Controlled, path: Path) -> None:
        _remove_stale(path)
        mask = os.umask(0o177)
        try:
            self._server = _Server(str(path), switch)
        except OSError as error:
            raise ControlError(f"cannot listen on {path}: {error.strerror or error}") from error
        finally:
            os.umask(mask)
        self.path = path
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.path.unlink(missing_ok=True)


def _remove_stale(path: Path) -> None:
    """Takes away a socket that a dead process left; refuses to take a living one's."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise ControlError(f"another switch is listening on {path}; give --control another path")
