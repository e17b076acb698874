"""The search in the head of each page: it leads straight to what is found, if that is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from payments_core.engine.idempotency.record import Response
from payments_core.engine.identifiers import is_identifier
from payments_core.search import Found, FoundKind
from payments_core.tenants.authorization import Requirement
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.navigation import (
    ACCOUNTS,
    PAYMENTS,
    VERIFICATIONS,
    WEBHOOKS,
    is_allowed,
)
from payments_core_http.dashboard.rendering import redirect, render_page

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_MAX_CHARACTERS = 256


@attrs.frozen
class Place:
    """Where a kind is shown: its name, its path, and what the page requires."""

    name: str
    path: str
    needs: Requirement


_PLACES: Mapping[FoundKind, Place] = {
    "payment": Place("Payment", "/dashboard/payments/{id}", PAYMENTS),
    "account": Place("Account", "/dashboard/accounts/{id}", ACCOUNTS),
    "verification": Place("Verification", "/dashboard/verifications/{id}", VERIFICATIONS),
    "endpoint": Place("Webhook endpoint", "/dashboard/webhooks/{id}", WEBHOOKS),
    "delivery": Place("Delivery", "/dashboard/webhooks/{within}/deliveries/{id}", WEBHOOKS),
    "event": Place("Event", "/dashboard/events/{id}", WEBHOOKS),
}


def search(service: PaymentsService, call: PageCall) -> Response:
    """What a text names. One is opened, several are listed."""
    sought = call.query.get("q", "").strip()[:_MAX_CHARACTERS]
    if is_identifier(sought, "req"):
        return redirect(call, f"/dashboard/requests/{sought}")
    found = [
        (one, _PLACES[one.kind].name, _find_path(one))
        for one in call.resources.search.find(sought)
        if is_allowed(call.authority, _PLACES[one.kind].needs)
    ]
    if len(found) == 1:
        [(_, _, path)] = found
        return redirect(call, path)
    return render_page(call, "search.html", section=None, sought=sought, found=found)


def _find_path(found: Found) -> str:
    return _PLACES[found.kind].path.format(id=found.id, within=found.within)
