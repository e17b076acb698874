"""Notices of payouts: each leads to a job for its payout, in the Payment's environment."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from payments_core.banks.notice_reader import NoticeJob, NoticesPage, store_jobs
from payments_core.banks.port import MAX_NOTICES, Bank, BankNotice
from payments_core.clock import HOUR
from payments_core.engine.ports import Ports
from payments_core.notices.owners import Routed
from payments_core.payments.payouts.jobs import LOOK_AT_PAYOUT
from payments_core.payments.record import parse_payout_key
from payments_core.plain_calls import call_plainly
from payments_core.storage.jobs import Job
from payments_core.storage.port import Snapshot
from payments_core.tenants.record import Environment

MAX_LISTED = 6_400
"""The maximum page of notices, if those before them cannot be stored yet."""

_log = logging.getLogger(__name__)


class PayoutNotices:
    """The notices of payouts, for one mode."""

    max_pause_ms = 1 * HOUR
    """A payout's own job checks as seldom: only returns after weeks depend on notices."""

    def __init__(self, ports: Ports, bank: Bank, mode: str) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._bank = bank
        self._mode = mode

    def store_page(self, after: str | None) -> NoticesPage:
        """Acknowledged notices make room for more; others stay listed. So if a whole page
        stays, the next page is twice as long. `after` is the number of notices to ask for.
        """
        limit = MAX_NOTICES if after is None else int(after)
        notices = self._bank.list_notices(limit)
        jobs, nobodys = self._jobs_of(notices)
        stored, has_left = store_jobs(self._committer, self._clock, self._mode, jobs)
        ended = [*stored, *nobodys]
        if len(notices) < limit or ended:
            return NoticesPage(ended, has_left, next=None)
        if limit >= MAX_LISTED:
            _log.error("ALARM: %d notices of the bank are left; later ones cannot be read", limit)
            return NoticesPage(ended, has_left, next=None)
        return NoticesPage(ended, has_left, next=str(2 * limit))

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        """Acknowledge these notices at the bank."""
        call_plainly("acknowledge", self._bank.acknowledge, notice_ids)

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Look at the payout of a key now. See NoticeOwner."""
        parsed = parse_payout_key(reference)
        if parsed is None or self._find_mode(parsed[0]) != mode:
            return "unknown"
        job = self._new_job(parsed[0], reference)
        jobs = {parsed[0]: {job.id: (job, [reference])}}
        stored, _ = store_jobs(self._committer, self._clock, mode, jobs)
        return "done" if stored else "busy"

    def _jobs_of(
        self, notices: Sequence[BankNotice]
    ) -> tuple[Mapping[str, Mapping[str, NoticeJob]], list[str]]:
        """The jobs by partition and id, and the notices of no payout; the other mode's are left.

        Notices of no payout are acknowledged, or they would fill the list.
        """
        jobs: dict[str, dict[str, NoticeJob]] = defaultdict(dict)
        nobodys: list[str] = []
        modes: dict[str, str | None] = {}
        for notice in notices:
            parsed = parse_payout_key(notice.payout_key)
            partition = parsed[0] if parsed else ""
            if partition not in modes:
                modes[partition] = self._find_mode(partition) if parsed else None
            if modes[partition] is None:
                _log.error(
                    "ALARM: a notice of the bank matches no payout: %r", notice.payout_key[:200]
                )
                nobodys.append(notice.id)
            elif modes[partition] == self._mode:
                job = self._new_job(partition, notice.payout_key)
                jobs[partition].setdefault(job.id, (job, []))[1].append(notice.id)
        return jobs, nobodys

    def _find_mode(self, partition: str) -> str | None:
        """The mode of an environment; None if there is none."""

        def load(snapshot: Snapshot) -> str | None:
            environment = snapshot.get(Environment, partition)
            return None if environment is None else environment.mode

        return self._storage.read(partition, load)

    def _new_job(self, partition: str, key: str) -> Job:
        """The one job of a payout's notices: its id follows from the payout's key."""
        return Job(
            id=f"{self._mode}:{LOOK_AT_PAYOUT}:{key}",
            queue=f"{self._mode}.timers",
            lane=f"bank:{partition}",
            kind=LOOK_AT_PAYOUT,
            due_at=self._clock.now(),
            subject=key,
        )
