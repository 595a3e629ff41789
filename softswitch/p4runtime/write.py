"""Write: one update after another, each reported on its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from finsy.proto import p4r

from softswitch.device_types import DeviceError
from softswitch.p4runtime.entity import DELETE, INSERT, MODIFY
from softswitch.p4runtime.errors import Code, P4Error, exhausted, from_device, unimplemented
from softswitch.p4runtime.pipeline import Pipeline
from softswitch.p4runtime.roles import Permissions

MAX_UPDATES = 1 << 16
"""Most updates in one request: every one of them has its error kept and sent."""

_LOG = logging.getLogger(__name__)


def write(pipeline: Pipeline, request: p4r.WriteRequest, permissions: Permissions | None) -> Sequence[P4Error | None]:
    """Apply the updates in order. Returns the error of each, None for one that was done.

    CONTINUE_ON_ERROR tries all of them; ROLLBACK_ON_ERROR stops at the first error and takes back what was done.
    Raises P4Error UNIMPLEMENTED for DATAPLANE_ATOMIC, RESOURCE_EXHAUSTED for too many updates.
    """
    if len(request.updates) > MAX_UPDATES:
        raise exhausted(f"{len(request.updates)} updates in one request; at most {MAX_UPDATES} are taken")
    if request.atomicity == p4r.WriteRequest.ROLLBACK_ON_ERROR:
        return _all_or_none(pipeline, request.updates, permissions)
    if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
        raise unimplemented("atomicity DATAPLANE_ATOMIC is not supported; valid: CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR")
    return [_apply(pipeline, update, permissions) for update in request.updates]


def _apply(pipeline: Pipeline, update: p4r.Update, permissions: Permissions | None = None) -> P4Error | None:
    try:
        handler, kind, message = pipeline.handler(update.entity)
        if permissions is not None:
            permissions.check_write(kind, message)
        handler.write(update.type, message)
    except P4Error as error:
        return error
    except DeviceError as error:
        return from_device(error, "device")
    except Exception as error:  # the other updates of the batch still have to be tried and reported
        _LOG.exception("update failed: %s", update)
        return P4Error(Code.INTERNAL, f"internal error: {error!r}")
    return None


def _all_or_none(
    pipeline: Pipeline, updates: Sequence[p4r.Update], permissions: Permissions | None
) -> Sequence[P4Error | None]:
    undo: list[p4r.Update] = []
    for i, update in enumerate(updates):
        try:
            inverse = _inverse(pipeline, update)
            error = _apply(pipeline, update, permissions)
        except P4Error as bad_key:
            error = bad_key
        if error is None:
            undo.extend(inverse)
            continue
        for step in reversed(undo):
            failure = _apply(pipeline, step)
            if failure is not None:
                _LOG.error("rollback failed: %s: %s", failure, step)
        aborted = P4Error(Code.ABORTED, f"rolled back, as update {i} failed")
        return [error if j == i else aborted for j in range(len(updates))]
    return [None] * len(updates)


def _inverse(pipeline: Pipeline, update: p4r.Update) -> list[p4r.Update]:
    """The updates that take back ``update``, which is not applied yet. They are for an update that will succeed."""
    handler, kind, message = pipeline.handler(update.entity)
    request = type(message)()
    request.CopyFrom(message)
    if kind == "table_entry":
        request.ClearField("action")
        for name in ("metadata", "controller_metadata", "meter_counter_data", "time_since_last_hit"):
            request.ClearField(name)
        request.counter_data.SetInParent()
        request.meter_config.SetInParent()
    if update.type == INSERT:
        return [p4r.Update(type=DELETE, entity=p4r.Entity(**{kind: request}))]
    before = [e for e in handler.read(request) if _same_key(kind, getattr(e, kind), message)]
    for entity in before:
        if entity.table_entry.is_const:  # only its direct resources can have changed
            entity.table_entry.ClearField("is_const")
            entity.table_entry.ClearField("action")
    restore = INSERT if update.type == DELETE else MODIFY
    return [p4r.Update(type=restore, entity=entity) for entity in before]


def _same_key(kind: str, found: p4r.TableEntry, asked: p4r.TableEntry) -> bool:
    """A read without match fields is a wildcard; here it stands for the entry that matches everything."""
    if kind in ("direct_counter_entry", "direct_meter_entry"):
        found, asked = found.table_entry, asked.table_entry  # type: ignore[attr-defined]
    elif kind != "table_entry":
        return True
    return bool(found.match) == bool(asked.match)
