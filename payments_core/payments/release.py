"""The release: from the escrow to the recipient, once, after the funds are proven."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.chains.judge import Expectation, judge
from payments_core.chains.outbox import Outbox, Outgoing
from payments_core.chains.port import Chain, ChainUnavailable
from payments_core.chains.waiting import POLL_MS, poll_again, wait_for_chain
from payments_core.clock import Clock, Instant
from payments_core.decision import Decision, Follow, Ledger, Scope
from payments_core.identifiers import Draw
from payments_core.payments import lifecycle
from payments_core.payments.details import locked_payment
from payments_core.payments.record import Payment
from payments_core.storage.port import Claimed, Storage, Transaction

RELEASE = "payments.release"
WATCH_RELEASE = "payments.watch_release"


def release_of(payment: Payment, id: str, *, now: Instant) -> Outgoing:
    """The transfer that an accepted Payment's funds go on with, less the recipient's fee."""
    return Outgoing(
        id=id,
        chain_id=payment.chain_id,
        token_address=payment.asset.address,
        source=payment.escrow_address,
        recipient=payment.destination.address,
        amount=payment.releasable - payment.fee,
        created_at=now,
    )


class ReleaseJobs:
    """Sends releases and follows them to finality."""

    def __init__(
        self,
        storage: Storage,
        ledger: Ledger,
        clock: Clock,
        chains: Mapping[int, Chain],
        outbox: Outbox,
    ) -> None:
        self._storage = storage
        self._ledger = ledger
        self._clock = clock
        self._chains = chains
        self._outbox = outbox

    def send(self, claimed: Claimed) -> None:
        """Hand the release to the chain. Its bytes are fixed: sent again, it moves nothing more."""
        scope = Scope.of(claimed)
        payment = self._payment(claimed)
        if payment.status != "accepted":  # sent before a crash
            self._ledger.finish(claimed)
            return
        assert payment.release_id is not None
        try:
            signed = self._outbox.signed(scope, payment.chain_id, payment.release_id)
            assert signed is not None
            self._chains[payment.chain_id].broadcast(signed)
        except ChainUnavailable:
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            now = self._clock.now()
            current = locked_payment(tx, payment.id)
            if current.status != "accepted":
                return Decision(None)
            executing, events = lifecycle.step(current, "release", now=now)
            lane = f"payment:{payment.id}"
            watch = Follow("chain", WATCH_RELEASE, lane, now + POLL_MS, payment.id)
            return Decision(None, replaces=(executing,), events=events, jobs=(watch,))

        self._ledger.commit(scope, decide, claimed=claimed)

    def watch(self, claimed: Claimed) -> None:
        """Look at the release: not final, final, or failed for good."""
        scope = Scope.of(claimed)
        payment = self._payment(claimed)
        if payment.status != "executing":
            self._ledger.finish(claimed)
            return
        try:
            reason = self._look(scope, payment)
        except ChainUnavailable:
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        if reason == "not_final":
            self._ledger.finish(claimed, poll_again(self._clock.now()))
            return

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            now = self._clock.now()
            current = locked_payment(tx, payment.id)
            if current.status != "executing":
                return Decision(None)
            if reason is None:
                after, events = lifecycle.settle(current, now=now)
            else:
                after, events = lifecycle.step(
                    current, "release_failed", now=now, reason=reason, failure=reason
                )
            return Decision(None, replaces=(after,), events=events)

        self._ledger.commit(scope, decide, claimed=claimed)

    def _payment(self, claimed: Claimed) -> Payment:
        payment = self._storage.read(
            claimed.partition, lambda snapshot: snapshot.get(Payment, claimed.job.subject)
        )
        assert payment is not None
        return payment

    def _look(self, scope: Scope, payment: Payment) -> str | None:
        """None where the release is proven, else the reason that it is not."""
        assert payment.release_id is not None
        signed = self._outbox.signed(scope, payment.chain_id, payment.release_id)
        assert signed is not None
        chain = self._chains[payment.chain_id]
        heads = chain.heads()
        view = chain.transaction(signed.hash)
        if view is None:
            chain.broadcast(signed)
            return "not_final"
        expectation = Expectation(
            payment.chain_id, payment.asset.address, payment.destination.address
        )
        if view.block is None or view.block.number > heads.final.number:
            return "not_final"  # whatever it shows: it may yet show something else
        verdicts = judge(expectation, chain.chain_id, view, heads, frozenset())
        reasons = [verdict.reason for verdict in verdicts]
        return None if None in reasons else reasons[0]
