"""A lease that ends later than any right clock can have written: it has ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from payments_core.clock import HOUR, MAX_CLOCK_SKEW_MS, MINUTE, SECOND, Instant
from payments_core.engine.decision import LeaseLost
from payments_core.engine.jobs.leases import LOOK_AHEAD_S, LeaseKeeper, is_impossible
from payments_core.engine.jobs.parking import (
    CLAIMS_BEFORE_PARKING,
    LEASE_MS,
    MAX_BACK_OFF_MS,
    UNKNOWN_KIND_DELAY_MS,
    Queue,
)
from payments_core.evolve import evolve
from payments_core.sandbox.clock import SandboxClock
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import ClaimedJob, StorageUnavailable
from tests.core.engine.jobs.bench import AUTHORITY, PASSING, STOPPING, Bench
from tests.core.engine.jobs.test_lost_commits import Losing

NOW = 1_790_000_000_000


@pytest.mark.parametrize(
    ("queue", "claims", "longest_ms"),
    [
        (PASSING, 1, LEASE_MS),
        (PASSING, 20, LEASE_MS),
        (Queue("slow", lease_ms=MINUTE, failure_blocks_lane=False), 1, MINUTE),
        (STOPPING, 1, LEASE_MS),
        (STOPPING, 3, LEASE_MS),  # a pause of four seconds
        (STOPPING, 4, 8 * SECOND),
        (STOPPING, 9, 256 * SECOND),
        (STOPPING, 20, MAX_BACK_OFF_MS),
        (STOPPING, 0, UNKNOWN_KIND_DELAY_MS),
        (Queue("slow", lease_ms=MINUTE), 4, MINUTE),
    ],
)
def test_a_lease_may_end_as_late_as_its_queue_and_the_skew_allow(
    queue: Queue, claims: int, longest_ms: int
) -> None:
    job = Job(id="a", queue="q", lane="l", kind="k", due_at=0, subject="s", claims=claims)
    last = NOW + longest_ms + MAX_CLOCK_SKEW_MS
    late = {
        after: is_impossible(queue, evolve(job, lease_until=last + after), NOW)
        for after in (-1, 0, 1, 3 * HOUR)
    }
    assert late == {-1: False, 0: False, 1: True, 3 * HOUR: True}
    assert not is_impossible(queue, evolve(job, lease_until=NEVER), NOW)
    assert not is_impossible(queue, job, NOW)


@pytest.mark.parametrize("queue", [STOPPING, PASSING])
@pytest.mark.parametrize("ahead_s", [8, 240, 3 * 3_600])
@pytest.mark.parametrize("restarted", [False, True])
def test_work_goes_on_when_a_clock_that_was_ahead_is_right_again(
    queue: Queue, ahead_s: int, restarted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    bench = Bench()
    worker = bench.worker(queue)
    worker.run_until_idle()
    bench.add("a", queue=queue)
    bench.add("b", queue=queue, lane="a")
    bench.clock.advance(ahead_s)
    dead = LeaseKeeper(bench.storage, bench.clock)
    (lost,) = dead.claim(queue, "sandbox", 1, 1)
    if not restarted:
        worker.run_until_idle()  # it has seen the wrong time too
    bench.clock.advance(-ahead_s)
    again = bench.worker(queue) if restarted else worker
    assert again.run_until_idle() == 2
    assert sorted(bench.ran) == ["a", "b"]
    assert "1 leases of sandbox." in caplog.text
    with pytest.raises(LeaseLost):  # whoever had the lease is fenced
        bench.end(lost)


class Pausing(MemoryStorage):
    """Something happens between a look at the clock and the search for leases, or after that."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], object] = lambda: None
        self.after: Callable[[], object] = lambda: None

    def find_leases(self, queue: str, after: Instant, limit: int = 100) -> Sequence[ClaimedJob]:
        self.before()
        found = super().find_leases(queue, after, limit)
        self.after()
        return found


def test_a_process_that_paused_ends_no_lease_that_was_written_meanwhile() -> None:
    storage = Pausing()
    bench = Bench(storage)
    bench.add("a")
    claimed: list[ClaimedJob] = []

    def pause() -> None:
        bench.clock.advance(30)
        now = bench.clock.now()
        claimed.extend(
            storage.claim("sandbox.payments", now, lease_ms=LEASE_MS, limit=1, lane_concurrency=1)
        )

    storage.before = pause
    LeaseKeeper(storage, bench.clock).end_impossible(STOPPING, "sandbox", bench.clock.now())
    assert bench.jobs()["a"].lease_until == bench.clock.now() + LEASE_MS
    bench.end(claimed[0])


