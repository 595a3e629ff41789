"""What a device can do, found by asking: reads that change nothing, so that no later call fails by surprise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import finsy as fy
from finsy.grpcutil import GRPCStatusCode


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that P4Runtime offers and a device may lack. ``without`` says what the controller does then."""

    name: str
    supported: bool
    without: str

    def __str__(self) -> str:
        return f"{self.name} ({self.without})"


# name, what follows from lacking it
WITHOUT = {
    "read of registers": "state is known by digests and counters only",
    "read of all tables at once": "tables are read one by one",
    "read of direct counters": "no rates by table entry",
    "read of counters": "no rates by queue",
    "read of meters": "meters are written at every reconciliation",
    "read of digests": "digests are configured at every session",
}


def _questions(schema: fy.P4Schema) -> Iterable[tuple[str, Any]]:
    registers, counters = list(schema.registers), list(schema.counters)
    if registers:
        yield "read of registers", fy.P4RegisterEntry(registers[0].alias, index=0)
    yield "read of all tables at once", fy.P4TableEntry()
    for direct in list(schema.direct_counters)[:1]:
        yield "read of direct counters", fy.P4DirectCounterEntry(direct.alias)
    if counters:
        yield "read of counters", fy.P4CounterEntry(counters[0].alias, index=0)
    for meter in list(schema.meters)[:1]:
        yield "read of meters", fy.P4MeterEntry(meter.alias, index=0)
    for digest in list(schema.digests)[:1]:
        yield "read of digests", fy.P4DigestEntry(digest.alias)


async def probe(switch: fy.Switch) -> list[Capability]:
    """Asks the device for one of each. Raises P4ClientError where the session is lost meanwhile."""
    found: list[Capability] = []
    for name, question in _questions(switch.p4info):
        supported = True
        try:
            answers: Any = switch.read(question)
            async for _ in answers:
                break
        except fy.P4ClientError as error:
            if error.code in (GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.CANCELLED):
                raise
            supported = error.code is GRPCStatusCode.NOT_FOUND  # it can, and has none
        found.append(Capability(name, supported, WITHOUT[name]))
    return found
