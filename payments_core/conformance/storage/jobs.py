"""Claims: lanes in a ring, slots, the order in a lane, and fenced leases."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.clock import Instant
from payments_core.conformance.storage.harness import (
    HANG_TIMEOUT_S,
    OTHER_PARTITION,
    PARTITION,
    Harness,
    fetch,
    fetch_existing,
    lock_existing,
    require_no_errors,
    run_concurrently,
)
from payments_core.evolve import evolve
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import ClaimedJob, Storage, Transaction

QUEUE = "test.suite"
NOW: Instant = 1_790_000_000_000
LEASE_MS = 30_000


class JobChecks(Harness):
    """The promises of `claim` and `next_due`."""

    def test_a_due_job_is_leased(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("j", due_at=NOW))
        (claimed,) = claim(storage)
        assert claimed.partition == PARTITION
        assert claimed.job == fetch_existing(storage, Job, "j")
        assert (claimed.job.claims, claimed.job.version) == (1, 2)
        assert claimed.job.lease_until == NOW + LEASE_MS
        assert claimed.job.arguments == {"key": "value"}

    def test_only_due_jobs_are_claimed(self) -> None:
        storage = self.open_handle()
        self.insert(
            storage, job("now", lane="a", due_at=NOW), job("later", lane="b", due_at=NOW + 1)
        )
        assert ids(claim(storage)) == ["now"]
        assert ids(claim(storage)) == []
        assert ids(claim(storage, now=NOW + 1)) == ["later"]

    def test_a_lane_keeps_its_order(self) -> None:
        storage = self.open_handle()
        day = 86_400_000
        rows = [
            ("f", NOW, 0),
            ("e", NOW - 1, 2),
            ("d", NOW - 1, 1),
            ("c", NOW - 1, 1),
            ("b", NOW - 30 * day, 9),
            ("a", NOW - 2 * day, 0),
        ]
        self.insert(storage, *(job(id, due_at=due, ordinal=n) for id, due, n in rows))
        order = ["b", "a", "c", "d", "e", "f"]
        first = claim(storage, limit=4, lane_concurrency=10)
        assert ids(first) == order[:4]
        assert ids(claim(storage, limit=4, lane_concurrency=10)) == order[4:]

    def test_a_lane_gives_no_more_than_its_concurrency(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(job(f"j{n}", ordinal=n) for n in range(5)))
        first = claim(storage, lane_concurrency=2)
        assert ids(first) == ["j0", "j1"]
        assert ids(claim(storage, lane_concurrency=2)) == []
        finish(self, storage, first[0])
        assert ids(claim(storage, lane_concurrency=2)) == ["j2"]
        assert ids(claim(storage, lane_concurrency=4)) == ["j3", "j4"]

    def test_a_lane_may_have_a_concurrency_of_its_own(self) -> None:
        storage = self.open_handle()
        for lane in "abc":
            self.insert(storage, *(job(f"{lane}{n}", lane=lane, ordinal=n) for n in range(4)))
        lane_overrides = {"a": 3, "b": 0, "unknown": 5}
        claimed = storage.claim(
            QUEUE,
            NOW,
            lease_ms=LEASE_MS,
            limit=12,
            lane_concurrency=1,
            lane_overrides=lane_overrides,
        )
        assert sorted(ids(claimed)) == ["a0", "a1", "a2", "c0"]
        assert ids(claim(storage, lane_concurrency=1)) == ["b0"]

    def test_each_lane_gives_one_before_any_gives_a_second(self) -> None:
        storage = self.open_handle()
        for lane in "abc":
            self.insert(storage, *(job(f"{lane}{n}", lane=lane, ordinal=n) for n in range(3)))
        assert sorted(ids(claim(storage, limit=5, lane_concurrency=3))[:3]) == ["a0", "b0", "c0"]

    def test_no_more_than_the_limit_are_claimed(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(job(f"j{n}", lane=f"lane {n}") for n in range(5)))
        assert len(claim(storage, limit=3)) == 3
        assert len(claim(storage, limit=3)) == 2

    def test_a_saturated_lane_starves_no_other(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(job(f"a{n:02d}", lane="a", due_at=n) for n in range(30)))
        assert ids(claim(storage, limit=1, lane_concurrency=1)) == ["a00"]
        self.insert(storage, job("b", lane="b"), job("c", lane="c"))
        assert sorted(ids(claim(storage, limit=2, lane_concurrency=1))) == ["b", "c"]
        assert ids(claim(storage, limit=2, lane_concurrency=1)) == []

    def test_lanes_take_turns(self) -> None:
        storage = self.open_handle()
        for lane, jobs in (("a", 20), ("b", 2), ("c", 2)):
            self.insert(storage, *(job(f"{lane}{n:02d}", lane=lane) for n in range(jobs)))
        turns = [ids(claim(storage, limit=1, lane_concurrency=50))[0][0] for _ in range(6)]
        assert sorted(turns) == ["a", "a", "b", "b", "c", "c"], turns

    def test_many_lanes_all_have_their_turn(self) -> None:
        storage = self.open_handle()
        lanes = [f"lane {n}" for n in range(150)]
        self.insert(storage, *(job(f"j {lane} {n}", lane=lane) for lane in lanes for n in (1, 2)))
        for half in (1, 2):
            seen: list[ClaimedJob] = []
            while len(seen) <= len(lanes) and (batch := claim(storage, limit=40)):
                seen.extend(batch)
            assert sorted(claimed.job.lane for claimed in seen) == sorted(lanes)
            assert {claimed.job.id[-1] for claimed in seen} == {str(half)}
            for claimed in seen:
                finish(self, storage, claimed)

    def test_a_job_put_off_comes_when_it_is_due(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("j"))
        (claimed,) = claim(storage)
        later = evolve(claimed.job, due_at=NOW + 500, lease_until=0)
        self.write(storage, lambda tx: tx.replace(later))
        assert ids(claim(storage, now=NOW + 499)) == []
        assert ids(claim(storage, now=NOW + 500)) == ["j"]

    def test_a_job_parked_by_its_lease_stops_its_lane(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("a", lease_until=NEVER), job("b", ordinal=1))
        assert ids(claim(storage, now=NEVER - 1)) == []
        assert ids(claim(storage, lane_concurrency=2)) == ["b"]

    def test_a_job_parked_by_its_due_time_lets_its_lane_go_on(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("a", due_at=NEVER), job("b", ordinal=1))
        assert ids(claim(storage)) == ["b"]

    def test_queues_are_apart(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("j"), job("k", queue="other"))
        assert ids(claim(storage, lane_concurrency=5)) == ["j"]
        assert ids(claim(storage, queue="other")) == ["k"]
        assert ids(claim(storage, queue="third")) == []

    def test_claims_cross_partitions_and_say_which(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("j", lane="a"), partition=PARTITION)
        self.insert(
            storage, job("j", lane="b"), job("k", lane="a", ordinal=1), partition=OTHER_PARTITION
        )
        claimed = claim(storage, lane_concurrency=2)
        assert sorted((item.partition, item.job.id) for item in claimed) == [
            (PARTITION, "j"),
            (OTHER_PARTITION, "j"),
            (OTHER_PARTITION, "k"),
        ]
        finish(self, storage, next(item for item in claimed if item.job.lane == "b"))
        assert fetch(storage, Job, "j", PARTITION) is not None
        assert fetch(storage, Job, "j", OTHER_PARTITION) is None

    def test_next_due_is_the_earliest_that_can_be_claimed(self) -> None:
        storage = self.open_handle()
        assert storage.next_due(QUEUE) is None
        self.insert(storage, job("a", lane="a", due_at=NOW + 50))
        self.insert(storage, job("b", lane="b", due_at=NOW + 40, lease_until=NOW + 70))
        self.insert(storage, job("other", queue="other", due_at=5))
        assert storage.next_due(QUEUE) == NOW + 50
        assert ids(claim(storage, now=NOW + 60)) == ["a"]
        assert storage.next_due(QUEUE) == NOW + 70
        assert storage.next_due("other") == 5
        finish(self, storage, claim(storage, now=NOW + 70)[0])
        assert storage.next_due(QUEUE) == NOW + 60 + LEASE_MS

    def test_next_due_after_an_instant_is_later_than_it(self) -> None:
        storage = self.open_handle()
        self.insert(
            storage,
            job("blocked", lane="a", due_at=NOW - 5),
            job("a", lane="b", due_at=NOW),
            job("b", lane="c", due_at=NOW + 10, lease_until=NOW + 40),
            job("parked", lane="d", lease_until=NEVER),
        )
        self.insert(storage, job("there", lane="e", due_at=NOW + 50), partition=OTHER_PARTITION)
        self.insert(storage, job("other", queue="other", due_at=NOW + 1))
        afters = (None, 0, NOW - 5, NOW - 1, NOW, NOW + 39, NOW + 40, NOW + 50, NEVER)
        assert [storage.next_due(QUEUE, after) for after in afters] == [
            NOW - 5,
            NOW - 5,
            NOW,
            NOW,
            NOW + 40,
            NOW + 40,
            NOW + 50,
            NEVER,
            None,
        ]
        assert storage.next_due("third", NOW) is None

    def test_two_claimers_never_get_the_same_job(self) -> None:
        storage = self.open_handle()
        self._require_disjoint_claims(storage, storage, storage, storage)

    def test_claimers_of_two_handles_never_get_the_same_job(self) -> None:
        self.require_capability("multi_process")
        first, second = self.open_handle(), self.open_handle()
        self._require_disjoint_claims(first, first, second, second)

    def _require_disjoint_claims(self, *storages: Storage) -> None:
        """All claim each lane concurrently, and it gives no more than its slots."""
        lanes = [f"lane {n}" for n in range(6)]
        for lane in lanes:
            self.insert(storages[0], *(job(f"{lane} {n}", lane=lane) for n in range(6)))

        def drain(storage: Storage) -> list[ClaimedJob]:
            taken: list[ClaimedJob] = []
            empty = 0
            while empty < 3 and len(taken) <= 36:
                batch = claim(storage, limit=3, lane_concurrency=2)
                empty = 0 if batch else empty + 1
                taken.extend(batch)
            return taken

        outcomes = run_concurrently(
            *(lambda storage=storage: drain(storage) for storage in storages)
        )
        require_no_errors(outcomes)
        claimed = [item for taken in outcomes if isinstance(taken, list) for item in taken]
        names = [item.job.id for item in claimed]
        assert len(set(names)) == len(names), "a job must not be leased twice"
        for lane in lanes:
            assert sum(item.job.lane == lane for item in claimed) == 2, lane
        assert all(item.job.claims == 1 for item in claimed)

    def test_claims_and_transactions_on_the_same_jobs_lose_nothing(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(job(f"j{n:02d}", lane=f"lane {n % 4}") for n in range(40)))
        done: list[str] = []

        def work_off() -> None:
            while storage.next_due(QUEUE) is not None and len(done) <= 40:
                for claimed in claim(storage, limit=2, lane_concurrency=2):
                    finish(self, storage, claimed)
                    done.append(claimed.job.id)

        require_no_errors(run_concurrently(work_off, work_off, work_off))
        assert sorted(done) == [f"j{n:02d}" for n in range(40)]

    def test_another_process_does_not_claim_what_this_one_has(self) -> None:
        self.require_capability("multi_process")
        storage = self.open_handle()
        self.insert(storage, *(job(f"j{n:02d}", lane=f"lane {n}") for n in range(60)))
        child = self.run_child("claim", QUEUE, str(NOW), str(LEASE_MS))
        mine: list[str] = []
        while len(mine) <= 60 and (batch := claim(storage, limit=2)):
            mine.extend(ids(batch))
        theirs, _ = child.communicate(timeout=HANG_TIMEOUT_S)
        assert child.returncode == 0
        assert sorted([*mine, *theirs.split()]) == [f"j{n:02d}" for n in range(60)]


def finish(harness: Harness, storage: Storage, claimed: ClaimedJob) -> None:
    """End a job as a worker does: under its counter."""

    def work(tx: Transaction) -> None:
        current = lock_existing(tx, Job, claimed.job.id)
        assert current.claims == claimed.job.claims, "the lease must still be held"
        tx.delete(current)

    harness.write(storage, work, claimed.partition)


def job(
    id: str,
    *,
    lane: str = "lane",
    due_at: Instant = NOW - 1,
    ordinal: int = 0,
    queue: str = QUEUE,
    lease_until: Instant = 0,
) -> Job:
    """A job of the suite."""
    return Job(
        id=id,
        queue=queue,
        lane=lane,
        kind="test",
        due_at=due_at,
        subject="subject",
        arguments={"key": "value"},
        ordinal=ordinal,
        lease_until=lease_until,
    )


def claim(
    storage: Storage,
    *,
    queue: str = QUEUE,
    now: Instant = NOW,
    limit: int = 10,
    lane_concurrency: int = 1,
    holder: str = "",
) -> Sequence[ClaimedJob]:
    """Claim with the suite's lease."""
    return storage.claim(
        queue,
        now,
        lease_ms=LEASE_MS,
        limit=limit,
        lane_concurrency=lane_concurrency,
        holder=holder,
    )


def ids(claimed: Sequence[ClaimedJob]) -> list[str]:
    """The ids of the claimed jobs."""
    return [item.job.id for item in claimed]


def places(claimed: Sequence[ClaimedJob]) -> list[tuple[str, str]]:
    """The places of the claimed jobs."""
    return [(item.partition, item.job.id) for item in claimed]
