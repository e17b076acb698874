"""The job of one bank transfer: ask the bank, decide, and carry out the decision.

Each run asks the bank one thing and ends with one commit. The decision about the money is stored
before the bank is asked to carry it out, so a crash at any point repeats the same request:

1. A look. The transaction is inserted or takes its step, and money that has arrived is decided on
   (`review.py`). A crash before leaves the job, and the next run looks again.
2. A delivery. The bank is asked to send stablecoins to the transaction's escrow, under the
   transaction's id as the key. The job asks again until the chain shows them there, and final.
3. The credit. Its intent and its send job commit in the one transaction that ends this job; from
   then on the outbox sends it (`chains/outbox/jobs.py`).
4. A return instead. The bank is asked to send the money back, which it does once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from payments_core.accounts.capabilities.operations import find_activation_id
from payments_core.accounts.capabilities.record import CapabilityActivation
from payments_core.accounts.record import Account
from payments_core.banks.incoming import DeliveryOrder, FundingBank, IncomingTransfer
from payments_core.banks.port import BankRefused, BankUnavailable
from payments_core.banks.reviews import BankCapability
from payments_core.chains.backoff import back_off
from payments_core.chains.port import AddressSpec, Chain, ChainUnavailable
from payments_core.clock import DAY, HOUR, MINUTE, SECOND, Instant
from payments_core.engine.decision import Decision, WorkerAuthority, lock_shared
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.onramps import lifecycle
from payments_core.onramps.credit import ONRAMP_ARGUMENT, decide_credit
from payments_core.onramps.record import BankTransaction, OnrampAccount
from payments_core.onramps.review import LOOK_AGAIN_MS, Circumstances, review
from payments_core.storage.port import ClaimedJob, Snapshot, Transaction

FUNDING: BankCapability = "us_bank_funding"
MIN_DELIVERY_POLL_MS = 2 * SECOND
MAX_DELIVERY_POLL_MS = 1 * MINUTE
MAX_LOOK_PAUSE_MS = 6 * HOUR
LATE_DELIVERY_MS = 1 * DAY
"""After this time a delivery does not arrive any more, or it came and is gone: the storage was
restored, and has lost the credit."""

_log = logging.getLogger(__name__)


@attrs.frozen
class _Known:
    """The stored state of a transfer before the bank is asked."""

    transaction: BankTransaction | None
    onramp: OnrampAccount
    activation_id: str | None


class TransferFollower:
    """Follows the bank transfers of on-ramps."""

    def __init__(
        self, ports: Ports, banks: Mapping[str, FundingBank], chains: Mapping[int, Chain]
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._banks = banks
        self._chains = chains

    def follow(self, claimed: ClaimedJob) -> None:
        """The job: one request to the bank, one commit."""
        bank = self._banks.get(WorkerAuthority.of(claimed).mode)
        known = self._storage.read(claimed.partition, lambda snapshot: _load(snapshot, claimed))
        try:
            if bank is None:
                raise BankUnavailable("this deployment has no bank for on-ramps")
            self._act(claimed, bank, known)
        except BankUnavailable:
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now(), "bank"))
        except ChainUnavailable:
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now()))

    def _act(self, claimed: ClaimedJob, bank: FundingBank, known: _Known) -> None:
        transaction = known.transaction
        if transaction is None or transaction.status == "scheduled":
            self._look(claimed, bank, known)
        elif transaction.status not in ("received", "in_review") or transaction.credit_id:
            self._committer.finish(claimed)
        elif transaction.disposition == "deliver":
            self._deliver(claimed, bank, known, transaction)
        elif transaction.disposition == "refund":
            self._send_back(claimed, bank, known, transaction)
        else:
            self._look(claimed, bank, known)

    def _look(
        self, claimed: ClaimedJob, bank: FundingBank, known: _Known, *, is_refused: bool = False
    ) -> None:
        """Take the step for the bank's answer."""
        incoming = bank.find_incoming(claimed.job.subject)
        if incoming is None:
            raise BankUnavailable("the bank does not show a transfer that it reported")
        if not _belongs(incoming, known):
            _log.error(
                "ALARM: the bank shows transfer %s for another account or amount", incoming.id
            )
            again = Decision(None, next_run_at=self._clock.now() + LOOK_AGAIN_MS)
            self._committer.finish(claimed, again)
            return
        if is_refused and incoming.status != "returned":
            _log.error("ALARM: the bank refuses the decision on transfer %s", incoming.id)
        self._committer.commit(
            WorkerAuthority.of(claimed),
            lambda tx, id_sequence: self._decide_look(tx, id_sequence, known, incoming),
            claimed=claimed,
        )

    def _decide_look(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        known: _Known,
        incoming: IncomingTransfer,
    ) -> Decision[None]:
        now = self._clock.now()
        before = None
        circumstances = _circumstances(tx, known) if incoming.status == "received" else None
        if known.transaction is None:
            id = id_sequence.issue("bank_txn")
            step = lifecycle.observe_new(id, known.onramp, incoming, now=now)
        else:
            before = tx.get(BankTransaction, known.transaction.id, for_update=True)
            assert before is not None
            step = lifecycle.observe(before, incoming, now=now)
        next_run_at: Instant | None = None
        transaction = step.record
        if transaction.status in ("refunded", "failed"):
            pass
        elif transaction.disposition != "undecided":
            next_run_at = now + LOOK_AGAIN_MS
        elif circumstances is not None:
            reviewed = review(transaction, circumstances, now=now)
            step = _join(step, reviewed.step)
            next_run_at = reviewed.next_run_at
        else:
            next_run_at = _look_again_at(incoming, now)
        written = Decision(None) if step.record == before else step.as_decision()
        return evolve(written, next_run_at=next_run_at)

    def _deliver(
        self,
        claimed: ClaimedJob,
        bank: FundingBank,
        known: _Known,
        transaction: BankTransaction,
    ) -> None:
        """Credit the funds in the escrow, or have the bank deliver them there."""
        asset, amount = transaction.destination.asset, transaction.amount_atomic
        chain = self._chains[asset.chain_id]
        escrow = chain.derive(AddressSpec(claimed.partition, "escrow", transaction.id))
        if chain.balances(asset.address, [escrow]).amounts[escrow] < amount:
            order = DeliveryOrder(
                key=transaction.id,
                incoming_id=transaction.incoming_id,
                chain_id=asset.chain_id,
                token_address=asset.address,
                address=escrow,
                amount_atomic=amount,
            )
            try:
                delivery = bank.deliver(order)
            except BankRefused:
                self._look(claimed, bank, known, is_refused=True)
                return
            waited = self._committer.commit(
                WorkerAuthority.of(claimed),
                lambda tx, id_sequence: self._decide_waiting(tx, transaction.id),
                claimed=claimed,
            )
            if waited >= LATE_DELIVERY_MS:
                _log.error(
                    "ALARM: the stablecoins of %s did not arrive in %d hours; the bank reports %s",
                    transaction.id,
                    waited // HOUR,
                    delivery.status,
                )
            return

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            current = tx.get(BankTransaction, transaction.id, for_update=True)
            assert current is not None
            if current.status not in ("received", "in_review") or current.credit_id is not None:
                return Decision(None)
            credit_id = id_sequence.issue("out")
            now = self._clock.now()
            return decide_credit(current, credit_id, escrow, claimed.partition, now=now)

        self._committer.commit(WorkerAuthority.of(claimed), decide, claimed=claimed)

    def _decide_waiting(self, tx: Transaction, transaction_id: str) -> Decision[int]:
        """Look again for the bank's delivery. Returns how long it has been looked for."""
        current = tx.get(BankTransaction, transaction_id, for_update=True)
        assert current is not None
        now = self._clock.now()
        if current.delivery_asked_at_ms is None:
            asked = evolve(current, delivery_asked_at_ms=now)
            return Decision(0, replaces=(asked,), next_run_at=now + MIN_DELIVERY_POLL_MS)
        waited = now - current.delivery_asked_at_ms
        pause_ms = min(max(waited // 8, MIN_DELIVERY_POLL_MS), MAX_DELIVERY_POLL_MS)
        is_late = waited >= LATE_DELIVERY_MS
        return Decision(waited, next_run_at=now + (LOOK_AGAIN_MS if is_late else pause_ms))

    def _send_back(
        self,
        claimed: ClaimedJob,
        bank: FundingBank,
        known: _Known,
        transaction: BankTransaction,
    ) -> None:
        """Have the bank send the money back; a look then finds it returned."""
        try:
            bank.return_incoming(transaction.incoming_id, transaction.reason or "refund")
        except BankRefused:
            self._look(claimed, bank, known, is_refused=True)
            return
        self._look(claimed, bank, known)


def _load(snapshot: Snapshot, claimed: ClaimedJob) -> _Known:
    onramp = snapshot.get(OnrampAccount, claimed.job.arguments[ONRAMP_ARGUMENT])
    assert onramp is not None
    found = snapshot.find(BankTransaction, "by_incoming", (claimed.job.subject,), limit=1)
    return _Known(
        found.records[0] if found.records else None,
        onramp,
        find_activation_id(snapshot, onramp.account_id, FUNDING),
    )


def _belongs(incoming: IncomingTransfer, known: _Known) -> bool:
    """Whether the bank's transfer matches the notice and the stored one: for this on-ramp, and
    of the same amount. A notice is only a hint, and nothing is credited because of it."""
    stored = known.transaction
    is_as_much = stored is None or stored.amount_cents == incoming.amount_cents
    return incoming.account_key == known.onramp.bank_key and is_as_much


def _circumstances(tx: Transaction, known: _Known) -> Circumstances:
    account = lock_shared(tx, Account, known.onramp.account_id)
    onramp = lock_shared(tx, OnrampAccount, known.onramp.id)
    activation = known.activation_id and lock_shared(tx, CapabilityActivation, known.activation_id)
    assert account is not None
    assert onramp is not None
    return Circumstances(
        onramp_status=onramp.status,
        account_status=account.status,
        has_capability=bool(activation and activation.status == "active"),
    )


def _join(first: Step[BankTransaction], then: Step[BankTransaction]) -> Step[BankTransaction]:
    return Step(then.record, (*first.events, *then.events), (*first.entries, *then.entries))


def _look_again_at(incoming: IncomingTransfer, now: Instant) -> Instant:
    """When the bank expects a change, if it says; it also reports changes by notices."""
    expected_at = incoming.expected_at_ms
    if incoming.status == "scheduled" and expected_at is not None and expected_at > now:
        return min(expected_at, now + MAX_LOOK_PAUSE_MS)
    return now + LOOK_AGAIN_MS
