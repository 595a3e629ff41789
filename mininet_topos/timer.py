"""Timer packets: what makes a device send heartbeats. The softswitch has a generator; beside BMv2 runs this module."""

from __future__ import annotations

import itertools
import socket
import struct
import sys
import time

TIMER_PORT = 509
_ETHERTYPE_TIMER = 0x88B6
_SHORTEST_FRAME = 60  # bytes


def timer_packet(port: int) -> bytes:
    """The packet that says that ``port``'s heartbeat is due (p4src/shared/headers.p4, timer_t)."""
    return struct.pack("!6x6xHH", _ETHERTYPE_TIMER, port).ljust(_SHORTEST_FRAME, b"\0")


def send_for_ever(ifname: str, interval_us: int, ports: list[int]) -> None:
    """Each port's packet every ``interval_us``, evenly spread. After a pause there is no burst to catch up."""
    step_ns = interval_us * 1000 / len(ports)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((ifname, 0))
        due = float(time.monotonic_ns())
        for packet in itertools.cycle([timer_packet(port) for port in ports]):
            early = due - time.monotonic_ns()
            if early > 0:
                time.sleep(early / 1e9)
            elif -early > interval_us * 1000:
                due = float(time.monotonic_ns())
            wire.send(packet)
            due += step_ns


if __name__ == "__main__":
    try:
        send_for_ever(sys.argv[1], int(sys.argv[2]), [int(word) for word in sys.argv[3:]])
    except KeyboardInterrupt:
        sys.exit(130)
