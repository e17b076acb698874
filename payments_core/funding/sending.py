"""The worker's side of a funding operation: send it, watch it, and prove it.

Each job does its I/O first and then commits the outcome with its own end. A crash at any point
makes the job due again, and what it repeats is harmless.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.chains.judge import Expectation, Verdict, judge
from payments_core.chains.outbox import Outbox, send_job
from payments_core.chains.port import (
    BalancesAt,
    Chain,
    ChainUnavailable,
    Heads,
    Signed,
    TransactionView,
    TransferLog,
)
from payments_core.chains.waiting import POLL_MS, poll_again, wait_for_chain
from payments_core.clock import Clock, Instant
from payments_core.decision import Decision, Follow, Ledger, Scope
from payments_core.errors import DependencyFailed
from payments_core.funding import lifecycle
from payments_core.funding.record import FundingOperation
from payments_core.identifiers import Draw
from payments_core.money import Money
from payments_core.options import lifecycle as options
from payments_core.options.record import Option
from payments_core.payments import lifecycle as payments
from payments_core.payments.details import locked_option, locked_payment
from payments_core.payments.operations import expire_if_due
from payments_core.payments.record import Payment
from payments_core.payments.release import RELEASE, release_of
from payments_core.receipts.record import Receipt
from payments_core.storage.port import Claimed, Storage, Transaction
from payments_core.vaults.lifecycle import BalanceOutdated, spent
from payments_core.vaults.operations import Vaults
from payments_core.vaults.record import Vault, VaultBalance, balance_id

WATCH = "funding.watch"


class FundingJobs:
    """Sends authorized transfers and follows them to their proof."""

    def __init__(
        self,
        storage: Storage,
        ledger: Ledger,
        clock: Clock,
        chains: Mapping[int, Chain],
        outbox: Outbox,
        vaults: Vaults,
    ) -> None:
        self._storage = storage
        self._ledger = ledger
        self._clock = clock
        self._chains = chains
        self._outbox = outbox
        self._vaults = vaults

    def send(self, claimed: Claimed) -> None:
        """Hand the authorized transfer to the chain."""
        scope = Scope.of(claimed)
        operation = self._operation(claimed)
        signed = None
        try:
            if operation.status == "authorized":
                signed = self._signed(scope, operation)
            if signed is not None:
                self._chains[operation.chain_id].broadcast(signed)
        except ChainUnavailable:
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        if signed is None:  # withdrawn, or sent before a crash
            self._ledger.finish(claimed)
            return
        self._ledger.commit(
            scope, lambda tx, draw: self._decide_sent(tx, operation, signed), claimed=claimed
        )

    def watch(self, claimed: Claimed) -> None:
        """Look at the transfer: not final yet, proven, or failed for good."""
        scope = Scope.of(claimed)
        operation = self._operation(claimed)
        if operation.status != "broadcast":
            self._ledger.finish(claimed)
            return
        try:
            sighting = self._look(scope, operation)
        except (ChainUnavailable, DependencyFailed):
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        if sighting.is_pending:
            decide = self._decide_pending
        elif sighting.is_proof:
            decide = self._decide_proven
        else:
            decide = self._decide_failed
        try:
            self._ledger.commit(
                scope,
                lambda tx, draw: decide(tx, draw, scope, operation, sighting),
                claimed=claimed,
            )
        except BalanceOutdated:  # an authorization has asked a newer block meanwhile
            self._ledger.finish(claimed, poll_again(self._clock.now()))

    # Looking.

    def _operation(self, claimed: Claimed) -> FundingOperation:
        operation = self._storage.read(
            claimed.partition, lambda snapshot: snapshot.get(FundingOperation, claimed.job.subject)
        )
        assert operation is not None
        return operation

    def _look(self, scope: Scope, operation: FundingOperation) -> _Sighting:
        """What the chain knows of the transfer, and the vault's balance after it.

        The heads are read before the transaction, and the balance after it: what is judged final
        is then contained in the balance.
        """
        chain = self._chains[operation.chain_id]
        payment, vault = self._storage.read(
            scope.partition,
            lambda snapshot: (
                snapshot.get(Payment, operation.payment_id),
                snapshot.get(Vault, operation.vault_id),
            ),
        )
        assert payment is not None
        assert vault is not None
        assert operation.transaction_hash is not None
        heads = chain.heads()
        view = chain.transaction(operation.transaction_hash)
        if view is None:
            self._send_again(scope, operation)
            return _Sighting(None, (), heads, BalancesAt(0, {}), vault.address)
        expectation = Expectation(operation.chain_id, payment.asset.address, payment.escrow_address)
        verdicts = judge(expectation, chain.chain_id, view, heads, frozenset())
        at = self._vaults.at_final(vault, payment.asset)
        if at.height < heads.final.number:  # another node, behind the one that knew the heads
            raise ChainUnavailable("the balance is older than the transaction's finality")
        return _Sighting(view, verdicts, heads, at, vault.address)

    def _send_again(self, scope: Scope, operation: FundingOperation) -> None:
        """The node forgot the transaction, or never had it: the same bytes again are harmless."""
        signed = self._signed(scope, operation)
        assert signed is not None
        self._chains[operation.chain_id].broadcast(signed)

    def _signed(self, scope: Scope, operation: FundingOperation) -> Signed | None:
        assert operation.outgoing_id is not None
        return self._outbox.signed(scope, operation.chain_id, operation.outgoing_id)

    # Deciding.

    def _decide_sent(
        self, tx: Transaction, known: FundingOperation, signed: Signed
    ) -> Decision[None]:
        now = self._clock.now()
        payment, _, operation = _locked(tx, known)
        if operation.status != "authorized":
            return Decision(None)
        sent, events = lifecycle.step(
            operation, "broadcast", payment, now=now, transaction_hash=signed.hash
        )
        watch = Follow("chain", WATCH, f"payment:{payment.id}", now + POLL_MS, operation.id)
        return Decision(None, replaces=(sent,), events=events, jobs=(watch,))

    def _decide_pending(
        self,
        tx: Transaction,
        draw: Draw,
        scope: Scope,
        known: FundingOperation,
        sighting: _Sighting,
    ) -> Decision[None]:
        """Note the transfers seen so far; they count for nothing before they are final."""
        now = self._clock.now()
        again = poll_again(now)
        view = sighting.view
        if view is None or view.block is None:
            return again
        _, _, operation = _locked(tx, known)
        if operation.receipt_ids:
            return again
        receipts = tuple(
            _observed(draw, operation, view, verdict.log, now)
            for verdict in sighting.verdicts
            if verdict.log is not None
        )
        noted = attrs.evolve(operation, receipt_ids=tuple(r.id for r in receipts), updated_at=now)
        return again.joined(Decision(None, inserts=receipts, replaces=(noted,)))

    def _decide_proven(
        self,
        tx: Transaction,
        draw: Draw,
        scope: Scope,
        known: FundingOperation,
        sighting: _Sighting,
    ) -> Decision[None]:
        """Receipt verified, operation confirmed, option succeeded, Payment accepted: one commit."""
        now = self._clock.now()
        payment, option, operation = _locked(tx, known)
        if operation.status != "broadcast":
            return Decision(None)
        receipts = _judged_receipts(tx, draw, operation, sighting, now)
        amount = sum(receipt.amount for receipt in receipts if receipt.status == "verified")
        confirmed, funding_events = lifecycle.step(
            operation,
            "confirm",
            payment,
            now=now,
            receipt_ids=tuple(receipt.id for receipt in receipts),
        )
        succeeded = options.step(option, "verify", now=now, paid=option.paid + amount)
        received, payment_events = payments.receive(payment, amount, now=now)
        balance = _locked_balance(tx, operation)
        after = spent(
            balance, Money(operation.amount, balance.asset_id), sighting.total, sighting.height
        )
        outcome = Decision(
            None,
            inserts=tuple(receipt for receipt in receipts if receipt.version == 0),
            replaces=(confirmed, succeeded, after, *(r for r in receipts if r.version > 0)),
            events=(*funding_events, *payment_events),
        )
        return outcome.joined(self._follow_up(tx, draw, scope, received, option))

    def _decide_failed(
        self,
        tx: Transaction,
        draw: Draw,
        scope: Scope,
        known: FundingOperation,
        sighting: _Sighting,
    ) -> Decision[None]:
        """The failure is final: the reservation is given back and the Payment waits again."""
        now = self._clock.now()
        reason = str(sighting.verdicts[0].reason)
        payment, option, operation = _locked(tx, known)
        if operation.status != "broadcast":
            return Decision(None)
        failed, events = lifecycle.step(operation, "fail", payment, now=now, failure=reason)
        waiting, _ = payments.end_attempt(payment, now=now, reason=reason)
        balance = _locked_balance(tx, operation)
        freed = spent(
            balance, Money(operation.amount, balance.asset_id), sighting.total, sighting.height
        )
        ended = options.end(option, "fail", now=now)
        rejected = _rejected_receipts(tx, operation, sighting.verdicts[0])
        outcome = Decision(None, replaces=(failed, ended, freed, *rejected), events=events)
        return outcome.joined(self._follow_up(tx, draw, scope, waiting, option))

    def _follow_up(
        self, tx: Transaction, draw: Draw, scope: Scope, payment: Payment, ended: Option
    ) -> Decision[None]:
        """What a changed Payment does next: release what is covered, or expire if it is time."""
        now = self._clock.now()
        if payment.status != "accepted":
            expired = expire_if_due(tx, payment, now=now, ended=ended.id)
            return expired if expired.replaces else Decision(None, replaces=(payment,))
        outgoing = release_of(payment, draw.id("out"), now=now)
        releasing = attrs.evolve(payment, release_id=outgoing.id)
        job = send_job(RELEASE, payment.id, scope.partition, outgoing, now)
        return Decision(None, inserts=(outgoing,), replaces=(releasing,), jobs=(job,))


@attrs.frozen
class _Sighting:
    """The transaction, what it proves, and the vault's balance at a final height."""

    view: TransactionView | None
    verdicts: tuple[Verdict, ...]
    heads: Heads
    at: BalancesAt
    vault_address: str

    @property
    def is_pending(self) -> bool:
        """Not in a block, or in one that is not final, whatever it shows there."""
        block = self.view.block if self.view is not None else None
        return block is None or block.number > self.heads.final.number

    @property
    def is_proof(self) -> bool:
        """Whether at least one transfer is proven."""
        return any(verdict.reason is None for verdict in self.verdicts)

    @property
    def total(self) -> int:
        """The vault's balance on chain."""
        return self.at.amounts[self.vault_address]

    @property
    def height(self) -> int:
        """The final height of that balance."""
        return self.at.height


