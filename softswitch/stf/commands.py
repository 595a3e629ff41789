"""The STF commands that BMv2's runtime command line has too: mirroring, multicast, counters, registers, meters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softswitch.device import Device, MeterConfig, Replica

from .resolve import ResolveError, resolve_name
from .syntax import Command

MICROSECONDS_PER_SECOND = 1_000_000


@dataclass(slots=True)
class _Node:
    """A node of BMv2's replication engine: one replication id sent to several ports, as part of one group."""

    rid: int
    ports: list[int]
    group: int | None = None


class Commands:
    """Carries commands out on a device. ``entry_handle`` finds the entry that an index means in a table with direct
    counters or meters; ``note`` takes what read commands print."""

    def __init__(self, device: Device, entry_handle: Callable[[str, int], int], note: Callable[[str], None]) -> None:
        self._device, self._entry_handle, self._note = device, entry_handle, note
        self._nodes: list[_Node] = []
        self._groups: dict[int, list[_Node]] = {}
        self._mirrors: dict[int, str] = {}
        self._mirrored_groups: dict[int, int] = {}

    def execute(self, command: Command) -> None:
        """Raises ResolveError or DeviceError for a command that cannot be carried out."""
        # what follows the index in these two is a value of any size
        numbers = command.numbers[:1] if command.verb in ("register_write", "counter_write") else command.numbers
        for number in numbers:
            if number >> 32:
                raise ResolveError(f"{number} is out of range")
        action: Callable[[Command], None] = getattr(self, "_" + command.verb)
        action(command)

    # -- mirroring and multicast --------------------------------------------------------------------------

    def _mirroring_add(self, command: Command) -> None:
        session, port = command.numbers
        self._device.clone_set(session, [Replica(port)])
        self._mirrors[session] = f"port {port}"
        self._mirrored_groups.pop(session, None)

    def _mirroring_add_mc(self, command: Command) -> None:
        session, group = command.numbers
        self._mirrored_groups[session] = group
        self._mirrors[session] = f"multicast group {group}"
        self._device.clone_set(session, self._replicas(group))

    def _mirroring_delete(self, command: Command) -> None:
        (session,) = command.numbers
        self._device.clone_delete(session)
        self._mirrors.pop(session, None)
        self._mirrored_groups.pop(session, None)

    def _mirroring_get(self, command: Command) -> None:
        (session,) = command.numbers
        if session not in self._mirrors:
            raise ResolveError(f"no mirroring session {session}")
        self._note(f"mirroring session {session}: {self._mirrors[session]}")

    def _mc_mgrp_create(self, command: Command) -> None:
        (group,) = command.numbers
        if group in self._groups:
            raise ResolveError(f"multicast group {group} exists already")
        self._groups[group] = []
        self._update_group(group)

    def _mc_node_create(self, command: Command) -> None:
        rid, *ports = command.numbers
        self._nodes.append(_Node(rid, sorted(ports)))

    def _mc_node_update(self, command: Command) -> None:
        handle, *ports = command.numbers
        node = self._node(handle)
        node.ports = sorted(ports)
        if node.group is not None:
            self._update_group(node.group)

    def _mc_node_associate(self, command: Command) -> None:
        group, handle = command.numbers
        node = self._node(handle)
        if group not in self._groups:
            raise ResolveError(f"no multicast group {group}; there are {', '.join(map(str, self._groups)) or 'none'}")
        if node.group is not None:
            raise ResolveError(f"multicast node {handle} belongs to group {node.group} already")
        node.group = group
        self._groups[group].append(node)
        self._update_group(group)

    def _node(self, handle: int) -> _Node:
        if handle >= len(self._nodes):
            raise ResolveError(f"no multicast node {handle}; there are {len(self._nodes)}, numbered from 0")
        return self._nodes[handle]

    def _replicas(self, group: int) -> list[Replica]:
        return [Replica(port, node.rid) for node in self._groups.get(group, ()) for port in node.ports]

    def _update_group(self, group: int) -> None:
        replicas = self._replicas(group)
        self._device.multicast_set(group, replicas)
        for session, mirrored in self._mirrored_groups.items():
            if mirrored == group:
                self._device.clone_set(session, replicas)

    # -- counters and registers ---------------------------------------------------------------------------

    def _counter_read(self, command: Command) -> None:
        (index,) = command.numbers
        packets, nbytes = self.read_counter(command.name, index)
        self._note(f"{command.name}[{index}] = {nbytes} bytes, {packets} packets")

    def read_counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of a cell, or of the index-th entry for a direct counter."""
        name = resolve_name("counter", name, self._device.program.counters)
        table = self._device.program.counters[name].table
        if table is None:
            return self._device.counter(name, index)
        stats = self._device.entry_stats(table, self._entry_handle(table, index))
        return stats.packets, stats.bytes

    def _counter_write(self, command: Command) -> None:
        index, packets, nbytes = command.numbers
        name = resolve_name("counter", command.name, self._device.program.counters)
        table = self._device.program.counters[name].table
        if table is None:
            self._device.counter_set(name, index, packets, nbytes)
        else:
            self._device.entry_counter_set(table, self._entry_handle(table, index), packets, nbytes)

    def _register_read(self, command: Command) -> None:
        (index,) = command.numbers
        value = self._device.register(self._register(command), index)
        self._note(f"{command.name}[{index}] = {value}")

    def _register_write(self, command: Command) -> None:
        index, value = command.numbers
        self._device.register_set(self._register(command), index, value)

    def _register_reset(self, command: Command) -> None:
        name = self._register(command)
        for index in range(self._device.program.registers[name].size):
            self._device.register_set(name, index, 0)

    def _register(self, command: Command) -> str:
        return resolve_name("register", command.name, self._device.program.registers)

    # -- meters -------------------------------------------------------------------------------------------

    def _meter_get_rates(self, command: Command) -> None:
        (index,) = command.numbers
        name = self._meter(command)
        table = self._device.program.meters[name].table
        if table is None:
            config = self._device.meter(name, index)
        else:
            config = self._device.entry_meter(table, self._entry_handle(table, index))
        rates = "no rates"
        if config is not None:
            rates = f"{config.cir:g}:{config.cburst:g} {config.pir:g}:{config.pburst:g} (a second)"
        self._note(f"{command.name}[{index}] = {rates}")

    def _meter_set_rates(self, command: Command) -> None:
        (index,) = command.numbers
        name = self._meter(command)
        config, table = self._meter_config(name, command), self._device.program.meters[name].table
        if table is None:
            self._device.meter_set(name, index, config)
        else:
            self._device.entry_meter_set(table, self._entry_handle(table, index), config)

    def _meter_array_set_rates(self, command: Command) -> None:
        name = self._meter(command)
        if self._device.program.meters[name].table is not None:
            raise ResolveError(f"meter {name} is direct; set the rates of each entry by meter_set_rates")
        config = self._meter_config(name, command)
        for index in range(self._device.program.meters[name].size):
            self._device.meter_set(name, index, config)

    def _meter(self, command: Command) -> str:
        return resolve_name("meter", command.name, self._device.program.meters)

    def _meter_config(self, name: str, command: Command) -> MeterConfig:
        wanted = self._device.program.meters[name].rates
        if len(command.rates) != wanted or wanted != 2:
            raise ResolveError(f"meter {name} takes 2 rates (committed, peak) as RATE:BURST, got {len(command.rates)}")
        (cir, cburst), (pir, pburst) = command.rates
        return MeterConfig(cir * MICROSECONDS_PER_SECOND, cburst, pir * MICROSECONDS_PER_SECOND, pburst)
