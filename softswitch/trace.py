"""What happened to one packet, step by step.

The generated code of a traced device writes one JSON object a step. Here they are completed with what the control
plane and the program know (key fields by name, the entry that a handle means, the source of a condition) and put into
words.

Every step is a dictionary with its kind under ``step``: ``ingress``, ``parser_state``, ``extract``, ``parser_error``,
``condition``, ``table``, ``action``, ``resubmit``, ``recirculate``, ``multicast``, ``egress``, ``emit``, ``drop``,
``transmit``; remarks of the runtime are ``note``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from softswitch.describe import compiler_made
from softswitch.device import Device, Lpm, MatchValue, Output, Range, Ternary
from softswitch.model import Entry as ProgramEntry
from softswitch.model import KeyField, Program, Table
from softswitch.stf.runner import SECOND_NS, Installed, Session
from softswitch.stf.syntax import CheckCounter, Expect, NoPacket, Packet, Statement

Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of one packet and of the copies it caused, and what left the switch."""

    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]


def trace(
    program: Program, entries: Sequence[Statement], file: str, packet: bytes, port: int, *, seed: int = 0
) -> Trace:  # fmt: skip
    """Sends a packet into a new device that holds the entries (of STF file ``file``; its packets and checks are
    skipped), and lets a second pass. Raises StfError and DeviceError."""
    device = Device(program, seed=seed, trace=True)
    try:
        session = Session(device, file)
        for statement in entries:
            if not isinstance(statement, (Packet, Expect, NoPacket, CheckCounter)):
                session.execute(statement)
        device.take_trace()
        outputs = device.inject(port, packet, session.now) + device.advance(session.now + SECOND_NS)
        reader = _Reader(program, session.installed, file)
        return Trace(tuple(map(reader.read, device.take_trace())), tuple(outputs))
    finally:
        device.close()


class _Reader:
    """Completes the lines that a device wrote."""

    def __init__(self, program: Program, installed: Sequence[Installed], file: str) -> None:
        self._program, self._file = program, file
        self._installed = {(entry.table, entry.handle): entry for entry in installed}
        self._errors = {code: name for name, code in program.errors.items()}
        self._conditions = _condition_sources(program)
        self._statements = _statement_sources(program)

    def read(self, line: str) -> Step:
        if not line.startswith("{"):
            return {"step": "note", "text": line}
        step: Step = json.loads(line)
        kind = step["step"]
        if kind == "parser_error":
            step["error"] = self._errors.get(step["error"], step["error"])
        elif kind == "condition" and step["name"] in self._conditions:
            step["source"] = self._conditions[step["name"]]
        elif kind == "action" and step["name"] in self._statements:
            step["source"] = self._statements[step["name"]]
        elif kind == "table":
            table = self._program.tables[step["name"]]
            step["key"] = _key(table, bytes.fromhex(step["key"]))
            if step["hit"]:
                step["entry_text"] = self._entry_text(table, step["entry"])
        return step

    def _entry_text(self, table: Table, handle: int) -> str:
        entry = self._installed.get((table.name, handle))
        if entry is not None:
            match, where = entry.match, f"{self._file}:{entry.line}"
            action, args, priority = entry.call.action, entry.call.args, entry.priority
        else:  # the program's own entries come first, so they have the first handles
            own = table.entries[handle - 1]
            match, where = _match_of(table.key, own), "of the program"
            action, args, priority = self._program.actions[own.call.action].name, own.call.args, own.priority
        fields = ", ".join(f"{name}={_match_text(value)}" for name, value in match.items() if value is not None)
        ranked = f", priority {priority}" if table.match in ("ternary", "range") else ""
        return f"{fields or 'anything'} -> {action}({', '.join(f'{arg:#x}' for arg in args)}){ranked} ({where})"


