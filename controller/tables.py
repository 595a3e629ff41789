"""The tables of fabric.p4 and smartnic.p4, control by control: what the controller puts into them.

One function for each table, named after it. Names and numbers are those of ``p4src/shared`` and of the P4Info.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.entities import CloneSession, Digest, Entity, Lpm, Match, Meter, TableEntry, Ternary, entry
from controller.groups import FLOW_GROUP, Forwarding, Group, mask
from controller.model import AclRule, Device, EcnMode, Host, Intent, Role, Spray, TrafficClass

PORT_ROLE_HOST = 1
PORT_ROLE_FABRIC = 2
HEALTH_PROFILE = 1
LINK_EVENT, PORT_EVENT = "link_event_t", "port_event_t"
PUNT_METER = "punt_meter"
SHARE_ONE = 65536  # of share_t
CPU_PORT = 510
POSTCARD_SESSION = 500
ETHER_TYPES = {4: 0x0800, 6: 0x86DD}  # by IP version
FIRST_RULE = 1_000_000  # the priority of the first access rule, higher than that of the next

# Low ranks are written first and deleted last: what an entry leads to is there before it.
_ORDER = (
    ("health_profile", "neighbor", "ecn_profile", "postcard_profile", "traffic_class", "answer_ipv4", "answer_ipv6"),
    ("link", "spray_mode", "drain", "reach_ipv4", "reach_ipv6"),
    ("group",),
    ("acl", "route_ipv4", "route_ipv6", "source_guard_ipv4", "source_guard_ipv6", "host_ipv4", "host_ipv6"),
    ("station",),
    ("port",),
)
_RANKS = {table: number for number, tables in enumerate(_ORDER) for table in tables}
_LAST = len(_ORDER)


def rank(entity: Entity) -> int:
    """The order of writing: entities first that are not reached by packets yet, the way in last."""
    return _RANKS.get(entity.table, _LAST) if isinstance(entity, TableEntry) else 0


# ---- port_role, link_health ------------------------------------------------------------------------------------------


def port(intent: Intent, device: Device) -> Iterator[Entity]:
    """The ports in use, and what they lead to."""
    for host in intent.hosts_of[device.name]:
        yield entry("port", {"port": host.attached.port}, "set_role", {"role": PORT_ROLE_HOST})
    for link in intent.links_of[device.name]:
        leads_to = intent.device_by_name[link.other(device.name).device].role
        role = PORT_ROLE_HOST if leads_to is Role.NIC else PORT_ROLE_FABRIC  # a NIC's links lead to switches
        yield entry("port", {"port": link.at(device.name).port}, "set_role", {"role": role})


def link(intent: Intent, device: Device) -> Iterator[Entity]:
    """Who must be heard on each link."""
    for one in intent.links_of[device.name]:
        other = one.other(device.name)
        yield entry(
            "link",
            {"port": one.at(device.name).port},
            "watch_link",
            {
                "own_device_id": device.device_id,
                "neighbor_device_id": intent.device_by_name[other.device].device_id,
                "neighbor_port": other.port,
                "profile": HEALTH_PROFILE,
            },
        )


def health_profile(intent: Intent) -> Iterator[Entity]:
    """When a link is down, degraded or well; a timer within half a period of the one before says nothing."""
    health = intent.health
    yield entry(
        "health_profile",
        {"profile_id": HEALTH_PROFILE},
        "set_health",
        {
            "missed_heartbeats": health.missed_limit,
            "min_timer_interval": health.heartbeat_us * 1000 // intent.tick_ns // 2,
            "probation_heartbeats": health.probation,
            "probation_max_doublings": health.max_doublings,
            "forgive_heartbeats": health.forgive,
            "window_heartbeats": health.window,
            "window_min_lost": health.min_lost,
            "window_loss_ppm": health.loss_ppm,
            "avoid_degraded_links": health.avoid_degraded,
        },
    )


def health_events() -> list[Digest]:
    """Every change of a link or a port is told at once. Duplicates are held back for as long as acknowledgements may
    take.
    """
    return [
        Digest(name, max_list_size=1, max_timeout_ns=0, ack_timeout_ns=100_000_000) for name in (LINK_EVENT, PORT_EVENT)
    ]


# ---- classify, protect -----------------------------------------------------------------------------------------------


def traffic_class(intent: Intent) -> Iterator[Entity]:
    """DSCP to class and queue; what is not listed is the program's default class."""
    for one in intent.classes:
        for dscp in one.dscp:
            yield _set_class(one, dscp)
    named = {dscp for one in intent.classes for dscp in one.dscp}
    for one in intent.classes:
        if not one.dscp and one.queue:  # the program's default is queue 0
            for dscp in sorted(set(range(64)) - named):
                yield _set_class(one, dscp)


