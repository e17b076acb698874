"""A job that is due later than any right clock can have written: it is due now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import attrs
import pytest

from payments_core.clock import HOUR, MAX_CLOCK_SKEW_MS, SECOND, FixedClock, Instant
from payments_core.engine.jobs.parking import MAX_BACK_OFF_MS
from payments_core.engine.jobs.postponed import LongestDelays, PostponedJobs
from payments_core.engine.jobs.worker import Worker
from payments_core.evolve import evolve
from payments_core.sandbox.clock import SandboxClock
from payments_core.storage.jobs import NEVER
from payments_core.storage.maintenance import PrimaryKey, RecordRow
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import StorageUnavailable
from payments_core.storage.records import Record
from tests.core.engine.jobs.bench import AUTHORITY, PASSING, STOPPING, Bench

DELAYS = {"note": LongestDelays(later_ms=HOUR)}
JUMP_S = 3 * 3_600


class Searched(MemoryStorage):
    """Counts the searches, and lets something happen within one."""

    searches = 0

    def __init__(self) -> None:
        super().__init__()
        self.within: Callable[[], object] = lambda: None

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = 1_000
    ) -> Sequence[RecordRow]:
        if after is None:
            self.searches += 1
            self.within()
        return super().read_rows(kind, after=after, limit=limit)


class OnServer(Searched):
    """A storage whose server has a clock."""

    def server_time(self) -> Instant:
        return 0


def look(bench: Bench, delays: Mapping[str, LongestDelays] = DELAYS) -> None:
    """The first look of a process."""
    postponed = PostponedJobs(bench.storage, "sandbox", delays, bench.clock.now)
    postponed.look(bench.clock.now())


def worker(bench: Bench) -> Worker:
    handlers = {"note": bench.note}
    look_back = PostponedJobs(bench.storage, "sandbox", DELAYS, bench.clock.now).look
    queues = (STOPPING, PASSING)
    return Worker(bench.storage, bench.clock, "sandbox", handlers, queues, look_back=look_back)


def store(bench: Bench, **changes: object) -> None:
    bench.add("a")
    (job,) = bench.jobs().values()
    bench.storage.transact(AUTHORITY.partition, lambda tx: tx.replace(evolve(job, **changes)))


@pytest.mark.parametrize("restarted", [False, True])
def test_work_goes_on_that_was_committed_by_a_clock_that_was_ahead(
    restarted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    bench = Bench()
    bench.clock.advance(JUMP_S)
    wrong = worker(bench)
    wrong.run_until_idle()
    bench.add("a")
    bench.add("b", queue=PASSING, delay_ms=SECOND)
    bench.clock.advance(-JUMP_S)
    assert (worker(bench) if restarted else wrong).run_until_idle() == 2
    assert sorted(bench.ran) == ["a", "b"]
    assert caplog.messages == [
        "2 jobs of env_test are due now: a clock that was ahead had postponed them by up to "
        f"{JUMP_S + 1} s, such as a job of kind note"
    ]


@pytest.mark.parametrize(("version", "longest_ms"), [(1, MAX_BACK_OFF_MS), (2, HOUR)])
@pytest.mark.parametrize("more_ms", [-1, 0, 1, 3 * HOUR])
def test_a_job_may_be_due_as_late_as_its_kind_and_the_skew_allow(
    version: int, longest_ms: int, more_ms: int
) -> None:
    bench = Bench()
    due_at = bench.clock.now() + longest_ms + MAX_CLOCK_SKEW_MS + more_ms
    if version == 1:
        bench.add("a", delay_ms=due_at - bench.clock.now())
    else:
        store(bench, due_at=due_at)
    look(bench)
    expected = bench.clock.now() if more_ms > 0 else due_at
    assert bench.jobs()["a"].due_at == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"due_at": NEVER},
        {"lease_until": NEVER},
        {"lease_until": FixedClock().now() + 1},  # a right clock runs it now
        {"queue": "production.payments"},
        {"kind": "expire"},
    ],
    ids=str,
)
def test_parked_running_and_other_jobs_are_left(changes: dict[str, object]) -> None:
    bench = Bench()
    store(bench, **{"due_at": bench.clock.now() + 3 * HOUR, **changes})
    before = bench.jobs()
    look(bench)
    assert bench.jobs() == before


def test_it_is_searched_before_the_first_claim_and_when_the_clock_has_stepped_back() -> None:
    storage = Searched()
    bench = Bench(storage)
    postponed = PostponedJobs(storage, "sandbox", DELAYS, bench.clock.now)
    searches = []
    for step_ms in (0, 0, 3 * HOUR, -MAX_CLOCK_SKEW_MS, -1, 0, HOUR):
        bench.clock.advance(step_ms / SECOND)
        postponed.look(bench.clock.now())
        searches.append(storage.searches)
    assert searches == [1, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(("storage", "delays"), [(OnServer(), DELAYS), (Searched(), {})])
def test_it_is_not_searched_at_first_where_nothing_can_be_wrong(
    storage: Searched, delays: Mapping[str, LongestDelays]
) -> None:
    """The service does not start with another clock than that of a storage that has one."""
    look(Bench(storage), delays)
    assert storage.searches == 0


def test_a_job_that_changes_during_the_search_is_left() -> None:
    storage = Searched()
    bench = Bench(storage)
    store(bench, due_at=bench.clock.now() + 3 * HOUR)
    later = bench.clock.now() + 2 * HOUR
    [job] = bench.jobs().values()

    def read_clock() -> Instant:
        if storage.searches:
            changed = evolve(job, due_at=later)
            storage.transact(AUTHORITY.partition, lambda tx: tx.replace(changed))
        return bench.clock.now()

    PostponedJobs(storage, "sandbox", DELAYS, read_clock).look(bench.clock.now())
    assert bench.jobs()["a"].due_at == later


def test_a_sandbox_continues_where_its_chains_are_before_it_is_searched() -> None:
    bench = Bench()
    bench.add("a", delay_ms=3 * HOUR)
    due_at = bench.jobs()["a"].due_at
    postponed = PostponedJobs(
        bench.storage,
        "sandbox",
        DELAYS,
        bench.clock.now,
        catch_up=lambda: bench.clock.advance(JUMP_S),
    )
    postponed.look(bench.clock.now())
    assert bench.jobs()["a"].due_at == due_at == bench.clock.now()


def test_a_job_of_a_sandbox_whose_clock_another_process_moved_is_left() -> None:
    storage = Searched()
    bench = Bench(storage)
    moved, unmoved = (SandboxClock(storage, bench.clock) for _ in range(2))

    def move() -> None:
        moved.advance_to(moved.now() + 3 * HOUR)
        bench.add("a", delay_ms=3 * HOUR)

    def read_clock() -> Instant:
        unmoved.refresh()
        return unmoved.now()

    storage.within = move
    PostponedJobs(storage, "sandbox", DELAYS, read_clock).look(unmoved.now())
    assert bench.jobs()["a"].due_at == bench.clock.now() + 3 * HOUR


def test_a_search_that_fails_is_made_again(caplog: pytest.LogCaptureFixture) -> None:
    storage = Searched()
    bench = Bench(storage)
    store(bench, due_at=bench.clock.now() + 3 * HOUR)
    postponed = PostponedJobs(storage, "sandbox", DELAYS, bench.clock.now)

    def fail() -> None:
        raise StorageUnavailable("away")

    storage.within = fail
    postponed.look(bench.clock.now())
    assert "cannot look for postponed jobs: StorageUnavailable" in caplog.text
    storage.within = lambda: postponed.look(bench.clock.now())  # of another thread: it is left
    postponed.look(bench.clock.now())
    assert storage.searches == 2
    assert bench.jobs()["a"].due_at == bench.clock.now()


def test_a_row_that_cannot_be_read_does_not_stop_the_search() -> None:
    class Damaged(Searched):
        def read_rows(
            self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = 1_000
        ) -> Sequence[RecordRow]:
            rows = super().read_rows(kind, after=after, limit=limit)
            return [attrs.evolve(row, body="{") if row.id == first else row for row in rows]

    storage = Damaged()
    bench = Bench(storage)
    bench.add("bad", delay_ms=3 * HOUR)
    first = bench.jobs()["bad"].id
    bench.add("good", delay_ms=3 * HOUR)
    look(bench)
    assert bench.jobs()["good"].due_at == bench.clock.now() < bench.jobs()["bad"].due_at


def test_a_storage_that_cannot_be_searched_is_left() -> None:
    class Plain:
        """Nothing but what the look asks for."""

    bench = Bench()
    postponed = PostponedJobs(Plain(), "sandbox", DELAYS, bench.clock.now)  # type: ignore[arg-type]
    postponed.look(bench.clock.now())


def test_a_lease_that_is_ended_makes_its_job_due() -> None:
    """The clock that leased it had postponed it too."""
    bench = Bench()
    store(bench, due_at=bench.clock.now() + 3 * HOUR, lease_until=bench.clock.now() + 3 * HOUR)
    assert worker(bench).run_until_idle() == 1
