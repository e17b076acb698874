"""The pipeline: what every request goes through, in order (contract §3 "Order of checks").

Falcon finds the row of a path; everything else is here, on one screen: `Pipeline._answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs
import falcon

from payments_core.credentials.authorization import authorize
from payments_core.idempotency.flight import Flights
from payments_core.idempotency.record import AlreadyAnswered, Answer
from payments_core.versions import CURRENT
from payments_core_http import cors, health
from payments_core_http.authentication import CHALLENGES, authenticate
from payments_core_http.calls import Call
from payments_core_http.errors import (
    MethodNotAllowed,
    RouteNotFound,
    as_payments_error,
    envelope,
    headers_of,
    status_of,
)
from payments_core_http.idempotency import idempotent, read_key
from payments_core_http.query import read_query
from payments_core_http.request_body import read_body
from payments_core_http.routing import Route, by_path
from payments_core_http.v2.routes import ROUTES
from payments_core_http.versions import require_agreement

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

DEFAULT_THREADS = 8


def create_app(
    service: PaymentsService,
    *,
    mode: str,
    threads: int = DEFAULT_THREADS,
    routes: tuple[Route, ...] = ROUTES,
) -> falcon.App[falcon.Request, falcon.Response]:
    """The WSGI application of one mode, `sandbox` or `production`.

    `threads` is how many of them the server runs: it bounds how many wait for one another.
    Raises ValueError where the service cannot serve the mode.
    """
    service.require_mode(mode)
    paths = by_path((*health.ROUTES, *routes))
    allowed = {path: _allowed(methods) for path, methods in paths.items()}
    pipeline = Pipeline(service, mode, Flights(threads), allowed)
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

    request_id: str
    version: str = CURRENT
    challenge: str = "Bearer"


class Pipeline:
    """Serves rows. One per application."""

    def __init__(
        self,
        service: PaymentsService,
        mode: str,
        flights: Flights,
        allowed: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._service = service
        self._mode = mode
        self._flights = flights
        self._allowed = allowed

    def _answer(
        self, route: Route, exchange: Exchange, environ: Mapping[str, Any], path: Mapping[str, str]
    ) -> Answer:
        """Every check in order; the first that fails raises its error."""
        if route.credential != "none":  # whether the process lives is told without storage
            self._service.refresh()
        exchange.challenge = CHALLENGES[route.credential]
        caller = authenticate(self._service, self._mode, route, environ, path)
        exchange.version = caller.api_version
        require_agreement(environ.get("HTTP_SERVICE_VERSION"), caller.bound_versions)
        authority = caller.authority(route)
        if authority is not None:
            authorize(authority.requirement, authority.environment, caller.key, caller.session)
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
            request_id=exchange.request_id,
            route=route,
            caller=caller,
            path=path,
            body=body,
            query=query,
            idempotent=once,
        )
        if authority is None or once is None:
            return self._resource(call)
        with self._flights.alone(once.id):
            self._service.ledger.replay(authority, once)
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
        exchange = self._begin()
        try:
            answer, replayed = self._answer(route, exchange, req.env, path), False
        except AlreadyAnswered as earlier:
            answer, replayed = earlier.answer, True
        except Exception as error:
            self._refuse(exchange, route.name, error, req, resp)
            return
        exchange.version = answer.api_version
        headers = {"Idempotent-Replayed": "true"} if replayed else {}
        _send(exchange, req, resp, answer.status, answer.body, headers)

    def options(self, allowed: tuple[str, ...], req: falcon.Request, resp: falcon.Response) -> None:
        """Say what a path takes, to a browser's preflight and to anyone who asks."""
        methods = ", ".join(allowed)
        headers = {"Allow": methods, **cors.preflight_headers(req.env, req.path, methods)}
        _send(self._begin(), req, resp, 204, b"", headers)

    def method_not_allowed(
        self, allowed: tuple[str, ...], req: falcon.Request, resp: falcon.Response
    ) -> None:
        """Answer a method that the path does not take."""
        self._refuse(self._begin(), req.path, MethodNotAllowed(allowed), req, resp)

    def route_not_found(self, req: falcon.Request, resp: falcon.Response, **_: Any) -> None:
        """Answer a path that no row has."""
        self._refuse(self._begin(), "no route", RouteNotFound(), req, resp)

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
        self._refuse(self._begin(), req.uri_template or "no route", error, req, resp)

    def _begin(self) -> Exchange:
        return Exchange(self._service.identifiers.new("req"))

    def _refuse(
        self,
        exchange: Exchange,
        place: str,
        error: Exception,
        req: falcon.Request,
        resp: falcon.Response,
    ) -> None:
        told = as_payments_error(error, exchange.request_id, place)
        body = envelope(told, exchange.request_id)
        headers = headers_of(told, exchange.challenge)
        _send(exchange, req, resp, status_of(type(told)), body, headers)


def _send(
    exchange: Exchange,
    req: falcon.Request,
    resp: falcon.Response,
    status: int,
    body: bytes,
    headers: Mapping[str, str],
) -> None:
    """Every response leaves here, with the headers that every response has."""
    resp.status = status
    resp.data = body or None
    resp.set_headers(
        {
            "X-Request-Id": exchange.request_id,
            "Service-Version": exchange.version,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **cors.headers_for(req.path),
            **headers,
        }
    )


def _resource(pipeline: Pipeline, allowed: tuple[str, ...], methods: Mapping[str, Route]) -> object:
    """A path as Falcon takes it: an object with one responder for each method."""
    rows = {"HEAD": methods["GET"], **methods} if "GET" in methods else methods
    responders = {f"on_{method.lower()}": _responder(pipeline, row) for method, row in rows.items()}
    return SimpleNamespace(
        **responders,
        on_options=lambda req, resp, **_: pipeline.options(allowed, req, resp),
        on_request=lambda req, resp, **_: pipeline.method_not_allowed(allowed, req, resp),
    )


def _responder(pipeline: Pipeline, route: Route) -> Callable[..., None]:
    def respond(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        pipeline.serve(route, req, resp, path)

    return respond
