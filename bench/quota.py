"""A limit on the processor time of a process, by the kernel's control groups (version 1 or 2)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PERIOD_US = 10_000
MOUNTS = Path("/proc/self/mounts")


class QuotaError(Exception):
    """This machine does not let us limit a process; the text says why."""


@contextmanager
def cpu_quota(pid: int, share: float) -> Iterator[None]:
    """Let a process and its threads have ``share`` of one processor, until the end. Raises QuotaError."""
    root, version = hierarchy(MOUNTS.read_text())
    group = root / f"polyplane-bench-{os.getpid()}"
    quota = round(share * PERIOD_US)
    with ExitStack() as undo:
        try:
            if version == 2:
                (root / "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
            undo.callback(group.rmdir)
            if version == 2:
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            (group / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            raise QuotaError(f"cannot limit a process's processor time: {error}") from error
        undo.callback((root / "cgroup.procs").write_text, str(pid))
        yield


def hierarchy(mounts: str) -> tuple[Path, int]:
    """Where the cpu controller is mounted, by what /proc/self/mounts says, and its version. Raises QuotaError."""
    unified = None
    for line in mounts.splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(where), 1
        if kind == "cgroup2":
            unified = Path(where)
    if unified is None:
        raise QuotaError("no cpu controller of control groups is mounted")
    return unified, 2
