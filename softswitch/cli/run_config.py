"""What ``softswitch run`` was asked for, checked before anything is started."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import BadParameter

from softswitch.device import Fault, QueueConfig, Watch

from . import units
from .errors import UsageError

if TYPE_CHECKING:
    from softswitch.p4runtime import Tls  # which takes a while to import: gRPC

MAX_PRIORITIES = 8
MAX_PKTGENS = 64


@dataclass(frozen=True, slots=True)
class Interface:
    """A port and the network interface behind it."""

    port: int
    ifname: str

    def __str__(self) -> str:
        return f"{self.port}@{self.ifname}"


@dataclass(frozen=True, slots=True)
class PktgenOption:
    """A packet that arrives on a port every ``interval_ns``."""

    port: int
    interval_ns: int
    template: bytes
    watch: Watch | None = None


@dataclass(frozen=True, slots=True)
class QueueOption:
    """Settings of one port's queues (``port`` None: of every port; ``priority`` None: of every queue)."""

    port: int | None
    priority: int | None
    config: QueueConfig
    port_rate_bps: int | None


@dataclass(frozen=True, slots=True)
class FaultOption:
    """Faults of one port (None: of every port) in the directions given."""

    port: int | None
    directions: tuple[str, ...]
    fault: Fault


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A checked command line."""

    program: Path | None
    p4info: Path | None
    interfaces: tuple[Interface, ...]
    device_id: int
    grpc_address: str
    tls: Tls | None
    cpu_port: int | None
    drop_port: int
    priorities: int
    seed: int
    pcap: Path | None
    keep_c: Path | None
    control: Path
    pktgens: tuple[PktgenOption, ...]
    queues: tuple[QueueOption, ...]
    faults: tuple[FaultOption, ...]


def parse_interface(text: str) -> Interface:
    """``1@veth1``"""
    port, at, ifname = text.partition("@")
    if not at or not ifname or len(ifname) > 15:
        raise BadParameter(f"{text!r} is not PORT@INTERFACE, such as 1@veth1")
    return Interface(units.port_number(port), ifname)


def parse_address(text: str) -> str:
    """``127.0.0.1:9559``, ``[::1]:9559`` or ``unix:/run/switch.sock``"""
    host, _, port = text.rpartition(":")
    path = text.startswith("unix:") and text != "unix:"
    if not path and not (re.fullmatch(r"[^:\[\]\s]+|\[[^\[\]\s]+\]", host) and units.index(port, 1 << 16) is not None):
        raise BadParameter(f"{text!r} is not HOST:PORT with a port from 0 to 65535, nor unix:PATH")
    return text


def parse_pktgen(text: str) -> PktgenOption:
    """``PORT,INTERVAL,HEX[,WATCHED@OFFSET]``: ``1,10us,0011...`` or ``1,10us,0011...,5@16``"""
    parts = text.split(",")
    if len(parts) not in (3, 4):
        raise BadParameter(f"{text!r} is not PORT,INTERVAL,HEX[,WATCHED@OFFSET], such as 1,10us,ffffffffffff...")
    interval = units.duration_ns(parts[1])
    if interval == 0:
        raise BadParameter(f"{text!r}: the interval must not be 0")
    template = units.packet(parts[2])
    watch = parse_watch(parts[3], len(template)) if len(parts) == 4 else None
    return PktgenOption(units.port_number(parts[0]), interval, template, watch)


def parse_watch(text: str, size: int) -> Watch:
    """``PORT@OFFSET``, of a packet of that size: ``5@16``"""
    port, at, offset = text.partition("@")
    if not at or units.index(offset, size) is None:
        raise BadParameter(f"{text!r} is not a watched PORT@OFFSET with an offset from 0 to {size - 1}, such as 5@16")
    return Watch(units.port_number(port), int(offset))


def parse_queue(text: str) -> QueueOption:
    """``PORT[/PRIORITY]:NAME=VALUE,...``; PORT may be ``*``."""
    port, priority, values = _settings(text, {"port_rate_bps": units.amount} | _QUEUE_FIELDS)
    if priority and units.index(priority, MAX_PRIORITIES) is None:
        raise BadParameter(f"{text!r}: a priority is 0 to {MAX_PRIORITIES - 1}, not {priority!r}")
    port_rate = values.pop("port_rate_bps", None)
    return QueueOption(port, int(priority) if priority else None, QueueConfig(**values), port_rate)


def parse_fault(text: str) -> FaultOption:
    """``PORT[/rx|/tx]:NAME=VALUE,...``; PORT may be ``*``."""
    port, direction, values = _settings(text, _FAULT_FIELDS)
    if direction not in ("", "rx", "tx"):
        raise BadParameter(f"{text!r}: a direction is rx or tx, not {direction!r}")
    for name in ("delay", "jitter"):
        if name in values:
            values[name + "_ns"] = values.pop(name)
    return FaultOption(port, (direction,) if direction else ("rx", "tx"), Fault(**values))


_QUEUE_FIELDS: dict[str, Callable[[str], Any]] = {field.name: units.amount for field in dataclasses.fields(QueueConfig)}
_FAULT_FIELDS: dict[str, Callable[[str], Any]] = {
    "loss": units.probability,
    "burst_enter": units.probability,
    "burst_exit": units.probability,
    "corrupt": units.probability,
    "duplicate": units.probability,
    "delay": units.duration_ns,
    "jitter": units.duration_ns,
    "rate_bps": units.amount,
}


def _settings(text: str, known: dict[str, Callable[[str], Any]]) -> tuple[int | None, str, dict[str, Any]]:
    """Splits ``PORT[/PART]:NAME=VALUE,...`` into the port (None for ``*``), the part and the values."""
    where, colon, settings = text.partition(":")
    port, _, part = where.partition("/")
    values: dict[str, Any] = {}
    for setting in settings.split(","):
        name, _, value = setting.partition("=")
        if not colon or name not in known:
            raise BadParameter(f"{text!r}: expected PORT:NAME=VALUE,... with NAME one of {', '.join(known)}")
        values[name] = known[name](value)
    return None if port == "*" else units.port_number(port), part, values


def check(config: RunConfig) -> RunConfig:
    """The same configuration. Raises UsageError where its parts do not fit together."""
    ports = [interface.port for interface in config.interfaces]
    repeated = {port for port in ports if ports.count(port) > 1}
    if repeated:
        raise UsageError(f"port {min(repeated)} is given two interfaces")
    owners: dict[str, int] = {}
    for interface in config.interfaces:
        owner = owners.setdefault(interface.ifname, interface.port)
        if owner != interface.port:
            raise UsageError(f"interface {interface.ifname!r} is given to ports {owner} and {interface.port}")
    if config.cpu_port in (0, config.drop_port):
        raise UsageError(f"--cpu-port must be neither 0 nor the drop port {config.drop_port}")
    for what, reserved in (("CPU", config.cpu_port), ("drop", config.drop_port)):
        if reserved in ports:
            raise UsageError(f"port {reserved} is the {what} port and cannot have an interface")
    _check_named_ports(config, set(ports))
    return config


def _check_named_ports(config: RunConfig, ports: set[int]) -> None:
    known = ", ".join(map(str, sorted(ports))) or "none"
    options: Sequence[QueueOption | FaultOption] = (*config.queues, *config.faults)
    for option in options:
        if option.port is not None and option.port not in ports:
            raise UsageError(f"no interface is given for port {option.port}; ports are {known}")
    for queue in config.queues:
        if queue.priority is not None and queue.priority >= config.priorities:
            raise UsageError(f"priority {queue.priority} needs --priority-queues {queue.priority + 1} or more")
