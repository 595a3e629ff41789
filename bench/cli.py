"""The command ``scripts/bench``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence

from bench import controller, report, switch
from bench.veth import BenchError


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    top = argparse.ArgumentParser(prog="scripts/bench", description=__doc__, allow_abbrev=False)
    commands = top.add_subparsers(dest="command", required=True, metavar="BENCHMARK")
    one = commands.add_parser(
        "switch", help="packets a second of the softswitch, in memory and over veth beside BMv2",
        description="Packets a second of the L3 router and of fabric.p4. As root also over veth, and beside"
        " simple_switch_grpc where that is on PATH. Takes about five minutes.", allow_abbrev=False,
    )  # fmt: skip
    form = one.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print the tables of the README")
    one.add_argument("--quick", action="store_true", help="shorter runs and no large tables: two minutes")
    one.add_argument("--memory-only", action="store_true", help="leave out what goes over veth")
    one.set_defaults(run=_switch)
    two = commands.add_parser(
        "controller", help="reaction to failures, planning for 64 switches, a table of 100,000 entries",
        description="How fast the controller reroutes, as root on a Mininet fabric; what 64 switches and a table of"
        " 100,000 entries cost it. On the softswitch, and on BMv2 where that is on PATH. Takes about three minutes.",
        allow_abbrev=False,
    )  # fmt: skip
    two.add_argument("--json", action="store_true", help="print JSON")
    two.add_argument("--quick", action="store_true", help="fewer samples and 10,000 entries")
    two.set_defaults(run=_controller)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it. Results go to standard output, progress to standard error; 1 where a switch does not work."""
    options = parser().parse_args(arguments)
    try:
        print(options.run(options))
    except BenchError as error:
        print(f"scripts/bench: {error}", file=sys.stderr)
        return 1
    return 0


def _switch(options: argparse.Namespace) -> str:
    plan = dataclasses.replace(switch.QUICK if options.quick else switch.Plan(), veth=not options.memory_only)
    results = switch.run(plan, _note)
    if options.json:
        return json.dumps(results.as_json(), indent=2)
    return report.markdown(results) if options.markdown else report.text(results)


def _controller(options: argparse.Namespace) -> str:
    results = controller.run(controller.QUICK if options.quick else controller.Plan(), _note)
    return json.dumps(results.as_json(), indent=2) if options.json else controller.text(results)


def _note(doing: str) -> None:
    print(doing, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
