"""``softswitch ctl``: looks into a running switch and changes it, over its control socket."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from . import units
from .output import show_json, show_table
from .run_config import parse_watch


def _group(name: str, text: str) -> typer.Typer:
    group = typer.Typer(help=text, no_args_is_help=True, rich_markup_mode=None)
    ctl_app.add_typer(group, name=name)
    return group


ctl_app = typer.Typer(
    help="Ports, queues, faults, packet generators and statistics of a running switch.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
ports = _group("ports", "Ports: show, add, remove, up, down, pcap.")
queues = _group("queues", "Egress queues: show, set, reset.")
faults = _group("faults", "Injected faults: show, set, reset.")
pktgen = _group("pktgen", "Timer packets: show, set, reset.")
stats = _group("stats", "Counters of the whole switch: show.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Port = Annotated[int, typer.Argument(metavar="PORT", parser=units.port_number, help="Port number.")]
OptionalPort = Annotated[
    int | None, typer.Argument(metavar="[PORT]", parser=units.port_number, help="Port number; all ports without.")
]
Priority = Annotated[int | None, typer.Option(min=0, help="Queue of the port; all queues without.")]
Rate = Annotated[int | None, typer.Option(parser=units.amount, metavar="BPS", help="Bits a second; 0: no limit.")]
Chance = Annotated[float | None, typer.Option(parser=units.probability, metavar="P", help="Probability, or percent.")]
Duration = Annotated[int | None, typer.Option(parser=units.duration_ns, metavar="TIME", help="Such as 50us or 2ms.")]


@ctl_app.callback()
def _socket(
    context: typer.Context,
    socket: Annotated[Path | None, typer.Option(metavar="PATH", help="The switch's control socket.")] = None,
    device_id: Annotated[
        int, typer.Option(parser=units.uint64, metavar="N", help="Device id, for the default socket.")
    ] = 0,
) -> None:
    from softswitch.control import default_socket

    context.obj = socket or default_socket(device_id)


def _call(context: typer.Context, name: str, **args: object) -> Any:
    from softswitch.control import ControlClient

    with ControlClient(cast(Path, context.obj)) as client:
        return client.call(name, **{key: value for key, value in args.items() if value is not None})


def _show(records: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        show_json(records)
    elif records:
        show_table("", list(records[0]), [list(record.values()) for record in records])


@ports.command("show")
def ports_show(context: typer.Context, port: OptionalPort = None, as_json: Json = False) -> None:
    """Interface, state and counters of each port."""
    _show(_call(context, "ports.show", port=port), as_json)


@ports.command("add")
def ports_add(context: typer.Context, port: Port, ifname: Annotated[str, typer.Argument(metavar="INTERFACE")]) -> None:
    """Attach a network interface as a port."""
    _call(context, "ports.add", port=port, ifname=ifname)


@ports.command("remove")
def ports_remove(context: typer.Context, port: Port) -> None:
    """Detach a port's interface."""
    _call(context, "ports.remove", port=port)


@ports.command("up")
def ports_up(context: typer.Context, port: Port) -> None:
    """Set a port administratively up."""
    _call(context, "ports.up", port=port)


@ports.command("down")
def ports_down(context: typer.Context, port: Port) -> None:
    """Set a port administratively down."""
    _call(context, "ports.down", port=port)


@ports.command("pcap")
def ports_pcap(
    context: typer.Context,
    port: Port,
    path: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Where to; stops without.")] = None,
) -> None:
    """Record a port's packets, both directions, in a pcap file."""
    _call(context, "ports.pcap", port=port, path=str(path.absolute()) if path else None)


@queues.command("show")
def queues_show(context: typer.Context, port: OptionalPort = None, as_json: Json = False) -> None:
    """Limits, depth and drops of each egress queue."""
    _show(_call(context, "queues.show", port=port), as_json)


