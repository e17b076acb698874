"""Blocks that are undone: nothing counts that is not on the chain, and nothing counts twice."""

from __future__ import annotations

import pytest

from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    StaleChainView,
    TransferOutcome,
    TransferToWatch,
    mark_final,
)
from payments_core.engine.decision import WorkerAuthority
from payments_core.errors import InsufficientBalance, ReconciliationActionNotAllowed
from payments_core.payments.destinations import ToWallet
from payments_core.payments.details import PaymentDetails
from payments_core.payments.refunds.record import Refund
from payments_core.payments.sends import NewSend
from tests.service.world import WALLET, World, atomic


def settled_world(world: World) -> World:
    """What came before the test is out of every reorg's reach."""
    world.chain.mine(60)
    return world


def until(world: World, payment: PaymentDetails, status: str) -> None:
    for _ in range(60):
        if world.paid(payment.payment.id).status == status:
            return
        world.advance(1)
    raise AssertionError(world.paid(payment.payment.id).status)


def receipt_statuses(world: World, payment: PaymentDetails) -> list[str]:
    evidenced = world.resources.payments.list_receipts(payment.payment.id)
    return [receipt.status for receipt in evidenced.receipts.records]


def test_a_vaults_transfer_that_is_undone_before_it_is_final_is_sent_again(world: World) -> None:
    settled_world(world)
    option = world.authorized("25.00")
    world.run()
    world.advance(1)
    assert world.operation_now(option).status == "broadcast"
    payment = world.resources.payments.read(option.payment.id)
    world.reorg(2)
    assert world.chain.peek_transaction(str(world.operation_now(option).transaction_hash)) is None
    world.finish()
    done = world.paid(option.payment.id)
    assert (done.status, done.labels) == ("succeeded", ())
    assert world.operation_now(option).status == "confirmed"
    assert world.option_now(option).status == "succeeded"
    assert receipt_statuses(world, payment) == ["verified"]
    assert (done.received_atomic, done.settled_atomic) == (atomic("25"), atomic("25"))
    assert world.sent() == 2
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert [cause for cause, _ in world.journal(done.id)] == ["receipt", "release"]


def test_a_strangers_transfer_that_is_undone_before_it_is_final_never_counted(
    world: World,
) -> None:
    settled_world(world)
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.run()
    assert world.paid(payment.payment.id).status == "processing"
    assert receipt_statuses(world, payment) == ["observed"]
    world.reorg(1)
    world.finish()
    waiting = world.paid(payment.payment.id)
    assert (waiting.status, waiting.labels, waiting.received_atomic) == ("awaiting_payment", (), 0)
    assert not waiting.is_pending
    assert receipt_statuses(world, payment) == ["reorged"]
    assert world.reported_events(waiting.id) == [
        ("payment.created", "awaiting_payment", 1),
        ("payment.processing", "processing", 2),
    ]
    assert world.journal(waiting.id) == []
    world.advance(3_600)
    assert world.paid(waiting.id).status == "expired"


def test_a_transfer_that_comes_back_elsewhere_counts_once(world: World) -> None:
    settled_world(world)
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.run()
    world.reorg(1, reinclude=True)
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.received_atomic, done.excess_atomic) == ("succeeded", atomic("25"), 0)
    assert receipt_statuses(world, payment) == ["verified"]
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")


def test_what_is_short_and_undone_is_taken_back(world: World) -> None:
    settled_world(world)
    payment = world.payment("25.00", expires_in_s=300)
    world.pay(payment, "10.00")
    world.advance(10)
    assert world.paid(payment.payment.id).received_atomic == atomic("10")
    world.reorg(20)
    world.finish()
    short = world.paid(payment.payment.id)
    assert (short.status, short.labels) == ("awaiting_payment", ("underpaid", "reorged"))
    assert (short.received_atomic, short.remaining.amount_atomic) == (0, atomic("25"))
    assert world.reported_events(short.id)[-1] == ("payment.reorged", "awaiting_payment", 4)
    reported = world.last_payload(short.id, "payment.reorged")
    assert (reported["receivedAmountAtomic"], reported["labels"]) == ("0", ["underpaid", "reorged"])
    assert world.journal(short.id) == [
        ("receipt", {"payer": -atomic("10"), "escrow": atomic("10")}),
        ("receipt_reorged", {"payer": atomic("10"), "escrow": -atomic("10")}),
    ]
    world.pay(payment, "25.00")
    world.finish()
    done = world.paid(short.id)
    assert (done.status, done.settled_atomic, done.excess_atomic) == ("succeeded", atomic("25"), 0)


