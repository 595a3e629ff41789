"""Network namespaces for one test: two hosts and the switch between them. All are gone afterwards."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_PACKET_AUXDATA, _SOL_PACKET, _ETH_P_ALL = 8, 263, 3
_LIBC = ctypes.CDLL(None, use_errno=True)


def ip(*arguments: str) -> None:
    """Run ``ip`` with these arguments; raises :class:`subprocess.CalledProcessError`."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """This thread is in the namespace; sockets made here stay there."""

    def enter(path: str) -> None:
        fd = os.open(path, os.O_RDONLY)
        try:
            if _LIBC.setns(fd, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"setns {path}")
        finally:
            os.close(fd)

    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        enter(f"/run/netns/{namespace}")
        try:
            yield
        finally:
            enter(f"/proc/self/fd/{home}")
    finally:
        os.close(home)


class Host:
    """A host at one end of a cable: frames in and out of its interface, tags included."""

    def __init__(self, namespace: str, ifname: str) -> None:
        self.namespace, self.ifname = namespace, ifname
        with inside(namespace):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
            self._socket.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            self._socket.bind((ifname, _ETH_P_ALL))

    def close(self) -> None:
        self._socket.close()

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def receive(self, timeout: float = 5.0) -> bytes:
        """The next frame that came from the cable. Raises :class:`TimeoutError`."""
        self._socket.settimeout(timeout)
        while True:
            data, ancillary, _, address = self._socket.recvmsg(65536, 256)
            if address[2] != socket.PACKET_OUTGOING:
                return self._tagged(data, ancillary)

    @staticmethod
    def _tagged(data: bytes, ancillary: Sequence[tuple[int, int, bytes]]) -> bytes:
        for _, _, aux in ancillary:
            status, *_, tci, tpid = struct.unpack("IIIHHHH", aux[:20])
            if status & 0x10:  # TP_STATUS_VLAN_VALID
                return data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
        return data


@dataclass(frozen=True, slots=True)
class Net:
    """Host ``a`` is cabled to the switch's s0, host ``b`` to s1."""

    switch: str  # the namespace that s0 and s1 are in
    a: Host
    b: Host


@contextmanager
def two_hosts(name: str) -> Iterator[Net]:
    """The namespaces NAME-a, NAME-s and NAME-b, with cables that are up."""
    spaces = [f"{name}-{letter}" for letter in "asb"]
    hosts: list[Host] = []
    try:
        for space in spaces:
            ip("netns", "add", space)
            with inside(space):
                for entry in ("all", "default"):
                    Path(f"/proc/sys/net/ipv6/conf/{entry}/disable_ipv6").write_text("1")
        cable(spaces[0], "a0", spaces[1], "s0")
        cable(spaces[2], "b0", spaces[1], "s1")
        hosts = [Host(spaces[0], "a0"), Host(spaces[2], "b0")]
        yield Net(spaces[1], *hosts)
    finally:
        for host in hosts:
            host.close()
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


def cable(host: str, host_if: str, switch: str, switch_if: str) -> None:
    """A veth pair between two namespaces, both ends up."""
    ip("link", "add", host_if, "netns", host, "type", "veth", "peer", "name", switch_if, "netns", switch)
    ip("-n", host, "link", "set", host_if, "up")
    ip("-n", switch, "link", "set", switch_if, "up")
