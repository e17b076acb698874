"""Following a deposit until its transfer is final, and longer if the chain is reorganised.

One job per deposit asks the chain and commits the result in one step. Only this
confirms a deposit, and every look may be repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from payments_core.accounts.record import Account
from payments_core.chains.backoff import POLL_MS, REORG_RECHECK_MS, back_off
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    lock_transfer,
    send_job,
    withdraw_unsigned,
)
from payments_core.chains.port import Chain, ChainUnavailable
from payments_core.chains.scanner import get_scanned_height
from payments_core.clock import Instant
from payments_core.deposits import lifecycle
from payments_core.deposits.chain_view import DepositObservation, observe_deposit
from payments_core.deposits.record import REORGED, Deposit
from payments_core.deposits.sweep import SWEEP, new_sweep, vault_address
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.storage.port import ClaimedJob, Transaction

MISDIRECTED = "misdirected"
"""The label of an account at whose address a token is that it is not credited with."""

NOTE_RETURN = "payments.note_return"
"""The job that reports a return to its Payment; its subject is the transfer."""

_log = logging.getLogger(__name__)


class DepositWatch:
    """Looks at deposits."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain]) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains

    def watch(self, claimed: ClaimedJob) -> None:
        """Check the deposit, and check again while it may still change."""
        authority = WorkerAuthority.of(claimed)
        deposit = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Deposit, claimed.job.subject)
        )
        assert deposit is not None
        chain = self._chains.get(deposit.chain_id)
        scanned = get_scanned_height(self._storage, authority.mode, deposit.chain_id)
        try:
            observation = None if chain is None else observe_deposit(chain, deposit, self._networks)
        except ChainUnavailable:
            observation = None
        if chain is None or observation is None:
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now()))
            return
        vault = vault_address(chain, authority.partition, deposit.account_id)
        is_too_late = self._committer.commit(
            authority,
            lambda tx, id_sequence: apply_observation(
                tx,
                id_sequence,
                authority.partition,
                deposit,
                observation,
                vault,
                scanned,
                now=self._clock.now(),
            ),
            claimed=claimed,
        )
        if is_too_late:
            _log.critical(
                "ALARM: deposit %s is %s, but chain %d undid it in a reorg",
                deposit.id, deposit.status, deposit.chain_id,
            )  # fmt: skip


def apply_observation(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    known: Deposit,
    observation: DepositObservation,
    vault: str,
    scanned: int,
    *,
    now: Instant,
) -> Decision[bool]:
    """The decision of a look at a deposit. The result is whether it was undone and can no longer be
    reversed, since its funds are in the vault or on their way there.

    `known` is the deposit as it was before the look: a deposit that changed since is checked again.
    `scanned` is how far the chain had been scanned then.
    """
    labelled: Decision[None] = Decision(None)
    if observation.is_final and _shows_misdirected(known, observation):
        labelled = _label_account(tx, known.account_id, now)  # it is locked before its deposits
    current = tx.get(Deposit, known.id, for_update=True)
    assert current is not None
    if current.version != known.version:
        return Decision(False, next_run_at=now)
    step, stopped = Step(current), None
    outcome: Decision[bool] = Decision(False)
    if _is_reorged(current, observation):
        stopped = _withdraw_unsigned(tx, current)
        if _is_beyond_reorg(current, stopped):
            return _stop_watching(current)
        outcome = outcome.merge(_note_return(current, -current.amount_atomic, now))
        step = step.then(lifecycle.reorg, now=now)
    if observation.incoming is not None and _is_marked_reorged(step.record):
        step = step.then(lifecycle.reappear, observation.incoming, now=now)
    outcome = outcome.merge(Decision(None, replaces=(stopped,) if stopped else ()))
    if observation.incoming is not None and step.record.status != "failed":
        step = evolve(step, record=lifecycle.with_location(step.record, observation.incoming))
    if step.record.status == "detected" and observation.is_final and step.record.is_misdirected:
        step = step.then(lifecycle.reject, now=now)
        outcome = outcome.merge(labelled)
    elif step.record.status == "detected" and observation.is_final:
        outgoing = new_sweep(step.record, id_sequence.issue("out"), vault, now=now)
        step = step.then(lifecycle.confirm, outgoing.id, now=now)
        sweep = send_job(SWEEP, partition, outgoing, now)
        outcome = outcome.merge(
            Decision(None, inserts=(outgoing,), jobs=(sweep,)),
            _note_return(step.record, step.record.amount_atomic, now),
        )
    next_run_at = _next_watch_at(step.record, observation, scanned, now=now)
    after = evolve(step.record, watched=next_run_at is not None)
    if after != current:
        outcome = outcome.merge(evolve(step, record=after).as_decision())
    return evolve(outcome, next_run_at=next_run_at)


