"""Unique keys: the id, and those that a collection declares."""

from __future__ import annotations

from collections.abc import Callable

from payments_core.conformance.storage.harness import (
    Harness,
    Rendezvous,
    fetch,
    fetch_all_pages,
    fetch_existing,
    find_errors,
    lock_existing,
    require_no_errors,
    run_concurrently,
)
from payments_core.conformance.storage.records import Note
from payments_core.evolve import evolve
from payments_core.storage.port import Storage, Transaction, UniqueConflict

NoteFactory = Callable[[int], Note]


class UniquenessChecks(Harness):
    """The keys that two records of a partition must not share."""

    def test_an_id_is_taken_once(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", text="first"))
        error = self.require_error(storage, UniqueConflict, lambda tx: tx.insert(Note(id="n")))
        assert (error.collection, error.unique) == ("suite_notes", "id")
        assert fetch_existing(storage, Note, "n").text == "first"

    def test_a_unique_key_is_taken_once(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="a", code="c", left="l", right="r"))
        error = self.require_error(
            storage, UniqueConflict, lambda tx: tx.insert(Note(id="b", code="c"))
        )
        assert (error.collection, error.unique) == ("suite_notes", "code")
        error = self.require_error(
            storage, UniqueConflict, lambda tx: tx.insert(Note(id="b", left="l", right="r"))
        )
        assert error.unique == "pair"
        self.insert(storage, Note(id="b", left="l", right="other"))

    def test_a_unique_key_holds_within_one_work(self) -> None:
        storage = self.open_handle()

        def work(tx: Transaction) -> None:
            tx.insert(Note(id="a", code="c"))
            tx.insert(Note(id="b", code="c"))

        self.require_error(storage, UniqueConflict, work)
        assert fetch(storage, Note, "a") is None

    def test_an_id_is_taken_once_by_concurrent_inserts(self) -> None:
        storage = self.open_handle()
        self._race_inserts(storage, lambda thread: Note(id="n", text=str(thread)), "id")

    def test_a_unique_key_is_taken_once_by_concurrent_inserts(self) -> None:
        storage = self.open_handle()
        self._race_inserts(storage, lambda thread: Note(id=f"n{thread}", code="c"), "code")

    def test_a_unique_key_is_taken_once_by_two_handles(self) -> None:
        self.require_capability("multi_process")
        first, second = self.open_handle(), self.open_handle()
        meeting = Rendezvous()

        def call(storage: Storage, id: str) -> None:
            def work(tx: Transaction) -> None:
                meeting.wait()
                tx.insert(Note(id=id, code="c"))

            self.write(storage, work)

        outcomes = run_concurrently(lambda: call(first, "a"), lambda: call(second, "b"))
        assert [type(error) for error in find_errors(outcomes)] == [UniqueConflict]

    def _race_inserts(self, storage: Storage, note: NoteFactory, unique: str) -> None:
        meeting = Rendezvous(threads=6)

        def call(thread: int) -> None:
            def work(tx: Transaction) -> None:
                meeting.wait()
                tx.insert(note(thread))
                meeting.wait()

            self.write(storage, work)

        outcomes = run_concurrently(*(lambda t=t: call(t) for t in range(6)))
        errors = find_errors(outcomes)
        assert len(fetch_all_pages(storage, Note, "all")) == 1, (
            "a unique key must not be given twice"
        )
        assert len(errors) == 5, outcomes
        for error in errors:
            assert isinstance(error, UniqueConflict), outcomes
            assert error.unique == unique

    def test_a_null_excuses_from_a_unique_key(self) -> None:
        storage = self.open_handle()
        self.insert(
            storage,
            Note(id="a"),
            Note(id="b"),
            Note(id="c", left="l"),
            Note(id="d", left="l"),
            Note(id="e", right="r"),
            Note(id="f", right="r"),
        )
        assert len(fetch_all_pages(storage, Note, "all")) == 6

    def test_a_unique_key_is_enforced_on_replace(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="a", code="c"), Note(id="b", code="d"))
        error = self.require_error(
            storage,
            UniqueConflict,
            lambda tx: tx.replace(evolve(lock_existing(tx, Note, "b"), code="c")),
        )
        assert error.unique == "code"
        assert fetch_existing(storage, Note, "b").code == "d"

    def test_a_record_may_keep_its_own_unique_key(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="a", code="c"))
        self.write(storage, lambda tx: tx.replace(evolve(lock_existing(tx, Note, "a"), text="x")))
        assert fetch_existing(storage, Note, "a").text == "x"

    def test_replace_and_delete_release_a_unique_key(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="a", code="c"), Note(id="b", code="d"))
        self.write(storage, lambda tx: tx.replace(evolve(lock_existing(tx, Note, "a"), code="e")))
        self.insert(storage, Note(id="new a", code="c"))
        self.write(storage, lambda tx: tx.delete(lock_existing(tx, Note, "b")))
        self.insert(storage, Note(id="new b", code="d"), Note(id="b", code="f"))
        for code in ("c", "d", "e", "f"):
            self._require_conflict(storage, Note(id="x", code=code))

    def test_a_unique_key_moves_within_one_work(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="a", code="c"), Note(id="b", code="d"))

        def work(tx: Transaction) -> None:
            tx.insert(Note(id="e", code="spare"))
            tx.replace(evolve(lock_existing(tx, Note, "a"), code=None))
            tx.replace(evolve(lock_existing(tx, Note, "e"), code="c"))
            tx.delete(lock_existing(tx, Note, "b"))
            tx.insert(Note(id="b", code="spare"))

        self.write(storage, work)
        codes = {note.id: note.code for note in fetch_all_pages(storage, Note, "all")}
        assert codes == {"a": None, "b": "spare", "e": "c"}
        for code in ("c", "spare"):
            self._require_conflict(storage, Note(id="x", code=code))
        self.insert(storage, Note(id="x", code="d"))

    def test_a_key_undone_with_its_work_is_free(self) -> None:
        storage = self.open_handle()

        def work(tx: Transaction) -> None:
            tx.insert(Note(id="a", code="c"))
            raise ArithmeticError

        self.require_error(storage, ArithmeticError, work)
        self.insert(storage, Note(id="b", code="c"))

    def test_keys_change_hands_under_threads(self) -> None:
        """One key, taken and released by many: never held twice."""
        storage = self.open_handle()

        def call(thread: int) -> int:
            taken = 0
            for number in range(10):
                id = f"n{thread}_{number}"
                try:
                    self.insert(storage, Note(id=id, code="the key"))
                except UniqueConflict:
                    continue
                taken += 1
                holders = storage.read("env_here", lambda s: s.find(Note, "all")).records
                assert [note.id for note in holders] == [id]
                self._delete(storage, id)
            return taken

        outcomes = run_concurrently(*(lambda t=t: call(t) for t in range(4)))
        require_no_errors(outcomes)
        assert any(outcomes)

    def _require_conflict(self, storage: Storage, note: Note) -> None:
        self.require_error(storage, UniqueConflict, lambda tx: tx.insert(note))

    def _delete(self, storage: Storage, id: str) -> None:
        self.write(storage, lambda tx: tx.delete(lock_existing(tx, Note, id)))
