"""``iperf`` between two hosts of a run.

Mininet's own asks first whether the server listens, and waits for a report on that, which iperf 2.1 does not give any
more: for ever. It also kills every iperf on the machine, that of other runs as well.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence

from mininet_topos.live import LiveError, Node
from mininet_topos.namespace import inside
from mininet_topos.runs import Run

PATIENCE_S = 10  # beyond the seconds that are measured
RATE = re.compile(r"[\d.]+ \w+/sec")


def measure(run: Run, client: Node, server: Node, address: str, seconds: int, options: Sequence[str]) -> list[str]:
    """What arrived at the server's address and what the client sent, a second. Raises LiveError."""
    words = ["timeout", "-k", "1", str(seconds + PATIENCE_S), "stdbuf", "-oL", "iperf", *options]
    with inside(server.pid):
        serving = subprocess.Popen(
            [*words, "-s"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=run.environment()
        )
    with serving:
        try:
            assert serving.stdout is not None
            said = [next((line for line in serving.stdout if "listening" in line), "")]
            sent = _rate(client, client.output(*words, "-t", str(seconds), "-c", address).splitlines())
            return [_rate(server, said + list(_until_rate(serving.stdout))), sent]
        finally:
            serving.terminate()


def _until_rate(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        yield line
        if RATE.search(line):
            return


def _rate(node: Node, lines: Sequence[str]) -> str:
    found = RATE.findall("\n".join(lines))
    if not found:
        raise LiveError(f"{node.name}: iperf says no rate: {' '.join(' '.join(lines).split())}")
    return str(found[-1])
