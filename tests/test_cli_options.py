"""What the command line understands, and the one line it answers nonsense with."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from softswitch.cli import main, units
from softswitch.cli.run import normalize_run_arguments
from softswitch.cli.run_config import (
    FaultOption,
    Interface,
    PktgenOption,
    QueueOption,
    parse_address,
    parse_fault,
    parse_interface,
    parse_pktgen,
    parse_queue,
)
from softswitch.device import Fault, QueueConfig, Watch


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("64k", 64_000), ("2.5M", 2_500_000), ("10G", 10**10)])
def test_amounts_take_decimal_multiples(text: str, value: int) -> None:
    assert units.amount(text) == value


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("7ns", 7), ("10us", 10_000), ("1.5ms", 1_500_000)])
def test_durations_are_nanoseconds(text: str, value: int) -> None:
    assert units.duration_ns(text) == value


def test_a_duration_needs_a_unit() -> None:
    with pytest.raises(typer.BadParameter, match="'10' is not a time with a unit: ns, us, ms or s"):
        units.duration_ns("10")


@pytest.mark.parametrize(("text", "value"), [("0.25", 0.25), ("5%", 0.05), ("1", 1.0)])
def test_probabilities(text: str, value: float) -> None:
    assert units.probability(text) == value


def test_run_options_with_structure() -> None:
    assert parse_interface("1@veth1") == Interface(1, "veth1")
    assert parse_pktgen("2,10us,ff00") == PktgenOption(2, 10_000, b"\xff\x00")
    assert parse_pktgen("2,10us,ff00,5@1") == PktgenOption(2, 10_000, b"\xff\x00", Watch(5, 1))
    assert parse_queue("*:rate_bps=10M") == QueueOption(None, None, QueueConfig(rate_bps=10_000_000), None)
    assert parse_queue("3/1:depth_packets=8,port_rate_bps=1G") == QueueOption(
        3, 1, QueueConfig(depth_packets=8), 1_000_000_000
    )
    assert parse_fault("4/tx:loss=1%,delay=2ms") == FaultOption(4, ("tx",), Fault(loss=0.01, delay_ns=2_000_000))


@pytest.mark.parametrize("text", ["127.0.0.1:0", "localhost:65535", "[::1]:9559", "unix:/run/switch.sock", "unix:s"])
def test_addresses_that_p4runtime_is_served_on(text: str) -> None:
    assert parse_address(text) == text


@pytest.mark.parametrize("text", ["127.0.0.1:65536", "127.0.0.1:http", "127.0.0.1", ":9559", "::1:9559", "unix:", ""])
def test_an_address_that_is_none_names_the_choices(text: str) -> None:
    with pytest.raises(typer.BadParameter) as error:
        parse_address(text)
    assert str(error.value) == f"{text!r} is not HOST:PORT with a port from 0 to 65535, nor unix:PATH"


@pytest.mark.parametrize("value", [0, 2**64 - 1])
def test_device_ids_and_seeds_have_64_bits(value: int) -> None:
    assert units.uint64(str(value)) == value


@pytest.mark.parametrize("option", ["run --no-p4 --device-id", "run --no-p4 --seed", "ctl --device-id"])
@pytest.mark.parametrize("text", ["-1", "18446744073709551616", "1e3"])
def test_what_does_not_fit_64_bits_is_refused_with_the_range(
    option: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*option.split(), text, "stats", "show"]) == 2
    assert capsys.readouterr().err == (
        f"softswitch: Invalid value for '{option.split()[-1]}': {text!r} is not a number from 0 to {2**64 - 1}\n"
    )


def test_simple_switch_habits_become_plain_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "a.json", "--thrift-port", "9090", "--pcap", "-i", "1@v", "--nanolog=x", "--", "--cpu-port", "510"]
    assert normalize_run_arguments(words) == ["run", "a.json", "--pcap=.", "-i", "1@v", "--cpu-port", "510"]
    assert normalize_run_arguments(["run", "--pcap", str(tmp_path)]) == ["run", "--pcap", str(tmp_path)]
    assert "--thrift-port has no effect here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("run", "give PROGRAM.json, or --no-p4 to wait for a pipeline by P4Runtime"),
        ("run --no-p4 -i 1@a -i 1@b", "port 1 is given two interfaces"),
        ("run --no-p4 -i 1@v -i 2@v", "interface 'v' is given to ports 1 and 2"),
        ("run --no-p4 --cpu-port 510 -i 510@a", "port 510 is the CPU port and cannot have an interface"),
        ("run --no-p4 --cpu-port 9 --drop-port 9", "--cpu-port must be neither 0 nor the drop port 9"),
        ("run --no-p4 -i 1@a --queue 2:rate_bps=1M", "no interface is given for port 2; ports are 1"),
        ("run --no-p4 -i 1@a --queue 1/3:rate_bps=1M", "priority 3 needs --priority-queues 4 or more"),
        ("run --no-p4 --grpc-server-ssl", "--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key"),
        ("stf", "give PROGRAM.json and TEST.stf, or --corpus DIR"),
        ("stf tests/p4/build/l3_router.json none.stf", "no file 'none.stf'; TEST.stf is a Simple Test Framework file"),
        ("stf --corpus /nonexistent", "no NAME.stf in '/nonexistent'"),
        ("describe none.json", "no file 'none.json'; PROGRAM.json is what p4c-bm2-ss writes with -o"),
    ],
)
def test_usage_errors_are_one_line_and_exit_code_2(
    command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"softswitch: {message}\n")


def test_ctl_says_where_it_looked_for_a_switch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.sock"
    assert main(["ctl", "--socket", str(path), "stats", "show"]) == 1
    assert capsys.readouterr().err == (
        f"softswitch: no switch listens on {path} (No such file or directory); see --socket\n"
    )
