"""Copying a whole storage: everything, exactly, once, and into nothing else."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given, settings, strategies

from payments_core.maintenance.storage_copy import (
    CopyDiffers,
    CopyWrittenTo,
    Difference,
    TargetInUse,
    copy,
    reinstate,
    verify,
)
from payments_core.payments.record import Payment
from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.maintenance import (
    NoMaintenanceAccess,
    require_maintenance_access,
    scan_all,
    to_record_row,
)
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage, StorageError, StorageUnavailable, Transaction
from payments_core.storage.records import Collection, Record
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.tenants.record import KeyUse
from tests.maintenance.shop import Shop, all_rows

NOTE = "the records are in PostgreSQL now"
PAYMENTS = 6


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with Payments in it, made once; tests take copies of it."""
    path = tmp_path_factory.mktemp("filled") / "data.db"
    storage = SqliteStorage(path, RECORD_TYPES)
    storage.migrate()
    Shop(storage).stock(PAYMENTS)
    storage.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


@pytest.fixture
def path(filled: Path, tmp_path: Path) -> Path:
    path = tmp_path / "source.db"
    path.write_bytes(filled.read_bytes())
    return path


@pytest.fixture
def source(path: Path) -> Iterator[SqliteStorage]:
    storage = SqliteStorage(path, RECORD_TYPES, busy_timeout_s=0.2)
    storage.migrate()
    yield storage
    storage.close()


@pytest.fixture
def target() -> Storage:
    """For what no storage can bend."""
    return MemoryStorage()


