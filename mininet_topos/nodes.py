"""Mininet's nodes: a P4 switch on either target, a SmartNIC, a host. Each has a network namespace of its own."""

from __future__ import annotations

import subprocess
import threading
from subprocess import DEVNULL, PIPE
from typing import Any

from mininet.link import Intf
from mininet.node import Host, Node, Switch

from mininet_topos import live, topology
from mininet_topos.errors import NodeError
from mininet_topos.namespace import inside
from mininet_topos.queues import QueueSettings, set_queues
from mininet_topos.runs import Run
from mininet_topos.targets import THRIFT_PORT, TIMER_WIRE, Process, Target
from mininet_topos.thrift import ThriftError, wait_until_served
from mininet_topos.topology import Device

START_S = 60.0  # the softswitch may have a library to compile first, on a busy machine
STOP_S = 5.0

_OFFLOADS = "rx off tx off sg off tso off gso off gro off"


class FabricIntf(Intf):
    """An interface whose frames are what they would be on a wire: every checksum computed, none longer than the MTU."""

    def config(self, **_: Any) -> dict[str, Any]:
        lines = [f"ethtool -K {self.name} {_OFFLOADS} >/dev/null"]
        if isinstance(self.node, P4Switch) and self.node.target is Target.BMV2:
            below = live.cable(self.node.ports[self])
            lines += [
                f"ip link set dev {self.name} name {below}",
                f"ip link set dev {below} up",
                f"ip link add link {below} name {self.name} type macvlan mode passthru",
            ]
        self.node.script(*lines, f"ip link set dev {self.name} up")
        return {}


