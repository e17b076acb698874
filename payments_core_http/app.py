"""The pipeline: what every request goes through, in order (contract §3 "Order of checks").

Falcon finds the row of a path; everything else is here, on one screen:
`Pipeline._check_and_handle`. Only how a key, a query and a body are read depends on the row's
class, and is in `formats.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import falcon

from payments_core.engine.audit import CallSource
from payments_core.engine.idempotency.record import AlreadyResponded, Response
from payments_core.engine.idempotency.single_flight import SingleFlight
from payments_core.errors import NotFound, PaymentsError, ServiceUnavailable, Unauthenticated
from payments_core.evolve import evolve
from payments_core.payments.checkout.public import require_origin_allowed
from payments_core.plain_calls import require_plain_methods
from payments_core.public_url import find_path
from payments_core.tenants.idempotency import respond_once
from payments_core.waiting import NO_WAITS, Waits
from payments_core_http import cors, provider_notices
from payments_core_http.authentication import (
    CHALLENGES,
    authenticate,
    find_admitted_origin,
    name_environment,
)
from payments_core_http.calls import Call
from payments_core_http.contracts import OlderContracts, require_version
from payments_core_http.dashboard import routes as dashboard
from payments_core_http.errors import (
    MethodNotAllowed,
    RateLimited,
    RouteNotFound,
    headers_of,
    logger,
    to_payments_error,
)
from payments_core_http.formats import Format, JsonFormat, NoticeFormat, PageFormat, RequestContext
from payments_core_http.mounting import PassedOnPath, lead_to_slash
from payments_core_http.observability import health
from payments_core_http.observability.requests import (
    NOOP_OBSERVER,
    RequestObserver,
    new_request,
    observe,
)
from payments_core_http.openapi.document import build_document
from payments_core_http.pages import routes as pages
from payments_core_http.reference import routes as reference
from payments_core_http.routes import ROUTES
from payments_core_http.routing import (
    NoticeRoute,
    PageRoute,
    PathRouter,
    RenderError,
    Responder,
    Route,
    Row,
    group_by_path,
    has_encoded_slash,
)
from payments_core_http.throttling import Throttle

if TYPE_CHECKING:
    from payments_core.service import PaymentsService
    from payments_core.settings import Settings

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
            *provider_notices.ROUTES,
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
    api = JsonFormat(service, mode, contracts)
    formats: Mapping[type[Row], Format[Any]] = {
        Route: api,
        PageRoute: PageFormat(service, mode, throttle),
        NoticeRoute: NoticeFormat(service, mode, throttle, api.render_error),
    }
    pipeline = Pipeline(service, mode, flights, throttle, allowed, observer, api.render_error)
    make = partial(_make_responders, pipeline, formats)
    responders = {path: make(allowed[path], methods) for path, methods in paths.items()}
    public_path = _find_public_path(service.settings)
    app = falcon.App(router=PathRouter(responders))
    if public_path:
        app.add_middleware(PassedOnPath(public_path))
    app.add_sink(pipeline.refuse_path, "/")
    app.add_error_handler(falcon.HTTPError, pipeline.handle_http_error)
    app.add_error_handler(Exception, pipeline.handle_exception)
    return app


def _find_public_path(settings: Settings) -> str:
    if settings.has_public_url:
        return find_path(settings.public_url)
    logger.warning(
        "Settings(public_url=...) is not set: no request that answers with a payment link succeeds,"
        " and no page"
    )
    return ""


def _list_allowed_methods(methods: Mapping[str, Row]) -> tuple[str, ...]:
    implied = {"HEAD", "OPTIONS"} if "GET" in methods else {"OPTIONS"}
    return tuple(sorted(implied.union(methods)))


_REPLAY_HEADERS: Mapping[str, str] = {"Idempotent-Replayed": "true"}


@attrs.frozen(eq=False)
class Pipeline:
    """Serves rows. One per application."""

    _service: PaymentsService
    _mode: str
    _flights: SingleFlight
    _throttle: Throttle
    _allowed: Mapping[str, tuple[str, ...]]
    _observer: RequestObserver
    _render_error: RenderError
    """For requests without a row."""

    def _check_and_handle(
        self,
        route: Row,
        row_format: Format[Any],
        context: RequestContext,
    ) -> Response:
        """Every check in order; the first that fails raises its error."""
        if route.credential != "none":  # liveness needs no storage
            self._service.refresh()
        context.source = CallSource(
            self._throttle.find_address(context.environ), context.request.id
        )
        context.challenge = CHALLENGES[route.credential]
        caller = authenticate(self._service, self._mode, route, context.environ, context.path)
        authority = caller.authority_for(route, context.source)
        context.caller, context.authority = caller, authority
        context.version, context.origin = caller.api_version, caller.admitted_origin
        if caller.environment is not None:
            context.request.environment_id = caller.environment.id
            context.request.credential = route.credential
        find_earlier = partial(row_format.find_earlier, route, context)
        versions = self._service.settings.versions
        earlier = require_version(versions, caller, context.environ, find_earlier)
        rates = context.rate_context
        self._throttle.check_route(rates, route, context.path, caller.environment)
        if caller.environment is not None:
            self._throttle.check_app(rates, route, caller.environment)
            self._throttle.check_creations(rates, route, caller.environment)
        if authority is not None:
            authority.require_allowed()
        if caller.shop is not None:
            require_origin_allowed(caller.shop.terms, caller.origin)
        if earlier is not None:
            raise earlier
        call = row_format.read_call(route, context)
        idempotent = call.idempotent
        if authority is None or idempotent is None:
            return self._call_handler(call, context)
        with self._flights.acquire(idempotent.id):
            replay = partial(self._service.parts.ports.committer.replay, authority, idempotent)
            return respond_once(replay, lambda: self._call_handler(call, context))

    def _call_handler(self, call: Call, context: RequestContext) -> Response:
        give_back = self._throttle.count_creation(
            context.rate_context, call.route, call.caller.environment
        )
        try:
            call.route.require_ids(call.path)
            return call.handle()
        except (NotFound, Unauthenticated):
            give_back()
            self._throttle.check_miss(context.rate_context, call.route)
            raise
        except (PaymentsError, AlreadyResponded) as error:
            if not isinstance(error, ServiceUnavailable):  # that may have been made
                give_back()
            raise
        except Exception:  # such as a provider's adapter, which fails at what anybody may send
            self._throttle.check_miss(context.rate_context, call.route)
            raise

    def serve(
        self,
        route: Row,
        row_format: Format[Any],
        req: falcon.Request,
        resp: falcon.Response,
        **path: str,
    ) -> None:
        """Respond to a request that has a row, with the ids of its path."""

        def respond(context: RequestContext) -> Response:
            to_root = lead_to_slash(req.env)
            if to_root is not None:
                return Response(308, b"", context.version, {"Location": to_root})
            context.path = path
            try:
                response = self._check_and_handle(route, row_format, context)
            except AlreadyResponded as earlier:
                response = evolve(earlier.response, headers=_REPLAY_HEADERS)
                context.request.is_replay = True
            response = row_format.complete(route, response)
            context.version = response.api_version
            return response

        self._process(route.name, req, resp, respond, row_format.find_error_renderer(route))

    def respond_to_options(
        self,
        allowed: tuple[str, ...],
        req: falcon.Request,
        resp: falcon.Response,
        shop: Mapping[str, str] | None,
    ) -> None:
        """Respond with the methods that a path allows, to a preflight and to any other client.

        `shop` has the ids of a path that an app opens to its own origins.
        """
        methods = ", ".join(allowed)

        def respond(context: RequestContext) -> Response:
            if shop is not None:
                context.origin = find_admitted_origin(self._service, self._mode, req.env, shop)
            is_admitted = context.origin is not None
            headers = cors.preflight_headers(req.env, req.path, methods, is_admitted=is_admitted)
            return Response(204, b"", context.version, {"Allow": methods, **headers})

        self._process("OPTIONS", req, resp, respond, self._render_error)

    def refuse_method(
        self, allowed: tuple[str, ...], req: falcon.Request, resp: falcon.Response
    ) -> None:
        """Refuse a method that the path does not allow."""

        def refuse(context: RequestContext) -> Response:
            raise MethodNotAllowed(allowed)

        self._process("no route", req, resp, refuse, self._render_error)

    def refuse_path(self, req: falcon.Request, resp: falcon.Response, **_: Any) -> None:
        """Refuse a path that no row has."""

        def refuse(context: RequestContext) -> Response:
            raise RouteNotFound()

        self._process("no route", req, resp, refuse, self._render_error)

    def handle_http_error(
        self, req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: Any
    ) -> None:
        """Refuse what Falcon itself refuses: a method or a path that HTTP does not define."""
        allowed = self._allowed.get(req.uri_template or "")
        if allowed is None:
            self.refuse_path(req, resp)
        else:
            self.refuse_method(allowed, req, resp)

    def handle_exception(
        self, req: falcon.Request, resp: falcon.Response, error: Exception, params: Any
    ) -> None:
        """Refuse a request whose exception is outside any row: an internal error."""

        def refuse(context: RequestContext) -> Response:
            raise error

        self._process(req.uri_template or "no route", req, resp, refuse, self._render_error)

    def _process(
        self,
        place: str,
        req: falcon.Request,
        resp: falcon.Response,
        respond: Callable[[RequestContext], Response],
        render_error: RenderError,
    ) -> None:
        """Any request: counted, served or refused, sent, and observed."""
        id = self._service.parts.ports.identifiers.new("req")
        request = new_request(id, req.method, req.uri_template)
        context = RequestContext(request, self._service.settings.versions.current, req.env)
        with observe(self._observer, request, req.env):
            response = self._respond(place, req, context, respond, render_error)
            request.status = response.status
            name_environment(req.env, request.credential, request.environment_id)
            self._send(response, context, req, resp)

    def _respond(
        self,
        place: str,
        req: falcon.Request,
        context: RequestContext,
        respond: Callable[[RequestContext], Response],
        render_error: RenderError,
    ) -> Response:
        request = context.request
        try:
            # Liveness is not limited.
            if req.path not in health.PATHS:
                self._throttle.check_address(context.rate_context, req.env)
            if has_encoded_slash(req.env):
                raise RouteNotFound()
            return respond(context)
        except Exception as cause:
            if isinstance(cause, RouteNotFound):
                self._throttle.count_unknown_path(context.rate_context, req.env)
            error = to_payments_error(cause, request.id, place)
            request.error_code = error.code
            if isinstance(error, RateLimited):
                request.rate_limit_reason = error.reason
            refusal = render_error(error, request.id, req.env)
            headers = headers_of(error, context.challenge)
            return evolve(refusal, headers={**refusal.headers, **headers})

    def _send(
        self,
        response: Response,
        context: RequestContext,
        req: falcon.Request,
        resp: falcon.Response,
    ) -> None:
        resp.status = response.status
        resp.data = response.body or None
        if response.pieces is not None:
            resp.stream = response.pieces
        for cookie in response.headers.get("Set-Cookie", "").splitlines():
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
                **{name: text for name, text in response.headers.items() if name != "Set-Cookie"},
            }
        )


def _make_responders(
    pipeline: Pipeline,
    formats: Mapping[type[Row], Format[Any]],
    allowed: tuple[str, ...],
    methods: Mapping[str, Row],
) -> Mapping[str, Responder]:
    """What responds to each method of a path."""
    rows = {"HEAD": methods["GET"], **methods} if "GET" in methods else methods
    is_shop = any(row.credential == "app_id" for row in methods.values())
    return {
        **{
            method: partial(pipeline.serve, row, formats[type(row)]) for method, row in rows.items()
        },
        "OPTIONS": lambda req, resp, **path: pipeline.respond_to_options(
            allowed, req, resp, path if is_shop else None
        ),
    }
