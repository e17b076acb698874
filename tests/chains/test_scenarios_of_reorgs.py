"""Blocks that are undone under a Payment, on the simulated chain and on a real node."""

from __future__ import annotations

from payments_core.chains.outbox.nonces import get_sender_id, reserve_nonce
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.clock import SECOND
from payments_core.engine.decision import WorkerAuthority
from payments_core.payments.details import PaymentDetails
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from tests.chains.scenes import ELSEWHERE, Scene
from tests.service.world import BASE, atomic


def escrow_of(payment: PaymentDetails) -> str:
    return str(payment.payment.escrow_address)


def seen(world: Scene, **more: int) -> tuple[PaymentDetails, str]:
    """A Payment with a wallet's transfer that is not final; the hash."""
    payment = world.payment("25.00", **more)
    hash = world.spend("25.00", escrow_of(payment))
    world.look()
    assert world.paid(payment.payment.id).status == "processing"
    return payment, hash


def receipt_of(world: Scene, payment: PaymentDetails) -> Receipt:
    evidenced = world.resources.payments.list_receipts(payment.payment.id)
    [receipt] = evidenced.receipts.records
    return receipt


def depth_of(world: Scene, hash: str) -> int:
    """How many blocks to remove so that this transaction is in none: a node may add empty ones."""
    seen = world.chain.transaction(hash)
    assert seen is not None and seen.block is not None
    return world.chain.heads().latest.number - seen.block.number + 1


def test_a_transfer_that_is_undone_before_it_is_final_never_counted(world: Scene) -> None:
    payment, _ = seen(world, expires_in_s=300)
    world.reorg(1)
    world.finish()
    waiting = world.paid(payment.payment.id)
    assert (waiting.status, waiting.labels, waiting.received_atomic) == ("awaiting_payment", (), 0)
    assert world.receipts(payment) == [("reorged", None, atomic("25"))]
    assert world.journal(waiting.id) == []
    world.advance(300)
    assert world.paid(waiting.id).status == "expired"


def test_a_transfer_that_comes_back_at_another_log_position_counts_once(world: Scene) -> None:
    payment = world.payment("25.00")
    first = world.stranger("1.00", to=ELSEWHERE)  # comes back in the same block, before it
    world.spend("25.00", escrow_of(payment))
    world.look()
    before = receipt_of(world, payment)
    world.reorg(depth_of(world, first), reinclude=True)
    world.finish()
    after = receipt_of(world, payment)
    assert after.id == before.id
    assert (before.position, after.position) == (0, 0)
    assert before.log_index != after.log_index
    assert before.block_hash != after.block_hash
    done = world.paid(payment.payment.id)
    assert (done.status, done.received_atomic, done.excess_atomic) == ("succeeded", atomic("25"), 0)
    assert world.receipts(payment) == [("verified", None, atomic("25"))]
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")


def test_a_double_spend_by_reorg_takes_back_what_was_seen(world: Scene) -> None:
    payment, hash = seen(world)
    world.spend_otherwise(1, "25.00", ELSEWHERE)
    world.finish()
    view = world.chain.transaction(hash)
    assert view is None or view.block is None
    waiting = world.paid(payment.payment.id)
    assert (waiting.status, waiting.labels, waiting.received_atomic) == ("awaiting_payment", (), 0)
    assert world.receipts(payment) == [("reorged", None, atomic("25"))]
    assert world.newest(ELSEWHERE) == atomic("25")
    world.spend("25.00", escrow_of(payment))  # and an honest one after it
    world.finish()
    assert world.paid(payment.payment.id).status == "succeeded"


def test_a_double_spend_after_the_release_is_reported_and_nothing_is_released_again(
    world: Scene,
) -> None:
    payment = world.payment("25.00")
    first = world.chain.heads().latest.number
    world.spend("25.00", escrow_of(payment))
    world.look()
    world.until(payment, "succeeded")
    depth = world.chain.heads().latest.number - first
    world.spend_otherwise(depth, "25.00", ELSEWHERE)
    world.look()
    world.finish()
    undone = world.paid(payment.payment.id)
    assert (undone.status, undone.labels, undone.received_atomic) == (
        "action_required",
        ("reorged",),
        0,
    )
    assert world.reported_events(undone.id)[-2:] == [
        ("payment.reorged", "succeeded", 6),
        ("payment.action_required", "action_required", 7),
    ]
    causes = [cause for cause, _ in world.journal(undone.id)]
    assert causes == ["receipt", "release", "receipt_reorged", "release_reorged"]
    assert world.receipts(payment) == [("reorged", None, atomic("25"))]
    assert world.event_names(undone.id)["payment.executing"] == 1
    assert world.newest(escrow_of(payment)) == 0
    assert world.newest(world.vault_address(world.merchant)) == 0


