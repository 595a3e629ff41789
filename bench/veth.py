"""A host and a switch, two veth pairs between them, and a generator whose load comes back through the switch."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import router as r
from softswitch.toolchain import compiler

PREFIX = "polyplane-bench-"
SWITCH_IFS = ("bench-in", "bench-out")  # ports IN_PORT and OUT_PORT
HOST_IFS = ("load", "sink")
GENERATOR_CPU = 0
BURST = 16  # frames of one flow in a row
# What a routed frame looks like, OFFSET:SIZE:VALUE: the router's source address, and a hop less to live.
CHECKS = (f"6:4:{r.ROUTER_MAC >> 16:#x}", f"10:2:{r.ROUTER_MAC & 0xFFFF:#x}", "12:2:0x800", "22:1:63")


class BenchError(Exception):
    """A command or a switch failed; the text has what it said."""


@dataclass(frozen=True, slots=True)
class Load:
    """One run of the generator. Rates are frames a second."""

    offered: float
    carried: float  # while it was offered
    loss: float  # share of what was offered that never came back


def command(*words: str) -> None:
    """Run a command. Raises BenchError."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")


@dataclass(frozen=True, slots=True)
class Network:
    """The namespaces of the host and of the switch, and the compiled generator."""

    host: str
    switch: str
    generator: Path

    def offer(self, frames: Sequence[bytes], rate: int, seconds: float) -> Load:
        """Send ``rate`` frames a second into the switch, BURST of one flow at a time.

        All have the same length. A generator that cannot send so many offers less.
        """
        words = ["ip", "netns", "exec", self.host, str(self.generator), *HOST_IFS, str(GENERATOR_CPU),
                 str(len(frames[0])), str(BURST), str(rate), str(seconds), *CHECKS]  # fmt: skip
        headers = b"".join(frame[: r.HEADERS] for frame in frames)
        done = subprocess.run(words, input=headers, capture_output=True, check=False)
        if done.returncode:
            raise BenchError(done.stderr.decode().strip())
        told = json.loads(done.stdout)
        if not told["sent"]:
            raise BenchError("the generator could not send: is the interface up?")
        seconds = told["ns"] / 1e9
        return Load(told["sent"] / seconds, told["received_in_time"] / seconds, 1 - told["received"] / told["sent"])


@contextmanager
def network(folder: Path) -> Iterator[Network]:
    """The namespaces and interfaces, removed at the end; the generator is compiled into ``folder``. Needs root."""
    net = Network(f"{PREFIX}{os.getpid()}-host", f"{PREFIX}{os.getpid()}-switch", folder / "load")
    source = Path(__file__).with_name("load.c")
    command(*compiler(), "-O2", "-std=gnu11", "-Wall", "-Wextra", "-o", str(net.generator), str(source))
    try:
        for space in (net.host, net.switch):
            command("ip", "netns", "add", space)
            command("ip", "netns", "exec", space, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
            command("ip", "-n", space, "link", "set", "lo", "up")
        for near, far in zip(HOST_IFS, SWITCH_IFS, strict=True):
            ends = (near, "netns", net.host, "type", "veth", "peer", "name", far, "netns", net.switch)
            command("ip", "link", "add", *ends)
            # the generator's core cuts large packets into frames and sums them up, not the switch's
            command("ip", "netns", "exec", net.host, "ethtool", "-K", near, "tx", "off", "tx-udp-segmentation", "off")
            command("ip", "-n", net.host, "link", "set", near, "up")
            command("ip", "-n", net.switch, "link", "set", far, "up")
        yield net
    finally:
        for space in (net.host, net.switch):
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)
