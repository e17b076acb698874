"""The steps of an offer and of the option that it belongs to. Pure except for the ids drawn."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.clock import DAY, HOUR, MINUTE, SECOND, Instant
from payments_core.engine.identifiers import IdSequence
from payments_core.errors import PaymentOptionLimitReached
from payments_core.evolve import evolve
from payments_core.networks import Asset
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.methods import METHODS, Provider
from payments_core.payments.options.offer import (
    Offer,
    OfferProgress,
    OfferStatus,
    OfferTerms,
    offer_id,
)
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment

MAX_OFFERS = 10
"""How many quotes one option may have: each is an order at a provider."""

MAX_DELIVERIES = 100
"""How many transactions of its provider one option notes. Each is looked for, and a provider that
names another one at each look must not fill the option. A receipt counts without being noted."""

ASK_AGAIN_MS = 30 * SECOND
"""When a job asks, if the request that should have asked was lost."""

ASKED_FOR_MS = 10 * MINUTE
"""How long a provider that does not answer is asked for one offer."""

FOLLOWED_MS = 30 * DAY
"""How long after the Payment's monitoring window an offer is followed: a payer may pay late."""

SETTLING_MS = 1 * HOUR
"""How long funds under way are looked at often."""


@attrs.frozen
class Pauses:
    """The pauses between two looks at an offer.

    A quarter of the time since the last change: at least `first_ms`, at most `live_ms` while the
    terms hold or funds are under way, then at most `later_ms`.
    """

    first_ms: int
    live_ms: int
    later_ms: int


PAUSES: Mapping[Provider, Pauses] = {
    "router": Pauses(2 * SECOND, 1 * MINUTE, 1 * DAY),
    "onramp": Pauses(10 * SECOND, 1 * HOUR, 1 * DAY),
}
"""Routers take seconds to minutes; on-ramps may wait for a bank, and most of them report."""

MAX_PAUSE_MS = max(pauses.later_ms for pauses in PAUSES.values())

_OVER: tuple[OfferStatus, ...] = ("delivered", "returned", "failed")
"""After one of these an on-ramp's order cannot be paid again; a router's address can."""


def new_offered_option(
    payment: Payment,
    method: PaymentMethod,
    source: Asset | None,
    refund_address: str | None,
    id_sequence: IdSequence,
    now: Instant,
) -> tuple[PaymentOption, Offer]:
    """An option whose first offer is asked of its provider, not selected yet."""
    option = PaymentOption(
        id=id_sequence.issue("pay_option"),
        payment_id=payment.id,
        method=method,
        status=options.OPTION.step(None, "create").target,
        chain_id=payment.chain_id,
        asset_symbol=payment.asset_symbol,
        required_atomic=payment.remaining.amount_atomic,
        source=source,
        refund_address=refund_address,
        expires_at_ms=payment.expires_at_ms,
        created_at_ms=now,
        updated_at_ms=now,
    )
    asked, offer = ask_again(option, payment, now=now)
    return evolve(asked, offer_id=offer.id), offer


def ask_again(
    option: PaymentOption, payment: Payment, *, now: Instant
) -> tuple[PaymentOption, Offer]:
    """The option and its next offer, for what remains. Raises PaymentOptionLimitReached."""
    if option.offer_count >= MAX_OFFERS:
        raise PaymentOptionLimitReached(MAX_OFFERS)
    number = option.offer_count + 1
    offer = Offer(
        id=offer_id(option.id, number),
        payment_id=payment.id,
        option_id=option.id,
        method=option.method,
        required_atomic=payment.remaining.amount_atomic,
        source=option.source,
        refund_address=option.refund_address,
        return_url=payment.success_url,
        changed_at_ms=now,
        followed_until_ms=payment.monitoring_expires_at_ms + FOLLOWED_MS,
        created_at_ms=now,
        updated_at_ms=now,
    )
    return evolve(option, offer_count=number, updated_at_ms=now), offer


