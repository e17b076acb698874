"""How long an answer takes: through the WSGI application, or over a socket."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Iterable
from http.client import HTTPConnection
from typing import Any
from wsgiref.types import WSGIApplication

import attrs

from payments_core_http.server.server import Server
from payments_core_http.serving import build_server
from tests.timing.refusals import Deployment, Request


@attrs.frozen
class Timed:
    """An answer, and how long it took."""

    status: int
    body: bytes
    took_us: float

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["error"]["code"])


Send = Callable[[Request, int], Timed]
"""Send a request, with a wait of so many nanoseconds before the application sees it."""


def through_wsgi(app: WSGIApplication) -> Send:
    """A sender that measures from the call of the application to its last byte."""

    def send(request: Request, wait_ns: int) -> Timed:
        environ = environ_of(request)
        started: list[str] = []
        begun = time.perf_counter_ns()
        if wait_ns:
            spin_until(begun + wait_ns)
        body = b"".join(app(environ, lambda status, *_: started.append(status)))  # type: ignore[arg-type,misc]
        took_ns = time.perf_counter_ns() - begun
        return Timed(int(started[0][:3]), body, took_ns / 1_000)

    return send


def over_socket(app: WSGIApplication, deployment: Deployment) -> tuple[Server, Send]:
    """A sender that measures as a client sees it, on one connection that stays open."""
    waits: list[int] = []

    def slowed(environ: Any, start_response: Any) -> Iterable[bytes]:
        if waits[-1]:
            spin_until(time.perf_counter_ns() + waits[-1])
        return app(environ, start_response)

    server = build_server(slowed, deployment.service.parts.ports.identifiers, threads=1)
    connection = HTTPConnection(server.host, server.port)

    def send(request: Request, wait_ns: int) -> Timed:
        waits[:] = [wait_ns]
        begun = time.perf_counter_ns()
        connection.request(request.method, request.target, headers=request.headers)
        response = connection.getresponse()
        body = response.read()
        took_ns = time.perf_counter_ns() - begun
        return Timed(response.status, body, took_ns / 1_000)

    return server, send


def environ_of(request: Request) -> dict[str, Any]:
    """A request as a server hands it over."""
    headers = {
        "HTTP_" + name.upper().replace("-", "_"): value for name, value in request.headers.items()
    }
    return {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": request.target,
        "QUERY_STRING": "",
        "SCRIPT_NAME": "",
        "REMOTE_ADDR": "203.0.113.7",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        **headers,
    }


def spin_until(at_ns: int) -> None:
    """Wait without giving the processor away, which no sleep of microseconds can."""
    while time.perf_counter_ns() < at_ns:
        pass
