"""Postcards tell of packets that left a deep queue: copies of their first bytes, which postcard_t announces."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from ipaddress import ip_address

from controller.device import PacketIn
from controller.events import EventLog
from controller.model import Intent, PortRef

REASON = 3  # POSTCARD of punt_reason_t
TOLD_EVERY_S = 1.0
POSTCARD = struct.Struct("!BBIII6x")  # postcard_t: queue, traffic class, depth before and behind, ticks waited, time
IP_ADDRESSES = {b"\x08\x00": (26, 4), b"\x86\xdd": (22, 16)}  # by ether type: where they begin in the frame, bytes


class Mailbox:
    """Makes events of postcards: of each queue one in a while, with how many came in between."""

    def __init__(self, intent: Intent, log: EventLog, clock: Callable[[], float]) -> None:
        self._intent, self._log, self._clock = intent, log, clock
        self._told: dict[tuple[PortRef, int], float] = {}  # when
        self._untold: Counter[tuple[PortRef, int]] = Counter()

    def take(self, packet: PacketIn) -> None:
        """A device sent a postcard. One that is too short is noted as such."""
        end = PortRef(packet.device, packet.metadata["ingress_port"])
        if len(packet.payload) < POSTCARD.size:
            self._log.add("stray-report", str(end), f"a postcard of {len(packet.payload)} bytes")
            return
        queue, number, _, behind, waited = POSTCARD.unpack_from(packet.payload)
        now, key = self._clock(), (end, queue)
        if now - self._told.get(key, float("-inf")) < TOLD_EVERY_S:
            self._untold[key] += 1
            return
        self._told[key] = now
        names = {one.number: one.name for one in self._intent.classes}
        said = (
            f"{names.get(number, f'class {number}')} packet{_from_to(packet.payload[POSTCARD.size :])} waited "
            f"{waited * self._intent.tick_ns / 1000:.0f} us in queue {queue} and left {behind} packets behind"
        )
        if missed := self._untold.pop(key, 0):
            said += f"; {missed} more since the last one told"
        self._log.add("postcard", str(end), said)


def _from_to(frame: bytes) -> str:
    at, length = IP_ADDRESSES.get(frame[12:14], (0, 0))
    one, other = frame[at : at + length], frame[at + length : at + 2 * length]
    return f" {ip_address(one)} -> {ip_address(other)}" if length and len(other) == length else ""
