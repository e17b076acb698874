"""Refunds: who gets how much back out of what, and what is never given."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from payments_core.errors import (
    AmountOutOfRange,
    InvalidState,
    PaymentsError,
    ReconciliationActionNotAllowed,
    ValidationFailed,
)
from payments_core.payments import lifecycle as payments
from payments_core.payments.payer_totals import MAX_PAYERS
from payments_core.payments.record import Destination, PayerTotal, Payment
from payments_core.payments.refunds.lifecycle import REFUND, apply_trigger
from payments_core.payments.refunds.plans import (
    FUNDS_PAID_OUT,
    MAX_LEGS,
    Refundable,
    RefundLeg,
    SenderShare,
    compute_refundable,
    plan_all_held,
    plan_excess,
    plan_refund,
    plan_refunds,
)
from payments_core.payments.refunds.record import PENDING, Refund
from tests.core.examples import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    Stage,
    a_payment,
    a_receipt,
    a_refund,
    books_of,
    counted,
    held,
    refund_of,
    releasing,
    send_stages,
    settled,
    stages,
)

LATER = NOW + 1_500
STAGES = stages()


def left(payment: Payment, *refunds: Refund) -> Refundable:
    return compute_refundable(payment, refunds)


# What is left.


def test_what_is_left_is_what_the_books_hold() -> None:
    payment = held((900, ALICE), (400, BOB))
    assert left(payment) == Refundable(
        escrow=1_000,
        excess=300,
        recipient=0,
        received=1_300,
        shares=(SenderShare(BOB, 400, 300), SenderShare(ALICE, 900, 0)),
    )
    paid = left(settled((1_000, ALICE), (300, BOB)))
    assert (paid.escrow, paid.excess, paid.recipient, paid.received) == (0, 300, 1_000, 1_300)


@pytest.mark.parametrize("status", sorted(REFUND.states))
def test_refunds_under_way_are_promised(status: str) -> None:
    payment = held((900, ALICE), (400, BOB))
    refund = a_refund(status=status, destination=BOB, from_excess_atomic=300, from_escrow_atomic=50)
    after = left(payment, refund)
    if status in PENDING:
        assert (after.escrow, after.excess, after.received) == (950, 0, 950)
        assert after.shares == (SenderShare(BOB, 50, 0), SenderShare(ALICE, 900, 0))
    else:
        assert after == left(payment)


def test_a_sender_who_gets_all_of_his_back_is_owed_nothing() -> None:
    payment = held((900, ALICE), (400, BOB))
    for amount in (400, 450):
        refund = a_refund(destination=BOB, from_escrow_atomic=amount)
        assert left(payment, refund).shares == (SenderShare(ALICE, 900, 0),)


def test_a_failed_refund_frees_its_amount() -> None:
    payment = held((1_000, ALICE))
    refund = a_refund(status="submitted", from_escrow_atomic=1_000)
    assert left(payment, refund).held_atomic == 0
    failed = apply_trigger(refund, "fail", payment, now=LATER, failure="transaction_failed")
    assert left(payment, failed.record).held_atomic == 1_000


def test_an_account_below_zero_takes_from_the_other() -> None:
    """A reorg took the receipt from under the release; a second payment covers it on chain."""
    payment = a_payment(
        status="succeeded",
        release_id="out_1",
        received_atomic=1_000,
        books=books_of(escrow=-1_000, excess=1_000, recipient=1_000),
    )
    assert payment.books.held_atomic == 0
    assert left(payment).held_atomic == 0
    with pytest.raises(ReconciliationActionNotAllowed):
        plan_excess(left(payment))


# A refund that is asked for.


@pytest.mark.parametrize("name", STAGES)
def test_what_may_be_refunded_in_every_stage(name: str) -> None:
    payment = STAGES[name].payment
    most = {
        "succeeded": 1_000,
        "succeeded, overpaid": 1_000,
        "partially_refunded": 600,
        "action_required, short": 600,
        "action_required, late": 1_000,
        "action_required, overpaid": 1_300,
        "action_required, release failed": 1_000,
        "failed": 600,
        "expired, received after the window": 1_000,
        "cancelled, received after the window": 1_000,
    }
    nothing = ("action_required, reorged", "expired", "cancelled")
    if name in most:
        part = plan_refund(payment, left(payment), None, None)
        assert (part.to, part.amount_atomic) == (ALICE, most[name])
        assert bool(part.from_recipient_atomic) == (payment.status in FUNDS_PAID_OUT)
        text = {600: "0.0006", 1_000: "0.001", 1_300: "0.0013"}[most[name]]
        with pytest.raises(AmountOutOfRange, match=f"at most {text} "):
            plan_refund(payment, left(payment), most[name] + 1, ALICE)
    elif name in nothing:
        with pytest.raises(AmountOutOfRange):
            plan_refund(payment, left(payment), None, None)
    else:
        with pytest.raises(InvalidState):
            plan_refund(payment, left(payment), None, ALICE)


def test_what_a_sender_sent_too_much_goes_first_and_anothers_last() -> None:
    payment = held((900, ALICE), (400, BOB))
    rest = left(payment)
    assert plan_refund(payment, rest, 300, BOB) == RefundLeg(to=BOB, from_excess_atomic=300)
    assert plan_refund(payment, rest, 301, BOB) == RefundLeg(
        to=BOB, from_excess_atomic=300, from_escrow_atomic=1
    )
    assert plan_refund(payment, rest, 900, ALICE) == RefundLeg(to=ALICE, from_escrow_atomic=900)
    assert plan_refund(payment, rest, 1_001, "0xelse") == RefundLeg(
        to="0xelse", from_escrow_atomic=1_000, from_excess_atomic=1
    )


def test_the_excess_of_what_was_released_is_not_part_of_an_ordinary_refund() -> None:
    payment = settled((1_000, ALICE), (300, BOB))
    part = plan_refund(payment, left(payment), 1_000, ALICE)
    assert part == RefundLeg(to=ALICE, from_recipient_atomic=1_000)
    with pytest.raises(AmountOutOfRange):
        plan_refund(payment, left(payment), 1_001, ALICE)


def test_without_an_amount_a_sender_gets_his_own() -> None:
    payment = held((900, ALICE), (400, BOB))
    assert plan_refund(payment, left(payment), None, BOB).amount_atomic == 400
    assert plan_refund(payment, left(payment), None, ALICE).amount_atomic == 900
    assert plan_refund(payment, left(payment), None, "0xelse").amount_atomic == 1_300


def test_without_a_destination_the_newest_sender_gets_no_more_than_he_sent() -> None:
    payment = held((900, ALICE), (400, BOB))
    assert plan_refund(payment, left(payment), 400, None).to == BOB
    for amount in (401, None):
        with pytest.raises(ValidationFailed) as caught:
            plan_refund(payment, left(payment), amount, None)
        assert [field.path for field in caught.value.fields] == ["destination"]


def test_what_the_newest_has_not_sent_alone_goes_to_all_in_proportion() -> None:
    payment = held((900, ALICE), (400, BOB))
    assert plan_refunds(payment, left(payment), 400, None) == (
        plan_refund(payment, left(payment), 400, BOB),
    )
    assert plan_refunds(payment, left(payment), 1_000, ALICE) == (
        plan_refund(payment, left(payment), 1_000, ALICE),
    )
    for amount in (None, 1_300):
        legs = plan_refunds(payment, left(payment), amount, None)
        assert [(leg.to, leg.amount_atomic) for leg in legs] == [(BOB, 400), (ALICE, 900)]
        assert sum(leg.from_escrow_atomic for leg in legs) == left(payment).escrow
    legs = plan_refunds(payment, left(payment), 651, None)  # 200.3 and 450.7
    assert [(leg.to, leg.amount_atomic) for leg in legs] == [(BOB, 200), (ALICE, 451)]
    with pytest.raises(AmountOutOfRange):
        plan_refunds(payment, left(payment), 1_301, None)


def test_a_cent_that_came_last_gets_no_transfer_of_a_part() -> None:
    payment = held((1_000, ALICE), (1, "0xdust"))
    legs = plan_refunds(payment, left(payment), 400, None)
    assert [(leg.to, leg.amount_atomic) for leg in legs] == [(ALICE, 400)]


@pytest.mark.parametrize("amount", range(403, 1_304, 25))
def test_no_sender_gets_more_than_he_sent_by_a_rounding(amount: int) -> None:
    payment = held((1, "0xdust"), (900, ALICE), (401, BOB), (1, "0xmore"))
    legs = plan_refunds(payment, left(payment), amount, None)
    assert sum(leg.amount_atomic for leg in legs) == amount
    for leg in legs:
        assert 0 < leg.amount_atomic <= left(payment).share_of(leg.to).amount_atomic


def test_a_fee_is_borne_by_all_senders_alike() -> None:
    payment = attrs.evolve(
        settled((600, ALICE), (400, BOB)), books=books_of(recipient=990, fees=10)
    )
    legs = plan_refunds(payment, left(payment), None, None)
    assert legs == (
        RefundLeg(to=BOB, from_recipient_atomic=396),
        RefundLeg(to=ALICE, from_recipient_atomic=594),
    )


@pytest.mark.parametrize("fee_bps", [0, 1, 100, 9_999])
@pytest.mark.parametrize("parts", [(1,), (10,), (10, 1, 30)])
@pytest.mark.parametrize("sent", [((600, ALICE), (400, BOB)), ((1, BOB), (998, CAROL), (1, ALICE))])
def test_all_senders_are_refunded_in_parts_after_a_fee(
    fee_bps: int, parts: tuple[int, ...], sent: tuple[tuple[int, str], ...]
) -> None:
    """The fee is borne in each of the paid-out states: also by the second and the last refund."""
    scale = 1_000_000
    stage = Stage(a_payment(fee_bps=fee_bps, amount_atomic=1_000 * scale))
    for amount, sender in sent:
        stage = stage.counting(amount * scale, sender)
    executing = payments.apply_trigger(releasing(stage.payment), "release", now=NOW).record
    payment = payments.settle(executing, now=NOW).record
    fee = 1_000 * scale * fee_bps // 10_000
    assert (payment.status, payment.books.fees) == ("succeeded", fee)
    seen = {payment.status}
    for number, wanted in enumerate((*parts, None)):
        amount = None if wanted is None else min(wanted * scale, payment.books.recipient // 2)
        legs = plan_refunds(payment, left(payment), amount, None)
        assert sum(leg.amount_atomic for leg in legs) == (amount or payment.books.recipient)
        for leg in legs:
            trigger = "refund_part" if leg.amount_atomic < payment.books.recipient else "refund_all"
            payment = payments.apply_refund(
                payment, trigger, f"{number}-{leg.to}", leg.to, now=NOW, recipient=leg.amount_atomic
            ).record
            seen.add(payment.status)
    assert seen == {*FUNDS_PAID_OUT, "refunded"}
    assert payment.refunded_atomic == 1_000 * scale - fee


def test_nobody_is_paid_with_anothers_money() -> None:
    payment = attrs.evolve(held((900, ALICE), (400, BOB)), books=books_of(escrow=900, excess=300))
    with pytest.raises(ValidationFailed, match="less is held than the senders sent"):
        plan_refunds(payment, left(payment), None, None)


def test_a_split_goes_to_the_largest_senders_and_the_rest_by_another_call() -> None:
    payment = held(*((number + 1, f"0x{number}") for number in range(60)))
    legs = plan_refunds(payment, left(payment), None, None)
    assert [leg.amount_atomic for leg in legs] == list(range(60, 10, -1))
    with pytest.raises(ValidationFailed, match="the largest senders sent less"):
        plan_refunds(payment, left(payment), sum(range(61)), None)


def test_the_only_sender_that_is_known_gets_no_more_than_he_sent_either() -> None:
    payment = attrs.evolve(
        held((1_000, BOB)), paid_by=(PayerTotal(address=ALICE, amount_atomic=10),)
    )
    assert plan_refund(payment, left(payment), None, None) == RefundLeg(
        to=ALICE, from_escrow_atomic=10
    )
    with pytest.raises(ValidationFailed):
        plan_refund(payment, left(payment), 20, None)
    assert (
        plan_refund(payment, left(payment), 20, ALICE).amount_atomic == 20
    )  # named, it may be anybody


def test_where_no_sender_is_known_the_destination_must_be_named() -> None:
    payment = attrs.evolve(held((1_000, BOB)), paid_by=())
    with pytest.raises(ValidationFailed):
        plan_refund(payment, left(payment), 20, None)
    assert plan_refund(payment, left(payment), 20, BOB).amount_atomic == 20


@pytest.mark.parametrize("amount", [0, -1])
def test_nothing_is_not_a_refund(amount: int) -> None:
    payment = held((1_000, ALICE))
    with pytest.raises(AmountOutOfRange):
        plan_refund(payment, left(payment), amount, ALICE)


def test_a_send_has_received_nothing_that_could_go_back() -> None:
    fresh = a_payment(intent="send", status="processing", release_id="out_1", released_atomic=1_000)
    for stage in send_stages(fresh).values():
        with pytest.raises(PaymentsError):
            plan_refund(stage.payment, left(stage.payment), None, ALICE)


@pytest.mark.parametrize("status", FUNDS_PAID_OUT)
def test_what_an_outside_wallet_got_cannot_be_refunded(status: str) -> None:
    outside = attrs.evolve(
        settled((1_000, ALICE)),
        status=status,
        account_id=None,
        destination=Destination(type="wallet", address="0xoutside"),
    )
    with pytest.raises(InvalidState):
        plan_refund(outside, left(outside), None, None)


def test_funds_that_are_on_their_way_cannot_be_refunded() -> None:
    returned = attrs.evolve(settled((1_000, ALICE)), status="action_required")
    assert returned.release_id is not None
    with pytest.raises(InvalidState):
        plan_refund(returned, left(returned), None, None)


def test_no_more_than_was_received_goes_back_after_a_reorg() -> None:
    """The receipt was undone after the release: the recipient's funds are his own again."""
    stage = STAGES["succeeded"]
    undone = payments.reverse_receipt(
        stage.payment, stage.receipts[0], now=LATER, release_stopped=False
    )
    assert (undone.record.received_atomic, undone.record.books.recipient) == (0, 1_000)
    with pytest.raises(PaymentsError):
        plan_refund(undone.record, left(undone.record), None, ALICE)


