"""The transports of a client: who may use their connections, how many calls use them at once, and
which proxy they go through.

A forked child has copies of its parent's sockets, and would read the responses to its parent's
requests. Connections of one event loop do not work in another.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import attrs
import httpx2
from anyio.lowlevel import current_token

from payments_core_http.client.bounded_sockets import bound_sockets
from payments_core_http.client.bridge import AsyncWSGITransport
from payments_core_http.client.errors import TransportUsedElsewhere
from payments_core_http.client.wire import SEND_ERRORS
from payments_core_http.client_address import is_loopback_host

_WITHOUT_SOCKETS = (
    httpx2.WSGITransport,
    httpx2.ASGITransport,
    httpx2.MockTransport,
    AsyncWSGITransport,
)


MAX_CALLS = 100
"""The maximum number of calls of a client in progress, each on a connection; others wait.

They wait here: a call that is cancelled, or that times out, while it waits for a connection of
httpcore2's pool may leave behind one that nobody can use again. So that pool has no limit.
"""
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for the URL, as httpx2 would choose it.

    Never one for loopback: a proxy has another loopback, and would receive the secrets in clear.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or is_loopback_host(host) or proxy_bypass(host):
        return None
    if any(_is_within(host, entry.strip()) for entry in proxies.get("no", "").split(",")):
        return None
    if parts.port is not None and proxy_bypass(f"{host}:{parts.port}"):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_within(host: str, entry: str) -> bool:
    """Whether a host is in a network or below a wildcard of NO_PROXY, which Python does not read:
    `10.0.0.0/8`, `*.corp.example`."""
    if entry.startswith("*."):
        return host.endswith(entry[1:].lower())
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def prepare_transport(transport: httpx2.BaseTransport | None, url: str) -> httpx2.BaseTransport:
    """The transport of a synchronous client: its own, or the caller's with its guard."""
    if transport is None:
        return OwnTransport(url)
    if isinstance(transport, (OwnTransport, PassedTransport, *_WITHOUT_SOCKETS)):
        return transport
    return PassedTransport(transport)


def prepare_async_transport(
    transport: httpx2.AsyncBaseTransport | None, url: str
) -> httpx2.AsyncBaseTransport:
    """The transport of an asynchronous client: its own, or the caller's with its guard."""
    if transport is None:
        return AsyncOwnTransport(url)
    if isinstance(transport, (AsyncOwnTransport, AsyncPassedTransport, *_WITHOUT_SOCKETS)):
        return transport
    return AsyncPassedTransport(transport)


class OwnTransport(httpx2.BaseTransport):
    """Connections that the client opens itself, new ones in each process."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for a proxy in the environment that is not a URL."""
        self._proxy = proxy_for(url)
        self._made = self._open(_Places())

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """See httpx2; the response is read."""
        if self._made.process != os.getpid():
            self._made = self._open(_Places())
        elif self._made.is_retired:
            self._made = self._open(self._made.places)
        return self._made.handle_request(request)

    def close(self) -> None:
        """Close the connections of this process."""
        if self._made.process == os.getpid():
            self._made.transport.close()

    def _open(self, places: _Places) -> _Opened:
        transport = httpx2.HTTPTransport(proxy=self._proxy, limits=_LIMITS)
        bound_sockets(transport)
        return _Opened(transport, places)


@attrs.define(eq=False)
class _Places:
    """The requests in progress. One that was stopped anywhere leaves, whether it had come in."""

    _taken: set[httpx2.Request] = attrs.field(factory=set)
    _free: threading.Condition = attrs.field(factory=threading.Condition)

    def enter(self, request: httpx2.Request) -> None:
        """Wait for a place. Raises httpx2.PoolTimeout."""
        with self._free:
            if not self._free.wait_for(self._has_free, _pool_timeout_s(request)):
                raise httpx2.PoolTimeout("too many calls are in progress", request=request)
            self._taken.add(request)

    def leave(self, request: httpx2.Request) -> None:
        """Give the place, if it has one, to the next."""
        with self._free:
            self._taken.discard(request)
            self._free.notify()

    def _has_free(self) -> bool:
        return len(self._taken) < MAX_CALLS


