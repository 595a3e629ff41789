"""fabric.p4: which member of a group a packet takes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from ptf_tests import packets as p
from softswitch.device import Call, QueueConfig
from tests import fabric as f

Make = Callable[..., bytes]
PORTS = (3, 17, 31, 32, 33, 62, 63)  # both ends and the middle of the mask


@pytest.fixture
def switch() -> Iterator[f.Fabric]:
    made = f.Fabric(seed=7)
    made.basics()
    made.health(f.Health(probation=1))
    made.route("10.1.0.0/16", 1, PORTS)
    yield made
    made.close()


def port_of(switch: f.Fabric, packet: bytes, now: int = 0) -> int:
    [out] = switch.send(1, packet, now)
    return out.port


def ports_of(switch: f.Fabric, count: int) -> list[int]:
    """Where ``count`` packets of one flow go."""
    return [port_of(switch, p.ipv4()) for _ in range(count)]


def flows(switch: f.Fabric, count: int) -> dict[int, int]:
    """Where ``count`` flows go, by their source port."""
    return {sport: port_of(switch, p.ipv4(sport=sport)) for sport in range(40_000, 40_000 + count)}


def bring_up(switch: f.Fabric, ports: tuple[int, ...], now: int = 0) -> None:
    """Both ends of the links hear each other long enough; the group watches them."""
    switch.group(1, PORTS, watched=PORTS)
    for port in ports:
        switch.watch(port, 1, 100 + port, port)
        for sequence in (1, 2):
            switch.send(port, p.heartbeat(100 + port, port, sequence, sequence), now)


def silence(switch: f.Fabric, port: int, now: int) -> None:
    """The port's heartbeats have stopped: four timers without one."""
    for _ in range(4):
        switch.send(p.TIMER_PORT, p.timer(port), now)


@pytest.mark.parametrize("count", range(1, len(PORTS) + 1))
def test_spray_rr_gives_each_of_n_members_exactly_one_of_n_packets(switch: f.Fabric, count: int) -> None:
    switch.group(1, PORTS[:count])
    switch.spray(1, "spray_rr")
    for _ in range(3):
        assert sorted(ports_of(switch, count)) == sorted(PORTS[:count])


def test_spray_rr_is_exact_over_the_members_that_live(switch: f.Fabric) -> None:
    bring_up(switch, PORTS)
    switch.spray(1, "spray_rr")
    silence(switch, 17, 0)
    silence(switch, 63, 0)
    assert Counter(ports_of(switch, 50)) == dict.fromkeys((3, 31, 32, 33, 62), 10)


def test_every_group_has_its_own_turn(switch: f.Fabric) -> None:
    switch.route("10.2.0.0/16", 2, PORTS[:2])
    for group in (1, 2):
        switch.spray(group, "spray_rr")
    seen: dict[str, list[int]] = {"10.1.0.1": [], "10.2.0.1": []}
    for _ in PORTS * 2:
        for dst, ports in seen.items():
            ports.append(port_of(switch, p.ipv4(dst=dst)))
    assert seen == {"10.1.0.1": [*PORTS] * 2, "10.2.0.1": [*PORTS[:2]] * len(PORTS)}


def test_spray_rr_of_every_port(switch: f.Fabric) -> None:
    every = tuple(range(1, 64))
    switch.group(1, every)
    switch.spray(1, "spray_rr")
    assert ports_of(switch, 126) == list(every) * 2


def test_spray_rr_of_any_mask(switch: f.Fabric) -> None:
    rng = random.Random(11)
    switch.spray(1, "spray_rr")
    for _ in range(40):
        ports = sorted(rng.sample(range(1, 64), rng.randint(1, 63)))
        switch.group(1, ports)
        seen = ports_of(switch, len(ports))
        turn = ports.index(seen[0])
        assert seen == ports[turn:] + ports[:turn]


def test_spray_random_is_uniform(switch: f.Fabric) -> None:
    switch.spray(1, "spray_random")
    count = 7000
    seen = Counter(ports_of(switch, count))
    expected = count / len(PORTS)
    chi_squared = sum((seen[port] - expected) ** 2 / expected for port in PORTS)
    assert set(seen) == set(PORTS)
    assert chi_squared < 16.81  # 6 degrees of freedom, 1 %


