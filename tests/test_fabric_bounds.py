"""fabric.p4 and smartnic.p4: nothing that an entry, a packet or a port says leads beyond the end of an array.

On BMv2 an index out of range is wild memory; the softswitch counts it."""

from __future__ import annotations

import random

import pytest

from ptf_tests import packets as p
from softswitch import model as m
from softswitch.device import Call, Lpm, MatchValue
from tests import fabric as f

PORTS = (1, 2, 62, 63)
NO_PORTS = (0, 64, 65, 127, 511, p.TIMER_PORT, p.CPU_PORT)  # that lead to no link
NUMBERS = (0, 1, 2, 3, 26, 48, 62, 63, 64, 255, 511, 512, 4095, 4096, 8191, 65535, 65536)
GROUPS = (1, 2, 4095, 4096, 65535)
HOST = "10.0.0.1"
# what packets carry, so that exact entries are hit; anything else has ports
KEYS = {"dst_addr": (p.ROUTER_MAC,), "group_id": GROUPS, "traffic_class": (1, 2, 3, 4, 255),
        "dscp": tuple(p.DSCP.values()), "profile_id": (1, 63, 255), "addr": (f.number(HOST),)}  # fmt: skip


def draw(rng: random.Random, width: int) -> int:
    """A number about the ends of arrays, or any."""
    return (rng.choice(NUMBERS) if rng.random() < 0.9 else rng.getrandbits(width)) & ((1 << width) - 1)


def argument(rng: random.Random, param: m.Param) -> int:
    if param.name == "group_id":
        return rng.choice(GROUPS)
    return rng.getrandbits(param.width) if param.width == 64 else draw(rng, param.width)


def change(rng: random.Random, switch: f.Fabric) -> None:
    """A random action with random arguments, in a random table, where packets find it."""
    program = switch.device.program
    table = rng.choice([one for one in program.tables.values() if one.key and not one.entries])
    actions = {one.ident: one for one in program.actions.values()}
    action = actions[rng.choice(table.actions)]
    call = Call(action.name, tuple(argument(rng, one) for one in action.params))
    match: dict[str, MatchValue] = {}
    for one in table.key:
        if one.match == "exact":
            match[one.name] = rng.choice(KEYS.get(one.name, PORTS + NO_PORTS))
        elif one.match == "lpm":
            match[one.name] = Lpm(0, 0)
    priority = int(table.match == "ternary")
    found = switch.device.table_find(table.name, match, priority=priority)
    if found is None:
        switch.device.table_add(table.name, match, call, priority=priority)
    else:
        switch.device.table_modify(table.name, found, call)


def packet(rng: random.Random) -> bytes:
    """Anything that the programs know, and what they do not."""
    kind = rng.randrange(6)
    if kind == 0:
        return p.heartbeat(draw(rng, 32), draw(rng, 16), draw(rng, 32), draw(rng, 32), draw(rng, 8))
    if kind == 1:
        return p.timer(draw(rng, 16))
    if kind == 2:
        return rng.randbytes(rng.randint(1, 80))
    dscp = rng.choice(tuple(p.DSCP.values()))
    made = p.ipv6(sport=draw(rng, 16), dscp=dscp) if kind == 3 else p.ipv4(src=HOST, sport=draw(rng, 16), dscp=dscp)
    return p.packet_out(rng.choice(PORTS + NO_PORTS), made) if rng.random() < 0.1 else made


def prepared(name: str, seed: int) -> f.Fabric:
    """A switch that forwards, to begin with."""
    switch = f.Fabric(seed=seed, name=name)
    switch.basics(PORTS)
    switch.health(f.Health(probation=1))
    for group in GROUPS:
        switch.group(group, PORTS)
    return switch


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", ["fabric", "smartnic"])
def test_no_entry_and_no_packet_leads_beyond_an_array(name: str, seed: int) -> None:
    rng, switch = random.Random(seed), prepared(name, seed)
    left = 0
    for step in range(2000):
        if step % 4 == 0:
            change(rng, switch)
        left += len(switch.send(rng.choice(PORTS + NO_PORTS), packet(rng), step * f.MS))
    errors = switch.device.stats()["index_errors"]
    switch.close()
    assert left > 20
    assert errors == 0


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_takes_turns(group: int) -> None:
    switch = f.Fabric()
    switch.basics()
    switch.route("10.1.0.0/16", group, [2, 3])
    switch.spray(group, "spray_rr")
    ports = [out.port for _ in range(4) for out in switch.send(1, p.ipv4(), 0)]
    switch.close()
    assert ports == [2, 3, 2, 3]


@pytest.mark.parametrize("port", [64, 65, 127, 511, p.TIMER_PORT])
def test_ports_without_a_link_take_only_what_is_theirs(port: int) -> None:
    switch = f.Fabric()
    switch.basics([1, port])
    switch.watch(0, 1, 2, 7)
    switch.route("10.1.0.0/16", 1, [1])
    for sent in (p.ipv4(), p.heartbeat(2, 7, 1, 1)):
        assert switch.send(port, sent, 0) == []
    assert switch.register("state_register", 0) == p.UNKNOWN
    assert switch.counter("drops", p.PORT_UNUSED) == 2
    switch.close()
