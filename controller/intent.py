"""Reads an intent file (``fabric.yaml``) into a checked :class:`~controller.model.Intent`.

The file is described in ``controller/examples/single-tier.yaml``. Reading notes what is wrong value by value, with
line and key; :mod:`controller.intent_checks` then looks at how the parts fit together. All problems of a file are
reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import yaml

from controller.intent_checks import Located, check_intent
from controller.intent_rules import MAX_DEPTH, port_of, read_acl, read_postcards
from controller.limits import overflows
from controller.model import (
    MAX_PORT,
    Damping,
    Device,
    EcnMode,
    EcnProfile,
    HealthProfile,
    Host,
    Intent,
    PortRef,
    Protection,
    Role,
    Spray,
    TrafficClass,
)
from controller.yaml_source import IntentError, Problem, Value, read_yaml

__all__ = ["IntentError", "Problem", "load_intent"]

MAX_DEVICE_ID = 0xFFFF  # heartbeats carry it in 16 bits
MAX_QUEUE = 7

# Classes where the file names none: the numbers are those of the P4 program.
CLASS_NUMBERS = {"control": 1, "data": 2, "other": 3}
DEFAULT_CLASSES = (
    TrafficClass("control", 1, (48,), 2, Spray.ECMP, "none"),
    TrafficClass("data", 2, (26,), 1, Spray.ROUND_ROBIN, "none"),
    TrafficClass("other", 3, (), 0, Spray.ECMP, "none"),
)


def load_intent(path: Path, sizes: Mapping[Role, Mapping[str, int]] | None = None) -> Intent:
    """The intent in the file. Raises IntentError with every problem found.

    That it fits into the programs' tables is checked last; ``sizes`` replaces their sizes, by role and table.
    """
    root = read_yaml(path)
    top = root.mapping(
        required=("name", "planes"),
        optional=(
            "nics", "hosts", "links", "classes", "ecn_profiles", "health", "protection", "damping", "acl", "postcards",
            "tick_ns",
        ),
    )  # fmt: skip
    reader = _Reader(path.parent)
    planes = [reader.plane(value) for value in top["planes"].items()] if "planes" in top else []
    for value in top["nics"].items() if "nics" in top else []:
        reader.nic(value)
    for value in top["hosts"].items() if "hosts" in top else []:
        reader.host(value)
    for value in top["links"].items() if "links" in top else []:
        reader.link(value)
    profiles = [_ecn_profile(*item) for item in top["ecn_profiles"].members().items()] if "ecn_profiles" in top else []
    classes = _classes(top["classes"], {profile.name for profile in profiles}) if "classes" in top else DEFAULT_CLASSES
    located = reader.located
    located.planes = planes
    links = check_intent(located, root)
    intent = Intent(
        name=top["name"].text() if "name" in top else "",
        source=path,
        planes=tuple(plane for plane, _ in planes),
        devices=tuple(device for device, _ in located.devices),
        hosts=tuple(host for host, _ in located.hosts),
        links=links,
        classes=classes,
        ecn_profiles=tuple(profiles),
        health=_health(top["health"]) if "health" in top else HealthProfile(),
        protection=_protection(top["protection"]) if "protection" in top else Protection(),
        damping=_damping(top["damping"]) if "damping" in top else Damping(),
        acl=read_acl(top["acl"], reader.located) if "acl" in top else (),
        postcards=read_postcards(top["postcards"], classes) if "postcards" in top else (),
        tick_ns=top["tick_ns"].integer(1, 1_000_000) if "tick_ns" in top else 1000,
    )
    root.problems.check()
    for section, message in overflows(intent, sizes=sizes):
        top.get(section, root).wrong(message)
    root.problems.check()
    return intent


class _Reader:
    """Reads devices, hosts and links; keeps where each was written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.located = Located()

    def plane(self, value: Value) -> tuple[str, Value]:
        members = value.mapping(required=("name", "switches"))
        name = members["name"].text() if "name" in members else ""
        for switch in members["switches"].items() if "switches" in members else []:
            fields_of = switch.mapping(
                required=("name", "role", "device_id", "address"), optional=("mac", "control", "thrift_port")
            )
            role = Role(fields_of["role"].choice(("plane", "leaf", "spine"))) if "role" in fields_of else Role.PLANE
            self._device(switch, fields_of, role, name)
        return name, members.get("name", value)

    def nic(self, value: Value) -> None:
        members = value.mapping(
            required=("name", "device_id", "address", "host_port", "plane_ports", "host"),
            optional=("mac", "control", "thrift_port"),
        )
        device = self._device(value, members, Role.NIC, "")
        host_port = members["host_port"].integer(1, MAX_PORT) if "host_port" in members else 0
        if "plane_ports" in members:
            ports = [item.integer(1, MAX_PORT) for item in members["plane_ports"].items()]
            self.located.plane_ports[device.name] = (tuple(ports), members["plane_ports"])
        if "host" in members:
            host = members["host"]
            self._host(host, host.mapping(("name", "mac"), ("ipv4", "ipv6")), PortRef(device.name, host_port))

    def host(self, value: Value) -> None:
        members = value.mapping(("name", "mac", "port"), ("ipv4", "ipv6"))
        self._host(value, members, port_of(members["port"]) if "port" in members else PortRef("", 0))

    def link(self, value: Value) -> None:
        ends, name = value, ""
        if isinstance(value.node, yaml.MappingNode):
            members = value.mapping(("ends",), ("name",))
            if "ends" not in members:
                return
            ends, name = members["ends"], members["name"].text() if "name" in members else ""
        items = ends.items()
        if len(items) != 2:
            ends.wrong(f"must be two ports such as [nic1:2, leaf1:1], has {len(items)}")
            return
        one, two = (port_of(item) for item in items)
        self.located.links.append((name or f"{one}-{two}", one, two, ends))

    def _device(self, value: Value, members: dict[str, Value], role: Role, plane: str) -> Device:
        name = members["name"].text() if "name" in members else ""
        if ":" in name or "/" in name:
            members["name"].wrong(f"must not contain ':' or '/', is {name!r}")
        device_id = members["device_id"].integer(1, MAX_DEVICE_ID, 0) if "device_id" in members else 0
        device = Device(
            name=name,
            role=role,
            plane=plane,
            device_id=device_id,
            address=_address(members["address"]) if "address" in members else "",
            mac=members["mac"].mac() if "mac" in members else default_mac(device_id),
            control=self.folder / members["control"].text() if "control" in members else None,
            thrift_port=members["thrift_port"].integer(1, 65535) if "thrift_port" in members else None,
        )
        self.located.devices.append((device, value))
        return device

    def _host(self, value: Value, members: dict[str, Value], attached: PortRef) -> None:
        if "ipv4" not in members and "ipv6" not in members:
            value.wrong("needs an address: ipv4, ipv6 or both")
        host = Host(
            name=members["name"].text() if "name" in members else "",
            mac=members["mac"].mac() if "mac" in members else 0,
            attached=attached,
            ipv4=members["ipv4"].ipv4() if "ipv4" in members else None,
            ipv6=members["ipv6"].ipv6() if "ipv6" in members else None,
        )
        self.located.hosts.append((host, value))


