"""Which controller is primary: for each role, the one whose election id is the highest that was ever seen.

See "Client Arbitration and Controller Replication" in the P4Runtime specification.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from finsy.proto import p4r, rpc_status
from google.protobuf.any_pb2 import Any as AnyMessage

from softswitch.p4runtime.errors import Code, P4Error, code_number, denied, exhausted, invalid, not_found
from softswitch.p4runtime.roles import Permissions, permissions
from softswitch.p4runtime.stream import Stream

MAX_UPDATE_BYTES = 64 * 1024
"""Longest MasterArbitrationUpdate: role names and configurations are kept."""

MAX_ROLES = 256
"""Role names that are remembered, as every one keeps its highest election id."""


@dataclass(slots=True)
class _Role:
    name: str
    streams: dict[Stream, int | None] = field(default_factory=dict)  # election ids; None: never primary
    highest: int | None = None
    config: AnyMessage | None = None
    permissions: Permissions | None = None

    def primary(self) -> Stream | None:
        if self.highest is None:
            return None
        return next((s for s, ident in self.streams.items() if ident == self.highest), None)


def election_id(message: p4r.Uint128) -> int:
    """The number of a 128-bit id."""
    return message.high << 64 | message.low


class Arbitration:
    """The controllers of one device. Safe from any thread.

    ``finish_writes`` waits for the Writes that run; it is called with no lock held, when the primary changes and before
    the new one is told.
    """

    def __init__(self, device_id: int, max_streams: int, finish_writes: Callable[[], None]) -> None:
        self._device_id = device_id
        self._max_streams = max_streams
        self._finish_writes = finish_writes
        self._roles: dict[str, _Role] = {"": _Role("")}
        self._role_of: dict[Stream, _Role] = {}
        self._lock = threading.Lock()

    def update(self, stream: Stream, message: p4r.MasterArbitrationUpdate) -> None:
        """Take a controller's MasterArbitrationUpdate. Raises the P4Error that ends its stream."""
        with self._lock:
            role = self._admit(stream, message)
            before = role.primary()
            ident = election_id(message.election_id) if message.HasField("election_id") else None
            role.streams[stream] = ident
            leads = ident is not None and (role.highest is None or ident >= role.highest)
            if leads:
                role.highest = ident
                self._configure(role, message.role)
                self._notify(role, [s for s in role.streams if s is not stream])
            else:
                self._notify(role, list(role.streams) if before is stream else [stream])
                return
        self._finish_writes()
        with self._lock:
            if stream in role.streams:
                self._notify(role, [stream])

    def remove(self, stream: Stream) -> None:
        """A stream broke or ended."""
        with self._lock:
            role = self._role_of.pop(stream, None)
            if role is None:
                return
            was_primary = role.primary() is stream
            del role.streams[stream]
            if was_primary:
                self._notify(role, list(role.streams))

    def _admit(self, stream: Stream, message: p4r.MasterArbitrationUpdate) -> _Role:
        """The role of the stream, after every check of an update."""
        name = message.role.name
        current = self._role_of.get(stream)
        if message.ByteSize() > MAX_UPDATE_BYTES:
            raise invalid(f"an arbitration message of {message.ByteSize()} bytes; at most {MAX_UPDATE_BYTES} are taken")
        if message.role.id:
            raise invalid("role.id is deprecated and not supported: name the role")
        if current is None:
            if message.device_id != self._device_id:
                raise not_found(f"unknown device id {message.device_id}; valid: {self._device_id}")
            if len(self._role_of) >= self._max_streams:
                raise exhausted(f"{self._max_streams} controllers are connected, which is the limit")
            if name not in self._roles and len(self._roles) >= MAX_ROLES:
                raise exhausted(f"{MAX_ROLES} roles are known, which is the limit")
        elif message.device_id != self._device_id:
            raise P4Error(Code.FAILED_PRECONDITION, f"a stream's device id cannot change to {message.device_id}")
        elif name != current.name:
            raise P4Error(Code.FAILED_PRECONDITION, f"a stream's role cannot change from {current.name!r} to {name!r}")
        role = self._roles.get(name, _Role(name))
        if message.role.HasField("config"):
            self._check_exclusive(permissions(name, message.role.config))
        if message.HasField("election_id"):
            ident = election_id(message.election_id)
            if any(other == ident for s, other in role.streams.items() if s is not stream):
                raise invalid("Election id already exists")
        self._roles[name] = self._role_of[stream] = role
        return role

    def _check_exclusive(self, wanted: Permissions) -> None:
        """Refuse ids that another role has for itself, or has while this one wants them for itself."""
        for other in self._roles.values():
            if other.permissions is None or other.name == wanted.role:
                continue
            both = wanted.exclusive & other.permissions.ids | wanted.ids & other.permissions.exclusive
            if both:
                raise invalid(f"role {wanted.role}: id {min(both)} belongs to role {other.name}")

    def _configure(self, role: _Role, message: p4r.Role) -> None:
        """A primary sets its role's configuration."""
        if not message.HasField("config"):
            role.config = role.permissions = None
            return
        wanted = permissions(role.name, message.config)
        role.config, role.permissions = message.config, wanted

    def _notify(self, role: _Role, streams: list[Stream]) -> None:
        primary = role.primary()
        for stream in streams:
            stream.send(p4r.StreamMessageResponse(arbitration=self._advice(role, primary, stream)))

    def _advice(self, role: _Role, primary: Stream | None, stream: Stream) -> p4r.MasterArbitrationUpdate:
        advice = p4r.MasterArbitrationUpdate(device_id=self._device_id)
        if role.name:
            advice.role.name = role.name
        if role.config is not None:
            advice.role.config.CopyFrom(role.config)
        if role.highest is not None:
            advice.election_id.high, advice.election_id.low = role.highest >> 64, role.highest & (1 << 64) - 1
        if primary is None:
            status = rpc_status.Status(code=code_number(Code.NOT_FOUND), message="there is no primary")
        elif stream is primary:
            status = rpc_status.Status(code=code_number(Code.OK), message="is primary")
        else:
            status = rpc_status.Status(code=code_number(Code.ALREADY_EXISTS), message="is backup")
        advice.status.CopyFrom(status)
        return advice

    def require_primary(self, role_name: str, ident: p4r.Uint128 | None) -> Permissions | None:
        """The permissions of the primary that a request says it comes from; None: all.
        Raises P4Error NOT_FOUND for a role that no controller has named, PERMISSION_DENIED for another controller."""
        with self._lock:
            role = self._roles.get(role_name)
            if role is None:
                raise not_found(f"unknown role {role_name!r}; valid: {', '.join(map(repr, self._roles))}")
            if ident is None or role.primary() is None or election_id(ident) != role.highest:
                raise denied("Not primary")
            return role.permissions

    def permissions(self, role_name: str) -> Permissions | None:
        """The permissions of a role, by name; None: all."""
        with self._lock:
            role = self._roles.get(role_name)
            if role is None:
                raise not_found(f"unknown role {role_name!r}; valid: {', '.join(map(repr, self._roles))}")
            return role.permissions

    def is_primary(self, stream: Stream) -> bool:
        """True while the stream is its role's primary."""
        with self._lock:
            role = self._role_of.get(stream)
            return role is not None and role.primary() is stream

    def primaries(self) -> Iterator[tuple[Stream, Permissions | None]]:
        """The primary of every role that has one."""
        with self._lock:
            found = [(p, role.permissions) for role in self._roles.values() if (p := role.primary()) is not None]
        return iter(found)
