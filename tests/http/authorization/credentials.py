"""Every kind of credential, made for real by the library's operations, with what it is."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from payments_core.clock import to_datetime
from payments_core.credentials.secrets import new_secret
from tests.http.authorization.model import PRODUCT_OF_SCOPE, Facts, Row
from tests.http.authorization.objects import World
from tests.http.authorization.populated_environment import EVERY_PERMISSION, ORIGIN, basic, bearer

Headers = dict[str, str]
Present = Callable[[World, Row], Headers]
SECRET_HEADER = "X-Service-Payment-Secret"
SCOPES = tuple(PRODUCT_OF_SCOPE)
COOKIE = "payments_operator+8080"


@attrs.frozen
class Credential:
    """Something to call with: its name, the facts for the model, and its headers for a row."""

    name: str
    facts: Facts
    headers: Present
    leaked: str = attrs.field(default="", repr=False)
    """What stands in the query or the body, as the facts say."""

    @staticmethod
    def session_cookie(headers: Mapping[str, str]) -> str:
        """The operator's, or nothing."""
        name, _, value = headers.get("Cookie", "").partition("=")
        return value if name == COOKIE else ""


def credentials(world: World) -> dict[str, Credential]:
    """All of them by name. The world's clock goes on until some have expired."""
    maker = _Maker(world)
    return {made.name: made for made in maker.all()}


