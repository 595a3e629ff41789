"""The server as such: TLS, sizes, many entries, slow readers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r

from softswitch.p4runtime import ConfigError, Server, ServerConfig, Tls
from tests.fake_device import FakeTarget
from tests.p4runtime_client import INSERT, Bench, Controller, Failure, Program, lpm, update


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """An authority (ca), and a server and a client that it signed; the files by name."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on PATH")
    folder = tmp_path_factory.mktemp("pem")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2")
    (folder / "san").write_text("subjectAltName=DNS:localhost")
    for name in ("server", "client"):
        openssl("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san")
        openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    openssl("ec", "-in", "server.key", "-aes128", "-passout", "pass:word", "-out", "locked.key")
    return lambda name: folder / name


def _arbitrate(port: int, credentials: grpc.ChannelCredentials) -> p4r.MasterArbitrationUpdate:
    with Controller(port, channel=grpc.secure_channel(f"localhost:{port}", credentials)) as controller:
        return controller.arbitrate()


def test_tls_with_and_without_client_certificates(pem: Callable[[str], Path]) -> None:
    authority = pem("ca.pem").read_bytes()
    anonymous = grpc.ssl_channel_credentials(authority)
    known = grpc.ssl_channel_credentials(authority, pem("client.key").read_bytes(), pem("client.pem").read_bytes())
    for client_auth in (False, True):
        tls = Tls(pem("server.pem"), pem("server.key"), pem("ca.pem"), client_auth)
        server = Server(ServerConfig("localhost:0", device_id=1, tls=tls), FakeTarget())
        port = server.start()
        try:
            assert _arbitrate(port, known).status.code == 0
            if client_auth:
                with pytest.raises(Failure) as failure:
                    _arbitrate(port, anonymous)
                assert failure.value.code == "UNAVAILABLE"
            else:
                assert _arbitrate(port, anonymous).status.code == 0
        finally:
            server.stop()


@pytest.mark.parametrize(
    ("cert", "key", "authority", "flag"),
    [
        ("server.pem", "client.key", "ca.pem", "--grpc-server-cert"),
        ("server.key", "server.pem", "ca.pem", "--grpc-server-cert"),
        ("server.pem", "locked.key", "ca.pem", "--grpc-server-cert"),
        ("san", "san", "ca.pem", "--grpc-server-cert"),
        ("server.pem", "server.key", "san", "--grpc-server-cacert"),
        ("server.pem", "server.key", "ca.key", "--grpc-server-cacert"),
    ],
)
def test_tls_files_that_are_something_else_are_named(
    pem: Callable[[str], Path], cert: str, key: str, authority: str, flag: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Tls(pem(cert), pem(key), pem(authority)).credentials()
    bad = pem(cert if flag == "--grpc-server-cert" else authority)
    assert str(refused.value).startswith(f"{flag} {bad} ")


def test_tls_files_are_checked(tmp_path: Path, pem: Callable[[str], Path]) -> None:
    missing = tmp_path / "none.pem"
    with pytest.raises(ConfigError, match=f"--grpc-server-cert {missing}: No such file or directory"):
        Tls(missing, pem("server.key")).credentials()
    with pytest.raises(ConfigError, match="--grpc-server-with-client-auth needs --grpc-server-cacert"):
        Tls(pem("server.pem"), pem("server.key"), None, True).credentials()


def test_an_address_that_is_taken_is_an_error(programs: Path) -> None:
    with Bench(Program.load(programs, "tables"), loaded=False) as bench:
        second = Server(ServerConfig(f"127.0.0.1:{bench.port}"), FakeTarget())
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{bench.port}"):
            second.start()


def _routes(program: Program, count: int) -> list[p4r.Update]:
    action = program.action("route_via", 7)
    return [
        update(INSERT, table_entry=program.entry("route_ipv4", [lpm(1, 0x0A000000 + i, 32)], action))
        for i in range(count)
    ]


def test_thousands_of_updates_in_one_request_are_done_and_read_in_bounded_messages(programs: Path) -> None:
    program = Program.load(programs, "l3_router")
    with Bench(program) as bench:
        bench.controller.write(*_routes(program, 5000))
        wanted = [p4r.Entity(table_entry=p4r.TableEntry(table_id=program.id("route_ipv4")))]
        responses = list(bench.controller.responses(wanted))
        assert [len(r.entities) for r in responses] == [512] * 9 + [392]
        read = [e.table_entry for r in responses for e in r.entities]
        assert read == [u.entity.table_entry for u in _routes(program, 5000)]


def test_a_reader_that_stops_reading_keeps_nobody_waiting(programs: Path) -> None:
    program = Program.load(programs, "l3_router")
    with Bench(program) as bench:
        big = bytes(4096)
        for batch in range(8):
            updates = _routes(program, 4096)[batch * 512 : (batch + 1) * 512]
            for one in updates:
                one.entity.table_entry.metadata = big
            bench.controller.write(*updates)
        stalled = bench.controller.responses([p4r.Entity(table_entry=p4r.TableEntry())])
        next(stalled)
        bench.controller.delete(table_entry=_routes(program, 1)[0].entity.table_entry)
        bench.controller.set_pipeline(program.config())
        with pytest.raises(Failure) as failure:
            for _ in stalled:
                pass
        assert failure.value == Failure("ABORTED", "the pipeline was replaced while it was read")


def test_requests_with_too_many_parts_are_refused_as_a_whole(programs: Path) -> None:
    with Bench(Program.load(programs, "tables")) as bench:
        with pytest.raises(Failure) as failure:
            bench.controller.write(*[p4r.Update()] * 65537)
        assert failure.value == Failure("RESOURCE_EXHAUSTED", "65537 updates in one request; at most 65536 are taken")
        with pytest.raises(Failure) as failure:
            bench.controller.read(*[p4r.Entity()] * 4097)
        assert failure.value == Failure("RESOURCE_EXHAUSTED", "4097 entities in one request; at most 4096 are taken")


def test_reads_that_run_are_limited(programs: Path) -> None:
    program = Program.load(programs, "l3_router")
    with Bench(program, reads=1) as bench:
        for one in _routes(program, 1024):
            one.entity.table_entry.metadata = bytes(4096)
            bench.controller.write(one)
        stalled = bench.controller.responses([p4r.Entity(table_entry=p4r.TableEntry())])
        next(stalled)
        with pytest.raises(Failure) as failure:
            bench.controller.entries(p4r.TableEntry())
        assert failure.value == Failure("RESOURCE_EXHAUSTED", "1 reads are running, which is the limit")
        assert sum(len(r.entities) for r in stalled) > 0
        assert len(bench.controller.entries(p4r.TableEntry())) == 1024


def test_a_message_beyond_the_limit_is_refused_and_the_server_lives_on(programs: Path) -> None:
    with Bench(Program.load(programs, "tables"), message_bytes=1 << 20) as bench:
        huge = bench.program.config()
        huge.p4_device_config = bytes(2 << 20)
        with pytest.raises(Failure) as failure:
            bench.controller.set_pipeline(huge)
        assert failure.value.code == "RESOURCE_EXHAUSTED"
        assert len(bench.controller.entries(p4r.TableEntry())) == 7
