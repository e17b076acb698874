"""The job that follows a router, from its payment until the chain proves the result.

The router names the transaction that delivers or returns; the chain proves it. A crash at
any point leaves the job due, and the request to the router is repeated: a payment is exchanged
once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from payments_core.chains.backoff import POLL_MS, back_off
from payments_core.chains.hashes import HashError, canonical_hash
from payments_core.chains.judge import ExpectedTransfer, judge
from payments_core.chains.port import Chain, ChainUnavailable, TransferLog
from payments_core.clock import MINUTE, Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.networks import ChainType
from payments_core.payments import routing
from payments_core.payments.details import lock_payment
from payments_core.payments.record import Payment, PaymentRoute
from payments_core.quotes.record import DeliveryClaim, RouteDelivery
from payments_core.routers.port import Router, RouteRefused, RouterUnavailable
from payments_core.storage.port import DIRECTORY, ClaimedJob, Transaction

MAX_POLL_MS = 1 * MINUTE

_log = logging.getLogger(__name__)


@attrs.frozen
class _Proof:
    """A final transfer of the router, as the chain shows it."""

    is_delivery: bool
    chain_id: int
    hash: str
    log: TransferLog

    @property
    def transfer_id(self) -> str:
        """The transfer's name in a deployment."""
        return f"{self.chain_id}:{self.hash}:{self.log.position}"


