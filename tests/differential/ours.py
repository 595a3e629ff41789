"""The softswitch in virtual time, driven by the same P4Runtime messages as BMv2 but without a network between."""

from __future__ import annotations

import threading

from finsy.proto import p4r

from softswitch import bmv2_json
from softswitch.device import Device
from softswitch.device_types import DigestList, PacketIn
from softswitch.p4runtime import p4info, read, values, write
from softswitch.p4runtime.pipeline import Pipeline
from tests.differential.bmv2 import CPU_PORT, PRIORITIES, samples
from tests.p4runtime_client import Program

SECOND_NS = 1_000_000_000
GAP_NS = 1_000_000  # between two packets


class Ours:
    """A device that runs the program. ``packet_ins`` and ``digests`` are what the control plane got so far.

    ``unspecified``: which bits of clocks, random numbers and fields of invalid headers are flipped.
    """

    def __init__(self, program: Program, seed: int, *, unspecified: int = 0, trace: bool = False) -> None:
        model = bmv2_json.loads(program.json)
        self.device = Device(
            model, seed=seed, cpu_port=CPU_PORT, priorities=PRIORITIES, trace=trace,
            defines=(f"SW_UNSPECIFIED={unspecified}ULL",) if unspecified else (),
        )  # fmt: skip
        self.pipeline = Pipeline(program.config(), p4info.build(program.p4info, model), self.device)
        self.packet_ins: list[tuple[int, bytes]] = []
        self.digests: list[tuple[int, bytes]] = []
        self._now = SECOND_NS
        self.device.advance(self._now)

    def close(self) -> None:
        """Give the device back."""
        self.pipeline.close()

    def write(self, update: p4r.Update) -> str:
        """Empty if the update was done, else why not."""
        request = p4r.WriteRequest(updates=[update])
        (error,) = write.write(self.pipeline, request, None)
        return "" if error is None else f"{error.code.name}: {error.message}"

    def read(self, entity: p4r.Entity) -> list[p4r.Entity]:
        """What the entity selects. Raises P4Error."""
        found, errors = read.select(self.pipeline, p4r.ReadRequest(entities=[entity]))
        for error in errors:
            if error is not None:
                raise error
        answers = read.responses(self.pipeline, found, None, threading.Lock())
        return [one for answer in answers for one in answer.entities]

    def send(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """A packet arrives; returns (port, bytes) of all that left, but not through the CPU port."""
        self._now += GAP_NS
        outputs = self.device.inject(port, packet, self._now)
        outputs += self.device.advance(self._now + GAP_NS // 2)
        self._take_events()
        return [(one.port, one.data) for one in outputs if one.port != CPU_PORT]

    def packet_out(self, message: p4r.PacketOut) -> list[tuple[int, bytes]]:
        """The controller sends a packet."""
        return self.send(CPU_PORT, self.pipeline.packet_io.packet_out(message))

    def _take_events(self) -> None:
        for event in iter(lambda: self.device.next_event(0), None):
            match event:
                case PacketIn():
                    message = self.pipeline.packet_io.packet_in(event.data)
                    if message is not None:
                        self.packet_ins.append((CPU_PORT, message.SerializeToString(deterministic=True)))
                case DigestList():
                    info = self.pipeline.digests_by_name[event.digest]
                    data = [values.encode(info.type, iter(s), self.pipeline.index.p4info) for s in event.samples]
                    self.digests.extend(samples(info.id, data))
