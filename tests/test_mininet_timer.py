"""The sender of timer packets beside BMv2: whose heartbeat is due, and whose carrier is lost."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mininet_topos.timer import has_carrier, timer_packet
from ptf_tests import packets as p
from tests.native.namespaces import Host, Net, cable, inside, ip, two_hosts

INTERVAL_US = 10_000


@pytest.mark.parametrize("is_down", [False, True])
def test_a_timer_packet_is_that_of_the_programs(is_down: bool) -> None:
    assert timer_packet(5, is_down) == p.timer(5, is_down)


@pytest.fixture
def net() -> Iterator[Net]:
    """Timers for s0 and s1 leave by t0 and arrive at t1, all of them in the switch's namespace."""
    with two_hosts(f"tmr{os.getpid()}") as made:
        cable(made.switch, "t1", made.switch, "t0")
        yield made


@contextmanager
def sender(net: Net) -> Iterator[Host]:
    """The sender at work; what it sends arrives at this host."""
    wire = Host(net.switch, "t1")
    words = [sys.executable, "-m", "mininet_topos.timer", "t0", str(INTERVAL_US), "1@s0", "2@s1"]
    try:
        with inside(net.switch):
            process = subprocess.Popen(words)
        try:
            yield wire
        finally:
            process.terminate()
            process.wait()
    finally:
        wire.close()


def until(wire: Host, *expected: bytes) -> None:
    """Receive until these packets have come in a row."""
    got: list[bytes] = []
    while tuple(got[-len(expected) :]) != expected:
        got.append(wire.receive())
        assert len(got) < 1000, got[-2:]
        assert len(got) < 2 or got[-1][14:16] != got[-2][14:16], "the ports take turns"


@pytest.mark.root
def test_the_ports_take_turns_and_each_tells_of_its_own_carrier(net: Net) -> None:
    ip("-n", net.switch, "link", "set", "s1", "down")
    with sender(net) as wire:
        until(wire, p.timer(1), p.timer(2, True))
        ip("-n", net.switch, "link", "set", "s1", "up")
        until(wire, p.timer(1), p.timer(2))
        ip("-n", net.a.namespace, "link", "set", net.a.ifname, "down")
        until(wire, p.timer(1, True), p.timer(2))
        ip("-n", net.a.namespace, "link", "set", net.a.ifname, "up")
        until(wire, p.timer(1), p.timer(2))
        ip("-n", net.switch, "link", "del", "s0")
        until(wire, p.timer(1, True), p.timer(2))


@pytest.mark.root
def test_an_interface_that_is_not_there_has_no_carrier(net: Net) -> None:
    with inside(net.switch), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        assert [has_carrier(any_socket, name) for name in ("s0", "nowhere")] == [True, False]
