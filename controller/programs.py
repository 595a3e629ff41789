"""The compiled P4 programs that devices are given: committed artifacts, found by the device's role."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from controller.model import Role

BUILD = Path(__file__).resolve().parent.parent / "p4src/build"


class ProgramMissing(Exception):
    """A compiler output is not where it should be."""


@dataclass(frozen=True, slots=True)
class Program:
    """One P4 program as compiled for v1model targets."""

    p4info: Path
    blob: Path


def program_for(role: Role, build: Path = BUILD) -> Program:
    """fabric.p4 for switches, smartnic.p4 for NICs. Raises ProgramMissing."""
    name = "smartnic" if role is Role.NIC else "fabric"
    program = Program(build / f"{name}.p4info.txtpb", build / f"{name}.json")
    for path in (program.p4info, program.blob):
        if not path.is_file():
            raise ProgramMissing(f"no compiled program {path}; scripts/build-p4 makes it")
    return program
