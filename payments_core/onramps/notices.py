"""Notices of incoming transfers: each leads to a job for its transfer, in its on-ramp's
environment, or in the directory if no on-ramp is known."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from payments_core.banks.incoming import FundingBank, IncomingNotice, IncomingTransfer
from payments_core.banks.notice_reader import NoticeJob, NoticesPage, store_jobs
from payments_core.banks.port import BankRefused, BankUnavailable
from payments_core.chains.backoff import back_off
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.bringing_forward import bring_forward
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.notices.owners import Routed
from payments_core.onramps.credit import FOLLOW_TRANSFER, ONRAMP_ARGUMENT
from payments_core.onramps.record import OnrampAccount, UnmatchedTransfer
from payments_core.onramps.review import LOOK_AGAIN_MS
from payments_core.plain_calls import call_plainly
from payments_core.storage.jobs import Job
from payments_core.storage.lookups import locate_with_damaged
from payments_core.storage.port import DIRECTORY, ClaimedJob, Transaction
from payments_core.tenants.modes import is_of_mode

RETURN_UNMATCHED = "onramps.return_unmatched"
UNMATCHED = "unmatched"

_log = logging.getLogger(__name__)


class IncomingNotices:
    """The notices of incoming transfers, for one mode."""

    def __init__(self, ports: Ports, bank: FundingBank, mode: str) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._bank = bank
        self._mode = mode

    @property
    def max_pause_ms(self) -> int:
        """As the bank says."""
        return self._bank.max_notice_pause_ms

    def store_page(self, after: str | None) -> NoticesPage:
        """One page of the bank's list."""
        page = self._bank.list_incoming_notices(after=after)
        jobs, left_out = self._jobs_of(page.notices)
        stored, has_left = store_jobs(self._committer, self._clock, self._mode, jobs)
        return NoticesPage(stored, has_left or left_out, next=page.next)

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        """Acknowledge these notices at the bank."""
        call_plainly("acknowledge", self._bank.acknowledge, notice_ids)

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Follow the transfer of this id now, if the bank shows it. See NoticeOwner."""
        try:
            incoming = self._bank.find_incoming(reference)
        except BankUnavailable:
            return "busy"  # the bank is asked again
        if incoming is None:
            return "unknown"
        shown = IncomingNotice(
            id=reference,
            incoming_id=incoming.id,
            account_key=incoming.account_key,
            occurred_at_ms=self._clock.now(),
        )
        jobs, has_damaged = self._jobs_of([shown])
        if not jobs:
            return "unreadable" if has_damaged else "unknown"
        stored, _ = store_jobs(self._committer, self._clock, mode, jobs)
        return "done" if stored else "busy"

    def _jobs_of(
        self, notices: Sequence[IncomingNotice]
    ) -> tuple[Mapping[str, Mapping[str, NoticeJob]], bool]:
        """The jobs by partition and id, each with its notices; none for the other mode's.

        Notices for an on-ramp that cannot be read stay at the bank, and whether there are any is
        the second result: its transfers must not go back as if they were for nobody.
        """
        keys = sorted({notice.account_key for notice in notices if notice.account_key is not None})
        found, damaged = locate_with_damaged(
            self._storage, OnrampAccount, "by_bank_key", [(key,) for key in keys]
        )
        left_out = {row.key[0] for row in damaged}
        owners = {item.record.bank_key: item for item in found}
        ours = {
            partition
            for partition in {item.partition for item in found}
            if is_of_mode(self._storage, partition, self._mode)
        }
        jobs: dict[str, dict[str, NoticeJob]] = defaultdict(dict)
        for notice in notices:
            if notice.account_key in left_out:
                continue
            owner = owners.get(notice.account_key or "")
            if owner is not None and owner.partition not in ours:
                continue
            partition = DIRECTORY if owner is None else owner.partition
            onramp = None if owner is None else owner.record
            job = new_transfer_job(
                self._mode, partition, notice.incoming_id, onramp, now=self._clock.now()
            )
            jobs[partition].setdefault(job.id, (job, []))[1].append(notice.id)
        return jobs, bool(left_out)


def new_transfer_job(
    mode: str, partition: str, incoming_id: str, onramp: OnrampAccount | None, *, now: Instant
) -> Job:
    """The one job of a transfer: its id follows from the transfer's."""
    kind = RETURN_UNMATCHED if onramp is None else FOLLOW_TRANSFER
    return Job(
        id=f"{mode}:{kind}:{incoming_id}",
        queue=f"{mode}.timers",
        lane=f"bank:{partition}",
        kind=kind,
        due_at=now,
        subject=incoming_id,
        arguments={} if onramp is None else {ONRAMP_ARGUMENT: onramp.id},
    )


