"""From the device to the controllers: packets, digests and idle timeouts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from finsy.proto import p4d, p4r

from softswitch.device import Device
from softswitch.device_types import DigestList, Event, IdleTimeout, LogMessage, PacketIn, PortEvent
from softswitch.p4runtime import values
from softswitch.p4runtime.arbitration import Arbitration
from softswitch.p4runtime.errors import P4Error
from softswitch.p4runtime.pipeline import Pipeline

_LOG = logging.getLogger(__name__)
_BATCH = 256
_WAIT_MS = 1000


class EventPump:
    """The thread that waits for a device's events and hands them over in batches, as many as are there."""

    def __init__(self, device: Device, handle: Callable[[Sequence[Event]], None]) -> None:
        self._device = device
        self._handle = handle
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="softswitch-events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Return once the device is not used any more."""
        self._stopped = True
        while self._thread.is_alive():
            self._device.wake()
            self._thread.join(0.05)

    def _run(self) -> None:
        while not self._stopped:
            event = self._device.next_event(_WAIT_MS)
            batch: list[Event] = []
            while event is not None:
                batch.append(event)
                event = self._device.next_event(0) if len(batch) < _BATCH else None
            if batch:
                try:
                    self._handle(batch)
                except Exception:  # the thread serves the device for as long as it lives
                    _LOG.exception("events were lost")


class Notifier:
    """Turns a pipeline's events into stream messages, for the primaries whose role covers them."""

    def __init__(self, pipeline: Pipeline, arbitration: Arbitration) -> None:
        self._pipeline = pipeline
        self._arbitration = arbitration

    def __call__(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case PacketIn():
                    self._packet(event)
                case DigestList():
                    self._digest(event)
                case PortEvent():
                    _LOG.info("port %d is %s", event.port, "up" if event.up else "down")
                case LogMessage():
                    _LOG.info("%s", event.text)
        idle = [event for event in events if isinstance(event, IdleTimeout)]
        if idle:
            self._idle(idle)

    def _packet(self, event: PacketIn) -> None:
        packet = self._pipeline.packet_io.packet_in(event.data)
        if packet is None:
            _LOG.warning("a packet of %d bytes to the CPU port is shorter than its header", len(event.data))
            return
        message = p4r.StreamMessageResponse(packet=packet)
        for stream, permissions in self._arbitration.primaries():
            if permissions is None or permissions.wants(packet.metadata):
                stream.send(message)

    def _digest(self, event: DigestList) -> None:
        info = self._pipeline.digests_by_name.get(event.digest)
        if info is None:
            return
        try:
            data: list[p4d.P4Data] = [
                values.encode(info.type, iter(sample), self._pipeline.index.p4info) for sample in event.samples
            ]
        except P4Error as error:
            _LOG.warning("digest %s: %s", event.digest, error)
            return
        digest = p4r.DigestList(digest_id=info.id, list_id=event.list_id, data=data, timestamp=time.time_ns())
        message = p4r.StreamMessageResponse(digest=digest)
        for stream, permissions in self._arbitration.primaries():
            if permissions is None or info.id in permissions.ids:
                stream.send(message)

    def _idle(self, events: Sequence[IdleTimeout]) -> None:
        entries: list[p4r.TableEntry] = []
        for event in events:
            table = self._pipeline.tables.by_name.get(event.table)
            entry = table.idle_entry(event.handle) if table is not None else None
            if entry is not None:
                entries.append(entry)
        now = time.time_ns()
        for stream, permissions in self._arbitration.primaries():
            seen = [e for e in entries if permissions is None or e.table_id in permissions.ids]
            if seen:
                notice = p4r.IdleTimeoutNotification(table_entry=seen, timestamp=now)
                stream.send(p4r.StreamMessageResponse(idle_timeout_notification=notice))
