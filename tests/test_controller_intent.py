"""Intent files: what is read, and how a bad one is refused: file, line, key, value, choices, all problems at once."""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path

import pytest

from controller.intent import IntentError, load_intent
from controller.model import PortRef, Role, Spray

EXAMPLES = Path(__file__).resolve().parent.parent / "controller/examples"
SINGLE_TIER = (EXAMPLES / "single-tier.yaml").read_text()


def problems(tmp_path: Path, text: str) -> list[str]:
    """What loading says, with the file's folder taken away."""
    path = tmp_path / "fabric.yaml"
    path.write_text(text)
    with pytest.raises(IntentError) as failure:
        load_intent(path)
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in failure.value.problems]


def changed(old: str, new: str) -> tuple[str, int]:
    """The example with one text replaced, and the line of the change."""
    assert SINGLE_TIER.count(old) == 1
    return SINGLE_TIER.replace(old, new), SINGLE_TIER[: SINGLE_TIER.index(old)].count("\n") + 1


def test_the_examples_are_read() -> None:
    intent = load_intent(EXAMPLES / "single-tier.yaml")
    assert intent.planes == ("plane1", "plane2")
    assert [device.role for device in intent.devices] == [Role.PLANE, Role.PLANE, Role.NIC, Role.NIC]
    (h1, _) = intent.hosts
    assert (h1.attached, h1.ipv4, h1.ipv6) == (
        PortRef("nic1", 1),
        IPv4Interface("10.0.0.1/24"),
        IPv6Interface("fd00::1/64"),
    )
    assert [(one.name, one.number, one.dscp, one.spray) for one in intent.classes] == [
        ("control", 1, (48,), Spray.ECMP),
        ("data", 2, (26,), Spray.ROUND_ROBIN),
        ("other", 3, (), Spray.ECMP),
    ]
    assert intent.health.probation == 100
    assert len(load_intent(EXAMPLES / "leaf-spine.yaml").links) == 16


