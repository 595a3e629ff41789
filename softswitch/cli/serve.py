"""A running switch: the device, its P4Runtime server and its control socket, until a signal ends them."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from finsy.proto import p4i

from softswitch.control import ControlServer
from softswitch.device import DeviceError
from softswitch.json_node import ProgramError
from softswitch.p4runtime import ConfigError, P4Error, Server, ServerConfig, TargetError
from softswitch.p4runtime.p4info import OtherProgram
from softswitch.switch import Switch, SwitchConfig

from .errors import CommandError, UsageError
from .programs import load_program
from .run_config import RunConfig

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(config: RunConfig, *, as_json: bool) -> int:
    """Starts everything, prints one line when it is ready, returns 0 after SIGINT or SIGTERM.

    Raises CommandError, with nothing left running, where something does not start.
    """
    with ExitStack() as cleanup:
        signaled = cleanup.enter_context(_signals())
        _check_interfaces(config)
        switch = Switch(_switch_config(config))
        cleanup.callback(switch.close)
        _configure(switch, config)
        server = cleanup.enter_context(_p4runtime(switch, config))
        control = ControlServer(switch, config.control)
        cleanup.callback(control.close)
        _announce(config, server.port, as_json)
        signaled.recv(1)
    return 0


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """A socket that has a byte for each signal, however early, late or close to another it comes."""
    signaled, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    with signaled, wakeup:
        wakeup_fd = signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
        handlers = [(number, signal.signal(number, lambda *_: None)) for number in _SIGNALS]
        try:
            yield signaled
        finally:
            for number, handler in handlers:
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup_fd)


@contextmanager
def _p4runtime(switch: Switch, config: RunConfig) -> Iterator[Server]:
    """The started server, with the program of the command line loaded."""
    server = Server(ServerConfig(config.grpc_address, config.device_id, config.tls), switch)
    try:
        if config.program is not None:
            _load(switch, server, config.program, config.p4info)
            _check_attached(switch, config)
        server.start()
        yield server
    except ConfigError as error:
        raise CommandError(str(error)) from error
    finally:
        server.stop()


def _switch_config(config: RunConfig) -> SwitchConfig:
    return SwitchConfig(
        seed=config.seed,
        cpu_port=config.cpu_port,
        drop_port=config.drop_port,
        priorities=config.priorities,
        keep_c=config.keep_c,
    )


def _check_interfaces(config: RunConfig) -> None:
    present = [name for _, name in socket.if_nameindex()]
    for interface in config.interfaces:
        if interface.ifname not in present:
            raise CommandError(
                f"no interface {interface.ifname!r} for port {interface.port}; there are {', '.join(present)}"
            )


def _configure(switch: Switch, config: RunConfig) -> None:
    ports = [interface.port for interface in config.interfaces]
    for interface in config.interfaces:
        switch.port_add(interface.port, interface.ifname)
        if config.pcap is not None:
            switch.pcap(interface.port, str(config.pcap / f"{interface.ifname}.pcap"))
    for queue in config.queues:
        for port in ports if queue.port is None else [queue.port]:
            switch.queue_set(port, queue.config, queue.priority)
            if queue.port_rate_bps is not None:
                switch.port_rate_set(port, queue.port_rate_bps)
    for fault in config.faults:
        for port in ports if fault.port is None else [fault.port]:
            for direction in fault.directions:
                switch.fault_set(port, direction, fault.fault)
    for ident, pktgen in enumerate(config.pktgens):
        switch.pktgen_set(ident, pktgen.port, pktgen.interval_ns, pktgen.template, watch=pktgen.watch)


def _load(switch: Switch, server: Server, program: Path, p4info: Path | None) -> None:
    try:
        if p4info is None:  # forwards, but P4Runtime knows no pipeline until a controller sets one
            switch.activate(switch.build(load_program(program)))
        else:
            server.load(_read_p4info(p4info), program.read_bytes())
    except OtherProgram as error:
        raise UsageError(f"--p4info {p4info}: {error}") from error
    except (P4Error, ProgramError, TargetError) as error:
        raise CommandError(f"{program}: {error}") from error


def _read_p4info(path: Path) -> p4i.P4Info:
    """P4Info in protobuf's text or binary format."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    data, info = path.read_bytes(), p4i.P4Info()
    try:
        text_format.Parse(data.decode(), info)
    except (text_format.ParseError, UnicodeDecodeError) as not_text:
        info.Clear()
        try:
            info.ParseFromString(data)
        except DecodeError:
            raise CommandError(f"{path} is not P4Info: {not_text}") from not_text
    return info


def _check_attached(switch: Switch, config: RunConfig) -> None:
    for interface in config.interfaces:
        try:
            switch.port_info(interface.port)
        except DeviceError as error:  # the log has the reason
            raise CommandError(f"cannot attach {interface}; AF_PACKET needs root (CAP_NET_RAW)") from error


def _announce(config: RunConfig, port: int, as_json: bool) -> None:
    host = config.grpc_address.rpartition(":")[0]
    address = f"{host}:{port}" if host and not config.grpc_address.startswith("unix:") else config.grpc_address
    if as_json:
        ports = {str(interface.port): interface.ifname for interface in config.interfaces}
        ready = {"device_id": config.device_id, "grpc": address, "ports": ports, "control": str(config.control)}
        print(json.dumps({"ready": ready}), flush=True)
        return
    ports_text = " ".join(map(str, config.interfaces)) or "none"
    print(f"ready: device {config.device_id}, {address}, ports {ports_text}, control {config.control}", flush=True)
