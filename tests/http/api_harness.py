"""A service of real parts on memory storage, and the WSGI application through which tests call it.

Besides the real routes it serves `/v2/things`: a made-up resource whose rows use everything that
a row can say, so that the pipeline is tested apart from any one resource.
"""

from __future__ import annotations

import base64
import io
import json
import ssl
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NoReturn
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import attrs
from msgspec import Meta

from payments_core.accounts.operations import NewAccount
from payments_core.clock import Clock, FixedClock, SystemClock
from payments_core.contracts.versions import CURRENT_VERSION, Contract, Versions
from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.tokens import Claims
from payments_core.engine.committer import Committer
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotentRequest, Response
from payments_core.engine.identifiers import IdSequence
from payments_core.errors import InvalidState, NotFound
from payments_core.public_url import LOCAL_URL
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Page, Position, Storage, StorageUnavailable, Transaction
from payments_core.storage.records import Collection, Index, Record
from payments_core.tenants.authorization import Authority, Requirement
from payments_core.tenants.record import Environment
from payments_core.validation.metadata import Metadata
from payments_core.webhooks.transports.sockets import SocketTransport
from payments_core_http.app import create_app
from payments_core_http.calls import ApiCall
from payments_core_http.routes import ROUTES
from payments_core_http.routing import ListOf, Route
from payments_core_http.wire.classes import frozen_view
from payments_core_http.wire.query import PageQuery
from tests.http.openapi_checker import OpenApiChecker
from tests.http.seen import Seen

OTHER_VERSION = "2026-01-01"
VERSIONS = Versions((Contract(OTHER_VERSION), Contract(CURRENT_VERSION)))
"""The contract, and one before it that only tests know; the newer is the current one."""

# A resource for tests


@attrs.frozen(kw_only=True)
class Thing(Record):
    """A stored thing."""

    collection: ClassVar[Collection] = Collection(
        "things", columns={"name": str}, indexes=(Index("by_name", order=("name",)),)
    )

    name: str
    open: bool = True


@attrs.frozen(kw_only=True)
class Part:
    """An object inside a body."""

    address: Annotated[str, Meta(min_length=1, max_length=64)]
    label: str | None = None


@attrs.frozen(kw_only=True)
class ToAccount:
    """One of three destinations."""

    type: Literal["account"]
    accountId: str


@attrs.frozen(kw_only=True)
class ToWallet:
    """One of three destinations."""

    type: Literal["wallet"]
    address: str
    chainId: Annotated[int, Meta(ge=1)] | None = None


@attrs.frozen(kw_only=True)
class ToBank:
    """One of three destinations; its type has two values."""

    type: Literal["bank_account", "bank"]
    rail: Literal["ach", "wire"] = "ach"


@attrs.frozen(kw_only=True)
class MakeThing:
    """A body with one field of every kind."""

    name: Annotated[str, Meta(pattern="^[a-z]+$", max_length=20, extra={"rule": "letters a to z"})]
    amount: Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?$")] = "1"
    count: Annotated[int, Meta(ge=1, le=10)] = 1
    urgent: bool = False
    note: str | None = None
    parts: Annotated[tuple[Part, ...], Meta(max_length=3)] = ()
    destination: ToAccount | ToWallet | ToBank | None = None
    metadata: Metadata | None = None


@attrs.frozen(kw_only=True)
class ThingsQuery(PageQuery):
    """The filters of the list."""

    name: str | None = None
    open: bool | None = None


@frozen_view
class ThingView:
    """A thing on the wire."""

    id: str
    name: str
    open: bool


@frozen_view
class OpenedView:
    """What two credentials open."""

    paymentId: str


def view(thing: Thing) -> ThingView:
    return ThingView(id=thing.id, name=thing.name, open=thing.open)


class Things:
    """The operations of the made-up resource. `before` runs ahead of every commit."""

    def __init__(self, storage: Storage, committer: Committer) -> None:
        self._storage = storage
        self._committer = committer
        self.before: Callable[[], None] = lambda: None

    def make(self, authority: Authority, name: str, idempotent: IdempotentRequest | None) -> Thing:
        self.before()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Thing]:
            thing = Thing(id=id_sequence.issue("payment"), name=name)
            return Decision(thing, inserts=(thing,))

        return self._committer.commit(authority, decide, idempotent=idempotent)

    def close(self, authority: Authority, id: str, idempotent: IdempotentRequest | None) -> Thing:
        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Thing]:
            thing = tx.get(Thing, id, for_update=True)
            if thing is None:
                raise NotFound("payment")
            if not thing.open:
                raise InvalidState("thing", "closed", "close")
            closed = attrs.evolve(thing, open=False)
            return Decision(closed, replaces=(closed,))

        return self._committer.commit(authority, decide, idempotent=idempotent)

    def page(self, partition: str, after: Position | None, limit: int) -> Page[Thing]:
        return self._storage.read(
            partition, lambda tx: tx.find(Thing, "by_name", after=after, limit=limit)
        )

    def all(self, partition: str) -> list[Thing]:
        return list(self.page(partition, None, 1_000).records)


