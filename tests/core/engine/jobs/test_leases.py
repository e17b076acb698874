"""Leases in a process: renewed while a job runs, lost by one that hangs, taken over by a name."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec
import pytest

from payments_core.clock import FixedClock, Instant
from payments_core.engine.decision import LeaseLost
from payments_core.engine.jobs import worker as worker_module
from payments_core.engine.jobs.batches import MAX_BATCH, MAX_BATCH_WAIT_S, Batches
from payments_core.engine.jobs.leases import LeaseKeeper
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Worker
from payments_core.storage import documents
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import ClaimedJob, LockTimeout, StorageUnavailable
from tests.core.engine.jobs.bench import PASSING, STOPPING, Bench
from tests.core.engine.jobs.test_worker_threads import real_time, threaded

PATIENCE_S = 20
SHORT = Queue("payments", lease_ms=300)


class Renewals(MemoryStorage):
    """A storage that notes what is renewed, and can be out of reach for it."""

    refuses = False

    def __init__(self) -> None:
        super().__init__()
        self.renewed: list[list[str]] = []

    def renew(self, claimed: Sequence[ClaimedJob], until: Instant) -> Sequence[ClaimedJob]:
        if self.refuses:
            raise StorageUnavailable("no route to the database")
        held = super().renew(claimed, until)
        self.renewed.append([item.job.subject for item in held])
        return held


def claimed_by(bench: Bench, keeper: LeaseKeeper, queue: Queue = STOPPING) -> list[ClaimedJob]:
    claimed = bench.storage.claim(
        queue.full_name("sandbox"), bench.clock.now(), lease_ms=queue.lease_ms, limit=10,
        lane_concurrency=1,
    )  # fmt: skip
    keeper.add(queue, claimed)
    return list(claimed)


def test_a_lease_is_renewed_when_a_good_part_of_it_is_over() -> None:
    storage = Renewals()
    bench = Bench(storage)
    keeper = LeaseKeeper(storage, bench.clock)
    bench.add("a")
    (claimed,) = claimed_by(bench, keeper)
    bench.clock.advance(1)
    keeper.renew()
    assert storage.renewed == []
    bench.clock.advance(1)
    keeper.renew()
    assert storage.renewed == [["a"]]
    assert keeper.lease_end(claimed) == bench.clock.now() + STOPPING.lease_ms
    assert bench.jobs()["a"].lease_until == keeper.lease_end(claimed)
    bench.end(claimed)  # as it was claimed
    keeper.remove([claimed])
    bench.clock.advance(60)
    keeper.renew()
    assert storage.renewed == [["a"]]
    assert keeper.lease_end(claimed) == claimed.job.lease_until


def test_a_lease_that_another_worker_already_has_is_let_go() -> None:
    storage = Renewals()
    bench = Bench(storage)
    keeper = LeaseKeeper(storage, bench.clock)
    bench.add("a")
    (lost,) = claimed_by(bench, keeper)
    bench.clock.advance(60)
    (theirs,) = claimed_by(bench, LeaseKeeper(storage, bench.clock))
    keeper.renew()
    keeper.renew()
    assert storage.renewed == [[]], "it is not asked for again"
    assert keeper.lease_end(lost) == lost.job.lease_until
    assert bench.jobs()["a"] == theirs.job


def test_a_job_that_ends_while_its_lease_is_renewed_stays_ended() -> None:
    class Ending(Renewals):
        def renew(self, claimed: Sequence[ClaimedJob], until: Instant) -> Sequence[ClaimedJob]:
            held = super().renew(claimed, until)
            keeper.remove(claimed)
            return held

    storage = Ending()
    bench = Bench(storage)
    keeper = LeaseKeeper(storage, bench.clock)
    bench.add("a")
    (claimed,) = claimed_by(bench, keeper)
    bench.clock.advance(4)
    keeper.renew()
    assert keeper.lease_end(claimed) == claimed.job.lease_until


def test_a_renewal_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    storage = Renewals()
    bench = Bench(storage)
    keeper = LeaseKeeper(storage, bench.clock)
    bench.add("a")
    claimed_by(bench, keeper)
    bench.clock.advance(4)
    storage.refuses = True
    keeper.renew()
    assert "cannot renew 1 leases" in caplog.text
    storage.refuses = False
    keeper.renew()
    assert storage.renewed == [["a"]]


def test_a_job_keeps_its_lease_while_its_handler_runs() -> None:
    bench = real_time()
    entered, leave, taken = threading.Event(), threading.Event(), threading.Event()

    def slow(claimed: ClaimedJob) -> None:
        entered.set()
        assert leave.wait(PATIENCE_S)
        bench.note(claimed)

    def steal(claimed: ClaimedJob) -> None:
        taken.set()

    worker = threaded(bench, {"note": slow}, SHORT)
    bench.add("a")
    worker.start(1)
    assert entered.wait(PATIENCE_S)
    other = threaded(bench, {"note": steal}, SHORT)
    other.start(1)
    assert not taken.wait(4 * SHORT.lease_ms / 1_000)
    leave.set()
    assert worker.stop()
    assert other.stop()
    assert bench.ran == ["a"]
    assert not taken.is_set()


def test_a_handler_that_hangs_loses_its_job_and_its_outcome(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = real_time()
    queue = Queue("payments", lease_ms=200, run_limit_ms=100)
    entered, leave, lost = threading.Event(), threading.Event(), threading.Event()
    done = threading.Event()

    def hang(claimed: ClaimedJob) -> None:
        entered.set()
        assert leave.wait(PATIENCE_S)
        try:
            bench.end(claimed)
        except LeaseLost:
            lost.set()
            raise

    def finish(claimed: ClaimedJob) -> None:
        bench.note(claimed)
        done.set()

    hanging = threaded(bench, {"note": hang}, queue)
    bench.add("a")
    hanging.start(1)
    assert entered.wait(PATIENCE_S)
    other = threaded(bench, {"note": finish}, queue)
    other.start(1)
    assert done.wait(PATIENCE_S)
    leave.set()
    assert lost.wait(PATIENCE_S)
    assert hanging.stop()
    assert other.stop()
    assert bench.ran == ["a"]
    assert "has not ended after 0.1 s; another worker may take it" in caplog.text


def test_a_lease_that_cannot_be_renewed_ends_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Renewals):
        def renew(self, claimed: Sequence[ClaimedJob], until: Instant) -> Sequence[ClaimedJob]:
            if not tried.is_set():
                tried.set()
                raise RuntimeError("a fault of the adapter")
            again.set()
            return super().renew(claimed, until)

    tried, again = threading.Event(), threading.Event()
    bench = Bench(Broken(), FixedClock(real_time().clock.now()))

    def slow(claimed: ClaimedJob) -> None:
        assert again.wait(PATIENCE_S)
        bench.note(claimed)

    worker = threaded(bench, {"note": slow}, SHORT)
    bench.add("a")
    worker.start(1)
    assert again.wait(PATIENCE_S)
    assert worker.stop()
    assert "cannot renew the leases: RuntimeError" in caplog.text
    assert bench.ran == ["a"]


# Batches.


class Claims(MemoryStorage):
    """A storage that notes how many jobs each claim gave."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def claim(self, *arguments, **named):  # type: ignore[no-untyped-def]
        claimed = super().claim(*arguments, **named)
        if claimed:
            self.sizes.append(len(claimed))
        return claimed


