"""P4Runtime messages to the server. Each gets an answer or a canonical error, never one that tells of a bug."""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import grpc
from finsy.proto import p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format
from google.protobuf.message import Message

from softswitch.device import DeviceError
from softswitch.p4runtime import Server, ServerConfig
from tests.fuzz import programs
from tests.fuzz.bench import Bench
from tests.fuzz.finding import require
from tests.fuzz.messages import Messages
from tests.fuzz.mutants import Mutator
from tests.fuzz.packets import PacketMaker
from tests.fuzz.target import SanitizedSwitch
from tests.fuzz.values import Values

STEPS = 150
DEADLINE_S = 100.0
DEVICE = 1
_Request = p4r.SetForwardingPipelineConfigRequest
M = TypeVar("M", bound=Message)


class Crashes(logging.Handler):
    """Collects the exceptions that the server logs."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(logging.Formatter().format(record))
            print(self.found[-1], file=sys.stderr)


def rpc_case(bench: Bench) -> None:
    """Some RPCs and packets."""
    path = bench.program.with_suffix(".p4info.txtpb")
    if not path.is_file():
        return
    info = text_format.Parse(path.read_text(), p4i.P4Info())
    crashes, switch = Crashes(), SanitizedSwitch()
    logger = logging.getLogger("softswitch")
    logger.addHandler(crashes)
    logger.propagate = False
    server = Server(ServerConfig("127.0.0.1:0", DEVICE), switch)
    client = Client(server.start(), info, bench, switch)
    try:
        client.run()
    finally:
        client.close()
        server.stop(None)
        switch.close()
        switch.forget()
        logger.removeHandler(crashes)
    require(not crashes.found, "the server logged an exception")


class Client:
    """A controller that means no good."""

    def __init__(self, port: int, info: p4i.P4Info, bench: Bench, switch: SanitizedSwitch) -> None:
        self.bench, self.switch, self.rng, self.info = bench, switch, bench.rng(), info
        self.program = programs.load(bench.program)
        self.mutator = Mutator(self.rng, programs.document(bench.program), [])
        self.messages = Messages(info, self.rng)
        self.packets = PacketMaker(self.program, self.rng, Values(self.rng, self.program))
        self.election = 1
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self.stream: _Stream | None = None

    def close(self) -> None:
        """Break off."""
        if self.stream is not None:
            self.stream.close()
        self.channel.close()

    def run(self) -> None:
        """A pipeline, then anything."""
        self.arbitrate(p4r.StreamMessageRequest(arbitration=self._arbitration()))
        self.step(self.push)
        calls = [self.write] * 8 + [self.read] * 4 + [self.say] * 3 + [self.inject] * 4
        calls += [self.config, self.set_config, self.capabilities, self.reconnect]
        for _ in range(STEPS):
            self.step(self.rng.choice(calls))

    def step(self, call: Callable[[], None]) -> None:
        """A call, whose error must be one of P4Runtime's."""
        self.bench.journal.note(call.__name__)
        self.bench.journal.add("rpcs")
        try:
            call()
        except grpc.RpcError as error:
            self.bench.journal.add("refused")
            _check(error)

    # ---- the stream ----------------------------------------------------------------------------------------

    def _arbitration(self) -> p4r.MasterArbitrationUpdate:
        return p4r.MasterArbitrationUpdate(device_id=DEVICE, election_id=p4r.Uint128(low=self.election))

    def arbitrate(self, message: p4r.StreamMessageRequest) -> None:
        """Open a stream."""
        self.stream = _Stream(self.stub)
        self.stream.say(message)
        self.stream.answers.get(timeout=DEADLINE_S)

    def reconnect(self) -> None:
        """Close the stream and open another."""
        if self.stream is not None:
            self.stream.close()
        self.election += 1
        self.arbitrate(p4r.StreamMessageRequest(arbitration=self._arbitration()))

    def say(self) -> None:
        """A message on the stream."""
        rng = self.rng
        message = p4r.StreamMessageRequest()
        match rng.randrange(4):
            case 0:
                message.arbitration.CopyFrom(self._arbitration())
            case 1:
                message.digest_ack.digest_id = rng.choice([d.preamble.id for d in self.info.digests] or [1])
                message.digest_ack.list_id = rng.choice((0, 1, 2, 2**64 - 1))
            case _:
                message.packet.payload = self.packets.packet()
                for metadata in (m for c in self.info.controller_packet_metadata for m in c.metadata):
                    message.packet.metadata.add(metadata_id=metadata.id, value=self.messages.octets(metadata.bitwidth))
        if rng.randrange(3) == 0:
            message = self.messages.changed(message)
        if self.stream is None or self.stream.ended.is_set():
            self.reconnect()
        assert self.stream is not None
        self.stream.say(message)

    # ---- calls ---------------------------------------------------------------------------------------------

    def _some_election(self) -> p4r.Uint128:
        return p4r.Uint128(low=self.election if self.rng.randrange(15) else self.rng.randrange(4))

    def write(self) -> None:
        """Some updates."""
        rng = self.rng
        request = p4r.WriteRequest(
            device_id=DEVICE, election_id=self._some_election(),
            updates=[self.messages.update() for _ in range(rng.randrange(1, 6))],
        )  # fmt: skip
        request.atomicity = self._number(0, 0, 0, 1, 2)
        self.stub.Write(self._spoiled(request), timeout=DEADLINE_S)

    def _spoiled(self, request: M) -> M:
        return self.messages.changed(request) if self.rng.randrange(25) == 0 else request

    def read(self) -> None:
        """Some entities, or all of a kind."""
        request = p4r.ReadRequest(device_id=DEVICE)
        for _ in range(self.rng.randrange(1, 4)):
            entity = self.messages.entity()
            if self.rng.randrange(2):
                kind = entity.WhichOneof("entity")
                if kind is not None:
                    getattr(entity, kind).Clear()
                    getattr(entity, kind).SetInParent()
            request.entities.append(entity)
        for _ in self.stub.Read(self._spoiled(request), timeout=DEADLINE_S):
            pass

    def _config(self) -> p4r.ForwardingPipelineConfig:
        return p4r.ForwardingPipelineConfig(p4info=self.info, p4_device_config=self.program.text)

    def push(self) -> None:
        """The pipeline."""
        request = _Request(
            device_id=DEVICE, election_id=p4r.Uint128(low=self.election), action=_Request.VERIFY_AND_COMMIT,
            config=self._config(),
        )  # fmt: skip
        self.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)

    def set_config(self) -> None:
        """A pipeline, or what looks like one."""
        rng = self.rng
        request = _Request(device_id=DEVICE, election_id=self._some_election(), action=self._number(*range(-1, 7)))
        if rng.randrange(4):
            request.config.CopyFrom(self._config())
        if rng.randrange(3) == 0:
            self.messages.changed(request.config.p4info)
        if rng.randrange(2):
            text = self.mutator.text() if rng.randrange(4) == 0 else self.mutator.structural()
            request.config.p4_device_config = text
        self.stub.SetForwardingPipelineConfig(self._spoiled(request), timeout=DEADLINE_S)

    def config(self) -> None:
        """Ask for the pipeline."""
        request = p4r.GetForwardingPipelineConfigRequest(device_id=DEVICE, response_type=self._number(*range(-1, 5)))
        self.stub.GetForwardingPipelineConfig(request, timeout=DEADLINE_S)

    def _number(self, *numbers: int) -> Any:
        """A number for an enumeration, perhaps none of its."""
        return self.rng.choice(numbers)

    def capabilities(self) -> None:
        """Ask for the version."""
        self.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=DEADLINE_S)

    def inject(self) -> None:
        """Packets from the wire, and time."""
        device = self.switch.device
        if device is None:
            return
        for _ in range(self.rng.randrange(1, 20)):
            self.bench.journal.add("packets")
            with suppress(DeviceError):
                device.inject(self.rng.choice((1, 2, 3, 510)), self.packets.packet(), device.now() + 10**8)


