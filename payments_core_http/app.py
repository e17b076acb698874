"""The pipeline: what every request goes through, in order (contract §3 "Order of checks").

Falcon finds the row of a path; everything else is here, on one screen:
`Pipeline._check_and_handle`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import falcon

from payments_core.engine.idempotency.record import AlreadyResponded, Response
from payments_core.engine.idempotency.single_flight import SingleFlight
from payments_core.errors import NotFound, PaymentsError, ServiceUnavailable, ValidationFailed
from payments_core.payments.checkout.public import require_origin_allowed
from payments_core.plain_calls import require_plain_methods
from payments_core.tenants.authorization import require_product
from payments_core.tenants.idempotency import answer_once
from payments_core.waiting import NO_WAITS, Waits
from payments_core_http import cors
from payments_core_http.authentication import (
    CHALLENGES,
    authenticate,
    find_admitted_origin,
    name_environment,
)
from payments_core_http.browser_sessions import read_cookies
from payments_core_http.calls import ApiCall
from payments_core_http.contracts import OlderContracts, read_older_body, require_version
from payments_core_http.dashboard import routes as dashboard
from payments_core_http.errors import (
    ENCODERS,
    MethodNotAllowed,
    RateLimited,
    RouteNotFound,
    error_form_of,
    headers_of,
    status_of,
    to_payments_error,
)
from payments_core_http.forms import read_form
from payments_core_http.idempotency import build_idempotent, read_key
from payments_core_http.observability import health
from payments_core_http.observability.requests import (
    NOOP_OBSERVER,
    ObservedRequest,
    RequestObserver,
    new_request,
    observe,
)
from payments_core_http.openapi.document import build_document
from payments_core_http.pages import routes as pages
from payments_core_http.reference import routes as reference
from payments_core_http.response_cache import ResponseCache
from payments_core_http.routes import ROUTES
from payments_core_http.routing import (
    PathRouter,
    RenderError,
    Responder,
    Route,
    group_by_path,
    has_encoded_slash,
)
from payments_core_http.throttling import RateLimitContext, Throttle
from payments_core_http.wire.query import read_page_query, read_query
from payments_core_http.wire.request_body import parse_document, read_json_bytes

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

DEFAULT_THREADS = 8


def create_app(
    service: PaymentsService,
    *,
    mode: str,
    threads: int = DEFAULT_THREADS,
    throttle: Throttle | None = None,
    routes: tuple[Route, ...] | None = None,
    observer: RequestObserver = NOOP_OBSERVER,
    waits: Waits = NO_WAITS,
) -> falcon.App[falcon.Request, falcon.Response]:
    """The WSGI application of one mode, `sandbox` or `production`.

    `threads` is how many of them the server runs: it bounds how many wait for one another.
    `throttle` has the rate policies; without it none is enforced. `observer` observes requests.
    `waits` is the server's. Raises ValueError if the service cannot serve the mode, and TypeError
    for an observer with an asynchronous method.
    """
    require_plain_methods(observer, "observer", RequestObserver)
    service.require_mode(mode)
    paths = group_by_path(
        (
            *health.with_bounded_readiness(service),
            *reference.build_routes(routes or ROUTES, service.settings.versions),
            *pages.ROUTES,
            *dashboard.ROUTES,
            *(routes or ROUTES),
        )
    )
    allowed = {path: _list_allowed_methods(methods) for path, methods in paths.items()}
    flights, throttle = SingleFlight(threads, waits), throttle or Throttle(None)
    versions = service.settings.versions
    contracts = OlderContracts(
        versions, partial(build_document, routes=routes or ROUTES, versions=versions)
    )
    pipeline = Pipeline(service, mode, contracts, flights, throttle, allowed, observer)
    make = partial(_make_responders, pipeline)
    responders = {path: make(allowed[path], methods) for path, methods in paths.items()}
    app = falcon.App(router=PathRouter(responders))
    app.add_sink(pipeline.refuse_path, "/")
    app.add_error_handler(falcon.HTTPError, pipeline.handle_http_error)
    app.add_error_handler(Exception, pipeline.handle_exception)
    return app


def _list_allowed_methods(methods: Mapping[str, Route]) -> tuple[str, ...]:
    implied = {"HEAD", "OPTIONS"} if "GET" in methods else {"OPTIONS"}
    return tuple(sorted(implied.union(methods)))


@attrs.define
class RequestContext:
    """What is known about one request so far, and is always on its response."""

    request: ObservedRequest
    version: str
    challenge: str = "Bearer"
    origin: str | None = None
    """The browser's, if the app that it calls has admitted it."""
    rate_context: RateLimitContext = attrs.field(factory=RateLimitContext)


@attrs.frozen
class ResponseParts:
    """The status, body and own headers of a response."""

    status: int
    body: bytes
    headers: Mapping[str, str]


