"""A COMMIT whose answer is lost, under a claimed job: whose outcome is it that is there?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from payments_core.engine.decision import Decision, LeaseLost
from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import ClaimedJob, CommitUnknown, Transaction
from tests.core.engine.jobs.bench import AUTHORITY, STOPPING, Bench


class _Undone(Exception):
    """Ends a transaction without its writes."""


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
        else:  # the work is done, and its COMMIT is not
            with contextlib.suppress(_Undone):
                super().transact(partition, lambda tx: self._undo(work(tx)))
        self.meanwhile()
        raise CommitUnknown("the answer to COMMIT was lost")

    def _undo(self, result: object) -> None:
        raise _Undone


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


@pytest.mark.parametrize("skew_ms", [0, 1, 2_499, 2_500])
@pytest.mark.parametrize("age_ms", [0, 2_499, 2_500, 2_501, 4_999, 5_000])
@pytest.mark.parametrize("inserts", [False, True])
def test_whatever_the_age_of_the_lease_and_the_skew_anothers_outcome_is_not_ours(
    age_ms: int, skew_ms: int, inserts: bool
) -> None:
    """Another worker's clock may be ahead, and so it may take the job before the lease ends."""
    bench, storage, claimed = bench_with_a_claim()
    theirs: list[ClaimedJob] = []

    def taken_over() -> None:
        bench.clock.advance(age_ms / 1_000)
        theirs.extend(
            bench.storage.claim(
                STOPPING.full_name("sandbox"), bench.clock.now() + skew_ms,
                lease_ms=STOPPING.lease_ms, limit=1, lane_concurrency=1,
            )
        )  # fmt: skip
        for item in theirs:
            bench.end(item)

    storage.applied, storage.meanwhile = False, taken_over
    end = insert_and_end if inserts else Bench.end
    if age_ms + skew_ms >= STOPPING.lease_ms:
        with pytest.raises(LeaseLost):
            end(bench, claimed)
        assert len(theirs) == 1
    else:
        end(bench, claimed)
    assert set(bench.jobs()) == ({"b"} if inserts and not theirs else set())


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("theirs", [None, "theirs", "ours"])
def test_a_row_of_that_id_proves_nothing_unless_it_is_ours(
    applied: bool, theirs: str | None
) -> None:
    """The COMMIT was lost, and another process has written the row meanwhile."""
    if applied and theirs is not None:
        pytest.skip("the row is taken")
    storage = Losing()
    bench = Bench(storage)

    def note(subject: str) -> Job:
        return Job(id="note", queue="q", lane="b", kind="note", due_at=0, subject=subject)

    def written() -> None:
        if theirs is not None:
            storage.transact(AUTHORITY.partition, lambda tx: tx.insert(note(theirs)))

    storage.applied, storage.meanwhile = applied, written

    def decide(tx: Transaction, ids: object) -> Decision[str]:
        found = tx.get(Job, "note", for_update=True)
        return Decision(found.subject) if found else Decision("ours", inserts=(note("ours"),))

    assert bench.committer.commit(AUTHORITY, decide) == (theirs or "ours")
    assert set(bench.jobs()) == {theirs or "ours"}