@queues.command("set")
def queues_set(
    context: typer.Context,
    port: Port,
    priority: Priority = None,
    rate_bps: Rate = None,
    rate_pps: Annotated[int | None, typer.Option(parser=units.amount, help="Packets a second; 0: no limit.")] = None,
    depth_packets: Annotated[int | None, typer.Option(parser=units.amount, help="0: no limit.")] = None,
    depth_bytes: Annotated[int | None, typer.Option(parser=units.amount, help="0: no limit.")] = None,
    port_rate_bps: Annotated[
        int | None, typer.Option(parser=units.amount, help="Of all queues of the port together; 0: no limit.")
    ] = None,
) -> None:
    """Change what is given of a port's queues; the rest stays."""
    _call(
        context,
        "queues.set",
        port=port,
        priority=priority,
        rate_bps=rate_bps,
        rate_pps=rate_pps,
        depth_packets=depth_packets,
        depth_bytes=depth_bytes,
        port_rate_bps=port_rate_bps,
    )


@queues.command("reset")
def queues_reset(context: typer.Context, port: OptionalPort = None) -> None:
    """No rate and the depth that BMv2 starts with."""
    _call(context, "queues.reset", port=port)


@faults.command("show")
def faults_show(context: typer.Context, port: OptionalPort = None, as_json: Json = False) -> None:
    """The faults of each port and direction."""
    _show(_call(context, "faults.show", port=port), as_json)


@faults.command("set")
def faults_set(
    context: typer.Context,
    port: Port,
    direction: Annotated[str, typer.Option(metavar="rx|tx|both", help="As the switch sees it.")] = "both",
    loss: Chance = None,
    burst_enter: Chance = None,
    burst_exit: Chance = None,
    corrupt: Chance = None,
    duplicate: Chance = None,
    delay: Duration = None,
    jitter: Duration = None,
    rate_bps: Rate = None,
    down: Annotated[bool | None, typer.Option("--down/--up", help="Nothing passes, silently.")] = None,
) -> None:
    """Change what is given of a port's faults; the rest stays."""
    _call(
        context,
        "faults.set",
        port=port,
        direction=direction,
        loss=loss,
        burst_enter=burst_enter,
        burst_exit=burst_exit,
        corrupt=corrupt,
        duplicate=duplicate,
        delay_ns=delay,
        jitter_ns=jitter,
        rate_bps=rate_bps,
        down=down,
    )


@faults.command("reset")
def faults_reset(context: typer.Context, port: OptionalPort = None) -> None:
    """No faults."""
    _call(context, "faults.reset", port=port)


@pktgen.command("show")
def pktgen_show(context: typer.Context, as_json: Json = False) -> None:
    """The generators that are set."""
    _show(_call(context, "pktgen.show"), as_json)


@pktgen.command("set")
def pktgen_set(
    context: typer.Context,
    ident: Annotated[int, typer.Argument(min=0, max=63, metavar="ID", help="Number of the generator.")],
    port: Port,
    interval: Annotated[int, typer.Argument(parser=units.duration_ns, metavar="INTERVAL", help="Such as 10us.")],
    template: Annotated[bytes, typer.Argument(parser=units.packet, metavar="HEX", help="The packet.")],
    count: Annotated[int, typer.Option(min=0, help="How many packets; 0: for ever.")] = 0,
    watch: Annotated[
        str | None, typer.Option(metavar="PORT@OFFSET", help="The byte there is 1 while that port is down.")
    ] = None,
) -> None:
    """Have a packet arrive on a port again and again."""
    values: dict[str, Any] = {"ident": ident, "port": port, "interval_ns": interval, "template": template.hex()}
    if watch is not None:
        watched = parse_watch(watch, len(template))
        values |= {"watched_port": watched.port, "watched_offset": watched.offset}
    _call(context, "pktgen.set", count=count, **values)


@pktgen.command("reset")
def pktgen_reset(
    context: typer.Context,
    ident: Annotated[int | None, typer.Argument(min=0, max=63, metavar="[ID]", help="All without.")] = None,
) -> None:
    """Stop a generator."""
    _call(context, "pktgen.reset", ident=ident)


@stats.command("show")
def stats_show(context: typer.Context, as_json: Json = False) -> None:
    """Packets received, sent and dropped, by reason."""
    counts = _call(context, "stats.show")
    if as_json:
        show_json(counts)
    else:
        show_table("", ("statistic", "value"), list(counts.items()))
