"""The switches that are compared: started in a namespace, and programmed over P4Runtime by the same client."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import finsy as fy

from bench import router as r
from bench.veth import GENERATOR_CPU, SWITCH_IFS, BenchError, Network

START_S = 60.0  # BMv2 takes a while; both may compile or load first
STOP_S = 5.0
WRITE_SIZE = 500  # updates in one request


@dataclass(frozen=True, slots=True)
class Target:
    """A switch by its name in the results, and its command.

    ``words`` come first, with FOLDER for the folder of a run; ``between`` comes before the options that are BMv2's
    target's and not BMv2's own.
    """

    name: str
    words: tuple[str, ...]
    between: tuple[str, ...] = ()

    def command(self, folder: Path) -> list[str]:
        """All the words, with P4Runtime at :meth:`socket`."""
        words = [word.replace("FOLDER", str(folder)) for word in self.words]
        interfaces = [word for port, name in zip((r.IN_PORT, r.OUT_PORT), SWITCH_IFS, strict=True)
                      for word in ("-i", f"{port}@{name}")]  # fmt: skip
        options = ["--grpc-server-addr", f"unix:{self.socket(folder)}", "--cpu-port", "510"]
        return [*words, "--no-p4", "--device-id", "1", *interfaces, *self.between, *options]

    def socket(self, folder: Path) -> Path:
        """Where it listens."""
        return folder / f"{self.name}.sock"


SOFTSWITCH = Target(
    "softswitch",
    (sys.executable, "-m", "softswitch", "run", "--log-level", "error", "--control", "FOLDER/control.sock"),
)
BMV2 = Target(
    "bmv2",
    ("simple_switch_grpc", "--log-level", "off", "--notifications-addr", "ipc://FOLDER/notifications.ipc"),
    ("--",),
)


def bmv2_path() -> str | None:
    """Where simple_switch_grpc is, or None."""
    return shutil.which(BMV2.words[0])


@contextmanager
def running(target: Target, net: Network, router: r.Router, folder: Path) -> Iterator[int]:
    """The switch forwards as the router's entries say; its process id. Raises BenchError where it does not start."""
    log = folder / f"{target.name}.log"
    words = ["ip", "netns", "exec", net.switch, *target.command(folder)]
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, cwd=r.ROOT)
    try:
        _leave_generator_alone(process.pid)
        _wait_for(target.socket(folder), process, log)
        asyncio.run(_program(f"unix:{target.socket(folder)}", router))
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _leave_generator_alone(pid: int) -> None:
    """The process, and the threads that it will start, run on the other processors, where there are some."""
    others = os.sched_getaffinity(0) - {GENERATOR_CPU}
    if others:
        os.sched_setaffinity(pid, others)


def _wait_for(socket: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > end:
            raise BenchError(f"the switch: {log.read_text(errors='replace').strip()[-2000:] or 'does not start'}")
        time.sleep(0.05)


async def _program(address: str, router: r.Router) -> None:
    options = fy.SwitchOptions(p4info=r.P4INFO, p4blob=r.PROGRAM, fail_fast=True)
    async with fy.Switch("router", address, options) as switch:
        updates = entries(router)
        for at in range(0, len(updates), WRITE_SIZE):
            await switch.write(updates[at : at + WRITE_SIZE])


def entries(router: r.Router) -> list[Any]:
    """The router's entries as insertions."""
    updates: list[Any] = []
    for at, rule in enumerate(router.acl):
        match = fy.Match(_acl_fields(rule))
        updates.append(+fy.P4TableEntry("acl", match=match, action=fy.Action("acl_permit"),
                                        priority=len(router.acl) - at))  # fmt: skip
    for prefix, nexthop in router.routes:
        match = fy.Match(dst_addr=(prefix.value, prefix.length))
        updates.append(+fy.P4TableEntry("route_ipv4", match=match, action=fy.Action("route_via", nexthop_id=nexthop)))
    for nexthop in range(1, r.NEXTHOPS + 1):
        action = fy.Action("forward", port=r.OUT_PORT, dst_addr=r.NEXTHOP_MAC + nexthop)
        updates.append(+fy.P4TableEntry("neighbour", match=fy.Match(nexthop_id=nexthop), action=action))
    source = fy.Action("set_source", src_addr=r.ROUTER_MAC)
    updates.append(+fy.P4TableEntry("router_port", match=fy.Match(port=r.OUT_PORT), action=source))
    return updates


def _acl_fields(rule: r.AclRule) -> dict[str, Any]:
    """What the rule asks for; a field that is any is left out, as P4Runtime wants it."""
    fields: dict[str, Any] = {
        "src_addr": (rule.source.value, rule.source.mask) if rule.source.length else None,
        "dst_addr": (rule.destination.value, rule.destination.mask),
        "protocol": rule.protocol,
        "l4_dst_port": rule.port,
    }
    return {name: value for name, value in fields.items() if value is not None}
