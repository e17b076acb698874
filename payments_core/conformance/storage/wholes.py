"""All partitions at once: what tools that copy, seal anew and purge rely on (`wholesale.py`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import attrs

from payments_core.conformance.storage.records import Counter, Letter, Mark, NewerLetter, Note
from payments_core.conformance.storage.setting import HANG_S, HERE, THERE, E, Setting, fetch
from payments_core.storage import documents
from payments_core.storage.port import CommitUnknown, Storage, StorageUnavailable, UniqueConflict
from payments_core.storage.records import Record
from payments_core.storage.wholesale import Alone, Place, Row, every, row_of, wholesale

PLACES: Sequence[Place] = (
    ("env_a", "b"), ("env_b", "B"), ("env_b", "a"), ("env_b", "b"), ("env_ä", "a"),
)  # fmt: skip
PEEK_S = 0.2


class WholesaleChecks(Setting):
    """An adapter that offers `Wholesale` declares it by `wholesale = True`."""

    wholesale: bool = False
    """`walk` and `alone` are there."""

    def test_a_walk_comes_by_every_partition_in_order_a_batch_at_a_time(self) -> None:
        storage = self._whole()
        for partition, id in reversed(PLACES):
            self.insert(storage, Note(id=id, text=f"{id} of {partition}"), partition=partition)
        for batch in (1, 2, 100):
            found = list(every(storage, Note, batch=batch))
            assert [(one.partition, one.record.id) for one in found] == list(PLACES), batch
            assert all(one.record.text.endswith(one.partition) for one in found)
            assert {one.record.version for one in found} == {1}
        assert list(every(storage, Letter)) == []

    def test_rows_are_told_as_they_lie(self) -> None:
        storage = self._whole()
        note = Note(id="n", rank=-3, name="é", size=2**53 - 1, left="l", text="naïve ☃")
        letter = NewerLetter(id="l", seal="unbroken", details={"deep": ["ü", None]})
        self.insert(storage, note, letter, partition=THERE)
        self.insert(storage, Counter(id="c"))
        with wholesale(storage).alone() as alone:
            (row,) = alone.rows(Note)
            assert row == row_of(THERE, documents.stamp(note, 1))
            assert alone.rows(Note, after=row.place) == []
            (row,) = alone.rows(Letter)
            assert row.read(NewerLetter) == documents.stamp(letter, 1)
            assert [row.id for row in alone.rows(Counter, limit=1)] == ["c"]

    def test_what_is_loaded_is_as_it_was_and_can_be_found(self) -> None:
        """Its version and schema too, and what this release does not know."""
        storage = self._whole()
        letter = documents.stamp(NewerLetter(id="l", seal="unbroken"), 41)
        note = documents.stamp(Note(id="n", name="sought", code="taken"), 7)
        self._load(storage, Letter, [attrs.evolve(row_of(THERE, letter), columns=("in",))])
        self._load(storage, Note, [row_of(THERE, note)])
        assert fetch(storage, NewerLetter, "l", THERE) == letter
        assert fetch(storage, Note, "n", THERE) == note
        assert fetch(storage, Note, "n", HERE) is None
        located = storage.locate(Note, "named", [("sought",)])
        assert [(one.partition, one.record) for one in located] == [(THERE, note)]
        code = Note(id="m", code="taken")
        self.refused(storage, UniqueConflict, lambda tx: tx.insert(code), THERE)
        changed = attrs.evolve(note, text="changed")
        self.write(storage, lambda tx: tx.replace(changed), THERE)
        found = fetch(storage, Note, "n", THERE)
        assert found is not None
        assert (found.version, found.text) == (8, "changed")

    def test_a_load_that_breaks_a_key_leaves_nothing_of_the_whole(self) -> None:
        storage = self._whole()
        self.insert(storage, Note(id="there", code="c"))
        for note, unique in ((Note(id="there"), "id"), (Note(id="new", code="c"), "code")):
            error = _raised(UniqueConflict, partial(self._load_two, storage, _row(note)))
            assert (error.collection, error.unique) == ("suite_notes", unique)
            assert fetch(storage, Counter, "fresh") is None
            assert [one.record.id for one in every(storage, Note)] == ["there"]
        self._load_two(storage, _row(Note(id="there"), THERE))  # keys are of a partition

    def test_a_swallowed_refusal_of_a_load_comes_out_at_the_end(self) -> None:
        storage = self._whole()
        self.insert(storage, Note(id="there", text="first"))

        def load() -> None:
            with wholesale(storage).alone() as alone:
                alone.load(Counter, [_row(Counter(id="fresh"))])
                with suppress(UniqueConflict):
                    alone.load(Note, [_row(Note(id="there", text="second"))])

        _raised(UniqueConflict, load)
        assert fetch(storage, Counter, "fresh") is None
        assert [one.record.text for one in every(storage, Note)] == ["first"]

    def test_an_error_undoes_what_was_loaded_and_it_can_be_had_again(self) -> None:
        storage = self._whole()
        row = _row(Note(id="n", code="c"))

        def load() -> None:
            with wholesale(storage).alone() as alone:
                alone.load(Note, [row])
                raise _OwnError

        _raised(_OwnError, load)
        assert list(every(storage, Note)) == []
        self._load(storage, Note, [row])
        assert [one.record.id for one in every(storage, Note)] == ["n"]

    def test_nobody_else_writes_while_it_is_had_alone(self) -> None:
        """They wait, or are told StorageUnavailable; nothing of theirs lies in between."""
        storage = self._whole()
        outcome: list[Exception | None] = []

        def insert() -> None:
            try:
                storage.transact(HERE, lambda tx: tx.insert(Mark(id="mine")))
            except (StorageUnavailable, CommitUnknown) as error:
                outcome.append(error)
            else:
                outcome.append(None)

        other = threading.Thread(target=insert, daemon=True)
        with wholesale(storage).alone() as alone:
            alone.load(Note, [_row(Note(id="n"))])
            other.start()
            other.join(PEEK_S)
            assert outcome != [None], "another wrote, and was told that it had"
            assert list(alone.rows(Mark)) == [], "what another writes is there"
        other.join(HANG_S)
        assert outcome, "another waits for ever"
        if outcome == [None]:
            assert fetch(storage, Mark, "mine") is not None

    def test_a_walk_passes_over_what_cannot_be_read(self) -> None:
        self.require("persistent")  # what is in memory is not damaged
        storage = self._whole()
        self.insert(storage, Counter(id="b"), Counter(id="f"))
        another = documents.encode(documents.stamp(Counter(id="a"), 1)).decode()
        damaged = {
            "a": '{"half', "c": '{"id": "c", "total": "?"}', "d": "{}", "e": "", "g": another,
            "h": "?",
        }  # fmt: skip
        rows = [Row(HERE, id, 1, (), body) for id, body in damaged.items()]
        self._load(storage, Counter, rows)
        for batch in (1, 2, 3, 100):
            found = [one.record.id for one in every(storage, Counter, batch=batch)]
            assert found == ["b", "f"], f"{found} in batches of {batch}"

    def test_a_closed_storage_cannot_be_seen_as_a_whole(self) -> None:
        storage = self._whole()
        storage.close()
        _raised(StorageUnavailable, lambda: self._load(storage, Note, []))
        _raised(StorageUnavailable, lambda: list(every(storage, Note)))

    def _whole(self) -> Storage:
        self.require("wholesale")
        return self.start()

    def _load(self, storage: Storage, kind: type[Record], rows: Sequence[Row]) -> None:
        with wholesale(storage).alone() as alone:
            alone.load(kind, rows)

    def _load_two(self, storage: Storage, note: Row) -> None:
        """Another row first, which must share the fate of this one."""
        with wholesale(storage).alone() as alone:
            _load_fresh(alone)
            alone.load(Note, [note])


class _OwnError(Exception):
    """Of the work's own, which no adapter knows."""


def _load_fresh(alone: Alone) -> None:
    alone.load(Counter, [_row(Counter(id="fresh"))])


def _row(record: Record, partition: str = HERE) -> Row:
    return row_of(partition, documents.stamp(record, 1))


def _raised(kind: type[E], call: Callable[[], object]) -> E:
    """The error that the call must end with."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")
