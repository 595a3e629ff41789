"""One switch with hosts on its ports: host h<i> on port i of s1."""

from __future__ import annotations

from mininet_topos.topology import MAX_PORT, Device, End, Link, Role, Topology, check_count, make_host


def single_switch(hosts: int = 2) -> Topology:
    """``s1`` and ``hosts`` (1..63) hosts, which know its MAC address. Raises TopologyError."""
    check_count("hosts", hosts, 1, MAX_PORT)
    switch = Device("s1", Role.PLANE, 1, "p1")
    made = tuple(make_host(number, gateway_mac=switch.mac) for number in range(1, hosts + 1))
    links = tuple(Link(End(host.name, 0), End(switch.name, port)) for port, host in enumerate(made, 1))
    return Topology("single-switch", (switch,), made, links)
