"""When a Payment expires: the job at that time, the decision, and the end of the job before it.

A Payment expires when its chain has shown that nothing came in time, and not when the clock alone
says so (contract §6): the chain was scanned up to a final block that is later than `expires_at`,
and the transfers found there have been checked. Until then a payment that nobody has seen yet may
be in a block.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from payments_core.chains.backoff import back_off, poll_again
from payments_core.chains.port import Chain, ChainUnavailable
from payments_core.chains.scanner import ScanCursor, read_cursor
from payments_core.clock import HOUR, MINUTE, SECOND, Instant, is_ahead
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.misdirected.coin_reports import FoundCoin, find_coin, request_report
from payments_core.payments import lifecycle
from payments_core.payments.option_cleanup import close_open_options
from payments_core.payments.receipts.record import TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Snapshot, Transaction
from payments_core.storage.reads import Get

EXPIRE_PAYMENT = "payments.expire"
POLL_MS = 30 * SECOND
"""How often the job checks whether a live attempt has ended."""

MIN_PAUSE_MS = 2 * SECOND
MAX_PAUSE_MS = 5 * MINUTE
"""The pauses between two looks at how far the chain was scanned."""

UNREAD_ALARM_MS = 15 * MINUTE
"""How long a Payment waits for a chain that is not scanned before an alarm names the chain."""

NOT_FINAL_ALARM_MS = 2 * HOUR
"""How long a Payment waits for a chain whose blocks do not become final, before such an alarm."""

WakeScanner = Callable[[WorkerAuthority, int], None]

_log = logging.getLogger(__name__)


class PaymentExpiry:
    """The job at a Payment's expiry."""

    def __init__(
        self, ports: Ports, chains: Mapping[int, Chain], wake_scanner: WakeScanner
    ) -> None:
        """`wake_scanner` has a chain scanned soon that is seldom scanned."""
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._networks = ports.networks
        self._wake_scanner = wake_scanner
        self._alarms = _ChainAlarms(ports.clock.now())

    def run(self, claimed: ClaimedJob) -> None:
        """Expire the Payment, if it is time and its chain was read.

        A live attempt is waited for, and its end wakes the job. Options that nobody took expire in
        any case. Native coin that has come to the escrow gets a log, with which it is noticed.
        """
        authority = WorkerAuthority.of(claimed)
        now = self._clock.now()
        [payment] = self._storage.fetch(authority.partition, Get(Payment, claimed.job.subject))
        coin: FoundCoin | None = None
        is_due = payment is not None and payment.status in OPEN and now >= payment.expires_at_ms
        if payment is not None and is_due:
            waits = self._wait_for_chain(authority, payment, now)
            if waits is not None:
                self._committer.finish(claimed, waits)
                return
            try:
                coin = self._find_coin(authority, payment)
            except ChainUnavailable:
                self._committer.finish(claimed, back_off(claimed.job, now))
                return

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            payment = tx.get(Payment, claimed.job.subject, for_update=True)
            if payment is None:  # it has expired and been purged meanwhile
                return Decision(None)
            if now < payment.expires_at_ms:  # our clock is behind the claiming worker's
                return Decision(None, next_run_at=payment.expires_at_ms)
            if payment.status == "processing" or payment.is_pending:
                return Decision(None, next_run_at=now + POLL_MS)
            closed = close_open_options(tx, payment, "expire", now=now)
            if payment.status == "awaiting_payment":
                expired = lifecycle.expire(payment, now=now).as_decision().merge(closed)
                if coin is None:
                    return expired
                id = id_sequence.issue("out")
                return expired.merge(request_report(authority.partition, id, coin, now=now))
            return Decision(None).merge(closed)

        self._committer.commit(authority, decide, claimed=claimed)

    def _find_coin(self, authority: WorkerAuthority, payment: Payment) -> FoundCoin | None:
        """Native coin at the escrow that has no log. Raises ChainUnavailable."""
        if payment.escrow is None:
            return None
        chains, networks, partition = self._chains, self._networks, authority.partition
        return find_coin(chains, networks, partition, payment.chain_id, payment.escrow)

    def _wait_for_chain(
        self, authority: WorkerAuthority, payment: Payment, now: Instant
    ) -> Decision[None] | None:
        """When to look again; None if the chain has shown all that came in time."""
        scan = read_cursor(self._storage, authority.mode, payment.chain_id)
        if scan is None or scan.final_time <= payment.expires_at_ms:
            self._wake_scanner(authority, payment.chain_id)
            self._alarms.raise_if_late(payment, scan, now)
            return Decision(None, next_run_at=_estimate_final(payment, scan, now))
        has_unchecked = self._storage.read(
            authority.partition,
            lambda snapshot: _has_unchecked(snapshot, payment, scan.final_height),
        )
        return poll_again(now) if has_unchecked else None


