"""What a handler receives: the checked request, and the ways to respond to it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs
import msgspec

from payments_core.credentials.tokens import Claims
from payments_core.engine.audit import NO_SOURCE, CallSource
from payments_core.engine.idempotency.record import IdempotentRequest, Response
from payments_core.errors import ValidationFailed
from payments_core.evolve import evolve
from payments_core.resources import Resources
from payments_core.storage.port import Page, Position
from payments_core.tenants.authorization import Authority
from payments_core_http.authentication import Caller
from payments_core_http.browser_sessions import Cookies
from payments_core_http.contracts import RouteContract
from payments_core_http.response_cache import ResponseCache
from payments_core_http.routing import Route, Row
from payments_core_http.wire import cursors
from payments_core_http.wire.names import name_failure
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

B = TypeVar("B")
Q = TypeVar("Q")
T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Call:
    """One request that passed every check that does not need the resource.

    `path` holds the ids by their names in the path. Handlers make three moves: read these, call one
    operation, shape the response.
    """

    service: PaymentsService = attrs.field(repr=False)
    mode: str
    request_id: str
    source: CallSource = NO_SOURCE
    route: Row
    caller: Caller
    proven: Authority | None
    path: Mapping[str, str]
    idempotent: IdempotentRequest | None = None
    if_none_match: str | None = None

    @property
    def authority(self) -> Authority:
        """The authority with which operations run; only rows with `needs` have one."""
        assert self.proven is not None, f"{self.route.name} requires no credential"
        return self.proven

    @property
    def resources(self) -> Resources:
        """What the caller can do in its environment."""
        return Resources(self.service.parts, self.authority)

    def handle(self) -> Response:
        """The handler's response. A fault that an operation finds gets the path of the wire."""
        try:
            return self.route.handler(self.service, self)
        except ValidationFailed as error:
            raise name_failure(error) from error

    def add_etag(self, response: Response) -> Response:
        """The response with a strong ETag, or 304 for a client that has it."""
        tag = f'"{make_etag(response.body)}"'
        return self.respond_tagged(
            tag, response.api_version, response.headers, lambda: response.body
        )

    def respond_tagged(
        self, tag: str, version: str, headers: Mapping[str, str], render: Callable[[], bytes]
    ) -> Response:
        """The result of `render`, with an ETag; 304 for a client that has it, without rendering.

        `tag` is as in the header, with its quotes.
        """
        headers = {**headers, "ETag": tag}
        if not _etag_matches(self.if_none_match, tag):
            return Response(200, render(), version, headers)
        headers.pop("Content-Type", None)  # there is no content
        return Response(304, b"", version, headers)


@attrs.frozen(kw_only=True)
class NoticeCall(Call):
    """The request of a provider: its headers, with lower-case names, and the bytes of its body.

    `count` counts new notices of the provider of that name. Raises RateLimited.
    """

    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    count: Callable[[str, int], None] = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class PageCall(Call):
    """The request of a page: the fields of its query and of its form, and what its browser sent.

    `cookies` are the dashboard's.
    """

    query: Mapping[str, str]
    body: Mapping[str, str]
    accept_language: str | None
    cookies: Cookies


