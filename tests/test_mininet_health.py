"""A cable pulled in Mininet is seen by the data plane of both ends, on both targets, by heartbeats alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import finsy as fy
import pytest

from mininet_topos import live
from mininet_topos.multiplane import multiplane
from mininet_topos.network import Settings, running
from mininet_topos.targets import Target
from tests.mininet_support import NEEDS_MININET, TARGETS

pytestmark = NEEDS_MININET
HEARTBEAT_US = 50_000
PATIENCE_S = 30.0
UP, DOWN = 1, 3  # link_state_t
FABRIC, CONTROL, DSCP_CONTROL, QUEUE = 2, 1, 48, 7


@pytest.mark.parametrize("target", TARGETS)
def test_both_ends_see_a_cable_pulled_and_plugged_in_again(target: str, root: Path) -> None:
    """Leaf port 2 is joined to port 1 of the spine."""
    topology = multiplane(planes=1, hosts=1, leaves=1, spines=1)
    with running(topology, Settings(Target(target), heartbeat_us=HEARTBEAT_US)) as net:
        asyncio.run(_pull_and_plug(net.live(), root / "p4src/build"))


async def _pull_and_plug(network: live.Network, build: Path) -> None:
    logging.getLogger("finsy").setLevel(logging.ERROR)  # it warns of every switch without gNMI
    async with (
        asyncio.timeout(PATIENCE_S),
        _watched(network.node("p1l1"), 2, (2, 1), build) as leaf,
        _watched(network.node("p1s1"), 1, (1, 2), build) as spine,
    ):
        for end in (leaf, spine):
            await _until(end, UP)
        for up, state in ((False, DOWN), (True, UP)):
            network.set_link("p1l1", "p1s1", up)
            for end in (leaf, spine):
                await _until(end, state)


@asynccontextmanager
async def _watched(
    node: live.Node, port: int, neighbour: tuple[int, int], build: Path
) -> AsyncIterator[asyncio.Queue[int]]:
    """A switch with fabric.p4 that knows who must be at its port's other end; the states that it reports."""
    options = fy.SwitchOptions(
        p4info=build / "fabric.p4info.txtpb", p4blob=build / "fabric.json", device_id=node.device_id, fail_fast=True
    )
    async with fy.Switch(node.name, node.grpc, options) as switch:
        states: asyncio.Queue[int] = asyncio.Queue()
        reading = asyncio.create_task(_read(switch, states))
        device, its_port = neighbour
        await switch.write(
            [
                +fy.P4DigestEntry("link_event_t", max_list_size=1, max_timeout_ns=0, ack_timeout_ns=0),
                _entry("port", "set_role", {"port": port}, role=FABRIC),
                _entry("traffic_class", "set_class", {"dscp": DSCP_CONTROL}, traffic_class=CONTROL, queue=QUEUE),
                _entry(
                    "health_profile", "set_health", {"profile_id": 1}, missed_heartbeats=3,
                    min_timer_interval=HEARTBEAT_US // 2, probation_heartbeats=3, probation_max_doublings=1,
                    forgive_heartbeats=1000, window_heartbeats=100, window_min_lost=4, window_loss_ppm=500,
                    avoid_degraded_links=1,
                ),
                _entry(
                    "link", "watch_link", {"port": port}, own_device_id=node.device_id, neighbor_device_id=device,
                    neighbor_port=its_port, profile=1,
                ),
            ]
        )  # fmt: skip
        yield states
        reading.cancel()


def _entry(table: str, action: str, key: dict[str, int], **parameters: int) -> Any:
    return +fy.P4TableEntry(table, match=fy.Match(key), action=fy.Action(action, **parameters))


async def _read(switch: fy.Switch, states: asyncio.Queue[int]) -> None:
    async for digest in switch.read_digests("link_event_t"):
        for event in digest.data:
            states.put_nowait(int(event["state"]))


async def _until(states: asyncio.Queue[int], wanted: int) -> None:
    while await states.get() != wanted:
        pass
