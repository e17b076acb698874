"""The limiter of one process: counters in dictionaries, under one lock.

Memory is bounded. The last KEPT windows of each length are kept, and of an older window only that
it existed, so that a clock that steps back finds no fresh counter. A window has separate counters
for `capacity` keys; keys beyond them share SLOTS counters by hash until it ends. A flood of
addresses therefore costs a fixed amount of memory, and can only exhaust strangers' counters early:
no counter admits too many. Each call removes a few expired counters.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections.abc import Sequence
from itertools import islice, pairwise

import attrs

from payments_core.clock import Instant
from payments_core.fork_safety import register_fork_reset
from payments_core.limiters.port import LimiterUnavailable, PolicyCheck, PolicyState

MAX_KEYS = 100_000
"""Keys with their own counter, in each window."""

SHARED_COUNTERS = 32_768
"""Counters that all further keys of a window share."""

KEPT_WINDOWS = 3
"""Windows of each length whose counters are kept: the present one, and earlier ones."""

MAX_FORGOTTEN_RUNS = 16
"""Distinct runs of forgotten windows; beyond this number the nearest two are merged."""

MIN_COUNTERS_FREED = 64
"""The minimum number of expired counters that a call removes."""

CounterKey = str | int
"""A key, or the number of the slot that it shares."""

Counters = dict[CounterKey, int]


class MemoryLimiter:
    """Counts for the threads of one process. Each process has its own: limits add up.

    About 20 MB for each window length under a flood of addresses, with the given capacity.
    """

    def __init__(self, *, capacity: int = MAX_KEYS) -> None:
        self._capacity = capacity
        self._lengths: dict[int, _WindowLength] = {}
        self._expired: list[Counters] = []
        self._closed = False
        self.reset_after_fork()
        register_fork_reset(self)

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        """See the port; all asks of a call are counted under one lock."""
        with self._lock:
            if self._closed:
                raise LimiterUnavailable("the limiter is closed")
            if self._expired:
                self._free_expired(MIN_COUNTERS_FREED + len(policy_checks))
            policy_states: list[PolicyState] = []
            window_ms = 0
            for policy_check in policy_checks:
                if policy_check.window_ms != window_ms:
                    window_ms = policy_check.window_ms
                    plain = self._current_counters(window_ms, now)
                    reset_at = (now // window_ms + 1) * window_ms
                before = plain.get(policy_check.key)
                if before is None or policy_check.block_ms:
                    policy_states.append(self._count(policy_check, now))
                    window_ms = 0  # it may have opened a window, or begun a block
                    continue
                count = before + policy_check.cost
                if count < 0:  # more was returned than counted
                    count = 0
                plain[policy_check.key] = count
                left = policy_check.limit - count
                policy_states.append(
                    PolicyState(left >= 0, policy_check.limit, left if left > 0 else 0, reset_at)
                )
            return policy_states

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lengths.clear()
            self._expired.clear()

    def reset_after_fork(self) -> None:
        """After a fork: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def size(self) -> int:
        """How many counters and blocks are in memory, expired ones included."""
        with self._lock:
            return sum(map(len, self._expired)) + sum(
                len(length.blocks) + sum(map(len, length.windows.values()))
                for length in self._lengths.values()
            )

    def _current_counters(self, window_ms: int, now: Instant) -> Counters:
        """The present counters if only the counters decide; otherwise none.

        The fast path of `_count`, for known keys: nearly every request of a service.
        """
        length = self._lengths.get(window_ms)
        if length is None or length.blocks:
            return {}
        return length.windows.get(now // window_ms) or {}

    def _count(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        key, limit, cost, window_ms = (
            policy_check.key,
            policy_check.limit,
            policy_check.cost,
            policy_check.window_ms,
        )
        length = self._lengths.get(window_ms)
        if length is None:
            length = self._lengths[window_ms] = _WindowLength()
        window = now // window_ms
        counters = length.windows.get(window)
        if counters is None:
            known_again = length.next_known_window(window)
            if known_again is not None:
                again_at = max(known_again * window_ms, length.block_end(key))
                return PolicyState(False, limit, 0, again_at)
            counters = self._open_window(length, window) if cost > 0 else {}
        reset_at = (window + 1) * window_ms

        name: CounterKey = key
        before = counters.get(name)
        if before is None:
            # A full window stays full: a key never changes places within it.
            if len(counters) >= self._capacity:
                name = hash(key) % SHARED_COUNTERS
                before = counters.get(name, 0)
            else:
                before = 0
        count = max(0, before + cost)
        if cost:
            counters[name] = count

        if length.blocks or policy_check.block_ms:
            until = length.block_end(key)
            if until <= now and policy_check.block_ms and before <= limit < count:
                until = now + policy_check.block_ms
                length.block(name, until, now, self._capacity)
            if until > now:
                over = count > limit and reset_at > until
                return PolicyState(False, limit, 0, reset_at if over else until)
        if count > limit:
            return PolicyState(False, limit, 0, reset_at)
        return PolicyState(True, limit, limit - count, reset_at)

    def _open_window(self, length: _WindowLength, window: int) -> Counters:
        if len(length.windows) == KEPT_WINDOWS:
            self._expired.append(length.forget_oldest())
        counters: Counters = {}
        length.windows[window] = counters
        return counters

    def _free_expired(self, limit: int) -> None:
        while self._expired and limit:
            counters = self._expired[-1]
            some = min(limit, len(counters))
            for _ in range(some):
                counters.popitem()
            limit -= some
            if not counters:
                self._expired.pop()


@attrs.define
class _WindowLength:
    """The state of all windows of one length."""

    windows: dict[int, Counters] = attrs.field(factory=dict)
    """By the window's number, in the order of opening."""

    forgotten: list[tuple[int, int]] = attrs.field(factory=list)
    """First and last number of every run of windows that were once open, in order."""

    blocks: dict[CounterKey, Instant] = attrs.field(factory=dict)
    """When each block ends, roughly in that order."""

    def next_known_window(self, window: int) -> int | None:
        """For a forgotten window, the next number that is not forgotten; None for any other."""
        for first, last in reversed(self.forgotten):
            if first <= window <= last:
                return last + 1
            if window > last:
                break
        return None

    def forget_oldest(self) -> Counters:
        """Remove the window that was opened first."""
        window = next(iter(self.windows))
        insort(self.forgotten, (window, window))
        joined = self.forgotten[:1]
        for first, last in self.forgotten[1:]:
            if first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], last)
            else:
                joined.append((first, last))
        if len(joined) > MAX_FORGOTTEN_RUNS:
            gaps = [after[0] - before[1] for before, after in pairwise(joined)]
            narrow = gaps.index(min(gaps))
            joined[narrow : narrow + 2] = [(joined[narrow][0], joined[narrow + 1][1])]
        self.forgotten = joined
        return self.windows.pop(window)

    def block_end(self, key: str) -> Instant:
        """When the key's block ends, or that of its slot; 0 without one."""
        if not self.blocks:
            return 0
        return max(self.blocks.get(key, 0), self.blocks.get(hash(key) % SHARED_COUNTERS, 0))

    def block(self, name: CounterKey, until: Instant, now: Instant, capacity: int) -> None:
        """Begin a block; if there are too many, all keys of the slot are blocked."""
        for oldest in tuple(islice(self.blocks, 2)):
            if self.blocks[oldest] <= now:
                del self.blocks[oldest]
        if len(self.blocks) >= capacity and isinstance(name, str):
            name = hash(name) % SHARED_COUNTERS
        self.blocks[name] = max(until, self.blocks.get(name, 0))


def open_url(url: str) -> MemoryLimiter:
    """`memory:`, followed only by slashes. Raises ValueError."""
    if url.removeprefix("memory:").strip("/"):
        raise ValueError("the URL of the limiter in memory is memory:")
    return MemoryLimiter()
