"""The pure steps of direct options and of hints, branch by branch."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.hashes import HashError, canonical_hash
from payments_core.chains.port import Block, Heads, TransactionView
from payments_core.clock import HOUR
from payments_core.errors import (
    InvalidState,
    OptionExpired,
    OptionSuperseded,
    PaymentsError,
    ResourceConflict,
)
from payments_core.payments.options import lifecycle, submissions
from payments_core.payments.options.lifecycle import OPTION
from payments_core.payments.options.record import PaymentOption, Submission
from payments_core.payments.receipts.evaluation import ObservedTransaction
from payments_core.payments.receipts.record import TrackedTransaction, tracked_transaction_id
from payments_core.payments.tracking.attribution import HINT_TTL_MS, recheck_hint
from tests.core.examples import NOW, a_payment

LATER = NOW + 500
ONE, TWO = "evidence_1", "evidence_2"


def a_direct_option(**given: Any) -> PaymentOption:
    facts: dict[str, Any] = {
        "id": "pay_option_1",
        "payment_id": "payment_1",
        "method": "direct",
        "status": "pending",
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "required_atomic": 1_000,
        "expires_at_ms": NOW + 3_600_000,
        "created_at_ms": NOW,
        "updated_at_ms": NOW,
    }
    return PaymentOption(**{**facts, **given})


def a_tracked(id: str) -> TrackedTransaction:
    payment_id, chain_id, hash = id.split("/")
    return TrackedTransaction(
        id=id,
        payment_id=payment_id,
        chain_id=int(chain_id),
        transaction_hash=hash,
        created_at_ms=LATER,
    )


# Each row: status, what was sighted and paid; what the look gained and left in sight, and what the
# Payment had counted of its 1,000 before and after; the status, what is sighted and paid then.
@pytest.mark.parametrize(
    ("before", "look", "after"),
    [
        (("pending", (), 0), (0, (ONE,), 0, 0), ("processing", (ONE,), 0)),
        (("processing", (ONE,), 0), (1_000, (), 0, 1_000), ("succeeded", (), 1_000)),
        (("pending", (), 0), (1_000, (), 0, 1_000), ("succeeded", (), 1_000)),
        (("processing", (ONE,), 0), (400, (), 0, 400), ("pending", (), 400)),
        (("pending", (), 0), (400, (), 0, 400), ("pending", (), 400)),
        (("processing", (ONE,), 400), (600, (), 400, 1_000), ("succeeded", (), 1_000)),
        (("processing", (ONE,), 0), (0, (), 0, 0), ("pending", (), 0)),
        (("processing", (ONE, TWO), 0), (400, (TWO,), 0, 400), ("processing", (TWO,), 400)),
        (("processing", (ONE, TWO), 0), (1_000, (TWO,), 0, 1_000), ("succeeded", (TWO,), 1_000)),
        (("processing", (TWO,), 0), (0, (TWO,), 0, 0), ("processing", (TWO,), 0)),
        (("pending", (), 400), (-400, (), 400, 0), ("pending", (), 0)),
        (("pending", (), 0), (600, (), 400, 1_000), ("succeeded", (), 600)),
        (("pending", (), 0), (1, (), 1_000, 1_000), ("pending", (), 1)),
        (("succeeded", (), 1_000), (-1_000, (), 1_000, 0), ("succeeded", (), 0)),
        (("expired", (), 0), (0, (ONE,), 0, 0), ("expired", (ONE,), 0)),
        (("expired", (), 0), (1_000, (), 0, 0), ("expired", (), 1_000)),
        (("cancelled", (), 0), (1_000, (), 0, 0), ("cancelled", (), 1_000)),
    ],
)
def test_a_look_moves_the_option(
    before: tuple[str, tuple[str, ...], int],
    look: tuple[int, tuple[str, ...], int, int],
    after: tuple[str, tuple[str, ...], int],
) -> None:
    status, sighted, paid = before
    gained, in_sight, had, has = look
    option = a_direct_option(status=status, sighted=sighted, paid_atomic=paid)
    known = a_payment(counted_atomic=had, status="accepted" if had >= 1_000 else "processing")
    payment = attrs.evolve(known, counted_atomic=has, sighted=in_sight)
    moved = lifecycle.apply_observation(option, known, payment, ONE, gained, LATER).record
    assert (moved.status, moved.sighted, moved.paid_atomic) == after
    assert moved.updated_at_ms == (LATER if moved != option else NOW)


def test_what_covers_a_payment_with_tolerance_is_enough_for_its_option() -> None:
    known = a_payment(tolerance_bps=1_000)
    after = attrs.evolve(known, counted_atomic=900)
    moved = lifecycle.apply_observation(a_direct_option(), known, after, ONE, 900, LATER).record
    assert (moved.status, moved.paid_atomic) == ("succeeded", 900)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"selection_status": "superseded", "status": "expired"}, OptionSuperseded),
        ({"status": "expired"}, OptionExpired),
        ({"status": "succeeded"}, InvalidState),
        ({"status": "cancelled"}, InvalidState),
        ({"status": "failed"}, InvalidState),
    ],
)
def test_an_option_that_is_over_is_neither_selected_nor_refreshed(
    given: dict[str, Any], error: type[PaymentsError]
) -> None:
    option = a_direct_option(**given)
    with pytest.raises(error):
        lifecycle.select(option, now=LATER)
    with pytest.raises(error):
        lifecycle.refresh(option, a_payment(), now=LATER)


def test_a_refresh_asks_for_what_remains_beyond_what_it_has_brought() -> None:
    payment = a_payment(counted_atomic=700)
    refreshed = lifecycle.refresh(a_direct_option(paid_atomic=300), payment, now=LATER).record
    assert (refreshed.required_atomic, refreshed.updated_at_ms) == (600, LATER)
    with pytest.raises(InvalidState):
        lifecycle.refresh(a_direct_option(status="processing", sighted=(ONE,)), payment, now=LATER)


def test_an_end_leaves_what_cannot_end_as_it_is() -> None:
    assert lifecycle.close(a_direct_option(), "cancel", now=LATER).record.status == "cancelled"
    assert lifecycle.close(a_direct_option(), "expire", now=LATER).record.status == "expired"
    for status in OPTION.terminal:
        option = a_direct_option(status=status)
        assert lifecycle.close(option, "expire", now=LATER).record is option
    coming = a_direct_option(status="processing", sighted=(ONE,))
    assert lifecycle.close(coming, "cancel", now=LATER).record is coming


def test_a_submission_is_noted_once_and_locks_only_while_it_is_on_its_way() -> None:
    option = submissions.submit(a_direct_option(), 8453, "0x1", now=LATER).record
    [submission] = option.submissions
    assert submission == Submission(chain_id=8453, transaction_hash="0x1", submitted_at_ms=LATER)
    assert submissions.submit(option, 8453, "0x1", now=LATER + 1).record is option
    full = option
    for number in range(2, submissions.MAX_SUBMISSIONS + 1):
        full = submissions.submit(full, 8453, f"0x{number}", now=LATER).record
    assert submissions.submit(full, 8453, "0x1", now=LATER).record is full
    for chain_id, hash in ((8453, "0x9"), (1, "0x1")):
        with pytest.raises(ResourceConflict):
            submissions.submit(full, chain_id, hash, now=LATER)
    payment = a_payment()
    named = tracked_transaction_id(payment.id, 8453, "0x1")
    assert submissions.list_submissions(option) == (named,)
    assert not submissions.list_sighted_submissions(option, attrs.evolve(payment, sighted=(ONE,)))
    seen = attrs.evolve(payment, sighted=(ONE, named))
    assert submissions.list_sighted_submissions(option, seen) == (named,)
    end = LATER + submissions.SUBMISSION_LOCK_MS
    assert submissions.has_new_submission(option, now=end - 1)
    assert not submissions.has_new_submission(option, now=end)


def test_one_lock_in_ten_minutes_begins_with_a_submission_that_failed() -> None:
    every, lasts = submissions.SUBMISSION_LOCK_EVERY_MS, submissions.SUBMISSION_LOCK_MS
    option = a_direct_option()
    for hash, at in (("0x1", 0), ("0x2", lasts), ("0x3", every)):
        option = submissions.submit(option, 8453, hash, now=LATER + at).record
    first, second, third = submissions.list_submissions(option)
    tracked = {id: a_tracked(id) for id in (first, second, third)}

    def locks(id: str, after: int, **first_is: Any) -> bool:
        known = tracked | {first: attrs.evolve(tracked[first], **first_is)}
        now = LATER + after
        named = tuple(item for item in option.submissions if item.submitted_at_ms <= now)
        by_then = attrs.evolve(option, submissions=named)
        return id in submissions.list_locking_submissions([by_then], known, a_payment(), now=now)

    assert locks(first, lasts - 1) and not locks(first, lasts)
    assert not locks(second, lasts) and not locks(second, every - 1)
    assert locks(third, every + lasts - 1) and not locks(third, every + lasts)
    assert not locks(first, lasts - 1, watched=False)
    assert not locks(second, lasts, watched=False)  # the first had its lock
    paid = {"receipt_ids": ("receipt_1",), "amount_atomic": 100}
    assert locks(second, 2 * lasts - 1, **paid)
    assert not locks(second, 2 * lasts, **paid)
    dust = {"receipt_ids": ("receipt_1",), "amount_atomic": 99}  # of 1,000
    assert not locks(first, lasts - 1, **dust) and not locks(second, lasts, **dust)
    unknown = {third: tracked[third]}
    locking = submissions.list_locking_submissions(
        [option], unknown, a_payment(), now=LATER + every
    )
    assert locking == {third}


AMOUNTS = st.integers(1, 10**30)


@given(AMOUNTS, st.integers(0, 9_999), st.data())
def test_what_locks_pays_a_tenth_or_all_that_is_missing(
    amount: int, tolerance_bps: int, data: st.DataObject
) -> None:
    """So ten transfers lock a Payment at most, and what would pay it always does."""
    payment, locks = a_payment(amount_atomic=amount, tolerance_bps=tolerance_bps), 0
    while payment.counted_atomic < payment.required_atomic:
        least = submissions.min_locking_amount(payment)
        missing = payment.required_atomic - payment.counted_atomic
        assert 1 <= least <= missing
        assert least == missing or amount <= submissions.MIN_LOCKING_PARTS * least < amount + 10
        brought = least + data.draw(st.integers(0, missing))
        payment = attrs.evolve(payment, counted_atomic=payment.counted_atomic + brought)
        locks += 1
    assert locks <= submissions.MIN_LOCKING_PARTS


# Hints.


def a_hint(**given: Any) -> TrackedTransaction:
    facts: dict[str, Any] = {
        "id": "payment_1/8453/0x1",
        "payment_id": "payment_1",
        "chain_id": 8453,
        "transaction_hash": "0x1",
        "hinted_until_ms": NOW + HINT_TTL_MS,
        "created_at_ms": NOW,
    }
    return TrackedTransaction(**{**facts, **given})


HEADS = Heads(latest=Block(100, "0x64"), final=Block(97, "0x61"))


def test_a_hint_is_looked_for_ever_more_seldom_until_its_time_is_over() -> None:
    now, looks = NOW, 0
    unknown = ObservedTransaction(None, HEADS, None)
    while (decision := recheck_hint(a_hint(), unknown, now=now)).next_run_at is not None:
        assert decision.next_run_at - now == max(1_000, now - NOW)
        assert not decision.replaces
        now, looks = decision.next_run_at, looks + 1
    assert looks == 11
    assert [
        record.watched for record in decision.replaces if isinstance(record, TrackedTransaction)
    ] == [False]


def test_a_hint_of_a_clock_that_was_ahead_is_not_looked_for_each_second() -> None:
    now, looks = NOW, 0
    hint = a_hint(created_at_ms=NOW + 3 * HOUR, hinted_until_ms=NOW + 3 * HOUR + HINT_TTL_MS)
    unknown = ObservedTransaction(None, HEADS, None)
    while (decision := recheck_hint(hint, unknown, now=now)).next_run_at is not None:
        now, looks = decision.next_run_at, looks + 1
    assert looks < 50


def test_a_hint_that_is_in_a_block_and_brings_nothing_is_forgotten_at_once() -> None:
    view = TransactionView("0x1", HEADS.latest, succeeded=True, logs=())
    decision = recheck_hint(a_hint(), ObservedTransaction(view, HEADS, None), now=NOW)
    assert decision.next_run_at is None
    assert len(decision.replaces) == 1
    waiting = TransactionView("0x1", None, succeeded=False, logs=())
    assert (
        recheck_hint(a_hint(), ObservedTransaction(waiting, HEADS, None), now=NOW).next_run_at
        == NOW + 1_000
    )


# Hashes.


def test_a_hash_has_one_text_on_each_type_of_chain() -> None:
    digits = "0x" + "aB" * 32
    assert canonical_hash("evm", digits) == canonical_hash("aptos", digits) == digits.lower()
    signature = "1" * 64
    assert canonical_hash("solana", signature) == signature
    for chain_type, text in (
        ("evm", signature), ("evm", digits[:-1]), ("evm", digits + "0"), ("aptos", "0x1"),
        ("solana", digits), ("solana", "1" * 63), ("solana", "1" * 128), ("evm", digits + "\n"),
    ):  # fmt: skip
        with pytest.raises(HashError):
            canonical_hash(chain_type, text)  # type: ignore[arg-type]


def test_an_open_option_is_selected_and_no_other() -> None:
    option = a_direct_option()
    assert lifecycle.is_open(option)
    selected = lifecycle.select(option, now=LATER).record
    assert (selected.selection_status, selected.updated_at_ms) == ("selected", LATER)
    superseded = lifecycle.supersede(selected, now=LATER).record
    for closed, error in (
        (superseded, OptionSuperseded),
        (a_direct_option(status="expired"), OptionExpired),
        (a_direct_option(status="failed"), InvalidState),
    ):
        assert not lifecycle.is_open(closed)
        with pytest.raises(error):
            lifecycle.select(closed, now=LATER)