_NO_HEADERS: Mapping[str, str] = {}
_REPLAY_HEADERS: Mapping[str, str] = {"Idempotent-Replayed": "true"}


@attrs.frozen(eq=False)
class Pipeline:
    """Serves rows. One per application."""

    _service: PaymentsService
    _mode: str
    _contracts: OlderContracts
    _flights: SingleFlight
    _throttle: Throttle
    _allowed: Mapping[str, tuple[str, ...]]
    _observer: RequestObserver
    _response_cache: ResponseCache = attrs.field(factory=ResponseCache)

    def _check_and_handle(
        self,
        route: Route,
        context: RequestContext,
        environ: Mapping[str, Any],
        path: Mapping[str, str],
    ) -> Response:
        """Every check in order; the first that fails raises its error."""
        if route.credential != "none":  # liveness is answered without storage
            self._service.refresh()
        context.challenge = CHALLENGES[route.credential]
        caller = authenticate(self._service, self._mode, route, environ, path)
        context.version, context.origin = caller.api_version, caller.admitted_origin
        if caller.environment is not None:
            context.request.environment_id = caller.environment.id
            context.request.credential = route.credential
        require_version(self._service, route, caller, environ, path)
        older = self._contracts.find(route, caller.api_version)
        rates = context.rate_context
        self._throttle.check_route(rates, route, path, caller.environment)
        if caller.environment is not None:
            self._throttle.check_app(context.rate_context, route, caller.environment)
            self._throttle.check_creations(context.rate_context, route, caller.environment)
        authority = caller.authority_for(route)
        if authority is not None:
            authority.require_allowed()
        if caller.shop is not None:
            require_origin_allowed(caller.shop.terms, caller.origin)
        key = None if route.is_form else read_key(route, environ)
        text = environ.get("QUERY_STRING", "")
        query = read_page_query(text) if route.render_error else read_query(route, text)
        if route.is_form:
            form = read_form(self._service, self._throttle, rates, route, environ, path)
            key, document, body = form.key, form.fields, form.fields
        else:
            raw = read_json_bytes(route, environ)
            context.request.body_bytes = len(raw)
            document = context.request.document = parse_document(route, raw)
            body = read_older_body(self._service, route, caller, environ, path, document, older)
        if authority is not None and route.product_of is not None:
            require_product(authority, route.product_of(body))
        retention_ms = self._service.settings.idempotency_retention_ms
        idempotent = None
        if authority and key:
            idempotent = build_idempotent(route, authority, key, path, document, retention_ms)
        call: ApiCall[Any, Any] = ApiCall(
            service=self._service,
            mode=self._mode,
            request_id=context.request.id,
            route=route,
            caller=caller,
            proven=authority,
            path=path,
            body=body,
            query=query,
            idempotent=idempotent,
            if_none_match=environ.get("HTTP_IF_NONE_MATCH"),
            accept_language=environ.get("HTTP_ACCEPT_LANGUAGE"),
            cookies=read_cookies(environ, self._service.settings.public_url),
            response_cache=self._response_cache,
            older_contract=older,
        )
        if authority is None or idempotent is None:
            return self._call_handler(call, context)
        with self._flights.acquire(idempotent.id):
            replay = partial(self._service.parts.ports.committer.replay, authority, idempotent)
            return answer_once(replay, lambda: self._call_handler(call, context))

    def _call_handler(self, call: ApiCall[Any, Any], context: RequestContext) -> Response:
        give_back = self._throttle.count_creation(
            context.rate_context, call.route, call.caller.environment
        )
        try:
            call.route.require_ids(call.path)
            return call.handle()
        except NotFound:
            give_back()
            self._throttle.check_miss(context.rate_context, call.route)
            raise
        except (PaymentsError, AlreadyResponded) as error:
            if not isinstance(error, ServiceUnavailable):  # that may have been made
                give_back()
            if isinstance(error, ValidationFailed) and call.older_contract is not None:
                raise call.older_contract.name_faults(error) from None
            raise

    def serve(
        self,
        route: Route,
        req: falcon.Request,
        resp: falcon.Response,
        **path: str,
    ) -> None:
        """Answer a request that has a row, with the ids of its path."""

        def respond(context: RequestContext) -> ResponseParts:
            try:
                answer, headers = self._check_and_handle(route, context, req.env, path), _NO_HEADERS
            except AlreadyResponded as earlier:
                answer, headers = earlier.answer, _REPLAY_HEADERS
                context.request.is_replay = True
            if route.complete is not None:
                answer = route.complete(answer, self._service.settings.public_url)
            context.version = answer.api_version
            return ResponseParts(answer.status, answer.body, {**headers, **answer.headers})

        self._process(route.name, req, resp, respond, route.render_error)

    def answer_options(
        self,
        allowed: tuple[str, ...],
        req: falcon.Request,
        resp: falcon.Response,
        shop: Mapping[str, str] | None,
    ) -> None:
        """Answer which methods a path allows, to a browser's preflight and to any other client.

        `shop` has the ids of a path that an app opens to its own origins.
        """
        methods = ", ".join(allowed)

        def respond(context: RequestContext) -> ResponseParts:
            if shop is not None:
                context.origin = find_admitted_origin(self._service, self._mode, req.env, shop)
            is_admitted = context.origin is not None
            headers = cors.preflight_headers(req.env, req.path, methods, is_admitted=is_admitted)
            return ResponseParts(204, b"", {"Allow": methods, **headers})

        self._process("OPTIONS", req, resp, respond)

    def refuse_method(
        self, allowed: tuple[str, ...], req: falcon.Request, resp: falcon.Response
    ) -> None:
        """Answer a method that the path does not allow."""

        def refuse(context: RequestContext) -> ResponseParts:
            raise MethodNotAllowed(allowed)

        self._process("no route", req, resp, refuse)

    def refuse_path(self, req: falcon.Request, resp: falcon.Response, **_: Any) -> None:
        """Answer a path that no row has."""

        def refuse(context: RequestContext) -> ResponseParts:
            raise RouteNotFound()

        self._process("no route", req, resp, refuse)

    def handle_http_error(
        self, req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any
    ) -> None:
        """Answer what Falcon itself refuses: a method or a path that HTTP does not define."""
        allowed = self._allowed.get(req.uri_template or "")
        if allowed is None:
            self.refuse_path(req, resp)
        else:
            self.refuse_method(allowed, req, resp)

    def handle_exception(
        self, req: falcon.Request, resp: falcon.Response, error: Exception, params: Any
    ) -> None:
        """Answer an exception outside any row: an internal error."""

        def refuse(context: RequestContext) -> ResponseParts:
            raise error

        self._process(req.uri_template or "no route", req, resp, refuse)

    def _process(
        self,
        place: str,
        req: falcon.Request,
        resp: falcon.Response,
        answer: Callable[[RequestContext], ResponseParts],
        render_error: RenderError | None = None,
    ) -> None:
        """Any request: counted, answered or refused, sent, and observed."""
        id = self._service.parts.ports.identifiers.new("req")
        request = new_request(id, req.method, req.uri_template)
        context = RequestContext(request, self._service.settings.versions.current)
        with observe(self._observer, request, req.env):
            reply = self._respond(place, req, context, answer, render_error)
            request.status = reply.status
            name_environment(req.env, request.credential, request.environment_id)
            self._send(reply, context, req, resp)

    def _respond(
        self,
        place: str,
        req: falcon.Request,
        context: RequestContext,
        answer: Callable[[RequestContext], ResponseParts],
        render_error: RenderError | None,
    ) -> ResponseParts:
        request = context.request
        try:
            # Liveness is not limited.
            if req.path not in health.PATHS:
                self._throttle.check_address(context.rate_context, req.env)
            if has_encoded_slash(req.env):
                raise RouteNotFound()
            return answer(context)
        except Exception as error:
            if isinstance(error, RouteNotFound):
                self._throttle.count_unknown_path(context.rate_context, req.env)
            answered = to_payments_error(error, request.id, place)
            request.error_code = answered.code
            if isinstance(answered, RateLimited):
                request.rate_limit_reason = answered.reason
            headers = headers_of(answered, context.challenge)
            if render_error is not None:
                page = render_error(answered, request.id, req.env)
                return ResponseParts(page.status, page.body, {**page.headers, **headers})
            docs = self._service.settings.locate_error_page(answered.code)
            body = ENCODERS[error_form_of(req.path)](answered, request.id, docs)
            return ResponseParts(status_of(type(answered)), body, headers)

    def _send(
        self,
        reply: ResponseParts,
        context: RequestContext,
        req: falcon.Request,
        resp: falcon.Response,
    ) -> None:
        resp.status = reply.status
        resp.data = reply.body or None
        for cookie in reply.headers.get("Set-Cookie", "").splitlines():
            resp.append_header("Set-Cookie", cookie)
        resp.set_headers(
            {
                "X-Request-Id": context.request.id,
                "Service-Version": context.version,
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                **cors.headers_for(req.path),
                **cors.headers_for_origin(context.origin),
                **self._throttle.headers(context.rate_context),
                **{name: text for name, text in reply.headers.items() if name != "Set-Cookie"},
            }
        )


def _make_responders(
    pipeline: Pipeline, allowed: tuple[str, ...], methods: Mapping[str, Route]
) -> Mapping[str, Responder]:
    """What answers each method of a path."""
    rows = {"HEAD": methods["GET"], **methods} if "GET" in methods else methods
    is_shop = any(row.credential == "app_id" for row in methods.values())
    return {
        **{method: partial(pipeline.serve, row) for method, row in rows.items()},
        "OPTIONS": lambda req, resp, **path: pipeline.answer_options(
            allowed, req, resp, path if is_shop else None
        ),
    }
