"""What is known of links, ports, planes and devices: values that the tracker of health keeps and the memory stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from controller.events import Kind
from controller.model import Link, PortRef

UNKNOWN, UP, DEGRADED, DOWN, PROBATION = range(5)  # link_state_t
STATE_NAMES = ("unknown", "up", "degraded", "down", "probation")
MISCABLED = 3  # of link_reason_t
REASONS = ("", "heard again", "heartbeats missed", "miscabled", "loss", "clean", "the neighbour's view changed",
           "no carrier")  # fmt: skip


class LinkState(StrEnum):
    """What the controller makes of a link."""

    UNKNOWN = "unknown"  # nobody told yet; the data plane decides
    UP = "up"
    GRAY = "gray"  # loses packets
    DOWN = "down"
    MISCABLED = "miscabled"
    PROBATION = "probation"  # was down; the data plane watches
    HELD = "held"  # was down; well, but not for long enough


NOT_CARRYING = (LinkState.DOWN, LinkState.MISCABLED)
LINK_EVENTS: Mapping[LinkState, Kind] = {
    LinkState.UNKNOWN: "link-unknown", LinkState.UP: "link-up", LinkState.GRAY: "link-gray",
    LinkState.DOWN: "link-down", LinkState.MISCABLED: "link-miscabled", LinkState.PROBATION: "link-probation",
    LinkState.HELD: "link-held",
}  # fmt: skip


class PortState(StrEnum):
    """Whether a port has a carrier."""

    UNKNOWN = "unknown"  # not told yet, or no session
    UP = "up"
    DOWN = "down"


class PlaneState(StrEnum):
    """A plane at a glance."""

    UP = "up"
    DEGRADED = "degraded"  # some of it does not work
    DOWN = "down"  # nothing crosses it
    DRAINED = "drained"


PLANE_EVENTS: Mapping[PlaneState, Kind] = {
    PlaneState.UP: "plane-up", PlaneState.DEGRADED: "plane-degraded", PlaneState.DOWN: "plane-down",
    PlaneState.DRAINED: "plane-drained",
}  # fmt: skip


class DeviceState(StrEnum):
    """A device as far as its data plane and its session tell."""

    UP = "up"
    UNMANAGED = "unmanaged"  # no session; it forwards on, as far as its neighbours see
    DEAD = "dead"  # no session, and no neighbour hears it


@dataclass(frozen=True, slots=True)
class EndReport:
    """What one end last said of its link."""

    state: int = UNKNOWN
    reason: int = 0
    rx_state: int = UNKNOWN
    neighbor_rx_state: int = UNKNOWN
    heard: tuple[int, int] = (0, 0)  # device id and port
    lost: int = 0
    expected: int = 0
    flaps: int = 0


@dataclass(slots=True)
class LinkRecord:
    """A link with the reports of both ends and the controller's memory of it."""

    link: Link
    ends: dict[PortRef, EndReport]
    state: LinkState = LinkState.UNKNOWN
    was_down: bool = False
    held_until: float = 0.0  # monotonic seconds
    flaps: int = 0
    last_failure: float = float("-inf")  # monotonic seconds

    def well(self) -> bool:
        """Whether nothing is known against the link. A link that has only just appeared is."""
        return self.state in (LinkState.UP, LinkState.UNKNOWN) or self.is_new()

    def is_new(self) -> bool:
        """Whether it is in probation for no other reason than that it has just appeared."""
        return self.state is LinkState.PROBATION and not self.was_down

    def loss(self) -> tuple[float, float]:
        """Share of packets lost upwards and downwards in the last reported windows."""
        up, down = self.ends[self.link.upper], self.ends[self.link.lower]
        return _share(up), _share(down)


def _share(report: EndReport) -> float:
    lossy = report.rx_state == DEGRADED and report.expected
    return report.lost / report.expected if lossy else 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """How often a link has failed, last when, and until when it is held (monotonic seconds)."""

    link: str
    flaps: int
    time: float
    held_until: float
    was_down: bool


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a controller passes on to the next one."""

    ends: tuple[tuple[PortRef, EndReport], ...] = ()
    failures: tuple[Failure, ...] = ()
    down_ports: tuple[PortRef, ...] = ()
    drained: tuple[str, ...] = ()
