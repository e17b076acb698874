"""What a look at a transaction makes of its receipts: every status with everything it may show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.judge import ExpectedTransfer
from payments_core.chains.port import Block, Heads, TransactionView, TransferLog
from payments_core.payments.receipts import lifecycle
from payments_core.payments.receipts.evaluation import (
    MAX_RECEIPTS_PER_TRANSACTION,
    Evaluation,
    ObservedTransaction,
    evaluate,
)
from payments_core.payments.receipts.record import Receipt, TrackedTransaction
from tests.core.examples import ALICE, NOW, USDC, a_receipt
from tests.shipped import CHAINS

TOKEN, ESCROW = USDC.address, "0x2"
WANTED = ExpectedTransfer(8453, TOKEN, ESCROW)
HERE, ELSEWHERE = Block(100, "0xb"), Block(101, "0xc")
"""Where a known receipt's log is, and where a reorg may have put it."""

BEFORE_IT, BEHIND_IT = Heads(Block(103, "0xl"), Block(99, "0xf")), Heads(HERE, Block(102, "0xf"))
"""Heads with which nothing here is final, and with which all is."""

LOG = TransferLog(0, 0, TOKEN, ALICE, ESCROW, 1_000)
OTHER_AMOUNT = attrs.evolve(LOG, amount_atomic=999)
OTHER_TOKEN = attrs.evolve(LOG, token_address="0xother")
NOTHING = attrs.evolve(LOG, amount_atomic=0)
SECOND = attrs.evolve(LOG, position=1, log_index=1, amount_atomic=7)


def shown(
    block: Block | None, heads: Heads, *logs: TransferLog, succeeded: bool = True
) -> ObservedTransaction:
    return ObservedTransaction(TransactionView("0xh", block, succeeded, logs), heads, CHAINS[8453])


def failed(block: Block, heads: Heads) -> ObservedTransaction:
    return shown(block, heads, succeeded=False)


def early(block: Block, *logs: TransferLog) -> ObservedTransaction:
    """Counted by the Payment's own row, and not final for the chain."""
    return attrs.evolve(shown(block, FINAL, *logs), final_height=99)


YOUNG, FINAL = BEFORE_IT, BEHIND_IT
SHOWS: dict[str, ObservedTransaction] = {
    "nothing": ObservedTransaction(None, FINAL, None),
    "waiting": shown(None, FINAL),
    "young": shown(HERE, YOUNG, LOG),
    "early": early(HERE, LOG),
    "final": shown(HERE, FINAL, LOG),
    "moved-young": shown(ELSEWHERE, YOUNG, LOG),
    "moved-final": shown(ELSEWHERE, FINAL, LOG),
    "failed-young": failed(ELSEWHERE, YOUNG),
    "failed-final": failed(ELSEWHERE, FINAL),
    "amount-young": shown(ELSEWHERE, YOUNG, OTHER_AMOUNT),
    "amount-final": shown(ELSEWHERE, FINAL, OTHER_AMOUNT),
    "token-young": shown(ELSEWHERE, YOUNG, OTHER_TOKEN),
    "token-early": early(ELSEWHERE, OTHER_TOKEN),
    "token-final": shown(ELSEWHERE, FINAL, OTHER_TOKEN),
    "zero-young": shown(ELSEWHERE, YOUNG, NOTHING),
    "zero-final": shown(ELSEWHERE, FINAL, NOTHING),
    "away-young": shown(ELSEWHERE, YOUNG, attrs.evolve(LOG, recipient="0xelse")),
    "away-final": shown(ELSEWHERE, FINAL, attrs.evolve(LOG, recipient="0xelse")),
    "two-young": shown(HERE, YOUNG, LOG, SECOND),
    "two-final": shown(HERE, FINAL, LOG, SECOND),
}

KNOWN: dict[str, Receipt | None] = {
    "unknown": None,
    "observed": a_receipt(),
    "verified": a_receipt(status="verified", counted_atomic=1_000, verified_at_ms=NOW),
    "failed": a_receipt(status="rejected", rejection_reason="transaction_failed"),
    "wrong": a_receipt(status="rejected", rejection_reason="wrong_token", token_address="0xother"),
    "reorged": a_receipt(status="reorged"),
}
"""A receipt before the look: `failed` and `wrong` are rejected, each for its reason."""

