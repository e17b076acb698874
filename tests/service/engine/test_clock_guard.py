"""A machine whose clock jumps while it works: it does nothing until the clock is right again."""

from __future__ import annotations

import logging
import time

import pytest

from payments_core import PaymentsService
from payments_core.clock import HOUR, SECOND, FixedClock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.clock_guard import ClockGuard
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.errors import Unavailable
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import StorageUnavailable, Transaction
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
    guard = ClockGuard(OnFixedServer(clock), clock, 2 * SECOND, monotonic_ms=lambda: 0)
    clock.advance(1_800)  # for the server too; the counter stood still
    guard.require_right()
    guard.require_right()
    assert caplog.messages == []


def test_a_clock_that_is_corrected_is_believed_once_it_agrees(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    true, wrong = FixedClock(), FixedClock()
    guard = ClockGuard(OnFixedServer(true), wrong, 2 * SECOND, monotonic_ms=lambda: 0)
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


def test_a_storage_without_a_clock_is_asked_nothing() -> None:
    clock = FixedClock()
    guard = ClockGuard(MemoryStorage(), clock, 2 * SECOND, monotonic_ms=lambda: 0)
    clock.advance(3_600)
    guard.require_right()


def test_what_a_jump_overtakes_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that began before it would expire a Payment that lives."""
    storage = OnServer()
    service = PaymentsService(storage, KeyRing.parse(RING))
    partition = service.tenants.create_app("Acme", "acme").environments["sandbox"]
    service.refresh()

    def decide(tx: Transaction, id_sequence: IdSequence, jump_ms: int) -> Decision[None]:
        monkeypatch.setattr(time, "time_ns", lambda: _true_time_ns() + jump_ms * 1_000_000)
        due_at = service.ports.clock.now()
        return Decision(None, jobs=(NewJob("chain", "none.such", "lane", due_at, "a", id="job_a"),))

    def commit(jump_ms: int) -> None:
        service.ports.committer.commit(
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
