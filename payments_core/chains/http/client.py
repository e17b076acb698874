"""HTTP to one server of a chain: bounded in time and size, and silent about its secrets.

Addresses of nodes hold keys, in the path, the query or before the host. So a server is called by
its host alone; no error, log or repr contains more, nor any text of the server.
"""

from __future__ import annotations

import base64
import logging
import socket
import ssl
import time
from collections.abc import Mapping
from functools import partial
from urllib.parse import quote, unquote, urlsplit

import attrs

from payments_core.chains.port import ChainUnavailable
from payments_core.http.connection_pool import ConnectionKey, ConnectionPool
from payments_core.http.deadline import Deadline, require_time_left
from payments_core.http.response import (
    HttpResponse,
    NoResponse,
    ResponseReader,
    read_body,
    read_head,
)
from payments_core.http.sockets import connect, prepare, send_all
from payments_core.json_depth import exceeds_depth

CONNECT_TIMEOUT_S = 3.0
TOTAL_TIMEOUT_S = 10.0
"""The maximum total time of one request, from connecting to the last byte of the answer."""

MAX_RESPONSE_BYTES = 32 << 20
"""A transaction may have tens of thousands of logs, and its receipt must still be read."""

MAX_JSON_DEPTH = 64
"""Answers are nested a few levels deep; deeper ones are not parsed."""

IDLE_S = 60.0
"""How long a connection waits for its next request: a chain is asked every few seconds."""

MAX_IDLE = 8
USER_AGENT = "payments-core"
"""Some node providers refuse a request without a user agent."""

BASE_TARGET = "/"
"""The path of the base URL itself, with nothing after it."""

_SCHEMES = {"http": 80, "https": 443}
_PATH_CHARACTERS = "/?&=%:@!$'()*+,;~-._"

_log = logging.getLogger(__name__)


class ResponseTooLarge(ChainUnavailable):
    """The answer was larger than the maximum."""


@attrs.frozen
class RequestLimits:
    """The limits of a request; no answer is read beyond `max_response_bytes`."""

    connect_timeout_s: float = CONNECT_TIMEOUT_S
    total_timeout_s: float = TOTAL_TIMEOUT_S
    max_response_bytes: int = MAX_RESPONSE_BYTES


