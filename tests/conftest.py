"""What all tests share: which of them this machine can run, and the committed programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/p4/build"


def _can_make_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    return subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0


# marker: whether this machine has it, and what to say where it has not
NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "root": (_can_make_namespaces, "not root, or no network namespaces"),
    "mininet": (lambda: all(map(shutil.which, ("mnexec", "ifconfig", "ethtool"))), "no mnexec, ifconfig or ethtool"),
    "p4c": (lambda: shutil.which("p4c-bm2-ss") is not None, "no p4c-bm2-ss on PATH"),
    "bmv2": (lambda: shutil.which("simple_switch_grpc") is not None, "no simple_switch_grpc on PATH"),
    "shell": (lambda: (ROOT / ".venv-shell/bin/python").exists(), "no .venv-shell"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs something that is not there, with a reason that scripts/test counts in its summary."""
    missing = {name: reason for name, (present, reason) in NEEDS.items() if not present()}
    for item in items:
        for name, reason in missing.items():
            if item.get_closest_marker(name) is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the test programs' compiler output, NAME.json and NAME.p4info.txtpb."""
    return PROGRAMS