def _set_class(one: TrafficClass, dscp: int) -> TableEntry:
    return entry("traffic_class", {"dscp": dscp}, "set_class", {"traffic_class": one.number, "queue": one.queue})


def source_guard(intent: Intent, device: Device) -> Iterator[Entity]:
    """The source addresses allowed on ports of role HOST."""
    allowed = [(host.attached.port, host) for host in intent.hosts_of[device.name]]
    for one in intent.links_of[device.name]:
        other = one.other(device.name).device
        if intent.device_by_name[other].role is Role.NIC:
            allowed += [(one.at(device.name).port, host) for host in intent.hosts_of[other]]
    for number, host in allowed:
        for table, _, prefix in _prefixes(host, "source_guard_ipv4", "source_guard_ipv6"):
            yield entry(table, {"port": number, "src_addr": prefix}, "accept_source")


def acl(intent: Intent, device: Device) -> Iterator[Entity]:
    """The access list, first rule first; a rule with ports is an entry for each of those that the device has."""
    for number, rule in enumerate(intent.acl):
        match = dict(_rule_match(rule))
        ports = [{"port": Ternary(end.port, 0x1FF)} for end in rule.ports if end.device == device.name]
        for port in ports if rule.ports else [{}]:
            yield entry("acl", match | port, f"acl_{rule.action}", priority=FIRST_RULE - number)


def _rule_match(rule: AclRule) -> Iterator[tuple[str, Match]]:
    ether_type = rule.ether_type
    for name, prefix in (("src_addr", rule.src_addr), ("dst_addr", rule.dst_addr)):
        if prefix is not None:
            ether_type = ETHER_TYPES[prefix.version]
            if prefix.prefixlen:
                address = Ternary(int(prefix.network_address), int(prefix.netmask))
                yield f"ipv{prefix.version}_{name}", address
    exact = {
        "ether_type": (ether_type, 0xFFFF), "protocol": (rule.protocol, 0xFF),
        "l4_src_port": (rule.l4_src_port, 0xFFFF), "l4_dst_port": (rule.l4_dst_port, 0xFFFF),
    }  # fmt: skip
    for name, (value, mask_of) in exact.items():
        if value is not None:
            yield name, Ternary(value, mask_of)


def punt_meter(intent: Intent, device: Device) -> Iterator[Entity]:
    """How many packets each port in use may send to the controller; there is no yellow."""
    rate, burst = intent.protection.to_controller_pps, intent.protection.to_controller_burst
    ports = {host.attached.port for host in intent.hosts_of[device.name]}
    ports |= {one.at(device.name).port for one in intent.links_of[device.name]}
    for number in sorted(ports):
        yield Meter(PUNT_METER, number, rate, burst, rate, burst)


# ---- route, choose_member, rewrite -----------------------------------------------------------------------------------


def station(device: Device) -> Iterator[Entity]:
    """The device's own address."""
    yield entry("station", {"dst_addr": device.mac}, "accept_station")


def route(host: Host, group_id: int) -> Iterator[Entity]:
    """A host route for every address of the host."""
    for table, family, prefix in _prefixes(host, "route_ipv4", "route_ipv6"):
        yield entry(table, {"dst_addr": prefix}, f"{family}_via", {"group_id": group_id})


def drain(forwarding: Forwarding) -> Entity:
    """Ports that take nothing new; the table has nothing but its default action."""
    return TableEntry("drain", (), "drain_ports", (("ports", mask(forwarding.drained)),), default=True)


def group(one: Group, watched: int) -> TableEntry:
    """A group; ``watched`` is the set of ports with heartbeats."""
    ports = mask(one.ports)
    params = {"ports": ports, "watched_ports": ports & watched}
    return entry("group", {"group_id": one.group_id}, "set_members", params)


