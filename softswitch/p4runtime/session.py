"""What a controller says on its stream."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import grpc
from finsy.proto import p4r

from softswitch.device_types import DeviceError
from softswitch.p4runtime.arbitration import Arbitration
from softswitch.p4runtime.configure import Configurator
from softswitch.p4runtime.entity import lookup
from softswitch.p4runtime.errors import Code, P4Error, code_number, denied, from_device, unimplemented
from softswitch.p4runtime.pipeline import Pipeline
from softswitch.p4runtime.stream import Stream

_LOG = logging.getLogger(__name__)
_ECHO_BYTES = 2048  # longest packet-out that is sent back with its error


class Session:
    """Reads one stream's requests until the client is done, breaks off, or is put out."""

    def __init__(self, stream: Stream, arbitration: Arbitration, configurator: Configurator) -> None:
        self._stream = stream
        self._arbitration = arbitration
        self._configurator = configurator

    def run(self, requests: Iterator[p4r.StreamMessageRequest]) -> None:
        """Serve the requests. Ends the stream."""
        error: P4Error | None = None
        try:
            for request in requests:
                if self._stream.closed:
                    break
                self._serve(request)
        except P4Error as refused:
            error = refused
        except grpc.RpcError:
            pass  # the client broke off
        except Exception as crash:  # gRPC raises a bare Exception when a stream breaks off
            if type(crash) is not Exception:
                _LOG.exception("stream failed")
                error = P4Error(Code.INTERNAL, f"internal error: {crash!r}")
        self._stream.close(error)

    def _serve(self, request: p4r.StreamMessageRequest) -> None:
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self._arbitration.update(self._stream, request.arbitration)
            return
        try:
            if not self._arbitration.is_primary(self._stream):
                raise denied("Not primary")
            if kind == "packet":
                self._packet_out(request.packet)
            elif kind == "digest_ack":
                self._digest_ack(request.digest_ack)
            else:
                raise unimplemented(f"stream messages of kind {kind} are not supported")
        except P4Error as error:
            self._report(error, request)

    def _live(self) -> Pipeline:
        pipeline = self._configurator.live
        if pipeline is None:
            raise P4Error(Code.FAILED_PRECONDITION, "No forwarding pipeline config set for this device")
        return pipeline

    def _packet_out(self, message: p4r.PacketOut) -> None:
        with self._configurator.live_lock:
            pipeline = self._live()
            try:
                self._configurator.target.packet_out(pipeline.packet_io.packet_out(message))
            except DeviceError as error:
                raise from_device(error, "packet-out") from error

    def _digest_ack(self, message: p4r.DigestListAck) -> None:
        with self._configurator.live_lock:
            pipeline = self._live()
            info = lookup(pipeline.index.digests, message.digest_id, "digest")
            try:
                pipeline.device.digest_ack(info.name, message.list_id)
            except DeviceError as error:
                raise from_device(error, f"digest {info.name}") from error

    def _report(self, error: P4Error, request: p4r.StreamMessageRequest) -> None:
        """Tell the client which message was refused, and why."""
        report = p4r.StreamError(canonical_code=code_number(error.code), message=error.message)
        kind = request.WhichOneof("update")
        echo = request.ByteSize() <= _ECHO_BYTES
        if kind == "packet":
            report.packet_out.SetInParent()
            if echo:
                report.packet_out.packet_out.CopyFrom(request.packet)
        elif kind == "digest_ack":
            report.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
        else:
            report.other.SetInParent()
        self._stream.send(p4r.StreamMessageResponse(error=report))