class _Marked(Node):
    """All that a node starts carries the mark of its run."""

    def __init__(self, name: str, run: Run, **params: Any) -> None:
        self.run = run
        super().__init__(name, inNamespace=True, **params)

    def _popen(self, cmd: list[str], **params: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = super()._popen(cmd, **({"env": self.run.environment()} | params))
        return process

    def script(self, *lines: str) -> None:
        """Runs shell commands in the namespace. Raises NodeError with what they say where one fails."""
        _, errors, status = self.pexec("sh", "-ec", "\n".join(lines))
        if status:
            raise NodeError(f"{self.name}: {errors.strip()}")


class FabricHost(_Marked, Host):
    """A host with an IPv4 and an IPv6 address, which it keeps when its link goes down and comes back."""

    def __init__(self, name: str, plan: topology.Host, **params: Any) -> None:
        self.plan = plan
        super().__init__(name, **params)

    def config(self, **_: Any) -> dict[str, Any]:
        plan, ifname = self.plan, str(self.intf())
        gateway4, gateway6 = plan.gateways
        sysctl = f"/proc/sys/net/ipv6/conf/{ifname}"
        lines = [
            "ip link set dev lo up",
            f"echo 1 >{sysctl}/keep_addr_on_down",
            f"echo 0 >{sysctl}/accept_ra",
            f"ip address replace {plan.ipv4} dev {ifname}",
            f"ip address replace {plan.ipv6} dev {ifname} nodad",
        ]
        if plan.gateway_mac is not None:
            for gateway in plan.gateways:
                lines.append(f"ip neigh replace {gateway} lladdr {plan.gateway_mac} dev {ifname} nud permanent")
        lines += [
            f"ip route replace default via {gateway4} dev {ifname}",
            f"ip -6 route replace default via {gateway6} dev {ifname}",
        ]
        self.script(*lines)
        self.intf().ip, self.intf().prefixLen = str(plan.ipv4.ip), plan.ipv4.network.prefixlen
        return {}

    def live(self) -> live.Node:
        """How this node is reached."""
        return live.Node(self.name, "host", self.pid, {0: str(self.intf())})


class P4Switch(_Marked, Switch):
    """A P4Runtime switch: one process of its target in its namespace, and beside BMv2 one that sends timer packets."""

    controlIntf = None  # Mininet has one for switches in the root namespace only

    def __init__(
        self,
        name: str,
        device: Device,
        target: Target,
        timer_ports: tuple[int, ...],
        heartbeat_us: int,
        queues: QueueSettings,
        **params: Any,
    ) -> None:
        self.device, self.target, self.queues = device, target, queues
        self.timers = (timer_ports, heartbeat_us)
        self.processes: list[subprocess.Popen[bytes]] = []
        self._announced = threading.Event()
        self._is_ready = False
        super().__init__(name, dpid=f"{device.device_id:x}", **params)
        # the kernel of a switch says nothing of its own on the wires
        self.script(
            "for each in all default; do echo 1 >/proc/sys/net/ipv6/conf/$each/disable_ipv6; done",
            "ip link set dev lo up",  # for Thrift
        )
        if target is Target.BMV2 and timer_ports:
            outside, within = TIMER_WIRE
            self.script(
                f"ip link add {outside} type veth peer name {within}",
                f"ip link set dev {outside} up",
                f"ip link set dev {within} up",
            )

    @property
    def process(self) -> Process:
        """What its process is started with."""
        ports = {port: str(intf) for port, intf in sorted(self.intfs.items())}
        return Process(self.name, self.device.device_id, ports, *self.timers, self.run.folder)

    def launch(self) -> None:
        """Starts the process without waiting for it; ``wait_ready`` does that."""
        self._announced.clear()
        self._is_ready = False
        log = self.process.log.open("ab", buffering=0)
        command = self.process.command(self.target)
        self.processes = [self.popen(command, stdin=DEVNULL, stdout=PIPE, stderr=log)]
        threading.Thread(target=self._follow, args=(self.processes[0], log), daemon=True).start()

    def wait_ready(self) -> None:
        """Returns once P4Runtime is served and the queues are set. Raises NodeError with the log where it is not."""
        if not self._announced.wait(START_S) or not self._is_ready:
            raise self._not_started()
        if self.target is Target.BMV2:
            try:
                with inside(self.pid):
                    wait_until_served(THRIFT_PORT, START_S, lambda: self.died() is None)
            except ThriftError as error:
                raise self._not_started(f" ({error})") from error
        if not self.queues.changes_nothing:
            for port in self.intfs:
                set_queues(self.live(), port, self.queues)
        if self.target is Target.BMV2 and self.timers[0]:
            with self.process.log.open("ab") as log:
                sender = self.popen(self.process.timer_command(), stdin=DEVNULL, stdout=log, stderr=log)
            self.processes.append(sender)

    def _not_started(self, why: str = "") -> NodeError:
        said = "\n".join(self.process.log.read_text(errors="replace").splitlines()[-20:])
        return NodeError(f"{self.name} ({self.target}) does not start{why}; the end of {self.process.log}:\n{said}")

    def start(self, controllers: list[Any]) -> None:
        """As Mininet's ``switch NAME start`` has it."""
        self.launch()
        self.wait_ready()

    def stop(self, deleteIntfs: bool = False) -> None:
        """Ends the processes; the interfaces go with the namespace."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []

    def died(self) -> str | None:
        """What to tell a user about a process that ended by itself; None while all is well."""
        for process in self.processes:
            if process.poll() is not None:
                return f"{self.name} ended with status {process.returncode}; its log is {self.process.log}"
        return None

    def live(self) -> live.Node:
        """How this node is reached."""
        process, is_soft = self.process, self.target is Target.SOFTSWITCH
        return live.Node(
            name=self.name,
            kind=self.device.role,
            pid=self.pid,
            interfaces=dict(process.ports),
            target=self.target,
            device_id=self.device.device_id,
            grpc=process.grpc,
            control=str(process.control) if is_soft else "",
            thrift_port=0 if is_soft else THRIFT_PORT,
        )

    def _follow(self, process: subprocess.Popen[bytes], log: Any) -> None:
        """Copies what the process prints to its log, and notes the line that says that it is ready."""
        assert process.stdout is not None
        with log, process.stdout as lines:
            for line in lines:
                log.write(line)
                if self.target.ready.search(line):
                    self._is_ready = True
                    self._announced.set()
        self._announced.set()


class SmartNic(P4Switch):
    """A host's NIC as a P4Runtime device of its own: plane k on port k, the host on port 9."""
