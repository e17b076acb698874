"""The job of a payout: submit it once, then check until the bank can change nothing any more.

One job goes with a payout from the moment its funds are at the off-ramp address. It asks the bank
for the payout first and submits it only if the bank has none, always under the key that was
stored when the Payment was created. So a crash between any two calls, a lost answer and a second
worker all lead to the same payout. While the bank does not answer, the job asks again; only the
bank's own refusal, or its return, ends a payout.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from payments_core.accounts.bank_accounts.operations import open_details
from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.banks.payouts import BankPayout
from payments_core.banks.port import Bank, BankRefused, BankUnavailable, KeyReused, PayoutOrder
from payments_core.chains.backoff import back_off
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.payments.details import lock_payment
from payments_core.payments.payouts import lifecycle
from payments_core.payments.record import Payment, Payout, parse_payout_key
from payments_core.storage.port import ClaimedJob, Transaction

FOLLOW_PAYOUT = "payouts.follow"
LOOK_AT_PAYOUT = "payouts.look"

_ENDED = ("failed", "cancelled", "returned")

_log = logging.getLogger(__name__)


def payout_job(payment: Payment, now: Instant) -> NewJob:
    """The job that submits a payout and follows it, in a lane of its Payment."""
    key = lifecycle.require_payout(payment).key
    return NewJob("timers", FOLLOW_PAYOUT, f"payout:{payment.id}", now, payment.id, {"key": key})


@attrs.frozen
class _Refusal:
    """The bank's answer that it will not pay, with the reason as a word."""

    reason: str


