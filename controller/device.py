"""One device's P4Runtime session, kept alive: arbitration, pipeline, what it holds, what it tells.

The pipeline is pushed only where the device runs another one (its cookie differs), and only as primary. A session that
ends is opened again, for ever; the device forwards meanwhile, and nothing here concludes otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import finsy as fy
from finsy.grpcutil import GRPCStatusCode

from controller.capabilities import Capability, probe
from controller.codec import decode, encode
from controller.entities import Entity, Meter, TableEntry
from controller.model import Device
from controller.programs import Program
from controller.reconcile import Difference, Update, Verb, batches, difference
from controller.tables import LINK_EVENT, PORT_EVENT, rank

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.1
LAST_RETRY_S = 2.0
QUEUE_SIZE = 4096  # digests and packets waiting to be looked at


class SessionState(StrEnum):
    """What the controller is to the device."""

    CLOSED = "closed"
    BACKUP = "backup"  # another controller is primary: read only
    PRIMARY = "primary"


@dataclass(frozen=True, slots=True)
class SessionUp:
    """The session is ready, or has become primary or backup."""

    device: str
    state: SessionState
    lacking: tuple[Capability, ...]  # what the device cannot do


@dataclass(frozen=True, slots=True)
class SessionDown:
    """The session ended; nothing is known about the device itself."""

    device: str
    why: str


@dataclass(frozen=True, slots=True)
class Digest:
    """A device's data plane tells something; the members of the digest by name."""

    device: str
    values: dict[str, int] = field(hash=False)
    received: float  # monotonic seconds


class LinkDigest(Digest):
    """Of a link: link_event_t."""

    __slots__ = ()


class PortDigest(Digest):
    """Of a port's carrier: port_event_t."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet that a device sent to the controller."""

    device: str
    payload: bytes
    metadata: dict[str, int] = field(hash=False)


Notice = SessionUp | SessionDown | LinkDigest | PortDigest | PacketIn


class NotPrimary(Exception):
    """Another controller is primary of the device, or there is no session."""


class WriteFailed(Exception):
    """The device refused updates; ``refused`` names each with the device's answer."""

    def __init__(self, device: str, refused: list[str]) -> None:
        self.refused = refused
        super().__init__(f"{device} refused {len(refused)} updates: " + "; ".join(refused[:5]))


