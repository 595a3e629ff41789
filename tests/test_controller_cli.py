"""The ``polyplane`` command: what it prints, its JSON, its exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import finsy as fy
import pytest

from controller import limits
from controller.api import call
from controller.events import KINDS
from tests.controller_command import Cli
from tests.controller_fabric import Fabric, Node

PATIENCE_S = 30


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    with Fabric("single-tier.yaml", tmp_path) as made:
        yield made


@pytest.fixture
def cli(fabric: Fabric, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Cli(fabric.write_intent(tmp_path / "fabric.yaml"), capsys, tmp_path / "polyplane.sock")


@pytest.fixture
def up(cli: Cli, fabric: Fabric) -> Iterator[Cli]:
    """The command beside a running controller, on a fabric that is well."""
    arguments = [sys.executable, "-m", "controller.cli", "-f", str(cli.intent), "--socket", str(cli.socket), "up"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "single-tier is under control: 4 devices, 4 links, 140 entries\n"
            fabric.beat(12)
            wait(cli, "links", lambda links: {link["state"] for link in links} == {"up"})
            yield cli
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


def wait(cli: Cli, name: str, condition: Callable[[Any], bool]) -> Any:
    """What the controller answers once the condition holds."""
    asked = threading.Event()
    for _ in range(PATIENCE_S * 20):
        answer = call(cli.socket, name)
        if condition(answer):
            return answer
        asked.wait(0.05)
    raise AssertionError(answer)


def test_without_a_controller_commands_that_need_one_say_so(cli: Cli) -> None:
    for words in (["status"], ["planes"], ["links"], ["ports"], ["queues"], ["events"], ["down"], ["drain", "plane1"],
                  ["undrain", "plane1"], ["apply"], ["watch"], ["counters", "baseline"]):  # fmt: skip
        assert cli(*words, code=5) == ""
        assert cli.err.startswith(f"polyplane: no controller listens on {cli.socket}")


def test_a_bad_intent_file_is_refused_with_all_its_problems_before_anything_is_written(cli: Cli) -> None:
    cli.intent.write_text(cli.intent.read_text().replace("role: plane, device_id: 11", "role: top, device_id: 12"))
    assert cli("up", "--once", code=2) == ""
    assert cli.err.splitlines() == [
        f"{cli.intent}:9: planes[0].switches[0].role: must be one of plane, leaf, spine, is 'top'",
        f"{cli.intent}:12: planes[1].switches[0]: device_id 12 is used already in line 9 (planes[0].switches[0])",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("role: plane, device_id: 12", "role: plane, device_id: 12, colour: red", {0:
            "planes[1].switches[0].colour: unknown key 'colour'; valid keys are name, role, device_id, address, mac, "
            "control, thrift_port"}),
        ("[nic2:3, p2:2]", "[nic2:3, p2:1]", {0: "links[3]: port p2:1 is used already in line 32 (links[1])"}),
        ("ipv4: 10.0.0.2/24", "ipv4: 10.0.0.2/16", {0: "nics[1].host: ipv4 10.0.0.2/16 overlaps 10.0.0.1/24 of host "
         "'h1'; subnets must be the same or disjoint"}),
        ("plane_ports: [2, 3]\n    host: {name: h2", "plane_ports: [3]\n    host: {name: h2", {
            0: "nics[1].plane_ports: 2 planes need as many plane ports, NIC 'nic2' has 1",
            6: "links[2]: port nic2:2 is not a plane port of the NIC; those are 3"}),
    ],
    ids=["unknown key", "port used twice", "addresses overlap", "more planes than ports"],
)  # fmt: skip
def test_a_bad_intent_file_is_refused_with_line_and_key_before_anything_is_written(
    cli: Cli, fabric: Fabric, old: str, new: str, said: dict[int, str]
) -> None:
    text = cli.intent.read_text()
    assert text.count(old) == 1
    cli.intent.write_text(text.replace(old, new))
    assert cli("up", "--once", code=2) == ""
    line = text[: text.index(old)].count("\n") + 1
    assert cli.err.splitlines() == [f"{cli.intent}:{line + at}: {one}" for at, one in said.items()]
    assert [node.native for node in fabric.nodes.values()] == [None] * 4, "no device has even a pipeline"


def test_groups_that_do_not_fit_into_the_table_are_refused_before_anything_is_written(
    cli: Cli, fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = limits.table_sizes
    monkeypatch.setattr(limits, "table_sizes", lambda program: sizes(program) | {"group": 1})
    assert cli("up", "--once", code=2) == ""
    (line,) = [at for at, text in enumerate(cli.intent.read_text().splitlines(), 1) if text == "links:"]
    assert cli.err.splitlines() == [
        f"{cli.intent}:{line + 1}: links: {name} needs 2 entries in table group, which takes at most 1"
        for name in ("nic1", "nic2", "p1", "p2")
    ]
    assert [node.native for node in fabric.nodes.values()] == [None] * 4, "no device has even a pipeline"


def test_a_command_that_makes_no_sense_is_refused(cli: Cli) -> None:
    cli("paint", code=2)
    cli("drain", code=2)
    cli("fault", "set", "plane9", "down", code=2)
    assert "no plane, device or link 'plane9'; there are plane1, plane2, p1, p2, nic1, nic2" in cli.err
    cli("fault", "set", "plane1", "loss=2", code=2)
    cli("shell", "p9", code=2)
    assert cli.err == "polyplane: no device 'p9'; there are p1, p2, nic1, nic2\n"


def test_a_kind_of_event_that_there_is_not_is_refused_with_those_that_there_are(cli: Cli) -> None:
    cli("events", "--kind", "link-down", "--kind", "nonsense", code=2)
    assert cli.err == f"polyplane: --kind: no kind 'nonsense'; kinds are {', '.join(KINDS)}\n"


def test_up_once_installs_and_ends_and_the_second_time_nothing_differs(cli: Cli, fabric: Fabric) -> None:
    updates = cli.json("up", "--dry-run", code=4)["updates"]  # the devices have no pipeline, and it gives them none
    assert [sum(map(len, updates.values())), {line[0] for lines in updates.values() for line in lines}] == [140, {"+"}]
    kinds = [line.partition("[")[0] for line in updates["p1"]]
    assert (kinds[-2:], kinds.index("+ group") < kinds.index("+ route_ipv4")) == (["+ port"] * 2, True), "as written"
    assert [node.native for node in fabric.nodes.values()] == [None] * 4
    assert cli("up", "--once") == "single-tier is under control: 4 devices, 4 links, 140 entries\n"
    for words in (["up", "--dry-run"], ["diff"]):
        answer = cli.json(*words)
        assert answer == {"updates": {"p1": [], "p2": [], "nic1": [], "nic2": []}, "errors": {}}
        assert list(answer["updates"]) == ["p1", "p2", "nic1", "nic2"], "in the order of the intent file"
    assert cli("verify") == "2 pairs of hosts reach each other by every plane that is well\n"


def test_up_once_fails_where_a_device_does_not_answer_and_names_it(cli: Cli, fabric: Fabric) -> None:
    fabric.lose_session("p2")
    cli("up", "--once", "--timeout", "5", code=1)
    assert re.search(r"after 5 s not in sync: .*\bp2 \(UNAVAILABLE", cli.err), "others may be late as well"


def test_what_cannot_be_read_is_named_with_the_reason_and_the_rest_is_compared(cli: Cli, fabric: Fabric) -> None:
    cli("up", "--once")
    fabric.lose_session("p2")
    address = fabric.nodes["p2"].address
    why = f"UNAVAILABLE: no connection (No such file or directory); does it run, and listen on {address}?"
    for words in (["diff", "--timeout", "1"], ["up", "--dry-run", "--timeout", "1"]):
        answer = cli.json(*words, code=1)
        assert answer["updates"] == {"p1": [], "nic1": [], "nic2": []}
        assert answer["errors"] == {"p2": why}
        assert cli.err == f"polyplane: p2 was not read: {why}\n"
    assert {"subject": "p2", "message": f"could not be read: {why}"} in cli.json("verify", "--timeout", "1", code=3)


def test_verify_says_what_a_device_without_a_pipeline_needs(cli: Cli, fabric: Fabric) -> None:
    cli("up", "--once")
    fabric.restart("p2")
    (said,) = [one["message"] for one in cli.json("verify", code=3) if one["subject"] == "p2"]
    assert said == "could not be read: it has no pipeline; 'polyplane up' gives it one"


def test_a_running_controller_says_why_verify_could_not_read_a_device(up: Cli, fabric: Fabric) -> None:
    fabric.lose_session("p2")
    wait(up, "events", lambda events: "session-lost" in {event["kind"] for event in events})
    (said,) = [one["message"] for one in up.json("verify", code=3) if one["subject"] == "p2"]
    assert said.startswith(f"could not be read: p2: no session with {fabric.nodes['p2'].address}")


def test_a_second_controller_on_the_same_socket_is_refused(up: Cli) -> None:
    up("up", code=1)
    assert f"a controller is running already on {up.socket}; another one of this fabric needs another" in up.err


def test_status_shows_a_healthy_fabric(up: Cli) -> None:
    state = up.json("status")
    assert (state["healthy"], state["primary"], state["converged"]) == (True, True, True)
    assert [(one["plane"], one["state"], one["links_up"]) for one in state["planes"]] == [
        ("plane1", "up", 2), ("plane2", "up", 2),
    ]  # fmt: skip
    assert {one["session"] for one in state["devices"]} == {"primary"}
    assert "single-tier: healthy" in up("status")


def test_a_failed_link_is_shown_as_it_is(up: Cli, fabric: Fabric) -> None:
    link = fabric.link("nic2", "p1")
    fabric.cut.add(link.name)
    fabric.beat(4)
    wait(up, "links", lambda links: any(one["state"] == "down" for one in links))
    (down,) = [one for one in up.json("links") if one["state"] != "up"]
    assert down["link"] == link.name and "says down (heartbeats missed)" in down["evidence"]
    assert up.json("status", code=3)["healthy"] is False
    assert "NOT HEALTHY" in up("status", code=3)
    assert [one["subject"] for one in up.json("events", "--kind", "link-down")] == [link.name]
    assert up.json("verify") == []
    assert up.json("planes", "--sort", "state")[0]["state"] == "down"


def test_ports_and_queues_tell_what_passed(up: Cli, fabric: Fabric) -> None:
    fabric.beat(20)
    rows = wait(up, "ports", lambda rows: any(row["rx_packets"] >= 32 for row in rows))
    assert {row["leads_to"] for row in rows} == {
        "host h1", "host h2", "p1:1", "p1:2", "p2:1", "p2:2", "nic1:2", "nic1:3", "nic2:2", "nic2:3",
    }  # fmt: skip
    assert up.json("ports", "--sort", "rx packets")[0]["rx_packets"] >= 32
    queues = up.json("queues")
    assert {(row["queue"], *row["classes"]) for row in queues} == {(2, "control")}, "heartbeats ride the control class"
    up("queues", "--sort", "colour", code=2)
    assert up.err.startswith("polyplane: --sort: no column 'colour'; columns are device, port, queue")


def test_drain_and_undrain_say_what_is_drained(up: Cli) -> None:
    assert up.json("drain", "plane1") == {"drained": ["plane1"], "pending": []}
    assert up.json("status")["planes"][0]["state"] == "drained"
    assert up("undrain", "plane1") == "drained: nothing\n"
    up("drain", "plane9", code=2)
    up("drain", "plane9", "--json", code=2)
    assert up.err.startswith("polyplane: no plane, device or link 'plane9'; there are plane1, plane2, p1")
    kinds = [event["kind"] for event in up.json("events")]
    assert kinds.index("drained") < kinds.index("undrained")


def test_a_device_without_links_can_be_drained_but_has_no_links_to_fail(cli: Cli) -> None:
    lines = cli.intent.read_text().splitlines(keepends=True)
    cli.intent.write_text("".join(line for line in lines if ", p1:" not in line))
    cli("drain", "p1", code=5)  # it is known; what is missing is a controller
    cli("fault", "set", "p1", "down", code=2)
    assert cli.err == "polyplane: p1 has no links\n"


def test_what_somebody_else_changed_is_shown_and_put_right(cli: Cli, fabric: Fabric) -> None:
    cli("up", "--once")
    asyncio.run(delete_route(fabric.nodes["p1"]))
    (update,) = cli.json("diff", code=4)["updates"]["p1"]
    assert update == "+ route_ipv4[dst_addr=0xa000002/32] -> ipv4_via(group_id=2)"
    assert cli("up", "--dry-run", code=4) == f"p1: {update}\n"
    assert cli.json("verify", code=3) == [{"subject": "h1 -> h2", "message": "ipv4 does not use plane1"}]
    cli("up", "--once")
    assert (cli("diff"), cli.json("verify")) == ("", [])


def test_a_running_controller_takes_back_what_another_left_behind(up: Cli, fabric: Fabric) -> None:
    asyncio.run(delete_route(fabric.nodes["p1"]))
    wait(up, "events", lambda events: "not-primary" in {event["kind"] for event in events})
    wait(up, "status", lambda status: status["converged"])
    (again,) = up.json("events", "--kind", "reconciled")[4:]
    assert (again["subject"], again["reaction"]) == ("p1", "1 new, 0 changed, 0 gone")
    assert up("apply") == ""
    assert up.err == "nothing to write\n"


async def delete_route(node: Node) -> None:
    """Another controller with a higher election id takes the device, deletes a route and leaves."""
    options = fy.SwitchOptions(device_id=node.device.device_id, initial_election_id=99)
    async with fy.Switch("other", node.address, options) as switch:
        match = fy.P4TableMatch(dst_addr=(0x0A000002, 32))
        await switch.write([-fy.P4TableEntry("route_ipv4", match=match)])


def test_dry_run_beside_a_controller_is_of_the_file_as_it_is_and_of_the_fabric_as_the_controller_knows_it(
    up: Cli, tmp_path: Path
) -> None:
    up("drain", "plane1")
    elsewhere = ["--memory", str(tmp_path / "none.json")]  # knows of no drain
    assert up("up", "--dry-run", *elsewhere) == ""
    up.intent.write_text(up.intent.read_text().replace("kmin: 16", "kmin: 17"))
    assert up("diff") == "", "by the intent that the controller was started with"
    updates = up.json("up", "--dry-run", *elsewhere, code=4)["updates"]
    lines = [line for one in updates.values() for line in one]
    assert lines and all(line.startswith("~ ecn_profile") and "17" in line for line in lines)
    up.intent.write_text(up.intent.read_text().replace("role: plane", "role: top", 1))
    up("up", "--dry-run", code=2)


def test_counters_since_a_baseline_are_what_was_counted_since(up: Cli, fabric: Fabric) -> None:
    assert up.json("counters", "baseline")["devices"] == 4
    fabric.beat(7)
    changes = {(one["device"], one["counter"]): one["packets"] for one in up.json("counters", "delta")["changes"]}
    assert changes["p1", "port 1 rx"] == 7
    assert changes["nic1", "port 2 queue 2 tx"] == 7
    only = up.json("counters", "delta", "--match", "queue")["changes"]
    assert only and all("queue" in one["counter"] for one in only)
    up("counters", "delta", "--file", "none.json", code=1)
    assert "no baseline none.json; 'polyplane counters baseline' makes one" in up.err


def test_watch_as_json_is_one_view_a_line(up: Cli) -> None:
    lines = up("watch", "--json", "--count", "2", "--interval", "0.1").splitlines()
    assert [sorted(json.loads(line)) for line in lines] == [["events", "links", "queues", "status", "time"]] * 2
    assert "healthy" in up("watch", "--count", "1")


def test_faults_are_set_shown_and_cleared(cli: Cli) -> None:
    cli("up", "--once")
    add_ports(cli, {"p1": (1, 2), "p2": (1, 2), "nic1": (2, 3), "nic2": (2, 3)})
    done = cli.json("fault", "set", "plane1", "loss=1%,delay=1ms")
    assert len(done) == 4 and done[0] == {
        "end": "nic1:2", "link": "nic1:2-p1:1", "loss": 0.01, "delay_ns": 1_000_000,
    }  # fmt: skip
    cli("fault", "set", "nic2:2-p1:2", "down", "--towards", "p1")
    shown = {(row["end"], row["direction"]): row.get("down", False) for row in cli.json("fault", "show")}
    assert shown == {("nic1:2", "rx"): False, ("p1:1", "rx"): False, ("nic2:2", "rx"): False, ("p1:2", "rx"): True}
    cli("fault", "clear", "plane1")
    assert cli.json("fault", "show") == []
    assert (cli("fault", "show"), cli.err) == ("", "no faults\n")


def add_ports(cli: Cli, ports: dict[str, tuple[int, ...]]) -> None:
    from softswitch.control import ControlClient

    for name, numbers in ports.items():
        with ControlClient(cli.intent.with_name(f"{name}.control")) as client:
            for number in numbers:
                client.call("ports.add", port=number, ifname="")


def test_a_device_without_a_control_socket_cannot_be_made_to_fail(cli: Cli) -> None:
    text = cli.intent.read_text()
    cli.intent.write_text("".join(line for line in text.splitlines(True) if not line.strip().startswith('control: "')))
    cli("fault", "set", "nic1", "down", code=1)
    assert "nic1 has no 'control' socket in" in cli.err and "softswitch devices only" in cli.err


def test_shell_is_p4runtime_shell_below_the_controllers_election_id(cli: Cli, fabric: Fabric) -> None:
    command = cli.json("shell", "p1")["command"]
    assert command[1:] == [
        "-m", "p4runtime_sh", "--grpc-addr", fabric.nodes["p1"].address, "--device-id", "11", "--election-id", "0,0",
    ]  # fmt: skip


def test_up_detached_goes_on_in_the_background_until_down(cli: Cli, tmp_path: Path) -> None:
    started = cli.json("up", "--detach", "--memory", str(tmp_path / "memory.json"))
    try:
        assert cli.json("status", code=3)["links"]["unknown"] == 4  # nothing has beaten yet
        assert cli.json("down") == {"stopped": True}
        cli("status", code=5)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(started["pid"], signal.SIGTERM)


def test_events_of_up_are_json_lines(cli: Cli) -> None:
    lines = [json.loads(line) for line in cli("up", "--once", "--json").splitlines()]
    assert {"ready": {"fabric": "single-tier", "devices": 4, "links": 4, "entries": 140}} in lines
    assert {line["event"]["kind"] for line in lines if "event" in line} == {"session-up", "reconciled"}


@pytest.mark.shell
def test_the_shell_reads_what_the_controller_has_installed(cli: Cli) -> None:
    cli("up", "--once")
    command = [sys.executable, "-m", "controller.cli", "-f", str(cli.intent), "shell", "p1"]
    program = 'print("routes", len(list(table_entry["FabricIngress.route.route_ipv4"].read())))\nexit\n'
    done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0 and "routes 2" in done.stdout
