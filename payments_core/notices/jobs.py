"""The way of a notice to its case: one job for each notice.

A provider may report a case before its answer to our request is stored, so the job looks for it
again, with growing pauses. Then the notice is `unknown`, with an alarm. Routed notices are kept for
a while, so that a repeat finds them, and then deleted by the same job.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping

from payments_core.chains.backoff import MAX_BACKOFF_MS, POLL_MS
from payments_core.clock import DAY, MINUTE, Clock, Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.notices.owners import NoticeOwner
from payments_core.notices.record import NoticeStatus, ProviderKind, StoredNotice
from payments_core.storage.jobs import Job
from payments_core.storage.port import DIRECTORY, ClaimedJob, Transaction

ROUTE_NOTICE = "notices.route"

SEARCH_MS = 15 * MINUTE
"""How long the case of a notice is looked for."""

SECOND_LOOK_MS = 1 * MINUTE
"""After this pause a case is looked at once more: a provider may report before it knows itself."""

KEPT_MS = 3 * DAY
"""How long a routed notice is kept: a provider that repeats it later causes one more look."""

_log = logging.getLogger(__name__)


def route_job(notice: StoredNotice, due_at: Instant) -> Job:
    """The one job of a notice, in a lane of its case."""
    case = hashlib.sha256(f"{notice.kind}:{notice.reference}".encode()).hexdigest()[:32]
    return Job(
        id=f"{ROUTE_NOTICE}:{notice.id}",
        queue=f"{notice.mode}.timers",
        lane=f"notice:{case}",
        kind=ROUTE_NOTICE,
        due_at=due_at,
        subject=notice.id,
    )


class NoticeJobs:
    """Routes notices. `owners` has who follows the cases of each kind."""

    def __init__(self, ports: Ports, owners: Mapping[ProviderKind, NoticeOwner]) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock: Clock = ports.clock
        self._owners = owners

    def route(self, claimed: ClaimedJob) -> None:
        """The job: have the case looked at, or look for it again; at last delete the notice."""
        notice = self._storage.read(
            DIRECTORY, lambda snapshot: snapshot.get(StoredNotice, claimed.job.subject)
        )
        if notice is None or notice.status == "unknown":
            self._committer.finish(claimed)
            return
        now = self._clock.now()
        forgotten_at = notice.updated_at_ms + KEPT_MS
        if notice.status == "routed" and now >= forgotten_at:
            self._committer.finish(claimed, Decision(None, deletes=(notice,)))
            return
        owner = self._owners.get(notice.kind)
        found = "unknown" if owner is None else owner.bring_forward(notice.mode, notice.reference)
        if notice.status == "routed":
            self._committer.finish(claimed, Decision(None, next_run_at=forgotten_at))
        elif found == "done":
            self._end(claimed, notice, "routed", now + SECOND_LOOK_MS)
        elif now - notice.received_at_ms < SEARCH_MS:
            pause_ms = min(POLL_MS << min(claimed.job.failures, 16), MAX_BACKOFF_MS)
            again = Decision(None, next_run_at=now + pause_ms, made_no_progress=True)
            self._committer.finish(claimed, again)
        else:
            _log.error(
                "ALARM: a notice of %s/%s names a case that is %s: %s (payments admin notices)",
                notice.kind, notice.provider, found, notice.id,
            )  # fmt: skip
            self._end(claimed, notice, "unknown", None)

    def _end(
        self,
        claimed: ClaimedJob,
        notice: StoredNotice,
        status: NoticeStatus,
        next_run_at: Instant | None,
    ) -> None:
        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            current = tx.get(StoredNotice, notice.id, for_update=True)
            if current is None:
                return Decision(None)
            changed = evolve(current, status=status, updated_at_ms=self._clock.now())
            return Decision(None, replaces=(changed,), next_run_at=next_run_at)

        self._committer.commit(WorkerAuthority.of(claimed), decide, claimed=claimed)
