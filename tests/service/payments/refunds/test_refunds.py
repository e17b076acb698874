"""Refunds of a Payment that was released: how much, from where, to whom."""

from __future__ import annotations

import pytest

from payments_core.accounts.vaults.record import AllowedDestination, PolicyTerms
from payments_core.errors import (
    AmountOutOfRange,
    DestinationNotAllowed,
    InsufficientBalance,
    InsufficientPermissions,
    InvalidState,
    NotFound,
    PolicyDenied,
    PolicyInactive,
    ResourceConflict,
    ValidationFailed,
)
from payments_core.payments.destinations import ToWallet
from payments_core.payments.details import PaymentDetails
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.refunds.record import Refund
from payments_core.tenants.authorization import Authority
from tests.service.world import OTHER_WALLET, WALLET, World, answer_of, atomic, authority_of, once


def succeeded(world: World) -> PaymentDetails:
    """A Payment of 25.00 that a wallet paid."""
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.finish()
    assert world.paid(payment.payment.id).status == "succeeded"
    return payment


def under(world: World, **terms: object) -> None:
    """Put the merchant's vault under such a policy."""
    vault = world.vault_of(world.merchant)
    world.resources.vaults.replace_policy(
        world.merchant.id,
        vault.id,
        PolicyTerms(**terms),  # type: ignore[arg-type]
    )


def test_a_refund_reserves_goes_and_is_final(world: World) -> None:
    payment = succeeded(world)
    refund = world.refund(payment, "10.00")
    assert (refund.status, refund.status_version) == ("created", 1)
    assert (refund.destination, refund.amount_atomic) == (WALLET, atomic("10"))
    assert world.held(world.merchant) == (atomic("25"), atomic("10"), atomic("15"))
    assert world.paid(payment.payment.id).status == "succeeded"
    world.run()
    sent = world.get(Refund, refund.id)
    assert (sent.status, sent.status_version) == ("submitted", 2)
    assert sent.transaction_hash is not None
    world.finish()
    done = world.get(Refund, refund.id)
    assert (done.status, done.status_version) == ("succeeded", 3)
    assert done.succeeded_at_ms is not None
    paid = world.paid(payment.payment.id)
    assert (paid.status, paid.refunded_atomic) == ("partially_refunded", atomic("10"))
    assert world.reported_events(paid.id)[-1] == ("payment.refunded", "partially_refunded", 6)
    reported = world.last_payload(paid.id, "payment.refunded")
    assert (reported["refundedAmountAtomic"], reported["settledAmountAtomic"]) == (
        "10000000",
        "25000000",
    )
    assert world.last_payload(paid.id, "refund.succeeded") == {
        "paymentId": paid.id,
        "refundId": refund.id,
        "status": "succeeded",
        "statusVersion": 3,
        "amountAtomic": "10000000",
    }
    assert world.held(world.merchant) == (atomic("15"), 0, atomic("15"))
    assert world.on_chain(WALLET) == atomic("10")
    assert world.journal(paid.id)[-1] == (
        "refund", {"payer": atomic("10"), "recipient": -atomic("10")},
    )  # fmt: skip


def test_several_partials_end_with_all_of_it(world: World) -> None:
    payment = succeeded(world)
    for amount in ("5.00", "7.50", None):
        world.refund(payment, amount)
        world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.refunded_atomic) == ("refunded", atomic("25"))
    assert [reported[:2] for reported in world.reported_events(done.id)[-3:]] == [
        ("payment.refunded", "partially_refunded"),
        ("payment.refunded", "partially_refunded"),
        ("payment.refunded", "refunded"),
    ]
    assert (done.books.payer, done.books.recipient, done.books.held_atomic) == (0, 0, 0)
    assert done.reconciliation.status == "none"
    listed = world.resources.payments.list_refunds(done.id).records
    assert [refund.amount_atomic for refund in listed] == [
        atomic("12.5"),
        atomic("7.5"),
        atomic("5"),
    ]
    assert world.resources.payments.read(done.id).refunds == listed
    assert world.on_chain(WALLET) == atomic("25")
    with pytest.raises(InvalidState):
        world.refund(payment, "0.01")


def test_what_is_in_flight_cannot_go_back_twice(world: World) -> None:
    payment = succeeded(world)
    world.refund(payment, "20.00")
    for amount in ("5.000001", "25.00"):
        with pytest.raises(AmountOutOfRange):
            world.refund(payment, amount)
    world.refund(payment, "5.00")
    with pytest.raises(AmountOutOfRange):
        world.refund(payment, "0.000001")
    assert world.held(world.merchant) == (atomic("25"), atomic("25"), 0)
    world.finish()
    assert world.paid(payment.payment.id).status == "refunded"
    assert world.on_chain(WALLET) == atomic("25")
    assert world.sent() == 3