class _Maker:
    """Makes credentials. Those that are to expire come first, then the clock is advanced."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tenants = world.service.tenants
        self._now = world.clock.now()

    def all(self) -> Iterator[Credential]:
        own = self._world.own
        account = own.ids["accountId"]
        short, _ = self._key("standard", expires_at=to_datetime(self._now + 30_000))
        brief, _ = self._key("standard", expires_at=to_datetime(self._now + 30_000))
        ended, ended_id = self._key("standard")
        gone, gone_id = self._key("standard")
        issuers = {"expired": basic(own.app_id, brief), "revoked": basic(own.app_id, ended)}
        old = own.session(account, seconds=60)["clientSessionToken"]
        _, expired = own.access(account, seconds=60)
        both, both_gone = own.access(account, seconds=60)
        issued = {name: own.access(account, headers=h)[1] for name, h in issuers.items()}
        self._world.system.advance(61)
        fresh = {name: own.session(account, headers=h) for name, h in issuers.items()
                 if name == "revoked"}  # fmt: skip
        self._tenants.revoke_key(own.environment_id, ended_id)
        self._tenants.revoke_key(own.environment_id, gone_id)
        own.call("DELETE", f"/v2/client-sessions/{both}")

        yield from self._nothing()
        yield from self._server()
        yield self._keyed("a revoked key", gone, state="revoked")
        yield self._keyed("an expired key", short, state="expired")
        yield from self._sessions(old, fresh["revoked"]["clientSessionToken"])
        yield from self._clients()
        yield self._token("an expired token", expired, state="expired")
        yield self._token("an expired token of a revoked session", both_gone, state="revoked")
        yield self._token("a token whose issuer was revoked", issued["revoked"], issuer="revoked")
        yield self._token("a token whose issuer expired", issued["expired"], issuer="expired")
        yield from self._payment_secrets()
        yield from self._operators()
        yield from self._leaks()

    # Nothing, or not a credential.

    def _nothing(self) -> Iterator[Credential]:
        own, none = self._world.own, Facts(kind="none")
        plain: dict[str, Headers] = {
            "nothing": {},
            "an empty header": {"Authorization": ""},
            "a scheme alone": {"Authorization": "Basic"},
            "no base64": {"Authorization": "Basic ?"},
            "a Bearer of nothing": {"Authorization": "Bearer "},
            "a malformed token": bearer("cat_AAAA"),
            "another scheme": {"Authorization": f"Digest {own.secret}"},
            "the app id as its own secret": basic(own.app_id, own.app_id),
            "the secret without the app id": _encoded(f":{own.secret}"),
            "the key's id for the secret": basic(own.app_id, own.key.id),
            "a dashboard's cookie": {"Cookie": f"session={own.secret}; Authorization={own.secret}"},
            "a proxy's header": {"Proxy-Authorization": basic(own.app_id, own.secret)[_A]},
            "the SDK's header": {"X-SDK-Key": own.secret},
        }
        for name, headers in plain.items():
            yield Credential(name, none, partial(_fixed, headers))
        whose: dict[str, tuple[str, Any]] = {
            "the app id alone": (own.app_id, {}),
            "the app id and a colon": (f"{own.app_id}:", {}),
            "a stranger's app id": (self._world.stranger.app_id, {"tenant": "stranger"}),
            "an app id that never was": ("app_" + "A" * 24, {"genuine": False}),
            "an environment's id for the app's": (own.environment_id, {"genuine": False}),
        }
        for name, (text, facts) in whose.items():
            reported = Facts(kind="app id", **facts)
            yield Credential(name, reported, partial(_fixed, _encoded(text)))
        for name, origin in (("none", None), ("another", "https://evil.example")):
            page = Facts(kind="none", origin=name)  # type: ignore[arg-type]
            yield Credential(f"a page of origin {origin}", page, partial(_from, origin))

    # Server keys.

    def _server(self) -> Iterator[Credential]:
        world, own, live = self._world, self._world.own, self._world.production
        yield self._keyed("a standard key", own.secret)
        yield self._keyed("a standard key in the other scheme", own.secret, presented="otherwise")
        for name, scopes in _choices(SCOPES):
            secret, _ = self._key("restricted", scopes=scopes)
            facts = {"restricted": True, "scopes": frozenset(scopes)}
            yield self._keyed(f"a restricted key with {name}", secret, **facts)
        publishable, _ = self._key("publishable")
        yield self._keyed("a publishable key", publishable, kind="publishable")
        yield self._keyed(
            "a publishable key in another header",
            publishable,
            kind="publishable",
            presented="otherwise",
        )
        revoked, revoked_id = self._key("publishable")
        self._tenants.revoke_key(own.environment_id, revoked_id)
        yield self._keyed("a revoked publishable key", revoked, kind="publishable", state="revoked")
        _, of_others = self._tenants.create_key(world.stranger.environment_id, "publishable", "k")
        facts = {"kind": "publishable", "tenant": "stranger"}
        yield self._keyed("a stranger's publishable key", of_others, **facts)
        yield self._keyed("a key of the other mode", live.secret, mode="production")
        invented = new_secret("standard", "sandbox", lambda count: b"\7" * count)
        yield self._keyed("an invented key", invented, genuine=False)
        yield self._keyed("half a key", own.secret[:-20], genuine=False)
        # A secret that comes alone says itself whose it is; beside an app id it must be that one's.
        stranger = world.stranger
        yield Credential(
            "a stranger's key",
            Facts(kind="key", tenant="stranger"),
            lambda world, row: _server_headers(row, stranger.app_id, stranger.secret),
        )
        for name, app_id, secret in (
            ("our key under a stranger's app id", stranger.app_id, own.secret),
            ("a stranger's key under our app id", own.app_id, stranger.secret),
            ("our key under its environment's id", own.environment_id, own.secret),
        ):
            facts = Facts(kind="key", genuine=False)
            yield Credential(name, facts, partial(_fixed, basic(app_id, secret)))

    def _keyed(self, name: str, secret: str, **facts: Any) -> Credential:
        made = Facts(**{"kind": "key", **facts})
        other_scheme = made.presented == "otherwise"
        app_id = self._world.own.app_id
        return Credential(
            name, made, lambda world, row: _server_headers(row, app_id, secret, other_scheme)
        )

    def _key(self, kind: Any, **more: Any) -> tuple[str, str]:
        """The secret and the id of a new key of ours."""
        key, secret = self._tenants.create_key(self._world.own.environment_id, kind, "k", **more)
        return secret, key.id

    # Session tokens, for the exchange.

    def _sessions(self, old: str, orphan: str) -> Iterator[Credential]:
        world, own = self._world, self._world.own
        account = own.ids["accountId"]
        ready = own.session(account)["clientSessionToken"]
        used = own.session(account)["clientSessionToken"]
        own.call("POST", "/v2/client/auth/exchange", headers=bearer(used))
        ended = own.session(account)
        own.call("DELETE", f"/v2/client-sessions/{ended['clientSessionId']}")
        live = world.production.session(world.production.ids["accountId"])["clientSessionToken"]
        theirs = world.stranger.session(world.stranger.ids["accountId"])["clientSessionToken"]
        everything = frozenset(EVERY_PERMISSION)
        for name, token, facts in (
            ("a session token", ready, {}),
            ("a used session token", used, {"state": "used"}),
            ("a revoked session token", ended["clientSessionToken"], {"state": "revoked"}),
            ("an expired session token", old, {"state": "expired"}),
            ("a session token whose issuer was revoked", orphan, {"issuer": "revoked"}),
            ("a session token of the other mode", live, {"mode": "production"}),
            ("a stranger's session token", theirs, {"tenant": "stranger"}),
            ("a session token called an access token", "cat_" + ready[4:], {"genuine": False}),
            ("half a session token", ready[:-20], {"genuine": False}),
        ):
            whole: Any = {"kind": "session token", "permissions": everything, **facts}
            yield Credential(name, Facts(**whole), partial(_with_secret, bearer(token)))

    # Access tokens.

    def _clients(self) -> Iterator[Credential]:
        world, own = self._world, self._world.own
        account = own.ids["accountId"]
        for name, permissions in _choices(EVERY_PERMISSION):
            if not permissions:
                continue
            _, token = own.access(account, *permissions)
            yield self._token(f"a token with {name}", token, permissions=frozenset(permissions))
        whole = own.buyers
        gone, revoked = own.access(account)
        own.call("DELETE", f"/v2/client-sessions/{gone}")
        yield self._token("a token of a revoked session", revoked, state="revoked")
        yield self._token("a token of the other mode", world.production.buyers, mode="production")
        yield self._token("the neighbour's token", own.sellers, account="neighbour")
        yield self._token("a stranger's token", world.stranger.buyers, tenant="stranger")
        yield self._token("half a token", whole[:-20], genuine=False)
        called = "cst_" + whole[4:]
        yield self._token("an access token called a session token", called, genuine=False)
        yield Credential(
            "an access token for a secret",
            Facts(kind="access token", presented="otherwise"),
            partial(_with_secret, basic(own.app_id, whole)),
        )
        for second, tell in (
            ("none", lambda row: None),
            ("forged", lambda row: _second(world, row)[:-20]),
            ("another Payment's", lambda row: _another(world, row)),
            ("elsewhere", lambda row: world.stranger.payments["out"]["clientSecret"]),
        ):
            everything: Any = {"permissions": frozenset(EVERY_PERMISSION), "second": second}
            facts = Facts(kind="access token", **everything)
            name = f"a token and a Payment's secret that is {second}"
            yield Credential(name, facts, partial(_told, bearer(whole), tell))

    def _token(self, name: str, token: str, **facts: Any) -> Credential:
        whole = {"kind": "access token", "permissions": frozenset(EVERY_PERMISSION), **facts}
        return Credential(name, Facts(**whole), partial(_with_secret, bearer(token)))

    # Payment secrets.

    def _payment_secrets(self) -> Iterator[Credential]:
        world = self._world
        live = world.production.payments["out"]["clientSecret"]
        theirs = world.stranger.payments["out"]["clientSecret"]
        tells: dict[str, tuple[Callable[[Row], str], Any]] = {
            "a Payment's secret": (lambda row: _second(world, row), {}),
            "another Payment's secret": (
                lambda row: _another(world, row), {"second": "another Payment's"}
            ),
            "a Payment's secret under another Payment's id": (
                lambda row: _moved(_another(world, row), world.payment(row)["id"]),
                {"genuine": False},
            ),
            "a secret of the other mode": (lambda row: live, {"mode": "production"}),
            "a stranger's Payment's secret": (lambda row: theirs, {"second": "elsewhere"}),
            "half a Payment's secret": (lambda row: _second(world, row)[:-20], {"genuine": False}),
        }  # fmt: skip
        for name, (tell, facts) in tells.items():
            made = Facts(kind="payment secret", **facts)
            yield Credential(name, made, lambda world, row, tell=tell: bearer(tell(row)))  # type: ignore[misc]
        facts = Facts(kind="payment secret", presented="otherwise")
        alone = {SECRET_HEADER: world.own.payments["out"]["clientSecret"]}
        yield Credential("a Payment's secret in the second header", facts, partial(_fixed, alone))

    # Operators' sessions.

    def _operators(self) -> Iterator[Credential]:
        world = self._world
        sessions = world.service.operator_sessions
        ended, gone = world.log_in(world.own), world.log_in(world.own)
        sessions.end(world.operator_authority(ended))
        whole = world.session = world.log_in(world.own)
        for name, token, facts in (
            ("an operator's session", whole, {}),
            ("a session that was logged out of", ended, {"state": "revoked"}),
            ("half an operator's session", whole[:-20], {"genuine": False}),
            ("an operator's session called an access token", "cat_" + whole[4:],
             {"genuine": False}),
            ("an access token for an operator's session", world.own.buyers, {"genuine": False}),
            ("a stranger's operator's session", world.log_in(world.stranger),
             {"tenant": "stranger"}),
            ("an operator's session of the other mode", world.log_in(world.production),
             {"mode": "production"}),
        ):  # fmt: skip
            made: Any = {"kind": "operator's session", **facts}
            cookie = {"Cookie": f"{COOKIE}={token}"}
            yield Credential(name, Facts(**made), partial(_fixed, cookie))
        facts = Facts(kind="operator's session", presented="otherwise")
        yield Credential("an operator's session as a token", facts, partial(_fixed, bearer(gone)))

    # Where no secret belongs.

    def _leaks(self) -> Iterator[Credential]:
        own = self._world.own
        secrets = {
            "a key": own.secret,
            "a token": own.buyers,
            "a Payment's secret": own.payments["out"]["clientSecret"],
        }
        for name, secret in secrets.items():
            for leak in ("query", "body"):
                facts = Facts(kind="none", leak=leak)  # type: ignore[arg-type]
                yield Credential(f"{name} in the {leak}", facts, partial(_fixed, {}), secret)
        for leak in ("query", "body"):
            key = self._keyed(f"a standard key, and again in the {leak}", own.secret, leak=leak)
            yield attrs.evolve(key, leaked=own.secret)
            token = self._token(f"a token, and again in the {leak}", own.buyers, leak=leak)
            yield attrs.evolve(token, leaked=own.buyers)
            facts = Facts(kind="payment secret", leak=leak)  # type: ignore[arg-type]
            yield Credential(
                f"a Payment's secret, and again in the {leak}",
                facts,
                lambda world, row: bearer(_second(world, row)),
                secrets["a Payment's secret"],
            )


_A = "Authorization"


def _choices(names: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """All, none, each alone, and all but each."""
    yield "everything", names
    yield "nothing", ()
    for one in names:
        yield f"{one} alone", (one,)
        yield f"everything but {one}", tuple(name for name in names if name != one)


def _encoded(text: str) -> Headers:
    return {_A: "Basic " + base64.b64encode(text.encode()).decode()}


def _fixed(headers: Headers, world: World, row: Row) -> Headers:
    return headers


def _from(origin: str | None, world: World, row: Row) -> Headers:
    return {"Origin": origin or ""} if origin else {"Origin": "null"}


def _with_secret(headers: Headers, world: World, row: Row) -> Headers:
    """The headers, with the right Payment's secret where the row takes one."""
    return headers if row.second == "none" else {**headers, SECRET_HEADER: _second(world, row)}


