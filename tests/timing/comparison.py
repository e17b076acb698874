"""Whether two kinds of request take the same time: the statistics, without any request in them.

Samples come in rounds: each round has one of every kind, in an order of its own. A batch of rounds
has one difference, that of the two kinds' midmeans, the mean of the middle half: one request that
was interrupted does not move it, and what drifts slowly moves both kinds alike. The differences of
the batches are what everything else is made of.

The claim is one of equivalence: two kinds count as alike when the whole confidence interval of
their difference lies within the margin. Too few samples widen the interval, and so refuse the
claim; they can never prove it. That all of several kinds are alike needs no correction for their
number, since a single one that is not refuses the whole.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import attrs

CONFIDENCE = 0.99
POWER = 0.99
"""What a difference as large as the margin must be seen with."""
RESAMPLES = 2_000


@attrs.frozen(kw_only=True)
class Comparison:
    """How one kind differs from the reference, in microseconds."""

    kind: str
    difference_us: float
    low_us: float
    high_us: float
    error_us: float
    slower: float
    """The chance that one sample of the kind is slower than one of the reference (Mann-Whitney)."""
    chance: float
    """How often signs drawn at random make so large a difference (a permutation test)."""

    def is_within(self, margin_us: float) -> bool:
        """Whether the two are alike: no difference in the interval is as large as the margin."""
        return -margin_us < self.low_us and self.high_us < margin_us

    @property
    def smallest_seen_us(self) -> float:
        """The smallest difference from zero that samples like these would show with that power."""
        normal = statistics.NormalDist()
        return self.error_us * (normal.inv_cdf((1 + CONFIDENCE) / 2) + normal.inv_cdf(POWER))


def compared(
    kind: str,
    samples: Sequence[float],
    reference: Sequence[float],
    batch: int,
    id_sequence: random.Random,
) -> Comparison:
    """Two kinds by their samples of the same rounds, in microseconds."""
    differences = batched(samples, reference, batch)
    low, high = interval(differences, id_sequence)
    return Comparison(
        kind=kind,
        difference_us=statistics.fmean(differences),
        low_us=low,
        high_us=high,
        error_us=statistics.stdev(differences) / math.sqrt(len(differences)),
        slower=slower(samples, reference),
        chance=chance(differences, id_sequence),
    )


def batched(samples: Sequence[float], reference: Sequence[float], batch: int) -> list[float]:
    """The difference of each whole batch of rounds."""
    whole = len(samples) // batch * batch
    return [
        midmean(samples[start : start + batch]) - midmean(reference[start : start + batch])
        for start in range(0, whole, batch)
    ]


def midmean(samples: Sequence[float]) -> float:
    """The mean of the middle half."""
    quarter = len(samples) // 4
    return statistics.fmean(sorted(samples)[quarter : len(samples) - quarter])


def interval(differences: Sequence[float], id_sequence: random.Random) -> tuple[float, float]:
    """The confidence interval of the mean difference, by the bootstrap."""
    means = sorted(
        statistics.fmean(id_sequence.choices(differences, k=len(differences)))
        for _ in range(RESAMPLES)
    )
    left = int((1 - CONFIDENCE) / 2 * RESAMPLES)
    return means[left], means[-1 - left]


def slower(samples: Sequence[float], reference: Sequence[float]) -> float:
    """The chance that a sample is larger than one of the reference; a tie counts as half."""
    ranked = sorted([(value, 0) for value in samples] + [(value, 1) for value in reference])
    wins, below, place = 0.0, 0, 0
    while place < len(ranked):
        end = place
        tied = [0, 0]
        while end < len(ranked) and ranked[end][0] == ranked[place][0]:
            tied[ranked[end][1]] += 1
            end += 1
        wins += tied[0] * (below + tied[1] / 2)
        below += tied[1]
        place = end
    return wins / (len(samples) * len(reference))


def chance(differences: Sequence[float], id_sequence: random.Random) -> float:
    """If the two were alike, each batch's difference could as well have the other sign."""
    seen = abs(math.fsum(differences))
    as_large = sum(
        abs(math.fsum(one if id_sequence.random() < 0.5 else -one for one in differences)) >= seen
        for _ in range(RESAMPLES)
    )
    return (as_large + 1) / (RESAMPLES + 1)


def refused_share(
    differences: Sequence[float], margin_us: float, id_sequence: random.Random
) -> float:
    """How often an experiment with such batches would not find the two alike: its power."""
    reach = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    refused = 0
    for _ in range(RESAMPLES):
        again = id_sequence.choices(differences, k=len(differences))
        error = statistics.stdev(again) / math.sqrt(len(again))
        refused += abs(statistics.fmean(again)) + reach * error >= margin_us
    return refused / RESAMPLES
