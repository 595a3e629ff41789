"""Rates and depths of egress queues, on either target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mininet_topos.live import LiveError, Node
from softswitch.control import ControlClient, ControlError

PRIORITIES = 8  # queues of a port; the highest is served first
BMV2_FRAME_BYTES = 1514  # BMv2 counts packets; a rate in bits is one of frames as long as these


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What to change about the queues of a port; None leaves it.

    ``rate_bps`` limits the port on the softswitch, where it is shared by strict priority; BMv2 has only ``rate_pps``, a
    limit of each queue, so there it becomes as many full frames a second. A rate of 0 is no limit.
    """

    rate_bps: int | None = None
    rate_pps: int | None = None
    depth_packets: int | None = None

    @property
    def changes_nothing(self) -> bool:
        return self == NO_SETTINGS


NO_SETTINGS = QueueSettings()


def set_queues(node: Node, port: int, settings: QueueSettings, priority: int | None = None) -> None:
    """Applies the settings to one queue (0..7) of a device's port, or to all of them. Raises LiveError."""
    if port not in node.interfaces or node.is_host:
        raise LiveError(f"{node.name} has no queues at port {port}; its ports are {sorted(node.interfaces)}")
    if priority is not None and not 0 <= priority < PRIORITIES:
        raise LiveError(f"a queue is one of 0..{PRIORITIES - 1}, not {priority}")
    if settings.depth_packets is not None and settings.depth_packets < 1:
        raise LiveError(f"a queue holds at least one packet, not {settings.depth_packets}")
    (_set_softswitch if node.control else _set_bmv2)(node, port, settings, priority)


def _set_softswitch(node: Node, port: int, settings: QueueSettings, priority: int | None) -> None:
    given = {
        "rate_pps": settings.rate_pps,
        "depth_packets": settings.depth_packets,
        "port_rate_bps": settings.rate_bps,
        "priority": priority,
    }
    try:
        with ControlClient(Path(node.control)) as client:
            client.call("queues.set", port=port, **{name: value for name, value in given.items() if value is not None})
    except ControlError as error:
        raise LiveError(f"{node.name}: {error}") from error


def _set_bmv2(node: Node, port: int, settings: QueueSettings, priority: int | None) -> None:
    rate = settings.rate_pps
    if rate is None and settings.rate_bps is not None:
        rate = -(-settings.rate_bps // (8 * BMV2_FRAME_BYTES))
    with node.thrift() as client:
        for queue in range(PRIORITIES) if priority is None else [priority]:
            if rate is not None:
                client.set_queue_rate(port, queue, rate)
            if settings.depth_packets is not None:
                client.set_queue_depth(port, queue, settings.depth_packets)
