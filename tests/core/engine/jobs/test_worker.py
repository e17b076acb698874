"""The worker: what is due runs, what fails waits longer and longer, what never works parks."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from payments_core.clock import HOUR, MINUTE, SECOND, FixedClock, Instant
from payments_core.engine.decision import LeaseLost
from payments_core.engine.jobs.parking import (
    CLAIMS_BEFORE_PARKING,
    UNKNOWN_KIND_DELAY_MS,
    Queue,
    describe_error,
)
from payments_core.engine.jobs.worker import Worker
from payments_core.errors import NotFound, Unavailable
from payments_core.storage.jobs import NEVER
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import ClaimedJob, StorageUnavailable
from tests.core.engine.jobs.bench import PASSING, STOPPING, Bench


def test_what_is_due_runs_and_what_is_not_waits() -> None:
    bench = Bench()
    worker = bench.worker()
    bench.add("a")
    bench.add("b", delay_ms=MINUTE)
    assert worker.run_due() == 1
    assert worker.run_due() == 0
    assert worker.next_due() == bench.clock.now() + MINUTE
    bench.clock.advance(60)
    assert worker.run_due() == 1
    assert bench.ran == ["a", "b"]
    assert worker.next_due() is None


def test_a_pass_ends_at_its_limit() -> None:
    bench = Bench()
    worker = bench.worker(STOPPING, PASSING)
    for subject in "abc":
        bench.add(subject)
        bench.add(subject.upper(), queue=PASSING)
    assert worker.run_due(limit=2) == 2
    assert worker.run_until_idle(limit=3) == 3
    assert worker.run_until_idle() == 1
    assert sorted(bench.ran) == sorted("abcABC")


def test_jobs_that_a_run_adds_to_an_earlier_queue_are_run_until_nothing_is_due() -> None:
    bench = Bench()

    def chain(claimed: ClaimedJob) -> None:
        bench.note(claimed)
        bench.add("b")

    worker = bench.worker(STOPPING, PASSING, chain=chain)
    bench.add("a", "chain", queue=PASSING)
    assert worker.run_until_idle() == 2
    assert bench.ran == ["a", "b"]


def test_a_clock_that_another_process_moves_is_looked_at_before_each_claim() -> None:
    bench = Bench()
    bench.add("a", delay_ms=HOUR)
    worker = Worker(
        bench.storage, bench.clock, "sandbox", {"note": bench.note}, (STOPPING,),
        refresh=lambda: bench.clock.advance(3600) and None,
    )  # fmt: skip
    assert worker.run_until_idle() == 1


def test_by_a_clock_that_jumps_while_a_job_runs_it_is_not_put_off() -> None:
    bench = Bench()
    bench.add("a")
    began, jumped = bench.clock.now(), []

    def overtaken(claimed: ClaimedJob) -> None:
        bench.clock.advance(3600)
        jumped.append(claimed)
        raise Unavailable()

    def refresh() -> None:
        if jumped:
            raise StorageUnavailable("this machine's clock differs")

    worker = Worker(
        bench.storage, bench.clock, "sandbox", {"note": overtaken}, (STOPPING,), refresh=refresh
    )
    with suppress(StorageUnavailable):  # nor is anything claimed after it
        worker.run_until_idle()
    job = bench.jobs()["a"]
    assert (len(jumped), job.claims) == (1, 1)
    assert max(job.due_at, job.lease_until) <= began + STOPPING.lease_ms  # it is due again then


@pytest.mark.parametrize("seed", range(20))
def test_a_claim_that_gives_less_than_there_is_does_not_end_the_run(seed: int) -> None:
    weakness = Weakness(seed=seed, clock_ahead=0, lost_commit=0, short_claim=0.3)
    bench = Bench(MemoryStorage(weakness))
    for n in range(10):
        bench.add(f"job{n}")
    assert bench.worker().run_until_idle() >= 9


def test_another_mode_is_left_alone() -> None:
    bench = Bench()
    bench.add("a")
    other = Worker(bench.storage, bench.clock, "production", {}, (STOPPING,))
    assert other.run_until_idle() == 0
    assert other.next_due() is None


def test_two_queues_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="have the same name"):
        Bench().worker(STOPPING, Queue("payments", lane_concurrency=2))


def test_a_job_that_fails_comes_again_later_and_later() -> None:
    bench = Bench()
    worker = bench.worker()
    bench.add("a", "break")
    waits = []
    for _ in range(12):
        assert worker.run_until_idle() == 1
        due = worker.next_due()
        assert due is not None
        waits.append((due - bench.clock.now()) // SECOND)
        bench.clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]


@pytest.mark.parametrize(("queue", "passes"), [(STOPPING, False), (PASSING, True)])
def test_a_failure_holds_up_its_lane_only_where_the_lane_is_an_order(
    queue: Queue, passes: bool
) -> None:
    bench = Bench()
    worker = bench.worker(queue)
    bench.add("a", "break", queue, lane="shared")
    worker.run_until_idle()
    bench.add("b", queue=queue, lane="shared", delay_ms=1)
    bench.clock.advance(0.001)
    worker.run_until_idle()
    assert ("b" in bench.ran) is passes


@pytest.mark.parametrize(("queue", "passes"), [(STOPPING, False), (PASSING, True)])
def test_a_job_parks_after_twenty_claims_without_an_outcome(
    queue: Queue, passes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench()
    worker = bench.worker(queue)
    bench.add("a", "break", queue, lane="shared")
    for _ in range(50):
        worker.run_until_idle()
        bench.clock.advance(3600)
    assert bench.ran == ["a"] * CLAIMS_BEFORE_PARKING
    alarms = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert len(alarms) == 1
    assert "ALARM" in alarms[0].getMessage()
    parked = bench.jobs()["a"]
    assert (parked.due_at if passes else parked.lease_until) == NEVER
    bench.add("b", queue=queue, lane="shared")
    worker.run_until_idle()
    assert ("b" in bench.ran) is passes


def test_a_job_that_takes_the_process_down_parks_without_another_try() -> None:
    bench = Bench()
    worker = bench.worker()
    bench.add("a")
    for _ in range(CLAIMS_BEFORE_PARKING):  # claimed, and never heard of again
        (_claimed,) = bench.storage.claim(
            "sandbox.payments", bench.clock.now(), lease_ms=1, limit=1, lane_concurrency=1
        )
        bench.clock.advance(1)
    worker.run_until_idle()
    assert bench.ran == []
    assert bench.jobs()["a"].lease_until == NEVER


def test_progress_starts_the_count_again() -> None:
    bench = Bench()

    def poll(claimed: ClaimedJob) -> None:
        bench.end(claimed, bench.clock.now() + SECOND)

    worker = bench.worker(poll=poll)
    bench.add("a", "poll")
    for _ in range(3 * CLAIMS_BEFORE_PARKING):
        assert worker.run_until_idle() == 1
        bench.clock.advance(1)


def test_a_kind_that_this_release_does_not_know_waits_and_never_parks() -> None:
    bench = Bench()
    worker = bench.worker()
    bench.add("a", "from_the_future")
    for _ in range(2 * CLAIMS_BEFORE_PARKING):
        assert worker.run_until_idle() == 1
        assert worker.next_due() == bench.clock.now() + UNKNOWN_KIND_DELAY_MS
        bench.clock.advance(UNKNOWN_KIND_DELAY_MS // SECOND)
    assert bench.worker(from_the_future=bench.note).run_until_idle() == 1


def test_a_lost_lease_is_not_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()

    def slow(claimed: ClaimedJob) -> None:
        bench.clock.advance(3600)
        bench.worker(slow=bench.note).run_until_idle()
        with pytest.raises(LeaseLost):
            bench.end(claimed)
        raise LeaseLost(claimed.job.id)

    worker = bench.worker(slow=slow)
    bench.add("a", "slow")
    worker.run_until_idle()
    assert bench.ran == ["a"]
    assert bench.jobs() == {}
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_failure_does_not_touch_a_job_that_another_worker_has_finished() -> None:
    bench = Bench()

    def slow(claimed: ClaimedJob) -> None:
        bench.clock.advance(3600)
        bench.worker(slow=bench.note).run_until_idle()
        raise ValueError

    worker = bench.worker(slow=slow)
    bench.add("a", "slow")
    worker.run_until_idle()
    assert bench.jobs() == {}


def test_where_a_failure_cannot_be_written_the_lease_runs_out() -> None:
    class Refusing(MemoryStorage):
        refuses = False

        def transact(self, partition, work):  # type: ignore[no-untyped-def]
            if self.refuses:
                raise StorageUnavailable("the disk is full")
            return super().transact(partition, work)

    storage = Refusing()
    bench = Bench(storage)
    worker = bench.worker()
    bench.add("a", "break")
    storage.refuses = True
    assert worker.run_until_idle() == 1
    assert worker.next_due() == bench.clock.now() + STOPPING.lease_ms


def test_no_log_carries_what_a_stranger_wrote_into_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.add("a", "break")
    bench.worker().run_until_idle()
    assert "ValueError" in caplog.text
    assert "whsec_" not in caplog.text


def test_our_own_errors_are_described_in_full() -> None:
    assert "No such vault." in describe_error(NotFound("vault"))
    with pytest.raises(ValueError) as raised:
        raise ValueError("whsec_a") from KeyError("whsec_b")
    assert "from KeyError" in describe_error(raised.value)
    assert "whsec" not in describe_error(raised.value)


def test_an_advancing_clock_runs_each_job_at_its_own_instant() -> None:
    bench = Bench()
    start = bench.clock.now()
    seen: list[int] = []

    def again(claimed: ClaimedJob) -> None:
        seen.append((bench.clock.now() - start) // SECOND)
        bench.end(claimed, bench.clock.now() + 20 * MINUTE if len(seen) < 5 else None)

    worker = bench.worker(again=again)
    bench.add("a", "again")
    ran = worker.run_through(start + HOUR, lambda to: _move(bench.clock, to))
    assert seen == [0, 1200, 2400, 3600]
    assert ran == 4
    assert bench.clock.now() == start + HOUR


def test_an_advancing_clock_passes_a_parked_lane() -> None:
    bench = Bench()
    start = bench.clock.now()
    worker = bench.worker(park=lambda claimed: bench.end(claimed, NEVER))
    bench.add("a", "park", lane="shared")
    bench.add("b", lane="shared", delay_ms=1)
    steps: list[Instant] = []

    def move(to: Instant) -> None:
        steps.append(to - start)
        _move(bench.clock, to)

    worker.run_through(start + 365 * 24 * HOUR, move)
    assert bench.ran == []
    assert steps == [1, 365 * 24 * HOUR], "nothing falls due on the way that could free the lane"


def test_an_advancing_clock_runs_the_other_lanes_at_their_instants_beside_a_parked_one() -> None:
    bench = Bench()
    start = bench.clock.now()
    at: dict[str, int] = {}

    def note(claimed: ClaimedJob) -> None:
        at[claimed.job.subject] = bench.clock.now() - start
        bench.note(claimed)

    worker = bench.worker(
        STOPPING, PASSING, note=note, park=lambda claimed: bench.end(claimed, NEVER)
    )
    bench.add("a", "park", lane="shared")
    bench.add("blocked", lane="shared", delay_ms=1)
    bench.add("soon", delay_ms=7)
    bench.add("at a whole minute and a half", delay_ms=90 * SECOND)
    bench.add("of another queue", queue=PASSING, delay_ms=91 * SECOND)
    worker.run_through(start + HOUR, lambda to: _move(bench.clock, to))
    assert at == {
        "soon": 7,
        "at a whole minute and a half": 90 * SECOND,
        "of another queue": 91 * SECOND,
    }


def test_an_advancing_clock_runs_what_a_lease_held_up_when_the_lease_ends() -> None:
    bench = Bench()
    start = bench.clock.now()
    at: dict[str, int] = {}

    def note(claimed: ClaimedJob) -> None:
        at[claimed.job.subject] = bench.clock.now() - start
        bench.note(claimed)

    worker = bench.worker(note=note)
    bench.add("a", lane="shared")
    bench.add("b", lane="shared", delay_ms=1)
    (_died,) = bench.storage.claim(
        "sandbox.payments", start, lease_ms=4_321, limit=1, lane_concurrency=1
    )
    worker.run_through(start + HOUR, lambda to: _move(bench.clock, to))
    assert at == {"a": 4_321, "b": 4_321}


def _move(clock: FixedClock, to: Instant) -> None:
    clock.advance((to - clock.now()) / SECOND)
    assert clock.now() == to
