"""fabric.p4: what two switches know of the link between them, and how soon. A heartbeat is due every 10 ms."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ptf_tests import packets as p
from softswitch.device import QueueConfig
from tests import fabric as f

A, B = 1, 2  # the switches
PORT_A, PORT_B = 5, 7  # the link's ends
HOST_PORT = 1
PROBATION_LENGTH = 20
WINDOW = f.Health().window
TRAFFIC = 100  # packets in a heartbeat interval: 10,000 a second
LOSS = 0.001


@pytest.fixture
def net() -> Iterator[f.Network]:
    """Two switches, a link between them, and a host port on each; not a heartbeat sent yet."""
    made = f.Network({A: f.Fabric(seed=A), B: f.Fabric(seed=B)})
    made.wire((A, PORT_A), (B, PORT_B))
    for ident, own, other, other_port in ((A, PORT_A, B, PORT_B), (B, PORT_B, A, PORT_A)):
        switch = made.switches[ident]
        switch.basics()
        switch.health(f.Health(probation=PROBATION_LENGTH))
        switch.watch(own, ident, other, other_port)
        away, home = ("10.2.0.0/16", "10.1.0.0/16") if ident == A else ("10.1.0.0/16", "10.2.0.0/16")
        switch.route(away, 1, [own], watched=[own])
        switch.route(home, 2, [HOST_PORT])
        # what B gets from A is addressed to B
        switch.add("neighbor", {"port": own}, "set_macs", p.ROUTER_MAC, p.ROUTER_MAC)
    yield made
    for switch in made.switches.values():
        switch.close()


def bring_up(net: f.Network) -> None:
    net.beat(count=PROBATION_LENGTH + 2)
    assert states(net) == (p.UP, p.UP)
    for switch in net.switches.values():
        switch.events.clear()


def states(net: f.Network) -> tuple[int, int]:
    """The link's state, as A and B see it."""
    return (net.switches[A].register("state_register", PORT_A), net.switches[B].register("state_register", PORT_B))


def changes(net: f.Network, switch: int) -> list[tuple[int, int]]:
    """(state, reason) of a switch's events."""
    return [(event.state, event.reason) for event in net.switches[switch].events]


FAULT_AT = (PROBATION_LENGTH + 2) * f.INTERVAL


def lose_one(net: f.Network) -> None:
    """A packet from A to B is lost."""
    net.losses[A, PORT_A] = everything
    net.send(A, HOST_PORT, p.ipv4(src="10.1.0.1", dst="10.2.0.1"))
    net.losses.clear()


def lose_at(net: f.Network, direction: tuple[int, int], loss: f.Loss) -> tuple[int, int]:
    """Traffic for two seconds on a link that loses in one direction. Returns who sends and who hears the rest."""
    bring_up(net)
    for switch in net.switches.values():
        switch.health(f.Health(probation=PROBATION_LENGTH, avoid_degraded=0))
    net.losses[direction] = loss
    net.beat(lambda: traffic(net), count=200)
    return (A, B) if direction[0] == A else (B, A)


def everything(packet: bytes) -> bool:
    return True


def every(count: int) -> f.Loss:
    """Lose exactly one of ``count`` packets."""
    seen = 0

    def lose(packet: bytes) -> bool:
        nonlocal seen
        seen += 1
        return seen % count == 0

    return lose


def traffic(net: f.Network, count: int = TRAFFIC) -> None:
    """Packets in both directions."""
    for _ in range(count):
        net.send(A, HOST_PORT, p.ipv4(src="10.1.0.1", dst="10.2.0.1"))
        net.send(B, HOST_PORT, p.ipv4(src="10.2.0.1", dst="10.1.0.1"))


def test_a_link_comes_up_through_probation_at_both_ends(net: f.Network) -> None:
    net.beat(count=PROBATION_LENGTH + 2)
    assert states(net) == (p.UP, p.UP)
    # B hears A before it says anything itself, so A hears of B's probation, and is told when that ends
    assert changes(net, A) == [(p.PROBATION, p.HEARD), (p.UP, p.CLEAN)]
    assert changes(net, B) == [(p.PROBATION, p.HEARD), (p.PROBATION, p.CLEAN), (p.UP, p.NEIGHBOR)]


