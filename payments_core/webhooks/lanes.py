"""How many deliveries each endpoint may have under way: few at first, more where it is quick.

An endpoint that hangs holds what it has until its attempts time out, so it must not have much.
One that was quick may have more each time; one that was slow has half of it, down to one. Those
that are not known yet share a quarter of what a process can send at once, those known to be slow
a quarter, and both together never have more than three: the quick ones always have the rest.
Where several of those begin to hang together, others wait until they are known to be held up (see
`senders`), and never again for the same ones. Pure, but for what it remembers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import attrs

SLOW_S = 2.0
"""An attempt that takes longer makes its endpoint a slow one."""

MOST_SLOTS = 8
MOST_SPARE = 192
"""For so many attempts that are held up others may begin; each holds a thread that waits."""

MOST_REMEMBERED = 10_000

Pace = Literal["new", "quick", "slow"]


@attrs.define
class _Lane:
    pace: Pace = "new"
    slots: int = 1
    under_way: int = 0
    held: bool = False
    lagging: bool = False


class Lanes(Mapping[str, int]):
    """The endpoints' lanes as one process knows them; as a mapping, the slots of those it knows."""

    def __init__(self, at_once: int, spare: int = MOST_SPARE) -> None:
        """`at_once` is how many attempts the process can have under way, and `spare` how many of
        those that are held up have others beside them."""
        self._quarter = max(1, at_once // 4)
        self._spare = spare
        self._lanes: dict[str, _Lane] = {}
        self._busy: dict[str, _Lane] = {}
        self.waiting: Mapping[Pace, int] = {}
        """How many claimed deliveries of each pace wait until they may begin; no more of such are
        claimed then."""

    def __getitem__(self, lane: str) -> int:
        known = self._lanes[lane]
        if known.pace == "new":
            raise KeyError(lane)
        if known.pace == "slow" and (self.waiting.get("slow") or not self.may_begin(lane)):
            return 0
        return known.slots

    def __iter__(self) -> Iterator[str]:
        return (name for name, lane in self._lanes.items() if lane.pace != "new")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def slots_of_new(self) -> int:
        """The slots of a lane that is not known."""
        return 0 if self.waiting.get("new") else 1

    def pace(self, lane: str) -> Pace:
        """What is known of a lane."""
        known = self._lanes.get(lane)
        return known.pace if known else "new"

    @property
    def most_waiting(self) -> int:
        """So many may wait; they begin before their leases end."""
        return self._quarter

    def may_begin(self, lane: str) -> bool:
        """Whether an attempt of the lane may begin, others being under way."""
        known, pace = self._lanes.get(lane), self.pace(lane)
        if known and known.lagging:
            return False
        if pace == "quick":
            return True
        under_way = {"new": 0, "slow": 0, "quick": 0}
        held = 0
        for busy in self._busy.values():
            if busy.held:
                held += busy.under_way
            else:
                under_way[busy.pace] += busy.under_way
        # Those that are held up have spare senders in their place, but not without end.
        under_way["slow"] += max(0, held - self._spare)
        both = under_way["new"] + under_way["slow"]
        return under_way[pace] < self._quarter and both < 3 * self._quarter

    def began(self, lane: str) -> None:
        """An attempt is to be made."""
        known = self._lanes.pop(lane, None) or _Lane()
        self._lanes[lane] = self._busy[lane] = known  # the last used comes last
        known.under_way += 1
        self._forget()

    def ended(self, lane: str, took_s: float | None) -> None:
        """The attempt ended; None says that nothing was sent."""
        known = self._lanes[lane]
        known.under_way -= 1
        known.held = known.lagging = False
        if not known.under_way:
            del self._busy[lane]
        if took_s is None:
            return
        if took_s <= SLOW_S:
            known.pace, known.slots = "quick", min(MOST_SLOTS, known.slots + 1)
        else:
            known.pace, known.slots = "slow", max(1, known.slots // 2)

    def lags(self, lane: str) -> None:
        """An attempt has been under way for longer than it should already."""
        known = self._lanes[lane]
        known.pace = "slow"
        known.held = known.lagging = True

    def is_held(self, lane: str) -> None:
        """An attempt holds its sender up; another sender is in its place."""
        self._lanes[lane].held = True

    def _forget(self) -> None:
        if len(self._lanes) > MOST_REMEMBERED:
            oldest = next(name for name in self._lanes if name not in self._busy)
            del self._lanes[oldest]
