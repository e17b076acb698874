"""Charts: the outcomes of the newest records, over time.

A chart shows a bounded number of the newest records, so that its cost does not depend on their
total; it says how many and since when. The bars are an SVG of rectangles, and the same figures are
a table, for screen readers and for people who want the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from payments_core.clock import DAY, HOUR, MINUTE, Instant, format_iso
from payments_core_http.dashboard.words import Tone

MIN_BARS = 12
"""Fewer bars would not show any time."""

MAX_BARS = 30
WIDTH, HEIGHT = 600, 160
_GAP = 2
_STEPS: Mapping[int, str] = {
    MINUTE: "minute",
    5 * MINUTE: "5 minutes",
    15 * MINUTE: "15 minutes",
    HOUR: "hour",
    6 * HOUR: "6 hours",
    DAY: "day",
    7 * DAY: "7 days",
    28 * DAY: "28 days",
}


@attrs.frozen
class Rectangle:
    """A part of a bar, in the units of the SVG."""

    tone: Tone
    x: int
    y: int
    width: int
    height: int


@attrs.frozen
class Bar:
    """The outcomes of one step, which begins at `start`."""

    start: Instant
    counts: Mapping[Tone, int]

    @property
    def total(self) -> int:
        """The total of all tones."""
        return sum(self.counts.values())


@attrs.frozen
class Chart:
    """Bars of equal steps, the oldest first; `names` has the meaning of each tone."""

    names: Mapping[Tone, str]
    step: str
    bars: Sequence[Bar]
    is_cut: bool
    """Whether there are older records, which were not read."""

    @property
    def highest(self) -> int:
        """The total of the highest bar; at least 1."""
        return max([1, *(bar.total for bar in self.bars)])

    @property
    def marks(self) -> Sequence[int]:
        """The counts that its axis names, from the top: the highest, its half if whole, and 0."""
        half = [] if self.highest % 2 else [self.highest // 2]
        return [self.highest, *half, 0]

    @property
    def ticks(self) -> Sequence[str]:
        """The times that its axis names: the first bar's, the middle one's, and now."""
        named = [format_iso(self.bars[index].start) for index in (0, len(self.bars) // 2)]
        is_daily = self.bars[1].start - self.bars[0].start >= DAY
        return [*(one[:10] if is_daily else one[5:16].replace("T", " ") for one in named), "now"]

    @property
    def total(self) -> int:
        """How many records it shows."""
        return sum(bar.total for bar in self.bars)

    @property
    def totals(self) -> Mapping[Tone, int]:
        """How many of each tone."""
        return {tone: sum(bar.counts[tone] for bar in self.bars) for tone in self.names}

    @property
    def rectangles(self) -> Sequence[Rectangle]:
        """The bars as they are drawn, from the ground up."""
        found = []
        width = WIDTH // max(1, len(self.bars))
        for index, bar in enumerate(self.bars):
            below = 0
            for tone in self.names:
                # From one edge to the next, so that rounding leaves no gap between parts.
                top = (below + bar.counts[tone]) * HEIGHT // self.highest
                ground = below * HEIGHT // self.highest
                below += bar.counts[tone]
                if top > ground:
                    found.append(
                        Rectangle(tone, index * width, HEIGHT - top, width - _GAP, top - ground)
                    )
        return found


def make_chart(
    names: Mapping[Tone, str],
    points: Iterable[tuple[Instant, Tone]],
    *,
    now: Instant,
    is_cut: bool,
) -> Chart | None:
    """The chart of records, each with its time and its tone; None if there are none.

    It covers the time from the oldest record until now, in the shortest step that needs no more
    than MAX_BARS, and has at least MIN_BARS. Records older than MAX_BARS of the longest step are
    left out.
    """
    found = list(points)
    if not found:
        return None
    oldest = min(at for at, _ in found)
    newest = max(now, *(at for at, _ in found))
    step = next((one for one in _STEPS if newest // one - oldest // one < MAX_BARS), 28 * DAY)
    last = newest // step
    is_cut = is_cut or oldest // step <= last - MAX_BARS
    first = min(max(oldest // step, last - MAX_BARS + 1), last - MIN_BARS + 1)
    counts: list[dict[Tone, int]] = [dict.fromkeys(names, 0) for _ in range(first, last + 1)]
    for at, tone in found:
        if at // step >= first:
            counts[at // step - first][tone] += 1
    bars = [Bar((first + index) * step, one) for index, one in enumerate(counts)]
    return Chart(names, _STEPS[step], bars, is_cut)