def _has_unchecked(snapshot: Snapshot, payment: Payment, final_height: int) -> bool:
    """Whether a transaction that was found in time is still to be checked."""
    after = None
    while True:
        page = snapshot.find(
            TrackedTransaction, "by_payment", (payment.id,), after=after, limit=100
        )
        if any(
            tracked.watched
            and tracked.chain_id == payment.chain_id
            and tracked.block_number is not None
            and tracked.block_number <= final_height
            and (tracked.block_time is None or tracked.block_time <= payment.expires_at_ms)
            for tracked in page.records
        ):
            return True
        if page.next is None:
            return False
        after = page.next


def _estimate_final(payment: Payment, scan: ScanCursor | None, now: Instant) -> Instant:
    """When a final block later than the expiry may have been scanned; less and less often."""
    lag_ms = 0 if scan is None else max(0, min(scan.scanned_at_ms, now) - scan.final_time)
    expected_at = payment.expires_at_ms + lag_ms
    pause_ms = max(MIN_PAUSE_MS, expected_at + SECOND - now, (now - expected_at) // 8)
    return now + min(pause_ms, MAX_PAUSE_MS)


class _ChainAlarms:
    """Reports chains for which Payments wait, each at most every quarter of an hour."""

    def __init__(self, since: Instant) -> None:
        """`since` is when this process began: what was not scanned before it is no fault."""
        self._since = since
        self._alarmed_at: dict[int, Instant] = {}

    def raise_if_late(self, payment: Payment, scan: ScanCursor | None, now: Instant) -> None:
        """Raise the alarm if the chain was not scanned for long, or its blocks are not final."""
        begun = max(payment.expires_at_ms, self._since)
        scanned_at = 0 if scan is None or is_ahead(scan.scanned_at_ms, now) else scan.scanned_at_ms
        is_unread = now - max(begun, scanned_at) >= UNREAD_ALARM_MS
        if not is_unread and now - begun < NOT_FINAL_ALARM_MS:
            return
        chain_id = payment.chain_id
        last = self._alarmed_at.get(chain_id)
        if last is not None and 0 <= now - last < UNREAD_ALARM_MS:
            return
        self._alarmed_at[chain_id] = now
        _log.error(
            "ALARM: chain %d %s; its Payments cannot expire, and payments that came in time are "
            "not noticed (docs/how-to/troubles/late.md)",
            chain_id,
            f"was not scanned for {(now - max(begun, scanned_at)) // MINUTE} minutes"
            if is_unread
            else f"has no final block of the last {(now - begun) // MINUTE} minutes",
        )


def expiry_job(partition: str, payment: Payment) -> NewJob:
    """The job at a Payment's expiry; an earlier settlement ends the job."""
    return NewJob(
        "timers",
        EXPIRE_PAYMENT,
        f"expiry:{partition}",
        payment.expires_at_ms,
        payment.id,
        id=expiry_job_id(payment.id),
    )


def expiry_job_id(payment_id: str) -> str:
    """The id of the job at a Payment's expiry."""
    return f"expiry:{payment_id}"


def wake_expiry(tx: Transaction, payment: Payment, *, now: Instant) -> Decision[None]:
    """The job of a Payment whose last attempt ended after its time, due at once.

    A job that runs now is left alone: it looks again by itself.
    """
    if payment.status != "awaiting_payment" or now < payment.expires_at_ms:
        return Decision(None)
    job = tx.get(Job, expiry_job_id(payment.id), for_update=True)
    if job is None or job.due_at <= now or job.lease_until > now:
        return Decision(None)
    return Decision(None, replaces=(evolve(job, due_at=now),))


def end_expiry(tx: Transaction, payment: Payment) -> Decision[None]:
    """The job at the expiry of a Payment that keeps its funds, ended before its time.

    Its options ended when it was covered, and no other can be made. Transfers still on their way
    are waited for. Payments of the release before have a job of another id, which runs.
    """
    if payment.is_pending:
        return Decision(None)
    job = tx.get(Job, expiry_job_id(payment.id), for_update=True)
    return Decision(None, deletes=() if job is None else (job,))
