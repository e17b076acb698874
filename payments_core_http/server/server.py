"""The application under waitress, in this process: for every command that serves, and the tests.

It tells its port, bounds what a client may send, answers in our own shape what waitress refuses
by itself, and ends gracefully: no new connections, and what was begun is finished.
"""

from __future__ import annotations

import contextlib
import logging
import resource
import socket
import sys
import threading
import time
from types import TracebackType
from typing import Any
from wsgiref.types import WSGIApplication

import attrs
from waitress import wasyncore
from waitress.adjustments import Adjustments

from payments_core.engine.identifiers import Identifiers
from payments_core.versions import FIRST
from payments_core_http.app import DEFAULT_THREADS
from payments_core_http.server.connection import HEADER_LIMIT_BYTES, Listener
from payments_core_http.server.limits import Bounds
from payments_core_http.server.thread_pool import Pool
from payments_core_http.wire.request_body import LIMIT_BYTES

__all__ = ["Server", "Bounds", "HEADER_LIMIT_BYTES", "RECEIVED_LIMIT_BYTES", "SWITCH_INTERVAL_S"]

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the interpreter from others: the default is ten times this, and a
database call that gives it up would wait as long to get it back."""

RECEIVED_LIMIT_BYTES = 2 * LIMIT_BYTES
"""Up to here a body that is too large is read and refused by the application; beyond it, chunk
sizes included, the server stops reading. Every connection may hold as much."""

_RECEIVE_BYTES = 8 * 1024
"""Of one connection at a time: one that is slow to read must not hold up the rest for long."""
_KERNEL_BYTES = 128 * 1024
_LOOP_S = 0.5
_OTHER_DESCRIPTORS = 128
"""Left to databases, webhooks and files, where the process may not open many."""


class Server:
    """Serves a WSGI application on one address, with a bounded number of threads."""

    def __init__(
        self,
        app: WSGIApplication,
        identifiers: Identifiers,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        threads: int = DEFAULT_THREADS,
        api_version: str = FIRST,
        bounds: Bounds | None = None,
        reuse_port: bool = False,
    ) -> None:
        """Listens at once; port 0 picks a free one. Raises OSError where it cannot.

        `api_version` is what refusals say that no application has seen: the current one.
        `bounds` are those of `Bounds` unless given; where the process may open fewer descriptors,
        it takes fewer connections. With `reuse_port` other processes of this machine may listen on
        the same port, and the kernel shares connections out among them.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, reuse_port=reuse_port)
        # Accepted connections inherit these; left alone, the kernel keeps megabytes for each.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KERNEL_BYTES)
        self.host = host
        self.port: int = listening.getsockname()[1]
        settings = Adjustments(
            sockets=[listening],
            ident=None,
            expose_tracebacks=False,
            log_socket_errors=False,  # clients that break off would fill the log
            max_request_header_size=HEADER_LIMIT_BYTES,
            max_request_body_size=RECEIVED_LIMIT_BYTES,
            inbuf_overflow=RECEIVED_LIMIT_BYTES,
            recv_bytes=_RECEIVE_BYTES,
            # The application reads X-Forwarded-For itself, from the proxies that it trusts.
            clear_untrusted_proxy_headers=False,
        )
        self._waitress: Any = Listener(
            app,
            {},
            True,
            listening,
            dispatcher=Pool(threads),
            adj=settings,
            bind_socket=False,
            sockinfo=(family, listening.type, listening.proto, listening.getsockname()),
            identifiers=identifiers,
            api_version=api_version,
            bounds=_fitting(bounds or Bounds()),
        )
        self._stopping = False
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """`http://host:port`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def run(self, drain_s: float = 10.0) -> None:
        """Serve until `stop`, then finish what was begun, within `drain_s` seconds."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        # A line for every request that waits for a thread would fill the log under any load.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        while not self._stopping:
            self._turn(_LOOP_S)
        self._drain(time.monotonic() + drain_s)

    def stop(self) -> None:
        """End `run`, from any thread or signal handler; returns at once. Twice does no harm."""
        if not self._stopping:
            self._stopping = True
            with contextlib.suppress(OSError):  # the loop may have seen the flag, and be closed
                self._waitress.pull_trigger()

    def start(self) -> None:
        """`run` in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name="http", daemon=True)
        self._thread.start()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def _turn(self, timeout_s: float) -> None:
        self._waitress.turn(timeout_s)

    def _drain(self, deadline: float) -> None:
        """Answer who is here, each for the last time, and who waits to be let in.

        A client that has just connected, or that keeps its connection, may be sending: it has
        `farewell_s` for that. Who sends later, into a connection that closes, gets no answer.
        """
        self._waitress.end()
        farewell = min(deadline, time.monotonic() + self._waitress.bounds.farewell_s)
        while self._waitress.active_channels:
            now = time.monotonic()
            if now >= deadline or (now >= farewell and not self._busy()):
                break
            self._turn(0.02)
        self._waitress.task_dispatcher.shutdown(max(0.0, deadline - time.monotonic()))
        self._waitress.poll.close()
        self._waitress.trigger.close()
        wasyncore.close_all(self._waitress._map, ignore_all=True)

    def _busy(self) -> bool:
        """Whether a request is being answered, or an answer has not left yet."""
        channels = list(self._waitress.active_channels.values())
        return any(channel.requests or channel.total_outbufs_len for channel in channels)


def _fitting(bounds: Bounds) -> Bounds:
    """The bounds, with no more connections than the process may have descriptors."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return bounds
    fitting = max(1, allowed - _OTHER_DESCRIPTORS)
    return attrs.evolve(bounds, connections=min(bounds.connections, fitting))
