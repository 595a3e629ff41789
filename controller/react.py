"""The running controller: what happens to the fabric becomes a view, the view a plan, the plan the few writes it takes.

Every device is reconciled against its own read-back when its session comes up; after that, what it holds is known, and
a change in health writes only what differs. Before the first write of a new primary, all devices are asked what arrives
at their ports, and where neither they nor the memory have told of a link, they are given the window after which they
tell again: what failed while nobody watched must not be taken for well.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import finsy as fy

from controller.device import (
    DeviceSession,
    LinkDigest,
    Notice,
    NotPrimary,
    PacketIn,
    PortDigest,
    SessionDown,
    SessionState,
    SessionUp,
    WriteFailed,
    reason_of,
)
from controller.entities import Entity
from controller.events import EventLog
from controller.health import HealthTracker
from controller.memory import Memory
from controller.model import Intent, PortRef, Role
from controller.paths import FabricView
from controller.plan import Planner
from controller.postcards import REASON, Mailbox
from controller.programs import Program, program_for
from controller.reconcile import difference
from controller.records import UNKNOWN, LinkState
from controller.telemetry import Telemetry, silent_ports, take_arrivals, take_snapshot

log = logging.getLogger(__name__)

SETTLE_S = 0.4  # how much longer than a look at a device's counters the others wait for it before the first write
POLL_S = 1.0
RETRY_S = 1.0  # after a device refused to be reconciled
FAILED = (fy.P4ClientError, NotPrimary, WriteFailed)


@dataclass(frozen=True, slots=True)
class Silence:
    """The ends of a device's links at which nothing arrives, by its counters."""

    device: str
    silent: frozenset[int]


@dataclass(frozen=True, slots=True)
class Nudge:
    """Something else than a device changed: look again."""