def tamper(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(sql).rowcount == 1
        connection.commit()


def test_a_copy_is_the_same_row_for_row_on_every_storage(
    source: SqliteStorage, storage: Storage
) -> None:
    reported: list[tuple[str, str, int]] = []
    copied = copy(source, storage, RECORD_TYPES, progress=lambda *step: reported.append(step))
    rows = all_rows(source, RECORD_TYPES)
    assert all_rows(storage, RECORD_TYPES) == rows
    assert sum(copied.rows.values()) == len(rows)
    assert copied.rows["payments"] == PAYMENTS
    assert ("copy", "payments", PAYMENTS) in reported
    assert copied.differences.count == 0
    for one in copied.differences.collections:
        assert (one.source_rows, one.source_digest) == (one.target_rows, one.target_digest)
    assert verify(source, storage, RECORD_TYPES) == copied.differences
    assert verify(storage, source, RECORD_TYPES).count == 0


def test_a_service_goes_on_where_the_other_left_off(
    source: SqliteStorage, storage: Storage
) -> None:
    (unpaid,) = [
        one for one in scan_all(source, Payment) if one.record.status == "awaiting_payment"
    ]
    copy(source, storage, RECORD_TYPES)
    shop = Shop(storage)
    shop.environment_id = unpaid.partition
    shop.clock.refresh()
    shop.advance(3_700)  # its job is one of the rows
    assert shop.paid(unpaid.record.id).status == "expired"


def test_what_a_newer_release_wrote_is_kept(source: SqliteStorage, storage: Storage) -> None:
    use = attrs.evolve(
        documents.stamp(KeyUse(id="later", last_used_at_ms=1), 7), schema=5, unknown={"place": "Ö"}
    )
    with source.lock_exclusively() as alone:
        alone.load(KeyUse, [to_record_row("env_x", use)])
    copy(source, storage, RECORD_TYPES)
    assert storage.read("env_x", lambda snapshot: snapshot.get(KeyUse, "later")) == use


def test_a_target_with_records_of_its_own_is_left_as_it_is(
    source: SqliteStorage, target: Storage
) -> None:
    target.transact("env_a", lambda tx: tx.insert(KeyUse(id="k", last_used_at_ms=1)))
    before = all_rows(target, RECORD_TYPES)
    with pytest.raises(TargetInUse, match="key_uses has 1"):
        copy(source, target, RECORD_TYPES, retire=NOTE)
    assert all_rows(target, RECORD_TYPES) == before
    source.transact("env_a", lambda tx: tx.insert(KeyUse(id="k", last_used_at_ms=1)))


def test_copying_again_changes_nothing_and_retires_what_was_not_yet(
    source: SqliteStorage, target: Storage
) -> None:
    assert copy(source, target, RECORD_TYPES).source_retired is False
    again = copy(source, target, RECORD_TYPES, retire=NOTE)
    assert (again.rows, again.source_retired) == ({}, True)
    assert copy(source, target, RECORD_TYPES, retire=NOTE).source_retired is True


def test_a_source_that_was_written_to_since_is_distinguished_from_its_copy(
    source: SqliteStorage, target: Storage
) -> None:
    copy(source, target, RECORD_TYPES)
    source.transact("env_a", lambda tx: tx.insert(KeyUse(id="late", last_used_at_ms=1)))
    with pytest.raises(TargetInUse) as refused:
        copy(source, target, RECORD_TYPES, retire=NOTE)
    assert refused.value.differences.examples == (
        Difference("key_uses", "env_a", "late", "the target does not have the record"),
    )


def test_a_retired_source_refuses_writes_until_it_is_reinstated(
    source: SqliteStorage, target: Storage
) -> None:
    copy(source, target, RECORD_TYPES, retire=NOTE)
    with pytest.raises(StorageError, match=NOTE):
        source.transact("env_a", lambda tx: tx.insert(KeyUse(id="lost", last_used_at_ms=1)))
    with pytest.raises(StorageError, match=NOTE):
        source.migrate()
    assert reinstate(source, target, RECORD_TYPES) is True
    assert reinstate(source, target, RECORD_TYPES) is False
    source.migrate()
    source.transact("env_a", lambda tx: tx.insert(KeyUse(id="kept", last_used_at_ms=1)))


@pytest.mark.parametrize("change", ["insert", "replace", "delete"])
def test_a_source_whose_copy_was_written_to_stays_retired(
    source: SqliteStorage, target: Storage, change: str
) -> None:
    source.transact("env_a", lambda tx: tx.insert(KeyUse(id="k", last_used_at_ms=1)))
    copy(source, target, RECORD_TYPES, retire=NOTE)

    def work(tx: Transaction) -> None:
        known = tx.get(KeyUse, "k", for_update=True)
        assert known is not None
        if change == "insert":
            tx.insert(KeyUse(id="new", last_used_at_ms=1))
        elif change == "replace":
            tx.replace(known)
        else:
            tx.delete(known)

    target.transact("env_a", work)
    with pytest.raises(CopyWrittenTo, match="of env_a in key_uses") as refused:
        reinstate(source, target, RECORD_TYPES)
    assert refused.value.differences.count == 1
    with pytest.raises(StorageError, match=NOTE):
        source.migrate()
    assert reinstate(source, None, RECORD_TYPES) is True  # the copy is given up
    source.migrate()


def test_nobody_writes_to_the_source_meanwhile(
    source: SqliteStorage, path: Path, target: Storage
) -> None:
    other = SqliteStorage(path, RECORD_TYPES, busy_timeout_s=0.1)
    steps: dict[str, None] = {}

    def write(step: str, collection: str, rows: int) -> None:
        if step not in steps and collection == "payments":
            steps[step] = None
            with pytest.raises(StorageUnavailable):
                other.transact("env_a", lambda tx: tx.insert(KeyUse(id="k", last_used_at_ms=1)))

    copied = copy(source, target, RECORD_TYPES, progress=write)
    assert "copy" in steps
    assert copied.differences.count == 0
    other.close()


DAMAGES = {
    "UPDATE payments SET version = version + 1 WHERE rowid = 1": (
        "the id or version of the row differs from its record"
    ),
    "UPDATE payments SET status = 'failed' WHERE rowid = 1": (
        "the source's columns are not those of the record"
    ),
}


@pytest.mark.parametrize("sql", DAMAGES)
def test_a_damaged_source_is_reported_and_its_copy_is_undone(
    source: SqliteStorage, path: Path, storage: Storage, sql: str
) -> None:
    tamper(path, sql)
    with pytest.raises(CopyDiffers, match=DAMAGES[sql]) as refused:
        copy(source, storage, RECORD_TYPES, retire=NOTE)
    assert refused.value.differences.count == 1
    assert all_rows(storage, RECORD_TYPES) == []
    source.transact("env_a", lambda tx: tx.insert(KeyUse(id="k", last_used_at_ms=1)))


BODIES = ("'{}'", "'{\"sesame'", "CAST(x'7bff' AS TEXT)", "''")


@pytest.mark.parametrize("body", BODIES)
def test_a_copy_ends_with_the_places_of_all_that_cannot_be_read(
    source: SqliteStorage, path: Path, storage: Storage, body: str
) -> None:
    rows = [row for name, row in all_rows(source, RECORD_TYPES) if name == "payments"][:2]
    for row in rows:
        tamper(path, f"UPDATE payments SET body = {body} WHERE id = '{row.id}'")
    with pytest.raises(CopyDiffers) as refused:
        copy(source, storage, RECORD_TYPES, retire=NOTE)
    assert refused.value.differences.count == 2
    for row in rows:
        place = f"{row.id} of {row.partition} in payments: the record cannot be read"
        assert place in str(refused.value)
    assert "sesame" not in str(refused.value)
    assert all_rows(storage, RECORD_TYPES) == []
    found = verify(source, storage, [Payment])
    assert {one.id for one in found.examples if one.what == "the record cannot be read"} == {
        row.id for row in rows
    }
    source.transact("env_a", lambda tx: tx.insert(KeyUse(id="k", last_used_at_ms=1)))


CHANGES = {
    "DELETE FROM payments WHERE rowid = 2": "the target does not have the record",
    "UPDATE payments SET version = version + 1 WHERE rowid = 2": "the versions differ",
    "UPDATE payments SET body = replace(body, 'order', 'orde') WHERE rowid = 2": (
        "the records differ"
    ),
    "UPDATE payments SET status = 'gone' WHERE rowid = 2": (
        "the target's columns are not those of the record"
    ),
    "INSERT INTO key_uses (partition, id, version, body) VALUES ('a', 'b', 1, '{}')": (
        "only the target has the record"
    ),
}


@pytest.mark.parametrize("sql", CHANGES)
def test_every_way_in_which_a_copy_can_be_wrong_is_seen(
    source: SqliteStorage, tmp_path: Path, sql: str
) -> None:
    place = tmp_path / "target.db"
    target = SqliteStorage(place, RECORD_TYPES)
    target.migrate()
    copy(source, target, RECORD_TYPES)
    tamper(place, sql)
    differences = verify(source, target, RECORD_TYPES)
    assert [one.what for one in differences.examples] == [CHANGES[sql]]
    assert differences.count == 1
    target.close()


def test_a_difference_names_the_row_and_nothing_that_it_holds(
    source: SqliteStorage, path: Path, target: Storage
) -> None:
    tamper(path, "UPDATE payments SET status = 'failed' WHERE rowid = 1")
    with pytest.raises(CopyDiffers) as refused:
        copy(source, target, RECORD_TYPES)
    (difference,) = refused.value.differences.examples
    with closing(sqlite3.connect(path)) as connection:
        id, body = connection.execute("SELECT id, body FROM payments WHERE rowid = 1").fetchone()
    assert difference.id == id
    assert json.loads(body)["escrow_address"] not in f"{refused.value} {difference}"


@attrs.frozen(kw_only=True)
class Box(Record):
    """A record as the release before wrote it."""

    collection: ClassVar[Collection] = Collection("boxes", columns={"state": str})

    state: str


@attrs.frozen(kw_only=True)
class BoxNow(Record):
    """The same as this release knows it: its states have other names."""

    collection: ClassVar[Collection] = Collection(
        "boxes",
        columns={"state": str},
        schema=2,
        upgrades={1: lambda document: {**document, "state": f"is {document['state']}"}},
    )

    state: str


def test_what_an_older_release_wrote_is_kept_and_found_as_this_one_finds_it(
    target: Storage,
) -> None:
    source = MemoryStorage()
    source.transact("env_a", lambda tx: tx.insert(Box(id="box", state="open")))
    assert copy(source, target, [BoxNow]).differences.count == 0
    with (
        require_maintenance_access(source).lock_exclusively() as old,
        require_maintenance_access(target).lock_exclusively() as new,
    ):
        (before,), (after,) = old.read_rows(BoxNow), new.read_rows(BoxNow)
    assert (before.columns, after.columns) == (("open",), ("is open",))
    assert before.body == after.body
    assert verify(source, target, [BoxNow]).count == 0


_JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers(-(2**53), 2**53)
    | strategies.text(),
    lambda inside: strategies.lists(inside) | strategies.dictionaries(strategies.text(), inside),
    max_leaves=5,
)  # fmt: skip


