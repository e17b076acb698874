"""The way back of a deposit that its account is not credited with.

A deposit address can pay only its account's vault. So the funds are first brought there, and then
paid from the vault to the destination; an address that has paid out of a vault pays by itself. The
deposit is the owner of both transfers, one after the other, and names the newest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from payments_core.accounts.vaults.of_account import find_vaults_by_chain
from payments_core.accounts.vaults.record import Vault
from payments_core.accounts.vaults.reservations import mark_deployed
from payments_core.chains.outbox.owners import TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
    new_transfer,
    send_job,
    watch_job,
)
from payments_core.chains.port import Chain, Contract, SignedTransaction
from payments_core.clock import Instant
from payments_core.deposits import lifecycle as deposits
from payments_core.deposits.record import Deposit
from payments_core.deposits.sweep import vault_address
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.step import Step
from payments_core.errors import InvalidState, ResourceConflict
from payments_core.evolve import evolve
from payments_core.misdirected import lifecycle, transfers
from payments_core.misdirected.record import SentBack
from payments_core.screening.judging import Judgement
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

SEND_BACK = "deposits.send_back"
WATCH_RETURN = "deposits.watch_return"


def require_returnable(deposit: Deposit) -> None:
    """Return if its funds can be sent back. Raises InvalidState, ResourceConflict."""
    sent_back = deposit.sent_back
    if deposit.status != "rejected":
        raise InvalidState("deposit", deposit.status, "return")
    if sent_back is not None and sent_back.is_under_way:
        raise ResourceConflict("The deposit is on its way back.")
    if sent_back is not None and sent_back.status == "succeeded":
        raise ResourceConflict("The deposit was sent back.")


def decide_return(
    partition: str,
    deposit: Deposit,
    id_sequence: IdSequence,
    destination: str,
    vault: str,
    left: int,
    *,
    now: Instant,
) -> Decision[Deposit]:
    """The first transfer of a locked deposit's way back. Raises as `require_returnable`.

    `left` is how much of it is at its address: anybody may bring it to the vault, and then the rest
    is there.
    """
    require_returnable(deposit)
    swept_by = deposit.sent_back.swept_by if deposit.sent_back is not None else None
    needs_vault = deposit.contract.kind == "deposit" and swept_by is None and left > 0
    begun = lifecycle.create(
        id_sequence.issue("out"),
        destination,
        swept_by=swept_by,
        continues_as=id_sequence.issue("out") if needs_vault else None,
    )
    amount = left if needs_vault else deposit.amount_atomic
    return _send(partition, deposit, begun, vault, amount, now=now)


def _send(
    partition: str, deposit: Deposit, sent_back: SentBack, vault: str, amount: int, *, now: Instant
) -> Decision[Deposit]:
    """The transfer that comes next: to the vault, or from the vault to the destination."""
    source, recipient = deposit.contract, sent_back.destination
    if _is_paid_from_vault(deposit, sent_back):
        source = Contract("vault", deposit.account_id, vault)
    elif sent_back.continues_as is not None:
        recipient = vault
    outgoing = new_transfer(
        sent_back.outgoing_id,
        deposit.asset,
        "refund",
        deposit.id,
        source=source,
        recipient=recipient,
        amount=amount,
        now=now,
        funded_by=sent_back.swept_by,
    )
    after = evolve(deposit, sent_back=sent_back, updated_at_ms=now)
    job = send_job(SEND_BACK, partition, outgoing, now)
    return Decision(after, inserts=(outgoing,), replaces=(after,), jobs=(job,))


def _is_paid_from_vault(deposit: Deposit, sent_back: SentBack) -> bool:
    """Whether the newest transfer pays the destination out of the account's vault."""
    return deposit.contract.kind == "deposit" and sent_back.continues_as is None


@attrs.frozen
class _VaultFacts:
    """The partition and the vault of a deposit's account, as read outside of the transaction."""

    partition: str
    address: str
    vault: Vault | None


