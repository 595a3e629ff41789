"""What can be asked of a running switch over its control socket.

Each call checks its arguments, does one thing to the switch and returns JSON values. Names of arguments and results are
those of the dataclasses in ``softswitch.device``: rates in bits or packets a second, times in nanoseconds, depths in
packets or bytes, probabilities from 0 to 1.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from softswitch.device import DeviceError, Fault, QueueConfig, Watch

MAX_PORT = 511
MAX_PKTGEN = 63
DIRECTIONS = ("rx", "tx")


class ControlError(Exception):
    """A refused request; the message names what was wrong with it and what would be right."""


class Controlled(Protocol):
    """The part of a Switch that the control socket uses."""

    @property
    def priorities(self) -> int: ...
    def ports(self) -> list[int]: ...
    def port_info(self, port: int) -> Any: ...
    def port_add(self, port: int, ifname: str = "") -> None: ...
    def port_remove(self, port: int) -> None: ...
    def port_set_up(self, port: int, up: bool) -> None: ...
    def pcap(self, port: int, path: str | None) -> None: ...
    def queue(self, port: int, priority: int = 0) -> QueueConfig: ...
    def queue_set(self, port: int, config: QueueConfig, priority: int | None = None) -> None: ...
    def queue_stats(self, port: int, priority: int = 0, *, clear_max: bool = False) -> Any: ...
    def port_rate(self, port: int) -> int: ...
    def port_rate_set(self, port: int, rate_bps: int) -> None: ...
    def fault(self, port: int, direction: str) -> Fault: ...
    def fault_set(self, port: int, direction: str, fault: Fault) -> None: ...
    def faults_clear(self) -> None: ...
    def pktgen_set(
        self, ident: int, port: int, interval_ns: int, template: bytes, count: int = 0, watch: Watch | None = None
    ) -> None: ...
    def pktgen_clear(self, ident: int) -> None: ...
    def pktgens(self) -> Mapping[int, Any]: ...
    def stats(self) -> dict[str, int]: ...


class Args:
    """The arguments of one request; every getter raises ControlError for a value out of place."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def integer(self, name: str, low: int, high: int) -> int:
        value = self._get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ControlError(f"{name} must be an integer from {low} to {high}, not {value!r}")
        return value

    def text(self, name: str, choices: tuple[str, ...] = ()) -> str:
        value = self._get(name)
        if not isinstance(value, str) or (choices and value not in choices):
            raise ControlError(f"{name} must be {' or '.join(choices) if choices else 'text'}, not {value!r}")
        return value

    def fields_of(self, template: QueueConfig | Fault) -> dict[str, Any]:
        """The arguments that are named like fields of the dataclass, checked against the type of its values."""
        changes: dict[str, Any] = {}
        for field in dataclasses.fields(template):
            if field.name in self._values:
                changes[field.name] = self._like(field.name, getattr(template, field.name))
        return changes

    def _like(self, name: str, sample: object) -> Any:
        value = self._values[name]
        if isinstance(sample, bool):
            if not isinstance(value, bool):
                raise ControlError(f"{name} must be true or false, not {value!r}")
        elif isinstance(sample, float):
            if not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise ControlError(f"{name} must be a probability from 0 to 1, not {value!r}")
            return float(value)
        else:
            return self.integer(name, 0, (1 << 63) - 1)
        return value

    def _get(self, name: str) -> Any:
        if name not in self._values:
            raise ControlError(f"{name} is missing")
        return self._values[name]


def perform(switch: Controlled, line: bytes) -> Any:
    """Carries out one request line; the result is made of JSON values. Raises ControlError."""
    try:
        request = json.loads(line)
        name, values = request["call"], request.get("args", {})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ControlError('a request is {"call": NAME, "args": {...}} on one line') from error
    if not isinstance(name, str) or name not in CALLS:
        raise ControlError(f"unknown call {name!r}; known are {', '.join(CALLS)}")
    if not isinstance(values, dict):
        raise ControlError(f"args must be an object, not {values!r}")
    operation, allowed = CALLS[name]
    for given in values:
        if given not in allowed:
            raise ControlError(f"{name} does not take {given!r}; it takes {', '.join(allowed) or 'nothing'}")
    try:
        return operation(switch, Args(values))
    except DeviceError as error:
        raise ControlError(str(error)) from error


def _port(args: Args) -> int:
    return args.integer("port", 0, MAX_PORT)


def _known_port(switch: Controlled, args: Args) -> int:
    port = _port(args)
    if port not in switch.ports():
        known = ", ".join(map(str, switch.ports())) or "none"
        raise ControlError(f"no port {port}; the switch's ports are {known}")
    return port


def _chosen_ports(switch: Controlled, args: Args) -> list[int]:
    return [_known_port(switch, args)] if "port" in args else switch.ports()


def _ports_show(switch: Controlled, args: Args) -> Any:
    shown = []
    for port in _chosen_ports(switch, args):
        info = dataclasses.asdict(switch.port_info(port))
        shown.append({"port": port} | {name: value for name, value in info.items() if name != "exists"})
    return shown


def _ports_add(switch: Controlled, args: Args) -> None:
    switch.port_add(_port(args), args.text("ifname"))


def _ports_remove(switch: Controlled, args: Args) -> None:
    switch.port_remove(_known_port(switch, args))


def _ports_up(switch: Controlled, args: Args) -> None:
    switch.port_set_up(_known_port(switch, args), True)


def _ports_down(switch: Controlled, args: Args) -> None:
    switch.port_set_up(_known_port(switch, args), False)


