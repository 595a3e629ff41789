"""A short run of the fuzzer, and what longer ones have found in devices, commands and their input."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from softswitch.bmv2_json import load
from softswitch.cli import run_config, units
from softswitch.control.operations import ControlError, perform
from softswitch.device import Call, Device, DeviceError, DigestList, Fault, GroupMember, MeterConfig, QueueConfig
from softswitch.stf.parser import parse
from softswitch.stf.syntax import StfError
from tests.fuzz import supervisor

BUILD = Path(__file__).parent / "p4/build"
FOREVER = 2**64 - 1
END_OF_TIME = 2**62


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tests.fuzz", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def sanitizers() -> None:
    try:
        supervisor.environment()
    except supervisor.Unavailable as reason:
        pytest.skip(str(reason))


# ---- the fuzzer --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("sanitizers")
def test_a_finding_is_reported_with_its_case() -> None:
    done = fuzz("--case", "device:no_such_program.json:7")
    assert done.returncode == 1
    assert "FileNotFoundError" in done.stdout
    assert "reproduce: python -m tests.fuzz --case device:no_such_program.json:7\n" in done.stdout


# ---- devices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda d: d.port_info(2**32 + 1),
        lambda d: d.inject(-1, b"x", 0),
        lambda d: d.inject(1, b"x", 2**64),
        lambda d: d.entry_stats("ProfilesIngress.plain", 2**64),
        lambda d: d.queue_set(1, QueueConfig(depth_bytes=2**64)),
        lambda d: d.fault_set(1, "rx", Fault(delay_ns=-1)),
        lambda d: d.fault_set(1, "rx", Fault(loss=10**400)),
        lambda d: d.meter_set("ProfilesIngress.meter", 0, MeterConfig(10**400, 1, 1, 1)),
        lambda d: d.pktgen_set(0, 1, 2**64 + 1, b"x"),
        lambda d: d.multicast_set(2**32 + 1, []),
        lambda d: d.group_add("ProfilesIngress.selector", [], -1),
        lambda d: d.pcap(1, "a\0b"),
        lambda d: d.port_add(1, "\ud800"),
    ],
)
def test_numbers_and_names_beyond_their_types_are_refused(call: Callable[[Device], object]) -> None:
    with Device(load(BUILD / "profiles.json")) as device, pytest.raises(DeviceError) as error:
        call(device)
    assert error.value.code in ("INVALID_ARGUMENT", "NOT_FOUND")


def test_the_clock_ends_before_times_overflow() -> None:
    with Device(load(BUILD / "l3_router.json")) as device:
        device.advance(END_OF_TIME)
        with pytest.raises(DeviceError, match=f"advance to {END_OF_TIME + 1}: an argument is out of range"):
            device.advance(END_OF_TIME + 1)


def test_an_idle_timeout_of_all_ones_never_passes() -> None:
    with Device(load(BUILD / "idle_timeout.json")) as device:
        table = next(t for t in device.program.tables.values() if t.with_ageing)
        match = {f.name: 0 for f in table.key}
        device.table_add(table.name, match, Call("NoAction"), priority=1, idle_timeout_ns=FOREVER)
        device.advance(10**18)
        assert device.next_event(0) is None


def test_a_digest_timeout_of_all_ones_never_passes() -> None:
    with Device(load(BUILD / "digests.json")) as device:
        name = next(d.name for d in device.program.digests.values() if len(d.fields) == 2)
        device.digest_set(name, enabled=True, max_list_size=2, max_timeout_ns=FOREVER)
        device.inject(1, b"\x80" + bytes(30), 0)
        device.advance(10**18)
        assert device.next_event(0) is None
        device.inject(2, b"\x80" + bytes(30), 10**18)
        event = device.next_event(0)
        assert isinstance(event, DigestList)
        assert [sample[1] for sample in event.samples] == [1, 2]


def test_the_weights_of_a_group_are_bounded_whatever_its_size() -> None:
    with Device(load(BUILD / "profiles.json")) as device:
        profile = next(p.name for p in device.program.profiles.values() if p.algo is not None)
        table = next(t for t in device.program.tables.values() if t.profile == profile)
        action = next(a for a in (device.program.actions[i] for i in table.actions) if not a.params)
        member = device.member_add(profile, Call(action.name))
        with pytest.raises(DeviceError, match="it is full"):
            device.group_add(profile, [GroupMember(member, 2**31)], max_size=2**32 - 1)


def test_two_threads_that_inject_get_whole_packets() -> None:
    sent = [bytes([n]) * size for n, size in ((1, 60), (2, 1400))]
    got: list[bytes] = []
    with Device(load(BUILD / "queueing.json")) as device:

        def inject(packet: bytes) -> None:
            for _ in range(2000):
                got.extend(output.data for output in device.inject(1, packet, 0))

        threads = [threading.Thread(target=inject, args=(packet,)) for packet in sent]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {len(data) for data in got} == {60 + 26, 1400 + 26}  # queueing.p4 puts a header in front
    assert all(data[-20:] == data[-1:] * 20 for data in got)


# ---- what people write -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (units.amount, "9" * 400),
        (units.duration_ns, "9" * 400 + "s"),
        (units.port_number, "9" * 5000),
        (run_config.parse_queue, f"1/{'9' * 5000}:depth_packets=1"),
    ],
)
def test_options_that_are_too_large(parser: Callable[[str], object], text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parser(text)


@pytest.mark.parametrize("line", [f"mc_mgrp_create {'9' * 5000}", "meter_set_rates m 0 0x5:10"])
def test_stf_numbers_that_are_none(line: str) -> None:
    with pytest.raises(StfError, match=r"^x\.stf:1: "):
        parse(line, "x.stf")


@pytest.mark.parametrize("line", [b'{"call": []}', b'{"call": {}}', b"[" * 100_000])
def test_control_requests_that_are_none(line: bytes) -> None:
    with pytest.raises(ControlError):
        perform(None, line)  # type: ignore[arg-type]