class DeviceSession:
    """The controller's end of one device. ``notify`` gets what happens, in order, in the event loop."""

    def __init__(
        self, device: Device, program: Program, notify: Callable[[Notice], None], *, election_id: int = 10,
        read_only: bool = False,
    ) -> None:  # fmt: skip
        """A ``read_only`` session pushes no pipeline, and any controller takes its place as primary."""
        self.device = device
        self._notify = notify
        self._options = fy.SwitchOptions(
            p4info=program.p4info,
            p4blob=None if read_only else program.blob,
            device_id=device.device_id,
            initial_election_id=1 if read_only else election_id,
        )
        self._switch: fy.Switch | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._lacking: tuple[Capability, ...] | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self.state = SessionState.CLOSED
        self.last_error = ""

    @property
    def schema(self) -> fy.P4Schema:
        """The P4Info of the session. Raises NotPrimary where there is none."""
        return self._open().p4info

    @property
    def lacking(self) -> tuple[Capability, ...]:
        """What the device cannot do, as found at the last connect."""
        return self._lacking or ()

    async def run(self) -> None:
        """Keep a session open until cancelled."""
        delay = FIRST_RETRY_S
        while True:
            started = time.monotonic()
            try:
                await self._session()
                why = "the device closed the session"
            except (fy.P4ClientError, OSError, RuntimeError, ValueError) as error:
                why = reason_of(error)
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                why = FAILURES.take(self.device.name) or "the session could not be made ready"
            if self.state is not SessionState.CLOSED:
                self.state = SessionState.CLOSED
                self._notify(SessionDown(self.device.name, why))
            self.last_error = why
            delay = FIRST_RETRY_S if time.monotonic() - started > LAST_RETRY_S else min(2 * delay, LAST_RETRY_S)
            await asyncio.sleep(delay)

    async def _session(self) -> None:
        """One session from start to end."""
        FAILURES.install()
        switch = fy.Switch(self.device.name, self.device.address, self._options)
        ended = asyncio.Event()
        switch.ee.add_listener(fy.SwitchEvent.CHANNEL_READY, self._ready)
        switch.ee.once(fy.SwitchEvent.CHANNEL_DOWN, lambda _: ended.set())
        self._lacking = None
        self._switch = switch
        try:
            async with switch:
                await ended.wait()
        finally:
            for task in [*self._readers, *([self._announcing] if self._announcing else [])]:
                task.cancel()
            self._readers, self._announcing, self._switch = [], None, None

    def _ready(self, switch: fy.Switch) -> None:
        """finsy has the pipeline in place, or the role of this session has changed."""
        if not self._readers:
            self._readers = [
                asyncio.create_task(self._read_digests(switch, LINK_EVENT, LinkDigest)),
                asyncio.create_task(self._read_digests(switch, PORT_EVENT, PortDigest)),
                asyncio.create_task(self._read_packets(switch)),
            ]
        if self._announcing is not None:
            self._announcing.cancel()
        self._announcing = asyncio.create_task(self._announce(switch))

    async def _announce(self, switch: fy.Switch) -> None:
        try:
            if self._lacking is None:
                found = await probe(switch)
                self._lacking = tuple(capability for capability in found if not capability.supported)
        except fy.P4ClientError as error:
            log.warning("%s: capabilities could not be probed: %s", self.device.name, reason_of(error))
            self._lacking = ()
        self.state = SessionState.PRIMARY if switch.is_primary else SessionState.BACKUP
        self.last_error = ""
        self._notify(SessionUp(self.device.name, self.state, self._lacking))

    async def _read_digests(self, switch: fy.Switch, name: str, kind: type[LinkDigest | PortDigest]) -> None:
        async for digest in switch.read_digests(name, queue_size=QUEUE_SIZE):
            received = time.monotonic()
            for values in digest.data:
                numbers = {name: int(value) for name, value in values.items()}
                self._notify(kind(self.device.name, numbers, received))
            with contextlib.suppress(fy.P4ClientError):  # the session is ending
                await switch.write([digest.ack()])

    async def _read_packets(self, switch: fy.Switch) -> None:
        async for packet in switch.read_packets(queue_size=QUEUE_SIZE):
            metadata = {name: int(value) for name, value in packet.metadata.items()}
            self._notify(PacketIn(self.device.name, packet.payload, metadata))

    # ---- what the device holds -------------------------------------------------------------------------------------

    async def installed(self) -> frozenset[Entity]:
        """Everything of the device that the controller manages, as the device reads it back."""
        switch = self._open()
        found: set[Entity] = set()
        for wanted in _everything(switch.p4info):
            async for answer in read(switch, wanted):
                entity = decode(answer, switch.p4info)
                if entity is not None:
                    found.add(entity)
        return frozenset(found)

    async def difference(self, desired: Iterable[Entity]) -> Difference:
        """What separates the device from the desired entities."""
        return difference(desired, await self.installed())

    async def reconcile(self, desired: Iterable[Entity]) -> Difference:
        """Make the device hold exactly the desired entities; returns what was written.

        Raises WriteFailed and NotPrimary.
        """
        async with self._writing:
            change = await self.difference(desired)
            await self._write(change)
        return change

    async def write(self, change: Difference) -> None:
        """Carry out a difference against what is known to be installed. Raises WriteFailed, NotPrimary."""
        async with self._writing:
            await self._write(change)

    async def _write(self, change: Difference) -> None:
        switch = self._open()
        if not switch.is_primary:
            raise NotPrimary(f"{self.device.name}: another controller is primary (election id {switch.primary_id})")
        for batch in batches(change, rank):
            try:
                await switch.write([_signed(update, switch.p4info) for update in batch])
            except fy.P4ClientError as error:
                raise WriteFailed(self.device.name, _refused(error, batch)) from error

    # ---- counters --------------------------------------------------------------------------------------------------

    async def read_counters(self, wanted: Any) -> list[Any]:
        """finsy's entities for a wildcard of direct or indirect counters."""
        return [answer async for answer in read(self._open(), wanted)]

    async def packet_out(self, payload: bytes, **metadata: int) -> None:
        """Send a packet by the device; every metadata field must be given."""
        await self._open().write([fy.P4PacketOut(payload, **metadata)])

    def _open(self) -> fy.Switch:
        if self._switch is None or self.state is SessionState.CLOSED:
            raise NotPrimary(f"{self.device.name}: no session with {self.device.address} ({self.last_error})")
        return self._switch


