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
_MAX_TOKENS = 10_000
"""So many are remembered; then they are learned again."""


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


class Callers:
    """Names who calls, as far as it is known without a look at the storage.

    A server key is its app id, whatever is beside it; a token that was used before is the
    environment that it opened then; everybody else is an address, as the last proxy has written it
    down. So tokens give nobody more turns, nor do credentials that somebody invents: an app id has
    a turn of its own, but the refusal that it gets takes no time.
    """

    def __init__(self) -> None:
        self._environments: dict[int, str] = {}
        """By the hash of the token, which is not kept."""

    def name(self, headers: Mapping[str, str], peer: str) -> str:
        """Who makes a request with these headers, on a connection from that address."""
        scheme, credential = _read_credential(headers)
        if scheme == "basic":
            try:
                decoded = binascii.a2b_base64(credential[:_MAX_KEY_CHARACTERS])
            except (binascii.Error, ValueError):
                decoded = b""
            return "app " + decoded.partition(b":")[0].decode("latin-1")
        environment = self._environments.get(hash(credential)) if scheme else None
        if environment is not None:
            return "environment " + environment
        forwarded = headers.get("X_FORWARDED_FOR", "").rpartition(",")[2].strip()
        return f"{peer} {forwarded[:_MAX_KEY_CHARACTERS]}"

    def learn(self, headers: Mapping[str, str], environment: str) -> None:
        """The token in these headers has opened that environment, and opens no other."""
        scheme, credential = _read_credential(headers)
        token = hash(credential)
        if scheme and scheme != "basic" and token not in self._environments:
            if len(self._environments) >= _MAX_TOKENS:
                self._environments.clear()
            self._environments[token] = environment


def _read_credential(headers: Mapping[str, str]) -> tuple[str, str]:
    scheme, _, credential = headers.get("AUTHORIZATION", "").strip().partition(" ")
    return scheme.lower(), credential.strip()
