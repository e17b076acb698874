"""A worker whose threads hang in jobs says so, also to what can replace its process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from payments_core.clock import FixedClock, SystemClock
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Worker
from payments_core.storage.port import ClaimedJob
from tests.core.engine.jobs.bench import Bench

THREADS = 4
QUEUE = Queue("payments", lease_ms=200, run_limit_ms=300)
NARROW = Queue("timers", lease_ms=200, run_limit_ms=300, threads=1)


class Hanging:
    """A worker with jobs that hang until they are released."""

    def __init__(self) -> None:
        self.bench = Bench(clock=FixedClock(SystemClock().now()))
        self.release = threading.Event()
        self.stuck = threading.Event()
        handlers = {"note": self.bench.note, "hang": self._hang}
        clock = SystemClock()
        self.worker = Worker(self.bench.storage, clock, "sandbox", handlers, (QUEUE, NARROW))
        self.worker.hung.on_stuck = self.stuck.set

    def _hang(self, claimed: ClaimedJob) -> None:
        assert self.release.wait(60)

    def add(self, subject: str, kind: str, queue: Queue = QUEUE) -> None:
        self.bench.add(subject, kind, queue)
        self.worker.wake()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    hanging = Hanging()
    hanging.worker.start(THREADS)
    yield hanging
    hanging.release.set()
    assert hanging.worker.stop()


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never happened")


def alarms(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one for one in caplog.messages if one.startswith("ALARM")]


def test_a_worker_is_stuck_when_most_of_its_threads_hang(
    hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for name in ("a", "b"):
        hanging.add(name, "hang")
    wait_until(lambda: sum("has not ended" in one for one in caplog.messages) == 2)
    hanging.add("other", "note")  # it takes longer than a look at the threads
    wait_until(lambda: hanging.bench.ran == ["other"])
    assert not hanging.stuck.is_set()
    assert alarms(caplog) == []
    hanging.add("c", "hang")
    assert hanging.stuck.wait(20)
    assert hanging.worker.hung.is_stuck
    [alarm] = alarms(caplog)
    assert alarm.startswith("ALARM: 3 of 4 threads of this worker hang in jobs")
    hanging.release.set()
    wait_until(lambda: not hanging.worker.hung.is_stuck)
    wait_until(lambda: caplog.messages[-1] == "enough threads of this worker run jobs again")


def test_a_worker_is_stuck_when_all_threads_of_a_queue_hang(hanging: Hanging) -> None:
    hanging.add("a", "hang", NARROW)
    assert hanging.stuck.wait(20)


def test_a_stop_waits_for_no_thread_that_hangs(hanging: Hanging) -> None:
    hanging.add("a", "hang", NARROW)
    assert hanging.stuck.wait(20)
    assert not hanging.worker.stop(timeout_s=3_600)
