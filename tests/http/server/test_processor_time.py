"""How long the threads that answer have used the processor, at once and not at the next tick."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from payments_core_http.server.processor_time import ProcessorTime


@contextmanager
def working() -> Iterator[threading.Thread]:
    """A thread that computes, with pauses in which others get the interpreter lock."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            sum(range(1_000))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield thread
    finally:
        is_over.set()
        thread.join()


def test_what_a_thread_has_used_counts_at_once() -> None:
    with working() as thread:
        processor_s = ProcessorTime([thread])
        worked = time.pthread_getcpuclockid(thread.ident or 0)
        for _ in range(50):
            before, worked_before = processor_s(), time.clock_gettime(worked)
            time.sleep(0.002)
            used_by_it = time.clock_gettime(worked) - worked_before
            assert processor_s() - before >= used_by_it - 1e-6


def test_the_time_of_other_threads_counts_too() -> None:
    processor_s = ProcessorTime([])
    before = processor_s()
    with working() as thread:
        worked = time.pthread_getcpuclockid(thread.ident or 0)
        while time.clock_gettime(worked) < 0.05:
            time.sleep(0.001)
    assert processor_s() - before >= 0.04


def test_it_never_decreases_when_a_thread_waits() -> None:
    with working() as thread:
        processor_s = ProcessorTime([thread, threading.main_thread()])
        seen = [processor_s() for _ in range(2_000)]
    assert seen == sorted(seen)


def test_a_thread_that_has_ended_still_counts() -> None:
    with working() as thread:
        processor_s = ProcessorTime([thread])
        worked = time.pthread_getcpuclockid(thread.ident or 0)
        while time.clock_gettime(worked) < 0.05:
            time.sleep(0.001)
        before = processor_s()
    assert processor_s() >= before - 0.004  # by the clock of the process, which may be a tick late
