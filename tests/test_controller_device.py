"""Device sessions, on both targets: what they write, read back, and survive."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import finsy as fy
import pytest

from controller.capabilities import Capability
from controller.device import DeviceSession, Notice, NotPrimary, SessionDown, SessionState, SessionUp, WriteFailed
from controller.entities import TableEntry, entry
from controller.intent import load_intent
from controller.model import Device, Role
from controller.paths import FabricView
from controller.plan import Planner, plan
from controller.programs import Program, program_for
from controller.reconcile import difference
from softswitch.p4runtime import Server, ServerConfig
from softswitch.switch import Switch, SwitchConfig

EXAMPLES = Path(__file__).resolve().parent.parent / "controller/examples"
INTENT = load_intent(EXAMPLES / "leaf-spine.yaml")
WAIT_S = 30.0


class Target:
    """A switch of either kind on a socket of its own, that can be started again."""

    def __init__(self, kind: str, tmp_path: Path) -> None:
        self.kind, self.address = kind, f"unix:{tmp_path}/{kind}.grpc"
        self._tmp_path = tmp_path
        self._stack = contextlib.ExitStack()
        self.start()

    def start(self) -> None:
        (self._soft if self.kind == "softswitch" else self._bmv2)()

    def _soft(self) -> None:
        switch = Switch(SwitchConfig(cpu_port=510, realtime=False, priorities=8))
        server = Server(ServerConfig(self.address, device_id=11), switch)
        server.start()
        self._stack.callback(switch.close)
        self._stack.callback(server.stop)

    def _bmv2(self) -> None:
        with socket.socket() as probe:  # every BMv2 wants a Thrift port of its own
            probe.bind(("127.0.0.1", 0))
            thrift_port = str(probe.getsockname()[1])
        command = [
            "simple_switch_grpc", "--no-p4", "--device-id", "11", "--thrift-port", thrift_port, "--",
            "--grpc-server-addr", self.address, "--cpu-port", "510", "--priority-queues", "8",
        ]  # fmt: skip
        log = self._stack.enter_context((self._tmp_path / "bmv2.log").open("ab"))
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._tmp_path)

        def end() -> None:
            process.kill()
            process.wait()

        self._stack.callback(end)

    def stop(self) -> None:
        self._stack.close()
        Path(self.address.removeprefix("unix:")).unlink(missing_ok=True)


@pytest.fixture(params=["softswitch", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    made = Target(request.param, tmp_path)
    yield made
    made.stop()


@pytest.fixture
def soft(tmp_path: Path) -> Iterator[Target]:
    made = Target("softswitch", tmp_path)
    yield made
    made.stop()


class Session(DeviceSession):
    """A session that keeps its notices."""

    def __init__(self, device: Device, program: Program, *, election_id: int = 10, read_only: bool = False) -> None:
        self.notices: asyncio.Queue[Notice] = asyncio.Queue()
        super().__init__(
            device, program, self.notices.put_nowait, election_id=election_id, read_only=read_only
        )  # fmt: skip

    async def up(self, state: SessionState = SessionState.PRIMARY) -> SessionUp:
        while True:
            notice = await self.notices.get()
            if isinstance(notice, SessionUp) and notice.state is state:
                return notice


def device(target: Target, name: str = "p1-leaf1") -> Device:
    return dataclasses.replace(INTENT.device_by_name[name], address=target.address, device_id=11)


@contextlib.asynccontextmanager
async def opened(
    target: Target, name: str = "p1-leaf1", *, election_id: int = 10, read_only: bool = False
) -> AsyncIterator[Session]:
    one = device(target, name)
    session = Session(one, program_for(one.role), election_id=election_id, read_only=read_only)
    task = asyncio.create_task(session.run())
    try:
        yield session
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(WAIT_S):
            await body()

    asyncio.run(limited())


@pytest.mark.parametrize("name", ["p1-leaf1", "p1-spine1", "nic1"])
def test_what_is_written_is_read_back_and_the_second_run_writes_nothing(target: Target, name: str) -> None:
    async def body() -> None:
        desired = plan(INTENT)[name]
        async with opened(target, name) as session:
            await session.up()
            first = await session.reconcile(desired)
            assert len(first) == len(desired) - 1  # all but the drain table's default action, which is as it should be
            assert await session.installed() == desired
            assert len(await session.reconcile(desired)) == 0
        async with opened(target, name) as session:
            await session.up()
            assert len(await session.reconcile(desired)) == 0, "another session finds it as it was"

    run(body)


def test_every_change_of_health_is_written_and_taken_back(target: Target) -> None:
    async def body() -> None:
        planner = Planner(INTENT)
        views = [
            FabricView(drained=frozenset({"p1-spine1"})),
            FabricView(down=frozenset({"p1-leaf2:3-p1-spine1:2"})),
            FabricView(dead=frozenset({"p1-spine2"}), gray=frozenset({"nic1:2-p1-leaf1:1"})),
            FabricView(),
        ]
        async with opened(target) as session:
            await session.up()
            await session.reconcile(planner.plan(FabricView())["p1-leaf1"])
            for view in views:
                desired = planner.plan(view)["p1-leaf1"]
                await session.write(difference(desired, await session.installed()))
                assert await session.installed() == desired
            assert len(await session.reconcile([])) > 0
            assert {entity.key[0] for entity in await session.installed()} == {"table"}, (
                "only the default of drain is left"
            )

    run(body)


def test_what_a_device_lacks_is_said_when_the_session_comes_up(target: Target) -> None:
    async def body() -> None:
        async with opened(target) as session:
            lacking = (await session.up()).lacking
            registers = Capability("read of registers", False, "state is known by digests and counters only")
            assert lacking == ((registers,) if target.kind == "bmv2" else ())

    run(body)


def test_a_session_comes_back_after_the_device_was_away_and_the_pipeline_is_pushed_again(target: Target) -> None:
    async def body() -> None:
        desired = plan(INTENT)["p1-leaf1"]
        async with opened(target) as session:
            await session.up()
            await session.reconcile(desired)
            await asyncio.to_thread(target.stop)
            assert isinstance(await session.notices.get(), SessionDown)
            assert session.state is SessionState.CLOSED
            with pytest.raises(NotPrimary, match="no session with unix:"):
                await session.installed()
            await asyncio.to_thread(target.start)
            await session.up()
            assert len(await session.reconcile(desired)) == len(desired) - 1

    run(body)


def test_access_list_and_postcards_are_read_back_as_they_were_written(target: Target) -> None:
    async def body() -> None:
        desired = plan(load_intent(EXAMPLES / "single-tier.yaml"))["p1"]
        assert {"acl", "postcard_profile"} <= {one.table for one in desired if isinstance(one, TableEntry)}
        async with opened(target) as session:
            await session.up()
            await session.reconcile(desired)
            assert await session.installed() == desired
            await session.reconcile(plan(INTENT)["p1-leaf1"])
            assert await session.installed() == plan(INTENT)["p1-leaf1"], "the clone session is gone again"

    run(body)


def test_an_election_id_that_is_taken_does_not_keep_the_session_from_coming_up(target: Target) -> None:
    """As after a crash: the switch still holds the dead controller's stream with the same id."""

    async def body() -> None:
        async with opened(target) as ghost:
            await ghost.up()
            async with opened(target) as session:
                await session.up(SessionState.BACKUP)
                with pytest.raises(NotPrimary, match="another controller is primary"):
                    await session.reconcile(plan(INTENT)["p1-leaf1"])
                assert await session.installed() == await ghost.installed()
            async with opened(target) as heir:
                await heir.up(SessionState.BACKUP)
                ghost_gone = asyncio.create_task(heir.up())
                await asyncio.sleep(0)
                assert not ghost_gone.done()
                assert ghost._switch is not None
                await ghost._switch._p4client.close()  # type: ignore[union-attr]
                await ghost_gone

    run(body)


