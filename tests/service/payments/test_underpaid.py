"""Less came than was asked for: the Payment waits, and then somebody decides."""

from __future__ import annotations

import pytest

from payments_core.errors import InvalidState, ReconciliationActionNotAllowed, ValidationFailed
from payments_core.payments.details import PaymentDetails
from tests.service.world import OTHER_WALLET, WALLET, World, answer_of, atomic, once


def expired_short(world: World) -> PaymentDetails:
    """A Payment of 25.00 that had received 10.00 when its time ran out."""
    payment = world.payment(expires_in_s=300)
    world.pay(payment, "10.00")
    world.advance(310)
    assert world.paid(payment.payment.id).status == "action_required"
    return payment


def test_a_short_receipt_is_reported_and_the_payment_waits_for_the_rest(world: World) -> None:
    payment = world.payment("25.00")
    world.pay(payment, "10.00")
    world.finish()
    short = world.paid(payment.payment.id)
    assert (short.status, short.labels) == ("awaiting_payment", ("underpaid",))
    assert (short.received_atomic, short.remaining.amount_atomic) == (atomic("10"), atomic("15"))
    assert short.reconciliation.status == "none"  # the payer can still act
    assert short.release_id is None
    reported = world.last_payload(short.id, "payment.underpaid")
    assert reported["labels"] == ["underpaid"]
    assert reported["amountAtomic"] == str(atomic("25"))
    assert reported["receivedAmountAtomic"] == str(atomic("10"))
    assert reported["excessAmountAtomic"] == reported["settledAmountAtomic"] == "0"

    option = world.option(payment)
    assert option.option.required_atomic == atomic("15")
    world.authorize(option)
    world.finish()
    done = world.paid(short.id)
    assert (done.status, done.labels) == ("succeeded", ("underpaid",))
    assert (done.received_atomic, done.settled_atomic) == (atomic("25"), atomic("25"))
    assert world.option_now(option).paid_atomic == atomic("15")
    assert world.held() == (atomic("85"), 0, atomic("85"))
    assert world.reported_events(short.id) == [
        ("payment.created", "awaiting_payment", 1),
        ("payment.processing", "processing", 2),
        ("payment.underpaid", "awaiting_payment", 3),
        ("payment.processing", "processing", 4),
        ("payment.accepted", "accepted", 5),
        ("payment.executing", "executing", 6),
        ("payment.succeeded", "succeeded", 7),
    ]
    assert world.journal(short.id) == [
        ("receipt", {"payer": -atomic("10"), "escrow": atomic("10")}),
        ("receipt", {"payer": -atomic("15"), "escrow": atomic("15")}),
        ("release", {"escrow": -atomic("25"), "recipient": atomic("25")}),
    ]
    assert world.on_chain(str(done.escrow_address)) == 0
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")


def test_short_receipts_add_up_to_the_amount(world: World) -> None:
    payment = world.payment("25.00")
    for amount in ("10.00", "14.999999", "0.000001"):
        world.pay(payment, amount)
        world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels, done.excess_atomic) == ("succeeded", ("underpaid",), 0)
    assert world.event_names(done.id)["payment.underpaid"] == 2
    assert world.event_names(done.id)["payment.accepted"] == 1


def test_what_is_short_stays_processing_while_another_attempt_lives(world: World) -> None:
    option = world.authorized("25.00")
    world.fail("broadcast", times=4)  # the vault's transfer comes later than the wallet's
    world.pay(world.resources.payments.read(option.payment.id), "10.00")
    world.advance(4)
    short = world.paid(option.payment.id)
    assert (short.status, short.labels) == ("processing", ("underpaid",))
    assert world.reported_events(short.id)[-1] == ("payment.underpaid", "processing", 3)
    world.finish()
    world.advance(60)
    done = world.paid(short.id)
    assert done.status == "succeeded"
    assert done.labels == ("underpaid", "overpaid")
    assert (done.received_atomic, done.settled_atomic, done.excess_atomic) == (
        atomic("35"),
        atomic("25"),
        atomic("10"),
    )


