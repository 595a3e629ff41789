"""The demo's command line; see scripts/demo."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from scripts.lib import demo_router

NOT_IN_LAB = "--target and --json are of the story with network namespaces"


def arguments() -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description="Hosts with SmartNICs on four planes, one of which dies and comes back."
    )
    parser.add_argument("--target", default="auto", choices=("auto", "softswitch", "bmv2"),
                        help="what runs the P4 programs; auto: BMv2 where it is installed")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured to FILE as well")
    parser.add_argument("--lab", action="store_true",
                        help="a router and two planes in virtual time, without root or interfaces")  # fmt: skip
    options = parser.parse_args()
    if (options.lab or os.geteuid() != 0) and (options.json is not None or options.target != "auto"):
        parser.error(f"{NOT_IN_LAB}, which {'--lab does without' if options.lab else 'needs root'}")
    return options


def fabric(target: str, json_file: Path | None) -> int:
    """The demo in Mininet, which is not imported where it is not needed."""
    from mininet_topos.errors import NodeError
    from mininet_topos.live import LiveError
    from mininet_topos.targets import choose_target
    from mininet_topos.topology import TopologyError
    from scripts.lib.demo_fabric import DemoError, run

    try:
        return run(choose_target(target), json_file)
    except (DemoError, LiveError, NodeError, OSError) as error:
        print(f"scripts/demo: {error}", file=sys.stderr)
    except TopologyError as error:  # of the machine
        print(f"scripts/demo: {error}; scripts/demo --lab needs nothing of that", file=sys.stderr)
    return 1


def main() -> int:
    options = arguments()
    try:
        if not options.lab and os.geteuid() == 0:
            return fabric(options.target, options.json)
        if not options.lab:
            print("not root, so no network namespaces: another story, in virtual time (--lab)")
        return demo_router.run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
