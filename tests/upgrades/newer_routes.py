"""The routes of the next release: a list by the new index, and a write to the new collection.

Imported only when the records are in their places.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import attrs
from msgspec import Meta

from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import Response
from payments_core.engine.identifiers import IdSequence
from payments_core.errors import ResourceConflict
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.port import Transaction
from payments_core_http.calls import ApiCall
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2 import routes
from payments_core_http.v2.requirements import PAYMENTS_KEY
from payments_core_http.wire.classes import frozen_view
from payments_core_http.wire.query import PageQuery

_BY_COLLECTION: dict[str, Any] = {kind.collection.name: kind for kind in RECORD_TYPES}


@attrs.frozen(kw_only=True)
class Screenings(PageQuery):
    """Payments that were screened, or were not."""

    screened: Literal["yes", "no"] = "yes"


@attrs.frozen(kw_only=True)
class Screen:
    """Which Payment."""

    paymentId: Annotated[str, Meta(min_length=1, max_length=64)]


@frozen_view
class ScreenedView:
    """A Payment, by its id."""

    id: str


def list_screened(service: Any, call: ApiCall[None, Screenings]) -> Response:
    page = service.parts.ports.storage.read(
        call.authority.partition,
        lambda snapshot: snapshot.find(
            _BY_COLLECTION["payments"],
            "by_screening",
            (call.query.screened,),
            after=call.decode_position(),
            limit=call.query.limit,
        ),
    )
    return call.respond_page(page, lambda payment: ScreenedView(id=payment.id))


def screen(service: Any, call: ApiCall[Screen, None]) -> Response:
    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Any]:
        made = _BY_COLLECTION["screenings"](
            id=id_sequence.issue("evt"), payment_id=call.body.paymentId
        )
        return Decision(made, inserts=(made,), refusals={"payment": ResourceConflict("screened")})

    return call.run_idempotent(
        lambda idempotent: service.parts.ports.committer.commit(
            call.authority, decide, idempotent=idempotent
        ),
        lambda screening: ScreenedView(id=screening.payment_id),
    )


def put() -> None:
    """Add them to the table that the application is made from."""
    routes.ROUTES = (
        *routes.ROUTES,
        Route(
            "GET", "/v2/screenings", list_screened, needs=PAYMENTS_KEY, query=Screenings,
            response=ListOf(ScreenedView), summary="List Payments by their screening.",
        ),
        Route(
            "POST", "/v2/screenings", screen, needs=PAYMENTS_KEY, body=Screen, success=201,
            response=ScreenedView, errors=(ResourceConflict,), summary="Screen a Payment.",
        ),
    )  # fmt: skip
