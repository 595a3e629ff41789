"""smartnic.p4 and fabric.p4 together: two hosts with SmartNICs on three planes, heartbeats on every link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from ptf_tests import packets as p
from softswitch.device import Call, Lpm, MatchValue
from tests import fabric as f

PLANES = (1, 2, 3)  # device ids of the plane switches, each the NICs' plane port + 1
NICS = (11, 12)
HOST_PORT = 1
GATEWAY_MAC, HOST_MAC, NIC_MAC = 0x0200000000FE, 0x0200000001AA, 0x0200000003E9
PLANE_PORTS = (2, 3, 4)
IPV4, IPV6 = "10.0.1.2", "fd00:0:0:1::2"
ADDRESS = {11: (IPV4, IPV6), 12: ("10.0.2.2", "fd00:0:0:2::2")}
NETS = {11: ("10.0.1.0/24", "fd00:0:0:1::/64"), 12: ("10.0.2.0/24", "fd00:0:0:2::/64")}


def plane_port(plane: int) -> int:
    """The NICs' port to a plane."""
    return plane + 1


def nic_port(nic: int) -> int:
    """The plane switches' port to a NIC."""
    return nic - NICS[0] + 1


def make_plane(plane: int) -> f.Fabric:
    switch = f.Fabric(seed=plane)
    switch.basics()
    switch.health(f.Health(probation=5))
    for nic in NICS:
        port = nic_port(nic)
        switch.watch(port, plane, nic, plane_port(plane))
        switch.add("port", {"port": port}, "set_role", p.HOST)
        switch.add("neighbor", {"port": port}, "set_macs", p.ROUTER_MAC, NIC_MAC)
        for prefix in NETS[nic]:
            switch.route(prefix, port, [port], watched=[port])
        for version, address in zip((4, 6), ADDRESS[nic], strict=True):
            match: dict[str, MatchValue] = {
                "port": port,
                "src_addr": Lpm(f.number(address), 32 if version == 4 else 128),
            }
            switch.add(f"source_guard_ipv{version}", match, "accept_source")
    return switch


def make_nic(nic: int) -> f.Fabric:
    switch = f.Fabric(seed=nic, name="smartnic")
    switch.basics()
    switch.health(f.Health(probation=5))
    ports = [plane_port(plane) for plane in PLANES]
    switch.add("port", {"port": HOST_PORT}, "set_role", p.HOST)
    switch.add("neighbor", {"port": HOST_PORT}, "set_macs", GATEWAY_MAC, HOST_MAC)
    for plane in PLANES:
        port = plane_port(plane)
        switch.watch(port, nic, plane, nic_port(nic))
        switch.add("neighbor", {"port": port}, "set_macs", NIC_MAC, p.ROUTER_MAC)
    for mac in (GATEWAY_MAC, NIC_MAC):
        switch.add("station", {"dst_addr": mac}, "accept_station")
    for version, address in zip((4, 6), ADDRESS[nic], strict=True):
        switch.add(f"host_ipv{version}", {"addr": f.number(address)}, f"own_ipv{version}", HOST_PORT)
    for group in (1, 2):
        switch.group(group, ports, watched=ports)
    switch.spray(1, "spray_rr")
    return switch


@pytest.fixture
def net() -> Iterator[f.Network]:
    """All links are up."""
    made = f.Network({plane: make_plane(plane) for plane in PLANES} | {nic: make_nic(nic) for nic in NICS})
    for plane in PLANES:
        for nic in NICS:
            made.wire((plane, nic_port(nic)), (nic, plane_port(plane)))
    made.beat(count=10)
    yield made
    for switch in made.switches.values():
        switch.close()


@pytest.fixture
def nic() -> Iterator[f.Fabric]:
    """NIC 11 alone; nobody watches its planes."""
    made = make_nic(11)
    for group in (1, 2):
        made.group(group, PLANE_PORTS)
    yield made
    made.close()


def talk(net: f.Network, count: int) -> int:
    """Each host sends ``count`` packets of either IP version to the other; how many arrive."""
    net.arrived.clear()
    for _ in range(count):
        for nic, peer in (NICS, NICS[::-1]):
            net.send(nic, HOST_PORT, p.ipv4(src=ADDRESS[nic][0], dst=ADDRESS[peer][0], mac=GATEWAY_MAC))
            net.send(nic, HOST_PORT, p.ipv6(src=ADDRESS[nic][1], dst=ADDRESS[peer][1], mac=GATEWAY_MAC))
    assert all(out.port == HOST_PORT for _, out in net.arrived)
    return len(net.arrived)


