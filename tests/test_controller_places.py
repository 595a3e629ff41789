"""Fabrics that run side by side do not meet in a file, whatever their names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from controller.intent import load_intent
from controller.places import default_baseline, default_memory, default_socket
from tests.controller_command import Cli
from tests.controller_fabric import EXAMPLES, Fabric

INTENT = load_intent(EXAMPLES / "single-tier.yaml")


@pytest.fixture
def two(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Cli]]:
    """Two fabrics of one name, each with a controller, started with an intent file and nothing else."""
    for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    with ExitStack() as stack:
        both = []
        for name in ("one", "other"):
            folder = tmp_path / name
            folder.mkdir()
            fabric = stack.enter_context(Fabric("single-tier.yaml", folder))
            cli = Cli(fabric.write_intent(folder / "fabric.yaml"), capsys)
            cli("up", "--detach")
            stack.callback(end, cli)
            both.append(cli)
        yield both


def end(cli: Cli) -> None:
    if cli.socket.exists():
        cli("down")


def test_names_are_the_fabrics_and_of_its_first_devices_address() -> None:
    first, *others = INTENT.devices
    places = (default_socket, default_memory, default_baseline)
    moved = replace(INTENT, devices=(replace(first, address="127.0.0.1:1"), *others))
    smaller = replace(INTENT, devices=(first,), source=Path("edited.yaml"))
    assert len({place(one) for place in places for one in (INTENT, moved)}) == 6
    assert all(place(smaller) == place(INTENT) for place in places)


def test_fabrics_of_one_name_run_side_by_side_and_each_keeps_its_own(two: list[Cli], tmp_path: Path) -> None:
    for cli, plane in zip(two, ("plane1", "plane2"), strict=True):
        cli("drain", plane)
    assert [cli.json("status", code=3)["drained"] for cli in two] == [["plane1"], ["plane2"]]
    for cli in two:
        cli("counters", "baseline")
        cli("down")
    written = sorted(path.name for path in (tmp_path / "polyplane").iterdir())
    names = sorted(cli.socket.stem.removeprefix("polyplane-") for cli in two)
    assert written == [f"{name}.{suffix}" for name in names for suffix in ("baseline.json", "json", "log")]


def test_without_a_controller_diff_and_verify_take_up_the_memory_of_the_fabric_or_the_one_given(two: list[Cli]) -> None:
    one, other = two
    one("drain", "plane1")
    others = str(default_memory(load_intent(other.intent)))
    for cli in two:
        cli("down")
    for words in (["diff"], ["verify"], ["up", "--dry-run"]):
        for cli in two:
            cli(*words)
        one(*words, "--memory", others, code=3 if words == ["verify"] else 4)
