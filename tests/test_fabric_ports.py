"""watch_port.p4 in both programs: what is told of a port that is no link, as a generator of the switch watches it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mininet_topos.timer import IS_DOWN_AT
from ptf_tests import packets as p
from softswitch.device import DigestList, Watch
from tests import fabric as f

HOST_PORT, LINK_PORT = 1, 2
TICK = 1000  # ns


@pytest.fixture(params=["fabric", "smartnic"])
def switch(request: pytest.FixtureRequest) -> Iterator[f.Fabric]:
    made = f.Fabric(name=request.param)
    made.basics()
    made.health(f.Health())
    made.watch(LINK_PORT, 1, 2, LINK_PORT)
    made.device.digest_set("port_event_t", enabled=True, max_list_size=1)
    for ident, port in enumerate((HOST_PORT, LINK_PORT)):
        made.device.pktgen_set(ident, p.TIMER_PORT, f.INTERVAL, p.timer(port), watch=Watch(port, IS_DOWN_AT))
    yield made
    made.close()


def timers(switch: f.Fabric, count: int) -> list[tuple[int, int, int]]:
    """So many timers of every port; what is told of ports: port, whether it is down, with which timer of all."""
    switch.device.advance(switch.device.now() + count * f.INTERVAL)
    told = []
    while (event := switch.device.next_event(0)) is not None:
        if isinstance(event, DigestList) and event.digest == "port_event_t":
            told += [(port, is_down, time * TICK // f.INTERVAL) for port, is_down, time in event.samples]
        elif isinstance(event, DigestList):
            switch.events += [f.Event(*sample) for sample in event.samples]
    return told


def test_a_change_is_told_by_the_next_timer_and_anything_again_after_so_many(switch: f.Fabric) -> None:
    assert timers(switch, 10) == [(HOST_PORT, 0, 1)], "also of a port that never changed"
    switch.device.port_set_up(HOST_PORT, False)
    down = 11
    assert timers(switch, p.REPEAT_TIMERS) == [(HOST_PORT, 1, down)]
    assert timers(switch, 1) == [(HOST_PORT, 1, down + p.REPEAT_TIMERS)]
    switch.device.port_set_up(HOST_PORT, True)
    up = down + p.REPEAT_TIMERS + 1
    assert timers(switch, p.REPEAT_TIMERS + 1) == [(HOST_PORT, 0, up), (HOST_PORT, 0, up + p.REPEAT_TIMERS)]


def test_a_port_that_is_down_from_the_start_is_told(switch: f.Fabric) -> None:
    switch.device.port_set_up(HOST_PORT, False)
    assert timers(switch, 1) == [(HOST_PORT, 1, 1)]


def test_of_a_link_without_a_carrier_its_own_event_tells(switch: f.Fabric) -> None:
    assert timers(switch, 1) == [(HOST_PORT, 0, 1)]
    switch.device.port_set_up(LINK_PORT, False)
    assert timers(switch, 1) == []
    (event,) = switch.events
    assert (event.port, event.state, event.reason) == (LINK_PORT, p.DOWN, p.CARRIER)


def test_a_timer_from_elsewhere_tells_nothing(switch: f.Fabric) -> None:
    assert timers(switch, 1) == [(HOST_PORT, 0, 1)]
    switch.send(LINK_PORT, p.timer(HOST_PORT, is_down=True), switch.device.now())
    switch.send(p.TIMER_PORT, p.timer(64, is_down=True), switch.device.now())
    assert timers(switch, 1) == []
    assert list(switch.drops().values()) == [2]
