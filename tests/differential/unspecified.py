"""What may differ: what depends on clocks, random numbers and fields of headers that are not valid.

Further devices run beside, with other values of these. Where their outcome is another, nobody says what is right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

Outputs = Sequence[tuple[int, bytes]]
VALUES = (  # of SW_UNSPECIFIED, in runtime/v1model.h, beside 0
    (1 << 64) - 1,  # every bit is another
    0x9E3779B97F4A7C15,  # every field is another, for programs that compare fields
)


def differ(theirs: Outputs, ours: Outputs, others: Sequence[Outputs], *, ordered: bool = True) -> bool:
    """Whether outputs differ in what is specified. There is no order between ports, which BMv2 serves with different
    threads, and none within a port unless ``ordered``."""
    mine, beside = by_port(ours), [by_port(other) for other in others]
    if any(_lengths(other) != _lengths(mine) for other in beside):
        return False
    reference = by_port(theirs)
    if {port: len(packets) for port, packets in reference.items()} != {port: len(p) for port, p in mine.items()}:
        return True
    return any(
        not _equal(reference[port], list(zip(packets, *(other[port] for other in beside), strict=True)), ordered)
        for port, packets in mine.items()
    )


def _equal(theirs: Sequence[bytes], ours: list[tuple[bytes, ...]], ordered: bool) -> bool:
    for packet in theirs:
        at = next((i for i, variants in enumerate(ours[:1] if ordered else ours) if same(packet, *variants)), None)
        if at is None:
            return False
        del ours[at]
    return True


def same(theirs: bytes, ours: bytes, *others: bytes) -> bool:
    """Whether all bits are equal that are equal in ``ours`` and ``others``, which have one length."""
    a, b = int.from_bytes(theirs, "big"), int.from_bytes(ours, "big")
    unspecified = 0
    for other in others:
        unspecified |= b ^ int.from_bytes(other, "big")
    return len(theirs) == len(ours) and (a ^ b) & ~unspecified == 0


def by_port(outputs: Outputs) -> Mapping[int, list[bytes]]:
    """The packets of each port, in order."""
    ports: dict[int, list[bytes]] = defaultdict(list)
    for port, data in outputs:
        ports[port].append(data)
    return ports


def _lengths(ports: Mapping[int, list[bytes]]) -> Mapping[int, list[int]]:
    return {port: [len(data) for data in packets] for port, packets in ports.items()}
