"""What arrives at an escrow and does not count: it is reported, and is in no book."""

from __future__ import annotations

from itertools import count
from typing import Any

import attrs
import pytest

from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.port import TransactionView
from payments_core.errors import (
    InsufficientPermissions,
    NotFound,
    ReconciliationActionNotAllowed,
    ValidationFailed,
)
from payments_core.networks import Asset
from payments_core.payments.details import PaymentDetails
from payments_core.payments.receipts.record import Receipt
from tests.service.chains.test_chain_views import look_through
from tests.service.payments.refunds.test_refunds import restricted_key
from tests.service.world import BASE, OTHER_WALLET, STRANGER, USDC, WALLET, World
from tests.shipped import CHAINS, WATCH_LIST, known_tokens

NAMES = count()
AT_BASE = next(token for token in WATCH_LIST if token.chain_id == BASE)
WRONG = [
    token
    for chain_id in CHAINS
    for token in known_tokens(chain_id)
    if token != USDC and token.address != NATIVE_ADDRESS  # it arrives without a log
]


def send(
    world: World, payment: PaymentDetails, token: Asset, amount: int, source: str = WALLET
) -> str:
    """A transfer of any token, on any chain, to the escrow; not final yet."""
    chain = world.service.chains[token.chain_id]
    chain.transfer(token.address, None, source, amount, f"give-{next(NAMES)}")
    escrow = str(payment.payment.escrow_address)
    hash: str = chain.transfer(token.address, source, escrow, amount, f"wrong-{next(NAMES)}")
    world.service.parts.scanner("sandbox").wake(token.chain_id)
    return hash


def receipts_of(world: World, payment: PaymentDetails) -> list[Receipt]:
    listed = world.resources.payments.list_receipts(payment.payment.id)
    return list(listed.receipts.records)


def reported(world: World, payment: PaymentDetails) -> list[dict[str, Any]]:
    events = world.events(payment.payment.id)
    return [dict(event.payload) for event in events if event.name == "payment.misdirected"]


@pytest.mark.parametrize("token", WRONG, ids=lambda token: token.id)
def test_every_known_token_that_does_not_count_is_reported(
    memory_world: World, token: Asset
) -> None:
    world = memory_world
    payment = world.payment("25.00", expires_in_s=300)
    send(world, payment, token, 25_000_000)
    world.finish()
    [receipt] = receipts_of(world, payment)
    reason = "wrong_token" if token.chain_id == BASE else "wrong_chain"
    assert (receipt.status, receipt.rejection_reason) == ("rejected", reason)
    after = world.paid(payment.payment.id)
    assert (after.status, after.labels) == ("awaiting_payment", ("misdirected",))
    assert after.reconciliation.status == "open"
    assert (after.received_atomic, after.books.held_atomic, after.paid_by) == (0, 0, ())
    assert world.journal(after.id) == []
    assert reported(world, payment) == [
        {
            "paymentId": after.id,
            "accountId": world.merchant.id,
            "status": "awaiting_payment",
            "statusVersion": 2,
            "labels": ["misdirected"],
            "receiptId": receipt.id,
            "reason": reason,
            "chainId": token.chain_id,
            "assetSymbol": token.symbol,
            "tokenAddress": token.address,
            "amountAtomic": "25000000",
            "from": WALLET,
            "createdBy": "server",
            "reference": after.reference,
            "externalUserId": world.merchant.external_user_id,
            "metadata": after.metadata,
        }
    ]
    world.advance(900)
    ended = world.paid(after.id)
    assert (ended.status, ended.labels) == ("expired", ("misdirected",))
    assert ended.reconciliation.status == "open"
    assert len(reported(world, payment)) == 1