def test_a_key_makes_one_refund(world: World) -> None:
    payment = succeeded(world)

    def refund() -> Refund:
        return world.refund(payment, "25.00", idempotency_key=once("k"))

    assert answer_of(refund) is None
    assert answer_of(refund) is not None
    world.finish()
    assert answer_of(refund) is not None
    assert len(world.resources.payments.list_refunds(payment.payment.id).records) == 1
    assert world.event_names(payment.payment.id)["refund.created"] == 1


def test_a_payer_who_paid_from_a_vault_gets_it_back_there_and_it_is_not_a_deposit(
    world: World,
) -> None:
    option = world.authorized("25.00")
    world.finish()
    payment = world.resources.payments.read(option.payment.id)
    refund = world.refund(payment, "25.00")
    assert refund.destination == world.vault_address()
    world.finish()
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert world.paid(payment.payment.id).status == "refunded"
    assert not [name for name in world.event_names() if name.startswith("deposit.")]


def restricted_key(world: World) -> Authority:
    """What a key that may only work with Payments may do."""
    _, secret = world.service.tenants.create_key(
        world.environment_id, "restricted", "refunds", scopes=("v2:payments",)
    )
    environment, key = world.service.tenants.authenticate(world.app.id, secret, mode="sandbox")
    return authority_of(environment, key)


def test_another_destination_is_for_standard_keys(world: World) -> None:
    payment = succeeded(world)
    restricted = restricted_key(world)
    elsewhere = NewRefund(amount="5.00", destination=OTHER_WALLET)
    with pytest.raises(InsufficientPermissions):
        world.service.acting_as(restricted).payments.refund(payment.payment.id, elsewhere)
    sender = NewRefund(amount="5.00", destination=WALLET.lower())
    assert (
        world.service.acting_as(restricted)
        .payments.refund(payment.payment.id, sender)
        .amount_atomic
    )
    assert world.refund(payment, "5.00", to=OTHER_WALLET).destination == OTHER_WALLET
    world.finish()
    assert (world.on_chain(WALLET), world.on_chain(OTHER_WALLET)) == (atomic("5"), atomic("5"))


def test_the_vaults_policy_says_to_whom_else_it_refunds(world: World) -> None:
    payment = succeeded(world)
    allowed = AllowedDestination(type="wallet", address=OTHER_WALLET)
    under(world, allowed_destinations=(allowed,), daily_limit="0.01", per_payment_limit="0.01")
    third = "0xdEAD000000000000000042069420694206942069"
    with pytest.raises(PolicyDenied) as caught:
        world.refund(payment, "5.00", to=third)
    assert caught.value.rule == "allowedDestinations"
    world.refund(payment, "5.00", to=OTHER_WALLET)
    world.refund(payment, "5.00")  # to its sender always, and limits are for spending
    world.finish()
    assert world.paid(payment.payment.id).refunded_atomic == atomic("10")


def test_a_paused_vault_refunds_nothing(world: World) -> None:
    payment = succeeded(world)
    under(world, status="paused")
    with pytest.raises(PolicyInactive):
        world.refund(payment, "5.00")
    under(world, status="active")
    world.refund(payment, "5.00")


def test_a_recipient_who_spent_it_cannot_refund_it(world: World) -> None:
    payment = succeeded(world)
    world.drain(world.merchant)
    world.chain.mine(3)
    before = len(world.events())
    with pytest.raises(InsufficientBalance) as caught:
        world.refund(payment, "5.00")
    assert caught.value.available_atomic == 0
    assert len(world.events()) == before
    assert world.resources.payments.list_refunds(payment.payment.id).records == ()
    world.fund("5.00", world.merchant)
    world.refund(payment, "5.00")
    world.finish()
    assert world.paid(payment.payment.id).status == "partially_refunded"


def test_what_was_released_to_a_wallet_outside_cannot_be_fetched_back(world: World) -> None:
    payment = world.payment("25.00", destination=ToWallet(address=OTHER_WALLET))
    world.pay(payment, "25.00")
    world.finish()
    with pytest.raises(InvalidState):
        world.refund(payment, "5.00")


def test_nothing_goes_back_before_it_is_released_or_stopped(world: World) -> None:
    payment = world.payment("25.00")
    refused = set()
    for turn in range(200):
        if turn == 1:
            world.pay(payment, "25.00")
        if world.paid(payment.payment.id).status == "succeeded":
            break
        with pytest.raises(InvalidState) as caught:
            world.refund(payment, "5.00")
        refused.add(caught.value.status)
        if not world.service.worker("sandbox").run_due(1):
            world.system.advance(1)
    assert {"awaiting_payment", "processing", "accepted", "executing"} >= refused
    assert {"awaiting_payment", "processing", "executing"} <= refused
    world.finish()
    assert world.paid(payment.payment.id).status == "succeeded"


