"""Hosts with SmartNICs on several independent planes::

    h1 --9[n1]1 --- 1[p1s1]2 --- 1[n2]9-- h2      single tier: one switch p<k>s1 a plane,
             2 --- 1[p2s1]2 --- 2                 port i of it leads to NIC n<i>, whose port k leads to plane k

With leaves and spines, plane k has leaves p<k>l1, p<k>l2, ... and spines p<k>s1, p<k>s2, ...: the hosts are dealt
to the leaves in blocks, the ports of a leaf are first its NICs, then the spines, and port l of a spine leads to leaf l.
"""

from __future__ import annotations

from mininet_topos.topology import (
    FIRST_NIC_ID,
    MAX_PLANES,
    MAX_PORT,
    NIC_HOST_PORT,
    Device,
    End,
    Link,
    Role,
    Topology,
    TopologyError,
    check_count,
    make_host,
)


def multiplane(planes: int = 4, hosts: int = 4, leaves: int = 0, spines: int = 0) -> Topology:
    """``planes`` (1..8) planes and ``hosts`` hosts; single tier where ``leaves`` and ``spines`` are 0.

    Raises TopologyError where a switch would need more than 63 ports.
    """
    check_count("planes", planes, 1, MAX_PLANES)
    check_count("hosts", hosts, 1, 255)
    if (leaves == 0) != (spines == 0):
        raise TopologyError(f"leaves and spines go together, there are {leaves} leaves and {spines} spines")
    names = [f"n{number}" for number in range(1, hosts + 1)]
    devices: list[Device] = []
    links: list[Link] = []
    for plane in range(1, planes + 1):
        first_id = len(devices) + 1
        made = _two_tiers(plane, first_id, names, leaves, spines) if leaves else _one_tier(plane, first_id, names)
        devices += made[0]
        links += made[1]
    devices += [Device(name, Role.NIC, FIRST_NIC_ID + i) for i, name in enumerate(names)]
    made_hosts = tuple(make_host(number) for number in range(1, hosts + 1))
    links += [Link(End(host.name, 0), End(nic, NIC_HOST_PORT)) for host, nic in zip(made_hosts, names, strict=True)]
    return Topology("multiplane", tuple(devices), made_hosts, tuple(links))


def _one_tier(plane: int, first_id: int, nics: list[str]) -> tuple[list[Device], list[Link]]:
    check_count("hosts of a single-tier plane", len(nics), 1, MAX_PORT)
    switch = Device(f"p{plane}s1", Role.PLANE, first_id, f"p{plane}")
    return [switch], [Link(End(nic, plane), End(switch.name, port)) for port, nic in enumerate(nics, 1)]


def _two_tiers(plane: int, first_id: int, nics: list[str], leaves: int, spines: int) -> tuple[list[Device], list[Link]]:
    check_count("leaves", leaves, 1, MAX_PORT)
    block = -(-len(nics) // leaves)
    check_count(f"ports of a leaf with {block} NICs and {spines} spines", block + spines, 2, MAX_PORT)
    name = f"p{plane}"
    below = [Device(f"{name}l{i + 1}", Role.LEAF, first_id + i, name) for i in range(leaves)]
    above = [Device(f"{name}s{i + 1}", Role.SPINE, first_id + leaves + i, name) for i in range(spines)]
    links = [Link(End(nic, plane), End(below[i // block].name, i % block + 1)) for i, nic in enumerate(nics)]
    links += [
        Link(End(leaf.name, block + j), End(spine.name, i))
        for i, leaf in enumerate(below, 1)
        for j, spine in enumerate(above, 1)
    ]
    return below + above, links
