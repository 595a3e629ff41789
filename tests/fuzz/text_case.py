"""What people write: STF files, requests of the control socket, options. Only documented errors may come of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import typer

from softswitch import model as m
from softswitch.cli import run_config, units
from softswitch.control import operations
from softswitch.device import Device
from softswitch.stf.parser import parse
from softswitch.stf.runner import Session
from softswitch.stf.syntax import StfError
from softswitch.trace import explain, trace
from tests.fuzz import programs
from tests.fuzz.bench import Bench
from tests.fuzz.calls import CPU_PORT
from tests.fuzz.finding import require
from tests.fuzz.target import SanitizedSwitch
from tests.fuzz.values import STRINGS, WILD, Values

FILES, LINES, REQUESTS, OPTIONS = 20, 12, 60, 60
NUMBERS = ("0", "1", "10k", "2.5M", "1%", "0.5", "1us", "1.5ms", "9" * 400, "9" * 5000, "1e400", "nan", "-1")
PIECES = ("*", "0x", "/", "&&&", "->", "..", ":", "(", ")", "=", "$", "#", "٣", "9" * 5000)
PARSERS: tuple[Callable[[str], object], ...] = (
    units.amount, units.duration_ns, units.probability, units.packet, units.port_number, run_config.parse_interface,
    run_config.parse_pktgen, run_config.parse_queue, run_config.parse_fault,
)  # fmt: skip


def text_case(bench: Bench) -> None:
    """Some of each."""
    rng = bench.rng()
    program = programs.load(bench.program)
    writer = _Writer(program, rng)
    with Device(program, cpu_port=CPU_PORT, sanitize=True) as device:
        for number in range(FILES):
            bench.journal.note(f"stf {number}")
            bench.journal.add("texts")
            _stf(device, writer.file())
    bench.journal.note("trace")
    _trace(program, writer, rng)
    switch = SanitizedSwitch()
    switch.activate(switch.build(program))
    for number in range(REQUESTS):
        bench.journal.note(f"request {number}")
        bench.journal.add("texts")
        _request(switch, writer.request())
    switch.close()
    for number in range(OPTIONS):
        bench.journal.note(f"option {number}")
        bench.journal.add("texts")
        _option(rng.choice(PARSERS), writer.option())


def _stf(device: Device, text: str) -> None:
    try:
        session = Session(device, "x.stf")
        session.now = device.now()
        for statement in parse(text, "x.stf"):
            session.execute(statement)
        session.finish()
    except StfError as error:
        require(str(error).startswith("x.stf:"), f"an StfError without a place: {error}")


def _trace(program: m.Program, writer: _Writer, rng: random.Random) -> None:
    packet = rng.randbytes(rng.randrange(1, 100))
    with suppress(StfError):
        explain(trace(program, parse(writer.file()), "x", packet, rng.randrange(4)).steps)


def _request(switch: operations.Controlled, line: bytes) -> None:
    try:
        json.dumps(operations.perform(switch, line))
    except operations.ControlError as error:
        require(bool(str(error)), "a ControlError has no message")


def _option(parser: Callable[[str], object], text: str) -> None:
    try:
        parser(text)
    except typer.BadParameter as error:
        require(bool(error.message), "a BadParameter has no message")


class _Writer:
    """Writes text that is nearly right."""

    def __init__(self, program: m.Program, rng: random.Random) -> None:
        self.program, self.rng, self.values = program, rng, Values(rng, program)

    def file(self) -> str:
        """An STF file."""
        return "\n".join(self._garbled(self._line()) for _ in range(self.rng.randrange(1, LINES)))

    def _garbled(self, text: str) -> str:
        rng = self.rng
        for _ in range(rng.choice((0, 0, 0, 1, 1, 3))):
            at = rng.randrange(len(text) + 1)
            piece = rng.choice((*STRINGS, *PIECES))
            text = text[:at] + piece + text[at + rng.randrange(3) :]
        return text

    def _line(self) -> str:
        rng = self.rng
        port, index = rng.choice((0, 1, 2, 511, 512, 2**64)), rng.choice((0, 1, 2, 70000, 2**32, 2**64))
        tables = list(self.program.tables) or ["t"]
        counters = list(self.program.counters) or tables
        registers, meters = list(self.program.registers) or tables, list(self.program.meters) or tables
        lines: list[Callable[[], str]] = [
            lambda: f"packet {port} {rng.randbytes(rng.randrange(1, 80)).hex()}",
            lambda: f"expect {port} {rng.randbytes(9).hex()}{rng.choice(('*', '$', ''))}",
            lambda: f"add {self._entry(rng.choice(tables))}{rng.choice(('', ' = $a'))}",
            lambda: f"setdefault {rng.choice(tables)} {self._call(rng.choice(tables))}",
            lambda: rng.choice(("remove all", "wait", "no_packet", "")),
            lambda: f"check_counter {rng.choice(counters)}({rng.choice((index, '$a'))}) packets == {index}",
            lambda: f"mirroring_{rng.choice(('add', 'add_mc'))} {index} {port}",
            lambda: f"mirroring_{rng.choice(('delete', 'get'))} {index}",
            lambda: f"mc_mgrp_create {index}",
            lambda: f"mc_node_{rng.choice(('create', 'update', 'associate'))} {index} {port}",
            lambda: f"counter_read {rng.choice(counters)} {index}",
            lambda: f"counter_write {rng.choice(counters)} {index} {port} {index}",
            lambda: f"register_read {rng.choice(registers)} {index}",
            lambda: f"register_write {rng.choice(registers)} {index} {self.values.bits(64)}",
            lambda: f"register_reset {rng.choice(registers)}",
            lambda: f"meter_get_rates {rng.choice(meters)} {index}",
            lambda: f"meter_set_rates {rng.choice(meters)} {index} 0.5:10 {rng.choice(('1:2', '9' * 400 + ':1'))}",
            lambda: f"meter_array_set_rates {rng.choice(meters)} 0.5:10 1:20",
        ]
        return rng.choice(lines)()

    def _entry(self, name: str) -> str:
        table = self.program.tables.get(name)
        fields = "".join(f" {f.name}:{self._match(f)}" for f in table.key) if table else " a:1"
        return f"{name} {self.rng.choice(('', '1', '5', '4294967296'))}{fields} {self._call(name)}"

    def _match(self, f: m.KeyField) -> str:
        value = self.values.bits(f.width)
        return self.rng.choice((
            f"{value:#x}", f"{value}", f"{value:#b}", f"{value:#x}/{self.rng.randrange(f.width + 2)}", "0x**",
            f"{value:#x}&&&{self.values.bits(f.width):#x}", f"{value}->{self.values.bits(f.width)}",
        ))  # fmt: skip

    def _call(self, name: str) -> str:
        table = self.program.tables.get(name)
        actions = [self.program.actions[i] for i in table.actions] if table else []
        if not actions:
            return "NoAction()"
        action = self.rng.choice(actions)
        return f"{action.name}({', '.join(f'{p.name}:{self.values.bits(p.width)}' for p in action.params)})"

    def request(self) -> bytes:
        """A request of the control socket."""
        rng = self.rng
        name = rng.choice(list(operations.CALLS))
        allowed = operations.CALLS[name][1]
        args = {rng.choice((*allowed, "port", "x")): self._json() for _ in range(rng.randrange(5))}
        if "port" in allowed and rng.randrange(4):
            args["port"] = rng.choice((1, 2, 3))
        request: Any = {"call": name, "args": args}
        if rng.randrange(20) == 0:
            request = rng.choice((self._json(), {"call": self._json()}, {"call": name, "args": self._json()}))
        line = json.dumps(request).encode()
        return line[: rng.randrange(len(line))] if rng.randrange(20) == 0 else line

    def _json(self) -> Any:
        rng = self.rng
        return rng.choice((
            *WILD, 0, 1, 2, 10**9, 0.5, 1.0, 1e308, float("nan"), float("inf"), True, False, None, "rx", "tx", "both",
            *STRINGS, "00ff", [], [1], {}, {"a": 1}, rng.random(), 10**400,
        ))  # fmt: skip

    def option(self) -> str:
        """A value of an option."""
        rng = self.rng
        number = rng.choice(NUMBERS)
        text = rng.choice((
            number, f"{number}@veth1", f"1,{number},00ff", f"*:rate_bps={number}", f"1/{number}:depth_packets={number}",
            f"1/tx:loss={number},delay={number}", f"{number}/rx:corrupt={number}", f"1:port_rate_bps={number}",
        ))  # fmt: skip
        return self._garbled(text)
