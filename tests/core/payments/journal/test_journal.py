"""The journal: every movement balances, and the books say where the money is."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_core.engine.step import Step
from payments_core.errors import PaymentsError
from payments_core.payments import lifecycle as payments
from payments_core.payments.journal.posting import post
from payments_core.payments.journal.record import (
    JOURNAL_ACCOUNTS,
    JournalBalances,
    JournalEntry,
    UnbalancedPostings,
)
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds import lifecycle as refunds
from payments_core.payments.refunds import plans
from payments_core.payments.refunds.plans import RefundLeg
from payments_core.payments.refunds.record import Purpose
from tests.core.examples import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    a_payment,
    a_receipt,
    a_refund,
    books_of,
    counted,
    releasing,
    send_stages,
    stages,
)

AMOUNTS = st.integers(-(10**30), 10**30)


def test_a_movement_has_its_entry() -> None:
    books, entry = post(
        books_of(escrow=5), "payment_1", 7, "receipt", "receipt_1", now=NOW, payer=-9, escrow=9
    )
    assert books == books_of(escrow=14)
    assert entry.id == "payment_1/000007"
    assert (entry.payment_id, entry.number) == ("payment_1", 7)
    assert (entry.cause, entry.subject, entry.created_at_ms) == ("receipt", "receipt_1", NOW)
    assert entry.postings == {"payer": -9, "escrow": 9}


def test_what_does_not_move_is_not_posted() -> None:
    _, entry = post(
        JournalBalances(), "p", 1, "release", "s", now=NOW, escrow=-9, recipient=9, fees=0
    )
    assert entry.postings == {"escrow": -9, "recipient": 9}


def test_postings_come_in_the_order_of_the_accounts() -> None:
    _, entry = post(
        JournalBalances(), "p", 1, "receipt", "s", now=NOW, excess=1, escrow=2, payer=-3
    )
    assert list(entry.postings) == ["payer", "escrow", "excess"]


def test_entries_sort_as_they_were_written() -> None:
    ids = [
        post(JournalBalances(), "p", n, "refund", "s", now=NOW)[1].id for n in (2, 10, 999, 1_000)
    ]
    assert sorted(ids) == ids


@given(amounts=st.dictionaries(st.sampled_from(JOURNAL_ACCOUNTS), AMOUNTS, max_size=5))
def test_postings_balance_or_nothing_is_posted(amounts: dict[str, int]) -> None:
    books = books_of(escrow=3, fees=4)
    if sum(amounts.values()):
        with pytest.raises(UnbalancedPostings):
            post(books, "p", 1, "receipt", "s", now=NOW, **amounts)
        return
    after, entry = post(books, "p", 1, "receipt", "s", now=NOW, **amounts)
    assert sum(entry.postings.values()) == 0
    for name in JOURNAL_ACCOUNTS:
        assert getattr(after, name) == getattr(books, name) + amounts.get(name, 0)


def test_books_that_do_not_balance_cannot_be_made() -> None:
    with pytest.raises(UnbalancedPostings):
        JournalBalances(payer=-1, escrow=2)
    assert JournalBalances(payer=-5, escrow=2, excess=3).held_atomic == 5


def test_the_journal_of_a_payment_from_receipt_to_refund() -> None:
    """The story of an overpaid Payment with a fee, entry by entry."""
    change, _ = counted(a_payment(fee_bps=100), a_receipt(1_300, id="receipt_1"))
    change = attrs.evolve(change, record=releasing(change.record))
    change = change.then(payments.apply_trigger, "release", now=NOW).then(payments.settle, now=NOW)
    for trigger, source, amount in (
        ("refund_excess", "excess", 300),
        ("refund_all", "recipient", 990),
    ):
        change = change.then(
            payments.apply_refund, trigger, f"refund_{amount}", ALICE, now=NOW, **{source: amount}
        )
    assert [(entry.cause, entry.subject, dict(entry.postings)) for entry in change.entries] == [
        ("receipt", "receipt_1", {"payer": -1_300, "escrow": 1_000, "excess": 300}),
        ("release", "out_1", {"escrow": -1_000, "recipient": 990, "fees": 10}),
        ("refund", "refund_300", {"payer": 300, "excess": -300}),
        ("refund", "refund_990", {"payer": 990, "recipient": -990}),
    ]
    assert change.record.books == books_of(fees=10)


def test_a_send_goes_from_its_vault_to_the_recipient_without_escrow() -> None:
    draft = a_payment(
        intent="send",
        status="processing",
        escrow_address=None,
        release_id="out_1",
        released_atomic=1_000,
    )
    executing = send_stages(draft)["executing, a send"].payment
    change = payments.settle(executing, now=NOW)
    [entry] = change.entries
    assert (entry.cause, dict(entry.postings)) == ("send", {"payer": -1_000, "recipient": 1_000})
    assert (change.record.settled_atomic, change.record.received_atomic) == (1_000, 0)


# Any sequence of changes.


class Story:
    """A Payment that meets whatever the table allows, and what the world knows of its money."""

    def __init__(self, *, amount: int, fee_bps: int, tolerance_bps: int) -> None:
        self.payment = a_payment(amount_atomic=amount, fee_bps=fee_bps, tolerance_bps=tolerance_bps)
        self.now = NOW
        self.entries: list[JournalEntry] = []
        self.events = 0
        self.counting: list[Receipt] = []
        self.undone: list[Receipt] = []
        self.sent_back = 0
        self.names = iter(range(1_000_000))
        self.releases = 0

    def take(self, change: Step[Payment]) -> None:
        """Commit a change, and what follows from it at once."""
        before = self.payment
        self.payment = change.record
        self.entries += change.entries
        self.events += len(change.events)
        if change.entries:
            assert change.events, "money moved without an event"
        assert set(before.labels) <= set(self.payment.labels)
        assert self.payment.status_version >= before.status_version
        if self.payment.status == "accepted" and self.payment.release_id is None:
            self.releases += 1
            self.payment = releasing(self.payment, f"out_{self.releases}")

    # What may happen. Each raises a PaymentsError where it is not allowed.

    def receive(self, amount: int, sender: str) -> None:
        receipt = a_receipt(amount, sender, id=f"receipt_{next(self.names)}")
        self._count(receipt)

    def _count(self, receipt: Receipt) -> None:
        change, stored = counted(self.payment, receipt, now=self.now)
        self.take(change)
        self.counting.append(stored)

    def come_back(self, place: int, _: str) -> None:
        if self.undone:
            receipt = self.undone.pop(place % len(self.undone))
            self._count(a_receipt(receipt.amount_atomic, receipt.sender, id=receipt.id))

    def lose(self, place: int, _: str) -> None:
        if not self.counting:
            return
        receipt = self.counting[place % len(self.counting)]
        stops = (
            self.payment.status == "accepted" and bool(receipt.counted_atomic) and place % 2 == 0
        )
        self.take(
            payments.reverse_receipt(self.payment, receipt, now=self.now, release_stopped=stops)
        )
        self.counting.remove(receipt)
        self.undone.append(receipt)

    def attempt(self, number: int, _: str) -> None:
        self.take(payments.authorize(self.payment, f"op_{number % 2}", now=self.now))

    def see(self, number: int, _: str) -> None:
        self.take(
            payments.add_pending_transfer(self.payment, f"evidence_{number % 2}", now=self.now)
        )

    def give_up(self, number: int, _: str) -> None:
        for id in (f"op_{number % 2}", f"evidence_{number % 2}"):
            self.take(payments.end_attempt(self.payment, id, now=self.now, reason="reverted"))

    def time_passes(self, steps: int, _: str) -> None:
        self.now += steps
        if self.payment.status == "awaiting_payment" and self.now >= self.payment.expires_at_ms:
            self.take(payments.expire(self.payment, now=self.now))

    def cancel(self, *_: object) -> None:
        self.take(payments.cancel(self.payment, now=self.now))

    def release(self, *_: object) -> None:
        self.take(payments.apply_trigger(self.payment, "release", now=self.now))

    def settle(self, *_: object) -> None:
        if self.payment.status == "executing":
            self.take(payments.settle(self.payment, now=self.now))

    def fail(self, *_: object) -> None:
        self.take(payments.fail_release(self.payment, "transaction_failed", now=self.now))

    def accept(self, *_: object) -> None:
        if self.payment.books.escrow > 0 and self.payment.failure is None:
            self.take(payments.accept(self.payment, now=self.now))

    def retry(self, *_: object) -> None:
        if self.payment.books.escrow > 0 and self.payment.failure is not None:
            self.releases += 1
            sending = releasing(payments.retry(self.payment, now=self.now).record, "again")
            self.take(attrs.evolve(payments.retry(self.payment, now=self.now), record=sending))

    def write_off(self, *_: object) -> None:
        self.take(payments.write_off(self.payment, now=self.now))

    def refund(self, amount: int, to: str) -> None:
        left = plans.compute_refundable(self.payment, ())
        self._refund([plans.plan_refund(self.payment, left, amount, to)], "refund")

    def refund_held(self, *_: object) -> None:
        if payments.PAYMENT.allows(self.payment.status, "reconcile_refund"):
            left = plans.compute_refundable(self.payment, ())
            self._refund(plans.plan_all_held(left), "reconcile_refund")

    def refund_excess(self, *_: object) -> None:
        if payments.PAYMENT.allows(self.payment.status, "refund_excess"):
            left = plans.compute_refundable(self.payment, ())
            self._refund(plans.plan_excess(left), "refund_excess")

    def _refund(self, parts: list[RefundLeg] | tuple[RefundLeg, ...], purpose: Purpose) -> None:
        """All of them made at once, and final one after the other: what is promised is booked."""
        for part in parts:
            refund = a_refund(
                id=f"refund_{next(self.names)}",
                purpose=purpose,
                destination=part.to,
                from_escrow_atomic=part.from_escrow_atomic,
                from_excess_atomic=part.from_excess_atomic,
                from_recipient_atomic=part.from_recipient_atomic,
            )
            sources = {
                "escrow": part.from_escrow_atomic,
                "excess": part.from_excess_atomic,
                "recipient": part.from_recipient_atomic,
            }
            trigger = refunds.payment_trigger(self.payment, refund)
            try:
                change = payments.apply_refund(
                    self.payment,
                    trigger,
                    refund.id,
                    part.to,
                    now=self.now,
                    **{name: taken for name, taken in sources.items() if taken},
                )
            except PaymentsError as error:  # the money has gone: it must be written down
                raise AssertionError(f"a final refund was refused: {error}") from error
            self.take(change)
            self.sent_back += part.amount_atomic

    def check(self) -> None:
        """The books, the journal and the world agree to the unit."""
        payment, books = self.payment, self.payment.books
        assert sum(getattr(books, name) for name in JOURNAL_ACCOUNTS) == 0
        assert payment.received_atomic == sum(receipt.amount_atomic for receipt in self.counting)
        assert payment.refunded_atomic == self.sent_back
        assert -books.payer == payment.received_atomic - payment.refunded_atomic
        assert (
            books.held_atomic + books.recipient + books.fees
            == payment.received_atomic - payment.refunded_atomic
        )
        assert [entry.number for entry in self.entries] == [*range(1, payment.entry_count + 1)]
        for name in JOURNAL_ACCOUNTS:
            assert getattr(books, name) == sum(it.postings.get(name, 0) for it in self.entries)
        assert all(sum(entry.postings.values()) == 0 for entry in self.entries)
        assert payment.counted_atomic == sum(receipt.counted_atomic for receipt in self.counting)
        assert books.recipient >= 0 and books.fees >= 0
        if not self.undone:
            assert books.held_atomic >= 0
        if payment.release_id is None:
            assert payment.releasable_atomic <= max(0, books.held_atomic)
        if payment.status in ("succeeded", "partially_refunded", "refunded"):
            left = plans.compute_refundable(payment, ())
            assert left.held_atomic == left.excess, "funds in escrow that nothing can move"
        settled = [entry for entry in self.entries if entry.cause == "release"]
        assert len(settled) <= 1, "released twice"


MOVES: tuple[Callable[[Story, int, str], None], ...] = (
    Story.receive,
    Story.receive,
    Story.lose,
    Story.come_back,
    Story.attempt,
    Story.see,
    Story.give_up,
    Story.time_passes,
    Story.cancel,
    Story.release,
    Story.settle,
    Story.fail,
    Story.accept,
    Story.retry,
    Story.write_off,
    Story.refund,
    Story.refund_held,
    Story.refund_excess,
)


Move = tuple[Callable[[Story, int, str], None], int, str]
OPENINGS: dict[str, tuple[Move, ...]] = {
    "fresh": (),
    "accepted": ((Story.receive, 1_000, ALICE),),
    "overpaid": ((Story.receive, 1_000, ALICE), (Story.receive, 300, BOB)),
    "failed": (
        (Story.receive, 1_000, ALICE), (Story.release, 0, ""), (Story.fail, 0, ""),
    ),
    "settled": (
        (Story.receive, 600, ALICE), (Story.receive, 400, BOB),
        (Story.release, 0, ""), (Story.settle, 0, ""),
    ),
    "late": (
        (Story.time_passes, 1_500, ""), (Story.receive, 600, ALICE), (Story.receive, 600, BOB),
    ),
}  # fmt: skip


@settings(max_examples=500)
@given(
    opening=st.sampled_from(sorted(OPENINGS)),
    terms=st.tuples(
        st.sampled_from([1_000, 1]), st.sampled_from([0, 0, 100, 10_000]), st.sampled_from([0, 500])
    ),
    moves=st.lists(
        st.tuples(
            st.sampled_from(MOVES),
            st.one_of(st.integers(1, 1_500), st.sampled_from([1_000, 950])),
            st.sampled_from([ALICE, BOB, CAROL]),
        ),
        max_size=20,
    ),
)
def test_whatever_happens_the_books_say_where_the_money_is(
    opening: str, terms: tuple[int, int, int], moves: list[Move]
) -> None:
    amount, fee_bps, tolerance_bps = terms
    story = Story(amount=amount, fee_bps=fee_bps, tolerance_bps=tolerance_bps)
    for move, number, who in (*OPENINGS[opening], *moves):
        before = story.payment
        try:
            move(story, number, who)
        except PaymentsError:
            assert story.payment == before
        story.check()


def test_no_more_is_released_than_the_escrow_holds() -> None:
    """Excess that went back, and whose receipt was then undone, is missing in the escrow."""
    over, receipt = counted(stages()["accepted"].payment, a_receipt(300, BOB))
    back = payments.apply_refund(over.record, "refund_excess", "r", BOB, now=NOW, excess=300).record
    undone = payments.reverse_receipt(back, receipt, now=NOW, release_stopped=False).record
    executing = payments.apply_trigger(undone, "release", now=NOW).record
    failed = payments.fail_release(executing, "transaction_failed", now=NOW).record
    assert (failed.books.held_atomic, failed.releasable_atomic) == (700, 700)


@pytest.mark.parametrize("name", stages())
def test_the_books_of_every_stage_balance(name: str) -> None:
    payment: Payment = stages()[name].payment
    assert -payment.books.payer == payment.received_atomic - payment.refunded_atomic
    assert payment.entry_count > 0 or payment.received_atomic == 0