def _told(headers: Headers, tell: Callable[[Row], str | None], world: World, row: Row) -> Headers:
    reported = tell(row) if row.second != "none" else None
    return headers if reported is None else {**headers, SECRET_HEADER: reported}


def _server_headers(row: Row, app_id: str, secret: str, other_scheme: bool = False) -> Headers:
    """A server secret in the row's own scheme, or in the other one; Basic where it has none."""
    if row.caller == "sdk key" and not other_scheme:
        return {"X-SDK-Key": secret}
    as_bearer = (row.caller == "bearer key") != other_scheme
    return bearer(secret) if as_bearer else basic(app_id, secret)


def _second(world: World, row: Row) -> str:
    return str(world.payment(row)["clientSecret"])


def _another(world: World, row: Row) -> str:
    """The secret of a Payment of ours that the row is not about."""
    payments = world.own.payments
    role = "out" if world.payment(row) is payments["in"] else "in"
    return str(payments[role]["clientSecret"])


def _moved(secret: str, payment_id: str) -> str:
    return payment_id + "_secret_" + secret.partition("_secret_")[2]


def open_page(headers: Mapping[str, str]) -> Headers:
    """The headers of a call from the shop's own page, unless they name another."""
    return {"Origin": ORIGIN, **headers}


def right(everyone: Mapping[str, Credential], row: Row) -> Credential:
    """The credential that may do all that a row asks for."""
    names = {
        "key": "a standard key",
        "bearer key": "a standard key",
        "session token": "a session token",
        "client": "a token with everything",
        "payer": "a Payment's secret",
        "app id": "the app id alone",
        "sdk key": "a publishable key",
        "operator": "an operator's session",
    }
    return everyone[names.get(row.caller, "nothing")]