def test_a_rest_on_its_way_at_the_expiry_is_waited_for(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    world.pay(payment, "10.00")
    world.advance(299)
    world.pay(payment, "15.00")
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels) == ("succeeded", ("underpaid",))
    assert done.settled_atomic == atomic("25")


def test_at_its_expiry_a_short_payment_asks_for_a_decision(world: World) -> None:
    payment = expired_short(world)
    short = world.paid(payment.payment.id)
    assert (short.reconciliation.status, short.labels) == ("open", ("underpaid",))
    assert world.reported_events(short.id)[-1] == ("payment.action_required", "action_required", 4)
    reported = world.last_payload(short.id, "payment.action_required")
    assert reported["receivedAmountAtomic"] == str(atomic("10"))
    world.advance(86_400)  # nobody else decides
    assert world.paid(short.id).status == "action_required"
    assert world.on_chain(str(short.escrow_address)) == atomic("10")


def test_accepting_releases_what_came_and_no_more(world: World) -> None:
    payment = expired_short(world)
    accepted = world.reconcile(payment, "accept")
    assert (accepted.status, accepted.reconciliation.resolution) == ("accepted", "accept")
    assert accepted.reconciliation.status == "resolved"
    with pytest.raises(InvalidState):
        world.reconcile(payment, "accept")
    world.finish()
    done = world.paid(accepted.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("10"))
    assert done.reconciliation == accepted.reconciliation
    assert world.reported_events(done.id)[4:] == [
        ("payment.reconciled", "accepted", 5),
        ("payment.executing", "executing", 6),
        ("payment.succeeded", "succeeded", 7),
    ]
    assert world.last_payload(done.id, "payment.succeeded")["settledAmountAtomic"] == str(
        atomic("10")
    )
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("10")
    assert world.on_chain(str(done.escrow_address)) == 0


def test_refunding_sends_all_of_it_back(world: World) -> None:
    payment = expired_short(world)
    waiting = world.reconcile(payment, "refund")
    assert waiting.status == "action_required"  # until the refund is final
    [refund] = world.resources.payments.list_refunds(waiting.id).records
    assert (refund.status, refund.destination) == ("created", WALLET)
    for action in ("refund", "accept", "write_off"):
        with pytest.raises(ReconciliationActionNotAllowed):
            world.reconcile(payment, action)
    world.finish()
    done = world.paid(waiting.id)
    assert (done.status, done.refunded_atomic) == ("refunded", atomic("10"))
    assert (done.reconciliation.status, done.reconciliation.resolution) == ("resolved", "refund")
    assert world.reported_events(done.id)[4:] == [("payment.reconciled", "refunded", 5)]
    names = world.event_names(done.id)
    assert (names["refund.created"], names["refund.succeeded"]) == (1, 1)
    assert names["payment.refunded"] == 0
    assert world.journal(done.id)[-1] == (
        "refund", {"payer": atomic("10"), "escrow": -atomic("10")},
    )  # fmt: skip
    assert world.on_chain(WALLET) == atomic("10")
    with pytest.raises(InvalidState):
        world.reconcile(payment, "refund")


def test_each_sender_gets_back_what_came_from_it(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    world.pay(payment, "10.00")
    world.pay(payment, "3.00", source=OTHER_WALLET)
    world.advance(310)
    world.reconcile(payment, "refund")
    refunds = world.resources.payments.list_refunds(payment.payment.id).records
    assert {refund.destination: refund.amount_atomic for refund in refunds} == {
        WALLET: atomic("10"),
        OTHER_WALLET: atomic("3"),
    }
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.refunded_atomic) == ("refunded", atomic("13"))
    assert (world.on_chain(WALLET), world.on_chain(OTHER_WALLET)) == (atomic("10"), atomic("3"))
    # The first to be final settles nothing yet.
    assert [reported[:2] for reported in world.reported_events(done.id)[-2:]] == [
        ("payment.refunded", "action_required"),
        ("payment.reconciled", "refunded"),
    ]