def until_accepted(world: Scene, payment: PaymentDetails) -> Payment:
    """Work in single steps until the Payment is covered, and its release is not begun."""
    for _ in range(200):
        found = world.paid(payment.payment.id)
        if found.status == "accepted":
            return found
        if not world.service.worker("sandbox").run_due(1):
            world._move(world.clock.now() + SECOND)
    raise AssertionError(found.status)


def reserve_nonce_of(world: Scene, outgoing_id: str) -> OutboundTransfer:
    """Do the first step of a worker that sends a transfer."""
    worker = WorkerAuthority(world.environment_id, "sandbox")
    known = world.get(OutboundTransfer, outgoing_id)
    reserved = world.service.parts.ports.committer.commit(
        worker,
        lambda tx, _: reserve_nonce(tx, BASE, get_sender_id(worker, world.chain), known),
    )
    return reserved.outgoing


def test_a_release_with_a_nonce_that_no_node_was_offered_is_withdrawn(world: Scene) -> None:
    payment = world.payment("25.00")
    hash = world.spend("25.00", escrow_of(payment))
    covered = until_accepted(world, payment)
    release = reserve_nonce_of(world, str(covered.release_id))  # and the worker died
    assert (release.status, release.raw) == ("reserved", None)
    world.hold_sends(30)
    world.reorg(depth_of(world, hash))
    world.look()
    world.finish()
    undone = world.paid(payment.payment.id)
    assert (undone.status, undone.labels) == ("action_required", ("reorged",))
    assert (undone.release_id, undone.release_hash) == (None, None)
    assert world.get(OutboundTransfer, release.id).status == "withdrawn"
    assert world.sent() == 0
    world.authorized("10.00")  # the next transfer gets the nonce
    world.finish()
    assert world.sent() == 2
    assert world.get(OutboundTransfer, release.id).slot is None
    world.spend("25.00", escrow_of(payment))
    world.finish()
    world.reconcile(payment, "accept")
    world.finish()
    done = world.paid(undone.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert world.sent() == 3


def test_a_release_that_another_transfer_overtook_was_offered_to_nobody(world: Scene) -> None:
    payment = world.payment("25.00")
    hash = world.spend("25.00", escrow_of(payment))
    covered = until_accepted(world, payment)
    release = reserve_nonce_of(world, str(covered.release_id))  # and the worker died
    world.hold_sends(30)
    other = world.authorized("10.00")
    worker = WorkerAuthority(world.environment_id, "sandbox")
    outbox = Outbox(world.service.parts.ports, world.service.chains)
    outgoing_id = str(world.operation_now(other).outgoing_id)
    assert outbox.ensure_signed(worker, BASE, outgoing_id) is not None
    assert world.get(OutboundTransfer, outgoing_id).slot == release.slot
    assert world.get(OutboundTransfer, release.id).raw is None
    world.hold_sends(30)
    world.reorg(depth_of(world, hash))
    world.look()
    world.finish()
    undone = world.paid(payment.payment.id)
    assert (undone.status, undone.release_id, undone.release_hash) == (
        "action_required",
        None,
        None,
    )
    assert world.get(OutboundTransfer, release.id).status == "withdrawn"
    assert world.paid(other.payment.id).status == "succeeded"
    assert world.sent() == 2  # its funding, and its release


def test_a_vaults_transfer_that_is_undone_is_sent_again(world: Scene) -> None:
    option = world.authorized("25.00")
    world.run()
    assert world.operation_now(option).status == "broadcast"
    world.reorg(1)
    world.finish()
    done = world.paid(option.payment.id)
    assert (done.status, done.labels, done.received_atomic) == ("succeeded", (), atomic("25"))
    assert world.operation_now(option).status == "confirmed"
    assert world.sent() == 2
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")


def test_transfer_and_release_that_are_both_undone_both_come_back(world: Scene) -> None:
    option = world.authorized("25.00")
    payment = world.resources.payments.read(option.payment.id)
    first = world.chain.heads().latest.number
    world.run()
    world.until(payment, "succeeded")
    world.reorg(world.chain.heads().latest.number - first)
    world.look()
    world.finish()
    done = world.paid(option.payment.id)
    assert done.status == "succeeded"
    assert (done.received_atomic, done.settled_atomic) == (atomic("25"), atomic("25"))
    assert world.sent() == 2
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")
    assert world.newest(world.vault_address()) == atomic("75")
