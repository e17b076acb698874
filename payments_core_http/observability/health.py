"""Whether the process lives, and whether it can serve: for orchestrators and load balancers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from payments_core.engine.idempotency.record import Answer
from payments_core.errors import Unavailable
from payments_core_http.calls import Call
from payments_core_http.observability.patience import READY_S, Patience
from payments_core_http.routing import Route

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


@attrs.frozen(slots=False)
class Health:
    """The answer of both routes."""

    status: str


def alive(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The process answers; nothing else is asked."""
    return call.answer(Health("ok"))


def ready(service: PaymentsService, call: Call[None, None]) -> Answer:
    """Storage answers too. Raises Unavailable where it does not."""
    service.ready()
    return call.answer(Health("ready"))


ROUTES = (
    Route(
        "GET",
        "/healthz",
        alive,
        needs=None,
        answers=Health,
        operation="checkHealth",
        summary="The process is alive.",
    ),
    Route(
        "GET",
        "/readyz",
        ready,
        needs=None,
        answers=Health,
        operation="checkReadiness",
        summary="The process can serve: its storage answers.",
        errors=(Unavailable,),
    ),
)


def patient(service: PaymentsService) -> tuple[Route, ...]:
    """The same for one application, of which `/readyz` waits for the storage so long and no longer:
    who asks again and again must not take every thread while it hangs."""
    asked = Patience(service.ready, name="payments-ready")

    def ready_in_time(service: PaymentsService, call: Call[None, None]) -> Answer:
        try:
            asked.answer(READY_S)
        except TimeoutError as error:
            raise Unavailable() from error
        return call.answer(Health("ready"))

    return tuple(
        attrs.evolve(route, handler=ready_in_time) if route.handler is ready else route
        for route in ROUTES
    )


PATHS = frozenset(route.path for route in ROUTES)
