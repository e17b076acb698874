"""Following a transaction until it is proof, or came to nothing.

One job per transaction and Payment looks at the chain, and commits in one step what the look means
(`observation.py`). Only this moves what a Payment received, and every look may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.accounts.vaults.balance import StaleBalance
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.reservations import BalanceReading
from payments_core.chains.backoff import back_off, poll_again
from payments_core.chains.judge import with_confirmations
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.port import Chain, ChainUnavailable, Heads
from payments_core.chains.scanner import get_scanned_height
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import DependencyFailed
from payments_core.payments.details import lock_option, lock_payment
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import Option
from payments_core.payments.receipts.evaluation import ObservedTransaction
from payments_core.payments.receipts.observation import Observation, apply_observation
from payments_core.payments.receipts.record import TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.storage.port import ClaimedJob, Snapshot, Transaction

LOST_AFTER_FAILURES = 3
"""After so many looks without an answer a transfer that was sent counts as lost from sight."""


class ReceiptJobs:
    """Follows transactions that have to do with a Payment."""

    def __init__(
        self, ports: Ports, chains: Mapping[int, Chain], outbox: Outbox, vaults: Vaults
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._outbox = outbox
        self._vaults = vaults

    def watch(self, claimed: ClaimedJob) -> None:
        """Look at the transaction, and look again while it may still change."""
        authority = WorkerAuthority.of(claimed)
        tracked = self._storage.read(
            authority.partition,
            lambda snapshot: snapshot.get(TrackedTransaction, claimed.job.subject),
        )
        assert tracked is not None
        try:
            look = self._observe(authority, tracked)
        except DependencyFailed:  # the transaction was seen; it is the balance that is not known
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now()))
            return
        except ChainUnavailable:
            self._wait_or_mark_lost(claimed, tracked)
            return
        try:
            self._committer.commit(
                authority,
                lambda tx, id_sequence: apply_observation(
                    tx, id_sequence, authority.partition, tracked, look, now=self._clock.now()
                ),
                claimed=claimed,
            )
        except StaleBalance:  # an authorization has asked a newer block meanwhile
            self._committer.finish(claimed, poll_again(self._clock.now()))

    def _observe(self, authority: WorkerAuthority, tracked: TrackedTransaction) -> Observation:
        """What the chain knows of the transaction, and the vault's balance after it.

        The heads are read before the transaction, and the balance after it: what is judged final
        is then contained in the balance. What is final of a stranger's transfer the Payment's own
        terms may put off; not of a vault's, whose balance is less from the chain's own finality
        on: its reservation would count the same money twice. Our own transaction, if it is in no
        block, is sent again, unless it has failed for good; or another one with higher fees is in
        a block instead of it; or its slot was taken by what is not ours, and it never will be.
        """
        chain = self._chains[tracked.chain_id]
        payment = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Payment, tracked.payment_id)
        )
        assert payment is not None
        scanned = get_scanned_height(self._storage, authority.mode, tracked.chain_id)
        is_strangers = tracked.option_id is None and tracked.chain_id == payment.chain_id
        heads = with_confirmations(chain.heads(), payment.confirmations if is_strangers else 0)
        observed = ObservedTransaction(chain.transaction(tracked.transaction_hash), heads)
        if observed.block is None:
            _require_reorged(chain, tracked)
        operation = self._load_operation(authority, tracked)
        if operation is None:
            return Observation(observed, None, scanned)
        if observed.block is None and operation.status in (*funding.LIVE, "confirmed"):
            assert operation.outgoing_id is not None
            found = self._outbox.find_inclusion(authority, operation.outgoing_id)
            if observed.view is None and found.nonce_was_taken:
                reading = self._read_vault_balance(authority, operation, payment, heads)
                return Observation(observed, reading, scanned, nonce_was_taken=True)
            if found.hash not in (None, tracked.transaction_hash):
                return Observation(observed, None, scanned, included_hash=found.hash)
        if not observed.is_final:
            return Observation(observed, None, scanned)
        return Observation(
            observed, self._read_vault_balance(authority, operation, payment, heads), scanned
        )

    def _read_vault_balance(
        self,
        authority: WorkerAuthority,
        operation: FundingOperation,
        payment: Payment,
        heads: Heads,
    ) -> BalanceReading:
        """What the operation's vault holds, at these heads' final height or after."""
        return self._vaults.read_balance_by_id(
            authority.partition, operation.vault_id, payment.asset, min_height=heads.final.number
        )

    def _load_operation(
        self, authority: WorkerAuthority, tracked: TrackedTransaction
    ) -> FundingOperation | None:
        """The operation that sent the transaction, unless a stranger did."""
        option_id = tracked.option_id
        if option_id is None:
            return None

        def load(snapshot: Snapshot) -> FundingOperation | None:
            option = snapshot.get(Option, option_id)
            assert option is not None
            return snapshot.get(FundingOperation, option.funding_operation_id)

        return self._storage.read(authority.partition, load)

    def _wait_or_mark_lost(self, claimed: ClaimedJob, tracked: TrackedTransaction) -> None:
        """The chain does not answer: wait. Before long a transfer that was sent is `unknown`."""
        waiting = back_off(claimed.job, self._clock.now())
        option_id = tracked.option_id
        if option_id is None or claimed.job.failures < LOST_AFTER_FAILURES:
            self._committer.finish(claimed, waiting)
            return

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            payment = lock_payment(tx, tracked.payment_id)
            _, operation = lock_option(tx, option_id)
            if operation.status != "broadcast":
                return waiting
            lost = funding.apply_trigger(operation, "lose", payment, now=self._clock.now())
            return waiting.merge(lost.as_decision())

        self._committer.commit(WorkerAuthority.of(claimed), decide, claimed=claimed)


def _require_reorged(chain: Chain, tracked: TrackedTransaction) -> None:
    """Raise ChainUnavailable unless the block that the transaction was in is another one now.

    A node that lags behind, or lost an index, does not know the transaction either.
    """
    if tracked.block_number is None or tracked.block_hash is None:
        return
    block = chain.block(tracked.block_number)
    if block is None or block.hash == tracked.block_hash:
        raise ChainUnavailable("the node does not know a transaction of a block that still is")
