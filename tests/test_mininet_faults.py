"""Who makes a link faulty, and in which words, without a network: what the nodes would be told is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from mininet_topos import faults, live
from mininet_topos.topology import End, Link


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that ran in nodes of a machine with netem, and the calls of softswitches."""
    log: list[str] = []

    def output(node: live.Node, *command: str) -> str:
        log.append(f"{node.name}: {' '.join(command)}")
        return "qdisc netem" if "show" in command else ""

    class Client:
        def __init__(self, path: object) -> None:
            self.path = path

        def __enter__(self) -> Client:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def call(self, name: str, **values: Any) -> None:
            set_values = {key: value for key, value in values.items() if value}
            log.append(f"{self.path}: {name} {set_values}")

    monkeypatch.setattr(live.Node, "output", output)
    monkeypatch.setattr(faults, "ControlClient", Client)
    monkeypatch.setattr(faults, "has_netem", lambda: True)
    return log


def network(a: str, b: str) -> live.Network:
    """a:1 joined to b:2; the nodes are ``host``, ``bmv2`` or ``soft``."""
    nodes = {
        name: live.Node(name, name, 1, {port: f"{name}-eth{port}"}, control="/run/soft" if name == "soft" else "")
        for name, port in ((a, 1), (b, 2))
    }
    return live.Network("1-1-1", "test", nodes, (Link(End(a, 1), End(b, 2)),))


def test_a_sending_softswitch_does_it_as_it_sends(told: list[str]) -> None:
    said = faults.set_fault(network("soft", "bmv2"), "soft", "bmv2", faults.parse(["loss=1%"]))
    assert said == ["soft:1 -> bmv2:2: loss 0.01 by softswitch soft"]
    assert told == ["/run/soft: faults.set {'port': 1, 'direction': 'tx', 'loss': 0.01}"]


def test_a_receiving_softswitch_does_it_as_it_receives(told: list[str]) -> None:
    said = faults.set_fault(network("host", "soft"), "host", "soft", faults.parse(["delay=2ms", "jitter=10us"]))
    assert said == ["host:1 -> soft:2: delay_ns 2000000, jitter_ns 10000 by softswitch soft"]
    assert told == ["/run/soft: faults.set {'port': 2, 'direction': 'rx', 'delay_ns': 2000000, 'jitter_ns': 10000}"]


@pytest.mark.parametrize(
    ("words", "netem"),
    [
        (["loss=0.1%"], "loss 0.100000%"),
        (["down"], "loss 100%"),
        (["loss=1%", "burst_enter=2%", "burst_exit=50%"], "loss gemodel 2.000000% 50.000000% 100% 1.000000%"),
        (["corrupt=1%", "duplicate=2%"], "corrupt 1.000000% duplicate 2.000000%"),
        (["delay=1ms", "rate_bps=10M"], "delay 1000000ns 0ns rate 10000000bit"),
    ],
)
def test_without_a_softswitch_netem_does_it_at_the_sender(told: list[str], words: list[str], netem: str) -> None:
    (said,) = faults.set_fault(network("host", "bmv2"), "bmv2", "host", faults.parse(words))
    assert said.endswith(" by netem at bmv2")
    assert told == [f"bmv2: tc qdisc replace dev bmv2-eth2 root netem {netem}"]


def test_clearing_removes_netem_in_both_directions(told: list[str]) -> None:
    faults.clear_fault(network("host", "bmv2"), "host", "bmv2")
    assert told == [
        "host: tc qdisc show dev host-eth1",
        "host: tc qdisc del dev host-eth1 root",
        "bmv2: tc qdisc show dev bmv2-eth2",
        "bmv2: tc qdisc del dev bmv2-eth2 root",
    ]


def test_a_kernel_without_netem_is_named(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "has_netem", lambda: False)
    with pytest.raises(live.LiveError) as error:
        faults.set_fault(network("host", "bmv2"), "host", "bmv2", faults.parse(["loss=1%"]))
    assert str(error.value) == ("host:1 -> bmv2:2: this kernel has no netem and no end is a softswitch: no faults here")
    assert told == []


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "lost=1",
            "'lost=1' is not a fault; faults are down, loss, burst_enter, burst_exit, corrupt, duplicate, delay, "
            "jitter, rate_bps",
        ),
        ("loss=2", "loss: '2' is not a probability: 0 to 1, or 0% to 100%"),
        ("delay=5", "delay: '5' is not a time with a unit: ns, us, ms or s"),
    ],
)
def test_a_word_that_is_no_fault_is_refused(word: str, message: str) -> None:
    with pytest.raises(live.LiveError) as error:
        faults.parse([word])
    assert str(error.value) == message


def test_a_link_that_is_not_there_is_refused_with_the_neighbours() -> None:
    with pytest.raises(live.LiveError) as error:
        network("host", "bmv2").links_between("host", "soft")
    assert str(error.value) == "no node 'soft'; nodes are host, bmv2"