class UnmatchedTransfers:
    """Sends back transfers that arrive for no known on-ramp."""

    def __init__(self, ports: Ports, banks: Mapping[str, FundingBank]) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._banks = banks

    def send_back(self, claimed: ClaimedJob) -> None:
        """The job: have the bank send it back, once it has arrived; the bank does that once."""
        mode = WorkerAuthority.of(claimed).mode
        bank, id = self._banks.get(mode), claimed.job.subject
        try:
            if bank is None:
                raise BankUnavailable("this deployment has no bank for on-ramps")
            incoming = bank.find_incoming(id)
            handed_over = None if incoming is None else self._hand_over(mode, incoming)
            if handed_over is not None:
                self._committer.finish(claimed, handed_over)
                return
            if incoming is not None and incoming.status == "received":
                try:
                    incoming = bank.return_incoming(id, UNMATCHED)
                except BankRefused as error:
                    _log.error("ALARM: the bank does not send back transfer %s: %s", id, error)
            if incoming is None:
                raise BankUnavailable("the bank does not show a transfer that it reported")
        except BankUnavailable:
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now(), "bank"))
            return
        shown = incoming

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            """Whether the row's status has changed: notices come more than once."""
            now: Instant = self._clock.now()
            row_id = f"{mode}:{id}"
            known = tx.get(UnmatchedTransfer, row_id, for_update=True)
            is_over = shown.status in ("returned", "cancelled")
            next_run_at = None if is_over else now + LOOK_AGAIN_MS
            if known is None:
                made = UnmatchedTransfer(
                    id=row_id,
                    rail=shown.rail,
                    amount_cents=shown.amount_cents,
                    status=shown.status,
                    created_at_ms=now,
                    updated_at_ms=now,
                )
                return Decision(True, inserts=(made,), next_run_at=next_run_at)
            if known.status == shown.status:
                return Decision(False, next_run_at=next_run_at)
            after = evolve(known, status=shown.status, updated_at_ms=now)
            return Decision(True, replaces=(after,), next_run_at=next_run_at)

        is_new_status = self._committer.commit(
            WorkerAuthority(DIRECTORY, mode), decide, claimed=claimed
        )
        if is_new_status and shown.status == "returned":
            _log.warning("bank transfer %s matches no on-ramp and was sent back", id)

    def _hand_over(self, mode: str, incoming: IncomingTransfer) -> Decision[None] | None:
        """Have the transfer followed for the on-ramp that the bank shows for it after all: the
        notice did not say. The result of this job, or None if there is no such on-ramp; one of
        the other mode is left to that mode's job.

        For an on-ramp that cannot be read it waits: the transfer must not go back as if for nobody.
        """
        if incoming.account_key is None:
            return None
        keys = [(incoming.account_key,)]
        found, damaged = locate_with_damaged(self._storage, OnrampAccount, "by_bank_key", keys)
        for owner in found:
            if is_of_mode(self._storage, owner.partition, mode):
                self._follow(mode, owner.partition, incoming.id, owner.record)
        if damaged:
            return Decision(None, next_run_at=self._clock.now() + LOOK_AGAIN_MS)
        return Decision(None) if found else None

    def _follow(self, mode: str, partition: str, incoming_id: str, onramp: OnrampAccount) -> None:
        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            job = new_transfer_job(mode, partition, incoming_id, onramp, now=now)
            return bring_forward(tx, job, now) or Decision(None)

        self._committer.commit(WorkerAuthority(partition, mode), decide)
