"""Which ports lead where, in the fabric as it is now.

Traffic goes up towards the spine and then down, never up again, so no choice of ports can make a loop. A destination is
a device that hosts are attached to; it is reached by its entries, the switches that it is attached to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from controller.model import Device, Intent, Link, Role


class Use(IntEnum):
    """How welcome a link is; a worse one is used only where no better one leads to the destination."""

    GOOD = 0
    GRAY = 1  # loses packets, or was down a moment ago
    DRAINED = 2  # an operator wants it empty
    DOWN = 3  # never used


LEVELS = (Use.GOOD, Use.GRAY, Use.DRAINED)


@dataclass(frozen=True, slots=True)
class FabricView:
    """What the planner knows of the fabric's health: names of links, devices and planes."""

    down: frozenset[str] = frozenset()  # links
    gray: frozenset[str] = frozenset()  # links
    dead: frozenset[str] = frozenset()  # devices
    drained: frozenset[str] = frozenset()  # links, devices, planes

    def use(self, link: Link) -> Use:
        """How welcome the link is."""
        if link.name in self.down or self.dead & {link.lower.device, link.upper.device}:
            return Use.DOWN
        if self.is_drained(link):
            return Use.DRAINED
        return Use.GRAY if link.name in self.gray else Use.GOOD

    def is_drained(self, link: Link) -> bool:
        """Whether the link, an end of it or its plane is drained."""
        return not self.drained.isdisjoint((link.name, link.plane, link.lower.device, link.upper.device))


@dataclass(frozen=True, slots=True)
class Hops:
    """Ports of one device towards one destination: ``use`` is that of the worst link on the way by these ports."""

    ports: frozenset[int]
    use: Use


NOWHERE = Hops(frozenset(), Use.DOWN)


@dataclass(frozen=True)
class Paths:
    """The fabric's up-down graph under a view. Computes once, answers often."""

    intent: Intent
    view: FabricView = field(default_factory=FabricView)

    @cached_property
    def use(self) -> dict[str, Use]:
        """How welcome each link is, by name."""
        return {link.name: self.view.use(link) for link in self.intent.links}

    @cached_property
    def _worst(self) -> Use:
        """The worst use of a link that is used at all."""
        return max((use for use in self.use.values() if use is not Use.DOWN), default=Use.GOOD)

    @cached_property
    def _ups(self) -> dict[str, tuple[Link, ...]]:
        return self._sides(lower=True)

    @cached_property
    def _downs(self) -> dict[str, tuple[Link, ...]]:
        return self._sides(lower=False)

    def _sides(self, *, lower: bool) -> dict[str, tuple[Link, ...]]:
        sides: dict[str, list[Link]] = {device.name: [] for device in self.intent.devices}
        for link in self.intent.links:
            sides[(link.lower if lower else link.upper).device].append(link)
        return {name: tuple(links) for name, links in sides.items()}

    @cached_property
    def _by_tier(self) -> tuple[Device, ...]:
        return tuple(sorted(self.intent.devices, key=lambda device: (device.role.tier, device.name)))

    def entries(self, destination: str) -> dict[str, Use]:
        """The switches by which ``destination`` is reached, and how welcome that last step is."""
        if self.intent.device_by_name[destination].role is not Role.NIC:
            return {destination: Use.GOOD}
        entries: dict[str, Use] = {}
        for link in self._ups[destination]:
            switch = link.upper.device
            entries[switch] = min(self.use[link.name], entries.get(switch, Use.DOWN))
        return entries

    def towards(self, entries: Mapping[str, Use]) -> dict[str, Hops]:
        """For every device that reaches one, the ports that lead to an entry switch other than itself.

        Each device takes the best level at which it reaches an entry at all, and its neighbours do not do worse. An
        entry has hops only for a level better than its own.
        """
        hops: dict[str, Hops] = {}
        for level in LEVELS:
            for name, ports in self._at_level(entries, level).items():
                hops.setdefault(name, Hops(frozenset(ports), level))
            if self._worst <= level and all(use <= level for use in entries.values()):
                break  # the next levels are the same
        return hops

    def _at_level(self, entries: Mapping[str, Use], level: Use) -> dict[str, set[int]]:
        """Ports by device at this level: downwards where that leads there, else upwards."""
        found: dict[str, set[int]] = {}
        leads_down = {name for name, use in entries.items() if use <= level}
        for device in self._by_tier:
            ports = {
                link.upper.port
                for link in self._downs[device.name]
                if link.lower.device in leads_down and self.use[link.name] <= level
            }
            if ports:
                found[device.name] = ports
                leads_down.add(device.name)
        for device in reversed(self._by_tier):
            if device.name in leads_down:
                continue
            ports = {
                link.lower.port
                for link in self._ups[device.name]
                if self.use[link.name] <= level and (link.upper.device in leads_down or link.upper.device in found)
            }
            if ports:
                found[device.name] = ports
        return found