@attrs.define(eq=False)
class _Opened:
    """A transport with its connections in this process."""

    transport: httpx2.HTTPTransport
    places: _Places
    process: int = attrs.field(factory=os.getpid)
    is_retired: bool = False
    """Whether a call was stopped amid its request, such as by a time limit of a task: httpcore2 may
    have lost a connection then. It is closed after its last call, and no other begins."""
    _sent: set[httpx2.Request] = attrs.field(factory=set)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, read and closed. Raises httpx2.PoolTimeout if too many are in progress."""
        # A time limit of a task may stop the call at any line, also between two lines.
        try:
            self.places.enter(request)
            return self._send(request)
        finally:
            self.places.leave(request)

    def _send(self, request: httpx2.Request) -> httpx2.Response:
        try:
            with self._lock:
                self._sent.add(request)
            response = self.transport.handle_request(request)
            try:
                response.read()
            finally:
                response.close()
            return response
        except SEND_ERRORS:
            raise
        except BaseException:
            self.is_retired = True
            raise
        finally:
            with self._lock:
                self._sent.discard(request)
                is_last = self.is_retired and not self._sent
            if is_last:
                self.transport.close()


class AsyncOwnTransport(httpx2.AsyncBaseTransport):
    """Connections that the client opens itself, new ones in each process and event loop."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for a proxy in the environment that is not a URL."""
        self._proxy = proxy_for(url)
        self._first: httpx2.AsyncHTTPTransport | None = self._open()  # now, since it may raise
        self._open_in: dict[Any, AsyncGenerator[_AsyncOpened]] = {}
        self._by_place: dict[Any, _AsyncOpened] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """See httpx2; the response is read."""
        place = _loop_and_process()
        if place not in self._by_place:
            self._forget_closed_loops()
            self._open_in[place] = self._keep_open(place)
            self._by_place[place] = await anext(self._open_in[place])
        return await self._by_place[place].handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        if (kept := self._open_in.get(_loop_and_process())) is not None:
            await kept.aclose()

    async def _keep_open(self, place: Any) -> AsyncGenerator[_AsyncOpened]:
        """Until the loop ends: loops close the generators that began in them, as their last act."""
        transport, self._first = self._first or self._open(), None
        opened = _AsyncOpened(self._open, _AsyncConnections(transport))
        try:
            yield opened
        finally:
            del self._by_place[place], self._open_in[place]
            if place == _loop_and_process():  # not what a forked child has of its parent
                await opened.current.transport.aclose()

    def _forget_closed_loops(self) -> None:
        """Drop the connections of loops that were closed and have not ended their generators.

        `asyncio.run` ends them. Workers that make a loop for each task often only close it, and
        would keep a socket for each task.
        """
        for place in [place for place in list(self._by_place) if _is_closed(place)]:
            self._by_place.pop(place, None)
            self._open_in.pop(place, None)

    def _open(self) -> httpx2.AsyncHTTPTransport:
        return httpx2.AsyncHTTPTransport(proxy=self._proxy, limits=_LIMITS)


@attrs.define(eq=False)
class _AsyncOpened:
    """The present transport of an event loop."""

    open: Callable[[], httpx2.AsyncHTTPTransport]
    current: _AsyncConnections
    free: anyio.Semaphore = attrs.field(factory=lambda: anyio.Semaphore(MAX_CALLS))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, read and closed. Raises httpx2.PoolTimeout if too many are in progress."""
        try:
            with anyio.fail_after(_pool_timeout_s(request)):
                await self.free.acquire()
        except TimeoutError:
            raise httpx2.PoolTimeout("too many calls are in progress", request=request) from None
        try:
            if self.current.is_retired:
                self.current = _AsyncConnections(self.open())
            return await self.current.send(request)
        finally:
            self.free.release()


@attrs.define(eq=False)
class _AsyncConnections:
    """A transport with its connections in this event loop."""

    transport: httpx2.AsyncHTTPTransport
    is_retired: bool = False
    """Whether a call was cancelled amid its request: httpcore2 may have lost a connection then. It
    is closed after its last call, and no other begins."""
    _calls: int = 0

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """The response, read and closed."""
        self._calls += 1
        try:
            response = await self.transport.handle_async_request(request)
            try:
                await response.aread()
            finally:
                await response.aclose()
            return response
        except SEND_ERRORS:
            raise
        except BaseException:
            self.is_retired = True
            raise
        finally:
            self._calls -= 1
            if self.is_retired and self._calls == 0:
                with anyio.CancelScope(shield=True):
                    await self.transport.aclose()


def _pool_timeout_s(request: httpx2.Request) -> float | None:
    """How long a request may wait before it is sent; None means forever."""
    timeout_s: float | None = request.extensions.get("timeout", {}).get("pool")
    return timeout_s


class PassedTransport(httpx2.BaseTransport):
    """The caller's transport, which nobody else can make anew: refused in another process."""

    def __init__(self, transport: httpx2.BaseTransport) -> None:
        self._transport = transport
        bound_sockets(transport)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """See httpx2. Raises TransportUsedElsewhere."""
        if not _is_used_in(self._transport, os.getpid()):
            raise TransportUsedElsewhere("process")
        return self._transport.handle_request(request)

    def close(self) -> None:
        """Close it, unless its connections are those of another process."""
        if _is_used_in(self._transport, os.getpid()):
            self._transport.close()
            del _used_in[id(self._transport)]


class AsyncPassedTransport(httpx2.AsyncBaseTransport):
    """The caller's transport: refused in another process or event loop."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """See httpx2. Raises TransportUsedElsewhere."""
        if not _is_used_in(self._transport, _loop_and_process()):
            raise TransportUsedElsewhere("process or event loop")
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close it, unless its connections are those of another process or event loop."""
        if _is_used_in(self._transport, _loop_and_process()):
            await self._transport.aclose()
            del _used_in[id(self._transport)]


def _loop_and_process() -> tuple[int, Any]:
    token = current_token()
    return os.getpid(), getattr(token, "native_token", token)  # before anyio 4.11 the loop itself


def _is_closed(place: tuple[int, Any]) -> bool:
    """Whether the event loop of a place is closed; trio always ends its generators."""
    _, loop = place
    return isinstance(loop, asyncio.AbstractEventLoop) and loop.is_closed()


_used_in: dict[int, Any] = {}
"""Where each passed transport is used, by its id; several clients may share one."""


def _is_used_in(transport: object, place: Any) -> bool:
    """Whether it is used in that place; the first use decides."""
    if id(transport) not in _used_in:
        weakref.finalize(transport, _used_in.pop, id(transport), None)
    return bool(_used_in.setdefault(id(transport), place) == place)
