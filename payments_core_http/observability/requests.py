"""What is told of each request: a line in the access log, and a word to who observes.

Neither ever has a path, a query, a header or a body: a path may hold a link code, and the rest
holds what is the partners' own. The route stands for the path.
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
"""For methods that only their sender knows, as OpenTelemetry's conventions name them."""

_log = logging.getLogger("payments_core_http.access")


@attrs.define(eq=False)
class ObservedRequest:
    """One request, of which more is known as it goes on; `status` is set when it has ended.

    `credential` is the kind that its route takes, and `document` the body as it was parsed.
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


class RequestObserver(Protocol):
    """Who is told of requests."""

    def observe_request(
        self, request: ObservedRequest, environ: Mapping[str, Any]
    ) -> AbstractContextManager[object]:
        """While a request is answered. It is complete at the end; `environ` is what it came with.

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
    """A request that has just come in; `template` is that of its path, if it has a route."""
    return ObservedRequest(id, method if method in METHODS else OTHER_METHOD, template or NO_ROUTE)


def observe(
    observer: RequestObserver, request: ObservedRequest, environ: Mapping[str, Any]
) -> AbstractContextManager[object]:
    """Tell the observer of the request, and write its line when it has ended."""
    observed = observer.observe_request(request, environ)
    # Those who ask every second whether the process lives would fill the log.
    level = logging.DEBUG if request.route in health.PATHS else logging.INFO
    return _Logged(observed, request, level) if _log.isEnabledFor(level) else observed


class _Logged:
    """Writes a request's line, while its observer still observes."""

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