def test_nothing_happens_on_a_link_that_is_fine(net: f.Network) -> None:
    bring_up(net)
    net.beat(lambda: traffic(net, 10), count=200)
    assert changes(net, A) == changes(net, B) == []
    assert len(net.arrived) == 2 * 10 * 200


def test_three_missed_heartbeats_are_down_and_two_are_not(net: f.Network) -> None:
    bring_up(net)
    net.losses[A, PORT_A] = everything
    net.beat(count=2)
    net.losses.clear()
    net.beat(count=5)
    assert changes(net, B) == []
    net.losses[A, PORT_A] = everything
    started = net.now
    net.beat(count=4)
    [event] = [event for event in net.switches[B].events if event.state == p.DOWN]
    assert (event.reason, event.rx_state, event.device) == (p.MISSED, p.DOWN, 0)
    assert event.time * 1000 - started == 2 * f.INTERVAL, "with the third that was due and did not come"


def test_a_failure_of_one_direction_is_seen_at_both_ends(net: f.Network) -> None:
    bring_up(net)
    net.losses[A, PORT_A] = everything
    net.beat(count=5)
    assert states(net) == (p.DOWN, p.DOWN)
    [at_a] = net.switches[A].events
    [at_b] = net.switches[B].events
    assert (at_a.reason, at_a.rx_state, at_a.neighbor_rx_state) == (p.NEIGHBOR, p.UP, p.DOWN)
    assert (at_b.reason, at_b.rx_state) == (p.MISSED, p.DOWN)
    net.send(A, HOST_PORT, p.ipv4(src="10.1.0.1", dst="10.2.0.1"))
    net.send(B, HOST_PORT, p.ipv4(src="10.2.0.1", dst="10.1.0.1"))
    assert net.arrived == []


def test_a_link_recovers_only_through_probation(net: f.Network) -> None:
    bring_up(net)
    net.losses[A, PORT_A] = everything
    net.beat(count=6)
    net.losses.clear()
    down = net.now
    net.beat(count=200)
    seen = [event.state for event in net.switches[B].events]
    assert seen == [p.DOWN, p.PROBATION, p.UP]
    up = net.switches[B].events[-1].time * 1000
    assert 2 * PROBATION_LENGTH * f.INTERVAL <= up - down <= (2 * PROBATION_LENGTH + 2) * f.INTERVAL
    assert [event.state for event in net.switches[A].events] == [p.DOWN, p.PROBATION, p.UP]


def test_a_loss_in_probation_starts_it_anew(net: f.Network) -> None:
    net.beat(count=PROBATION_LENGTH - 2)
    lose_one(net)
    lost = net.now
    net.beat(count=2 * PROBATION_LENGTH)
    [clean] = [event for event in net.switches[B].events if event.reason == p.CLEAN]
    assert clean.time * 1000 - lost == PROBATION_LENGTH * f.INTERVAL


