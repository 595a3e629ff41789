"""The parts of an intent file that say what switches do with single packets: access list and postcards."""

from __future__ import annotations

from collections.abc import Sequence

from controller.intent_checks import Located
from controller.model import MAX_PORT, AclAction, AclRule, PortRef, Postcards, Role, TrafficClass
from controller.yaml_source import Value

MAX_DEPTH = 4096  # packets
TCP, UDP = 6, 17


def port_of(value: Value) -> PortRef:
    """A port, ``DEVICE:PORT``."""
    device, colon, number = value.text().rpartition(":")
    if not colon or not device or not number.isdecimal() or not 1 <= int(number) <= MAX_PORT:
        value.wrong(f"must be DEVICE:PORT with a port within 1..{MAX_PORT}, is {value.node.value!r}")
        return PortRef("", 0)
    return PortRef(device, int(number))


def read_acl(value: Value, located: Located) -> tuple[AclRule, ...]:
    """The access list; ports must be those of switches that the file has."""
    switches = [device.name for device, _ in located.devices if device.role is not Role.NIC]
    rules: dict[AclRule, Value] = {}
    for item in value.items():
        rule = _rule(item, switches)
        others = [where for other, where in rules.items() if _same_packets(rule, other)]
        if others:
            item.wrong(f"matches what the rule in line {others[0].line} ({others[0].key}) matches, and never has a say")
        rules[rule] = item
    return tuple(rules)


def _rule(value: Value, switches: Sequence[str]) -> AclRule:
    keys = value.mapping(
        ("action",), ("ports", "ether_type", "src_addr", "dst_addr", "protocol", "l4_src_port", "l4_dst_port")
    )
    ports = [port_of(item) for item in keys["ports"].items_or_one()] if "ports" in keys else []
    for port in ports:
        if port.port and port.device not in switches:
            keys["ports"].wrong(f"unknown switch {port.device!r}; switches are {', '.join(switches)}")
    ranges = {"ether_type": 0xFFFF, "protocol": 0xFF, "l4_src_port": 0xFFFF, "l4_dst_port": 0xFFFF}
    numbers = {name: keys[name].integer(0, high, TCP) for name, high in ranges.items() if name in keys}
    prefixes = {name: keys[name].prefix() for name in ("src_addr", "dst_addr") if name in keys}
    versions = {prefix.version for prefix in prefixes.values() if prefix is not None}
    if len(versions) > 1:
        keys["dst_addr"].wrong("must be of the same IP version as src_addr")
    if versions and "ether_type" in keys:
        keys["ether_type"].wrong("follows from src_addr and dst_addr; give one or the other")
    for name in ("l4_src_port", "l4_dst_port"):
        if name in keys and numbers.get("protocol") not in (TCP, UDP):
            keys[name].wrong(f"needs protocol {TCP} (TCP) or {UDP} (UDP)")
    action = AclAction(keys["action"].choice(tuple(AclAction))) if "action" in keys else AclAction.DENY
    return AclRule(
        action,
        tuple(ports),
        numbers.get("ether_type"),
        prefixes.get("src_addr"),
        prefixes.get("dst_addr"),
        numbers.get("protocol"),
        numbers.get("l4_src_port"),
        numbers.get("l4_dst_port"),
    )


def _same_packets(one: AclRule, other: AclRule) -> bool:
    """Whether they differ in nothing but the action."""
    return all(getattr(one, name) == getattr(other, name) for name in AclRule.__slots__ if name != "action")


def read_postcards(value: Value, classes: Sequence[TrafficClass]) -> tuple[Postcards, ...]:
    """Thresholds and shares by class."""
    found = []
    members = value.mapping((), tuple(one.name for one in classes))
    for one in classes:
        if one.name not in members:
            continue
        keys = members[one.name].mapping(("threshold", "share"))
        threshold = keys["threshold"].integer(0, MAX_DEPTH) if "threshold" in keys else 0
        share = keys["share"].number(0.0, 1.0) if "share" in keys else 0.0
        found.append(Postcards(one.number, threshold, share))
    return tuple(found)
