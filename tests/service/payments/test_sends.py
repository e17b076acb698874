"""Sends: from a vault straight to the recipient, without escrow and without receipts."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.accounts.vaults.record import Policy, PolicyTerms
from payments_core.errors import (
    AccountSuspended,
    AmountOutOfRange,
    DestinationNotAllowed,
    InsufficientBalance,
    InvalidState,
    NotFound,
    PolicyDenied,
    PolicyInactive,
    ReconciliationActionNotAllowed,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.payments.destinations import ToAccount, ToPaymentAddress, ToWallet
from payments_core.payments.details import PaymentDetails
from payments_core.payments.sends import NewSend
from tests.service.world import BASE, OTHER_WALLET, WALLET, World, answer_of, atomic, once


def send(world: World, amount: str = "25.00", **more: Any) -> PaymentDetails:
    key = more.pop("idempotency_key", None)
    given = {"account_id": world.payer.id, "destination": ToWallet(address=WALLET), **more}
    new = NewSend(amount=amount, **given)
    return world.resources.payments.send(new, idempotency_key=key)


def test_a_send_reserves_goes_and_is_final(world: World) -> None:
    created = send(world).payment
    assert (created.intent, created.status, created.status_version) == ("send", "processing", 1)
    assert created.escrow_address is None
    assert created.source is not None
    assert created.source.policy_version == 1
    assert (created.account_id, created.destination.address) == (world.payer.id, WALLET)
    assert world.held() == (atomic("100"), atomic("25"), atomic("75"))
    world.run()
    assert world.paid(created.id).status == "executing"
    assert world.held()[1] == atomic("25")  # until it is final
    world.finish()
    done = world.paid(created.id)
    assert (done.status, done.settled_atomic, done.received_atomic) == (
        "succeeded",
        atomic("25"),
        0,
    )
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.on_chain(WALLET) == atomic("25")
    assert world.reported_events(done.id) == [
        ("payment.created", "processing", 1),
        ("payment.executing", "executing", 2),
        ("payment.succeeded", "succeeded", 3),
    ]
    assert world.last_payload(done.id, "payment.succeeded")["settledAmountAtomic"] == "25000000"
    assert world.journal(done.id) == [("send", {"payer": -atomic("25"), "recipient": atomic("25")})]
    assert not world.resources.payments.list_receipts(done.id).receipts.records
    assert world.sent() == 1


@pytest.mark.parametrize("named", ["account", "payment_address"])
def test_a_send_pays_another_accounts_vault_and_makes_no_deposit(world: World, named: str) -> None:
    to: Any = ToAccount(external_user_id="merchant")
    if named == "payment_address":
        to = ToPaymentAddress(payment_address="merchant@acme")
    done = send(world, destination=to).payment
    world.finish()
    assert world.paid(done.id).status == "succeeded"
    assert done.destination.account_id == world.merchant.id
    assert world.held(world.merchant) == (atomic("25"), 0, atomic("25"))
    assert not [name for name in world.event_names() if name.startswith("deposit.")]


def test_a_send_that_reverts_gives_all_back_and_asks_for_a_decision(world: World) -> None:
    created = send(world)
    world.fail("transfer")
    world.finish()
    failed = world.paid(created.payment.id)
    assert (failed.status, failed.labels) == ("action_required", ("execution_failed",))
    assert (failed.failure, failed.release_id) == ("transaction_failed", None)
    assert failed.reconciliation.status == "open"
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert world.reported_events(failed.id)[-1] == ("payment.action_required", "action_required", 3)
    for action in ("accept", "refund", "refund_excess"):
        with pytest.raises(ReconciliationActionNotAllowed):
            world.reconcile(created, action)
    with pytest.raises(InvalidState):  # it never left the vault
        world.refund(created, "25.00", to=OTHER_WALLET)

    world.reconcile(created, "retry_execution")
    assert world.held() == (atomic("100"), atomic("25"), atomic("75"))
    world.finish()
    done = world.paid(failed.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert (done.reconciliation.status, done.failure) == ("resolved", None)
    assert world.on_chain(WALLET) == atomic("25")
    assert world.held() == (atomic("75"), 0, atomic("75"))


def test_a_failed_send_is_tried_again_only_with_the_funds(world: World) -> None:
    created = send(world)
    world.drain()
    world.finish()
    assert world.paid(created.payment.id).status == "action_required"
    before = world.paid(created.payment.id)
    with pytest.raises(InsufficientBalance):
        world.reconcile(created, "retry_execution")
    assert world.paid(before.id) == before
    world.fund("30.00")
    world.reconcile(created, "retry_execution")
    world.finish()
    assert world.paid(before.id).status == "succeeded"
    assert world.held() == (atomic("5"), 0, atomic("5"))


def test_a_failed_send_can_be_given_up(world: World) -> None:
    created = send(world)
    world.fail("transfer")
    world.finish()
    world.reconcile(created, "write_off")
    done = world.paid(created.payment.id)
    assert (done.status, done.reconciliation.resolution) == ("failed", "write_off")
    assert world.held() == (atomic("100"), 0, atomic("100"))
    world.finish()
    assert world.sent() == 1


def test_a_send_is_cancelled_before_it_is_sent_and_not_after(world: World) -> None:
    first = send(world)
    cancelled = world.resources.payments.cancel(first.payment.id).payment
    assert cancelled.status == "cancelled"
    assert world.held() == (atomic("100"), 0, atomic("100"))
    world.finish()
    assert world.sent() == 0
    assert world.reported_events(cancelled.id)[-1] == ("payment.cancelled", "cancelled", 2)
    second = send(world)
    world.run()
    with pytest.raises(InvalidState):
        world.resources.payments.cancel(second.payment.id)
    world.finish()
    assert world.paid(second.payment.id).status == "succeeded"


def test_a_key_makes_one_send_also_when_its_own_funds_are_gone(world: World) -> None:
    def make() -> PaymentDetails:
        return send(world, "100.00", idempotency_key=once("k"))

    assert answer_of(make) is None
    assert answer_of(make) is not None
    world.finish()
    assert answer_of(make) is not None
    assert world.held() == (0, 0, 0)
    assert len(world.resources.payments.list().records) == 1


def test_two_sends_cannot_reserve_the_same_funds(world: World) -> None:
    send(world, "60.00")
    with pytest.raises(InsufficientBalance) as caught:
        send(world, "60.00")
    assert caught.value.available_atomic == atomic("40")
    send(world, "40.00")
    world.finish()
    assert world.on_chain(WALLET) == atomic("100")


def test_the_policy_of_the_vault_governs_a_send(world: World) -> None:
    vault = world.vault_of()

    def under(**terms: Any) -> Policy:
        policies = world.resources.vaults
        return policies.replace_policy(world.payer.id, vault.id, PolicyTerms(**terms)).policy

    under(per_payment_limit="24.99")
    with pytest.raises(PolicyDenied):
        send(world)
    under(daily_limit="40.00")
    first = send(world)
    with pytest.raises(PolicyDenied):
        send(world)
    world.resources.payments.cancel(first.payment.id)
    again = send(world)  # what was cancelled is given back to the day
    assert again.payment.source is not None
    assert again.payment.source.policy_version == 3
    under(status="paused")
    with pytest.raises(PolicyInactive):
        send(world, "1.00")


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (AmountOutOfRange, {"amount": "0"}),
        (InsufficientBalance, {"amount": "100.000001"}),
        (ValidationFailed, {"amount": "0.0000001"}),
        (NotFound, {"account_id": "acct_none"}),
        (UnsupportedChain, {"chain_id": 2}),
        (DestinationNotAllowed, {"chain_id": BASE, "destination_chain_id": 1}),
        (UnsupportedAsset, {"asset_symbol": "DOGE"}),
        (NotFound, {"destination": ToAccount(external_user_id="nobody")}),
        (ValidationFailed, {"destination": ToAccount(external_user_id="payer")}),
        (ValidationFailed, {"destination": ToWallet(address="0x12")}),
    ],
)
def test_a_send_that_cannot_be_is_refused_and_leaves_nothing(
    memory_world: World, error: type[Exception], change: dict[str, Any]
) -> None:
    before = len(memory_world.events())
    with pytest.raises(error):
        send(memory_world, **change)
    assert len(memory_world.events()) == before
    assert memory_world.held() == (atomic("100"), 0, atomic("100"))


def test_nothing_is_sent_to_an_escrow_or_by_the_suspended(memory_world: World) -> None:
    escrow = str(memory_world.payment().payment.escrow_address)
    with pytest.raises(DestinationNotAllowed):
        send(memory_world, destination=ToWallet(address=escrow))
    memory_world.resources.accounts.change(memory_world.payer.id, status="suspended")
    with pytest.raises(AccountSuspended):
        send(memory_world)


def test_no_payer_acts_on_a_send(memory_world: World) -> None:
    created = send(memory_world)
    with pytest.raises(InvalidState):
        memory_world.option(created)


@pytest.mark.parametrize("operation", ["broadcast", "lost_answer", "any"])
def test_a_chain_that_does_not_answer_sends_it_once(world: World, operation: str) -> None:
    created = send(world)
    world.fail(operation, times=3)
    world.finish()
    assert world.paid(created.payment.id).status == "succeeded"
    assert world.sent() == 1
    assert world.on_chain(WALLET) == atomic("25")