def test_probation_doubles_with_every_flap_up_to_a_limit(net: f.Network) -> None:
    for switch in net.switches.values():
        switch.health(f.Health(probation=4, max_doublings=3))
    net.beat(count=10)
    lengths = []
    for _ in range(5):
        net.losses[A, PORT_A] = everything
        net.beat(count=6)
        net.losses.clear()
        net.switches[B].events.clear()
        net.beat(count=50)
        heard, up = net.switches[B].events
        assert (heard.state, up.state) == (p.PROBATION, p.UP)
        lengths.append((up.time - heard.time) * 1000 // f.INTERVAL)
    assert lengths == [8, 16, 32, 32, 32]


def test_the_longest_probation_that_can_be_asked_for_is_not_cut_short(net: f.Network) -> None:
    bring_up(net)
    b = net.switches[B]
    [action] = [one for one in b.device.program.actions.values() if one.name == b.actions["set_health"]]
    largest = {one.name: (1 << one.width) - 1 for one in action.params}
    b.health(f.Health(probation=largest["probation_heartbeats"], max_doublings=largest["probation_max_doublings"]))
    b.device.register_set(b.names["flaps_register"], PORT_B, 254)
    net.losses[A, PORT_A] = everything
    net.beat(count=6)
    net.losses.clear()
    net.beat(count=20)
    assert b.register("rx_state_register", PORT_B) == p.PROBATION


def test_a_clean_period_forgives_the_flaps(net: f.Network) -> None:
    for switch in net.switches.values():
        switch.health(f.Health(probation=4, forgive=30))
    net.beat(count=10)
    net.losses[A, PORT_A] = everything
    net.beat(count=6)
    net.losses.clear()
    net.beat(count=20)
    assert net.switches[B].register("flaps_register", PORT_B) == 1
    net.beat(count=30)
    assert net.switches[B].register("flaps_register", PORT_B) == 0


@pytest.mark.parametrize("direction", [(A, PORT_A), (B, PORT_B)], ids=["A to B", "B to A"])
def test_one_lost_in_a_thousand_is_degraded_within_a_second(net: f.Network, direction: tuple[int, int]) -> None:
    sends, hears = lose_at(net, direction, every(1000))
    first, *later = [event for event in net.switches[hears].events if event.reason == p.LOSS]
    assert (first.state, first.rx_state, first.neighbor_rx_state) == (p.DEGRADED, p.DEGRADED, p.UP)
    assert first.time * 1000 - FAULT_AT <= f.SECOND
    for event in (first, *later):
        assert 0.0005 <= event.lost / event.expected <= 0.002
    [told] = net.switches[sends].events
    assert (told.state, told.reason, told.rx_state, told.neighbor_rx_state) == (
        p.DEGRADED, p.NEIGHBOR, p.UP, p.DEGRADED)  # fmt: skip


def told_at_random(seed: int, seconds: int) -> list[f.Event]:
    """What B tells of a link that loses one packet in a thousand, at random, from its first second on. Its counter of
    packets received is set instead of sending them all."""
    rng, b = random.Random(seed), f.Fabric(seed=seed)
    b.basics([PORT_B])
    b.health(f.Health(probation=1))
    b.watch(PORT_B, B, A, PORT_A)
    register = b.names["rx_packets_register"]
    sent = lost = 0
    next_lost = 2 * (TRAFFIC + 1) + rng.expovariate(LOSS)  # the link comes up with the second heartbeat
    for sequence in range(1, 2 + 100 * seconds + 1):
        sent += TRAFFIC + 1  # with the heartbeat
        while next_lost < sent:
            lost += 1
            next_lost += rng.expovariate(LOSS)
        b.device.register_set(register, PORT_B, sent - lost - 1)
        b.send(PORT_B, p.heartbeat(A, PORT_A, sequence, sent), (sequence - 1) * f.INTERVAL)
    events = [event for event in b.drain() if event.reason == p.LOSS]
    b.close()
    return events


def is_estimated(events: list[f.Event], by: int) -> bool:
    """Whether the last that was told until then is right: the direction, and the loss within a factor of two."""
    told = [event for event in events if event.time * 1000 <= f.INTERVAL + by]  # the second heartbeat came before
    if not told:
        return False
    last = told[-1]
    right = (last.state, last.rx_state, last.neighbor_rx_state) == (p.DEGRADED, p.DEGRADED, p.UP)
    return right and LOSS / 2 <= last.lost / last.expected <= 2 * LOSS


def test_losses_at_random_are_estimated_within_a_factor_of_two_with_the_chance_that_is_documented() -> None:
    """Ten losses a second. In 3 % of seconds they are fewer than five, too few to tell."""
    runs = [told_at_random(seed, 4) for seed in range(500)]
    shares = [sum(is_estimated(run, at * f.SECOND) for run in runs) / len(runs) for at in (1, 2, 4)]
    assert [share >= at_least for share, at_least in zip(shares, (0.94, 0.98, 0.98), strict=True)] == [True] * 3, shares


def test_a_gray_link_stays_degraded_as_long_as_it_loses() -> None:
    """Ten losses a second on average, for a minute; some seconds have few."""
    for seed in range(8):
        last = told_at_random(seed, 60)[-1]
        assert last.state == p.DEGRADED
        assert last.time * 1000 > 58 * f.SECOND


def test_a_degraded_link_is_used_only_where_nothing_better_is_left(net: f.Network) -> None:
    bring_up(net)
    net.switches[A].group(1, [PORT_A, 9], watched=[PORT_A])
    net.switches[A].spray(1, "spray_rr")
    net.losses[A, PORT_A] = every(10)
    net.beat(lambda: traffic(net), count=30)
    assert states(net) == (p.DEGRADED, p.DEGRADED)
    net.arrived.clear()
    traffic(net, 10)
    assert sum((at, out.port) == (A, 9) for at, out in net.arrived) == 10
    assert sum((at, out.port) == (A, HOST_PORT) for at, out in net.arrived) == 10  # B has no other link


def test_a_degraded_link_keeps_its_share_where_the_profile_does_not_avoid_it(net: f.Network) -> None:
    bring_up(net)
    net.switches[A].health(f.Health(probation=PROBATION_LENGTH, avoid_degraded=0))
    net.switches[A].group(1, [PORT_A, 9], watched=[PORT_A])
    net.switches[A].spray(1, "spray_rr")
    net.losses[A, PORT_A] = every(10)
    net.beat(lambda: traffic(net), count=30)
    assert states(net) == (p.DEGRADED, p.DEGRADED)
    net.arrived.clear()
    traffic(net, 10)
    assert sum((at, out.port) == (A, 9) for at, out in net.arrived) == 5


def test_a_degraded_link_that_loses_no_more_comes_back_through_probation(net: f.Network) -> None:
    bring_up(net)
    net.losses[A, PORT_A] = every(10)
    net.beat(lambda: traffic(net), count=20)
    net.losses.clear()
    net.switches[B].events.clear()
    net.beat(lambda: traffic(net, 10), count=400)
    assert [event.state for event in net.switches[B].events if event.state != event.old_state] == [p.PROBATION, p.UP]


def test_less_loss_than_the_profile_tolerates_is_not_degraded(net: f.Network) -> None:
    bring_up(net)
    for switch in net.switches.values():
        switch.health(f.Health(probation=PROBATION_LENGTH, loss_ppm=20_000))
    net.losses[A, PORT_A] = every(100)
    net.beat(lambda: traffic(net), count=30)
    assert changes(net, B) == []


def test_packets_that_come_twice_are_no_loss(net: f.Network) -> None:
    bring_up(net)
    net.beat(lambda: net.send(B, PORT_B, p.ipv4(src="10.1.0.1", dst="10.2.0.1")), count=20)
    assert changes(net, B) == []


def test_a_neighbor_that_starts_anew_does_not_spoil_the_estimate(net: f.Network) -> None:
    a, b = net.switches[A], net.switches[B]
    bring_up(net)
    net.losses[A, PORT_A] = every(10)
    net.beat(lambda: traffic(net), count=20)
    assert states(net) == (p.DEGRADED, p.DEGRADED)
    for name in ("tx_sequence", "tx_packets"):
        a.device.register_set(a.names[name], PORT_A, 0)
    b.events.clear()
    net.beat(lambda: traffic(net), count=130)  # a tenth of the heartbeats is lost, too
    told = [event for event in b.events if event.reason == p.LOSS]
    assert len(told) == 4  # the quarters of a first window
    for event in told:
        assert 0.05 <= event.lost / event.expected <= 0.2


def test_a_miscabled_link_is_told_and_never_used(net: f.Network) -> None:
    net.switches[B].watch(PORT_B, B, 77, PORT_A)  # B expects another device
    net.beat(lambda: traffic(net, 1), count=50)
    assert states(net) == (p.DOWN, p.DOWN)
    event = next(event for event in net.switches[B].events if event.reason == p.MISCABLED)
    assert (event.state, event.device, event.device_port) == (p.DOWN, A, PORT_A)
    assert sum(event.reason == p.MISCABLED for event in net.switches[B].events) == 1
    assert net.arrived == []
    net.switches[B].watch(PORT_B, B, A, PORT_A)
    net.beat(count=100)
    assert states(net) == (p.UP, p.UP)


def again(net: f.Network, switch: int) -> list[f.Event]:
    """What a switch repeats within three windows, without times."""
    net.switches[switch].repeats.clear()
    net.beat(count=3 * WINDOW)
    return [replace(event, time=0) for event in net.switches[switch].repeats]


def test_a_link_that_is_fine_is_told_again_once_a_window(net: f.Network) -> None:
    bring_up(net)
    assert again(net, A) == [f.Event(PORT_A, p.UP, p.UP, p.CLEAN, p.UP, p.UP, B, PORT_B, 0, 0, 0, 0)] * 3
    assert changes(net, A) == []


def test_a_failure_is_told_again_with_its_reason_at_both_ends(net: f.Network) -> None:
    bring_up(net)
    net.losses[A, PORT_A] = everything
    net.beat(count=10)
    away = f.Event(PORT_A, p.DOWN, p.DOWN, p.NEIGHBOR, p.UP, p.DOWN, B, PORT_B, 0, 0, 0, 0)
    here = f.Event(PORT_B, p.DOWN, p.DOWN, p.MISSED, p.DOWN, p.UP, 0, 0, 0, 0, 1, 0)
    assert again(net, A) == [away] * 3
    assert again(net, B) == [here] * 3


def test_who_should_not_be_there_is_told_again(net: f.Network) -> None:
    net.switches[B].watch(PORT_B, B, 77, PORT_A)
    net.beat()
    stranger = f.Event(PORT_B, p.DOWN, p.DOWN, p.MISCABLED, p.DOWN, p.UNKNOWN, A, PORT_A, 0, 0, 0, 0)
    assert again(net, B) == [stranger] * 3


def test_a_change_is_told_again_a_window_later(net: f.Network) -> None:
    bring_up(net)
    switch = net.switches[A]
    net.beat(count=WINDOW // 2)
    net.send(A, PORT_A, p.heartbeat(B, PORT_B, 0, 0, p.DEGRADED))
    for timers, told in ((WINDOW - 1, 0), (1, 1), (WINDOW - 1, 0), (1, 1)):
        switch.repeats.clear()
        for _ in range(timers):
            net.send(A, PORT_A, p.heartbeat(B, PORT_B, 0, 0, p.DEGRADED))
            net.send(A, p.TIMER_PORT, p.timer(PORT_A))
        switch.drain()
        assert [event.state for event in switch.repeats] == [p.DEGRADED] * told


def test_the_end_that_sees_the_loss_tells_with_its_windows_only(net: f.Network) -> None:
    bring_up(net)
    net.losses[A, PORT_A] = every(10)
    net.beat(lambda: traffic(net), count=20)
    net.beat(lambda: traffic(net), count=3 * WINDOW)
    assert net.switches[B].repeats == []
    assert {event.reason for event in net.switches[B].events} == {p.LOSS}


def test_every_stranger_is_told_once(net: f.Network) -> None:
    net.switches[B].watch(PORT_B, B, 77, PORT_A)
    for device in (A, A, 9, 9):
        net.send(B, PORT_B, p.heartbeat(device, PORT_A, 1, 1))
    told = [event.device for event in net.switches[B].drain() if event.reason == p.MISCABLED]
    assert told == [A, 9]


def test_the_wrong_port_of_the_right_neighbor_is_miscabled_too(net: f.Network) -> None:
    bring_up(net)
    net.switches[B].watch(PORT_B, B, A, PORT_A + 1)
    net.beat(count=2)
    assert states(net) == (p.DOWN, p.DOWN)
    assert changes(net, B) == [(p.DOWN, p.MISCABLED)]


def test_a_neighbor_that_starts_anew_is_no_loss(net: f.Network) -> None:
    a = net.switches[A]
    a.device.register_set(a.names["tx_packets"], PORT_A, 3_000_000_000)  # 0 is more than half of the way up
    bring_up(net)
    lose_one(net)
    net.beat()  # B looks for more losses
    for name in ("tx_sequence", "tx_packets"):
        a.device.register_set(a.names[name], PORT_A, 0)
    net.beat(lambda: traffic(net, 5), count=50)
    assert changes(net, B) == []


def test_a_link_is_degraded_by_min_lost_losses_after_the_first(net: f.Network) -> None:
    bring_up(net)
    for _ in range(1 + 4):
        assert states(net) == (p.UP, p.UP)
        lose_one(net)
        net.beat()
    assert states(net) == (p.DEGRADED, p.DEGRADED)


def test_losses_of_a_window_that_has_ended_do_not_count(net: f.Network) -> None:
    bring_up(net)
    for _ in range(1 + 3):
        lose_one(net)
        net.beat()
    net.beat(count=WINDOW)
    lose_one(net)
    net.beat(count=2)
    assert changes(net, B) == []


def test_a_link_whose_neighbor_does_not_know_yet_is_in_probation(net: f.Network) -> None:
    bring_up(net)
    net.send(A, PORT_A, p.heartbeat(B, PORT_B, 1, 1, p.UNKNOWN))
    assert states(net) == (p.PROBATION, p.UP)


def test_counts_wrap_without_a_loss(net: f.Network) -> None:
    for switch, port in ((A, PORT_A), (B, PORT_B)):
        device = net.switches[switch]
        for name in ("tx_sequence", "tx_packets", "rx_packets_register"):
            device.device.register_set(device.names[name], port, 2**32 - 30)
    bring_up(net)
    net.beat(lambda: traffic(net, 5), count=50)
    assert changes(net, A) == changes(net, B) == []


def test_a_burst_of_late_timers_is_not_the_neighbors_fault(net: f.Network) -> None:
    switch = net.switches[B]
    bring_up(net)
    switch.health(f.Health(probation=PROBATION_LENGTH, min_interval=5_000))
    net.now += 20 * f.INTERVAL  # B stood still; its timers come all at once, before what A sent meanwhile
    for _ in range(20):
        net.send(B, p.TIMER_PORT, p.timer(PORT_B))
    net.beat(count=20)
    assert changes(net, B) == []


def test_heartbeats_overtake_queued_data_without_a_false_alarm(net: f.Network) -> None:
    bring_up(net)
    a = net.switches[A]
    a.device.queue_set(PORT_A, QueueConfig(rate_pps=2000, depth_packets=5000), 3)

    def overload() -> None:
        """50 packets into a queue that lets 20 go in an interval."""
        for _ in range(50):
            net.send(A, HOST_PORT, p.ipv4(src="10.1.0.1", dst="10.2.0.1"))
        carry(net, A, PORT_A)

    net.beat(overload, count=100)
    assert a.device.queue_stats(PORT_A, 3).depth > 1000
    assert changes(net, A) == changes(net, B) == []


def carry(net: f.Network, switch: int, port: int) -> None:
    """Take what has left a slow queue meanwhile over the wire."""
    to, into = net.wires[switch, port]
    for out in net.switches[switch].device.advance(net.now):
        assert out.port == port
        net.switches[to].send(into, out.data, net.now)


def test_a_heartbeat_says_who_sends_it_and_what_it_has_sent(net: f.Network) -> None:
    a = net.switches[A]
    [out] = a.send(p.TIMER_PORT, p.timer(PORT_A), 5 * f.MS)
    assert out.port == PORT_A
    assert out.data == p.heartbeat(A, PORT_A, 1, 1, p.UNKNOWN, time=5000)
    for _ in range(3):
        a.device.packet_out((PORT_A << 7).to_bytes(2, "big") + p.ipv4())
    [out] = a.send(p.TIMER_PORT, p.timer(PORT_A), 6 * f.MS)
    assert out.data == p.heartbeat(A, PORT_A, 2, 5, p.UNKNOWN, time=6000)
    assert a.counter("queue_packets", PORT_A * 8 + 7) == 2  # its own queue is that of the control class
