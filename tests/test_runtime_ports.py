"""The runtime in real time: AF_PACKET ports between network namespaces, one native thread."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.native.namespaces import Host, Net, cable, inside, ip, two_hosts
from tests.native.runtime import (
    CPU_PORT,
    EBUSY,
    EEXIST,
    EINVAL,
    EIO,
    ENOENT,
    EV_PACKET_IN,
    OK,
    RX,
    RuntimeDevice,
    runtime_device,
)

A_MAC, B_MAC = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
PATIENCE_MS = 10_000


@dataclass(frozen=True, slots=True)
class Switch:
    """Port 0 is s0 and port 1 is s1; frames go from one to the other."""

    device: RuntimeDevice
    net: Net


@pytest.fixture
def net() -> Iterator[Net]:
    with two_hosts(f"swt{os.getpid()}") as made:
        yield made


@pytest.fixture
def switch(net: Net) -> Iterator[Switch]:
    with runtime_device(realtime=True) as device:
        with inside(net.switch):
            assert device.port_add(0, "s0") == OK
            assert device.port_add(1, "s1") == OK
            assert device.call("start") == OK
        assert {device.port_event(), device.port_event()} == {(0, True), (1, True)}
        yield Switch(device, net)


def frame(number: int, length: int = 64, destination: bytes = B_MAC) -> bytes:
    """An Ethernet frame of a local experiment, told apart by its number."""
    return destination + A_MAC + b"\x88\xb5" + number.to_bytes(4, "big") + bytes(length - 18)


def order(op: bytes, length: int = 64) -> bytes:
    """A frame whose first bytes ask forward_program.c for something."""
    return frame(0, length, op + bytes(6 - len(op)))


@pytest.mark.root
def test_frames_go_both_ways_unchanged(switch: Switch) -> None:
    for number in range(100):
        switch.net.a.send(frame(number, 60 + number * 14))
        assert switch.net.b.receive() == frame(number, 60 + number * 14)
        switch.net.b.send(frame(number, 100))
        assert switch.net.a.receive() == frame(number, 100)
    info = switch.device.port(0)
    assert (info.rx_packets, info.tx_packets, info.rx_drops, info.tx_drops) == (100, 100, 0, 0)
    assert (info.rx_bytes, info.tx_bytes) == (sum(60 + n * 14 for n in range(100)), 100 * 100)


@pytest.mark.root
def test_bursts_arrive_whole_and_in_order(switch: Switch) -> None:
    for number in range(1000):
        switch.net.a.send(frame(number))
    assert [switch.net.b.receive() for _ in range(1000)] == [frame(number) for number in range(1000)]


@pytest.mark.root
def test_copies_of_an_unlimited_queue_are_never_dropped(switch: Switch) -> None:
    switch.net.a.send(order(b"M\xff"))
    received = [switch.net.b.receive() for _ in range(255)]
    assert len(received) == 255
    assert switch.device.stats().queue_drops == 0


@pytest.mark.root
@pytest.mark.parametrize("tag", ["8100 2064", "88a8 e001 8100 0005"])
def test_vlan_tags_stay_where_they_are(switch: Switch, tag: str, tmp_path: Path) -> None:
    tagged = B_MAC + A_MAC + bytes.fromhex(tag) + b"\x88\xb5" + bytes(range(60))
    path = tmp_path / "s0.pcap"
    switch.device.call("port_pcap", 0, str(path).encode())
    switch.net.a.send(tagged)
    assert switch.net.b.receive() == tagged
    switch.device.call("port_pcap", 0, None)
    assert path.read_bytes()[40:] == tagged


def _with_addresses(net: Net) -> None:
    for host, mac, number in ((net.a, A_MAC, 1), (net.b, B_MAC, 2)):
        ip("-n", host.namespace, "link", "set", host.ifname, "address", mac.hex(":"))
        ip("-n", host.namespace, "address", "add", f"10.9.0.{number}/24", "dev", host.ifname)
    for host, mac, number in ((net.a, B_MAC, 2), (net.b, A_MAC, 1)):
        ip("-n", host.namespace, "neigh", "add", f"10.9.0.{number}", "lladdr", mac.hex(":"), "dev", host.ifname)


def _sockets(net: Net, kind: socket.SocketKind) -> tuple[socket.socket, socket.socket]:
    with inside(net.a.namespace):
        client = socket.socket(socket.AF_INET, kind)
    with inside(net.b.namespace):
        server = socket.socket(socket.AF_INET, kind)
    server.bind(("10.9.0.2", 7000))
    for one in (client, server):
        one.settimeout(5)
    return client, server


@pytest.mark.root
@pytest.mark.parametrize("length", [1, 18, 999, 1400])
def test_checksums_that_a_host_leaves_to_its_hardware_are_completed(switch: Switch, length: int) -> None:
    _with_addresses(switch.net)
    client, server = _sockets(switch.net, socket.SOCK_DGRAM)
    with client, server:
        client.sendto(os.urandom(length), ("10.9.0.2", 7000))
        assert len(server.recv(2000)) == length
    packet = switch.net.b.receive()
    udp = packet[34:]
    pseudo = packet[26:34] + bytes([0, 17]) + struct.pack("!H", len(udp))
    words = pseudo + udp + bytes(len(udp) % 2)
    total = sum(struct.unpack(f"!{len(words) // 2}H", words))
    assert total % 0xFFFF == 0


@pytest.mark.root
def test_tcp_crosses_the_switch(switch: Switch) -> None:
    _with_addresses(switch.net)
    client, server = _sockets(switch.net, socket.SOCK_STREAM)
    with client, server:
        server.listen()
        client.connect(("10.9.0.2", 7000))
        accepted, _ = server.accept()
        with accepted:
            accepted.settimeout(5)
            client.sendall(b"a" * 1000)
            assert len(accepted.recv(1000, socket.MSG_WAITALL)) == 1000
            accepted.sendall(b"b" * 1000)
            assert len(client.recv(1000, socket.MSG_WAITALL)) == 1000


@pytest.mark.root
def test_a_missing_interface_is_an_error_with_errno(net: Net) -> None:
    with runtime_device(realtime=True) as device, inside(net.switch):
        assert device.port_add(0, "nothere") == EIO
        assert ctypes.get_errno() == errno.ENODEV
        assert device.port_add(0, "") == EINVAL
        assert device.port_add(0, "x" * 32) == EINVAL
        assert device.call("port_remove", 0) == ENOENT
        assert device.port_add(0, "s0") == OK
        assert device.port_add(0, "s1") == EEXIST
        assert device.port(0).ifname == b"s0"


@pytest.mark.root
def test_an_interface_that_is_down_can_be_added_and_comes_up_later(net: Net) -> None:
    ip("-n", net.switch, "link", "set", "s0", "down")
    with runtime_device(realtime=True) as device:
        with inside(net.switch):
            assert device.port_add(0, "s0") == OK
            assert device.call("start") == OK
        assert (device.port(0).exists, device.port(0).up, device.port_event()) == (True, False, None)
        ip("-n", net.switch, "link", "set", "s0", "up")
        assert device.port_event(PATIENCE_MS) == (0, True)


@pytest.mark.root
def test_ports_come_and_go_while_packets_run(switch: Switch) -> None:
    assert switch.device.call("port_remove", 1) == OK
    assert switch.device.port_event(PATIENCE_MS) == (1, False)
    switch.net.b.send(frame(1))
    with inside(switch.net.switch):
        assert switch.device.port_add(1, "s1") == OK
    assert switch.device.port_event(PATIENCE_MS) == (1, True)
    switch.net.b.send(frame(2))
    assert switch.net.a.receive() == frame(2)


@pytest.mark.root
def test_the_switchs_end_going_down_and_up_is_told(switch: Switch) -> None:
    ip("-n", switch.net.switch, "link", "set", "s1", "down")
    assert switch.device.port_event(PATIENCE_MS) == (1, False)
    switch.net.a.send(frame(1))
    ip("-n", switch.net.switch, "link", "set", "s1", "up")
    assert switch.device.port_event(PATIENCE_MS) == (1, True)
    switch.net.a.send(frame(2))
    assert switch.net.b.receive() == frame(2)
    assert switch.device.port(1).tx_drops == 1


@pytest.mark.root
def test_flaps_of_the_far_end_are_told(switch: Switch) -> None:
    for _ in range(3):
        ip("-n", switch.net.b.namespace, "link", "set", "b0", "down")
        assert switch.device.port_event(PATIENCE_MS) == (1, False)
        ip("-n", switch.net.b.namespace, "link", "set", "b0", "up")
        assert switch.device.port_event(PATIENCE_MS) == (1, True)


@pytest.mark.root
def test_every_flap_of_the_switchs_end_is_told_in_order(switch: Switch) -> None:
    for _ in range(5):
        ip("-n", switch.net.switch, "link", "set", "s1", "down")
        ip("-n", switch.net.switch, "link", "set", "s1", "up")
    told = [switch.device.port_event(PATIENCE_MS) for _ in range(10)]
    assert told == [(1, False), (1, True)] * 5


@pytest.mark.root
def test_a_deleted_interface_is_down_and_comes_back_by_its_name(switch: Switch) -> None:
    ip("-n", switch.net.switch, "link", "del", "s1")
    assert switch.device.port_event(PATIENCE_MS) == (1, False)
    switch.net.a.send(frame(1))
    cable(switch.net.b.namespace, "b0", switch.net.switch, "s1")
    assert switch.device.port_event(PATIENCE_MS) == (1, True)
    again = Host(switch.net.b.namespace, "b0")
    try:
        switch.net.a.send(frame(2))
        assert again.receive() == frame(2)
        again.send(frame(3))
        assert switch.net.a.receive() == frame(3)
    finally:
        again.close()


@pytest.mark.root
def test_what_happened_to_interfaces_while_stopped_is_seen_at_start(switch: Switch) -> None:
    switch.device.call("stop")
    ip("-n", switch.net.switch, "link", "del", "s0")
    ip("-n", switch.net.switch, "link", "set", "s1", "down")
    with inside(switch.net.switch):
        assert switch.device.call("start") == OK
    assert {switch.device.port_event(PATIENCE_MS), switch.device.port_event(PATIENCE_MS)} == {(0, False), (1, False)}


@pytest.mark.root
def test_a_larger_mtu_takes_effect_while_running(switch: Switch) -> None:
    for host in (switch.net.a, switch.net.b):
        ip("-n", host.namespace, "link", "set", host.ifname, "mtu", "9000")
    for ifname in ("s0", "s1"):
        ip("-n", switch.net.switch, "link", "set", ifname, "mtu", "9000")
    ip("-n", switch.net.switch, "link", "set", "s1", "down")  # when this is told, the new MTUs have been, too
    assert switch.device.port_event(PATIENCE_MS) == (1, False)
    ip("-n", switch.net.switch, "link", "set", "s1", "up")
    assert switch.device.port_event(PATIENCE_MS) == (1, True)
    switch.net.a.send(frame(1, 9014))
    assert switch.net.b.receive() == frame(1, 9014)


@pytest.mark.root
def test_a_frame_longer_than_the_egress_mtu_is_dropped_and_counted(switch: Switch) -> None:
    ip("-n", switch.net.switch, "link", "set", "s1", "mtu", "500")
    switch.net.a.send(frame(1, 1000))
    switch.net.a.send(frame(2, 100))
    assert switch.net.b.receive() == frame(2, 100)
    assert (switch.device.port(1).tx_packets, switch.device.port(1).tx_drops) == (1, 1)


@pytest.mark.root
def test_an_administratively_down_port_drops_and_tells(switch: Switch) -> None:
    switch.device.call("port_set_up", 1, False)
    assert switch.device.port_event() == (1, False)
    switch.net.a.send(order(b"C\x01"))
    switch.net.a.send(frame(1))
    switch.net.a.send(order(b"C\x02"))
    numbers = []
    for _ in range(2):
        found = switch.device.event(PATIENCE_MS)
        assert found is not None
        assert found[0].type == EV_PACKET_IN
        numbers.append(found[1][1])
    assert numbers == [1, 2]
    assert switch.device.port(1).tx_drops == 1


@pytest.mark.root
def test_packet_out_leaves_without_waiting_for_the_thread(net: Net) -> None:
    with runtime_device(realtime=True) as device:
        with inside(net.switch):
            assert device.port_add(CPU_PORT ^ 1, "s0") == OK
        assert device.call("packet_out", CPU_PORT, frame(5), 64) == OK
        assert net.a.receive() == frame(5)
        assert device.call("packet_out", 3, frame(5), 64) == ENOENT


@pytest.mark.root
def test_a_packet_rate_is_kept_in_real_time(switch: Switch) -> None:
    switch.device.queue_set(1, pps=1000)
    start = time.monotonic()
    for number in range(51):
        switch.net.a.send(frame(number))
    assert [switch.net.b.receive() for _ in range(51)] == [frame(number) for number in range(51)]
    assert time.monotonic() - start >= 0.05
    assert switch.device.queue_stats(1).drops == 0


@pytest.mark.root
def test_a_rate_is_taken_away_while_packets_wait(switch: Switch) -> None:
    switch.device.queue_set(1, pps=1)
    for number in range(10):
        switch.net.a.send(frame(number))
    assert switch.net.b.receive() == frame(0)
    switch.device.queue_set(1)
    assert [switch.net.b.receive(0.9) for _ in range(9)] == [frame(number) for number in range(1, 10)]


@pytest.mark.root
def test_generated_packets_come_from_a_sleeping_thread(switch: Switch) -> None:
    switch.device.pktgen_set(0, 0, 10_000_000, frame(8), count=3)
    start = time.monotonic()
    assert [switch.net.b.receive() for _ in range(3)] == [frame(8)] * 3
    assert time.monotonic() - start >= 0.02


@pytest.mark.root
def test_delays_of_a_wire_are_kept_in_real_time(switch: Switch) -> None:
    switch.device.fault_set(0, RX, delay_ns=50_000_000)
    start = time.monotonic()
    switch.net.a.send(frame(1))
    assert switch.net.b.receive() == frame(1)
    assert time.monotonic() - start >= 0.05


@pytest.mark.root
@pytest.mark.parametrize("op", ["R", "B"])
def test_packets_that_loop_for_ever_do_not_keep_others_away(switch: Switch, op: str) -> None:
    switch.net.a.send(order(op.encode()))
    for number in range(20):
        switch.net.a.send(frame(number))
        assert switch.net.b.receive(30) == frame(number)
    switch.device.pktgen_set(0, 0, 1_000_000, frame(77), count=1)
    assert switch.net.b.receive(30) == frame(77)
    assert switch.device.call("stop") == OK


@pytest.mark.root
def test_the_thread_starts_and_stops_as_often_as_asked(switch: Switch) -> None:
    for number in range(5):
        assert switch.device.call("start") == EBUSY
        assert switch.device.call("stop") == OK
        assert switch.device.call("stop") == OK
        switch.net.a.send(frame(number))
        with inside(switch.net.switch):
            assert switch.device.call("start") == OK
        assert switch.net.b.receive() == frame(number)


def test_virtual_and_real_time_refuse_each_others_calls() -> None:
    with runtime_device() as device:
        assert device.call("start") == EINVAL
        assert device.call("stop") == EINVAL
    with runtime_device(realtime=True) as device:
        assert device.call("inject", 0, frame(0), 64, 0) == EINVAL
        assert device.call("advance", 0) == EINVAL
        before = device.call("now")
        assert device.call("now") > before