@attrs.frozen(kw_only=True)
class ApiCall(Call, Generic[B, Q]):
    """The request of a row of the API: `body` and `query` are instances of its wire classes.

    `older_contract` is the caller's contract, if its response differs from the newest.
    """

    route: Route
    body: B
    query: Q
    response_cache: ResponseCache = attrs.field(factory=ResponseCache, repr=False)
    older_contract: RouteContract | None = attrs.field(default=None, repr=False)

    @property
    def session_token(self) -> str:
        """The session token, on the row that requires one."""
        assert self.caller.session_token is not None
        return self.caller.session_token

    @property
    def payment_secret(self) -> Claims:
        """What the Payment's client secret proves, on rows `with_payment_secret`."""
        assert self.caller.payment_secret is not None
        return self.caller.payment_secret

    def handle(self) -> Response:
        """The handler's response, with the faults that it finds in the caller's contract."""
        try:
            return super().handle()
        except ValidationFailed as error:
            if self.older_contract is None:
                raise
            raise self.older_contract.name_faults(error) from None

    def respond(self, view: Any, status: int | None = None) -> Response:
        """The response to a read, or to a write that has no idempotency key."""
        body = msgspec.json.encode(self._render(view))
        return Response(status or self.route.success, body, self.caller.api_version)

    def respond_from(self, source: T, render: Callable[[T], Any]) -> Response:
        """Like `respond` with `render(source)`, which is cached while the source is equal.

        `render` must depend on nothing else. For reads that clients repeat.
        """
        version = self.caller.api_version
        key = (self.authority.partition, version, self.route.name, *self.path.values())
        body = self.response_cache.encode(key, source, lambda one: self._render(render(one)))
        return Response(self.route.success, body, version)

    def _render(self, view: Any) -> Any:
        """The view in the caller's contract."""
        return view if self.older_contract is None else self.older_contract.render(view)

    def respond_with_etag(self, view: Any) -> Response:
        """The response to a polled read: with a strong ETag, and 304 for a client that has it."""
        return self.add_etag(self.respond(view))

    def run_idempotent(
        self,
        operation: Callable[[IdempotentRequest | None], T],
        render: Callable[[T], Any],
        status: Callable[[T], int] | None = None,
    ) -> Response:
        """Run a writing operation, and respond; with a key, with the bytes that are stored for it.

        `render` shapes the operation's result into a view. With a key it runs inside the
        transaction, maybe more than once, so it must be pure. Nothing is stored without a key, or
        if the operation had nothing to commit. `status` is for rows with more than one success.

        Raises AlreadyResponded if another request with the key was committed meanwhile, and what
        the operation raises.
        """

        def render_response(result: T) -> Response:
            return self.respond(render(result), status(result) if status else None)

        if self.idempotent is None:
            return render_response(operation(None))
        idempotent = evolve(self.idempotent, render=render_response)
        result = operation(idempotent)
        # An operation that had nothing to commit stored nothing: it may simply run again.
        return idempotent.response or render_response(result)

    def decode_position(self) -> Position | None:
        """Where the list continues, from the query's `cursor`. Raises ValidationFailed."""
        query = self._page_query()
        return None if query.cursor is None else self.decode_cursor(query.cursor, "cursor")

    def decode_cursor(self, cursor: str, parameter: str) -> Position:
        """The place in the list that a parameter of the query names. Raises ValidationFailed."""
        key_ring = self.service.parts.ports.key_ring
        return cursors.decode(key_ring, self._list_name(), cursor, parameter)

    def respond_page(self, page: Page[Any], view: Callable[[Any], Any]) -> Response:
        """`{data, limit, hasNextPage, nextCursor}` for a page of records."""
        data = [view(record) for record in page.records]
        return self.respond({"data": data, **self.page_fields(page.next)})

    def page_fields(self, next_position: Position | None) -> dict[str, Any]:
        """`{limit, hasNextPage, nextCursor}`, for lists that are not named `data`."""
        cursor = None if next_position is None else self.encode_cursor(next_position)
        return {
            "limit": self._page_query().limit,
            "hasNextPage": cursor is not None,
            "nextCursor": cursor,
        }

    def encode_cursor(self, position: Position) -> str:
        """The cursor of a place in this list."""
        key_ring = self.service.parts.ports.key_ring
        return cursors.encode(key_ring, self._list_name(), position)

    def _page_query(self) -> PageQuery:
        assert isinstance(self.query, PageQuery)
        return self.query

    def _list_name(self) -> str:
        """The identity of this list: its owner, path and filters."""
        filters = attrs.asdict(self._page_query(), filter=_is_filter)
        names = (self.authority.partition, self.authority.principal, self.route.path)
        return msgspec.json.encode((names, sorted(self.path.items()), filters)).decode()


def make_etag(content: bytes) -> str:
    """The value of an ETag, which differs for each content."""
    return hashlib.sha256(content).hexdigest()[:32]


def _etag_matches(if_none_match: str | None, tag: str) -> bool:
    """Whether `If-None-Match` names the tag, compared weakly (RFC 9110, 13.1.2)."""
    if if_none_match is None:
        return False
    given = [item.strip().removeprefix("W/") for item in if_none_match.split(",")]
    return tag in given or given == ["*"]


def _is_filter(field: attrs.Attribute[Any], value: Any) -> bool:
    return field.name not in ("limit", "cursor", "after")
