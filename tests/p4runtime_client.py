"""A plain P4Runtime client for tests: messages in, messages and statuses out."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import grpc
from finsy.proto import p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format
from google.protobuf.any_pb2 import Any as AnyMessage

from softswitch.p4runtime import Server, ServerConfig
from tests.fake_device import FakeDevice, FakeTarget

WAIT_S = 10.0
INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


@dataclass(frozen=True)
class Program:
    """A compiled program: its P4Info, its BMv2 JSON, and the ids of its objects by name."""

    p4info: p4i.P4Info
    json: bytes

    @classmethod
    def load(cls, folder: Path, name: str) -> Self:
        info = p4i.P4Info()
        text_format.Parse((folder / f"{name}.p4info.txtpb").read_text(), info)
        return cls(info, (folder / f"{name}.json").read_bytes())

    def config(self, cookie: int | None = None) -> p4r.ForwardingPipelineConfig:
        config = p4r.ForwardingPipelineConfig(p4info=self.p4info, p4_device_config=self.json)
        if cookie is not None:
            config.cookie.cookie = cookie
        return config

    def id(self, name: str) -> int:
        """The id of the object whose name ends in ``name``."""
        found = [
            item.preamble.id
            for descriptor, items in self.p4info.ListFields()
            if descriptor.name not in ("pkg_info", "type_info")
            for item in items
            if item.preamble.name.split(".")[-1] == name.split(".")[-1] and item.preamble.name.endswith(name)
        ]
        assert len(found) == 1, f"{name}: {found}"
        return int(found[0])

    def action(self, name: str, *values: int) -> p4r.Action:
        """An action with its parameters in order."""
        info = next(a for a in self.p4info.actions if a.preamble.id == self.id(name))
        action = p4r.Action(action_id=info.preamble.id)
        for param, value in zip(info.params, values, strict=True):
            action.params.add(param_id=param.id, value=octets(value))
        return action

    def entry(
        self, table: str, match: Iterable[p4r.FieldMatch], action: p4r.Action | None, **more: Any
    ) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=self.id(table), match=match, **more)
        if action is not None:
            entry.action.action.CopyFrom(action)
        return entry


def octets(value: int) -> bytes:
    """The shortest form."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def exact(field: int, value: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, exact=p4r.FieldMatch.Exact(value=octets(value)))


def lpm(field: int, value: int, length: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, lpm=p4r.FieldMatch.LPM(value=octets(value), prefix_len=length))


def ternary(field: int, value: int, mask: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, ternary=p4r.FieldMatch.Ternary(value=octets(value), mask=octets(mask)))


def range_(field: int, low: int, high: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, range=p4r.FieldMatch.Range(low=octets(low), high=octets(high)))


def optional(field: int, value: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, optional=p4r.FieldMatch.Optional(value=octets(value)))


@dataclass
class Failure(Exception):
    """A refused RPC: code, message and the code and message of each element of the batch."""

    code: str
    message: str
    details: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, error: grpc.RpcError) -> Self:
        metadata: dict[str, bytes] = dict(error.trailing_metadata() or ())  # type: ignore[arg-type]
        status = rpc_status.Status.FromString(metadata.get("grpc-status-details-bin", b""))
        return cls(error.code().name, error.details() or "", tuple(map(_detail, status.details)))


def _detail(packed: AnyMessage) -> tuple[str, str]:
    error = p4r.Error()
    assert packed.Unpack(error)
    code = next(c for c in grpc.StatusCode if c.value[0] == error.canonical_code)
    return code.name, error.message


