"""Comparing what left the ports with what an STF file expects."""

from __future__ import annotations

import pytest

from softswitch.stf.expect import mismatch, mismatches
from softswitch.stf.syntax import Expect


def expect(pattern: str | None, *, port: int = 1, exact: bool = False, line: int = 1) -> Expect:
    return Expect(line, port, pattern, exact)


@pytest.mark.parametrize(
    ("pattern", "exact", "packet"),
    [
        ("0A", False, "0a"),
        ("0A", False, "0abb"),
        ("0A", True, "0a"),
        ("0***", False, "0abb"),
        ("", True, ""),
        (None, False, "1234"),
    ],
)
def test_matching_packets(pattern: str | None, exact: bool, packet: str) -> None:
    assert mismatch(expect(pattern, exact=exact), bytes.fromhex(packet)) is None


@pytest.mark.parametrize(
    ("pattern", "exact", "packet", "reason"),
    [
        ("0A0B", False, "0a0c", "byte 1 differs: expected 0A0B, got 0A0C"),
        ("0A0B", False, "0a", "packet of 1 bytes is shorter than the 2 expected: expected 0A0B, got 0A"),
        ("0A", True, "0a0b", "packet of 2 bytes is longer than the 1 expected: expected 0A$, got 0A0B"),
    ],
)
def test_differing_packets(pattern: str, exact: bool, packet: str, reason: str) -> None:
    assert mismatch(expect(pattern, exact=exact), bytes.fromhex(packet)) == reason


def test_packets_are_compared_in_order_per_port() -> None:
    expected = [expect("01", port=1), expect("02", port=2), expect("03", port=1)]
    assert mismatches(expected, {1: [b"\x01", b"\x03"], 2: [b"\x02"]}, "f.stf") == []


def test_a_packet_too_many_is_a_problem() -> None:
    assert mismatches([], {4: [b"\xab"]}, "f.stf") == [
        "f.stf: port 4: expected 0 packets, got 1",
        "f.stf: port 4: unexpected packet AB",
    ]


def test_a_missing_packet_is_a_problem_with_the_line_that_expects_it() -> None:
    assert mismatches([expect("01", line=7)], {1: []}, "f.stf") == [
        "f.stf: port 1: expected 1 packet, got 0",
        "f.stf:7: port 1: no packet for 01",
    ]
