"""A fabric in Mininet under ``polyplane up``, and the command beside it: what tests of failures on either target share.

Three hosts with SmartNICs on two planes. ``polyplane up`` runs as a process and prints its events, which are what tests
wait for; every other command runs in this process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from controller.api import call
from controller.cli import main
from mininet_topos import faults, live
from mininet_topos.intent import intent, write_intent
from mininet_topos.multiplane import multiplane
from mininet_topos.network import FabricNet, Settings, running
from mininet_topos.targets import Target
from mininet_topos.topology import Topology
from scripts.lib.demo_traffic import Pair, Result, Traffic

PLANES, HOSTS = 2, 3
PATIENCE_S = 30.0
LOOK_S = 0.05  # at what no event tells
HEARTBEAT_US = 50_000
FLOW_PPS = {Target.SOFTSWITCH: 50, Target.BMV2: 20}
DSCP_DATA = 26
# Twelve missed in a row are no accident on a busy machine either; where three of ten are lost, no window is without.
HEALTH = {"missed_limit": 12, "probation": 10, "window": 25, "min_lost": 2}
RELAYED = "p1s1"  # the device whose session can be lost
EVERY_PAIR: tuple[Pair, ...] = tuple((f"h{a}", f"h{b}") for a in (1, 2, 3) for b in (1, 2, 3) if a != b)


class Relay:
    """Between the controller and a device's P4Runtime socket. Cut, it ends every session and lets none come up."""

    def __init__(self, path: Path, device: str) -> None:
        self.path, self._device = path, device.removeprefix("unix:")
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None

    def join(self) -> None:
        """Let sessions through."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """End all sessions."""
        assert self._listener is not None
        self.path.unlink()
        with self._lock:
            for each in (self._listener, *self._open):
                with contextlib.suppress(OSError):  # ended by itself
                    each.shutdown(socket.SHUT_RDWR)
            self._open.clear()
        self._listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return  # cut
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self._device)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass_on(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)
        one.close()


class Up:
    """A ``polyplane up`` process; ``events`` are those that it has printed so far."""

    def __init__(self, fabric: LiveFabric, name: str, election_id: int) -> None:
        self.socket = fabric.folder / f"{name}.sock"
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        words = [sys.executable, "-m", "controller.cli", "-f", str(fabric.intent), "--socket", str(self.socket)]
        words += ["up", "--json", "--memory", str(fabric.memory), "--election-id", str(election_id)]
        environment = fabric.net.run_of.environment()
        self.process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            with self._changed:
                self.events.append(said.get("event", {"kind": "ready", "subject": "", "number": 0}))
                self._changed.notify_all()

    def until(self, condition: Callable[[], bool], what: str = "") -> None:
        """Wait until it holds, looking at every event; for what none tells also a little later."""
        deadline = time.monotonic() + PATIENCE_S
        with self._changed:
            while not condition():
                assert time.monotonic() < deadline and self.process.poll() is None, (what, self.events[-20:])
                self._changed.wait(LOOK_S)

    def kinds(self, subject: str | None = None, since: int = 0) -> list[str]:
        """The kinds of its events, of one subject or of all, after event number ``since``."""
        return [one["kind"] for one in self.events if one["number"] > since and subject in (None, one["subject"])]

    def find(self, kind: str, subject: str, since: int = 0) -> dict[str, Any]:
        """The first event of that kind about that subject, waited for."""

        def found() -> list[dict[str, Any]]:
            wanted = kind, subject
            return [one for one in self.events if one["number"] > since and (one["kind"], one["subject"]) == wanted]

        self.until(lambda: bool(found()), f"{kind} {subject}")
        return found()[0]

    @property
    def last(self) -> int:
        """The number of its last event."""
        return max((event["number"] for event in self.events), default=0)

    def end(self) -> None:
        """As Ctrl-C does."""
        self.process.terminate()
        self.process.wait(PATIENCE_S)


class LiveFabric:
    """The fabric. ``up`` is the controller to ask."""

    def __init__(self, net: FabricNet, planned: Topology, target: Target) -> None:
        self.net, self.network, self.folder = net, net.live(), net.run_of.folder
        self.memory = self.folder / "memory.json"
        self.relay = Relay(self.folder / "relay.grpc", self.network.node(RELAYED).grpc)
        self.relay.join()
        content = intent(planned, self.network, HEARTBEAT_US)
        for plane in content["planes"]:
            for switch in plane["switches"]:
                if switch["name"] == RELAYED:
                    switch["address"] = f"unix:{self.relay.path}"
        content |= {"health": {"heartbeat_us": HEARTBEAT_US} | HEALTH, "damping": {"hold_ms": 100, "max_hold_ms": 400}}
        self.intent = self.folder / "fabric.yaml"
        write_intent(self.intent, content)
        self.flow_pps = FLOW_PPS[target]
        self.up = Up(self, "controller", election_id=10)

    def start(self, name: str, election_id: int = 10) -> Up:
        """Start another controller, the one to ask from now on."""
        self.up = Up(self, name, election_id)
        return self.up

    # ---- the command -----------------------------------------------------------------------------------------------

    def __call__(self, *words: str, code: int = 0) -> str:
        """What ``polyplane`` prints; it must end with that exit code and say nothing else."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            found = main(["-f", str(self.intent), "--socket", str(self.up.socket), *words])
        assert (found, errors.getvalue()) == (code, ""), (words, out.getvalue())
        return out.getvalue()

    def json(self, *words: str, code: int = 0) -> Any:
        """The same with ``--json``."""
        return json.loads(self(*words, "--json", code=code))

    def rows(self, noun: str) -> dict[str, dict[str, Any]]:
        """The rows of ``planes``, ``links`` by name; the text must show every state as the JSON has it."""
        text, rows = self(noun), {row[noun[:-1]]: row for row in self.json(noun)}
        shown = {cells[0]: cells[1:] for line in text.splitlines() if (cells := _cells(line))[0] in rows}
        assert {name: row["state"] in shown[name] for name, row in rows.items()} == dict.fromkeys(rows, True), text
        return rows

    def status(self, code: int) -> dict[str, Any]:
        """``status``; text and JSON must agree, and both end with that exit code."""
        found: dict[str, Any] = self.json("status", code=code)
        text = self("status", code=code)
        assert text.startswith(f"multiplane: {'NOT HEALTHY' if code else 'healthy'}"), text
        for device in found["devices"]:
            (cells,) = [cells for line in text.splitlines() if (cells := _cells(line))[0] == device["device"]]
            assert {device["state"], device["session"]} <= set(cells), text
        return found

    def happened(self, since: int, *kinds: str) -> list[tuple[str, str]]:
        """Kind and subject of the ``events`` of these kinds; the text must tell of each."""
        options = [word for kind in kinds for word in ("--kind", kind)]
        told = [event for event in self.json("events", *options) if event["number"] > since]
        text = self("events", *options)
        assert all(f" {event['kind']} {event['subject']}" in text for event in told), text
        return [(event["kind"], event["subject"]) for event in told]

    def until_well(self) -> None:
        """Every device holds what it should, every link is up; the command says so."""

        def well() -> bool:
            state = self.ask("status")
            return bool(state["healthy"] and state["converged"] and state["links"]["up"] == PLANES * HOSTS)

        self.up.find("session-up", RELAYED)  # it listens before that
        self.up.until(well, "a healthy fabric")
        self.status(0)

    def until_converged(self) -> None:
        """Every device with a session holds what it should."""

        def converged() -> bool:
            devices = [one for one in self.ask("status")["devices"] if one["session"] == "primary"]
            return bool(devices) and all(one["in_sync"] for one in devices)

        self.up.until(converged, "the reaction")

    def ask(self, name: str) -> Any:
        """What the command asks the controller."""
        return call(self.up.socket, name)

    # ---- traffic and faults ----------------------------------------------------------------------------------------

    def lost(self, meanwhile: Callable[[], None], least: int = 120, pairs: tuple[Pair, ...] = EVERY_PAIR) -> Result:
        """Sends between pairs of hosts while that is done, at least so many packets in all; what became of them."""
        with Traffic(self.network, pairs, DSCP_DATA, self.flow_pps) as traffic:
            traffic.begin("test", pairs)
            meanwhile()
            self.up.until(lambda: traffic.totals()[0] >= least, "traffic")
            traffic.begin("end", ())
            (phase,) = traffic.phases
            deadline = time.monotonic() + PATIENCE_S  # what is on its way may arrive
            while traffic.result(phase).lost and time.monotonic() < deadline:
                time.sleep(LOOK_S)
            return traffic.result(phase)

    def lose(self, sender: str, receiver: str, share: float) -> None:
        """Of what one device sends to another, that share is lost; 0 is none."""
        (link,) = self.network.links_between(sender, receiver)
        end = link.at(sender)
        node = self.network.node(sender)
        if node.control or self.network.node(receiver).control or faults.has_netem():
            faults.set_fault(self.network, sender, receiver, faults.Fault(loss=share))
        else:
            _lose_by_filter(node, self.network.interface(end), share)

    def cables(self, plane: str) -> list[tuple[str, str]]:
        """Both ends of every cable of a plane."""
        return [(f"n{host}", f"{plane}s1") for host in range(1, HOSTS + 1)]


