"""What the topologies connect, and the intent files that they write."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.intent import load_intent
from controller.model import Role as IntentRole
from mininet_topos import live
from mininet_topos.intent import intent, write_intent
from mininet_topos.multiplane import multiplane
from mininet_topos.single_switch import single_switch
from mininet_topos.topology import Device, End, Link, Role, Topology, TopologyError


def cables(topology: Topology) -> set[str]:
    return {f"{link.a} {link.b}" for link in topology.links}


def test_single_switch_has_host_i_on_port_i() -> None:
    topology = single_switch(3)
    assert cables(topology) == {"h1:0 s1:1", "h2:0 s1:2", "h3:0 s1:3"}
    assert topology.link_ports("s1") == topology.timer_ports("s1") == (), "nobody to exchange heartbeats with"
    host = topology.hosts[2]
    assert (host.mac, str(host.ipv4), str(host.ipv6)) == ("02:00:00:00:01:03", "10.0.3.2/24", "fd00:0:0:3::2/64")
    assert (host.gateways, host.gateway_mac) == (("10.0.3.1", "fd00:0:0:3::1"), "02:50:50:00:00:01")


def test_a_single_tier_plane_is_one_switch() -> None:
    topology = multiplane(planes=2, hosts=2)
    assert cables(topology) == {
        "n1:1 p1s1:1", "n2:1 p1s1:2", "n1:2 p2s1:1", "n2:2 p2s1:2", "h1:0 n1:9", "h2:0 n2:9",
    }  # fmt: skip
    assert [(device.name, device.role, device.device_id, device.plane) for device in topology.devices] == [
        ("p1s1", "plane", 1, "p1"), ("p2s1", "plane", 2, "p2"), ("n1", "nic", 1001, ""), ("n2", "nic", 1002, ""),
    ]  # fmt: skip
    assert (topology.link_ports("n1"), topology.link_ports("p2s1")) == ((1, 2), (1, 2))


def test_leaves_take_blocks_of_hosts_and_every_spine() -> None:
    topology = multiplane(planes=1, hosts=3, leaves=2, spines=2)
    assert cables(topology) == {
        "n1:1 p1l1:1", "n2:1 p1l1:2", "n3:1 p1l2:1", "h1:0 n1:9", "h2:0 n2:9", "h3:0 n3:9",
        "p1l1:3 p1s1:1", "p1l1:4 p1s2:1", "p1l2:3 p1s1:2", "p1l2:4 p1s2:2",
    }  # fmt: skip
    assert topology.link_ports("p1l2") == (1, 3, 4)
    assert topology.timer_ports("n1")[:-1] == topology.link_ports("n1"), "the last is its host's"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"planes": 9}, "planes must be within 1..8, is 9"),
        ({"hosts": 0}, "hosts must be within 1..255, is 0"),
        ({"hosts": 64}, "hosts of a single-tier plane must be within 1..63, is 64"),
        ({"leaves": 2}, "leaves and spines go together, there are 2 leaves and 0 spines"),
        (
            {"hosts": 64, "leaves": 1, "spines": 1},
            "ports of a leaf with 64 NICs and 1 spines must be within 2..63, is 65",
        ),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(TopologyError) as error:
        multiplane(**arguments)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (("a:1", "c:1"), "link end c:1: no such node; nodes are a, b"),
        (("a:1", "a:1"), "port a:1 has two links"),
        (("a:64", "b:1"), "port a:64: a device's ports are 1..63, a host's only port is 0"),
    ],
)
def test_links_end_at_free_ports_of_nodes(ends: tuple[str, str], message: str) -> None:
    devices = tuple(Device(name, Role.LEAF, number, "p1") for number, name in enumerate("ab", 1))
    a, b = (End(name, int(port)) for name, port in (end.split(":") for end in ends))
    with pytest.raises(TopologyError) as error:
        Topology("broken", devices, (), (Link(a, b),))
    assert str(error.value) == message


def network_of(topology: Topology) -> live.Network:
    nodes = {
        device.name: live.Node(
            device.name, device.role, 1, {}, "softswitch", device.device_id, f"unix:/run/{device.name}.grpc", "/run/c"
        )
        for device in topology.devices
    }
    return live.Network("1-1-1", topology.name, nodes, topology.links)


@pytest.mark.parametrize(
    "topology", [single_switch(2), multiplane(8, 3), multiplane(2, 4, 2, 2)], ids=["single-switch", "one-tier", "two"]
)
def test_the_controller_reads_the_same_network_from_the_intent_file(topology: Topology, tmp_path: Path) -> None:
    path = tmp_path / "fabric.yaml"
    write_intent(path, intent(topology, network_of(topology), heartbeat_us=20_000))
    read = load_intent(path)
    assert {device.name: (device.device_id, device.role, device.plane) for device in read.devices} == {
        device.name: (device.device_id, IntentRole(device.role), device.plane) for device in topology.devices
    }
    assert {device.name: device.mac for device in read.devices} == {
        device.name: int(device.mac.replace(":", ""), 16) for device in topology.devices
    }
    assert [(host.name, host.ipv4, host.ipv6, f"{host.name}:0 {host.attached}") for host in read.hosts] == [
        (host.name, host.ipv4, host.ipv6, f"{link.a} {link.b}")
        for host in topology.hosts
        for link in topology.links_of(host.name)
    ]
    assert {f"{link.lower} {link.upper}" for link in read.links} == {
        cable for cable in cables(topology) if not cable.startswith("h")
    }
    assert {device.address for device in read.devices} == {
        f"unix:/run/{device.name}.grpc" for device in topology.devices
    }
    assert read.health.heartbeat_us == 20_000
