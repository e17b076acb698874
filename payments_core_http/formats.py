"""The two formats of requests and of refusals: the API's JSON, and the forms and HTML of pages.

`app.py` has the order of all checks, and a row's class decides its format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs

from payments_core.engine.audit import NO_SOURCE, CallSource
from payments_core.engine.idempotency.record import AlreadyResponded, Response
from payments_core.errors import (
    BadInput,
    ConflictError,
    Forbidden,
    IdempotencyKeyRequired,
    InvalidJson,
    PaymentsError,
    ValidationFailed,
)
from payments_core.tenants.authorization import Authority, require_product
from payments_core_http.authentication import Caller
from payments_core_http.browser_sessions import Cookies, read_cookies, require_own_form
from payments_core_http.calls import ApiCall, Call, NoticeCall, PageCall
from payments_core_http.contracts import OlderContracts, RouteContract
from payments_core_http.errors import ENCODERS, error_form_of, status_of
from payments_core_http.idempotency import build_idempotent, check_key, read_key
from payments_core_http.observability.requests import ObservedRequest
from payments_core_http.rate_context import RateLimitContext
from payments_core_http.response_cache import ResponseCache
from payments_core_http.routing import NoticeRoute, PageRoute, RenderError, Route, Row
from payments_core_http.throttling import Throttle
from payments_core_http.wire.body_bytes import (
    BodyIncomplete,
    declared_length,
    read_body_bytes,
)
from payments_core_http.wire.forms import read_fields
from payments_core_http.wire.limits import MAX_BODY_BYTES
from payments_core_http.wire.query import read_page_query, read_query
from payments_core_http.wire.request_body import (
    parse_document,
    read_body,
    read_document,
    read_json_bytes,
)

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

R = TypeVar("R", bound=Row, contravariant=True)

TOKEN_FIELD = "formToken"
KEY_FIELD = "idempotencyKey"


@attrs.define
class RequestContext:
    """What is known about one request so far.

    `version`, `challenge`, `origin` and `rate_context` are on its response. `path` has the ids by
    their names, if there is a row. Who calls is known once the credential is verified.
    """

    request: ObservedRequest
    version: str
    environ: Mapping[str, Any]
    source: CallSource = NO_SOURCE
    challenge: str = "Bearer"
    origin: str | None = None
    """The browser's, if the app that it calls has admitted it."""
    rate_context: RateLimitContext = attrs.field(factory=RateLimitContext)
    path: Mapping[str, str] = attrs.field(init=False)
    caller: Caller = attrs.field(init=False)
    authority: Authority | None = attrs.field(init=False)


class Format(Protocol[R]):
    """How the rows of a class read a request, and how they respond."""

    def read_call(self, route: R, context: RequestContext) -> Call:
        """The key, the query and the body of a request, in this order. Raises PaymentsError."""

    def find_earlier(self, route: R, context: RequestContext) -> AlreadyResponded | None:
        """The response to the same request under an earlier version; None without one."""

    def complete(self, route: R, response: Response) -> Response:
        """The response with headers that are not stored with it."""

    def find_error_renderer(self, route: R) -> RenderError:
        """What makes the row's response of an error."""


@attrs.frozen(eq=False)
class JsonFormat:
    """The format of the API. One per application."""

    _service: PaymentsService
    _mode: str
    _contracts: OlderContracts
    _response_cache: ResponseCache = attrs.field(factory=ResponseCache)

    def read_call(self, route: Route, context: RequestContext) -> Call:
        service, request, environ = self._service, context.request, context.environ
        caller, authority = context.caller, context.authority
        key = read_key(route, environ)
        query = read_query(route, environ.get("QUERY_STRING", ""))
        raw = read_json_bytes(route, environ)
        request.body_bytes = len(raw)
        document = request.document = parse_document(route, raw)
        older = self._contracts.find(route, caller.api_version)
        try:
            body = _read_body(route, document, older)
        except ValidationFailed:
            earlier = self._find_response(route, context, lambda: document)
            if earlier is not None:
                raise earlier from None
            raise
        if authority is not None and route.product_of is not None:
            require_product(authority, route.product_of(body))
        call: ApiCall[Any, Any] = ApiCall(
            service=service,
            mode=self._mode,
            request_id=request.id,
            source=context.source,
            route=route,
            caller=caller,
            proven=authority,
            path=context.path,
            body=body,
            query=query,
            idempotent=build_idempotent(
                route,
                authority,
                key,
                context.path,
                document,
                service.settings.idempotency_retention_ms,
            ),
            if_none_match=environ.get("HTTP_IF_NONE_MATCH"),
            response_cache=self._response_cache,
            older_contract=older,
        )
        return call

    def find_earlier(self, route: Route, context: RequestContext) -> AlreadyResponded | None:
        return self._find_response(route, context, partial(read_document, route, context.environ))

    def _find_response(
        self, route: Route, context: RequestContext, read: Callable[[], Any]
    ) -> AlreadyResponded | None:
        """The earlier response to the same request, whose document `read` returns.

        For a request whose version, or whose body, is no longer that of its pin: its refusal would
        read as that of the first request. None too for a caller without a right that it needs now.
        """
        authority = context.authority
        if authority is None:
            return None
        try:
            if key := read_key(route, context.environ):
                authority.require_allowed()
                document = read()
                idempotent = build_idempotent(route, authority, key, context.path, document)
                try:
                    self._service.parts.ports.committer.replay(authority, idempotent)
                except AlreadyResponded as earlier:
                    if route.product_of is not None:
                        contract = self._contracts.find(route, earlier.response.api_version)
                        body = _read_body(route, document, contract)
                        require_product(authority, route.product_of(body))
                    return earlier
        except (BadInput, Forbidden, ConflictError, UnicodeEncodeError):  # as a lone surrogate
            return None  # it is refused in any case
        return None

    def complete(self, route: Route, response: Response) -> Response:
        return response

    def find_error_renderer(self, route: Route) -> RenderError:
        return self.render_error

    def render_error(
        self, error: PaymentsError, request_id: str, environ: Mapping[str, Any]
    ) -> Response:
        """The response of an error, also at a path without a row."""
        docs = self._service.settings.locate_error_page(error.code)
        encode = ENCODERS[error_form_of(environ.get("PATH_INFO", ""))]
        return Response(status_of(type(error)), encode(error, request_id, docs), "")


