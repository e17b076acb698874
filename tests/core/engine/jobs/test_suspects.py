"""Jobs that end their process each time or hang in it, and those that are claimed beside them."""

from __future__ import annotations

from payments_core.clock import SECOND
from payments_core.engine.jobs.parking import CLAIMS_BEFORE_PARKING, LEASE_MS, Queue
from payments_core.engine.jobs.suspects import ALONE_PAUSE_MS, CLAIMS_BEFORE_ALONE
from payments_core.engine.jobs.worker import Worker
from payments_core.storage.jobs import NEVER
from payments_core.storage.port import ClaimedJob
from tests.core.engine.jobs.bench import PASSING, STOPPING, Bench


class Died(BaseException):
    """The process ends here."""


class Processes:
    """Processes that come one after the other, with a job in lane `a` that ends each of them."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.deaths = 0

    def run(self, worker: Worker) -> None:
        """What a process does; a dead one's leases end before the next begins."""
        try:
            worker.run_due()
        except Died:
            self.deaths += 1
        self.bench.clock.advance(LEASE_MS / SECOND)

    def die(self, claimed: ClaimedJob) -> None:
        raise Died


def test_a_job_that_ends_its_process_parks_alone() -> None:
    processes = Processes()
    processes.bench.add("poison", "die", lane="a")
    for name in ("b", "shared"):
        processes.bench.add(name)
    for _ in range(2 * CLAIMS_BEFORE_PARKING):
        processes.run(processes.bench.worker(die=processes.die))
    assert processes.bench.ran == ["b", "shared"]
    [left] = processes.bench.jobs().values()
    assert (left.subject, left.lease_until) == ("poison", NEVER)
    assert processes.deaths == CLAIMS_BEFORE_PARKING


def test_a_suspect_job_waits_in_its_lane_while_another_one_is_under_way() -> None:
    processes, bench = Processes(), Bench()
    processes.bench = bench
    bench.add("first", "die", lane="a")
    bench.add("second", lane="b")
    bench.add("behind it", lane="b", delay_ms=1)
    for _ in range(CLAIMS_BEFORE_ALONE):
        processes.run(bench.worker(STOPPING, die=processes.die))
    assert bench.ran == []
    bench.add("other", queue=PASSING, lane="shared")
    seen: list[list[str]] = []

    def look(claimed: ClaimedJob) -> None:
        worker.run_due()  # as another thread of the process would
        seen.append(list(bench.ran))
        bench.end(claimed)

    worker = bench.worker(STOPPING, PASSING, die=look)
    worker.run_due()
    assert seen == [["other"]]
    bench.clock.advance(ALONE_PAUSE_MS / SECOND)
    worker.run_due()
    assert bench.ran == ["other", "second", "behind it"]


def test_a_job_that_hangs_takes_one_thread_of_a_process() -> None:
    bench, queue = Bench(), Queue("payments", run_limit_ms=0)
    entered: list[int] = []

    def hang(claimed: ClaimedJob) -> None:
        entered.append(claimed.job.claims)
        assert len(entered) == 1, "another thread has begun what hangs here"
        for _ in range(3):
            worker.leases.renew()  # it has already taken too long, and is let go
            bench.clock.advance(LEASE_MS / SECOND)
            worker.run_due()  # as another thread of the process would

    worker = bench.worker(queue, hang=hang)
    bench.add("hangs", "hang", queue=queue, lane="a")
    bench.add("other", queue=queue, lane="b")
    worker.run_due(1)
    assert (entered, bench.ran) == ([1], ["other"])
    bench.clock.advance(LEASE_MS / SECOND)
    bench.worker(queue, hang=bench.note).run_due()  # another process may have it
    assert bench.ran == ["other", "hangs"]


def test_several_jobs_that_end_their_process_park_and_no_other() -> None:
    """As where so many hang that the process has to be replaced."""
    processes = Processes()
    for name in ("a", "b", "shared"):
        processes.bench.add(f"poison {name}", "die", lane=name)
    for name in ("well", "sound"):
        processes.bench.add(name)
    for _ in range(4 * CLAIMS_BEFORE_PARKING):
        processes.run(processes.bench.worker(die=processes.die))
    assert sorted(processes.bench.ran) == ["sound", "well"]
    parked = {job.subject: job.lease_until for job in processes.bench.jobs().values()}
    assert parked == dict.fromkeys(("poison a", "poison b", "poison shared"), NEVER)
