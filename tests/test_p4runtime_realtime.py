"""A switch process on real interfaces, under a controller."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tests.native.namespaces import Net, two_hosts
from tests.p4runtime_client import Controller, Failure, Program, exact, lpm
from tests.test_cli_run import running

pytestmark = pytest.mark.root


@pytest.fixture
def net() -> Iterator[Net]:
    with two_hosts(f"swp{os.getpid()}") as made:
        yield made


def _packet(destination: str) -> bytes:
    return bytes(
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst=destination) / UDP() / b"data"
    )


def _route(controller: Controller, program: Program) -> None:
    """10/8 goes to port 1, the rest to the controller."""
    entry, action = program.entry, program.action
    punt = entry("route_ipv4", [], action("route_punt"), is_default_action=True)
    controller.modify(table_entry=punt)
    controller.insert(table_entry=entry("route_ipv4", [lpm(1, 10 << 24, 8)], action("route_via", 1)))
    controller.insert(table_entry=entry("neighbour", [exact(1, 1)], action("forward", 1, 0x020000000099)))
    controller.insert(table_entry=entry("router_port", [exact(1, 1)], action("set_source", 0x020000000003)))


def test_pipelines_come_and_go_while_packets_flow(net: Net, programs: Path, tmp_path: Path) -> None:
    program = Program.load(programs, "l3_router")
    address = f"unix:{tmp_path}/p4runtime.sock"
    arguments = [
        "--no-p4", "-i", "0@s0", "-i", "1@s1", "--device-id", "1", "--cpu-port", "510", "--grpc-server-addr", address,
        "--control", str(tmp_path / "control.sock"),
    ]  # fmt: skip
    with (
        running(*arguments, namespace=net.switch) as (process, _),
        Controller(0, channel=grpc.insecure_channel(address)) as controller,
    ):
        controller.arbitrate()
        with pytest.raises(Failure) as failure:
            controller.read(table_entry=p4r.TableEntry())
        assert failure.value == Failure("FAILED_PRECONDITION", "No forwarding pipeline config set for this device")
        for action in ("VERIFY_AND_COMMIT", "RECONCILE_AND_COMMIT", "VERIFY_AND_COMMIT"):
            controller.set_pipeline(program.config(), action)
            if action == "VERIFY_AND_COMMIT":
                _route(controller, program)
            net.a.send(_packet("10.0.0.2"))
            assert Ether(net.b.receive()).dst == "02:00:00:00:00:99"
            net.a.send(_packet("192.168.0.1"))
            packet = controller.receive().packet
            assert packet.payload == _packet("192.168.0.1")
            assert [m.value for m in packet.metadata] == [b"\0", b"\2"]
            metadata = [p4r.PacketMetadata(metadata_id=1, value=b"\1"), p4r.PacketMetadata(metadata_id=2, value=b"\0")]
            controller.send(packet=p4r.PacketOut(payload=packet.payload, metadata=metadata))
            assert net.b.receive() == packet.payload
    assert process.returncode == 0
