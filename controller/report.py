"""What the controller knows, as JSON values: the answers of its control socket and the rows of the command's tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from controller.device import SessionState
from controller.model import PortRef
from controller.react import Controller
from controller.reconcile import Difference, batches
from controller.records import DeviceState, LinkState, PlaneState
from controller.tables import rank
from controller.telemetry import Snapshot


def status(controller: Controller) -> dict[str, Any]:
    """The fabric at a glance."""
    rows = devices(controller)
    shown = planes(controller)
    well = all(plane["state"] in (PlaneState.UP, PlaneState.DRAINED) for plane in shown) and all(
        controller.tracker.link_state(name) is LinkState.UP or record.link.plane in controller.tracker.drained
        for name, record in controller.tracker.links.items()
    )
    return {
        "fabric": controller.intent.name,
        "healthy": well
        and not controller.tracker.down_ports()
        and all(row["state"] == DeviceState.UP and row["in_sync"] for row in rows),
        "primary": all(controller.is_primary(name) for name in controller.sessions),
        "converged": controller.converged(),
        "planes": shown,
        "devices": rows,
        "links": _count_links(controller, None),
        "down_ports": [
            {"port": str(end), "leads_to": controller.intent.leads_to(end)} for end in controller.tracker.down_ports()
        ],
        "drained": sorted(controller.tracker.drained),
        "last_event": next((event.as_dict() for event in reversed(controller.log.since())), None),
    }


def devices(controller: Controller) -> list[dict[str, Any]]:
    """Devices with their sessions."""
    rows = []
    for device in controller.intent.devices:
        session = controller.sessions[device.name]
        rows.append(
            {
                "device": device.name,
                "role": str(device.role),
                "plane": device.plane,
                "state": str(controller.tracker.device_state(device.name)),
                "session": str(session.state),
                "in_sync": controller.holds.get(device.name) == controller.desired.get(device.name),
                "entries": len(controller.desired.get(device.name, ())),
                "lacks": [capability.name for capability in session.lacking],
                "error": session.last_error if session.state is SessionState.CLOSED else "",
            }
        )
    return rows


def _count_links(controller: Controller, plane: str | None) -> dict[str, int]:
    counts = {str(state): 0 for state in LinkState}
    for name, record in controller.tracker.links.items():
        if plane is None or record.link.plane == plane:
            counts[str(controller.tracker.link_state(name))] += 1
    return counts


def planes(controller: Controller) -> list[dict[str, Any]]:
    """Planes with the traffic that NICs send into them."""
    rows = []
    for plane in controller.intent.planes:
        counts = _count_links(controller, plane)
        rates = [_end_rates(controller, link.upper) for link in controller.intent.links if link.plane == plane]
        rows.append(
            {
                "plane": plane,
                "state": str(controller.tracker.plane_state(plane)),
                "links": sum(counts.values()),
                "links_up": counts["up"],
                "links_not_well": sum(
                    not record.well() for record in controller.tracker.links.values() if record.link.plane == plane
                ),
                "rx_pps": sum(rate["rx_pps"] for rate in rates),
                "rx_bps": sum(rate["rx_bps"] for rate in rates),
                "marked_pps": sum(row["marked_pps"] for row in queues(controller) if row["plane"] == plane),
            }
        )
    return rows


def links(controller: Controller) -> list[dict[str, Any]]:
    """Links with state, evidence, loss by direction and rates at both ends."""
    rows = []
    for name, record in controller.tracker.links.items():
        loss_up, loss_down = record.loss()
        rows.append(
            {
                "link": name,
                "plane": record.link.plane,
                "lower": str(record.link.lower),
                "upper": str(record.link.upper),
                "state": str(controller.tracker.link_state(name)),
                "drained": controller.view.is_drained(record.link),
                "loss_up": loss_up,
                "loss_down": loss_down,
                "up_pps": _end_rates(controller, record.link.upper)["rx_pps"],
                "down_pps": _end_rates(controller, record.link.lower)["rx_pps"],
                "flaps": record.flaps,
                "evidence": controller.tracker.evidence(record),
            }
        )
    return rows


def _end_rates(controller: Controller, end: PortRef) -> dict[str, float]:
    rate = controller.telemetry.port("rx", end)
    return {"rx_pps": rate.pps, "rx_bps": rate.bps}


def ports(controller: Controller) -> list[dict[str, Any]]:
    """Ports in use, what they lead to, and what passed."""
    intent, rows = controller.intent, []
    for device in intent.devices:
        links_at = {link.at(device.name): link.name for link in intent.links_of[device.name]}
        for end in sorted({host.attached for host in intent.hosts_of[device.name]} | links_at.keys()):
            link = links_at.get(end)
            state = controller.tracker.link_state(link) if link else controller.tracker.port_state(end)
            received = controller.telemetry.port("rx", end)
            sent = controller.telemetry.port("forwarded", end)
            rows.append(
                {
                    "device": device.name,
                    "port": end.port,
                    "leads_to": intent.leads_to(end),
                    "state": str(state),
                    "rx_packets": received.packets,
                    "rx_bytes": received.bytes,
                    "rx_pps": received.pps,
                    "rx_bps": received.bps,
                    "forwarded_packets": sent.packets,
                    "forwarded_bytes": sent.bytes,
                    "forwarded_pps": sent.pps,
                    "forwarded_bps": sent.bps,
                }
            )
    return rows


def queues(controller: Controller) -> list[dict[str, Any]]:
    """Egress queues that packets have left: rates, ECN marks, early drops."""
    rows = []
    for device in controller.intent.devices:
        snapshot = controller.telemetry.latest(device.name)
        used = sorted({(port, queue) for _, port, queue in snapshot.queues}) if snapshot else []
        for port, queue in used:
            end = PortRef(device.name, port)
            sent, marked, dropped = (
                controller.telemetry.queue(name, end, queue) for name in ("tx", "marked", "early_drops")
            )
            rows.append(
                {
                    "device": device.name,
                    "plane": device.plane,
                    "port": port,
                    "queue": queue,
                    "classes": [one.name for one in controller.intent.classes if one.queue == queue],
                    "tx_packets": sent.packets,
                    "tx_bytes": sent.bytes,
                    "tx_pps": sent.pps,
                    "tx_bps": sent.bps,
                    "marked_packets": marked.packets,
                    "marked_pps": marked.pps,
                    "early_drops": dropped.packets,
                }
            )
    return rows


def drops(controller: Controller) -> list[dict[str, Any]]:
    """Ingress drops by device and reason."""
    return [
        {"device": device, "reason": reason} | asdict(rate)
        for device in controller.sessions
        for reason, rate in controller.telemetry.drops(device).items()
    ]


def counters(controller: Controller) -> dict[str, dict[str, list[int]]]:
    """Every counter by device and name, ``[packets, bytes]``: what a baseline is made of."""
    found = {}
    for device in controller.sessions:
        snapshot = controller.telemetry.latest(device)
        if snapshot is not None:
            found[device] = flat(snapshot)
    return found


def flat(snapshot: Snapshot) -> dict[str, list[int]]:
    """A snapshot with names such as ``port 2 rx``, ``port 2 queue 1 marked``, ``drops no_route``."""
    names = {f"port {port} {name}": count for (name, port), count in snapshot.ports.items()}
    names |= {f"port {port} queue {queue} {name}": count for (name, port, queue), count in snapshot.queues.items()}
    names |= {f"drops {reason}": count for reason, count in snapshot.drops.items()}
    return {name: list(count) for name, count in sorted(names.items())}


def updates(change: Difference) -> list[str]:
    """What would be written, in the order of writing."""
    return [str(update) for batch in batches(change, rank) for update in batch]
