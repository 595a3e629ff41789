"""RECONCILE_AND_COMMIT: the state of one pipeline carried into another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4r

from softswitch.device_types import DeviceError
from softswitch.p4runtime.entity import DELETE, INSERT, MODIFY
from softswitch.p4runtime.errors import Code, P4Error, invalid
from softswitch.p4runtime.pipeline import Pipeline


def replay(old: Pipeline, new: Pipeline) -> None:
    """Write all that controllers and packets left in ``old`` into ``new``, which is fresh.

    Ids and keys must mean the same in both. Raises P4Error INVALID_ARGUMENT for the first entity that has no place in
    ``new``; ``old`` is as it was.
    """
    _remove_initial(old, new)
    for entity in _state(old):
        try:
            handler, kind, message = new.handler(entity)
            _put(handler, kind, message)
        except (P4Error, DeviceError) as error:
            raise invalid(f"the forwarding state cannot be preserved: {error}: {_named(entity)}") from error


def _remove_initial(old: Pipeline, new: Pipeline) -> None:
    """Delete what both programs put into their tables and the controller had deleted."""
    for entity in list(new.tables.read(p4r.TableEntry())):
        entry = entity.table_entry
        if entry.table_id in old.tables and not entry.is_const:
            try:
                removed = old.tables.table(entry.table_id).has_removed(entry)
            except P4Error:  # the table has another key now
                continue
            if removed:
                new.tables.write(DELETE, entry)


def _put(handler: Any, kind: str, message: Any) -> None:
    if kind in _INSERTED and not (kind == "table_entry" and message.is_default_action):
        try:
            handler.write(INSERT, message)
            return
        except P4Error as error:
            if error.code is not Code.ALREADY_EXISTS:
                raise
    handler.write(MODIFY, message)


_INSERTED = frozenset(
    {
        "action_profile_member",
        "action_profile_group",
        "table_entry",
        "packet_replication_engine_entry",
        "digest_entry",
    }
)


def _state(old: Pipeline) -> Iterator[p4r.Entity]:
    """Everything that differs from a fresh pipeline, in an order in which it can be written."""
    table_entry = p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())
    yield from _read(old, action_profile_member=p4r.ActionProfileMember())
    yield from _read(old, action_profile_group=p4r.ActionProfileGroup())
    yield from _read(old, packet_replication_engine_entry=p4r.PacketReplicationEngineEntry())
    for entity in _read(old, table_entry=table_entry):
        if not entity.table_entry.is_const:
            yield entity
    table_entry.is_default_action = True
    for table in old.tables:
        if table.default_changed:
            table_entry.table_id = table.info.id
            yield from _read(old, table_entry=table_entry)
    yield from (e for e in _read(old, counter_entry=p4r.CounterEntry()) if _counted(e.counter_entry.data))
    yield from (e for e in _read(old, meter_entry=p4r.MeterEntry()) if e.meter_entry.HasField("config"))
    yield from (e for e in _read(old, register_entry=p4r.RegisterEntry()) if _set(e.register_entry))
    yield from (e for e in _read(old, value_set_entry=p4r.ValueSetEntry()) if e.value_set_entry.members)
    yield from _read(old, digest_entry=p4r.DigestEntry())


def _read(pipeline: Pipeline, **wildcard: Any) -> Iterator[p4r.Entity]:
    handler, _, message = pipeline.handler(p4r.Entity(**wildcard))
    return handler.read(message)


def _counted(data: p4r.CounterData) -> bool:
    return bool(data.packet_count or data.byte_count)


def _set(entry: p4r.RegisterEntry) -> bool:
    data = entry.data
    return data.bool or bool(data.bitstring.strip(b"\0") or data.enum_value.strip(b"\0"))


def _named(entity: p4r.Entity) -> str:
    """The entity on one line, for a message."""
    return " ".join(str(entity).split())[:200]
