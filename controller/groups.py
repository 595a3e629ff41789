"""Groups of egress ports, and which group each destination uses, for every device.

Group ids depend on the intent alone, so a change in the fabric's health modifies groups and leaves routes alone. The
ports that are attached to a destination share the group with the number of the lowest of them; further destinations
share a group as long as they are behind the same switches and equally reachable. A NIC has fixed groups of all its
planes, and leaves out planes by destination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial

from controller.model import Host, Intent, Role
from controller.paths import NOWHERE, FabricView, Hops, Use
from controller.ways import Entries, Static, Steps, Ways

UDP_GROUP, FLOW_GROUP = NIC_GROUPS = (1, 2)  # smartnic.p4: what may be sprayed, and what keeps its order


@dataclass(frozen=True, slots=True)
class Group:
    """Egress ports that lead to the same destinations.

    ``usable`` are those to be used now. ``ports`` are these and those that the data plane leaves out by itself: because
    their own link is down (it knows better than anybody else, and takes them back by itself), or because they are
    drained. So flows that are hashed over ``ports`` stay where they are, but for those of a port that is left out.
    """

    group_id: int
    ports: frozenset[int]
    usable: frozenset[int]


@dataclass(frozen=True, slots=True)
class Forwarding:
    """What a device needs to forward: its groups, the group of each host it can reach, and ports to leave out.

    ``drained`` ports are left out of all groups, ``avoided`` ports of packets to one host. A NIC has no routes: its
    host's own addresses are another table, and everything else goes to the planes.
    """

    groups: tuple[Group, ...]
    routes: tuple[tuple[Host, int], ...] = ()
    drained: frozenset[int] = frozenset()
    avoided: tuple[tuple[Host, frozenset[int]], ...] = ()


class GroupPlanner:
    """Plans the groups of an intent's devices; keeps what does not depend on health."""

    def __init__(self, intent: Intent) -> None:
        self._static = Static(intent)
        # the switches of a plane depend on its own links alone
        self._kept: dict[str, tuple[tuple[tuple[Use, bool], ...], dict[str, Forwarding]]] = {}

    def plan(self, view: FabricView) -> dict[str, Forwarding]:
        """The forwarding of every device under the view."""
        intent, ways = self._static.intent, Ways(self._static, view)
        full = Ways(self._static, replace(view, drained=frozenset())) if view.drained else ways
        planned: dict[str, Forwarding] = {}
        for plane in intent.planes:
            links = (link for link in intent.links if link.plane == plane)
            state = tuple((ways.paths.use[link.name], view.is_drained(link)) for link in links)
            kept = self._kept.get(plane)
            if kept is None or kept[0] != state:
                switches = [device.name for device in intent.devices if device.plane == plane]
                kept = self._kept[plane] = state, {name: _switch(ways, full, name) for name in switches}
            planned |= kept[1]
        choose = cache(partial(_choose, ways))  # NICs that are attached alike choose alike
        planned |= {
            device.name: _nic(ways, device.name, choose) for device in intent.devices if device.role is Role.NIC
        }
        return planned


def _switch(ways: Ways, full: Ways, device: str) -> Forwarding:
    """A switch's forwarding; ``full`` are the ways with nothing drained."""
    forwarding = _Builder(ways, device).build()
    return forwarding if ways is full else _masked(ways, device, _Builder(full, device).build(), forwarding)


def _masked(ways: Ways, device: str, full: Forwarding, planned: Forwarding) -> Forwarding:
    """The same as ``planned``, by leaving drained ports out of the ``full`` groups where that does it."""
    used = {port for group in planned.groups for port in group.usable}
    links = ways.static.intent.links_of[device]
    drained = {link.at(device).port for link in links if ways.paths.use[link.name] is Use.DRAINED} - used
    undrained = {group.group_id: group for group in full.groups}
    groups = []
    for group in planned.groups:
        other = undrained.get(group.group_id)
        same = other is not None and other.usable - drained == group.usable
        groups.append(replace(group, ports=other.ports) if other is not None and same else group)
    return Forwarding(tuple(groups), planned.routes, frozenset(drained))


Attachment = tuple[tuple[int, str, Use], ...]  # a NIC's ports, the switch behind each, how welcome the link to it is


def _attachment(ways: Ways, nic: str) -> Attachment:
    links = ways.static.intent.links_of[nic]
    return tuple((link.lower.port, link.upper.device, ways.paths.use[link.name]) for link in links)


def _nic(ways: Ways, nic: str, choose: Callable[[Attachment, Steps | None], Forwarding]) -> Forwarding:
    """What NICs that are attached alike choose, less what leads to the NIC's own hosts."""
    steps = ways.steps.get(nic)
    alone = steps if steps is not None and ways.alike[steps] == [nic] else None
    choice = choose(_attachment(ways, nic), alone)
    avoided = tuple((host, ports) for host, ports in choice.avoided if host.attached.device != nic)
    return replace(choice, avoided=avoided)