def _ports_pcap(switch: Controlled, args: Args) -> None:
    switch.pcap(_known_port(switch, args), args.text("path") if "path" in args else None)


def _priority(switch: Controlled, args: Args) -> int | None:
    return args.integer("priority", 0, switch.priorities - 1) if "priority" in args else None


def _queues_show(switch: Controlled, args: Args) -> Any:
    wanted = _priority(switch, args)
    return [
        {"port": port, "priority": priority}
        | dataclasses.asdict(switch.queue(port, priority))
        | {"port_rate_bps": switch.port_rate(port)}
        | dataclasses.asdict(switch.queue_stats(port, priority))
        for port in _chosen_ports(switch, args)
        for priority in (range(switch.priorities) if wanted is None else [wanted])
    ]


def _queues_set(switch: Controlled, args: Args) -> None:
    port, wanted = _known_port(switch, args), _priority(switch, args)
    changes = args.fields_of(QueueConfig())
    if not changes and "port_rate_bps" not in args:
        raise ControlError(f"nothing to set; queues.set takes {', '.join(CALLS['queues.set'][1])}")
    if changes:
        for priority in range(switch.priorities) if wanted is None else [wanted]:
            switch.queue_set(port, dataclasses.replace(switch.queue(port, priority), **changes), priority)
    if "port_rate_bps" in args:
        switch.port_rate_set(port, args.integer("port_rate_bps", 0, (1 << 63) - 1))


def _queues_reset(switch: Controlled, args: Args) -> None:
    for port in _chosen_ports(switch, args):
        switch.queue_set(port, QueueConfig())
        switch.port_rate_set(port, 0)


def _faults_show(switch: Controlled, args: Args) -> Any:
    return [
        {"port": port, "direction": direction} | dataclasses.asdict(switch.fault(port, direction))
        for port in _chosen_ports(switch, args)
        for direction in DIRECTIONS
    ]


def _faults_set(switch: Controlled, args: Args) -> None:
    port = _known_port(switch, args)
    direction = args.text("direction", (*DIRECTIONS, "both")) if "direction" in args else "both"
    changes = args.fields_of(Fault())
    if not changes:
        raise ControlError(f"nothing to set; faults.set takes {', '.join(CALLS['faults.set'][1])}")
    for one in DIRECTIONS if direction == "both" else (direction,):
        switch.fault_set(port, one, dataclasses.replace(switch.fault(port, one), **changes))


def _faults_reset(switch: Controlled, args: Args) -> None:
    if "port" not in args:
        switch.faults_clear()
        return
    port = _known_port(switch, args)
    for direction in DIRECTIONS:
        switch.fault_set(port, direction, Fault())


def _pktgen_show(switch: Controlled, _: Args) -> Any:
    shown = []
    for ident, config in sorted(switch.pktgens().items()):
        shown.append({"ident": ident} | dataclasses.asdict(config) | {"template": config.template.hex()})
    return shown


def _pktgen_set(switch: Controlled, args: Args) -> None:
    try:
        template = bytes.fromhex(args.text("template"))
    except ValueError as error:
        raise ControlError(f"template must be hexadecimal bytes, not {args.text('template')!r}") from error
    count = args.integer("count", 0, (1 << 63) - 1) if "count" in args else 0
    interval = args.integer("interval_ns", 1, (1 << 63) - 1)
    watch = None
    if "watched_port" in args or "watched_offset" in args:
        offset = args.integer("watched_offset", 0, max(len(template) - 1, 0))
        watch = Watch(args.integer("watched_port", 0, MAX_PORT), offset)
    switch.pktgen_set(args.integer("ident", 0, MAX_PKTGEN), _port(args), interval, template, count, watch)


def _pktgen_reset(switch: Controlled, args: Args) -> None:
    for ident in [args.integer("ident", 0, MAX_PKTGEN)] if "ident" in args else list(switch.pktgens()):
        switch.pktgen_clear(ident)


def _stats_show(switch: Controlled, _: Args) -> Any:
    return switch.stats()


_QUEUE_FIELDS = tuple(field.name for field in dataclasses.fields(QueueConfig))
_PKTGEN_ARGUMENTS = ("ident", "port", "interval_ns", "template", "count", "watched_port", "watched_offset")
_FAULT_FIELDS = tuple(field.name for field in dataclasses.fields(Fault))

# Every call with the arguments it takes.
CALLS: dict[str, tuple[Callable[[Controlled, Args], Any], tuple[str, ...]]] = {
    "ports.show": (_ports_show, ("port",)),
    "ports.add": (_ports_add, ("port", "ifname")),
    "ports.remove": (_ports_remove, ("port",)),
    "ports.up": (_ports_up, ("port",)),
    "ports.down": (_ports_down, ("port",)),
    "ports.pcap": (_ports_pcap, ("port", "path")),
    "queues.show": (_queues_show, ("port", "priority")),
    "queues.set": (_queues_set, ("port", "priority", *_QUEUE_FIELDS, "port_rate_bps")),
    "queues.reset": (_queues_reset, ("port",)),
    "faults.show": (_faults_show, ("port",)),
    "faults.set": (_faults_set, ("port", "direction", *_FAULT_FIELDS)),
    "faults.reset": (_faults_reset, ("port",)),
    "pktgen.show": (_pktgen_show, ()),
    "pktgen.set": (_pktgen_set, _PKTGEN_ARGUMENTS),
    "pktgen.reset": (_pktgen_reset, ("ident",)),
    "stats.show": (_stats_show, ()),
}
