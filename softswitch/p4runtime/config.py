"""How the server listens: address, TLS, limits."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc


class ConfigError(ValueError):
    """Settings that contradict each other, or a file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS as simple_switch_grpc's flags say it.

    ``cert`` and ``key`` (--grpc-server-cert, --grpc-server-key) are PEM files of the server, ``cacert``
    (--grpc-server-cacert) of the authority that signs clients; ``client_auth`` (--grpc-server-with-client-auth) makes a
    valid client certificate a condition.
    """

    cert: Path
    key: Path
    cacert: Path | None = None
    client_auth: bool = False

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials for a gRPC server. Raises ConfigError."""
        if self.client_auth and self.cacert is None:
            raise ConfigError("--grpc-server-with-client-auth needs --grpc-server-cacert, to verify clients with")
        pair = (_read(self.key, "--grpc-server-key"), _read(self.cert, "--grpc-server-cert"))
        authority = None if self.cacert is None else _read(self.cacert, "--grpc-server-cacert")
        self._check()
        return grpc.ssl_server_credentials([pair], authority, self.client_auth)

    def _check(self) -> None:
        """gRPC says of a bad file only that it cannot listen."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.cert, self.key, password=lambda: "")  # gRPC takes none, and nobody is asked
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"--grpc-server-cert {self.cert} and --grpc-server-key {self.key} must be a certificate and its key "
                f"without a password, in PEM: {_reason(error)}"
            ) from error
        if self.cacert is not None:
            try:
                context.load_verify_locations(self.cacert)
            except ssl.SSLError as error:
                raise ConfigError(
                    f"--grpc-server-cacert {self.cacert} must have certificates in PEM: {_reason(error)}"
                ) from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error)


def _read(path: Path, flag: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{flag} {path}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Settings of one server.

    Limits, beyond which requests are refused with RESOURCE_EXHAUSTED: ``message_bytes`` is the longest request,
    ``streams`` controllers may be connected, ``reads`` Reads and ``rpcs`` requests of any kind run at a time.
    ``stream_messages`` wait for a controller that does not read, more are dropped. A connection that does not answer
    within ``keepalive_s`` and half as much again is closed.
    """

    address: str = "0.0.0.0:9559"
    device_id: int = 1
    tls: Tls | None = None
    message_bytes: int = 16 << 20
    streams: int = 16
    reads: int = 16
    rpcs: int = 64
    stream_messages: int = 1024
    keepalive_s: int = 20

    def options(self) -> list[tuple[str, int]]:
        """gRPC channel arguments."""
        return [
            ("grpc.max_receive_message_length", self.message_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.keepalive_time_ms", self.keepalive_s * 1000),
            ("grpc.keepalive_timeout_ms", self.keepalive_s * 500),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_ping_strikes", 0),
            ("grpc.so_reuseport", 0),
        ]
