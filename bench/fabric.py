"""fabric.p4 doing what the L3 router does, and more: spraying over eight planes and marking ECN."""

from __future__ import annotations

from bench import router as r
from bench.memory import acl_match
from controller.groups import mask
from softswitch import bmv2_json
from softswitch.device import Call, Device, Lpm, MatchValue, Ternary

PROGRAM = r.ROOT / "p4src/build/fabric.json"
PLANES = 8  # ports of each group, from OUT_PORT on
FABRIC_ROLE, ETHERTYPE_IPV4 = 2, 0x0800
CLASS, QUEUE, DSCP = 2, 3, 0  # traffic class, its queue, and what its packets carry
ECN_THRESHOLD = 100  # packets


def load(router: r.Router) -> Device:
    """A device in virtual time with the router's routes, which lead to groups of PLANES ports, and its access list."""
    device = Device(bmv2_json.load(PROGRAM), cpu_port=510, priorities=8)

    def add(table: str, match: dict[str, MatchValue], action: str, *values: int, priority: int = 0) -> None:
        action = f"{table.rpartition('.')[0]}.{action}"
        device.table_add(table, match, Call(action, values), priority=priority)

    ports = range(r.OUT_PORT, r.OUT_PORT + PLANES)
    add("FabricIngress.classify.traffic_class", {"dscp": DSCP}, "set_class", CLASS, QUEUE)
    add("FabricIngress.route.station", {"dst_addr": r.ROUTER_MAC}, "accept_station")
    for port in (r.IN_PORT, *ports):
        add("FabricIngress.port_role.port", {"port": port}, "set_role", FABRIC_ROLE)
        add("FabricIngress.rewrite.neighbor", {"port": port}, "set_macs", r.ROUTER_MAC, r.NEXTHOP_MAC + port)
        add("FabricEgress.mark_ecn.ecn_profile", {"port": port, "traffic_class": CLASS}, "step", ECN_THRESHOLD, 0)
    for group in range(1, r.NEXTHOPS + 1):
        add("FabricIngress.choose_member.group", {"group_id": group}, "set_members", mask(ports), 0)
        key: dict[str, MatchValue] = {"group_id": group, "traffic_class": CLASS}
        add("FabricIngress.choose_member.spray_mode", key, "spray_rr")
    for at, rule in enumerate(router.acl):
        add("FabricIngress.protect.acl", _match(rule), "acl_permit", priority=len(router.acl) - at)
    for prefix, group in router.routes:
        match: dict[str, MatchValue] = {"dst_addr": Lpm(prefix.value, prefix.length)}
        add("FabricIngress.route.route_ipv4", match, "ipv4_via", group)
    return device


def _match(rule: r.AclRule) -> dict[str, MatchValue]:
    """The rule as a key of the fabric's table, from the router's."""
    key, any_ = acl_match(rule), Ternary(0, 0)
    return {
        "port": key["ingress_port"],
        "ether_type": Ternary(ETHERTYPE_IPV4, 0xFFFF),
        "ipv4_src_addr": key["src_addr"],
        "ipv4_dst_addr": key["dst_addr"],
        "ipv6_src_addr": any_,
        "ipv6_dst_addr": any_,
        "protocol": key["protocol"],
        "l4_src_port": key["l4_src_port"],
        "l4_dst_port": key["l4_dst_port"],
    }
