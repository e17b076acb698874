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
from tests.service.model.model_world import BASE, ETHEREUM, ModelWorld


def direct_option(world: ModelWorld, rng: random.Random) -> None:
    """A direct option of a Payment; some name the wallet that will pay."""
    payment = world.payment(rng, "awaiting_payment", "processing")
    if payment is None:
        return
    payers = [item.address for item in payment.paid_by]
    world.tried(
        rng,
        "direct_option",
        lambda service, key: service.acting_as(_payer(world, payment.id)).public_options.create(
            payment.id,
            method="direct",
            payer_address=rng.choice((None, *payers)),
            idempotency_key=key,
        ),
    )


def choose(world: ModelWorld, rng: random.Random) -> None:
    """A direct option selected, or asked again for what remains."""
    option = _an_option(world, rng)
    if option is None:
        return
    name = rng.choice(("select", "select", "refresh"))
    world.tried(
        rng,
        name,
        lambda service, key: getattr(
            service.acting_as(_payer(world, option.payment_id)).public_options, name
        )(option.payment_id, option.id, idempotency_key=key),
    )


def hint(world: ModelWorld, rng: random.Random) -> None:
    """A transaction submitted: any of those on the chains, or one that somebody made up."""
    option = _an_option(world, rng)
    if option is None:
        return
    known = list(world.mirror.all(SIMULATED, SimulatedTransaction).values())[-20:]
    made_up = f"0x{rng.getrandbits(256):064x}"
    seen = [(row.chain_id, row.hash) for row in known]
    chain_id, hash = rng.choice((*seen, (rng.choice((BASE, ETHEREUM)), made_up)))
    world.tried(
        rng,
        "hint",
        lambda service, key: service.acting_as(
            _payer(world, option.payment_id)
        ).public_options.submit_transaction(
            option.payment_id,
            option.id,
            chain_id=chain_id,
            transaction_hash=hash,
            idempotency_key=key,
        ),
    )


def _an_option(world: ModelWorld, rng: random.Random) -> PaymentOption | None:
    """Rather one of the newest."""
    options = [option for option in world.all(PaymentOption).values() if option.is_public]
    return rng.choice(options[-4:] if rng.random() < 0.7 else options) if options else None


def _payer(world: ModelWorld, payment_id: str) -> Authority:
    payment = world.all(Payment)[payment_id]
    return Authority(
        requirement=PAYER,
        environment=world.server.environment,
        payment_id=payment_id,
        api_version=payment.api_version,
    )


PAYERS: tuple[tuple[int, Callable[[ModelWorld, random.Random], None]], ...] = (
    (8, direct_option),
    (4, choose),
    (5, hint),
)
"""How often each of them, among all rules."""
