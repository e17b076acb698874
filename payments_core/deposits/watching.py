"""Following a deposit until its transfer is final, and beyond where the chain is reorganised.

One job per deposit looks at the chain and commits in one step what the look means. Only this
confirms a deposit, and every look may be repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from payments_core.chains.backoff import OVERSIGHT_MS, POLL_MS, wait_for_chain
from payments_core.chains.outbox.record import Outgoing, send_job, withdraw
from payments_core.chains.port import Chain, ChainUnavailable
from payments_core.chains.scanner import scanned_to
from payments_core.clock import Instant
from payments_core.deposits import lifecycle
from payments_core.deposits.looking import Look, look
from payments_core.deposits.record import REORGED, Deposit
from payments_core.deposits.sweeping import SWEEP, sweep_of, vault_address
from payments_core.engine.decision import Decision, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.engine.step import Step
from payments_core.storage.port import Claimed, Transaction

_log = logging.getLogger(__name__)


class DepositWatch:
    """Looks at deposits."""

    def __init__(self, ports: Ports, chains: Mapping[int, Chain]) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._chains = chains

    def watch(self, claimed: Claimed) -> None:
        """Look at the deposit, and look again while it may still change."""
        scope = Scope.of(claimed)
        deposit = self._storage.read(
            scope.partition, lambda snapshot: snapshot.get(Deposit, claimed.job.subject)
        )
        assert deposit is not None
        chain = self._chains.get(deposit.chain_id)
        scanned = scanned_to(self._storage, scope.mode, deposit.chain_id)
        try:
            seen = None if chain is None else look(chain, deposit)
        except ChainUnavailable:
            seen = None
        if chain is None or seen is None:
            self._ledger.finish(claimed, wait_for_chain(claimed.job, self._clock.now()))
            return
        vault = vault_address(chain, scope.partition, deposit.account_id)
        is_too_late = self._ledger.commit(
            scope,
            lambda tx, draw: decide(
                tx, draw, scope.partition, deposit, seen, vault, scanned, now=self._clock.now()
            ),
            claimed=claimed,
        )
        if is_too_late:
            _log.critical(
                "ALARM: deposit %s is %s, and chain %d has undone it",
                deposit.id, deposit.status, deposit.chain_id,
            )  # fmt: skip


def decide(
    tx: Transaction,
    draw: Draw,
    partition: str,
    known: Deposit,
    seen: Look,
    vault: str,
    scanned: int,
    *,
    now: Instant,
) -> Decision[bool]:
    """What a look makes of a deposit. The result is whether it was undone and can no longer be
    taken back, since its funds are in the vault or on their way there.

    `known` is the deposit as it was before the look: one that changed since is looked at again.
    `scanned` is how far the chain had been scanned then.
    """
    current = tx.get(Deposit, known.id, for_update=True)
    assert current is not None
    if current.version != known.version:
        return Decision(False, again_at=now)
    step, stopped = Step(current), None
    if _is_undone(current, seen):
        stopped = _stopped_sweep(tx, current)
        if current.status == "settled" or (current.status == "confirmed" and stopped is None):
            return _left(current)
        step = step.then(lifecycle.reorg, now=now)
    if seen.arrival is not None and _is_out(step.record):
        step = step.then(lifecycle.come_back, seen.arrival, now=now)
    outcome: Decision[bool] = Decision(False, replaces=(stopped,) if stopped else ())
    if seen.arrival is not None and step.record.status != "failed":
        step = attrs.evolve(step, record=lifecycle.placed(step.record, seen.arrival))
    if step.record.status == "detected" and seen.is_final:
        outgoing = sweep_of(step.record, draw.id("out"), vault, now=now)
        step = step.then(lifecycle.confirm, outgoing.id, now=now)
        sweep = send_job(SWEEP, partition, outgoing, now)
        outcome = outcome.joined(Decision(None, inserts=(outgoing,), jobs=(sweep,)))
    again_at = _again_at(step.record, seen, scanned, now=now)
    after = attrs.evolve(step.record, watched=again_at is not None)
    if after != current:
        outcome = outcome.joined(attrs.evolve(step, record=after).as_decision())
    return attrs.evolve(outcome, again_at=again_at)


def _is_undone(deposit: Deposit, seen: Look) -> bool:
    """Whether the chain no longer shows what has been told of the deposit."""
    if deposit.status == "failed":
        return False
    if seen.arrival is None or not lifecycle.is_same(deposit, seen.arrival):
        return True
    return deposit.status != "detected" and not seen.is_final


def _is_out(deposit: Deposit) -> bool:
    return deposit.status == "failed" and deposit.failure == REORGED


def _again_at(deposit: Deposit, seen: Look, scanned: int, *, now: Instant) -> Instant | None:
    """When to look again: until it is final, and a scan would notice its undoing.

    What is gone may come back to where it was while that height is not final, and a scan that
    never saw it gone would not tell of it; later blocks are scanned in any case.
    """
    if _is_out(deposit):
        return now + POLL_MS if seen.final_height < deposit.block_number else None
    if deposit.status == "detected":
        return now + POLL_MS
    return None if deposit.block_number <= scanned else now + OVERSIGHT_MS


def _stopped_sweep(tx: Transaction, deposit: Deposit) -> Outgoing | None:
    """The sweep of a confirmed deposit, withdrawn; None where it has none or it is too late."""
    if deposit.status != "confirmed" or deposit.sweep_id is None:
        return None
    outgoing = tx.get(Outgoing, deposit.sweep_id, for_update=True)
    assert outgoing is not None
    return withdraw(outgoing)


def _left(deposit: Deposit) -> Decision[bool]:
    """The deposit as it is, though it was undone, and watched no longer."""
    return Decision(True, replaces=(attrs.evolve(deposit, watched=False),))
