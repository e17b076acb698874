"""Claims among partitions: separate lanes, turns, and work that is found."""

from __future__ import annotations

import time

from payments_core.clock import Instant
from payments_core.conformance.storage.harness import OTHER_PARTITION, PARTITION, Harness
from payments_core.conformance.storage.jobs import NOW, claim, finish, ids, job, places
from payments_core.storage import documents
from payments_core.storage.jobs import Job
from payments_core.storage.maintenance import require_maintenance_access, to_record_row
from payments_core.storage.port import Storage

FOUND_WITHIN_S = 10.0
"""How long the suite waits for jobs that must be found within a few seconds."""
MANY_LANES = 700


class JobPartitionChecks(Harness):
    """The promises of `claim` about partitions, and about the jobs that it finds."""

    def test_a_lane_belongs_to_its_partition(self) -> None:
        storage = self.open_handle()
        for partition in (PARTITION, OTHER_PARTITION):
            self.insert(storage, job("j"), job("k", ordinal=1), partition=partition)
        first = claim(storage)
        assert sorted(places(first)) == [(PARTITION, "j"), (OTHER_PARTITION, "j")]
        assert ids(claim(storage)) == []
        finish(self, storage, first[0])
        assert places(claim(storage)) == [(first[0].partition, "k")]

    def test_a_partition_with_many_lanes_starves_none_with_few(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(job(f"a{n:02d}", lane=f"a{n}") for n in range(40)))
        few = [job(f"b{n}", lane=f"b{n}") for n in range(2)]
        self.insert(storage, *few, partition=OTHER_PARTITION)
        turns = [claim(storage, limit=1)[0].partition for _ in range(4)]
        assert sorted(turns) == sorted([PARTITION, OTHER_PARTITION] * 2), turns

    def test_a_partition_that_fills_a_claim_lets_the_others_go_first(self) -> None:
        storage = self.open_handle()
        for partition in (PARTITION, OTHER_PARTITION):
            many = [job(f"j{n:02d}", lane=f"lane {n}") for n in range(30)]
            self.insert(storage, *many, partition=partition)
        for _ in range(2):
            both = [*claim(storage, limit=10), *claim(storage, limit=10)]
            assert {item.partition for item in both} == {PARTITION, OTHER_PARTITION}

    def test_lanes_go_on_where_they_stood_when_their_partition_has_its_turn(self) -> None:
        storage = self.open_handle()
        for partition in (PARTITION, OTHER_PARTITION):
            for lane in "abc":
                jobs = [job(f"{lane}{n}", lane=lane, ordinal=n) for n in range(3)]
                self.insert(storage, *jobs, partition=partition)
        turns = [claim(storage, limit=1, lane_concurrency=9)[0] for _ in range(6)]
        lanes = sorted((item.partition, item.job.lane) for item in turns)
        assert lanes == sorted((p, lane) for p in (PARTITION, OTHER_PARTITION) for lane in "abc")

    def test_a_partition_whose_lanes_are_full_holds_up_no_other(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(job(f"a{n:03d}", lane="a", ordinal=n) for n in range(300)))
        assert len(claim(storage)) == 1
        for number in range(3):
            self.insert(storage, job(f"b{number}", lane="b"), partition=OTHER_PARTITION)
            (claimed,) = claim(storage)
            assert claimed.job.id == f"b{number}"
            finish(self, storage, claimed)
        self.insert(storage, job("c", lane="c"))
        assert ids(claim(storage)) == ["c"]

    def test_a_due_job_behind_many_lanes_with_nothing_due_is_found_at_once(self) -> None:
        storage = self.open_handle()
        self._fill(storage, PARTITION, NOW + 1)
        self.insert(storage, job("due", lane="lane z"))
        self.insert(storage, job("too", lane="lane 000x"), partition=OTHER_PARTITION)
        assert sorted(ids(claim(storage))) == ["due", "too"]
        assert ids(claim(storage)) == []

    def test_a_lane_behind_many_without_room_is_found_at_once(self) -> None:
        storage = self.open_handle()
        self._fill(storage, PARTITION, NOW)
        taken = 0
        while batch := claim(storage, limit=MANY_LANES):
            taken += len(batch)
        assert taken == MANY_LANES
        behind = [job(f"k{n:04d}", lane=f"lane {n:04d}", ordinal=1) for n in range(MANY_LANES)]
        storage.transact(PARTITION, lambda tx: tx.write(behind))
        self.insert(storage, job("z", lane="lane z"), job("between", lane="lane 0350x"))
        found = [*claim(storage, limit=5), *claim(storage, limit=5)]
        assert sorted(ids(found)) == ["between", "z"]

    def test_a_lane_among_long_ones_has_its_turn(self) -> None:
        """In a backlog larger than one claim, each lane gets its turn."""
        storage = self.open_handle()
        for lane in "ac":
            old = [job(f"{lane}{n:04d}", lane=lane, due_at=NOW - 2_000 + n) for n in range(500)]
            storage.transact(PARTITION, lambda tx, old=old: tx.write(old))  # type: ignore[misc]
        self.insert(storage, job("b", lane="b"))
        taken = [claim(storage, limit=1, lane_concurrency=9)[0].job.lane for _ in range(3)]
        assert sorted(taken) == ["a", "b", "c"]

    def test_jobs_of_another_handle_are_found(self) -> None:
        self.require_capability("multi_process")
        first, second = self.open_handle(), self.open_handle()
        assert ids(claim(second)) == []
        for number in range(3):
            self.insert(first, job(f"j{number}", lane=f"lane {number}"))
            assert self._await(second) == [f"j{number}"]

    def test_jobs_that_were_loaded_are_found(self) -> None:
        self.require_capability("maintenance_access")
        storage = self.open_handle()
        assert ids(claim(storage)) == []
        loaded = documents.stamp(job("j", due_at=NOW - 5), 3)
        with require_maintenance_access(storage).lock_exclusively() as alone:
            alone.load(Job, [to_record_row(OTHER_PARTITION, loaded)])
        assert self._await(storage) == ["j"]

    def _fill(self, storage: Storage, partition: str, due_at: Instant) -> None:
        lanes = range(MANY_LANES)
        jobs: list[Job] = [job(f"j{n:04d}", lane=f"lane {n:04d}", due_at=due_at) for n in lanes]
        storage.transact(partition, lambda tx: tx.write(jobs))

    def _await(self, storage: Storage) -> list[str]:
        """The jobs that a claim finds within a few seconds."""
        until = time.monotonic() + FOUND_WITHIN_S
        while time.monotonic() < until:
            if claimed := claim(storage):
                return ids(claimed)
            time.sleep(0.02)
        return []
