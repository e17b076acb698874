"""Snapshots: whole, never older than an answered commit, and never going back."""

from __future__ import annotations

import threading

import attrs

from payments_core.conformance.storage.records import Counter, Note
from payments_core.conformance.storage.setting import (
    HERE,
    Setting,
    fetch_known,
    locked,
    require_no_errors,
    together,
)
from payments_core.storage.port import Snapshot, Storage, Transaction


class SnapshotChecks(Setting):
    """What `read` promises."""

    def test_a_reader_never_sees_half_a_transaction(self) -> None:
        """A writer moves 1 from one counter to the other between the reader's two looks."""
        storage = self.start()
        self._fill(storage)
        written = threading.Event()
        looked = threading.Event()

        def look(snapshot: Snapshot) -> int:
            first = snapshot.get(Counter, "a")
            looked.set()
            written.wait(0.2)  # in vain where the writer waits for the reader
            second = snapshot.get(Counter, "b")
            assert first is not None
            assert second is not None
            return first.total + second.total

        def write() -> int:
            looked.wait(5)
            self._move(storage)
            written.set()
            return 100

        outcomes = together(lambda: storage.read(HERE, look), write)
        require_no_errors(outcomes)
        assert outcomes == [100, 100]

    def test_find_and_get_of_one_read_agree(self) -> None:
        storage = self.start()
        self.insert(storage, Note(id="n", rank=1))
        written = threading.Event()
        looked = threading.Event()

        def look(snapshot: Snapshot) -> list[int]:
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
                tx.replace(attrs.evolve(locked(tx, Note, "n"), rank=2))
                tx.insert(Note(id="m", rank=3))

            self.write(storage, work)
            written.set()
            return []

        outcomes = together(lambda: storage.read(HERE, look), write)
        require_no_errors(outcomes)
        assert outcomes[0] == [1, 1, 1]

    def test_readers_beside_a_writer_see_whole_transactions_in_order(self) -> None:
        storage = self.start()
        self._fill(storage)
        stop = threading.Event()

        def read() -> None:
            last = 0
            while not stop.is_set():
                first, second = storage.read(HERE, _both)
                assert first + second == 100
                assert second >= last, "a later snapshot was older"
                last = second

        def write() -> None:
            try:
                for _ in range(40):
                    self._move(storage)
            finally:
                stop.set()

        require_no_errors(together(read, read, write))

    def test_a_snapshot_has_every_answered_commit(self) -> None:
        self._follow(*[self.start()] * 2)

    def test_a_snapshot_of_another_handle_has_every_answered_commit(self) -> None:
        self.require("multi_process")
        self._follow(self.start(), self.start())

    def _follow(self, writer: Storage, reader: Storage) -> None:
        """Threads write, and tell; others read, and must find what was told."""
        self._fill(writer)
        told = [0, 0]
        done = threading.Event()

        def write() -> None:
            try:
                for _ in range(40):
                    self._move(writer)
                    told[0] += 1
                    assert reader.read(HERE, _both)[1] == told[0], "an answer was not kept"
            finally:
                done.set()

        def read() -> None:
            while not done.is_set():
                known = told[0]
                _, second = reader.read(HERE, _both)
                assert second >= known, "a snapshot was older than an answered commit"

        require_no_errors(together(write, read, read))
        assert fetch_known(reader, Counter, "b").total == 40

    def test_a_snapshot_does_not_see_what_is_not_committed(self) -> None:
        storage = self.start()
        self._fill(storage)
        seen: list[tuple[int, int]] = []
        inside = threading.Event()
        looked = threading.Event()

        def write() -> None:
            def work(tx: Transaction) -> None:
                tx.replace(attrs.evolve(locked(tx, Counter, "a"), total=-1))
                inside.set()
                looked.wait(0.1)  # in vain where readers wait for writers
                raise ArithmeticError

            self.refused(storage, ArithmeticError, work)

        def read() -> None:
            inside.wait(5)
            seen.append(storage.read(HERE, _both))
            looked.set()

        require_no_errors(together(write, read))
        assert seen == [(100, 0)]

    def test_a_read_may_hold_another(self) -> None:
        storage = self.start()
        self._fill(storage)

        def outer(snapshot: Snapshot) -> tuple[int, int]:
            return storage.read(HERE, _both)

        assert storage.read(HERE, outer) == (100, 0)

    def test_an_error_in_a_read_comes_out_and_leaves_storage_usable(self) -> None:
        storage = self.start()
        self._fill(storage)
        refusal = ArithmeticError("no")

        def work(snapshot: Snapshot) -> None:
            snapshot.get(Counter, "a")
            raise refusal

        for _ in range(20):
            (outcome,) = together(lambda: storage.read(HERE, work))
            assert outcome is refusal
        self._move(storage)
        assert storage.read(HERE, _both) == (99, 1)

    def _fill(self, storage: Storage) -> None:
        self.insert(storage, Counter(id="a", total=100), Counter(id="b", total=0))

    def _move(self, storage: Storage) -> None:
        def work(tx: Transaction) -> None:
            first, second = locked(tx, Counter, "a"), locked(tx, Counter, "b")
            tx.replace(attrs.evolve(first, total=first.total - 1))
            tx.replace(attrs.evolve(second, total=second.total + 1))

        self.write(storage, work)


def _both(snapshot: Snapshot) -> tuple[int, int]:
    first, second = snapshot.get(Counter, "a"), snapshot.get(Counter, "b")
    assert first is not None
    assert second is not None
    return first.total, second.total
