"""Deliveries that are captured in this process, and forwarded to a web application under test."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import httpx2
import msgspec

from payments_core.http.deadline import Deadline
from payments_core.webhooks.receiver import ReceivedEvent
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
        self._forward: tuple[httpx2.WSGITransport, str] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the events."""
        return [one.event.name for one in self.deliveries]

    def named(self, name: str) -> list[ReceivedEvent]:
        """The events of that name."""
        return [one.event for one in self.deliveries if one.event.name == name]

    def forward_to(self, app: Any, path: str) -> None:
        """From now on POST each delivery to the path of a WSGI application, such as Flask's.

        Its answer counts: the service retries a 5xx when its clock moves, and an exception is a
        500, as behind a server. Raises TypeError for what is no WSGI application, such as FastAPI's
        (which is ASGI).
        """
        _require_wsgi(app)
        self._forward = (httpx2.WSGITransport(app=app, raise_app_exceptions=False), path)

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


def _require_wsgi(app: Any) -> None:
    """A WSGI application is called with two arguments, and returns what it sends."""
    hint = "forward_to needs a WSGI application, called with (environ, start_response)"
    if isinstance(app, type) or not callable(app):
        raise TypeError(f"{hint}; this is {app!r:.80}")
    called = app if inspect.isroutine(app) else type(app).__call__
    if inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(called):
        raise TypeError(f"{hint}; this is ASGI: bridge it, such as by a2wsgi.ASGIMiddleware")
    try:
        inspect.signature(app).bind({}, None)
    except TypeError:
        raise TypeError(f"{hint}; this takes other arguments") from None
    except ValueError:  # a function of C has no signature to read
        return
