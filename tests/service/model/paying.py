"""What a payer without an account does: direct options, and hints that may be anything."""

from __future__ import annotations

import random
from collections.abc import Callable

from payments_core.chains.simulated.records import SimulatedTransaction
from payments_core.payments.checkout.checkout import PAYER
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.storage.port import SIMULATED
from payments_core.tenants.authorization import Authority
from tests.service.model.stage import BASE, ETHEREUM, Stage


def direct_option(stage: Stage, rng: random.Random) -> None:
    """A direct option of a Payment; some name the wallet that will pay."""
    payment = stage.payment(rng, "awaiting_payment", "processing")
    if payment is None:
        return
    payers = [item.address for item in payment.paid_by]
    stage.tried(
        rng,
        "direct_option",
        lambda service, key: service.acting_as(_payer(stage, payment.id)).public_options.create(
            payment.id,
            method="direct",
            payer_address=rng.choice((None, *payers)),
            idempotency_key=key,
        ),
    )


def choose(stage: Stage, rng: random.Random) -> None:
    """A direct option selected, or asked again for what remains."""
    option = _an_option(stage, rng)
    if option is None:
        return
    name = rng.choice(("select", "select", "refresh"))
    stage.tried(
        rng,
        name,
        lambda service, key: getattr(
            service.acting_as(_payer(stage, option.payment_id)).public_options, name
        )(option.payment_id, option.id, idempotency_key=key),
    )


def hint(stage: Stage, rng: random.Random) -> None:
    """A transaction submitted: any of those on the chains, or one that somebody made up."""
    option = _an_option(stage, rng)
    if option is None:
        return
    known = list(stage.mirror.all(SIMULATED, SimulatedTransaction).values())[-20:]
    made_up = f"0x{rng.getrandbits(256):064x}"
    seen = [(row.chain_id, row.hash) for row in known]
    chain_id, hash = rng.choice((*seen, (rng.choice((BASE, ETHEREUM)), made_up)))
    stage.tried(
        rng,
        "hint",
        lambda service, key: service.acting_as(
            _payer(stage, option.payment_id)
        ).public_options.submit_transaction(
            option.payment_id,
            option.id,
            chain_id=chain_id,
            transaction_hash=hash,
            idempotency_key=key,
        ),
    )


def _an_option(stage: Stage, rng: random.Random) -> PaymentOption | None:
    """Rather one of the newest."""
    options = [option for option in stage.all(PaymentOption).values() if option.is_public]
    return rng.choice(options[-4:] if rng.random() < 0.7 else options) if options else None


def _payer(stage: Stage, payment_id: str) -> Authority:
    payment = stage.all(Payment)[payment_id]
    return Authority(
        requirement=PAYER,
        environment=stage.server.environment,
        payment_id=payment_id,
        api_version=payment.api_version,
    )


PAYERS: tuple[tuple[int, Callable[[Stage, random.Random], None]], ...] = (
    (8, direct_option),
    (4, choose),
    (5, hint),
)
"""How often each of them, among all rules."""
