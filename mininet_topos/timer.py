"""Timer packets: what makes a device send heartbeats and tells it of carriers that are lost.

The softswitch has a generator; beside BMv2 runs this module.
"""

from __future__ import annotations

import array
import fcntl
import itertools
import socket
import struct
import sys
import time

TIMER_PORT = 509
_ETHERTYPE_TIMER = 0x88B6
_SHORTEST_FRAME = 60  # bytes
IS_DOWN_AT = 16  # offset of timer_t's is_down
_SIOCETHTOOL, _ETHTOOL_GLINK = 0x8946, 0x0A  # linux/sockios.h, linux/ethtool.h


def timer_packet(port: int, is_down: bool = False) -> bytes:
    """The packet that says that ``port``'s heartbeat is due (p4src/shared/headers.p4, timer_t)."""
    return struct.pack("!6x6xHHB", _ETHERTYPE_TIMER, port, is_down).ljust(_SHORTEST_FRAME, b"\0")


def has_carrier(any_socket: socket.socket, ifname: str) -> bool:
    """Whether an interface is up and has a carrier. One that is gone has none."""
    answer = array.array("I", [_ETHTOOL_GLINK, 0])
    try:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, struct.pack("16sP", ifname.encode(), answer.buffer_info()[0]))
    except OSError:
        return False
    return answer[1] == 1


def send_for_ever(ifname: str, interval_us: int, ports: dict[int, str]) -> None:
    """The packet of each port (with its interface) every ``interval_us``, evenly spread.

    After a pause there is no burst to catch up.
    """
    step_ns = interval_us * 1000 / len(ports)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((ifname, 0))
        due = float(time.monotonic_ns())
        for port, watched in itertools.cycle(ports.items()):
            early = due - time.monotonic_ns()
            if early > 0:
                time.sleep(early / 1e9)
            elif -early > interval_us * 1000:
                due = float(time.monotonic_ns())
            wire.send(timer_packet(port, not has_carrier(wire, watched)))
            due += step_ns


if __name__ == "__main__":
    try:
        words = [word.partition("@") for word in sys.argv[3:]]
        send_for_ever(sys.argv[1], int(sys.argv[2]), {int(port): watched for port, _, watched in words})
    except KeyboardInterrupt:
        sys.exit(130)
