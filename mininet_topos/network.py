"""A topology as a running Mininet."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from mininet.link import Link as MininetLink
from mininet.log import error, info, output
from mininet.net import Mininet

from mininet_topos import iperf, live, runs
from mininet_topos.nodes import FabricHost, FabricIntf, P4Switch, SmartNic
from mininet_topos.queues import NO_SETTINGS, QueueSettings
from mininet_topos.targets import DEFAULT_HEARTBEAT_US, Target
from mininet_topos.topology import Device, Role, Topology, TopologyError, mac_text
from softswitch import bmv2_json
from softswitch.codegen import generate
from softswitch.toolchain import Build, compile_program

PROGRAMS = Path(__file__).resolve().parent.parent / "p4src/build"

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a topology is run. ``heartbeat_us`` None: what suits the targets; ``nic_target`` None: as the switches."""

    target: Target
    heartbeat_us: int | None = None
    queues: QueueSettings = NO_SETTINGS
    nic_target: Target | None = None

    @property
    def interval_us(self) -> int:
        """Microseconds between the heartbeats of a port."""
        return self.heartbeat_us or max(DEFAULT_HEARTBEAT_US[self.target_of(role)] for role in (Role.PLANE, Role.NIC))

    def target_of(self, role: Role) -> Target:
        """What runs a device of that role."""
        return self.nic_target if role is Role.NIC and self.nic_target else self.target


class FabricNet(Mininet):
    """Mininet with a topology's nodes and links; ``start`` returns when every switch serves P4Runtime."""

    def __init__(self, topology: Topology, settings: Settings, run: runs.Run) -> None:
        self.topology, self.settings, self.run_of = topology, settings, run
        super().__init__(controller=None, link=MininetLink, intf=FabricIntf, build=False)

    def build(self) -> None:
        """Makes nodes and links and gives hosts their addresses."""
        for host in self.topology.hosts:
            self.addHost(host.name, cls=FabricHost, plan=host, run=self.run_of)
        for device in self.topology.devices:
            self._add_device(device)
        macs = {host.name: host.mac for host in self.topology.hosts}
        ids = {device.name: device.device_id for device in self.topology.devices}
        for link in self.topology.links:
            addresses = [
                macs.get(end.node) or mac_text(0x020100000000 | ids[end.node] << 8 | end.port)
                for end in (link.a, link.b)
            ]
            self.addLink(link.a.node, link.b.node, link.a.port, link.b.port, addr1=addresses[0], addr2=addresses[1])
        self.configHosts()
        self.built = True

    def _add_device(self, device: Device) -> None:
        self.addSwitch(
            device.name,
            cls=SmartNic if device.role is Role.NIC else P4Switch,
            run=self.run_of,
            device=device,
            target=self.settings.target_of(device.role),
            timer_ports=self.topology.timer_ports(device.name),
            heartbeat_us=self.settings.interval_us,
            queues=self.settings.queues,
        )

    def addSwitch(self, name: str, cls: type[P4Switch] = P4Switch, **params: Any) -> P4Switch:
        """Mininet's own also passes options of OpenFlow switches."""
        switch = cls(name, **params)
        self.switches.append(switch)
        self.nameToNode[name] = switch
        return switch

    def start(self) -> None:
        """Builds, starts all switches at once, waits for all, and publishes ``network.json``."""
        if not self.built:
            self.build()
        for switch in self.switches:
            switch.launch()
        if any(switch.target is Target.SOFTSWITCH for switch in self.switches):
            _compile_programs()
        for switch in self.switches:
            switch.wait_ready()
        self.live().save()

    def live(self) -> live.Network:
        """The same network as others on this machine see it."""
        nodes = {node.name: node.live() for node in (*self.switches, *self.hosts)}
        return live.Network(self.run_of.name, self.topology.name, nodes, self.topology.links)

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Mininet's ``link SRC DST up|down``; an unknown name is said, not raised."""
        try:
            self.live().set_link(src, dst, status == "up")
        except live.LiveError as problem:
            error(f"{problem}\n")

    def iperf(
        self,
        hosts: Sequence[FabricHost] | None = None,
        l4Type: str = "TCP",
        udpBw: str = "10M",
        seconds: int = 5,
        port: int = 5001,
    ) -> list[str]:
        """Mininet's ``iperf`` and ``iperfudp``; what goes wrong is said, not raised."""
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
        options = ["-p", str(port), *(["-u", "-b", udpBw] if l4Type == "UDP" else [])]
        try:
            rates = iperf.measure(self.run_of, client.live(), server.live(), server.IP(), seconds, options)
        except live.LiveError as problem:
            error(f"{problem}\n")
            return []
        result = [udpBw, *rates] if l4Type == "UDP" else rates
        output(f"*** Results: {result}\n")
        return result

    def stop(self) -> None:
        """Ends switches and hosts. Whatever else they started is the run's to remove."""
        for switch in self.switches:
            for process in switch.processes:
                process.terminate()  # all at once, then one after the other
        for switch in self.switches:
            switch.stop()
        for node in (*self.switches, *self.hosts):
            node.terminate()


@contextmanager
def running(topology: Topology, settings: Settings) -> Iterator[FabricNet]:
    """The network, up; gone when the context is left, however that happens: return, error, Ctrl-C, SIGTERM, SIGHUP.

    Removes what killed runs left. Raises TopologyError, NodeError, LiveError.
    """
    _check_machine()
    for leftover in runs.leftovers():
        ended = leftover.remove()
        info(f"*** Removed what the killed run {leftover.name} left: {len(ended)} processes\n")
    with ExitStack() as cleanup:
        for number in _ENDING_SIGNALS:
            cleanup.callback(signal.signal, number, signal.signal(number, _end))
        run = runs.begin()
        cleanup.callback(run.remove)
        net = FabricNet(topology, settings, run)
        cleanup.callback(_undisturbed, net)
        net.start()
        yield net


def _check_machine() -> None:
    if os.geteuid() != 0:
        raise TopologyError("Mininet needs root")
    for command, package in (("mnexec", "mininet"), ("ifconfig", "net-tools"), ("ethtool", "ethtool")):
        if shutil.which(command) is None:
            raise TopologyError(f"no {command!r} on PATH; on Debian: apt install --no-install-recommends {package}")
    # Mininet waits for ever for a node whose namespace cannot be made, as in a container without the right to
    probe = subprocess.run(["mnexec", "-n", "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        raise TopologyError(f"no network namespaces here: mnexec says {probe.stderr.strip()!r}")


def _compile_programs() -> None:
    """Fills the softswitch's cache: otherwise all switches compile at once what the controller gives them first."""
    for name in ("fabric", "smartnic"):
        program = bmv2_json.load(PROGRAMS / f"{name}.json")
        compile_program(generate(program), Build())


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _undisturbed(net: FabricNet) -> None:
    """Stops the network; a second Ctrl-C does not leave half of it behind."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *_ENDING_SIGNALS)}
    try:
        net.stop()
        net.run_of.remove()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_command(net: FabricNet, command: str) -> int:
    """Runs a shell command in the root namespace with the network up; its exit status.

    It finds the network by the environment: POLYPLANE_RUN, which ``mininet_topos.live`` and its commands use.
    """
    process = subprocess.Popen(command, shell=True, env=net.run_of.environment())
    try:
        return process.wait()
    except BaseException:
        process.terminate()
        raise