class Controller:
    """Keeps a fabric as its intent says. Everything happens in the event loop of :meth:`run`."""

    def __init__(
        self,
        intent: Intent,
        memory: Path,
        *,
        election_id: int = 10,
        programs: Callable[[Role], Program] = program_for,
        poll_s: float = POLL_S,
    ) -> None:
        self.intent = intent
        self.log = EventLog()
        self.tracker = HealthTracker(intent, self.log, time.monotonic)
        self.mailbox = Mailbox(intent, self.log, time.monotonic)
        self.planner = Planner(intent)
        self.telemetry = Telemetry()
        self.memory = Memory(memory)
        self.poll_s = poll_s
        self._notices: asyncio.Queue[Notice | Silence | Nudge] = asyncio.Queue()
        self.sessions = {
            device.name: DeviceSession(device, programs(device.role), self._notices.put_nowait, election_id=election_id)
            for device in intent.devices
        }
        self.view = FabricView()
        self.desired: dict[str, frozenset[Entity]] = {}
        self.holds: dict[str, frozenset[Entity]] = {}  # what devices are known to hold
        self._remembered = 0  # the tracker's version
        self._syncing: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[str, bool] = {}  # devices heard by this primary: whether they were configured before
        self._settled = asyncio.Event()
        self._settling: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()

    # ---- life ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled. The fabric forwards on after that."""
        self._remember()
        self.desired = self.planner.plan(self.view)
        tasks = [asyncio.create_task(session.run()) for session in self.sessions.values()]
        tasks += [asyncio.create_task(self._poll(name)) for name in self.sessions]
        try:
            while True:
                await self._step()
        finally:
            tasks += [*self._syncing.values(), *([self._settling] if self._settling else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run in the background."""
        task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds after a step."""
        async with self._changed:
            await self._changed.wait_for(condition)

    def converged(self) -> bool:
        """Whether every device is known to hold what it should."""
        return all(self.holds.get(name) == entities for name, entities in self.desired.items()) and bool(self.desired)

    def nudge(self) -> None:
        """Make the loop look again, after a drain for example."""
        self._notices.put_nowait(Nudge())

    async def _step(self) -> None:
        release = self.tracker.next_release()
        try:
            async with asyncio.timeout(None if release is None else max(0.0, release - time.monotonic())):
                notice = await self._notices.get()
        except TimeoutError:
            notice = Nudge()  # a link is held no longer
        started = notice.received if isinstance(notice, LinkDigest) else time.monotonic()
        self._take(notice)
        while not self._notices.empty():
            self._take(self._notices.get_nowait())
        self.tracker.tick()
        await self._react(started)
        async with self._changed:
            self._changed.notify_all()

    def _take(self, notice: Notice | Silence | Nudge) -> None:
        match notice:
            case LinkDigest():
                self.tracker.on_digest(notice)
            case PortDigest():
                self.tracker.on_port(notice)
            case SessionUp():
                self.tracker.on_session(notice)
                self._session_up(notice)
            case SessionDown():
                self.tracker.on_session(notice)
                self._forget(notice.device)
            case Silence():
                for port in notice.silent:
                    self.tracker.on_silence(PortRef(notice.device, port))
            case PacketIn() if notice.metadata["reason"] == REASON:
                self.mailbox.take(notice)
            case PacketIn():
                log.info("%s: packet of %d bytes, %s", notice.device, len(notice.payload), notice.metadata)

    # ---- taking over -----------------------------------------------------------------------------------------------

    def is_primary(self, name: str) -> bool:
        """Whether the controller may write to a device."""
        return self.sessions[name].state is SessionState.PRIMARY

    def _remember(self) -> None:
        self.tracker.restore(self.memory.load())
        self.view = self.tracker.view()

    def _session_up(self, notice: SessionUp) -> None:
        self._forget(notice.device)
        if notice.state is not SessionState.PRIMARY:
            return
        if self._settling is None:
            self._remember()
            self._settling = asyncio.create_task(self._settle())
        self._syncing[notice.device] = asyncio.create_task(self._take_over(notice.device))

    def _forget(self, name: str) -> None:
        """What the device holds is not known any more. With no device left, the next primary settles anew."""
        self.holds.pop(name, None)
        self._asked.pop(name, None)
        task = self._syncing.pop(name, None)
        if task is not None:
            task.cancel()
        if self._settling is not None and not any(self.is_primary(one) for one in self.sessions):
            self._settling.cancel()
            self._settling = None
            self._settled.clear()

    async def _settle(self) -> None:
        """Give every device the time to tell, within limits."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._missed_s + SETTLE_S):
                await self.until(lambda: self._asked.keys() == self.sessions.keys())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._window_s):
                await self.until(lambda: not self._has_links_untold())
        self._settled.set()
        self.nudge()

    def _has_links_untold(self) -> bool:
        """Whether an end of which nothing is known may tell yet.

        Its device was at work before; or it has not answered, in a fabric that may be at work, and the other end knows
        nothing of the link either.
        """
        unasked = self.sessions.keys() - self._asked.keys()
        if not any(self._asked.values()) and not any(self.is_primary(name) for name in unasked):
            return False
        return any(
            report.state == UNKNOWN
            and (self._asked.get(end.device) or (end.device in unasked and record.state is LinkState.UNKNOWN))
            for record in self.tracker.links.values()
            for end, report in record.ends.items()
        )

    async def _take_over(self, name: str) -> None:
        """Learn what arrives at the device, then make it hold what it should."""
        session = self.sessions[name]
        while True:
            try:
                self._asked[name] = await self._ask(name)
                self.nudge()
                await self._settled.wait()
                await self._step_done()
                desired = self.desired[name]
                change = await session.reconcile(desired)
                break
            except FAILED as error:
                if not self.is_primary(name):
                    return
                self.log.add("refused", name, reason_of(error), f"again in {RETRY_S:g} s")
                await asyncio.sleep(RETRY_S)
        self.holds[name] = desired
        if len(change):
            counts = f"{len(change.insert)} new, {len(change.modify)} changed, {len(change.delete)} gone"
            self.log.add("reconciled", name, "its read-back", counts)
        self.nudge()

    async def _step_done(self) -> None:
        """Wait until what has been told is in the plan."""
        while not self._notices.empty():
            await asyncio.sleep(0)

    async def _ask(self, name: str) -> bool:
        """Two looks at the counters of what arrives, far enough apart for a heartbeat to be missed for certain.

        Returns whether the device has been configured before.
        """
        session = self.sessions[name]
        before = await take_arrivals(session, time.monotonic())
        if not before.ports:
            return False
        await asyncio.sleep(self._missed_s)
        after = await take_arrivals(session, time.monotonic())
        linked = {link.at(name).port for link in self.intent.links_of[name]}
        self._notices.put_nowait(Silence(name, frozenset(silent_ports(before, after) & linked)))
        return True

    # ---- reaction --------------------------------------------------------------------------------------------------

    async def _react(self, started: float) -> None:
        view = self.tracker.view()
        if view != self.view:
            self.view = view
            self.desired = self.planner.plan(view)
        await self._write_changes(started)
        if self._remembered != self.tracker.version and any(self.is_primary(name) for name in self.sessions):
            self._remembered = self.tracker.version
            self.memory.save(self.tracker.remember())

    async def _write_changes(self, started: float) -> None:
        """Write to every device that holds something else than it should."""
        changes = {
            name: difference(self.desired[name], held)
            for name, held in self.holds.items()
            if held != self.desired[name] and self.is_primary(name)
        }
        if not changes:
            return
        results = await asyncio.gather(
            *(self.sessions[name].write(change) for name, change in changes.items()), return_exceptions=True
        )
        for name, result in zip(changes, results, strict=True):
            if isinstance(result, BaseException):
                self._write_failed(name, result)
            else:
                self.holds[name] = self.desired[name]
        writes, spent = sum(map(len, changes.values())), (time.monotonic() - started) * 1000
        self.log.add("rerouted", self.intent.name, "", f"{writes} writes on {len(changes)} devices in {spent:.1f} ms")

    def _write_failed(self, name: str, error: BaseException) -> None:
        if not isinstance(error, FAILED):
            raise error
        self.holds.pop(name, None)
        self.log.add("refused", name, reason_of(error), "it will be read back and reconciled")
        if self.is_primary(name):
            self._syncing[name] = asyncio.create_task(self._take_over(name))

    # ---- counters --------------------------------------------------------------------------------------------------

    async def _poll(self, name: str) -> None:
        session = self.sessions[name]
        while True:
            await asyncio.sleep(self.poll_s)
            if session.state is SessionState.CLOSED:
                continue
            try:
                snapshot = await take_snapshot(session, time.monotonic())
            except (fy.P4ClientError, NotPrimary) as error:
                log.info("%s: counters not read: %s", name, error)
                continue
            self.telemetry.add(name, snapshot)
            before = self.telemetry.at(name, snapshot.time - self._silence_s)
            if before is not None:
                self._cross_check(name, silent_ports(before, snapshot))

    @property
    def _silence_s(self) -> float:
        """How long nothing arrives at an end that is down; never less than it takes the data plane to see that."""
        health = self.intent.health
        return max(health.silence_ms / 1000, self._missed_s)

    @property
    def _missed_s(self) -> float:
        return (self.intent.health.missed_limit + 1) * self.intent.health.heartbeat_us / 1e6

    @property
    def _window_s(self) -> float:
        """How long it may take a device to tell again: twice as long where every second heartbeat is lost."""
        return 2.5 * self.intent.health.window * self.intent.health.heartbeat_us / 1e6

    def _cross_check(self, name: str, silent: set[int]) -> None:
        """An end that was well and hears nothing: its digest got lost, or the device no longer sends any."""
        well = (LinkState.UP, LinkState.GRAY, LinkState.HELD)
        at = {link.at(name).port: link.name for link in self.intent.links_of[name]}
        late = {port for port in silent if port in at and self.tracker.links[at[port]].state in well}
        if late:
            self._notices.put_nowait(Silence(name, frozenset(late)))
