"""The pipeline: what every request goes through, in order (contract §3 "Order of checks").

Falcon finds the row of a path; everything else is here, on one screen: `Pipeline._answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs
import falcon

from payments_core.engine.idempotency.flight import Flights
from payments_core.engine.idempotency.record import AlreadyAnswered, Answer
from payments_core.payments.checkout.public import require_admitted
from payments_core.tenants.authorization import authorize
from payments_core_http import cors
from payments_core_http.authentication import CHALLENGES, admitted_origin, authenticate
from payments_core_http.calls import Call
from payments_core_http.errors import (
    MethodNotAllowed,
    RateLimited,
    RouteNotFound,
    as_payments_error,
    envelope,
    headers_of,
    status_of,
)
from payments_core_http.idempotency import idempotent, read_key
from payments_core_http.observability import health
from payments_core_http.observability.requests import BLIND, Observer, Request, opened, watched
from payments_core_http.reference import rows as reference
from payments_core_http.routing import Route, by_path
from payments_core_http.throttling import Passage, Throttle
from payments_core_http.v2.routes import ROUTES
from payments_core_http.versions import require_agreement
from payments_core_http.wire.query import read_query
from payments_core_http.wire.request_body import read_body

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

DEFAULT_THREADS = 8

ASKED_BY_BROWSERS = frozenset({"/favicon.ico", "/robots.txt"})
"""Paths that nobody typed: asking for them is no abuse."""


def create_app(
    service: PaymentsService,
    *,
    mode: str,
    threads: int = DEFAULT_THREADS,
    throttle: Throttle | None = None,
    routes: tuple[Route, ...] = ROUTES,
    observer: Observer = BLIND,
) -> falcon.App[falcon.Request, falcon.Response]:
    """The WSGI application of one mode, `sandbox` or `production`.

    `threads` is how many of them the server runs: it bounds how many wait for one another.
    `throttle` has the rate policies; without it none is enforced. `observer` is told of requests.
    Raises ValueError where the service cannot serve the mode.
    """
    service.require_mode(mode)
    paths = by_path((*health.patient(service), *reference.rows(routes), *routes))
    allowed = {path: _allowed(methods) for path, methods in paths.items()}
    throttle = throttle or Throttle(None)
    pipeline = Pipeline(service, mode, Flights(threads), throttle, allowed, observer)
    app = falcon.App()
    app.router_options.default_to_on_request = True
    app.add_sink(pipeline.route_not_found, "/")
    app.add_error_handler(falcon.HTTPError, pipeline.refused_by_falcon)
    app.add_error_handler(Exception, pipeline.failed)
    for path, methods in paths.items():
        app.add_route(path, _resource(pipeline, allowed[path], methods))
    return app


def _allowed(methods: Mapping[str, Route]) -> tuple[str, ...]:
    implied = {"HEAD", "OPTIONS"} if "GET" in methods else {"OPTIONS"}
    return tuple(sorted(implied.union(methods)))


@attrs.define
class Exchange:
    """What is known of one request so far, and goes on its response whatever happens."""

    request: Request
    version: str
    challenge: str = "Bearer"
    origin: str | None = None
    """The browser's, where the app that it calls has let it in."""
    passage: Passage = attrs.field(factory=Passage)


@attrs.frozen
class Reply:
    """What a response has of its own."""

    status: int
    body: bytes
    headers: Mapping[str, str]


_FRESH: Mapping[str, str] = {}
_REPLAYED: Mapping[str, str] = {"Idempotent-Replayed": "true"}


