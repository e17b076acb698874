"""What a server is told about the application that it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from wsgiref.types import WSGIApplication

import attrs

MAX_HEADER_BYTES = 16 * 1024
"""Of the request line and the headers."""


@attrs.frozen
class Refusal:
    """The answer to a request that the application does not see."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


class Callers(Protocol):
    """Identifies who sends a request, by its headers alone: callers take turns."""

    def name(self, headers: Mapping[str, str], peer: str) -> str:
        """The caller of a request with these headers, on a connection from that address.

        The names of headers are in capitals, with underscores.
        """

    def learn(self, headers: Mapping[str, str], environ: Mapping[str, Any]) -> None:
        """Learn from an answered request and its WSGI environment."""


@attrs.frozen(kw_only=True)
class HostedApp:
    """An application, and what the server does for it."""

    app: WSGIApplication
    refuse: Callable[[int], Refusal]
    """The answer for 400, 408, 413, 431, 501, or 500 for any other reason."""
    callers: Callers
    max_body_bytes: int
    """Beyond it, including chunk sizes, the server stops reading. Every connection may hold as
    much."""