def sent_by_plane(net: f.Network) -> Counter[int]:
    """Data packets that left for the hosts, by plane."""
    return Counter({
        plane: sum(net.switches[plane].counter("queue_packets", nic_port(nic) * 8 + 3) for nic in NICS)
        for plane in PLANES
    })  # fmt: skip


def test_two_hosts_talk_over_all_planes_evenly(net: f.Network) -> None:
    assert talk(net, 30) == 120
    assert sent_by_plane(net) == dict.fromkeys(PLANES, 40)
    [packet] = {out.data for at, out in net.arrived if at == 12 and out.data[12:14] == b"\x08\x00"}
    assert packet == (HOST_MAC.to_bytes(6, "big") + GATEWAY_MAC.to_bytes(6, "big")
                      + p.ipv4(src=ADDRESS[11][0], dst=ADDRESS[12][0], ttl=63)[12:])  # fmt: skip


def test_a_plane_that_dies_is_left_after_three_heartbeats_and_rejoined(net: f.Network) -> None:
    for nic in NICS:
        net.losses[2, nic_port(nic)] = net.losses[nic, plane_port(2)] = lambda packet: True
    lost = []
    net.beat(lambda: lost.append(12 - talk(net, 3)), count=10)
    # the heartbeats that are due in the third interval are the third that are missed
    assert lost == [4, 4] + [0] * 8
    net.losses.clear()
    before = sent_by_plane(net)
    net.beat(lambda: lost.append(12 - talk(net, 3)), count=20)
    assert lost[2:] == [0] * 28
    assert (sent_by_plane(net) - before)[2] > 0


def test_a_direction_that_fails_is_left_by_both_ends_and_others_are_told_to_avoid_it(net: f.Network) -> None:
    net.losses[11, plane_port(3)] = lambda packet: True
    net.beat(count=6)
    assert talk(net, 30) == 60 + 40  # NIC 12 cannot know
    assert net.switches[3].counter("drops", p.NO_MEMBER) == 20
    for version, prefix in zip((4, 6), NETS[11], strict=True):
        net_address, length = prefix.split("/")
        match = {"dst_addr": Lpm(f.number(net_address), int(length))}
        net.switches[12].add(f"reach_ipv{version}", match, "avoid_ports", p.mask([plane_port(3)]))
    assert talk(net, 30) == 120


def test_a_drained_plane_carries_nothing(net: f.Network) -> None:
    for nic in NICS:
        switch = net.switches[nic]
        switch.device.table_set_default(
            switch.names["drain"], Call(switch.actions["drain_ports"], (p.mask([plane_port(1)]),))
        )  # fmt: skip
    assert talk(net, 30) == 120
    assert sent_by_plane(net) == {1: 0, 2: 60, 3: 60}


def broken(packet: bytes) -> bytes:
    """The IPv4 packet with a wrong checksum."""
    return packet[:24] + bytes([packet[24] ^ 0xFF]) + packet[25:]


def without_ip(mac: int) -> bytes:
    return mac.to_bytes(6, "big") + HOST_MAC.to_bytes(6, "big") + b"\x12\x34" + bytes(46)


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (p.ipv4(src="10.0.1.3", mac=GATEWAY_MAC), p.SOURCE_GUARD),
        (p.ipv4(src="10.0.1.3", dst=IPV4, mac=GATEWAY_MAC), p.SOURCE_GUARD),
        (p.ipv6(src="fd00:0:0:1::3", mac=GATEWAY_MAC), p.SOURCE_GUARD),
        (p.ipv6(src="fd00:0:0:1::3", dst=IPV6, mac=GATEWAY_MAC), p.SOURCE_GUARD),
        (p.ipv4(src=IPV4, mac=0x0200000000FD), p.NOT_OUR_MAC),
        (broken(p.ipv4(src=IPV4, mac=GATEWAY_MAC)), p.BAD_CHECKSUM),
        (p.ipv4(src=IPV4, mac=GATEWAY_MAC)[:30], p.PARSER_ERROR),
        (without_ip(GATEWAY_MAC), p.NOT_IP),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_only_the_hosts_own_addresses_leave(nic: f.Fabric, packet: bytes, reason: int) -> None:
    assert nic.send(HOST_PORT, packet, 0) == []
    assert nic.drops() == {reason: 1}


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (p.ipv4(dst="10.0.1.3", mac=NIC_MAC), p.NOT_FOR_HOST),
        (p.ipv4(src=IPV4, dst="10.0.1.3", mac=NIC_MAC), p.NOT_FOR_HOST),
        (p.ipv6(dst="fd00:0:0:1::3", mac=NIC_MAC), p.NOT_FOR_HOST),
        (p.ipv6(src=IPV6, dst="fd00:0:0:1::3", mac=NIC_MAC), p.NOT_FOR_HOST),
        (p.ipv4(dst=IPV4, mac=0x0200000000FD), p.NOT_OUR_MAC),
        (broken(p.ipv4(dst=IPV4, mac=NIC_MAC)), p.BAD_CHECKSUM),
        (p.ipv4(dst=IPV4, mac=NIC_MAC)[:30], p.PARSER_ERROR),
        (without_ip(NIC_MAC), p.NOT_IP),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_only_packets_for_the_host_reach_it(nic: f.Fabric, packet: bytes, reason: int) -> None:
    assert nic.send(PLANE_PORTS[0], packet, 0) == []
    assert nic.drops() == {reason: 1}


