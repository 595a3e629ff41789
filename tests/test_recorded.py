"""The softswitch does with recorded table writes and packets what BMv2 did when they were recorded."""

from __future__ import annotations

import pytest

from tests import recording
from tests.conftest import PROGRAMS
from tests.differential.ours import Ours
from tests.differential.unspecified import VALUES, differ
from tests.p4runtime_client import Program

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_softswitch_does_what_bmv2_did(name: str) -> None:
    program = Program.load(PROGRAMS, name)
    recorded, steps = recording.load(name)
    if recorded != recording.digest(program):
        pytest.skip("program changed since BMv2 was recorded: python -m tests.recording, where BMv2 is")
    switches = [Ours(program, 1), *(Ours(program, 1, unspecified=value) for value in VALUES)]
    try:
        for number, step in enumerate(steps, 2):
            where = f"line {number} of {recording.path(name).name}"
            if isinstance(step, recording.Write):
                error, *_ = [switch.write(step.update) for switch in switches]
                assert (error == "") == step.done, f"{where}: {error}"
            else:
                got, *maybe = [switch.send(step.port, step.data) for switch in switches]
                assert not differ(step.outputs, got, maybe), f"{where}: {got} instead of {step.outputs}"
    finally:
        for switch in switches:
            switch.close()


def test_no_recording_is_left_over() -> None:
    assert sorted(path.stem for path in recording.RECORDED.glob("*.jsonl")) == NAMES
