"""Jobs without an outcome: they are tried again, less and less often, and then parked."""

from __future__ import annotations

import logging
import traceback
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

import attrs

from payments_core.clock import MINUTE, SECOND, Clock, Instant
from payments_core.engine.decision import LeaseLost
from payments_core.errors import PaymentsError
from payments_core.evolve import evolve
from payments_core.storage.jobs import NEVER, Job, is_parked, mark_parked
from payments_core.storage.port import ClaimedJob, Storage, Transaction
from payments_core.telemetry import NOOP_TELEMETRY, Telemetry

CLAIMS_BEFORE_PARKING = 20
INITIAL_BACK_OFF_MS = 1 * SECOND
MAX_BACK_OFF_MS = 10 * MINUTE
UNKNOWN_KIND_DELAY_MS = 30 * SECOND
"""How long a job without a handler in this release waits; another process may have one."""

LEASE_MS = 5 * SECOND

_log = logging.getLogger(__name__)

_Change = Callable[[Job, Instant], Job]
"""What becomes of a claimed job at an instant."""


@attrs.frozen
class Queue:
    """A queue of jobs, named without its mode.

    `lane_concurrency` jobs of a lane may run at once. A lease of `lease_ms` is renewed while its
    job runs, for up to `run_limit_ms`: a handler that takes longer loses its job to another worker.
    With `failure_blocks_lane`, a failing job blocks its lane, since the jobs after it depend on it
    (a Payment, a sender); without, the others continue (a webhook endpoint). At most `threads` of a
    process serve it at once, so that slow work there leaves threads for the other queues; None
    means no limit, and with 0 a companion serves it.
    """

    name: str
    lane_concurrency: int = 1
    lease_ms: int = LEASE_MS
    run_limit_ms: int = 1 * MINUTE
    failure_blocks_lane: bool = True
    threads: int | None = None

    def full_name(self, mode: str) -> str:
        """The name under which a mode's jobs are stored."""
        return f"{mode}.{self.name}"


