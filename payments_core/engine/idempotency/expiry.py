"""The hourly purge of an environment: stored answers after their retention (contract §4), and the
hourly work of other rooms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from payments_core.clock import HOUR, SECOND, Instant
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.storage.port import ClaimedJob, Transaction, Where

PURGE = "idempotency.purge"
BATCH = 200


def purge_job(partition: str, now: Instant) -> NewJob:
    """The job that an environment is created with; it recurs permanently."""
    return NewJob("timers", PURGE, f"purge:{partition}", now + HOUR, partition)


PurgeStep = Callable[[str], bool]
"""Deletes or counts a bounded number of a partition's records, in its own commits; True if there
are more."""


class HourlyPurge:
    """Deletes the expired answers of one environment, and does the steps of `others`."""

    def __init__(self, ports: Ports, others: Sequence[PurgeStep] = ()) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._others = others

    def run(self, claimed: ClaimedJob) -> None:
        """Delete a batch of each kind; return soon while there are more, else in an hour."""
        is_more = [delete(claimed.partition) for delete in self._others]
        now = self._clock.now()
        page = self._storage.read(
            claimed.partition,
            lambda snapshot: snapshot.find(
                StoredResponse, "by_expiry", where=(Where("expires_at", "<=", now),), limit=BATCH
            ),
        )
        next_run_at = now + (SECOND if len(page.records) == BATCH or any(is_more) else HOUR)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            found = [tx.get(StoredResponse, old.id, for_update=True) for old in page.records]
            # Its key may have been used again meanwhile.
            over = tuple(answer for answer in found if answer and answer.expires_at <= now)
            return Decision(None, deletes=over, next_run_at=next_run_at)

        self._committer.commit(WorkerAuthority.of(claimed), decide, claimed=claimed)
