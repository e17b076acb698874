"""A cache of encoded response bodies, for reads of records that have not changed since.

A client that polls reads the same Payment many times, and to render and encode it takes a third of
a read. The caller is authenticated, its rights are checked and the records are read in each
request; only the rendering is saved. A body is used while the records that it was made of equal
those that were just read, so that nothing has to be invalidated, by this process or another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import msgspec

MAX_CACHED = 1_000
"""The maximum number of bodies of all tenants; with one more the cache is emptied."""
MAX_BODY_BYTES = 8_000
"""A Payment with one option takes half of it. A larger body is not cached."""

S = TypeVar("S")


class ResponseCache:
    """The last body under each key, with its source. Threads may share it."""

    def __init__(self) -> None:
        self._bodies: dict[Hashable, tuple[Any, bytes]] = {}

    def encode(self, key: Hashable, source: S, render: Callable[[S], Any]) -> bytes:
        """The JSON of `render(source)`, which must depend on nothing else that changes.

        A source must contain a version if its values may be equal but render differently, like 1,
        1.0 and True.
        """
        cached = self._bodies.get(key)
        if cached is not None and cached[0] == source:
            return cached[1]
        body = msgspec.json.encode(render(source))
        if len(body) <= MAX_BODY_BYTES:
            if len(self._bodies) >= MAX_CACHED:
                self._bodies.clear()
            self._bodies[key] = (source, body)
        return body

    def __len__(self) -> int:
        return len(self._bodies)
