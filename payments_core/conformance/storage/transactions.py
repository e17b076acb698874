"""The promises of a transaction: versions, isolation, and atomicity."""

from __future__ import annotations

import threading
from collections.abc import Callable

from payments_core.conformance.storage.harness import (
    OTHER_PARTITION,
    PARTITION,
    Harness,
    fetch,
    fetch_all_pages,
    fetch_existing,
    lock_existing,
    require_no_errors,
    run_concurrently,
)
from payments_core.conformance.storage.records import Counter, Mark, Note
from payments_core.evolve import evolve
from payments_core.storage.port import (
    CommitUnknown,
    Conflict,
    StorageUnavailable,
    Transaction,
    VersionConflict,
)

Work = Callable[[Transaction], None]


class TransactionChecks(Harness):
    """Versions, isolation, reruns, lost commits."""

    def test_a_record_comes_back_as_it_was_inserted_at_version_1(self) -> None:
        storage = self.open_handle()
        note = Note(id="n", rank=-3, name="Zoë", tag="t", code="c", text="x")
        self.insert(storage, note)
        assert fetch(storage, Note, "n") == evolve(note, version=1, schema=1)

    def test_an_absent_record_is_none(self) -> None:
        storage = self.open_handle()
        assert fetch(storage, Note, "n") is None
        assert fetch(storage, Note, "n\0") is None
        assert self.write(storage, lambda tx: tx.get(Note, "n")) is None
        assert self.write(storage, lambda tx: tx.get(Note, "n", for_update=True)) is None

    def test_the_result_of_the_work_comes_back(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n"))
        result = object()
        assert self.write(storage, lambda tx: result) is result
        assert storage.read(PARTITION, lambda snapshot: result) is result

    def test_a_version_rises_by_one_with_each_replace(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        for total in range(1, 4):

            def work(tx: Transaction, total: int = total) -> None:
                tx.replace(evolve(lock_existing(tx, Counter, "c"), total=total))

            self.write(storage, work)
            counter = fetch_existing(storage, Counter, "c")
            assert (counter.version, counter.total) == (total + 1, total)

    def test_one_work_may_write_a_record_more_than_once(self) -> None:
        storage = self.open_handle()

        def work(tx: Transaction) -> None:
            tx.insert(Counter(id="c", total=1))
            tx.replace(evolve(lock_existing(tx, Counter, "c"), total=2))
            tx.replace(evolve(lock_existing(tx, Counter, "c"), total=3))
            tx.insert(Note(id="gone", code="code"))
            tx.delete(lock_existing(tx, Note, "gone"))

        self.write(storage, work)
        assert fetch_existing(storage, Counter, "c") == Counter(
            id="c", total=3, version=3, schema=1
        )
        assert fetch(storage, Note, "gone") is None

    def test_a_stale_version_is_refused(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        stale = fetch_existing(storage, Counter, "c")
        self.write(
            storage,
            lambda tx: tx.replace(evolve(lock_existing(tx, Counter, "c"), total=5)),
        )
        self.require_error(storage, VersionConflict, lambda tx: tx.replace(stale))
        self.require_error(storage, VersionConflict, lambda tx: tx.delete(stale))
        self.require_error(storage, VersionConflict, lambda tx: tx.hold(stale))
        assert fetch_existing(storage, Counter, "c").total == 5

    def test_a_missing_record_is_refused(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        gone = fetch_existing(storage, Counter, "c")
        self.write(storage, lambda tx: tx.delete(lock_existing(tx, Counter, "c")))
        for record in (gone, Counter(id="c"), Counter(id="never"), Counter(id="c", version=2)):
            for work in _writes_of(record):
                self.require_error(storage, VersionConflict, work)
        assert fetch(storage, Counter, "c") is None

    def test_a_work_sees_its_own_writes(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="a", rank=1), Note(id="b", rank=2), Note(id="z", rank=9))

        def work(tx: Transaction) -> list[tuple[str, int]]:
            tx.insert(Note(id="c", rank=3))
            tx.replace(evolve(lock_existing(tx, Note, "a"), rank=4))
            tx.delete(lock_existing(tx, Note, "b"))
            for id, rank in (("c", 3), ("a", 4)):
                note = tx.get(Note, id)
                assert note is not None
                assert note.rank == rank
            assert tx.get(Note, "b") is None
            page = tx.find(Note, "by_rank", ("one",), limit=10)
            return [(note.id, note.rank) for note in page.records]

        found = self.write(storage, work)
        own = [item for item in found if item[0] != "z"]  # `find` may be stale about others
        assert own == [("c", 3), ("a", 4)]

    def test_an_error_undoes_everything_and_comes_out_unchanged(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"), Note(id="old", code="old"))
        refusal = ArithmeticError("no")

        def work(tx: Transaction) -> None:
            tx.insert(Note(id="n", code="new"))
            tx.replace(evolve(lock_existing(tx, Counter, "c"), total=9))
            tx.delete(lock_existing(tx, Note, "old"))
            raise refusal

        assert self.require_error(storage, ArithmeticError, work) is refusal
        assert fetch(storage, Note, "n") is None
        assert fetch_existing(storage, Counter, "c").total == 0
        self.insert(storage, Note(id="other", code="new"))
        assert fetch_existing(storage, Note, "old").code == "old"

    def test_a_conflict_that_the_work_swallows_commits_nothing(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", code="c"))
        stale = evolve(fetch_existing(storage, Note, "n"), version=7)
        conflicts: list[Work] = [
            lambda tx: tx.insert(Note(id="n")),
            lambda tx: tx.insert(Note(id="m", code="c")),
            lambda tx: tx.replace(stale),
            lambda tx: tx.delete(stale),
            lambda tx: tx.hold(stale),
        ]
        for conflict in conflicts:

            def work(tx: Transaction, conflict: Work = conflict) -> None:
                tx.insert(Mark(id="first"))
                for _ in range(2):
                    try:
                        conflict(tx)
                    except Conflict:
                        continue

            self.require_error(storage, Conflict, work)
            assert fetch(storage, Mark, "first") is None

    def test_a_work_has_one_effect_however_often_it_runs(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        runs = 0

        def work(tx: Transaction) -> None:
            nonlocal runs
            runs += 1
            counter = lock_existing(tx, Counter, "c")
            tx.replace(evolve(counter, total=counter.total + 1))
            tx.insert(Note(id=f"run {runs}"))

        for _ in range(20):
            self.write(storage, work)
        assert fetch_existing(storage, Counter, "c").total == 20
        assert len(fetch_all_pages(storage, Note, "all")) == 20

    def test_partitions_are_apart(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", code="c", text="here"), partition=PARTITION)
        self.insert(storage, Note(id="n", code="c", text="there"), partition=OTHER_PARTITION)
        self.insert(storage, Note(id="m", code="d", tag="t"), partition=OTHER_PARTITION)
        assert fetch(storage, Note, "m", PARTITION) is None
        assert [n.text for n in fetch_all_pages(storage, Note, "by_rank", ("one",))] == ["here"]
        assert fetch_all_pages(storage, Note, "by_tag", ("t",)) == []
        there = fetch_existing(storage, Note, "m", OTHER_PARTITION)
        self.require_error(storage, VersionConflict, lambda tx: tx.replace(there), PARTITION)
        self.require_error(storage, VersionConflict, lambda tx: tx.delete(there), PARTITION)
        self.require_error(storage, VersionConflict, lambda tx: tx.hold(there), PARTITION)
        self.write(storage, lambda tx: tx.delete(lock_existing(tx, Note, "n")), PARTITION)
        assert fetch_existing(storage, Note, "n", OTHER_PARTITION).text == "there"

    def test_many_threads_write_side_by_side(self) -> None:
        storage = self.open_handle()

        def call(thread: int) -> None:
            for number in range(10):
                self.insert(storage, Note(id=f"n{thread}_{number}"))

        require_no_errors(run_concurrently(*(lambda t=t: call(t) for t in range(8))))
        assert len(fetch_all_pages(storage, Note, "all")) == 80

    def test_a_lost_commit_that_was_applied_is_reported_and_can_be_looked_up(self) -> None:
        self._lose_commit(applied=True)

    def test_a_lost_commit_that_was_not_applied_leaves_nothing(self) -> None:
        self._lose_commit(applied=False)

    def _lose_commit(self, *, applied: bool) -> None:
        self.require_capability("can_lose_commits")
        storage = self.open_handle()
        self.lose_next_commit(storage, applied=applied)

        def work(tx: Transaction) -> None:
            tx.insert(Mark(id="m"))
            tx.insert(Note(id="n", code="c"))

        self.require_error(storage, CommitUnknown, work)
        for kind, id in ((Mark, "m"), (Note, "n")):
            assert (fetch(storage, kind, id) is not None) == applied
        if not applied:
            self.insert(storage, Mark(id="m"), Note(id="n", code="c"))
        assert fetch_existing(storage, Note, "n").version == 1

    def test_a_closed_storage_is_unavailable(self) -> None:
        storage = self.open_handle()
        storage.close()
        storage.close()
        self.require_error(storage, StorageUnavailable, lambda tx: tx.insert(Mark(id="m")))
        calls = (
            lambda: storage.read(PARTITION, lambda snapshot: snapshot.get(Mark, "m")),
            lambda: storage.claim("q", 0, lease_ms=1, limit=1, lane_concurrency=1),
            lambda: storage.locate(Note, "named", [("n",)]),
            lambda: storage.next_due("q"),
            storage.migrate,
        )
        for call in calls:
            try:
                call()
            except StorageUnavailable:
                continue
            raise AssertionError("a closed storage must refuse calls")

    def test_closing_waits_for_no_one_for_ever(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        stop = threading.Event()

        def keep_reading() -> None:
            while not stop.is_set():
                fetch(storage, Counter, "c")

        def close() -> None:
            storage.close()
            stop.set()

        for outcome in run_concurrently(keep_reading, close):
            assert outcome is None or isinstance(outcome, StorageUnavailable), outcome


def _writes_of(record: Counter) -> list[Work]:
    return [
        lambda tx: tx.replace(record),
        lambda tx: tx.delete(record),
        lambda tx: tx.hold(record),
    ]
