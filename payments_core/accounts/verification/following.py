"""The look at a verification that a provider has not decided yet: one job for each.

The job exists from the moment when the case is opened, and pauses longer each time: a provider
without webhooks is polled by it, and a webhook that is lost costs time only. A notice brings it
forward.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from payments_core.accounts.verification.deciding import decide_verification
from payments_core.accounts.verification.lifecycle import PROVIDER_STATUSES
from payments_core.accounts.verification.port import KycProvider, KycUnavailable
from payments_core.accounts.verification.record import Verification
from payments_core.chains.backoff import back_off
from payments_core.clock import HOUR, MINUTE, Instant
from payments_core.engine.audit import Actor
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.ports import Ports
from payments_core.errors import InvalidState
from payments_core.notices.owners import Routed, bring_looks_forward
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Transaction

LOOK_AT_VERIFICATION = "verifications.look"
LOOK_QUEUE = Queue("looks", lane_concurrency=4, failure_blocks_lane=False, threads=1)
"""A provider that hangs takes one thread of a worker, and keeps no job of another kind waiting."""

MIN_PAUSE_MS = 1 * MINUTE
MAX_PAUSE_MS = 6 * HOUR

_log = logging.getLogger(__name__)


def look_job(mode: str, partition: str, verification: Verification, due_at: Instant) -> Job:
    """The one job of a verification: its id follows from the verification's."""
    return Job(
        id=f"{mode}:{LOOK_AT_VERIFICATION}:{verification.id}",
        queue=LOOK_QUEUE.full_name(mode),
        lane=f"kyc:{partition}",
        kind=LOOK_AT_VERIFICATION,
        due_at=due_at,
        subject=verification.id,
    )


def next_look_at(verification: Verification, now: Instant) -> Instant:
    """When to look again: after a minute at first, then less and less often."""
    waited = (now - verification.created_at_ms) // 4
    return now + min(max(waited, MIN_PAUSE_MS), MAX_PAUSE_MS)


class VerificationLooks:
    """Looks at verifications. `providers` has the KYC provider of each mode."""

    def __init__(self, ports: Ports, providers: Mapping[str, KycProvider]) -> None:
        self._ports = ports
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._version = ports.versions.current
        self._providers = providers

    def look(self, claimed: ClaimedJob) -> None:
        """The job: ask the provider, and store its decision. It ends with the verification."""
        authority = WorkerAuthority.of(claimed, Actor("provider", "kyc"))
        provider = self._providers.get(authority.mode)
        seen = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Verification, claimed.job.subject)
        )
        if provider is None or seen is None or seen.status != "pending" or seen.reference is None:
            self._committer.finish(claimed)
            return
        try:
            status = provider.look(seen.reference)
        except KycUnavailable:
            pause = back_off(claimed.job, self._clock.now(), "KYC provider")
            self._committer.finish(claimed, pause)
            return
        if status not in PROVIDER_STATUSES:  # it is tried again, and then parked with an alarm
            raise TypeError("the KYC provider's look returned no finding")

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            now = self._clock.now()
            if status == "pending":
                return Decision(None, next_run_at=next_look_at(seen, now))
            try:
                decided = decide_verification(
                    tx,
                    authority.partition,
                    seen.account_id,
                    seen.id,
                    status,
                    seen.api_version or self._version,
                    now=now,
                )
            except InvalidState:  # an operator has decided otherwise meanwhile, which stands
                return Decision(None)
            return Decision(None).merge(decided)

        self._committer.commit(authority, decide, claimed=claimed)

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Look at the verification of a provider's case now. See NoticeOwner."""

        def new_job(partition: str, verification: Verification) -> Job | None:
            if verification.status != "pending":
                return None
            return look_job(mode, partition, verification, self._clock.now())

        return bring_looks_forward(
            self._ports, mode, Verification, "by_reference", reference, new_job
        )
