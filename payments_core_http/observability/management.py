"""A listener only for operators, on its own address: metrics, liveness and readiness.

The public must never reach it: it requires no credential. It is the standard library's server,
which suffices for a few requests. A connection has one answer and a bound on its whole time. If
there are too many, the oldest whose request is incomplete is closed, so that nobody who sends
slowly makes a process look dead.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from payments_core_http.observability.bounded_probe import READY_TIMEOUT_S, BoundedProbe
from payments_core_http.observability.metrics import Metrics

CONNECTION_TIMEOUT_S = 5.0
"""The maximum time from a connection's start to its end, regardless of its client."""

MAX_CONNECTIONS = 16
"""The maximum number of connections; if all are being answered, new ones are closed."""

_PLAIN_TEXT = "text/plain; charset=utf-8"
_POLL_INTERVAL_S = 0.1
_log = logging.getLogger(__name__)

ManagementResponse = tuple[int, str, bytes]
"""A status, a content type and a body."""


class ManagementServer:
    """Answers `GET /metrics`, `/healthz` and `/readyz`."""

    def __init__(
        self,
        host: str,
        port: int,
        metrics: Metrics,
        ready: Callable[[], None],
        *,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Listens at once; port 0 picks a free port. Raises OSError if it cannot listen.

        `ready` returns if the process can serve, and raises if it cannot. A process that is
        stopping is never ready.
        """
        self._metrics = metrics
        self._is_stopping = is_stopping
        self._ready = BoundedProbe(ready, name="payments-ready")
        answers: dict[str, Callable[[str], ManagementResponse]] = {
            "/metrics": self._render_metrics,
            "/healthz": lambda accept: (200, _PLAIN_TEXT, b"ok\n"),
            "/readyz": self._check_readiness,
        }
        self._server = _ManagementListener(host, port, answers)
        self.host = host
        self.port: int = self._server.server_address[1]
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """`http://host:port`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Answer from now on, in its own threads."""
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(_POLL_INTERVAL_S,),
            name="payments-management",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop answering, without waiting for running requests. May be called twice."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join(2 * CONNECTION_TIMEOUT_S)
            self._thread = None
        self._server.server_close()

    def _render_metrics(self, accept: str) -> ManagementResponse:
        text, content_type = self._metrics.render_exposition(accept)
        return 200, content_type, text

    def _check_readiness(self, accept: str) -> ManagementResponse:
        if self._is_stopping():
            return 503, _PLAIN_TEXT, b"stopping\n"
        try:
            self._ready.ask(READY_TIMEOUT_S)
        except Exception as error:  # on any error, it is not ready
            _log.warning("not ready: %s", type(error).__name__)
            return 503, _PLAIN_TEXT, b"not ready\n"
        return 200, _PLAIN_TEXT, b"ready\n"


class _ManagementListener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # the process must not wait for slow clients

    def __init__(
        self, host: str, port: int, answers: dict[str, Callable[[str], ManagementResponse]]
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.answers = answers
        self._open: dict[Any, float] = {}
        """The deadline of each connection, the oldest first."""
        self._sending: set[Any] = set()
        """The connections whose request is incomplete."""
        self._lock = threading.Lock()
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # Not the standard library's own, which looks up the host's name.
        # A restart must not wait until the previous process's connections are forgotten.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._reserve_place(request):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close expired connections; the standard library calls it at every turn."""
        now = time.monotonic()
        with self._lock:
            for late in [request for request, until in self._open.items() if now >= until]:
                self._shut_down(late)

    def mark_complete(self, request: Any) -> None:
        """Keep the connection: its request is complete."""
        with self._lock:
            self._sending.discard(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:  # before its descriptor may become another's
            self._drop(request)
        super().shutdown_request(request)

    def _reserve_place(self, request: Any) -> bool:
        with self._lock:
            if len(self._open) >= MAX_CONNECTIONS:
                oldest = next((one for one in self._open if one in self._sending), None)
                if oldest is None:
                    return False
                self._shut_down(oldest)
            self._open[request] = time.monotonic() + CONNECTION_TIMEOUT_S
            self._sending.add(request)
        return True

    def _shut_down(self, request: Any) -> None:
        """Wake its thread, which then closes it."""
        self._drop(request)
        with contextlib.suppress(OSError):  # the client was faster
            request.shutdown(socket.SHUT_RDWR)

    def _drop(self, request: Any) -> None:
        self._open.pop(request, None)
        self._sending.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("an operator's connection failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _ManagementListener
    timeout = CONNECTION_TIMEOUT_S
    server_version = "payments"
    sys_version = ""
    error_message_format = "%(code)d\n"
    error_content_type = _PLAIN_TEXT

    def do_GET(self) -> None:
        self._respond(with_body=True)

    def do_HEAD(self) -> None:
        self._respond(with_body=False)

    def _respond(self, *, with_body: bool) -> None:
        self.server.mark_complete(self.connection)
        answer = self.server.answers.get(self.path.partition("?")[0])
        if answer is None:
            self.send_error(404)
            return
        status, content_type, body = answer(self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the standard library would write to standard error."""
