"""The worker's side of a refund: its transfer is handed to the chain and followed to finality."""

from __future__ import annotations

from payments_core.accounts.vaults.lifecycle import BalanceOutdated
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.reservations import Asked, Reservation, settled
from payments_core.chains.backoff import POLL_MS, poll_again, wait_for_chain
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import LookOutdated, Outcome, Outgoing, concluded
from payments_core.chains.port import ChainUnavailable
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, Follow, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import DependencyFailed
from payments_core.payments import lifecycle as payments
from payments_core.payments.details import locked_payment
from payments_core.payments.progress import committed
from payments_core.payments.refunds import lifecycle
from payments_core.payments.refunds.record import Refund
from payments_core.payments.reversals import reverse_refund
from payments_core.storage.port import Claimed, Transaction

WATCH_REFUND = "refunds.watch"


class RefundJobs:
    """Sends refunds and follows them."""

    def __init__(self, ports: Ports, outbox: Outbox, vaults: Vaults) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._outbox = outbox
        self._vaults = vaults

    def send(self, claimed: Claimed) -> None:
        """Hand the refund to the chain. Its bytes are fixed: sent again, it moves nothing more."""
        scope = Scope.of(claimed)
        known = self._refund(claimed)
        if known.status != "created":  # sent before a crash
            self._ledger.finish(claimed)
            return
        try:
            signed = self._outbox.signed(scope, known.chain_id, known.outgoing_id)
            assert signed is not None  # nothing withdraws a refund
            self._outbox.broadcast(scope, signed, known.outgoing_id)
        except ChainUnavailable:
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            now = self._clock.now()
            payment = locked_payment(tx, known.payment_id)
            refund = _locked(tx, known.id)
            if refund.status != "created":
                return Decision(None)
            sent, events = lifecycle.step(
                refund, "submit", payment, now=now, transaction_hash=signed.hash
            )
            lane = f"payment:{payment.id}"
            watch = Follow("chain", WATCH_REFUND, lane, now + POLL_MS, refund.id)
            return Decision(None, replaces=(sent,), events=events, jobs=(watch,))

        self._ledger.commit(scope, decide, claimed=claimed)

    def watch(self, claimed: Claimed) -> None:
        """Look at the refund: not final, final, or failed for good."""
        scope = Scope.of(claimed)
        known = self._refund(claimed)
        if known.status != "submitted":
            self._ledger.finish(claimed)
            return
        asset = known.asset
        try:
            outcome = self._outbox.outcome(scope, known.outgoing_id)
            asked = None
            if known.vault_id is not None and not outcome.is_pending:
                asked = self._vaults.ask_by_id(
                    scope.partition, known.vault_id, asset, least=outcome.height
                )
        except (ChainUnavailable, DependencyFailed):
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        if outcome.is_pending:
            self._ledger.finish(claimed, poll_again(self._clock.now()))
            return
        try:
            self._ledger.commit(
                scope, lambda tx, draw: self._ended(tx, known, outcome, asked), claimed=claimed
            )
        except (BalanceOutdated, LookOutdated):  # the chain has moved on meanwhile
            self._ledger.finish(claimed, poll_again(self._clock.now()))

    def _refund(self, claimed: Claimed) -> Refund:
        refund = self._storage.read(
            claimed.partition, lambda snapshot: snapshot.get(Refund, claimed.job.subject)
        )
        assert refund is not None
        return refund

    def _ended(
        self, tx: Transaction, known: Refund, outcome: Outcome, asked: Asked | None
    ) -> Decision[None]:
        """The refund is final: the books lose it, or it may be asked for again."""
        now = self._clock.now()
        payment = locked_payment(tx, known.payment_id)
        refund = _locked(tx, known.id)
        if refund.status != "submitted":
            return Decision(None)
        succeeded = outcome.reason is None
        decision = concluded(tx, refund.outgoing_id, outcome, now=now)
        if asked is not None:
            decision = decision.joined(
                settled(tx, _reservation(refund), asked, succeeded=succeeded)
            )
        if not succeeded:
            failed, events = lifecycle.step(
                refund, "fail", payment, now=now, failure=outcome.reason
            )
            forgetting = payments.forget_refund(payment, refund.id, now=now)
            return decision.joined(
                Decision(None, replaces=(failed, forgetting.payment), events=events)
            )
        change = payments.refunded(
            payment,
            lifecycle.closing(payment, refund),
            refund.id,
            refund.destination,
            now=now,
            **refund.sources,
        )
        claimed = any(item.address == refund.destination for item in payment.paid_by)
        done, events = lifecycle.step(
            refund,
            "confirm",
            change.payment,
            now=now,
            claimed=claimed,
            transaction_hash=outcome.hash,
        )
        return decision.joined(Decision(None, replaces=(done,), events=events), committed(change))


def refund_reversed(
    tx: Transaction, outgoing: Outgoing, reason: str, *, now: Instant
) -> Decision[None]:
    """What becomes of a refund that had succeeded, was undone and has failed."""
    known = tx.get(Refund, outgoing.owner_id)
    assert known is not None
    payment = locked_payment(tx, known.payment_id)
    refund = _locked(tx, known.id)
    if refund.status != "succeeded":
        return Decision(None)
    change = reverse_refund(
        payment, refund.id, refund.destination, claimed=refund.claimed, now=now, **refund.sources
    )
    failed, events = lifecycle.step(
        refund, "reorg", change.payment, now=now, failure=reason, claimed=False, succeeded_at=None
    )
    return Decision(None, replaces=(failed,), events=events).joined(committed(change))


def _reservation(refund: Refund) -> Reservation:
    assert refund.vault_id is not None
    return Reservation(
        vault_id=refund.vault_id, asset=refund.asset, amount=refund.amount, counted_at=None
    )


def _locked(tx: Transaction, refund_id: str) -> Refund:
    refund = tx.get(Refund, refund_id, for_update=True)
    assert refund is not None
    return refund