def test_udp_is_sprayed_and_everything_else_keeps_to_one_plane_a_flow(nic: f.Fabric) -> None:
    def planes(packets: list[bytes]) -> list[int]:
        return [out.port for packet in packets for out in nic.send(HOST_PORT, packet, 0)]

    udp = p.ipv4(src=IPV4, mac=GATEWAY_MAC)
    assert Counter(planes([udp] * 9)) == dict.fromkeys(PLANE_PORTS, 3)
    assert len(set(planes([p.as_tcp(udp)] * 9))) == 1
    flows = [p.as_tcp(p.ipv4(src=IPV4, sport=41_000 + flow, mac=GATEWAY_MAC)) for flow in range(40)]
    assert set(planes(flows)) == set(PLANE_PORTS)


def test_the_host_is_answered_for_its_neighbors_and_nobody_else_is(nic: f.Fabric) -> None:
    nic.add("answer_ipv4", {"target_addr": Lpm(f.number("10.0.0.0"), 8)}, "answer", GATEWAY_MAC)
    nic.add("answer_ipv6", {"target_addr": Lpm(f.number("fd00::"), 16)}, "answer", GATEWAY_MAC)
    fixed = b"\xff" * 6 + HOST_MAC.to_bytes(6, "big") + bytes.fromhex("0806000108000604")
    asks = fixed + b"\0\1" + HOST_MAC.to_bytes(6, "big") + f.number(IPV4).to_bytes(4, "big") + bytes(6)
    arp = asks + bytes([10, 0, 1, 1])
    nd = p.nd(135, IPV6, "ff02::1:ff00:1", "fd00:0:0:1::1", 0, b"", 0x3333FF000001, HOST_MAC)
    reply = arp[:20] + b"\0\2" + arp[22:]
    arp_probe = arp[:28] + bytes(4) + arp[32:]  # whether an address is free: nobody has it yet
    nd_probe = p.nd(135, "::", "ff02::1:ff00:1", "fd00:0:0:1::1", 0, b"", 0x3333FF000001, HOST_MAC)
    from_afar = nd[:21] + bytes([254]) + nd[22:]
    for port, packet, answers in (
        (HOST_PORT, arp, 1), (HOST_PORT, nd, 1), (HOST_PORT, reply, 0), (HOST_PORT, from_afar, 0),
        (HOST_PORT, arp_probe, 0), (HOST_PORT, nd_probe, 0),
        (PLANE_PORTS[0], arp, 0), (PLANE_PORTS[0], nd, 0),
    ):  # fmt: skip
        assert [out.port for out in nic.send(port, packet, 0)] == [HOST_PORT] * answers
    [out] = nic.send(HOST_PORT, nd, 0)
    option = b"\2\1" + GATEWAY_MAC.to_bytes(6, "big")
    assert out.data == p.nd(136, "fd00:0:0:1::1", IPV6, "fd00:0:0:1::1", 0xE0000000, option, HOST_MAC, GATEWAY_MAC)


def test_a_full_queue_to_the_host_marks_ect_and_drops_the_rest_early(nic: f.Fabric) -> None:
    nic.add("ecn_profile", {"port": HOST_PORT, "traffic_class": p.DATA}, "step", 0, 1)
    [out] = nic.send(PLANE_PORTS[0], p.ipv4(dst=IPV4, ecn=p.ECT0, mac=NIC_MAC), 0)
    assert out.data[12:] == p.ipv4(dst=IPV4, ecn=p.CE)[12:]
    assert nic.send(PLANE_PORTS[0], p.ipv4(dst=IPV4, ecn=p.NOT_ECT, mac=NIC_MAC), 0) == []
    assert nic.register("tx_packets", HOST_PORT) == 1, "what never left is no loss of the link"
