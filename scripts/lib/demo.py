"""The demo's command line; see scripts/demo."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from scripts.lib import demo_router


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description="Hosts with SmartNICs on four planes, one of which dies and comes back."
    )
    parser.add_argument("--target", default="auto", choices=("auto", "softswitch", "bmv2"),
                        help="what runs the P4 programs; auto: BMv2 where it is installed")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured to FILE as well")
    parser.add_argument("--lab", action="store_true",
                        help="a router and two planes in virtual time, without root or interfaces")  # fmt: skip
    return parser.parse_args()


def fabric(target: str, json_file: Path | None) -> int:
    """The demo in Mininet, which is not imported where it is not needed."""
    from mininet_topos.errors import NodeError
    from mininet_topos.live import LiveError
    from mininet_topos.targets import choose_target
    from mininet_topos.topology import TopologyError
    from scripts.lib.demo_fabric import DemoError, run

    try:
        return run(choose_target(target), json_file)
    except (DemoError, LiveError, NodeError, OSError, TopologyError) as error:
        print(f"scripts/demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def main() -> int:
    options = arguments()
    if options.lab:
        return demo_router.run()
    if os.geteuid() != 0:
        print("not root, so no network namespaces: another story, in virtual time (--lab)")
        return demo_router.run()
    return fabric(options.target, options.json)


if __name__ == "__main__":
    sys.exit(main())
