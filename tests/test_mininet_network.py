"""Networks in Mininet on both targets: traffic, links that go down, faults, and that nothing is left of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mininet_topos import faults, live, runs
from mininet_topos.network import FabricNet, Settings, running
from mininet_topos.queues import QueueSettings, set_queues
from mininet_topos.single_switch import single_switch
from mininet_topos.targets import Target
from mininet_topos.topology import Topology, TopologyError
from softswitch.control import ControlClient
from tests.mininet_support import NEEDS_MININET, TARGETS, program_router

pytestmark = NEEDS_MININET
PATIENCE_S = 20.0
HOST_2 = "10.0.2.2", "fd00:0:0:2::2"


@pytest.fixture(scope="module", params=TARGETS)
def network(request: pytest.FixtureRequest) -> Iterator[live.Network]:
    """Two hosts on a router."""
    with running(single_switch(2), Settings(Target(request.param))) as net:
        made = net.live()
        program_router(made.node("s1").grpc, 2)
        yield made


def pinged(node: live.Node, address: str, count: int = 3) -> int:
    """How many of ``count`` echo requests were answered."""
    try:
        text = node.output("ping", "-q", "-n", "-c", str(count), "-i", "0.01", "-W", "1", address)
    except live.LiveError as error:
        text = str(error)
    found = re.search(r"(\d+) received", text)
    return int(found[1]) if found else 0


def eventually(true: Callable[[], bool]) -> bool:
    """Whether it becomes true; for what the kernel tells no one else."""
    end = time.monotonic() + PATIENCE_S
    while not (now := true()) and time.monotonic() < end:
        time.sleep(0.01)
    return now


@pytest.mark.parametrize("address", HOST_2)
def test_hosts_reach_each_other(network: live.Network, address: str) -> None:
    assert pinged(network.node("h1"), address) == 3


def test_tcp_passes_without_help_of_the_interfaces(network: live.Network) -> None:
    """Checksums and lengths are those of a wire."""
    server, client = network.node("h2"), network.node("h1")
    listen = (
        "import socket; s = socket.create_server(('10.0.2.2', 7)); print(flush=True); c, _ = s.accept(); "
        "n = 0\nwhile d := c.recv(65536): n += len(d)\nprint(n)"
    )
    send = "import socket; s = socket.create_connection(('10.0.2.2', 7), 5); s.sendall(bytes(200_000))"
    with started(server, listen) as listener:
        assert listener.stdout is not None and listener.stdout.readline() == "\n"
        client.output(sys.executable, "-c", send)
        assert listener.stdout.readline() == "200000\n"


@contextmanager
def started(node: live.Node, script: str) -> Iterator[subprocess.Popen[str]]:
    """A Python script that runs in a node."""
    from mininet_topos.namespace import inside

    with inside(node.pid):
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_link_goes_down_and_comes_back(network: live.Network) -> None:
    h1, s1 = network.node("h1"), network.node("s1")
    before = h1.output("ip", "-o", "address", "show", "scope", "global"), h1.output("ip", "route")
    network.set_link("h1", "s1", up=False)
    try:
        assert not h1.has_carrier(0) and not s1.has_carrier(1) and s1.has_carrier(2)
        if s1.control:
            with ControlClient(Path(s1.control)) as client:
                assert eventually(lambda: not client.call("ports.show", port=1)[0]["up"])
                assert client.call("ports.show", port=2)[0]["up"]
        assert pinged(network.node("h2"), "10.0.1.2", 1) == 0
    finally:
        network.set_link("h1", "s1", up=True)
    assert eventually(lambda: h1.has_carrier(0))
    for address in HOST_2:
        assert eventually(lambda address=address: pinged(h1, address, 1) == 1), address  # type: ignore[misc]
    assert before == (h1.output("ip", "-o", "address", "show", "scope", "global"), h1.output("ip", "route"))


def test_a_fault_is_one_way_and_goes_again(network: live.Network) -> None:
    s1, h2 = network.node("s1"), network.node("h2")
    if not s1.control and not faults.has_netem():
        with pytest.raises(live.LiveError, match="s1:2 -> h2:0: this kernel has no netem and no end is a softswitch"):
            faults.set_fault(network, "s1", "h2", faults.parse(["loss=100%"]))
        return
    said = faults.set_fault(network, "s1", "h2", faults.parse(["loss=100%"]))
    assert said == [f"s1:2 -> h2:0: loss 1.0 by {'softswitch' if s1.control else 'netem at'} s1"]
    assert pinged(network.node("h1"), HOST_2[0], 1) == 0
    assert pinged(h2, "10.0.1.2", 1) == 0, "the answer is lost"
    faults.clear_fault(network, "s1", "h2")
    assert pinged(h2, "10.0.1.2") == 3


def test_a_slow_shallow_queue_drops(network: live.Network) -> None:
    """One packet a second from a queue of two: of ten at once, at most four are through within a second."""
    h1, s1 = network.node("h1"), network.node("s1")
    set_queues(s1, 2, QueueSettings(rate_pps=1, depth_packets=2))
    try:
        assert 1 <= pinged(h1, HOST_2[0], 10) <= 4
    finally:
        set_queues(s1, 2, QueueSettings(rate_pps=0, depth_packets=64))
    assert eventually(lambda: pinged(h1, HOST_2[0], 1) == 1)


@pytest.mark.bmv2
def test_queues_of_bmv2_are_set_while_it_starts() -> None:
    """Its Thrift service, which sets them, comes up after P4Runtime, on which it says that it is ready."""
    for _ in range(5):
        with running(single_switch(2), Settings(Target.BMV2, queues=QueueSettings(rate_pps=1000, depth_packets=32))):
            pass


def start(*arguments: str) -> subprocess.Popen[str]:
    """``python -m mininet_topos single-switch`` with a command that says which run it is, and waits for a line."""
    script = "echo $POLYPLANE_RUN; read line; exit 7"
    words = [sys.executable, "-m", "mininet_topos", "single-switch", *arguments, "--exec", script]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_of(process: subprocess.Popen[str]) -> runs.Run:
    assert process.stdout is not None
    return runs.Run(process.stdout.readline().strip())


def is_gone(run: runs.Run) -> bool:
    return not run.folder.exists() and run.processes() == []


def test_two_runs_at_once_do_not_meet() -> None:
    """Same names, same device ids, same ports; one is programmed and ends, the other stays."""
    with start("--target", "softswitch") as first, start("--target", "auto") as second:
        runs_of_both = run_of(first), run_of(second)
        networks = [live.load(run.name) for run in runs_of_both]
        program_router(networks[0].node("s1").grpc, 2)
        assert pinged(networks[0].node("h1"), HOST_2[0]) == 3
        assert pinged(networks[1].node("h1"), HOST_2[0], 1) == 0
        with pytest.raises(live.LiveError, match=r"say which with --run; runs are .*, .*"):
            live.load()
        first.communicate("\n", PATIENCE_S)
        assert (first.returncode, is_gone(runs_of_both[0])) == (7, True)
        program_router(networks[1].node("s1").grpc, 2)
        assert pinged(networks[1].node("h1"), HOST_2[0]) == 3
        second.communicate("\n", PATIENCE_S)
        assert (second.returncode, is_gone(runs_of_both[1])) == (7, True)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_all_of_it(number: signal.Signals, status: int) -> None:
    with start("--hosts", "1", "--target", "softswitch") as process:
        run = run_of(process)
        assert len(run.processes()) >= 3  # two nodes' shells and the switch
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, is_gone(run)) == (status, True)


def namespace(pid: int) -> str:
    """Which network namespace a process is in; empty where it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_killed_run_left_is_cleaned_and_nothing_else(target: str, root: Path) -> None:
    with start("--target", target) as other, start("--target", target) as killed:
        spared, run = run_of(other), run_of(killed)
        namespaces = {namespace(node.pid) for node in live.load(run.name).nodes.values()}
        assert len(namespaces) == 3
        killed.kill()
        killed.wait(PATIENCE_S)
        assert run in runs.leftovers() and spared not in runs.leftovers()
        done = subprocess.run([root / "scripts/clean"], capture_output=True, text=True, check=True)
        assert re.search(rf"^{run.name}: \d+ processes ended, {run.folder} removed$", done.stdout, re.MULTILINE)
        assert is_gone(run)
        assert not namespaces & {namespace(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
        assert live.load(spared.name).node("s1").output("ip", "link")
        other.communicate("\n", PATIENCE_S)
        assert other.returncode == 7


class _BrokenNet(Exception):
    pass


def test_an_error_in_the_middle_leaves_nothing() -> None:
    def fail(net: FabricNet) -> None:
        raise _BrokenNet(net.run_of.name)

    with pytest.raises(_BrokenNet) as failure, running(single_switch(1), Settings(Target.SOFTSWITCH)) as net:
        fail(net)
    assert is_gone(runs.Run(str(failure.value)))


def test_a_switch_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from mininet_topos import targets
    from mininet_topos.errors import NodeError

    before = runs.all_runs()
    monkeypatch.setattr(targets, "PRIORITIES", 99)
    with pytest.raises(
        NodeError, match=r"s1 \(softswitch\) does not start; the end of .*/s1\.log:\n.*--priority-queues"
    ):
        _start_and_stop(single_switch(1))
    assert runs.all_runs() == before


def test_a_machine_without_namespaces_is_told_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "mnexec"
    fake.write_text("#!/bin/sh\necho 'unshare: Operation not permitted' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(TopologyError, match=r"no network namespaces here: mnexec says .unshare: Operation not"):
        _start_and_stop(single_switch(1))


def _start_and_stop(topology: Topology) -> None:
    with running(topology, Settings(Target.SOFTSWITCH)):
        pass