# All that is held, and the excess.


def test_all_that_is_held_goes_to_its_senders() -> None:
    payment = held((900, ALICE), (400, BOB), (100, CAROL))
    assert plan_all_held(left(payment)) == (
        RefundLeg(to=CAROL, from_excess_atomic=100),
        RefundLeg(to=BOB, from_excess_atomic=300, from_escrow_atomic=100),
        RefundLeg(to=ALICE, from_escrow_atomic=900),
    )
    assert plan_excess(left(payment)) == (
        RefundLeg(to=CAROL, from_excess_atomic=100),
        RefundLeg(to=BOB, from_excess_atomic=300),
    )


@pytest.mark.parametrize("make", [plan_all_held, plan_excess])
def test_where_nothing_is_held_there_is_nothing_to_send_back(
    make: Callable[[Refundable], tuple[RefundLeg, ...]],
) -> None:
    with pytest.raises(ReconciliationActionNotAllowed):
        make(left(STAGES["succeeded"].payment))


def test_what_an_unknown_sender_sent_stays() -> None:
    known = PayerTotal(address=ALICE, amount_atomic=910, excess_atomic=10)
    payment = attrs.evolve(held((1_900, BOB)), paid_by=(known,))
    assert plan_all_held(left(payment)) == (
        RefundLeg(to=ALICE, from_excess_atomic=10, from_escrow_atomic=900),
    )
    assert plan_excess(left(payment)) == (RefundLeg(to=ALICE, from_excess_atomic=10),)


