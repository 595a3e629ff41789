"""The P4Runtime server of one device."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent import futures

import grpc
from finsy.proto import p4i, p4r, p4r_grpc

from softswitch.device_types import DeviceError
from softswitch.p4runtime import read, write
from softswitch.p4runtime.arbitration import Arbitration
from softswitch.p4runtime.config import ConfigError, ServerConfig
from softswitch.p4runtime.configure import Configurator
from softswitch.p4runtime.errors import Code, P4Error, batch_status, from_device, not_found
from softswitch.p4runtime.pipeline import Pipeline, Target, config_of, response
from softswitch.p4runtime.session import Session
from softswitch.p4runtime.stream import Stream

API_VERSION = "1.4.1"
"""The P4Runtime version that Capabilities tells."""

_LOG = logging.getLogger(__name__)


class Server:
    """Serves P4Runtime for the devices that ``target`` makes, one at a time."""

    def __init__(self, config: ServerConfig, target: Target) -> None:
        self._config = config
        self._lock = threading.Lock()  # Write, Read and the change of the pipeline exclude each other
        self._arbitration = Arbitration(config.device_id, config.streams, self._finish_writes)
        self._configurator = Configurator(target, self._arbitration, self._lock)
        self._servicer = _Servicer(config, self._arbitration, self._configurator, self._lock)
        self._grpc: grpc.Server | None = None
        self.port = 0

    def _finish_writes(self) -> None:
        with self._lock:
            pass

    def load(self, p4info: p4i.P4Info, device_config: bytes) -> None:
        """Start with a pipeline, as ``VERIFY_AND_COMMIT`` of a primary does. Raises P4Error."""
        self._configurator.commit(config_of(p4info, device_config))

    def start(self) -> int:
        """Listen; returns the TCP port. Raises ConfigError where the address or a TLS file is bad."""
        config = self._config
        pool = futures.ThreadPoolExecutor(config.rpcs, "softswitch-p4runtime")
        server = grpc.server(pool, options=config.options(), maximum_concurrent_rpcs=config.rpcs)
        p4r_grpc.add_P4RuntimeServicer_to_server(self._servicer, server)
        try:
            if config.tls is None:
                self.port = server.add_insecure_port(config.address)
            else:
                self.port = server.add_secure_port(config.address, config.tls.credentials())
        except RuntimeError as error:
            raise ConfigError(f"cannot listen on {config.address}: {error}") from error
        server.start()
        self._grpc = server
        _LOG.info("P4Runtime on %s, device id %d", config.address, config.device_id)
        return self.port

    def stop(self, grace_s: float | None = 0.5) -> None:
        """End every stream, stop listening, close the device."""
        self._servicer.close_streams()
        if self._grpc is not None:
            self._grpc.stop(grace_s).wait()
            self._grpc = None
        self._configurator.close()

    def dropped(self) -> Counter[str]:
        """Stream messages that were dropped since the start, because their client did not read, by kind."""
        return self._servicer.dropped()


class _Servicer(p4r_grpc.P4RuntimeServicer):
    def __init__(
        self, config: ServerConfig, arbitration: Arbitration, configurator: Configurator, lock: threading.Lock
    ) -> None:
        self._config = config
        self._arbitration = arbitration
        self._configurator = configurator
        self._lock = lock
        self._reads = threading.BoundedSemaphore(config.reads)
        self._streams: set[Stream] = set()
        self._streams_lock = threading.Lock()
        self._dropped: Counter[str] = Counter()

    def _check_device(self, device_id: int) -> None:
        if device_id != self._config.device_id:
            raise not_found(f"unknown device id {device_id}; valid: {self._config.device_id}")

    def _pipeline(self) -> Pipeline:
        pipeline = self._configurator.pipeline
        if pipeline is None:
            raise P4Error(Code.FAILED_PRECONDITION, "No forwarding pipeline config set for this device")
        return pipeline

    # -- unary RPCs

    def Write(self, request: p4r.WriteRequest, context: grpc.ServicerContext) -> p4r.WriteResponse:
        ident = request.election_id if request.HasField("election_id") else None
        try:
            self._check_device(request.device_id)
            with self._lock:
                permissions = self._arbitration.require_primary(request.role, ident)
                errors = write.write(self._pipeline(), request, permissions)
        except P4Error as error:
            context.abort(error.code, error.message)
        if any(errors):
            _abort_batch(context, errors, "Write failure: see the details of each update")
        return p4r.WriteResponse()

    def Read(self, request: p4r.ReadRequest, context: grpc.ServicerContext) -> Iterator[p4r.ReadResponse]:
        if not self._reads.acquire(blocking=False):
            context.abort(Code.RESOURCE_EXHAUSTED, f"{self._config.reads} reads are running, which is the limit")
        try:
            yield from self._read(request, context)
        finally:
            self._reads.release()

    def _read(self, request: p4r.ReadRequest, context: grpc.ServicerContext) -> Iterator[p4r.ReadResponse]:
        try:
            self._check_device(request.device_id)
            permissions = self._arbitration.permissions(request.role)
            with self._lock:
                pipeline = self._pipeline()
                found, errors = read.select(pipeline, request)
            yield from read.responses(pipeline, found, permissions, self._lock)
        except P4Error as error:
            context.abort(error.code, error.message)
        except DeviceError as error:
            context.abort(Code.INTERNAL, from_device(error, "device").message)
        if any(errors):
            _abort_batch(context, errors, "Read failure: see the details of each request")

    def SetForwardingPipelineConfig(
        self, request: p4r.SetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        try:
            self._check_device(request.device_id)
            self._configurator.set(request)
        except P4Error as error:
            context.abort(error.code, error.message)
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        try:
            self._check_device(request.device_id)
            return response(self._configurator.pipeline, request.response_type)
        except P4Error as error:
            context.abort(error.code, error.message)

    def Capabilities(self, request: p4r.CapabilitiesRequest, context: grpc.ServicerContext) -> p4r.CapabilitiesResponse:
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    # -- streams

    def StreamChannel(
        self, requests: Iterator[p4r.StreamMessageRequest], context: grpc.ServicerContext
    ) -> Iterator[p4r.StreamMessageResponse]:
        stream = Stream(self._config.stream_messages)
        with self._streams_lock:
            full = len(self._streams) >= self._config.streams
            if not full:
                self._streams.add(stream)
        if full:
            context.abort(Code.RESOURCE_EXHAUSTED, f"{self._config.streams} streams are open, which is the limit")
        if not context.add_callback(lambda: self._end(stream)):
            self._end(stream)
            return
        session = Session(stream, self._arbitration, self._configurator)
        threading.Thread(target=session.run, args=(requests,), name="softswitch-stream", daemon=True).start()
        yield from stream.messages()
        self._end(stream)
        if stream.error is not None:
            context.abort(stream.error.code, stream.error.message)

    def _end(self, stream: Stream) -> None:
        stream.close()
        self._arbitration.remove(stream)
        with self._streams_lock:
            if stream in self._streams:
                self._streams.remove(stream)
                self._dropped.update(stream.dropped)

    def close_streams(self) -> None:
        """End every stream, as the server stops."""
        with self._streams_lock:
            streams = list(self._streams)
        for stream in streams:
            stream.close(P4Error(Code.UNAVAILABLE, "the server stops"))

    def dropped(self) -> Counter[str]:
        """Messages dropped on all streams, past and present."""
        with self._streams_lock:
            total = Counter(self._dropped)
            for stream in self._streams:
                total.update(stream.dropped)
        return total


def _abort_batch(context: grpc.ServicerContext, errors: Sequence[P4Error | None], message: str) -> None:
    context.set_trailing_metadata((("grpc-status-details-bin", batch_status(errors, message)),))
    context.abort(Code.UNKNOWN, message)
