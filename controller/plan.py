"""What every device should hold: pure functions of the intent and of the fabric's health."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from controller import tables
from controller.entities import Entity
from controller.groups import Forwarding, GroupPlanner, mask
from controller.model import Device, Intent, Role
from controller.paths import FabricView

__all__ = ["FabricView", "Planner", "plan"]


class Planner:
    """Plans an intent again and again, for views that differ; what does not depend on the view is kept."""

    def __init__(self, intent: Intent) -> None:
        self.intent = intent
        self._groups = GroupPlanner(intent)
        self._fixed = {device.name: _fixed(intent, device) for device in intent.devices}
        self._built: dict[str, tuple[Forwarding, frozenset[Entity]]] = {}
        self._made: dict[tuple[object, ...], frozenset[Entity]] = {}

    def plan(self, view: FabricView) -> dict[str, frozenset[Entity]]:
        """The entities of every device by name. Equal intents and views give equal plans."""
        forwarding = self._groups.plan(view)
        return {device.name: self._device(device, forwarding[device.name]) for device in self.intent.devices}

    def forwarding(self, view: FabricView) -> dict[str, Forwarding]:
        """The groups and routes of every device, before they are entities."""
        return self._groups.plan(view)

    def _device(self, device: Device, forwarding: Forwarding) -> frozenset[Entity]:
        kept = self._built.get(device.name)
        if kept is not None and kept[0] == forwarding:
            return kept[1]
        watched = mask(link.at(device.name).port for link in self.intent.links_of[device.name])
        entities = set(self._fixed[device.name])
        for host, group_id in forwarding.routes:
            entities |= self._make(tables.route, (host.name, group_id), host, group_id)
        for host, ports in forwarding.avoided:
            entities |= self._make(tables.reach, (host.name, ports), host, ports)
        entities.add(tables.drain(forwarding))
        for group in forwarding.groups:
            entities.add(tables.group(group, watched))
            entities |= self._make(tables.spray_mode, (device.role, group.group_id), self.intent, device, group)
        self._built[device.name] = (forwarding, frozenset(entities))
        return self._built[device.name][1]

    def _make(
        self, table: Callable[..., Iterable[Entity]], key: tuple[object, ...], *args: object
    ) -> frozenset[Entity]:
        """The table's entities, made once: they are the same on every device and in every view that needs them."""
        made = self._made.get((table, *key))
        if made is None:
            made = self._made[table, *key] = frozenset(table(*args))
        return made


def _fixed(intent: Intent, device: Device) -> frozenset[Entity]:
    if device.role is Role.NIC:
        own = [*tables.answer(intent, device), *tables.host(intent, device)]
    else:
        own = [
            *tables.source_guard(intent, device),
            *tables.acl(intent, device),
            *tables.postcard_profile(intent, device),
        ]
    return frozenset(
        [
            *own,
            *tables.health_events(),
            *tables.health_profile(intent),
            *tables.traffic_class(intent),
            *tables.port(intent, device),
            *tables.link(intent, device),
            *tables.punt_meter(intent, device),
            *tables.station(device),
            *tables.neighbor(intent, device),
            *tables.ecn_profile(intent, device),
        ]
    )


def plan(intent: Intent, view: FabricView | None = None) -> dict[str, frozenset[Entity]]:
    """The entities of every device by name."""
    return Planner(intent).plan(view or FabricView())
