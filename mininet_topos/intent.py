"""A running topology as an intent file of the controller (``fabric.yaml``, see :mod:`controller.intent`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from mininet_topos.live import Network, Node
from mininet_topos.topology import NIC_HOST_PORT, Host, Role, Topology


def intent(topology: Topology, network: Network, heartbeat_us: int) -> dict[str, Any]:
    """The file's content: every device with its address, every host, every link between devices."""
    planes: dict[str, list[dict[str, Any]]] = {}
    nics = []
    attached = {link.other(host.name): host for host in topology.hosts for link in topology.links_of(host.name)}
    by_device = {end.node: host for end, host in attached.items()}
    for device in topology.devices:
        entry = _device(network.nodes[device.name])
        if device.role is Role.NIC:
            ports = list(topology.link_ports(device.name))
            host = _host(by_device[device.name])
            nics.append(entry | {"host_port": NIC_HOST_PORT, "plane_ports": ports, "host": host})
        else:
            planes.setdefault(device.plane, []).append(entry | {"role": str(device.role)})
    nic_names = {nic["name"] for nic in nics}
    hosts = [_host(host) | {"port": str(end)} for end, host in attached.items() if end.node not in nic_names]
    links = [
        [str(link.a), str(link.b)] for link in topology.links if not {link.a.node, link.b.node} & topology.host_names
    ]
    content: dict[str, Any] = {
        "name": topology.name,
        "planes": [{"name": name, "switches": switches} for name, switches in planes.items()],
    }
    content |= {key: value for key, value in (("nics", nics), ("hosts", hosts), ("links", links)) if value}
    return content | {"health": {"heartbeat_us": heartbeat_us}}


def write_intent(path: Path, content: dict[str, Any]) -> None:
    """Writes the file. Raises OSError."""
    path.write_text(yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120))


def _device(node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": node.name, "device_id": node.device_id, "address": node.grpc}
    return entry | ({"control": node.control} if node.control else {})


def _host(host: Host) -> dict[str, Any]:
    return {"name": host.name, "mac": host.mac, "ipv4": str(host.ipv4), "ipv6": str(host.ipv6)}
