"""Counters, meters, registers, value sets, digests' configuration, multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4d, p4r

from softswitch.device_types import MeterConfig, Replica
from tests.p4runtime_client import DELETE, INSERT, MODIFY, Bench, Failure, Program, exact, ternary

BLUE = p4r.MeterConfig(cir=10, cburst=20, pir=30, pburst=40)


@pytest.fixture
def bench(programs: Path) -> Iterator[Bench]:
    with Bench(Program.load(programs, "stateful")) as made:
        yield made


def test_counter_cells_are_written_and_read_one_or_all(bench: Bench) -> None:
    counter = bench.program.id("both_counter")
    cell = p4r.CounterEntry(
        counter_id=counter, index=p4r.Index(index=3), data=p4r.CounterData(packet_count=5, byte_count=600)
    )
    bench.controller.modify(counter_entry=cell)
    assert bench.device.counters == {("StatefulIngress.both_counter", 3): (5, 600)}
    wanted = p4r.CounterEntry(counter_id=counter, index=p4r.Index(index=3))
    assert [e.counter_entry for e in bench.controller.read(counter_entry=wanted)] == [cell]
    cells = [e.counter_entry for e in bench.controller.read(counter_entry=p4r.CounterEntry(counter_id=counter))]
    assert [c.index.index for c in cells] == list(range(16))
    assert [c.data.packet_count for c in cells] == [5 if i == 3 else 0 for i in range(16)]
    everything = bench.controller.read(counter_entry=p4r.CounterEntry())
    assert len(everything) == 16 * 3 + 512
    cell.ClearField("index")
    bench.controller.modify(counter_entry=cell)
    assert {bench.device.counters["StatefulIngress.both_counter", i] for i in range(16)} == {(5, 600)}


def test_counter_cells_are_checked(bench: Bench) -> None:
    counter = bench.program.id("both_counter")
    what = "counter StatefulIngress.both_counter"
    data = p4r.CounterData(packet_count=1)

    def refused(kind: p4r.Update.Type.ValueType, index: int, data: p4r.CounterData = data) -> tuple[str, str]:
        entry = p4r.CounterEntry(counter_id=counter, index=p4r.Index(index=index), data=data)
        return bench.refused(kind, counter_entry=entry)

    assert refused(MODIFY, 16) == ("OUT_OF_RANGE", f"{what}: the index 16 is not in 0..15")
    assert refused(MODIFY, -1) == ("INVALID_ARGUMENT", f"{what}: the index -1 is negative")
    assert refused(MODIFY, 0, p4r.CounterData(byte_count=-4)) == (
        "INVALID_ARGUMENT",
        f"{what}: counts must not be negative, are 0 packets, -4 bytes",
    )
    for kind in (INSERT, DELETE):
        assert refused(kind, 0) == (
            "INVALID_ARGUMENT",
            "cells of a counter always exist: they can be modified, not inserted or deleted",
        )
    with pytest.raises(Failure) as failure:
        bench.controller.read(counter_entry=p4r.CounterEntry(counter_id=counter, index=p4r.Index(index=99)))
    assert failure.value.details == (("OUT_OF_RANGE", f"{what}: the index 99 is not in 0..15"),)


def test_meter_cells_are_configured_reset_and_read(bench: Bench) -> None:
    meter = bench.program.id("packet_meter")
    cell = p4r.MeterEntry(meter_id=meter, index=p4r.Index(index=2), config=BLUE)
    bench.controller.modify(meter_entry=cell)
    assert bench.device.meters == {("StatefulIngress.packet_meter", 2): MeterConfig(10, 20, 30, 40)}
    wanted = p4r.MeterEntry(meter_id=meter, index=p4r.Index(index=2))
    assert [e.meter_entry for e in bench.controller.read(meter_entry=wanted)] == [cell]
    assert len(bench.controller.read(meter_entry=p4r.MeterEntry())) == 32
    bench.controller.modify(meter_entry=wanted)
    assert [e.meter_entry for e in bench.controller.read(meter_entry=wanted)] == [wanted]


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        (p4r.MeterConfig(cir=-2), "INVALID_ARGUMENT", "cir -2 is negative"),
        (p4r.MeterConfig(cir=2, pir=1), "INVALID_ARGUMENT", "pir 1 is below cir 2"),
        (p4r.MeterConfig(eburst=1), "INVALID_ARGUMENT", "eburst is for single-rate three-colour meters only"),
    ],
)
def test_meter_configurations_are_checked(bench: Bench, config: p4r.MeterConfig, code: str, message: str) -> None:
    cell = p4r.MeterEntry(meter_id=bench.program.id("packet_meter"), index=p4r.Index(), config=config)
    assert bench.refused(MODIFY, meter_entry=cell) == (code, f"meter StatefulIngress.packet_meter: {message}")


def test_meters_have_no_counters_per_colour(bench: Bench) -> None:
    cell = p4r.MeterEntry(
        meter_id=bench.program.id("packet_meter"), index=p4r.Index(), counter_data=p4r.MeterCounterData()
    )
    assert bench.refused(MODIFY, meter_entry=cell) == (
        "UNIMPLEMENTED",
        "meter StatefulIngress.packet_meter: meters have no counters per colour",
    )


def _policed(bench: Bench, value: int, **more: object) -> p4r.TableEntry:
    return bench.program.entry("policed", [ternary(1, value, 0xFF)], bench.program.action("police"), priority=1, **more)


def test_direct_resources_are_set_with_the_entry_and_read_when_asked_for(bench: Bench) -> None:
    counts = p4r.CounterData(packet_count=3, byte_count=300)
    entry = _policed(bench, 1, counter_data=counts, meter_config=BLUE)
    bench.controller.insert(table_entry=entry)
    (on_device,) = bench.device.tables["StatefulIngress.policed"].values()
    assert (on_device.packets, on_device.bytes, on_device.meter) == (3, 300, MeterConfig(10, 20, 30, 40))

    wanted = p4r.TableEntry(table_id=entry.table_id)
    assert bench.controller.entries(wanted) == [_policed(bench, 1)]
    wanted.counter_data.SetInParent()
    assert bench.controller.entries(wanted) == [_policed(bench, 1, counter_data=counts)]
    wanted.meter_config.SetInParent()
    assert bench.controller.entries(wanted) == [entry]

    bench.controller.modify(table_entry=_policed(bench, 1))
    assert (on_device.packets, on_device.meter) == (3, None), "counts stay, the meter is reset"


def test_direct_counters_and_meters_are_read_and_written_on_their_own(bench: Bench) -> None:
    for value in (1, 2):
        bench.controller.insert(table_entry=_policed(bench, value))
    key = p4r.TableEntry(table_id=bench.program.id("policed"), match=[ternary(1, 2, 0xFF)], priority=1)
    counter = p4r.DirectCounterEntry(table_entry=key, data=p4r.CounterData(packet_count=9))
    bench.controller.modify(direct_counter_entry=counter)
    read = bench.controller.read(direct_counter_entry=p4r.DirectCounterEntry(table_entry=key))
    assert [e.direct_counter_entry for e in read] == [counter]
    meter = p4r.DirectMeterEntry(table_entry=key, config=BLUE)
    bench.controller.modify(direct_meter_entry=meter)
    read = bench.controller.read(direct_meter_entry=p4r.DirectMeterEntry(table_entry=key))
    assert [e.direct_meter_entry for e in read] == [meter]
    whole_table = p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=key.table_id))
    read = bench.controller.read(direct_counter_entry=whole_table)
    assert [e.direct_counter_entry.data.packet_count for e in read] == [0, 9]
    bench.controller.insert(
        table_entry=bench.program.entry("counted", [exact(1, 1)], bench.program.action("pass_entry"))
    )
    all_tables = bench.controller.read(direct_counter_entry=p4r.DirectCounterEntry())
    assert len(all_tables) == 3
    default = p4r.TableEntry(table_id=bench.program.id("counted"), is_default_action=True)
    read = bench.controller.read(direct_counter_entry=p4r.DirectCounterEntry(table_entry=default))
    assert [e.direct_counter_entry.data for e in read] == [p4r.CounterData()]


def test_direct_resources_are_checked(bench: Bench) -> None:
    key = p4r.TableEntry(table_id=bench.program.id("policed"), match=[ternary(1, 2, 0xFF)], priority=1)
    missing = ("NOT_FOUND", "table StatefulIngress.policed: there is no such entry")
    counter, meter = p4r.DirectCounterEntry(table_entry=key), p4r.DirectMeterEntry(table_entry=key)
    assert bench.refused(MODIFY, direct_counter_entry=counter) == missing
    assert bench.refused(MODIFY, direct_meter_entry=meter) == missing
    with pytest.raises(Failure) as failure:
        bench.controller.read(direct_counter_entry=counter)
    assert failure.value.details == (missing,)
    assert bench.refused(INSERT, direct_counter_entry=counter) == (
        "INVALID_ARGUMENT",
        "direct counters always exist: they can be modified, not inserted or deleted",
    )
    no_meter = p4r.DirectMeterEntry(table_entry=p4r.TableEntry(table_id=bench.program.id("counted")))
    assert bench.refused(MODIFY, direct_meter_entry=no_meter) == (
        "INVALID_ARGUMENT",
        "table StatefulIngress.counted has no direct meter",
    )


def test_registers_are_written_and_read_in_their_type(bench: Bench) -> None:
    program, controller = bench.program, bench.controller
    values = {
        "flag_register": (b"\1", 1),
        "wide_register": (bytes(range(1, 17)), int.from_bytes(bytes(range(1, 17)), "big")),
        "signed_register": (b"\x9d", 0xFF9D),
    }
    for name, (raw, pattern) in values.items():
        cell = p4r.RegisterEntry(register_id=program.id(name), index=p4r.Index(index=4), data=p4d.P4Data(bitstring=raw))
        controller.modify(register_entry=cell)
        assert bench.device.registers[f"StatefulIngress.registers.{name}", 4] == pattern
        wanted = p4r.RegisterEntry(register_id=cell.register_id, index=cell.index)
        assert [e.register_entry for e in controller.read(register_entry=wanted)] == [cell]
    whole = controller.read(register_entry=p4r.RegisterEntry(register_id=program.id("wide_register")))
    assert [e.register_entry.data.bitstring for e in whole] == [
        values["wide_register"][0] if i == 4 else b"\0" for i in range(16)
    ]


def test_registers_are_checked(bench: Bench) -> None:
    what = "register StatefulIngress.registers.small_register"
    cell = p4r.RegisterEntry(register_id=bench.program.id("small_register"), index=p4r.Index(index=16))

    def refused() -> tuple[str, str]:
        return bench.refused(MODIFY, register_entry=cell)

    assert refused() == ("OUT_OF_RANGE", f"{what}: the index 16 is not in 0..15")
    cell.index.index = 0
    assert refused() == ("INVALID_ARGUMENT", f"{what}: data must be set")
    cell.data.bitstring = b"\x80"
    assert refused() == ("INVALID_ARGUMENT", f"{what}: the value 0x80 does not fit in bit<7>")
    cell.data.bool = True
    assert refused() == ("INVALID_ARGUMENT", f"{what}: data must be set as bitstring, not bool")
    cell.register_id = bench.program.id("signed_register")
    cell.data.bitstring = b"\0\x80\0"
    assert refused() == (
        "INVALID_ARGUMENT",
        "register StatefulIngress.registers.signed_register: the value 32768 does not fit in int<16>",
    )


def test_extern_entries_are_not_supported(bench: Bench) -> None:
    assert bench.refused(MODIFY, extern_entry=p4r.ExternEntry()) == ("UNIMPLEMENTED", "extern_entry is not supported")
    with pytest.raises(Failure) as failure:
        bench.controller.read(p4r.Entity())
    assert failure.value.details == (("INVALID_ARGUMENT", "the entity is not set"),)


def test_multicast_groups(bench: Bench) -> None:
    def group(
        ident: int, *replicas: tuple[bytes, int], metadata: bytes = b""
    ) -> dict[str, p4r.PacketReplicationEngineEntry]:
        entry = p4r.PacketReplicationEngineEntry()
        entry.multicast_group_entry.MergeFrom(p4r.MulticastGroupEntry(multicast_group_id=ident, metadata=metadata))
        for port, instance in replicas:
            entry.multicast_group_entry.replicas.add(port=port, instance=instance)
        return {"packet_replication_engine_entry": entry}

    controller = bench.controller
    controller.insert(**group(5, (b"\0\1", 1), (b"\1\xfe", 2), metadata=b"x"))
    assert bench.device.multicast == {5: [Replica(1, 1), Replica(510, 2)]}
    canonical = group(5, (b"\1", 1), (b"\1\xfe", 2), metadata=b"x")["packet_replication_engine_entry"]
    read = controller.read(**group(0))
    assert [e.packet_replication_engine_entry for e in read] == [canonical]
    controller.modify(**group(5, (b"\2", 1)))
    assert bench.device.multicast == {5: [Replica(2, 1)]}
    assert bench.refused(INSERT, **group(5)) == ("ALREADY_EXISTS", "multicast group 5 already exists")
    assert bench.refused(MODIFY, **group(6)) == ("NOT_FOUND", "multicast group 6 does not exist")
    assert bench.refused(INSERT, **group(0)) == (
        "INVALID_ARGUMENT",
        "multicast group 0: the id is not in 1..65535",
    )
    assert bench.refused(INSERT, **group(6, (b"\1", 1), (b"\1", 1))) == (
        "INVALID_ARGUMENT",
        "multicast group 6: port 1 with instance 1 is there twice",
    )
    assert bench.refused(INSERT, **group(6, (b"\2\0", 1))) == (
        "INVALID_ARGUMENT",
        "multicast group 6: 0200 is not a port; valid: 0 to 511",
    )
    assert bench.refused(INSERT, **group(6, (b"\1", 65536))) == (
        "INVALID_ARGUMENT",
        "multicast group 6: the instance 65536 is not in 0..65535",
    )
    everything = group(7)
    for i in range(65536):
        everything["packet_replication_engine_entry"].multicast_group_entry.replicas.add(port=b"\1", instance=i)
    assert bench.refused(INSERT, **everything) == (
        "RESOURCE_EXHAUSTED",
        "multicast group 7: all groups and sessions together have at most 65536 replicas",
    )
    controller.delete(**group(5))
    assert bench.device.multicast == {}
    controller.insert(**everything)


def test_clone_sessions(bench: Bench) -> None:
    def session(ident: int, **more: Any) -> dict[str, p4r.PacketReplicationEngineEntry]:
        entry = p4r.PacketReplicationEngineEntry()
        entry.clone_session_entry.MergeFrom(p4r.CloneSessionEntry(session_id=ident, **more))
        entry.clone_session_entry.replicas.add(egress_port=2, instance=7)
        return {"packet_replication_engine_entry": entry}

    controller = bench.controller
    controller.insert(**session(9, packet_length_bytes=64))
    assert bench.device.clones == {9: ([Replica(2, 7)], 64)}
    read = controller.read(**session(9))
    assert [e.packet_replication_engine_entry for e in read] == list(session(9, packet_length_bytes=64).values())
    assert bench.refused(MODIFY, **session(9, class_of_service=3)) == (
        "UNIMPLEMENTED",
        "clone session 9: class_of_service 3 is not supported, only 0",
    )
    assert bench.refused(INSERT, **session(32768)) == (
        "INVALID_ARGUMENT",
        "clone session 32768: the id is not in 1..32767",
    )
    controller.delete(**session(9))
    assert bench.device.clones == {}


def test_value_sets_are_replaced_as_a_whole(programs: Path) -> None:
    with Bench(Program.load(programs, "parser_features")) as bench:
        name = "FeatureParser.known_kinds"
        entry = p4r.ValueSetEntry(value_set_id=bench.program.id(name))
        for value in (7, 9):
            entry.members.add(match=[exact(1, value)])
        bench.controller.modify(value_set_entry=entry)
        assert bench.device.value_sets == {name: [(7, 0xFF), (9, 0xFF)]}
        read = bench.controller.read(value_set_entry=p4r.ValueSetEntry())
        assert [e.value_set_entry for e in read] == [entry]
        entry.members.add(match=[exact(1, 7)])
        assert bench.refused(MODIFY, value_set_entry=entry) == (
            "ALREADY_EXISTS",
            f"value set {name}: two members are the same",
        )
        for value in (10, 11):
            entry.members.add(match=[exact(1, value)])
        assert bench.refused(MODIFY, value_set_entry=entry) == (
            "RESOURCE_EXHAUSTED",
            f"value set {name}: 5 members are more than its size 4",
        )
        bench.controller.modify(value_set_entry=p4r.ValueSetEntry(value_set_id=entry.value_set_id))
        assert bench.device.value_sets == {name: []}


def test_digests_are_configured(programs: Path) -> None:
    with Bench(Program.load(programs, "digests")) as bench:
        entry = p4r.DigestEntry(digest_id=bench.program.id("learn_t"))
        entry.config.max_timeout_ns, entry.config.max_list_size, entry.config.ack_timeout_ns = 10, 20, 30
        assert bench.refused(MODIFY, digest_entry=entry) == ("NOT_FOUND", "digest learn_t is not configured")
        bench.controller.insert(digest_entry=entry)
        assert bench.device.digests == {
            "learn_t": {"enabled": True, "max_list_size": 20, "max_timeout_ns": 10, "ack_timeout_ns": 30}
        }
        read = bench.controller.read(digest_entry=p4r.DigestEntry())
        assert [e.digest_entry for e in read] == [entry]
        assert bench.refused(INSERT, digest_entry=entry) == ("ALREADY_EXISTS", "digest learn_t is already configured")
        bench.controller.delete(digest_entry=entry)
        assert bench.device.digests == {"learn_t": {"enabled": False}}
