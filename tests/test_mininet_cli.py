"""What ``python -m mininet_topos`` says and how it ends where there is nothing to run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mininet_topos import runs
from mininet_topos.cli import main


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["multiplane", "--planes", "9"], 2, "planes must be within 1..8, is 9"),
        (["single-switch", "--target", "tofino"], 2, "unknown target 'tofino'; targets are auto, softswitch, bmv2"),
        (["single-switch", "--link-rate", "fast"], 2, "Invalid value for '--link-rate': 'fast' is not a number"),
        (["link", "a", "b", "sideways"], 2, "a link is up or down, not 'sideways'"),
        (["exec", "--run", "1-1-1", "h1", "true"], 1, "no network is running"),
        (["fault", "h1", "s1", "loss=1%"], 1, "no network is running"),
    ],
)
def test_what_cannot_be_is_one_line_and_a_code(
    words: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    assert main(words) == code
    output, errors = capsys.readouterr()
    assert (output, errors.count("\n")) == ("", 1)
    assert said in errors and errors.startswith("mininet_topos: ")


def test_runs_and_leftovers_are_told_apart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    (tmp_path / "not-a-run").mkdir()
    (tmp_path / "4194305-1-1").mkdir()  # no process has that number
    alive = runs.begin()
    assert main(["runs"]) == 0
    shown = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines() if str(tmp_path) in line)
    # this machine may have runs of others, too
    assert (shown["4194305-1-1"], shown[alive.name]) == ("leftover", "starting")
    assert "not-a-run" not in shown
    assert runs.Run("4194305-1-1") in runs.leftovers() and alive not in runs.leftovers()
    runs.Run("4194305-1-1").remove()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["not-a-run", alive.name])


@pytest.mark.root
def test_a_run_in_a_container_is_no_leftover() -> None:
    # its owner has another number out here, or none
    mark = "4194305-1-2"
    words = ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", "echo; exec sleep 60"]
    environment = os.environ | {runs.MARK: mark}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as outside:
        assert outside.stdout is not None and outside.stdout.readline() == b"\n"
        found = runs.Run(mark).processes()
        outside.kill()
    assert found == [outside.pid]  # unshare itself, and not what it started
