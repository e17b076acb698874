"""A KYC provider that hangs, and what a worker does meanwhile."""

from __future__ import annotations

import threading
from typing import Any

from payments_core.accounts.verification.following import LOOK_QUEUE
from payments_core.background_jobs import QUEUES
from payments_core.clock import SystemClock
from payments_core.engine.jobs.worker import Worker
from payments_core.storage.port import ClaimedJob
from tests.core.engine.jobs.bench import Bench

THREADS = 4


def test_a_provider_that_hangs_holds_one_thread_and_timers_go_on() -> None:
    bench = Bench(clock=SystemClock())  # type: ignore[arg-type]
    queues = {queue.name: queue for queue in QUEUES}
    released, asked, expired = threading.Event(), threading.Semaphore(0), threading.Semaphore(0)

    def ask_provider(claimed: ClaimedJob) -> None:
        asked.release()
        assert released.wait(30)
        bench.end(claimed)

    def expire(claimed: ClaimedJob) -> None:
        bench.end(claimed)
        expired.release()

    handlers: dict[str, Any] = {"ask": ask_provider, "expire": expire}
    worker = Worker(bench.storage, bench.clock, "sandbox", handlers, QUEUES, poll_s=0.05)
    for number in range(2 * THREADS):
        bench.add(f"case{number}", "ask", LOOK_QUEUE, lane=f"kyc:env_{number}")
    worker.start(THREADS)
    assert asked.acquire(timeout=30)
    for number in range(THREADS):
        bench.add(f"payment{number}", "expire", queues["timers"], lane=f"payment:{number}")
    worker.wake()
    try:
        assert all(expired.acquire(timeout=5) for _ in range(THREADS))
        assert not asked.acquire(blocking=False)
    finally:
        released.set()
        assert worker.stop(30)
