"""The hourly purge of an environment: stored responses after their retention (contract §4), and the
hourly work of other rooms."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from payments_core.clock import HOUR, MINUTE, SECOND, Instant
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.parking import describe_error
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.storage.port import ClaimedJob, StorageUnavailable, Transaction, Where

PURGE = "idempotency.purge"
BATCH = 200

RETRY_MS = 10 * MINUTE
"""How soon a failed step is tried again."""

_log = logging.getLogger(__name__)


def purge_job(partition: str, now: Instant) -> NewJob:
    """The job that an environment is created with; it recurs permanently."""
    return NewJob("timers", PURGE, f"purge:{partition}", now + HOUR, partition)


PurgeStep = Callable[[str], bool]
"""Deletes or counts a bounded number of a partition's records, in its own commits; True if there
are more."""


class HourlyPurge:
    """Deletes the expired responses of one environment, and does the steps of `others`."""

    def __init__(self, ports: Ports, others: Sequence[PurgeStep] = ()) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._steps = (*others, self._delete_responses)

    def run(self, claimed: ClaimedJob) -> None:
        """Do each step; return soon while there is more to do, else in an hour.

        A step that fails stops no other step, and never parks the job: the log has an alarm, or a
        warning while the storage is not available, and all are done again after ten minutes.
        """
        pauses_ms = [self._do(step, claimed.partition) for step in self._steps]
        next_run_at = self._clock.now() + min(pauses_ms)
        self._committer.commit(
            WorkerAuthority.of(claimed),
            lambda tx, id_sequence: Decision(None, next_run_at=next_run_at),
            claimed=claimed,
        )

    def _do(self, step: PurgeStep, partition: str) -> int:
        """Do a step; return after how many milliseconds it has work again."""
        try:
            return SECOND if step(partition) else HOUR
        except Exception as error:
            is_outage = isinstance(error, StorageUnavailable | Unavailable)
            _log.log(
                logging.WARNING if is_outage else logging.CRITICAL,
                "%sa step of the hourly purge of %s failed, and is tried again in %d minutes: %s",
                "" if is_outage else "ALARM: ",
                partition,
                RETRY_MS // MINUTE,
                describe_error(error),
            )
            return RETRY_MS

    def _delete_responses(self, partition: str) -> bool:
        """Delete a batch of expired responses; True if there may be more."""
        now = self._clock.now()
        page = self._storage.read(
            partition,
            lambda snapshot: snapshot.find(
                StoredResponse, "by_expiry", where=(Where("expires_at", "<=", now),), limit=BATCH
            ),
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            found = [tx.get(StoredResponse, old.id, for_update=True) for old in page.records]
            # Its key may have been used again meanwhile.
            over = tuple(
                response for response in found if response and response.expires_at_ms <= now
            )
            return Decision(None, deletes=over)

        if page.records:
            self._committer.commit(WorkerAuthority(partition, "upkeep"), decide)
        return len(page.records) == BATCH
