"""The health of links, devices and planes, and whose word it rests on.

The data plane judges each link from both ends, tells of every change, and tells again after a window without one. What
the controller adds is memory (a link that flaps is used again only after it was well for a while), conclusions that no
single device can draw (a device is dead when every neighbour says so; a plane is down when nothing crosses it) and what
the operator wants (drained). A lost session is no evidence of anything but itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from controller.device import LinkDigest, PortDigest, SessionDown, SessionState, SessionUp
from controller.events import EventLog
from controller.model import Intent, PortRef, Role
from controller.paths import FabricView
from controller.records import (
    DEGRADED,
    DOWN,
    LINK_EVENTS,
    MISCABLED,
    NOT_CARRYING,
    PLANE_EVENTS,
    PROBATION,
    REASONS,
    STATE_NAMES,
    UNKNOWN,
    DeviceState,
    EndReport,
    Failure,
    LinkRecord,
    LinkState,
    PlaneState,
    PortState,
    Remembered,
)


@dataclass
class HealthTracker:
    """Takes notices in, gives :class:`FabricView` out; writes the diary."""

    intent: Intent
    log: EventLog
    clock: Callable[[], float]
    links: dict[str, LinkRecord] = field(default_factory=dict)
    sessions: dict[str, SessionState] = field(default_factory=dict)
    ports: dict[PortRef, PortState] = field(default_factory=dict)  # those that lead to hosts
    drained: set[str] = field(default_factory=set)
    version: int = 0  # how many reports and drains there have been
    _devices: dict[str, DeviceState] = field(default_factory=dict)
    _planes: dict[str, PlaneState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for link in self.intent.links:
            self.links[link.name] = LinkRecord(link, {link.lower: EndReport(), link.upper: EndReport()})
        for device in self.intent.devices:
            self.sessions[device.name] = SessionState.CLOSED
            self._devices[device.name] = DeviceState.UNMANAGED
        for plane in self.intent.planes:
            self._planes[plane] = PlaneState.UP
        self.ports = {host.attached: PortState.UNKNOWN for host in self.intent.hosts}

    # ---- evidence in -----------------------------------------------------------------------------------------------

    def on_digest(self, digest: LinkDigest) -> None:
        """A device tells of one of its links."""
        end = PortRef(digest.device, digest.values["port"])
        link = self.intent.link_at.get(end)
        if link is None:
            self.log.add("stray-report", str(end), "a port without a link reports")
            return
        values = digest.values
        report = EndReport(
            state=values["state"],
            reason=values["reason"],
            rx_state=values["rx_state"],
            neighbor_rx_state=values["neighbor_rx_state"],
            heard=(values["device"], values["device_port"]),
            lost=values["lost"],
            expected=values["expected"],
            flaps=values["flaps"],
        )
        self._report(end, report)

    def on_port(self, digest: PortDigest) -> None:
        """A device tells whether a port has a carrier; it matters of those that lead to hosts."""
        end = PortRef(digest.device, digest.values["port"])
        state = PortState.DOWN if digest.values["is_down"] else PortState.UP
        before = self.ports.get(end)
        if before in (None, state):
            return
        self.ports[end] = state
        self.version += 1
        if state is PortState.DOWN:
            self.log.add("port-down", str(end), f"no carrier; it leads to {self.intent.leads_to(end)}")
        elif before is PortState.DOWN:
            self.log.add("port-up", str(end), f"carrier; it leads to {self.intent.leads_to(end)}")

    def on_silence(self, end: PortRef) -> None:
        """By its counters, nothing arrives at this end of a link although heartbeats are due."""
        link = self.intent.link_at[end]
        if self.links[link.name].ends[end].state != DOWN:
            self._report(end, EndReport(state=DOWN, reason=2, rx_state=DOWN))

    def on_session(self, notice: SessionUp | SessionDown) -> None:
        """A session came, changed or went."""
        before = self.sessions[notice.device]
        if isinstance(notice, SessionUp):
            self.sessions[notice.device] = notice.state
            if notice.state is SessionState.BACKUP:
                self.log.add("not-primary", notice.device, "another controller is primary", "nothing is written")
            elif before is not SessionState.PRIMARY:
                lacking = ", ".join(capability.name for capability in notice.lacking)
                self.log.add("session-up", notice.device, f"it lacks: {lacking}" if lacking else "")
        else:
            self.sessions[notice.device] = SessionState.CLOSED
            self.log.add("session-lost", notice.device, notice.why, "unmanaged; it is believed to forward on")
        self._conclude()

    def drain(self, name: str) -> None:
        """An operator wants a plane, a device or a link empty. Raises UnknownName."""
        self.intent.links_named(name)
        if name not in self.drained:
            self.drained.add(name)
            self.version += 1
            self.log.add("drained", name, "operator", "traffic moves to other ways where there are any")
            self._conclude()

    def undrain(self, name: str) -> None:
        """An operator gives it back. Raises UnknownName."""
        self.intent.links_named(name)
        if name in self.drained:
            self.drained.discard(name)
            self.version += 1
            self.log.add("undrained", name, "operator", "traffic may come back")
            self._conclude()

    def tick(self) -> bool:
        """Time has passed. Returns whether a link is held no longer."""
        now, released = self.clock(), False
        for record in self.links.values():
            if record.state is LinkState.HELD and record.held_until <= now:
                record.state, record.was_down, released = LinkState.UP, False, True
                self.log.add("link-restored", record.link.name, f"well since its {_ordinal(record.flaps)} failure")
        if released:
            self._conclude()
        return released

    def next_release(self) -> float | None:
        """When the next held link may be used again, monotonic seconds."""
        times = [record.held_until for record in self.links.values() if record.state is LinkState.HELD]
        return min(times, default=None)

    # ---- conclusions -----------------------------------------------------------------------------------------------

    def _report(self, end: PortRef, report: EndReport) -> None:
        record = self.links[self.intent.link_at[end].name]
        before = record.ends[end]
        if report == before:
            return
        record.ends[end] = report
        self.version += 1
        was, record.state = record.state, self._judge(record)
        if record.state is not was:
            self._changed(record, was, end)
        elif record.state in NOT_CARRYING and report.state == DOWN != before.state:
            self.log.add("link-confirmed", record.link.name, self.evidence(record))
        elif record.state is LinkState.GRAY and report.lost != before.lost:
            self.log.add("link-gray", record.link.name, self.evidence(record))
        self._conclude()

    def _judge(self, record: LinkRecord) -> LinkState:
        reports = record.ends.values()
        states = {report.state for report in reports}
        if DOWN in states:
            miscabled = any(report.state == DOWN and report.reason == MISCABLED for report in reports)
            return LinkState.MISCABLED if miscabled else LinkState.DOWN
        if PROBATION in states:
            return LinkState.PROBATION
        if DEGRADED in states:
            return LinkState.GRAY
        if states == {UNKNOWN}:
            return LinkState.UNKNOWN
        return LinkState.HELD if record.was_down and record.held_until > self.clock() else LinkState.UP

    def _changed(self, record: LinkRecord, was: LinkState, end: PortRef) -> None:
        now, damping = self.clock(), self.intent.damping
        bad = (LinkState.DOWN, LinkState.MISCABLED)
        if record.state in bad and was not in bad:
            record.flaps = record.flaps + 1 if now - record.last_failure < damping.forget_ms / 1000 else 1
            record.last_failure, record.was_down = now, True
        if record.was_down and record.state in (LinkState.UP, LinkState.HELD):
            hold_ms = min(damping.hold_ms << min(max(record.flaps - 1, 0), 20), damping.max_hold_ms)
            record.held_until = now + hold_ms / 1000
            record.state = LinkState.HELD if hold_ms else LinkState.UP
            record.was_down = bool(hold_ms)
        reaction = {
            LinkState.DOWN: "skipped by the switches; taken out of groups elsewhere",
            LinkState.MISCABLED: "not used",
            LinkState.GRAY: "used only where nothing better leads",
            LinkState.HELD: f"used again in {record.held_until - now:.3g} s",
        }.get(record.state, "")
        self.log.add(LINK_EVENTS[record.state], record.link.name, self.evidence(record), reaction)

    def evidence(self, record: LinkRecord) -> str:
        """What both ends say."""
        ids = {device.device_id: device.name for device in self.intent.devices}
        words = []
        for end, report in record.ends.items():
            if report.state == UNKNOWN:
                words.append(f"{end} has not told")
                continue
            said = f"{end} says {STATE_NAMES[report.state]}"
            if REASONS[report.reason]:
                said += f" ({REASONS[report.reason]}"
                if report.reason == MISCABLED:
                    said += f": heard {ids.get(report.heard[0], f'device {report.heard[0]}')}:{report.heard[1]}"
                said += ")"
            if report.rx_state == DEGRADED and report.expected:
                said += f", lost {report.lost} of {report.expected} towards it"
            words.append(said)
        return "; ".join(words)

    def _conclude(self) -> None:
        for name, state in self._devices.items():
            now = self._device_state(name)
            if now is not state:
                self._devices[name] = now
                if now is DeviceState.DEAD:
                    count = len(self.intent.links_of[name])
                    self.log.add("device-dead", name, f"no session, and none of {count} neighbours hears it")
                elif state is DeviceState.DEAD:
                    self.log.add("device-back", name, f"it is {now}")
        for plane, before in self._planes.items():
            after = self._plane_state(plane)
            if after is not before:
                self._planes[plane] = after
                bad = [record.link.name for record in self._of_plane(plane) if not record.well()]
                self.log.add(PLANE_EVENTS[after], plane, f"{len(bad)} of {len(self._of_plane(plane))} links not well")

    def _device_state(self, name: str) -> DeviceState:
        if self.sessions[name] is not SessionState.CLOSED:
            return DeviceState.UP
        links = self.intent.links_of[name]
        heard_by_none = all(self.links[link.name].ends[link.other(name)].state == DOWN for link in links)
        return DeviceState.DEAD if links and heard_by_none else DeviceState.UNMANAGED

    def _of_plane(self, plane: str) -> list[LinkRecord]:
        return [record for record in self.links.values() if record.link.plane == plane]

    def _plane_state(self, plane: str) -> PlaneState:
        if plane in self.drained:
            return PlaneState.DRAINED
        records = self._of_plane(plane)
        nics = [r for r in records if self.intent.device_by_name[r.link.lower.device].role is Role.NIC]
        reaching = {r.link.lower.device for r in nics if r.state not in NOT_CARRYING}
        if nics and len(reaching) < 2 <= len({r.link.lower.device for r in nics}):
            return PlaneState.DOWN
        return PlaneState.DEGRADED if not all(r.well() for r in records) else PlaneState.UP

    # ---- views out -------------------------------------------------------------------------------------------------

    def device_state(self, name: str) -> DeviceState:
        """What is known of a device."""
        return self._devices[name]

    def plane_state(self, name: str) -> PlaneState:
        """What is known of a plane."""
        return self._planes[name]

    def link_state(self, name: str) -> LinkState:
        """What is known of a link now: nothing where neither end has a session, whatever they told before."""
        record = self.links[name]
        if all(self.sessions[end.device] is SessionState.CLOSED for end in record.ends):
            return LinkState.UNKNOWN
        return record.state

    def port_state(self, end: PortRef) -> PortState:
        """What is known now of a port that leads to a host."""
        return PortState.UNKNOWN if self.sessions[end.device] is SessionState.CLOSED else self.ports[end]

    def down_ports(self) -> tuple[PortRef, ...]:
        """The ports that lead to hosts and were last told to have no carrier."""
        return tuple(sorted(end for end, state in self.ports.items() if state is PortState.DOWN))

    def view(self) -> FabricView:
        """What the planner needs to know."""
        by_state = {state: set[str]() for state in LinkState}
        for name, record in self.links.items():
            by_state[record.state].add(name)
            if record.is_new():
                by_state[LinkState.PROBATION].discard(name)  # as good as any
        return FabricView(
            down=frozenset(by_state[LinkState.DOWN] | by_state[LinkState.MISCABLED]),
            gray=frozenset(by_state[LinkState.GRAY] | by_state[LinkState.HELD] | by_state[LinkState.PROBATION]),
            dead=frozenset(name for name, state in self._devices.items() if state is DeviceState.DEAD),
            drained=frozenset(self.drained),
        )

    # ---- memory ----------------------------------------------------------------------------------------------------

    def remember(self) -> Remembered:
        """What is known of ends of links that have told, of links that have failed, of ports, and what is drained."""
        return Remembered(
            ends=tuple(
                (end, report)
                for record in self.links.values()
                for end, report in record.ends.items()
                if report.state != UNKNOWN
            ),
            failures=tuple(
                Failure(name, record.flaps, record.last_failure, record.held_until, record.was_down)
                for name, record in self.links.items()
                if record.flaps
            ),
            down_ports=self.down_ports(),
            drained=tuple(sorted(self.drained)),
        )

    def restore(self, remembered: Remembered) -> None:
        """Take up what a controller before this one knew; names that the intent has no more are forgotten."""
        for failure in remembered.failures:
            if failure.link in self.links:
                record = self.links[failure.link]
                record.flaps, record.last_failure = failure.flaps, failure.time
                record.held_until, record.was_down = failure.held_until, failure.was_down
        for end, report in remembered.ends:
            link = self.intent.link_at.get(end)
            if link is not None:
                record = self.links[link.name]
                record.ends[end] = report
                record.state = self._judge(record)
        names = self.links.keys() | self._devices.keys() | set(self.intent.planes)
        self.drained |= set(remembered.drained) & names
        for end in self.ports:
            self.ports[end] = PortState.DOWN if end in remembered.down_ports else PortState.UNKNOWN
        self._devices = {name: self._device_state(name) for name in self._devices}
        self._planes = {plane: self._plane_state(plane) for plane in self._planes}


def _ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
