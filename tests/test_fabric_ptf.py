"""scripts/ptf: which tests and targets it takes, and what it says of others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptf_tests import __main__ as ptf

SOME = "forwarding.Ipv4IsRouted"


def run(root: Path, *words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({} if path is None else {"PATH": path})
    return subprocess.run(
        [sys.executable, "-m", "ptf_tests", *words], cwd=root, env=environment, capture_output=True, text=True
    )  # fmt: skip


def test_an_unknown_test_is_refused_with_the_valid_ones(root: Path) -> None:
    done = run(root, "nosuch")
    assert done.returncode == 2
    assert done.stderr == "scripts/ptf: no test 'nosuch'; the modules are: ecn, forwarding, health, nic, spray\n"


def test_bmv2_is_refused_where_it_is_not_installed(root: Path) -> None:
    done = run(root, "--target", "bmv2", path="/nowhere")
    assert done.returncode == 2
    assert done.stderr == "scripts/ptf: target bmv2 needs simple_switch_grpc on PATH\n"


def test_every_test_is_known_by_module_and_class() -> None:
    names = ptf.test_names("fabric")
    assert {"ecn", "forwarding", "health", "spray", SOME} <= names
    assert "nic.UdpIsSprayedOverThePlanes" in ptf.test_names("smartnic")


@pytest.mark.root
def test_a_run_says_what_passed_and_leaves_nothing_behind(root: Path) -> None:
    words = [sys.executable, "-m", "ptf_tests", "--target", "softswitch", SOME]
    process = subprocess.Popen(words, cwd=root, stdout=subprocess.PIPE, text=True)
    told, _ = process.communicate()
    assert process.returncode == 0, told
    assert re.fullmatch(r"softswitch fabric    Ran 1 test in [0-9.]+s, OK\n", told)
    spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert f"polyplane-ptf-{process.pid}" not in spaces
