"""A reorg beyond finality that undoes the transfer to the off-ramp address of a returned payout.

The off-ramp address holds the funds of other payouts too. So the refund of one whose funds never
came there must not be paid from it.
"""

from __future__ import annotations

import base64

import attrs
import pytest

from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.port import ChainUnavailable, SignedTransaction
from payments_core.engine.decision import WorkerAuthority
from payments_core.errors import ReconciliationActionNotAllowed
from payments_core.payments.details import PaymentDetails
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import Transaction
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import BASE, atomic, write

DEPTH = 50
"""So many blocks hold the vault's funds and the transfer to the off-ramp address."""


@pytest.fixture
def returned(harness: PayoutHarness) -> PaymentDetails:
    """A returned payout whose funds a reorg can undo; 25.00 of another one are beyond its reach."""
    harness.settled()
    harness.world.drain()
    harness.world.chain.mine(60)
    harness.world.fund("25.00")
    created = harness.settled()
    harness.bank.return_payout(harness.payout(created).key, "R03")
    harness.look(created)
    assert (harness.payment(created).status, harness.offramp) == ("action_required", 5_000)
    return created


def start_refund(harness: PayoutHarness, created: PaymentDetails) -> str:
    """A refund that was decided on, and not signed."""
    harness.world.reconcile(created, "refund")
    [refund] = harness.refunds(created)
    return refund.id


def transfer_of(harness: PayoutHarness, refund_id: str) -> OutboundTransfer:
    return harness.world.get(OutboundTransfer, harness.world.get(Refund, refund_id).outgoing_id)


@pytest.mark.parametrize("hold_s", [0, 90], ids=["at once", "after the reorg was dealt with"])
def test_a_refund_whose_funds_a_reorg_undid_is_not_paid_with_those_of_others(
    harness: PayoutHarness, returned: PaymentDetails, hold_s: int
) -> None:
    world = harness.world
    refund_id = start_refund(harness, returned)
    world.hold_sends(hold_s)
    world.reorg(DEPTH)
    world.finish()
    world.finish()
    refund, payment = world.get(Refund, refund_id), harness.payment(returned)
    assert (refund.status, refund.failure) == ("failed", "funds_reorged")
    assert transfer_of(harness, refund_id).status == "withdrawn"
    assert (payment.status, payment.refunding, payment.refunded_atomic) == (
        "action_required",
        (),
        0,
    )
    assert harness.books(returned) == {}
    assert (harness.offramp, world.on_chain(world.vault_address())) == (2_500, 0)
    assert world.event_names(returned.payment.id)["refund.failed"] == 1
    with pytest.raises(ReconciliationActionNotAllowed):
        world.reconcile(returned, "refund")

    world.fund("25.00")  # the partner may still pay, from the vault
    world.reconcile(returned, "retry_execution")
    world.run()
    world.advance(60)
    assert harness.payout(returned).status == "submitted"
    assert harness.offramp == 5_000


def test_a_refund_waits_until_its_funds_are_final_again(
    harness: PayoutHarness, returned: PaymentDetails
) -> None:
    world = harness.world
    refund_id = start_refund(harness, returned)
    world.reorg(2 * DEPTH // 3, reinclude=True)
    world.finish()
    world.finish()
    assert world.get(Refund, refund_id).status == "succeeded"
    assert (harness.payment(returned).status, harness.books(returned)) == ("refunded", {})
    assert (harness.offramp, world.on_chain(world.vault_address())) == (2_500, atomic("25"))


def test_a_refund_that_was_signed_goes_on_and_the_books_show_the_shortage(
    harness: PayoutHarness, returned: PaymentDetails
) -> None:
    world = harness.world
    refund_id = start_refund(harness, returned)
    world.run()
    assert transfer_of(harness, refund_id).status == "signed"
    world.reorg(DEPTH)
    world.finish()
    world.finish()
    assert world.get(Refund, refund_id).status == "succeeded"
    assert harness.books(returned) == {"payer": 2_500, "offramp": -2_500}
    assert (harness.offramp, world.on_chain(world.vault_address())) == (0, atomic("25"))


def test_a_refund_is_not_signed_while_its_funds_are_noted_as_undone(
    harness: PayoutHarness, returned: PaymentDetails
) -> None:
    """The chain may show them again before that is noted: the note decides, under its lock."""
    world = harness.world
    brought = world.get(OutboundTransfer, str(harness.payment(returned).release_id))

    def note(block_number: int | None) -> None:
        def work(tx: Transaction) -> None:
            current = tx.get(OutboundTransfer, brought.id, for_update=True)
            tx.replace(attrs.evolve(current, block_number=block_number))

        write(world.storage, world.environment_id, work)

    note(None)
    refund_id = start_refund(harness, returned)
    world.finish()
    assert transfer_of(harness, refund_id).raw is None
    note(brought.block_number)
    world.advance_until(lambda: world.get(Refund, refund_id).status == "succeeded")


def test_a_refund_is_not_signed_where_its_funds_failed_and_nobody_has_noticed(
    harness: PayoutHarness, returned: PaymentDetails
) -> None:
    """A node has sent the dropped transaction again, and it failed, before the scanner looked."""
    world = harness.world
    refund_id = start_refund(harness, returned)
    brought = world.get(OutboundTransfer, str(harness.payment(returned).release_id))
    world.reorg(DEPTH)
    hash, raw = str(brought.transaction_hash), base64.b64decode(str(brought.raw))
    world.chain.broadcast(SignedTransaction(hash, raw))
    world.chain.mine(2 * DEPTH)
    seen = world.chain.transaction(hash)
    assert seen is not None
    assert (seen.block is None, seen.succeeded) == (False, False)
    assert world.get(OutboundTransfer, brought.id).block_number is not None
    outbox = Outbox(world.service.parts.ports, world.service.chains)
    authority = WorkerAuthority(world.environment_id, "sandbox")
    with pytest.raises(ChainUnavailable, match="has failed"):
        outbox.ensure_signed(authority, BASE, transfer_of(harness, refund_id).id)
    assert transfer_of(harness, refund_id).raw is None
