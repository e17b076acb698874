"""Who calls: credentials out of headers, and what they prove (interface "Authentication").

A credential counts only in its own header and its own scheme; everything else is refused alike.
What the caller may do is decided one step later, by `payments_core.tenants.authorization`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from payments_core.credentials.tokens import Claims, TokenInvalid
from payments_core.engine.audit import CallSource
from payments_core.errors import CredentialMismatch, NotFound, Unauthorized
from payments_core.evolve import evolve
from payments_core.payments.checkout.public import Shop
from payments_core.tenants.authorization import Authority
from payments_core.tenants.record import ClientSession, Environment, Key, OperatorSession
from payments_core_http.browser_sessions import read_cookies
from payments_core_http.routing import PATH_IDS, Credential, Row

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_MAX_CHARACTERS = 2_000
_SECRET_HEADER = "HTTP_X_SERVICE_PAYMENT_SECRET"
_SDK_KEY_HEADER = "HTTP_X_SDK_KEY"
_BASIC = re.compile(r"basic +([A-Za-z0-9+/]+={0,2})", re.ASCII | re.IGNORECASE)
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]+)", re.ASCII | re.IGNORECASE)
_BASIC_APP_ID = re.compile(r"([!-9;-~]+):?", re.ASCII)
_BASIC_PAIR = re.compile(r"([!-9;-~]+):([!-~]+)", re.ASCII)

ENVIRONMENT_KEY = "payments_core.environment"
"""The key in the WSGI environment under which the server finds the environment of a token."""
_BEARER_CREDENTIALS = frozenset({"bearer_key", "client_token", "session_token"})

CHALLENGES: Mapping[Credential, str] = {
    "server_key": 'Basic realm="payments", charset="UTF-8"',
    "bearer_key": "Bearer",
    "client_token": "Bearer",
    "session_token": "Bearer",
    "payment_secret": "Bearer",
    "app_id": "Bearer",
    "basic_app_id": "Bearer",
    "sdk_key": "Bearer",
    "operator_session": "Bearer",
    "none": "Bearer",
}
"""`WWW-Authenticate` of a 401: never Basic to a browser, which would ask its user."""


@attrs.frozen(kw_only=True)
class Caller:
    """What a request's credentials proved. `api_version` is the version of its response."""

    environment: Environment | None = None
    key: Key | None = None
    session: ClientSession | None = None
    session_token: str | None = attrs.field(default=None, repr=False)
    operator: OperatorSession | None = None
    payment_secret: Claims | None = None
    shop: Shop | None = None
    origin: str | None = None
    api_version: str
    bound_versions: tuple[str, ...] = ()

    @property
    def payment_id(self) -> str | None:
        """The one Payment whose client secret was sent."""
        return self.payment_secret.subject if self.payment_secret else None

    @property
    def admitted_origin(self) -> str | None:
        """The origin of the browser, if the shop's settings admit it."""
        is_admitted = self.shop is not None and self.shop.terms.allows_origin(self.origin)
        return self.origin if is_admitted else None

    def authority_for(self, route: Row, source: CallSource) -> Authority | None:
        """The authority that operations require, for a request from `source`; None on routes that
        need none."""
        if route.needs is None or self.environment is None:
            return None
        return Authority(
            requirement=route.needs,
            environment=self.environment,
            key=self.key,
            session=self.session,
            operator=self.operator,
            payment_id=self.payment_id if route.needs.caller == "payer" else None,
            origin=self.origin,
            api_version=self.api_version,
            source=source,
        )


def authenticate(
    service: PaymentsService,
    mode: Any,
    route: Row,
    environ: Mapping[str, Any],
    path_ids: Mapping[str, str],
) -> Caller:
    """Who calls this route. Raises Unauthorized, ClientTokenExpired, CredentialMismatch."""
    if route.credential == "none":
        return Caller(api_version=service.settings.versions.current)
    if route.credential == "app_id":
        return _identify_visitor(service, mode, environ, path_ids)
    if route.credential == "sdk_key":
        environment, key = service.tenants.authenticate_publishable(
            environ.get(_SDK_KEY_HEADER, ""), mode=mode
        )
        return _caller_bound_to(environment.api_version, environment=environment, key=key)
    if route.credential == "operator_session":
        token = read_cookies(environ, service.settings.public_url).session or ""
        environment, operator = service.operator_sessions.authenticate(token, mode=mode)
        return _caller_bound_to(environment.api_version, environment=environment, operator=operator)
    header = environ.get("HTTP_AUTHORIZATION", "")
    if len(header) > _MAX_CHARACTERS:
        raise Unauthorized()
    if route.credential == "basic_app_id":
        environment = service.tenants.identify_app(_parse_app_id(header), mode=mode)
        return _caller_bound_to(environment.api_version, environment=environment)
    if route.credential == "server_key":
        app_id, secret = _parse_basic(header)
        environment, key = service.tenants.authenticate(app_id, secret, mode=mode)
        caller = _caller_bound_to(environment.api_version, environment=environment, key=key)
    elif route.credential == "bearer_key":
        secret = _parse_bearer(header)
        environment, key = service.tenants.authenticate_bearer(secret, mode=mode)
        caller = _caller_bound_to(environment.api_version, environment=environment, key=key)
    elif route.credential == "session_token":
        token = _parse_bearer(header)
        environment, session = service.client_tokens.find_exchangeable(token, mode=mode)
        return _caller_bound_to(session.api_version, environment=environment, session_token=token)
    elif route.credential == "payment_secret":
        return _authenticate_payer(service, mode, _parse_bearer(header), path_ids)
    else:
        token = _parse_bearer(header)
        environment, session = service.client_tokens.authenticate(token, mode=mode)
        caller = _caller_bound_to(session.api_version, environment=environment, session=session)
    may_have = route.may_have_payment_secret and _SECRET_HEADER in environ
    if route.with_payment_secret or may_have:
        return _add_payment_secret(service, caller, environment, environ, path_ids)
    return caller


