"""What a switch keeps when pipelines come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from softswitch import bmv2_json, model
from softswitch.device_types import DeviceError, Fault, QueueConfig
from softswitch.p4runtime import TargetError
from softswitch.switch import Switch, SwitchConfig


@pytest.fixture(scope="module")
def program(programs: Path) -> model.Program:
    return bmv2_json.load(programs / "replication.json")


@pytest.fixture
def switch() -> Iterator[Switch]:
    made = Switch(SwitchConfig(priorities=2, realtime=False))
    yield made
    made.close()


def test_settings_made_before_and_after_a_pipeline_reach_every_device(switch: Switch, program: model.Program) -> None:
    slow, lossy = QueueConfig(rate_pps=10, depth_packets=5), Fault(loss=0.5, delay_ns=7)
    switch.port_add(1, "")
    switch.queue_set(1, slow)
    switch.activate(switch.build(program))
    first = switch.device
    switch.fault_set(1, "tx", lossy)
    switch.queue_set(1, QueueConfig(depth_packets=9), 1)
    switch.activate(switch.build(program))
    device = switch.device
    assert device is not None and device is not first
    assert [device.queue(1, priority) for priority in (0, 1)] == [slow, QueueConfig(depth_packets=9)]
    assert (device.fault(1, "tx"), device.fault(1, "rx")) == (lossy, Fault())
    assert [switch.queue(1, priority) for priority in (0, 1)] == [slow, QueueConfig(depth_packets=9)]
    switch.faults_clear()
    assert device.fault(1, "tx") == switch.fault(1, "tx") == Fault()
    assert first is not None
    with pytest.raises(DeviceError, match="the device is closed"):
        first.queue(1)


def test_a_removed_port_takes_its_settings_along(switch: Switch) -> None:
    for port in (1, 2):
        switch.port_add(port)
        switch.fault_set(port, "rx", Fault(down=True))
        switch.port_rate_set(port, 1000)
    switch.port_remove(1)
    assert switch.ports() == [2]
    assert (switch.fault(1, "rx"), switch.fault(2, "rx")) == (Fault(), Fault(down=True))
    assert (switch.port_rate(1), switch.port_rate(2)) == (0, 1000)


def test_a_setting_that_the_device_refuses_is_not_kept(switch: Switch, program: model.Program) -> None:
    switch.activate(switch.build(program))
    with pytest.raises(DeviceError):
        switch.fault_set(600, "rx", Fault(down=True))
    assert switch.fault(600, "rx") == Fault()


def test_an_interface_belongs_to_one_port(switch: Switch) -> None:
    switch.port_add(1, "v")
    with pytest.raises(DeviceError, match="interface 'v' is port 1's") as refusal:
        switch.port_add(2, "v")
    assert (refusal.value.code, switch.ports()) == ("ALREADY_EXISTS", [1])
    switch.port_remove(1)
    switch.port_add(2, "v")
    assert switch.ports() == [2]


def test_before_the_first_pipeline_there_is_nothing_to_ask(switch: Switch) -> None:
    switch.port_add(3)
    assert (switch.ports(), switch.stats(), switch.device) == ([3], {}, None)
    with pytest.raises(DeviceError, match="no pipeline is loaded yet") as refusal:
        switch.port_info(3)
    assert refusal.value.code == "FAILED_PRECONDITION"


def test_a_device_that_cannot_be_made_is_a_target_error(program: model.Program) -> None:
    with pytest.raises(TargetError, match=r"priorities must be within 1\.\.8, is 9"):
        Switch(SwitchConfig(priorities=9, realtime=False)).build(program)