def test_links_know_which_end_is_upper_whatever_the_order(tmp_path: Path) -> None:
    path = tmp_path / "fabric.yaml"
    path.write_text(SINGLE_TIER.replace("[nic1:2, p1:1]", "{name: first, ends: [p1:1, nic1:2]}"))
    link = load_intent(path).link_by_name["first"]
    assert (link.lower, link.upper, link.plane) == (PortRef("nic1", 2), PortRef("p1", 1), "plane1")


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("role: plane, device_id: 11", "rule: plane, device_id: 11", "planes[0].switches[0].rule",
         "unknown key 'rule'; valid keys are name, role, device_id, address, mac, control, thrift_port"),
        ("role: plane, device_id: 12", "role: core, device_id: 12", "planes[1].switches[0].role",
         "must be one of plane, leaf, spine, is 'core'"),
        ("device_id: 11", "device_id: 70000", "planes[0].switches[0].device_id", "must be within 1..65535, is 70000"),
        ("device_id: 12", "device_id: 11", "planes[1].switches[0]",
         "device_id 11 is used already in line 9 (planes[0].switches[0])"),
        ('"127.0.0.1:50012"', '"127.0.0.1"', "planes[1].switches[0].address",
         "must be HOST:PORT with a port within 1..65535 or unix:/PATH, is '127.0.0.1'"),
        ("[nic2:3, p2:2]", "[nic2:3, p2:1]", "links[3]", "port p2:1 is used already in line 30 (links[1])"),
        ("[nic2:3, p2:2]", "[nic2:3, p2:64]", "links[3][1]",
         "must be DEVICE:PORT with a port within 1..63, is 'p2:64'"),
        ("[nic2:3, p2:2]", "[nic2:3, p3:2]", "links[3]", "unknown device 'p3'; devices are nic1, nic2, p1, p2"),
        ("[nic2:3, p2:2]", "[p1:3, p2:2]", "links[3]",
         "cannot join plane 'p1' and plane 'p2'; links join a NIC with a leaf or plane switch, or a leaf with a spine"),
        ("[nic2:3, p2:2]", "[nic2:4, p2:2]", "links[3]", "port nic2:4 is not a plane port of the NIC; those are 2, 3"),
        ("10.0.0.2/24", "10.0.0.1/24", "nics[1].host", "ipv4 10.0.0.1 overlaps host 'h1' in line 20"),
        ("10.0.0.2/24", "10.0.0.2/16", "nics[1].host",
         "ipv4 10.0.0.2/16 overlaps 10.0.0.1/24 of host 'h1'; subnets must be the same or disjoint"),
        ("fd00::2/64", "fd00::2/200", "nics[1].host.ipv6",
         "must be an IPv6 address such as fd00::1/64, is 'fd00::2/200'"),
        ("02:00:00:00:01:02", "03:00:00:00:01:02", "nics[1].host.mac",
         "must be a unicast Ethernet address such as 02:00:00:00:00:01, is '03:00:00:00:01:02'"),
        ("02:00:00:00:01:02", "02:00:00:00:01:01", "nics[1].host",
         "Ethernet address 02:00:00:00:01:01 is used already in line 20 (nics[0].host)"),
        ("spray: spray_rr, ecn: ramp", "spray: flowlet, ecn: ramp", "classes.data.spray",
         "must be one of ecmp, spray_random, spray_rr, spray_adaptive, is 'flowlet'"),
        ("spray: spray_rr, ecn: ramp", "spray: spray_rr, ecn: deep", "classes.data.ecn",
         "must be one of none, ramp, step, is 'deep'"),
        ("{dscp: 26,", "{dscp: 48,", "classes.data.dscp", "DSCP 48 belongs to class 'control' already"),
        ("kmin: 8, kmax: 32", "kmin: 32, kmax: 8", "ecn_profiles.ramp.kmax", "must be above kmin 32, is 8"),
        ("pmax: 0.5", "pmax: 1.5", "ecn_profiles.ramp.pmax", "must be a number within 0..1, is '1.5'"),
        ("missed_limit: 3", "missed_limit: none", "health.missed_limit",
         "must be an integer within 1..255, is 'none'"),
        ("{action: deny,", "{action: drop,", "acl[1].action", "must be one of permit, deny, punt, is 'drop'"),
        ("{action: deny,", "{action: deny, port: 1,", "acl[1].port",
         "unknown key 'port'; valid keys are action, ports, ether_type, src_addr, dst_addr, protocol, l4_src_port, "
         "l4_dst_port"),
        ("{action: deny, protocol: 6,", "{action: deny, protocol: 256,", "acl[1].protocol",
         "must be within 0..255, is 256"),
        ("{action: deny, protocol: 6,", "{action: deny, protocol: 1,", "acl[1].l4_dst_port",
         "needs protocol 6 (TCP) or 17 (UDP)"),
        ("ports: [p1:1, p2:1]", "ports: nic1:1", "acl[0].ports", "unknown switch 'nic1'; switches are p1, p2"),
        ("src_addr: 10.0.0.0/24", "src_addr: 10.0.0.1/24", "acl[0].src_addr",
         "must be a prefix such as 10.0.0.0/8 or fd00::/8 without host bits, is '10.0.0.1/24'"),
        ("src_addr: 10.0.0.0/24", "src_addr: 10.0.0.0/24, dst_addr: 'fd00::/64'", "acl[0].dst_addr",
         "must be of the same IP version as src_addr"),
        ("src_addr: 10.0.0.0/24", "src_addr: 10.0.0.0/24, ether_type: 0x800", "acl[0].ether_type",
         "follows from src_addr and dst_addr; give one or the other"),
        ("threshold: 64", "threshold: 5000", "postcards.data.threshold", "must be within 0..4096, is 5000"),
        ("share: 0.01", "share: 1%", "postcards.data.share", "must be a number within 0..1, is '1%'"),
        ("data: {threshold", "bulk: {threshold", "postcards.bulk",
         "unknown key 'bulk'; valid keys are control, data, other"),
    ],
)  # fmt: skip
def test_a_bad_value_is_named_with_its_line_and_the_valid_ones(
    tmp_path: Path, old: str, new: str, key: str, message: str
) -> None:
    text, line = changed(old, new)
    if old == "role: plane, device_id: 11":  # a key that is not known leaves another missing
        assert f"fabric.yaml:{line}: {key}: {message}" in problems(tmp_path, text)
    else:
        assert problems(tmp_path, text) == [f"fabric.yaml:{line}: {key}: {message}"]


