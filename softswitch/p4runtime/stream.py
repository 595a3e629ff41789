"""One controller's stream, as the server writes to it."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator

from finsy.proto import p4r

from softswitch.p4runtime.errors import P4Error, exhausted

ARBITRATION_LIMIT = 64
"""Unread arbitration messages after which the stream is ended: its client does not read."""


class Stream:
    """A bounded queue of messages to a client.

    Whoever sends never waits: packets, digests and notices that do not fit are dropped and counted in ``dropped``, by
    the message's field. Arbitration messages are never dropped; a client that lets them pile up loses its stream.
    """

    def __init__(self, limit: int) -> None:
        self.dropped: Counter[str] = Counter()
        self.error: P4Error | None = None
        self._limit = limit
        self._queue: deque[p4r.StreamMessageResponse] = deque()
        self._unread_arbitration = 0
        self._closed = False
        self._changed = threading.Condition()

    def send(self, message: p4r.StreamMessageResponse) -> None:
        """Queue a message; the message must not be changed afterwards."""
        kind = message.WhichOneof("update") or ""
        with self._changed:
            if self._closed:
                return
            if kind == "arbitration":
                self._unread_arbitration += 1
                if self._unread_arbitration > ARBITRATION_LIMIT:
                    self._end(exhausted(f"{ARBITRATION_LIMIT} arbitration messages were not read"))
                    return
            elif len(self._queue) >= self._limit:
                self.dropped[kind] += 1
                return
            self._queue.append(message)
            self._changed.notify()

    def close(self, error: P4Error | None = None) -> None:
        """End the stream: with ``error``, or well."""
        with self._changed:
            self._end(error)

    def _end(self, error: P4Error | None) -> None:
        if not self._closed:
            self._closed = True
            self.error = error
            self._changed.notify()

    @property
    def closed(self) -> bool:
        return self._closed

    def messages(self) -> Iterator[p4r.StreamMessageResponse]:
        """The messages, as they come, until the stream is closed. What was queued before an orderly end is sent."""
        while True:
            with self._changed:
                while not self._queue and not self._closed:
                    self._changed.wait()
                if not self._queue or self.error is not None:
                    return
                message = self._queue.popleft()
                if message.HasField("arbitration"):
                    self._unread_arbitration -= 1
            yield message