class PayoutJobs:
    """Follows payouts. `banks` has the bank of each mode."""

    def __init__(self, ports: Ports, banks: Mapping[str, Bank]) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._key_ring = ports.key_ring
        self._banks = banks

    def follow(self, claimed: ClaimedJob) -> None:
        """The job of one payout. It ends with the payout, or when no return can be expected."""
        authority, key = WorkerAuthority.of(claimed), claimed.job.arguments["key"]
        payment = self._find(authority.partition, claimed.job.subject)
        if payment is None or not _is_open(payment, key):
            self._committer.finish(claimed)
            return
        try:
            answer = self._ask(authority.mode, authority.partition, payment)
        except (BankUnavailable, KeyReused) as error:
            self._put_off(claimed, key, error)
            return

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            current = _lock_open(tx, payment.id, key)
            if current is None:
                return Decision(None)
            step = _apply(current, answer, now=now)
            next_look_at = lifecycle.next_look_at(lifecycle.require_payout(step.record), now)
            return _write(current, step, next_look_at)

        self._committer.commit(authority, decide, claimed=claimed)

    def look(self, claimed: ClaimedJob) -> None:
        """The job for a notice: check once; ask again if the bank does not answer."""
        key = claimed.job.subject
        try:
            self.look_at_payout(WorkerAuthority.of(claimed).mode, key)
        except (BankUnavailable, KeyReused) as error:
            self._put_off(claimed, key, error)
            return
        self._committer.finish(claimed)

    def look_at_payout(self, mode: str, key: str) -> bool:
        """Check a payout now, as a notice of the bank suggests; False if there is nothing to
        check: for an ended payout, and for one that no Payment has.

        Nothing is submitted here, and the payout's job continues. It may be called at any time, any
        number of times, also weeks after the job has ended. Raises BankUnavailable, KeyReused.
        """
        found = parse_payout_key(key)
        payment = self._find_owner(mode, *found, key) if found else None
        if not found or payment is None:
            # a restored storage may have lost it, but the bank still pays
            _log.critical("ALARM: the bank has the payout %s, which belongs to no Payment", key)
            return False
        if not _is_open(payment, key):
            return False
        seen = self._find_at_bank(mode, payment)
        if seen is None:
            return True

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            current = _lock_open(tx, payment.id, key)
            if current is None:
                return Decision(None)
            step = lifecycle.apply_bank_view(current, seen, now=self._clock.now())
            return _write(current, step, None)

        self._committer.commit(WorkerAuthority(found[0], mode), decide)
        return True

    def _put_off(self, claimed: ClaimedJob, key: str, error: BankUnavailable | KeyReused) -> None:
        if isinstance(error, KeyReused):
            _log.critical("ALARM: the bank has another order with the key %s", key)
        self._committer.finish(claimed, back_off(claimed.job, self._clock.now(), "bank"))

    def _find(self, partition: str, payment_id: str) -> Payment | None:
        return self._storage.read(partition, lambda snapshot: snapshot.get(Payment, payment_id))

    def _find_owner(self, mode: str, partition: str, payment_id: str, key: str) -> Payment | None:
        """The Payment that has, or had, a payout under the key. Only a locked row, which is never
        stale, shows that there is none."""
        seen = self._find(partition, payment_id)
        if seen is not None and lifecycle.is_payout_of(partition, seen, key):
            return seen

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Payment | None]:
            return Decision(tx.get(Payment, payment_id, for_update=True))

        locked = self._committer.commit(WorkerAuthority(partition, mode), decide)
        known = locked is not None and lifecycle.is_payout_of(partition, locked, key)
        return locked if known else None

    def _ask(self, mode: str, partition: str, payment: Payment) -> BankPayout | _Refusal:
        """The bank's payout, after submitting it if the bank had none.

        Raises BankUnavailable, KeyReused.
        """
        seen = self._find_at_bank(mode, payment)
        if seen is not None:
            return seen
        payout = lifecycle.require_payout(payment)
        if payout.status != "created":
            _log.critical("ALARM: the bank does not know the payout %s any more", payout.key)
            raise BankUnavailable("the bank does not know a payout that it has accepted")
        try:
            return _require_match(
                payout, self._banks[mode].submit(self._build_order(partition, payout))
            )
        except BankRefused as refusal:
            return _Refusal(refusal.reason)

    def _find_at_bank(self, mode: str, payment: Payment) -> BankPayout | None:
        payout = lifecycle.require_payout(payment)
        bank = self._banks.get(mode)
        if bank is None:
            raise BankUnavailable("the deployment has no bank")
        seen = bank.find_payout(payout.key)
        return None if seen is None else _require_match(payout, seen)

    def _build_order(self, partition: str, payout: Payout) -> PayoutOrder:
        """Build the order for the bank; all its inputs are fixed, so every call builds the same."""
        bank_account = self._storage.read(
            partition, lambda snapshot: snapshot.get(BankAccount, payout.bank_account_id)
        )
        assert bank_account is not None, f"no bank account {payout.bank_account_id}"
        return PayoutOrder(
            key=payout.key,
            rail=payout.rail,
            amount_cents=payout.amount_cents,
            recipient=open_details(self._key_ring, bank_account),
            statement_text=payout.statement_text,
        )


def _require_match(payout: Payout, seen: BankPayout) -> BankPayout:
    """The bank's payout, if it matches the order. Raises KeyReused."""
    if (seen.key, seen.rail, seen.amount_cents) != (payout.key, payout.rail, payout.amount_cents):
        raise KeyReused("the bank's payout differs from the order")
    return seen


def _is_open(payment: Payment, key: str) -> bool:
    payout = payment.payout
    return payout is not None and payout.key == key and payout.status not in _ENDED


def _lock_open(tx: Transaction, payment_id: str, key: str) -> Payment | None:
    """The Payment, locked, while this is its payout and the bank may still change it."""
    payment = lock_payment(tx, payment_id)
    return payment if _is_open(payment, key) else None


def _apply(payment: Payment, answer: BankPayout | _Refusal, *, now: Instant) -> Step[Payment]:
    if isinstance(answer, BankPayout):
        return lifecycle.apply_bank_view(payment, answer, now=now)
    return lifecycle.refuse(payment, answer.reason, now=now)


def _write(before: Payment, step: Step[Payment], next_run_at: Instant | None) -> Decision[None]:
    changed = step.as_decision() if step.record != before else Decision(None)
    return evolve(changed, next_run_at=next_run_at)
