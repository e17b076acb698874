"""Deliveries that are captured in this process, and forwarded to a web application under test."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import httpx2
import msgspec

from payments_core.http.deadline import Deadline
from payments_core.webhooks.received import ReceivedEvent
from payments_core.webhooks.transports.port import TransportResult, WebhookRequest

ENDPOINT_URL = "https://app.example/webhooks"
"""The endpoint of every sandbox; nothing connects to it."""
_PUBLIC_ADDRESS = "8.8.8.8"
"""An address that the rules of destinations accept."""


@attrs.frozen
class Delivery:
    """One delivery as your endpoint would receive it. A retry of an event is a delivery too."""

    body: bytes = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    event: ReceivedEvent


class CapturedEvents:
    """Receives every delivery of the sandbox, in order.

    Deliveries are jobs: they come when the sandbox runs or its clock moves. Without `forward_to`
    each is answered with 204.
    """

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.signing_secret = ""
        """The secret with which your application verifies the deliveries."""
        self._forward: tuple[httpx2.BaseTransport, str] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the events."""
        return [one.event.name for one in self.deliveries]

    def named(self, name: str) -> list[ReceivedEvent]:
        """The events of that name."""
        return [one.event for one in self.deliveries if one.event.name == name]

    def forward_to(self, app: Any, path: str) -> None:
        """From now on POST each delivery to the path of a WSGI or ASGI application, such as Flask's
        or FastAPI's.

        Its answer counts: the service retries a 5xx when its clock moves, and an exception is a
        500, as behind a server. An ASGI application runs in an event loop of its own for each
        delivery, without the events of its lifespan. Raises TypeError for what is neither.
        """
        self._forward = (_open_transport(app), path)

    # The ports of the service that this implements.

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        """An address for every name."""
        return [_PUBLIC_ADDRESS]

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        """Keep the delivery, and forward it."""
        event = msgspec.json.decode(request.body, type=ReceivedEvent)
        self.deliveries.append(Delivery(request.body, dict(request.headers), event))
        if self._forward is None:
            return TransportResult(status=204)
        transport, path = self._forward
        response = transport.handle_request(
            httpx2.Request(
                "POST",
                f"https://app.example{path}",
                headers=dict(request.headers),
                content=request.body,
            )
        )
        body = response.read()
        response.close()
        retry_after = response.headers.get("Retry-After")
        return TransportResult(response.status_code, body, retry_after)

    def close(self) -> None:
        """Nothing to close."""


class _ASGITransport(httpx2.BaseTransport):
    """Calls an ASGI application, each request in a thread of its own: the test may have a loop."""

    def __init__(self, app: Any) -> None:
        self._asgi = httpx2.ASGITransport(app=app, raise_app_exceptions=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The application's response, read whole."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._call(request)).result()

    async def _call(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._asgi.handle_async_request(request)
        content = await response.aread()
        await response.aclose()
        return httpx2.Response(response.status_code, headers=response.headers, content=content)


def _open_transport(app: Any) -> httpx2.BaseTransport:
    """The transport to an application of either kind. Raises TypeError for what is neither.

    A WSGI application is called with two arguments, and returns what it sends; an ASGI application
    is called with three, and what it returns is awaited.
    """
    if callable(app) and not isinstance(app, type):
        called = app if inspect.isroutine(app) else type(app).__call__
        is_awaited = inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(called)
        if not is_awaited and _takes(app, 2):
            return httpx2.WSGITransport(app=app, raise_app_exceptions=False)
        if _takes(app, 3):
            return _ASGITransport(app)
    raise TypeError(
        "forward_to needs a WSGI application, called with (environ, start_response), or an ASGI"
        f" application, called with (scope, receive, send); this is {app!r:.80}"
    )


def _takes(app: Any, arguments: int) -> bool:
    try:
        inspect.signature(app).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:  # a function of C has no signature to read
        return True
    return True
