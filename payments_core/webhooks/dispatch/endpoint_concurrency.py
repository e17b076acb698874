"""The number of concurrent deliveries of each endpoint: few at first, more if it is quick.

A hanging endpoint keeps its senders until its attempts time out, so it must not have many.
A quick endpoint may have more each time; a slow endpoint has half as many, down to one.

A process's senders are shared by pace. New endpoints share a quarter of them,
known slow endpoints a quarter, and both together never more than three quarters: quick ones
always have the rest. If several of those begin to hang together, others wait until they are
known to be blocked (see `sender_pool`), and never again for the same endpoints.

Senders are also shared by environment, so that one tenant's endpoints do not delay another's: an
environment has at most three quarters of all, half of those for new and for slow endpoints, and
half of the spare senders that replace blocked ones. At one host it has few at a time, however
many endpoints name that host. Pure, except for its memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

import attrs

SLOW_AFTER_S = 2.0
"""An attempt that takes longer makes its endpoint slow."""

MAX_CONCURRENCY = 8
MAX_CONCURRENCY_PER_HOST = 16
"""The maximum number of concurrent attempts of an environment at one host."""

MAX_SPARE_SENDERS = 192
"""The number of blocked attempts that others may replace; each holds a waiting thread."""

MAX_REMEMBERED_ENDPOINTS = 10_000

Pace = Literal["new", "quick", "slow"]
PACES: tuple[Pace, ...] = get_args(Pace)


@attrs.frozen
class Target:
    """Where a delivery goes: the lane of its endpoint, the environment, and the URL's host."""

    lane: str
    environment_id: str
    host: str


@attrs.define
class _EndpointState:
    target: Target
    pace: Pace = "new"
    limit: int = 1
    in_flight: int = 0
    blocked: bool = False
    overdue: bool = False


@attrs.define
class _Load:
    """The attempts in progress: those that hold a sender, and the blocked ones."""

    by_pace: Counter[Pace] = attrs.field(factory=Counter)
    by_share: Counter[tuple[str, Pace]] = attrs.field(factory=Counter)
    by_environment: Counter[str] = attrs.field(factory=Counter)
    by_host: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    blocked: Counter[str] = attrs.field(factory=Counter)

    def add(self, known: _EndpointState) -> None:
        environment_id, count = known.target.environment_id, known.in_flight
        self.by_host[environment_id, known.target.host] += count
        if known.blocked:
            self.blocked[environment_id] += count
        else:
            self.by_pace[known.pace] += count
            self.by_share[environment_id, known.pace] += count
            self.by_environment[environment_id] += count

    def count_excess_as_slow(self, spare: int, environment_spare: int) -> None:
        """Blocked attempts are replaced by spare senders, up to a maximum."""
        self.by_pace["slow"] += max(0, self.blocked.total() - spare)
        for environment_id, count in self.blocked.items():
            self.by_share[environment_id, "slow"] += max(0, count - environment_spare)


