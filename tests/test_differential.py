"""A short, deterministic slice of scripts/differential."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from softswitch import bmv2_json
from tests.conftest import PROGRAMS
from tests.differential.packets import MAX_BYTES, Packets
from tests.differential.pool import Pool
from tests.differential.run import run
from tests.differential.unspecified import differ
from tests.p4runtime_client import Program

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.json"))
SEEDS = (2, 3)  # one with groups of many copies, one where the order of packets is compared
PACKETS = 40


@pytest.mark.bmv2
@pytest.mark.parametrize("name", NAMES)
def test_random_entries_and_packets_come_out_as_on_bmv2(name: str, programs: Path) -> None:
    for seed in SEEDS:
        result = run(name, Program.load(programs, name), seed, PACKETS)

        assert result.finding is None, str(result.finding)
        assert (result.tally.packets, result.over) == (PACKETS, "")


def test_packets_depend_on_nothing_but_the_seed(programs: Path) -> None:
    program = bmv2_json.load(programs / "parser_features.json")

    def packets(seed: int) -> list[tuple[int, bytes]]:
        rng = random.Random(seed)
        source = Packets(rng, program, Pool(rng, program))
        return [source.packet() for _ in range(50)]

    assert packets(1) == packets(1)
    assert packets(1) != packets(2)
    assert all(1 <= len(data) <= MAX_BYTES for _, data in packets(1))


def test_bits_that_depend_on_the_clock_may_differ() -> None:
    assert not differ([(1, b"\x12\x34")], [(1, b"\x12\x00")], [[(1, b"\x12\xff")]])


def test_bits_that_do_not_depend_on_the_clock_may_not_differ() -> None:
    assert differ([(1, b"\x13\x34")], [(1, b"\x12\x00")], [[(1, b"\x12\xff")]])


def test_order_within_a_port_counts_where_it_is_certain() -> None:
    there, back = [(1, b"a"), (1, b"b")], [(1, b"b"), (1, b"a")]

    assert differ(there, back, [back])
    assert not differ(there, back, [back], ordered=False)


def test_order_between_ports_does_not_count() -> None:
    assert not differ([(1, b"a"), (2, b"b")], [(2, b"b"), (1, b"a")], [])


def test_a_packet_more_is_a_difference() -> None:
    assert differ([(1, b"a"), (1, b"a")], [(1, b"a")], [], ordered=False)