def test_a_rule_that_an_earlier_one_makes_void_is_refused(tmp_path: Path) -> None:
    text, line = changed("acl:\n", "acl:\n  - {action: permit, protocol: 6, l4_dst_port: 22}\n")
    assert problems(tmp_path, text) == [
        f"fabric.yaml:{line + 3}: acl[2]: matches what the rule in line {line + 1} (acl[0]) matches, and never "
        "has a say"
    ]


def test_more_planes_than_nic_ports_are_refused(tmp_path: Path) -> None:
    text = SINGLE_TIER.replace("plane_ports: [2, 3]", "plane_ports: [2]", 1).replace("  - [nic1:3, p2:1]\n", "")
    assert problems(tmp_path, text) == [
        "fabric.yaml:19: nics[0].plane_ports: 2 planes need as many plane ports, NIC 'nic1' has 1"
    ]


def test_all_problems_are_reported_at_once_in_order(tmp_path: Path) -> None:
    text = (
        SINGLE_TIER.replace("device_id: 11", "device_id: x").replace("queue: 1,", "queue: 9,").replace("p2:2]", "p9:2]")
    )
    assert problems(tmp_path, text) == [
        "fabric.yaml:9: planes[0].switches[0].device_id: must be an integer within 1..65535, is 'x'",
        "fabric.yaml:32: links[3]: unknown device 'p9'; devices are nic1, nic2, p1, p2",
        "fabric.yaml:37: classes.data.queue: must be within 0..7, is 9",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "fabric.yaml:1: is empty"),
        ("a: [", "fabric.yaml:1: is not YAML: expected the node content, but found '<stream end>'"),
        ("name: x\nname: y\nplanes: []\n", "fabric.yaml:2: name: key 'name' is given twice"),
    ],
)
def test_what_is_not_an_intent_file_at_all_is_said(tmp_path: Path, text: str, message: str) -> None:
    assert message in problems(tmp_path, text)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(IntentError, match=r"none\.yaml:1: cannot be read: No such file or directory"):
        load_intent(tmp_path / "none.yaml")


def test_what_does_not_fit_into_a_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fabric.yaml"
    path.write_text(SINGLE_TIER)
    sizes = {Role.PLANE: {"group": 1, "route_ipv4": 1, "route_ipv6": 9, "port": 64, "link": 64, "neighbor": 64,
             "health_profile": 16, "traffic_class": 64, "source_guard_ipv4": 9, "source_guard_ipv6": 9, "station": 9,
             "spray_mode": 99, "ecn_profile": 99, "acl": 1, "postcard_profile": 1}}  # fmt: skip
    with pytest.raises(IntentError) as failure:
        load_intent(path, sizes)
    said = [str(problem).removeprefix(f"{tmp_path}/") for problem in failure.value.problems]
    assert said == [
        "fabric.yaml:15: nics: p1 needs 2 entries in table route_ipv4, which takes at most 1",
        "fabric.yaml:15: nics: p2 needs 2 entries in table route_ipv4, which takes at most 1",
        "fabric.yaml:29: links: p1 needs 2 entries in table group, which takes at most 1",
        "fabric.yaml:29: links: p2 needs 2 entries in table group, which takes at most 1",
        "fabric.yaml:61: acl: p1 needs 2 entries in table acl, which takes at most 1",
        "fabric.yaml:61: acl: p2 needs 2 entries in table acl, which takes at most 1",
        "fabric.yaml:66: postcards: p1 needs 2 entries in table postcard_profile, which takes at most 1",
        "fabric.yaml:66: postcards: p2 needs 2 entries in table postcard_profile, which takes at most 1",
    ]