class _Stream:
    """A stream whose answers are all read."""

    def __init__(self, stub: p4r_grpc.P4RuntimeStub) -> None:
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self.answers: queue.Queue[p4r.StreamMessageResponse | grpc.RpcError] = queue.Queue()
        self.ended = threading.Event()
        self._call = stub.StreamChannel(iter(self._requests.get, None))
        self._thread = threading.Thread(target=self._read, args=(self._call,))
        self._thread.start()

    def _read(self, call: Iterator[p4r.StreamMessageResponse]) -> None:
        try:
            for answer in call:
                self.answers.put(answer)
        except grpc.RpcError as error:
            self.answers.put(error)
        self.ended.set()

    def say(self, message: p4r.StreamMessageRequest) -> None:
        self._requests.put(message)

    def close(self) -> None:
        """End it, and see how it ended."""
        self._call.cancel()
        self._requests.put(None)
        self._thread.join(DEADLINE_S)
        require(not self._thread.is_alive(), "the stream does not end")
        while not self.answers.empty():
            answer = self.answers.get()
            if isinstance(answer, grpc.RpcError) and answer.code() != grpc.StatusCode.CANCELLED:
                _check(answer)


def _check(error: grpc.RpcError) -> None:
    """UNKNOWN is for a batch whose details say more; INTERNAL is for bugs."""
    code, text = error.code(), error.details() or ""
    metadata: Any = error.trailing_metadata() or ()
    details = [value for key, value in metadata if key == "grpc-status-details-bin"]
    bad = {grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE}
    require(code not in bad, f"{code}: {text}")
    require(code != grpc.StatusCode.UNKNOWN or len(details) == 1, f"{code} without details: {text}")
    for packed in (item for value in details for item in rpc_status.Status.FromString(value).details):
        detail = p4r.Error()
        require(packed.Unpack(detail), "a detail is no p4.v1.Error")
        unexplained = {grpc.StatusCode.INTERNAL.value[0], grpc.StatusCode.UNKNOWN.value[0]}
        require(detail.canonical_code not in unexplained, f"an update failed with {detail}")
