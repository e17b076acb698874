"""The worker's threads: woken, paused and stopped, and nothing done twice."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs
import pytest

from payments_core.clock import FixedClock, SystemClock
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.execution import Handler
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Worker
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import ClaimedJob, StorageUnavailable, Transaction
from tests.core.engine.jobs.bench import AUTHORITY, STOPPING, Bench


def threaded(
    bench: Bench, handlers: dict[str, Handler], *queues: Queue, poll_s: float = 0.05
) -> Worker:
    return Worker(
        bench.storage, SystemClock(), "sandbox", handlers, queues or (STOPPING,), poll_s=poll_s
    )


def real_time() -> Bench:
    clock = FixedClock(SystemClock().now())
    return Bench(clock=clock)


def counting(bench: Bench, expected: int) -> tuple[Handler, threading.Event]:
    """A handler that ends its job, and an event for when `expected` have ended."""
    done, lock = threading.Event(), threading.Lock()

    def handler(claimed: ClaimedJob) -> None:
        bench.end(claimed)
        with lock:
            bench.ran.append(claimed.job.subject)
            if len(bench.ran) == expected:
                done.set()

    return handler, done


def test_threads_run_what_is_there_and_what_a_nudge_announces() -> None:
    bench = real_time()
    handler, done = counting(bench, 40)
    worker = threaded(bench, {"note": handler}, poll_s=30)
    for n in range(20):
        bench.add(f"early{n}")
    worker.start(4)
    with pytest.raises(RuntimeError):
        worker.start()
    for n in range(20):
        bench.add(f"late{n}")
        worker.wake()
    assert done.wait(20)
    assert worker.stop()
    assert len(set(bench.ran)) == 40


def test_threads_wake_when_something_falls_due_without_a_nudge() -> None:
    bench = real_time()
    handler, done = counting(bench, 2)
    worker = threaded(bench, {"note": handler})
    bench.add("soon", delay_ms=200)
    bench.add("tomorrow", delay_ms=86_400_000)
    worker.start(3)
    bench.add("from elsewhere", delay_ms=100)
    assert done.wait(20)
    assert worker.stop()
    assert sorted(bench.ran) == ["from elsewhere", "soon"]


def test_stopping_finishes_the_running_job() -> None:
    bench = real_time()
    entered, leave = threading.Event(), threading.Event()

    def handler(claimed: ClaimedJob) -> None:
        entered.set()
        assert leave.wait(20)
        bench.note(claimed)

    worker = threaded(bench, {"note": handler})
    bench.add("a")
    worker.start(2)
    assert entered.wait(20)
    assert not worker.stop(timeout_s=0.01)
    leave.set()
    assert worker.stop()
    assert bench.ran == ["a"]
    bench.add("b")
    assert not worker.stop(0) or bench.ran == ["a"]


def test_a_pause_waits_for_what_runs_and_claims_nothing_until_resumed() -> None:
    bench = real_time()
    entered, leave = threading.Event(), threading.Event()
    done = threading.Event()

    def handler(claimed: ClaimedJob) -> None:
        if claimed.job.subject == "a":
            entered.set()
            assert leave.wait(20)
        bench.note(claimed)
        if claimed.job.subject == "c":
            done.set()

    worker = threaded(bench, {"note": handler})
    bench.add("a")
    worker.start(2)
    assert entered.wait(20)
    assert not worker.pause(timeout_s=0.01)
    leave.set()
    assert worker.pause()
    assert bench.ran == ["a"]
    bench.add("b")
    worker.wake()
    assert worker.run_until_idle() == 1  # a caller that paused them may still run jobs itself
    bench.add("c")
    worker.resume()
    assert not done.is_set()
    worker.resume()
    assert done.wait(20)
    assert worker.stop()
    assert bench.ran == ["a", "b", "c"]


def test_slow_work_in_one_queue_leaves_threads_for_the_others() -> None:
    bench = real_time()
    leave, done = threading.Event(), threading.Event()
    narrow = Queue("webhooks", lane_concurrency=4, failure_blocks_lane=False, threads=1)

    def slow(claimed: ClaimedJob) -> None:
        assert leave.wait(20)
        bench.end(claimed)

    def quick(claimed: ClaimedJob) -> None:
        bench.note(claimed)
        done.set()

    worker = threaded(bench, {"slow": slow, "note": quick}, narrow, STOPPING)
    for n in range(6):
        bench.add(f"slow{n}", "slow", narrow)
    worker.start(2)
    bench.add("a")
    worker.wake()
    assert done.wait(20)
    leave.set()
    assert worker.stop()


def test_threads_outlive_a_storage_that_is_out_of_reach() -> None:
    class Flaky(MemoryStorage):
        refusals = 5

        def claim(self, *arguments, **named):  # type: ignore[no-untyped-def]
            if self.refusals:
                self.refusals -= 1
                raise StorageUnavailable("no route to the database")
            return super().claim(*arguments, **named)

    bench = Bench(Flaky(), FixedClock(SystemClock().now()))
    handler, done = counting(bench, 1)
    worker = threaded(bench, {"note": handler}, poll_s=0.01)
    bench.add("a")
    worker.start(2)
    assert done.wait(20)
    assert worker.stop()


@pytest.mark.parametrize("seed", range(5))
def test_two_workers_on_weak_storage_finish_every_job_once(seed: int) -> None:
    bench = Bench(MemoryStorage(Weakness(seed=seed)), FixedClock(SystemClock().now()))
    effects = Effects(bench, 60)
    for n in range(60):
        bench.add(f"job{n}", "effect")
    workers = [threaded(bench, {"effect": effects.once}, poll_s=0.01) for _ in range(2)]
    for worker in workers:
        worker.start(2)
    assert effects.done.wait(60)
    assert all(worker.stop() for worker in workers)
    assert sorted(effects.committed()) == sorted(f"job{n}" for n in range(60))


@attrs.define
class Effects:
    """Jobs whose outcome is a row: what committed, and not what merely ran, is counted."""

    bench: Bench
    expected: int
    done: threading.Event = attrs.field(factory=threading.Event)

    def once(self, claimed: ClaimedJob) -> None:
        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            effect = Job(
                id=id_sequence.issue("job"), queue="effects", lane="a", kind="effect",
                due_at=0, subject=claimed.job.subject,
            )  # fmt: skip
            return Decision(None, inserts=(effect,))

        self.bench.committer.commit(AUTHORITY, decide, claimed=claimed)
        if len(self.committed()) == self.expected:
            self.done.set()

    def committed(self) -> list[str]:
        find: Callable[..., list[str]] = lambda tx: [  # noqa: E731
            job.subject
            for job in tx.find(Job, "by_queue_lane", ("effects", "a"), limit=1000).records
        ]
        return self.bench.storage.read(AUTHORITY.partition, find)
