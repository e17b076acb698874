"""A Payment that takes a little less: what still arrives of the amount is no excess of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.judge import apply_acceptance
from payments_core.chains.port import Block, Heads
from payments_core.engine.step import Step
from payments_core.payments import lifecycle as payments
from payments_core.payments.record import Payment
from tests.core.examples import BOB, NOW, a_payment, a_receipt, counted, releasing


def names(change: Step[Payment]) -> list[str]:
    return [event.name.removeprefix("payment.") for event in change.events]


def tolerated(received: int = 960) -> Payment:
    """A Payment of 1,000 that takes 950, covered by less than the whole."""
    payment = counted(a_payment(tolerance_bps=500), a_receipt(received))[0].record
    assert payment.status == "accepted"
    return payment


def test_what_comes_before_the_release_is_fixed_goes_with_it() -> None:
    """As a transaction brings it that pays in two transfers."""
    change, receipt = counted(tolerated(), a_receipt(40, BOB))
    payment = change.record
    assert (names(change), payment.status, payment.labels) == (["accepted"], "accepted", ())
    assert change.events[0].payload["receivedAmountAtomic"] == "1000"
    assert (payment.releasable_atomic, payment.excess_atomic, receipt.counted_atomic) == (
        1_000,
        0,
        40,
    )
    assert payment.reconciliation.status == "none"


def test_only_what_passes_the_amount_is_too_much_of_it() -> None:
    change, receipt = counted(tolerated(), a_receipt(60, BOB))
    payment = change.record
    assert (names(change), payment.labels) == (["overpaid"], ("overpaid",))
    assert (payment.releasable_atomic, payment.excess_atomic, receipt.counted_atomic) == (
        1_000,
        20,
        40,
    )


def test_what_comes_after_it_can_only_go_back_and_is_late() -> None:
    accepted = releasing(tolerated())
    executing = payments.apply_trigger(accepted, "release", now=NOW).record
    succeeded = payments.settle(executing, now=NOW).record
    for before in (accepted, executing, succeeded):
        change, receipt = counted(before, a_receipt(40, BOB))
        after = change.record
        assert (after.status, names(change), after.labels) == (before.status, ["late"], ("late",))
        assert (after.excess_atomic, receipt.counted_atomic, after.released_atomic) == (40, 0, 960)
        assert after.reconciliation.status == "open"
        over, _ = counted(after, a_receipt(1, BOB))
        assert (names(over), over.record.labels) == (["overpaid"], ("late", "overpaid"))


def test_a_whole_second_payment_is_one_also_of_a_tolerated_payment() -> None:
    change, _ = counted(releasing(tolerated()), a_receipt(1_000, BOB))
    assert (names(change), change.record.labels) == (["overpaid"], ("duplicate",))


def test_the_rest_of_what_the_partner_accepted_short_is_late_as_well() -> None:
    short = counted(a_payment(), a_receipt(600))[0].record
    waiting = payments.expire(short, now=NOW + 1_000).record
    accepted = releasing(payments.accept(waiting, now=NOW + 1_000).record)
    change, _ = counted(accepted, a_receipt(400, BOB), now=NOW + 1_001)
    assert (names(change), change.record.excess_atomic) == (["late"], 400)
    assert "overpaid" not in change.record.labels


@given(
    tolerance=st.integers(0, 1_000),
    parts=st.lists(st.integers(1, 700), min_size=1, max_size=6),
    release_after=st.integers(0, 6),
)
def test_overpaid_is_who_has_passed_the_amount(
    tolerance: int, parts: list[int], release_after: int
) -> None:
    payment = a_payment(tolerance_bps=tolerance)
    for place, part in enumerate(parts):
        is_free = payment.status == "accepted" and payment.release_id is None
        if is_free and place >= release_after:
            payment = releasing(payment)
        payment = counted(payment, a_receipt(part, id=f"receipt_{place}"))[0].record
        over = payment.received_atomic > payment.amount_atomic
        assert bool({"overpaid", "duplicate"} & set(payment.labels)) == over
        assert payment.books.held_atomic == payment.received_atomic
        if payment.release_id is None:
            assert payment.excess_atomic == max(0, payment.received_atomic - payment.amount_atomic)


# Finality.


@given(latest=st.integers(0, 50), depth=st.integers(0, 50), confirmations=st.integers(0, 60))
def test_confirmations_put_finality_off_and_never_forward(
    latest: int, depth: int, confirmations: int
) -> None:
    heads = Heads(Block(latest, "0xl"), Block(max(0, latest - depth), "0xf"))
    after = apply_acceptance(heads, None, confirmations)
    assert after.latest == heads.latest
    assert after.final.number == min(heads.final.number, latest - confirmations)
    if after.final.number == heads.final.number:
        assert after == heads