class ParkingPolicy:
    """The rules of failed jobs, for the code that runs jobs."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        kinds: Collection[str],
        telemetry: Telemetry = NOOP_TELEMETRY,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """`kinds` are the kinds that this release has handlers for.

        `refresh` is called before a row is written, and then the clock is read: no job is postponed
        by a clock that has jumped, which raises StorageUnavailable.
        """
        self._storage = storage
        self._clock = clock
        self._kinds = kinds
        self._refresh = refresh
        self.telemetry = telemetry

    def should_run(self, queue: Queue, claimed: ClaimedJob) -> bool:
        """Whether a claimed job may be run; if not, it is parked, or waits for its release."""
        job = claimed.job
        if job.claims > CLAIMS_BEFORE_PARKING:  # earlier attempts took the process down
            self._park(queue, claimed)
            return False
        if job.kind not in self._kinds:
            _log.error("no handler for jobs of kind %s; job %s waits", job.kind, job.id)
            # It was not tried, so this claim does not count towards parking.
            self._rewrite(
                [claimed],
                lambda job, now: _delay_until(
                    queue, evolve(job, claims=0), now + UNKNOWN_KIND_DELAY_MS
                ),
            )
            return False
        return True

    def record_failure(self, queue: Queue, claimed: ClaimedJob, error: Exception) -> None:
        """A job failed without an outcome."""
        job = claimed.job
        if isinstance(error, LeaseLost):
            _log.debug("job %s was claimed by another worker in the meantime", job.id)
            return
        _log.warning(
            "job %s (%s of %s) failed at attempt %d: %s",
            job.id, job.kind, job.subject, job.claims, describe_error(error),
        )  # fmt: skip
        if job.claims >= CLAIMS_BEFORE_PARKING:
            self._park(queue, claimed)
            return
        pause_ms = back_off_ms(job.claims)
        self._rewrite([claimed], lambda job, now: _delay_until(queue, job, now + pause_ms))

    def release_unstarted(self, claimed: Iterable[ClaimedJob]) -> None:
        """Release claimed jobs that were not begun: they are due again at once.

        One commit for each partition.
        """
        self._rewrite(claimed, lambda job, now: _unclaim(job))

    def postpone(self, queue: Queue, claimed: Iterable[ClaimedJob], wait_ms: int) -> None:
        """Release claimed jobs that were not begun, and make them due after `wait_ms`.

        Meanwhile they block their lanes if the queue says so. One commit for each partition.
        """
        self._rewrite(claimed, lambda job, now: _delay_until(queue, _unclaim(job), now + wait_ms))

    def _park(self, queue: Queue, claimed: ClaimedJob) -> None:
        job = claimed.job
        _log.critical(
            "ALARM: job %s (%s of %s) is parked after %d failed attempts; %s",
            job.id, job.kind, job.subject, job.claims,
            f"lane {job.lane} is blocked" if queue.failure_blocks_lane else "its lane continues",
        )  # fmt: skip
        self.telemetry.record_parked(queue.name, job.kind)
        self._rewrite([claimed], lambda job, now: _delay_until(queue, job, NEVER))

    def _rewrite(self, claimed: Iterable[ClaimedJob], change: _Change) -> None:
        """Write the jobs' rows, of each partition together; those of a failed write become due
        when their leases end."""
        by_partition: dict[str, list[ClaimedJob]] = defaultdict(list)
        for item in claimed:
            by_partition[item.partition].append(item)
        for partition, of_partition in by_partition.items():
            self._rewrite_together(partition, of_partition, change)

    def _rewrite_together(
        self, partition: str, claimed: Sequence[ClaimedJob], change: _Change
    ) -> None:
        def work(tx: Transaction) -> None:
            stored = tx.get_many(Job, [item.job.id for item in claimed], for_update=True)
            ours = [
                change(item.job, now)
                for item in claimed
                if (found := stored.get(item.job.id)) and found.version == item.job.version
            ]
            tx.write([mark_parked(one, now) for one in ours if is_parked(one)], ours)

        try:
            self._refresh()
            now = self._clock.now()
            self._storage.transact(partition, work)
        except Exception as error:  # after any error, the threads that run jobs must continue
            _log.warning(
                "%d jobs will be retried when their leases expire, %s first: %s",
                len(claimed),
                claimed[0].job.id,
                describe_error(error),
            )


def back_off_ms(claims: int) -> int:
    """The pause of a job after a failure. By its claims: failures add up across outcomes without
    progress."""
    return min(INITIAL_BACK_OFF_MS << (claims - 1), MAX_BACK_OFF_MS)


def longest_wait_ms(queue: Queue, job: Job) -> int:
    """How long the job's `lease_until` may be ahead: for a lease, or for a pause that blocks its
    lane."""
    if not queue.failure_blocks_lane:
        return queue.lease_ms
    pause_ms = back_off_ms(job.claims) if job.claims else UNKNOWN_KIND_DELAY_MS
    return max(queue.lease_ms, pause_ms)


def _unclaim(job: Job) -> Job:
    """A job as it was before its claim, if it was not begun."""
    return evolve(job, lease_until=0, claims=job.claims - 1, holder="")


def _delay_until(queue: Queue, job: Job, until: Instant) -> Job:
    """How a job waits: a live lease blocks its lane, a later due time lets the others pass."""
    if queue.failure_blocks_lane:
        return evolve(job, lease_until=until, holder="")
    return evolve(job, due_at=until, lease_until=0, holder="")


def describe_error(error: BaseException) -> str:
    """The loggable part of an error: its type and place, and its text only if it is ours.

    A foreign text may quote its input, for example a secret.
    """
    text = f": {error.message}" if isinstance(error, PaymentsError) else ""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    cause = f", from {type(error.__cause__).__name__}" if error.__cause__ else ""
    return f"{type(error).__name__}{text}{cause} ({places})"
