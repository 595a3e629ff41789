"""Random match fields of every kind, in the canonical form that P4Runtime asks for."""

from __future__ import annotations

import random

from finsy.proto import p4r

from softswitch.p4runtime.p4info import Field, Match
from tests.differential.pool import Pool
from tests.p4runtime_client import exact, lpm, octets, optional, range_, ternary


def field_match(rng: random.Random, pool: Pool, one: Field, care: float) -> p4r.FieldMatch | None:
    """What an entry asks of a field; None where it does not care, if it may: with a probability of 1 - ``care``."""
    full = (1 << one.width) - 1
    value = pool.draw(one.width)
    if one.match is not Match.EXACT and rng.random() >= care:
        return None
    match one.match:
        case Match.EXACT:
            return exact(one.id, value)
        case Match.LPM:
            length = rng.choice((one.width, rng.randint(1, one.width), rng.randint(1, one.width)))
            return lpm(one.id, value & ~(full >> length), length)
        case Match.TERNARY:
            mask = rng.choice((full, full, pool.draw(one.width), _prefix(rng, one.width), rng.getrandbits(one.width)))
            return ternary(one.id, value & mask, mask) if mask else None
        case Match.RANGE:
            low, high = sorted((value, rng.choice((value, pool.draw(one.width), 0, full))))
            if low == 0 and set(octets(high)) == {0xFF}:
                # P4Runtime's way to say nothing; PI takes 0 to 0xff for that in a field of any width
                return None
            return range_(one.id, low, high) if (low, high) != (0, full) else None
        case Match.OPTIONAL:
            return optional(one.id, value)


def _prefix(rng: random.Random, width: int) -> int:
    full = (1 << width) - 1
    return full ^ (full >> rng.randint(0, width))
