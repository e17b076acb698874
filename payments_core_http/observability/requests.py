"""The report of each request: a line in the access log, and a call of the observer.

Neither ever has a path, a query, a header or a body: a path may contain a link code, and the rest
partners' data. They have the route instead of the path.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Protocol

import attrs

from payments_core_http.errors import RateLimitReason
from payments_core_http.observability import health

NO_ROUTE = "no route"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_METHOD = "_OTHER"
"""For unknown methods, as in OpenTelemetry's conventions."""

_log = logging.getLogger("payments_core_http.access")


@attrs.define(eq=False)
class ObservedRequest:
    """One request, with more facts as it proceeds; `status` is set when it has ended.

    `credential` is the kind that its route requires, and `document` the parsed body.
    """

    id: str
    method: str
    route: str
    """The template of its path, such as `/v2/payments/{paymentId}`, or `no route`."""
    status: int = 500
    environment_id: str | None = None
    is_replay: bool = False
    rate_limit_reason: RateLimitReason | None = None
    credential: str | None = None
    error_code: str | None = None
    document: Any = attrs.field(default=None, repr=False)
    body_bytes: int | None = None
    """The length of the body, if it was read."""


class RequestObserver(Protocol):
    """Observes requests."""

    def observe_request(
        self, request: ObservedRequest, environ: Mapping[str, Any]
    ) -> AbstractContextManager[object]:
        """Surrounds a request, which is complete at the end; `environ` is its WSGI environment.

        Returns at once, from any thread; raises nothing, and lets every exception through.
        """


@attrs.frozen
class NoopObserver:
    """Observes nothing."""

    def observe_request(
        self, request: ObservedRequest, environ: Mapping[str, Any]
    ) -> AbstractContextManager[object]:
        return _NULL_CONTEXT


_NULL_CONTEXT: AbstractContextManager[object] = nullcontext()

NOOP_OBSERVER: RequestObserver = NoopObserver()


def new_request(id: str, method: str, template: str | None) -> ObservedRequest:
    """A request that has just arrived; `template` is that of its path, if it has a route."""
    return ObservedRequest(id, method if method in METHODS else OTHER_METHOD, template or NO_ROUTE)


def observe(
    observer: RequestObserver, request: ObservedRequest, environ: Mapping[str, Any]
) -> AbstractContextManager[object]:
    """Call the observer with the request, and write its line when it has ended."""
    observed = observer.observe_request(request, environ)
    # Liveness checks of every second would fill the log.
    level = logging.DEBUG if request.route in health.PATHS else logging.INFO
    return _Logged(observed, request, level) if _log.isEnabledFor(level) else observed


class _Logged:
    """Writes a request's line, before its observer ends."""

    __slots__ = ("_began", "_level", "_observed", "_request")

    def __init__(
        self, observed: AbstractContextManager[object], request: ObservedRequest, level: int
    ) -> None:
        self._observed = observed
        self._request = request
        self._level = level

    def __enter__(self) -> None:
        self._observed.__enter__()
        self._began = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        took_s = time.perf_counter() - self._began
        try:
            _log.log(self._level, "request", extra=_log_fields(self._request, took_s))
        finally:
            self._observed.__exit__(kind, error, trace)


def _log_fields(request: ObservedRequest, took_s: float) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "requestId": request.id,
        "method": request.method,
        "route": request.route,
        "status": request.status,
        "durationMs": round(took_s * 1_000, 1),
    }
    if request.environment_id is not None:
        facts["environmentId"] = request.environment_id
    if request.is_replay:
        facts["replayed"] = True
    if request.rate_limit_reason is not None:
        facts["limited"] = request.rate_limit_reason
    return facts
