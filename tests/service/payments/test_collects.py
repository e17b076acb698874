"""Collects: drawn from a vault under a mandate, then released as any Payment received."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.clock import SECOND, to_datetime
from payments_core.errors import (
    AccountSuspended,
    AmountOutOfRange,
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
from payments_core.payments.collects import NewCollect
from payments_core.payments.destinations import ToAccount, ToWallet
from payments_core.payments.details import PaymentDetails
from payments_core.payments.mandates.operations import NewMandate
from payments_core.payments.mandates.record import Mandate
from tests.service.world import World, answer_of, atomic, once


def mandate(world: World, amount: str = "40.00", **more: Any) -> Mandate:
    new = NewMandate(vault_id=world.vault_of().id, amount_per_period=amount, period="month", **more)
    return world.resources.mandates.create(world.payer.id, new).mandate


def collect(world: World, under: Mandate, amount: str = "25.00", **more: Any) -> PaymentDetails:
    key = more.pop("idempotency_key", None)
    to = ToAccount(account_id=world.merchant.id)
    new = NewCollect(amount=amount, mandate_id=under.id, destination=to, **more)
    return world.resources.payments.collect(new, idempotency_key=key)


def drawn(world: World, under: Mandate) -> int:
    return world.get(Mandate, under.id).drawn_atomic


def test_a_collect_goes_from_the_vault_through_escrow_to_the_recipient(world: World) -> None:
    under = mandate(world)
    created = collect(world, under)
    [option] = created.options
    payment = created.payment
    assert (payment.intent, payment.status, payment.status_version) == ("collect", "processing", 1)
    assert (option.option.status, option.operation.status) == ("processing", "authorized")
    assert option.operation.status_version == 2
    assert payment.source is not None
    assert payment.source.mandate_id == under.id
    assert drawn(world, under) == atomic("25")
    assert world.held() == (atomic("100"), atomic("25"), atomic("75"))
    world.finish()
    done = world.paid(payment.id)
    assert (done.status, done.received_atomic, done.settled_atomic) == (
        "succeeded",
        atomic("25"),
        atomic("25"),
    )
    assert world.option_now(option).status == "succeeded"
    assert world.operation_now(option).status == "confirmed"
    assert world.reported_events(done.id) == [
        ("payment.created", "processing", 1),
        ("payment.accepted", "accepted", 2),
        ("payment.executing", "executing", 3),
        ("payment.succeeded", "succeeded", 4),
    ]
    assert [cause for cause, _ in world.journal(done.id)] == ["receipt", "release"]
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.held(world.merchant) == (atomic("25"), 0, atomic("25"))
    assert drawn(world, under) == atomic("25")


def test_a_collect_that_reverts_gives_all_back_and_asks_for_a_decision(world: World) -> None:
    under = mandate(world)
    created = collect(world, under)
    world.fail("transfer")
    world.finish()
    failed = world.paid(created.payment.id)
    assert (failed.status, failed.labels) == ("action_required", ("execution_failed",))
    assert failed.failure == "transaction_failed"
    assert world.option_now(created.options[0]).status == "failed"
    assert world.operation_now(created.options[0]).status == "failed"
    assert drawn(world, under) == 0
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert world.reported_events(failed.id)[-1] == ("payment.action_required", "action_required", 2)
    assert world.event_names(failed.id)["vault_funding.failed"] == 1
    for action in ("accept", "refund", "refund_excess", "retry_execution"):
        with pytest.raises(ReconciliationActionNotAllowed):  # nothing is held
            world.reconcile(created, action)
    world.reconcile(created, "write_off")
    assert world.paid(failed.id).status == "failed"
    again = collect(world, under)
    world.finish()
    assert world.paid(again.payment.id).status == "succeeded"


def test_a_collect_whose_release_fails_goes_on_as_any_payment(world: World) -> None:
    created = collect(world, mandate(world))
    world.run()
    world.fail("transfer")
    world.finish()
    assert world.paid(created.payment.id).status == "action_required"
    world.reconcile(created, "retry_execution")
    world.finish()
    assert world.paid(created.payment.id).status == "succeeded"
    assert world.held(world.merchant) == (atomic("25"), 0, atomic("25"))


def test_what_was_collected_is_refunded_to_the_vault(world: World) -> None:
    created = collect(world, mandate(world))
    world.finish()
    world.refund(created)
    world.finish()
    assert world.paid(created.payment.id).status == "refunded"
    assert world.held() == (atomic("100"), 0, atomic("100"))


def test_a_collect_is_cancelled_before_it_is_sent(world: World) -> None:
    under = mandate(world)
    created = collect(world, under)
    world.resources.payments.cancel(created.payment.id)
    assert world.paid(created.payment.id).status == "cancelled"
    assert world.operation_now(created.options[0]).status == "cancelled"
    assert (drawn(world, under), world.held()[1]) == (0, 0)
    world.finish()
    assert world.sent() == 0


def test_no_more_is_drawn_than_the_period_allows(world: World) -> None:
    under = mandate(world, "40.00")
    collect(world, under)
    with pytest.raises(PolicyDenied) as caught:
        collect(world, under, "15.000001")
    assert caught.value.rule == "amountPerPeriod"
    collect(world, under, "15.00")
    assert drawn(world, under) == atomic("40")
    world.finish()
    with pytest.raises(PolicyDenied):
        collect(world, under, "0.000001")


def test_a_mandate_that_is_over_gives_nothing(world: World) -> None:
    revoked = mandate(world)
    world.resources.mandates.revoke(world.payer.id, revoked.id)
    expired = mandate(world, expires_at=to_datetime(world.clock.now() + SECOND))
    world.system.advance(1)
    for under in (revoked, expired):
        with pytest.raises(InvalidState):
            collect(world, under)
    assert world.held() == (atomic("100"), 0, atomic("100"))


def test_a_key_collects_once_also_when_the_mandate_is_used_up(world: World) -> None:
    under = mandate(world, "25.00")

    def make() -> PaymentDetails:
        return collect(world, under, idempotency_key=once("k"))

    assert answer_of(make) is None
    assert answer_of(make) is not None
    world.finish()
    assert answer_of(make) is not None
    assert drawn(world, under) == atomic("25")
    assert world.held() == (atomic("75"), 0, atomic("75"))


def test_no_payer_authorizes_a_collect(memory_world: World) -> None:
    created = collect(memory_world, mandate(memory_world))
    with pytest.raises(InvalidState):
        memory_world.option(created)
    with pytest.raises(InvalidState):
        memory_world.authorize(created.options[0], action_id="action_x")


def test_vault_and_account_have_their_say(memory_world: World) -> None:
    under = mandate(memory_world, "1000.00")
    with pytest.raises(InsufficientBalance):
        collect(memory_world, under, "100.000001")
    memory_world.pause_policy()
    with pytest.raises(PolicyInactive):
        collect(memory_world, under)
    memory_world.pause_policy("active")
    memory_world.resources.accounts.change(memory_world.payer.id, status="suspended")
    with pytest.raises(AccountSuspended):
        collect(memory_world, under)
    assert drawn(memory_world, under) == 0


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (AmountOutOfRange, {"amount": "0"}),
        (UnsupportedChain, {"chain_id": 1}),
        (UnsupportedAsset, {"asset_symbol": "USDT"}),
    ],
)
def test_a_collect_that_cannot_be_is_refused(
    memory_world: World, error: type[Exception], change: dict[str, Any]
) -> None:
    under = mandate(memory_world)
    with pytest.raises(error):
        collect(memory_world, under, **change)
    assert drawn(memory_world, under) == 0


def test_a_collect_to_the_payer_itself_is_refused(memory_world: World) -> None:
    under = mandate(memory_world)
    own = memory_world.vault_of().address
    for to in (ToAccount(account_id=memory_world.payer.id), ToWallet(address=own)):
        new = NewCollect(amount="1.00", mandate_id=under.id, destination=to)
        with pytest.raises(ValidationFailed) as caught:
            memory_world.resources.payments.collect(new)
        assert [fault.path for fault in caught.value.fields] == ["destination"]
    assert drawn(memory_world, under) == 0


def test_a_chain_or_an_asset_that_is_not_the_mandates_is_named_as_that(
    memory_world: World,
) -> None:
    under = mandate(memory_world)
    with pytest.raises(UnsupportedChain) as chain:
        collect(memory_world, under, chain_id=10)
    assert chain.value.message == "Chain 10 is not the mandate's chain, which is 8453."
    with pytest.raises(UnsupportedAsset) as asset:
        collect(memory_world, under, asset_symbol="USDT")
    assert asset.value.message == "USDT on chain 8453 is not the mandate's asset, which is USDC."


def test_a_mandate_that_is_not_there_is_not_found(memory_world: World) -> None:
    to = ToAccount(account_id=memory_world.merchant.id)
    new = NewCollect(amount="1.00", mandate_id="mandate_none", destination=to)
    with pytest.raises(NotFound) as caught:
        memory_world.resources.payments.collect(new)
    assert caught.value.resource == "mandate"
