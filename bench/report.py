"""The results of ``scripts/bench switch`` as text, or as a Markdown table for the README."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.fabric import PLANES
from bench.memory import WANTED_PPS
from bench.overload import ROUNDS
from bench.switch import OVERLOAD_SHARE, Results
from bench.veth import BURST

MEMORY_HEAD = ("program", "routes", "ternary", "bytes", "random, packets/s", "one flow, packets/s", "to wanted")
VETH_HEAD = ("switch", "bytes", "lossless packets/s", "to BMv2", "most packets/s")
OVERLOAD_HEAD = ("switch", "bytes", "peak, packets/s", "offered", "to peak", "carried", "kept", "least kept")
METHOD = """\
In memory: one core, from receive to transmit, without wires. Random: packets to routes chosen at random, half of them
made to match an access-list rule. One flow: the same packet again and again. Wanted: {wanted:,} random packets/s of the
L3 router, at 1,000 routes. The fabric sprays every packet over {planes} planes and looks at its queue.

Over veth: the L3 router, 1,000 routes, 10 ternary entries. Lossless: the highest rate with at most 0.5 % loss. Most:
the highest that came out in any run. Generator and switch have a core each, and the generator's also does the kernel's
work up to the switch's socket. Packets go to random routes, in bursts of {burst} of one flow.

Overload: the switch may use {share:.0%} of a core, so that the generator can offer ten times what it carries. Its peak
is found anew; then peak and overload are offered in turn, {rounds} times. Kept: what was carried of the peak; the row
is the round with the median."""


def text(results: Results) -> str:
    """Tables in columns."""
    parts = [str(results.machine), "", *columns(MEMORY_HEAD, memory_rows(results))]
    if results.veth:
        parts += ["", *columns(VETH_HEAD, veth_rows(results))]
        parts += ["", *columns(OVERLOAD_HEAD, overload_rows(results))]
    parts += [f"skipped: {what}: {why}" for what, why in results.skipped.items()]
    return "\n".join([*parts, "", method()])


def markdown(results: Results) -> str:
    """Tables, with the machine and the method below."""
    parts = [*pipes(MEMORY_HEAD, memory_rows(results))]
    if results.veth:
        parts += ["", *pipes(VETH_HEAD, veth_rows(results)), "", *pipes(OVERLOAD_HEAD, overload_rows(results))]
    return "\n".join([*parts, "", f"{results.machine}.", "", method()])


def method() -> str:
    """How it was measured."""
    return METHOD.format(wanted=WANTED_PPS, planes=PLANES, burst=BURST, share=OVERLOAD_SHARE, rounds=ROUNDS)


def memory_rows(results: Results) -> list[list[str]]:
    """A row for each program, size of its tables and packet length."""
    flows = {(one.program, one.routes, one.acl, one.length): one.pps for one in results.memory if one.traffic == "flow"}
    return [
        [one.program, f"{one.routes:,}", f"{one.acl:,}", f"{one.length:,}", _rate(one.pps),
         _rate(flows[one.program, one.routes, one.acl, one.length]), f"{one.ratio:.1f} x"]
        for one in results.memory if one.traffic == "random"
    ]  # fmt: skip


def veth_rows(results: Results) -> list[list[str]]:
    """A row for each switch and frame length."""
    rows = []
    for one in results.veth:
        ratio = results.ratio(one)
        more = " or more (the generator's limit)" if one.peak.limit == "generator" else ""
        beside = "-" if ratio is None else f"{ratio:.1f} x"
        rows.append([one.switch, f"{one.length:,}", _rate(one.peak.lossless) + more, beside, _rate(one.peak.most)])
    return rows


def overload_rows(results: Results) -> list[list[str]]:
    """A row for each switch and frame length that was overloaded."""
    rows = []
    for one in results.veth:
        if one.overload is not None:
            typical, worst = one.overload.typical, one.overload.worst
            rows.append([
                one.switch, f"{one.length:,}", _rate(typical.peak), _rate(typical.offered), f"{typical.factor:.1f} x",
                _rate(typical.carried), f"{typical.kept:.0%}", f"{worst.kept:.0%}",
            ])  # fmt: skip
    return rows


def _rate(pps: float) -> str:
    return f"{pps:,.0f}"


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Right-aligned columns."""
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]


def pipes(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    rule = ["---:"] * len(head)
    return [f"| {' | '.join(line)} |" for line in (head, rule, *rows)]