async def read(switch: fy.Switch, wanted: Any) -> AsyncIterator[Any]:
    """What the device answers; nothing where it has no such thing (BMv2 says so of digests not configured)."""
    answers: Any = switch.read(wanted)  # finsy's annotations hide that this is an asynchronous generator
    try:
        async for answer in answers:
            yield answer
    except fy.P4ClientError as error:
        if error.code is not GRPCStatusCode.NOT_FOUND:
            raise


def _everything(schema: fy.P4Schema) -> list[Any]:
    """The reads that together answer all that is managed. A table is read by name: BMv2 knows no other way."""
    wanted: list[Any] = []
    for table in schema.tables:
        if not table.is_const:  # a table without a key has its default action and nothing else
            wanted.append(fy.P4TableEntry(table.alias, is_default_action=not list(table.match_fields)))
    wanted += [fy.P4DigestEntry(digest.alias) for digest in schema.digests]
    wanted += [fy.P4MeterEntry(meter.alias) for meter in schema.meters]
    return [*wanted, fy.P4CloneSessionEntry()]


def _signed(update: Update, schema: fy.P4Schema) -> Any:
    """finsy's update. A meter's cell and a default action always exist: they are set, or set back."""
    if isinstance(update.entity, Meter):
        if update.verb is Verb.DELETE:
            return ~fy.P4MeterEntry(update.entity.name, index=update.entity.index)
        return ~encode(update.entity, schema)
    if isinstance(update.entity, TableEntry) and update.entity.default:
        if update.verb is Verb.DELETE:
            return ~fy.P4TableEntry(update.entity.table, is_default_action=True)
        return ~encode(update.entity, schema)
    entity = encode(update.entity, schema)
    return {Verb.INSERT: entity.__pos__, Verb.MODIFY: entity.__invert__, Verb.DELETE: entity.__neg__}[update.verb]()


def _refused(error: fy.P4ClientError, batch: list[Update]) -> list[str]:
    if not error.details:
        return [f"{len(batch)} updates at once: {reason_of(error)}"]
    return [
        f"{batch[at]}: {detail.canonical_code.name} {detail.message}" for at, detail in sorted(error.details.items())
    ]


def reason_of(error: Exception) -> str:
    """What people need to know of a failure: of gRPC's words about a connection, the cause behind the last colon."""
    if not isinstance(error, fy.P4ClientError):
        return str(error) or type(error).__name__
    message = error.message
    if error.code is GRPCStatusCode.UNAVAILABLE and message.startswith("failed to connect"):
        message = f"no connection ({message.rpartition(': ')[2]})"
    return f"{error.code.name}: {message}"


class _Failures(logging.Handler):
    """Why finsy gave a session up: it tells its log alone."""

    def __init__(self) -> None:
        super().__init__(logging.CRITICAL)
        self._last: dict[str, str] = {}

    def install(self) -> None:
        """Listen to finsy's log, once."""
        logger = logging.getLogger("finsy")
        if self not in logger.handlers:
            logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the failure of a task that is named ``fy:DEVICE|...``."""
        if record.exc_info and isinstance(record.exc_info[1], Exception) and record.args:
            task = str(record.args[0] if isinstance(record.args, tuple) else record.args)
            self._last[task.removeprefix("fy:").partition("|")[0]] = reason_of(record.exc_info[1])

    def take(self, device: str) -> str:
        """The last failure of the device's session, once."""
        return self._last.pop(device, "")


FAILURES = _Failures()