def make(service: Bench, call: ApiCall[MakeThing, None]) -> Response:
    return call.run_idempotent(
        lambda idempotent: service.things.make(call.authority, call.body.name, idempotent), view
    )


def close(service: Bench, call: ApiCall[None, None]) -> Response:
    id = call.path["paymentId"]
    return call.run_idempotent(
        lambda idempotent: service.things.close(call.authority, id, idempotent), view
    )


def read(service: Bench, call: ApiCall[None, None]) -> Response:
    id = call.path["paymentId"]
    thing = service.parts.ports.storage.read(call.authority.partition, lambda tx: tx.get(Thing, id))
    if thing is None:
        raise NotFound("payment")
    return call.respond(view(thing))


def list_(service: Bench, call: ApiCall[None, ThingsQuery]) -> Response:
    page = service.things.page(call.authority.partition, call.decode_position(), call.query.limit)
    return call.respond_page(page, view)


def vault(service: Bench, call: ApiCall[None, None]) -> Response:
    return call.respond(OpenedView(paymentId=call.payment_secret.subject))


def burst(service: Bench, call: ApiCall[None, None]) -> Response:
    raise RuntimeError("a fault with sk_sandbox_" + "A" * 43 + "00000000 in its text")


KEY = Requirement("server")
ROWS = (
    Route(
        "POST", "/v2/things", make, needs=KEY, body=MakeThing, success=201,
        idempotency="required", response=ThingView, summary="Make a thing.",
    ),
    Route(
        "GET", "/v2/things", list_, needs=KEY, query=ThingsQuery, response=ListOf(ThingView),
        summary="List things.",
    ),
    Route(
        "GET", "/v2/things/{paymentId}", read, needs=KEY, response=ThingView,
        summary="Read a thing.",
    ),
    Route(
        "PATCH", "/v2/things/{paymentId}", make, needs=KEY, body=MakeThing, response=ThingView,
        operation="changeThing", summary="Make.",
    ),
    Route(
        "POST", "/v2/things/{paymentId}/close", close, needs=KEY, response=ThingView,
        errors=(InvalidState,), summary="Close a thing.",
    ),
    Route(
        "POST", "/v2/client/things/{paymentId}", vault,
        needs=Requirement("client", permissions=("account:read",)),
        with_payment_secret=True, response=OpenedView, summary="Needs two credentials.",
    ),
    Route("GET", "/v2/burst", burst, needs=KEY, response=NoReturn, summary="Always fails."),
    Route(
        "GET", "/v2/scoped", read, needs=Requirement("server", scopes=("v2:vaults",)),
        response=ThingView, operation="readScoped", summary="Needs a scope.",
    ),
)  # fmt: skip


# The service


class Bench(PaymentsService):
    """The real service, on memory storage and a clock that stands still by default, with
    the made-up resource."""

    def __init__(
        self,
        clock: Clock | None = None,
        storage: Storage | None = None,
        threads: int = 8,
        versions: Versions = VERSIONS,
        **ports: Any,
    ) -> None:
        storage = storage or MemoryStorage()
        super().__init__(
            storage,
            KeyRing.parse(KeyRing.generate()),
            settings=Settings(
                public_url=LOCAL_URL,
                versions=versions,
                max_remote_calls=threads // 2 + 1,
                deployment_operators=("hera",),
            ),
            clock=clock or FixedClock(),
            **({"transport": SocketTransport(authorities())} | ports),
        )
        self.things = Things(self.parts.ports.storage, self.parts.ports.committer)

    def out_of_reach(self) -> None:
        """Storage answers nobody from now on."""

        def refuse(*_: object) -> None:
            raise StorageUnavailable("no route to host")

        self.check_ready = refuse
        self.parts.ports.storage.read = refuse  # type: ignore[method-assign,assignment]
        self.parts.ports.storage.transact = refuse  # type: ignore[method-assign,assignment]


@cache
def authorities() -> ssl.SSLContext:
    """The system's authorities; to read them takes longer than most tests do."""
    return ssl.create_default_context()


