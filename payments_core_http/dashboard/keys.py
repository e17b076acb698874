"""The environment's keys: listed without their secrets; restricted ones made and revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from payments_core.clock import Instant, to_datetime
from payments_core.engine.idempotency.record import IdempotentRequest, Response
from payments_core.errors import NotFound
from payments_core.tenants.authorization import effective_scopes, key_is_live
from payments_core.tenants.keys import KEY_NAME_CHARACTERS, KeyName
from payments_core.tenants.queries import load_key_uses
from payments_core.tenants.record import SCOPE_PRODUCT, Environment, Key
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.forms import Field, Form
from payments_core_http.dashboard.rendering import redirect, render_page, run_form
from payments_core_http.wire.classes import frozen_body

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_HOME = "/dashboard/keys"

SCOPE_WORDS = {
    "v2:accounts": "Accounts, wallets, handles, settlement preferences, bank accounts",
    "v2:payments": "Payments of every kind, refunds, reports",
    "v2:deposit_addresses": "Deposit addresses and deposits",
    "v2:kyc": "Verifications of accounts",
    "v2:vaults": "Vaults, their policies and mandates",
    "v2:webhooks": "Endpoints of webhooks, together with v2:console",
    "v2:console": "Deliveries, events and requests",
}
"""What each scope covers (interface, "Restricted key permissions")."""

_EXPIRIES_DAYS = {"": "Never", "1": "1 day", "30": "30 days", "90": "90 days", "365": "1 year"}


@frozen_body
class NewKey:
    """A restricted key."""

    name: KeyName
    scopes: tuple[str, ...] = ()
    expiresInDays: Annotated[int, Meta(ge=1, le=3_650)] | None = None


def list_keys(service: PaymentsService, call: PageCall) -> Response:
    """The keys, newest first."""
    environment = call.authority.environment
    now = service.parts.ports.clock.now()
    return render_page(
        call,
        "keys.html",
        section="keys",
        keys=[
            (key, _state_of(key, now), effective_scopes(environment, key))
            for key in reversed(environment.keys)
        ],
        uses=load_key_uses(service.parts.ports.storage, environment),
    )


def show_new(service: PaymentsService, call: PageCall) -> Response:
    """The form of a restricted key."""
    return _build_form(call.authority.environment).show(call, {})


def create(service: PaymentsService, call: PageCall) -> Response:
    """The secret of the new key, on the one page that shows it."""
    form = _build_form(call.authority.environment)

    def make(idempotent: IdempotentRequest | None) -> tuple[Key, str]:
        new = form.read(call.body, NewKey)
        days, now = new.expiresInDays, to_datetime(service.parts.ports.clock.now())
        return call.resources.keys.create(
            new.name,
            scopes=new.scopes,
            expires_at=None if days is None else now + timedelta(days=days),
            idempotency_key=idempotent,
        )

    return form.submit_to(
        call,
        make,
        lambda made: render_page(call, "key.html", section="keys", key=made[0], secret=made[1]),
    )


def show_revoke(service: PaymentsService, call: PageCall) -> Response:
    """A revocation, to be confirmed."""
    key = call.authority.environment.key(call.path["keyId"])
    if key is None:
        raise NotFound("key")
    state = _state_of(key, service.parts.ports.clock.now())
    return render_page(call, "revoke.html", section="keys", key=key, state=state)


def revoke(service: PaymentsService, call: PageCall) -> Response:
    """The list, with the revoked key."""
    return run_form(
        call,
        lambda idempotent: call.resources.keys.revoke(
            call.path["keyId"], idempotency_key=idempotent
        ),
        lambda _: redirect(call, _HOME, "revoke"),
    )


def _build_form(environment: Environment) -> Form:
    """The form; a scope counts while the environment has its product."""
    scopes = {
        scope: f"{scope}: {words}"
        + ("" if SCOPE_PRODUCT[scope] in environment.products else " (not enabled now)")
        for scope, words in SCOPE_WORDS.items()
    }
    return Form(
        path=f"{_HOME}/new",
        section="keys",
        title="Make a restricted key",
        intro="The next page shows the key's secret, once. A standard key, which may do everything,"
        " is made on the command line only.",
        submit="Make the key",
        back=_HOME,
        back_title="Keys",
        fields=(
            Field(
                "name", "Name", hint="The program that uses it, such as reports.",
                is_required=True, maximum=KEY_NAME_CHARACTERS,
            ),
            Field("scopes", "What it may call", "several", choices=scopes, is_required=True),
            Field("expiresInDays", "Expires after", "chosen_number", choices=_EXPIRIES_DAYS),
        ),
    )  # fmt: skip


def _state_of(key: Key, now: Instant) -> str:
    if key.revoked_at_ms is not None:
        return "revoked"
    return "live" if key_is_live(key, now) else "over"
