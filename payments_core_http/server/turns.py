"""Who is next: owners take turns, so that one with many items delays only itself.

In order of arrival, a hundred long lists that one client requests at once would come before
everybody else's next request.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """A queue by owner: the next is the oldest of the owner whose turn was longest ago."""

    def __init__(self, owners: int | None = None, items_of_one: int | None = None) -> None:
        """The items of at most so many owners, and so many of each, are kept."""
        self._most_owners = owners
        self._most_items = items_of_one
        self._by_owner: dict[str, deque[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_owner)

    def __len__(self) -> int:
        return sum(map(len, self._by_owner.values()))

    def append(self, owner: str, item: T) -> None:
        """Queue it behind the others of its owner, whose oldest is dropped if they are too many.

        It is dropped itself if too many other owners have items.
        """
        waiting = self._by_owner.get(owner)
        if waiting is not None:
            waiting.append(item)
        elif self._most_owners is None or len(self._by_owner) < self._most_owners:
            self._by_owner[owner] = deque((item,), self._most_items)

    def take(self) -> T:
        """The next item. Raises StopIteration if none is left."""
        owner, waiting = self.take_turn()
        item = waiting.popleft()
        if waiting:
            self._by_owner[owner] = waiting
        return item

    def take_turn(self) -> tuple[str, deque[T]]:
        """The next owner, and all its items. Raises StopIteration if none is left."""
        owner = next(iter(self._by_owner))
        return owner, self._by_owner.pop(owner)

    def take_all(self) -> list[T]:
        """All remaining items."""
        left = [item for waiting in self._by_owner.values() for item in waiting]
        self._by_owner.clear()
        return left