# What each is after each look: o observed, v verified, x reorged; or rejected: f for a transaction
# that failed, t wrong token, z wrong amount (zero), c wrong chain. A + is proven and counts now, a
# - is undone and counts no more. With ! a transfer is right in all but finality.
TABLE = """
                unknown  observed  verified  failed  wrong   reorged
nothing         .        x         x-        f       t       x
waiting         .        x         x-        f       t       x
young           o!       o!        v!        o!      o!      o!
early           o+       o+        v         o+      o+      o+
final           o+       o+        v         o+      o+      o+
moved-young     o!       o!        o-!       o!      o!      o!
moved-final     o+       o+        v         o+      o+      o+
failed-young    .        x         x-        f       t       x
failed-final    .        f         f-        f       t       f
amount-young    o!       o!        o-!       o!      o!      o!
amount-final    o+       o+        o+-       o+      o+      o+
token-young     o        o         o-        o       o       o
token-early     o        o         o-        o       o       o
token-final     t        t         t-        t       t       t
zero-young      o        o         o-        o       o       o
zero-final      z        z         z-        z       z       z
away-young      .        x         x-        f       t       x
away-final      .        x         x-        f       t       x
two-young       o,o!     o,o!      v,o!      o,o!    o,o!    o,o!
two-final       o+,o+    o+,o+     v,o+      o+,o+   o+,o+   o+,o+
"""
STATUSES = {"o": "observed", "v": "verified", "x": "reorged"}
REASONS = {
    "f": "transaction_failed", "t": "wrong_token", "z": "wrong_amount", "c": "wrong_chain",
}  # fmt: skip


def table() -> dict[tuple[str, str], str]:
    """The cells, by what is shown and what was known."""
    head, *lines = TABLE.strip().splitlines()
    rows = [line.split() for line in lines]
    return {
        (shows, known): cell
        for shows, *cells in rows
        for known, cell in zip(head.split(), cells, strict=True)
    }


def look(
    known: Sequence[Receipt], sighting: ObservedTransaction, *, chain_id: int = 8453, **more: str
) -> Evaluation:
    evidence = TrackedTransaction(
        id="e",
        payment_id="payment_1",
        chain_id=chain_id,
        transaction_hash="0xh",
        created_at_ms=NOW,
        **more,
    )
    numbers = count(2)
    return evaluate(evidence, known, sighting, WANTED, lambda: f"receipt_{next(numbers)}", now=NOW)


def describe(weighed: Evaluation) -> str:
    """A look's outcome in the table's letters."""
    proven = {receipt.id for receipt in weighed.proven}
    undone = {receipt.id for receipt in weighed.reorged}
    letters = {word: letter for letter, word in (STATUSES | REASONS).items()}
    parts = []
    for receipt in sorted(weighed.receipts, key=lambda receipt: receipt.position):
        is_rejected = receipt.status == "rejected"
        assert (receipt.rejection_reason is not None) == is_rejected
        word = receipt.rejection_reason if is_rejected else receipt.status
        sign = ("+" if receipt.id in proven else "") + ("-" if receipt.id in undone else "")
        parts.append(letters[word] + sign)
    return (",".join(parts) or ".") + ("!" if weighed.has_pending_transfer else "")


def stored(weighed: Evaluation) -> list[Receipt]:
    """The receipts as the commit leaves them: what is proven counts."""
    proven = {receipt.id for receipt in weighed.proven}
    return [
        lifecycle.mark_verified(receipt, receipt.amount_atomic, NOW).record
        if receipt.id in proven
        else receipt
        for receipt in weighed.receipts
    ]


def test_the_table_has_every_status_and_everything_that_may_show() -> None:
    assert {shows for shows, _ in table()} == set(SHOWS)
    assert {known for _, known in table()} == set(KNOWN)
    assert {it.status for it in KNOWN.values() if it} == lifecycle.RECEIPT.states