def test_it_is_reported_in_every_state_and_beside_the_right_funds(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.finish()
    assert world.paid(payment.payment.id).status == "succeeded"
    for number, token in enumerate(WATCH_LIST[:2], start=1):
        send(world, payment, token, 1_000)
        world.finish()
        after = world.paid(payment.payment.id)
        assert (after.status, after.misdirected) == ("succeeded", number)
    assert after.received_atomic == after.settled_atomic == 25_000_000
    assert len(reported(world, payment)) == 2


def test_nothing_and_tokens_that_nobody_knows_are_not_reported(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00")
    send(world, payment, Asset(BASE, "FAKE", STRANGER, 6), 25_000_000)
    send(world, payment, WATCH_LIST[1], 0)
    world.finish()
    after = world.paid(payment.payment.id)
    assert (after.labels, after.reconciliation.status, after.misdirected) == ((), "none", 0)
    assert reported(world, payment) == []


def test_a_reorg_takes_it_back(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00")
    send(world, payment, AT_BASE, 1_000)
    world.advance_until(lambda: world.paid(payment.payment.id).misdirected == 1, 5)
    world.reorg(30)
    world.finish()
    [receipt] = receipts_of(world, payment)
    after = world.paid(payment.payment.id)
    assert (receipt.status, receipt.rejection_reason) == ("reorged", None)
    assert (after.misdirected, after.reconciliation.status) == (0, "none")
    assert after.labels == ("misdirected",)
    assert world.event_names(after.id)["payment.reorged"] == 1


def test_in_another_block_it_is_reported_again(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00")
    send(world, payment, AT_BASE, 1_000)
    world.advance_until(lambda: world.paid(payment.payment.id).misdirected == 1, 5)
    world.reorg(30, reinclude=True)
    world.finish()
    assert receipts_of(world, payment)[0].status == "rejected"
    assert world.paid(payment.payment.id).misdirected == 1
    names = [name for name, _, _ in world.reported_events(payment.payment.id)]
    assert names[1:] == ["payment.misdirected", "payment.reorged", "payment.misdirected"]


# The way back.


def give_back(world: World, payment: PaymentDetails, receipt: Receipt, **more: Any) -> None:
    world.reconcile(payment, "return_misdirected", receipt_id=receipt.id, **more)


def held_by(world: World, token: Asset, address: str) -> int:
    chain = world.service.chains[token.chain_id]
    chain.mine(3)
    return int(chain.balances(token.address, [address]).amounts[address])


@pytest.mark.parametrize("token", WRONG, ids=lambda token: token.id)
def test_every_token_goes_back_on_its_own_chain_once(memory_world: World, token: Asset) -> None:
    world = memory_world
    payment = world.payment("25.00")
    send(world, payment, token, 7_000_000)
    world.finish()
    [receipt] = receipts_of(world, payment)
    give_back(world, payment, receipt, note="wrong token")
    with pytest.raises(ReconciliationActionNotAllowed, match="on their way back"):
        give_back(world, payment, receipt)
    world.finish()
    world.finish()
    [after] = receipts_of(world, payment)
    assert after.sent_back is not None
    assert (after.sent_back.status, after.sent_back.destination) == ("succeeded", WALLET)
    assert held_by(world, token, WALLET) == 7_000_000
    assert held_by(world, token, str(payment.payment.escrow_address)) == 0
    paid = world.paid(payment.payment.id)
    assert (paid.status, paid.misdirected, paid.refunded_atomic) == ("awaiting_payment", 0, 0)
    assert paid.reconciliation.resolution == "return_misdirected"
    assert (paid.reconciliation.status, paid.reconciliation_note) == ("resolved", "wrong token")
    assert world.last_payload(paid.id, "payment.reconciled")["note"] == "wrong token"
    assert world.journal(paid.id) == []
    with pytest.raises(ReconciliationActionNotAllowed, match="no misdirected funds are held"):
        give_back(world, payment, receipt)


def test_each_receipt_goes_back_by_itself_and_the_last_resolves(world: World) -> None:
    payment = world.payment("25.00")
    for amount in (1_000, 2_000):
        send(world, payment, WRONG[0], amount)
        world.finish()
    first, second = receipts_of(world, payment)
    give_back(world, payment, first)
    world.finish()
    assert world.paid(payment.payment.id).reconciliation.status == "open"
    with pytest.raises(ReconciliationActionNotAllowed, match="were sent back"):
        give_back(world, payment, first)
    give_back(world, payment, second)
    world.finish()
    assert world.paid(payment.payment.id).reconciliation.status == "resolved"
    assert held_by(world, WRONG[0], WALLET) == 3_000


def test_a_return_that_fails_is_reported_and_can_be_requested_again(world: World) -> None:
    payment = world.payment("25.00")
    send(world, payment, AT_BASE, 1_000)
    world.finish()
    [receipt] = receipts_of(world, payment)
    give_back(world, payment, receipt)
    world.fail("transfer")
    world.finish()
    [failed] = receipts_of(world, payment)
    assert failed.sent_back is not None
    assert (failed.sent_back.status, failed.sent_back.failure) == ("failed", "transaction_failed")
    assert len(reported(world, payment)) == 2
    assert world.paid(payment.payment.id).misdirected == 1
    give_back(world, payment, receipt)
    world.finish()
    assert held_by(world, AT_BASE, WALLET) == 1_000
    assert world.paid(payment.payment.id).misdirected == 0


def test_a_return_is_refused_for_what_counts_and_for_what_is_not_there(memory_world: World) -> None:
    world = memory_world
    payment, other = world.payment("25.00"), world.payment("25.00")
    send(world, payment, AT_BASE, 1_000)
    send(world, other, AT_BASE, 1_000)
    world.pay(payment, "25.00")
    world.finish()
    good = next(one for one in receipts_of(world, payment) if one.status == "verified")
    [foreign] = receipts_of(world, other)
    with pytest.raises(ReconciliationActionNotAllowed, match="holds no misdirected"):
        give_back(world, payment, good)
    for receipt_id in (foreign.id, "receipt_" + 24 * "0"):
        with pytest.raises(NotFound):
            world.reconcile(payment, "return_misdirected", receipt_id=receipt_id)
    with pytest.raises(ValidationFailed, match="receipt_id is required"):
        world.reconcile(payment, "return_misdirected")
    with pytest.raises(ValidationFailed, match="receipt_id is only for"):
        world.reconcile(payment, "write_off", receipt_id=good.id)


@pytest.mark.parametrize("source", ["0x" + 40 * "0", AT_BASE.address, USDC.address])
def test_what_nobody_holds_sent_needs_a_destination(memory_world: World, source: str) -> None:
    world = memory_world
    payment = world.payment("25.00")
    send(world, payment, AT_BASE, 1_000, source)
    world.finish()
    [receipt] = receipts_of(world, payment)
    with pytest.raises(ValidationFailed, match="destination is required"):
        give_back(world, payment, receipt)
    with pytest.raises(ValidationFailed, match="token"):
        give_back(world, payment, receipt, destination=AT_BASE.address)
    give_back(world, payment, receipt, destination=OTHER_WALLET)
    world.finish()
    assert held_by(world, AT_BASE, OTHER_WALLET) == 1_000


def test_a_reorg_withdraws_a_return_that_is_not_signed(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00")
    send(world, payment, AT_BASE, 1_000)
    world.advance_until(lambda: world.paid(payment.payment.id).misdirected == 1, 5)
    world.hold_sends(120)
    [receipt] = receipts_of(world, payment)
    give_back(world, payment, receipt)
    world.hold_sends(120)
    world.reorg(30)
    world.finish()
    world.finish()
    [gone] = receipts_of(world, payment)
    assert gone.status == "reorged"
    assert gone.sent_back is not None
    assert (gone.sent_back.status, gone.sent_back.failure) == ("failed", "funds_reorged")
    assert world.sent() == 0


@pytest.mark.parametrize(
    "change",
    [{"amount_atomic": 2_000}, {"sender": OTHER_WALLET}],
    ids=lambda change: next(iter(change)),
)
def test_a_reorg_that_changes_what_arrived_withdraws_it_too(
    memory_world: World, change: dict[str, Any]
) -> None:
    """It would go back with funds of another receipt, or to somebody who did not send it."""
    world = memory_world
    payment = world.payment("25.00")
    send(world, payment, AT_BASE, 1_000)
    world.advance(8)
    hash = send(world, payment, AT_BASE, 5_000)
    world.advance(8)
    wrong = receipts_of(world, payment)[1]
    world.reconcile(payment, "return_misdirected", receipt_id=wrong.id)
    world.hold_sends(120)
    world.reorg(30, reinclude=True)

    def see(view: TransactionView | None) -> TransactionView | None:
        if view is None or view.hash != hash:
            return view
        logs = tuple(attrs.evolve(log, **change) for log in view.logs)
        return attrs.evolve(view, logs=logs)

    look_through(world, see)
    world.system.advance(30)  # it is final again before anybody looks
    world.advance(10)
    changed = receipts_of(world, payment)[1]
    assert (changed.amount_atomic, changed.sender) != (wrong.amount_atomic, wrong.sender)
    assert changed.sent_back is not None
    assert (changed.sent_back.status, changed.sent_back.failure) == ("failed", "funds_reorged")
    assert changed.holds_misdirected
    told = [facts for facts in reported(world, payment) if facts["receiptId"] == changed.id]
    assert {"amountAtomic": str(changed.amount_atomic), "from": changed.sender}.items() <= told[
        -1
    ].items()
    world.finish()
    assert world.sent() == 0


def test_a_reorg_of_a_return_sends_the_same_bytes_again(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00")
    send(world, payment, AT_BASE, 1_000)
    world.finish()
    [receipt] = receipts_of(world, payment)
    give_back(world, payment, receipt)
    world.advance_until(lambda: world.paid(payment.payment.id).misdirected == 0, 5)
    world.reorg(10)
    world.finish()
    world.finish()
    assert held_by(world, AT_BASE, WALLET) == 1_000
    assert world.paid(payment.payment.id).misdirected == 0
    assert world.sent() == 1


def test_a_stranger_as_destination_needs_a_standard_key(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00")
    send(world, payment, AT_BASE, 1_000)
    world.finish()
    [receipt] = receipts_of(world, payment)
    limited = restricted_key(world)
    id, action = payment.payment.id, "return_misdirected"
    with pytest.raises(InsufficientPermissions):
        world.service.acting_as(limited).payments.reconcile(
            id, action, receipt_id=receipt.id, destination=OTHER_WALLET
        )
    world.service.acting_as(limited).payments.reconcile(id, action, receipt_id=receipt.id)
