"""What a verified receipt does to a Payment in each of its statuses, and its loss to a reorg."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from payments_core.engine.step import Step
from payments_core.payments import lifecycle as payments
from payments_core.payments.timeline import MAX_TIMELINE_ENTRIES
from payments_core.payments.transitions import PAYMENT
from tests.core.examples import (
    BOB,
    NOW,
    Stage,
    a_payment,
    a_receipt,
    counted,
    releasing,
    stages,
)

MOMENTS = {"in time": NOW + 500, "in the window": NOW + 1_500, "after it": NOW + 2_500}
PART, WHOLE, MORE = 100, 1_000, 1_300
"""Receipts for a Payment of 1,000."""

Row = str | tuple[str, str, str]
"""`status: events / labels that it gains`, the same at all moments or for each of them."""

_WAITS_NO_MORE: dict[int, Row] = {  # with its release on the way or done: all of it is excess
    PART: "=: overpaid / overpaid",
    WHOLE: "=: overpaid / duplicate",
    MORE: "=: overpaid / overpaid",
}
_ENDED_EMPTY: dict[int, Row] = {
    PART: ("action_required: action_required / late",) * 2 + ("=: late / late",),
    WHOLE: ("action_required: action_required / late",) * 2 + ("=: late / late",),
    MORE: ("action_required: action_required overpaid / late overpaid",) * 2
    + ("=: late overpaid / late overpaid",),
}
_ENDED_FULL: dict[int, Row] = {
    PART: ("action_required: action_required overpaid / overpaid",) * 2
    + ("=: late overpaid / overpaid",),
    WHOLE: ("action_required: action_required overpaid / duplicate",) * 2
    + ("=: late overpaid / duplicate",),
    MORE: ("action_required: action_required overpaid / overpaid",) * 2
    + ("=: late overpaid / overpaid",),
}
_DECIDING_FULL: dict[int, Row] = {
    PART: ("=: overpaid / overpaid", *("=: late overpaid / late overpaid",) * 2),
    WHOLE: ("=: overpaid / duplicate", *("=: late overpaid / late duplicate",) * 2),
    MORE: ("=: overpaid / overpaid", *("=: late overpaid / late overpaid",) * 2),
}

RECEIVED: dict[str, dict[int, Row]] = {
    "awaiting_payment": {
        PART: "awaiting_payment: underpaid / underpaid",
        WHOLE: "accepted: accepted /",
        MORE: "accepted: accepted overpaid / overpaid",
    },
    "awaiting_payment, part received": {
        PART: "awaiting_payment: underpaid /",
        WHOLE: "accepted: accepted overpaid / overpaid",
        MORE: "accepted: accepted overpaid / overpaid",
    },
    "processing": {
        PART: "processing: underpaid / underpaid",
        WHOLE: "accepted: accepted /",
        MORE: "accepted: accepted overpaid / overpaid",
    },
    "processing, part received": {
        PART: "processing: underpaid /",
        WHOLE: "accepted: accepted overpaid / overpaid",
        MORE: "accepted: accepted overpaid / overpaid",
    },
    "processing, a transfer seen": {
        PART: "processing: underpaid / underpaid",
        WHOLE: "accepted: accepted /",
        MORE: "accepted: accepted overpaid / overpaid",
    },
    "accepted": _WAITS_NO_MORE,
    "executing": _WAITS_NO_MORE,
    "succeeded": _WAITS_NO_MORE,
    "succeeded, overpaid": {
        PART: "=: overpaid /",
        WHOLE: "=: overpaid / duplicate",
        MORE: "=: overpaid /",
    },
    "partially_refunded": _WAITS_NO_MORE,
    "refunded": _WAITS_NO_MORE,
    "refunded, never released": {  # never covered, so that nothing is a second payment
        PART: "=: overpaid / overpaid",
        WHOLE: "=: overpaid / overpaid",
        MORE: "=: overpaid / overpaid",
    },
    "action_required, short": {
        PART: "=: late / late",
        WHOLE: ("=: overpaid / overpaid", *("=: late overpaid / late overpaid",) * 2),
        MORE: ("=: overpaid / overpaid", *("=: late overpaid / late overpaid",) * 2),
    },
    "action_required, late": {
        PART: ("=: overpaid / overpaid", *("=: late overpaid / overpaid",) * 2),
        WHOLE: ("=: overpaid / duplicate", *("=: late overpaid / duplicate",) * 2),
        MORE: ("=: overpaid / overpaid", *("=: late overpaid / overpaid",) * 2),
    },
    "action_required, overpaid": {
        PART: ("=: overpaid /", *("=: late overpaid /",) * 2),
        WHOLE: ("=: overpaid / duplicate", *("=: late overpaid / duplicate",) * 2),
        MORE: ("=: overpaid /", *("=: late overpaid /",) * 2),
    },
    "action_required, release failed": _DECIDING_FULL,
    "action_required, reorged": {
        PART: "=: late / late",
        WHOLE: "=: late / late",
        MORE: ("=: overpaid / overpaid", *("=: late overpaid / late overpaid",) * 2),
    },
    "failed": {
        PART: "=: late / late",
        WHOLE: "=: late overpaid / late overpaid",
        MORE: "=: late overpaid / late overpaid",
    },
    "expired": _ENDED_EMPTY,
    "expired, received after the window": _ENDED_FULL,
    "cancelled": _ENDED_EMPTY,
    "cancelled, received after the window": _ENDED_FULL,
}


def test_every_status_has_its_rows() -> None:
    assert set(RECEIVED) == set(stages())
    assert {stage.payment.status for stage in stages().values()} == PAYMENT.states
    for name, stage in stages().items():
        assert stage.payment.status == name.partition(",")[0]
        assert set(RECEIVED[name]) == {PART, WHOLE, MORE}
        rows = [row for row in RECEIVED[name].values() if isinstance(row, tuple)]
        assert all(len(row) == len(MOMENTS) for row in rows)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("amount", [PART, WHOLE, MORE])
@pytest.mark.parametrize("name", RECEIVED)
def test_a_receipt_in_every_status(name: str, amount: int, moment: str) -> None:
    row = RECEIVED[name][amount]
    if isinstance(row, tuple):
        row = row[list(MOMENTS).index(moment)]
    status, _, reported = row.partition(": ")
    events, labels = (part.split() for part in reported.split("/"))
    before = stages()[name].payment
    change, _ = counted(before, a_receipt(amount, BOB, id="new"), now=MOMENTS[moment])
    after = change.record
    assert after.status == (before.status if status == "=" else status)
    assert [event.name for event in change.events] == [f"payment.{event}" for event in events]
    assert after.labels == (*before.labels, *labels)
    check_counted(before, change, amount)
    is_open = after.status not in ("awaiting_payment", "processing", "accepted")
    if is_open or set(events) - {"underpaid", "accepted"}:
        assert after.reconciliation.status == "open"


def check_counted(before: payments.Payment, change: Step[payments.Payment], amount: int) -> None:
    """All of it is booked, once; no more than the amount can be released."""
    after = change.record
    [entry] = change.entries
    assert (entry.cause, entry.subject, entry.number) == ("receipt", "new", before.entry_count + 1)
    assert after.received_atomic == before.received_atomic + amount
    assert after.books.held_atomic == before.books.held_atomic + amount
    assert after.books.payer == before.books.payer - amount
    assert after.counted_atomic - before.counted_atomic == after.books.escrow - before.books.escrow
    assert after.counted_atomic <= after.amount_atomic
    assert change.events  # no change without its event
    assert after.status_version == before.status_version + len(change.events)
    assert (after.release_id, after.released_atomic) == (before.release_id, before.released_atomic)
    assert change.events[-1].payload["receivedAmountAtomic"] == str(after.received_atomic)


@given(
    name=st.sampled_from(sorted(RECEIVED)),
    parts=st.lists(
        st.tuples(st.integers(1, 3_000), st.sampled_from(sorted(MOMENTS))), min_size=1, max_size=6
    ),
)
def test_whatever_comes_is_counted_once_and_reported(
    name: str, parts: list[tuple[int, str]]
) -> None:
    payment = stages()[name].payment
    for amount, moment in parts:
        if payment.status == "accepted" and payment.release_id is None:
            payment = releasing(payment)
        before = payment
        change, _ = counted(before, a_receipt(amount, BOB, id="new"), now=MOMENTS[moment])
        check_counted(before, change, amount)
        payment = change.record
        assert set(before.labels) <= set(payment.labels)
        if before.release_id is not None or before.status == "refunded":
            assert payment.books.escrow == before.books.escrow  # never a second release
            assert payment.status == before.status


def test_a_receipt_in_time_that_an_operation_brought_ends_its_attempt() -> None:
    processing = stages()["processing"].payment
    short, _ = counted(processing, a_receipt(PART), "pay_funding_1")
    assert (short.record.status, short.record.authorized) == ("awaiting_payment", ())
    seen = stages()["processing, a transfer seen"].payment
    short, _ = counted(seen, a_receipt(PART), "evidence_1")
    assert (short.record.status, short.record.sighted) == ("awaiting_payment", ())


def test_a_payment_under_a_rain_of_dust_stays_small() -> None:
    """Its timeline keeps its beginning and its end; the money is in the journal, all of it."""
    stage = stages()["succeeded"]
    for _ in range(MAX_TIMELINE_ENTRIES + 5):
        stage = stage.counting(1, BOB)
    payment = stage.payment
    begun = stages()["succeeded"].payment.timeline
    assert len(payment.timeline) == MAX_TIMELINE_ENTRIES
    assert payment.timeline[: len(begun)] == begun
    last = stage.counting(1, BOB, now=NOW + 7).payment.timeline
    assert (len(last), last[-1].at_ms) == (MAX_TIMELINE_ENTRIES, NOW + 7)
    assert payment.excess_atomic == MAX_TIMELINE_ENTRIES + 5
    assert payment.labels == ("overpaid",)


# Undone by the chain.

STOPPED = ("accepted", "executing")
"""The stages whose release can still be withdrawn."""

UNDONE: dict[str, str] = {
    "awaiting_payment, part received": "awaiting_payment",
    "processing, part received": "processing",
    "accepted": "accepted",
    "executing": "executing",
    "succeeded": "succeeded",
    "succeeded, overpaid": "succeeded",
    "partially_refunded": "partially_refunded",
    "refunded": "refunded",
    "refunded, never released": "refunded",
    "action_required, short": "action_required",
    "action_required, late": "action_required",
    "action_required, overpaid": "action_required",
    "action_required, release failed": "action_required",
    "failed": "failed",
    "expired, received after the window": "expired",
    "cancelled, received after the window": "cancelled",
}
"""The status after the receipt was reorged out, where no release could be withdrawn."""


def test_every_stage_that_received_something_can_lose_it() -> None:
    assert set(UNDONE) == {name for name, stage in stages().items() if stage.receipts}


@pytest.mark.parametrize("name", UNDONE)
def test_a_reorg_takes_back_what_the_receipt_counted_for(name: str) -> None:
    stage = stages()[name]
    before, [receipt] = stage.payment, stage.receipts
    change = payments.reverse_receipt(before, receipt, now=NOW + 500, release_stopped=False)
    after, [event], [entry] = change.record, change.events, change.entries
    assert (after.status, event.name) == (UNDONE[name], "payment.reorged")
    assert after.labels == (*before.labels, "reorged")
    assert (entry.cause, entry.subject) == ("receipt_reorged", receipt.id)
    assert after.received_atomic == before.received_atomic - receipt.amount_atomic == 0
    assert after.counted_atomic == before.counted_atomic - receipt.counted_atomic
    assert after.books.payer == before.books.payer + receipt.amount_atomic
    assert after.books.escrow == before.books.escrow - receipt.counted_atomic
    assert after.books.excess == before.books.excess - (
        receipt.amount_atomic - receipt.counted_atomic
    )
    assert (after.books.recipient, after.settled_atomic) == (
        before.books.recipient,
        before.settled_atomic,
    )
    assert (after.release_id, after.released_atomic) == (before.release_id, before.released_atomic)
    assert all(item.amount_atomic < 0 for item in after.paid_by)  # what went back to her meanwhile


@pytest.mark.parametrize("name", STOPPED)
def test_a_release_that_could_be_stopped_is_forgotten(name: str) -> None:
    stage = stages()[name]
    change = payments.reverse_receipt(
        stage.payment, stage.receipts[0], now=NOW, release_stopped=True
    )
    after, [event] = change.record, change.events
    assert (after.status, event.name) == ("action_required", "payment.action_required")
    assert (after.labels, after.reconciliation.status) == (("reorged",), "open")
    assert (after.release_id, after.released_atomic, after.books.held_atomic) == (None, 0, 0)
    back, _ = counted(after, a_receipt(WHOLE), now=NOW + 1)
    assert (back.record.status, back.record.books.escrow) == ("action_required", 1_000)
    accepted = payments.accept(back.record, now=NOW + 2).record
    assert (accepted.status, accepted.releasable_atomic) == ("accepted", 1_000)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", UNDONE)
def test_a_receipt_that_comes_back_puts_the_books_where_they_were(name: str, moment: str) -> None:
    """A reorg mostly ends with the same transfers in other blocks: nothing may be left over."""
    stage = stages()[name]
    before, [receipt] = stage.payment, stage.receipts
    undone = payments.reverse_receipt(before, receipt, now=NOW, release_stopped=False).record
    again = a_receipt(receipt.amount_atomic, receipt.sender, id="new")
    change, stored = counted(undone, again, now=MOMENTS[moment])
    after = change.record
    check_counted(undone, change, receipt.amount_atomic)
    assert (after.books, after.received_atomic, after.counted_atomic, after.paid_by) == (
        before.books, before.received_atomic, before.counted_atomic, before.paid_by,
    )  # fmt: skip
    assert stored.counted_atomic == receipt.counted_atomic
    assert (after.release_id, after.released_atomic) == (before.release_id, before.released_atomic)
    if not before.excess_atomic:
        assert not set(after.labels) & {"overpaid", "duplicate"}


@pytest.mark.parametrize("fee_bps", [0, 1, 9_999, 10_000])
@pytest.mark.parametrize("amount", [PART, WHOLE])
def test_whatever_the_fee_what_comes_after_the_release_is_excess(fee_bps: int, amount: int) -> None:
    covered = Stage(a_payment(fee_bps=fee_bps)).counting(1_000).payment
    executing = payments.apply_trigger(releasing(covered), "release", now=NOW).record
    settled = payments.settle(executing, now=NOW).record
    for payment in (executing, settled):
        after = counted(payment, a_receipt(amount, BOB, id="receipt_2"))[0].record
        assert after.excess_atomic == amount


@given(
    amounts=st.lists(st.integers(1, 1_500), min_size=1, max_size=5),
    lost=st.sets(st.integers(0, 4)),
    until=st.sampled_from(["accepted", "executing", "succeeded"]),
)
def test_whichever_receipts_are_lost_and_return_the_books_are_the_same(
    amounts: list[int], lost: set[int], until: str
) -> None:
    stage = Stage(a_payment())
    for amount in amounts:
        if stage.payment.status == "accepted" and stage.payment.release_id is None:
            stage = attrs.evolve(stage, payment=releasing(stage.payment))
        stage = stage.counting(amount)
    if stage.payment.status != "accepted":
        return
    if stage.payment.release_id is None:
        stage = attrs.evolve(stage, payment=releasing(stage.payment))
    payment = stage.payment
    if until != "accepted":
        payment = payments.apply_trigger(payment, "release", now=NOW).record
    if until == "succeeded":
        payment = payments.settle(payment, now=NOW).record
    before = payment
    gone = [receipt for place, receipt in enumerate(stage.receipts) if place in lost]
    for receipt in gone:
        payment = payments.reverse_receipt(payment, receipt, now=NOW, release_stopped=False).record
        assert payment.books.held_atomic == before.books.held_atomic - (
            before.received_atomic - payment.received_atomic
        )
    for receipt in reversed(gone):
        payment = counted(payment, a_receipt(receipt.amount_atomic, id=receipt.id))[0].record
    assert (payment.books, payment.received_atomic) == (before.books, before.received_atomic)
    assert payment.release_id == before.release_id


def folded(amount: int, moves: list[tuple[str, int]]) -> tuple[int, int, str]:
    """Counted, excess and status of a Payment after these moves, by the rules of the contract:
    a receipt first fills what is missing, and a reorg takes away what its receipt had brought."""
    kept: dict[int, tuple[int, int]] = {}
    status = "awaiting_payment"
    for place, (move, value) in enumerate(moves):
        if move == "receive":
            part = min(value, amount - sum(part for part, _ in kept.values()))
            kept[place] = part, value - part
            if status == "awaiting_payment" and sum(part for part, _ in kept.values()) == amount:
                status = "accepted"
        else:
            del kept[value]
            if status == "accepted":
                status = "action_required"
    return sum(part for part, _ in kept.values()), sum(over for _, over in kept.values()), status


@given(
    plan=st.lists(
        st.one_of(
            st.tuples(st.just("receive"), st.integers(1, 1_500) | st.just(1_000)),
            st.tuples(st.just("lose"), st.integers(0, 9)),
        ),
        min_size=1,
        max_size=10,
    )
)
@example(plan=[("receive", 600), ("receive", 600), ("lose", 0), ("receive", 600)])
@example(plan=[("receive", 1_000), ("receive", 1_000), ("lose", 0), ("receive", 1_000)])
def test_receipts_and_reorgs_add_up_as_a_fold_of_them_says(plan: list[tuple[str, int]]) -> None:
    """Excess that stays while its neighbour is undone takes no room of what comes next."""
    payment, there, moves = a_payment(), {}, []
    for move, value in plan:
        if move == "receive":
            change, stored = counted(payment, a_receipt(value, id=f"receipt_{len(moves)}"))
            there[len(moves)] = stored
            moves.append((move, value))
            payment = change.record
        elif there:
            place = sorted(there)[value % len(there)]
            moves.append((move, place))
            stopped = payment.status == "accepted"
            payment = payments.reverse_receipt(
                payment, there.pop(place), now=NOW, release_stopped=stopped
            ).record
        if payment.status == "accepted" and payment.release_id is None:
            payment = releasing(payment)
        assert (payment.counted_atomic, payment.excess_atomic, payment.status) == folded(
            1_000, moves
        )
