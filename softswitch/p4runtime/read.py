"""Read: the entities that a request selects, in messages of bounded size."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from finsy.proto import p4r

from softswitch.device_types import DeviceError
from softswitch.p4runtime.errors import Code, P4Error, exhausted, from_device
from softswitch.p4runtime.pipeline import Pipeline
from softswitch.p4runtime.roles import Permissions

MAX_REQUESTS = 4096
"""Most entities in one request."""

CHUNK_ENTITIES = 512
CHUNK_BYTES = 256 * 1024
"""A response is sent once it has so many entities or bytes (clients take 4 MiB unless told otherwise)."""


def select(pipeline: Pipeline, request: p4r.ReadRequest) -> tuple[list[Iterator[p4r.Entity]], Sequence[P4Error | None]]:
    """What each entity of the request selects, and the error of each. The caller holds the pipeline's lock.
    Raises P4Error RESOURCE_EXHAUSTED for too many entities."""
    if len(request.entities) > MAX_REQUESTS:
        raise exhausted(f"{len(request.entities)} entities in one request; at most {MAX_REQUESTS} are taken")
    found: list[Iterator[p4r.Entity]] = []
    errors: list[P4Error | None] = []
    for entity in request.entities:
        error = None
        try:
            handler, _, message = pipeline.handler(entity)
            found.append(handler.read(message))
        except P4Error as refused:
            error = refused
        except DeviceError as refused:
            error = from_device(refused, "device")
        errors.append(error)
    return found, errors


def responses(
    pipeline: Pipeline,
    found: Sequence[Iterator[p4r.Entity]],
    permissions: Permissions | None,
    lock: threading.Lock,
) -> Iterator[p4r.ReadResponse]:
    """The responses. The lock is held while one is made, not while it is sent: a slow reader keeps nobody waiting.
    Raises P4Error ABORTED if the pipeline goes away meanwhile."""
    entities = (
        entity
        for iterator in found
        for entity in iterator
        if permissions is None or permissions.covers(*_kind_and_message(entity))
    )
    while True:
        with lock:
            if pipeline.closed:
                raise P4Error(Code.ABORTED, "the pipeline was replaced while it was read")
            response = _chunk(entities)
        if not response.entities:
            return
        yield response


def _chunk(entities: Iterator[p4r.Entity]) -> p4r.ReadResponse:
    response = p4r.ReadResponse()
    size = 0
    for entity in entities:
        response.entities.append(entity)
        size += entity.ByteSize()
        if size >= CHUNK_BYTES or len(response.entities) >= CHUNK_ENTITIES:
            break
    return response


def _kind_and_message(entity: p4r.Entity) -> tuple[str, object]:
    kind = entity.WhichOneof("entity") or ""
    return kind, getattr(entity, kind)