@pytest.mark.parametrize("shows", SHOWS)
@pytest.mark.parametrize("known", KNOWN)
def test_a_look_does_what_the_table_says(known: str, shows: str) -> None:
    before = KNOWN[known]
    weighed = look([before] if before else [], SHOWS[shows])
    assert describe(weighed) == table()[shows, known]
    assert all(it == before and it.status == "verified" for it in weighed.reorged)
    assert all(it in weighed.receipts for it in weighed.proven)
    for receipt in weighed.receipts:
        is_verified = receipt.status == "verified"
        assert (receipt.counted_atomic > 0, receipt.verified_at_ms is not None) == (
            is_verified,
            is_verified,
        )
    if before is not None:
        assert before.id in {receipt.id for receipt in weighed.receipts}


def test_what_a_transaction_brings_is_right_but_for_its_finality() -> None:
    brought = {shows: look([], observed).amount_atomic for shows, observed in SHOWS.items()}
    assert {shows: amount for shows, amount in brought.items() if amount} == {
        "young": 1_000, "early": 1_000, "final": 1_000, "moved-young": 1_000, "moved-final": 1_000,
        "amount-young": 999, "amount-final": 999, "two-young": 1_007, "two-final": 1_007,
    }  # fmt: skip


@pytest.mark.parametrize("shows", SHOWS)
@pytest.mark.parametrize("known", KNOWN)
def test_a_second_look_at_the_same_changes_nothing(known: str, shows: str) -> None:
    before = KNOWN[known]
    once = stored(look([before] if before else [], SHOWS[shows]))
    again = look(once, SHOWS[shows])
    assert (list(again.receipts), again.proven, again.reorged) == (once, (), ())


@pytest.mark.parametrize(
    ("shows", "outcome"),
    [
        ("nothing", "x"),
        ("waiting", "x"),
        ("young", "o"),
        ("final", "c"),
        ("failed-young", "x"),
        ("failed-final", "f"),
        ("away-final", "x"),
        ("two-final", "c,c"),
    ],
)
def test_on_another_chain_nothing_is_proven(shows: str, outcome: str) -> None:
    known = attrs.evolve(a_receipt(), chain_id=1)
    weighed = look([known], SHOWS[shows], chain_id=1)
    assert describe(weighed) == outcome
    assert (weighed.proven, weighed.reorged) == ((), ())


@pytest.mark.parametrize("chain_id", [8453, 1])
@pytest.mark.parametrize("known", [name for name in KNOWN if name != "unknown"])
def test_a_transaction_that_only_waits_has_no_logs_whatever_the_node_says(
    known: str, chain_id: int
) -> None:
    before = KNOWN[known]
    assert before is not None
    said = look([before], shown(None, FINAL, LOG), chain_id=chain_id)
    assert said == look([before], SHOWS["waiting"], chain_id=chain_id)
    assert said.receipts


def test_a_receipt_says_what_its_log_said_and_where() -> None:
    log = attrs.evolve(LOG, position=3, log_index=9)
    [receipt] = look([], shown(HERE, YOUNG, log), option_id="pay_option_1").receipts
    assert (receipt.position, receipt.log_index) == (3, 9)
    assert (receipt.block_number, receipt.block_hash) == (HERE.number, HERE.hash)
    assert (receipt.token_address, receipt.sender) == (TOKEN, ALICE)
    assert (receipt.recipient, receipt.amount_atomic) == (ESCROW, 1_000)
    assert (receipt.option_id, receipt.observed_at_ms) == ("pay_option_1", NOW)
    moved = attrs.evolve(log, log_index=4)
    [after] = look([receipt], shown(ELSEWHERE, YOUNG, moved)).receipts
    assert (after.id, after.position, after.log_index) == (receipt.id, 3, 4)
    assert (after.block_number, after.block_hash) == (ELSEWHERE.number, ELSEWHERE.hash)
    assert after.option_id is None  # whose it is may be learnt, or corrected