def accept_terms(
    option: PaymentOption,
    offer: Offer,
    payment: Payment,
    terms: OfferTerms,
    reference: str | None,
    *,
    now: Instant,
) -> tuple[PaymentOption, Offer]:
    """The offer with the provider's terms, and the option that shows them.

    An option that has ended or is being paid meanwhile keeps what it shows.
    """
    answered = evolve(
        offer,
        status="waiting",
        terms=terms,
        reference=reference,
        changed_at_ms=now,
        updated_at_ms=now,
    )
    if option.status not in ("creating", "pending"):
        return option, answered
    if option.status == "creating":
        option = options.apply_trigger(option, "offer", now=now).record
    required = option.paid_atomic + offer.required_atomic
    return evolve(option, offer_id=offer.id, required_atomic=required, updated_at_ms=now), answered


def refuse(option: PaymentOption, offer: Offer, *, now: Instant) -> tuple[PaymentOption, Offer]:
    """The provider makes no offer, so the option ends; what was paid before still arrives."""
    refused = evolve(offer, status="refused", changed_at_ms=now, updated_at_ms=now)
    if option.status not in ("creating", "pending"):
        return option, refused
    return options.close(option, "fail", now=now).record, refused


def is_news(offer: Offer, progress: OfferProgress) -> bool:
    """Whether a report says what the offer does not say yet."""
    return progress != OfferProgress(
        status=offer.status,
        payment_hash=offer.payment_hash,
        transaction_hash=offer.transaction_hash,
        amount_atomic=offer.progress_atomic,
    )


def names_delivery(option: PaymentOption, progress: OfferProgress) -> bool:
    """Whether a report names a delivery that the option has not noted."""
    hash = progress.transaction_hash
    return progress.status == "delivered" and hash is not None and hash not in option.deliveries


def apply_progress(
    option: PaymentOption, offer: Offer, progress: OfferProgress, *, now: Instant
) -> tuple[PaymentOption, Offer]:
    """Both after a report of the provider; nothing of it moves the Payment.

    A return ends the option if it is of the newest offer; otherwise the option waits again. What
    was seen at the escrow is left to the receipts.
    """
    if not is_news(offer, progress):
        return option, offer
    moved = evolve(
        offer,
        status=progress.status,
        payment_hash=progress.payment_hash,
        transaction_hash=progress.transaction_hash,
        progress_atomic=progress.amount_atomic,
        changed_at_ms=now,
        updated_at_ms=now,
    )
    if names_delivery(option, progress):
        assert progress.transaction_hash is not None
        delivered = (*option.deliveries, progress.transaction_hash)
        option = evolve(option, deliveries=delivered, updated_at_ms=now)
    if option.sighted or progress.status == offer.status:
        return option, moved
    if progress.status == "paid" and options.OPTION.allows(option.status, "fund"):
        option = options.apply_trigger(option, "fund", now=now).record
    elif progress.status in ("returned", "failed"):
        if option.offer_id == offer.id:
            option = options.close(option, "fail", now=now).record
        elif option.status == "processing":
            option = options.apply_trigger(option, "reopen", now=now).record
    return option, moved


def next_look_at(offer: Offer, now: Instant) -> Instant | None:
    """When to look at an offer again; None if nothing can come of it any more."""
    provider = METHODS[offer.method].provider
    assert provider is not None
    is_over = provider == "onramp" and offer.status in _OVER
    if is_over or not offer.is_answered or now >= offer.followed_until_ms:
        return None
    pauses, waited_ms = PAUSES[provider], max(0, now - offer.changed_at_ms)
    is_live = offer.is_valid(now) or (offer.status == "paid" and waited_ms < SETTLING_MS)
    most_ms = pauses.live_ms if is_live else pauses.later_ms
    return now + min(max(waited_ms // 4, pauses.first_ms), most_ms)