def paid_by_two(world: World) -> PaymentDetails:
    """A released Payment of 15 from one wallet, and then 10 from another."""
    payment = world.payment("25.00")
    world.pay(payment, "15.00")
    world.finish()
    world.pay(payment, "10.00", source=OTHER_WALLET)
    world.finish()
    return payment


def test_a_refund_without_a_destination_is_one_for_each_sender(world: World) -> None:
    payment = paid_by_two(world)
    made = world.resources.payments.refund_all(payment.payment.id, NewRefund())
    assert [(refund.destination, refund.amount_atomic) for refund in made] == [
        (OTHER_WALLET, atomic("10")),
        (WALLET, atomic("15")),
    ]
    assert world.held(world.merchant)[1] == atomic("25")
    world.finish()
    assert world.paid(payment.payment.id).status == "refunded"
    assert (world.on_chain(WALLET), world.on_chain(OTHER_WALLET)) == (atomic("15"), atomic("10"))
    assert world.held(world.merchant)[1] == 0
    assert world.event_names()["refund.succeeded"] == 2


def test_a_split_that_the_vault_cannot_pay_makes_no_refund(memory_world: World) -> None:
    payment = paid_by_two(memory_world)
    memory_world.drain(memory_world.merchant)
    memory_world.chain.mine(3)
    with pytest.raises(InsufficientBalance):
        memory_world.refund(payment)
    assert memory_world.resources.payments.list_refunds(payment.payment.id).records == ()


def test_a_restricted_key_may_refund_all_senders(memory_world: World) -> None:
    payment = paid_by_two(memory_world)
    restricted = restricted_key(memory_world)
    refunds = memory_world.service.acting_as(restricted).payments
    made = refunds.refund_all(payment.payment.id, NewRefund(amount="20.00"))
    assert [refund.amount_atomic for refund in made] == [atomic("8"), atomic("12")]


def test_of_several_senders_one_may_be_named(world: World) -> None:
    payment = paid_by_two(world)
    assert world.refund(payment, "4.00").destination == OTHER_WALLET  # the last of them
    assert world.refund(payment, to=OTHER_WALLET).amount_atomic == atomic("6")  # all of its own
    assert world.refund(payment).amount_atomic == atomic("15")  # one is left
    world.finish()
    assert world.paid(payment.payment.id).status == "refunded"
    assert (world.on_chain(WALLET), world.on_chain(OTHER_WALLET)) == (atomic("15"), atomic("10"))


@pytest.mark.parametrize(
    ("error", "amount", "to"),
    [
        (AmountOutOfRange, "0", None),
        (AmountOutOfRange, "25.000001", None),
        (ValidationFailed, "1.0000001", None),
        (ValidationFailed, "-1", None),
        (ValidationFailed, "1e1", None),
        (ValidationFailed, "1", "0x12"),
        (ValidationFailed, "1", "0x" + "0" * 40),
    ],
)
def test_a_refund_that_cannot_be_is_refused_and_leaves_nothing(
    memory_world: World, error: type[Exception], amount: str, to: str | None
) -> None:
    payment = succeeded(memory_world)
    before = len(memory_world.events())
    with pytest.raises(error):
        memory_world.refund(payment, amount, to=to)
    assert len(memory_world.events()) == before
    assert memory_world.held(memory_world.merchant)[1] == 0


def test_no_refund_goes_to_an_escrow(memory_world: World) -> None:
    payment = succeeded(memory_world)
    other = memory_world.payment()
    for escrow in (payment.payment.escrow_address, other.payment.escrow_address):
        with pytest.raises(DestinationNotAllowed):
            memory_world.refund(payment, "1.00", to=escrow)


def test_a_payment_takes_a_hundred_refunds(memory_world: World) -> None:
    payment = succeeded(memory_world)
    for _ in range(100):
        memory_world.refund(payment, "0.01")
    with pytest.raises(ResourceConflict):
        memory_world.refund(payment, "0.01")
    memory_world.advance(600)
    assert memory_world.paid(payment.payment.id).refunded_atomic == atomic("1")
    assert memory_world.on_chain(WALLET) == atomic("1")


def test_another_tenants_payment_is_not_found(memory_world: World) -> None:
    payment = succeeded(memory_world)
    app = memory_world.service.tenants.create_app("Other", "other")
    stranger = memory_world.service.tenants.system_authority(app.environments["sandbox"])
    refunds, reconciliation = (
        memory_world.service.acting_as(stranger).payments,
        memory_world.service.acting_as(stranger).payments,
    )
    for call in (
        lambda: refunds.refund(payment.payment.id, NewRefund()),
        lambda: refunds.list_refunds(payment.payment.id),
        lambda: reconciliation.reconcile(payment.payment.id, "refund_excess"),
    ):
        with pytest.raises(NotFound) as caught:
            call()
        assert caught.value.resource == "payment"
