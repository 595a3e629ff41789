"""A switch in virtual time whose devices are built with the sanitizers."""

from __future__ import annotations

import shutil
from pathlib import Path

from softswitch import model
from softswitch.device import Device, DeviceError
from softswitch.json_node import ProgramError
from softswitch.p4runtime import TargetError
from softswitch.switch import Switch, SwitchConfig
from softswitch.toolchain import ToolchainError
from tests.fuzz.calls import CPU_PORT


class SanitizedSwitch(Switch):
    """Has a CPU port and two priorities."""

    def __init__(self) -> None:
        super().__init__(SwitchConfig(cpu_port=CPU_PORT, priorities=2, realtime=False))
        self.folders: list[Path] = []  # of compiled programs, in the toolchain's cache

    def build(self, program: model.Program) -> Device:
        """A sanitized device. Raises TargetError."""
        try:
            device = Device(program, cpu_port=CPU_PORT, priorities=2, sanitize=True)
        except (DeviceError, ProgramError, ToolchainError) as error:
            raise TargetError(str(error)) from error
        self.folders.append(Path(device.lib._name).parent)
        return device

    def forget(self) -> None:
        """Take all programs but the first out of the cache."""
        for folder in set(self.folders) - set(self.folders[:1]):
            shutil.rmtree(folder)