class ApiHarness:
    """One app with its environment, keys and an account, and calls through plain WSGI."""

    def __init__(
        self,
        clock: Clock | None = None,
        threads: int = 8,
        storage: Storage | None = None,
        **ports: Any,
    ) -> None:
        """`ports` are further arguments of the service, such as `telemetry`."""
        self.service = Bench(clock, storage, threads, **ports)
        tenants = self.service.tenants
        self.app_row = tenants.create_app("Shop", "shop")
        environment_id = self.app_row.environments["sandbox"]
        self.key, self.secret = tenants.create_key(environment_id, "standard", "main")
        _, self.restricted_secret = tenants.create_key(
            environment_id, "restricted", "narrow", scopes=["v2:accounts"]
        )
        self.partition = environment_id
        account = self.service.acting_as(tenants.system_authority(environment_id)).accounts.create(
            NewAccount(external_user_id="user-1", subject_type="individual"),
        )
        self.account_id = account.account.id
        self.app = create_app(
            self.service,  # type: ignore[arg-type]
            mode="sandbox",
            threads=threads,
            routes=(*ROUTES, *ROWS),
        )
        self.validated = validator(self.app)

    @property
    def environment(self) -> Environment:
        return self.service.tenants.get_environment(self.partition)

    def basic(self, secret: str | None = None, app_id: str | None = None) -> str:
        pair = f"{app_id or self.app_row.id}:{secret or self.secret}"
        return "Basic " + base64.b64encode(pair.encode()).decode()

    def call(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        auth: str | None = "",
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        environ: Mapping[str, Any] | None = None,
        valid: bool = True,
    ) -> Seen:
        """A request; `auth=None` sends no credential, and an empty one the standard key."""
        path, _, query = target.partition("?")
        given: dict[str, Any] = {
            "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "SCRIPT_NAME": "",
            "REMOTE_ADDR": "127.0.0.1",
        }  # fmt: skip
        if auth is not None:
            given["HTTP_AUTHORIZATION"] = auth or self.basic()
        if key is not None:
            given["HTTP_IDEMPOTENCY_KEY"] = key
        for name, value in (headers or {}).items():
            given["HTTP_" + name.upper().replace("-", "_")] = value
        sent = json.dumps(body).encode() if raw is None and body is not None else raw or b""
        if sent:
            given["CONTENT_TYPE"] = "application/json"
            given["CONTENT_LENGTH"] = str(len(sent))
        given["wsgi.input"] = io.BytesIO(sent)
        given.update(environ or {})
        setup_testing_defaults(given)
        given = {name: value for name, value in given.items() if value is not None}
        return self._answered(given, valid)

    def make(self, body: Any = None, *, key: str = "k-1", **more: Any) -> Seen:
        return self.call("POST", "/v2/things", body or {"name": "a"}, key=key, **more)

    def session(self, **body: Any) -> Seen:
        return self.call("POST", "/v2/client-sessions", {"externalUserId": "user-1", **body})

    def exchange(self, token: str, **more: Any) -> Seen:
        return self.call("POST", "/v2/client/auth/exchange", auth=f"Bearer {token}", **more)

    def access_token(self, **body: Any) -> str:
        token = self.session(**body).json["clientSessionToken"]
        return str(self.exchange(token).json["accessToken"])

    def payment_secret(self, payment_id: str, **claims: Any) -> str:
        facts = {
            "environment_id": self.partition,
            "subject": payment_id,
            "api_version": self.environment.api_version,
            "expires_at_ms": self.service.parts.ports.clock.now() + 1,
        }
        return self.service.parts.ports.tokens.payment_secret(Claims(**{**facts, **claims}))

    def _answered(self, environ: dict[str, Any], valid: bool) -> Seen:
        stream = environ["wsgi.input"]
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            started.append((status, headers))
            return lambda data: None

        result = (self.validated if valid else self.app)(environ, start_response)
        try:
            body = b"".join(iter(result))
        finally:
            if hasattr(result, "close"):
                result.close()
        [(status, headers)] = started
        cookies = "\n".join(value for name, value in headers if name.lower() == "set-cookie")
        given = {name.lower(): value for name, value in headers}
        seen = Seen(int(status[:3]), given | ({"set-cookie": cookies} if cookies else {}), body)
        sent = stream.getvalue() if isinstance(stream, io.BytesIO) else b""
        document = described(self.service.parts.ports.versions, seen.headers["service-version"])
        document.check(environ, sent, seen.status, seen.headers, seen.body)
        return seen


def described(versions: Versions = VERSIONS, version: str = CURRENT_VERSION) -> OpenApiChecker:
    """What the OpenAPI document of a contract says of every route that the harness has."""
    differs = version in versions.supported and versions.changes_since(version)
    return _describe(versions, version if differs else versions.current)


@cache
def _describe(versions: Versions, version: str) -> OpenApiChecker:
    return OpenApiChecker((*ROUTES, *ROWS), versions, version)


def real_time() -> SystemClock:
    """For tests whose threads or sockets run in real time."""
    return SystemClock()
