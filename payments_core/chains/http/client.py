"""HTTP to one server of a chain: bounded in time and size, and silent about its secrets.

Addresses of nodes hold keys, in the path, the query or before the host. So a server is called by
its host alone; no error, log or repr says more, nor anything that the server said.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import attrs

from payments_core.chains.port import ChainUnavailable
from payments_core.json_depth import nests_deeper

if TYPE_CHECKING:
    from urllib3.connectionpool import HTTPConnectionPool
    from urllib3.response import BaseHTTPResponse

CONNECT_S = 3.0
WHOLE_S = 10.0
"""How long one request may take in all, from connecting to the last byte of the answer."""

MOST_BYTES = 32 << 20
"""A transaction may have tens of thousands of logs, and its receipt must still be read."""

MOST_NESTED = 64
"""Answers are nested a handful deep; what goes beyond this is not for a parser."""

_CHUNK = 64 << 10
_TimedOut = TimeoutError  # urllib3 has one of its own name
_SCHEMES = {"http": 80, "https": 443}


class AnswerTooLarge(ChainUnavailable):
    """The answer had more bytes than are read."""


@attrs.frozen
class Limits:
    """What a request may cost; `answer_bytes` beyond which no answer is read."""

    connect_s: float = CONNECT_S
    whole_s: float = WHOLE_S
    answer_bytes: int = MOST_BYTES


class Wire:
    """Sends requests to one server over connections that are kept. Threads may share it."""

    def __init__(self, url: str, limits: Limits | None = None) -> None:
        """Raises ValueError, which does not repeat the address, unless it is http or https."""
        self._tls, self._host, self._port, self._base, self._query, self._headers = _parts(url)
        self._limits = limits or Limits()
        self._pool: HTTPConnectionPool | None = None
        self._process = 0

    @property
    def name(self) -> str:
        """What the server is called where people read: its host and port."""
        return f"{self._host}:{self._port}"

    def __repr__(self) -> str:
        return f"Wire({self.name})"

    def send(
        self, method: str, until: float, path: str = "/", body: bytes | None = None
    ) -> tuple[int, bytes]:
        """The status and body of the answer, by `until` of the monotonic clock at the latest.

        `path` begins with a slash and goes behind that of the address; "/" adds nothing. A
        redirect is not followed. Raises ChainUnavailable, AnswerTooLarge.

        A kept connection may have been closed by the other side at that moment: then the request
        is sent once more, which reads bear, and so do signed transactions.
        """
        left = min(self._limits.whole_s, until - time.monotonic())
        ends = time.monotonic() + left
        if left <= 0:
            raise ChainUnavailable(f"{self.name}: no time left to ask")
        answer = self._sent(method, ends, path, body)
        if answer is None and time.monotonic() < ends:
            answer = self._sent(method, ends, path, body)
        if answer is None:
            raise ChainUnavailable(f"{self.name}: the answer broke off")
        if nests_deeper(answer[1], MOST_NESTED):
            raise ChainUnavailable(f"{self.name}: the answer is nested too deeply")
        return answer

    def close(self) -> None:
        """Close the connections that wait."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _sent(
        self, method: str, ends: float, path: str, body: bytes | None
    ) -> tuple[int, bytes] | None:
        """The answer, or None where it broke off."""
        from urllib3.exceptions import HTTPError, ProtocolError, TimeoutError, TimeoutStateError
        from urllib3.util import Timeout

        try:
            left = max(ends - time.monotonic(), 0.001)
            response = self._connections().urlopen(
                method,
                path,
                body,
                self._headers,
                retries=False,
                redirect=False,
                timeout=Timeout(total=left, connect=self._limits.connect_s),
                preload_content=False,
                decode_content=False,
            )
            try:
                answer = response.status, self._read(response)
            except BaseException:
                response.close()  # what is left in it must not become the next answer
                raise
            response.release_conn()
        except ProtocolError:
            return None
        except (TimeoutError, TimeoutStateError, _TimedOut) as error:
            raise ChainUnavailable(f"{self.name}: no timely answer") from error
        except (HTTPError, OSError, ValueError) as error:
            raise ChainUnavailable(f"{self.name}: {type(error).__name__}") from error
        if 300 <= answer[0] < 400:
            raise ChainUnavailable(f"{self.name}: redirects, which is not followed")
        return answer

    def _read(self, response: BaseHTTPResponse) -> bytes:
        """The body. No compression is asked for; an answer that has one is not understood."""
        most = self._limits.answer_bytes
        announced = response.headers.get("content-length", "")
        body = bytearray()
        if not (announced.isdecimal() and int(announced[:20]) > most):
            for chunk in response.stream(_CHUNK, decode_content=False):
                body += chunk
                if len(body) > most:
                    break
            else:
                return bytes(body)
        raise AnswerTooLarge(f"{self.name}: the answer has more than {most} bytes")

    def _connections(self) -> HTTPConnectionPool:
        process = os.getpid()
        if self._pool is None or self._process != process:  # a fork must not share its parent's
            from payments_core.chains.http.connections import pool

            self._pool = pool(self._tls, self._host, self._port, self._base, self._query)
            self._process = process
        return self._pool


def _parts(url: str) -> tuple[bool, str, int, str, str, Mapping[str, str]]:
    """Whether it is TLS, the host, port, path and query, and the headers to be sent."""
    try:
        parts = urlsplit(url)
        port = parts.port or _SCHEMES[parts.scheme]
    except (ValueError, KeyError):
        raise ValueError("a node's address begins with http:// or https://") from None
    if not parts.hostname or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("a node's address is http or https, a host and a path, in plain letters")
    headers = {"content-type": "application/json", "accept": "application/json"}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    return parts.scheme == "https", parts.hostname, port, parts.path or "/", parts.query, headers
