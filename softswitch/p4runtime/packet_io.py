"""Packets to and from the controller: the header with the metadata, in front of the packet."""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4r

from softswitch.p4runtime import bytestrings
from softswitch.p4runtime.errors import invalid, unknown_id
from softswitch.p4runtime.p4info import P4Index, PacketField


class PacketIo:
    """The packet_out and packet_in headers of one P4Info. Without such a header, packets go as they are."""

    def __init__(self, index: P4Index) -> None:
        self._out = index.headers.get("packet_out", ())
        self._in = index.headers.get("packet_in", ())
        self._out_ids = {f.id: f for f in self._out}
        self._out_bits = _padded_bits(self._out)
        self._in_bits = _padded_bits(self._in)

    def packet_out(self, message: p4r.PacketOut) -> bytes:
        """The packet as the program sees it. Raises P4Error INVALID_ARGUMENT.

        A padding field (named ``_pad...``) may be left out, every other field must be there.
        """
        values: dict[int, int] = {}
        for metadata in message.metadata:
            field = self._out_ids.get(metadata.metadata_id)
            if field is None:
                raise unknown_id("packet-out metadata", metadata.metadata_id, self._out)
            if field.id in values:
                raise invalid(f"packet-out metadata {field.name} is there twice")
            values[field.id] = bytestrings.decode(metadata.value, field.width, f"packet-out metadata {field.name}")
        header = bits = 0
        for field in self._out:
            if field.id not in values and not _is_padding(field):
                raise invalid(f"packet-out metadata {field.name} ({field.id}) is missing")
            header = header << field.bits | values.get(field.id, 0)
            bits += field.bits
        header <<= self._out_bits - bits
        return header.to_bytes(self._out_bits // 8, "big") + message.payload

    def packet_in(self, packet: bytes) -> p4r.PacketIn | None:
        """The message of a packet that the program sent to the CPU port; None if it is shorter than its header."""
        length = self._in_bits // 8
        if len(packet) < length:
            return None
        header, position = int.from_bytes(packet[:length], "big"), self._in_bits
        message = p4r.PacketIn(payload=packet[length:])
        for field in self._in:
            position -= field.bits
            value = header >> position & ((1 << field.bits) - 1)
            message.metadata.add(metadata_id=field.id, value=bytestrings.encode(value))
        return message


def _padded_bits(fields: Sequence[PacketField]) -> int:
    return (sum(f.bits for f in fields) + 7) // 8 * 8


def _is_padding(field: PacketField) -> bool:
    return field.name.startswith(("_pad", "pad", "_padding"))
