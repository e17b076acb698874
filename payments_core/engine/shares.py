"""Places of a limited resource, such as calls of other services, that owners share fairly."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from functools import partial

from payments_core.fork_safety import register_fork_reset


class Shares:
    """How many places each owner has. Its user has the lock.

    Without a maximum for one owner, an owner takes another place only while more are free than it
    has: one owner leaves half to the others, and two still leave a place to a third.
    """

    def __init__(self, places: int, most_of_one: int | None = None) -> None:
        self._places = places
        self._most_of_one = most_of_one
        self._taken: Counter[str] = Counter()

    def measure_room(self, owner: str) -> int:
        """How many more places the owner may take now, one after the other; 0 or less if none."""
        own, free = self._taken[owner], self._places - self._taken.total()
        if self._most_of_one is None:
            return (free - own + 1) // 2
        return min(free, self._most_of_one - own)

    def take(self, owner: str, count: int = 1) -> None:
        """Take so many places, which the caller has found free, or which are taken anyway."""
        self._taken[owner] += count

    def give_back(self, owner: str) -> None:
        """Free one place."""
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]


class Places:
    """Places that threads take for a while, each owner at most so many at a time."""

    def __init__(self, places: int, most_of_one: int) -> None:
        self._sizes = places, most_of_one
        self.reset_after_fork()
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start with a free lock and free places: no thread of the child has one."""
        self._lock, self._shares = threading.Lock(), Shares(*self._sizes)
        self._given_back: deque[str] = deque()

    def take(self, owner: str) -> Callable[[], None] | None:
        """Take a place; what gives it back, to be called once. None if no place is free.

        A finalizer may call it: it takes no lock, which its own thread might have.
        """
        with self._lock:
            while self._given_back:
                self._shares.give_back(self._given_back.popleft())
            if self._shares.measure_room(owner) <= 0:
                return None
            self._shares.take(owner)
            return partial(self._given_back.append, owner)