def default_mac(device_id: int) -> int:
    """The router address of a device for which the file gives none: locally administered, 02:50:50:00:<id>."""
    return 0x025050000000 | device_id


def _address(value: Value) -> str:
    text = value.text()
    host, _, port = text.rpartition(":")
    if text.startswith("unix:/"):
        return text
    if not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        value.wrong(f"must be HOST:PORT with a port within 1..65535 or unix:/PATH, is {text!r}")
    return text


def _ecn_profile(name: str, value: Value) -> EcnProfile:
    members = value.mapping(("mode",), ("kmin", "kmax", "pmax"))
    mode = EcnMode(members["mode"].choice(tuple(EcnMode))) if "mode" in members else EcnMode.NONE
    kmin = members["kmin"].integer(0, MAX_DEPTH) if "kmin" in members else 0
    kmax = members["kmax"].integer(0, MAX_DEPTH) if "kmax" in members else kmin
    pmax = members["pmax"].number(0.0, 1.0) if "pmax" in members else 1.0
    needed = {EcnMode.STEP: ("kmin",), EcnMode.RAMP: ("kmin", "kmax", "pmax"), EcnMode.EARLY_DROP: ("kmin",)}
    for key in needed.get(mode, ()):
        if key not in members:
            value.wrong(f"mode {mode} needs {key}")
    if mode is EcnMode.RAMP and {"kmin", "kmax"} <= members.keys() and kmax <= kmin:
        members["kmax"].wrong(f"must be above kmin {kmin}, is {kmax}")
    return EcnProfile(name, mode, kmin, kmax, pmax)


