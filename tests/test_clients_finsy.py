"""finsy, unmodified, against a switch that runs real programs (in virtual time, so that no root is needed)."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import finsy as fy
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from softswitch.device import Device
from softswitch.device_types import Output
from softswitch.p4runtime import Server, ServerConfig
from softswitch.switch import Switch, SwitchConfig

CPU_PORT = 510
WAIT_S = 30.0
T = TypeVar("T")


@dataclass
class Target:
    """A running switch. ``outputs`` are the packets that packet-outs made leave."""

    switch: Switch
    address: str
    outputs: queue.Queue[Output]

    @property
    def device(self) -> Device:
        """The device that runs."""
        device = self.switch.device
        assert device is not None
        return device


@pytest.fixture
def target() -> Iterator[Target]:
    outputs: queue.Queue[Output] = queue.Queue()

    def keep(left: list[Output]) -> None:
        for output in left:
            outputs.put(output)

    switch = Switch(SwitchConfig(cpu_port=CPU_PORT, realtime=False), keep)
    server = Server(ServerConfig("127.0.0.1:0", device_id=1), switch)
    port = server.start()
    try:
        yield Target(switch, f"127.0.0.1:{port}", outputs)
    finally:
        server.stop()
        switch.close()


def _options(programs: Path, name: str) -> fy.SwitchOptions:
    return fy.SwitchOptions(p4info=programs / f"{name}.p4info.txtpb", p4blob=programs / f"{name}.json")


def _run(target: Target, options: fy.SwitchOptions, body: Callable[[fy.Switch], Awaitable[None]]) -> None:
    async def session() -> None:
        async with asyncio.timeout(WAIT_S), fy.Switch("sw", target.address, options) as switch:
            await body(switch)

    asyncio.run(session())


async def _read(switch: fy.Switch, wanted: Any) -> list[Any]:
    """All that the switch answers; finsy's annotations hide that ``read`` is an asynchronous generator."""
    answers: Any = switch.read(wanted)
    return [entity async for entity in answers]


async def _next(messages: AsyncIterator[T]) -> T:
    return await anext(messages)


def _packet(destination: str) -> bytes:
    return bytes(
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / IP(src="10.0.0.1", dst=destination, ttl=64)
        / UDP(sport=1, dport=2)
        / b"payload"
    )


def test_a_pipeline_is_loaded_and_routes_packets(target: Target, programs: Path) -> None:
    key = fy.P4TableMatch(dst_addr=(0xC0A80000, 16))
    route = fy.P4TableEntry("route_ipv4", match=key, action=fy.P4TableAction("route_via", nexthop_id=7))
    neighbour = fy.P4TableEntry(
        "neighbour",
        match=fy.P4TableMatch(nexthop_id=7),
        action=fy.P4TableAction("forward", port=3, dst_addr=0x020000000099),
    )
    own = fy.P4TableEntry(
        "router_port", match=fy.P4TableMatch(port=3), action=fy.P4TableAction("set_source", src_addr=0x020000000003)
    )

    async def body(switch: fy.Switch) -> None:
        await switch.write([+route, +neighbour, +own])
        assert await _read(switch, fy.P4TableEntry()) == [route, neighbour, own]
        (left,) = await asyncio.to_thread(target.device.inject, 1, _packet("192.168.9.9"), 1000)
        sent = Ether(left.data)
        assert (left.port, sent.src, sent.dst, sent.ttl) == (3, "02:00:00:00:00:03", "02:00:00:00:00:99", 63)
        await switch.write([-fy.P4TableEntry("route_ipv4", match=key)])
        assert await asyncio.to_thread(target.device.inject, 1, _packet("192.168.9.9"), 2000) == []
        with pytest.raises(fy.P4ClientError) as failure:
            await switch.write([-fy.P4TableEntry("route_ipv4", match=key)])
        assert failure.value.code == fy.GRPCStatusCode.UNKNOWN
        (detail,) = failure.value.details.values()
        assert (detail.canonical_code, detail.message) == (
            fy.GRPCStatusCode.NOT_FOUND,
            "table RouterIngress.route_ipv4: there is no such entry",
        )

    _run(target, _options(programs, "l3_router"), body)


def test_packets_go_both_ways(target: Target, programs: Path) -> None:
    async def body(switch: fy.Switch) -> None:
        first = asyncio.create_task(_next(switch.read_packets()))
        punt = fy.P4TableEntry("acl", match=fy.P4TableMatch(), action=fy.P4TableAction("acl_punt"), priority=1)
        await switch.write([+punt])
        packet = _packet("10.0.0.2")
        await asyncio.to_thread(target.device.inject, 5, packet, 1000)
        received = await first
        assert (received.payload, received["ingress_port"], received["reason"]) == (packet, 5, 1)
        await switch.write([fy.P4PacketOut(packet, egress_port=4, _pad=0)])
        left = await asyncio.to_thread(target.outputs.get, True, WAIT_S)
        assert (left.port, left.data) == (4, packet)
        rule = fy.P4TableEntry("acl", match=fy.P4TableMatch(), priority=1)
        (counter,) = await _read(switch, fy.P4DirectCounterEntry("acl_counter", table_entry=rule))
        assert counter.data == fy.P4CounterData(packet_count=1, byte_count=len(packet))

    _run(target, _options(programs, "l3_router"), body)


