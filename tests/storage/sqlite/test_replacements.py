"""A replace on SQLite sets the columns that change, and corrects stale ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import attrs
import pytest

from payments_core.conformance.storage.harness import PARTITION, fetch_existing
from payments_core.conformance.storage.records import Letter, Note
from payments_core.storage.port import StorageError, Transaction, VersionConflict
from payments_core.storage.records import Record
from payments_core.storage.sqlite.adapter import SqliteStorage

NOTE = Note(id="n", group="g", rank=2, name="007", tag=None, size=2**62, code="ü", text="a")


def insert(storage: SqliteStorage, *records: Record) -> None:
    storage.transact(PARTITION, lambda tx: tx.write(records))


def run(storage: SqliteStorage, sql: str) -> None:
    """Run a statement as the previous release might, which does not know every column."""
    with storage._open_write_transaction() as connection:
        connection.execute(sql)
        connection.execute("COMMIT")


def columns(storage: SqliteStorage, table: str, *names: str) -> list[tuple[object, ...]]:
    chosen = ", ".join(f'"{name}"' for name in names)
    with storage._open_snapshot() as connection:
        return connection.execute(f'SELECT {chosen} FROM "{table}" ORDER BY id').fetchall()


def change_note(storage: SqliteStorage, **changes: object) -> list[str]:
    """Change the note as an operation does, and return the UPDATEs that this took."""
    writer: sqlite3.Connection | None = storage._writer
    assert writer is not None
    statements: list[str] = []

    def work(tx: Transaction) -> None:
        (note,) = tx.get_many(Note, ["n"], for_update=True).values()
        tx.write((), [attrs.evolve(note, **changes)])  # type: ignore[arg-type]

    writer.set_trace_callback(statements.append)
    storage.transact(PARTITION, work)
    writer.set_trace_callback(None)
    return [sql for sql in statements if sql.startswith("UPDATE")]


def sets(statement: str) -> str:
    return statement.partition(" SET ")[2].partition(" WHERE ")[0]


def test_a_column_that_does_not_change_is_not_set(storage: SqliteStorage) -> None:
    insert(storage, NOTE)
    (statement,) = change_note(storage, text="b", rank=3)
    assert sets(statement).startswith('"version" = 2, "rank" = 3, "body" = ')
    stored = fetch_existing(storage, Note, "n")
    assert (stored.rank, stored.text, stored.version) == (3, "b", 2)


def test_nulls_and_texts_like_numbers_compare_as_they_are(storage: SqliteStorage) -> None:
    insert(storage, NOTE)
    assert len(change_note(storage, text="b")) == 1
    assert len(change_note(storage, tag="3", size=None)) == 1
    assert len(change_note(storage, tag=None, name="7")) == 1
    assert columns(storage, "suite_notes", "name", "tag", "size", "code") == [
        ("7", None, None, "ü")
    ]


def test_a_stale_column_is_corrected_by_the_next_replace(storage: SqliteStorage) -> None:
    insert(storage, NOTE)
    run(storage, "UPDATE suite_notes SET name = 'old', tag = 'old'")
    assert len(change_note(storage, text="b")) == 2
    assert columns(storage, "suite_notes", "name", "tag", "version") == [("007", None, 2)]


def test_a_value_that_no_column_may_have_can_be_replaced(storage: SqliteStorage) -> None:
    insert(storage, NOTE)
    long = "n" * 600
    run(storage, f"UPDATE suite_notes SET body = json_set(body, '$.rank', 9, '$.name', '{long}')")
    change_note(storage, name="short")
    assert columns(storage, "suite_notes", "rank", "name") == [(9, "short")]


def test_a_column_that_is_missing_is_an_error(storage: SqliteStorage) -> None:
    insert(storage, attrs.evolve(NOTE, tag="tag"))
    run(storage, "ALTER TABLE suite_notes RENAME COLUMN tag TO gone")
    with pytest.raises(StorageError, match="no such column"):
        change_note(storage, text="b")


def change_letters(storage: SqliteStorage, ids: Sequence[str], **changes: object) -> None:
    def work(tx: Transaction) -> None:
        letters = tx.get_many(Letter, ids, for_update=True).values()
        tx.write((), [attrs.evolve(letter, **changes) for letter in letters])  # type: ignore[arg-type]

    storage.transact(PARTITION, work)


def test_of_many_the_stale_ones_are_corrected(storage: SqliteStorage) -> None:
    ids = ("a", "b", "c")
    insert(storage, *[Letter(id=id) for id in ids])
    run(storage, "UPDATE suite_letters SET folder = NULL WHERE id = 'b'")
    change_letters(storage, ids, text="t")
    assert columns(storage, "suite_letters", "folder", "version") == [("in", 2)] * 3
    change_letters(storage, ids[:2], folder=None)
    assert columns(storage, "suite_letters", "folder", "version") == [
        (None, 3), (None, 3), ("in", 2)
    ]  # fmt: skip


def test_of_many_one_of_another_version_is_a_conflict_and_nothing_is_written(
    storage: SqliteStorage,
) -> None:
    insert(storage, *[Letter(id=id) for id in "abc"])
    run(storage, "UPDATE suite_letters SET folder = 'old' WHERE id = 'b'")

    def work(tx: Transaction) -> None:
        letters = tx.get_many(Letter, ["a", "b", "c"], for_update=True)
        later = attrs.evolve(letters["c"], version=2)
        tx.write((), [letters["a"], letters["b"], later])

    with pytest.raises(VersionConflict):
        storage.transact(PARTITION, work)
    assert columns(storage, "suite_letters", "folder", "version") == [
        ("in", 1), ("old", 1), ("in", 1)
    ]  # fmt: skip


def test_a_record_may_be_replaced_twice_and_after_its_insert(storage: SqliteStorage) -> None:
    def work(tx: Transaction) -> None:
        tx.insert(NOTE)
        tx.replace(attrs.evolve(NOTE, version=1, rank=5))
        again = tx.get(Note, "n", for_update=True)
        assert again is not None
        tx.replace(attrs.evolve(again, name="last"))

    storage.transact(PARTITION, work)
    assert columns(storage, "suite_notes", "rank", "name", "version") == [(5, "last", 3)]
