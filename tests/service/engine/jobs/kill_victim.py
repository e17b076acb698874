"""A worker whose handlers never end, for test_kills, which kills it.

Usage: python -m tests.service.engine.jobs.kill_victim STORAGE_URL NAME; it prints a line for each
job that it begins.
"""

from __future__ import annotations

import os
import sys
import threading

from payments_core.clock import SystemClock
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.jobs.worker import Worker
from payments_core.storage.port import ClaimedJob
from payments_core.storage_loader import open_storage

THREADS = 2
QUEUES = (Queue("chain"), Queue("webhooks", failure_blocks_lane=False))


def hang(claimed: ClaimedJob) -> None:
    """Begin, and never end."""
    os.write(1, f"{claimed.job.id}\n".encode())
    threading.Event().wait()


def main(url: str, name: str) -> None:
    """Work until it is killed."""
    worker = Worker(open_storage(url), SystemClock(), "sandbox", {"note": hang}, QUEUES)
    worker.take_over(name)
    worker.start(THREADS)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
