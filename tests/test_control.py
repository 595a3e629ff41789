"""The control socket, with a switch that only remembers."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from softswitch import bmv2_json
from softswitch.cli import main
from softswitch.control import ControlClient, ControlError, ControlServer
from softswitch.device import DeviceError, Fault, QueueConfig, Watch
from softswitch.switch import PktgenConfig, Switch, SwitchConfig


@dataclass
class Info:
    exists: bool = True
    up: bool = True
    ifname: str = "veth1"
    rx_packets: int = 7


@dataclass
class QueueStats:
    packets: int = 3
    drops: int = 1


@dataclass
class FakeSwitch:
    priorities: int = 2
    ifnames: dict[int, str] = field(default_factory=lambda: {1: "veth1", 2: "veth2"})
    up: dict[int, bool] = field(default_factory=dict)
    queues: dict[tuple[int, int], QueueConfig] = field(default_factory=dict)
    faults: dict[tuple[int, str], Fault] = field(default_factory=dict)
    rates: dict[int, int] = field(default_factory=dict)
    generators: dict[int, PktgenConfig] = field(default_factory=dict)

    def ports(self) -> list[int]:
        return sorted(self.ifnames)

    def port_info(self, port: int) -> Info:
        return Info(ifname=self.ifnames[port])

    def port_add(self, port: int, ifname: str = "") -> None:
        if port in self.ifnames:
            raise DeviceError("ALREADY_EXISTS", f"port {port} exists")
        self.ifnames[port] = ifname

    def port_remove(self, port: int) -> None:
        del self.ifnames[port]

    def port_set_up(self, port: int, up: bool) -> None:
        self.up[port] = up

    def pcap(self, port: int, path: str | None) -> None:
        raise AssertionError("a bug in the switch")

    def queue(self, port: int, priority: int = 0) -> QueueConfig:
        return self.queues.get((port, priority), QueueConfig())

    def queue_set(self, port: int, config: QueueConfig, priority: int | None = None) -> None:
        for one in range(self.priorities) if priority is None else [priority]:
            self.queues[port, one] = config

    def queue_stats(self, port: int, priority: int = 0, *, clear_max: bool = False) -> QueueStats:
        return QueueStats()

    def port_rate_set(self, port: int, rate_bps: int) -> None:
        self.rates[port] = rate_bps

    def port_rate(self, port: int) -> int:
        return self.rates.get(port, 0)

    def fault(self, port: int, direction: str) -> Fault:
        return self.faults.get((port, direction), Fault())

    def fault_set(self, port: int, direction: str, fault: Fault) -> None:
        self.faults[port, direction] = fault

    def faults_clear(self) -> None:
        self.faults.clear()

    def pktgen_set(
        self, ident: int, port: int, interval_ns: int, template: bytes, count: int = 0, watch: Watch | None = None
    ) -> None:
        self.generators[ident] = PktgenConfig(port, interval_ns, template, count, watch)

    def pktgens(self) -> dict[int, PktgenConfig]:
        return self.generators

    def pktgen_clear(self, ident: int) -> None:
        del self.generators[ident]

    def stats(self) -> dict[str, int]:
        return {"received": 10, "dropped": 2}


@pytest.fixture
def switch() -> FakeSwitch:
    return FakeSwitch()


@pytest.fixture
def path(switch: FakeSwitch, tmp_path: Path) -> Iterator[Path]:
    server = ControlServer(switch, tmp_path / "control.sock")
    yield server.path
    server.close()


@pytest.fixture
def client(path: Path) -> Iterator[ControlClient]:
    with ControlClient(path) as connection:
        yield connection


def test_queue_settings_change_only_what_is_given(switch: FakeSwitch, client: ControlClient) -> None:
    client.call("queues.set", port=1, priority=1, rate_bps=5000)
    client.call("queues.set", port=1, depth_packets=8)
    assert switch.queues == {
        (1, 0): QueueConfig(depth_packets=8),
        (1, 1): QueueConfig(rate_bps=5000, depth_packets=8),
    }


def test_queues_reset_to_the_start(switch: FakeSwitch, client: ControlClient) -> None:
    client.call("queues.set", port=1, rate_bps=5000, port_rate_bps=9000)
    client.call("queues.reset", port=1)
    assert (switch.queue(1, 0), switch.rates) == (QueueConfig(), {1: 0})


def test_queues_show_limits_and_statistics_of_each_queue(client: ControlClient) -> None:
    assert client.call("queues.show", port=2, priority=1) == [
        {"port": 2, "priority": 1, "rate_pps": 0, "rate_bps": 0, "depth_packets": 64, "depth_bytes": 0,
         "port_rate_bps": 0, "packets": 3, "drops": 1}
    ]  # fmt: skip


def test_a_real_switch_shows_what_was_set_and_forgets_what_is_reset(tmp_path: Path, programs: Path) -> None:
    switch = Switch(SwitchConfig(realtime=False))
    server = ControlServer(switch, tmp_path / "real.sock")
    try:
        switch.activate(switch.build(bmv2_json.load(programs / "l3_router.json")))
        switch.port_add(2)
        with ControlClient(server.path) as client:
            client.call("queues.set", port=2, priority=0, depth_bytes=3000)
            (shown,) = client.call("queues.show", port=2, priority=0)
            assert (shown["depth_bytes"], shown["queued_bytes"]) == (3000, 0)
            for ident in (4, 5):
                client.call("pktgen.set", ident=ident, port=1, interval_ns=10**9, template="0011")
            client.call("pktgen.reset", ident=4)
            assert [one["ident"] for one in client.call("pktgen.show")] == [5]
            client.call("pktgen.reset")
            assert client.call("pktgen.show") == []
    finally:
        server.close()
        switch.close()


def test_faults_are_set_by_direction_and_reset_to_none(switch: FakeSwitch, client: ControlClient) -> None:
    client.call("faults.set", port=1, direction="tx", loss=0.5)
    client.call("faults.set", port=2, down=True)
    assert switch.faults == {
        (1, "tx"): Fault(loss=0.5),
        (2, "rx"): Fault(down=True),
        (2, "tx"): Fault(down=True),
    }
    client.call("faults.reset")
    assert switch.faults == {}


def test_ports_and_generators(switch: FakeSwitch, client: ControlClient) -> None:
    client.call("ports.add", port=3, ifname="veth3")
    client.call("ports.down", port=3)
    client.call("pktgen.set", ident=4, port=3, interval_ns=10, template="ff00")
    assert (switch.ifnames[3], switch.up) == ("veth3", {3: False})
    shown = {"ident": 4, "port": 3, "interval_ns": 10, "template": "ff00", "count": 0, "watch": None}
    assert client.call("pktgen.show") == [shown]
    client.call("pktgen.set", ident=4, port=3, interval_ns=10, template="ff00", watched_port=2, watched_offset=1)
    assert client.call("pktgen.show") == [shown | {"watch": {"port": 2, "offset": 1}}]
    client.call("pktgen.reset")
    assert switch.generators == {}


@pytest.mark.parametrize(
    ("call", "args", "message"),
    [
        ("queues.show", {"port": 9}, "no port 9; the switch's ports are 1, 2"),
        ("queues.set", {"port": 1}, "nothing to set; queues.set takes port, priority, rate_pps, rate_bps, "
         "depth_packets, depth_bytes, port_rate_bps"),
        ("queues.set", {"port": 1, "rate": 1}, "queues.set does not take 'rate'; it takes port, priority, rate_pps, "
         "rate_bps, depth_packets, depth_bytes, port_rate_bps"),
        ("queues.set", {"port": 1, "priority": 2, "rate_bps": 1}, "priority must be an integer from 0 to 1, not 2"),
        ("faults.set", {"port": 1, "loss": 2}, "loss must be a probability from 0 to 1, not 2"),
        ("faults.set", {"port": 1, "direction": "up", "loss": 1}, "direction must be rx or tx or both, not 'up'"),
        ("ports.add", {"port": 1, "ifname": "x"}, "port 1 exists"),
        ("pktgen.set", {"ident": 1, "port": 1, "interval_ns": 1, "template": "x"},
         "template must be hexadecimal bytes, not 'x'"),
        ("pktgen.set", {"ident": 1, "port": 1, "interval_ns": 1, "template": "ff00", "watched_port": 1,
                        "watched_offset": 2}, "watched_offset must be an integer from 0 to 1, not 2"),
        ("pktgen.set", {"ident": 1, "port": 1, "interval_ns": 1, "template": "ff00", "watched_offset": 0},
         "watched_port is missing"),
    ],
)  # fmt: skip
def test_refusals_name_the_valid_choices(
    client: ControlClient, call: str, args: dict[str, object], message: str
) -> None:
    with pytest.raises(ControlError) as caught:
        client.call(call, **args)
    assert str(caught.value) == message


def test_a_bug_is_answered_and_the_connection_lives(client: ControlClient) -> None:
    with pytest.raises(ControlError, match="internal error"):
        client.call("ports.pcap", port=1, path="/x")
    assert client.call("stats.show") == {"received": 10, "dropped": 2}


@pytest.mark.parametrize("line", [b"no json\n", b"[]\n", b'{"args": {}}\n'])
def test_a_malformed_request_is_answered(path: Path, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(line)
        answer = json.loads(connection.makefile().readline())
    assert answer == {"error": 'a request is {"call": NAME, "args": {...}} on one line'}


def test_the_socket_is_for_its_owner_only_and_goes_away(switch: FakeSwitch, tmp_path: Path) -> None:
    server = ControlServer(switch, tmp_path / "s")
    assert server.path.stat().st_mode & 0o777 == 0o600
    server.close()
    assert not server.path.exists()


def test_a_living_switch_keeps_its_socket_and_a_dead_ones_is_taken_over(switch: FakeSwitch, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    server = ControlServer(switch, path)
    with pytest.raises(ControlError, match="another switch is listening on"):
        ControlServer(switch, path)
    server.close()


def test_ctl_sets_and_shows_json(path: Path, switch: FakeSwitch, capsys: pytest.CaptureFixture[str]) -> None:
    ctl = ["ctl", "--socket", str(path)]
    assert main([*ctl, "faults", "set", "1", "--direction", "rx", "--loss", "5%", "--delay", "1ms"]) == 0
    assert switch.faults == {(1, "rx"): Fault(loss=0.05, delay_ns=1_000_000)}
    assert main([*ctl, "ports", "show", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"port": 1, "up": True, "ifname": "veth1", "rx_packets": 7}]


def test_ctl_fails_with_the_switchs_words(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ctl", "--socket", str(path), "ports", "down", "7"]) == 1
    assert capsys.readouterr().err == "softswitch: no port 7; the switch's ports are 1, 2\n"