@pytest.mark.parametrize("make", [plan_all_held, plan_excess])
def test_where_no_sender_is_known_nothing_goes_back_by_decision(
    make: Callable[[Refundable], tuple[RefundLeg, ...]],
) -> None:
    payment = attrs.evolve(held((1_900, BOB)), paid_by=())
    with pytest.raises(ReconciliationActionNotAllowed, match="give a destination"):
        make(left(payment))


def test_the_excess_goes_to_its_sender_and_not_to_the_last_sender() -> None:
    payment = settled((1_000, ALICE), (1_000, BOB), (1, ALICE))
    assert plan_excess(left(payment)) == (
        RefundLeg(to=ALICE, from_excess_atomic=1),
        RefundLeg(to=BOB, from_excess_atomic=1_000),
    )


def test_dust_makes_no_real_payer_wait() -> None:
    dust = [(1, f"0x{number}") for number in range(MAX_PAYERS - 1)]
    payment = held((900, ALICE), *dust, amount=10_000)
    parts = plan_all_held(left(payment))
    assert len(parts) == MAX_LEGS
    assert RefundLeg(to=ALICE, from_escrow_atomic=900) in parts


def test_what_a_sender_got_back_is_not_paid_from_anothers_funds() -> None:
    """His receipt was refunded, undone, and came back: what lies there is the other one's."""
    payment = held((100, BOB), (100, ALICE))
    receipt = a_receipt(100, ALICE, id="receipt_2", counted_atomic=100)
    back = payments.apply_refund(payment, "refund_part", "r", ALICE, now=LATER, escrow=100).record
    undone = payments.reverse_receipt(back, receipt, now=LATER, release_stopped=False).record
    again, _ = counted(undone, a_receipt(100, ALICE, id="receipt_2"), now=LATER)
    assert plan_all_held(left(again.record)) == (RefundLeg(to=BOB, from_escrow_atomic=100),)


