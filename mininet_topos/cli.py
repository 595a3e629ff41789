"""``python -m mininet_topos``: starts emulated fabrics, and looks after those that run.

Data goes to standard output, everything else to standard error. Exit codes: 0 for success, 1 for a failure, 2 for a
command line that makes no sense; ``--exec`` and ``exec`` end with the status of the command that they ran.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from mininet.log import info, setLogLevel

from mininet_topos import faults, live, runs
from mininet_topos.console import Console
from mininet_topos.errors import NodeError
from mininet_topos.intent import intent as intent_of
from mininet_topos.intent import write_intent
from mininet_topos.multiplane import multiplane
from mininet_topos.network import Settings, run_command, running
from mininet_topos.queues import QueueSettings, set_queues
from mininet_topos.single_switch import single_switch
from mininet_topos.targets import choose_target
from mininet_topos.topology import Topology, TopologyError
from softswitch.cli import units

app = typer.Typer(
    help="Emulated fabrics in Mininet, on BMv2 or the softswitch.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

NicTargetName = Annotated[
    str | None, typer.Option("--nic-target", metavar="auto|softswitch|bmv2", help="What runs the NICs: as --target.")
]
TargetName = Annotated[str, typer.Option("--target", metavar="auto|softswitch|bmv2", help="What runs the P4 programs.")]
Rate = Annotated[int | None, typer.Option(parser=units.amount, metavar="BPS", help="Of every device port.")]
RatePps = Annotated[int | None, typer.Option(parser=units.amount, metavar="PPS", help="Of each of its queues.")]
Depth = Annotated[int | None, typer.Option(min=1, metavar="PACKETS", help="Of each of its queues; 64 without.")]
Heartbeat = Annotated[
    int | None,
    typer.Option(parser=units.duration_ns, metavar="TIME", help="Between a port's heartbeats: 20ms, on BMv2 100ms."),
]
Command = Annotated[
    str | None, typer.Option("--exec", metavar="COMMAND", help="Run this with the network up, not Mininet's CLI.")
]
IntentFile = Annotated[Path | None, typer.Option("--intent", metavar="FILE", help="Write the intent file of the run.")]
RunName = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Which run, where there are several.")]
Name = Annotated[str, typer.Argument(metavar="NODE")]


@app.command("single-switch")
def single_switch_command(
    hosts: Annotated[int, typer.Option(help="1..63.")] = 2,
    target: TargetName = "auto",
    link_rate: Rate = None,
    queue_rate: RatePps = None,
    queue_depth: Depth = None,
    heartbeat: Heartbeat = None,
    command: Command = None,
    intent: IntentFile = None,
) -> int:
    """One switch, s1, with host h<i> on port i."""
    settings = _settings(target, None, QueueSettings(link_rate, queue_rate, queue_depth), heartbeat)
    return _run(single_switch(hosts), settings, command, intent)


@app.command("multiplane")
def multiplane_command(
    planes: Annotated[int, typer.Option(help="1..8.")] = 4,
    hosts: Annotated[int, typer.Option(help="Each with a SmartNIC.")] = 4,
    leaves: Annotated[int, typer.Option(help="Of each plane; 0: one switch a plane.")] = 0,
    spines: Annotated[int, typer.Option(help="Of each plane.")] = 0,
    target: TargetName = "auto",
    nic_target: NicTargetName = None,
    link_rate: Rate = None,
    queue_rate: RatePps = None,
    queue_depth: Depth = None,
    heartbeat: Heartbeat = None,
    command: Command = None,
    intent: IntentFile = None,
) -> int:
    """Hosts with SmartNICs on several independent planes: h<i>, n<i>, p<k>s<j>, p<k>l<j>."""
    settings = _settings(target, nic_target, QueueSettings(link_rate, queue_rate, queue_depth), heartbeat)
    return _run(multiplane(planes, hosts, leaves, spines), settings, command, intent)


def _settings(target: str, nic_target: str | None, queues: QueueSettings, heartbeat_ns: int | None) -> Settings:
    return Settings(
        target=choose_target(target),
        heartbeat_us=None if heartbeat_ns is None else max(1, heartbeat_ns // 1000),
        queues=queues,
        nic_target=None if nic_target is None else choose_target(nic_target),
    )


def _run(topology: Topology, settings: Settings, command: str | None, intent_file: Path | None) -> int:
    """The network from start to end, with a command or with Mininet's CLI."""
    setLogLevel("warning" if command else "info")
    nics = f", NICs on {settings.nic_target}" if settings.nic_target else ""
    info(f"*** Starting {topology.name} on {settings.target}{nics}\n")
    with running(topology, settings) as net:
        content = intent_of(topology, net.live(), settings.interval_us)
        for path in (net.run_of.folder / "fabric.yaml", intent_file):
            if path is not None:
                write_intent(path, content)
        info(f"*** Run {net.run_of.name}: sockets, logs and fabric.yaml are in {net.run_of.folder}\n")
        if command is not None:
            return run_command(net, command)
        Console(net)
    return 0


@app.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def exec_command(
    node: Name, command: Annotated[list[str], typer.Argument(metavar="COMMAND...")], run: RunName = None
) -> int:
    """Run a command in a node's network namespace."""
    return live.load(run).node(node).run(command)


@app.command("link")
def link_command(
    a: Name, b: Name, state: Annotated[str, typer.Argument(metavar="up|down")], run: RunName = None
) -> None:
    """Plug the cables between two nodes in, or pull them."""
    if state not in ("up", "down"):
        raise typer.BadParameter(f"a link is up or down, not {state!r}")
    live.load(run).set_link(a, b, state == "up")


@app.command("fault")
def fault_command(
    a: Name,
    b: Name,
    settings: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...|clear")],
    run: RunName = None,
) -> None:
    """What A sends to B is lost, delayed, ... (loss=1% delay=2ms); 'clear' removes it in both directions."""
    network = live.load(run)
    said = (
        faults.clear_fault(network, a, b)
        if settings == ["clear"]
        else faults.set_fault(network, a, b, faults.parse(settings))
    )
    print("\n".join(said))


@app.command("queues")
def queues_command(
    node: Name,
    port: Annotated[int, typer.Argument(metavar="PORT")],
    rate_bps: Rate = None,
    rate_pps: RatePps = None,
    depth: Depth = None,
    priority: Annotated[int | None, typer.Option(help="One queue, 0..7; all without.")] = None,
    run: RunName = None,
) -> None:
    """Set rates and depth of the queues of a device's port."""
    set_queues(live.load(run).node(node), port, QueueSettings(rate_bps, rate_pps, depth), priority)


@app.command("runs")
def runs_command() -> None:
    """The networks that run here, and what killed ones left."""
    for run in runs.all_runs():
        print(live.show(run))


@app.command("clean")
def clean_command() -> None:
    """Remove what killed runs left: their processes (and so their namespaces) and folders, and nothing else."""
    found = runs.leftovers()
    for run in found:
        print(f"{run.name}: {len(run.remove())} processes ended, {run.folder} removed")
    if not found:
        print("no leftovers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(words, prog_name="python -m mininet_topos", standalone_mode=False)
    except typer.TyperException as error:
        print(f"mininet_topos: {error.format_message()}", file=sys.stderr)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except (TopologyError, NodeError, live.LiveError, OSError) as error:
        print(f"mininet_topos: {error}", file=sys.stderr)
        return 2 if isinstance(error, TopologyError) else 1
    return code if isinstance(code, int) else 0
