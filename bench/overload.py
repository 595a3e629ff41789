"""How many frames a switch carries, and what is left of that when it is offered far more."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from bench.veth import Load

LOSS_MAX = 0.005  # share of frames; "lossless" means no more than that
FIRST_RATE = 10_000  # frames a second
STEPS = 7  # from the first bad rate on: the result is within 1.6 % of the highest good one
TRIES = 3  # runs before frames count as lost: something else may have taken the processor
GROWTH = 1.1  # a generator that offers less than this of what it did, asked for twice as much, is at its limit
OVERLOAD = 10  # times the peak
ROUNDS = 5  # of the peak and the overload in turn: what disturbs one disturbs the other

Offer = Callable[[int], Load]  # frames a second


@dataclass(frozen=True, slots=True)
class Peak:
    """What a switch carries, in frames a second.

    ``lossless`` is the highest rate without loss, ``most`` the highest that came out in any run, ``limit`` what ended
    the search, "switch" or "generator".
    """

    lossless: float
    most: float
    limit: str


@dataclass(frozen=True, slots=True)
class Round:
    """One run at the peak, and one far above it; rates are frames a second."""

    peak: float  # carried when the peak was offered
    offered: float
    carried: float

    @property
    def factor(self) -> float:
        """How far above the peak the offer was."""
        return self.offered / self.peak

    @property
    def kept(self) -> float:
        """The share of the peak that was carried."""
        return self.carried / self.peak


@dataclass(frozen=True, slots=True)
class Overload:
    """What a switch that may use ``share`` of a processor carried when more was offered."""

    share: float
    rounds: tuple[Round, ...]

    @property
    def typical(self) -> Round:
        """The round with the median of what was kept."""
        median = statistics.median_low(one.kept for one in self.rounds)
        return next(one for one in self.rounds if one.kept == median)

    @property
    def worst(self) -> Round:
        """The round in which the least was kept."""
        return min(self.rounds, key=lambda one: one.kept)


def find_peak(offer: Offer) -> Peak:
    """Double the rate until frames get lost, then bisect between the last good rate and the first bad one.

    Zero where even FIRST_RATE is too much.
    """
    good, bad, rate, steps = 0, 0, FIRST_RATE, STEPS
    lossless = most = offered = 0.0
    while steps:
        runs = _runs(offer, rate)
        last = runs[-1]
        most = max(most, *(load.carried for load in runs))
        if last.loss > LOSS_MAX:
            bad = rate
        else:
            good, lossless = rate, max(lossless, last.carried)
            if not bad and last.offered < GROWTH * offered:
                return Peak(lossless, most, "generator")
            offered = last.offered
        steps -= bad > 0
        rate = (good + bad) // 2 if bad else 2 * rate
    return Peak(lossless, most, "switch")


def _runs(offer: Offer, rate: int) -> list[Load]:
    """One run, and more where frames get lost; the last is the one that counts."""
    runs = [offer(rate)]
    while runs[-1].loss > LOSS_MAX and len(runs) < TRIES:
        runs.append(offer(rate))
    return runs


def overload(offer: Offer, peak: Peak, share: float) -> Overload:
    """Offer the peak and OVERLOAD times the peak in turn; the generator may not manage so much."""
    return Overload(share, tuple(_round(offer, round(peak.lossless)) for _ in range(ROUNDS)))


def _round(offer: Offer, rate: int) -> Round:
    peak = offer(rate)
    load = offer(OVERLOAD * rate)
    return Round(peak.carried, load.offered, load.carried)