def spray_mode(intent: Intent, device: Device, one: Group) -> Iterator[Entity]:
    """How the group chooses, by class."""
    if device.role is Role.NIC and one.group_id == FLOW_GROUP:
        return  # the program's default keeps flows together
    for traffic in intent.classes:
        params: dict[str, int] = {}
        match traffic.spray:
            case Spray.ECMP:
                params = {"hash_rotation": 8 * device.role.tier}  # tiers must not choose alike
            case Spray.ADAPTIVE:
                params = {"sample_max_age": traffic.max_age_us * 1000 // intent.tick_ns}
        key = {"group_id": one.group_id, "traffic_class": traffic.number}
        yield entry("spray_mode", key, str(traffic.spray), params)


def neighbor(intent: Intent, device: Device) -> Iterator[Entity]:
    """Who is at the other end of each port."""
    ends = [(host.attached.port, host.mac) for host in intent.hosts_of[device.name]]
    for one in intent.links_of[device.name]:
        ends.append((one.at(device.name).port, intent.device_by_name[one.other(device.name).device].mac))
    for number, mac in ends:
        yield entry("neighbor", {"port": number}, "set_macs", {"src_addr": device.mac, "dst_addr": mac})


# ---- answer_neighbors, host_guard (smartnic.p4) ----------------------------------------------------------------------


def answer(intent: Intent, device: Device) -> Iterator[Entity]:
    """The NIC answers its host for every address but the host's own."""
    for host in intent.hosts_of[device.name]:
        for table, _, prefix in _prefixes(host, "answer_ipv4", "answer_ipv6"):
            yield entry(table, {}, "answer", {"mac_addr": device.mac})
            yield entry(table, {"target_addr": prefix}, "keep_silent")


def reach(host: Host, ports: frozenset[int]) -> Iterator[Entity]:
    """Planes that do not lead to the host, or not as well as others."""
    for table, _, prefix in _prefixes(host, "reach_ipv4", "reach_ipv6"):
        yield entry(table, {"dst_addr": prefix}, "avoid_ports", {"ports": mask(ports)})


def host(intent: Intent, device: Device) -> Iterator[Entity]:
    """The addresses that leave the NIC as sources and are delivered by it."""
    for one in intent.hosts_of[device.name]:
        for table, family, prefix in _prefixes(one, "host_ipv4", "host_ipv6"):
            yield entry(table, {"addr": prefix.value}, f"own_{family}", {"port": one.attached.port})


# ---- mark_ecn --------------------------------------------------------------------------------------------------------


def ecn_profile(intent: Intent, device: Device) -> Iterator[Entity]:
    """When each port marks each class."""
    profiles = {profile.name: profile for profile in intent.ecn_profiles}
    ports = [host.attached.port for host in intent.hosts_of[device.name]]
    ports += [one.at(device.name).port for one in intent.links_of[device.name]]
    for traffic in intent.classes:
        profile = profiles.get(traffic.ecn)
        if profile is None or profile.mode is EcnMode.NONE:
            continue
        for number in ports:
            key = {"port": number, "traffic_class": traffic.number}
            if profile.mode is EcnMode.RAMP:
                share = round(profile.pmax * SHARE_ONE)
                params = {"k_min": profile.kmin, "k_max": profile.kmax, "p_max": share, "drop_not_ect": 0}
                yield entry("ecn_profile", key, "ramp", params)
            else:
                drop = int(profile.mode is EcnMode.EARLY_DROP)
                yield entry("ecn_profile", key, "step", {"threshold": profile.kmin, "drop_not_ect": drop})


# ---- postcard --------------------------------------------------------------------------------------------------------


def postcard_profile(intent: Intent, device: Device) -> Iterator[Entity]:
    """Which queues send postcards, and that the copies go to the controller."""
    ports = [host.attached.port for host in intent.hosts_of[device.name]]
    ports += [one.at(device.name).port for one in intent.links_of[device.name]]
    if intent.postcards:
        yield CloneSession(POSTCARD_SESSION, (CPU_PORT,))
    for one in intent.postcards:
        params = {"threshold": one.threshold, "share": round(one.share * SHARE_ONE)}
        for number in ports:
            yield entry(
                "postcard_profile", {"port": number, "traffic_class": one.traffic_class}, "send_postcards", params
            )


def _prefixes(host: Host, ipv4_table: str, ipv6_table: str) -> Iterator[tuple[str, str, Lpm]]:
    if host.ipv4 is not None:
        yield ipv4_table, "ipv4", Lpm(int(host.ipv4.ip), 32)
    if host.ipv6 is not None:
        yield ipv6_table, "ipv6", Lpm(int(host.ipv6.ip), 128)
