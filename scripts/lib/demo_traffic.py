"""Numbered UDP packets between the hosts of a running network: what exactly was lost, when, and what came marked.

One thread sends and one receives, by sockets that were made inside the hosts' network namespaces. Every packet's
sequence number and the time of its sending are kept, so that a loss is a fact about one packet and not a rate.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from mininet_topos.live import Network
from mininet_topos.namespace import inside

UDP_PORT = 7777
PAYLOAD = struct.Struct("!HI200x")  # flow, sequence number
CE = 3
ECT0 = 2
LATE_S = 0.05  # a sender that is later than this does not catch up by a burst
RECEIVE_BUFFER = 4 << 20  # bytes
SO_RCVBUFFORCE = 33  # socket(7); Python has no name for it

Pair = tuple[str, str]  # sending host, receiving host


@dataclass
class Flow:
    """The packets from one host to another; a packet's sequence number is its index in ``sent``."""

    number: int
    sender: socket.socket
    address: tuple[str, int]
    sent: list[float] = field(default_factory=list)  # seconds since the epoch
    arrived: set[int] = field(default_factory=set)
    marked: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the traffic: of each flow the packets from ``first`` up to ``end``."""

    name: str
    first: dict[Pair, int]
    end: dict[Pair, int]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a phase's packets. ``lost_at`` are the times when the lost ones were sent, in order."""

    phase: str
    sent: int
    received: int
    marked: int
    lost_at: tuple[float, ...]

    @property
    def lost(self) -> int:
        return self.sent - self.received


class Traffic:
    """Sends along the pairs of the current phase, ``pps`` packets a second each, while the context is open."""

    def __init__(self, network: Network, pairs: Sequence[Pair], dscp: int, pps: float) -> None:
        self.phases: list[Phase] = []
        self.duplicates = 0
        self._interval_s = 1 / pps
        self._network = network
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._receivers: list[socket.socket] = []
        self._flows = {pair: self._flow(number, *pair, dscp) for number, pair in enumerate(pairs)}
        self._by_number = {flow.number: flow for flow in self._flows.values()}
        self._active: list[Flow] = []
        self._name = ""
        self._first: dict[Pair, int] = {}
        for host in sorted({receiver for _, receiver in pairs}):
            self._receivers.append(self._receiver(host))
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._send, self._receive)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        for each in (*self._receivers, *(flow.sender for flow in self._flows.values())):
            each.close()

    def begin(self, name: str, pairs: Sequence[Pair]) -> None:
        """Ends the current phase and begins another; one without pairs is silent."""
        with self._lock:
            now = {pair: len(flow.sent) for pair, flow in self._flows.items()}
            if self._name:
                self.phases.append(Phase(self._name, self._first, now))
            self._name, self._first = name, now
            self._active = [self._flows[pair] for pair in pairs]

    def result(self, phase: Phase) -> Result:
        """What is known of a finished phase by now."""
        sent = received = marked = 0
        lost_at: list[float] = []
        for pair, flow in self._flows.items():
            numbers = range(phase.first[pair], phase.end[pair])
            missing = [number for number in numbers if number not in flow.arrived]
            sent += len(numbers)
            received += len(numbers) - len(missing)
            marked += sum(number in flow.marked for number in numbers)
            lost_at += [flow.sent[number] for number in missing]
        return Result(phase.name, sent, received, marked, tuple(sorted(lost_at)))

    def totals(self) -> tuple[int, int, int]:
        """Packets sent, received and received marked, so far."""
        flows = self._flows.values()
        with self._lock:
            sent = sum(len(flow.sent) for flow in flows)
        return sent, sum(len(flow.arrived) for flow in flows), sum(len(flow.marked) for flow in flows)

    def _flow(self, number: int, sender: str, receiver: str, dscp: int) -> Flow:
        with inside(self._network.node(sender).pid):
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2 | ECT0)
        return Flow(number, made, (f"10.0.{int(receiver[1:])}.2", UDP_PORT))

    def _receiver(self, host: str) -> socket.socket:
        with inside(self._network.node(host).pid):
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        made.setblocking(False)
        made.bind(("0.0.0.0", UDP_PORT))
        return made

    def _send(self) -> None:
        due = time.monotonic()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            with self._lock:
                for flow in self._active:
                    now = time.time()
                    flow.sender.sendto(PAYLOAD.pack(flow.number, len(flow.sent)), flow.address)
                    flow.sent.append(now)
            due = max(due + self._interval_s, time.monotonic() - LATE_S)

    def _receive(self) -> None:
        with selectors.DefaultSelector() as ready:
            for receiver in self._receivers:
                ready.register(receiver, selectors.EVENT_READ)
            while not self._stopped.is_set():
                for key, _ in ready.select(0.1):
                    assert isinstance(key.fileobj, socket.socket)
                    self._take(key.fileobj)

    def _take(self, receiver: socket.socket) -> None:
        space = socket.CMSG_SPACE(1)
        while True:
            try:
                payload, ancillary, _, _ = receiver.recvmsg(PAYLOAD.size, space)
            except BlockingIOError:
                return
            number, sequence = PAYLOAD.unpack(payload)
            flow = self._by_number[number]
            self.duplicates += sequence in flow.arrived
            flow.arrived.add(sequence)
            if any(data[0] & CE == CE for _, _, data in ancillary):
                flow.marked.add(sequence)
