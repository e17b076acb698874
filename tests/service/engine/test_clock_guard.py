"""A machine whose clock jumps while it works: it does nothing until the clock is right again."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence

import pytest

from payments_core import PaymentsService
from payments_core.clock import (
    HOUR,
    MAX_CLOCK_SKEW_MS,
    MINUTE,
    SECOND,
    FixedClock,
    Instant,
    SystemClock,
)
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.clock_guard import (
    MAX_STEP_ALONE_MS,
    SANDBOX_PATIENCE_MS,
    ClockGuard,
    GuardedClock,
)
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Worker
from payments_core.errors import Unavailable
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import ClaimedJob, StorageUnavailable, Transaction
from tests.service.world import RING

_true_time_ns = time.time_ns


class OnServer(MemoryStorage):
    """A storage on a server whose clock is right."""

    asked = 0

    def server_time(self) -> Instant:
        self.asked += 1
        return _true_time_ns() // 1_000_000


class OnFixedServer(MemoryStorage):
    """The same, by a clock that a test moves."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__()
        self._clock = clock

    def server_time(self) -> Instant:
        return self._clock.now()


@pytest.mark.parametrize("jump_ms", [HOUR, -HOUR])
def test_a_worker_whose_clock_jumps_claims_nothing_until_it_is_right(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, jump_ms: int
) -> None:
    """A Payment would expire an hour early, and what was looked at would wait for an hour."""
    caplog.set_level(logging.WARNING)
    storage = OnServer()
    service = PaymentsService(storage, KeyRing.parse(RING))
    worker = service.worker("sandbox")
    worker.run_due()
    assert storage.asked == 0  # nobody waits for the storage as long as the clock is as it was
    monkeypatch.setattr(time, "time_ns", lambda: _true_time_ns() + jump_ms * 1_000_000)
    for act in (worker.run_due, service.refresh, service.check_ready):
        with pytest.raises(StorageUnavailable, match="this machine's clock differs"):
            act()
    alarms = [one for one in caplog.messages if one.startswith("ALARM: this machine's clock")]
    assert len(alarms) == 1
    monkeypatch.setattr(time, "time_ns", _true_time_ns)
    worker.run_due()
    assert caplog.messages[-1] == "this machine's clock is right again"


def test_a_machine_that_was_suspended_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = FixedClock()
    guard = ClockGuard(OnFixedServer(clock), clock, 2 * SECOND, elapsed_ms=lambda: 0)
    clock.advance(1_800)  # for the server too; the counter stood still
    guard.require_right()
    guard.require_right()
    assert caplog.messages == []


