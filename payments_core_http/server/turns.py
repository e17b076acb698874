"""Whose request is next: callers take turns, so that one who sends many at once delays only itself.

In order of arrival, a hundred long lists that one tenant requests at once would come before
everybody else's next request.
"""

from __future__ import annotations

import binascii
from collections import deque
from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

_MAX_KEY_CHARACTERS = 400
_MAX_TOKENS = 10_000
"""The maximum number of tokens that are remembered; then they are learned again."""


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


class Callers:
    """Identifies the caller, as far as it is known without the storage.

    A server key is identified by its app id, without its secret; a token that was used before, by
    its environment; everybody else, by the address that the last proxy reports. So tokens give
    nobody more turns, and neither do invented credentials: an invented app id has its own turn, but
    its refusal takes no time.
    """

    def __init__(self) -> None:
        self._environments: dict[int, str] = {}
        """By the hash of the token; the token itself is not kept."""

    def name(self, headers: Mapping[str, str], peer: str) -> str:
        """The caller of a request with these headers, on a connection from that address."""
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
        """Remember that the token in these headers belongs to that environment, and to no other."""
        scheme, credential = _read_credential(headers)
        token = hash(credential)
        if scheme and scheme != "basic" and token not in self._environments:
            if len(self._environments) >= _MAX_TOKENS:
                self._environments.clear()
            self._environments[token] = environment


def _read_credential(headers: Mapping[str, str]) -> tuple[str, str]:
    scheme, _, credential = headers.get("AUTHORIZATION", "").strip().partition(" ")
    return scheme.lower(), credential.strip()
