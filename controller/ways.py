"""The ways from every device to every destination, healthy and as they are: what forwarding is planned from.

Destinations that are attached to the same switches share their ways, but for those whose own links are not well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from controller.model import MAX_PORT, Intent, Link
from controller.paths import NOWHERE, FabricView, Hops, Paths, Use

FIRST_REMOTE_GROUP = MAX_PORT + 1
Entries = tuple[str, ...]
Steps = tuple[tuple[str, Use], ...]  # entries, and how welcome the link from each to the destination is


@dataclass(frozen=True)
class Static:
    """What depends on the intent alone."""

    intent: Intent

    @cached_property
    def healthy(self) -> Paths:
        return Paths(self.intent)

    @cached_property
    def destinations(self) -> tuple[str, ...]:
        """Devices with hosts, in the file's order."""
        return tuple(device.name for device in self.intent.devices if self.intent.hosts_of[device.name])

    @cached_property
    def targets(self) -> dict[Entries, dict[str, Hops]]:
        """The healthy ways to each set of entry switches."""
        targets: dict[Entries, dict[str, Hops]] = {}
        for destination in self.destinations:
            entries = self.target(destination)
            if entries not in targets:
                targets[entries] = self.healthy.towards(dict.fromkeys(entries, Use.GOOD))
        return targets

    @cached_property
    def shared_id(self) -> dict[Entries, int]:
        """The group of each set of entries, where nothing sets a destination apart."""
        return {entries: FIRST_REMOTE_GROUP + i for i, entries in enumerate(self.targets)}

    @cached_property
    def own_id(self) -> dict[str, int]:
        """The group of a destination that is reached otherwise than others behind the same switches."""
        first = FIRST_REMOTE_GROUP + len(self.targets)
        return {destination: first + i for i, destination in enumerate(self.destinations)}

    @cached_property
    def _entries(self) -> dict[str, Entries]:
        return {name: tuple(sorted(self.healthy.entries(name))) for name in self.destinations}

    def target(self, destination: str) -> Entries:
        """The switches that a destination is attached to."""
        return self._entries[destination]

    @cached_property
    def attached(self) -> dict[str, dict[str, frozenset[int]]]:
        """For each device, its ports to each destination that is attached to it."""
        found: dict[str, dict[str, frozenset[int]]] = {device.name: {} for device in self.intent.devices}
        for destination in self.destinations:
            for link in self.intent.links_of[destination]:
                if link.lower.device == destination:
                    ports = found[link.upper.device]
                    ports[destination] = ports.get(destination, frozenset()) | {link.upper.port}
        return found


@dataclass(frozen=True)
class Ways:
    """The ways under one view."""

    static: Static
    view: FabricView

    @cached_property
    def paths(self) -> Paths:
        """The graph under the view."""
        return Paths(self.static.intent, self.view)

    @cached_property
    def steps(self) -> dict[str, Steps]:
        """The last steps to every destination."""
        found = {name: tuple(sorted(self.paths.entries(name).items())) for name in self.static.destinations}
        kept = {steps: steps for steps in found.values()}
        return {name: kept[steps] for name, steps in found.items()}

    @cached_property
    def alike(self) -> dict[Steps, list[str]]:
        """Destinations that are reached alike."""
        found: dict[Steps, list[str]] = {}
        for name, steps in self.steps.items():
            found.setdefault(steps, []).append(name)
        return found

    @cached_property
    def _known(self) -> dict[Steps, dict[str, Hops]]:
        return {}

    def towards(self, steps: Steps) -> dict[str, Hops]:
        """The ways of every device to these last steps."""
        if steps not in self._known:
            self._known[steps] = self.paths.towards(dict(steps))
        return self._known[steps]

    def shared(self, steps: Steps) -> Steps:
        """The same entries, all well."""
        return tuple((entry, Use.GOOD) for entry, _ in steps)

    def beyond(self, device: str, steps: Steps) -> Use:
        """How welcome the way is from a device on, that may be an entry itself."""
        return min(self.towards(steps).get(device, NOWHERE).use, dict(steps).get(device, Use.DOWN))

    def skipped(self, link: Link) -> bool:
        """Whether the data plane at the link's ends leaves it out by itself."""
        return self.paths.use[link.name] is Use.DOWN and not self.view.is_drained(link)