def _classes(value: Value, profiles: set[str]) -> tuple[TrafficClass, ...]:
    members = value.mapping(required=tuple(CLASS_NUMBERS))
    classes: list[TrafficClass] = []
    taken: dict[int, str] = {}
    for name, given in members.items():
        keys = given.mapping(("queue", "spray"), ("dscp", "ecn", "max_age_us"))
        dscp = [item.integer(0, 63) for item in keys["dscp"].items_or_one()] if "dscp" in keys else []
        for number in dscp:
            if number in taken:
                keys["dscp"].wrong(f"DSCP {number} belongs to class {taken[number]!r} already")
            taken[number] = name
        if name == "other" and dscp:
            keys["dscp"].wrong("the class takes whatever no other class names; it has no dscp")
        elif name != "other" and not dscp:
            given.wrong("needs dscp, one of 0..63 or a list of them")
        choices = ("none", *sorted(profiles))
        ecn = keys["ecn"].choice(choices) if "ecn" in keys else "none"
        if name == "control" and ecn != "none":
            keys["ecn"].wrong(f"the control class is never marked, is {ecn!r}")
        spray = Spray(keys["spray"].choice(tuple(Spray))) if "spray" in keys else Spray.ECMP
        queue = keys["queue"].integer(0, MAX_QUEUE) if "queue" in keys else 0
        max_age_us = keys["max_age_us"].integer(1, 10_000_000) if "max_age_us" in keys else 1000
        number = CLASS_NUMBERS[name]
        classes.append(TrafficClass(name, number, tuple(sorted(dscp)), queue, spray, ecn, max_age_us))
    return tuple(sorted(classes, key=lambda one: one.number))


def _health(value: Value) -> HealthProfile:
    ranges = {
        "heartbeat_us": (100, 10_000_000), "missed_limit": (1, 255), "probation": (1, 65535), "max_doublings": (0, 15),
        "forgive": (1, 10_000_000), "window": (2, 65535), "min_lost": (1, 65535), "loss_ppm": (1, 1_000_000),
        "avoid_degraded": (0, 1),
        "silence_ms": (100, 3_600_000),
    }  # fmt: skip
    return HealthProfile(**_integers(value, ranges))


def _protection(value: Value) -> Protection:
    return Protection(**_integers(value, dict.fromkeys(_names(Protection), (1, 1000000))))


def _damping(value: Value) -> Damping:
    return Damping(**_integers(value, dict.fromkeys(_names(Damping), (0, 3600000))))


def _names(kind: type[Protection] | type[Damping]) -> list[str]:
    return [member.name for member in fields(kind)]


def _integers(value: Value, ranges: dict[str, tuple[int, int]]) -> dict[str, int]:
    return {name: given.integer(*ranges[name]) for name, given in value.mapping((), tuple(ranges)).items()}
