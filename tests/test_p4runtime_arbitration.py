"""Who is primary: election ids, roles, takeover."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4r, stratum
from google.protobuf.any_pb2 import Any as AnyMessage

from tests.p4runtime_client import INSERT, Bench, Controller, Failure, Program, exact, lpm, uint128, update

OK, NOT_FOUND, ALREADY_EXISTS = 0, 5, 6


@pytest.fixture
def bench(programs: Path) -> Iterator[Bench]:
    with Bench(Program.load(programs, "l3_router"), loaded=False) as made:
        yield made


@pytest.fixture
def other(bench: Bench) -> Iterator[Controller]:
    with Controller(bench.port, election_id=2) as controller:
        yield controller


def _route(bench: Bench) -> dict[str, p4r.TableEntry]:
    return {"table_entry": bench.program.entry("route_ipv4", [lpm(1, 1, 32)], bench.program.action("route_via", 1))}


def _advice(status: int, highest: int | None, role: str = "") -> tuple[int, int | None, str]:
    return status, highest, role


def _of(message: p4r.MasterArbitrationUpdate) -> tuple[int, int | None, str]:
    ident = message.election_id.high << 64 | message.election_id.low
    return message.status.code, ident if message.HasField("election_id") else None, message.role.name


def test_the_highest_election_id_is_primary_and_everybody_is_told(bench: Bench, other: Controller) -> None:
    big = 3 << 64 | 7
    assert _of(bench.controller.arbitrate(1)) == _advice(OK, 1)
    assert _of(other.arbitrate(big)) == _advice(OK, big)
    assert _of(bench.controller.receive().arbitration) == _advice(ALREADY_EXISTS, big)
    with Controller(bench.port, election_id=5) as third:
        assert _of(third.arbitrate()) == _advice(ALREADY_EXISTS, big)
        assert _of(third.arbitrate()) == _advice(ALREADY_EXISTS, big)
    other.set_pipeline(bench.program.config())
    with pytest.raises(Failure) as failure:
        bench.controller.write(update(INSERT, **_route(bench)))
    assert failure.value == Failure("PERMISSION_DENIED", "Not primary")


def test_a_backup_takes_over_when_the_primary_breaks_off(bench: Bench, other: Controller) -> None:
    bench.controller.arbitrate(1)
    other.arbitrate(2)
    bench.controller.receive()
    other.close()
    assert _of(bench.controller.receive().arbitration) == _advice(NOT_FOUND, 2)
    with pytest.raises(Failure) as failure:
        bench.controller.set_pipeline(bench.program.config())
    assert failure.value.code == "PERMISSION_DENIED"
    assert _of(bench.controller.arbitrate(1)) == _advice(NOT_FOUND, 2), "1 is below the highest id seen"
    assert _of(bench.controller.arbitrate(2)) == _advice(OK, 2)
    bench.controller.set_pipeline(bench.program.config())


def test_a_primary_that_steps_down_leaves_no_primary(bench: Bench, other: Controller) -> None:
    bench.controller.arbitrate(5)
    other.arbitrate(2)
    assert _of(bench.controller.arbitrate(1)) == _advice(NOT_FOUND, 5)
    assert _of(other.receive().arbitration) == _advice(NOT_FOUND, 5)


def test_an_orderly_end_of_the_stream_ends_it_well(bench: Bench, other: Controller) -> None:
    other.arbitrate(2)
    bench.controller.arbitrate(1)
    other.finish()
    with pytest.raises(StopIteration):
        other.receive()
    assert _of(bench.controller.receive().arbitration) == _advice(NOT_FOUND, 2)


def test_without_an_election_id_a_controller_is_backup_for_ever(bench: Bench, other: Controller) -> None:
    bench.controller.election_id = None
    assert _of(bench.controller.arbitrate()) == _advice(NOT_FOUND, None)
    assert _of(other.arbitrate(0)) == _advice(OK, 0), "0 is an id like any other"
    assert _of(bench.controller.receive().arbitration) == _advice(ALREADY_EXISTS, 0)


def test_a_duplicate_election_id_ends_the_stream(bench: Bench, other: Controller) -> None:
    bench.controller.arbitrate(4)
    with pytest.raises(Failure) as failure:
        other.arbitrate(4)
    assert failure.value == Failure("INVALID_ARGUMENT", "Election id already exists")
    with Controller(bench.port, election_id=3) as third:
        third.arbitrate()
        with pytest.raises(Failure) as failure:
            third.arbitrate(4)
        assert failure.value == Failure("INVALID_ARGUMENT", "Election id already exists")


def test_device_id_and_role_of_a_stream_are_fixed(bench: Bench, other: Controller) -> None:
    other.device_id = 9
    with pytest.raises(Failure) as failure:
        other.arbitrate()
    assert failure.value == Failure("NOT_FOUND", "unknown device id 9; valid: 1")
    bench.controller.arbitrate()
    bench.controller.device_id = 9
    with pytest.raises(Failure) as failure:
        bench.controller.arbitrate()
    assert failure.value == Failure("FAILED_PRECONDITION", "a stream's device id cannot change to 9")
    with Controller(bench.port, role="left") as third:
        third.arbitrate()
        with pytest.raises(Failure) as failure:
            third.arbitrate(role=p4r.Role(name="right"))
        assert failure.value == Failure("FAILED_PRECONDITION", "a stream's role cannot change from 'left' to 'right'")


def test_every_role_has_its_own_primary(bench: Bench, other: Controller) -> None:
    other.role = "left"
    bench.controller.arbitrate(1)
    assert _of(other.arbitrate(1)) == _advice(OK, 1, "left")
    bench.controller.set_pipeline(bench.program.config())
    other.insert(**_route(bench))
    other.role = "nobody"
    with pytest.raises(Failure) as failure:
        other.write()
    assert failure.value == Failure("NOT_FOUND", "unknown role 'nobody'; valid: '', 'left'")


def _role(name: str, **config: object) -> p4r.Role:
    packed = AnyMessage()
    packed.Pack(stratum.P4RoleConfig(**config))  # type: ignore[arg-type]
    return p4r.Role(name=name, config=packed)


def test_a_role_writes_and_reads_what_its_configuration_lists(bench: Bench, other: Controller) -> None:
    bench.controller.arbitrate()
    bench.controller.set_pipeline(bench.program.config())
    route, acl = bench.program.id("route_ipv4"), bench.program.id("acl")
    other.role = "routes"
    told = other.arbitrate(role=_role("routes", exclusive_p4_ids=[route]))
    assert told.role == _role("routes", exclusive_p4_ids=[route])
    other.insert(**_route(bench))
    rule = bench.program.entry("acl", [], bench.program.action("acl_deny"), priority=1)
    with pytest.raises(Failure) as failure:
        other.insert(table_entry=rule)
    assert failure.value.details == (("PERMISSION_DENIED", f"role routes may not write table_entry of id {acl}"),)
    with pytest.raises(Failure) as failure:
        other.set_pipeline(bench.program.config())
    assert failure.value == Failure("PERMISSION_DENIED", "role routes may not set the forwarding pipeline")
    bench.controller.insert(table_entry=rule)
    assert [e.table_id for e in other.entries(p4r.TableEntry())] == [route]
    assert len(bench.controller.entries(p4r.TableEntry())) == 2


def test_role_configurations_are_checked(bench: Bench, other: Controller) -> None:
    bench.controller.role = "first"
    bench.controller.arbitrate(role=_role("first", exclusive_p4_ids=[7]))
    with pytest.raises(Failure) as failure:
        other.arbitrate(role=_role("second", shared_p4_ids=[7]))
    assert failure.value == Failure("INVALID_ARGUMENT", "role second: id 7 belongs to role first")
    unknown = AnyMessage()
    unknown.Pack(uint128(1))
    with Controller(bench.port) as third:
        with pytest.raises(Failure) as failure:
            third.arbitrate(role=p4r.Role(name="third", config=unknown))
        assert failure.value == Failure(
            "INVALID_ARGUMENT", "role third: config is a p4.v1.Uint128; this server knows stratum.P4RoleConfig"
        )


def test_long_arbitration_messages_are_refused(bench: Bench) -> None:
    update_of_a_long_role = bench.controller.arbitration(role=p4r.Role(name="r" * 65536))
    with pytest.raises(Failure) as failure:
        bench.controller.arbitrate(role=update_of_a_long_role.role)
    assert failure.value == Failure(
        "INVALID_ARGUMENT",
        f"an arbitration message of {update_of_a_long_role.ByteSize()} bytes; at most 65536 are taken",
    )


def test_requests_are_checked_in_the_order_of_the_specification(bench: Bench) -> None:
    controller = bench.controller
    controller.device_id = 3
    for call in (controller.write, controller.get_pipeline, lambda: controller.read(table_entry=p4r.TableEntry())):
        with pytest.raises(Failure) as failure:
            call()
        assert failure.value == Failure("NOT_FOUND", "unknown device id 3; valid: 1")
    controller.device_id = 1
    with pytest.raises(Failure) as failure:
        controller.write()
    assert failure.value == Failure("PERMISSION_DENIED", "Not primary")
    controller.arbitrate()
    for call in (controller.write, lambda: controller.read(table_entry=p4r.TableEntry())):
        with pytest.raises(Failure) as failure:
            call()
        assert failure.value == Failure("FAILED_PRECONDITION", "No forwarding pipeline config set for this device")


def test_streams_are_limited(programs: Path) -> None:
    with Bench(Program.load(programs, "tables"), streams=1) as bench, Controller(bench.port, election_id=2) as other:
        with pytest.raises(Failure) as failure:
            other.arbitrate()
        assert failure.value == Failure("RESOURCE_EXHAUSTED", "1 streams are open, which is the limit")
        bench.controller.insert(
            table_entry=bench.program.entry("exact_match", [exact(1, 1), exact(2, 1)], bench.program.action("drop"))
        )
