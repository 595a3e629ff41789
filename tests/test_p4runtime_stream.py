"""What streams carry: packets, digests, idle timeouts, errors; and clients that do not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4d, p4r, stratum
from google.protobuf.any_pb2 import Any as AnyMessage

from softswitch.device_types import DigestList, IdleTimeout, PacketIn
from softswitch.p4runtime.stream import Stream
from tests.p4runtime_client import Bench, Controller, Failure, Program, exact


@pytest.fixture
def bench(programs: Path) -> Iterator[Bench]:
    with Bench(Program.load(programs, "l3_router")) as made:
        yield made


def _metadata(*values: tuple[int, bytes]) -> list[p4r.PacketMetadata]:
    return [p4r.PacketMetadata(metadata_id=ident, value=value) for ident, value in values]


def _barrier(controller: Controller) -> p4r.StreamMessageResponse:
    """Wait until the server has served all that was sent; what it answered before the arbitration is returned."""
    controller.send(arbitration=controller.arbitration())
    return controller.receive()


def test_a_packet_out_carries_its_metadata_in_front(bench: Bench) -> None:
    bench.controller.send(packet=p4r.PacketOut(payload=b"abc", metadata=_metadata((1, b"\1\xfe"), (2, b"\0"))))
    bench.controller.send(packet=p4r.PacketOut(payload=b"no padding", metadata=_metadata((1, b"\2"))))
    assert _barrier(bench.controller).HasField("arbitration")
    assert bench.device.sent == [b"\xff\0abc", b"\x01\0no padding"]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([], "packet-out metadata egress_port (1) is missing"),
        ([(7, b"\1")], "unknown packet-out metadata id 7; valid: egress_port (1), _pad (2)"),
        ([(1, b"\2\0")], "packet-out metadata egress_port: the value 0x200 does not fit in bit<9>"),
        ([(1, b"\1"), (1, b"\1")], "packet-out metadata egress_port is there twice"),
    ],
)
def test_a_malformed_packet_out_is_reported_on_the_stream(
    bench: Bench, metadata: list[tuple[int, bytes]], message: str
) -> None:
    packet = p4r.PacketOut(payload=b"abc", metadata=_metadata(*metadata))
    bench.controller.send(packet=packet)
    error = bench.controller.receive().error
    assert (error.canonical_code, error.message) == (3, message)
    assert error.packet_out.packet_out == packet
    assert bench.device.sent == []


def test_a_long_packet_out_is_not_echoed_with_its_error(bench: Bench) -> None:
    bench.controller.send(packet=p4r.PacketOut(payload=bytes(5000)))
    error = bench.controller.receive().error
    assert error.message == "packet-out metadata egress_port (1) is missing"
    assert error.WhichOneof("details") == "packet_out"
    assert not error.packet_out.HasField("packet_out")


def test_a_translated_metadata_field_has_its_own_width_on_the_wire(programs: Path) -> None:
    program = Program.load(programs, "l3_router")
    program.p4info.type_info.new_types["port_id_t"].translated_type.sdn_bitwidth = 32
    for header in program.p4info.controller_packet_metadata:
        for field in header.metadata:
            if field.name.endswith("_port"):
                field.bitwidth, field.type_name.name = 32, "port_id_t"
    with Bench(program) as bench:
        bench.controller.send(packet=p4r.PacketOut(payload=b"p", metadata=_metadata((1, b"\1\xfe"), (2, b"\0"))))
        assert _barrier(bench.controller).HasField("arbitration")
        assert bench.device.sent == [b"\xff\0p"]
        bench.controller.send(packet=p4r.PacketOut(payload=b"p", metadata=_metadata((1, b"\2\0"), (2, b"\0"))))
        message = bench.controller.receive().error.message
        assert message == "packet-out metadata egress_port: the value 0x200 does not fit in bit<9>"
        bench.device.emit(PacketIn(b"\xff\x01q", 5))
        assert bench.controller.receive().packet.metadata[0].value == b"\1\xfe"


def test_a_backup_sends_no_packets(bench: Bench) -> None:
    with Controller(bench.port, election_id=0) as backup:
        backup.arbitrate()
        backup.send(packet=p4r.PacketOut(payload=b"abc", metadata=_metadata((1, b"\1"))))
        error = backup.receive().error
        assert (error.canonical_code, error.message) == (7, "Not primary")
    assert bench.device.sent == []


def test_a_packet_in_goes_to_primaries_only(bench: Bench) -> None:
    with Controller(bench.port, election_id=0) as backup, Controller(bench.port, election_id=1, role="all") as other:
        backup.arbitrate()
        other.arbitrate()
        bench.device.emit(PacketIn(b"\x03\x82payload", 5))
        expected = p4r.PacketIn(payload=b"payload", metadata=_metadata((1, b"\7"), (2, b"\2")))
        assert bench.controller.receive().packet == expected
        assert other.receive().packet == expected
        assert _barrier(backup).HasField("arbitration")


def test_a_role_receives_the_packets_that_its_configuration_lets_through(bench: Bench) -> None:
    def role(name: str, config: stratum.P4RoleConfig) -> p4r.Role:
        packed = AnyMessage()
        packed.Pack(config)
        return p4r.Role(name=name, config=packed)

    chosen = stratum.P4RoleConfig(receives_packet_ins=True)
    chosen.packet_in_filter.metadata_id, chosen.packet_in_filter.value = 2, b"\2"
    with Controller(bench.port, role="deaf") as deaf, Controller(bench.port, role="some") as some:
        deaf.arbitrate(role=role("deaf", stratum.P4RoleConfig()))
        some.arbitrate(role=role("some", chosen))
        for reason in (1, 2):
            bench.device.emit(PacketIn(bytes([3, 0x80 | reason]), 5))
        assert [bench.controller.receive().packet.metadata[1].value for _ in range(2)] == [b"\1", b"\2"]
        assert some.receive().packet.metadata[1].value == b"\2"
        deaf.send(arbitration=deaf.arbitration(role=role("deaf", stratum.P4RoleConfig())))
        assert deaf.receive().HasField("arbitration")


def test_a_packet_in_that_is_shorter_than_its_header_is_ignored(bench: Bench) -> None:
    bench.device.emit(PacketIn(b"\3", 5))
    bench.device.emit(PacketIn(b"\3\x80", 5))
    assert bench.controller.receive().packet.payload == b""


def test_digest_lists_are_sent_and_acknowledged(programs: Path) -> None:
    with Bench(Program.load(programs, "digests")) as bench:
        bench.device.emit(DigestList("report_t", 11, ((1, 1 << 127, 0x800, 5), (0, 0, 0, 0)), 5))
        digest = bench.controller.receive().digest
        assert (digest.digest_id, digest.list_id) == (bench.program.id("report_t"), 11)
        assert digest.timestamp > 0

        def struct(*members: bytes) -> p4d.P4Data:
            return p4d.P4Data(struct=p4d.P4StructLike(members=[p4d.P4Data(bitstring=m) for m in members]))

        assert list(digest.data) == [
            struct(b"\1", b"\x80" + bytes(15), b"\x08\0", b"\5"),
            struct(b"\0", b"\0", b"\0", b"\0"),
        ]
        bench.controller.send(digest_ack=p4r.DigestListAck(digest_id=digest.digest_id, list_id=11))
        bench.controller.send(digest_ack=p4r.DigestListAck(digest_id=3, list_id=11))
        error = bench.controller.receive().error
        assert error.canonical_code == 3
        assert error.message.startswith("unknown digest id 3; valid: report_t (")
        assert error.digest_list_ack.digest_list_ack.digest_id == 3
        assert bench.device.acked == [("report_t", 11)]


def test_idle_entries_are_reported_with_their_key_and_metadata(programs: Path) -> None:
    with Bench(Program.load(programs, "idle_timeout")) as bench:
        table = next(t for t in bench.program.p4info.tables if t.idle_timeout_behavior)
        entries = []
        for value in (1, 2):
            entry = p4r.TableEntry(table_id=table.preamble.id, match=[exact(1, value)], metadata=b"m%d" % value)
            entry.idle_timeout_ns = 1000
            entry.action.action.CopyFrom(bench.program.action("NoAction"))
            entries.append(entry)
            bench.controller.insert(table_entry=entry)
        name = table.preamble.name
        handles = list(bench.device.tables[name])
        bench.device.tables[name][handles[0]].idle_ns = 77
        wanted = p4r.TableEntry(table_id=table.preamble.id)
        wanted.time_since_last_hit.SetInParent()
        assert [e.time_since_last_hit.elapsed_ns for e in bench.controller.entries(wanted)] == [77, 0]
        for handle in handles:
            bench.device.emit(IdleTimeout(name, handle, 5))
        bench.device.emit(IdleTimeout(name, 999, 5))
        notified: list[p4r.TableEntry] = []
        while len(notified) < 2:
            notice = bench.controller.receive().idle_timeout_notification
            assert notice.timestamp > 0
            notified.extend(notice.table_entry)
        for entry in entries:
            entry.ClearField("action")
        assert notified == entries


def test_a_client_that_does_not_read_loses_packets_and_nothing_else(programs: Path) -> None:
    with Bench(Program.load(programs, "l3_router"), stream_messages=8) as bench:
        while not bench.server.dropped():
            bench.device.emit(PacketIn(b"\x03\x81" + bytes(9000), 5))
        with Controller(bench.port, election_id=2) as reader:
            reader.arbitrate()
            payload = b""
            while payload != b"now":
                bench.device.emit(PacketIn(b"\x03\x81now", 5))
                payload = reader.receive().packet.payload
        assert set(bench.server.dropped()) == {"packet"}


def test_a_client_that_asks_for_arbitration_without_reading_loses_its_stream() -> None:
    stream = Stream(limit=8)
    message = p4r.StreamMessageResponse(arbitration=p4r.MasterArbitrationUpdate())
    for _ in range(64):
        stream.send(message)
    assert not stream.closed
    stream.send(message)
    assert stream.error is not None
    assert (stream.error.code.name, stream.error.message) == (
        "RESOURCE_EXHAUSTED",
        "64 arbitration messages were not read",
    )
    assert list(stream.messages()) == []


def test_a_stopping_server_ends_streams(programs: Path) -> None:
    bench = Bench(Program.load(programs, "tables"))
    bench.server.stop()
    with pytest.raises(Failure) as failure:
        bench.controller.receive()
    assert failure.value == Failure("UNAVAILABLE", "the server stops")
    bench.controller.close()
