"""Ports, queues, faults and the packet generator of a device."""

from __future__ import annotations

import ctypes as c
import os
from dataclasses import astuple, fields

from softswitch import native
from softswitch.device_base import DeviceBase
from softswitch.device_types import DeviceError, Fault, PortInfo, QueueConfig, QueueStats, Watch

PORTS = 512
DIRECTIONS = {"rx": 0, "tx": 1}


class PortsMixin(DeviceBase):
    """Ports are 0..511; a port out of range is INVALID_ARGUMENT."""

    priorities: int

    def port_add(self, port: int, ifname: str = "") -> None:
        """Attach a network interface (real time), or make a port in memory. INTERNAL where the system refuses."""
        self._check(self.lib.sw_port_add(self._native(), port, _c_string(ifname)), f"port {port} {ifname}".rstrip())

    def port_remove(self, port: int) -> None:
        """Detach a port."""
        self._check(self.lib.sw_port_remove(self._native(), port), f"port {port}")

    def port_set_up(self, port: int, up: bool) -> None:
        """Set a port up or down administratively."""
        self._check(self.lib.sw_port_set_up(self._native(), port, up), f"port {port}")

    def port_info(self, port: int) -> PortInfo:
        """A port's state and counters."""
        info = native.PortInfo()
        self._check(self.lib.sw_port_get(self._native(), port, c.byref(info)), f"port {port}")
        values = {f.name: getattr(info, f.name) for f in fields(PortInfo)}
        return PortInfo(**values | {"ifname": info.ifname.decode()})

    def ports(self) -> list[int]:
        """The ports that were added (in virtual time: all)."""
        info = native.PortInfo()
        return [port for port in range(PORTS) if self.lib.sw_port_get(self._native(), port, c.byref(info)) == 0]

    def pcap(self, port: int, path: str | None) -> None:
        """Write what comes and goes on a port to a pcap file; None stops."""
        result = self.lib.sw_port_pcap(self._native(), port, _c_string(path) if path else None)
        self._check(result, f"port {port}: {path}")

    # ---- traffic manager -----------------------------------------------------------------------------------

    def queue(self, port: int, priority: int = 0) -> QueueConfig:
        """An egress queue's configuration."""
        config = native.QueueConfig()
        self._check(self.lib.sw_queue_get(self._native(), port, priority, c.byref(config)), f"queue {port}/{priority}")
        return QueueConfig(config.rate_pps, config.rate_bps, config.depth_packets, config.depth_bytes)

    def queue_set(self, port: int, config: QueueConfig, priority: int | None = None) -> None:
        """Configure one egress queue of a port, or all of them."""
        for number in range(self.priorities) if priority is None else (priority,):
            result = self.lib.sw_queue_set(self._native(), port, number, c.byref(native.QueueConfig(*astuple(config))))
            self._check(result, f"queue {port}/{number}")

    def port_rate_set(self, port: int, rate_bps: int) -> None:
        """The link's rate: all queues of a port together, in bits a second; 0 is no limit."""
        self._check(self.lib.sw_port_rate_set(self._native(), port, rate_bps), f"port {port}")

    def queue_stats(self, port: int, priority: int = 0, *, clear_max: bool = False) -> QueueStats:
        """A queue's counters; ``clear_max`` starts the depth's maximum anew."""
        stats = native.QueueStats()
        result = self.lib.sw_queue_stats_get(self._native(), port, priority, c.byref(stats), clear_max)
        self._check(result, f"queue {port}/{priority}")
        return QueueStats(**{f.name: getattr(stats, f.name) for f in fields(QueueStats)})

    # ---- faults and generator ------------------------------------------------------------------------------

    def fault(self, port: int, direction: str) -> Fault:
        """The faults of one direction, "rx" or "tx"."""
        fault = native.Fault()
        self._check(self.lib.sw_fault_get(self._native(), port, _direction(direction), c.byref(fault)), f"port {port}")
        return Fault(**{f.name: getattr(fault, f.name) for f in fields(Fault)})

    def fault_set(self, port: int, direction: str, fault: Fault) -> None:
        """Set the faults of one direction, "rx" or "tx"; ``Fault()`` is none."""
        record = native.Fault(*astuple(fault))
        self._check(self.lib.sw_fault_set(self._native(), port, _direction(direction), c.byref(record)), f"port {port}")

    def faults_clear(self) -> None:
        """No faults on any port."""
        self._check(self.lib.sw_faults_clear(self._native()), "faults")

    def pktgen_set(
        self, ident: int, port: int, interval_ns: int, template: bytes, count: int = 0, watch: Watch | None = None
    ) -> None:
        """Generator ``ident`` (0..63) injects the template on ``port`` every interval, ``count`` times (0: no end)."""
        watched = (False, 0, 0) if watch is None else (True, watch.port, watch.offset)
        record = native.Pktgen(port, interval_ns, count, template, len(template), *watched)
        self._check(self.lib.sw_pktgen_set(self._native(), ident, c.byref(record)), f"packet generator {ident}")

    def pktgen_clear(self, ident: int) -> None:
        """Stop a generator."""
        self._check(self.lib.sw_pktgen_clear(self._native(), ident), f"packet generator {ident}")


def _c_string(name: str) -> bytes:
    """A name as the system takes it: bytes without a NUL."""
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise DeviceError("INVALID_ARGUMENT", f"{name!r} cannot be the name of an interface or a file")
    return encoded


def _direction(name: str) -> int:
    if name not in DIRECTIONS:
        raise DeviceError("INVALID_ARGUMENT", f"a direction is rx or tx, not {name!r}")
    return DIRECTIONS[name]
