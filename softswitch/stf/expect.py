"""Compares what left each port with what an STF file expects there.

As p4c's BMv2 driver does: packets are compared port by port in the order they left, a port of the test must send
exactly as many packets as are expected there, an expected packet may be shorter than the real one unless it ends in
``$``, and ports that the test never names are not watched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .syntax import Expect


def mismatches(expected: Sequence[Expect], received: Mapping[int, Sequence[bytes]], file: str) -> list[str]:
    """What is wrong, one line each and none for a pass; ``received`` holds every watched port."""
    by_port: dict[int, list[Expect]] = {port: [] for port in received}
    for statement in expected:
        by_port.setdefault(statement.port, []).append(statement)
    problems = []
    for port in sorted(by_port):
        wanted, got = by_port[port], received.get(port, ())
        if len(wanted) != len(got):
            problems.append(f"{file}: port {port}: expected {_packets(len(wanted))}, got {len(got)}")
        for statement, packet in zip(wanted, got, strict=False):
            reason = mismatch(statement, packet)
            if reason:
                problems.append(f"{file}:{statement.line}: port {port}: {reason}")
        for statement in wanted[len(got) :]:
            problems.append(f"{file}:{statement.line}: port {port}: no packet for {_pattern(statement)}")
        for packet in got[len(wanted) :]:
            problems.append(f"{file}: port {port}: unexpected packet {packet.hex().upper()}")
    return problems


def mismatch(expected: Expect, packet: bytes) -> str | None:
    """Why a packet is not the expected one, or None if it is."""
    if expected.pattern is None:
        return None
    pattern, digits = expected.pattern, packet.hex().upper()
    compared = f"expected {_pattern(expected)}, got {digits}"
    if len(digits) < len(pattern):
        return f"packet of {len(packet)} bytes is shorter than the {len(pattern) / 2:g} expected: {compared}"
    for at, (want, have) in enumerate(zip(pattern, digits, strict=False)):
        if want not in ("*", have):
            return f"byte {at // 2} differs: {compared}"
    if expected.exact and len(digits) > len(pattern):
        return f"packet of {len(packet)} bytes is longer than the {len(pattern) / 2:g} expected: {compared}"
    return None


def _pattern(expected: Expect) -> str:
    return "any packet" if expected.pattern is None else expected.pattern + ("$" if expected.exact else "")


def _packets(count: int) -> str:
    return f"{count} packet" + ("" if count == 1 else "s")
