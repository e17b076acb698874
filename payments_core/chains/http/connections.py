"""Connections of the chains' HTTP clients: urllib3's, with a whole deadline and no told secrets.

Imported by `wire.py` when a first connection is needed, since urllib3 is heavy.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from functools import partial
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import HTTPResponse

KEPT = 8
"""So many connections to one server wait for their next request."""

WHOLE_BASE = "/"
"""The target that stands for the base itself, with nothing after it."""


def pool(tls: bool, host: str, port: int, base: str, query: str) -> HTTPConnectionPool:
    """Connections to one server. `base` and `query`, which may hold a key, go to it alone."""
    secret: dict[str, Any] = {"base": base, "query": query}
    if not tls:
        plain = HTTPConnectionPool(host, port, maxsize=KEPT, **secret)
        plain.ConnectionCls = _Plain
        return plain
    context = ssl.create_default_context()
    secure = HTTPSConnectionPool(host, port, maxsize=KEPT, ssl_context=context, **secret)
    secure.ConnectionCls = _Tls
    return secure


class _Plain(HTTPConnection):
    """One connection.

    urllib3 logs the target of every request, and its time-outs hold for each read by itself. So
    the real target is written here, behind its back, and every read of an answer, headers and
    all, has only what is left of the time for reading.
    """

    def __init__(self, *args: Any, base: str, query: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._base = base
        self._query = query

    def putrequest(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:
        target = self._base if url == WHOLE_BASE else self._base.rstrip("/") + url
        if self._query:
            target += ("&" if "?" in target else "?") + self._query
        super().putrequest(method, target, *args, **kwargs)

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        until = time.monotonic() + float(self.timeout or 0)
        self.response_class = partial(_Response, until)  # type: ignore[assignment]
        return super().getresponse()


class _Tls(_Plain, HTTPSConnection):
    """The same over TLS."""


class _Response(http.client.HTTPResponse):
    def __init__(self, until: float, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_Reads(sock, until))


class _Reads(io.RawIOBase):
    """Reads from a socket until an instant of the monotonic clock, however slowly it drips."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        self._until = until
        self._file = sock.makefile("rb", buffering=0)  # keeps the socket open until it is closed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is up")
        self._sock.settimeout(left)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()
