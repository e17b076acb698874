"""Follows a transaction until it is proof, or has failed.

One job per transaction and Payment asks the chain, and commits the observation in one step
(`observation.py`). Only this changes what a Payment received, and every observation may be
repeated. The jobs that a worker has together ask the chain together and commit together, except for
a transfer's failure, which may give a mandate its amount back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from payments_core.accounts.vaults.balance import StaleBalance
from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.record import Vault, VaultBalance, balance_id
from payments_core.accounts.vaults.reservations import BalanceReading
from payments_core.chains.backoff import back_off, poll_again
from payments_core.chains.judge import apply_acceptance, lacks_transfer
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.port import (
    Chain,
    ChainUnavailable,
    Heads,
    ReadsCode,
    TransactionView,
)
from payments_core.chains.replaced_blocks import is_replaced
from payments_core.chains.scanner import get_scanned_height
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.sequential_decisions import decide_sequentially
from payments_core.errors import DependencyFailed
from payments_core.payments.details import lock_payment, lock_vault_option
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.evaluation import ObservedTransaction
from payments_core.payments.receipts.record import Receipt, TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.payments.tracking.case import Observation
from payments_core.payments.tracking.observation import apply_observation
from payments_core.storage.port import ClaimedJob, Snapshot, Transaction
from payments_core.storage.reads import Get

MAX_UNSETTLED = 100
"""The number of transactions that a Payment counts before they are final; dust fills no record."""

LOST_AFTER_FAILURES = 3
"""After this many checks without an answer, the state of a sent transfer is `unknown`."""


_log = logging.getLogger(__name__)


@attrs.frozen
class _Case:
    """A job with its subject: the operation that sent the transaction, if it is ours, and its
    vault."""

    claimed: ClaimedJob
    tracked: TrackedTransaction
    payment: Payment
    operation: FundingOperation | None
    vault: Vault | None

    @property
    def locks(self) -> Sequence[Get]:
        """The rows that an observation locks, in that order."""
        operation = self.operation
        own = (
            (
                Get(PaymentOption, operation.option_id, "exclusive"),
                Get(FundingOperation, operation.id, "exclusive"),
            )
            if operation is not None
            else ()
        )
        return (
            Get(Payment, self.payment.id, "exclusive"),
            Get(TrackedTransaction, self.tracked.id, "exclusive"),
            *own,
            *(Get(Receipt, id, "exclusive") for id in self.tracked.receipt_ids),
        )

    @property
    def balance_locks(self) -> Sequence[Get]:
        """The rows that the end of its reservation locks in addition."""
        assert self.operation is not None
        id = balance_id(self.operation.vault_id, self.payment.asset.symbol)
        return (Get(VaultBalance, id, "exclusive"),)


class ReceiptJobs:
    """Follows transactions that concern a Payment."""

    def __init__(
        self, ports: Ports, chains: Mapping[int, Chain], outbox: Outbox, vaults: Vaults
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._networks = ports.networks
        self._chains = chains
        self._outbox = outbox
        self._vaults = vaults

    def watch(self, claimed: Sequence[ClaimedJob]) -> None:
        """Check transactions of one environment, and check again while they may still change."""
        authority = WorkerAuthority.of(claimed[0])
        cases = self._load_cases(authority, claimed)
        news: list[tuple[_Case, Observation]] = []
        for case, look in zip(cases, self._observe_all(authority, cases), strict=True):
            if isinstance(look, DependencyFailed):
                # the transaction was seen, but the balance is not known
                self._committer.finish(case.claimed, back_off(case.claimed.job, self._clock.now()))
            elif isinstance(look, ChainUnavailable):
                self._wait_or_mark_lost(case.claimed, case.tracked)
            else:
                news.append((case, look))
        for together in _split_commits(news):
            self._commit_together(authority, together)

    def _commit_together(
        self, authority: WorkerAuthority, news: Sequence[tuple[_Case, Observation]]
    ) -> None:
        """Commit observations, each of a different Payment.

        They may end reservations of one vault, whose balance is locked after all Payments.
        """
        by_job = {case.claimed.job.id: (case, look) for case, look in news}
        losses: dict[str, list[str]] = {}

        def decide(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[None]:
            now = self._clock.now()
            try:
                case, look = by_job[item.job.id]
                decision = apply_observation(
                    tx, id_sequence, authority.partition, case.tracked, look, now=now
                )
            except StaleBalance:  # an authorization has asked a newer block meanwhile
                return poll_again(now)
            losses[item.job.id] = [
                one.note for one in decision.inserts if isinstance(one, JournalEntry) and one.note
            ]
            return decision

        balances = [lock for case, look in news if look.reading for lock in case.balance_locks]
        self._committer.finish_all(
            authority,
            [case.claimed for case, _ in news],
            partial(decide_sequentially, decide=decide),
            reads=[
                *(lock for case, _ in news for lock in case.locks),
                *sorted(set(balances), key=lambda balance: balance.id),
            ],
        )
        for notes in losses.values():
            for note in notes:
                _log.critical("ALARM: %s (docs/how-to/networks.md)", note)

    def _load_cases(self, authority: WorkerAuthority, claimed: Sequence[ClaimedJob]) -> list[_Case]:
        """The subjects of the jobs, in their present state."""

        def load(snapshot: Snapshot) -> list[_Case]:
            tracked = snapshot.get_many(TrackedTransaction, {item.job.subject for item in claimed})
            payments = snapshot.get_many(Payment, {one.payment_id for one in tracked.values()})
            sending = {id: one.sending_option_id for id, one in tracked.items()}
            options = snapshot.get_many(
                PaymentOption, {id for id in sending.values() if id is not None}
            )
            operation_ids = {option.funding_operation_id for option in options.values()}
            operations = snapshot.get_many(
                FundingOperation, {id for id in operation_ids if id is not None}
            )
            vaults = snapshot.get_many(Vault, {one.vault_id for one in operations.values()})
            cases = []
            for item in claimed:
                found = tracked[item.job.subject]
                option_id = found.sending_option_id
                option = options[option_id] if option_id else None
                operation = operations[str(option.funding_operation_id)] if option else None
                vault = vaults[operation.vault_id] if operation else None
                cases.append(_Case(item, found, payments[found.payment_id], operation, vault))
            return cases

        return self._storage.read(authority.partition, load)

    def _observe_all(
        self, authority: WorkerAuthority, cases: Sequence[_Case]
    ) -> list[Observation | ChainUnavailable | DependencyFailed]:
        """The transactions as the chains know them: each chain is asked once for all of its own."""
        found: dict[str, Observation | ChainUnavailable | DependencyFailed] = {}
        for chain_id in sorted({case.tracked.chain_id for case in cases}):
            asked = [case for case in cases if case.tracked.chain_id == chain_id]
            try:
                scanned = get_scanned_height(self._storage, authority.mode, chain_id)
                heads = self._chains[chain_id].heads()
                settled = min(scanned, heads.final.number)
                hashes = [case.tracked.transaction_hash for case in asked]
                views = self._chains[chain_id].transactions(list(dict.fromkeys(hashes)))
            except ChainUnavailable as error:
                found.update((case.claimed.job.id, error) for case in asked)
                continue
            for case in asked:
                try:
                    found[case.claimed.job.id] = self._observe(
                        authority, case, heads, views, settled
                    )
                except (ChainUnavailable, DependencyFailed) as error:
                    found[case.claimed.job.id] = error
        return [found[case.claimed.job.id] for case in cases]

    def _observe(
        self,
        authority: WorkerAuthority,
        case: _Case,
        heads: Heads,
        views: Mapping[str, TransactionView | None],
        settled: int,
    ) -> Observation:
        """The transaction as the chain knows it, and the vault's balance after it.

        The heads are read before the transaction, and the balance after it: a state judged
        final is then contained in the balance. The Payment's terms decide when a stranger's
        transfer counts, but not a vault's, whose balance decreases at the chain's own finality:
        its reservation would count the same money twice. Our own transaction, if it is in
        no block, is sent again, unless it has failed permanently, another version with higher fees
        is in a block, or a foreign transaction has taken its nonce, so that it never will be.
        """
        tracked, payment, operation = case.tracked, case.payment, case.operation
        if tracked.transaction_hash not in views:
            raise ChainUnavailable("the nodes do not agree on the transaction")
        final_height = heads.final.number
        asset = payment.asset if tracked.chain_id == payment.chain_id else None
        is_strangers = not tracked.is_ours and asset is not None
        if is_strangers:
            known = payment.unsettled
            has_room = tracked.transaction_hash in known or len(known) < MAX_UNSETTLED
            early = payment.early_acceptance if has_room else None
            heads = apply_acceptance(heads, early, payment.confirmations)
        network = self._networks.get(tracked.chain_id)
        view = views[tracked.transaction_hash]
        observed = ObservedTransaction(view, heads, network, final_height, asset)
        if observed.block is None:
            _require_reorged(self._chains[tracked.chain_id], tracked)
        _require_logs(tracked, observed, str(payment.escrow_address))
        if operation is None:
            contracts = self._find_contracts(case, observed)
            return Observation(observed, None, settled, contracts=contracts)
        if observed.block is None and operation.status in (*funding.LIVE, "confirmed"):
            assert operation.outgoing_id is not None
            found = self._outbox.find_inclusion(authority, operation.outgoing_id)
            if observed.view is None and found.nonce_was_taken:
                reading = self._read_vault_balance(authority, case, heads)
                return Observation(observed, reading, settled, nonce_was_taken=True)
            if found.hash not in (None, tracked.transaction_hash):
                return Observation(observed, None, settled, included_hash=found.hash)
        if not observed.is_final or operation.status not in funding.LIVE:  # it has ended
            return Observation(observed, None, settled)
        return Observation(observed, self._read_vault_balance(authority, case, heads), settled)

    def _find_contracts(self, case: _Case, observed: ObservedTransaction) -> frozenset[str] | None:
        """The senders to the escrow that are contracts, once it is final; None if nobody knows.

        It only warns: without an answer the receipt goes on.
        """
        chain, view = self._chains[case.tracked.chain_id], observed.view
        if view is None or not observed.is_settled or not isinstance(chain, ReadsCode):
            return None
        escrow = case.payment.escrow_address
        senders = {log.sender for log in view.logs if log.recipient == escrow}
        try:
            return chain.find_code(sorted(senders)) if senders else None
        except ChainUnavailable:
            return None

    def _read_vault_balance(
        self, authority: WorkerAuthority, case: _Case, heads: Heads
    ) -> BalanceReading:
        """The balance of the operation's vault, at these heads' final height or after."""
        assert case.vault is not None
        return self._vaults.read_balance(
            authority.partition, case.vault, case.payment.asset, min_height=heads.final.number
        )

    def _wait_or_mark_lost(self, claimed: ClaimedJob, tracked: TrackedTransaction) -> None:
        """The chain does not answer: wait. A sent transfer soon becomes `unknown`."""
        waiting = back_off(claimed.job, self._clock.now())
        option_id = tracked.sending_option_id
        if option_id is None or claimed.job.failures < LOST_AFTER_FAILURES:
            self._committer.finish(claimed, waiting)
            return

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            payment = lock_payment(tx, tracked.payment_id)
            _, operation = lock_vault_option(tx, option_id)
            if operation.status != "broadcast":
                return waiting
            lost = funding.apply_trigger(operation, "lose", payment, now=self._clock.now())
            return waiting.merge(lost.as_decision())

        self._committer.commit(WorkerAuthority.of(claimed), decide, claimed=claimed)


def _split_commits(
    news: Sequence[tuple[_Case, Observation]],
) -> Sequence[Sequence[tuple[_Case, Observation]]]:
    """Observations by commits; the Payments of a commit are locked in the order of their ids."""
    ordered = sorted(news, key=lambda one: one[0].payment.id)
    failed = [one for one in ordered if one[1].nonce_was_taken or one[1].observed.has_failed]
    together = [one for one in ordered if one not in failed]
    return [*([together] if together else []), *([one] for one in failed)]


def _require_logs(tracked: TrackedTransaction, observed: ObservedTransaction, escrow: str) -> None:
    """Raise ChainUnavailable if a node shows none of the logs that the transaction must have.

    Our own always pays the escrow if it succeeds; a stranger's did in the block in which a scan
    has found that.
    """
    view, block = observed.view, observed.block
    if view is None or block is None or not lacks_transfer(view, escrow):
        return
    if tracked.is_ours or tracked.found_in == block.hash:
        raise ChainUnavailable("the node does not show the logs of a transaction")


def _require_reorged(chain: Chain, tracked: TrackedTransaction) -> None:
    """Raise ChainUnavailable unless another block has replaced that of the transaction.

    A lagging node, or one that lost an index, does not know the transaction either.
    """
    if tracked.block_number is None or tracked.block_hash is None:
        return
    if not is_replaced(chain, tracked.block_number, tracked.block_hash):
        raise ChainUnavailable("the node does not know a transaction of a block that still exists")
