"""The documents tell the truth: commands in them run, outputs shown are real, files they point to are there.

A fenced block ``console`` is run, and each command's output must be what the document shows; a line ``...`` stands for
any lines. A block ``console no-run`` needs what a test has not (root, a running switch): its commands and their options
must exist. A block ``python`` is run too; what it prints is in comments behind its calls of print.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller.events import KINDS
from tests.conftest import ROOT

DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
FENCE = re.compile(r"^```console( no-run)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)[^)]*\)")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a document and the output shown below it."""

    document: str
    line: int
    text: str
    output: str
    run: bool

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def commands_of(path: Path) -> Iterator[Command]:
    text = path.read_text()
    for fence in FENCE.finditer(text):
        line = text.count("\n", 0, fence.start(2))
        for part in re.split(r"^(?=\$ )", fence[2], flags=re.MULTILINE):
            line += 1
            if part.startswith("$ "):
                words, output = re.match(r"\$ ((?:.*\\\n)*.*)\n?((?:.*\n)*)", part).groups()  # type: ignore[union-attr]
                text_of = re.sub(r"\\\n *", "", words)
                yield Command(path.relative_to(ROOT).as_posix(), line, text_of, output, fence[1] is None)
            line += part.count("\n") - 1


def all_commands() -> list[Command]:
    return [command for path in DOCUMENTS for command in commands_of(path)]


def shell(text: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}", "COLUMNS": "120", "TERM": "dumb"}
    return subprocess.run(
        ["bash", "-c", text], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def matches(shown: str, real: str) -> bool:
    """Whether the output shown is the real one; a shown line ``...`` is any number of lines."""
    wanted = "\n".join(".*" if line == "..." else re.escape(line) for line in shown.rstrip("\n").split("\n"))
    got = "\n".join(line.rstrip() for line in real.split("\n")).rstrip()
    return re.fullmatch(wanted, got, re.DOTALL) is not None


@pytest.mark.parametrize("command", [c for c in all_commands() if c.run], ids=str)
def test_command_shows_what_the_document_shows(command: Command) -> None:
    done = shell(command.text)
    assert done.returncode == 0, done.stderr
    assert matches(command.output, done.stdout), done.stdout


@pytest.mark.parametrize("command", [c for c in all_commands() if not c.run], ids=str)
def test_command_that_is_not_run_exists_with_its_options(command: Command) -> None:
    text = command.text.partition(" | ")[0]
    words = [word for word in shlex.split(text, comments=True) if word not in ("sudo", "&")]
    options = {word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)}
    if words[0] == "softswitch":
        done = shell("; ".join(f"softswitch {names} --help" for names in subcommands_of(words)))
    elif words[0] == "polyplane":
        done = shell("; ".join(f"polyplane {names} --help" for names in polyplane_subcommands_of(words)))
    elif words[:3] == ["python", "-m", "mininet_topos"]:
        options.remove("-m")
        done = shell(f"python -m mininet_topos {words[3]} --help")
    elif words[0].startswith("scripts/"):
        assert os.access(ROOT / words[0], os.X_OK), f"{words[0]} is not a command"
        done = shell(f"{words[0]} --help") if options else shell("true")
    else:
        return  # not ours
    assert done.returncode == 0, done.stderr
    for option in sorted(options):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", done.stdout), f"{option} is not in the help of {words[0]}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_prints_what_the_document_says(path: Path) -> None:
    for source in PYTHON.findall(path.read_text()):
        done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == PRINTED.findall(source)


def subcommands_of(words: list[str]) -> list[str]:
    """Those whose help has the options: ``run`` of ``softswitch run P.json``, ``ctl`` and ``ctl faults set`` of
    ``softswitch ctl --socket S faults set 2``."""
    if words[1] != "ctl":
        return [words[1]]
    groups = ("ports", "queues", "faults", "pktgen", "stats")
    at = next(i for i, word in enumerate(words) if word in groups)
    return ["ctl", " ".join(["ctl", *words[at : at + 2]])]


def polyplane_subcommands_of(words: list[str]) -> list[str]:
    """Those whose help has the options: none and ``fault set`` of ``polyplane -f F fault set p1 down``."""
    at = 3 if words[1] in ("-f", "--intent", "--socket") else 1
    return ["", " ".join(words[at : at + (2 if words[at] in ("fault", "counters") else 1)])]


def test_the_guide_says_of_every_kind_of_event_what_is_done() -> None:
    table = (ROOT / "docs/operator-guide.md").read_text().partition("| event |")[2].partition("\n\n")[0]
    told = [kind for row in table.splitlines()[2:] for kind in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert sorted(told) == sorted(KINDS)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    missing = [link for link in LINK.findall(path.read_text()) if not (path.parent / link).exists()]
    assert missing == []


def test_a_shown_ellipsis_stands_for_any_lines_and_nothing_else_does() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not matches("a\n...\nd\n", "a\nb\nc\n")
    assert not matches("a\n", "ab\n")
