"""The worker: what is due runs, what fails waits longer and longer, what never works parks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import attrs
import pytest

from payments_core.clock import HOUR, MINUTE, SECOND, FixedClock, Instant, SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.decision import Decision, LeaseLost, Scope
from payments_core.entropy import system_entropy
from payments_core.errors import NotFound
from payments_core.identifiers import Draw, Identifiers
from payments_core.jobs.parking import CLAIMS_BEFORE_PARKING, UNKNOWN_KIND_MS, Queue, described
from payments_core.jobs.record import FOREVER, Job
from payments_core.jobs.worker import Handler, Worker
from payments_core.ledger import Ledger
from payments_core.storage.memory import MemoryStorage, Weakness
from payments_core.storage.port import Claimed, StorageUnavailable, Transaction

SCOPE = Scope("env_test", "sandbox")
STOPPING = Queue("payments")
PASSING = Queue("webhooks", slots=1, stops=False)


@attrs.define
class Bench:
    """A storage, a ledger, and a worker whose handlers a test gives."""

    storage: MemoryStorage = attrs.field(factory=MemoryStorage)
    clock: FixedClock = attrs.field(factory=FixedClock)
    ran: list[str] = attrs.field(factory=list)
    ledger: Ledger = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        ring = KeyRing.parse(KeyRing.generate())
        identifiers = Identifiers(self.clock, system_entropy)
        self.ledger = Ledger(self.storage, self.clock, identifiers, ring)

    def worker(self, *queues: Queue, **handlers: Handler) -> Worker:
        known = {"note": self.note, "break": self.fail, **handlers}
        return Worker(self.storage, self.clock, "sandbox", known, queues or (STOPPING,))

    def add(
        self, subject: str, kind: str = "note", queue: Queue = STOPPING, lane: str = "",
        delay_ms: int = 0,
    ) -> None:  # fmt: skip
        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            job = Job(
                id=draw.id("job"), queue=f"sandbox.{queue.name}", lane=lane or subject, kind=kind,
                due_at=self.clock.now() + delay_ms, subject=subject,
            )  # fmt: skip
            return Decision(None, inserts=(job,))

        self.ledger.commit(SCOPE, decide)

    def note(self, claimed: Claimed) -> None:
        self.end(claimed)
        self.ran.append(claimed.job.subject)

    def end(self, claimed: Claimed, again_at: Instant | None = None) -> None:
        self.ledger.commit(
            SCOPE, lambda tx, draw: Decision(None, again_at=again_at), claimed=claimed
        )

    def fail(self, claimed: Claimed) -> None:
        self.ran.append(claimed.job.subject)
        raise ValueError("whsec_a_secret_in_a_text")

    def jobs(self) -> dict[str, Job]:
        page = self.storage.read(
            SCOPE.partition,
            lambda tx: [
                job
                for lane in ("a", "b", "shared")
                for job in tx.find(Job, "by_lane", (lane,)).records
            ],
        )
        return {job.subject: job for job in page}


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

    def chain(claimed: Claimed) -> None:
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
    with pytest.raises(ValueError, match="share a name"):
        Bench().worker(STOPPING, Queue("payments", slots=2))


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
    assert (parked.due_at if passes else parked.lease_until) == FOREVER
    bench.add("b", queue=queue, lane="shared")
    worker.run_until_idle()
    assert ("b" in bench.ran) is passes


def test_a_job_that_takes_the_process_down_parks_without_another_try() -> None:
    bench = Bench()
    worker = bench.worker()
    bench.add("a")
    for _ in range(CLAIMS_BEFORE_PARKING):  # claimed, and never heard of again
        (_claimed,) = bench.storage.claim(
            "sandbox.payments", bench.clock.now(), lease_ms=1, limit=1, slots=1
        )
        bench.clock.advance(1)
    worker.run_until_idle()
    assert bench.ran == []
    assert bench.jobs()["a"].lease_until == FOREVER


def test_progress_starts_the_count_again() -> None:
    bench = Bench()

    def poll(claimed: Claimed) -> None:
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
        assert worker.next_due() == bench.clock.now() + UNKNOWN_KIND_MS
        bench.clock.advance(UNKNOWN_KIND_MS // SECOND)
    assert bench.worker(from_the_future=bench.note).run_until_idle() == 1


def test_a_lost_lease_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()

    def slow(claimed: Claimed) -> None:
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

    def slow(claimed: Claimed) -> None:
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
    assert "No such vault." in described(NotFound("vault"))
    with pytest.raises(ValueError) as raised:
        raise ValueError("whsec_a") from KeyError("whsec_b")
    assert "from KeyError" in described(raised.value)
    assert "whsec" not in described(raised.value)


def test_an_advancing_clock_runs_each_job_at_its_own_instant() -> None:
    bench = Bench()
    start = bench.clock.now()
    seen: list[int] = []

    def again(claimed: Claimed) -> None:
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
    worker = bench.worker(park=lambda claimed: bench.end(claimed, FOREVER))
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

    def note(claimed: Claimed) -> None:
        at[claimed.job.subject] = bench.clock.now() - start
        bench.note(claimed)

    worker = bench.worker(
        STOPPING, PASSING, note=note, park=lambda claimed: bench.end(claimed, FOREVER)
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

    def note(claimed: Claimed) -> None:
        at[claimed.job.subject] = bench.clock.now() - start
        bench.note(claimed)

    worker = bench.worker(note=note)
    bench.add("a", lane="shared")
    bench.add("b", lane="shared", delay_ms=1)
    (_died,) = bench.storage.claim("sandbox.payments", start, lease_ms=4_321, limit=1, slots=1)
    worker.run_through(start + HOUR, lambda to: _move(bench.clock, to))
    assert at == {"a": 4_321, "b": 4_321}


def _move(clock: FixedClock, to: Instant) -> None:
    clock.advance((to - clock.now()) / SECOND)
    assert clock.now() == to


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

    def handler(claimed: Claimed) -> None:
        bench.end(claimed)
        with lock:
            bench.ran.append(claimed.job.subject)
            if len(bench.ran) == expected:
                done.set()

    return handler, done


def test_threads_run_what_is_there_and_what_a_nudge_tells_of() -> None:
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
    worker.start(3)
    bench.add("from elsewhere", delay_ms=100)
    assert done.wait(20)
    assert worker.stop()
    assert bench.ran == ["from elsewhere", "soon"]


def test_stopping_finishes_the_running_job() -> None:
    bench = real_time()
    entered, leave = threading.Event(), threading.Event()

    def handler(claimed: Claimed) -> None:
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

    def handler(claimed: Claimed) -> None:
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
    assert worker.run_until_idle() == 1  # whoever paused may still run jobs itself
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
    narrow = Queue("webhooks", slots=4, stops=False, threads=1)

    def slow(claimed: Claimed) -> None:
        assert leave.wait(20)
        bench.end(claimed)

    def quick(claimed: Claimed) -> None:
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

    def once(self, claimed: Claimed) -> None:
        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            effect = Job(
                id=draw.id("job"), queue="effects", lane="a", kind="effect",
                due_at=0, subject=claimed.job.subject,
            )  # fmt: skip
            return Decision(None, inserts=(effect,))

        self.bench.ledger.commit(SCOPE, decide, claimed=claimed)
        if len(self.committed()) == self.expected:
            self.done.set()

    def committed(self) -> list[str]:
        find: Callable[..., list[str]] = lambda tx: [  # noqa: E731
            job.subject for job in tx.find(Job, "by_lane", ("a",), limit=1000).records
        ]
        return self.bench.storage.read(SCOPE.partition, find)
