"""p4runtime-shell, unmodified and in its own environment, against a switch that runs a real program."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tests.test_clients_finsy import CPU_PORT, WAIT_S, Target, target

__all__ = ["target"]  # the fixture

pytestmark = pytest.mark.shell


class Session:
    """The shell's process, as tests/shell_session.py speaks."""

    def __init__(self, python: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [str(python), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def hear(self) -> Any:
        """The next value that the session says; its errors where it died."""
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def go_on(self) -> None:
        """Let the session continue."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@pytest.fixture
def session(root: Path, programs: Path, target: Target) -> Iterator[Session]:
    files = [str(programs / "l3_router.p4info.txtpb"), str(programs / "l3_router.json")]
    made = Session(root / ".venv-shell/bin/python", str(root / "tests/shell_session.py"), target.address, *files)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def test_the_shell_loads_a_pipeline_writes_reads_and_exchanges_packets(session: Session, target: Target) -> None:
    assert session.hear() == [16]
    assert session.hear() == [[0, 6, "table RouterIngress.route_ipv4: the entry already exists"]]
    routed = bytes(Ether(src="02:00:00:00:00:01") / IP(src="10.0.0.1", dst="192.168.9.9") / UDP() / b"payload")
    assert session.hear() == "send me a packet"
    (left,) = target.device.inject(1, routed, 1000)
    assert (left.port, Ether(left.data).dst) == (3, "02:00:00:00:00:99")
    packet = bytes(Ether(src="02:00:00:00:00:01") / IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / b"payload")
    (punted,) = target.device.inject(5, packet, 2000)
    assert punted.port == CPU_PORT
    session.go_on()
    assert session.hear() == [packet.hex(), ["05", "01"]]
    assert session.hear() == [1]
    sent = target.outputs.get(timeout=WAIT_S)
    assert (sent.port, sent.data) == (4, packet)
    assert session.hear() == [1, 1]
    assert session.hear() == 0
    assert session.process.wait(WAIT_S) == 0
