"""Whose request is next: callers take turns, so that one who sends many at once waits for his own.

In the order in which they came, a hundred long lists that one tenant asks for at once would come
before everybody else's next request.
"""

from __future__ import annotations

import binascii
from collections import deque
from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

_MAX_KEY_CHARACTERS = 400


class Turns(Generic[T]):
    """What waits, by caller: the next is the oldest of the caller whose turn was longest ago."""

    def __init__(self) -> None:
        self._by_caller: dict[str, deque[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_caller)

    def append(self, caller: str, item: T) -> None:
        """Let it wait behind the others of its caller."""
        waiting = self._by_caller.get(caller)
        if waiting is None:
            self._by_caller[caller] = deque((item,))
        else:
            waiting.append(item)

    def take(self) -> T:
        """The next. Raises StopIteration where none is left."""
        caller = next(iter(self._by_caller))
        waiting = self._by_caller.pop(caller)
        item = waiting.popleft()
        if waiting:
            self._by_caller[caller] = waiting
        return item

    def take_all(self) -> list[T]:
        """All that is left."""
        left = [item for waiting in self._by_caller.values() for item in waiting]
        self._by_caller.clear()
        return left

    def __len__(self) -> int:
        return sum(map(len, self._by_caller.values()))


def name_caller(headers: Mapping[str, str], peer: str) -> str:
    """Who calls, as far as the headers say without a look at the storage.

    The app id of a server key, whatever is beside it; another credential as it is; without one the
    address, as the last proxy has written it down. A caller who invents credentials has more
    turns, and each of them is a refusal, which takes no time.
    """
    scheme, _, credential = headers.get("AUTHORIZATION", "").strip().partition(" ")
    if scheme.lower() == "basic":
        try:
            decoded = binascii.a2b_base64(credential.strip()[:_MAX_KEY_CHARACTERS])
        except (binascii.Error, ValueError):
            decoded = b""
        return "app " + decoded.partition(b":")[0].decode("latin-1")
    if scheme:
        return "token " + credential.strip()[:_MAX_KEY_CHARACTERS]
    forwarded = headers.get("X_FORWARDED_FOR", "").rpartition(",")[2].strip()
    return f"{peer} {forwarded[:_MAX_KEY_CHARACTERS]}"
