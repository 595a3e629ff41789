"""A running network, seen from anywhere on the machine: what ``network.json`` in the folder of its run says.

Nothing here needs Mininet: nodes are network namespaces, known by a process in each.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mininet_topos import runs
from mininet_topos.namespace import inside
from mininet_topos.thrift import SimpleSwitchClient, ThriftError
from mininet_topos.topology import End, Link

FILE = "network.json"


class LiveError(Exception):
    """Something asked of a running network that it cannot do; the message names what it has."""


def cable(port: int) -> str:
    """The interface below that of a port of BMv2, which would wait for ever for packets of one that is down."""
    return f"cable{port}"


@dataclass(frozen=True, slots=True)
class Node:
    """A switch, NIC or host. The last five say how to reach a device; a host has none of them."""

    name: str
    kind: str  # a Role, or "host"
    pid: int  # of a process in its namespace
    interfaces: dict[int, str]  # by port number
    target: str = ""  # softswitch or bmv2
    device_id: int = 0
    grpc: str = ""  # address of P4Runtime
    control: str = ""  # the softswitch's control socket
    thrift_port: int = 0  # BMv2's, inside the namespace

    @property
    def is_host(self) -> bool:
        return self.kind == "host"

    def run(self, command: Sequence[str]) -> int:
        """Run a command in the node's namespace with our standard streams; its exit status. Raises OSError."""
        with inside(self.pid):
            process = subprocess.Popen(command)
        return process.wait()

    def output(self, *command: str) -> str:
        """What a command in the node's namespace prints. Raises LiveError with its complaint where it fails."""
        with inside(self.pid):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LiveError(f"{self.name}: {' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    @contextmanager
    def thrift(self) -> Iterator[SimpleSwitchClient]:
        """BMv2's Thrift service. Raises LiveError for what it refuses."""
        try:
            with inside(self.pid):
                client = SimpleSwitchClient(self.thrift_port)
            with client:
                yield client
        except ThriftError as error:
            raise LiveError(f"{self.name}: {error}") from error

    def set_port(self, port: int, up: bool) -> None:
        """Plugs the cable of a port in, or pulls it: administratively up or down at this end. Raises LiveError."""
        self.output("ip", "link", "set", "dev", self._cable(port), "up" if up else "down")

    def has_carrier(self, port: int) -> bool:
        """Whether the cable of a port is plugged in at both ends."""
        (link,) = json.loads(self.output("ip", "-j", "link", "show", "dev", self._cable(port)))
        return "LOWER_UP" in link["flags"]

    def _cable(self, port: int) -> str:
        return cable(port) if self.thrift_port else self.interfaces[port]


@dataclass(frozen=True)
class Network:
    """A running network."""

    run: str
    topology: str
    nodes: dict[str, Node]
    links: tuple[Link, ...]

    def save(self) -> None:
        """Writes ``network.json``; readers see all of it or nothing."""
        path = runs.Run(self.run).folder / FILE
        unfinished = path.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(self), indent=2) + "\n")
        unfinished.rename(path)

    def node(self, name: str) -> Node:
        """A node by its name. Raises LiveError."""
        if name not in self.nodes:
            raise LiveError(f"no node {name!r}; nodes are {', '.join(self.nodes)}")
        return self.nodes[name]

    def links_between(self, a: str, b: str) -> list[Link]:
        """The links that join two nodes. Raises LiveError where there is none."""
        self.node(b)
        found = [link for link in self.links if {link.a.node, link.b.node} == {self.node(a).name, b}]
        if not found:
            neighbours = [link.other(a).node for link in self.links if a in (link.a.node, link.b.node)]
            raise LiveError(f"no link joins {a} and {b}; {a} is joined to {', '.join(neighbours)}")
        return found

    def interface(self, end: End) -> str:
        """The interface behind a link's end."""
        return self.nodes[end.node].interfaces[end.port]

    def set_link(self, a: str, b: str, up: bool) -> None:
        """Plugs the cables between two nodes in, or pulls them: both ends lose their carrier. Raises LiveError.

        What goes administratively down is an end at a device, never a host's: a host keeps its addresses and routes.
        """
        for link in self.links_between(a, b):
            end = link.b if self.nodes[link.a.node].is_host else link.a
            self.nodes[end.node].set_port(end.port, up)


def load(name: str | None = None) -> Network:
    """The network of a run; without a name, the run that this process was started in, or else the only one there is.

    Raises LiveError where there is none, or where it takes a name to tell which.
    """
    name = name or os.environ.get(runs.MARK)
    running = [run.name for run in runs.all_runs() if run.alive and (run.folder / FILE).exists()]
    if name is None and len(running) == 1:
        name = running[0]
    if name not in running:
        wanted = f"run {name!r} is not running" if name else "say which with --run"
        raise LiveError(f"{wanted}; runs are {', '.join(running)}" if running else "no network is running")
    return _parse(json.loads((runs.Run(name).folder / FILE).read_text()))


def _parse(data: dict[str, Any]) -> Network:
    nodes = {
        name: Node(**node | {"interfaces": {int(port): ifname for port, ifname in node["interfaces"].items()}})
        for name, node in data["nodes"].items()
    }
    links = tuple(Link(End(**link["a"]), End(**link["b"])) for link in data["links"])
    return Network(data["run"], data["topology"], nodes, links)


def show(run: runs.Run) -> str:
    """One line about a run: name, owner, topology."""
    path = run.folder / FILE
    what = json.loads(path.read_text())["topology"] if path.exists() else "starting"
    return f"{run.name}  {what if run.alive else 'leftover'}  {Path(run.folder)}"
