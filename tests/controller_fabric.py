"""A fabric of softswitch devices in this process, in virtual time, each behind its P4Runtime server on loopback.

Packets that leave a port arrive at the other end of the link, unless the link is cut. ``beat`` lets every device send
its heartbeats once.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from pathlib import Path
from typing import Self

from controller.intent import load_intent
from controller.model import Damping, Device, Intent, Link, PortRef
from softswitch.control import ControlServer
from softswitch.device import Device as Native
from softswitch.device_types import Output
from softswitch.p4runtime import Server, ServerConfig
from softswitch.switch import Switch, SwitchConfig

EXAMPLES = Path(__file__).resolve().parent.parent / "controller/examples"
CPU_PORT = 510
TIMER_PORT = 509
BEAT_NS = 10_000_000  # the examples' heartbeat period


@dataclasses.dataclass
class Node:
    """A device: the switch and its server. A stopped server is a lost session; a closed switch is a dead device."""

    device: Device
    switch: Switch
    server: Server
    address: str

    @property
    def native(self) -> Native | None:
        """The program that runs, if any."""
        return self.switch.device


class Fabric:
    """The devices of an example intent, running. ``intent`` has the addresses where they listen."""

    def __init__(self, example: str, tmp_path: Path) -> None:
        intent = load_intent(EXAMPLES / example)
        intent = dataclasses.replace(
            intent,
            health=dataclasses.replace(intent.health, probation=10, silence_ms=3_600_000),  # time stands still here
            damping=Damping(hold_ms=100, max_hold_ms=400),
        )
        self.now = 1_000_000_000
        self.cut: set[str] = set()  # links that carry nothing
        self.cut_towards: set[PortRef] = set()  # ends that receive nothing
        self.loses: dict[PortRef, int] = {}  # ends that lose every so manieth packet
        self.cabling: dict[PortRef, PortRef] = {}  # ends that lead elsewhere than they should
        self._arrived: Counter[PortRef] = Counter()
        self._controls: list[ControlServer] = []
        self.dead: set[str] = set()
        self.delivered: list[tuple[PortRef, bytes]] = []  # what left by ports without a link
        self.nodes: dict[str, Node] = {}
        for device in intent.devices:
            self.nodes[device.name] = self._start(device, tmp_path)
        self.intent: Intent = dataclasses.replace(
            intent,
            devices=tuple(
                dataclasses.replace(device, address=self.nodes[device.name].address) for device in intent.devices
            ),
        )
        self.links = {end: link for link in intent.links for end in (link.lower, link.upper)}

    def _start(self, device: Device, tmp_path: Path) -> Node:
        address = f"unix:{tmp_path}/{device.name}.grpc"
        return Node(device, *self._serve(device, address), address)

    def _serve(self, device: Device, address: str) -> tuple[Switch, Server]:
        def left(outputs: list[Output]) -> None:
            self.carry(device.name, outputs)

        config = SwitchConfig(cpu_port=CPU_PORT, realtime=False, priorities=8, seed=device.device_id)
        switch = Switch(config, left)
        server = Server(ServerConfig(address, device_id=device.device_id), switch)
        server.start()
        return switch, server

    def write_intent(self, path: Path) -> Path:
        """The example as a file, with the addresses where these devices listen and with their control sockets."""
        text = (EXAMPLES / self.intent.source.name).read_text()
        for name, node in self.nodes.items():
            control = ControlServer(node.switch, path.with_name(f"{name}.control"))
            self._controls.append(control)
            old = f'address: "127.0.0.1:{50000 + node.device.device_id}"'
            block = f"\n    {old}\n" in text
            between = "\n    " if block else ", "
            text = text.replace(old, f'address: "{node.address}"{between}control: "{control.path}"')
        health = ", ".join(f"{name}: {value}" for name, value in dataclasses.asdict(self.intent.health).items())
        text = text[: text.index("\n# Counted in heartbeats")] + f"\nhealth: {{{health}}}\n"
        path.write_text(text + "damping: {hold_ms: 100, max_hold_ms: 400}\n")
        return path

    def close(self) -> None:
        """Stop all."""
        for control in self._controls:
            control.close()
        for node in self.nodes.values():
            node.server.stop()
            node.switch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- sessions and deaths ---------------------------------------------------------------------------------------

    def lose_session(self, name: str) -> None:
        """The device's P4Runtime server goes; it forwards on."""
        self.nodes[name].server.stop()

    def restore_session(self, name: str) -> None:
        """The server is back, before the same switch."""
        node = self.nodes[name]
        node.server = Server(ServerConfig(node.address, device_id=node.device.device_id), node.switch)
        node.server.start()

    def restart(self, name: str) -> None:
        """The switch starts anew: no pipeline, no entries, no memory."""
        node = self.nodes[name]
        node.server.stop()
        node.switch.close()
        node.switch, node.server = self._serve(node.device, node.address)

    # ---- packets ---------------------------------------------------------------------------------------------------

    def inject(self, name: str, port: int, packet: bytes) -> None:
        """A packet arrives at a port, and goes as far as it goes."""
        native = self.nodes[name].native
        if native is None or name in self.dead:
            return
        self.carry(name, native.inject(port, packet, max(self.now, native.now())))

    def carry(self, name: str, outputs: list[Output]) -> None:
        """What left a device arrives elsewhere."""
        waiting = deque((PortRef(name, output.port), output.data) for output in outputs)
        while waiting:
            end, data = waiting.popleft()
            link = self.links.get(end)
            if link is None:
                self.delivered.append((end, data))
                continue
            other = self.cabling.get(end, link.other(end.device))
            native = self.nodes[other.device].native
            if link.name in self.cut or other in self.cut_towards or native is None or other.device in self.dead:
                continue
            self._arrived[other] += 1
            if other in self.loses and self._arrived[other] % self.loses[other] == 0:
                continue
            arrived = native.inject(other.port, data, max(self.now, native.now()))
            waiting.extend((PortRef(other.device, output.port), output.data) for output in arrived)

    def arrived(self, end: PortRef) -> int:
        """How many packets have arrived at an end of a link."""
        return self._arrived[end]

    def drops(self, name: str, reason: int) -> int:
        """How many packets a device has dropped for a reason (drop_reason_t)."""
        native = self.nodes[name].native
        assert native is not None
        (counter,) = [one for one in native.program.counters if one.rsplit(".", 1)[-1] == "drops"]
        return native.counter(counter, reason)[0]

    def beat(self, times: int = 1) -> None:
        """Every device sends a heartbeat on each of its links, ``times`` periods in a row."""
        for _ in range(times):
            self.now += BEAT_NS
            for device in self.intent.devices:
                for link in self.intent.links_of[device.name]:
                    self.inject(device.name, TIMER_PORT, timer_packet(link.at(device.name).port))

    def link(self, one: str, two: str) -> Link:
        """The link between two devices."""
        (found,) = [link for link in self.intent.links if {link.lower.device, link.upper.device} == {one, two}]
        return found


def timer_packet(port: int) -> bytes:
    """A timer packet: the port's heartbeat is due."""
    return bytes(12) + b"\x88\xb6" + port.to_bytes(2, "big") + bytes(44)