def test_the_higher_election_id_takes_the_device_and_the_other_changes_nothing(target: Target) -> None:
    async def body() -> None:
        async with opened(target, election_id=5) as low:
            await low.up()
            async with opened(target, election_id=20) as high:
                await high.up()
                await low.up(SessionState.BACKUP)
                with pytest.raises(NotPrimary):
                    await low.write(difference(plan(INTENT)["p1-leaf1"], []))
                await high.reconcile(plan(INTENT)["p1-leaf1"])
            await low.up()
            assert len(await low.reconcile(plan(INTENT)["p1-leaf1"])) == 0

    run(body)


def test_a_read_only_session_pushes_no_pipeline(soft: Target) -> None:
    async def body() -> None:
        async with opened(soft, read_only=True) as session:
            await session.up()
            with pytest.raises((fy.P4ClientError, ValueError)):
                await session.reconcile(plan(INTENT)["p1-leaf1"])

    run(body)


def test_a_refused_update_is_named_with_the_devices_answer(soft: Target) -> None:
    async def body() -> None:
        async with opened(soft) as session:
            await session.up()
            await session.reconcile(plan(INTENT)["p1-leaf1"])
            again = entry("station", {"dst_addr": INTENT.device_by_name["p1-leaf1"].mac}, "accept_station")
            with pytest.raises(WriteFailed) as failure:
                await session.write(difference([again], []))
            (refused,) = failure.value.refused
            assert refused.startswith("+ station[dst_addr=0x2505000000b] -> accept_station(): ALREADY_EXISTS")

    run(body)


def test_a_pipeline_that_the_device_refuses_is_told(soft: Target, tmp_path: Path) -> None:
    async def body() -> None:
        good = program_for(Role.LEAF)
        bad = tmp_path / "bad.json"
        bad.write_text("{}")
        session = Session(device(soft), Program(good.p4info, bad))
        task = asyncio.create_task(session.run())
        while not session.last_error:
            await asyncio.sleep(0.01)
        assert session.last_error.startswith("INVALID_ARGUMENT")
        assert session.state is SessionState.CLOSED
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(body)


def test_the_pipeline_is_pushed_only_where_another_one_runs(soft: Target) -> None:
    async def body() -> None:
        async with opened(soft) as session:
            await session.up()
            await session.reconcile(plan(INTENT)["p1-leaf1"])
            before = await session.installed()
        async with opened(soft) as session:
            await session.up()
            assert await session.installed() == before
        async with opened(soft, "nic1") as session:
            await session.up()
            assert {entity.key[0] for entity in await session.installed()} == {"table"}

    run(body)
