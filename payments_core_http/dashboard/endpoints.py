"""Endpoints of webhooks as forms: created, changed, switched off and on, archived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import msgspec

from payments_core.engine.events import CATALOGUE
from payments_core.engine.idempotency.record import Response
from payments_core.webhooks.record import EndpointStatus
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.choices import require_choice
from payments_core_http.dashboard.forms import Field, Form
from payments_core_http.dashboard.rendering import redirect, render_page, run_form
from payments_core_http.v2.webhooks import bodies, handlers, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_HOME = "/dashboard/webhooks"
_DESCRIPTION = Field("description", "Description", hint="Your own text about it.", maximum=512)
_EVENTS = Field(
    "subscribedEvents",
    "Events",
    "several",
    hint="With no event chosen, the endpoint receives every event, also those of later releases.",
    choices={one.name: one.name for one in CATALOGUE},
)
_FILTERS = Field(
    "filters",
    "Filters",
    "rules",
    hint="A rule in each line, such as payload.amountAtomic >= 100000000, with amounts in the"
    " smallest unit. Only events that satisfy all rules are sent.",
)
_FORMAT = Field(
    "bodyFormat",
    "Format",
    "choice",
    choices={"envelope": "The service's own envelope", "cloudevents": "CloudEvents 1.0"},
)

_NEW = Form(
    path=f"{_HOME}/new",
    section="webhooks",
    title="Add an endpoint",
    intro="The next page shows the endpoint's signing secret, once.",
    submit="Add the endpoint",
    back=_HOME,
    back_title="Webhooks",
    fields=(
        Field("url", "URL", hint="A public https address.", is_required=True, maximum=2_048),
        _DESCRIPTION,
        _EVENTS,
        _FILTERS,
        _FORMAT,
    ),
)


@attrs.frozen
class StatusWords:
    """A change of an endpoint's status: its name, and what it does."""

    name: str
    effect: str
    is_final: bool = False


STATUS_CHANGES: Mapping[EndpointStatus, StatusWords] = {
    "active": StatusWords("Activate", "New events are sent to it; those of the meantime are not."),
    "disabled": StatusWords(
        "Disable", "Nothing is sent to it. Deliveries that wait are abandoned; it can be activated."
    ),
    "archived": StatusWords(
        "Archive",
        "Nothing is sent to it any more, for good. Deliveries that wait are abandoned.",
        True,
    ),
}
"""What each status means for an endpoint that has another."""


def list_changes(status: EndpointStatus) -> list[tuple[EndpointStatus, StatusWords]]:
    """The changes that are possible from a status: none from the last one."""
    if status == "archived":
        return []
    return [(to, words) for to, words in STATUS_CHANGES.items() if to != status]


def show_new(service: PaymentsService, call: PageCall) -> Response:
    """The form of a new endpoint."""
    return _NEW.show(call, {})


def create(service: PaymentsService, call: PageCall) -> Response:
    """The new endpoint's secret, on the one page that shows it."""
    return _NEW.submit_to(
        call,
        lambda idempotent: handlers.create_endpoint(
            call.resources, _NEW.read(call.body, bodies.CreateWebhook), idempotent
        ),
        lambda made: render_page(
            call, "secret.html", section="webhooks", endpoint=made[0], secret=made[1]
        ),
    )


def show_change(service: PaymentsService, call: PageCall) -> Response:
    """The form of what can be changed of an endpoint."""
    endpoint = call.resources.webhooks.read(call.path["webhookId"])
    form = _build_change(endpoint.id)
    view = views.endpoint(endpoint, call.authority.environment)
    return form.show(call, form.fill(msgspec.to_builtins(view)))


def change(service: PaymentsService, call: PageCall) -> Response:
    """The changed endpoint."""
    endpoint_id = call.path["webhookId"]
    form = _build_change(endpoint_id)

    def read() -> bodies.ChangeWebhook:
        return form.read(
            call.body, bodies.ChangeWebhook, description=None, subscribedEvents=[], filters=[]
        )

    return form.submit_to(
        call,
        lambda idempotent: handlers.change_endpoint(
            call.resources, endpoint_id, read(), idempotent
        ),
        lambda _: redirect(call, f"{_HOME}/{endpoint_id}", "endpoint"),
    )


def show_status(service: PaymentsService, call: PageCall) -> Response:
    """A change of the status, to be confirmed."""
    to = require_choice(call.query, "status", STATUS_CHANGES)
    endpoint = call.resources.webhooks.read(call.path["webhookId"])
    return render_page(
        call,
        "endpoint_status.html",
        section="webhooks",
        endpoint=endpoint,
        to=to,
        words=STATUS_CHANGES[to],
        is_possible=to in dict(list_changes(endpoint.status)),
    )


def change_status(service: PaymentsService, call: PageCall) -> Response:
    """The endpoint in its new status."""
    endpoint_id, to = call.path["webhookId"], require_choice(call.body, "status", STATUS_CHANGES)
    return run_form(
        call,
        lambda idempotent: handlers.change_endpoint(
            call.resources, endpoint_id, bodies.ChangeWebhook(status=to), idempotent
        ),
        lambda _: redirect(call, f"{_HOME}/{endpoint_id}", "endpoint"),
    )


def _build_change(endpoint_id: str) -> Form:
    return Form(
        path=f"{_HOME}/{endpoint_id}/change",
        section="webhooks",
        title="Change the endpoint",
        intro="An endpoint keeps its URL. Deliveries of events that are taken away are abandoned;"
        " filters and the format are for the events from now on.",
        submit="Change the endpoint",
        back=f"{_HOME}/{endpoint_id}",
        back_title="Endpoint",
        fields=(_DESCRIPTION, _EVENTS, _FILTERS, _FORMAT),
    )
