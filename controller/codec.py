"""Between canonical entities and finsy's, by the P4Info that a device runs."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Any

import finsy as fy
from finsy.p4schema import P4MatchType

from controller.entities import CloneSession, Digest, Entity, Lpm, Match, Meter, Range, TableEntry, Ternary


class CodecError(ValueError):
    """An entity that the device's P4Info does not know, or that it answered and we do not."""


def encode(entity: Entity, schema: fy.P4Schema) -> Any:
    """finsy's entity. Raises CodecError where the P4Info has no such table, field, action or parameter."""
    match entity:
        case TableEntry():
            return _encode_entry(entity, schema)
        case Digest(name, size, timeout, ack):
            return fy.P4DigestEntry(name, max_list_size=size, max_timeout_ns=timeout, ack_timeout_ns=ack)
        case Meter(name, index, cir, cburst, pir, pburst):
            config = fy.P4MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)
            return fy.P4MeterEntry(name, index=index, config=config)
        case CloneSession(number, ports, length):
            return fy.P4CloneSessionEntry(number, packet_length_bytes=length, replicas=ports)


def check(entity: Entity, schema: fy.P4Schema) -> None:
    """Raises CodecError where the P4Info cannot express the entity."""
    try:
        encode(entity, schema).encode(schema)
    except (ValueError, LookupError) as error:
        raise CodecError(f"{entity}: {error}") from error


def _encode_entry(entity: TableEntry, schema: fy.P4Schema) -> fy.P4TableEntry:
    match = fy.P4TableMatch({name: _encode_match(value) for name, value in entity.match})
    return fy.P4TableEntry(
        entity.table,
        match=match or None,
        action=fy.P4TableAction(entity.action, **dict(entity.params)),
        priority=entity.priority,
        is_default_action=entity.default,
    )


def _encode_match(value: Match) -> int | tuple[int, int]:
    match value:
        case Lpm(number, length):
            return (number, length)
        case Ternary(number, mask):
            return (number, mask)
        case Range(low, high):
            return (low, high)
        case int(number):
            return number


def decode(answer: Any, schema: fy.P4Schema) -> Entity | None:
    """The canonical form of what a device answered; None for what the controller does not manage (const entries)."""
    match answer:
        case fy.P4TableEntry():
            return None if answer.is_const else _decode_entry(answer, schema)
        case fy.P4DigestEntry():
            return Digest(answer.digest_id, answer.max_list_size, answer.max_timeout_ns, answer.ack_timeout_ns)
        case fy.P4MeterEntry(meter_id=name, index=int(index), config=fy.P4MeterConfig() as config):
            return Meter(name, index, config.cir, config.cburst, config.pir, config.pburst)
        case fy.P4MeterEntry():
            return None  # not configured
        case fy.P4CloneSessionEntry():
            ports = sorted(_port(replica) for replica in answer.replicas)
            return CloneSession(answer.session_id, tuple(ports), answer.packet_length_bytes)
    raise CodecError(f"the device answered {type(answer).__name__}, which the controller does not know")


def _decode_entry(answer: fy.P4TableEntry, schema: fy.P4Schema) -> TableEntry:
    if not isinstance(answer.action, fy.P4TableAction):
        raise CodecError(f"table {answer.table_id} answered an entry without a direct action")
    fields = schema.tables[answer.table_id].match_fields
    match: list[tuple[str, Match]] = []
    for name, value in (answer.match or {}).items():
        decoded = _decode_match(fields[name].match_type, value)
        match.append((name, decoded))
    params = tuple(sorted((name, _number(value)) for name, value in answer.action.args.items()))
    match.sort(key=lambda field: field[0])
    return TableEntry(
        answer.table_id, tuple(match), answer.action.name, params, answer.priority, answer.is_default_action
    )


def _decode_match(kind: Any, value: Any) -> Match:
    match kind:
        case P4MatchType.LPM:
            if isinstance(value, IPv4Network | IPv6Network):
                return Lpm(int(value.network_address), value.prefixlen)
            return Lpm(_number(value[0]), int(value[1]))
        case P4MatchType.TERNARY:
            return Ternary(_number(value[0]), _number(value[1]))
        case P4MatchType.RANGE:
            return Range(_number(value[0]), _number(value[1]))
    return _number(value)


def _port(replica: Any) -> int:
    """Where a copy goes, of a replica in any of finsy's forms."""
    return int(replica) if isinstance(replica, int) else int(replica.port)


def _number(value: Any) -> int:
    """An integer of whatever finsy makes of a field by its @format: numbers, addresses."""
    return int(value)