def _condition_sources(program: Program) -> dict[str, str]:
    """The P4 text of each condition by the name of its node, where the JSON has it."""
    sources = {}
    for pipeline in json.loads(program.text).get("pipelines", ()):
        for node in pipeline.get("conditionals", ()):
            info = node.get("source_info") or {}
            if "source_fragment" in info:
                sources[node["name"]] = f"{_one_line(info['source_fragment'])} (line {info.get('line')})"
    return sources


def _one_line(source: str) -> str:
    return " ".join(source.split())


def _statement_sources(program: Program) -> dict[str, list[str]]:
    """The P4 text of the actions that p4c made of statements of a control, by their names."""
    made = [ident for table in program.tables.values() if compiler_made(table) for ident in table.actions]
    sources = {}
    for action in (program.actions[ident] for ident in made):
        lines = [_one_line(primitive.source) for primitive in action.primitives if primitive.source]
        if lines and "." not in action.name:
            sources[action.name] = list(dict.fromkeys(lines))
    return sources


def _key(table: Table, key: bytes) -> dict[str, str]:
    fields, at = {}, 0
    for field in table.key:
        fields[field.name] = f"0x{key[at : at + field.nbytes].hex()}"
        at += field.nbytes
    return fields


def _match_of(key: Sequence[KeyField], entry: ProgramEntry) -> dict[str, MatchValue]:
    match: dict[str, MatchValue] = {}
    for field, part in zip(key, entry.fields, strict=True):
        if field.match == "lpm":
            match[field.name] = Lpm(part.value, part.prefix_len)
        elif field.match == "ternary":
            match[field.name] = Ternary(part.value, part.mask) if part.mask else None
        elif field.match == "range":
            match[field.name] = Range(part.value, part.high)
        else:
            match[field.name] = part.value
    return match


def _match_text(value: MatchValue) -> str:
    match value:
        case Lpm():
            return f"{value.value:#x}/{value.prefix_len}"
        case Ternary():
            return f"{value.value:#x}&&&{value.mask:#x}"
        case Range():
            return f"{value.low:#x}->{value.high:#x}"
    return f"{value:#x}"


def explain(steps: Sequence[Step]) -> list[str]:
    """The steps as lines for people; what a parser state or a table does is indented under it."""
    return [line for step in steps for line in _SENTENCES.get(step["step"], _other)(step).split("\n")]


def _table_sentence(step: Step) -> str:
    key = ", ".join(f"{name}={value}" for name, value in step["key"].items())
    return f"table {step['name']} [{key}] {'hit: ' + step['entry_text'] if step['hit'] else 'miss'}"


def _ingress_sentence(step: Step) -> str:
    kinds = ("", " a copy for ingress,", " a copy for egress,", "", " recirculated:", " replicated:", " resubmitted:")
    kind = step["instance_type"]
    return f"ingress:{kinds[kind] if kind < len(kinds) else ''} {step['bytes']} bytes from port {step['port']}"


def _action_sentence(step: Step) -> str:
    if "source" in step:
        return "\n".join(f"    {line}" for line in step["source"])
    return f"    action {step['name']}({', '.join(step['args'])})"


def _other(step: Step) -> str:
    details = " ".join(f"{name} {value}" for name, value in step.items() if name != "step")
    return f"{step['step'].replace('_', ' ')} {details}".rstrip()


_SENTENCES: dict[str, Callable[[Step], str]] = {
    "ingress": _ingress_sentence,
    "parser_state": lambda step: f"parser state {step['name']}",
    "extract": lambda step: f"    extract {step['header']}, {step['bytes']} bytes",
    "parser_error": lambda step: f"parser error {step['error']}",
    "condition": lambda step: f"if {step.get('source', step['name'])}: {str(step['value']).lower()}",
    "table": _table_sentence,
    "action": _action_sentence,
    "emit": lambda step: f"    emit {step['header']}",
    "drop": lambda step: f"drop: {step['why']}",
    "transmit": lambda step: f"transmit on port {step['port']}, {step['bytes']} bytes",
    "note": lambda step: str(step["text"]),
}