def _choose(ways: Ways, attachment: Attachment, alone: Steps | None) -> Forwarding:
    """All planes, less those that are drained, less for each host those that lead there worse than others.

    Destinations with the steps ``alone`` do not matter.
    """
    own = {port: use for port, _, use in attachment}
    beyond = {
        steps: {port: ways.beyond(switch, steps) for port, switch, _ in attachment}
        for steps in ways.alike
        if steps != alone
    }
    whole = {steps: {port: max(use, there[port]) for port, use in own.items()} for steps, there in beyond.items()}
    best = {steps: min(uses.values(), default=Use.DOWN) for steps, uses in whole.items()}
    used = {port for steps, uses in whole.items() for port in own if uses[port] == best[steps] is not Use.DOWN}
    drained = frozenset(port for port, use in own.items() if use is Use.DRAINED and port not in used)
    choice = frozenset(port for port, use in own.items() if use is not Use.DOWN) - drained  # others are left out anyway
    avoided: dict[Steps, frozenset[int]] = {}
    for steps, there in beyond.items():
        if best[steps] is not Use.DOWN:
            worse = (port for port in choice if whole[steps][port] > best[steps])
            ports = frozenset(port for port in worse if there[port] is not Use.GOOD or own[port] is Use.DRAINED)
            avoided[steps] = ports
    useless = frozenset.intersection(*avoided.values()) if avoided else frozenset[int]()
    hosts_of = ways.static.intent.hosts_of
    return Forwarding(
        groups=tuple(Group(number, frozenset(own), choice - useless) for number in NIC_GROUPS),
        drained=drained | useless,
        avoided=tuple(
            (host, ports - useless)
            for steps, ports in avoided.items()
            if ports - useless
            for name in ways.alike[steps]
            for host in hosts_of[name]
        ),
    )


class _Builder:
    """Builds one switch's forwarding."""

    def __init__(self, ways: Ways, device: str) -> None:
        self.ways, self.static, self.device = ways, ways.static, device
        self.links = {link.at(device).port: link for link in ways.static.intent.links_of[device]}
        self._alike: dict[Steps, Group | None] = {}

    def build(self) -> Forwarding:
        groups: dict[int, Group] = {}
        routes: list[tuple[Host, int]] = []
        for destination in self.static.destinations:
            hosts = self.static.intent.hosts_of[destination]
            if destination == self.device:
                for host in hosts:
                    port = frozenset({host.attached.port})
                    groups[host.attached.port] = Group(host.attached.port, port, port)
                    routes.append((host, host.attached.port))
                continue
            group = self._local(destination) or self._remote(destination)
            if group is not None:
                groups[group.group_id] = group
                routes += [(host, group.group_id) for host in hosts]
        return Forwarding(tuple(groups[number] for number in sorted(groups)), tuple(routes))

    def _local(self, destination: str) -> Group | None:
        """The ports that the destination is attached to, or the way around where that is better."""
        ports = self.static.attached[self.device].get(destination)
        if not ports:
            return None
        use = {port: self.ways.paths.use[self.links[port].name] for port in ports}
        best = min(use.values())
        around = NOWHERE
        if best is not Use.GOOD:
            around = self.ways.towards(self.ways.steps[destination]).get(self.device, NOWHERE)
        if around.use < best:
            return Group(min(ports), around.ports, around.ports)
        usable = frozenset(port for port in ports if use[port] == best is not Use.DOWN)
        return Group(min(ports), usable | {port for port in ports if self.ways.skipped(self.links[port])}, usable)

    def _remote(self, destination: str) -> Group | None:
        steps = self.ways.steps[destination]
        if steps not in self._alike:
            self._alike[steps] = self._towards(self.static.target(destination), steps)
        group = self._alike[steps]
        if group is None or group.group_id:
            return group
        return Group(self.static.own_id[destination], group.ports, group.usable)

    def _towards(self, entries: Entries, steps: Steps) -> Group | None:
        """The entries' group; one numbered 0 where these steps set destinations apart; None in other planes."""
        healthy = self.static.targets[entries].get(self.device)
        if healthy is None:
            return None
        shared = self.ways.shared(steps)
        hops = self.ways.towards(shared).get(self.device, NOWHERE)
        own = self.ways.towards(steps).get(self.device, NOWHERE)
        if own.ports and own.ports != hops.ports:
            return Group(0, own.ports | self._waiting(healthy, own, steps), own.ports)
        return Group(self.static.shared_id[entries], hops.ports | self._waiting(healthy, hops, shared), hops.ports)

    def _waiting(self, healthy: Hops, hops: Hops, steps: Steps) -> set[int]:
        """Ports whose own link is down, and beyond which the way is as good as that of the ports in use."""
        ports: set[int] = set()
        for port in healthy.ports:
            link = self.links[port]
            if self.ways.skipped(link):
                use = self.ways.beyond(link.other(self.device).device, steps)
                if use is not Use.DOWN and use <= hops.use:
                    ports.add(port)
        return ports


def mask(ports: Iterable[int]) -> int:
    """A port set as the data plane keeps it: bit p is port p."""
    return sum(1 << port for port in ports)
