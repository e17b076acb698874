"""The worker's side of an authorization: its transfer is handed to the chain, once.

What became of it is `receipts.watching`. Each job does its I/O first and then commits the outcome
with its own end. A crash at any point makes the job due again, and what it repeats is harmless.
"""

from __future__ import annotations

from payments_core.accounts.vaults.reservations import withdrawn
from payments_core.chains.backoff import POLL_MS, wait_for_chain
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import Outgoing, withdraw
from payments_core.chains.port import ChainUnavailable, Signed
from payments_core.engine.decision import Decision, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.payments.details import locked_option, locked_payment
from payments_core.payments.funding import lifecycle
from payments_core.payments.funding.failing import come_to_nothing, reservation_of
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.lifecycle import Change
from payments_core.payments.receipts.discovery import watched
from payments_core.storage.port import Claimed, Transaction


class FundingJobs:
    """Sends authorized transfers."""

    def __init__(self, ports: Ports, outbox: Outbox) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._outbox = outbox

    def send(self, claimed: Claimed) -> None:
        """Hand the authorized transfer to the chain.

        Where the chain's answer to that is lost, the operation is `unknown` until the chain was
        asked; the same bytes are sent again, and never others.
        """
        scope = Scope.of(claimed)
        operation = self._operation(claimed)
        if operation.status not in ("authorized", "unknown"):  # ended, or sent before a crash
            self._ledger.finish(claimed)
            return
        assert operation.outgoing_id is not None
        try:
            signed = self._outbox.signed(scope, operation.chain_id, operation.outgoing_id)
            if signed is not None and operation.status == "unknown":
                self._ask(claimed, operation, operation.outgoing_id, signed)
                return
        except ChainUnavailable:
            self._wait(claimed, operation)
            return
        if signed is None:  # withdrawn
            self._ledger.finish(claimed)
            return
        try:
            self._outbox.broadcast(scope, signed, operation.outgoing_id)
        except ChainUnavailable:
            self._step(claimed, operation, "lose", wait_for_chain(claimed.job, self._clock.now()))
            return
        self._sent(claimed, operation, signed)

    def _operation(self, claimed: Claimed) -> FundingOperation:
        operation = self._storage.read(
            claimed.partition, lambda snapshot: snapshot.get(FundingOperation, claimed.job.subject)
        )
        assert operation is not None
        return operation

    def _ask(
        self, claimed: Claimed, operation: FundingOperation, outgoing_id: str, signed: Signed
    ) -> None:
        """The answer to the sending was lost: ask the chain whether it knows the transaction."""
        if self._outbox.is_known(Scope.of(claimed), outgoing_id):
            self._sent(claimed, operation, signed)
        else:  # it never arrived: authorized as before, and sent again at once
            again: Decision[None] = Decision(None, again_at=self._clock.now(), in_vain=True)
            self._step(claimed, operation, "reorg", again)

    def _sent(self, claimed: Claimed, known: FundingOperation, signed: Signed) -> None:
        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            now = self._clock.now()
            payment = locked_payment(tx, known.payment_id)
            option, operation = locked_option(tx, known.option_id)
            if operation.status not in ("authorized", "unknown"):
                return Decision(None)
            sent, events = lifecycle.step(
                operation, "broadcast", payment, now=now, transaction_hash=signed.hash
            )
            watch = watched(
                tx,
                payment.id,
                operation.chain_id,
                signed.hash,
                now=now,
                due_at=now + POLL_MS,
                option_id=option.id,
            )
            return Decision(None, replaces=(sent,), events=events).joined(watch)

        self._ledger.commit(Scope.of(claimed), decide, claimed=claimed)

    def _step(
        self, claimed: Claimed, known: FundingOperation, trigger: str, waiting: Decision[None]
    ) -> None:
        """Step the operation, if it is still as it was, and keep the job."""

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            payment = locked_payment(tx, known.payment_id)
            _, operation = locked_option(tx, known.option_id)
            if operation.status != known.status:
                return waiting
            after, events = lifecycle.step(operation, trigger, payment, now=self._clock.now())
            return waiting.joined(Decision(None, replaces=(after,), events=events))

        self._ledger.commit(Scope.of(claimed), decide, claimed=claimed)

    def _wait(self, claimed: Claimed, known: FundingOperation) -> None:
        """The chain is silent: wait, but no longer than the authorization lives."""
        scope = Scope.of(claimed)

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            now = self._clock.now()
            if known.expires_at is None or now < known.expires_at:
                return wait_for_chain(claimed.job, now)
            payment = locked_payment(tx, known.payment_id)
            option, operation = locked_option(tx, known.option_id)
            assert operation.outgoing_id is not None
            outgoing = tx.get(Outgoing, operation.outgoing_id, for_update=True)
            assert outgoing is not None
            stopped = withdraw(outgoing)
            if operation.status != "authorized" or stopped is None:
                return wait_for_chain(claimed.job, now)
            change = Change(payment)
            return Decision(None, replaces=(stopped,)).joined(
                come_to_nothing(
                    tx,
                    draw,
                    scope.partition,
                    change,
                    option,
                    operation,
                    "expire",
                    lambda: withdrawn(tx, reservation_of(operation, payment)),
                    reason="expired",
                    now=now,
                )
            )

        self._ledger.commit(scope, decide, claimed=claimed)
