"""Sockets whose every wait ends at the deadline of the call that is in progress in this thread.

httpx2's timeouts are for one read: against a server that sends a byte at a time they bound nothing.
The asynchronous connection needs none of this, since its tasks can be cancelled.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore2
import httpx2

from payments_core.http.deadline import Deadline

_deadline: ContextVar[Deadline | None] = ContextVar("payments_core_client_deadline", default=None)


@contextmanager
def ending_at(deadline: Deadline) -> Iterator[None]:
    """End every wait of bounded sockets in this thread at the deadline."""
    before = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(before)


def bound_sockets(transport: httpx2.BaseTransport) -> None:
    """Bound the sockets that a transport of httpx2 opens from now on; leave others alone.

    httpx2 has no argument for httpcore2's network backend, hence its private attributes here.
    """
    if isinstance(transport, httpx2.HTTPTransport):
        pool: Any = transport._pool
        if not isinstance(pool._network_backend, _BoundedBackend):
            pool._network_backend = _BoundedBackend(pool._network_backend)


def _left(timeout: float | None, error: type[httpcore2.TimeoutException]) -> float | None:
    """The timeout, or what is left until the deadline if that is less. Raises the error."""
    deadline = _deadline.get()
    if deadline is None:
        return timeout
    left = deadline.remaining_s()
    if left <= 0:
        raise error("the deadline has passed")
    return left if timeout is None else min(timeout, left)


class _BoundedBackend(httpcore2.NetworkBackend):
    def __init__(self, inner: httpcore2.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        within = _left(timeout, httpcore2.ConnectTimeout)
        return _BoundedStream(
            self._inner.connect_tcp(host, port, within, local_address, socket_options)
        )

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        within = _left(timeout, httpcore2.ConnectTimeout)
        return _BoundedStream(self._inner.connect_unix_socket(path, within, socket_options))

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _BoundedStream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        within = _left(timeout, httpcore2.ConnectTimeout)
        return _BoundedStream(self._inner.start_tls(ssl_context, server_hostname, within))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