class RouteJobs:
    """Follows payments to routers."""

    def __init__(
        self, ports: Ports, chains: Mapping[int, Chain], routers: Mapping[str, Router]
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._routers = routers

    def follow(self, claimed: ClaimedJob) -> None:
        """Ask the router and the chain; settle the Payment, or take the funds back, or wait."""
        authority = WorkerAuthority.of(claimed)
        payment = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Payment, claimed.job.subject)
        )
        assert payment is not None
        route = _live_route(payment)
        if route is None:
            self._committer.finish(claimed)
            return
        try:
            proof = self._find_proof(authority, payment, route)
        except (RouterUnavailable, ChainUnavailable):
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now(), "router"))
            return
        except RouteRefused:
            _log.critical("ALARM: the router does not know the order of %s", payment.id)
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now(), "router"))
            return
        if proof is None or (proof.is_delivery and not self._claim(authority, payment, proof)):
            self._committer.finish(claimed, _ask_again(payment, self._clock.now()))
            return

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            return self._decide(tx, payment, proof)

        self._committer.commit(authority, decide, claimed=claimed)

    def _claim(self, authority: WorkerAuthority, payment: Payment, proof: _Proof) -> bool:
        """Whether the transfer belongs to the Payment: the first claim in the deployment wins.

        It is a separate commit, since the row is in the directory. A process that dies after it
        leaves a claim that the Payment finds again.
        """

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            held = tx.get(DeliveryClaim, proof.transfer_id, for_update=True)
            if held is not None:
                return Decision(held.payment_id == payment.id)
            claim = DeliveryClaim(
                id=proof.transfer_id, payment_id=payment.id, created_at_ms=self._clock.now()
            )
            return Decision(True, inserts=(claim,))

        return self._committer.commit(WorkerAuthority(DIRECTORY, authority.mode), decide)

    def _decide(self, tx: Transaction, seen: Payment, proof: _Proof) -> Decision[None]:
        now = self._clock.now()
        current = lock_payment(tx, seen.id)
        if current.release_id != seen.release_id or _live_route(current) is None:
            return Decision(None)
        if not proof.is_delivery:
            return routing.take_back(current, proof.hash, now=now).as_decision()
        counted = tx.get(RouteDelivery, proof.transfer_id, for_update=True)
        if counted is not None:
            _log.critical(
                "ALARM: transfer %s was already counted; %s waits for another transfer",
                counted.id,
                current.id,
            )
            return _ask_again(current, now)
        delivery = RouteDelivery(
            id=proof.transfer_id,
            transfer=proof.transfer_id,
            payment_id=current.id,
            created_at_ms=now,
        )
        amount = proof.log.amount_atomic
        step = routing.settle_delivery(current, proof.hash, amount, now=now)
        return step.as_decision().merge(Decision(None, inserts=(delivery,)))

    def _find_proof(
        self, authority: WorkerAuthority, payment: Payment, route: PaymentRoute
    ) -> _Proof | None:
        """The router's transfer, if it has made one and the chain proves it."""
        router = self._routers.get(authority.mode)
        if router is None:
            raise RouterUnavailable("no router is configured")
        assert route.payment_hash is not None
        progress = router.deliver(route.key, route.payment_hash)
        if progress.state == "waiting" or progress.transaction_hash is None:
            return None
        if progress.state == "returned":
            return self._prove_return(payment, route, progress.transaction_hash)
        asset = route.asset
        hash = _parse_hash(self._chains[asset.chain_id].chain_type, progress.transaction_hash)
        paid = payment.released_atomic - payment.fee_atomic
        wanted = ExpectedTransfer(asset.chain_id, asset.address, payment.destination.address)
        logs = self._find_final_logs(wanted, hash)
        minimum = route.minimum_for(paid)
        # One transaction may pay several orders: the smallest sufficient transfer leaves them the
        # rest.
        for log in sorted(logs, key=lambda it: it.amount_atomic):
            proof = _Proof(True, asset.chain_id, hash, log)
            if log.amount_atomic >= minimum and self._may_count(proof, payment):
                return proof
        if logs:
            _log.critical(
                "ALARM: the router's transaction %s has no transfer of at least %d for %s",
                hash,
                minimum,
                payment.id,
            )
        return None

    def _prove_return(self, payment: Payment, route: PaymentRoute, named: str) -> _Proof | None:
        assert payment.escrow_address is not None
        asset = payment.asset
        hash = _parse_hash(self._chains[asset.chain_id].chain_type, named)
        if hash in route.return_hashes:
            return None
        wanted = ExpectedTransfer(asset.chain_id, asset.address, payment.escrow_address)
        paid = payment.released_atomic - payment.fee_atomic
        logs = self._find_final_logs(wanted, hash)
        for log in logs:
            if log.sender == route.address and log.amount_atomic >= paid:
                return _Proof(False, asset.chain_id, hash, log)
        if logs:
            _log.critical(
                "ALARM: the router's transaction %s does not return %d of %s",
                hash,
                paid,
                payment.id,
            )
        return None

    def _find_final_logs(self, wanted: ExpectedTransfer, hash: str) -> list[TransferLog]:
        """The transfers of a transaction that are as expected and final."""
        chain = self._chains[wanted.chain_id]
        heads = chain.heads()
        view = chain.transaction(hash)
        if view is None:
            return []
        verdicts = judge(wanted, wanted.chain_id, view, heads, consumed=frozenset())
        return [one.log for one in verdicts if one.log is not None and one.reason is None]

    def _may_count(self, proof: _Proof, payment: Payment) -> bool:
        """Whether the transfer is unclaimed in every environment, or the Payment's own.

        Its own stays its choice, even if it was counted since the Payment was read: a late
        job would claim another Payment's transfer. `_claim` and `_decide` decide.
        """
        id = proof.transfer_id
        claim = self._storage.read(DIRECTORY, lambda snapshot: snapshot.get(DeliveryClaim, id))
        if claim is not None and claim.payment_id != payment.id:
            return False
        counted = self._storage.locate(RouteDelivery, "by_transfer", [(id,)], limit=1)
        return all(one.record.payment_id == payment.id for one in counted)


def _parse_hash(chain_type: ChainType, text: str) -> str:
    """A hash that a router names, in its canonical form: what is counted once is compared by it.

    Nodes take a hash in any letters. Raises RouterUnavailable.
    """
    try:
        return canonical_hash(chain_type, text)
    except HashError as error:
        raise RouterUnavailable(f"a transaction's hash {error}") from error


def _ask_again(payment: Payment, now: Instant) -> Decision[None]:
    """Ask the router again: soon at first, then less and less often."""
    waited_ms = now - payment.updated_at_ms
    return Decision(None, next_run_at=now + min(max(waited_ms // 8, POLL_MS), MAX_POLL_MS))


def _live_route(payment: Payment) -> PaymentRoute | None:
    """The route of a Payment that waits for its router; None for any other."""
    route = payment.route
    if payment.status != "executing" or route is None or route.payment_hash is None:
        return None
    return route
