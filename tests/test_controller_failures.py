"""What the command shows of each failure, on both targets: state, evidence, reaction, exit code; what hosts notice.

The fabric is real: processes in namespaces, cables that are pulled, switches that are killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from mininet_topos.multiplane import multiplane
from mininet_topos.targets import Target
from mininet_topos.topology import NIC_HOST_PORT, End, Topology
from tests.live_fabric import HOSTS, PLANES, RELAYED, LiveFabric, live_fabric
from tests.mininet_support import NEEDS_MININET, TARGETS

pytestmark = NEEDS_MININET
FABRIC = "multiplane"
P1_LINKS = tuple(f"n{host}:1-p1s1:{host}" for host in range(1, HOSTS + 1))


@contextlib.contextmanager
def pulled(fabric: LiveFabric, *cables: tuple[str, str]) -> Iterator[int]:
    """These cables are out; the number of the last event before."""
    since = fabric.up.last
    try:
        for ends in cables:
            fabric.network.set_link(*ends, False)
        yield since
    finally:
        for ends in cables:
            fabric.network.set_link(*ends, True)


def nothing() -> None:
    """Is done meanwhile."""


@pytest.fixture(scope="class", params=TARGETS)
def fabric(request: pytest.FixtureRequest) -> Iterator[LiveFabric]:
    """Shared by the tests of a class; each leaves it well."""
    with live_fabric(Target(request.param)) as made:
        yield made


class TestWellCabled:
    def test_a_failed_link_is_down_at_both_ends_and_nothing_is_lost_once_it_is_known(self, fabric: LiveFabric) -> None:
        with pulled(fabric, ("n1", "p1s1")) as since:
            down = fabric.up.find("link-down", P1_LINKS[0], since)
            assert "says down (no carrier)" in down["evidence"]
            assert down["reaction"] == "skipped by the switches; taken out of groups elsewhere"
            confirmed = fabric.up.find("link-confirmed", P1_LINKS[0], since)
            assert confirmed["evidence"].count("says down (no carrier)") == 2
            reroute = fabric.up.find("rerouted", FABRIC, since)
            assert reroute["reaction"].startswith("4 writes on 2 devices"), "IPv4 and IPv6 of h1 on the other NICs"
            fabric.until_converged()
            state = fabric.status(3)
            assert {one["device"]: one["state"] for one in state["devices"]} == dict.fromkeys(DEVICES, "up")
            assert (state["links"]["down"], state["links"]["up"]) == (1, 5)
            planes = fabric.rows("planes")
            assert {name: row["state"] for name, row in planes.items()} == {"p1": "degraded", "p2": "up"}
            assert planes["p1"]["links_not_well"] == 1
            links = fabric.rows("links")
            assert [name for name, row in links.items() if row["state"] == "down"] == [P1_LINKS[0]]
            assert links[P1_LINKS[0]]["evidence"] == confirmed["evidence"]
            assert fabric.happened(since, "link-down") == [("link-down", P1_LINKS[0])]
            assert fabric.json("verify") == []
            assert fabric.lost(nothing).lost == 0
        fabric.until_well()
        assert fabric.happened(since, "link-restored") == [("link-restored", P1_LINKS[0])]

    def test_a_hosts_cable_is_a_port_and_no_link(self, fabric: LiveFabric) -> None:
        port, others = f"n1:{NIC_HOST_PORT}", (("h2", "h3"), ("h3", "h2"))
        missing = [{"port": port, "leads_to": "host h1"}]
        fabric.up.until(lambda: {row["state"] for row in fabric.ask("ports")} == {"up"}, "the state of every port")
        with contextlib.ExitStack() as stack:

            def pull() -> None:
                since = stack.enter_context(pulled(fabric, ("h1", "n1")))
                assert fabric.up.find("port-down", port, since)["evidence"] == "no carrier; it leads to host h1"

            assert fabric.lost(pull, pairs=others).lost == 0
            assert fabric.status(3)["down_ports"] == missing
            assert f"ports without a carrier: {port} (host h1)\n" in fabric("status", code=3)
            states = {f"{row['device']}:{row['port']}": row["state"] for row in fabric.json("ports")}
            assert [name for name, state in states.items() if state != "up"] == [port]
            fabric.up.end()
            fabric.start("after")
            fabric.up.find("session-up", RELAYED)
            fabric.until_converged()
            assert fabric.status(3)["down_ports"] == missing, "remembered"
        assert fabric.up.find("port-up", port)["evidence"] == "carrier; it leads to host h1"
        fabric.until_well()

    def test_a_failed_plane_is_down_although_its_switch_lives(self, fabric: LiveFabric) -> None:
        with pulled(fabric, *fabric.cables("p1")) as since:
            fabric.up.find("plane-down", "p1", since)
            for link in P1_LINKS:
                fabric.up.find("link-down", link, since)
            fabric.until_converged()
            state = fabric.status(3)
            assert {one["device"]: one["state"] for one in state["devices"]} == dict.fromkeys(DEVICES, "up")
            assert {one["session"] for one in state["devices"]} == {"primary"}
            planes = fabric.rows("planes")
            assert {name: row["state"] for name, row in planes.items()} == {"p1": "down", "p2": "up"}
            assert (planes["p1"]["links"], planes["p1"]["links_not_well"]) == (3, 3)
            links = fabric.rows("links")
            assert {name for name, row in links.items() if row["state"] == "down"} == set(P1_LINKS)
            assert set(fabric.happened(since, "link-down")) == {("link-down", link) for link in P1_LINKS}
            assert fabric.happened(since, "device-dead", "session-lost") == []
            assert fabric.json("verify") == []
            assert fabric.lost(nothing).lost == 0
        fabric.until_well()
        assert fabric.happened(since, "plane-up") == [("plane-up", "p1")]

    def test_a_dead_switch_is_called_dead_and_comes_back_without_loss(self, fabric: LiveFabric) -> None:
        since, switch = fabric.up.last, fabric.net[RELAYED]
        for process in switch.processes:
            process.kill()
        try:
            fabric.up.find("session-lost", RELAYED, since)
            dead = fabric.up.find("device-dead", RELAYED, since)
            assert dead["evidence"] == f"no session, and none of {HOSTS} neighbours hears it"
            fabric.up.find("plane-down", "p1", since)
            fabric.until_converged()
            (row,) = [one for one in fabric.status(3)["devices"] if one["state"] != "up"]
            assert (row["device"], row["state"], row["session"], row["in_sync"]) == (RELAYED, "dead", "closed", False)
            assert row["error"], "why there is no session"
            assert {name: one["state"] for name, one in fabric.rows("planes").items()} == {"p1": "down", "p2": "up"}
            links = fabric.rows("links")
            assert {name for name, one in links.items() if one["state"] == "down"} == set(P1_LINKS)
            assert set(fabric.happened(since, "device-dead", "plane-down")) == {
                ("device-dead", RELAYED), ("plane-down", "p1"),
            }  # fmt: skip
            assert fabric.lost(nothing).lost == 0
        finally:
            switch.stop()

            def restart() -> None:
                switch.start([])
                fabric.until_well()

            coming_back = fabric.lost(restart)
        assert coming_back.lost == 0
        assert fabric.happened(since, "device-back", "reconciled") == [
            ("device-back", RELAYED), ("reconciled", RELAYED),
        ]  # fmt: skip
        assert fabric.json("diff") == {"updates": {name: [] for name in DEVICES}, "errors": {}}

    def test_a_lost_session_is_no_dead_switch(self, fabric: LiveFabric, tmp_path: Path) -> None:
        since, file = fabric.up.last, str(tmp_path / "baseline.json")
        fabric.relay.cut()
        try:
            lost = fabric.up.find("session-lost", RELAYED, since)
            assert lost["reaction"] == "unmanaged; it is believed to forward on"
            (row,) = [one for one in fabric.status(3)["devices"] if one["state"] != "up"]
            assert (row["device"], row["state"], row["session"]) == (RELAYED, "unmanaged", "closed")
            fabric.json("counters", "baseline", "--file", file)
            assert fabric.lost(nothing).lost == 0
            changes = fabric.json("counters", "delta", "--file", file, "--match", "forwarded")["changes"]
            ports = {(one["device"], one["counter"]) for one in changes}
            assert {(f"n{host}", "port 1 forwarded") for host in range(1, HOSTS + 1)} <= ports, "it carries its share"
            assert {row["state"] for row in fabric.rows("planes").values()} == {"up"}
            assert {row["state"] for row in fabric.rows("links").values()} == {"up"}
            assert fabric.happened(since, "link-down", "device-dead", "plane-down", "rerouted") == []
        finally:
            fabric.relay.join()
        fabric.up.find("session-up", RELAYED, since)
        fabric.until_well()
        assert fabric.happened(since, "reconciled") == [], "it holds what it held"

    def test_a_flapping_link_is_held_back_longer_each_time(self, fabric: LiveFabric) -> None:
        first, link = fabric.up.last, "n3:2-p2s1:3"
        for flap in (1, 2):
            with pulled(fabric, ("n3", "p2s1")) as since:
                fabric.up.find("link-down", link, since)
                assert fabric.rows("links")[link]["flaps"] == flap
                assert fabric.status(3)["links"]["down"] == 1
            fabric.up.find("link-restored", link, since)
            held = fabric.up.find("link-held", link, since)
            assert held["reaction"].startswith(f"used again in 0.{flap}")
        fabric.until_well()
        shown = fabric.happened(first, "link-down", "link-restored")
        assert shown == [("link-down", link), ("link-restored", link)] * 2
        assert fabric.up.find("link-restored", link, since)["evidence"] == "well since its 2nd failure"

    def test_a_gray_link_is_named_with_direction_and_loss_and_avoided(self, fabric: LiveFabric) -> None:
        since, link = fabric.up.last, "n2:2-p2s1:2"
        fabric.lose("n2", "p2s1", 0.3)
        try:
            gray = fabric.up.find("link-gray", link, since)
            assert gray["reaction"] == "used only where nothing better leads"

            # the first estimate may rest on as few as two losses; each window makes a better one
            def is_within_a_factor_of_two() -> bool:
                (share,) = (float(row["loss_up"]) for row in fabric.ask("links") if row["link"] == link)
                return 0.15 <= share <= 0.6

            fabric.up.until(is_within_a_factor_of_two, "its loss")
            row = fabric.rows("links")[link]
            assert (row["state"], row["loss_down"]) == ("gray", 0)
            assert "p2s1:2 says degraded (loss), lost" in row["evidence"]
            fabric.until_converged()
            assert fabric.status(3)["links"]["gray"] == 1
            assert {name: one["state"] for name, one in fabric.rows("planes").items()} == {"p1": "up", "p2": "degraded"}
            assert set(fabric.happened(since, "link-gray", "link-down")) == {("link-gray", link)}
            assert fabric.lost(nothing).lost == 0
        finally:
            fabric.lose("n2", "p2s1", 0)
        fabric.until_well()

    def test_a_restart_of_the_controller_loses_nothing_and_writes_nothing(self, fabric: LiveFabric) -> None:
        def restart() -> None:
            fabric.up.end()
            fabric.start("again")
            fabric.until_well()

        assert fabric.lost(restart).lost == 0
        assert not {"reconciled", "rerouted", "link-down"} & set(fabric.up.kinds())
        assert fabric.json("apply") == {"updates": {name: [] for name in DEVICES}, "errors": {}}

    def test_a_controller_without_memory_learns_of_a_failed_and_a_gray_link_before_it_writes(
        self, fabric: LiveFabric
    ) -> None:
        down, gray = "n1:2-p2s1:1", "n2:2-p2s1:2"
        fabric.lose("n2", "p2s1", 0.3)
        try:
            with pulled(fabric, ("n1", "p2s1")) as since:
                fabric.up.find("link-gray", gray, since)
                fabric.up.find("link-confirmed", down, since)
                fabric.until_converged()

                def restart() -> None:
                    fabric.up.end()
                    fabric.memory.unlink()
                    fabric.start("forgetful")
                    fabric.up.find("link-gray", gray)
                    fabric.until_converged()

                assert fabric.lost(restart).lost == 0
                states = {name: row["state"] for name, row in fabric.rows("links").items() if row["state"] != "up"}
                assert states == {gray: "gray", down: "down"}
                assert not {"reconciled", "rerouted"} & set(fabric.up.kinds())
        finally:
            fabric.lose("n2", "p2s1", 0)
        fabric.until_well()

    def test_a_backup_takes_over_in_the_sessions_that_it_has_and_nothing_is_lost(self, fabric: LiveFabric) -> None:
        primary = fabric.up
        backup = fabric.start("backup", election_id=5)
        backup.until(lambda: backup.kinds().count("not-primary") == len(DEVICES), "the backup's sessions")
        assert not fabric.status(3)["primary"]

        def die() -> None:
            primary.process.kill()
            backup.until(lambda: fabric.ask("status")["primary"], "the takeover")
            fabric.until_well()

        assert fabric.lost(die).lost == 0
        assert backup.kinds().count("session-up") == len(DEVICES)
        assert not {"session-lost", "reconciled", "rerouted", "link-down"} & set(backup.kinds())


DEVICES = tuple([f"p{plane}s1" for plane in range(1, PLANES + 1)] + [f"n{host}" for host in range(1, HOSTS + 1)])


def crossed() -> Topology:
    """The cables of n1 and n2 to p1s1 are mixed up."""
    other = {End("p1s1", 1): End("p1s1", 2), End("p1s1", 2): End("p1s1", 1)}
    topology = multiplane(PLANES, HOSTS)
    links = tuple(dataclasses.replace(link, b=other.get(link.b, link.b)) for link in topology.links)
    return dataclasses.replace(topology, links=links)


@pytest.mark.parametrize("target", TARGETS)
def test_miscabled_links_are_named_with_who_was_heard_and_never_used(target: str, tmp_path: Path) -> None:
    file = str(tmp_path / "baseline.json")
    with live_fabric(Target(target), crossed()) as fabric:
        for link in P1_LINKS[:2]:
            assert fabric.up.find("link-miscabled", link)["reaction"] == "not used"
            fabric.up.find("link-confirmed", link)
        fabric.up.find("plane-down", "p1")
        for link in ("n1:2-p2s1:1", "n2:2-p2s1:2", "n3:2-p2s1:3", P1_LINKS[2]):
            fabric.up.find("link-up", link)
        fabric.until_converged()
        links = fabric.rows("links")
        assert {name for name, row in links.items() if row["state"] == "miscabled"} == set(P1_LINKS[:2])
        assert links[P1_LINKS[0]]["evidence"] == (
            "n1:1 says down (miscabled: heard p1s1:2); p1s1:1 says down (miscabled: heard n2:1)"
        )
        assert fabric.status(3)["links"] == {
            "unknown": 0, "up": 4, "gray": 0, "down": 0, "miscabled": 2, "probation": 0, "held": 0,
        }  # fmt: skip
        assert {name: row["state"] for name, row in fabric.rows("planes").items()} == {"p1": "down", "p2": "up"}
        assert set(fabric.happened(0, "link-miscabled")) == {("link-miscabled", link) for link in P1_LINKS[:2]}
        fabric.json("counters", "baseline", "--file", file)
        assert fabric.lost(nothing).lost == 0

        def restart() -> None:
            fabric.up.end()
            fabric.memory.unlink()
            fabric.start("forgetful")
            fabric.up.find("link-miscabled", P1_LINKS[0])
            fabric.up.find("link-miscabled", P1_LINKS[1])
            fabric.until_converged()

        assert fabric.lost(restart).lost == 0
        assert fabric.rows("links") == links
        assert not {"reconciled", "rerouted"} & set(fabric.up.kinds())
        changes = fabric.json("counters", "delta", "--file", file, "--match", "forwarded")["changes"]
        assert not [one for one in changes if one["counter"] == "port 1 forwarded" and one["device"] in ("n1", "n2")]
