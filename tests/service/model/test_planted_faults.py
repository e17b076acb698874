"""Planted faults: the invariants find each fault that is planted in the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import attrs
import pytest

from payments_core.acceptance import Acceptance
from payments_core.accounts.record import Account
from payments_core.accounts.vaults import reservations as reserving
from payments_core.accounts.vaults.record import Policy
from payments_core.banks.port import BankUnavailable
from payments_core.chains.judge import Verdict, judge
from payments_core.chains.outbox import outbox
from payments_core.chains.scanner import Scanner
from payments_core.deposits import operations as deposit_operations
from payments_core.deposits import sending_back as deposit_returns
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.onramps import review as reviews
from payments_core.onramps.credit import CreditOwner
from payments_core.onramps.following import TransferFollower
from payments_core.payments import lifecycle as payments
from payments_core.payments import progress, purge, sending_back
from payments_core.payments.destinations import Destinations
from payments_core.payments.expiry import PaymentExpiry
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal import posting as journal
from payments_core.payments.mandates import lifecycle as mandates
from payments_core.payments.paying import vault_options as option_operations
from payments_core.payments.payouts import jobs as payout_jobs
from payments_core.payments.payouts import lifecycle as payouts
from payments_core.payments.payouts.jobs import PayoutJobs
from payments_core.payments.receipts import evaluation as evidence
from payments_core.payments.receipts.purged_escrows import PurgedEscrows
from payments_core.payments.record import Payment
from payments_core.payments.refunding import operations as refunding
from payments_core.payments.refunding import reconciliation
from payments_core.payments.refunds import plans
from payments_core.payments.release import ReleaseOwner
from payments_core.payments.returns import ReturnJobs
from payments_core.payments.tracking import counting
from payments_core.payments.tracking import jobs as tracking
from payments_core.payments.tracking.case import Case
from payments_core.storage.memory.transaction import MemoryTransaction
from tests.service.model.episode import Violation, run

SEEDS = 600
"""So many episodes are enough for each of the faults."""

Plant = Callable[[pytest.MonkeyPatch], None]


def receipts_count_double(patch: pytest.MonkeyPatch) -> None:
    count = payments.apply_receipt

    def doubled(payment: Any, receipt: Any, *rest: Any, **more: Any) -> Any:
        return count(
            payment, attrs.evolve(receipt, amount_atomic=2 * receipt.amount_atomic), *rest, **more
        )

    patch.setattr(payments, "apply_receipt", doubled)


def unfinal_receipts_count(patch: pytest.MonkeyPatch) -> None:
    def hasty(*given: Any, **more: Any) -> tuple[Verdict, ...]:
        verdicts = judge(*given, **more)
        return tuple(attrs.evolve(v, reason=None) if v.is_pending else v for v in verdicts)

    patch.setattr(evidence, "judge", hasty)
    patch.setattr(
        evidence.ObservedTransaction, "is_final", property(lambda self: self.block is not None)
    )


def any_token_counts(patch: pytest.MonkeyPatch) -> None:
    def lenient(*given: Any, **more: Any) -> tuple[Verdict, ...]:
        verdicts = judge(*given, **more)
        wrong = ("wrong_token", "wrong_chain")
        return tuple(attrs.evolve(v, reason=None) if v.reason in wrong else v for v in verdicts)

    patch.setattr(evidence, "judge", lenient)


def nothing_is_reserved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reserving, "reserve", lambda balance, amount, **more: balance)


def limits_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reserving, "daily_spend", lambda balance, now: 0)


def mandates_have_no_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mandates, "remaining", lambda mandate, now: 10**30)


def labels_replace_each_other(patch: pytest.MonkeyPatch) -> None:
    step = payments.apply_trigger

    def forgetful(payment: Any, *rest: Any, **more: Any) -> Any:
        return step(attrs.evolve(payment, labels=()), *rest, **more)

    patch.setattr(payments, "apply_trigger", forgetful)


def success_is_not_told(patch: pytest.MonkeyPatch) -> None:
    settle = payments.settle
    patch.setattr(
        payments, "settle", lambda *given, **more: attrs.evolve(settle(*given, **more), events=())
    )


def refunds_under_way_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plans, "PENDING", ())


def entries_are_left_out(patch: pytest.MonkeyPatch) -> None:
    as_decision = Step.as_decision

    def forgetful(step: Any, *rest: Any) -> Any:
        return as_decision(attrs.evolve(step, entries=()), *rest)

    patch.setattr(Step, "as_decision", forgetful)


def books_lie_about_the_release(patch: pytest.MonkeyPatch) -> None:
    post = journal.post

    def lying(*given: Any, **more: Any) -> Any:
        books, entry = post(*given, **more)
        return books, attrs.evolve(entry, postings={})

    patch.setattr(payments, "post", lying)


def releases_carry_a_bit_more(patch: pytest.MonkeyPatch) -> None:
    release_of = progress.new_release

    def generous(*given: Any, **more: Any) -> Any:
        outgoing = release_of(*given, **more)
        return attrs.evolve(outgoing, amount_atomic=outgoing.amount_atomic + 1)

    patch.setattr(progress, "new_release", generous)


def what_was_sent_can_be_withdrawn(patch: pytest.MonkeyPatch) -> None:
    def withdraw(outgoing: Any) -> Any:
        return attrs.evolve(outgoing, status="withdrawn")

    patch.setattr(counting, "withdraw_unsigned", withdraw)
    patch.setattr("payments_core.payments.option_cleanup.withdraw", withdraw)


def reverted_transfers_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        outbox,
        "judge",
        lambda *given, **more: (Verdict(None, None),),
    )


def reorganisations_are_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Scanner, "_drop_reorged", lambda self, chain, cursor: cursor.ring)


def holds_hold_nothing(patch: pytest.MonkeyPatch) -> None:
    hold = MemoryTransaction.hold

    def careless(self: MemoryTransaction, record: Any) -> None:
        if not isinstance(record, Policy | Account):
            hold(self, record)

    patch.setattr(MemoryTransaction, "hold", careless)


def nothing_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PaymentExpiry, "run", lambda self, claimed: self._committer.finish(claimed))


def evidence_keeps_no_payment(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(purge, "_failed", lambda tracked: True)
    patch.setattr(Payment, "is_pending", property(lambda self: False))


def purged_escrows_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PurgedEscrows, "filter_known", lambda self, recipients: set())


def returns_after_settlement_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.delitem(payouts._VIEWS, ("settled", "returned"))


def lost_answers_of_the_bank_are_refusals(patch: pytest.MonkeyPatch) -> None:
    ask = PayoutJobs._ask

    def hasty(*given: Any) -> Any:
        try:
            return ask(*given)
        except BankUnavailable:
            return payout_jobs._Refusal("no_answer")

    patch.setattr(PayoutJobs, "_ask", hasty)


def payouts_are_tried_again_under_the_same_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(payouts, "payout_key", lambda partition, id, attempt: f"{partition}/{id}/1")


def micro_deposits_are_credited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reviews, "RULES", reviews.RULES[1:])


def failed_credits_count(patch: pytest.MonkeyPatch) -> None:
    on_final = CreditOwner.on_final

    def lenient(owner: Any, tx: Any, locked: Any, outcome: Any, *rest: Any, **more: Any) -> Any:
        return on_final(owner, tx, locked, attrs.evolve(outcome, reason=None), *rest, **more)

    patch.setattr(CreditOwner, "on_final", lenient)


def what_was_sent_back_is_credited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        TransferFollower, "_send_back", lambda follower, *given: follower._deliver(*given)
    )


def options_outlive_their_payment(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(progress, "close_pending_options", lambda *given, **more: Decision(None))


def what_does_not_count_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(counting, "follow_receipts", lambda step, *given, **more: step)


def what_does_not_count_goes_back_twice(patch: pytest.MonkeyPatch) -> None:
    def lenient(receipt: Any) -> Any:
        return receipt.token

    patch.setattr(sending_back, "require_returnable", lenient)
    patch.setattr(reconciliation, "require_returnable", lenient)


def what_is_credited_to_nobody_goes_back_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deposit_returns, "require_returnable", lambda deposit: None)
    patch.setattr(deposit_operations, "require_returnable", lambda deposit: None)


def nobody_is_refunded(patch: pytest.MonkeyPatch) -> None:
    def trusting(found: Any, partition: str, payment: Payment, receipt: Any = None) -> Any:
        senders = [*payment.paid_by, *([receipt] if receipt else [])]
        return frozenset(getattr(one, "address", None) or one.sender for one in senders)

    patch.setattr(Destinations, "find_payable", trusting)


def expiry_trusts_the_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PaymentExpiry, "_wait_for_chain", lambda self, *given: None)


def what_is_seen_late_is_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Case, "paid_at", property(lambda case: case.now))


def what_came_late_is_in_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Case, "is_too_late", False)


def refreshed_options_move_the_old_amount(patch: pytest.MonkeyPatch) -> None:
    def stale(record: Any, **changes: Any) -> Any:
        if isinstance(record, FundingOperation):
            changes.pop("amount_atomic", None)
        return evolve(record, **changes)

    patch.setattr(option_operations, "evolve", stale)


def any_token_sent_back_counts(patch: pytest.MonkeyPatch) -> None:
    note = ReturnJobs.note

    def lenient(self: ReturnJobs, claimed: Any) -> None:
        arguments = {**claimed.job.arguments, "assetSymbol": ANY}
        job = attrs.evolve(claimed.job, arguments=arguments)
        note(self, attrs.evolve(claimed, job=job))

    patch.setattr(ReturnJobs, "note", lenient)


def early_transfers_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(outbox, "min", lambda scanned, final: scanned, raising=False)


def early_receipts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tracking, "min", lambda scanned, final: scanned, raising=False)


def refunds_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    start = refunding.start_refunds

    def hasty(tx: Any, ids: Any, partition: str, payment: Payment, *rest: Any, **more: Any) -> Any:
        return start(tx, ids, partition, evolve(payment, unsettled=()), *rest, **more)

    patch.setattr(refunding, "start_refunds", hasty)
    patch.setattr(reconciliation, "start_refunds", hasty)
    patch.setattr(refunding, "needs_final_release", lambda payment, leg: False)


def releases_count_in_any_block(patch: pytest.MonkeyPatch) -> None:
    find = ReleaseOwner.find_to_watch

    def hasty(owner: Any, record: Any, job: Any) -> Any:
        known = find(owner, record, job)
        return known and attrs.evolve(known, early_acceptance=Acceptance("latest"))

    patch.setattr(ReleaseOwner, "find_to_watch", hasty)


# Where the search begins: the first seed that finds it. The others come after, in a ring.
PLANTED: dict[Plant, int] = {
    receipts_count_double: 0,
    unfinal_receipts_count: 1,
    any_token_counts: 7,
    nothing_is_reserved: 0,
    limits_do_not_count: 418,
    mandates_have_no_end: 138,
    labels_replace_each_other: 1,
    success_is_not_told: 0,
    refunds_under_way_are_forgotten: 4,
    entries_are_left_out: 0,
    books_lie_about_the_release: 0,
    releases_carry_a_bit_more: 4,
    what_was_sent_can_be_withdrawn: 11,
    reverted_transfers_are_not_noticed: 1,
    reorganisations_are_not_told: 5,
    holds_hold_nothing: 190,
    nothing_expires: 0,
    evidence_keeps_no_payment: 27,
    purged_escrows_are_forgotten: 362,
    returns_after_settlement_are_not_noticed: 6,
    lost_answers_of_the_bank_are_refusals: 3,
    payouts_are_tried_again_under_the_same_key: 9,
    micro_deposits_are_credited: 6,
    failed_credits_count: 1,
    what_was_sent_back_is_credited: 7,
    options_outlive_their_payment: 5,
    what_does_not_count_is_not_told: 1,
    what_does_not_count_goes_back_twice: 25,
    what_is_credited_to_nobody_goes_back_twice: 7,
    nobody_is_refunded: 22,
    expiry_trusts_the_clock: 146,
    what_is_seen_late_is_late: 1,
    what_came_late_is_in_time: 34,
    refreshed_options_move_the_old_amount: 6,
    any_token_sent_back_counts: 42,
    early_transfers_are_forgotten: 168,
    early_receipts_are_forgotten: 3,
    refunds_do_not_wait: 27,
    releases_count_in_any_block: 0,
}


OF_RETURNS = (
    what_does_not_count_is_not_told,
    what_does_not_count_goes_back_twice,
    what_is_credited_to_nobody_goes_back_twice,
    nobody_is_refunded,
    holds_hold_nothing,
)
"""Those that are found sooner where mostly returns are played."""

OF_VALUES = (refreshed_options_move_the_old_amount, any_token_sent_back_counts)
"""Those that are found sooner where mostly values are played."""

OF_EARLY = (
    early_transfers_are_forgotten,
    early_receipts_are_forgotten,
    refunds_do_not_wait,
    releases_count_in_any_block,
)
"""Those that are found sooner where mostly early acceptance is played."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(Violation):
        _play(PLANTED[plant], _part_of(plant))


def _part_of(plant: Plant) -> str:
    if plant in OF_RETURNS:
        return "misdirected"
    if plant in OF_EARLY:
        return "early"
    return "values" if plant in OF_VALUES else "all"


def _play(first: int, part: str) -> None:
    for seed in range(SEEDS):
        run((first + seed) % SEEDS, part=part)
