"""What arrives at an escrow and does not count: it is reported, and is in no book."""

from __future__ import annotations

from itertools import count

import pytest

from payments_core.assets import CHAINS, WATCH_LIST, Asset, known_tokens
from payments_core.payments.details import PaymentDetails
from payments_core.payments.receipts.record import Receipt
from tests.service.world import BASE, STRANGER, USDC, WALLET, World

NAMES = count()
WRONG = [token for chain_id in CHAINS for token in known_tokens(chain_id) if token != USDC]


def send(world: World, payment: PaymentDetails, token: Asset, amount: int, source: str = WALLET):
    """A transfer of any token, on any chain, to the escrow; not final yet."""
    chain = world.service.chains[token.chain_id]
    chain.transfer(token.address, None, source, amount, f"give-{next(NAMES)}")
    escrow = str(payment.payment.escrow_address)
    hash = chain.transfer(token.address, source, escrow, amount, f"wrong-{next(NAMES)}")
    world.service.scanner("sandbox").wake(token.chain_id)
    return hash


def receipts_of(world: World, payment: PaymentDetails) -> list[Receipt]:
    listed = world.service.payments.list_receipts(world.server, payment.payment.id)
    return list(listed.receipts.records)


def reported(world: World, payment: PaymentDetails) -> list[dict]:
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
    assert (after.received, after.books.held_amount, after.paid_by) == (0, 0, ())
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
    assert after.received == after.settled == 25_000_000
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
    send(world, payment, next(one for one in WATCH_LIST if one.chain_id == BASE), 1_000)
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
    send(world, payment, next(one for one in WATCH_LIST if one.chain_id == BASE), 1_000)
    world.advance_until(lambda: world.paid(payment.payment.id).misdirected == 1, 5)
    world.reorg(30, reinclude=True)
    world.finish()
    assert receipts_of(world, payment)[0].status == "rejected"
    assert world.paid(payment.payment.id).misdirected == 1
    names = [name for name, _, _ in world.reported_events(payment.payment.id)]
    assert names[1:] == ["payment.misdirected", "payment.reorged", "payment.misdirected"]