def test_a_clock_that_is_corrected_is_believed_once_it_agrees(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    true, wrong = FixedClock(), FixedClock()
    guard = ClockGuard(OnFixedServer(true), wrong, 2 * SECOND, elapsed_ms=lambda: 0)
    wrong.advance(3)
    for _ in range(2):
        with pytest.raises(StorageUnavailable):
            guard.require_right()
    true.advance(2)
    guard.require_right()
    assert [message.partition(",")[0] for message in caplog.messages] == [
        "ALARM: this machine's clock differs from the storage's by 3.0 s",
        "this machine's clock is right again",
    ]


def test_what_a_jump_overtakes_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that began before it would expire a Payment that lives."""
    storage = OnServer()
    service = PaymentsService(storage, KeyRing.parse(RING))
    partition = service.tenants.create_app("Acme", "acme").environments["sandbox"]
    service.refresh()

    def decide(tx: Transaction, id_sequence: IdSequence, jump_ms: int) -> Decision[None]:
        monkeypatch.setattr(time, "time_ns", lambda: _true_time_ns() + jump_ms * 1_000_000)
        due_at = service.parts.ports.clock.now()
        return Decision(None, jobs=(NewJob("chain", "none.such", "lane", due_at, "a", id="job_a"),))

    def commit(jump_ms: int) -> None:
        service.parts.ports.committer.commit(
            WorkerAuthority(partition, "sandbox"),
            lambda tx, id_sequence: decide(tx, id_sequence, jump_ms),
        )

    def stored() -> Job | None:
        return storage.read(partition, lambda snapshot: snapshot.get(Job, "job_a"))

    for jump_ms in (HOUR, -HOUR):
        with pytest.raises(Unavailable):
            commit(jump_ms)
        assert stored() is None
        monkeypatch.setattr(time, "time_ns", _true_time_ns)
    commit(0)
    assert stored() is not None


class Alone:
    """A guard over a storage that has no clock, with both times in a test's hand."""

    def __init__(self, patience_ms: int | None = None) -> None:
        self.clock = FixedClock()
        self.elapsed_ms = 0
        self.guard = ClockGuard(
            MemoryStorage(),
            self.clock,
            2 * SECOND,
            lambda: self.elapsed_ms,
            patience_ms=patience_ms,
        )

    def pass_time(self, seconds: int, *, set_by_s: int = 0) -> None:
        self.elapsed_ms += seconds * SECOND
        self.clock.advance(seconds + set_by_s)


@pytest.mark.parametrize("hours", [1, -1, 30])
def test_without_a_clock_to_compare_a_set_clock_is_wrong_until_it_is_back(
    caplog: pytest.LogCaptureFixture, hours: int
) -> None:
    caplog.set_level(logging.WARNING)
    alone = Alone()
    alone.pass_time(10, set_by_s=hours * 3_600)
    for _ in range(3):
        with pytest.raises(StorageUnavailable, match="this machine's clock was set by"):
            alone.guard.require_right()
        alone.pass_time(3_600)  # it is not believed for being wrong for long
    alone.pass_time(1, set_by_s=-hours * 3_600)
    alone.guard.require_right()
    assert caplog.messages == [
        f"ALARM: this machine's clock was set by {hours * 3_600}.0 s, and nothing is done until it"
        " is back, or this process is started again",
        "this machine's clock is right again",
    ]


def test_without_a_clock_to_compare_small_and_slow_corrections_are_believed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    alone = Alone()
    alone.pass_time(8 * 3_600)  # of a suspended machine, too
    alone.guard.require_right()
    for _ in range(60):  # in sum an hour
        alone.pass_time(600, set_by_s=60)
        alone.guard.require_right()
    alone.pass_time(0, set_by_s=-MAX_STEP_ALONE_MS // SECOND)
    alone.guard.require_right()
    assert caplog.messages == []


def test_a_thread_that_stands_still_between_two_looks_at_the_time_is_not_a_jump() -> None:
    alone = Alone()

    class Slow(FixedClock):
        def real_now(self) -> Instant:
            alone.elapsed_ms += HOUR
            return super().real_now()

    guard = ClockGuard(MemoryStorage(), Slow(), 2 * SECOND, lambda: alone.elapsed_ms)
    guard.require_right()


@pytest.mark.parametrize("jump_ms", [HOUR, -HOUR])
def test_on_real_chains_and_a_storage_without_a_clock_a_jump_puts_nothing_off(
    monkeypatch: pytest.MonkeyPatch, jump_ms: int
) -> None:
    service = PaymentsService(MemoryStorage(), KeyRing.parse(RING), chains={})
    service.tenants.create_app("Acme", "acme")
    worker = service.worker("production")
    worker.run_due()
    due = worker.next_due()
    assert due is not None
    monkeypatch.setattr(time, "time_ns", lambda: _true_time_ns() + jump_ms * 1_000_000)
    for act in (worker.run_due, service.refresh, service.check_ready):
        with pytest.raises(StorageUnavailable, match="this machine's clock was set"):
            act()
    with pytest.raises(Unavailable):
        service.tenants.create_app("Other", "other")
    assert worker.next_due() == due
    monkeypatch.setattr(time, "time_ns", _true_time_ns)
    worker.run_due()
    service.tenants.create_app("Other", "other")


@pytest.mark.parametrize("hours", [3, -3])
def test_a_sandbox_without_a_clock_to_compare_goes_on_after_a_minute(
    caplog: pytest.LogCaptureFixture, hours: int
) -> None:
    """It is often a laptop's, in a virtual machine that sleeps and knows nothing of it."""
    caplog.set_level(logging.WARNING)
    alone = Alone(SANDBOX_PATIENCE_MS)
    alone.pass_time(10, set_by_s=hours * 3_600)
    for _ in range(SANDBOX_PATIENCE_MS // SECOND):
        with pytest.raises(StorageUnavailable, match="this machine's clock was set by"):
            alone.guard.require_right()
        alone.pass_time(1)
    alone.guard.require_right()
    alone.guard.require_right()
    alone.pass_time(10, set_by_s=-hours * 3_600)  # each step has its own minute
    with pytest.raises(StorageUnavailable, match="this machine's clock was set by"):
        alone.guard.require_right()
    assert [message for message in caplog.messages if "ALARM" in message] == [
        f"ALARM: this machine's clock was set by {by}.0 s, and nothing is done until it is back,"
        " or 60 s have passed"
        for by in (hours * 3_600, -hours * 3_600)
    ]


def test_a_sandbox_whose_clock_is_away_for_seconds_postpones_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = PaymentsService(MemoryStorage(), KeyRing.parse(RING))
    worker = service.worker("sandbox")
    worker.run_due()
    monkeypatch.setattr(time, "time_ns", lambda: _true_time_ns() + 3 * HOUR * 1_000_000)
    for act in (worker.run_due, service.refresh, service.check_ready, worker.leases.renew):
        with pytest.raises(StorageUnavailable, match="this machine's clock was set"):
            act()
    with pytest.raises(Unavailable):
        service.tenants.create_app("Acme", "acme")
    monkeypatch.setattr(time, "time_ns", _true_time_ns)
    service.tenants.create_app("Acme", "acme")


QUEUE = Queue("tests")


def _claim(worker: Worker) -> None:
    worker.run_due()


def _renew(worker: Worker) -> None:
    worker.leases.renew()


def _postpone(worker: Worker) -> None:
    worker.parking.postpone(QUEUE, _claimed(worker), MINUTE)


def _fail(worker: Worker) -> None:
    worker.parking.record_failure(QUEUE, _claimed(worker)[0], ValueError("broken"))


def _claimed(worker: Worker) -> Sequence[ClaimedJob]:
    with worker.leases._lock:
        return [held.claimed for held in worker.leases._held.values()]


@pytest.mark.parametrize("act", [_claim, _renew, _postpone, _fail])
@pytest.mark.parametrize("place", ["after the refresh", "as the clock is read"])
@pytest.mark.parametrize("jump_ms", [3 * HOUR, -3 * HOUR])
def test_a_clock_that_jumps_after_the_check_writes_no_time(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[Worker], None], place: str, jump_ms: int
) -> None:
    """A worker checks the clock, reads the storage, and then reads the clock: it may have jumped
    meanwhile, and a lease would last for hours."""
    storage = OnServer()
    guard = ClockGuard(storage, SystemClock(), MAX_CLOCK_SKEW_MS)
    jumps_at = ""

    def reach(here: str) -> None:
        if jumps_at == here:
            monkeypatch.setattr(time, "time_ns", lambda: _true_time_ns() + jump_ms * 1_000_000)

    class Reading(SystemClock):
        def now(self) -> Instant:
            reach("as the clock is read")
            return super().now()

    def refresh() -> None:
        guard.require_right()
        reach("after the refresh")

    clock = GuardedClock(Reading(), guard)

    worker = Worker(storage, clock, "sandbox", {"none": print}, (QUEUE,), refresh=refresh)
    jobs = [
        Job(id=id, queue="sandbox.tests", lane=id, kind="none", due_at=0, subject=id) for id in "ab"
    ]
    storage.transact("env", lambda tx: tx.insert(jobs[0]))
    worker.leases.add(QUEUE, worker.leases.claim(QUEUE, "sandbox", 1, 1))
    storage.transact("env", lambda tx: tx.insert(jobs[1]))
    before = {job.id: storage.read("env", lambda s, id=job.id: s.get(Job, id)) for job in jobs}
    jumps_at = place
    with contextlib.suppress(StorageUnavailable):
        act(worker)
    for id, job in before.items():
        assert storage.read("env", lambda s, id=id: s.get(Job, id)) == job
