"""Routes as rows: what a row declares, how the ids in its path look, and how a path is found.

The tables of routes live with their resources, in `v2/<resource>/routes.py` and
`v1/<resource>/routes.py`; what every row goes through is `app.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import attrs
import falcon
from falcon.routing import CompiledRouter

from payments_core.engine.idempotency.record import Response
from payments_core.engine.identifiers import id_pattern, is_identifier
from payments_core.errors import NotFound, PaymentsError
from payments_core.payments import links
from payments_core.tenants.authorization import Requirement
from payments_core_http.errors import ErrorForm, RouteNotFound, error_form_of

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Credential = Literal[
    "server_key",
    "bearer_key",
    "client_token",
    "session_token",
    "payment_secret",
    "app_id",
    "basic_app_id",
    "sdk_key",
    "operator_session",
    "none",
]
Idempotency = Literal["required", "accepted", "ignored"]
Handler = Callable[["PaymentsService", Any], Response]
"""A handler receives the service and its `Call`, whose class is in a higher room."""

RenderError = Callable[[PaymentsError, str, Mapping[str, Any]], Response]
"""Makes a page from an error, the id of its request, and the WSGI environment."""

CompleteResponse = Callable[[Response, str, str], Response]


@attrs.frozen
class PathId:
    """An id in a path: its prefix, and the noun of its `not_found`. `shape` is for other names."""

    prefix: str
    noun: str
    shape: str | None = None

    @property
    def pattern(self) -> str:
        """The complete form of such a name, as a regular expression."""
        return id_pattern(self.prefix) if self.shape is None else f"^{self.shape}$"

    def is_valid(self, text: str) -> bool:
        """Whether anything can have that name."""
        if self.shape is not None:
            return re.fullmatch(self.shape, text, re.ASCII) is not None
        return is_identifier(text, self.prefix)


PATH_IDS: Mapping[str, PathId] = {
    "accountId": PathId("acct", "account"),
    "onrampBankAccountId": PathId("onramp_account", "on-ramp bank account"),
    "appId": PathId("app", "app"),
    "clientSessionId": PathId("client_session", "client session"),
    "code": PathId("", "payment link", links.CODE_SHAPE),
    "deliveryId": PathId("delivery", "delivery"),
    "depositId": PathId("deposit", "deposit"),
    "environmentId": PathId("env", "environment"),
    "eventId": PathId("evt", "event"),
    "heldTransferId": PathId("", "held transfer", "[A-Za-z0-9_:-]{1,300}"),
    "keyId": PathId("key", "key"),
    "kind": PathId("", "provider", "[a-z]{2,16}"),
    "mandateId": PathId("mandate", "mandate"),
    "optionId": PathId("pay_option", "payment option"),
    "paymentId": PathId("payment", "payment"),
    "provider": PathId("", "provider", "[a-z0-9-]{1,40}"),
    "requestId": PathId("req", "request"),
    "sessionId": PathId("ses", "session"),
    "bankTransactionId": PathId("bank_txn", "bank transaction"),
    "vaultId": PathId("vault", "vault"),
    "verificationId": PathId("verification", "verification"),
    "walletId": PathId("wallet", "wallet"),
    "webhookId": PathId("webhook", "webhook endpoint"),
}
"""Every name that may be in braces in a path."""

_PATH_NAME = re.compile(r"\{(\w+)\}")


@attrs.frozen(kw_only=True)
class Nothing:
    """The body of a call without parameters: absent, or `{}`."""


@attrs.frozen
class ListOf:
    """The response of a list: a page `{data, limit, hasNextPage, nextCursor}` of such views."""

    view: Any


def _keep(response: Response, path: str, public_url: str) -> Response:
    return response


@attrs.frozen
class Row:
    """A method on a path, and what the pipeline must know of each such row.

    `needs` is None if no credential is required, or only a session token.
    `with_payment_secret` also requires `X-Service-Payment-Secret` of the path's Payment, and
    `may_have_payment_secret` accepts it if it is sent; both refuse a wrong one.
    `policy` names the row's own rate policy, `creation_policy` the one that counts what the row
    creates, and `miss_policy` the one that counts, for the address, what was not found.
    `errors` are the handler's own, besides those that the pipeline raises on every such row.
    """

    method: Method
    path: str
    handler: Handler
    needs: Requirement | None = attrs.field(kw_only=True)
    summary: str = attrs.field(kw_only=True)
    credential: Credential = attrs.field(kw_only=True)
    with_payment_secret: bool = attrs.field(kw_only=True, default=False)
    may_have_payment_secret: bool = attrs.field(kw_only=True, default=False)
    policy: str | None = attrs.field(kw_only=True, default=None)
    creation_policy: str | None = attrs.field(kw_only=True, default=None)
    miss_policy: str | None = attrs.field(kw_only=True, default=None)
    errors: tuple[type[PaymentsError], ...] = attrs.field(kw_only=True, default=())
    path_names: tuple[str, ...] = attrs.field(init=False)

    @credential.default
    def _default_credential(self) -> Credential:
        if self.needs is None:
            return "none"
        if self.needs.caller == "payer":
            return "payment_secret"
        if self.needs.caller == "public":
            return "app_id"
        if self.needs.caller == "operator":
            return "operator_session"
        return "server_key" if self.needs.caller == "server" else "client_token"

    @path_names.default
    def _default_path_names(self) -> tuple[str, ...]:
        names = tuple(_PATH_NAME.findall(self.path))
        if unknown := set(names) - PATH_IDS.keys():
            raise ValueError(f"{self.path}: no row in PATH_IDS for {sorted(unknown)}")
        return names

    @property
    def name(self) -> str:
        """`METHOD /path`, for logs and fingerprints; it never holds an id."""
        return f"{self.method} {self.path}"

    def require_ids(self, values: Mapping[str, str]) -> None:
        """Raise NotFound for an id of another shape: nothing can have it.

        An empty text, as after one slash too many, is not an id: there is no such route.
        """
        for name in self.path_names:
            shape = PATH_IDS[name]
            if not values[name]:
                raise RouteNotFound()
            if not shape.is_valid(values[name]):
                raise NotFound(shape.noun)


@attrs.frozen
class Route(Row):
    """A row of the API. Its handler receives an `ApiCall`.

    `body` and `query` are wire classes; without them a body must be empty and every query parameter
    is refused.
    `product_of` says which product the body requires, if the body decides that.
    `response` is that of a success: a view class, a union of them, `ListOf` one, or `NoReturn`
    if nothing succeeds yet. `success_if_existing` is the status if there was nothing to create.
    `has_etag` is for reads that are polled: an ETag, and 304 for a client that has the response.
    `has_csv` is for lists whose query may ask for CSV.
    `operation` names the row in the OpenAPI document if the handler's own name reads badly.
    """

    body: Any = attrs.field(kw_only=True, default=Nothing)
    query: Any = attrs.field(kw_only=True, default=Nothing)
    idempotency: Idempotency = attrs.field(kw_only=True)
    product_of: Callable[[Any], str] | None = attrs.field(kw_only=True, default=None)
    success: int = attrs.field(kw_only=True, default=200)
    success_if_existing: int | None = attrs.field(kw_only=True, default=None)
    response: Any = attrs.field(kw_only=True)
    has_etag: bool = attrs.field(kw_only=True, default=False)
    has_csv: bool = attrs.field(kw_only=True, default=False)
    operation: str | None = attrs.field(kw_only=True, default=None)
    body_may_be_empty: bool = attrs.field(init=False)

    @idempotency.default
    def _default_idempotency(self) -> Idempotency:
        writes = self.method in ("POST", "PUT", "PATCH") and self.needs is not None
        return "accepted" if writes else "ignored"

    @body_may_be_empty.default
    def _default_body_may_be_empty(self) -> bool:
        if self.method == "PUT" or not attrs.has(self.body):
            return False  # a PUT replaces everything: an empty body would clear it all
        return all(field.default is not attrs.NOTHING for field in attrs.fields(self.body))

    def __attrs_post_init__(self) -> None:
        if self.idempotency != "ignored" and self.needs is None:
            raise ValueError(f"{self.path}: idempotency needs a principal")

    @property
    def error_form(self) -> ErrorForm:
        """The form of its errors."""
        return error_form_of(self.path)


@attrs.frozen
class NoticeRoute(Row):
    """A row that providers call. Its handler receives a `NoticeCall`: the body as it was sent."""


@attrs.frozen
class PageRoute(Row):
    """A row of a page. Its handler receives a `PageCall`; its errors are pages too.

    A GET ignores unknown parameters of a link's query, and a POST accepts a form.
    `complete` adds the headers that are not stored with a response, for the row's path and the
    service's public URL.
    `has_key` is for a form with an idempotency key, and `name_policy` counts a form by the
    operator's name in it. `has_own_form` says that only a form of the dashboard, with its cookie,
    is accepted; the handler of another row proves its form itself.
    """

    render_error: RenderError = attrs.field(kw_only=True)
    complete: CompleteResponse = attrs.field(kw_only=True, default=_keep)
    has_key: bool = attrs.field(kw_only=True)
    name_policy: str | None = attrs.field(kw_only=True, default=None)
    has_own_form: bool = attrs.field(kw_only=True, default=True)

    @has_key.default
    def _default_has_key(self) -> bool:
        return self.method == "POST" and self.needs is not None


def has_encoded_slash(environ: Mapping[str, Any]) -> bool:
    """Whether the path was sent with `%2F`, which the server has decoded into a slash.

    A proxy that judges paths as they are sent would take it for another path. Only servers that
    pass on the target as it was sent, as ours does, are covered: WSGI does not require it.
    """
    target: str = environ.get("REQUEST_URI") or environ.get("RAW_URI") or ""
    return "%2f" in target.partition("?")[0].lower()


def group_by_path(rows: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """The rows by path, then by method. Raises ValueError for two rows with one path and method."""
    table: dict[str, dict[str, Row]] = {}
    for row in rows:
        methods = table.setdefault(row.path, {})
        if row.method in methods:
            raise ValueError(f"two rows for {row.name}")
        methods[row.method] = row
    return table


Responder = Callable[..., None]
"""What Falcon calls with its request, its response and the ids of the path."""


class PathRouter(CompiledRouter):
    """Falcon's router, which would take `//v2/accounts` for `/v2/accounts`.

    Applications with the same paths share the finder: to make it takes longer than all the rest of
    an application. Falcon refuses a method without a responder, with an HTTPError.
    """

    def __init__(self, responders: Mapping[str, Mapping[str, Responder]]) -> None:
        """Serve each path with its responders by method."""
        super().__init__()
        self._responders = responders
        self._finder = _make_finder(tuple(responders))

    def find(self, uri: str, req: falcon.Request | None = None) -> Any:
        """The responders of a path and the ids in it; None if extra slashes precede it."""
        found = None if uri.startswith("//") else self._finder.find(uri, req)
        if found is None:
            return None
        _, _, ids, path = found
        return path, self._responders[str(path)], ids, path


@cache
def _make_finder(paths: tuple[str, ...]) -> CompiledRouter:
    finder = CompiledRouter()
    for path in paths:
        finder.add_route(path, path)
    return finder
