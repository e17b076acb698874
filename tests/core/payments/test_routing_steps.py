"""The steps of a Payment that a router delivers. Pure."""

from __future__ import annotations

import attrs
import pytest

from payments_core.errors import InvalidState
from payments_core.money import Atomic
from payments_core.payments import routing
from payments_core.payments.journal.record import JournalBalances
from payments_core.payments.record import Payment, PaymentRoute
from tests.core.examples import NOW, a_payment

ROUTE = PaymentRoute(
    key="quote_1", chain_id=137, asset_symbol="USDC", address="0xrouter",
    token_address="0xusdc", decimals=6,
    amount_atomic=Atomic(25_000_000), expected_atomic=Atomic(24_900_000),
    minimum_atomic=Atomic(24_800_000),
)  # fmt: skip


def executing() -> Payment:
    paid = a_payment(
        status="executing", received_atomic=Atomic(25_000_000), counted_atomic=Atomic(25_000_000)
    )
    return attrs.evolve(
        paid,
        route=ROUTE,
        release_id="out_1",
        release_hash="0xrelease",
        released_atomic=Atomic(25_000_000),
        books=JournalBalances(payer=Atomic(-25_000_000), escrow=Atomic(25_000_000)),
    )


def test_the_release_goes_to_the_router_and_no_other_does() -> None:
    assert executing().payout_address == "0xrouter"
    assert a_payment().payout_address == a_payment().destination.address


def test_a_final_release_is_handed_over_once_with_a_job() -> None:
    decision = routing.hand_over(executing(), now=NOW)
    [handed] = decision.replaces
    assert isinstance(handed, Payment)
    assert handed.route == attrs.evolve(ROUTE, payment_hash="0xrelease")
    assert (handed.status, decision.events) == ("executing", ())
    [job] = decision.jobs
    assert (job.kind, job.subject) == (routing.FOLLOW_ROUTE, handed.id)


def test_a_delivery_settles_and_moves_the_books() -> None:
    step = routing.settle_delivery(executing(), "0xdelivery", 24_850_000, now=NOW)
    done = step.record
    assert done.route is not None
    assert (done.status, done.settled_atomic) == ("succeeded", 25_000_000)
    assert (done.route.delivery_hash, done.route.delivered_atomic) == ("0xdelivery", 24_850_000)
    assert (done.books.escrow, done.books.recipient) == (0, 25_000_000)
    assert [event.name for event in step.events] == ["payment.succeeded"]


def test_a_return_waits_for_a_decision_and_keeps_the_books() -> None:
    handed = attrs.evolve(executing(), route=attrs.evolve(ROUTE, payment_hash="0xrelease"))
    back = routing.take_back(handed, "0xreturn", now=NOW).record
    assert back.route is not None
    assert (back.status, back.failure, back.can_retry) == (
        "action_required",
        "route_returned",
        True,
    )
    assert (back.route.payment_hash, back.route.return_hashes) == (None, ("0xreturn",))
    assert (back.books.escrow, back.release_id) == (25_000_000, None)


def test_a_release_that_was_undone_is_the_routers_no_more() -> None:
    handed = attrs.evolve(executing(), route=attrs.evolve(ROUTE, payment_hash="0xrelease"))
    undone = routing.undo_hand_over(handed, "transaction_failed", now=NOW).record
    assert undone.route == ROUTE
    assert (undone.status, undone.failure) == ("action_required", "transaction_failed")


def test_what_ended_otherwise_takes_no_delivery() -> None:
    ended = attrs.evolve(executing(), status="action_required")
    with pytest.raises(InvalidState):
        routing.settle_delivery(ended, "0xdelivery", 1, now=NOW)


def test_the_minimum_goes_with_what_was_paid() -> None:
    assert ROUTE.minimum_for(25_000_000) == 24_800_000
    assert ROUTE.minimum_for(12_500_001) == 12_400_000
    assert ROUTE.asset.chain_id == 137