class Pipeline:
    """Serves rows. One per application."""

    def __init__(
        self,
        service: PaymentsService,
        mode: str,
        flights: Flights,
        throttle: Throttle,
        allowed: Mapping[str, tuple[str, ...]],
        observer: Observer,
    ) -> None:
        self._service = service
        self._mode = mode
        self._flights = flights
        self._throttle = throttle
        self._allowed = allowed
        self._observer = observer

    def _answer(
        self, route: Route, exchange: Exchange, environ: Mapping[str, Any], path: Mapping[str, str]
    ) -> Answer:
        """Every check in order; the first that fails raises its error."""
        if route.credential != "none":  # whether the process lives is told without storage
            self._service.refresh()
        exchange.challenge = CHALLENGES[route.credential]
        caller = authenticate(self._service, self._mode, route, environ, path)
        exchange.version, exchange.origin = caller.api_version, caller.admitted_origin
        if caller.environment is not None:
            exchange.request.environment_id = caller.environment.id
        require_agreement(
            self._service.settings.versions,
            environ.get("HTTP_SERVICE_VERSION"),
            caller.bound_versions,
        )
        self._throttle.enter_route(exchange.passage, route, path)
        if caller.environment is not None and route.credential != "payment_secret":
            self._throttle.enter_app(exchange.passage, route, caller.environment)
        authority = caller.authority(route)
        if authority is not None:
            authorize(
                authority.requirement,
                authority.environment,
                caller.key,
                caller.session,
                authority.payment_id,
            )
        if caller.shop is not None:
            require_admitted(caller.shop.terms, caller.origin)
        key = read_key(route, environ)
        query = read_query(route, environ.get("QUERY_STRING", ""))
        document, body = read_body(route, environ)
        retention_ms = self._service.settings.idempotency_retention_ms
        once = (
            idempotent(route, authority, key, path, document, retention_ms)
            if authority and key
            else None
        )
        call: Call[Any, Any] = Call(
            service=self._service,
            mode=self._mode,
            request_id=exchange.request.id,
            route=route,
            caller=caller,
            path=path,
            body=body,
            query=query,
            idempotent=once,
            if_none_match=environ.get("HTTP_IF_NONE_MATCH"),
        )
        if authority is None or once is None:
            return self._resource(call)
        with self._flights.alone(once.id):
            self._service.ports.committer.replay(authority, once)
            return self._resource(call)

    def _resource(self, call: Call[Any, Any]) -> Answer:
        call.route.require_ids(call.path)
        return call.route.handler(self._service, call)

    def serve(
        self,
        route: Route,
        req: falcon.Request,
        resp: falcon.Response,
        path: Mapping[str, str],
    ) -> None:
        """Answer a request that has a row."""

        def answered(exchange: Exchange) -> Reply:
            try:
                answer, headers = self._answer(route, exchange, req.env, path), _FRESH
            except AlreadyAnswered as earlier:
                answer, headers = earlier.answer, _REPLAYED
                exchange.request.is_replay = True
            exchange.version = answer.api_version
            return Reply(answer.status, answer.body, {**headers, **answer.headers})

        self._exchange(route.name, req, resp, answered)

    def options(
        self,
        allowed: tuple[str, ...],
        req: falcon.Request,
        resp: falcon.Response,
        shop: Mapping[str, str] | None,
    ) -> None:
        """Say what a path takes, to a browser's preflight and to anyone who asks.

        `shop` has the ids of a path that an app opens to origins of its own.
        """
        methods = ", ".join(allowed)

        def told(exchange: Exchange) -> Reply:
            if shop is not None:
                exchange.origin = admitted_origin(self._service, self._mode, req.env, shop)
            is_admitted = exchange.origin is not None
            headers = cors.preflight_headers(req.env, req.path, methods, is_admitted=is_admitted)
            return Reply(204, b"", {"Allow": methods, **headers})

        self._exchange("OPTIONS", req, resp, told)

    def method_not_allowed(
        self, allowed: tuple[str, ...], req: falcon.Request, resp: falcon.Response
    ) -> None:
        """Answer a method that the path does not take."""

        def refused(exchange: Exchange) -> Reply:
            raise MethodNotAllowed(allowed)

        self._exchange("no route", req, resp, refused)

    def route_not_found(self, req: falcon.Request, resp: falcon.Response, **_: Any) -> None:
        """Answer a path that no row has."""

        def refused(exchange: Exchange) -> Reply:
            raise RouteNotFound()

        self._exchange("no route", req, resp, refused)

    def refused_by_falcon(
        self, req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any
    ) -> None:
        """Answer what Falcon itself refuses: a method or a path that HTTP does not know."""
        allowed = self._allowed.get(req.uri_template or "")
        if allowed is None:
            self.route_not_found(req, resp)
        else:
            self.method_not_allowed(allowed, req, resp)

    def failed(
        self, req: falcon.Request, resp: falcon.Response, error: Exception, params: Any
    ) -> None:
        """Answer what went wrong outside any row: a fault of ours."""

        def refused(exchange: Exchange) -> Reply:
            raise error

        self._exchange(req.uri_template or "no route", req, resp, refused)

    def _exchange(
        self,
        place: str,
        req: falcon.Request,
        resp: falcon.Response,
        answer: Callable[[Exchange], Reply],
    ) -> None:
        """One request, whatever it asks for: counted, answered or refused, sent, and told of."""
        id = self._service.ports.identifiers.new("req")
        request = opened(id, req.method, req.uri_template)
        exchange = Exchange(request, self._service.settings.versions.current)
        with watched(self._observer, request, req.env):
            reply = self._reply(place, req, exchange, answer)
            request.status = reply.status
            self._send(reply, exchange, req, resp)

    def _reply(
        self,
        place: str,
        req: falcon.Request,
        exchange: Exchange,
        answer: Callable[[Exchange], Reply],
    ) -> Reply:
        request = exchange.request
        try:
            if (
                req.path not in health.PATHS
            ):  # whether the process lives is not the limiter's matter
                self._throttle.enter(exchange.passage, req.env)
            return answer(exchange)
        except Exception as error:
            if isinstance(error, RouteNotFound) and req.path not in ASKED_BY_BROWSERS:
                self._throttle.wander(exchange.passage)
            told = as_payments_error(error, request.id, place)
            if isinstance(told, RateLimited):
                request.limited = told.reason
            return Reply(
                status_of(type(told)),
                envelope(told, request.id),
                headers_of(told, exchange.challenge),
            )

    def _send(
        self, reply: Reply, exchange: Exchange, req: falcon.Request, resp: falcon.Response
    ) -> None:
        resp.status = reply.status
        resp.data = reply.body or None
        resp.set_headers(
            {
                "X-Request-Id": exchange.request.id,
                "Service-Version": exchange.version,
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                **cors.headers_for(req.path),
                **cors.headers_for_origin(exchange.origin),
                **self._throttle.headers(exchange.passage),
                **reply.headers,
            }
        )


def _resource(pipeline: Pipeline, allowed: tuple[str, ...], methods: Mapping[str, Route]) -> object:
    """A path as Falcon takes it: an object with one responder for each method."""
    rows = {"HEAD": methods["GET"], **methods} if "GET" in methods else methods
    responders = {f"on_{method.lower()}": _responder(pipeline, row) for method, row in rows.items()}
    is_shop = any(row.credential == "app_id" for row in methods.values())
    return SimpleNamespace(
        **responders,
        on_options=lambda req, resp, **path: pipeline.options(
            allowed, req, resp, path if is_shop else None
        ),
        on_request=lambda req, resp, **_: pipeline.method_not_allowed(allowed, req, resp),
    )


def _responder(pipeline: Pipeline, route: Route) -> Callable[..., None]:
    def respond(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        pipeline.serve(route, req, resp, path)

    return respond