def test_ecmp_keeps_a_flow_on_one_member_and_uses_all(switch: f.Fabric) -> None:
    first = flows(switch, 700)
    assert flows(switch, 700) == first
    seen = Counter(first.values())
    assert set(seen) == set(PORTS)
    assert sum((seen[port] - 100) ** 2 / 100 for port in PORTS) < 22.46  # 0.1 %


def test_ecmp_spreads_ipv6_flows_too(switch: f.Fabric) -> None:
    switch.route("fd00:1::/32", 1, PORTS)
    first = [port_of(switch, p.ipv6(sport=sport)) for sport in range(40_000, 40_100)]
    assert [port_of(switch, p.ipv6(sport=sport)) for sport in range(40_000, 40_100)] == first
    assert set(first) == set(PORTS)


@pytest.mark.parametrize("tcp", [False, True], ids=["UDP", "TCP"])
@pytest.mark.parametrize("make", [p.ipv4, p.ipv6])
def test_every_part_of_the_five_tuple_tells_flows_apart(switch: f.Fabric, make: Make, tcp: bool) -> None:
    switch.route("fd00:1::/32", 1, PORTS)
    source, to = ("10.0.0.", "10.1.0.") if make is p.ipv4 else ("fd00::", "fd00:1::")
    seen = []
    for n in range(1, 41):
        for fields in ({"src": f"{source}{n}"}, {"dst": f"{to}{n}"}, {"sport": n}, {"dport": n}):
            packet = make(**fields)
            seen.append((*fields, port_of(switch, p.as_tcp(packet) if tcp else packet)))
    for part in ("src", "dst", "sport", "dport"):
        assert {port for name, port in seen if name == part} == set(PORTS)


@pytest.mark.parametrize("make", [p.ipv4, p.ipv6])
def test_the_protocol_tells_flows_apart(switch: f.Fabric, make: Make) -> None:
    switch.route("fd00:1::/32", 1, PORTS)
    flows = [make(sport=sport) for sport in range(40)]
    assert [port_of(switch, flow) for flow in flows] != [port_of(switch, p.as_tcp(flow)) for flow in flows]


def test_all_fragments_of_a_packet_take_one_member(switch: f.Fabric) -> None:
    for source in range(20):
        fragments = [p.ipv4(src=f"10.0.0.{source}", fragment=fragment) for fragment in (0x2000, 0x2001, 0x0002)]
        assert len({port_of(switch, fragment) for fragment in fragments}) == 1


def test_ecmp_moves_only_the_flows_of_the_dead_member_and_spreads_them(switch: f.Fabric) -> None:
    bring_up(switch, PORTS)
    before = flows(switch, 700)
    silence(switch, 31, 0)
    after = flows(switch, 700)
    moved = [sport for sport in before if before[sport] != after[sport]]
    assert moved == [sport for sport in before if before[sport] == 31]
    assert {after[sport] for sport in moved} == set(PORTS) - {31}
    for sequence in (10, 11, 12):
        switch.send(31, p.heartbeat(131, 31, sequence, sequence), 0)
    assert flows(switch, 700) == before


def test_ecmp_spreads_the_flows_of_two_dead_members_over_both_that_live(switch: f.Fabric) -> None:
    bring_up(switch, PORTS)
    switch.group(1, PORTS[:4], watched=PORTS)
    before = flows(switch, 200)
    for port in PORTS[:2]:
        silence(switch, port, 0)
    after = flows(switch, 200)
    for dead in PORTS[:2]:  # the hash that led to one of four alone would lead on to always the same of two
        assert {after[sport] for sport in before if before[sport] == dead} == set(PORTS[2:4])


def test_tiers_that_rotate_the_hash_differently_do_not_use_the_same_members(switch: f.Fabric) -> None:
    switch.group(1, (1, 2, 3, 4))
    first = flows(switch, 400)
    switch.spray(1, "ecmp", 16)
    alike = [port for sport, port in flows(switch, 400).items() if first[sport] == 1]
    assert set(alike) == {1, 2, 3, 4}


def test_the_class_of_a_packet_says_how_it_is_sprayed(switch: f.Fabric) -> None:
    switch.spray(1, "spray_rr", traffic_class=p.DATA)
    assert len({port_of(switch, p.ipv4(dscp=p.DSCP[p.DATA])) for _ in range(7)}) == 7
    assert len({port_of(switch, p.ipv4(dscp=p.DSCP[p.CONTROL])) for _ in range(7)}) == 1


