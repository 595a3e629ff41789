"""P4Runtime errors: canonical codes, messages that name the choices, and the status that a failed batch returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import grpc
from finsy.proto import p4r, rpc_status
from google.protobuf.any_pb2 import Any

from softswitch.device_types import DeviceError

Code = grpc.StatusCode

# A status travels as HTTP/2 metadata, which clients bound (gRPC's default is 8 KiB). Every update of a failed batch has
# its code in the status; the texts beyond this many bytes are left out, so that the codes get through.
_TEXT_BUDGET = 4096
_SHOWN_CHOICES = 8


class P4Error(Exception):
    """A refused request or update, with its canonical code."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def invalid(message: str) -> P4Error:
    return P4Error(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> P4Error:
    return P4Error(Code.NOT_FOUND, message)


def exists(message: str) -> P4Error:
    return P4Error(Code.ALREADY_EXISTS, message)


def denied(message: str) -> P4Error:
    return P4Error(Code.PERMISSION_DENIED, message)


def unimplemented(message: str) -> P4Error:
    return P4Error(Code.UNIMPLEMENTED, message)


def exhausted(message: str) -> P4Error:
    return P4Error(Code.RESOURCE_EXHAUSTED, message)


def from_device(error: DeviceError, what: str) -> P4Error:
    """The P4Runtime face of a device's refusal; ``what`` names the object."""
    return P4Error(grpc.StatusCode[error.code], f"{what}: {error}")


class Named(Protocol):
    """A P4Info object: it has an id and a name."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...


def unknown_id(kind: str, ident: int, valid: Iterable[Named]) -> P4Error:
    """INVALID_ARGUMENT that names the id and what would have been valid, for example
    ``unknown table id 7; valid: ingress.route (33574068)``."""
    choices = [f"{item.name} ({item.id})" for item in valid]
    return invalid(f"unknown {kind} id {ident}; valid: {shortened(choices)}")


def shortened(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_SHOWN_CHOICES]) or "none"
    more = len(names) - _SHOWN_CHOICES
    return f"{shown} and {more} more" if more > 0 else shown


def code_number(code: grpc.StatusCode) -> int:
    """The number of a canonical code, as in google.rpc.Code."""
    return int(code.value[0])


def batch_status(errors: Sequence[P4Error | None], message: str) -> bytes:
    """The google.rpc.Status of a batch that failed in part: UNKNOWN, with one p4.v1.Error for each element."""
    status = rpc_status.Status(code=code_number(Code.UNKNOWN), message=message)
    budget = _TEXT_BUDGET
    for error in errors:
        detail = p4r.Error()
        if error is not None:
            detail.canonical_code = code_number(error.code)
            budget -= len(error.message.encode())
            if budget >= 0:
                detail.message = error.message
        packed = Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status.SerializeToString()
