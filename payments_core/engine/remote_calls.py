"""A limit on requests that wait for chains, providers and name servers at the same time.

A hanging dependency holds its caller until the time-out. If every thread that answers requests were
allowed to wait, one tenant's requests would block those of all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import attrs

from payments_core.engine.shares import Shares
from payments_core.errors import DependencyFailed
from payments_core.waiting import NO_WAITS, Waits, closed_lock

Dependency = Literal["chain", "kyc", "pricing", "router", "onramp", "screening", "names"]

WAIT_S = 0.1
"""How long a request waits for a place: a healthy dependency answers sooner."""

SLOW_S = 0.1
"""After all calls have taken this long, waiting for a place is hardly useful."""

MAX_WAITING = 2
"""The number of requests that wait behind slow calls; others are refused at once."""


class TooManyCalls(Exception):
    """The call was not made, because no place was free."""


class RemoteCalls:
    """A limit on concurrent requests, in total. Threads share it.

    Environments share the places, and so they share those of each dependency, of which there is one
    fewer: a place is kept free of each dependency, for the others.
    """

    def __init__(self, limit: int, waits: Waits = NO_WAITS) -> None:
        """Raises ValueError for a limit below 1."""
        if limit < 1:
            raise ValueError("at least one request must be able to call others")
        self._waits = waits
        self._lock = threading.Lock()
        """Guards the fields below, and when each call began."""
        self._places = Shares(limit)
        self._places_by_dependency: dict[Dependency, Shares] = {
            dependency: Shares(max(1, limit - 1)) for dependency in get_args(Dependency)
        }
        self._running: set[_Call] = set()
        self._waiting: list[_Call] = []
        """In the order of their arrival."""

    @property
    def waiting(self) -> int:
        """How many requests wait for a place."""
        return len(self._waiting)

    @contextmanager
    def acquire(
        self, dependency: Dependency, environment_id: str, *, wait_s: float = WAIT_S
    ) -> Iterator[None]:
        """Take a place for the time of the block. Raises DependencyFailed if there is none."""
        call = _Call(dependency, environment_id)
        with self._waits.announce():
            with self._lock:
                waits = not self._begin(call)
                if waits and (wait_s <= 0 or self._is_hopeless(call)):
                    raise _busy(dependency)
                if waits:
                    self._waiting.append(call)
            try:
                if waits:
                    call.gate.acquire(timeout=wait_s)
                    with self._lock:
                        if call not in self._running:
                            raise _busy(dependency)
                yield
            finally:  # before the thread waits for its turn to compute
                with self._lock:
                    self._end(call)

    def _shares_of(self, call: _Call) -> tuple[Shares, Shares]:
        return self._places, self._places_by_dependency[call.dependency]

    def _begin(self, call: _Call) -> bool:
        """Give a call a place, if there is one."""
        shares = self._shares_of(call)
        if any(share.measure_room(call.environment_id) <= 0 for share in shares):
            return False
        call.began = time.monotonic()
        self._running.add(call)
        for share in shares:
            share.take(call.environment_id)
        return True

    def _end(self, call: _Call) -> None:
        """Take its place away, or let it wait no more, and begin those that have room now.

        Only these are woken: to wake all takes longer than a quick call.
        """
        if call not in self._running:
            self._waiting.remove(call)
            return
        self._running.remove(call)
        for share in self._shares_of(call):
            share.give_back(call.environment_id)
        for other in [other for other in self._waiting if self._begin(other)]:
            self._waiting.remove(other)
            other.gate.release()

    def _is_hopeless(self, wanted: _Call) -> bool:
        """Whether others wait already for calls that have all taken long."""
        if len(self._waiting) < MAX_WAITING:
            return False
        owner, slow = wanted.environment_id, time.monotonic() - SLOW_S
        same = {call for call in self._running if call.dependency == wanted.dependency}
        for share, held in zip(self._shares_of(wanted), (self._running, same), strict=True):
            own = {call for call in held if call.environment_id == owner}
            if share.measure_room(owner) <= 0 and all(it.began <= slow for it in own or held):
                return True
        return False


@attrs.define(eq=False)
class _Call:
    dependency: Dependency
    environment_id: str
    began: float = attrs.field(default=0.0, init=False)
    """When it got its place, by the monotonic clock."""
    gate: threading.Lock = attrs.field(factory=closed_lock, init=False)
    """Released when it gets its place after it has waited."""


def _busy(dependency: Dependency) -> DependencyFailed:
    failed = DependencyFailed(dependency)
    failed.__cause__ = TooManyCalls(f"too many requests wait for {dependency} at this time")
    return failed
