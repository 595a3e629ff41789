"""What a role may do.

A role without configuration may do everything. The configuration that this server knows is ``stratum.P4RoleConfig``
(the message of Stratum and finsy): ids that may be written and are seen in reads, whether packets are received, whether
the pipeline may be replaced. Multicast groups and clone sessions have no id: every role may write them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from finsy.proto import p4r, stratum
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from softswitch.p4runtime.errors import denied, invalid

_IDS: dict[str, Callable[[Any], int]] = {
    "extern_entry": lambda e: int(e.extern_id),
    "table_entry": lambda e: int(e.table_id),
    "action_profile_member": lambda e: int(e.action_profile_id),
    "action_profile_group": lambda e: int(e.action_profile_id),
    "meter_entry": lambda e: int(e.meter_id),
    "direct_meter_entry": lambda e: int(e.table_entry.table_id),
    "counter_entry": lambda e: int(e.counter_id),
    "direct_counter_entry": lambda e: int(e.table_entry.table_id),
    "value_set_entry": lambda e: int(e.value_set_id),
    "register_entry": lambda e: int(e.register_id),
    "digest_entry": lambda e: int(e.digest_id),
}


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rights of one role."""

    role: str
    ids: frozenset[int]
    exclusive: frozenset[int]
    receives_packets: bool
    pushes_pipeline: bool
    packet_filter: tuple[int, bytes] | None

    def check_write(self, kind: str, message: Any) -> None:
        """PERMISSION_DENIED where the role may not write that entity."""
        if not self.covers(kind, message):
            raise denied(f"role {self.role} may not write {kind} of id {_IDS[kind](message)}")

    def covers(self, kind: str, message: Any) -> bool:
        """True for an entity in the role's scope."""
        ident = _IDS.get(kind)
        return ident is None or ident(message) in self.ids

    def wants(self, packet: Sequence[p4r.PacketMetadata]) -> bool:
        """True for a packet-in that the role is to get."""
        if not self.receives_packets:
            return False
        if self.packet_filter is None:
            return True
        return any((m.metadata_id, m.value) == self.packet_filter for m in packet)


def permissions(role: str, config: AnyMessage) -> Permissions:
    """The rights that ``role.config`` describes. Raises P4Error INVALID_ARGUMENT."""
    message = stratum.P4RoleConfig()
    try:
        known = config.Unpack(message)
    except DecodeError as error:
        raise invalid(f"role {role}: config is not a valid stratum.P4RoleConfig") from error
    if not known:
        raise invalid(f"role {role}: config is a {config.TypeName()}; this server knows stratum.P4RoleConfig")
    chosen = message.packet_in_filter
    return Permissions(
        role=role,
        ids=frozenset(message.exclusive_p4_ids) | frozenset(message.shared_p4_ids),
        exclusive=frozenset(message.exclusive_p4_ids),
        receives_packets=message.receives_packet_ins,
        pushes_pipeline=message.can_push_pipeline,
        packet_filter=(chosen.metadata_id, chosen.value) if message.HasField("packet_in_filter") else None,
    )
