"""Transactions of the legacy interface: what an account's Payments, deposits and refunds are."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import attrs
import pytest

from payments_core.errors import NotFound, ValidationFailed
from payments_core.legacy.transactions import sources
from payments_core.legacy.transactions.operations import MAX_REACH, TransactionPage
from payments_core.legacy.transactions.sources import Filters
from payments_core.legacy.transactions.translation import LegacyTransaction, Party
from payments_core.payments.destinations import ToAccount, ToWallet
from payments_core.payments.sends import NewSend
from payments_core.storage.port import Transaction
from tests.service.deposit_harness import OUTSIDE, DepositHarness
from tests.service.world import BASE, WALLET, World, atomic, write


def listed(world: World, account_id: str, **filters: Any) -> list[LegacyTransaction]:
    return list(page(world, account_id, Filters(**filters)).transactions)


def page(world: World, account_id: str, filters: Filters, **more: Any) -> TransactionPage:
    return world.resources.legacy.list_transactions(account_id, filters, **more)


def read(world: World, id: str) -> LegacyTransaction:
    return world.resources.legacy.read_transaction(id)


def merchant(world: World) -> Party:
    return Party(
        account_id=world.merchant.id,
        payment_address="merchant@acme",
        wallet_address=world.vault_address(world.merchant),
    )


def payer(world: World) -> Party:
    return Party(account_id=world.payer.id, wallet_address=world.vault_address())


def test_a_payment_is_a_transaction_of_its_recipient_and_of_its_payer(world: World) -> None:
    payment = world.payment()
    [waiting] = listed(world, world.merchant.id)
    assert (waiting.status, waiting.payer, waiting.transaction_hash) == ("pending", Party(), None)
    option = world.option(payment)
    assert listed(world, world.payer.id) == []  # it is offered, and not authorized
    world.authorize(option)
    [pending] = listed(world, world.payer.id)
    assert (pending.type, pending.status) == ("payment", "pending")
    assert (pending.payer, pending.payee) == (payer(world), merchant(world))
    world.finish()
    [received], [paid] = listed(world, world.merchant.id), listed(world, world.payer.id)
    done = world.paid(payment.payment.id)
    assert received == LegacyTransaction(
        id="tx_" + done.id.removeprefix("payment_"),
        type="payment",
        status="completed",
        asset=done.asset,
        amount_atomic=atomic("25"),
        fee_atomic=0,
        payer=payer(world),
        payee=merchant(world),
        transaction_hash=done.release_hash,
        created_at_ms=done.created_at_ms,
        completed_at_ms=done.succeeded_at_ms,
    )
    assert (paid.status, paid.amount_atomic) == ("completed", atomic("25"))
    assert paid.transaction_hash not in (None, received.transaction_hash)
    assert paid.completed_at_ms is not None
    assert [read(world, item.id) for item in (received, paid)] == [received, paid]


def test_a_stranger_who_pays_is_an_address(world: World) -> None:
    payment = world.payment()
    world.pay(payment, "25.00")
    world.finish()
    [received] = listed(world, world.merchant.id)
    assert (received.status, received.payer) == ("completed", Party(wallet_address=WALLET))


def test_a_deposit_is_one(harness: DepositHarness) -> None:
    world = harness.world
    harness.send("5.00")
    harness.scan()
    [seen] = listed(world, harness.account.id)
    assert (seen.type, seen.status, seen.completed_at_ms) == ("deposit", "pending", None)
    harness.finish()
    [done] = listed(world, harness.account.id)
    assert (done.id, done.status, done.amount_atomic) == (seen.id, "completed", atomic("5"))
    assert done.payer == Party(wallet_address=OUTSIDE)
    assert done.payee == Party(account_id=harness.account.id, wallet_address=harness.address)
    assert done.transaction_hash == harness.only.transaction_hash
    assert read(world, done.id) == done


def test_a_send_is_one_of_both_accounts(world: World) -> None:
    to = ToAccount(account_id=world.merchant.id)
    new = NewSend(amount="10.00", account_id=world.payer.id, destination=to)
    sent = world.resources.payments.send(new).payment
    world.finish()
    [out], [into] = listed(world, world.payer.id), listed(world, world.merchant.id)
    assert out == into
    assert (out.status, out.payer, out.payee) == ("completed", payer(world), merchant(world))
    assert out.transaction_hash == world.paid(sent.id).release_hash
    outside = NewSend(
        amount="1.00", account_id=world.payer.id, destination=ToWallet(address=WALLET)
    )
    world.resources.payments.send(outside)
    assert [item.payee.name for item in listed(world, world.payer.id)] == [WALLET, "merchant@acme"]
    assert len(listed(world, world.merchant.id)) == 1


def test_a_refund_to_a_vault_is_one_of_its_account(world: World) -> None:
    payment = world.payment()
    world.authorize(world.option(payment))
    world.finish()
    world.refund(payment, "10.00")
    world.finish()
    back, paid = listed(world, world.payer.id)
    assert (back.type, back.status, back.amount_atomic) == ("payment", "completed", atomic("10"))
    assert (back.payer, back.payee) == (merchant(world), payer(world))
    assert read(world, back.id) == back
    assert paid.amount_atomic == atomic("25")
    outside = world.payment("5.00")
    world.pay(outside, "5.00")
    world.finish()
    refund = world.refund(outside, "2.00", to=OUTSIDE)
    elsewhere = read(world, "tx_" + refund.id.removeprefix("refund_"))
    assert elsewhere.payee == Party(wallet_address=OUTSIDE)
    assert len(listed(world, world.payer.id)) == 2


def test_filters_choose_by_type_status_and_chain(world: World) -> None:
    harness = DepositHarness(world)
    harness.send("5.00")
    harness.finish()
    world.authorize(world.option(world.payment("10.00")))
    payment, deposit = listed(world, world.payer.id)
    for filters, found in (
        ({"type": "deposit"}, [deposit]),
        ({"type": "payment"}, [payment]),
        ({"type": "settlement"}, []),
        ({"status": "completed"}, [deposit]),
        ({"status": "pending"}, [payment]),
        ({"status": "failed"}, []),
        ({"type": "deposit", "status": "pending"}, []),
        ({"chain_id": BASE}, [payment, deposit]),
        ({"chain_id": 10}, []),
    ):
        shown = page(world, world.payer.id, Filters(**filters))  # type: ignore[arg-type]
        assert (list(shown.transactions), shown.total) == (found, len(found)), filters


def test_pages_and_places_walk_through_all_of_every_kind(
    memory_harness: DepositHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "CHUNK", 2)
    world = memory_harness.world
    for _ in range(4):
        world.authorize(world.option(world.payment("1.00")))
        memory_harness.send("1.00")
        memory_harness.scan()
    memory_harness.finish()
    every = listed(world, world.payer.id)
    assert len(every) == 8
    assert all(newer.created_at_ms >= older.created_at_ms for newer, older in pairwise(every))
    assert len({item.id for item in every}) == 8
    by_number = [
        item
        for number in (1, 2, 3, 4)
        for item in page(world, world.payer.id, Filters(), page=number, limit=3).transactions
    ]
    assert by_number == every
    assert page(world, world.payer.id, Filters(), page=4, limit=3).total == 8
    by_place: list[LegacyTransaction] = []
    before = None
    while True:
        found = page(world, world.payer.id, Filters(), before=before, limit=3)
        assert found.total == 8 - len(by_place)
        by_place += found.transactions
        if not found.transactions:
            break
        before = by_place[-1].id
    assert by_place == every


def test_what_many_pages_cannot_reach_is_refused_and_counted_no_further(
    memory_world: World,
) -> None:
    world = memory_world
    with pytest.raises(ValidationFailed) as refused:
        page(world, world.payer.id, Filters(), page=MAX_REACH // 50 + 1)
    assert refused.value.fields[0].path == "page"
    first = world.payment("1.00").payment

    def work(tx: Transaction) -> None:
        for number in range(MAX_REACH + 5):
            id = f"payment_{number:024}"
            tx.insert(attrs.evolve(first, id=id, version=0, created_at_ms=first.created_at_ms - 1))

    write(world.storage, world.environment_id, work)
    last = page(world, world.merchant.id, Filters(), page=10, limit=100)
    assert (len(last.transactions), last.total) == (100, MAX_REACH)
    beyond = page(world, world.merchant.id, Filters(), before=last.transactions[-1].id)
    assert (len(beyond.transactions), beyond.total) == (6, 6)


def test_what_is_not_a_transaction_is_not_found(memory_world: World) -> None:
    world = memory_world
    option = world.option(world.payment())
    for id in (
        "tx_" + "A" * 24,
        "tx_1",
        option.option.payment_id,
        "tx_" + option.option.funding_operation_id.removeprefix("pay_funding_"),
    ):
        with pytest.raises(NotFound):
            read(world, id)
        with pytest.raises(ValidationFailed):
            page(world, world.payer.id, Filters(), before=id)
    with pytest.raises(NotFound):
        page(world, "acct_" + "A" * 24, Filters())
