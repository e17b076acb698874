"""Snapshots: complete, never older than an answered commit, and never going back."""

from __future__ import annotations

import threading

from payments_core.conformance.storage.harness import (
    PARTITION,
    Harness,
    fetch_existing,
    lock_existing,
    require_no_errors,
    run_concurrently,
)
from payments_core.conformance.storage.records import Counter, Note
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, Storage, Transaction


class SnapshotChecks(Harness):
    """The promises of `read`."""

    def test_a_reader_never_sees_half_a_transaction(self) -> None:
        """A writer moves 1 from one counter to the other between the reader's two reads."""
        storage = self.open_handle()
        self._insert_counters(storage)
        written = threading.Event()
        looked = threading.Event()

        def read_sum(snapshot: Snapshot) -> int:
            first = snapshot.get(Counter, "a")
            looked.set()
            written.wait(0.2)  # without result if the writer waits for the reader
            second = snapshot.get(Counter, "b")
            assert first is not None
            assert second is not None
            return first.total + second.total

        def write() -> int:
            looked.wait(5)
            self._move_one(storage)
            written.set()
            return 100

        outcomes = run_concurrently(lambda: storage.read(PARTITION, read_sum), write)
        require_no_errors(outcomes)
        assert outcomes == [100, 100]

    def test_find_and_get_of_one_read_agree(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", rank=1))
        written = threading.Event()
        looked = threading.Event()

        def read_both_ways(snapshot: Snapshot) -> list[int]:
            ranks = [note.rank for note in snapshot.find(Note, "by_rank", ("one",)).records]
            looked.set()
            written.wait(0.2)
            note = snapshot.get(Note, "n")
            assert note is not None
            again = snapshot.find(Note, "by_rank", ("one",)).records
            return [*ranks, note.rank, *(note.rank for note in again)]

        def write() -> list[int]:
            looked.wait(5)

            def work(tx: Transaction) -> None:
                tx.replace(evolve(lock_existing(tx, Note, "n"), rank=2))
                tx.insert(Note(id="m", rank=3))

            self.write(storage, work)
            written.set()
            return []

        outcomes = run_concurrently(lambda: storage.read(PARTITION, read_both_ways), write)
        require_no_errors(outcomes)
        assert outcomes[0] == [1, 1, 1]

    def test_readers_beside_a_writer_see_whole_transactions_in_order(self) -> None:
        storage = self.open_handle()
        self._insert_counters(storage)
        stop = threading.Event()

        def read() -> None:
            last = 0
            while not stop.is_set():
                first, second = storage.read(PARTITION, _read_totals)
                assert first + second == 100
                assert second >= last, "a later snapshot must not be older than an earlier one"
                last = second

        def write() -> None:
            try:
                for _ in range(40):
                    self._move_one(storage)
            finally:
                stop.set()

        require_no_errors(run_concurrently(read, read, write))

    def test_a_snapshot_has_every_answered_commit(self) -> None:
        self._require_fresh_reads(*[self.open_handle()] * 2)

    def test_a_snapshot_of_another_handle_has_every_answered_commit(self) -> None:
        self.require_capability("multi_process")
        self._require_fresh_reads(self.open_handle(), self.open_handle())

    def _require_fresh_reads(self, writer: Storage, reader: Storage) -> None:
        """Threads write and report; others read, and must find what was reported."""
        self._insert_counters(writer)
        committed = [0, 0]
        done = threading.Event()

        def write() -> None:
            try:
                for _ in range(40):
                    self._move_one(writer)
                    committed[0] += 1
                    assert reader.read(PARTITION, _read_totals)[1] == committed[0], (
                        "a snapshot must return the same answer twice"
                    )
            finally:
                done.set()

        def read() -> None:
            while not done.is_set():
                known = committed[0]
                _, second = reader.read(PARTITION, _read_totals)
                assert second >= known, "a snapshot must not be older than a committed write"

        require_no_errors(run_concurrently(write, read, read))
        assert fetch_existing(reader, Counter, "b").total == 40

    def test_a_snapshot_does_not_see_what_is_not_committed(self) -> None:
        storage = self.open_handle()
        self._insert_counters(storage)
        seen: list[tuple[int, int]] = []
        inside = threading.Event()
        looked = threading.Event()

        def write() -> None:
            def work(tx: Transaction) -> None:
                tx.replace(evolve(lock_existing(tx, Counter, "a"), total=-1))
                inside.set()
                looked.wait(0.1)  # without result if readers wait for writers
                raise ArithmeticError

            self.require_error(storage, ArithmeticError, work)

        def read() -> None:
            inside.wait(5)
            seen.append(storage.read(PARTITION, _read_totals))
            looked.set()

        require_no_errors(run_concurrently(write, read))
        assert seen == [(100, 0)]

    def test_a_read_may_hold_another(self) -> None:
        storage = self.open_handle()
        self._insert_counters(storage)

        def outer(snapshot: Snapshot) -> tuple[int, int]:
            return storage.read(PARTITION, _read_totals)

        assert storage.read(PARTITION, outer) == (100, 0)

    def test_an_error_in_a_read_comes_out_and_leaves_storage_usable(self) -> None:
        storage = self.open_handle()
        self._insert_counters(storage)
        refusal = ArithmeticError("no")

        def work(snapshot: Snapshot) -> None:
            snapshot.get(Counter, "a")
            raise refusal

        for _ in range(20):
            (outcome,) = run_concurrently(lambda: storage.read(PARTITION, work))
            assert outcome is refusal
        self._move_one(storage)
        assert storage.read(PARTITION, _read_totals) == (99, 1)

    def _insert_counters(self, storage: Storage) -> None:
        self.insert(storage, Counter(id="a", total=100), Counter(id="b", total=0))

    def _move_one(self, storage: Storage) -> None:
        def work(tx: Transaction) -> None:
            first, second = lock_existing(tx, Counter, "a"), lock_existing(tx, Counter, "b")
            tx.replace(evolve(first, total=first.total - 1))
            tx.replace(evolve(second, total=second.total + 1))

        self.write(storage, work)


def _read_totals(snapshot: Snapshot) -> tuple[int, int]:
    first, second = snapshot.get(Counter, "a"), snapshot.get(Counter, "b")
    assert first is not None
    assert second is not None
    return first.total, second.total