def test_threads_claim_in_batches() -> None:
    storage = Claims()
    bench = Bench(storage, real_time().clock)
    done = threading.Event()

    def handler(claimed: ClaimedJob) -> None:
        bench.note(claimed)
        if len(bench.ran) == 40:
            done.set()

    for n in range(40):
        bench.add(f"job{n}")
    worker = threaded(bench, {"note": handler})
    worker.start(4)
    assert done.wait(PATIENCE_S)
    assert worker.stop()
    assert sorted(bench.ran) == sorted(f"job{n}" for n in range(40))
    assert sum(storage.sizes) == 40
    assert len(storage.sizes) <= 8


def test_a_slow_job_does_not_hold_those_that_were_claimed_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "MAX_BATCH_WAIT_S", 0.1)
    bench = real_time()
    entered, leave, done = threading.Event(), threading.Event(), threading.Event()

    def slow(claimed: ClaimedJob) -> None:
        entered.set()
        assert leave.wait(PATIENCE_S)
        bench.end(claimed)

    def quick(claimed: ClaimedJob) -> None:
        bench.note(claimed)
        if len(bench.ran) == 3:
            done.set()

    for subject in "abcd":
        bench.add(subject)
    held_up = threaded(bench, {"note": slow}, Queue("payments", lease_ms=500))
    held_up.start(1)
    assert entered.wait(PATIENCE_S)
    other = threaded(bench, {"note": quick})
    other.start(1)
    assert done.wait(PATIENCE_S)
    leave.set()
    assert held_up.stop()
    assert other.stop()
    assert sorted(bench.ran) == ["b", "c", "d"]