def test_a_release_that_was_not_sent_is_withdrawn(memory_world: World) -> None:
    world = settled_world(memory_world)
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    id = payment.payment.id
    while world.paid(id).status != "accepted":
        if not world.service.worker("sandbox").run_due(1):
            world.system.advance(1)
    release_id = str(world.paid(id).release_id)
    now = world.clock.now()
    claimed = world.storage.claim(
        "sandbox.chain", now, lease_ms=30_000, limit=100, lane_concurrency=100
    )
    others = [item for item in claimed if item.job.subject != id]
    assert len(others) < len(claimed)  # a worker has the release, and will be slow
    world.service.worker("sandbox").parking.release_unstarted(others)
    world.reorg(20)
    world.advance(5)
    stopped = world.paid(id)
    assert (stopped.status, stopped.labels) == ("action_required", ("reorged",))
    assert (stopped.release_id, stopped.received_atomic, stopped.books.held_atomic) == (None, 0, 0)
    assert stopped.reconciliation.status == "open"
    assert world.get(OutboundTransfer, release_id).status == "withdrawn"
    assert world.reported_events(id)[-1] == ("payment.action_required", "action_required", 4)
    world.finish()  # the slow worker finds its release withdrawn
    assert world.sent() == 0
    for action in ("accept", "refund", "refund_excess", "retry_execution"):
        with pytest.raises(ReconciliationActionNotAllowed):
            world.reconcile(payment, action)

    world.pay(payment, "25.00")
    world.finish()
    assert world.paid(id).status == "action_required"  # it asked for a decision, and waits for it
    world.reconcile(payment, "accept")
    world.finish()
    done = world.paid(id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")


def test_a_release_whose_offer_was_unanswered_goes_on_and_says_its_hash(
    memory_world: World,
) -> None:
    world = settled_world(memory_world)
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    id = payment.payment.id
    world.fail("broadcast", 50)
    while world.paid(id).release_hash is None:
        if not world.service.worker("sandbox").run_due(1):
            world.system.advance(1)
    offered = world.paid(id)
    release = world.get(OutboundTransfer, str(offered.release_id))
    assert (offered.status, offered.release_hash) == ("accepted", release.transaction_hash)
    assert world.chain.peek_transaction(str(release.transaction_hash)) is None
    world.reorg(20)
    world.advance(1)
    going_on = world.paid(id)
    assert (going_on.status, going_on.labels) == ("accepted", ("reorged",))
    assert (going_on.release_id, going_on.release_hash) == (release.id, release.transaction_hash)


def test_a_retried_release_that_was_not_sent_is_withdrawn(memory_world: World) -> None:
    world = settled_world(memory_world)
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.fail("transfer")
    until(world, payment, "action_required")
    again = world.reconcile(payment, "retry_execution")
    assert again.status == "executing"
    world.hold_sends(60)
    world.reorg(40)
    world.service.parts.scanner("sandbox").wake(8453)
    world.advance(5)
    stopped = world.paid(again.id)
    assert (stopped.status, stopped.release_id) == ("action_required", None)
    assert world.get(OutboundTransfer, str(again.release_id)).status == "withdrawn"


@pytest.mark.parametrize("status", ["executing", "succeeded"])
@pytest.mark.parametrize("reinclude", [False, True])
def test_what_was_sent_stays_sent_once_whatever_is_undone(
    world: World, status: str, reinclude: bool
) -> None:
    settled_world(world)
    option = world.authorized("25.00")
    payment = world.resources.payments.read(option.payment.id)
    until(world, payment, status)
    world.service.parts.scanner("sandbox").wake(8453)
    world.run()
    world.reorg(40, reinclude=reinclude)
    world.finish()
    world.finish()
    done = world.paid(option.payment.id)
    assert done.status == "succeeded"
    assert (done.received_atomic, done.settled_atomic, done.excess_atomic) == (
        atomic("25"),
        atomic("25"),
        0,
    )
    assert (done.books.escrow, done.books.recipient) == (0, atomic("25"))
    assert receipt_statuses(world, payment) == ["verified"]
    assert world.operation_now(option).status == "confirmed"
    assert world.event_names(done.id)["payment.succeeded"] == 1
    assert world.event_names(done.id)["payment.overpaid"] == 0
    assert world.sent() == 2
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")
    assert world.on_chain(str(done.escrow_address)) == 0


def test_a_release_whose_funds_are_gone_fails_and_is_not_a_second_release(world: World) -> None:
    settled_world(world)
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    until(world, payment, "executing")
    world.reorg(40)
    world.finish()
    world.finish()
    failed = world.paid(payment.payment.id)
    assert (failed.status, failed.received_atomic, failed.settled_atomic) == (
        "action_required",
        0,
        0,
    )
    assert failed.labels == ("reorged", "execution_failed")
    assert failed.books.held_atomic == 0
    for action in ("retry_execution", "refund"):
        with pytest.raises(ReconciliationActionNotAllowed):
            world.reconcile(payment, action)

    world.pay(payment, "25.00")
    world.finish()
    world.reconcile(payment, "retry_execution")
    world.finish()
    done = world.paid(failed.id)
    assert (done.status, done.settled_atomic, done.excess_atomic) == ("succeeded", atomic("25"), 0)
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")


def test_a_refund_that_is_undone_is_sent_again(memory_world: World) -> None:
    world = settled_world(memory_world)
    payment = world.payment(expires_in_s=300)
    world.pay(payment, "10.00")
    world.finish()
    world.advance(310)
    settled_world(world)
    refund = world.refund(payment)
    until(world, payment, "refunded")
    world.reorg(20)
    world.finish()
    world.finish()
    assert world.get(Refund, refund.id).status == "succeeded"
    assert world.on_chain(WALLET) == atomic("10")
    assert world.on_chain(str(payment.payment.escrow_address)) == 0


def undone_with_its_receipt(world: World) -> PaymentDetails:
    """A Payment that succeeded, whose receipt and release a reorg then took, for good."""
    settled_world(world)
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    until(world, payment, "succeeded")
    world.reorg(40)
    world.finish()
    world.finish()
    return payment


def test_a_final_release_that_cannot_be_sent_again_is_taken_back(world: World) -> None:
    payment = undone_with_its_receipt(world)
    id = payment.payment.id
    back = world.paid(id)
    assert (back.status, back.received_atomic, back.settled_atomic) == ("action_required", 0, 0)
    assert (back.labels, back.can_retry, back.succeeded_at_ms) == (("reorged",), True, None)
    assert (back.reconciliation.status, back.failure) == ("open", "transaction_failed")
    assert not any((back.books.escrow, back.books.recipient, back.books.payer))
    last = world.journal(id)[-1]
    assert last == ("release_reorged", {"escrow": atomic("25"), "recipient": -atomic("25")})
    assert world.event_names(id)["payment.action_required"] == 1
    for action in ("accept", "refund", "retry_execution"):
        with pytest.raises(ReconciliationActionNotAllowed):
            world.reconcile(payment, action)

    world.pay(payment, "25.00")
    world.finish()
    world.reconcile(payment, "retry_execution")
    world.finish()
    done = world.paid(id)
    assert (done.status, done.settled_atomic, done.excess_atomic) == ("succeeded", atomic("25"), 0)
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")
    assert world.on_chain(str(done.escrow_address)) == 0


def test_a_final_refund_that_cannot_be_sent_again_is_taken_back(world: World) -> None:
    settled_world(world)
    payment = world.payment(expires_in_s=300)
    world.advance(285)
    world.pay(payment, "10.00")
    world.advance(25)
    id = payment.payment.id
    refund = world.refund(payment)
    until(world, payment, "refunded")
    assert world.paid(id).paid_by == ()
    world.reorg(50)
    world.finish()
    world.finish()
    back, failed = world.paid(id), world.get(Refund, refund.id)
    assert (failed.status, failed.failure) == ("failed", "transaction_failed")
    assert (back.status, back.received_atomic, back.refunded_atomic) == ("action_required", 0, 0)
    assert back.paid_by == ()
    assert world.event_names(id)["refund.failed"] == 1

    world.pay(payment, "10.00")  # a payer finds the books as if it were the first time
    world.finish()
    world.refund(payment)
    world.finish()
    assert (world.paid(id).status, world.paid(id).refunded_atomic) == ("refunded", atomic("10"))
    assert world.on_chain(WALLET) == atomic("10")


def test_a_look_from_before_a_reorg_does_not_conclude(memory_world: World) -> None:
    world = settled_world(memory_world)
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    until(world, payment, "executing")
    release_id = str(world.paid(payment.payment.id).release_id)
    outbox = Outbox(world.service.parts.ports, world.service.chains)
    authority = WorkerAuthority(world.server.partition, "sandbox")

    def look() -> TransferOutcome:
        [outcome] = outbox.check_outcomes(authority, [TransferToWatch(release_id)])
        assert isinstance(outcome, TransferOutcome)
        return outcome

    while (outcome := look()).is_pending:
        world.system.advance(1)
    world.reorg(40)
    world.service.parts.scanner("sandbox").wake(8453)
    world.run()
    with pytest.raises(StaleChainView):
        world.service.parts.ports.committer.commit(
            authority, lambda tx, id_sequence: mark_final(tx, release_id, outcome, now=0)
        )


def test_a_final_send_that_cannot_be_sent_again_is_taken_back(world: World) -> None:
    settled_world(world)
    payer = world.account("later")
    world.fund("40.00", payer)
    new = NewSend(
        amount="40.00", account_id=payer.id, destination=ToWallet(address=WALLET), chain_id=8453
    )
    sent = world.resources.payments.send(new)
    until(world, sent, "succeeded")
    assert world.held(payer) == (0, 0, 0)
    world.reorg(40)
    world.finish()
    world.finish()
    id = sent.payment.id
    back = world.paid(id)
    assert (back.status, back.settled_atomic, back.can_retry) == ("action_required", 0, True)
    assert world.journal(id) == [
        ("send", {"payer": -atomic("40"), "recipient": atomic("40")}),
        ("send_reorged", {"payer": atomic("40"), "recipient": -atomic("40")}),
    ]
    with pytest.raises(InsufficientBalance):
        world.reconcile(sent, "retry_execution")

    world.fund("40.00", payer)
    world.reconcile(sent, "retry_execution")
    world.finish()
    assert (world.paid(id).status, world.paid(id).settled_atomic) == ("succeeded", atomic("40"))
    assert world.held(payer) == (0, 0, 0)
    assert world.on_chain(WALLET) == atomic("40")


def test_what_was_final_before_a_scan_had_passed_it_is_watched_until_one_has(
    memory_world: World,
) -> None:
    world = settled_world(memory_world)
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.run()
    world.reorg(1, reinclude=True)  # now in a block that no scan has seen
    world.stop_scans()
    until(world, payment, "executing")
    assert receipt_statuses(world, payment) == ["verified"]
    world.reorg(20)
    world.service.parts.scanner("sandbox").ensure_scheduled()
    world.finish()
    world.finish()
    back = world.paid(payment.payment.id)
    assert receipt_statuses(world, payment) == ["reorged"]
    assert (back.status, back.received_atomic, back.settled_atomic) == ("action_required", 0, 0)
    assert not any((back.books.escrow, back.books.recipient))


def test_what_comes_short_after_a_reorg_and_after_the_end_expires_with_its_option_paid(
    world: World,
) -> None:
    settled_world(world)
    payment = world.payment("25.00", expires_in_s=300)
    world.advance(285)
    world.pay(payment, "10.00")
    world.advance(13)
    option = world.option(payment)
    world.authorize(option)
    world.reorg(20)  # the vault pays what was missing beside a receipt that is gone now
    world.advance(60)
    short = world.paid(payment.payment.id)
    assert (short.status, short.received_atomic) == ("action_required", atomic("15"))
    assert short.labels == ("underpaid", "reorged")
    assert world.operation_now(option).status == "confirmed"
    assert world.option_now(option).status == "succeeded"
    assert world.held() == (atomic("85"), 0, atomic("85"))
