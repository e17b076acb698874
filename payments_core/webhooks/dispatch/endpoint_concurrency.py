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

SLOW_AFTER_S = 2.0
"""An attempt that takes longer makes its endpoint a slow one."""

MAX_CONCURRENCY = 8
MAX_SPARE_SENDERS = 192
"""For so many attempts that are held up others may begin; each holds a thread that waits."""

MAX_REMEMBERED_ENDPOINTS = 10_000

Pace = Literal["new", "quick", "slow"]


@attrs.define
class _EndpointState:
    pace: Pace = "new"
    limit: int = 1
    in_flight: int = 0
    blocked: bool = False
    overdue: bool = False


class EndpointConcurrency(Mapping[str, int]):
    """The endpoints' lanes as one process knows them; as a mapping, the slots of those it knows."""

    def __init__(self, max_in_flight: int, spare: int = MAX_SPARE_SENDERS) -> None:
        """`max_in_flight` is how many attempts the process can have under way, and `spare` how
        many of those that are held up have others beside them."""
        self._quarter = max(1, max_in_flight // 4)
        self._spare = spare
        self._endpoints: dict[str, _EndpointState] = {}
        self._busy: dict[str, _EndpointState] = {}
        self.waiting: Mapping[Pace, int] = {}
        """How many claimed deliveries of each pace wait until they may begin; no more of such are
        claimed then."""

    def __getitem__(self, lane: str) -> int:
        known = self._endpoints[lane]
        if known.pace == "new":
            raise KeyError(lane)
        if known.pace == "slow" and (self.waiting.get("slow") or not self.may_start(lane)):
            return 0
        return known.limit

    def __iter__(self) -> Iterator[str]:
        return (name for name, lane in self._endpoints.items() if lane.pace != "new")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def new_endpoint_limit(self) -> int:
        """The slots of a lane that is not known."""
        return 0 if self.waiting.get("new") else 1

    def pace(self, lane: str) -> Pace:
        """What is known of a lane."""
        known = self._endpoints.get(lane)
        return known.pace if known else "new"

    @property
    def max_waiting(self) -> int:
        """So many may wait; they begin before their leases end."""
        return self._quarter

    def may_start(self, lane: str) -> bool:
        """Whether an attempt of the lane may begin, others being under way."""
        known, pace = self._endpoints.get(lane), self.pace(lane)
        if known and known.overdue:
            return False
        if pace == "quick":
            return True
        in_flight = {"new": 0, "slow": 0, "quick": 0}
        blocked = 0
        for busy in self._busy.values():
            if busy.blocked:
                blocked += busy.in_flight
            else:
                in_flight[busy.pace] += busy.in_flight
        # Those that are held up have spare senders in their place, but not without end.
        in_flight["slow"] += max(0, blocked - self._spare)
        both = in_flight["new"] + in_flight["slow"]
        return in_flight[pace] < self._quarter and both < 3 * self._quarter

    def record_start(self, lane: str) -> None:
        """An attempt is to be made."""
        known = self._endpoints.pop(lane, None) or _EndpointState()
        self._endpoints[lane] = self._busy[lane] = known  # the last used comes last
        known.in_flight += 1
        self._forget()

    def record_end(self, lane: str, took_s: float | None) -> None:
        """The attempt ended; None says that nothing was sent."""
        known = self._endpoints[lane]
        known.in_flight -= 1
        known.blocked = known.overdue = False
        if not known.in_flight:
            del self._busy[lane]
        if took_s is None:
            return
        if took_s <= SLOW_AFTER_S:
            known.pace, known.limit = "quick", min(MAX_CONCURRENCY, known.limit + 1)
        else:
            known.pace, known.limit = "slow", max(1, known.limit // 2)

    def mark_slow(self, lane: str) -> None:
        """An attempt has been under way for longer than it should already."""
        known = self._endpoints[lane]
        known.pace = "slow"
        known.blocked = known.overdue = True

    def mark_blocked(self, lane: str) -> None:
        """An attempt holds its sender up; another sender is in its place."""
        self._endpoints[lane].blocked = True

    def _forget(self) -> None:
        if len(self._endpoints) > MAX_REMEMBERED_ENDPOINTS:
            oldest = next(name for name in self._endpoints if name not in self._busy)
            del self._endpoints[oldest]
