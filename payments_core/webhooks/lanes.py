"""How many deliveries each endpoint may have under way: few at first, more where it is quick.

An endpoint that hangs holds what it has until its attempts time out, so it must not have much.
One that was quick may have more each time; one that was slow has half of it, down to one. Those
that are not known to be quick share half of what a process can send at once, and those known to
be slow a quarter: the others always have the rest. Pure, but for what it remembers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import attrs

SLOW_S = 2.0
"""An attempt that takes longer makes its endpoint a slow one."""

MOST_SLOTS = 32
MOST_REMEMBERED = 10_000

Pace = Literal["new", "quick", "slow"]


@attrs.define
class _Lane:
    pace: Pace = "new"
    slots: int = 1
    under_way: int = 0


class Lanes(Mapping[str, int]):
    """The endpoints' lanes as one process knows them; as a mapping, the slots of those it knows."""

    def __init__(self, at_once: int) -> None:
        """`at_once` is how many attempts the process can have under way."""
        self._at_once = at_once
        self._lanes: dict[str, _Lane] = {}
        self._busy: dict[str, _Lane] = {}

    def __getitem__(self, lane: str) -> int:
        known = self._lanes[lane]
        if known.pace == "slow" and self._are_full("slow"):
            return 0
        if known.pace == "new":
            raise KeyError(lane)
        return known.slots

    def __iter__(self) -> Iterator[str]:
        return (name for name, lane in self._lanes.items() if lane.pace != "new")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def slots_of_new(self, waiting: int) -> int:
        """The slots of a lane that is not known, while so many of those wait to begin."""
        return 1 if waiting < self._at_once // 4 else 0

    def may_begin(self, lane: str) -> bool:
        """Whether an attempt of the lane may begin, others being under way."""
        pace = self._lanes[lane].pace if lane in self._lanes else "new"
        return pace == "quick" or not self._are_full(pace)

    def began(self, lane: str) -> None:
        """An attempt is to be made."""
        known = self._lanes.pop(lane, None) or _Lane()
        self._lanes[lane] = self._busy[lane] = known  # the last used comes last
        known.under_way += 1
        self._forget()

    def ended(self, lane: str, took_s: float) -> None:
        """The attempt ended."""
        known = self._lanes[lane]
        known.under_way -= 1
        if not known.under_way:
            del self._busy[lane]
        if took_s <= SLOW_S:
            known.pace, known.slots = "quick", min(MOST_SLOTS, known.slots + 1)
        else:
            known.pace, known.slots = "slow", max(1, known.slots // 2)

    def lags(self, lane: str) -> None:
        """An attempt has been under way for longer than it should already."""
        self._lanes[lane].pace = "slow"

    def _are_full(self, pace: Pace) -> bool:
        """Whether lanes of that pace have under way all that they may."""
        slow = new = 0
        for lane in self._busy.values():
            slow += lane.under_way if lane.pace == "slow" else 0
            new += lane.under_way if lane.pace == "new" else 0
        if pace == "slow" and slow >= max(1, self._at_once // 4):
            return True
        return slow + new >= max(1, self._at_once // 2)

    def _forget(self) -> None:
        if len(self._lanes) > MOST_REMEMBERED:
            oldest = next(name for name in self._lanes if name not in self._busy)
            del self._lanes[oldest]