def _is_beyond_reorg(deposit: Deposit, stopped: OutboundTransfer | None) -> bool:
    """Whether its funds are on their way or elsewhere, so that a reorg reverses nothing."""
    if deposit.status == "rejected":
        sent_back = deposit.sent_back
        return sent_back is not None and sent_back.status != "failed" and stopped is None
    return deposit.status == "settled" or (deposit.status == "confirmed" and stopped is None)


def _shows_misdirected(deposit: Deposit, observation: DepositObservation) -> bool:
    """Whether the chain shows a token that is not credited, maybe in place of another."""
    incoming = observation.incoming
    shown = deposit if incoming is None else lifecycle.with_location(deposit, incoming)
    return shown.is_misdirected


def _label_account(tx: Transaction, account_id: str, now: Instant) -> Decision[None]:
    """The account with the label of misdirected funds."""
    account = tx.get(Account, account_id, for_update=True)
    assert account is not None
    if MISDIRECTED in account.labels:
        return Decision(None)
    labels = (*account.labels, MISDIRECTED)
    return Decision(None, replaces=(evolve(account, labels=labels, updated_at_ms=now),))


def _is_reorged(deposit: Deposit, observation: DepositObservation) -> bool:
    """Whether the chain no longer shows what was reported of the deposit."""
    if deposit.status == "failed":
        return False
    if observation.incoming is None or not lifecycle.is_same(deposit, observation.incoming):
        return True
    return deposit.status != "detected" and not observation.is_final


def _is_marked_reorged(deposit: Deposit) -> bool:
    return deposit.status == "failed" and deposit.failure == REORGED


def _next_watch_at(
    deposit: Deposit, observation: DepositObservation, scanned: int, *, now: Instant
) -> Instant | None:
    """When to look again: until it is final, and a scan would notice that it is undone.

    A missing transfer may come back while its height is not final, and a scan that
    never saw it missing would not report it; later blocks are scanned in any case.
    """
    if _is_marked_reorged(deposit):
        return now + POLL_MS if observation.final_height < deposit.block_number else None
    if deposit.status == "detected":
        return now + POLL_MS
    return None if deposit.block_number <= scanned else now + REORG_RECHECK_MS


def _note_return(deposit: Deposit, amount: int, now: Instant) -> Decision[None]:
    """Report a recipient's return to the Payment once it is final; or reverse it."""
    if deposit.returned_from is None or (amount < 0 and deposit.status != "confirmed"):
        return Decision(None)
    asset = {"chainId": str(deposit.chain_id), "assetSymbol": deposit.asset_symbol}
    arguments = {"amount": str(amount), **asset}
    lane = f"deposit:{deposit.id}"
    note = NewJob("chain", NOTE_RETURN, lane, now, deposit.returned_from, arguments)
    return Decision(None, jobs=(note,))


def _withdraw_unsigned(tx: Transaction, deposit: Deposit) -> OutboundTransfer | None:
    """The transfer that takes a deposit from its address, withdrawn; None if there is none, or it
    is signed."""
    outgoing_id = None
    if deposit.status == "confirmed":
        outgoing_id = deposit.sweep_id
    elif deposit.status == "rejected" and deposit.sent_back is not None:
        is_there = deposit.sent_back.status == "created" and deposit.sent_back.swept_by is None
        outgoing_id = deposit.sent_back.outgoing_id if is_there else None
    if outgoing_id is None:
        return None
    return withdraw_unsigned(lock_transfer(tx, outgoing_id))


def _stop_watching(deposit: Deposit) -> Decision[bool]:
    """The deposit unchanged, though it was undone, and no longer watched."""
    return Decision(True, replaces=(evolve(deposit, watched=False),))