def _cells(line: str) -> list[str]:
    """The cells of a table's line."""
    return re.split(" {2,}", line.strip())


def _lose_by_filter(node: live.Node, ifname: str, share: float) -> None:
    """For kernels without netem: a classic BPF program draws, and what it takes is sent where nobody listens."""
    if not share:
        node.output("tc", "qdisc", "del", "dev", ifname, "clsact")
        node.output("ip", "link", "del", "nowhere")
        return
    draw, all_of_it = 0x1_0000_0000 - 0x1000 + 56, 0xFFFF_FFFF  # SKF_AD_OFF + SKF_AD_RANDOM
    program = f"4,32 0 0 {draw},53 0 1 {int(share * all_of_it)},6 0 0 0,6 0 0 {all_of_it}"
    node.output("ip", "link", "add", "nowhere", "type", "veth", "peer", "name", "nobody")
    for each in ("nowhere", "nobody"):
        node.output("ip", "link", "set", "dev", each, "up")
    node.output("tc", "qdisc", "add", "dev", ifname, "clsact")
    action = ["action", "mirred", "egress", "redirect", "dev", "nowhere"]
    node.output("tc", "filter", "add", "dev", ifname, "egress", "bpf", "bytecode", program, *action)


@contextlib.contextmanager
def live_fabric(target: Target, cabled: Topology | None = None) -> Iterator[LiveFabric]:
    """The fabric, up and well; or, with another topology, cabled like that and not waited for."""
    planned = multiplane(PLANES, HOSTS)
    with contextlib.suppress(PermissionError):  # who is not given the processor in time looks dead to its neighbours
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    try:
        with running(cabled or planned, Settings(target, HEARTBEAT_US)) as net:
            fabric = LiveFabric(net, planned, target)
            try:
                if cabled is None:
                    fabric.until_well()
                yield fabric
            finally:
                fabric.up.end()
                fabric.relay.cut()
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)