@attrs.frozen(eq=False)
class NoticeFormat:
    """The format of what providers send, which their own adapters read. One per application."""

    _service: PaymentsService
    _mode: str
    _throttle: Throttle
    _render_error: RenderError

    def read_call(self, route: NoticeRoute, context: RequestContext) -> Call:
        environ = context.environ
        try:
            body = read_body_bytes(environ, declared_length(environ), MAX_BODY_BYTES)
        except BodyIncomplete as error:
            raise InvalidJson(str(error)) from error
        context.request.body_bytes = len(body)
        return NoticeCall(
            service=self._service,
            mode=self._mode,
            request_id=context.request.id,
            source=context.source,
            route=route,
            caller=context.caller,
            proven=context.authority,
            path=context.path,
            headers=read_headers(environ),
            body=body,
            count=partial(self._throttle.check_provider, context.rate_context, route),
        )

    def find_earlier(self, route: NoticeRoute, context: RequestContext) -> AlreadyResponded | None:
        """No response: a provider has no key; what it repeats is stored already."""
        return None

    def complete(self, route: NoticeRoute, response: Response) -> Response:
        return response

    def find_error_renderer(self, route: NoticeRoute) -> RenderError:
        return self._render_error


@attrs.frozen(eq=False)
class PageFormat:
    """The format of pages, which alone reads the dashboard's cookies. One per application."""

    _service: PaymentsService
    _mode: str
    _throttle: Throttle

    def read_call(self, route: PageRoute, context: RequestContext) -> Call:
        settings, environ = self._service.settings, context.environ
        query = read_page_query(environ.get("QUERY_STRING", ""))
        cookies = read_cookies(environ, settings.public_url)
        key, fields = None, None
        if route.method != "GET":
            key, fields = self._read_form(route, cookies, context)
        return PageCall(
            service=self._service,
            mode=self._mode,
            request_id=context.request.id,
            source=context.source,
            route=route,
            caller=context.caller,
            proven=context.authority,
            path=context.path,
            body=fields or {},
            query=query,
            idempotent=build_idempotent(
                route,
                context.authority,
                key,
                context.path,
                fields,
                settings.idempotency_retention_ms,
            ),
            if_none_match=environ.get("HTTP_IF_NONE_MATCH"),
            accept_language=environ.get("HTTP_ACCEPT_LANGUAGE"),
            cookies=cookies,
        )

    def _read_form(
        self, route: PageRoute, cookies: Cookies, context: RequestContext
    ) -> tuple[str | None, Mapping[str, str]]:
        """The key and the fields of a form, verified to be one that this browser got from here.

        Raises UnsupportedFormType, PayloadTooLarge, ValidationFailed, FormRefused, RateLimited, and
        IdempotencyKeyRequired if the row needs a key.
        """
        is_empty = not route.has_own_form and declared_length(context.environ) == 0
        fields = {} if is_empty else read_fields(context.environ)  # a button has no fields
        token, key = fields.pop(TOKEN_FIELD, ""), fields.pop(KEY_FIELD, None)
        cookie = cookies.login if route.needs is None else cookies.session
        if route.has_own_form:
            action, key_ring = route.path.format(**context.path), self._service.parts.ports.key_ring
            require_own_form(key_ring, context.environ, cookie, action, token)
        self._throttle.check_name(context.rate_context, route, read_username(fields))
        if not route.has_key:
            return None, fields
        if key is None:
            raise IdempotencyKeyRequired()
        return check_key(key), fields

    def find_earlier(self, route: PageRoute, context: RequestContext) -> AlreadyResponded | None:
        """No response: the key is in the form, which is read later."""
        return None

    def complete(self, route: PageRoute, response: Response) -> Response:
        return route.complete(response, route.path, self._service.settings.public_url)

    def find_error_renderer(self, route: PageRoute) -> RenderError:
        return route.render_error


def read_headers(environ: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a request, with lower-case names."""
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    if content_type := environ.get("CONTENT_TYPE"):
        headers["content-type"] = str(content_type)
    return headers


def read_username(fields: Mapping[str, str]) -> str:
    """The name of a log-in. It is counted as it is looked up, without spaces around it."""
    return fields.get("username", "").strip()


def _read_body(route: Route, document: Any, older: RouteContract | None) -> Any:
    """The wire object of a document, which is of an older contract if one is given.

    Raises ValidationFailed, with the names of that contract.
    """
    if older is None:
        return read_body(route, document)
    newer = older.read({} if document is None else document)
    try:
        return read_body(route, newer)
    except ValidationFailed as failed:
        raise older.name_faults(failed) from None