def test_what_was_counted_and_says_something_else_now_is_counted_again() -> None:
    before = KNOWN["verified"]
    assert before is not None
    weighed = look([before], SHOWS["amount-final"])
    [undone], [proven] = weighed.reorged, weighed.proven
    assert (
        undone.amount_atomic,
        undone.counted_atomic,
        proven.amount_atomic,
        proven.counted_atomic,
    ) == (1_000, 1_000, 999, 0)


def test_so_many_logs_of_one_transaction_are_looked_at() -> None:
    logs = [attrs.evolve(LOG, position=place) for place in range(MAX_RECEIPTS_PER_TRANSACTION + 1)]
    weighed = look([], shown(HERE, FINAL, *logs))
    assert len(weighed.receipts) == len(weighed.proven) == MAX_RECEIPTS_PER_TRANSACTION


BLOCKS = [Block(100, "0xb"), Block(100, "0xd"), Block(101, "0xc"), None]
LOGS = st.builds(
    TransferLog,
    position=st.just(0),
    log_index=st.integers(0, 3),
    token_address=st.sampled_from([TOKEN, TOKEN, TOKEN, "0xother"]),
    sender=st.sampled_from([ALICE, "0xbob"]),
    recipient=st.sampled_from([ESCROW, ESCROW, ESCROW, "0xelse"]),
    amount_atomic=st.sampled_from([1_000, 1_000, 7, 0]),
)


@st.composite
def sightings(draw: st.DrawFn) -> ObservedTransaction:
    """Whatever a node may answer, whether or not it agrees with what it said before."""
    heads = draw(st.sampled_from([BEFORE_IT, BEHIND_IT]))
    if draw(st.integers(0, 4)) == 0:
        return ObservedTransaction(None, heads, None)
    succeeded = draw(st.integers(0, 3)) > 0
    logs = draw(st.lists(LOGS, max_size=3)) if succeeded else []
    placed = [attrs.evolve(log, position=place) for place, log in enumerate(logs)]
    return shown(draw(st.sampled_from(BLOCKS)), heads, *placed, succeeded=succeeded)


@given(st.lists(sightings(), max_size=12), st.sampled_from([8453, 8453, 1]))
def test_however_the_chain_turns_a_log_counts_once_until_it_is_undone(
    looks: list[ObservedTransaction], chain_id: int
) -> None:
    known: list[Receipt] = []
    balance: dict[int, int] = {}
    numbers = count()
    evidence = TrackedTransaction(
        id="e", payment_id="p", chain_id=chain_id, transaction_hash="0xh", created_at_ms=NOW
    )
    for sighting in looks:
        weighed = evaluate(
            evidence, known, sighting, WANTED, lambda: f"receipt_{next(numbers)}", now=NOW
        )
        for receipt in weighed.reorged:
            assert balance.pop(receipt.position) == receipt.counted_atomic
        for receipt in weighed.proven:
            assert receipt.position not in balance, "counted twice"
            assert sighting.is_final
            assert chain_id == WANTED.chain_id
            assert (receipt.token_address, receipt.recipient) == (TOKEN, ESCROW)
            balance[receipt.position] = receipt.amount_atomic
        ids = [receipt.id for receipt in weighed.receipts]
        assert len(set(ids)) == len(ids)
        assert {receipt.id for receipt in known} <= set(ids)  # none is ever lost
        known = stored(weighed)
        assert len({receipt.position for receipt in known}) == len(known)
        verified = {it.position: it.amount_atomic for it in known if it.status == "verified"}
        assert verified == balance
        if sighting.is_final:
            assert balance == right_and_final(sighting, chain_id)
            assert not any(receipt.status == "observed" for receipt in known)


def right_and_final(sighting: ObservedTransaction, chain_id: int) -> dict[int, int]:
    """What a final transaction brings, stated independently of the code."""
    view = sighting.view
    if view is None or not view.succeeded or chain_id != WANTED.chain_id:
        return {}
    return {
        log.position: log.amount_atomic
        for log in view.logs
        if (log.token_address, log.recipient) == (TOKEN, ESCROW) and log.amount_atomic
    }
