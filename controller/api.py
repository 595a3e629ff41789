"""The controller's control socket: one JSON object a line, asked and answered.

``{"call": "links", "args": {}}`` is answered by ``{"result": ...}`` or ``{"error": "..."}``. Only its owner can open
the socket. CALLS lists what can be asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from controller import report
from controller.codec import CodecError
from controller.device import SessionState, reason_of
from controller.intent import IntentError, load_intent
from controller.model import UnknownName
from controller.react import FAILED, Controller
from controller.readonly import read_devices
from controller.telemetry import take_snapshot
from controller.verify import verify

log = logging.getLogger(__name__)

LINE_LIMIT = 16 << 20  # bytes


class ApiError(Exception):
    """A call that was refused, or no controller to call."""


class NoController(ApiError):
    """Nothing listens on the socket."""


class Api:
    """Answers calls about one controller. ``stopped`` is set when somebody asks it to stop."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.stopped = asyncio.Event()

    async def perform(self, line: bytes) -> Any:
        """Carry out one line. Raises ApiError."""
        try:
            request = json.loads(line)
            name, args = request["call"], request.get("args", {})
        except (ValueError, KeyError, TypeError) as error:
            raise ApiError('a request is {"call": NAME, "args": {...}} on one line') from error
        if name not in CALLS:
            raise ApiError(f"unknown call {name!r}; known are {', '.join(CALLS)}")
        if not isinstance(args, dict):
            raise ApiError(f"args must be an object, not {args!r}")
        try:
            return await CALLS[name](self, args)
        except (*FAILED, CodecError) as error:
            raise ApiError(reason_of(error)) from error

    async def events(self, args: dict[str, Any]) -> Any:
        """Events after number ``since``."""
        since = args.get("since", 0)
        if not isinstance(since, int):
            raise ApiError(f"since must be an event's number, not {since!r}")
        return [event.as_dict() for event in self.controller.log.since(since)]

    async def drain(self, args: dict[str, Any]) -> Any:
        """Drain ``name``; answers when the devices that listen have it."""
        return await self._mark(args, self.controller.tracker.drain)

    async def undrain(self, args: dict[str, Any]) -> Any:
        """Give ``name`` back."""
        return await self._mark(args, self.controller.tracker.undrain)

    async def _mark(self, args: dict[str, Any], change: Callable[[str], None]) -> Any:
        controller, name = self.controller, args.get("name")
        if not any(controller.is_primary(one) for one in controller.sessions):
            raise ApiError("this controller is primary of no device, and changes nothing")
        try:
            change(str(name))
        except UnknownName as error:
            raise ApiError(str(error)) from error
        view = controller.tracker.view()
        controller.nudge()
        await controller.until(lambda: controller.view == view or name not in controller.tracker.drained)
        pending = [
            one
            for one, held in controller.holds.items()
            if held != controller.desired[one] and controller.is_primary(one)
        ]
        return {"drained": sorted(controller.tracker.drained), "pending": pending}

    async def diff(self, args: dict[str, Any]) -> Any:
        """What each device lacks or has too much, read from the device.

        With ``intent``, the path of a file, by that and not by what was there at the start: its devices may be others,
        and each has ``timeout`` seconds to answer.
        """
        if "intent" not in args:
            return await self._each(self._diff_of)
        path, timeout = args["intent"], args.get("timeout")
        if not isinstance(path, str) or not isinstance(timeout, int | float):
            raise ApiError(f"intent must be a path and timeout seconds, not {path!r} and {timeout!r}")
        try:
            intent = load_intent(Path(path))
        except IntentError as error:
            raise ApiError(str(error)) from error
        return (await read_devices(intent, self.controller.view, timeout)).answer()

    async def _diff_of(self, name: str) -> list[str]:
        change = await self.controller.sessions[name].difference(self.controller.desired[name])
        return report.updates(change)

    async def apply(self, _: dict[str, Any]) -> Any:
        """Read every device back and write what differs."""
        return await self._each(self._apply_to)

    async def _apply_to(self, name: str) -> list[str]:
        desired = self.controller.desired[name]
        change = await self.controller.sessions[name].reconcile(desired)
        self.controller.holds[name] = desired
        self.controller.nudge()
        return report.updates(change)

    async def _each(self, what: Callable[[str], Awaitable[list[str]]]) -> dict[str, Any]:
        """The answers of all devices; one that fails says why."""
        names = list(self.controller.sessions)
        results = await asyncio.gather(*(what(name) for name in names), return_exceptions=True)
        answer: dict[str, Any] = {"updates": {}, "errors": {}}
        for name, result in zip(names, results, strict=True):
            if isinstance(result, FAILED):
                answer["errors"][name] = reason_of(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                answer["updates"][name] = result
        return answer

    async def verify(self, _: dict[str, Any]) -> Any:
        """Findings from what is installed."""
        controller, installed, unread = self.controller, {}, {}
        for name, session in controller.sessions.items():
            try:
                installed[name] = await session.installed()
            except FAILED as error:
                unread[name] = reason_of(error)
        return [finding.as_dict() for finding in verify(controller.intent, controller.view, installed, unread)]

    async def counters(self, _: dict[str, Any]) -> Any:
        """Every counter, read now."""
        for name, session in self.controller.sessions.items():
            if session.state is not SessionState.CLOSED:
                snapshot = await take_snapshot(session, asyncio.get_running_loop().time())
                self.controller.telemetry.add(name, snapshot)
        return report.counters(self.controller)

    async def stop(self, _: dict[str, Any]) -> Any:
        """End the controller; the fabric forwards on."""
        self.stopped.set()
        return "stopping"


def _shown(make: Callable[[Controller], Any]) -> Callable[[Api, dict[str, Any]], Awaitable[Any]]:
    async def answer(api: Api, _: dict[str, Any]) -> Any:
        return make(api.controller)

    return answer


CALLS: dict[str, Callable[[Api, dict[str, Any]], Awaitable[Any]]] = {
    "status": _shown(report.status),
    "planes": _shown(report.planes),
    "links": _shown(report.links),
    "ports": _shown(report.ports),
    "queues": _shown(report.queues),
    "drops": _shown(report.drops),
    "events": Api.events,
    "drain": Api.drain,
    "undrain": Api.undrain,
    "diff": Api.diff,
    "apply": Api.apply,
    "verify": Api.verify,
    "counters": Api.counters,
    "stop": Api.stop,
}


@contextlib.asynccontextmanager
async def serving(api: Api, path: Path) -> AsyncIterator[None]:
    """Answer calls on the socket. Raises ApiError where another controller does already."""
    remove_stale(path)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            while line := await reader.readline():
                try:
                    result: dict[str, Any] = {"result": await api.perform(line)}
                except ApiError as error:
                    result = {"error": str(error)}
                except Exception as error:  # a bug, told to the caller; the controller goes on
                    log.exception("call failed")
                    result = {"error": f"internal error: {error!r}"}
                writer.write(json.dumps(result).encode() + b"\n")
                await writer.drain()
        writer.close()

    mask = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(answer, path, limit=LINE_LIMIT)
    except OSError as error:
        raise ApiError(f"cannot listen on {path}: {error.strerror or error}") from error
    finally:
        os.umask(mask)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


def remove_stale(path: Path) -> None:
    """Take away a socket that a dead controller left. Raises ApiError where a living one listens."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise ApiError(running_already(path))


def running_already(path: Path) -> str:
    """Why a second controller does not start."""
    return f"a controller is running already on {path}; another one of this fabric needs another --socket"


def call(path: Path, call_name: str, /, *, timeout_s: float = 60.0, **args: Any) -> Any:
    """Ask the controller that listens on the socket. Raises NoController and ApiError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(path))
            connection.sendall(json.dumps({"call": call_name, "args": args}).encode() + b"\n")
            line = connection.makefile("rb").readline()
        except OSError as error:
            raise NoController(f"no controller listens on {path} ({error.strerror or error})") from error
    if not line:
        raise ApiError("the controller closed the connection")
    answer = json.loads(line)
    if "error" in answer:
        raise ApiError(answer["error"])
    return answer["result"]