def test_spray_adaptive_avoids_the_deeper_queue(switch: f.Fabric) -> None:
    switch.group(1, (2, 3))
    switch.spray(1, "spray_adaptive", 1_000_000)
    queue, index = switch.names["queue_depth"], 2 * 8 + 3
    switch.device.register_set(queue, index, 20)
    switch.device.register_set(switch.names["queue_depth_time"], index, 0)
    assert set(ports_of(switch, 100)) == {3}


def test_spray_adaptive_takes_a_queue_without_a_recent_sample_for_empty(switch: f.Fabric) -> None:
    switch.group(1, (2, 3))
    switch.spray(1, "spray_adaptive", 100)  # ticks
    switch.device.register_set(switch.names["queue_depth"], 2 * 8 + 3, 20)
    assert {port_of(switch, p.ipv4(), 101_000 + n) for n in range(100)} == {2, 3}


def test_spray_adaptive_on_unequal_links_follows_their_rates(switch: f.Fabric) -> None:
    switch.group(1, (2, 3))
    switch.spray(1, "spray_adaptive", 1_000_000)
    for port, rate in ((2, 3000), (3, 1000)):
        switch.device.queue_set(port, QueueConfig(rate_pps=rate, depth_packets=1000))
    left: Counter[int] = Counter()
    for packet in range(4000):  # 4000 packets in a second
        left.update(out.port for out in switch.send(1, p.ipv4(), packet * 250_000))
    assert left[2] > 2.5 * left[3]
    assert left[2] + left[3] > 3900


def test_a_single_member_serves_every_mode(switch: f.Fabric) -> None:
    switch.group(1, (63,))
    for mode in ("ecmp", "spray_random", "spray_rr", "spray_adaptive"):
        switch.spray(1, mode, *((0,) if mode in ("ecmp", "spray_adaptive") else ()))
        assert set(ports_of(switch, 5)) == {63}


@pytest.mark.parametrize("mode", ["ecmp", "spray_random", "spray_rr", "spray_adaptive"])
def test_no_mode_uses_a_member_that_is_down(switch: f.Fabric, mode: str) -> None:
    switch.spray(1, mode, *((0,) if mode in ("ecmp", "spray_adaptive") else ()))
    rng = random.Random(3)
    bring_up(switch, PORTS)
    down = set(rng.sample(PORTS, 4))
    for port in down:
        silence(switch, port, 0)
    assert set(flows(switch, 200).values()) == set(PORTS) - down


@pytest.mark.parametrize("mode", ["ecmp", "spray_random", "spray_rr", "spray_adaptive"])
def test_a_drained_member_takes_nothing_even_where_all_others_are_down(switch: f.Fabric, mode: str) -> None:
    switch.spray(1, mode, *((0,) if mode in ("ecmp", "spray_adaptive") else ()))
    bring_up(switch, PORTS)
    drain = Call(switch.actions["drain_ports"], (p.mask(PORTS[:1]),))
    switch.device.table_set_default(switch.names["drain"], drain)
    assert set(flows(switch, 200).values()) == set(PORTS[1:])
    for port in PORTS[1:]:
        silence(switch, port, 0)
    assert switch.send(1, p.ipv4(), 0) == []
    assert switch.counter("drops", p.NO_MEMBER) == 1


def test_a_member_in_probation_is_used_only_where_nothing_better_is_left(switch: f.Fabric) -> None:
    first, *others = PORTS
    bring_up(switch, tuple(others))
    switch.watch(first, 1, 100 + first, first)
    switch.send(first, p.heartbeat(100 + first, first, 1, 1), 0)
    assert switch.register("state_register", first) == p.PROBATION
    assert set(flows(switch, 200).values()) == set(others)
    for port in others:
        silence(switch, port, 0)
    assert set(flows(switch, 200).values()) == {first}


def test_with_no_member_left_the_packet_is_dropped_and_counted(switch: f.Fabric) -> None:
    bring_up(switch, PORTS)
    for port in PORTS:
        silence(switch, port, 0)
    assert switch.send(1, p.ipv4(), 0) == []
    assert switch.counter("drops", p.NO_MEMBER) == 1
