"""Batches: every update reported on its own, rollback, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4d, p4r, rpc_status

from softswitch.device_types import MeterConfig
from softswitch.p4runtime.errors import batch_status, invalid
from tests.p4runtime_client import DELETE, INSERT, MODIFY, Bench, Controller, Failure, Program, exact, ternary, update


@pytest.fixture
def bench(programs: Path) -> Iterator[Bench]:
    with Bench(Program.load(programs, "stateful")) as made:
        yield made


def _counted(bench: Bench, key: int, mark: int = 0) -> p4r.TableEntry:
    return bench.program.entry("counted", [exact(1, key)], bench.program.action("count_entry", mark))


def test_a_failing_batch_reports_each_update_and_does_the_others(bench: Bench) -> None:
    table = "table StatefulIngress.counted"
    with pytest.raises(Failure) as failure:
        bench.controller.write(
            update(INSERT, table_entry=_counted(bench, 1)),
            update(INSERT, table_entry=_counted(bench, 1)),
            update(DELETE, table_entry=_counted(bench, 9)),
            update(INSERT, table_entry=_counted(bench, 2)),
            p4r.Update(type=INSERT),
            update(p4r.Update.UNSPECIFIED, table_entry=_counted(bench, 3)),
        )
    assert failure.value == Failure(
        "UNKNOWN",
        "Write failure: see the details of each update",
        (
            ("OK", ""),
            ("ALREADY_EXISTS", f"{table}: the entry already exists"),
            ("NOT_FOUND", f"{table}: there is no such entry"),
            ("OK", ""),
            ("INVALID_ARGUMENT", "the entity is not set"),
            ("INVALID_ARGUMENT", "unknown update type 0; valid: INSERT, MODIFY, DELETE"),
        ),
    )
    read = bench.controller.entries(p4r.TableEntry(table_id=bench.program.id("counted")))
    assert read == [_counted(bench, 1), _counted(bench, 2)]


def test_details_of_a_large_batch_keep_every_code() -> None:
    status = rpc_status.Status.FromString(batch_status([invalid("x" * 1000)] * 100, "failed"))
    errors = []
    for packed in status.details:
        error = p4r.Error()
        packed.Unpack(error)
        errors.append((error.canonical_code, len(error.message)))
    assert errors == [(3, 1000)] * 4 + [(3, 0)] * 96


def _state(bench: Bench) -> list[p4r.Entity]:
    direct = p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())
    default = p4r.TableEntry(is_default_action=True)
    return bench.controller.read(
        p4r.Entity(table_entry=direct),
        p4r.Entity(table_entry=default),
        p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=bench.program.id("both_counter"))),
        p4r.Entity(register_entry=p4r.RegisterEntry(register_id=bench.program.id("word_register"))),
        p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()),
    )


def test_rollback_leaves_everything_as_it_was(bench: Bench) -> None:
    program, controller = bench.program, bench.controller
    policed = program.entry("policed", [], program.action("police"), priority=4, metadata=b"everything")
    policed.counter_data.packet_count, policed.meter_config.cir, policed.meter_config.pir = 6, 7, 8
    controller.write(
        update(INSERT, table_entry=policed),
        update(INSERT, table_entry=_counted(bench, 1, 10)),
        update(INSERT, table_entry=_counted(bench, 2, 20)),
        update(
            MODIFY,
            register_entry=p4r.RegisterEntry(
                register_id=program.id("word_register"), index=p4r.Index(index=3), data=p4d.P4Data(bitstring=b"\5")
            ),
        ),
    )
    before = _state(bench)
    multicast = p4r.PacketReplicationEngineEntry()
    multicast.multicast_group_entry.multicast_group_id = 5
    changed = program.entry("policed", [], program.action("drop_policed"), priority=4)
    odd = program.entry("policed", [ternary(1, 1, 1)], program.action("police"), priority=4)
    default = program.entry("counted", [], program.action("count_entry", 1), is_default_action=True)
    every_cell = p4r.CounterEntry(counter_id=program.id("both_counter"), data=p4r.CounterData(packet_count=1))
    every_word = p4r.RegisterEntry(register_id=program.id("word_register"), data=p4d.P4Data(bitstring=b"\1"))
    with pytest.raises(Failure) as failure:
        controller.write(
            update(DELETE, table_entry=policed),
            update(INSERT, table_entry=odd),
            update(INSERT, table_entry=changed),
            update(MODIFY, table_entry=_counted(bench, 1, 11)),
            update(DELETE, table_entry=_counted(bench, 2)),
            update(MODIFY, table_entry=default),
            update(MODIFY, counter_entry=every_cell),
            update(MODIFY, register_entry=every_word),
            update(INSERT, packet_replication_engine_entry=multicast),
            update(INSERT, table_entry=_counted(bench, 1)),
            update(INSERT, table_entry=_counted(bench, 7)),
            atomicity="ROLLBACK_ON_ERROR",
        )
    assert failure.value.code == "UNKNOWN"
    aborted = ("ABORTED", "rolled back, as update 9 failed")
    assert failure.value.details == (
        *[aborted] * 9,
        ("ALREADY_EXISTS", "table StatefulIngress.counted: the entry already exists"),
        aborted,
    )
    after = _state(bench)
    assert sorted(map(str, after)) == sorted(map(str, before))
    (on_device,) = bench.device.tables["StatefulIngress.policed"].values()
    assert (on_device.packets, on_device.meter) == (6, MeterConfig(7, 0, 8, 0))


def test_a_batch_without_errors_is_done_with_rollback_on(bench: Bench) -> None:
    bench.controller.write(
        update(INSERT, table_entry=_counted(bench, 1)),
        update(DELETE, table_entry=_counted(bench, 1)),
        update(INSERT, table_entry=_counted(bench, 2)),
        atomicity="ROLLBACK_ON_ERROR",
    )
    assert bench.controller.entries(p4r.TableEntry(table_id=bench.program.id("counted"))) == [_counted(bench, 2)]


def test_dataplane_atomic_batches_are_refused(bench: Bench) -> None:
    with pytest.raises(Failure) as failure:
        bench.controller.write(update(INSERT, table_entry=_counted(bench, 1)), atomicity="DATAPLANE_ATOMIC")
    assert failure.value == Failure(
        "UNIMPLEMENTED",
        "atomicity DATAPLANE_ATOMIC is not supported; valid: CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR",
    )
    assert bench.controller.entries(p4r.TableEntry(table_id=bench.program.id("counted"))) == []


def test_a_read_answers_what_it_can_and_reports_the_rest(bench: Bench) -> None:
    bench.controller.insert(table_entry=_counted(bench, 1))
    received: list[p4r.Entity] = []
    with pytest.raises(Failure) as failure:
        for response in bench.controller.responses(
            [
                p4r.Entity(table_entry=p4r.TableEntry(table_id=5)),
                p4r.Entity(table_entry=p4r.TableEntry(table_id=bench.program.id("counted"))),
            ]
        ):
            received.extend(response.entities)
    assert [e.table_entry for e in received] == [_counted(bench, 1)]
    assert [code for code, _ in failure.value.details] == ["INVALID_ARGUMENT", "OK"]


def test_a_client_with_the_metadata_limit_of_the_specification_sees_every_error_of_5000(bench: Bench) -> None:
    """The specification tells clients to take 8192 + 100 * updates bytes; gRPC's own limit is 8192."""
    updates = [p4r.Update(type=INSERT)] * 5000
    address = f"127.0.0.1:{bench.port}"
    limit = [("grpc.max_metadata_size", 8192 + 100 * len(updates))]
    with grpc.insecure_channel(address, limit) as channel, pytest.raises(Failure) as failure:
        Controller(bench.port, channel=channel).write(*updates)
    assert failure.value.code == "UNKNOWN"
    assert [code for code, _ in failure.value.details] == ["INVALID_ARGUMENT"] * 5000
    with grpc.insecure_channel(address) as channel, pytest.raises(Failure) as failure:
        Controller(bench.port, channel=channel).write(*updates)
    assert failure.value.code == "RESOURCE_EXHAUSTED" and "metadata size exceeds" in failure.value.message
