"""PacketReplicationEngineEntry: multicast groups and clone sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from finsy.proto import p4r

from softswitch.device import Device
from softswitch.device_types import DeviceError, Replica
from softswitch.p4runtime import bytestrings
from softswitch.p4runtime.entity import DELETE, INSERT, MODIFY, unknown_update
from softswitch.p4runtime.errors import exhausted, exists, from_device, invalid, not_found, unimplemented
from softswitch.p4runtime.ports import MAX_PORT, port_number
from softswitch.p4runtime.tables import METADATA_MAX

MAX_GROUP = 0xFFFF  # v1model's mcast_grp is bit<16>
MAX_SESSION = 0x7FFF  # simple_switch's mirroring sessions
MAX_INSTANCE = 0xFFFF  # v1model's egress_rid is bit<16>
MAX_REPLICAS = 1 << 16  # of all groups and sessions together


class Replication:
    """The packet replication engine."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._groups: dict[int, bytes] = {}
        self._sessions: dict[int, bytes] = {}
        self._counts: Counter[str] = Counter()  # replicas of each group and session
        self._total = 0

    def write(self, kind: p4r.Update.Type.ValueType, message: p4r.PacketReplicationEngineEntry) -> None:
        if kind not in (INSERT, MODIFY, DELETE):
            raise unknown_update(kind)
        if message.HasField("multicast_group_entry"):
            self._write_group(kind, message.multicast_group_entry)
        elif message.HasField("clone_session_entry"):
            self._write_session(kind, message.clone_session_entry)
        else:
            raise invalid("packet replication: neither multicast_group_entry nor clone_session_entry is set")

    def _write_group(self, kind: p4r.Update.Type.ValueType, group: p4r.MulticastGroupEntry) -> None:
        ident, what = group.multicast_group_id, f"multicast group {group.multicast_group_id}"
        if not 0 < ident <= MAX_GROUP:
            raise invalid(f"{what}: the id is not in 1..{MAX_GROUP}")
        _check_presence(kind, ident in self._groups, what)
        if kind == DELETE:
            _on_device(what, lambda: self._device.multicast_delete(ident))
            self._count(what, 0)
            del self._groups[ident]
            return
        if len(group.metadata) > METADATA_MAX:
            raise invalid(f"{what}: metadata of {len(group.metadata)} bytes; at most {METADATA_MAX} are kept")
        replicas = _replicas(group.replicas, what)
        self._check_room(what, len(replicas))
        _on_device(what, lambda: self._device.multicast_set(ident, replicas))
        self._count(what, len(replicas))
        self._groups[ident] = group.SerializeToString()

    def _write_session(self, kind: p4r.Update.Type.ValueType, session: p4r.CloneSessionEntry) -> None:
        ident, what = session.session_id, f"clone session {session.session_id}"
        if not 0 < ident <= MAX_SESSION:
            raise invalid(f"{what}: the id is not in 1..{MAX_SESSION}")
        _check_presence(kind, ident in self._sessions, what)
        if kind == DELETE:
            _on_device(what, lambda: self._device.clone_delete(ident))
            self._count(what, 0)
            del self._sessions[ident]
            return
        if session.class_of_service:
            raise unimplemented(f"{what}: class_of_service {session.class_of_service} is not supported, only 0")
        if session.packet_length_bytes < 0:
            raise invalid(f"{what}: packet_length_bytes {session.packet_length_bytes} is negative")
        replicas = _replicas(session.replicas, what)
        self._check_room(what, len(replicas))
        _on_device(what, lambda: self._device.clone_set(ident, replicas, session.packet_length_bytes))
        self._count(what, len(replicas))
        self._sessions[ident] = session.SerializeToString()

    def _check_room(self, what: str, replicas: int) -> None:
        if self._total - self._counts[what] + replicas > MAX_REPLICAS:
            raise exhausted(f"{what}: all groups and sessions together have at most {MAX_REPLICAS} replicas")

    def _count(self, what: str, replicas: int) -> None:
        self._total += replicas - self._counts.pop(what, 0)
        if replicas:
            self._counts[what] = replicas

    def read(self, message: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.Entity]:
        kind = message.WhichOneof("type")
        found: list[p4r.PacketReplicationEngineEntry] = []
        if kind in ("multicast_group_entry", None):
            for body in _selected(self._groups, message.multicast_group_entry.multicast_group_id):
                group = p4r.MulticastGroupEntry.FromString(body)
                found.append(p4r.PacketReplicationEngineEntry(multicast_group_entry=group))
        if kind in ("clone_session_entry", None):
            for body in _selected(self._sessions, message.clone_session_entry.session_id):
                session = p4r.CloneSessionEntry.FromString(body)
                found.append(p4r.PacketReplicationEngineEntry(clone_session_entry=session))
        return (p4r.Entity(packet_replication_engine_entry=entry) for entry in found)


def _check_presence(kind: p4r.Update.Type.ValueType, present: bool, what: str) -> None:
    if kind == INSERT and present:
        raise exists(f"{what} already exists")
    if kind != INSERT and not present:
        raise not_found(f"{what} does not exist")


def _on_device(what: str, call: Callable[[], None]) -> None:
    try:
        call()
    except DeviceError as error:
        raise from_device(error, what) from error


def _selected(bodies: dict[int, bytes], ident: int) -> list[bytes]:
    if ident:
        return [bodies[ident]] if ident in bodies else []
    return list(bodies.values())


def _replicas(messages: Sequence[p4r.Replica], what: str) -> list[Replica]:
    """Ports and instances, the ports' byte strings brought to their shortest form in place."""
    found: dict[Replica, None] = {}
    for message in messages:
        if message.backup_replicas:
            raise unimplemented(f"{what}: backup replicas are not supported")
        if message.WhichOneof("port_kind") == "egress_port":  # deprecated
            port = message.egress_port
            if port > MAX_PORT:
                raise invalid(f"{what}: {port} is not a port; valid: 0 to {MAX_PORT}")
        else:
            port = port_number(message.port, what)
            message.port = bytestrings.encode(port)
        if message.instance > MAX_INSTANCE:
            raise invalid(f"{what}: the instance {message.instance} is not in 0..{MAX_INSTANCE}")
        replica = Replica(port, message.instance)
        if replica in found:
            raise invalid(f"{what}: port {port} with instance {message.instance} is there twice")
        found[replica] = None
    return list(found)
