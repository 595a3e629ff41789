"""The benchmarks' arguments, results and method. What they measure depends on the machine and is not tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench import cli, fabric, memory, report, switch
from bench import router as r
from bench.machine import Machine
from bench.memory import MemoryResult
from bench.overload import LOSS_MAX, ROUNDS, Overload, Peak, Round, find_peak, overload
from bench.quota import QuotaError, cpu_quota, hierarchy
from bench.targets import BMV2, SOFTSWITCH, Target, running
from bench.veth import Load, network

TINY = switch.Plan(lengths=(64,), routes=(10,), acl=(10,), memory_s=0.001, veth=False)
MACHINE = Machine("CPU", 2, "6.1", "2026-01-31", 0.5, {"python": "3.11"})


BMV2_ROUNDS = tuple(Round(12_000.0, 120_000.0, carried) for carried in (1_200.0, 2_400.0, 3_600.0))


def results() -> switch.Results:
    """As if measured: one router in memory, both switches over veth."""
    return switch.Results(
        MACHINE,
        memory=[
            MemoryResult("fabric", 1000, 10, 64, "random", 2_000_000.4),
            MemoryResult("fabric", 1000, 10, 64, "flow", 4_000_000.0),
        ],
        veth=[
            switch.VethResult("softswitch", 64, Peak(600_000.0, 610_000.0, "generator"), None),
            switch.VethResult("bmv2", 64, Peak(60_000.0, 61_000.0, "switch"), Overload(0.2, BMV2_ROUNDS)),
        ],
        skipped={"coffee": "none left"},
    )


# ---- the command -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: BENCHMARK"),
        (["toaster"], "invalid choice: 'toaster'"),
        (["switch", "--json", "--markdown"], "not allowed with argument --json"),
        (["switch", "--qui"], "unrecognized arguments: --qui"),
    ],
)
def test_bad_arguments_are_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_quick_run_prints_json_of_what_it_could_measure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(switch, "QUICK", TINY)
    assert cli.main(["switch", "--quick", "--memory-only", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["benchmark", "machine", "memory", "veth", "skipped"]
    assert (told["benchmark"], told["veth"]["program"]) == ("switch", "l3_router")
    assert {"cpu", "cores", "kernel", "date", "load", "versions"} == set(told["machine"])
    assert told["veth"]["results"] == []
    assert told["skipped"] == {"veth": "--memory-only"}
    assert [
        (one["program"], one["routes"], one["ternary"], one["bytes"], one["traffic"])
        for one in told["memory"]["results"]
    ] == [
        ("l3_router", 10, 10, 64, "random"),
        ("l3_router", 10, 10, 64, "flow"),
        ("fabric", 10, 10, 64, "random"),
        ("fabric", 10, 10, 64, "flow"),
    ]
    assert all(one["pps"] > 0 for one in told["memory"]["results"])


def test_without_root_veth_is_skipped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    told = switch.run(replace(TINY, routes=(), veth=True), lambda doing: None)
    assert told.skipped == {"veth": "not root, or no ip command"}


def test_missing_bmv2_is_skipped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Target] = []

    def over_veth(plan: switch.Plan, targets: list[Target], *_: object) -> list[switch.VethResult]:
        measured.extend(targets)
        return []

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: "/sbin/ip" if name == "ip" else None)
    monkeypatch.setattr(switch, "over_veth", over_veth)
    told = switch.run(replace(TINY, routes=(), veth=True), lambda doing: None)
    assert measured == [SOFTSWITCH]
    assert told.skipped == {"bmv2": "no simple_switch_grpc on PATH"}


# ---- results ---------------------------------------------------------------------------------------------------


def test_json_has_every_figure_with_its_ratio() -> None:
    told = results().as_json()
    assert told["memory"]["results"][0] == {
        "program": "fabric", "routes": 1000, "ternary": 10, "bytes": 64, "traffic": "random", "pps": 2_000_000,
        "ratio_to_wanted": 2.0,
    }  # fmt: skip
    assert told["veth"]["results"] == [
        {"switch": "softswitch", "bytes": 64, "pps": 600_000, "limit": "generator", "ratio_to_bmv2": 10.0,
         "most_pps": 610_000, "overload": None},
        {"switch": "bmv2", "bytes": 64, "pps": 60_000, "limit": "switch", "ratio_to_bmv2": 1.0,
         "most_pps": 61_000,
         "overload": {"processor_share": 0.2, "rounds": 3, "peak_pps": 12_000, "offered_pps": 120_000, "pps": 2_400,
                      "offered_to_peak": 10.0, "kept": 0.2, "kept_least": 0.1}},
    ]  # fmt: skip


def test_markdown_is_tables_and_the_machine() -> None:
    lines = report.markdown(results()).splitlines()
    assert lines[2] == "| fabric | 1,000 | 10 | 64 | 2,000,000 | 4,000,000 | 2.0 x |"
    assert "| bmv2 | 64 | 60,000 | 1.0 x | 61,000 |" in lines
    assert [line for line in lines if line.endswith("% |")] == [
        "| bmv2 | 64 | 12,000 | 120,000 | 10.0 x | 2,400 | 20% | 10% |"
    ]
    assert "CPU, 2 cores, Linux 6.1, 2026-01-31, load 0.5; python 3.11." in lines


def test_text_names_what_was_skipped() -> None:
    assert "skipped: coffee: none left" in report.text(results()).splitlines()


# ---- the router and its traffic --------------------------------------------------------------------------------


def test_router_is_the_same_for_a_seed_and_has_what_was_asked_for() -> None:
    router = r.make_router(200, 50)
    assert router == r.make_router(200, 50)
    assert (len({prefix for prefix, _ in router.routes}), len(set(router.acl))) == (200, 50)


def test_packets_have_their_length_and_a_right_checksum() -> None:
    packets = r.make_packets(r.make_router(10, 10), 64, 20)
    assert {len(packet) for packet in packets} == {64}
    for packet in packets:
        words = [int.from_bytes(packet[at : at + 2], "big") for at in range(14, 34, 2)]
        assert sum(words) % 0xFFFF == 0


def test_the_fabric_sprays_the_routers_traffic_over_its_planes_in_turn() -> None:
    router = r.make_router(10, 10)
    [packet] = r.make_packets(router, 64, 1)
    with fabric.load(router) as device:
        outputs = [out for _ in range(2 * fabric.PLANES) for out in device.inject(r.IN_PORT, packet, 0)]
    assert sorted(out.port for out in outputs) == sorted(2 * [r.OUT_PORT + plane for plane in range(fabric.PLANES)])


@pytest.mark.parametrize("program", switch.LOADERS)
def test_packets_that_are_not_forwarded_end_the_measurement(program: str) -> None:
    with switch.LOADERS[program](r.make_router(10, 10)) as device, pytest.raises(RuntimeError, match="forwarded 0 of"):
        memory.measure(device, [bytes(64)], 0.001)


# ---- the search for the peak -----------------------------------------------------------------------------------


class FakeSwitch:
    """Carries up to its capacity; beyond that what is left of it."""

    def __init__(self, capacity: float, generator: float = 1e9, left: float = 1.0) -> None:
        self.capacity, self.generator, self.left = capacity, generator, left

    def __call__(self, rate: int) -> Load:
        offered = min(rate, self.generator)
        carried = offered if offered <= self.capacity else self.capacity * self.left
        return Load(offered, carried, 1 - carried / offered)


def test_peak_is_found_within_the_steps_of_bisection() -> None:
    peak = find_peak(FakeSwitch(123_456))
    assert peak.limit == "switch"
    assert 123_456 * 0.98 < peak.lossless <= 123_456


def test_peak_of_a_slow_generator_is_the_generators() -> None:
    assert find_peak(FakeSwitch(1e6, generator=300_000)) == Peak(300_000, 300_000, "generator")


def test_a_run_that_something_disturbed_is_repeated() -> None:
    plain, disturbed = FakeSwitch(50_000), iter([True] + [False] * 100)

    def offer(rate: int) -> Load:
        return Load(rate, 0, LOSS_MAX * 2) if next(disturbed) else plain(rate)

    assert find_peak(offer).lossless > 49_000


def test_most_counts_runs_with_loss() -> None:
    assert find_peak(FakeSwitch(50_000, left=1.2)).most == 60_000


def test_overload_offers_the_peak_and_ten_times_as_much_in_turn() -> None:
    offers: list[int] = []
    plain = FakeSwitch(1000, left=0.2)

    def offer(rate: int) -> Load:
        offers.append(rate)
        return plain(rate)

    told = overload(offer, Peak(1000, 1100, "switch"), 0.5)
    assert offers == [1000, 10_000] * ROUNDS
    assert told == Overload(0.5, (Round(1000, 10_000, 200),) * ROUNDS)
    assert (told.typical.factor, told.typical.kept) == (10, 0.2)


def test_overload_tells_the_median_and_the_worst_round() -> None:
    rounds = tuple(Round(100, 1000, carried) for carried in (90, 10, 80, 95, 100))
    assert (Overload(1, rounds).typical.kept, Overload(1, rounds).worst.kept) == (0.9, 0.1)


# ---- the limit on processor time -------------------------------------------------------------------------------


def test_the_cpu_controller_is_found_in_both_versions() -> None:
    unified = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
    old = "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n"
    assert hierarchy(unified + old) == (Path("/sys/fs/cgroup/cpu"), 1)
    assert hierarchy(unified) == (Path("/sys/fs/cgroup/unified"), 2)
    with pytest.raises(QuotaError, match="no cpu controller"):
        hierarchy("proc /proc proc rw 0 0\n")


@pytest.mark.root
def test_a_limited_process_gets_its_share() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            with cpu_quota(process.pid, 0.1):
                before, start = processor_s(process.pid), time.monotonic()
                time.sleep(1)
                used = (processor_s(process.pid) - before) / (time.monotonic() - start)
        except QuotaError as error:
            pytest.skip(str(error))
        finally:
            process.kill()
    assert used < 0.2


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- for real --------------------------------------------------------------------------------------------------


@pytest.mark.root
@pytest.mark.parametrize("target", [SOFTSWITCH, pytest.param(BMV2, marks=pytest.mark.bmv2)], ids=lambda one: one.name)
def test_every_frame_comes_back_through_the_switch(target: Target, tmp_path: Path) -> None:
    router = r.make_router(10, 10)
    with network(tmp_path) as net, running(target, net, router, tmp_path):
        load = net.offer(r.make_packets(router, 64, 16), 1000, 0.2)
    assert load.loss == 0
