"""Forms of the dashboard: read, and verified to be its own before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from payments_core.errors import IdempotencyKeyRequired
from payments_core_http.browser_sessions import read_cookies, require_own_form
from payments_core_http.idempotency import check_key
from payments_core_http.routing import Route
from payments_core_http.throttling import RateLimitContext, Throttle
from payments_core_http.wire.forms import read_fields

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

TOKEN_FIELD = "formToken"
KEY_FIELD = "idempotencyKey"


@attrs.frozen
class Form:
    """The values of a form, and the idempotency key."""

    fields: Mapping[str, str] = attrs.field(repr=False)
    key: str | None


def read_username(fields: Mapping[str, str]) -> str:
    """The name of a log-in. It is counted as it is looked up, without spaces around it."""
    return fields.get("username", "").strip()


def read_form(
    service: PaymentsService,
    throttle: Throttle,
    rate_context: RateLimitContext,
    route: Route,
    environ: Mapping[str, Any],
    path: Mapping[str, str],
) -> Form:
    """The form of this request, verified to be one that this browser got from here.

    Raises UnsupportedFormType, PayloadTooLarge, ValidationFailed, FormRefused, RateLimited, and
    IdempotencyKeyRequired if the row needs a key.
    """
    fields = read_fields(environ)
    token, key = fields.pop(TOKEN_FIELD, ""), fields.pop(KEY_FIELD, None)
    cookies = read_cookies(environ, service.settings.public_url)
    cookie = cookies.login if route.needs is None else cookies.session
    require_own_form(
        service.parts.ports.key_ring, environ, cookie, route.path.format(**path), token
    )
    throttle.check_name(rate_context, route, read_username(fields))
    if route.idempotency == "ignored":
        return Form(fields, None)
    if key is None:
        raise IdempotencyKeyRequired()
    return Form(fields, check_key(key))
