"""Mininet's command line, with commands by a pipe."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from mininet_topos import live
from tests.mininet_support import NEEDS_MININET, program_router

pytestmark = [*NEEDS_MININET, pytest.mark.skipif(shutil.which("iperf") is None, reason="no iperf")]
RATE = r"'[\d.]+ \w+/sec'"


def test_iperf_measures_and_a_failure_ends_neither_the_command_line_nor_the_network() -> None:
    words = [sys.executable, "-m", "mininet_topos", "single-switch", "--target", "softswitch"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        run = next(found[1] for line in process.stdout if (found := re.search(r"\*\*\* Run (\S+):", line)))
        program_router(live.load(run).node("s1").grpc, 2)
        said, _ = process.communicate("iperf h1 h2\niperfudp 1M h1 h2\nlink h1 s1 down\niperf h1 h2\nh1 echo on\n", 90)
    assert re.search(rf"Results: \[{RATE}, {RATE}\]", said), said
    assert re.search(rf"Results: \['1M', {RATE}, {RATE}\]", said), said
    assert re.search(r"h1: timeout .* -c 10.0.2.2: .*\n(.*\n)*mininet> on\n", said), said
    assert process.returncode == 0
