"""All partitions at once, for tools that copy, reseal and purge (`storage/maintenance.py`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from payments_core.conformance.storage.harness import (
    HANG_TIMEOUT_S,
    OTHER_PARTITION,
    PARTITION,
    E,
    Harness,
    fetch,
)
from payments_core.conformance.storage.records import (
    Counter,
    Letter,
    Mark,
    NewerLetter,
    Note,
    TornNote,
)
from payments_core.evolve import evolve
from payments_core.storage import documents
from payments_core.storage.maintenance import (
    ExclusiveAccess,
    PrimaryKey,
    RecordRow,
    require_maintenance_access,
    scan_all,
    to_record_row,
)
from payments_core.storage.port import CommitUnknown, Storage, StorageUnavailable, UniqueConflict
from payments_core.storage.records import Record

PLACES: Sequence[PrimaryKey] = (
    ("env_a", "b"), ("env_b", "B"), ("env_b", "a"), ("env_b", "b"), ("env_ä", "a"),
)  # fmt: skip
BLOCKED_CHECK_S = 0.2


class MaintenanceChecks(Harness):
    """An adapter that offers `MaintenanceAccess` declares it by `maintenance_access = True`."""

    maintenance_access: bool = False
    """`scan_page`, `read_rows` and `lock_exclusively` are available."""

    def test_a_scan_visits_every_partition_in_order_a_batch_at_a_time(self) -> None:
        storage = self._open_for_maintenance()
        for partition, id in reversed(PLACES):
            self.insert(storage, Note(id=id, text=f"{id} of {partition}"), partition=partition)
        for batch in (1, 2, 100):
            found = list(scan_all(storage, Note, batch=batch))
            assert [(one.partition, one.record.id) for one in found] == list(PLACES), batch
            assert all(one.record.text.endswith(one.partition) for one in found)
            assert {one.record.version for one in found} == {1}
        assert list(scan_all(storage, Letter)) == []

    def test_rows_are_returned_as_stored(self) -> None:
        storage = self._open_for_maintenance()
        note = Note(id="n", rank=-3, name="é", size=2**53 - 1, left="l", text="naïve ☃")
        letter = NewerLetter(id="l", seal="unbroken", details={"deep": ["ü", None]})
        self.insert(storage, note, letter, partition=OTHER_PARTITION)
        self.insert(storage, Counter(id="c"))
        with require_maintenance_access(storage).lock_exclusively() as alone:
            (row,) = alone.read_rows(Note)
            assert row == to_record_row(OTHER_PARTITION, documents.stamp(note, 1))
            assert alone.read_rows(Note, after=row.primary_key) == []
            (row,) = alone.read_rows(Letter)
            assert row.read(NewerLetter) == documents.stamp(letter, 1)
            assert [row.id for row in alone.read_rows(Counter, limit=1)] == ["c"]

    def test_rows_of_every_partition_are_read_as_stored_damaged_ones_too(self) -> None:
        storage = self._open_for_maintenance()
        expected: list[RecordRow] = []
        for number, (partition, id) in enumerate(PLACES):
            kind = TornNote if number % 2 else Note
            self.insert(storage, kind(id=id, rank=number), partition=partition)
            expected.append(_new_row(kind(id=id, rank=number), partition))
        access = require_maintenance_access(storage)
        for batch in (1, 2, 100):
            found: list[RecordRow] = []
            while rows := access.read_rows(
                Note, after=found[-1].primary_key if found else None, limit=batch
            ):
                assert len(rows) <= batch
                found += rows
            assert found == expected, batch
        assert list(access.read_rows(Letter)) == []

    def test_what_is_loaded_is_as_it_was_and_can_be_found(self) -> None:
        """A row keeps its version and schema, and fields that this release does not know."""
        storage = self._open_for_maintenance()
        letter = documents.stamp(NewerLetter(id="l", seal="unbroken"), 41)
        note = documents.stamp(Note(id="n", name="sought", code="taken"), 7)
        self._load(
            storage, Letter, [evolve(to_record_row(OTHER_PARTITION, letter), columns=("in",))]
        )
        self._load(storage, Note, [to_record_row(OTHER_PARTITION, note)])
        assert fetch(storage, NewerLetter, "l", OTHER_PARTITION) == letter
        assert fetch(storage, Note, "n", OTHER_PARTITION) == note
        assert fetch(storage, Note, "n", PARTITION) is None
        located = storage.locate(Note, "named", [("sought",)])
        assert [(one.partition, one.record) for one in located] == [(OTHER_PARTITION, note)]
        code = Note(id="m", code="taken")
        self.require_error(storage, UniqueConflict, lambda tx: tx.insert(code), OTHER_PARTITION)
        changed = evolve(note, text="changed")
        self.write(storage, lambda tx: tx.replace(changed), OTHER_PARTITION)
        found = fetch(storage, Note, "n", OTHER_PARTITION)
        assert found is not None
        assert (found.version, found.text) == (8, "changed")

    def test_a_load_that_breaks_a_key_leaves_nothing(self) -> None:
        storage = self._open_for_maintenance()
        self.insert(storage, Note(id="there", code="c"))
        for note, unique in ((Note(id="there"), "id"), (Note(id="new", code="c"), "code")):
            error = _require_error(UniqueConflict, partial(self._load_two, storage, _new_row(note)))
            assert (error.collection, error.unique) == ("suite_notes", unique)
            assert fetch(storage, Counter, "fresh") is None
            assert [one.record.id for one in scan_all(storage, Note)] == ["there"]
        self._load_two(
            storage, _new_row(Note(id="there"), OTHER_PARTITION)
        )  # keys are unique per partition

    def test_a_swallowed_refusal_of_a_load_comes_out_at_the_end(self) -> None:
        storage = self._open_for_maintenance()
        self.insert(storage, Note(id="there", text="first"))

        def load() -> None:
            with require_maintenance_access(storage).lock_exclusively() as alone:
                alone.load(Counter, [_new_row(Counter(id="fresh"))])
                with suppress(UniqueConflict):
                    alone.load(Note, [_new_row(Note(id="there", text="second"))])

        _require_error(UniqueConflict, load)
        assert fetch(storage, Counter, "fresh") is None
        assert [one.record.text for one in scan_all(storage, Note)] == ["first"]

    def test_an_error_undoes_what_was_loaded_and_access_can_be_taken_again(self) -> None:
        storage = self._open_for_maintenance()
        row = _new_row(Note(id="n", code="c"))

        def load() -> None:
            with require_maintenance_access(storage).lock_exclusively() as alone:
                alone.load(Note, [row])
                raise _WorkError

        _require_error(_WorkError, load)
        assert list(scan_all(storage, Note)) == []
        self._load(storage, Note, [row])
        assert [one.record.id for one in scan_all(storage, Note)] == ["n"]

    def test_nobody_else_writes_during_exclusive_access(self) -> None:
        """Other writers wait, or get StorageUnavailable; none of their rows is in between."""
        storage = self._open_for_maintenance()
        outcome: list[Exception | None] = []

        def insert() -> None:
            try:
                storage.transact(PARTITION, lambda tx: tx.insert(Mark(id="mine")))
            except (StorageUnavailable, CommitUnknown) as error:
                outcome.append(error)
            else:
                outcome.append(None)

        other = threading.Thread(target=insert, daemon=True)
        with require_maintenance_access(storage).lock_exclusively() as alone:
            alone.load(Note, [_new_row(Note(id="n"))])
            other.start()
            other.join(BLOCKED_CHECK_S)
            assert outcome != [None], "another writer committed during the exclusive lock"
            assert list(alone.read_rows(Mark)) == [], "another writer's record must not be visible"
        other.join(HANG_TIMEOUT_S)
        assert outcome, "another writer must not wait without a limit"
        if outcome == [None]:
            assert fetch(storage, Mark, "mine") is not None

    def test_a_scan_skips_what_cannot_be_read(self) -> None:
        self.require_capability("persistent")  # a storage in memory is not damaged
        storage = self._open_for_maintenance()
        self.insert(storage, Counter(id="b"), Counter(id="f"))
        another = documents.encode(documents.stamp(Counter(id="a"), 1)).decode()
        damaged = {
            "a": '{"half', "c": '{"id": "c", "total": "?"}', "d": "{}", "e": "", "g": another,
            "h": "?",
        }  # fmt: skip
        rows = [RecordRow(PARTITION, id, 1, (), body) for id, body in damaged.items()]
        self._load(storage, Counter, rows)
        for batch in (1, 2, 3, 100):
            found = [one.record.id for one in scan_all(storage, Counter, batch=batch)]
            assert found == ["b", "f"], f"{found} in batches of {batch}"

    def test_a_closed_storage_refuses_maintenance_access(self) -> None:
        storage = self._open_for_maintenance()
        storage.close()
        _require_error(StorageUnavailable, lambda: self._load(storage, Note, []))
        _require_error(StorageUnavailable, lambda: list(scan_all(storage, Note)))

    def _open_for_maintenance(self) -> Storage:
        self.require_capability("maintenance_access")
        return self.open_handle()

    def _load(self, storage: Storage, kind: type[Record], rows: Sequence[RecordRow]) -> None:
        with require_maintenance_access(storage).lock_exclusively() as alone:
            alone.load(kind, rows)

    def _load_two(self, storage: Storage, note: RecordRow) -> None:
        """Another row first, which must be kept or undone with this one."""
        with require_maintenance_access(storage).lock_exclusively() as alone:
            _load_fresh(alone)
            alone.load(Note, [note])


class _WorkError(Exception):
    """An error of the work, which no adapter knows."""


def _load_fresh(alone: ExclusiveAccess) -> None:
    alone.load(Counter, [_new_row(Counter(id="fresh"))])


def _new_row(record: Record, partition: str = PARTITION) -> RecordRow:
    return to_record_row(partition, documents.stamp(record, 1))


def _require_error(kind: type[E], call: Callable[[], object]) -> E:
    """The error with which the call must end."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")