def name_environment(
    environ: dict[str, Any], credential: str | None, environment_id: str | None
) -> None:
    """Report to the server which environment a token is for; other credentials are not reported."""
    if credential in _BEARER_CREDENTIALS:
        environ[ENVIRONMENT_KEY] = environment_id


def _caller_bound_to(api_version: str, **facts: Any) -> Caller:
    return Caller(api_version=api_version, bound_versions=(api_version,), **facts)


def _parse_basic(header: str) -> tuple[str, str]:
    """The user and password of a Basic header."""
    pair = _BASIC_PAIR.fullmatch(_decode_basic(header))
    if pair is None:
        raise Unauthorized()
    return pair[1], pair[2]


def _parse_app_id(header: str) -> str:
    """The app id of a Basic header that has nothing else, with or without a colon after it."""
    match = _BASIC_APP_ID.fullmatch(_decode_basic(header))
    if match is None or not PATH_IDS["appId"].is_valid(match[1]):
        raise Unauthorized()
    return match[1]


def _decode_basic(header: str) -> str:
    """The content of a Basic header, which must be the canonical encoding."""
    match = _BASIC.fullmatch(header)
    if match is None:
        raise Unauthorized()
    try:
        decoded = base64.b64decode(match[1], validate=True)
    except binascii.Error:
        raise Unauthorized() from None
    if base64.b64encode(decoded).decode() != match[1]:
        raise Unauthorized()
    return decoded.decode("latin-1")


def _parse_bearer(header: str) -> str:
    match = _BEARER.fullmatch(header)
    if match is None:
        raise Unauthorized()
    return match[1]


def _authenticate_payer(
    service: PaymentsService, mode: Any, secret: str, path_ids: Mapping[str, str]
) -> Caller:
    """The holder of the secret of the Payment in the path, in any state of the Payment."""
    environment, claims = service.checkout.authenticate(secret, mode=mode)
    if claims.subject != path_ids["paymentId"]:
        raise Unauthorized()
    return _caller_bound_to(claims.api_version, environment=environment, payment_secret=claims)


def _identify_visitor(
    service: PaymentsService, mode: Any, environ: Mapping[str, Any], path_ids: Mapping[str, str]
) -> Caller:
    """A visitor of a shop's page, who proves nothing. Raises NotFound if there is no shop."""
    if not PATH_IDS["appId"].is_valid(path_ids["appId"]):
        raise NotFound("app")
    shop = service.checkout.read_shop(path_ids["appId"], mode=mode)
    environment, origin = shop.environment, environ.get("HTTP_ORIGIN")
    return _caller_bound_to(
        environment.api_version, environment=environment, shop=shop, origin=origin
    )


def find_admitted_origin(
    service: PaymentsService, mode: Any, environ: Mapping[str, Any], path_ids: Mapping[str, str]
) -> str | None:
    """The origin of a browser's preflight, if the shop in the path admits it."""
    try:
        return _identify_visitor(service, mode, environ, path_ids).admitted_origin
    except NotFound:
        return None


def _add_payment_secret(
    service: PaymentsService,
    caller: Caller,
    environment: Environment,
    environ: Mapping[str, Any],
    path_ids: Mapping[str, str],
) -> Caller:
    """The caller with the second credential: the secret of the Payment in the path."""
    try:
        claims = service.parts.ports.tokens.read_payment_secret(environ.get(_SECRET_HEADER, ""))
    except TokenInvalid:
        raise Unauthorized() from None
    if claims.environment_id != environment.id:
        raise CredentialMismatch()
    if claims.subject != path_ids["paymentId"]:
        raise Unauthorized()
    versions = (*caller.bound_versions, claims.api_version)
    return evolve(caller, payment_secret=claims, bound_versions=versions)
