"""What the tests in Mininet share: what they need, and s1 as a router between hosts, with tests/p4/l3_router.p4."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import finsy as fy
import pytest

from mininet_topos.single_switch import single_switch
from mininet_topos.topology import End
from tests.conftest import PROGRAMS

NEEDS_MININET = [pytest.mark.root, pytest.mark.mininet]
TARGETS = ["softswitch", pytest.param("bmv2", marks=pytest.mark.bmv2)]

_WAIT_S = 30


def program_router(address: str, hosts: int) -> None:
    """Loads the pipeline at a P4Runtime address and writes routes to ``hosts`` hosts, IPv4 and IPv6."""
    asyncio.run(_program(address, hosts))


async def _program(address: str, hosts: int) -> None:
    logging.getLogger("finsy").setLevel(logging.ERROR)  # it warns of every switch without gNMI
    options = fy.SwitchOptions(
        p4info=PROGRAMS / "l3_router.p4info.txtpb", p4blob=PROGRAMS / "l3_router.json", fail_fast=True
    )
    async with asyncio.timeout(_WAIT_S), fy.Switch("s1", address, options) as switch:
        await switch.write(_entries(hosts))


def _entries(hosts: int) -> list[Any]:
    topology = single_switch(hosts)
    router_mac = int(topology.devices[0].mac.replace(":", ""), 16)
    entries: list[Any] = []
    for host in topology.hosts:
        (link,) = topology.links_of(host.name)
        port = link.other(host.name).port
        assert link.other(host.name) == End("s1", port)
        mac = int(host.mac.replace(":", ""), 16)
        via = fy.Action("route_via", nexthop_id=port)
        entries += [
            +fy.P4TableEntry(
                "neighbour",
                match=fy.Match(nexthop_id=port),
                action=fy.Action("forward", port=port, dst_addr=mac),
            ),
            +fy.P4TableEntry(
                "router_port", match=fy.Match(port=port), action=fy.Action("set_source", src_addr=router_mac)
            ),
            +fy.P4TableEntry("route_ipv4", match=fy.Match(dst_addr=str(host.ipv4.network)), action=via),
            +fy.P4TableEntry("route_ipv6", match=fy.Match(dst_addr=str(host.ipv6.network)), action=via),
        ]
    return entries