def test_digests_arrive_once_configured(target: Target, programs: Path) -> None:
    async def body(switch: fy.Switch) -> None:
        first = asyncio.create_task(_next(switch.read_digests("learn_t")))
        await switch.write([+fy.P4DigestEntry("learn_t", max_list_size=1, max_timeout_ns=0, ack_timeout_ns=0)])
        frame = b"\x80" + _packet("10.0.0.2")[:14] + bytes(16)
        await asyncio.to_thread(target.device.inject, 6, frame, 1000)
        digest = await first
        assert digest.data == [{"src_addr": 0x020000000001, "port": 6}]
        await switch.write([digest.ack()])

    _run(target, _options(programs, "digests"), body)


def test_idle_entries_are_reported(target: Target, programs: Path) -> None:
    async def body(switch: fy.Switch) -> None:
        first = asyncio.create_task(_next(switch.read_idle_timeouts()))
        source = fy.P4TableMatch(src_addr=1)
        entry = fy.P4TableEntry(
            "flow", match=source, action=fy.P4TableAction("set_flow", value=3), idle_timeout_ns=10**9, metadata=b"who"
        )
        await switch.write([+entry])
        await asyncio.to_thread(target.device.advance, 3 * 10**9)
        (idle,) = (await first).table_entry
        assert (idle.table_id, idle.match, idle.metadata) == ("flow", {"src_addr": 1}, b"who")
        (read,) = await _read(switch, fy.P4TableEntry("flow", time_since_last_hit=0))
        assert read.time_since_last_hit == 3 * 10**9

    _run(target, _options(programs, "idle_timeout"), body)


def test_registers_counters_and_meters_are_accessible(target: Target, programs: Path) -> None:
    async def body(switch: fy.Switch) -> None:
        register = fy.P4RegisterEntry("word_register", index=3, data=0xDEADBEEF)
        meter = fy.P4MeterEntry("packet_meter", index=2, config=fy.P4MeterConfig(cir=10, cburst=2, pir=20, pburst=4))
        counter = fy.P4CounterEntry("both_counter", index=1, data=fy.P4CounterData(byte_count=9, packet_count=2))
        await switch.write([~register, ~meter, ~counter])
        for entity in (register, meter, counter):
            wanted = type(entity)(entity_name(entity), index=entity.index)
            assert await _read(switch, wanted) == [entity]
        request = bytes([0, 3, 0]) + bytes(8)
        (left,) = await asyncio.to_thread(target.device.inject, 1, request, 1000)
        assert b"\xde\xad\xbe\xef" in left.data, "the program reads what the controller wrote"

    _run(target, _options(programs, "stateful"), body)


def entity_name(entity: fy.P4RegisterEntry | fy.P4MeterEntry | fy.P4CounterEntry) -> str:
    """The name of the array that an entry belongs to."""
    if isinstance(entity, fy.P4RegisterEntry):
        return entity.register_id
    return entity.meter_id if isinstance(entity, fy.P4MeterEntry) else entity.counter_id


def test_profiles_are_programmed_by_members_and_groups(target: Target, programs: Path) -> None:
    async def body(switch: fy.Switch) -> None:
        member = fy.P4ActionProfileMember("flow_selector", member_id=1, action=fy.P4TableAction("select_port", port=8))
        group = fy.P4ActionProfileGroup("flow_selector", group_id=1, max_size=0, members=[fy.P4Member(1, weight=2)])
        entry = fy.P4TableEntry(
            "selected", match=fy.P4TableMatch({"hdr.request.selector_key": 5}), action=fy.P4IndirectAction(group_id=1)
        )
        for entity in (member, group, entry):
            await switch.write([+entity])
        request = bytes([0, 0, 5]) + bytes(11)
        (left,) = await asyncio.to_thread(target.device.inject, 1, request, 1000)
        assert left.port == 8
        assert await _read(switch, fy.P4ActionProfileGroup()) == [group]

    _run(target, _options(programs, "profiles"), body)


def test_a_backup_becomes_primary_when_the_primary_goes(target: Target, programs: Path) -> None:
    options = _options(programs, "l3_router")

    async def session() -> None:
        async with asyncio.timeout(WAIT_S), AsyncExitStack() as leading:
            first = await leading.enter_async_context(fy.Switch("first", target.address, options))
            async with fy.Switch("second", target.address, options(initial_election_id=9)) as second:
                assert first.is_primary and not second.is_primary
                promoted = second.ee.event_future(fy.SwitchEvent.BECOME_PRIMARY)
                await leading.aclose()
                await promoted
                await second.write([+fy.P4MulticastGroupEntry(3, replicas=[1, 2])])

    asyncio.run(session())
