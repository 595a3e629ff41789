"""The SmartNIC: host at port 1, planes at ports 2, 3 and 4."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ptf_tests import base
from ptf_tests import packets as p
from ptf_tests.p4runtime import PORT_EVENT

HOST_PORT, PLANES = 1, (2, 3, 4)
HOST_MAC, GATEWAY_MAC, NIC_MAC = 0x0200000001AA, 0x0200000000FE, 0x0200000003E9
HOST_IPV4, HOST_IPV6 = "10.0.1.2", "fd00:0:0:1::2"
UDP_GROUP, FLOW_GROUP = 1, 2


def mac(address: int) -> bytes:
    return address.to_bytes(6, "big")


class Nic(base.LinkTest):
    """All planes are up, and UDP of the data class is sprayed in turn."""

    def set_up(self) -> None:
        self.add("port", {"port": HOST_PORT}, "set_role", role=p.HOST)
        self.add("neighbor", {"port": HOST_PORT}, "set_macs", src_addr=GATEWAY_MAC, dst_addr=HOST_MAC)
        for port in PLANES:
            self.add("port", {"port": port}, "set_role", role=p.FABRIC)
            self.add("neighbor", {"port": port}, "set_macs", src_addr=NIC_MAC, dst_addr=p.neighbor_mac(port))
        for name, dscp in p.DSCP.items():
            self.add("traffic_class", {"dscp": dscp}, "set_class", traffic_class=name, queue=base.QUEUE_OF[name])
        for address in (GATEWAY_MAC, NIC_MAC):
            self.add("station", {"dst_addr": address}, "accept_station")
        self.add("host_ipv4", {"addr": HOST_IPV4}, "own_ipv4", port=HOST_PORT)
        self.add("host_ipv6", {"addr": HOST_IPV6}, "own_ipv6", port=HOST_PORT)
        for group in (UDP_GROUP, FLOW_GROUP):
            self.group(group, PLANES, watched=PLANES)
        self.spray(UDP_GROUP, "spray_rr")
        super().set_up()
        self.watch(*PLANES)
        self.bring_up(*PLANES)

    def sync_ready(self) -> None:
        """Packets for the host do."""

    def sync(self, port: int) -> None:
        packet = self.to_host(dport=9)
        self.data(port, packet)
        self.expect(HOST_PORT, self.at_host(packet))

    def to_host(self, **fields: Any) -> bytes:
        return p.ipv4(src="10.0.2.2", dst=HOST_IPV4, mac=NIC_MAC, **fields)

    def at_host(self, packet: bytes) -> bytes:
        return mac(HOST_MAC) + mac(GATEWAY_MAC) + packet[12:]

    def from_host(self, **fields: Any) -> bytes:
        return p.ipv4(src=HOST_IPV4, dst="10.0.2.2", mac=GATEWAY_MAC, **fields)

    def on_plane(self, packet: bytes, port: int) -> bytes:
        return mac(p.neighbor_mac(port)) + mac(NIC_MAC) + packet[12:]

    def planes_of(self, packets: list[bytes]) -> list[int]:
        """Where each packet of the host leaves."""
        ports = []
        for packet in packets:
            self.send(HOST_PORT, packet)
            port, seen = self.receive()
            self.assertEqual(seen, self.on_plane(packet, port))
            ports.append(port)
        return ports


class UdpIsSprayedOverThePlanes(Nic):
    def runTest(self) -> None:
        self.assertEqual(Counter(self.planes_of([self.from_host()] * 9)), dict.fromkeys(PLANES, 3))


class Ipv6IsSprayedToo(Nic):
    def runTest(self) -> None:
        packet = p.ipv6(src=HOST_IPV6, dst="fd00:0:0:2::2", mac=GATEWAY_MAC)
        self.assertEqual(Counter(self.planes_of([packet] * 9)), dict.fromkeys(PLANES, 3))


class EverythingElseKeepsToOnePlaneAFlow(Nic):
    def runTest(self) -> None:
        self.assertEqual(len(set(self.planes_of([p.as_tcp(self.from_host())] * 6))), 1)
        flows = [p.as_tcp(self.from_host(sport=41_000 + flow)) for flow in range(40)]
        first = self.planes_of(flows)
        self.assertEqual(set(first), set(PLANES))
        self.assertEqual(self.planes_of(flows), first)


class UdpOfOtherClassesKeepsToOnePlane(Nic):
    def runTest(self) -> None:
        self.assertEqual(len(set(self.planes_of([self.from_host(dscp=p.DSCP[p.OTHER])] * 6))), 1)


class APlaneThatIsDownCarriesNothing(Nic):
    def runTest(self) -> None:
        self.silence(3)
        self.assertEqual(Counter(self.planes_of([self.from_host()] * 6)), {2: 3, 4: 3})
        self.assertNotIn(3, self.planes_of([p.as_tcp(self.from_host(sport=41_000 + flow)) for flow in range(20)]))


class AMiscabledPlaneCarriesNothing(Nic):
    def runTest(self) -> None:
        self.beat(3, device=77)
        self.expect_event(port=3, state=p.DOWN, old_state=p.UP, reason=p.MISCABLED, device=77, device_port=3)
        self.assertEqual(Counter(self.planes_of([self.from_host()] * 6)), {2: 3, 4: 3})


class AGrayPlaneCarriesNothingWhileOthersAreWell(Nic):
    def runTest(self) -> None:
        self.beat(3, lost=4)
        self.beat(3, lost=4)
        self.expect_event(port=3, state=p.DEGRADED, reason=p.LOSS, rx_state=p.DEGRADED, neighbor_rx_state=p.UP)
        self.assertEqual(Counter(self.planes_of([self.from_host()] * 6)), {2: 3, 4: 3})
        for port in (2, 4):
            self.silence(port)
        self.assertEqual(Counter(self.planes_of([self.from_host()] * 6)), {3: 6})


class ADrainedPlaneCarriesNothingNewAndStillReceives(Nic):
    def runTest(self) -> None:
        self.drain([2])
        self.assertEqual(Counter(self.planes_of([self.from_host()] * 6)), {3: 3, 4: 3})
        self.sync(2)


class APlaneThatDoesNotLeadToADestinationIsAvoided(Nic):
    def runTest(self) -> None:
        self.add("reach_ipv4", {"dst_addr": "10.0.2.0/24"}, "avoid_ports", ports=p.mask([3]))
        self.assertEqual(Counter(self.planes_of([self.from_host()] * 6)), {2: 3, 4: 3})
        elsewhere = p.ipv4(src=HOST_IPV4, dst="10.0.3.2", mac=GATEWAY_MAC)
        self.assertEqual(Counter(self.planes_of([elsewhere] * 6)), dict.fromkeys(PLANES, 2))


class WithNoPlaneLeftPacketsAreDropped(Nic):
    def runTest(self) -> None:
        for port in PLANES:
            self.silence(port)
        self.send(HOST_PORT, self.from_host())
        self.expect_drop(p.NO_MEMBER)


class EcnPassesBothWays(Nic):
    def runTest(self) -> None:
        for ecn in (p.NOT_ECT, p.ECT0, p.ECT1, p.CE):
            self.planes_of([self.from_host(ecn=ecn), p.ipv6(src=HOST_IPV6, ecn=ecn, mac=GATEWAY_MAC)])
            self.send(2, self.to_host(ecn=ecn))
            self.expect(HOST_PORT, self.at_host(self.to_host(ecn=ecn)))


class OnlyTheHostsAddressesLeave(Nic):
    def runTest(self) -> None:
        self.send(HOST_PORT, p.ipv4(src="10.0.1.3", mac=GATEWAY_MAC))
        self.expect_drop(p.SOURCE_GUARD)
        self.send(HOST_PORT, p.ipv6(src="fd00:0:0:1::3", mac=GATEWAY_MAC))
        self.expect_drop(p.SOURCE_GUARD)
        self.send(HOST_PORT, p.ipv4(src=HOST_IPV4, mac=0x0200000000FD))
        self.expect_drop(p.NOT_OUR_MAC)


class OnlyPacketsForTheHostReachIt(Nic):
    def runTest(self) -> None:
        self.send(2, p.ipv6(dst=HOST_IPV6, mac=NIC_MAC))
        self.expect(HOST_PORT, self.at_host(p.ipv6(dst=HOST_IPV6)))
        self.send(2, p.ipv4(dst="10.0.1.3", mac=NIC_MAC))
        self.expect_drop(p.NOT_FOR_HOST)
        self.send(2, p.ipv6(dst="fd00:0:0:1::3", mac=NIC_MAC))
        self.expect_drop(p.NOT_FOR_HOST)


class ArpIsAnsweredLocally(Nic):
    def runTest(self) -> None:
        self.add("answer_ipv4", {"target_addr": "10.0.0.0/8"}, "answer", mac_addr=GATEWAY_MAC)
        self.add("answer_ipv4", {"target_addr": f"{HOST_IPV4}/32"}, "keep_silent")
        fixed = bytes.fromhex("0001080006040001")
        host, gateway, own = bytes([10, 0, 1, 2]), bytes([10, 0, 1, 1]), bytes([10, 0, 1, 2])
        ask = b"\xff" * 6 + mac(HOST_MAC) + b"\x08\x06" + fixed + mac(HOST_MAC) + host + bytes(6)
        self.send(HOST_PORT, (ask + gateway).ljust(60, b"\0"))
        reply = mac(HOST_MAC) + mac(GATEWAY_MAC) + b"\x08\x06" + fixed[:7] + b"\x02" + mac(GATEWAY_MAC) + gateway
        self.expect(HOST_PORT, (reply + mac(HOST_MAC) + host).ljust(60, b"\0"))
        self.send(HOST_PORT, (ask + own).ljust(60, b"\0"))  # nobody else has the host's own address
        self.expect_drop(p.NOT_OUR_MAC)
        probe = b"\xff" * 6 + mac(HOST_MAC) + b"\x08\x06" + fixed + mac(HOST_MAC) + bytes(10) + gateway
        self.send(HOST_PORT, probe.ljust(60, b"\0"))
        self.expect_drop(p.NOT_OUR_MAC)
        answer = (ask[:21] + b"\x02" + ask[22:] + gateway).ljust(60, b"\0")
        self.send(HOST_PORT, answer)
        self.expect_drop(p.NOT_OUR_MAC)
        self.data(2, (ask + gateway).ljust(60, b"\0"))  # only the host is answered
        self.expect_drop(p.NOT_OUR_MAC)


class NeighborSolicitationsAreAnsweredLocally(Nic):
    def runTest(self) -> None:
        self.add("answer_ipv6", {"target_addr": "fd00::/16"}, "answer", mac_addr=GATEWAY_MAC)
        gateway = "fd00:0:0:1::1"
        for option in (b"\x01\x01" + mac(HOST_MAC), b"", b"\x01\x01" + mac(HOST_MAC) + b"\x0e\x01noncen"):
            self.send(HOST_PORT, p.nd(135, HOST_IPV6, "ff02::1:ff00:1", gateway, 0, option, 0x3333FF000001, HOST_MAC))
            option = b"\x02\x01" + mac(GATEWAY_MAC)
            self.expect(HOST_PORT, p.nd(136, gateway, HOST_IPV6, gateway, 0xE0000000, option, HOST_MAC, GATEWAY_MAC))
        self.send(HOST_PORT, p.nd(135, "::", "ff02::1:ff00:1", gateway, 0, b"", 0x3333FF000001, HOST_MAC))
        self.expect_drop(p.NOT_OUR_MAC)
        ask = p.nd(135, HOST_IPV6, "ff02::1:ff00:1", gateway, 0, b"", 0x3333FF000001, HOST_MAC)
        self.send(HOST_PORT, ask[:21] + b"\x40" + ask[22:])  # has come from afar: its hop limit is 64
        self.expect_drop(p.NOT_OUR_MAC)


class BrokenPacketsEndHere(Nic):
    def runTest(self) -> None:
        for port, packet in ((HOST_PORT, self.from_host()), (2, self.to_host())):
            self.data(port, packet[:24] + b"\xff\xff" + packet[26:])
            self.expect_drop(p.BAD_CHECKSUM)
            self.data(port, packet[:20])
            self.expect_drop(p.PARSER_ERROR)


class HeartbeatsRideTheControlClass(Nic):
    def runTest(self) -> None:
        queue = 2 * 8 + base.QUEUE_OF[p.CONTROL]
        before = self.counter("queue_packets", queue)
        self.tick(2)
        self.assertEqual(self.counter("queue_packets", queue) - before, 1)


class PlanesAreCounted(Nic):
    def runTest(self) -> None:
        before = self.counter("queue_packets", 2 * 8 + 3)
        self.planes_of([self.from_host()] * 6)
        self.assertEqual(self.counter("queue_packets", 2 * 8 + 3) - before, 2)


class PlanesTellTheirStateByDigest(Nic):
    def runTest(self) -> None:
        self.beat(3, rx_state=p.DOWN)
        self.expect_event(port=3, state=p.DOWN, old_state=p.UP, reason=p.NEIGHBOR)
        self.beat(3)
        self.expect_event(port=3, state=p.UP, old_state=p.DOWN, reason=p.NEIGHBOR)


class TheHostsPortTellsOfItsCarrier(Nic):
    def runTest(self) -> None:
        self.send(p.TIMER_PORT, p.timer(HOST_PORT, True))
        self.expect_event(kind=PORT_EVENT, port=HOST_PORT, is_down=1)
        self.send(p.TIMER_PORT, p.timer(HOST_PORT))
        self.expect_event(kind=PORT_EVENT, port=HOST_PORT, is_down=0)


class APlaneWithoutACarrierCarriesNothing(Nic):
    def runTest(self) -> None:
        self.tick(2, is_down=True)
        self.expect_event(port=2, state=p.DOWN, old_state=p.UP, reason=p.CARRIER)
        self.assertEqual(Counter(self.planes_of([self.from_host()] * 6)), {3: 3, 4: 3})
