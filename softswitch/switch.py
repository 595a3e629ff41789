"""A switch: ports, queues, faults and packet generators that outlive the programs loaded into it.

A new pipeline is a new device; the switch puts it in place of the old one and gives it the same settings.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softswitch import model
from softswitch.device import Device
from softswitch.device_types import DeviceError, Fault, Output, PortInfo, QueueConfig, QueueStats, Watch
from softswitch.json_node import ProgramError
from softswitch.p4runtime.pipeline import TargetError
from softswitch.toolchain import ToolchainError

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """What every device of the switch is made with; fields as in :class:`softswitch.device.Device`."""

    seed: int = 0
    cpu_port: int | None = None
    drop_port: int = 511
    priorities: int = 1
    tick_ns: int = 1000
    realtime: bool = True
    keep_c: Path | None = None


@dataclass(frozen=True, slots=True)
class PktgenConfig:
    """A packet generator: ``template`` arrives on ``port`` every ``interval_ns``, ``count`` times (0: for ever)."""

    port: int
    interval_ns: int
    template: bytes
    count: int
    watch: Watch | None = None


@dataclass(frozen=True, slots=True)
class _Setting:
    value: Any
    apply: Callable[[Device], None]


class Switch:
    """Owns the device that runs, and swaps it. Every method may be called from any thread.

    Methods named as a device's do what they do there, and are remembered for the devices to come. Before the first
    pipeline they are only remembered.
    """

    def __init__(self, config: SwitchConfig, on_outputs: Callable[[list[Output]], None] | None = None) -> None:
        """``on_outputs`` gets what a controller's packet makes leave at once, in virtual time."""
        self.config = config
        self._on_outputs = on_outputs
        self._device: Device | None = None
        self._settings: dict[tuple[Hashable, ...], _Setting] = {}
        self._lock = threading.RLock()

    @property
    def device(self) -> Device | None:
        """The device that runs now; None before the first pipeline. It is closed when a pipeline replaces it."""
        return self._device

    @property
    def priorities(self) -> int:
        """Egress queues per port."""
        return self.config.priorities

    # -- pipelines (the P4Runtime server's Target)

    def build(self, program: model.Program) -> Device:
        """A device for the program, with no ports. Raises TargetError where it does not compile."""
        config = self.config
        try:
            return Device(
                program,
                seed=config.seed,
                cpu_port=config.cpu_port,
                drop_port=config.drop_port,
                priorities=config.priorities,
                tick_ns=config.tick_ns,
                realtime=config.realtime,
                keep_c=config.keep_c,
            )
        except (DeviceError, ProgramError, ToolchainError, OSError) as error:
            raise TargetError(str(error)) from error

    def activate(self, device: Device) -> None:
        """Stop the device that runs, give its settings to the new one and start that. The old one is closed.

        A setting that the new device refuses (an interface that is gone) is logged and kept for the next. Raises
        TargetError where the new device does not start; the old one then goes on.
        """
        with self._lock:
            old, realtime = self._device, self.config.realtime
            if old is not None and realtime:
                old.stop()
            for key, setting in self._settings.items():
                try:
                    setting.apply(device)
                except DeviceError as error:
                    _LOG.error("%s: %s", " ".join(map(str, key)), error)
            try:
                if realtime:
                    device.start()
            except DeviceError as error:
                if old is not None:
                    old.start()
                raise TargetError(str(error)) from error
            self._device = device
            if old is not None:
                old.close()

    def packet_out(self, packet: bytes) -> None:
        """A controller's packet arrives on the CPU port, now. Raises DeviceError."""
        with self._lock:
            outputs = self._running().packet_out(packet)
        if outputs and self._on_outputs is not None:
            self._on_outputs(outputs)

    def close(self) -> None:
        """Stop and close the device."""
        with self._lock:
            device, self._device = self._device, None
            if device is not None:
                if self.config.realtime:
                    device.stop()
                device.close()

    # -- settings

    def _set(self, key: tuple[Hashable, ...], value: Any, apply: Callable[[Device], None]) -> None:
        with self._lock:
            if self._device is not None:
                apply(self._device)
            self._settings[key] = _Setting(value, apply)

    def _value(self, key: tuple[Hashable, ...], default: Any) -> Any:
        with self._lock:
            setting = self._settings.get(key)
            return default if setting is None else setting.value

    def _running(self) -> Device:
        if self._device is None:
            raise DeviceError("FAILED_PRECONDITION", "no pipeline is loaded yet")
        return self._device

    def ports(self) -> list[int]:
        """Port numbers, in order."""
        with self._lock:
            return sorted(key[1] for key in self._settings if key[0] == "port" and isinstance(key[1], int))

    def port_info(self, port: int) -> PortInfo:
        with self._lock:
            return self._running().port_info(port)

    def port_add(self, port: int, ifname: str = "") -> None:
        """Attach an interface (real time), or make a port in memory. Raises DeviceError ALREADY_EXISTS for an interface
        that another port has: both would receive its packets."""
        with self._lock:
            for other in self.ports():
                if other != port and ifname and self._value(("port", other), "") == ifname:
                    raise DeviceError("ALREADY_EXISTS", f"interface {ifname!r} is port {other}'s")
            self._set(("port", port), ifname, lambda d: _add_port(d, port, ifname))

    def port_remove(self, port: int) -> None:
        """Remove the port and all that was set for it."""
        with self._lock:
            if self._device is not None:
                self._device.port_remove(port)
            for key in [k for k in self._settings if k[0] in _PER_PORT and k[1] == port]:
                del self._settings[key]

    def port_set_up(self, port: int, up: bool) -> None:
        self._set(("up", port), up, lambda d: d.port_set_up(port, up))

    def pcap(self, port: int, path: str | None) -> None:
        self._set(("pcap", port), path, lambda d: d.pcap(port, path))

    def queue(self, port: int, priority: int = 0) -> QueueConfig:
        config: QueueConfig = self._value(("queue", port, priority), QueueConfig())
        return config

    def queue_set(self, port: int, config: QueueConfig, priority: int | None = None) -> None:
        for one in range(self.priorities) if priority is None else (priority,):
            self._set(("queue", port, one), config, lambda d, one=one: d.queue_set(port, config, one))  # type: ignore[misc]

    def queue_stats(self, port: int, priority: int = 0, *, clear_max: bool = False) -> QueueStats:
        with self._lock:
            return self._running().queue_stats(port, priority, clear_max=clear_max)

    def port_rate_set(self, port: int, rate_bps: int) -> None:
        self._set(("rate", port), rate_bps, lambda d: d.port_rate_set(port, rate_bps))

    def port_rate(self, port: int) -> int:
        """Bits a second of all queues of the port together; 0: no limit."""
        rate: int = self._value(("rate", port), 0)
        return rate

    def fault(self, port: int, direction: str) -> Fault:
        fault: Fault = self._value(("fault", port, direction), Fault())
        return fault

    def fault_set(self, port: int, direction: str, fault: Fault) -> None:
        self._set(("fault", port, direction), fault, lambda d: d.fault_set(port, direction, fault))

    def faults_clear(self) -> None:
        with self._lock:
            if self._device is not None:
                self._device.faults_clear()
            for key in [k for k in self._settings if k[0] == "fault"]:
                del self._settings[key]

    def pktgen_set(
        self, ident: int, port: int, interval_ns: int, template: bytes, count: int = 0, watch: Watch | None = None
    ) -> None:
        config = PktgenConfig(port, interval_ns, template, count, watch)
        self._set(("pktgen", ident), config, lambda d: d.pktgen_set(ident, port, interval_ns, template, count, watch))

    def pktgens(self) -> dict[int, PktgenConfig]:
        """The generators that were set and not cleared, by their numbers."""
        with self._lock:
            settings = self._settings.items()
            return {key[1]: one.value for key, one in settings if key[0] == "pktgen" and isinstance(key[1], int)}

    def pktgen_clear(self, ident: int) -> None:
        with self._lock:
            if self._device is not None:
                self._device.pktgen_clear(ident)
            self._settings.pop(("pktgen", ident), None)

    def stats(self) -> dict[str, int]:
        """The running device's counters; empty before the first pipeline."""
        with self._lock:
            return {} if self._device is None else self._device.stats()


def _add_port(device: Device, port: int, ifname: str) -> None:
    """In virtual time every port is there from the start."""
    try:
        device.port_add(port, ifname)
    except DeviceError as error:
        if error.code != "ALREADY_EXISTS" or device.realtime:
            raise


_PER_PORT = frozenset({"port", "up", "pcap", "queue", "rate", "fault"})
