"""What BMv2 did with the test programs, kept in tests/recorded so that machines without BMv2 compare with it too.

    python -m tests.recording [NAME ...]    record again, all programs or these (needs simple_switch_grpc)

A recording is the start of a differential run: table writes, and packets with what left. It is one JSON object a line,
the first for the program it belongs to.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4r

from softswitch.bmv2_json import loads
from softswitch.p4runtime import p4info
from tests.conftest import PROGRAMS, ROOT
from tests.differential.bmv2 import Bmv2, available
from tests.differential.ours import Ours
from tests.differential.pair import Arrival, is_ordered
from tests.differential.run import Steps
from tests.p4runtime_client import Failure, Program

RECORDED = ROOT / "tests/recorded"
PACKETS = 80
SEEDS = [seed for seed in range(40) if is_ordered(seed)]

Outputs = list[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Write:
    """A P4Runtime update, and whether BMv2 took it."""

    update: p4r.Update
    done: bool


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that arrived, and what left."""

    port: int
    data: bytes
    outputs: Outputs


Step = Write | Packet


def digest(program: Program) -> str:
    """What ties a recording to a compiled program."""
    return hashlib.sha256(program.json).hexdigest()


def record(name: str) -> None:
    """Run a program on BMv2 and write the recording."""
    program = Program.load(PROGRAMS, name)
    index = p4info.build(program.p4info, loads(program.json))
    seed = max(SEEDS, key=lambda seed: _outputs(name, program, seed))
    by = f"simple_switch_grpc {bmv2_version()}"
    lines: list[dict[str, object]] = [{"program": digest(program), "by": by, "seed": seed}]
    with closing(Bmv2(program)) as bmv2:

        def write(update: p4r.Update) -> bool:
            try:
                _write(bmv2, index, update)
            except Failure:
                return False
            return True

        for step in _steps(name, program, seed, write, bmv2.send):
            match step:
                case Write():
                    lines.append({"update": step.update.SerializeToString(deterministic=True).hex(), "done": step.done})
                case Packet():
                    out = [[port, data.hex()] for port, data in step.outputs]
                    lines.append({"port": step.port, "packet": step.data.hex(), "out": out})
    RECORDED.mkdir(exist_ok=True)
    path(name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{name}: {len(lines) - 1} steps")


def _write(bmv2: Bmv2, index: p4info.P4Index, update: p4r.Update) -> None:
    """BMv2 takes value sets, here of one field, by Thrift only. Raises Failure."""
    if not update.entity.HasField("value_set_entry"):
        bmv2.controller.write(update)
        return
    entry = update.entity.value_set_entry
    info = index.value_sets[entry.value_set_id]
    (field,) = info.fields
    size = (field.width + 7) // 8
    bmv2.thrift.value_set(info.name, [member.match[0].exact.value.rjust(size, b"\0") for member in entry.members])


def _outputs(name: str, program: Program, seed: int) -> int:
    """How many packets get through the softswitch: the most telling run is the one to record."""
    ours = Ours(program, seed)
    try:
        steps = _steps(name, program, seed, lambda update: not ours.write(update), ours.send)
        return sum(len(step.outputs) for step in steps if isinstance(step, Packet))
    finally:
        ours.close()


def _steps(
    name: str, program: Program, seed: int, write: Callable[[p4r.Update], bool], send: Callable[[int, bytes], Outputs]
) -> Iterator[Step]:
    """The steps of a run, done by ``write`` and ``send`` as they come."""
    steps = Steps(name, seed, p4info.build(program.p4info, loads(program.json)))
    for step in steps.generate(PACKETS):
        match step:
            case Arrival():
                yield Packet(step.port, step.packet, send(step.port, step.packet))
            case p4r.Update():
                done = write(step)
                if done:
                    steps.entities.done(step)
                yield Write(step, done)


def bmv2_version() -> str:
    done = subprocess.run(["simple_switch_grpc", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def path(name: str) -> Path:
    """Where a program's recording is."""
    return RECORDED / f"{name}.jsonl"


def load(name: str) -> tuple[str, Sequence[Step]]:
    """The digest of the recorded program, and the steps."""
    first, *rest = (json.loads(line) for line in path(name).read_text().splitlines())
    return first["program"], [_step(line) for line in rest]


def _step(line: dict[str, object]) -> Step:
    match line:
        case {"update": str(update), "done": bool(done)}:
            return Write(p4r.Update.FromString(bytes.fromhex(update)), done)
        case {"port": int(port), "packet": str(packet), "out": list(out)}:
            return Packet(port, bytes.fromhex(packet), [(to, bytes.fromhex(data)) for to, data in out])
    raise ValueError(f"not a step of a recording: {line}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.recording", description="Record what BMv2 does.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs (all)")
    names = parser.parse_args().names or sorted(p.stem for p in PROGRAMS.glob("*.json"))
    if not available():
        print("simple_switch_grpc is not on PATH", file=sys.stderr)
        return 1
    for name in names:
        record(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