def test_writing_off_gives_the_payment_up_and_keeps_the_funds_to_be_refunded(world: World) -> None:
    payment = expired_short(world)
    failed = world.reconcile(payment, "write_off")
    assert (failed.status, failed.reconciliation.resolution) == ("failed", "write_off")
    assert sorted(world.reported_events(failed.id)[4:]) == [
        ("payment.failed", "failed", 5),
        ("payment.reconciled", "failed", 5),
    ]
    world.finish()
    assert world.on_chain(str(failed.escrow_address)) == atomic("10")
    with pytest.raises(InvalidState):
        world.reconcile(payment, "accept")
    world.refund(payment)
    world.finish()
    done = world.paid(failed.id)
    assert (done.status, done.refunded_atomic) == ("failed", atomic("10"))
    assert world.on_chain(WALLET) == atomic("10")
    assert world.reported_events(done.id)[-1] == ("payment.refunded", "failed", 6)


def test_the_note_of_a_refund_is_reported_when_it_is_carried_out(world: World) -> None:
    payment = expired_short(world)
    waiting = world.reconcile(payment, "refund", note="sold out")
    assert (waiting.reconciliation.status, waiting.reconciliation_note) == ("open", None)
    world.finish()
    done = world.paid(waiting.id)
    assert (done.reconciliation.resolution, done.reconciliation_note) == ("refund", "sold out")
    assert world.last_payload(done.id, "payment.reconciled")["note"] == "sold out"
    [refund] = world.resources.payments.list_refunds(done.id).records
    assert refund.reason == "sold out"


@pytest.mark.parametrize(
    ("action", "note", "path"),
    [("accept", "n" * 513, "note"), ("accept", 1, "note"), ("forgive", None, "action")],
)
def test_a_decision_is_checked_as_over_http(
    memory_world: World, action: str, note: object, path: str
) -> None:
    payment = expired_short(memory_world)
    with pytest.raises(ValidationFailed) as refused:
        memory_world.reconcile(payment, action, note=note)
    assert [fault.path for fault in refused.value.fields] == [path]


@pytest.mark.parametrize("action", ["retry_execution", "refund_excess"])
def test_what_does_not_fit_is_not_allowed(memory_world: World, action: str) -> None:
    payment = expired_short(memory_world)
    before = memory_world.paid(payment.payment.id)
    with pytest.raises(ReconciliationActionNotAllowed) as caught:
        memory_world.reconcile(payment, action)
    assert caught.value.action == action
    assert memory_world.paid(payment.payment.id) == before


@pytest.mark.parametrize("action", ["accept", "refund", "write_off"])
def test_a_decision_is_made_once_for_each_key(world: World, action: str) -> None:
    payment = expired_short(world)

    def decide() -> object:
        return world.reconcile(payment, action, idempotency_key=once("k", action))

    assert answer_of(decide) is None
    assert answer_of(decide) is not None
    world.finish()
    assert answer_of(decide) is not None
    assert world.event_names(payment.payment.id)["payment.reconciled"] == 1
    assert world.sent() == (0 if action == "write_off" else 1)


def test_a_payment_that_is_short_and_not_over_waits_for_no_decision(memory_world: World) -> None:
    payment = memory_world.payment()
    memory_world.pay(payment, "10.00")
    memory_world.finish()
    for action in ("accept", "refund", "write_off", "refund_excess", "retry_execution"):
        with pytest.raises(InvalidState):
            memory_world.reconcile(payment, action)
    with pytest.raises(InvalidState):
        memory_world.refund(payment)
    with pytest.raises(InvalidState):
        memory_world.resources.payments.cancel(payment.payment.id)
