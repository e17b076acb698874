"""The environment's keys: their names and their last use, without their secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.clock import Instant
from payments_core.engine.idempotency.record import Response
from payments_core.tenants.authorization import effective_scopes, key_is_live
from payments_core.tenants.queries import load_key_uses
from payments_core.tenants.record import Key
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.rendering import render_page

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


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


def _state_of(key: Key, now: Instant) -> str:
    if key.revoked_at_ms is not None:
        return "revoked"
    return "live" if key_is_live(key, now) else "over"