def test_a_sandbox_that_has_not_heard_of_a_moved_clock_ends_no_lease() -> None:
    bench = Bench()
    bench.add("a")
    moved, unmoved = (SandboxClock(bench.storage, bench.clock) for _ in range(2))
    unmoved.refresh()
    moved.advance_to(moved.now() + 60 * SECOND)
    (claimed,) = LeaseKeeper(bench.storage, moved).claim(STOPPING, "sandbox", 1, 1)
    other = LeaseKeeper(bench.storage, unmoved, unmoved.refresh)
    other.end_impossible(STOPPING, "sandbox", unmoved.now())
    assert bench.jobs()["a"].lease_until == moved.now() + LEASE_MS
    bench.end(claimed)


@pytest.mark.parametrize("change", ["renewed", "ended"])
def test_a_lease_that_changed_since_it_was_found_is_left(
    change: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Pausing()
    bench = Bench(storage)
    bench.add("a")
    bench.clock.advance(3 * 3_600)
    keeper = LeaseKeeper(storage, bench.clock)
    claimed = keeper.claim(STOPPING, "sandbox", 1, 1)
    bench.clock.advance(-3 * 3_600)
    keeper.add(STOPPING, claimed)

    if change == "renewed":
        storage.after = keeper.renew
    else:
        storage.after = partial(bench.end, claimed[0])
    LeaseKeeper(storage, bench.clock).end_impossible(STOPPING, "sandbox", bench.clock.now())
    assert "are ended" not in caplog.text


def test_a_worker_looks_for_such_leases_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(MemoryStorage):
        asked = 0

        def find_leases(self, *args: object, **named: object) -> list[object]:  # type: ignore[override]
            self.asked += 1
            return []

    storage = Counting()
    bench = Bench(storage)
    monotonic = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: monotonic)
    keeper = LeaseKeeper(storage, bench.clock)
    for _ in range(5):
        keeper.claim(STOPPING, "sandbox", 1, 1)
    assert storage.asked == 1
    monotonic += LOOK_AHEAD_S
    keeper.claim(STOPPING, "sandbox", 1, 1)
    assert storage.asked == 2
    bench.clock.advance(-MAX_CLOCK_SKEW_MS / SECOND)
    keeper.claim(STOPPING, "sandbox", 1, 1)
    assert storage.asked == 2
    bench.clock.advance(-0.001)
    keeper.claim(STOPPING, "sandbox", 1, 1)
    assert storage.asked == 3


def test_parked_jobs_and_pauses_after_failures_are_left() -> None:
    bench = Bench()
    bench.add("bad", kind="break")
    bench.add("behind", lane="bad", delay_ms=1)
    parked = evolve(bench.jobs()["bad"], id="parked", lane="p", subject="p", lease_until=NEVER)
    bench.storage.transact(AUTHORITY.partition, lambda tx: tx.insert(parked))
    worker = bench.worker()
    for _ in range(CLAIMS_BEFORE_PARKING - 1):
        worker.run_until_idle()
        ran = len(bench.ran)
        bench.worker().run_until_idle()  # another process looks at once
        assert len(bench.ran) == ran, "the pause has not ended"
        bench.clock.advance((bench.jobs()["bad"].lease_until - bench.clock.now()) / SECOND)
    assert bench.jobs()["p"].lease_until == NEVER
    assert set(bench.ran) == {"bad"}


def test_a_worker_corrects_its_own_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before another one ends them: what it is doing would be lost."""
    bench = Bench()
    bench.add("a")
    keeper = LeaseKeeper(bench.storage, bench.clock)
    bench.clock.advance(3 * 3_600)
    claimed = keeper.claim(STOPPING, "sandbox", 1, 1)
    keeper.add(STOPPING, claimed)
    bench.clock.advance(-3 * 3_600)
    keeper.renew()
    assert bench.jobs()["a"].lease_until == bench.clock.now() + LEASE_MS
    assert bench.worker().run_until_idle() == 0
    bench.end(claimed[0])
    assert bench.jobs() == {}


def test_a_storage_that_is_away_for_the_look_does_not_stop_the_claim(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Away(MemoryStorage):
        def find_leases(self, *args: object, **named: object) -> list[object]:  # type: ignore[override]
            raise StorageUnavailable("away")

    bench = Bench(Away())
    bench.add("a")
    assert bench.worker().run_until_idle() == 1
    assert "cannot look for late leases of sandbox.payments: StorageUnavailable" in caplog.text


def test_a_lost_commit_under_a_lease_far_ahead_is_looked_up() -> None:
    """Another worker may have ended that lease, and done the job."""
    storage = Losing()
    bench = Bench(storage)
    bench.add("a")
    bench.clock.advance(3 * 3_600)
    (claimed,) = LeaseKeeper(storage, bench.clock).claim(STOPPING, "sandbox", 1, 1)
    bench.clock.advance(-3 * 3_600)
    storage.applied, storage.meanwhile = False, lambda: bench.worker().run_until_idle() and None
    with pytest.raises(LeaseLost):
        bench.end(claimed)
    assert bench.ran == ["a"]
