"""Ctrl-C, and time limits that are raised from a signal, in the middle of a connection's use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from payments_core.conformance.storage.harness import PARTITION, fetch
from payments_core.conformance.storage.records import RECORD_TYPES, Mark
from payments_core.storage import documents
from payments_core.storage.maintenance import to_record_row
from payments_core.storage.postgres.adapter import PostgresStorage

pytestmark = pytest.mark.postgres


@pytest.fixture
def single(url: str, storage: PostgresStorage) -> Iterator[PostgresStorage]:
    """A storage with one connection, whose schema is there."""
    single = PostgresStorage(f"{url}&pool=1&pool_timeout_s=1", RECORD_TYPES)
    yield single
    single.close()


def insert(storage: PostgresStorage, id: str) -> None:
    storage.transact(PARTITION, lambda tx: tx.insert(Mark(id=id)))


def load_in_vain(storage: PostgresStorage) -> None:
    with storage.lock_exclusively() as access:
        access.load(Mark, [to_record_row(PARTITION, documents.stamp(Mark(id="phantom"), 1))])
        raise ValueError


def load_halfway(storage: PostgresStorage) -> None:
    def rows() -> Iterator[Any]:
        yield to_record_row(PARTITION, documents.stamp(Mark(id="phantom"), 1))
        raise KeyboardInterrupt

    with storage.lock_exclusively() as access, suppress(KeyboardInterrupt):
        access.load(Mark, rows())  # type: ignore[arg-type]


def test_one_amid_a_load_that_is_swallowed_stores_nothing(single: PostgresStorage) -> None:
    with pytest.raises(KeyboardInterrupt):
        load_halfway(single)
    assert fetch(single, Mark, "phantom") is None


def test_one_as_a_transaction_is_left_costs_no_connection(
    single: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(transaction: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "payments_core.storage.postgres.pending_transaction.PendingTransaction.close", interrupted
    )
    with pytest.raises(KeyboardInterrupt):
        fetch(single, Mark, "m")
    monkeypatch.undo()
    assert fetch(single, Mark, "m") is None


def test_one_amid_what_nobody_has_read_ends_the_connection(
    single: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(single, Mark, "m")  # its COMMIT is not waited for

    def interrupted(pipeline: Any) -> None:
        raise KeyboardInterrupt

    pipeline_class = "payments_core.storage.postgres.pipeline.PipelinedConnection"
    monkeypatch.setattr(f"{pipeline_class}._skip_result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        single.scan_page(Mark)
    monkeypatch.undo()
    assert fetch(single, Mark, "m") is None
    assert list(single.scan_page(Mark)) == []


def test_what_was_to_be_rolled_back_is_committed_by_nobody_else(
    single: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = psycopg.Connection.execute

    def interrupted(connection: Any, query: Any, *more: Any, **options: Any) -> Any:
        if query == "ROLLBACK":
            raise KeyboardInterrupt
        return execute(connection, query, *more, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_in_vain(single)
    monkeypatch.undo()
    insert(single, "real")
    assert fetch(single, Mark, "real") is not None
    assert fetch(single, Mark, "phantom") is None
