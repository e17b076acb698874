"""The hash that is shown of a release or refund is that of the transaction that was mined."""

from __future__ import annotations

from payments_core.payments.refunds.record import Refund
from tests.chains.evm.test_stuck import stuck, world  # noqa: F401
from tests.chains.scenes import AnvilScene


def test_a_refunds_hash_is_of_what_was_mined(world: AnvilScene) -> None:  # noqa: F811
    payment = world.payment("25.00")
    world.spend("25.00", str(payment.payment.escrow_address))
    world.finish()
    refund = world.refund(payment)
    stuck(world)
    signed = world.outgoing(world.get(Refund, refund.id).outgoing_id)
    world.mine_alone(signed[-1][1])
    world.finish()
    done = world.get(Refund, refund.id)
    assert (done.status, done.transaction_hash) == ("succeeded", signed[-1][0])


def test_a_releases_hash_is_of_what_was_mined(world: AnvilScene) -> None:  # noqa: F811
    payment = world.payment("25.00")
    world.spend("25.00", str(payment.payment.escrow_address))
    world.look()
    while world.paid(payment.payment.id).status == "processing":
        world.node.ask("evm_setAutomine", False)
        world.advance(1)
    stuck(world)
    signed = world.outgoing(world.paid(payment.payment.id).release_id)
    world.mine_alone(signed[-1][1])
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.release_hash) == ("succeeded", signed[-1][0])