def test_a_pause_gives_back_what_no_thread_had_begun() -> None:
    bench = real_time()
    entered, leave = threading.Event(), threading.Event()

    def slow(claimed: ClaimedJob) -> None:
        entered.set()
        assert leave.wait(PATIENCE_S)
        bench.note(claimed)

    for subject in "abc":
        bench.add(subject)
    worker = threaded(bench, {"note": slow})
    worker.start(1)
    assert entered.wait(PATIENCE_S)
    threading.Timer(0.05, leave.set).start()
    assert worker.pause()
    assert bench.ran == ["a"]
    assert worker.run_until_idle() == 2
    worker.resume()
    assert worker.stop()
    assert bench.ran == ["a", "b", "c"]


def one_by_one(claimed: Sequence[ClaimedJob]) -> tuple[Sequence[ClaimedJob], Sequence[ClaimedJob]]:
    return claimed[:1], claimed[1:]


def test_a_batch_is_as_large_as_the_last_jobs_were_quick() -> None:
    batches = Batches(["chain"], one_by_one)
    assert batches.next_size("chain", 1) == 5
    for _ in range(50):
        batches.record_run("chain", 0.001)
    assert batches.next_size("chain", 4) == MAX_BATCH
    for _ in range(50):
        batches.record_run("chain", 10.0)
    assert batches.next_size("chain", 4) == 1


def test_a_batch_is_given_back_once_it_has_waited() -> None:
    bench = Bench()
    bench.add("a")
    batches = Batches(["payments"], one_by_one)
    assert not batches.take("payments")
    claimed = claimed_by(bench, LeaseKeeper(bench.storage, bench.clock))
    batches.put("payments", claimed)
    assert batches.withdraw(MAX_BATCH_WAIT_S) == []
    assert batches.withdraw() == claimed
    assert not batches.take("payments")


def test_what_waited_while_the_process_was_stopped_is_given_back() -> None:
    """Another worker may already have it: it is not begun under a lease that ended."""
    bench = Bench()
    for subject in "ab":
        bench.add(subject)
    worker = bench.worker()
    worker._batches.put(STOPPING.name, worker._executor.claim(STOPPING, None, 2))
    bench.clock.advance(STOPPING.lease_ms / 1_000)
    (theirs,) = bench.storage.claim(
        STOPPING.full_name("sandbox"), bench.clock.now(), lease_ms=5_000, limit=1,
        lane_concurrency=1,
    )  # fmt: skip
    (taken,) = worker._take(STOPPING)
    assert {taken.job.subject, theirs.job.subject} == {"a", "b"}
    assert taken.job.claims == 1, "the claim under which it was not begun does not count"
    assert not worker._take(STOPPING)
    assert bench.jobs()[theirs.job.subject] == theirs.job


