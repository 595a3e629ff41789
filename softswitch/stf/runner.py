"""Carries out STF statements on a device in virtual time and says what did not come out as expected."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from softswitch.device import Call, Device, DeviceError, MatchValue, Output
from softswitch.model import Program

from .commands import Commands
from .expect import mismatches
from .resolve import ResolveError, find_call, find_key, find_table
from .syntax import (
    Add,
    CheckCounter,
    Command,
    Expect,
    NoPacket,
    Packet,
    RemoveAll,
    SetDefault,
    Statement,
    StfError,
    Wait,
)

SECOND_NS = 1_000_000_000
PACKET_GAP_NS = 1_000_000  # between two packets of a test
_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Result:
    """How a test came out. ``problems`` is empty for a pass; ``notes`` holds what read commands printed."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Installed:
    """An entry that a file added: how it reads, and where it is on the device."""

    table: str
    handle: int
    match: dict[str, MatchValue]
    call: Call
    priority: int
    line: int


def run(program: Program, statements: Sequence[Statement], file: str, *, seed: int = 0) -> Result:
    """Runs a whole test on a new device. Raises StfError for a statement that cannot be carried out."""
    device = Device(program, seed=seed)
    try:
        session = Session(device, file)
        for statement in statements:
            if isinstance(statement, (Packet, Expect)):
                session.watch(statement.port)
        for statement in statements:
            session.execute(statement)
        return session.finish()
    finally:
        device.close()


class Session:
    """One file's run on one device."""

    def __init__(self, device: Device, file: str) -> None:
        self.device, self.file = device, file
        self.installed: list[Installed] = []
        self._aliases: dict[str, Installed] = {}
        self.now = SECOND_NS
        self._tables_changed = False
        self._expected: list[Expect] = []
        self._received: dict[int, list[bytes]] = {}
        self._last: list[Output] = []
        self._problems: list[str] = []
        self._notes: list[str] = []
        self._commands = Commands(device, self._nth_entry, self._notes.append)

    def watch(self, port: int) -> None:
        """Every packet that leaves the port from now on has to be expected."""
        self._received.setdefault(port, [])

    def execute(self, statement: Statement) -> None:
        """Raises StfError for a statement that names something unknown or that the device refuses."""
        try:
            self._execute(statement)
        except (ResolveError, DeviceError) as error:
            raise StfError(self.file, statement.line, str(error)) from error

    def finish(self) -> Result:
        """Lets a second pass, then compares what left the ports with what was expected."""
        self._advance(SECOND_NS)
        problems = self._problems + mismatches(self._expected, self._received, self.file)
        return Result(tuple(problems), tuple(self._notes))

    def _execute(self, statement: Statement) -> None:
        match statement:
            case Packet():
                self._packet(statement)
            case Expect():
                self._expected.append(statement)
            case NoPacket():
                self._no_packet(statement)
            case Wait():
                self._advance(SECOND_NS)
            case CheckCounter():
                self._check_counter(statement)
            case Add():
                self._add(statement)
            case SetDefault():
                table = find_table(self.device.program, statement.table)
                self.device.table_set_default(table.name, find_call(self.device.program, table, statement.call))
            case RemoveAll():
                for entry in self.installed:
                    self.device.table_delete(entry.table, entry.handle)
                self.installed.clear()
                self._aliases.clear()
            case Command():
                self._commands.execute(statement)
        self._tables_changed |= isinstance(statement, (Add, SetDefault, RemoveAll, Command))

    # -- packets ------------------------------------------------------------------------------------------

    def _packet(self, statement: Packet) -> None:
        # A second passes between a change of tables and the next packet, as when BMv2 is driven.
        self._advance(SECOND_NS if self._tables_changed else PACKET_GAP_NS)
        self._tables_changed = False
        self._last = self.device.inject(statement.port, statement.data, self.now)
        self._collect(self._last)

    def _advance(self, delta_ns: int) -> None:
        self.now += delta_ns
        self._collect(self.device.advance(self.now))

    def _collect(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            if output.port in self._received:
                self._received[output.port].append(output.data)

    def _no_packet(self, statement: NoPacket) -> None:
        for output in self._last:
            if output.port in self._received:
                problem = f"port {output.port}: expected no packet, got {output.data.hex().upper()}"
                self._problems.append(f"{self.file}:{statement.line}: {problem}")

    # -- tables -------------------------------------------------------------------------------------------

    def _add(self, statement: Add) -> None:
        program = self.device.program
        table = find_table(program, statement.table)
        match = find_key(table, statement.keys)
        call = find_call(program, table, statement.call)
        if statement.priority is None and table.match in ("ternary", "range"):
            raise ResolveError(f"table {table.name} has {table.match} keys: a priority must follow its name")
        priority = statement.priority or 0
        if priority >> 31:
            raise ResolveError(f"priority {priority} is out of range")
        if table.profile is not None:
            raise ResolveError(f"table {table.name} takes its actions from {table.profile}, which STF cannot fill")
        handle = self.device.table_add(table.name, match, call, priority=priority)
        entry = Installed(table.name, handle, match, call, priority, statement.line)
        self.installed.append(entry)
        if statement.alias:
            self._aliases[statement.alias] = entry

    # -- counters -----------------------------------------------------------------------------------------

    def _check_counter(self, statement: CheckCounter) -> None:
        index = statement.index
        if isinstance(index, str):
            entry = self._aliases.get(index) or self._aliases.get(index.removeprefix("$"))
            if entry is None:
                raise ResolveError(f"no entry is called {index!r}; known are {', '.join(self._aliases) or 'none'}")
            stats = self.device.entry_stats(entry.table, entry.handle)
            counts = {"packets": stats.packets, "bytes": stats.bytes}
        else:
            packets, nbytes = self._commands.read_counter(statement.counter, index)
            counts = {"packets": packets, "bytes": nbytes}
        for unit in ("packets", "bytes") if statement.unit is None else (statement.unit,):
            if not _RELATIONS[statement.relation](counts[unit], statement.number):
                wanted = f"expected {unit} {statement.relation} {statement.number}, got {counts[unit]}"
                where = f"{self.file}:{statement.line}: counter {statement.counter}({index})"
                self._problems.append(f"{where}: {wanted}")

    def _nth_entry(self, table: str, index: int) -> int:
        """The handle of the index-th entry that the file added to the table."""
        entries = [entry for entry in self.installed if entry.table == table]
        if index >= len(entries):
            raise ResolveError(f"this file added {len(entries)} entries to table {table}; there is no number {index}")
        return entries[index].handle