class DepositReturnOwner:
    """A rejected deposit whose funds go back."""

    purpose: TransferPurpose = "deposit_return"
    record_type = Deposit
    send_kind = SEND_BACK
    watch_kind = WATCH_RETURN
    on_unsent = None

    def __init__(self, ports: Ports, chains: Mapping[int, Chain]) -> None:
        self._storage = ports.storage
        self._chains = chains

    def find_to_send(self, record: Deposit) -> TransferToSend | None:
        """The transfer that was requested."""
        amount = record.amount_atomic
        return transfers.find_to_send(record, record.id, record.asset, amount)

    def on_screened(
        self, tx: Transaction, record: Deposit, judgement: Judgement, *, now: Instant
    ) -> Decision[bool] | None:
        """Held; or `failed`, and it is reported and can be requested again."""
        deposit = _lock_deposit(tx, record.id)
        judged = transfers.take_judgement(tx, deposit, judgement)
        if judged is None:
            return None
        sent_back, withdrawn = judged
        if withdrawn is None:
            return Decision(True).merge(_write(deposit, sent_back, now))
        failed = deposits.report_again(deposit, sent_back, now=now).as_decision()
        return Decision(False, replaces=(withdrawn,)).merge(failed)

    def find_to_watch(self, record: Deposit, job: Job) -> TransferToWatch | None:
        """The transfer that was sent."""
        return transfers.find_to_watch(record)

    def locks(self, record: Deposit, transaction_hash: str) -> Sequence[Get]:
        """The deposit."""
        return (Get(Deposit, record.id, "exclusive"),)

    def on_sent(
        self, tx: Transaction, record: Deposit, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """The transfer is `submitted`."""
        deposit = _lock_deposit(tx, record.id)
        sent = transfers.submit(deposit, signed)
        if sent is None:
            return Decision(None)
        watch = watch_job(WATCH_RETURN, f"deposit:{deposit.id}", deposit.id, now=now)
        return _write(deposit, sent, now).merge(Decision(None, jobs=(watch,)))

    def read_chain(self, partition: str, record: Deposit, outcome: TransferOutcome) -> _VaultFacts:
        """The account's vault: no list is read within a transaction."""
        vaults = self._storage.read(
            partition, lambda snapshot: find_vaults_by_chain(snapshot, record.account_id)
        )
        address = vault_address(self._chains[record.chain_id], partition, record.account_id)
        return _VaultFacts(partition, address, vaults.get(record.chain_id))

    def lock(self, tx: Transaction, record: Deposit, outgoing_id: str) -> Deposit | None:
        """The deposit, if it still waits for this transfer."""
        deposit = _lock_deposit(tx, record.id)
        return deposit if transfers.awaits(deposit, outgoing_id) else None

    def on_final(
        self,
        tx: Transaction,
        locked: Deposit,
        outcome: TransferOutcome,
        facts: _VaultFacts,
        *,
        now: Instant,
    ) -> Decision[None]:
        """In the vault, so that the next transfer begins; sent back; or failed permanently."""
        sent_back = locked.sent_back
        assert sent_back is not None
        if outcome.reason is not None:
            failed = lifecycle.apply_trigger(sent_back, "fail", failure=outcome.reason)
            return deposits.report_again(locked, failed, now=now).as_decision()
        if sent_back.continues_as is not None:
            swept = lifecycle.apply_trigger(
                sent_back,
                "continue",
                outgoing_id=sent_back.continues_as,
                continues_as=None,
                swept_by=sent_back.outgoing_id,
                transaction_hash=None,
            )
            return Decision(None).merge(
                _send(facts.partition, locked, swept, facts.address, locked.amount_atomic, now=now)
            )
        done = lifecycle.apply_trigger(sent_back, "confirm", transaction_hash=outcome.hash)
        written = deposits.note_sent_back(locked, done, now=now).as_decision()
        if facts.vault is None or not _is_paid_from_vault(locked, sent_back):
            return written
        return written.merge(mark_deployed(tx, facts.vault, now=now))

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """The funds are where they were before: it is reported, and can be requested again.

        A signed payment of funds that are not in the vault after all continues, and fails.
        """
        deposit = _lock_deposit(tx, outgoing.owner_id)
        sent_back = deposit.sent_back
        if sent_back is None:
            return Decision(None)
        if sent_back.outgoing_id == outgoing.id and sent_back.status == "succeeded":
            undone = lifecycle.apply_trigger(sent_back, "reorg", failure=reason)
            return deposits.report_again(deposit, undone, now=now).as_decision()
        if sent_back.swept_by != outgoing.id:
            return Decision(None)
        back = evolve(sent_back, swept_by=None)
        stopped = transfers.withdraw_unfunded(tx, back)
        if stopped is None:
            return _write(deposit, back, now)
        ended, withdrawn = stopped
        reported = deposits.report_again(deposit, ended, now=now).as_decision()
        return reported.merge(Decision(None, replaces=(withdrawn,)))


def _write(deposit: Deposit, sent_back: SentBack, now: Instant) -> Decision[None]:
    return Step(evolve(deposit, sent_back=sent_back, updated_at_ms=now)).as_decision()


def _lock_deposit(tx: Transaction, deposit_id: str) -> Deposit:
    deposit = tx.get(Deposit, deposit_id, for_update=True)
    assert deposit is not None, f"no deposit {deposit_id}"
    return deposit
