"""An application under waitress, in this process.

It reports its port, bounds what a client may send, and shuts down gracefully: no new connections,
and what was begun is finished.
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

import attrs
from waitress import wasyncore
from waitress.adjustments import Adjustments

from payments_core_http.server.connection_server import ConnectionServer
from payments_core_http.server.hosting import MAX_HEADER_BYTES, HostedApp
from payments_core_http.server.limits import ServerLimits
from payments_core_http.server.shared_queue import QueueMember, SharedQueue
from payments_core_http.server.thread_pool import ThreadPool

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may hold the interpreter lock: the default is ten times this, and a database
call that releases it would wait as long to get it back."""

_RECEIVE_BYTES = 8 * 1024
"""Of one connection at a time: a slow reader must not hold up the others for long."""
_SOCKET_BUFFER_BYTES = 128 * 1024
_RESERVED_DESCRIPTORS = 128
"""Reserved for databases, webhooks and files, if the process may not open many."""


class Server:
    """Serves a WSGI application on one address, with a bounded number of threads."""

    def __init__(
        self,
        hosted: HostedApp,
        pool: ThreadPool,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: ServerLimits | None = None,
        reuse_port: bool = False,
        queue: QueueMember | None = None,
    ) -> None:
        """Listens at once; port 0 picks a free port. Raises OSError if it cannot listen.

        `limits` are those of `ServerLimits` unless given; if the process may open fewer
        descriptors, it accepts fewer connections. With `reuse_port` other processes of this machine
        may listen on the same port, and the kernel distributes connections among them.
        `queue` is of a socket of `listen` on `host`, from which several processes accept.
        """
        if queue is None:
            queue = QueueMember(SharedQueue(listen(host, port, reuse_port=reuse_port), 1), 1)
        listening = queue.listening
        self.host = host
        self.port: int = listening.getsockname()[1]
        settings = Adjustments(
            sockets=[listening],
            ident=None,
            expose_tracebacks=False,
            log_socket_errors=False,  # clients that disconnect would fill the log
            max_request_header_size=MAX_HEADER_BYTES,
            max_request_body_size=hosted.max_body_bytes,
            inbuf_overflow=hosted.max_body_bytes,
            recv_bytes=_RECEIVE_BYTES,
            # The application reads X-Forwarded-For itself, from the proxies that it trusts.
            clear_untrusted_proxy_headers=False,
        )
        # An answer is sent whole, after its request ended: with waitress's 1 the head was sent by
        # itself, and the client's next request came while this one was still being finished.
        settings.send_bytes = _SOCKET_BUFFER_BYTES
        self._pool = pool
        self._waitress: Any = ConnectionServer(
            hosted.app,
            {},
            True,
            listening,
            dispatcher=self._pool,
            adj=settings,
            bind_socket=False,
            sockinfo=(listening.family, listening.type, listening.proto, listening.getsockname()),
            hosted=hosted,
            limits=_fit_to_descriptors(limits or ServerLimits()),
            queue=queue,
        )
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
        self._pool.attend(self._waitress.run_once)
        self._drain(time.monotonic() + drain_s)

    def stop(self) -> None:
        """End `run`, from any thread or signal handler; returns at once. May be called twice."""
        if not self._waitress.is_stopping:
            # At once, not when the loop wakes: an answer in between must close its connection too.
            self._waitress.is_stopping = True
            self._pool.stop()
            with contextlib.suppress(OSError):  # the loop may have seen the flag, and be closed
                self._waitress.pull_trigger()

    def start(self) -> None:
        """`run` in its own thread."""
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

    def _drain(self, deadline: float) -> None:
        """Answer connected clients for the last time, and those that wait to be accepted.

        A client that has just connected, or that keeps its connection, may be sending: it has
        `shutdown_grace_s` for that. A client that sends later, into a closing connection, gets no
        answer.
        """
        self._waitress.stop_accepting()
        farewell = min(deadline, time.monotonic() + self._waitress.limits.shutdown_grace_s)
        while self._waitress.active_channels:
            now = time.monotonic()
            if now >= deadline or (now >= farewell and not self._is_busy()):
                break
            self._waitress.run_once(0.02)
        self._pool.shutdown(max(0.0, deadline - time.monotonic()))
        self._waitress.poll.close()
        self._waitress.trigger.close()
        wasyncore.close_all(self._waitress._map, ignore_all=True)

    def _is_busy(self) -> bool:
        """Whether a request is being answered, or an answer has not been sent yet."""
        channels = list(self._waitress.active_channels.values())
        return any(channel.requests or channel.total_outbufs_len for channel in channels)


def listen(host: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """A listening socket, as a `Server` needs it. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, reuse_port=reuse_port)
    # Accepted connections inherit these; left alone, the kernel keeps megabytes for each.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER_BYTES)
    return listening


def _fit_to_descriptors(limits: ServerLimits) -> ServerLimits:
    """The limits, with no more connections than the process may have descriptors."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return limits
    fitting = max(1, allowed - _RESERVED_DESCRIPTORS)
    return attrs.evolve(limits, connections=min(limits.connections, fitting))
