"""Following a transaction until it is proof, or came to nothing.

One job per transaction and Payment looks at the chain, and commits in one step what the look means
(`outcome.py`). Only this moves what a Payment received, and every look may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.accounts.vaults.lifecycle import BalanceOutdated
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.reservations import Asked
from payments_core.chains.backoff import poll_again, wait_for_chain
from payments_core.chains.judge import deepened
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.port import Chain, ChainUnavailable, Heads
from payments_core.chains.scanner import scanned_to
from payments_core.engine.decision import Decision, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import DependencyFailed
from payments_core.payments.details import locked_option, locked_payment
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import Option
from payments_core.payments.receipts.evidence import Sighting
from payments_core.payments.receipts.outcome import Look, decide
from payments_core.payments.receipts.record import Evidence
from payments_core.payments.record import Payment
from payments_core.storage.port import Claimed, Snapshot, Transaction

LOST_AFTER = 3
"""After so many looks without an answer a transfer that was sent counts as lost from sight."""


class ReceiptJobs:
    """Follows transactions that have to do with a Payment."""

    def __init__(
        self, ports: Ports, chains: Mapping[int, Chain], outbox: Outbox, vaults: Vaults
    ) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._outbox = outbox
        self._vaults = vaults

    def watch(self, claimed: Claimed) -> None:
        """Look at the transaction, and look again while it may still change."""
        scope = Scope.of(claimed)
        evidence = self._storage.read(
            scope.partition, lambda snapshot: snapshot.get(Evidence, claimed.job.subject)
        )
        assert evidence is not None
        try:
            look = self._look(scope, evidence)
        except DependencyFailed:  # the transaction was seen; it is the balance that is not known
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        except ChainUnavailable:
            self._silent(claimed, evidence)
            return
        try:
            self._ledger.commit(
                scope,
                lambda tx, draw: decide(
                    tx, draw, scope.partition, evidence, look, now=self._clock.now()
                ),
                claimed=claimed,
            )
        except BalanceOutdated:  # an authorization has asked a newer block meanwhile
            self._ledger.finish(claimed, poll_again(self._clock.now()))

    def _look(self, scope: Scope, evidence: Evidence) -> Look:
        """What the chain knows of the transaction, and the vault's balance after it.

        The heads are read before the transaction, and the balance after it: what is judged final
        is then contained in the balance. What is final of a stranger's transfer the Payment's own
        terms may put off; not of a vault's, whose balance is less from the chain's own finality
        on: its reservation would count the same money twice. Our own transaction, if it is in no
        block, is sent again, unless it has failed for good; or another one with higher fees is in
        a block instead of it; or its slot was taken by what is not ours, and it never will be.
        """
        chain = self._chains[evidence.chain_id]
        payment = self._storage.read(
            scope.partition, lambda snapshot: snapshot.get(Payment, evidence.payment_id)
        )
        assert payment is not None
        scanned = scanned_to(self._storage, scope.mode, evidence.chain_id)
        is_strangers = evidence.option_id is None and evidence.chain_id == payment.chain_id
        heads = deepened(chain.heads(), payment.confirmations if is_strangers else 0)
        sighting = Sighting(chain.transaction(evidence.transaction_hash), heads)
        if sighting.block is None:
            _require_undone(chain, evidence)
        operation = self._operation(scope, evidence)
        if operation is None:
            return Look(sighting, None, scanned)
        if sighting.block is None and operation.status in (*funding.LIVE, "confirmed"):
            assert operation.outgoing_id is not None
            if sighting.view is None and self._outbox.is_lost(scope, operation.outgoing_id):
                asked = self._asked(scope, operation, payment, heads)
                return Look(sighting, asked, scanned, is_lost=True)
            included = self._outbox.included(scope, operation.outgoing_id)
            if included not in (None, evidence.transaction_hash):
                return Look(sighting, None, scanned, included_as=included)
        if not sighting.is_final:
            return Look(sighting, None, scanned)
        return Look(sighting, self._asked(scope, operation, payment, heads), scanned)

    def _asked(
        self, scope: Scope, operation: FundingOperation, payment: Payment, heads: Heads
    ) -> Asked:
        """What the operation's vault holds, at these heads' final height or after."""
        return self._vaults.ask_by_id(
            scope.partition, operation.vault_id, payment.asset, least=heads.final.number
        )

    def _operation(self, scope: Scope, evidence: Evidence) -> FundingOperation | None:
        """The operation that sent the transaction, unless a stranger did."""
        option_id = evidence.option_id
        if option_id is None:
            return None

        def look(snapshot: Snapshot) -> FundingOperation | None:
            option = snapshot.get(Option, option_id)
            assert option is not None
            return snapshot.get(FundingOperation, option.funding_operation_id)

        return self._storage.read(scope.partition, look)

    def _silent(self, claimed: Claimed, evidence: Evidence) -> None:
        """The chain does not answer: wait. Before long a transfer that was sent is `unknown`."""
        waiting = wait_for_chain(claimed.job, self._clock.now())
        option_id = evidence.option_id
        if option_id is None or claimed.job.failures < LOST_AFTER:
            self._ledger.finish(claimed, waiting)
            return

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            payment = locked_payment(tx, evidence.payment_id)
            _, operation = locked_option(tx, option_id)
            if operation.status != "broadcast":
                return waiting
            lost = funding.step(operation, "lose", payment, now=self._clock.now())
            return waiting.joined(lost.as_decision())

        self._ledger.commit(Scope.of(claimed), decide, claimed=claimed)


def _require_undone(chain: Chain, evidence: Evidence) -> None:
    """Raise ChainUnavailable unless the block that the transaction was in is another one now.

    A node that lags behind, or lost an index, does not know the transaction either.
    """
    if evidence.block_number is None or evidence.block_hash is None:
        return
    block = chain.block(evidence.block_number)
    if block is None or block.hash == evidence.block_hash:
        raise ChainUnavailable("the node does not know a transaction of a block that still is")
