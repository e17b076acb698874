"""A Step by itself: how steps follow each other, and the decision that writes them."""

from __future__ import annotations

import attrs

from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.events import NewEvent
from payments_core.engine.step import Step
from payments_core.payments.options.record import PaymentOption
from payments_core.storage.records import Record
from tests.core.examples import NOW, a_receipt, an_option

LATER = NOW + 500
ENTRIES = (a_receipt(id="receipt_1"), a_receipt(id="receipt_2"))


def happened(status: str) -> NewEvent:
    payload = {"accountId": "acct_1", "externalUserId": "user-1", "status": status}
    return NewEvent("account.updated", payload, "2026-09-09", "acct_1", "user-1")


def pay(
    option: PaymentOption, amount: int, *, now: Instant, entry: Record = ENTRIES[0]
) -> Step[PaymentOption]:
    paid = attrs.evolve(option, paid_atomic=option.paid_atomic + amount, updated_at_ms=now)
    return Step(paid, (happened(f"paid {paid.paid_atomic}"),), (entry,))


def test_a_step_begins_where_the_one_before_has_ended() -> None:
    option = an_option(paid_atomic=1)
    both = pay(option, 2, now=LATER).then(pay, 3, now=LATER + 1, entry=ENTRIES[1])
    assert both.record == attrs.evolve(option, paid_atomic=6, updated_at_ms=LATER + 1)
    assert both.events == (happened("paid 3"), happened("paid 6"))
    assert both.entries == ENTRIES


def test_a_record_that_was_never_stored_is_inserted_with_its_entries() -> None:
    step = pay(an_option(), 2, now=LATER)
    assert step.as_decision() == Decision(
        None, inserts=(step.record, *step.entries), events=step.events
    )


def test_a_stored_record_is_replaced_though_nothing_changed() -> None:
    stored = an_option(version=3)
    assert Step(stored).as_decision("done") == Decision("done", replaces=(stored,))
    step = pay(stored, 2, now=LATER)
    assert step.as_decision() == Decision(
        None, inserts=step.entries, replaces=(step.record,), events=step.events
    )
