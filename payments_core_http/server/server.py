"""A WSGI application on one address, in this process.

It reports its port, bounds what a client may send, and shuts down gracefully: no new connections,
and what was begun is finished.
"""

from __future__ import annotations

import resource
import socket
import sys
import threading
import time
from types import TracebackType

import attrs

from payments_core_http.server.connection import SOCKET_BUFFER_BYTES
from payments_core_http.server.connection_server import BACKLOG, ConnectionServer
from payments_core_http.server.hosting import HostedApp
from payments_core_http.server.limits import ServerLimits
from payments_core_http.server.shared_queue import QueueMember, SharedQueue
from payments_core_http.server.thread_pool import ThreadPool

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may hold the interpreter lock: the default is ten times this, and a database
call that releases it would wait as long to get it back."""

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
        self.host = host
        self.port: int = queue.listening.getsockname()[1]
        self._pool = pool
        self._connections = ConnectionServer(
            hosted, pool, _fit_to_descriptors(limits or ServerLimits()), queue
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
        self._pool.attend(self._connections.run_once)
        self._drain(time.monotonic() + drain_s)

    def stop(self) -> None:
        """End `run`, from any thread or signal handler; returns at once. May be called twice."""
        if not self._connections.is_stopping:
            # At once, not when the loop wakes: an answer in between must close its connection too.
            self._connections.is_stopping = True
            self._pool.stop()
            self._connections.poll.wake()

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
        self._connections.stop_accepting()
        farewell = min(deadline, time.monotonic() + self._connections.limits.shutdown_grace_s)
        while self._connections.connections:
            now = time.monotonic()
            if now >= deadline or (now >= farewell and not self._connections.is_busy()):
                break
            self._connections.run_once(0.02)
        self._pool.shutdown(max(0.0, deadline - time.monotonic()))
        self._connections.close()


def listen(host: str, port: int, *, reuse_port: bool = False) -> socket.socket:
    """A listening socket, as a `Server` needs it. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server(
        (host, port), family=family, backlog=BACKLOG, reuse_port=reuse_port
    )
    # Accepted connections inherit these; left alone, the kernel keeps megabytes for each.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
    return listening


def _fit_to_descriptors(limits: ServerLimits) -> ServerLimits:
    """The limits, with no more connections than the process may have descriptors."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return limits
    fitting = max(1, allowed - _RESERVED_DESCRIPTORS)
    return attrs.evolve(limits, connections=min(limits.connections, fitting))