class Controller:
    """One controller: a channel and, once it arbitrates, a stream. Raises Failure."""

    def __init__(
        self,
        port: int,
        election_id: int | None = 1,
        role: str = "",
        device_id: int = 1,
        channel: grpc.Channel | None = None,
    ) -> None:
        options = [("grpc.max_metadata_size", 1 << 20), ("grpc.use_local_subchannel_pool", 1)]
        self.channel = channel or grpc.insecure_channel(f"127.0.0.1:{port}", options=options)
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self.election_id, self.role, self.device_id = election_id, role, device_id
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._stream: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Break off."""
        if self._stream is not None:
            self._stream.cancel()
        self._requests.put(None)
        self.channel.close()

    # -- the stream

    def send(self, **update: Any) -> None:
        """Send one stream message; opens the stream."""
        if self._stream is None:
            self._stream = self.stub.StreamChannel(iter(self._requests.get, None))
        self._requests.put(p4r.StreamMessageRequest(**update))

    def finish(self) -> None:
        """Send no more; the server ends the stream."""
        self._requests.put(None)

    def receive(self) -> p4r.StreamMessageResponse:
        """The next stream message."""
        try:
            message: p4r.StreamMessageResponse = next(self._stream)
        except grpc.RpcError as error:
            raise Failure.of(error) from error
        return message

    def arbitration(self, election_id: int | None = None, role: p4r.Role | None = None) -> p4r.MasterArbitrationUpdate:
        """The message that asks for an election id, by default this controller's."""
        update = p4r.MasterArbitrationUpdate(device_id=self.device_id)
        ident = self.election_id if election_id is None else election_id
        if ident is not None:
            update.election_id.CopyFrom(uint128(ident))
        if role is not None:
            update.role.CopyFrom(role)
        elif self.role:
            update.role.name = self.role
        return update

    def arbitrate(self, election_id: int | None = None, role: p4r.Role | None = None) -> p4r.MasterArbitrationUpdate:
        """Ask, and wait for the answer."""
        if election_id is not None:
            self.election_id = election_id
        self.send(arbitration=self.arbitration(election_id, role))
        return self.receive().arbitration

    # -- RPCs

    def set_pipeline(
        self,
        config: p4r.ForwardingPipelineConfig | None,
        action: str = "VERIFY_AND_COMMIT",
    ) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            role=self.role,
            action=p4r.SetForwardingPipelineConfigRequest.Action.Value(action),
            config=config,
        )
        if self.election_id is not None:
            request.election_id.CopyFrom(uint128(self.election_id))
        self._call(self.stub.SetForwardingPipelineConfig, request)

    def get_pipeline(self, kind: str = "ALL") -> p4r.GetForwardingPipelineConfigResponse:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.ResponseType.Value(kind),
        )
        answer: p4r.GetForwardingPipelineConfigResponse = self._call(self.stub.GetForwardingPipelineConfig, request)
        return answer

    def write(self, *updates: p4r.Update, atomicity: str = "CONTINUE_ON_ERROR") -> None:
        request = p4r.WriteRequest(
            device_id=self.device_id,
            role=self.role,
            updates=updates,
            atomicity=p4r.WriteRequest.Atomicity.Value(atomicity),
        )
        if self.election_id is not None:
            request.election_id.CopyFrom(uint128(self.election_id))
        self._call(self.stub.Write, request)

    def insert(self, **entity: Any) -> None:
        self.write(update(INSERT, **entity))

    def modify(self, **entity: Any) -> None:
        self.write(update(MODIFY, **entity))

    def delete(self, **entity: Any) -> None:
        self.write(update(DELETE, **entity))

    def read(self, *entities: p4r.Entity, **entity: Any) -> list[p4r.Entity]:
        """All entities that the server answers with."""
        wanted = [*entities, p4r.Entity(**entity)] if entity else list(entities)
        return [e for response in self.responses(wanted) for e in response.entities]

    def responses(self, wanted: Iterable[p4r.Entity]) -> Iterator[p4r.ReadResponse]:
        request = p4r.ReadRequest(device_id=self.device_id, role=self.role, entities=wanted)
        try:
            yield from self.stub.Read(request, timeout=WAIT_S)
        except grpc.RpcError as error:
            raise Failure.of(error) from error

    def entries(self, entry: p4r.TableEntry) -> list[p4r.TableEntry]:
        """What reading a TableEntry gives."""
        return [e.table_entry for e in self.read(table_entry=entry)]

    def _call(self, method: Any, request: Any) -> Any:
        try:
            return method(request, timeout=WAIT_S)
        except grpc.RpcError as error:
            raise Failure.of(error) from error


def update(kind: p4r.Update.Type.ValueType, **entity: Any) -> p4r.Update:
    return p4r.Update(type=kind, entity=p4r.Entity(**entity))


def uint128(value: int) -> p4r.Uint128:
    return p4r.Uint128(high=value >> 64, low=value & (1 << 64) - 1)


class Bench:
    """A server with fake devices and, unless asked otherwise, a primary that has loaded ``program``."""

    def __init__(self, program: Program, *, loaded: bool = True, **config: Any) -> None:
        self.program = program
        self.target = FakeTarget()
        self.server = Server(ServerConfig("127.0.0.1:0", **{"device_id": 1, **config}), self.target)
        self.port = self.server.start()
        self.controller = Controller(self.port)
        if loaded:
            self.controller.arbitrate()
            self.controller.set_pipeline(program.config())

    @property
    def device(self) -> FakeDevice:
        """The device that runs."""
        return self.target.device

    def refused(self, kind: p4r.Update.Type.ValueType, **entity: Any) -> tuple[str, str]:
        """Code and message of an update that must fail."""
        try:
            self.controller.write(update(kind, **entity))
        except Failure as failure:
            assert failure.code == "UNKNOWN"
            (detail,) = failure.details
            return detail
        raise AssertionError("the update was not refused")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.controller.close()
        self.server.stop()
