"""``softswitch run``: a switch in the foreground, with simple_switch_grpc's options."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softswitch.control import default_socket

from . import units
from .errors import UsageError
from .logs import LEVELS, set_up_logging
from .run_config import (
    MAX_PKTGENS,
    MAX_PRIORITIES,
    RunConfig,
    check,
    parse_address,
    parse_fault,
    parse_interface,
    parse_pktgen,
    parse_queue,
)

if TYPE_CHECKING:
    from softswitch.p4runtime import Tls

# Options of simple_switch_grpc that mean nothing here: taken with a warning, so that its launchers work unchanged.
_IGNORED_WITH_VALUE = (
    "--thrift-port", "--nanolog", "--notifications-addr", "--log-file-max-size", "--log-file-max-files",
    "--max-port-count", "--dump-packet-data", "--max-mc-groups", "--max-l1-entries", "--max-l2-entries",
)  # fmt: skip
_IGNORED_FLAGS = ("--log-flush", "--disable-swap")

Pem = Annotated[Path | None, typer.Option(metavar="PEM", exists=True, dir_okay=False)]


def normalize_run_arguments(words: list[str]) -> list[str]:
    """simple_switch_grpc's habits as plain options: ``--`` before target options, ``--pcap`` without a directory,
    options that have no meaning here."""
    kept, at = [], 0
    while at < len(words):
        word = words[at]
        name = word.partition("=")[0]
        at += 1
        if word == "--":
            continue
        if name in _IGNORED_FLAGS or name in _IGNORED_WITH_VALUE:
            print(f"softswitch: {name} has no effect here", file=sys.stderr)
            at += name in _IGNORED_WITH_VALUE and "=" not in word
        elif word == "--pcap" and not (at < len(words) and Path(words[at]).is_dir()):
            kept.append("--pcap=.")
        else:
            kept.append(word)
    return kept


def run(
    program: Annotated[Path | None, typer.Argument(metavar="[PROGRAM.json]", help="BMv2 JSON of the program.")] = None,
    p4info: Annotated[Path | None, typer.Option(metavar="FILE", help="P4Info, text or binary.")] = None,
    no_p4: Annotated[bool, typer.Option("--no-p4", help="Wait for a pipeline by P4Runtime.")] = False,
    interface: Annotated[
        list[Any] | None,
        typer.Option("--interface", "-i", parser=parse_interface, metavar="PORT@INTERFACE", help="May be repeated."),
    ] = None,
    device_id: Annotated[int, typer.Option(parser=units.uint64, metavar="N")] = 0,
    grpc_server_addr: Annotated[
        str, typer.Option(parser=parse_address, metavar="HOST:PORT|unix:PATH", help="Of P4Runtime.")
    ] = "0.0.0.0:9559",
    grpc_server_ssl: Annotated[bool, typer.Option("--grpc-server-ssl", help="Serve over TLS.")] = False,
    grpc_server_cert: Pem = None,
    grpc_server_key: Pem = None,
    grpc_server_cacert: Pem = None,
    grpc_server_with_client_auth: Annotated[
        bool, typer.Option("--grpc-server-with-client-auth", help="Ask clients for a certificate.")
    ] = False,
    cpu_port: Annotated[int | None, typer.Option(min=1, max=511, help="Port of packet-in and packet-out.")] = None,
    drop_port: Annotated[int, typer.Option(min=0, max=511)] = 511,
    priority_queues: Annotated[int, typer.Option(min=1, max=MAX_PRIORITIES, help="Egress queues per port.")] = 1,
    queue: Annotated[
        list[Any] | None,
        typer.Option(parser=parse_queue, metavar="PORT[/PRIO]:NAME=VALUE,...", help="'*:rate_bps=100M'"),
    ] = None,
    fault: Annotated[
        list[Any] | None,
        typer.Option(parser=parse_fault, metavar="PORT[/rx|/tx]:NAME=VALUE,...", help="'2/tx:loss=1%,delay=1ms'"),
    ] = None,
    pktgen: Annotated[
        list[Any] | None,
        typer.Option(
            parser=parse_pktgen,
            metavar="PORT,INTERVAL,HEX[,WATCHED@OFFSET]",
            help="A packet that arrives periodically; its byte at OFFSET is 1 while port WATCHED is down.",
        ),
    ] = None,
    pcap: Annotated[Path | None, typer.Option(metavar="[DIR]", help="Record INTERFACE.pcap for every port.")] = None,
    seed: Annotated[int, typer.Option(parser=units.uint64, metavar="N", help="Of random() and of faults.")] = 0,
    control: Annotated[Path | None, typer.Option(metavar="SOCKET", help="Control socket for 'softswitch ctl'.")] = None,
    keep_c: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the generated C there.")] = None,
    log_level: Annotated[str, typer.Option("--log-level", "-L", metavar="|".join(LEVELS))] = "info",
    log_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Log there instead of standard error.")] = None,
    log_console: Annotated[bool, typer.Option("--log-console", help="Log to standard error (the default).")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The ready line and the log as JSON lines.")] = False,
) -> int:
    """Run a switch until SIGINT or SIGTERM. Options are simple_switch_grpc's; a '--' among them is skipped."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what matters arrives as exceptions
    if log_file and log_console:
        raise UsageError("--log-console and --log-file are exclusive")
    if pcap is not None and not pcap.is_dir():
        raise UsageError(f"--pcap: {str(pcap)!r} is not a directory")
    if len(pktgen or ()) > MAX_PKTGENS:
        raise UsageError(f"at most {MAX_PKTGENS} --pktgen")
    config = RunConfig(
        program=_program(program, no_p4, p4info),
        p4info=p4info,
        interfaces=tuple(interface or ()),
        device_id=device_id,
        grpc_address=grpc_server_addr,
        tls=_tls(grpc_server_ssl, grpc_server_cert, grpc_server_key, grpc_server_cacert, grpc_server_with_client_auth),
        cpu_port=cpu_port,
        drop_port=drop_port,
        priorities=priority_queues,
        seed=seed,
        pcap=pcap,
        keep_c=keep_c,
        control=control or default_socket(device_id),
        pktgens=tuple(pktgen or ()),
        queues=tuple(queue or ()),
        faults=tuple(fault or ()),
    )
    check(config)
    set_up_logging(log_level, log_file, as_json=as_json)
    from .serve import serve  # imports gRPC, which takes longer than saying what is wrong with the options

    return serve(config, as_json=as_json)


def _program(program: Path | None, no_p4: bool, p4info: Path | None) -> Path | None:
    if no_p4 and (program or p4info):
        raise UsageError("--no-p4 waits for a pipeline; it goes without PROGRAM.json and --p4info")
    if not no_p4 and program is None:
        raise UsageError("give PROGRAM.json, or --no-p4 to wait for a pipeline by P4Runtime")
    for path in (program, p4info):
        if path is not None and not path.is_file():
            raise UsageError(f"no file {str(path)!r}")
    return program


def _tls(ssl: bool, cert: Path | None, key: Path | None, cacert: Path | None, client_auth: bool) -> Tls | None:
    if not ssl:
        if cert or key or cacert or client_auth:
            raise UsageError("--grpc-server-cert, -key, -cacert and -with-client-auth need --grpc-server-ssl")
        return None
    if cert is None or key is None:
        raise UsageError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
    if client_auth and cacert is None:
        raise UsageError("--grpc-server-with-client-auth needs --grpc-server-cacert")
    from softswitch.p4runtime import Tls

    return Tls(cert, key, cacert, client_auth)