def _locked(tx: Transaction, known: FundingOperation) -> tuple[Payment, Option, FundingOperation]:
    """The Payment, the option and the operation, locked in that order."""
    payment = locked_payment(tx, known.payment_id)
    option, operation = locked_option(tx, known.option_id)
    return payment, option, operation


def _locked_balance(tx: Transaction, operation: FundingOperation) -> VaultBalance:
    balance = tx.get(
        VaultBalance, balance_id(operation.vault_id, operation.asset_symbol), for_update=True
    )
    assert balance is not None
    return balance


def _judged_receipts(
    tx: Transaction, draw: Draw, operation: FundingOperation, sighting: _Sighting, now: Instant
) -> tuple[Receipt, ...]:
    """The operation's receipts with their verdicts; those seen before keep their ids."""
    view = sighting.view
    assert view is not None
    kept = [tx.get(Receipt, id, for_update=True) for id in operation.receipt_ids]
    known = {receipt.position: receipt for receipt in kept if receipt is not None}
    receipts: list[Receipt] = []
    for verdict in sighting.verdicts:
        if verdict.log is None:
            continue
        receipt = known.get(verdict.log.position)
        receipt = receipt or _observed(draw, operation, view, verdict.log, now)
        receipts.append(_judged(receipt, view, verdict, now))
    return tuple(receipts)


