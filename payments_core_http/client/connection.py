"""The synchronous connection to one service, and what makes methods of resources send calls."""

from __future__ import annotations

import functools
import inspect
import random
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import attrs
import httpx2

from payments_core.http.deadline import Deadline
from payments_core_http.client.bounded_sockets import ending_at
from payments_core_http.client.calls import Call, PageCall
from payments_core_http.client.errors import ClientError
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
PageT = TypeVar("PageT", bound=Page[Any])


@attrs.frozen
class Connection:
    """Sends calls with one credential. Threads may share it.

    It uses httpx2's transports without `httpx2.Client`, which would log each URL, and a link's URL
    contains its code.
    """

    url: str = attrs.field(converter=check_url)
    credentials: Credentials
    transport: httpx2.BaseTransport
    retries: Retries
    timeout_s: float
    sleep: Callable[[float], object] = time.sleep
    chance: Callable[[], float] = random.random

    def send(self, call: Call[T]) -> T:
        """The response of a call, which is retried if that is safe and `timeout_s` allows.

        Raises ClientError.
        """
        call = with_key(call)
        request = make_request(call, self.url, self.credentials)
        deadline = Deadline.after(self.timeout_s)
        for attempt in count(1):
            response = self._try(call, request, deadline)
            if not isinstance(response, ClientError):
                return response
            wait_s = self.retries.wait_s(call, response, attempt, self.chance)
            if wait_s is None or wait_s >= deadline.remaining_s():
                response.idempotency_key = call.idempotency_key
                raise response
            self.sleep(wait_s)
        raise AssertionError("count does not end")

    def _try(self, call: Call[T], request: httpx2.Request, deadline: Deadline) -> T | ClientError:
        limit_time(request, deadline)
        try:
            with ending_at(deadline):
                response = self.transport.handle_request(request)
                try:
                    response.read()
                finally:
                    response.close()
        except SEND_ERRORS as error:
            return no_response(call, error)
        return read_response(call, response)

    def close(self) -> None:
        """Close the connections that are kept open."""
        self.transport.close()


class Pages(Generic[PageT, Item]):
    """A list. Iterate over it for every item: it reads the next page when it is needed.

    Nothing is sent before. `first()` reads one page.
    """

    def __init__(self, connection: Connection, call: PageCall[PageT, Item]) -> None:
        self._connection, self._call = connection, call

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from page.data

    def first(self) -> PageT:
        """The first page, or that of the `cursor` that was given."""
        return self._connection.send(self._call)

    def pages(self) -> Iterator[PageT]:
        """Every page."""
        call: PageCall[PageT, Item] | None = self._call
        while call is not None:
            page = self._connection.send(call)
            yield page
            call = call.following(page)


@attrs.frozen
class Resource:
    """Operations on one kind of resource."""

    def __init_subclass__(cls) -> None:
        name_methods(cls)

    _connection: Connection


def sending(build: Callable[P, Call[T]]) -> Callable[Concatenate[Resource, P], T]:
    """A method that sends the call that the function builds."""

    @functools.wraps(build)
    def method(resource: Resource, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return resource._connection.send(build(*args, **kwargs))

    return describe(method, build, "{}")


def listing(
    build: Callable[P, PageCall[PageT, Item]],
) -> Callable[Concatenate[Resource, P], Pages[PageT, Item]]:
    """A method that lists with the call that the function builds."""

    @functools.wraps(build)
    def method(resource: Resource, /, *args: P.args, **kwargs: P.kwargs) -> Pages[PageT, Item]:
        return Pages(resource._connection, build(*args, **kwargs))

    return describe(method, build, "Pages[{}]")


Method = TypeVar("Method", bound=Callable[..., Any])


def describe(method: Method, build: Callable[..., Any], responses: str) -> Method:
    """The method with the signature that `help()` and editors show: of the function, with self."""
    signature = inspect.signature(build)
    _, _, response = str(signature.return_annotation).partition("[")
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[itself, *signature.parameters.values()],
        return_annotation=responses.format(response.removesuffix("]")),
    )
    del method.__wrapped__  # type: ignore[attr-defined]
    return method


def name_methods(resource: type) -> None:
    """Give each method the name that it has in the class, for `help()` and traces."""
    for name, method in vars(resource).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            method.__name__, method.__qualname__ = name, f"{resource.__name__}.{name}"
