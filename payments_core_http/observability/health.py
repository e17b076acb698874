"""Liveness and readiness of the process: for orchestrators and load balancers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from payments_core.engine.idempotency.record import Response
from payments_core.errors import Unavailable
from payments_core.evolve import evolve
from payments_core_http.calls import ApiCall
from payments_core_http.observability.bounded_probe import READY_TIMEOUT_S, BoundedProbe
from payments_core_http.routing import Route

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


@attrs.frozen(slots=False)
class Health:
    """The answer of both health checks."""

    status: str
    """Whether the process answers."""


def check_liveness(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The process answers; nothing else is checked."""
    return call.respond(Health("ok"))


def check_readiness(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """Storage answers too. Raises Unavailable if it does not."""
    service.check_ready()
    return call.respond(Health("ready"))


ROUTES = (
    Route(
        "GET",
        "/healthz",
        check_liveness,
        needs=None,
        response=Health,
        operation="checkHealth",
        summary="The process is alive.",
    ),
    Route(
        "GET",
        "/readyz",
        check_readiness,
        needs=None,
        response=Health,
        operation="checkReadiness",
        summary="The process can serve: its storage answers.",
        errors=(Unavailable,),
    ),
)


def with_bounded_readiness(service: PaymentsService) -> tuple[Route, ...]:
    """The health routes of one application, whose `/readyz` waits for the storage a bounded time.

    Repeated requests must not take every thread while the storage hangs.
    """
    asked = BoundedProbe(service.check_ready, name="payments-ready")

    def check_readiness_in_time(service: PaymentsService, call: ApiCall[None, None]) -> Response:
        try:
            asked.ask(READY_TIMEOUT_S)
        except TimeoutError as error:
            raise Unavailable() from error
        return call.respond(Health("ready"))

    return tuple(
        evolve(route, handler=check_readiness_in_time)
        if route.handler is check_readiness
        else route
        for route in ROUTES
    )


PATHS = frozenset(route.path for route in ROUTES)