def _rejected_receipts(
    tx: Transaction, operation: FundingOperation, verdict: Verdict
) -> tuple[Receipt, ...]:
    """The receipts that were seen before the transfer failed for good."""
    seen = [tx.get(Receipt, id, for_update=True) for id in operation.receipt_ids]
    return tuple(
        attrs.evolve(receipt, status="rejected", rejection_reason=verdict.reason)
        for receipt in seen
        if receipt is not None
    )


def _observed(
    draw: Draw, operation: FundingOperation, view: TransactionView, log: TransferLog, now: Instant
) -> Receipt:
    assert view.block is not None
    return Receipt(
        id=draw.id("receipt"),
        payment_id=operation.payment_id,
        option_id=operation.option_id,
        chain_id=operation.chain_id,
        transaction_hash=view.hash,
        position=log.position,
        log_index=log.log_index,
        token_address=log.token_address,
        sender=log.sender,
        recipient=log.recipient,
        amount=log.amount_atomic,
        block_number=view.block.number,
        block_hash=view.block.hash,
        status="observed",
        observed_at=now,
    )


def _judged(receipt: Receipt, view: TransactionView, verdict: Verdict, now: Instant) -> Receipt:
    assert view.block is not None
    assert verdict.log is not None
    placed = attrs.evolve(
        receipt,
        block_number=view.block.number,
        block_hash=view.block.hash,
        log_index=verdict.log.log_index,
    )
    if verdict.reason is not None:
        return attrs.evolve(placed, status="rejected", rejection_reason=verdict.reason)
    return attrs.evolve(placed, status="verified", verified_at=now)
