"""``python -m tests.fuzz``: exit status 1 on a finding, with what reproduces it."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from tests.fuzz import programs, supervisor
from tests.fuzz.cases import KINDS


def main() -> int:
    """Parse the options, run, print a summary."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz under ASan and UBSan.")
    parser.add_argument("--seconds", type=float, default=60, help="how long (60)")
    parser.add_argument("--seed", type=int, help="default: another one every time")
    parser.add_argument("--programs", type=Path, nargs="+", default=programs.FOLDERS, help="JSON, or folders of it")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"default: {','.join(KINDS)}")
    parser.add_argument("--case", help="run this case (KIND:PROGRAM:SEED), as a finding names it")
    options = parser.parse_args()
    unknown = set(options.kinds.split(",")) - set(KINDS)
    if unknown:
        parser.error(f"unknown kind {min(unknown)}; there are {', '.join(KINDS)}")
    try:
        supervisor.environment()
    except supervisor.Unavailable as reason:
        print(f"skipped: {reason}")
        return 0
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    if options.case:
        result = supervisor.Result()
        supervisor.run(["case", options.case], result)
    else:
        found = programs.find(options.programs)
        print(f"seed {seed}, {len(found)} programs, {options.seconds:g} s", flush=True)
        result = supervisor.fuzz(options.seconds, seed, found, options.kinds.split(","))
    if result.finding:
        print(result.finding)
    counts = ", ".join(f"{count} {name}" for name, count in result.counts.items() if count)
    print(f"fuzz: {'1 finding' if result.finding else 'no finding'}; seed {seed}; {counts}")
    return 1 if result.finding else 0


if __name__ == "__main__":
    sys.exit(main())
