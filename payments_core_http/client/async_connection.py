"""The asynchronous connection: as `connection.py`, on asyncio or trio."""

from __future__ import annotations

import functools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import anyio
import attrs
import httpx2

from payments_core.http.deadline import Deadline
from payments_core_http.client.calls import Call, PageCall
from payments_core_http.client.connection import describe, name_methods
from payments_core_http.client.errors import ClientError, NoResponse
from payments_core_http.client.retries import Retries
from payments_core_http.client.structs import Page
from payments_core_http.client.wire import (
    SEND_ERRORS,
    Credentials,
    check_url,
    limit_time,
    make_request,
    no_response,
    read_response,
    with_key,
)

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
_GRACE_S = 0.05
"""So that httpx2 ends the wait first, and says which one it was."""

PageT = TypeVar("PageT", bound=Page[Any])


@attrs.frozen
class AsyncConnection:
    """Sends calls with one credential. Tasks may share it."""

    url: str = attrs.field(converter=check_url)
    credentials: Credentials
    transport: httpx2.AsyncBaseTransport
    retries: Retries
    timeout_s: float
    sleep: Callable[[float], Awaitable[object]] = anyio.sleep
    chance: Callable[[], float] = random.random

    async def send(self, call: Call[T]) -> T:
        """The response of a call, which is retried if that is safe and `timeout_s` allows.

        Raises ClientError.
        """
        call = with_key(call)
        request = make_request(call, self.url, self.credentials)
        deadline = Deadline.after(self.timeout_s)
        for attempt in count(1):
            response = await self._try(call, request, deadline)
            if not isinstance(response, ClientError):
                return response
            wait_s = self.retries.wait_s(call, response, attempt, self.chance)
            if wait_s is None or wait_s >= deadline.remaining_s():
                response.idempotency_key = call.idempotency_key
                raise response
            await self.sleep(wait_s)
        raise AssertionError("count does not end")

    async def _try(
        self, call: Call[T], request: httpx2.Request, deadline: Deadline
    ) -> T | ClientError:
        limit_time(request, deadline)
        try:
            with anyio.move_on_after(deadline.remaining_s() + _GRACE_S):
                response = await self.transport.handle_async_request(request)
                try:
                    await response.aread()
                finally:
                    await response.aclose()
                return read_response(call, response)
        except SEND_ERRORS as error:
            return no_response(call, error)
        return NoResponse(call.operation, "ReadTimeout", was_sent=True)

    async def close(self) -> None:
        """Close the connections that are kept open."""
        await self.transport.aclose()


class AsyncPages(Generic[PageT, Item]):
    """A list. `async for` goes over every item: it reads the next page when it is needed.

    Nothing is sent before. `await first()` reads one page.
    """

    def __init__(self, connection: AsyncConnection, call: PageCall[PageT, Item]) -> None:
        self._connection, self._call = connection, call

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for item in page.data:
                yield item

    async def first(self) -> PageT:
        """The first page, or that of the `cursor` that was given."""
        return await self._connection.send(self._call)

    async def pages(self) -> AsyncIterator[PageT]:
        """Every page."""
        call: PageCall[PageT, Item] | None = self._call
        while call is not None:
            page = await self._connection.send(call)
            yield page
            call = call.following(page)


@attrs.frozen
class AsyncResource:
    """Operations on one kind of resource."""

    def __init_subclass__(cls) -> None:
        name_methods(cls)

    _connection: AsyncConnection


def sending(
    build: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncResource, P], Awaitable[T]]:
    """A method that sends the call that the function builds."""

    @functools.wraps(build)
    async def method(resource: AsyncResource, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await resource._connection.send(build(*args, **kwargs))

    return describe(method, build, "{}")


def listing(
    build: Callable[P, PageCall[PageT, Item]],
) -> Callable[Concatenate[AsyncResource, P], AsyncPages[PageT, Item]]:
    """A method that lists with the call that the function builds."""

    @functools.wraps(build)
    def method(
        resource: AsyncResource, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncPages[PageT, Item]:
        return AsyncPages(resource._connection, build(*args, **kwargs))

    return describe(method, build, "AsyncPages[{}]")
