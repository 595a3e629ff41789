"""``softswitch run`` as a process: says when it is ready, forwards, obeys its control socket, ends on a signal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from softswitch.control import ControlClient, ControlError
from tests.native.namespaces import Net, two_hosts

PATIENCE_S = 60


@contextmanager
def running(*arguments: str, namespace: str | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A switch that has said it is ready, and the line it said it with."""
    prefix = ["ip", "netns", "exec", namespace] if namespace else []
    command = [*prefix, sys.executable, "-m", "softswitch", "run", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            ready = process.stdout.readline().rstrip()
            assert ready, process.stderr.read()
            yield process, ready
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


@pytest.fixture
def socket_path(tmp_path: Path) -> Path:
    return tmp_path / "control.sock"


@pytest.fixture
def net() -> Iterator[Net]:
    with two_hosts(f"swr{os.getpid()}") as made:
        yield made


def test_a_switch_without_a_program_waits_for_one(socket_path: Path) -> None:
    arguments = [
        "--no-p4",
        "--device-id",
        "3",
        "--control",
        str(socket_path),
        "--",
        "--grpc-server-addr",
        "127.0.0.1:0",
    ]
    with running(*arguments) as (process, ready):
        match = re.fullmatch(rf"ready: device 3, 127\.0\.0\.1:(\d+), ports none, control {socket_path}", ready)
        assert match is not None, ready
        with grpc.insecure_channel(f"127.0.0.1:{match[1]}") as channel:
            answer = p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest())
        assert answer.p4runtime_api_version == "1.4.1"
        with ControlClient(socket_path) as client:
            assert client.call("stats.show") == {}
            assert client.call("ports.show") == []
    assert process.returncode == 0
    assert not socket_path.exists()


def test_interrupt_ends_it_cleanly_too(socket_path: Path) -> None:
    address = f"unix:{socket_path.parent}/p4runtime.sock"
    with running("--no-p4", "--control", str(socket_path), "--grpc-server-addr", address, "--json") as (process, ready):
        assert json.loads(ready) == {
            "ready": {"device_id": 0, "grpc": address, "ports": {}, "control": str(socket_path)}
        }
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        messages = [json.loads(line)["message"] for line in process.stderr]
    assert messages == [f"P4Runtime on {address}, device id 0"]


def test_signals_at_once_after_the_start_end_it_cleanly(socket_path: Path) -> None:
    """One that came just before the wait for it was lost, one time in six."""
    for _ in range(8):
        with running("--no-p4", "--control", str(socket_path), "--grpc-server-addr", "127.0.0.1:0") as (process, _):
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        assert not socket_path.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-i", "1@nowhere"], r"no interface 'nowhere' for port 1; there are .*\blo\b.*"),
        (["--p4info", "{program}"], r".*l3_router\.json is not P4Info: .*"),
        (["--grpc-server-addr", "192.0.2.1:1"], r"cannot listen on 192\.0\.2\.1:1: .*"),
    ],
)
def test_what_does_not_start_is_one_line_and_exit_code_1(
    programs: Path, socket_path: Path, arguments: list[str], message: str
) -> None:
    program = str(programs / "l3_router.json")
    command = [sys.executable, "-m", "softswitch", "run", program, "--control", str(socket_path), "-L", "off"]
    command += [word.format(program=program) for word in arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"softswitch: {message}\n", done.stderr), done.stderr
    assert not socket_path.exists()


def test_the_p4info_of_another_program_is_a_usage_error(programs: Path, socket_path: Path) -> None:
    p4info = programs / "digests.p4info.txtpb"
    command = [sys.executable, "-m", "softswitch", "run", str(programs / "l3_router.json"), "--p4info", str(p4info)]
    command += ["--control", str(socket_path), "--grpc-server-addr", "127.0.0.1:0", "-L", "off"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"softswitch: --p4info {p4info}: the P4Info is of another program; in P4Info alone: digest report_t, "
        "digest learn_t; in the program alone: table RouterIngress.acl, table RouterIngress.route_ipv4, "
        "table RouterIngress.route_ipv6, table RouterIngress.neighbour, table RouterIngress.router_port, "
        "action RouterIngress.acl_deny, action RouterIngress.acl_permit, action RouterIngress.acl_punt and 6 more\n"
    )
    assert not socket_path.exists()


def until(happened: Callable[[], bool]) -> None:
    """Waits for what the switch counts."""
    end = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.001)


@pytest.mark.root
def test_a_switch_between_two_hosts(net: Net, programs: Path, socket_path: Path, tmp_path: Path) -> None:
    """replication.p4 sends to the port that the packet names."""
    to_port_1, to_port_0 = bytes.fromhex("0008" + 22 * "00"), bytes(24)
    arguments = [
        str(programs / "replication.json"), "-i", "0@s0", "-i", "1@s1", "--grpc-server-addr", "127.0.0.1:0",
        "--control", str(socket_path), "--pcap", str(tmp_path), "--keep-c", str(tmp_path / "c"),
    ]  # fmt: skip
    with running(*arguments, namespace=net.switch) as (process, ready):
        assert re.search(r"ports 0@s0 1@s1, ", ready)
        net.a.send(to_port_1)
        assert net.b.receive()[:2] == b"\x00\x08"
        net.b.send(to_port_0)
        assert net.a.receive()[:2] == b"\x00\x00"
        with ControlClient(socket_path) as client:
            ports = client.call("ports.show")
            assert [(one["port"], one["ifname"], one["rx_packets"], one["tx_packets"]) for one in ports] == [
                (0, "s0", 1, 1),
                (1, "s1", 1, 1),
            ]
            with pytest.raises(ControlError, match="interface 's1' is port 1's"):
                client.call("ports.add", port=2, ifname="s1")
            client.call("faults.set", port=1, direction="tx", loss=1.0)
            net.a.send(to_port_1)
            until(lambda: client.call("ports.show")[1]["fault_drops"] == 1)
            client.call("faults.reset")
            net.a.send(to_port_1[:2] + b"\x10" + to_port_1[3:])
            assert net.b.receive()[2] == 0x10
            client.call("ports.remove", port=1)
            with pytest.raises(ControlError, match="no port 1; the switch's ports are 0"):
                client.call("ports.down", port=1)
    assert process.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "s0.pcap", "s1.pcap"]
    assert (tmp_path / "c" / "program.c").is_file()
