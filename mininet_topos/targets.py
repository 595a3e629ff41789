"""The two targets: whether they are here, how each is started, and how each says that it is ready."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mininet_topos.live import cable
from mininet_topos.queues import PRIORITIES
from mininet_topos.timer import IS_DOWN_AT, TIMER_PORT, timer_packet
from mininet_topos.topology import TopologyError

CPU_PORT = 510
THRIFT_PORT = 9090  # each switch has a namespace of its own
TIMER_WIRE = ("timer", "timer-in")  # of BMv2: where the sender sends, where the switch receives

# microseconds between the heartbeats of a port: BMv2 shares two cores with all the others, and must not look dead
DEFAULT_HEARTBEAT_US = {"softswitch": 20_000, "bmv2": 100_000}


class Target(StrEnum):
    """What runs the P4 programs."""

    SOFTSWITCH = "softswitch"
    BMV2 = "bmv2"

    @property
    def ready(self) -> re.Pattern[bytes]:
        """The line that it prints once it serves P4Runtime."""
        return re.compile({"softswitch": rb"ready: ", "bmv2": rb"Server listening on "}[self.value])


def choose_target(name: str) -> Target:
    """``auto`` is BMv2 where it is installed and the softswitch elsewhere. Raises TopologyError."""
    has_bmv2 = shutil.which("simple_switch_grpc") is not None
    if name == "auto":
        return Target.BMV2 if has_bmv2 else Target.SOFTSWITCH
    if name not in tuple(Target):
        raise TopologyError(f"unknown target {name!r}; targets are auto, {', '.join(Target)}")
    if name == Target.BMV2 and not has_bmv2:
        raise TopologyError("target bmv2 needs simple_switch_grpc on PATH")
    return Target(name)


@dataclass(frozen=True, slots=True)
class Process:
    """What a switch process is started with."""

    name: str
    device_id: int
    ports: Mapping[int, str]  # interfaces by port number
    timer_ports: tuple[int, ...]
    heartbeat_us: int
    folder: Path  # for its sockets and its log

    @property
    def grpc(self) -> str:
        """Where it serves P4Runtime: a Unix socket, which is the same in every namespace."""
        return f"unix:{self.folder}/{self.name}.grpc"

    @property
    def control(self) -> Path:
        """The softswitch's control socket."""
        return self.folder / f"{self.name}.control"

    @property
    def log(self) -> Path:
        """All that it prints."""
        return self.folder / f"{self.name}.log"

    def command(self, target: Target) -> list[str]:
        """The command line. The pipeline comes later, from the controller."""
        ports = dict(self.ports)
        if target is Target.BMV2 and self.timer_ports:
            ports[TIMER_PORT] = TIMER_WIRE[1]
        interfaces = [word for port, ifname in ports.items() for word in ("-i", f"{port}@{ifname}")]
        common = ["--no-p4", "--device-id", str(self.device_id), *interfaces]
        served = ["--grpc-server-addr", self.grpc, "--cpu-port", str(CPU_PORT), "--priority-queues", str(PRIORITIES)]
        if target is Target.SOFTSWITCH:
            own = ["--control", str(self.control), "-L", "warn", *self._generators()]
            return [sys.executable, "-m", "softswitch", "run", *common, *served, *own]
        # unless it is told to, it keeps what it prints until it ends
        own = ["--thrift-port", str(THRIFT_PORT), "--log-console", "-L", "warn"]
        return ["stdbuf", "-oL", "simple_switch_grpc", *common, *own, "--", *served]

    def timer_command(self) -> list[str]:
        """The sender of timer packets that runs beside BMv2."""
        ports = [f"{port}@{cable(port)}" for port in self.timer_ports]
        return [sys.executable, "-m", "mininet_topos.timer", TIMER_WIRE[0], str(self.heartbeat_us), *ports]

    def _generators(self) -> list[str]:
        every = f"{TIMER_PORT},{self.heartbeat_us}us"
        packets = {port: timer_packet(port).hex() for port in self.timer_ports}
        return [w for port, packet in packets.items() for w in ("--pktgen", f"{every},{packet},{port}@{IS_DOWN_AT}")]
