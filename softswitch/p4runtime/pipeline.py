"""One forwarding pipeline: a P4Info, the device that runs its program, and the entities in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from finsy.proto import p4i, p4r

from softswitch import bmv2_json, model
from softswitch.device import Device
from softswitch.json_node import ProgramError
from softswitch.p4runtime import p4info
from softswitch.p4runtime.actions import ActionReader
from softswitch.p4runtime.counters import Counters, DirectCounters
from softswitch.p4runtime.digests import Digests
from softswitch.p4runtime.entity import Entities
from softswitch.p4runtime.errors import invalid, unimplemented
from softswitch.p4runtime.meters import DirectMeters, Meters
from softswitch.p4runtime.packet_io import PacketIo
from softswitch.p4runtime.profiles import Groups, Members, Profiles
from softswitch.p4runtime.registers import Registers
from softswitch.p4runtime.replication import Replication
from softswitch.p4runtime.tables import Tables
from softswitch.p4runtime.value_sets import ValueSets


class TargetError(Exception):
    """The target cannot run a program; the message says why."""


class Target(Protocol):
    """Who makes devices and has the ports: :class:`softswitch.switch.Switch`."""

    def build(self, program: model.Program) -> Device:
        """A device that runs the program, not connected to anything. Raises TargetError."""

    def activate(self, device: Device) -> None:
        """Put the device in place of the one that runs now, which is closed."""

    def packet_out(self, packet: bytes) -> None:
        """Give a packet to the device that runs, as received on its CPU port. Raises DeviceError."""


class Pipeline:
    """``handlers`` are by the field of p4.v1.Entity that they serve."""

    def __init__(self, config: p4r.ForwardingPipelineConfig, index: p4info.P4Index, device: Device) -> None:
        self.config = config
        self.index = index
        self.device = device
        self.closed = False
        self.packet_io = PacketIo(index)
        actions = ActionReader(index.actions, index.program)
        profiles = Profiles(index, device, actions)
        self.tables = Tables(index, device, actions, profiles)
        self.handlers: Mapping[str, Entities] = {
            "table_entry": self.tables,
            "action_profile_member": Members(profiles),
            "action_profile_group": Groups(profiles),
            "counter_entry": Counters(index.counters, device),
            "direct_counter_entry": DirectCounters(self.tables),
            "meter_entry": Meters(index.meters, device),
            "direct_meter_entry": DirectMeters(self.tables),
            "register_entry": Registers(index, device),
            "value_set_entry": ValueSets(index.value_sets, device),
            "packet_replication_engine_entry": Replication(device),
            "digest_entry": Digests(index.digests, device),
        }
        self.digests_by_name = {info.name: info for info in index.digests.values()}

    def handler(self, entity: p4r.Entity) -> tuple[Entities, str, Any]:
        """Handler, field name and message of an entity. Raises P4Error."""
        kind = entity.WhichOneof("entity")
        if kind is None:
            raise invalid("the entity is not set")
        handler = self.handlers.get(kind)
        if handler is None:
            raise unimplemented(f"{kind} is not supported")
        return handler, kind, getattr(entity, kind)

    def close(self) -> None:
        """The device goes away; requests that still read from the pipeline see ``closed``."""
        self.closed = True
        self.device.close()


def build(config: p4r.ForwardingPipelineConfig, target: Target) -> Pipeline:
    """Make a pipeline on a device of its own, which is not active yet. Raises P4Error INVALID_ARGUMENT."""
    if not config.p4_device_config:
        raise invalid("p4_device_config is empty; it must be the BMv2 JSON that p4c-bm2-ss writes")
    p4info.check_unique(config.p4info)
    try:
        program = bmv2_json.loads(config.p4_device_config)
        index = p4info.build(config.p4info, program)
        device = target.build(program)
    except ProgramError as error:
        raise invalid(f"p4_device_config: {error}") from error
    except TargetError as error:
        raise invalid(f"the program cannot be realized: {error}") from error
    try:
        return Pipeline(config, index, device)
    except BaseException:
        device.close()
        raise


def response(
    pipeline: Pipeline | None, kind: p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType
) -> p4r.GetForwardingPipelineConfigResponse:
    """The answer to GetForwardingPipelineConfig; no config where there is no pipeline."""
    request = p4r.GetForwardingPipelineConfigRequest
    if kind not in request.ResponseType.values():
        raise invalid(f"unknown response type {kind}; valid: {', '.join(request.ResponseType.keys())}")
    answer = p4r.GetForwardingPipelineConfigResponse()
    if pipeline is None:
        return answer
    answer.config.SetInParent()
    if kind in (request.ALL, request.P4INFO_AND_COOKIE):
        answer.config.p4info.CopyFrom(pipeline.config.p4info)
    if kind in (request.ALL, request.DEVICE_CONFIG_AND_COOKIE):
        answer.config.p4_device_config = pipeline.config.p4_device_config
    if pipeline.config.HasField("cookie"):
        answer.config.cookie.CopyFrom(pipeline.config.cookie)
    return answer


def config_of(info: p4i.P4Info, device_config: bytes) -> p4r.ForwardingPipelineConfig:
    """The configuration of a program from files: it has no cookie."""
    return p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=device_config)
