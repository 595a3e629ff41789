"""A real simple_switch_grpc as the reference: one process, packets in and out over its gRPC data plane.

BMv2's ``--dp-grpc-server-addr`` takes packets from a stream and, once the client has closed its half, ends the stream
when no packet is left in the switch: so a packet's outputs are complete when its stream ends, without waiting.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
from finsy.proto import p4d, p4r
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.differential.thrift import Thrift
from tests.p4runtime_client import Controller, Failure, Program

CPU_PORT = 510
PRIORITIES = 8
DEVICE_ID = 1
START_S = 20.0
PACKET_S = 5.0


def available() -> bool:
    """Whether this machine has BMv2."""
    return shutil.which("simple_switch_grpc") is not None


def _packet_message() -> Any:
    """PacketStreamRequest of BMv2's p4/bm/dataplane_interface.proto; the response has the same fields."""
    file = descriptor_pb2.FileDescriptorProto(name="differential/packet.proto", package="differential", syntax="proto3")
    message = file.message_type.add(name="Packet")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate(
        (("id", kinds.TYPE_UINT64), ("device_id", kinds.TYPE_UINT64), ("port", kinds.TYPE_UINT32),
         ("packet", kinds.TYPE_BYTES)), 1,
    ):  # fmt: skip
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())  # type: ignore[no-untyped-call]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("differential.Packet"))  # type: ignore[no-untyped-call]


Packet = _packet_message()


class Bmv2Error(Exception):
    """BMv2 did not start, or does not answer."""


class Bmv2Died(Bmv2Error):
    """BMv2 ended, as it does of some programs' packets: of a stack index beyond the stack, of a failed assertion."""


class Bmv2:
    """A running switch with a program."""

    def __init__(self, program: Program) -> None:
        ports = _free_ports(3)
        command = [
            "simple_switch_grpc", "--no-p4", "--device-id", str(DEVICE_ID), "--thrift-port", str(ports[2]), "--",
            "--grpc-server-addr", f"127.0.0.1:{ports[0]}", "--dp-grpc-server-addr", f"127.0.0.1:{ports[1]}",
            "--cpu-port", str(CPU_PORT), "--priority-queues", str(PRIORITIES),
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._data = grpc.insecure_channel(
            f"127.0.0.1:{ports[1]}", [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 50)]
        )
        self._stream: Any = self._data.stream_stream(
            "/p4.bm.DataplaneInterface/PacketStream",
            request_serializer=lambda packet: packet.SerializeToString(),
            response_deserializer=Packet.FromString,
        )
        try:
            grpc.channel_ready_future(self._data).result(START_S)
            self.controller = Controller(ports[0], device_id=DEVICE_ID)
            grpc.channel_ready_future(self.controller.channel).result(START_S)
            self.controller.arbitrate()
            self.controller.set_pipeline(program.config())
            self._wait_until_ready()
        except (grpc.FutureTimeoutError, Failure, Bmv2Error) as error:
            self.close()
            raise Bmv2Error(f"simple_switch_grpc did not start: {error!r}") from error
        self.thrift = Thrift(ports[2])
        self.packet_ins: list[tuple[int, bytes]] = []  # what the control plane got so far, by port
        self.digests: list[tuple[int, bytes]] = []  # and by digest
        self._arbitrated = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _wait_until_ready(self) -> None:
        """The switch serves P4Runtime a little earlier than packets."""
        deadline = time.monotonic() + START_S
        while True:
            try:
                list(self._stream(iter(()), timeout=PACKET_S))
                return
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                    raise Bmv2Error(f"simple_switch_grpc takes no packets: {error.code().name}") from error
            time.sleep(0.01)

    def _read(self) -> None:
        try:
            while True:
                message = self.controller.receive()
                if message.HasField("arbitration"):
                    self._arbitrated.set()
                elif message.HasField("digest"):
                    self.digests.extend(samples(message.digest.digest_id, message.digest.data))
                else:
                    self.packet_ins.append((CPU_PORT, message.packet.SerializeToString(deterministic=True)))
        except (Failure, ValueError, StopIteration):
            return

    def close(self) -> None:
        """End the process."""
        if hasattr(self, "thrift"):
            self.thrift.close()
        if hasattr(self, "controller"):
            self.controller.close()
        self._data.close()
        self._process.kill()
        self._process.wait()

    def send(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """A packet arrives; returns (port, bytes) of all that left, but not through the CPU port.

        A packet cut to no bytes is none: on an interface it would not be seen.
        """
        packets = iter([Packet(device_id=DEVICE_ID, port=port, packet=packet)])
        return self._collect(self._stream(packets, timeout=PACKET_S))

    def send_both(self, port: int, packet: bytes, outputs: int, message: p4r.PacketOut) -> list[tuple[int, bytes]]:
        """A packet arrives and then one from the controller; returns what left. ``outputs`` (not 0) are those of the
        first packet: only when they come is it sure that the packet stream is open, without which outputs are lost."""
        answered = threading.Event()

        def packets() -> Iterator[Any]:
            yield Packet(device_id=DEVICE_ID, port=port, packet=packet)
            answered.wait(PACKET_S)

        answers = self._stream(packets(), timeout=PACKET_S)
        left: list[tuple[int, bytes]] = []
        while len(left) < outputs:
            try:
                answer = next(answers)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    return left  # fewer left than did on the softswitch
                raise self._failed(error) from error
            left += [(answer.port, answer.packet)]
        self.controller.send(packet=message)
        self._pass_barrier()
        answered.set()
        return left + self._collect(answers)

    def _pass_barrier(self) -> None:
        """Wait until all that was sent on the controller's stream is done: it is served in order, and another election
        id is answered."""
        assert self.controller.election_id is not None
        self.controller.election_id += 1
        self.controller.send(arbitration=self.controller.arbitration())
        if not self._arbitrated.wait(PACKET_S):
            raise Bmv2Error("simple_switch_grpc did not answer on the controller's stream")
        self._arbitrated.clear()

    def has(self, packet_ins: int, digests: int) -> bool:
        """Whether so many messages have come."""
        return len(self.packet_ins) >= packet_ins and len(self.digests) >= digests

    def _collect(self, answers: Iterable[Any]) -> list[tuple[int, bytes]]:
        try:
            return [(answer.port, answer.packet) for answer in answers if answer.packet]
        except grpc.RpcError as error:
            raise self._failed(error) from error

    def _failed(self, error: grpc.RpcError) -> Bmv2Error:
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            try:
                return Bmv2Died(f"simple_switch_grpc died with status {self._process.wait(PACKET_S)}")
            except subprocess.TimeoutExpired:
                pass
        return Bmv2Error(f"simple_switch_grpc did not answer: {error.code().name}")


def samples(digest: int, data: Iterable[p4d.P4Data]) -> Iterator[tuple[int, bytes]]:
    """A digest list's samples, as they are compared."""
    return ((digest, sample.SerializeToString(deterministic=True)) for sample in data)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for one in sockets:
        one.close()
    return ports
