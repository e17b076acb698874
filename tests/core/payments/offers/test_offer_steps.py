"""What an answer or a report of a provider does to an offer, and to its option."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.errors import PaymentOptionLimitReached
from payments_core.payments.offers.lifecycle import (
    MAX_OFFERS,
    accept_terms,
    apply_progress,
    ask_again,
    refuse,
)
from payments_core.payments.options.offer import Offer, OfferProgress, OfferTerms
from payments_core.payments.options.record import PaymentOption
from tests.core.examples import NOW, a_payment, an_option

LATER = NOW + 1_000


def routed(**given: Any) -> PaymentOption:
    facts = {"method": "routing", "offer_id": "pay_option_1/1", "offer_count": 1}
    return an_option(**{**facts, **given})


def offered(**given: Any) -> Offer:
    facts: dict[str, Any] = {
        "id": "pay_option_1/1",
        "payment_id": "payment_1",
        "option_id": "pay_option_1",
        "method": "routing",
        "status": "waiting",
        "required_atomic": 1_000,
        "changed_at_ms": NOW,
        "followed_until_ms": NOW + 1_000_000,
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
    }
    return Offer(**{**facts, **given})


def test_an_option_has_a_bounded_number_of_offers() -> None:
    option, offer = ask_again(routed(offer_count=MAX_OFFERS - 1), a_payment(), now=LATER)
    assert (option.offer_count, offer.id) == (MAX_OFFERS, f"pay_option_1/{MAX_OFFERS}")
    with pytest.raises(PaymentOptionLimitReached):
        ask_again(option, a_payment(), now=LATER)


@pytest.mark.parametrize("status", ["processing", "expired", "cancelled", "succeeded"])
def test_an_option_that_has_moved_on_keeps_what_it_shows(status: str) -> None:
    option, asked = routed(status=status), offered(id="pay_option_1/2", status="asked")
    terms = OfferTerms(expires_at_ms=LATER)
    kept, answered = accept_terms(option, asked, a_payment(), terms, None, now=LATER)
    assert kept == option
    assert (answered.status, answered.terms) == ("waiting", terms)
    kept, refused = refuse(option, asked, now=LATER)
    assert (kept, refused.status) == (option, "refused")


def test_a_report_without_news_changes_nothing() -> None:
    option, offer = routed(), offered(status="paid", payment_hash="0xa")
    same = OfferProgress(status="paid", payment_hash="0xa")
    assert apply_progress(option, offer, same, now=LATER) == (option, offer)


@pytest.mark.parametrize(
    ("offer_id", "status", "ends"),
    [
        ("pay_option_1/1", "processing", "failed"),
        ("pay_option_1/1", "pending", "failed"),
        ("pay_option_1/2", "processing", "pending"),
        ("pay_option_1/2", "pending", "pending"),
    ],
)
def test_a_return_ends_the_option_of_the_newest_offer_alone(
    offer_id: str, status: str, ends: str
) -> None:
    option, offer = routed(status=status, offer_id=offer_id), offered(status="paid")
    returned = OfferProgress(status="returned", transaction_hash="0xb")
    after, moved = apply_progress(option, offer, returned, now=LATER)
    assert (after.status, moved.status, moved.transaction_hash) == (ends, "returned", "0xb")