class HttpClient:
    """Sends requests to one server over kept connections. Threads may share it."""

    def __init__(self, url: str, limits: RequestLimits | None = None) -> None:
        """Raises ValueError, which does not repeat the address, unless it is http or https."""
        tls, self._host, self._port, self._base, self._query, headers = _parse_url(url)
        self._tls = _tls_context() if tls else None
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._limits = limits or RequestLimits()
        self._idle: ConnectionPool[socket.socket] = ConnectionPool(IDLE_S, MAX_IDLE, MAX_IDLE)

    @property
    def name(self) -> str:
        """The server's name in messages: its host and port."""
        return f"{self._host}:{self._port}"

    def __repr__(self) -> str:
        return f"HttpClient({self.name})"

    def send(
        self, method: str, until: float, path: str = "/", body: bytes | None = None
    ) -> tuple[int, bytes]:
        """The status and body of the answer, at the latest by `until` of the monotonic clock.

        `path` begins with a slash and is appended to that of the address; "/" adds nothing. A
        redirect is not followed. Raises ChainUnavailable, ResponseTooLarge.

        A kept connection may have been closed by the other side at that moment: then the request
        is sent again, which is safe for reads and for signed transactions.
        """
        now = time.monotonic()
        if now >= until:
            raise ChainUnavailable(f"{self.name}: the deadline has passed")
        deadline = Deadline(min(until, now + self._limits.total_timeout_s))
        send_once = partial(self._send_once, method, deadline, path, body)
        answer = send_once()
        if answer is None and deadline.remaining_s() > 0:
            answer = send_once()
        if answer is None:
            raise ChainUnavailable(f"{self.name}: the response is incomplete")
        if exceeds_depth(answer[1], MAX_JSON_DEPTH):
            raise ChainUnavailable(f"{self.name}: the response is nested too deeply")
        return answer

    def close(self) -> None:
        """Close the connections that wait, and keep none from now on."""
        self._idle.close()

    def _send_once(
        self, method: str, deadline: Deadline, path: str, body: bytes | None
    ) -> tuple[int, bytes] | None:
        """The answer, or None if it broke off."""
        key = ConnectionKey("http" if self._tls is None else "https", self._host, self._port, "")
        try:
            request = self._request(method, path, body)
            waiting = self._idle.take([key])
            connection = self._connect(deadline) if waiting is None else waiting[1]
            answer = self._exchange(key, connection, request, deadline)
        except TimeoutError as error:
            raise ChainUnavailable(f"{self.name}: the request timed out") from error
        except ssl.SSLError as error:
            raise ChainUnavailable(f"{self.name}: SSLError") from error
        except (OSError, ValueError) as error:
            raise ChainUnavailable(f"{self.name}: {type(error).__name__}") from error
        if answer is None:
            return None
        _log.debug("%s: %s %s: %d", self.name, method, path, answer.status)
        if 300 <= answer.status < 400:
            raise ChainUnavailable(f"{self.name}: it redirects; redirects are not followed")
        return answer.status, answer.body

    def _exchange(
        self, key: ConnectionKey, connection: socket.socket, request: bytes, deadline: Deadline
    ) -> HttpResponse | None:
        """The whole answer, or None if it broke off. Raises TimeoutError, ResponseTooLarge."""
        clean = False
        try:
            send_all(connection, request, deadline)
            answer, clean = self._read_body(ResponseReader(connection, deadline))
        except TimeoutError:
            raise
        except (OSError, NoResponse):
            return None
        finally:
            if clean:
                self._idle.put(key, connection)
            else:  # the rest must not become the next answer
                connection.close()
        if not answer.complete:
            require_time_left(deadline)  # an answer that broke off at the deadline was too late
            return None
        return answer

    def _read_body(self, incoming: ResponseReader) -> tuple[HttpResponse, bool]:
        """The answer. No compression is requested; a compressed answer is not understood."""
        most = self._limits.max_response_bytes
        head = read_head(incoming)
        if head.length <= most:
            answer, clean = read_body(head, incoming, most + 1)
            if len(answer.body) <= most:
                return answer, clean
        raise ResponseTooLarge(f"{self.name}: the response has more than {most} bytes")

    def _connect(self, deadline: Deadline) -> socket.socket:
        """A connection to the first address of the server that accepts one. Raises OSError."""
        last = OSError("the name has no address")
        places = socket.getaddrinfo(self._host, self._port, socket.AF_UNSPEC, socket.SOCK_STREAM)
        for family, _, _, _, place in places:
            within_s = min(self._limits.connect_timeout_s, require_time_left(deadline))
            try:
                connection = connect(family, place, within_s)
            except OSError as error:
                last = error
                continue
            return prepare(connection, self._tls, self._host, deadline)
        raise last

    def _request(self, method: str, path: str, body: bytes | None) -> bytes:
        """The request as it is sent. Only here are `base` and `query`, which may contain a key."""
        target = self._base
        if path != BASE_TARGET:
            target = self._base.rstrip("/") + quote(path, safe=_PATH_CHARACTERS)
        if self._query:
            target += ("&" if "?" in target else "?") + self._query
        length = "" if body is None else f"content-length: {len(body)}\r\n"
        head = f"{method} {target} HTTP/1.1\r\n{self._headers}{length}\r\n"
        return head.encode("ascii") + (body or b"")


def _tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _parse_url(url: str) -> tuple[bool, str, int, str, str, Mapping[str, str]]:
    """Whether it is TLS, the host, port, path and query, and the headers to be sent."""
    try:
        parts = urlsplit(url)
        port = parts.port or _SCHEMES[parts.scheme]
    except (ValueError, KeyError):
        raise ValueError("the URL of a node must begin with http:// or https://") from None
    if not parts.hostname or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("the URL of a node must be http or https with a host and a path, in ASCII")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    headers = {
        "host": host if port == _SCHEMES[parts.scheme] else f"{host}:{port}",
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": USER_AGENT,
    }
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    return parts.scheme == "https", parts.hostname, port, parts.path or "/", parts.query, headers
