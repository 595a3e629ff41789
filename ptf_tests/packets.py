"""Packets as bytes, and the numbers that the P4 programs and the tests agree on (p4src/shared)."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable

CPU_PORT, TIMER_PORT = 510, 509
ROUTER_MAC = 0x020000000100
HOST, FABRIC = 1, 2
CONTROL, DATA, OTHER = 1, 2, 3
UNKNOWN, UP, DEGRADED, DOWN, PROBATION = range(5)
HEARD, MISSED, MISCABLED, LOSS, CLEAN, NEIGHBOR, CARRIER = range(1, 8)
REPEAT_TIMERS = 100
NOT_ECT, ECT1, ECT0, CE = range(4)
DSCP = {CONTROL: 48, DATA: 26, OTHER: 0}
ETHERTYPE_HEARTBEAT, ETHERTYPE_TIMER = 0x88B5, 0x88B6
PROTOCOL_TCP = 6
(PORT_UNUSED, PARSER_ERROR, BAD_CHECKSUM, NOT_IP, NOT_OUR_MAC, TTL, SOURCE_GUARD, ACL, NO_ROUTE, ROUTE_DISCARD,
 NO_GROUP, NO_MEMBER, NO_NEIGHBOR, PUNT_RATE, HEARTBEAT_MISPLACED, TIMER_MISPLACED,
 NOT_FOR_HOST) = range(1, 18)  # fmt: skip


def mask(ports: Iterable[int]) -> int:
    return sum(1 << port for port in ports)


def timer(port: int, is_down: bool = False) -> bytes:
    """A timer packet."""
    return (bytes(12) + struct.pack(">HHB", ETHERTYPE_TIMER, port, is_down)).ljust(60, b"\0")


def packet_out(port: int, packet: bytes) -> bytes:
    """What a switch gets from its CPU port: the packet for one of its ports."""
    return (port << 7).to_bytes(2, "big") + packet


def heartbeat(device: int, port: int, sequence: int, tx_packets: int, rx_state: int = UP, time: int = 0) -> bytes:
    head = bytes.fromhex("0180c200000e") + (0x020000000000 | device).to_bytes(6, "big")
    body = struct.pack(">HIHI", ETHERTYPE_HEARTBEAT, device, port, sequence) + time.to_bytes(6, "big")
    return (head + body + struct.pack(">IB", tx_packets, rx_state)).ljust(78, b"\0")


def rx_state_of(packet: bytes) -> int:
    """What a heartbeat says of how well its sender receives."""
    return packet[34]


def time_of(packet: bytes) -> int:
    """When a heartbeat left, in ticks of its sender's clock."""
    return int.from_bytes(packet[24:30], "big")


def neighbor_mac(port: int) -> int:
    """The address of whoever is behind a port."""
    return 0x020000000200 + port


def routed(packet: bytes, port: int) -> bytes:
    """The packet with the MAC addresses of the link behind the port."""
    return neighbor_mac(port).to_bytes(6, "big") + ROUTER_MAC.to_bytes(6, "big") + packet[12:]


def ecn_of(packet: bytes) -> int:
    """The ECN field of an IP packet."""
    return packet[15] & 3 if packet[12:14] == b"\x08\x00" else packet[15] >> 4 & 3


def checksum(data: bytes) -> int:
    """The Internet checksum."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def ipv4(
    src: str = "10.0.0.1", dst: str = "10.1.0.1", *, sport: int = 49152, dport: int = 4791, dscp: int = 26,
    ecn: int = ECT0, ttl: int = 64, payload: bytes = b"payload!", mac: int = ROUTER_MAC, options: bytes = b"",
    fragment: int = 0,
) -> bytes:  # fmt: skip
    """A UDP packet over IPv4 to the router; ``fragment`` has flags and offset."""
    total = 28 + len(options) + len(payload)
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, dscp << 2 | ecn, total, 1, fragment, ttl, 17, 0)
    head += ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed + options
    head = head[:10] + checksum(head).to_bytes(2, "big") + head[12:]
    udp = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
    return mac.to_bytes(6, "big") + bytes.fromhex("0200000000aa0800") + head + udp


def ipv6(
    src: str = "fd00::1", dst: str = "fd00:1::1", *, sport: int = 49152, dport: int = 4791, dscp: int = 26,
    ecn: int = ECT0, hop_limit: int = 64, payload: bytes = b"payload!", mac: int = ROUTER_MAC,
) -> bytes:  # fmt: skip
    """A UDP packet over IPv6 to the router."""
    head = struct.pack(">IHBB", 6 << 28 | (dscp << 2 | ecn) << 20, 8 + len(payload), 17, hop_limit)
    head += ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed
    udp = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
    return mac.to_bytes(6, "big") + bytes.fromhex("0200000000aa86dd") + head + udp


def as_tcp(packet: bytes) -> bytes:
    """The IP packet with another protocol number, and the header checksum that belongs to it."""
    if packet[12:14] != b"\x08\x00":
        return packet[:20] + bytes([PROTOCOL_TCP]) + packet[21:]
    head = packet[14:23] + bytes([PROTOCOL_TCP, 0, 0]) + packet[26:34]
    return packet[:14] + head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + packet[34:]


def nd(kind: int, src: str, dst: str, target: str, flags: int, option: bytes, dst_mac: int, src_mac: int) -> bytes:
    """A neighbor solicitation (135) or advertisement (136)."""
    addresses = ipaddress.IPv6Address(src).packed + ipaddress.IPv6Address(dst).packed
    body = struct.pack(">BBHI", kind, 0, 0, flags) + ipaddress.IPv6Address(target).packed + option
    total = checksum(addresses + struct.pack(">II", len(body), 58) + body)
    body = body[:2] + total.to_bytes(2, "big") + body[4:]
    head = struct.pack(">IHBB", 6 << 28, len(body), 58, 255) + addresses
    return dst_mac.to_bytes(6, "big") + src_mac.to_bytes(6, "big") + b"\x86\xdd" + head + body