@given(
    uses=strategies.dictionaries(
        strategies.tuples(
            strategies.text(strategies.characters(codec="utf-8"), min_size=1, max_size=20).filter(
                lambda text: "\0" not in text
            ),
            strategies.text("abé☃\U0001f600", min_size=1, max_size=3),
        ),
        strategies.tuples(
            strategies.integers(1, 2**31),
            strategies.integers(0, 2**53),
            strategies.dictionaries(strategies.text("xyz", min_size=1), _JSON, max_size=3),
        ),
        max_size=8,
    )
)
@settings(max_examples=40, deadline=None)
def test_whatever_is_loaded_comes_out_as_it_was_and_copies_without_a_difference(
    uses: dict[tuple[str, str], tuple[int, int, dict[str, Any]]],
) -> None:
    rows = [
        to_record_row(
            partition,
            attrs.evolve(
                documents.stamp(KeyUse(id=id, last_used_at_ms=used_at), version),
                schema=1 + bool(more),
                unknown=more,
            ),
        )
        for (partition, id), (version, used_at, more) in uses.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        source, target = MemoryStorage(), SqliteStorage(Path(folder) / "data.db", [KeyUse])
        target.migrate()
        with source.lock_exclusively() as alone:
            alone.load(KeyUse, rows)
        copied = copy(source, target, [KeyUse])
        with target.lock_exclusively() as alone:
            found = alone.read_rows(KeyUse)
        target.close()
    assert copied.rows["key_uses"] == len(rows)
    assert found == sorted(rows, key=lambda row: row.primary_key)


def test_a_storage_that_cannot_be_seen_as_a_whole_is_refused(target: Storage) -> None:
    class Custom:
        pass

    with pytest.raises(NoMaintenanceAccess):
        copy(target, Custom(), RECORD_TYPES)  # type: ignore[arg-type]
    assert require_maintenance_access(target)
