"""Reads devices without a controller running, and changes nothing: no pipeline, no write, no primary in the way."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

import finsy as fy
from finsy.grpcutil import GRPCStatusCode

from controller import report
from controller.device import DeviceSession, Notice, NotPrimary, SessionState, reason_of
from controller.entities import Entity
from controller.events import EventLog
from controller.health import HealthTracker
from controller.model import Intent
from controller.paths import FabricView
from controller.plan import Planner
from controller.programs import program_for
from controller.reconcile import difference
from controller.records import Remembered


@dataclass
class Installed:
    """What the devices hold, and what they should.

    ``errors`` says why a device could not be read, ``blank`` of which of those that were there is nothing to read.
    """

    view: FabricView
    desired: dict[str, frozenset[Entity]]
    entities: dict[str, frozenset[Entity]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    blank: dict[str, str] = field(default_factory=dict)

    def answer(self) -> dict[str, Any]:
        """The differences, as the controller's socket answers ``diff``."""
        updates = {
            name: report.updates(difference(desired, self.entities[name]))
            for name, desired in self.desired.items()
            if name in self.entities
        }
        return {"updates": updates, "errors": self.errors}


def remembered_view(intent: Intent, remembered: Remembered) -> FabricView:
    """The fabric's health as a controller knew it last."""
    tracker = HealthTracker(intent, EventLog(), time.monotonic)
    tracker.restore(remembered)
    return tracker.view()


async def read_devices(intent: Intent, view: FabricView, timeout_s: float) -> Installed:
    """Read every device. One without a pipeline holds nothing; one that does not answer in time is an error."""
    result = Installed(view, Planner(intent).plan(view))

    async def read_one(name: str) -> None:
        device = intent.device_by_name[name]
        up = asyncio.Event()

        def notify(_: Notice) -> None:
            up.set()

        session = DeviceSession(device, program_for(device.role), notify, read_only=True)
        task = asyncio.create_task(session.run())
        try:
            async with asyncio.timeout(timeout_s):
                while session.state is SessionState.CLOSED:
                    await up.wait()
                    up.clear()
                result.entities[name] = await session.installed()
        except TimeoutError:
            why = session.last_error or f"no answer within {timeout_s:g} s"
            result.errors[name] = f"{why}; does it run, and listen on {device.address}?"
        except fy.P4ClientError as error:
            if error.code is GRPCStatusCode.FAILED_PRECONDITION:  # no pipeline yet, so nothing in it
                result.entities[name] = frozenset()
                result.blank[name] = "it has no pipeline; 'polyplane up' gives it one"
            else:
                result.errors[name] = reason_of(error)
        except (NotPrimary, LookupError, ValueError) as error:
            result.errors[name] = reason_of(error)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    await asyncio.gather(*(read_one(device.name) for device in intent.devices))
    return result
