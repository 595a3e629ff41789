"""A P4Runtime client without ``await``: finsy in a thread of its own."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import finsy as fy

BUILD = Path(__file__).resolve().parent.parent / "p4src/build"
TIMEOUT_S = 10.0
LINK_EVENT, PORT_EVENT = "link_event_t", "port_event_t"

T = TypeVar("T")


class Client:
    """A connection to a switch that runs ``program``; the pipeline is set where it is another."""

    def __init__(self, address: str, program: str) -> None:
        self.packets_in: queue.Queue[fy.P4PacketIn] = queue.Queue()
        self.digests: dict[str, queue.Queue[dict[str, int]]] = {
            name: queue.Queue() for name in (LINK_EVENT, PORT_EVENT)
        }
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        options = fy.SwitchOptions(
            p4info=BUILD / f"{program}.p4info.txtpb", p4blob=BUILD / f"{program}.json", fail_fast=True
        )  # fmt: skip
        self._switch = fy.Switch(program, address, options)
        self._do(self._connect())

    def close(self) -> None:
        """End the session."""
        self._do(self._switch.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)

    def insert(self, *entities: Any) -> None:
        """Insert entities in one request, as all three do. Raises finsy.P4ClientError."""
        self._do(self._switch.insert(entities))

    def modify(self, *entities: Any) -> None:
        self._do(self._switch.modify(entities))

    def delete(self, *entities: Any) -> None:
        self._do(self._switch.delete(entities))

    def send(self, packet: fy.P4PacketOut) -> None:
        """A packet from the controller."""
        self._do(self._switch.write([packet]))

    def counter(self, name: str, index: int) -> int:
        """Packets that an indexed counter has counted."""
        [entry] = self._do(self._read(fy.P4CounterEntry(name, index=index)))
        return entry.packet_count

    async def _connect(self) -> None:
        await self._switch.__aenter__()
        for reader in (self._read_packets(), *map(self._read_digests, self.digests)):
            self._loop.create_task(reader)
        await self._switch.insert([fy.P4DigestEntry(name, max_list_size=1) for name in self.digests])

    async def _read(self, entity: fy.P4CounterEntry) -> list[fy.P4CounterEntry]:
        answers: Any = self._switch.read(entity)  # annotated as if it had to be awaited
        return [found async for found in answers]

    async def _read_packets(self) -> None:
        async for packet in self._switch.read_packets():
            self.packets_in.put(packet)

    async def _read_digests(self, name: str) -> None:
        async for digest in self._switch.read_digests(name):
            for sample in digest.data:
                assert isinstance(sample, dict)
                self.digests[name].put(sample)
            await self._switch.write([fy.P4DigestListAck(name, digest.list_id)])

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)


def flush(*queues: queue.Queue[Any]) -> None:
    """Forget what waits."""
    for one in queues:
        while not one.empty():
            one.get_nowait()
