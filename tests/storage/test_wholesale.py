"""All partitions at once, on every storage."""

from __future__ import annotations

import logging
from contextlib import suppress

import attrs
import pytest

from payments_core.jobs.record import Job
from payments_core.storage import documents
from payments_core.storage.memory import MemoryStorage
from payments_core.storage.port import (
    CommitUnknown,
    Located,
    StorageUnavailable,
    UniqueConflict,
)
from payments_core.storage.port import Storage as Port
from payments_core.storage.records import R, Record
from payments_core.storage.wholesale import NotWholesale, Row, every, row_of, wholesale
from payments_core.tenants.record import KeyUse, Operator, PartnerName

PLACES = [("directory", "b"), ("env_a", "a"), ("env_a", "b"), ("env_b", "a"), ("env_b", "ä")]


def insert(storage: Port, partition: str, record: Record) -> None:
    while storage.read(partition, lambda snapshot: snapshot.get(type(record), record.id)) is None:
        try:
            storage.transact(partition, lambda tx: tx.insert(record))
        except CommitUnknown:
            continue


def operator(id: str, environment_id: str = "env_a") -> Operator:
    return Operator(
        id=id, username=id, mode="sandbox", environment_id=environment_id, password_hash="x",
        password_set_at=5, created_at=5,
    )  # fmt: skip


def stored(storage: Port, kind: type[R]) -> list[Located[R]]:
    return list(every(storage, kind, batch=2))


def test_a_walk_comes_by_every_partition_in_order_and_a_batch_at_a_time(storage: Port) -> None:
    for partition, id in reversed(PLACES):
        insert(storage, partition, KeyUse(id=id, last_used_at=7))
    insert(storage, "env_a", PartnerName(id="a", app_id="app"))
    found = [(one.partition, one.record.id) for one in stored(storage, KeyUse)]
    assert found == PLACES
    assert [one.record.last_used_at for one in stored(storage, KeyUse)] == [7] * 5
    assert stored(storage, Operator) == []


def test_what_is_loaded_is_as_it_was_with_its_version_and_what_is_not_known(storage: Port) -> None:
    record = attrs.evolve(
        documents.stamp(operator("op"), 41), schema=9, unknown={"colour": {"deep": ["ü", 1]}}
    )
    with wholesale(storage).alone() as alone:
        alone.load(Operator, [row_of("directory", record)])
    found = storage.read("directory", lambda snapshot: snapshot.get(Operator, "op"))
    assert found is not None
    assert (found.version, found.schema, found._unknown) == (41, 9, record._unknown)
    assert found == record
    page = storage.read("directory", lambda snapshot: snapshot.find(Operator, "by_created"))
    assert page.records == (record,)


def test_rows_are_told_with_their_columns_and_bodies(storage: Port) -> None:
    job = Job(
        id="j", queue="sandbox.chain", lane="l", kind="k", due_at=2**53 - 1, subject="é", ordinal=3
    )
    insert(storage, "env_a", job)
    insert(storage, "env_a", operator("op"))
    with wholesale(storage).alone() as alone:
        (row,) = alone.rows(Job)
        assert alone.rows(Job, after=row.place) == []
        assert row == row_of("env_a", documents.stamp(job, 1))
        assert row.columns == ("sandbox.chain", "l", 2**53 - 1, 3, 0, 0)
        assert len(alone.rows(Operator)) == 1
        assert row.read(Job) == documents.stamp(job, 1)


def test_what_is_there_is_refused_and_nothing_of_the_whole_is_stored(storage: Port) -> None:
    insert(storage, "directory", operator("there", "env_x"))
    fresh = row_of("directory", documents.stamp(KeyUse(id="fresh", last_used_at=1), 3))

    def load(row: Row) -> None:
        with wholesale(storage).alone() as alone:
            alone.load(KeyUse, [fresh])
            alone.load(Operator, [row])

    for id, environment_id, unique in (("there", "env_y", "id"), ("new", "env_x", "environment")):
        row = row_of("directory", documents.stamp(operator(id, environment_id), 1))
        with pytest.raises(UniqueConflict) as refused:
            load(row)
        assert (refused.value.collection, refused.value.unique) == ("operators", unique)
        assert stored(storage, KeyUse) == []
        assert len(stored(storage, Operator)) == 1


def test_a_refusal_that_is_swallowed_comes_out_at_the_end(storage: Port) -> None:
    insert(storage, "directory", operator("there"))
    row = row_of("directory", documents.stamp(operator("there"), 1))

    def load() -> None:
        with wholesale(storage).alone() as alone, suppress(UniqueConflict):
            alone.load(Operator, [row])

    with pytest.raises(UniqueConflict):
        load()
    assert len(stored(storage, Operator)) == 1


def test_what_else_ended_a_load_comes_out_at_the_end_too(storage: Port) -> None:
    good = row_of("env_a", documents.stamp(KeyUse(id="good", last_used_at=1), 1))
    bad = attrs.evolve(good, id="bad", version=2**80)
    if isinstance(storage, MemoryStorage):  # which takes any number
        bad = attrs.evolve(good, id="bad", body="{")

    def load() -> None:
        with wholesale(storage).alone() as alone, suppress(Exception):
            alone.load(KeyUse, [good, bad])

    with pytest.raises(Exception) as failed:
        load()
    assert "last_used_at" not in str(failed.value)
    assert stored(storage, KeyUse) == []


def test_a_walk_passes_over_what_cannot_be_read_and_tells_each_once(
    storage: Port, caplog: pytest.LogCaptureFixture
) -> None:
    if isinstance(storage, MemoryStorage):
        pytest.skip("what is in memory is not damaged")
    for id in ("b", "f"):
        insert(storage, "env_a", KeyUse(id=id, last_used_at=1))
    damaged = {
        "a": '{"sesame', "c": '{"id": "c", "last_used_at": "sesame"}', "d": "{}", "e": "",
        "g": documents.encode(documents.stamp(KeyUse(id="a", last_used_at=1), 1)).decode(),
        "h": "sesame",
    }  # fmt: skip
    with wholesale(storage).alone() as alone:
        alone.load(KeyUse, [Row("env_a", id, 1, (), body) for id, body in damaged.items()])
    for batch in (1, 2, 3, 100):
        caplog.clear()
        with caplog.at_level(logging.CRITICAL):
            found = [one.record.id for one in every(storage, KeyUse, batch=batch)]
        assert found == ["b", "f"]
        assert [record.getMessage() for record in caplog.records] == [
            f"ALARM: {id} of env_a in key_uses cannot be read and is passed over" for id in damaged
        ]


def test_an_exception_undoes_what_was_loaded_and_comes_out(storage: Port) -> None:
    row = row_of("env_a", documents.stamp(KeyUse(id="k", last_used_at=1), 1))

    def load() -> None:
        with wholesale(storage).alone() as alone:
            alone.load(KeyUse, [row])
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        load()
    assert stored(storage, KeyUse) == []
    with wholesale(storage).alone() as alone:  # and it can be had alone again
        alone.load(KeyUse, [row])
    assert len(stored(storage, KeyUse)) == 1


def test_a_closed_storage_cannot_be_had(storage: Port) -> None:
    storage.close()
    with pytest.raises(StorageUnavailable), wholesale(storage).alone():
        pass
    with pytest.raises(StorageUnavailable):
        wholesale(storage).walk(KeyUse)


def test_an_adapter_without_it_says_so() -> None:
    class Custom:
        pass

    with pytest.raises(NotWholesale, match="a Custom cannot be seen as a whole"):
        wholesale(Custom())  # type: ignore[arg-type]
