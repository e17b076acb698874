"""The transfer to the recipient: the release from escrow, or a send's own, to its finality."""

from __future__ import annotations

import attrs

from payments_core.accounts.vaults.lifecycle import BalanceOutdated
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.reservations import Asked, settled
from payments_core.chains.backoff import POLL_MS, poll_again, wait_for_chain
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import LookOutdated, Outgoing, concluded
from payments_core.chains.port import ChainUnavailable
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, Follow, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import DependencyFailed
from payments_core.payments import lifecycle
from payments_core.payments.details import locked_payment
from payments_core.payments.progress import committed, reservation_of
from payments_core.payments.record import Payment
from payments_core.payments.reversals import reverse_release
from payments_core.storage.port import Claimed, Transaction

WATCH_RELEASE = "payments.watch_release"
_SUBMIT = {"accepted": "release", "processing": "submit"}


class ReleaseJobs:
    """Sends the transfers to recipients and follows them to finality."""

    def __init__(self, ports: Ports, outbox: Outbox, vaults: Vaults) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._outbox = outbox
        self._vaults = vaults

    def send(self, claimed: Claimed) -> None:
        """Hand the transfer to the chain. Its bytes are fixed: sent again, it moves nothing more.

        The first time the Payment is `accepted`, or a send's `processing`; a transfer that the
        partner asked for again finds it `executing`.
        """
        scope = Scope.of(claimed)
        payment = self._payment(claimed)
        if payment.release_id is None or payment.status not in ("executing", *_SUBMIT):
            self._ledger.finish(claimed)
            return
        release_id = payment.release_id
        try:
            signed = self._outbox.signed(scope, payment.chain_id, release_id)
            if signed is not None:
                self._outbox.broadcast(scope, signed, release_id)
        except ChainUnavailable:
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        if signed is None:  # withdrawn: a receipt was reorged out, or the send was cancelled
            self._ledger.finish(claimed)
            return

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            now = self._clock.now()
            current = locked_payment(tx, payment.id)
            if current.release_id != release_id:
                return Decision(None)
            lane = f"payment:{payment.id}"
            watch = Follow("chain", WATCH_RELEASE, lane, now + POLL_MS, payment.id)
            if current.status not in _SUBMIT:
                sent = attrs.evolve(current, release_hash=signed.hash)
                return Decision(None, replaces=(sent,), jobs=(watch,))
            change = lifecycle.step(
                current, _SUBMIT[current.status], now=now, release_hash=signed.hash
            )
            return committed(change).joined(Decision(None, jobs=(watch,)))

        self._ledger.commit(scope, decide, claimed=claimed)

    def watch(self, claimed: Claimed) -> None:
        """Look at the transfer: not final, final, or failed for good."""
        scope = Scope.of(claimed)
        payment = self._payment(claimed)
        if payment.status != "executing" or payment.release_id is None:
            self._ledger.finish(claimed)
            return
        release_id = payment.release_id
        try:
            outcome = self._outbox.outcome(scope, release_id, confirmations=payment.confirmations)
            asked = None if outcome.is_pending else self._ask(scope, payment, outcome.height)
        except (ChainUnavailable, DependencyFailed):
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        if outcome.is_pending:
            self._ledger.finish(claimed, poll_again(self._clock.now()))
            return

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            now = self._clock.now()
            current = locked_payment(tx, payment.id)
            if current.status != "executing" or current.release_id != release_id:
                return Decision(None)
            if outcome.reason is None:
                # Of all that were signed for it, this one is in a block.
                paid = attrs.evolve(current, release_hash=outcome.hash)
                change = lifecycle.settle(paid, now=now)
            else:
                change = lifecycle.fail_release(current, outcome.reason, now=now)
            return committed(change).joined(
                concluded(tx, release_id, outcome, now=now),
                _reservation_ended(tx, current, asked, succeeded=outcome.reason is None),
            )

        try:
            self._ledger.commit(scope, decide, claimed=claimed)
        except (BalanceOutdated, LookOutdated):  # the chain has moved on meanwhile
            self._ledger.finish(claimed, poll_again(self._clock.now()))

    def _payment(self, claimed: Claimed) -> Payment:
        payment = self._storage.read(
            claimed.partition, lambda snapshot: snapshot.get(Payment, claimed.job.subject)
        )
        assert payment is not None
        return payment

    def _ask(self, scope: Scope, payment: Payment, height: int) -> Asked | None:
        """The balance of the vault that a send pays from, after its transfer was final."""
        if payment.intent != "send":
            return None
        assert payment.source is not None
        return self._vaults.ask_by_id(
            scope.partition, payment.source.vault_id, payment.asset, least=height
        )


def release_reversed(
    tx: Transaction, outgoing: Outgoing, reason: str, *, now: Instant
) -> Decision[None]:
    """What becomes of a Payment whose transfer to the recipient was undone and has failed."""
    payment = locked_payment(tx, outgoing.owner_id)
    if payment.release_id != outgoing.id or payment.status == "executing":
        return Decision(None)
    return committed(reverse_release(payment, reason, now=now))


def _reservation_ended(
    tx: Transaction, payment: Payment, asked: Asked | None, *, succeeded: bool
) -> Decision[None]:
    """What a send had reserved is spent, or free again. A release from escrow reserves nothing."""
    if asked is None:
        return Decision(None)
    return settled(tx, reservation_of(payment), asked, succeeded=succeeded)
