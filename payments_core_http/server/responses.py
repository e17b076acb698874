"""What a connection sends: the application's answers by WSGI (PEP 3333), and refusals."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Mapping, Sized
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from wsgiref.util import is_hop_by_hop

from payments_core_http.server.framing import IncomingRequest
from payments_core_http.server.hosting import HostedApp

_log = logging.getLogger(__name__)

Send = Callable[[bytes], None]
"""Sends a part of an answer, or keeps it to be sent. Raises ClientGone."""


class ClientGone(Exception):
    """The client has gone, or does not read: the rest of its answer is not made."""


def answer(
    hosted: HostedApp,
    request: IncomingRequest,
    environ: Mapping[str, Any],
    send: Send,
    is_stopping: Callable[[], bool],
) -> bool:
    """Answer a request, given what `environ` has for all requests of its connection.

    Returns whether the connection is kept for another one. Raises ClientGone.
    """
    if request.error is not None:
        return _refuse(hosted, request, request.error.code, send)
    environ = build_environ(request, environ)
    response = Response(request, send, is_stopping)
    try:
        body = hosted.app(environ, response.start)
        try:
            is_whole = isinstance(body, Sized) and len(body) == 1
            for piece in body:
                if piece or is_whole:
                    response.write(piece, is_whole=is_whole)
            response.finish()
        finally:
            if (close := getattr(body, "close", None)) is not None:
                close()
        hosted.callers.learn(request.headers, environ)
    except ClientGone:
        raise
    except Exception:
        _log.exception("A request could not be answered")
        return not response.is_begun and _refuse(hosted, request, 500, send)
    return response.is_kept


def _refuse(hosted: HostedApp, request: IncomingRequest, status: int, send: Send) -> bool:
    """Answer what the application has not seen or not answered; the connection is not kept."""
    refusal = hosted.refuse(status)
    response = Response(request, send, is_stopping=lambda: True)
    phrase = HTTPStatus(refusal.status).phrase
    response.start(f"{refusal.status} {phrase}", list(refusal.headers))
    response.write(refusal.body, is_whole=True)
    return response.is_kept


def build_environ(request: IncomingRequest, base: Mapping[str, Any]) -> dict[str, Any]:
    """The WSGI environment of a request: that of its connection, and its own."""
    environ = {
        **base,
        "REQUEST_METHOD": request.command,
        "SERVER_PROTOCOL": f"HTTP/{request.version}",
        "PATH_INFO": request.path,
        "QUERY_STRING": request.query,
        "REQUEST_URI": request.request_uri,
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.input_terminated": True,  # it ends with the body, whose length need not be looked at
    }
    for name, value in request.headers.items():
        is_bare = name in ("CONTENT_TYPE", "CONTENT_LENGTH")
        environ[name if is_bare else f"HTTP_{name}"] = value
    return environ


class Response:
    """One answer, while it is made and sent."""

    def __init__(
        self, request: IncomingRequest, send: Send, is_stopping: Callable[[], bool]
    ) -> None:
        self._request = request
        self._send = send
        self._is_stopping = is_stopping
        self._status = ""
        self._headers: list[tuple[str, str]] = []
        self._length: int | None = None
        """Of the body, if it is known."""
        self._written = 0
        self._has_body = self._is_chunked = False
        self.is_begun = False
        """Whether the head is sent."""
        self.is_kept = False
        """Whether the connection is kept afterwards; known once it is begun."""

    def start(
        self,
        status: str,
        headers: list[tuple[str, str]],
        exc_info: Any = None,
        /,
    ) -> Callable[[bytes], None]:
        """WSGI's `start_response`. Raises ValueError for headers of the connection."""
        if exc_info is not None and self.is_begun:
            raise exc_info[1]
        if exc_info is None and self._status:
            raise RuntimeError("start_response was called twice")
        self._status, self._headers, self._length = status, [], None
        for name, value in headers:
            lower = name.lower()
            if is_hop_by_hop(name):
                raise ValueError(f"an application must not set {name}")
            if lower == "content-length":
                self._length = int(value)
            elif lower != "date":
                self._headers.append((name, value))
        return self.write

    def write(self, data: bytes, *, is_whole: bool = False) -> None:
        """Send a piece of the body, or all of it. Raises ValueError for a head that ends early."""
        if not self.is_begun:
            if is_whole and self._length is None:
                self._length = len(data)
            self._begin()
        if not data or not self._has_body:
            return
        self._written += len(data)
        if self._is_chunked:
            data = b"%X\r\n%b\r\n" % (len(data), data)
        elif self._length is not None and self._written > self._length:
            data = data[: self._length - self._written]
        self._send(data)

    def finish(self) -> None:
        """The body is complete."""
        self.write(b"")
        if self._is_chunked:
            self._send(b"0\r\n\r\n")
        elif self._has_body and self._length not in (None, self._written):
            _log.warning("An answer of %s bytes has %d bytes", self._length, self._written)
            self.is_kept = False  # its client may wait for more

    def _begin(self) -> None:
        if not self._status:
            raise RuntimeError("start_response was not called")
        version, headers = self._request.version, self._headers
        may_have_body = not self._status.startswith(("1", "204", "304"))
        self._has_body = may_have_body and self._request.command != "HEAD"
        asked = re.split(r"[\t ]*,[\t ]*", self._request.headers.get("CONNECTION", "").lower())
        is_wanted = "close" not in asked and (version == "1.1" or "keep-alive" in asked)
        if may_have_body and self._length is not None:
            headers.append(("Content-Length", str(self._length)))
        elif self._has_body and version == "1.1":
            self._is_chunked = True
            headers.append(("Transfer-Encoding", "chunked"))
        has_end = self._length is not None or self._is_chunked or not self._has_body
        self.is_kept = is_wanted and has_end and not self._is_stopping()
        if not self.is_kept:
            headers.append(("Connection", "close"))
        elif version == "1.0":
            headers.append(("Connection", "Keep-Alive"))
        headers.append(("Date", formatdate(usegmt=True)))
        lines = [f"HTTP/{version} {self._status}", *(f"{name}: {value}" for name, value in headers)]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("the status or a header has a line break")
        self._send("\r\n".join([*lines, "", ""]).encode("latin-1"))
        self.is_begun = True
