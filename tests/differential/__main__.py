"""``scripts/differential``: exit status 1 on a difference, with what reproduces it."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path

from softswitch.json_node import ProgramError
from softswitch.p4runtime.errors import P4Error
from tests.differential.bmv2 import available
from tests.differential.pair import Tally
from tests.differential.run import Finding, run
from tests.p4runtime_client import Program

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = [ROOT / "tests/p4/build", ROOT / "p4src/build"]
INFO = ".p4info.txtpb"


@dataclass(slots=True)
class Row:
    """What became of one program."""

    seeds: int = 0
    tally: Tally = field(default_factory=Tally)
    finding: Finding | None = None
    refused: str = ""  # why the softswitch does not load it

    @property
    def differs(self) -> bool:
        """Whether the outcome was not the same. BMv2 loads all that p4c makes, so a refusal is a difference."""
        return self.finding is not None or bool(self.refused)


def main() -> int:
    """Parse the options, compare, print a table."""
    options = _options()
    if not available():
        print("skipped: simple_switch_grpc (BMv2) is not on PATH")
        return 0
    places = {path.name.removesuffix(INFO): path.parent for f in options.folders for path in sorted(f.glob(f"*{INFO}"))}
    unknown = set(options.programs or ()) - set(places)
    if unknown:
        print(f"there is no program {min(unknown)}; there are: {', '.join(places)}", file=sys.stderr)
        return 2
    seeds = options.seeds or (None if options.seconds else 3)
    numbers = itertools.count(options.seed) if seeds is None else range(options.seed, options.seed + seeds)
    rows = {name: Row() for name in options.programs or places}
    started = time.monotonic()
    for name, seed in _runs(rows, numbers):
        if options.seconds and time.monotonic() > started + options.seconds:
            break
        row = rows[name]
        try:
            result = run(name, Program.load(places[name], name), seed, options.packets)
        except (ProgramError, P4Error) as error:
            row.refused = str(error)
            continue
        row.seeds, row.finding = row.seeds + 1, result.finding
        row.tally.add(result.tally)
        if result.over:
            print(f"{name}, seed {seed} ends after {result.tally.packets} packets: {result.over}", flush=True)
        if result.finding is not None:
            print(f"{result.finding}\n", flush=True)
    _report(rows, time.monotonic() - started)
    return 1 if any(row.differs for row in rows.values()) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/differential",
        description="Run random entries and packets on the softswitch and on simple_switch_grpc; compare the outcome.",
        epilog="Exit status: 0 no difference, or no BMv2; 1 a difference, or a program that the softswitch refuses. A"
        " program that differed runs no more. Programs must not read fields of headers that are not valid.",
    )
    parser.add_argument(
        "--folders", type=Path, nargs="+", default=FOLDERS, metavar="DIR",
        help=f"where NAME.json and NAME{INFO} are (tests/p4/build and p4src/build)",
    )  # fmt: skip
    parser.add_argument("--programs", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--seeds", type=int, help="runs of each program (3, or with --seconds as many as fit)")
    parser.add_argument("--seed", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--packets", type=int, default=300, help="of each run (300)")
    parser.add_argument("--seconds", type=float, help="begin no run after so long")
    return parser.parse_args()


def _runs(rows: dict[str, Row], seeds: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Every program with every seed, until it differs."""
    for seed in seeds:
        left = [name for name, row in rows.items() if not row.differs]
        if not left:
            return
        yield from ((name, seed) for name in left)


def _report(rows: dict[str, Row], seconds: float) -> None:
    total = Tally()
    heads = [one.name.replace("_", "-") for one in fields(Tally)]
    print(_line("program", "seeds", heads, "differences"))
    for name, row in rows.items():
        total.add(row.tally)
        print(_line(name, row.seeds, astuple(row.tally), row.refused or int(row.finding is not None)))
    count = sum(row.differs for row in rows.values())
    print(
        f"differential: {count or 'no'} difference{'' if count == 1 else 's'}; {len(rows)} programs, "
        f"{sum(row.seeds for row in rows.values())} runs, {total.updates} updates, {total.packets} packets, "
        f"{total.outputs} outputs, {seconds:.0f} s"
    )


def _line(name: str, seeds: object, cells: Sequence[object], last: object) -> str:
    return f"{name:20} {seeds!s:>6} " + " ".join(f"{cell!s:>11}" for cell in cells) + f"  {last}"


if __name__ == "__main__":
    sys.exit(main())
