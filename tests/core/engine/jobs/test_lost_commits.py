"""A COMMIT whose answer is lost, under a claimed job: whose outcome is it that is there?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_core.engine.decision import Decision, LeaseLost
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import ClaimedJob, CommitUnknown, Transaction
from tests.core.engine.jobs.bench import AUTHORITY, STOPPING, Bench


class Losing(MemoryStorage):
    """Loses the answer to one COMMIT, which took place or not; `meanwhile` comes right after."""

    applied: bool | None = None
    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def transact(self, partition: str, work: Callable[[Transaction], Any]) -> Any:
        if self.applied is None:
            return super().transact(partition, work)
        applied, self.applied = self.applied, None
        if applied:
            super().transact(partition, work)
        self.meanwhile()
        raise CommitUnknown("the answer to COMMIT was lost")


def bench_with_a_claim() -> tuple[Bench, Losing, ClaimedJob]:
    storage = Losing()
    bench = Bench(storage)
    bench.add("a")
    return bench, storage, claim(bench)


def claim(bench: Bench) -> ClaimedJob:
    (claimed,) = bench.storage.claim(
        STOPPING.full_name("sandbox"), bench.clock.now(), lease_ms=STOPPING.lease_ms, limit=1,
        lane_concurrency=1,
    )  # fmt: skip
    return claimed


def insert_and_end(bench: Bench, claimed: ClaimedJob) -> str:
    note = Job(id="note", queue="q", lane="b", kind="note", due_at=0, subject="b")
    decision = Decision("ours", inserts=(note,))
    return bench.committer.commit(AUTHORITY, lambda tx, ids: decision, claimed=claimed)


@pytest.mark.parametrize("applied", [True, False])
def test_while_the_lease_lives_the_job_decides(applied: bool) -> None:
    bench, storage, claimed = bench_with_a_claim()
    storage.applied = applied
    bench.end(claimed)
    assert bench.jobs() == {}


def test_after_the_lease_another_may_have_ended_the_job() -> None:
    """The worker was cut off while its lease ended: what it decided was never stored."""
    bench, storage, claimed = bench_with_a_claim()

    def taken_over() -> None:
        bench.clock.advance(60)
        bench.end(claim(bench))

    storage.applied, storage.meanwhile = False, taken_over
    with pytest.raises(LeaseLost):
        bench.end(claimed)


def test_after_the_lease_a_row_of_ours_decides() -> None:
    bench, storage, claimed = bench_with_a_claim()
    storage.applied, storage.meanwhile = True, lambda: bench.clock.advance(60)
    assert insert_and_end(bench, claimed) == "ours"
    assert set(bench.jobs()) == {"b"}


def test_after_the_lease_no_row_of_ours_means_no_outcome_of_ours() -> None:
    bench, storage, claimed = bench_with_a_claim()

    def taken_over() -> None:
        bench.clock.advance(60)
        bench.end(claim(bench))

    storage.applied, storage.meanwhile = False, taken_over
    with pytest.raises(LeaseLost):
        insert_and_end(bench, claimed)
    assert bench.jobs() == {}
