"""What all packet tests share: the connection, entries that go away with the test, and waiting for what must happen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from queue import Empty
from typing import Any

import finsy as fy
import ptf  # type: ignore[import-untyped]
from ptf.base_tests import BaseTest  # type: ignore[import-untyped]
from ptf.testutils import dp_poll, send_packet, test_params_get, verify_packet  # type: ignore[import-untyped]

from mininet_topos.thrift import SimpleSwitchClient
from ptf_tests import packets as p
from ptf_tests.p4runtime import LINK_EVENT, Client, flush
from softswitch.control import ControlClient

PORTS = (1, 2, 3, 4)  # front-panel ports that the test holds the other ends of
QUEUES = 8
DEPTH = 64  # packets, of a queue as it was
WAIT_S = 5.0
QUEUE_OF = {p.CONTROL: 7, p.DATA: 3, p.OTHER: 0}


@cache
def client(address: str, program: str) -> Client:
    """One connection for all tests of a run."""
    return Client(address, program)


class P4Test(BaseTest):  # type: ignore[misc]
    """A test of one behaviour. Whatever it installs is removed afterwards; registers keep what they hold, so tests
    start from states that they bring about themselves."""

    def setUp(self) -> None:
        super().setUp()
        self.params = test_params_get()
        self.p4 = client(self.params["grpc"], self.params["program"])
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        flush(self.p4.packets_in, *self.p4.digests.values())
        self.installed: list[Any] = []
        self.slowed: set[int] = set()
        self.since = 0  # ticks of the switch's clock
        self.drops_before = {reason: self.counter("drops", reason) for reason in range(1, 18)}
        self.addCleanup(self.remove)
        self.set_up()

    def set_up(self) -> None:
        """What the tests of a class start from."""

    def remove(self) -> None:
        """Take back what the test has changed."""
        if self.installed:
            self.p4.delete(*reversed(self.installed))
        self.drain([])
        for port in self.slowed:
            self.queue_set(port, 0, DEPTH)

    # ---- the control plane ---------------------------------------------------------------------------------

    def add(self, table: str, match: Mapping[str, Any], action: str, *, priority: int = 0, **arguments: Any) -> None:
        """Insert an entry that the end of the test removes."""
        call = fy.Action(action, **arguments)
        self.install(fy.P4TableEntry(table, match=fy.Match(match), action=call, priority=priority))

    def install(self, *entities: Any) -> None:
        """Insert entities that the end of the test removes."""
        self.p4.insert(*entities)
        self.installed += entities

    def modify(self, table: str, match: Mapping[str, Any], action: str, **arguments: Any) -> None:
        """Give an entry another action."""
        self.p4.modify(fy.P4TableEntry(table, match=fy.Match(match), action=fy.Action(action, **arguments)))

    def counter(self, name: str, index: int) -> int:
        """Packets that an indexed counter has counted."""
        return self.p4.counter(name, index)

    def queue_set(self, port: int, rate_pps: int, depth: int) -> None:
        """Rate (0: no limit) and depth in packets of every queue of a port; back to normal with the test's end."""
        self.slowed.add(port)
        if self.params["target"] == "bmv2":
            with SimpleSwitchClient(int(self.params["thrift"])) as thrift:
                for queue in range(QUEUES):
                    thrift.set_queue_rate(port, queue, rate_pps)
                    thrift.set_queue_depth(port, queue, depth)
            return
        control = ControlClient(Path(self.params["control"]))
        control.call("queues.set", port=port, rate_pps=rate_pps, depth_packets=depth)
        control.close()

    def basics(self, role: int = p.FABRIC) -> None:
        """Ports in use with neighbors, classes with queues, the router's address."""
        for port in PORTS:
            self.add("port", {"port": port}, "set_role", role=role)
            self.add("neighbor", {"port": port}, "set_macs", src_addr=p.ROUTER_MAC, dst_addr=p.neighbor_mac(port))
        for name, dscp in p.DSCP.items():
            self.add("traffic_class", {"dscp": dscp}, "set_class", traffic_class=name, queue=QUEUE_OF[name])
        self.add("station", {"dst_addr": p.ROUTER_MAC}, "accept_station")

    def group(self, ident: int, ports: Iterable[int], watched: Iterable[int] = ()) -> None:
        self.add("group", {"group_id": ident}, "set_members", ports=p.mask(ports), watched_ports=p.mask(watched))

    def spray(self, group: int, action: str, traffic_class: int = p.DATA, **arguments: int) -> None:
        self.add("spray_mode", {"group_id": group, "traffic_class": traffic_class}, action, **arguments)

    def drain(self, ports: Iterable[int]) -> None:
        """Take ports, and only these, out of all groups; the end of the test puts them back."""
        action = fy.Action("drain_ports", ports=p.mask(ports))
        self.p4.modify(fy.P4TableEntry("drain", is_default_action=True, action=action))

    # ---- packets -------------------------------------------------------------------------------------------

    def send(self, port: int, packet: bytes, count: int = 1) -> None:
        send_packet(self, port, packet, count)

    def expect(self, port: int, packet: bytes) -> None:
        """The packet arrives at the port."""
        verify_packet(self, packet, port, timeout=WAIT_S)

    def receive(self, port: int | None = None) -> tuple[int, bytes]:
        """The next packet, at a port or at any, and where it arrived."""
        result = dp_poll(self, port_number=port, timeout=WAIT_S)
        assert isinstance(result, self.dataplane.PollSuccess), f"no packet arrives at port {port or 'any'}"
        return result.port, bytes(result.packet)

    def expect_silence(self) -> None:
        """Nothing has arrived that nobody asked for."""
        result = dp_poll(self, timeout=0)
        assert isinstance(result, self.dataplane.PollFailure), f"port {result.port} got {bytes(result.packet).hex()}"

    def expect_drop(self, reason: int, count: int = 1) -> None:
        """The packets were dropped, and counted for this reason; nothing has left instead."""
        self.until(lambda: self.counter("drops", reason) - self.drops_before[reason] >= count, f"drop for {reason}")
        now = {each: self.counter("drops", each) - before for each, before in self.drops_before.items()}
        self.assertEqual({each: many for each, many in now.items() if many}, {reason: count})
        self.drops_before[reason] += count
        self.expect_silence()

    def expect_packet_in(self) -> fy.P4PacketIn:
        """The next packet for the controller."""
        try:
            return self.p4.packets_in.get(timeout=WAIT_S)
        except Empty:
            raise AssertionError("no packet came to the controller") from None

    def expect_event(self, *, kind: str = LINK_EVENT, **fields: int) -> dict[str, int]:
        """The next event of that kind since ``self.since``; it has these fields."""
        event = {"time": -1}
        while event["time"] <= self.since:
            try:
                event = self.p4.digests[kind].get(timeout=WAIT_S)
            except Empty:
                raise AssertionError(f"no {kind} with {fields}") from None
        self.assertEqual({name: event[name] for name in fields}, fields, event)
        return event

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until it is so."""
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end, f"waited {WAIT_S} s for {what}"


class LinkTest(P4Test):
    """A test that is the neighbor at the other end of links."""

    OWN, NEIGHBOR = 1, 2  # devices
    PROBATION = 3  # heartbeats
    SYNC_GROUP = 99
    HEALTH: Mapping[str, int] = {
        "missed_heartbeats": 3, "min_timer_interval": 0, "probation_heartbeats": PROBATION,
        "probation_max_doublings": 0, "forgive_heartbeats": 10_000, "window_heartbeats": 20, "window_min_lost": 4,
        "window_loss_ppm": 500, "avoid_degraded_links": 1,
    }  # fmt: skip

    def set_up(self) -> None:
        self.sequence = dict.fromkeys(PORTS, 0)
        self.sent = dict.fromkeys(PORTS, 0)
        self.add("health_profile", {"profile_id": 1}, "set_health", **self.HEALTH)
        self.sync_ready()

    def sync_ready(self) -> None:
        """What :meth:`sync` needs."""
        self.group(self.SYNC_GROUP, [1])
        self.add("route_ipv4", {"dst_addr": "10.99.0.0/16"}, "ipv4_via", group_id=self.SYNC_GROUP)

    def sync(self, port: int) -> None:
        """Wait until the switch has dealt with what we sent to the port: ports do not wait for each other."""
        self.data(port, p.ipv4(dst="10.99.0.1"))
        self.expect(1, p.routed(p.ipv4(dst="10.99.0.1", ttl=63), 1))

    def watch(self, *ports: int) -> None:
        """Heartbeats on these ports, which are down: nothing has been heard for long."""
        for port in ports:
            self.add("link", {"port": port}, "watch_link", own_device_id=self.OWN, neighbor_device_id=self.NEIGHBOR,
                     neighbor_port=port, profile=1)  # fmt: skip
            self.silence(port)

    def tick(self, port: int, *, is_down: bool = False) -> bytes:
        """A heartbeat of the switch is due, on a port with or without a carrier; the heartbeat that it sends."""
        self.send(p.TIMER_PORT, p.timer(port, is_down))
        _, packet = self.receive(port)
        self.assertEqual(packet[12:14], p.ETHERTYPE_HEARTBEAT.to_bytes(2, "big"))
        return packet

    def silence(self, port: int) -> None:
        """Heartbeats are due until the switch has missed too many of ours. The events of this are forgotten."""
        for _ in range(5):
            heartbeat = self.tick(port)
            if p.rx_state_of(heartbeat) == p.DOWN:
                self.since = p.time_of(heartbeat)
                return
        self.fail(f"port {port} is not down after five timers without a heartbeat")

    def beat(self, port: int, *, lost: int = 0, rx_state: int = p.UP, **identity: int) -> None:
        """A heartbeat of ours, or of another device or device_port; ``lost`` packets sent before it never arrived."""
        self.sequence[port] += 1
        self.sent[port] += 1 + lost
        heard = {"device": self.NEIGHBOR, "device_port": port} | identity
        packet = p.heartbeat(
            heard["device"], heard["device_port"], self.sequence[port], self.sent[port], rx_state
        )  # fmt: skip
        self.send(port, packet)
        self.sync(port)

    def data(self, port: int, packet: bytes, count: int = 1) -> None:
        """Packets of ours that are counted as sent on the link."""
        self.sent[port] += count
        self.send(port, packet, count)

    def bring_up(self, *ports: int) -> None:
        """From down to up. The events of this are forgotten."""
        for port in ports:
            for _ in range(1 + self.PROBATION):
                self.beat(port)
            heartbeat = self.tick(port)
            self.assertEqual(p.rx_state_of(heartbeat), p.UP)
            self.since = p.time_of(heartbeat)
            self.beat(port)