def test_what_is_left_in_escrow_after_the_release_can_still_go_back() -> None:
    """Excess went back, was undone, and came back after a release of what there was."""
    over, receipt = counted(STAGES["accepted"].payment, a_receipt(300, BOB))
    back = payments.apply_refund(over.record, "refund_excess", "r", BOB, now=NOW, excess=300).record
    undone = payments.reverse_receipt(back, receipt, now=NOW, release_stopped=False).record
    executing = payments.apply_trigger(undone, "release", now=NOW).record
    failed = payments.fail_release(executing, "transaction_failed", now=NOW).record
    again = releasing(payments.retry(failed, now=NOW).record)
    done = payments.settle(again, now=NOW).record
    returned, _ = counted(done, a_receipt(300, BOB))
    assert returned.record.books.held_atomic == left(returned.record).excess


def test_a_sender_of_excess_alone_gets_none_of_the_recipients_by_default() -> None:
    payment = settled((1_000, ALICE), (300, BOB))
    with pytest.raises(PaymentsError):
        plan_refund(payment, left(payment), None, BOB)
    assert plan_refund(payment, left(payment), None, ALICE) == RefundLeg(
        to=ALICE, from_recipient_atomic=1_000
    )


def test_the_default_receiver_after_the_release_is_one_whose_funds_the_recipient_has() -> None:
    payment = settled((1_000, ALICE), (300, BOB))
    try:
        part = plan_refund(payment, left(payment), 200, None)
    except ValidationFailed:
        return  # to ask for a name is right too
    assert part == RefundLeg(to=ALICE, from_recipient_atomic=200)


def test_there_may_be_more_senders_than_are_distinguished() -> None:
    """All the same every one that is known gets his own, and no more."""
    payment = held(*((10, f"0x{n}") for n in range(MAX_PAYERS + 1)), amount=10_000)
    refunds: list[Refund] = []
    for _ in range(MAX_PAYERS):
        part = plan_refund(payment, left(payment, *refunds), 10, None)
        refunds.append(refund_of(part, id=f"refund_{part.to}"))
    assert len({refund.destination for refund in refunds}) == MAX_PAYERS
    rest = left(payment, *refunds)
    assert (rest.held_atomic, rest.shares) == (10, ())
    with pytest.raises(ValidationFailed):
        plan_refund(payment, rest, None, None)
