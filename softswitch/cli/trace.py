"""``softswitch trace``: what a program does to a packet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import units
from .output import show_json
from .programs import load_program


def trace(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.json", help="BMv2 JSON of the program.")],
    packet: Annotated[bytes, typer.Option(parser=units.packet, metavar="HEX", help="The packet.")],
    port: Annotated[int, typer.Option(parser=units.port_number, metavar="N", help="Port it arrives on.")],
    entries: Annotated[
        Path | None,
        typer.Option(metavar="FILE.stf", help="Table entries: STF add, setdefault, ... lines."),
    ] = None,
    seed: Annotated[int, typer.Option(parser=units.uint64, metavar="N", help="Seed of the program's random().")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what happens to a packet step by step: parser states, tables, actions, drops and why."""
    from softswitch.stf.parser import parse_file
    from softswitch.trace import explain
    from softswitch.trace import trace as trace_packet

    statements = parse_file(entries) if entries is not None else []
    traced = trace_packet(
        load_program(program), statements, entries.name if entries else "", packet, port, seed=seed
    )  # fmt: skip
    if as_json:
        outputs = [{"port": one.port, "packet": one.data.hex(), "time_ns": one.time_ns} for one in traced.outputs]
        show_json({"steps": traced.steps, "outputs": outputs})
        return
    for line in explain(traced.steps):
        print(line)
    for output in traced.outputs:
        print(f"port {output.port} sends {output.data.hex()}")
    if not traced.outputs:
        print("nothing leaves")