class EndpointConcurrency:
    """The endpoints as one process knows them."""

    def __init__(self, max_in_flight: int, spare: int = MAX_SPARE_SENDERS) -> None:
        """`max_in_flight` is the maximum number of concurrent attempts of the process, and `spare`
        how many blocked attempts can be replaced by others."""
        self._quarter = max(1, max_in_flight // 4)
        self._environment_share = max(1, self._quarter // 2)
        self._environment_total = max(MAX_CONCURRENCY, max_in_flight - self._quarter)
        self._spare = spare
        self._endpoints: dict[str, _EndpointState] = {}
        self._busy: dict[str, _EndpointState] = {}
        self._load: _Load | None = None
        self._waiting: Counter[tuple[str, Pace]] = Counter()

    def pace(self, lane: str) -> Pace:
        """The state of a lane."""
        known = self._endpoints.get(lane)
        return known.pace if known else "new"

    def may_wait(self, target: Target) -> bool:
        """Whether another claimed delivery of the environment may wait for its start; those
        that wait start before their leases end."""
        waiting = sum(self._waiting[target.environment_id, pace] for pace in PACES)
        return waiting < self._environment_share

    def record_waiting(self, target: Target) -> None:
        """Add a waiting delivery; no more of its environment and pace are claimed meanwhile."""
        self._waiting[target.environment_id, self.pace(target.lane)] += 1

    def reset_waiting(self, targets: Iterable[Target]) -> None:
        """Set the waiting deliveries."""
        self._waiting.clear()
        for target in targets:
            self.record_waiting(target)

    def limit_lanes(self) -> dict[str, int]:
        """How many jobs of each known lane may be leased at once.

        Lanes that have no room now get none, rather than being claimed without use. If there is
        room for some lanes of an environment, the least recently used ones get it.
        """
        limits: dict[str, int] = {}
        rooms: dict[tuple[str, Pace], int] = {}
        for lane, known in self._endpoints.items():
            share = (known.target.environment_id, known.pace)
            if share not in rooms:
                rooms[share] = 0 if self._waiting[share] else self._measure_room(*share)
            if rooms[share] <= 0 or self._is_full(known):
                limits[lane] = 0
                continue
            limits[lane] = known.limit
            if known.pace != "quick" and not known.in_flight:
                rooms[share] -= 1
        return limits

    def may_start(self, target: Target) -> bool:
        """Whether an attempt may start beside those in progress."""
        known = self._endpoints.get(target.lane) or _EndpointState(target)
        return (
            not self._is_full(known) and self._measure_room(target.environment_id, known.pace) > 0
        )

    def _is_full(self, known: _EndpointState) -> bool:
        """Whether the endpoint itself, or its host, takes no more."""
        at = (known.target.environment_id, known.target.host)
        return known.overdue or self._measure_load().by_host[at] >= MAX_CONCURRENCY_PER_HOST

    def _measure_room(self, environment_id: str, pace: Pace) -> int:
        """How many more attempts of that pace the environment may start."""
        load = self._measure_load()
        room = self._environment_total - load.by_environment[environment_id]
        if pace == "quick":
            return room
        of_environment = (
            load.by_share[environment_id, "new"] + load.by_share[environment_id, "slow"]
        )
        return min(
            room,
            self._environment_share - load.by_share[environment_id, pace],
            2 * self._environment_share - of_environment,
            self._quarter - load.by_pace[pace],
            3 * self._quarter - load.by_pace["new"] - load.by_pace["slow"],
        )

    def _measure_load(self) -> _Load:
        if self._load is None:
            self._load = _Load()
            for known in self._busy.values():
                self._load.add(known)
            self._load.count_excess_as_slow(self._spare, self._spare // 2)
        return self._load

    def remember(self, target: Target) -> None:
        """Record the lane although nothing was sent, so that it is not claimed again in vain."""
        self._endpoints.setdefault(target.lane, _EndpointState(target))
        self._forget()

    def record_start(self, target: Target) -> None:
        """Record that an attempt begins."""
        known = self._endpoints.pop(target.lane, None) or _EndpointState(target)
        self._endpoints[target.lane] = self._busy[target.lane] = known  # the latest used comes last
        known.in_flight += 1
        self._load = None
        self._forget()

    def record_end(self, lane: str, took_s: float | None) -> None:
        """Record that the attempt ended; None means that nothing was sent."""
        known = self._endpoints[lane]
        known.in_flight -= 1
        known.blocked = known.overdue = False
        self._load = None
        if not known.in_flight:
            del self._busy[lane]
        if took_s is None:
            return
        if took_s <= SLOW_AFTER_S:
            known.pace, known.limit = "quick", min(MAX_CONCURRENCY, known.limit + 1)
        else:
            known.pace, known.limit = "slow", max(1, known.limit // 2)

    def mark_slow(self, lane: str) -> None:
        """Record that an attempt is taking longer than it should."""
        known = self._endpoints[lane]
        known.pace = "slow"
        known.blocked = known.overdue = True
        self._load = None

    def mark_blocked(self, lane: str) -> None:
        """Record that an attempt blocks its sender, which another sender replaces."""
        self._endpoints[lane].blocked = True
        self._load = None

    def _forget(self) -> None:
        if len(self._endpoints) > MAX_REMEMBERED_ENDPOINTS:
            oldest = next(name for name in self._endpoints if name not in self._busy)
            del self._endpoints[oldest]
