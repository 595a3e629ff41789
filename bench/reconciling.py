"""Reconciling a device with a full routing table: into an empty device, and again, when nothing is to be written."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import router as r
from bench.targets import BMV2, STOP_S, Target
from bench.veth import BenchError
from controller.device import DeviceSession, Notice, SessionState, SessionUp, WriteFailed
from controller.entities import Entity, Lpm, TableEntry, entry
from controller.intent import load_intent
from controller.model import Device
from controller.plan import plan
from controller.programs import program_for

INTENT = r.ROOT / "controller/examples/leaf-spine.yaml"
DEVICE = "p1-leaf1"
SESSION_S, WORK_S = 60.0, 600.0
MIB = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Reconciled:
    """One switch: seconds for reading back and writing all, then for finding that nothing is to be written."""

    switch: str
    entries: int
    first_s: float
    first_writes: int
    second_s: float
    second_writes: int
    memory_mib: float  # the most that the controller's process took beyond what it had before


def measure(target: Target, entries: int) -> Reconciled:
    """Reconcile a switch of that kind with so many routes. Raises BenchError."""
    with tempfile.TemporaryDirectory(prefix="polyplane-bench-") as name, _running(target, Path(name)) as address:
        intent = load_intent(INTENT)
        device = dataclasses.replace(intent.device_by_name[DEVICE], address=address, device_id=1)
        try:
            return asyncio.run(_measure(target.name, device, with_routes(plan(intent)[DEVICE], entries)))
        except (TimeoutError, WriteFailed) as error:
            raise BenchError(f"{target.name} with {entries:,} entries: {error or 'takes too long'}") from error


def with_routes(entities: frozenset[Entity], count: int) -> frozenset[Entity]:
    """The entities, and IPv4 host routes up to ``count`` entries in all."""
    group = next(one.params for one in entities if isinstance(one, TableEntry) and one.action == "ipv4_via")
    routes = (
        entry("route_ipv4", {"dst_addr": Lpm(0x0B000000 + at, 32)}, "ipv4_via", dict(group))
        for at in range(count - len(entities))
    )
    return entities | frozenset(routes)


async def _measure(switch: str, device: Device, desired: frozenset[Entity]) -> Reconciled:
    ready = asyncio.Event()

    def heard(notice: Notice) -> None:
        if isinstance(notice, SessionUp) and notice.state is SessionState.PRIMARY:
            ready.set()

    session = DeviceSession(device, program_for(device.role), heard)
    task = asyncio.create_task(session.run())
    try:
        await asyncio.wait_for(ready.wait(), SESSION_S)
        before = _memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        runs = []
        for _ in range(2):
            started = time.perf_counter()
            change = await asyncio.wait_for(session.reconcile(desired), WORK_S)
            runs.append((round(time.perf_counter() - started, 2), len(change)))
        (first_s, first), (second_s, second) = runs
        memory = round((_memory("VmHWM") - before) / MIB, 1)
        return Reconciled(switch, len(desired), first_s, first, second_s, second, memory)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _memory(name: str) -> int:
    """This process's memory in bytes, by its name in /proc."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


@contextlib.contextmanager
def _running(target: Target, folder: Path) -> Iterator[str]:
    """A switch without ports; its address."""
    words = [word.replace("FOLDER", str(folder)) for word in target.words]
    words += ["--no-p4", "--device-id", "1", *(_thrift() if target is BMV2 else []), *target.between]
    words += ["--grpc-server-addr", f"unix:{target.socket(folder)}", "--cpu-port", "510", "--priority-queues", "8"]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, cwd=r.ROOT)
    try:
        yield f"unix:{target.socket(folder)}"
        if process.poll() is not None:
            raise BenchError(f"{target.name}: {log.read_text(errors='replace').strip()[-2000:]}")
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _thrift() -> list[str]:
    """A Thrift port that nobody has: every BMv2 wants one of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return ["--thrift-port", str(probe.getsockname()[1])]