# A name that outlives a process.


def test_a_worker_starts_where_the_leases_of_the_last_one_cannot_be_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A machine that died leaves locks in the server, which last until that notices."""

    class Locked(MemoryStorage):
        def end_leases(self, queue: str, holder: str, now: Instant) -> int:
            if queue == "sandbox.payments":
                raise LockTimeout("locked by the dead")
            return super().end_leases(queue, holder, now)

    bench = Bench(Locked())
    bench.add("a")
    bench.add("b", queue=PASSING)
    dead = bench.worker(STOPPING, PASSING)
    dead.take_over("worker-1")
    for queue in (STOPPING, PASSING):
        dead._executor.claim(queue, None, 1)
    again = bench.worker(STOPPING, PASSING)
    assert again.take_over("worker-1") == 1
    assert "cannot end the leases of sandbox.payments: LockTimeout" in caplog.text
    assert again.run_until_idle() == 1
    bench.clock.advance(STOPPING.lease_ms / 1_000)
    assert again.run_until_idle() == 1
    assert bench.ran == ["b", "a"]


def test_a_process_takes_up_at_once_what_the_last_one_of_its_name_left() -> None:
    bench = Bench()
    bench.add("a")
    bench.add("b", queue=PASSING)
    dead = bench.worker(STOPPING, PASSING)
    dead.take_over("worker-1")
    for queue in (STOPPING, PASSING):  # claimed, and never heard of again
        dead._executor.claim(queue, None, 1)
    other = bench.worker(STOPPING, PASSING)
    assert other.take_over("worker-2") == 0
    assert other.run_until_idle() == 0
    again = bench.worker(STOPPING, PASSING)
    assert again.take_over("worker-1") == 2
    assert again.run_until_idle() == 2
    assert sorted(bench.ran) == ["a", "b"]


def test_a_worker_without_queues_can_be_started() -> None:
    bench = Bench()
    worker = Worker(bench.storage, bench.clock, "sandbox", {}, ())
    worker.start(1)
    assert worker.stop()


def test_a_job_of_the_release_before_has_no_holder_until_it_is_claimed() -> None:
    bench = Bench()
    bench.add("a")
    body = msgspec.json.decode(documents.encode(bench.jobs()["a"]))
    old = {name: value for name, value in body.items() if name not in ("holder", "oldest_reader")}
    assert documents.decode(Job, msgspec.json.encode({**old, "schema": 1})).holder == ""
    claimed = msgspec.json.encode({**old, "schema": 1, "holder": "me"})  # as SQLite writes it
    assert documents.decode(Job, claimed).holder == "me"


def test_a_pass_does_not_begin_jobs_whose_leases_have_ended() -> None:
    """A pass renews no leases, and the jobs of a batch may take longer than one."""
    bench = Bench()
    other = bench.worker()
    begun: list[str] = []

    def slow(claimed: ClaimedJob) -> None:
        begun.append(claimed.job.subject)
        bench.clock.advance(STOPPING.lease_ms / 2 / 1_000)
        bench.note(claimed)
        if len(bench.ran) == 2:
            assert other.run_until_idle() == 4, "the leases of the others have ended"

    for subject in "abcdef":
        bench.add(subject)
    bench.worker(note=slow).run_until_idle()
    assert begun == bench.ran[:2]
    assert sorted(bench.ran) == list("abcdef")
    assert bench.jobs() == {}


def test_a_pass_at_an_earlier_time_ends() -> None:
    """Every lease that it gets has ended already."""
    bench = Bench()
    for subject in "abc":
        bench.add(subject)
    due = bench.clock.now()
    bench.clock.advance(10 * STOPPING.lease_ms / 1_000)
    assert bench.worker().run_due(now=due) == 3
