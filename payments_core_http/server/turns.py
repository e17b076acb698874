"""Whose request is next: callers take turns, so that one who sends many at once delays only itself.

In order of arrival, a hundred long lists that one client requests at once would come before
everybody else's next request.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """The queue, by caller: the next is the oldest of the caller whose turn was longest ago."""

    def __init__(self) -> None:
        self._by_caller: dict[str, deque[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_caller)

    def append(self, caller: str, item: T) -> None:
        """Queue it behind the others of its caller."""
        waiting = self._by_caller.get(caller)
        if waiting is None:
            self._by_caller[caller] = deque((item,))
        else:
            waiting.append(item)

    def take(self) -> T:
        """The next task. Raises StopIteration if none is left."""
        caller = next(iter(self._by_caller))
        waiting = self._by_caller.pop(caller)
        item = waiting.popleft()
        if waiting:
            self._by_caller[caller] = waiting
        return item

    def take_all(self) -> list[T]:
        """All remaining tasks."""
        left = [item for waiting in self._by_caller.values() for item in waiting]
        self._by_caller.clear()
        return left

    def __len__(self) -> int:
        return sum(map(len, self._by_caller.values()))
