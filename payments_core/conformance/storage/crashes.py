"""Crash and reopen, several processes at once, and migrations."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen

from payments_core.conformance.storage.harness import (
    HANG_TIMEOUT_S,
    PARTITION,
    Harness,
    fetch,
    fetch_all_pages,
    fetch_existing,
    require_no_errors,
    run_concurrently,
)
from payments_core.conformance.storage.records import (
    RECORD_TYPES_AFTER_MIGRATION,
    RECORD_TYPES_BEFORE_MIGRATION,
    Counter,
    IndexedParcel,
    Mark,
    Note,
    Parcel,
)
from payments_core.storage.port import Storage, StorageError, Transaction, UniqueConflict

ACKNOWLEDGED = 60
THREADS = 3


class CrashChecks(Harness):
    """The data after an unannounced end."""

    def test_what_was_committed_is_there_after_closing(self) -> None:
        self.require_capability("persistent")
        storage = self.open_handle()
        self.insert(storage, Note(id="n", code="c"))
        storage.close()
        storage = self.open_handle()
        assert fetch_existing(storage, Note, "n").code == "c"
        self.require_error(storage, UniqueConflict, lambda tx: tx.insert(Note(id="m", code="c")))

    def test_what_was_not_committed_is_gone_after_a_crash(self) -> None:
        self.require_capability("persistent")
        storage = self.open_handle()
        self.insert(storage, Note(id="n"))
        with _kill_on_exit(self.run_child("die_inside")) as child:
            code = child.wait(HANG_TIMEOUT_S)
        assert code == -signal.SIGKILL, "the other process failed before it could be killed"
        for handle in (storage, self.open_handle()):
            assert fetch(handle, Mark, "uncommitted") is None
            assert fetch(handle, Note, "uncommitted") is None
            assert fetch(handle, Note, "n") is not None
        self.insert(storage, Note(id="m", code="the code"))

    def test_a_killed_process_loses_nothing_that_was_answered(self) -> None:
        """kill -9 amid transactions: answered transactions are stored, and each is complete."""
        self.require_capability("persistent")
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        with _kill_on_exit(self.run_child("stream", str(THREADS))) as child:
            assert child.stdout is not None
            answered = [child.stdout.readline() for _ in range(ACKNOWLEDGED)]
            child.kill()
            answered += child.stdout.readlines()
            child.wait(HANG_TIMEOUT_S)
        assert all(answered), "the other process ended by itself; its error is above"
        for handle in (storage, self.open_handle()):
            self._require_consistent(handle, {line.strip() for line in answered})
        self.insert(storage, Mark(id="a write after the crash must succeed"))

    def _require_consistent(self, storage: Storage, answered: set[str]) -> None:
        notes = {note.id for note in fetch_all_pages(storage, Note, "all")}
        assert answered <= notes, "a committed transaction must survive the crash"
        assert len(notes) - len(answered) <= THREADS
        assert fetch_existing(storage, Counter, "c").total == len(notes)
        for name in notes:
            assert fetch(storage, Mark, name) is not None
            number = int(name.rpartition(".")[2])
            after = f"{name.partition('.')[0]}.{number + 1}"
            assert (fetch(storage, Mark, after) is not None) == (after in notes)

    def test_two_processes_lose_no_update(self) -> None:
        self.require_capability("multi_process")
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        with (
            _kill_on_exit(self.run_child("add", "40")) as one,
            _kill_on_exit(self.run_child("add", "40")) as two,
        ):
            assert one.wait(HANG_TIMEOUT_S) == 0
            assert two.wait(HANG_TIMEOUT_S) == 0
        counter = fetch_existing(storage, Counter, "c")
        assert (counter.total, counter.version) == (80, 81)


class MigrationChecks(Harness):
    """`migrate` brings any schema up to date, also concurrently."""

    def test_migrating_again_changes_nothing(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", code="c"))
        storage.migrate()
        assert fetch_existing(storage, Note, "n").code == "c"

    def test_columns_indexes_and_unique_keys_can_come_later(self) -> None:
        self.require_capability("persistent")
        before = self._open_with_parcels()
        before.close()
        storage = self.open_handle(RECORD_TYPES_AFTER_MIGRATION)
        parcels = fetch_all_pages(storage, IndexedParcel, "by_state", ("packed",), limit=1)
        assert [parcel.weight for parcel in parcels] == [1, 2, 3]
        located = storage.locate(IndexedParcel, "weighing", [("packed", 2), ("sent", 1)])
        assert [item.record.label for item in located] == ["label 2"]
        taken = IndexedParcel(id="new", label="label 2")
        error = self.require_error(storage, UniqueConflict, lambda tx: tx.insert(taken))
        assert error.unique == "label"
        self.insert(storage, IndexedParcel(id="new", label="label 4", weight=4))

    def test_the_release_before_still_reads_after_a_migration(self) -> None:
        self.require_capability("multi_process")
        before = self._open_with_parcels()
        after = self.open_handle(RECORD_TYPES_AFTER_MIGRATION)
        assert fetch_existing(before, Parcel, "p1").weight == 1
        self.insert(before, Parcel(id="p9", weight=9))
        assert fetch_existing(after, IndexedParcel, "p9").weight == 9

    def test_a_unique_key_that_the_rows_already_break_is_refused_whole(self) -> None:
        self.require_capability("persistent")
        before = self.open_handle(RECORD_TYPES_BEFORE_MIGRATION)
        self.insert(before, Parcel(id="a", label="same"), Parcel(id="b", label="same"))
        after = self.open(RECORD_TYPES_AFTER_MIGRATION)
        try:
            after.migrate()
        except StorageError:
            assert fetch_existing(before, Parcel, "a").label == "same"
            self.insert(before, Parcel(id="c", label="same"))
            return
        finally:
            after.close()
        raise AssertionError("a duplicate of a unique key must be refused")

    def test_two_handles_migrate_at_once(self) -> None:
        self.require_capability("multi_process")
        handles = [self.open(RECORD_TYPES_AFTER_MIGRATION) for _ in range(4)]
        self._opened.extend(handles)
        require_no_errors(run_concurrently(*(handle.migrate for handle in handles)))
        self.insert(handles[0], IndexedParcel(id="p", label="l"))
        assert fetch_existing(handles[3], IndexedParcel, "p").label == "l"

    def test_processes_migrate_at_once(self) -> None:
        self.require_capability("multi_process")
        before = self._open_with_parcels()
        children = [self.run_child("migrate", f"child {number}") for number in range(3)]
        try:
            for child in children:
                assert child.stdout is not None
                assert child.stdout.readline() == "ready\n"
            for child in children:
                assert child.stdin is not None
                child.stdin.write("go\n")
                child.stdin.flush()
            assert [child.wait(HANG_TIMEOUT_S) for child in children] == [0, 0, 0]
        finally:
            for child in children:
                _kill(child)
        before.close()
        storage = self.open_handle(RECORD_TYPES_AFTER_MIGRATION)
        parcels = fetch_all_pages(storage, IndexedParcel, "by_state", ("packed",))
        assert [parcel.weight for parcel in parcels] == [0, 0, 0, 1, 2, 3]

    def _open_with_parcels(self) -> Storage:
        before = self.open_handle(RECORD_TYPES_BEFORE_MIGRATION)

        def work(tx: Transaction) -> None:
            for weight in (3, 1, 2):
                tx.insert(Parcel(id=f"p{weight}", weight=weight, label=f"label {weight}"))

        self.write(before, work, PARTITION)
        return before


@contextmanager
def _kill_on_exit(child: Popen[str]) -> Iterator[Popen[str]]:
    try:
        yield child
    finally:
        _kill(child)


def _kill(child: Popen[str]) -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
