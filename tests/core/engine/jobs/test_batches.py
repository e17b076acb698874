"""Jobs that are done together: those of a kind and partition, and each alone where that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from payments_core.clock import MINUTE
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.execution import BatchHandler
from payments_core.engine.jobs.worker import Worker
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Transaction
from tests.core.engine.jobs.bench import AUTHORITY, STOPPING, Bench


def worker(bench: Bench, many: BatchHandler) -> Worker:
    handlers = {"note": bench.note}
    return Worker(
        bench.storage, bench.clock, "sandbox", handlers, (STOPPING,), batch_handlers={"many": many}
    )


@attrs.define
class Together:
    """Ends its jobs in one commit, and notes which it was given; one may be bad."""

    bench: Bench
    bad: str = ""
    given: list[list[str]] = attrs.field(factory=list)

    def __call__(self, claimed: Sequence[ClaimedJob]) -> None:
        subjects = [item.job.subject for item in claimed]
        self.given.append(subjects)
        if self.bad in subjects:
            raise ValueError("damaged")
        nothing: Decision[None] = Decision(None)
        self.bench.committer.finish_all(
            WorkerAuthority.of(claimed[0]),
            claimed,
            lambda tx, id_sequence, ours: {item.job.id: nothing for item in ours},
        )


def test_jobs_of_a_kind_are_done_in_one_call_and_others_by_themselves() -> None:
    bench = Bench()
    together = Together(bench)
    for subject in "ab":
        bench.add(subject, "many")
    bench.add("c")
    bench.add("d", "many")
    assert worker(bench, together).run_until_idle() == 4
    assert [sorted(subjects) for subjects in together.given] == [["a", "b", "d"]]
    assert bench.ran == ["c"]
    assert worker(bench, together).next_due() is None


def test_a_job_that_fails_holds_up_none_of_those_that_were_done_with_it() -> None:
    bench = Bench()
    together = Together(bench, bad="b")
    for subject in "abc":
        bench.add(subject, "many")
    running = worker(bench, together)
    running.run_due()
    assert together.given[1:] == [["a"], ["b"], ["c"]]
    assert set(bench.jobs()) == {"b"}
    assert bench.jobs()["b"].lease_until > bench.clock.now(), "it waits for its next turn"
    together.bad = ""
    bench.clock.advance(MINUTE // 1_000)
    assert running.run_until_idle() == 1


def test_jobs_of_two_environments_are_not_done_together() -> None:
    bench = Bench()
    together = Together(bench)
    bench.add("a", "many")
    found = bench.jobs()["a"]
    bench.storage.transact("env_other", lambda tx: tx.insert(attrs.evolve(found, version=0)))
    assert worker(bench, together).run_until_idle() == 2
    assert together.given == [["a"], ["a"]]


def test_what_was_committed_before_a_failure_is_not_done_again() -> None:
    bench = Bench()
    ends: list[str] = []

    def one_by_one(claimed: Sequence[ClaimedJob]) -> None:
        for item in claimed:
            if item.job.subject == "b" and len(claimed) > 1:
                raise ValueError("damaged")
            bench.end(item)
            ends.append(item.job.subject)

    for subject in "abc":
        bench.add(subject, "many")
    worker(bench, one_by_one).run_until_idle()
    assert sorted(ends) == ["a", "b", "c"]
    assert bench.jobs() == {}


def of_the_lane(bench: Bench, changed: str = "") -> Worker:
    """A worker that does the jobs behind a claimed one with it; one of them changes meanwhile."""

    def run(claimed: ClaimedJob) -> int:
        lane = (claimed.job.queue, claimed.job.lane)
        jobs = bench.storage.read(
            claimed.partition, lambda snapshot: snapshot.find(Job, "by_queue_lane", lane).records
        )
        behind = [ClaimedJob(claimed.partition, job) for job in jobs if job.id != claimed.job.id]
        for item in behind:
            if item.job.subject == changed:
                later = attrs.evolve(item.job, due_at=item.job.due_at + MINUTE)
                bench.storage.transact(claimed.partition, lambda tx, job=later: tx.replace(job))  # type: ignore[misc]
        ended: list[str] = []

        def decide(
            tx: Transaction, id_sequence: IdSequence, ours: Sequence[ClaimedJob]
        ) -> dict[str, Decision[None]]:
            ended[:] = [item.job.subject for item in ours]
            return {item.job.id: Decision(None) for item in ours}

        bench.committer.finish_all(AUTHORITY, [claimed, *behind], decide)
        bench.ran += ended
        return len(ended)

    return bench.worker(lane=run)


def test_jobs_behind_a_claimed_one_are_done_with_it_without_a_claim() -> None:
    bench = Bench()
    claims = 0
    claim = bench.storage.claim

    def counted(*args: Any, **more: Any) -> Any:
        nonlocal claims
        claims += 1
        return claim(*args, **more)

    bench.storage.claim = counted  # type: ignore[method-assign]
    for subject in "abc":
        bench.add(subject, "lane", lane="shared")
    assert of_the_lane(bench).run_until_idle() == 3
    assert sorted(bench.ran) == ["a", "b", "c"]
    assert claims == 2, "the first, and one that finds nothing more"
    assert bench.jobs() == {}


def test_one_that_was_changed_meanwhile_is_left() -> None:
    bench = Bench()
    bench.add("a", "lane", lane="shared")
    bench.clock.advance(1)  # "a" is due first, and so it is the claimed one
    for subject in "bc":
        bench.add(subject, "lane", lane="shared")
    assert of_the_lane(bench, changed="b").run_until_idle() == 2
    assert sorted(bench.ran) == ["a", "c"]
    assert set(bench.jobs()) == {"b"}
