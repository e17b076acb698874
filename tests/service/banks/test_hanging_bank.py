"""A bank that hangs, and what a worker does meanwhile."""

from __future__ import annotations

import threading
from typing import Any

from payments_core.background_jobs import QUEUES
from payments_core.clock import SystemClock
from payments_core.engine.jobs.worker import Worker
from payments_core.storage.port import ClaimedJob
from tests.core.engine.jobs.bench import Bench

THREADS = 4


def test_a_bank_that_hangs_holds_few_threads_and_payments_go_on() -> None:
    bench = Bench(clock=SystemClock())  # type: ignore[arg-type]
    queues = {queue.name: queue for queue in QUEUES}
    released, asked, looked = threading.Event(), threading.Semaphore(0), threading.Event()

    def ask_bank(claimed: ClaimedJob) -> None:
        asked.release()
        assert released.wait(30)
        bench.end(claimed)

    def look_at_chain(claimed: ClaimedJob) -> None:
        bench.end(claimed)
        looked.set()

    handlers: dict[str, Any] = {"ask": ask_bank, "look": look_at_chain}
    worker = Worker(bench.storage, bench.clock, "sandbox", handlers, QUEUES, poll_s=0.05)
    for number in range(2 * THREADS):
        bench.add(f"onramp{number}", "ask", queues["timers"], lane="bank:env_test")
    worker.start(THREADS)
    assert asked.acquire(timeout=30)
    assert asked.acquire(timeout=30)
    bench.add("payment", "look", queues["chain"])
    worker.wake()
    try:
        assert looked.wait(5)
        assert not asked.acquire(blocking=False)
    finally:
        released.set()
        assert worker.stop(30)
