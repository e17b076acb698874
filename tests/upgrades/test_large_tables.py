"""A migration of a table with many rows in PostgreSQL, while requests read and write that table.

PAYMENTS_TEST_UPGRADE_ROWS=200000 makes it a large one; the log then says what was measured.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import ClassVar

import attrs
import psycopg
import pytest

from payments_core.storage.capabilities import FinishesMigrations
from payments_core.storage.port import Storage, Transaction
from payments_core.storage.postgres.adapter import open_url
from payments_core.storage.records import Collection, Index, Lookup, Record
from tests.servers import drop_schema, fresh_schema, postgres_or_skip

HERE = "env_a"
LOCK_TIMEOUT_S = 2.0
CLIENTS = 3
ROWS = 5_000
ROWS_VARIABLE = "PAYMENTS_TEST_UPGRADE_ROWS"
_log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class Before(Record):
    """A row of the old release."""

    collection: ClassVar[Collection] = Collection(
        "sacks", columns={"owner": str}, indexes=(Index("by_owner", ("owner",)),)
    )

    owner: str
    weight: int = 0
    text: str = ""


@attrs.frozen(kw_only=True)
class After(Record):
    """The same with a column to fill, an index over it, and a lookup."""

    collection: ClassVar[Collection] = Collection(
        "sacks",
        columns={"owner": str, "weight": int},
        indexes=(Index("by_owner", ("owner",)), Index("by_weight", ("owner",), ("weight",))),
        lookups=(Lookup("weighing", ("weight",)),),
    )

    owner: str
    weight: int = 0
    text: str = ""


@pytest.fixture
def url() -> Iterator[str]:
    made = fresh_schema(postgres_or_skip())
    yield made
    drop_schema(made)


@pytest.mark.postgres
@pytest.mark.timeout(600)
def test_requests_wait_for_no_migration_longer_than_for_a_lock(url: str) -> None:
    rows = int(os.environ.get(ROWS_VARIABLE, ROWS))
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(contextlib.closing(open_url(url, [Before])))
        new = stack.enter_context(contextlib.closing(open_url(url, [After])))
        old.migrate()
        _fill(url, rows)
        with _clients(old, Before) as took:
            _until(lambda: len(took) > 20)
            began = time.monotonic()
            new.migrate()
            _report("migrate", rows, time.monotonic() - began, took)
        with _clients(new, After) as took_later:
            _until(lambda: len(took_later) > 20)
            began = time.monotonic()
            assert isinstance(new, FinishesMigrations)
            new.finish_migration()
            _report("finish", rows, time.monotonic() - began, took_later)
        assert max(took + took_later) < LOCK_TIMEOUT_S
        found = new.locate(After, "weighing", [(7,)], limit=100_000)
        assert len(found) == rows // 100
        _require_written_meanwhile_is_found(new)


def _report(what: str, rows: int, seconds: float, took: list[float]) -> None:
    shares = [1_000 * sorted(took)[int((len(took) - 1) * share)] for share in (0.5, 0.99, 1)]
    _log.info(
        "%s of %d rows: %.1f s; of %d requests p50 %.1f ms, p99 %.1f ms, longest %.1f ms",
        what, rows, seconds, len(took), *shares,
    )  # fmt: skip


def _require_written_meanwhile_is_found(new: Storage) -> None:
    page = new.read(
        HERE, lambda snapshot: snapshot.find(After, "by_weight", ("client",), limit=1_000)
    )
    weights = [record.weight for record in page.records]
    assert weights
    assert weights == sorted(weights)
    assert all(record.weight == 1_000 + record.version for record in page.records)


def _fill(url: str, rows: int) -> None:
    """Rows as the old release writes them, a hundred of each weight from 0 to 99."""
    with psycopg.connect(url) as server:
        server.execute(
            """
            INSERT INTO sacks (partition, id, version, owner, body)
            SELECT 'env_a', 'row_' || n, 1, 'owner_' || n %% 1000, jsonb_build_object(
                'id', 'row_' || n, 'version', 1, 'schema', 1, 'owner', 'owner_' || n %% 1000,
                'weight', n %% 100, 'text', repeat('x', 700))::text
            FROM generate_series(0, %s - 1) AS n
            """,
            (rows,),
        )
        server.execute("ANALYZE sacks")


@contextlib.contextmanager
def _clients(storage: Storage, kind: type[Before] | type[After]) -> Iterator[list[float]]:
    """Threads of a release that insert, rewrite and read; how long each request took."""
    took: list[float] = []
    failures: list[BaseException] = []
    stopping = threading.Event()

    def run(client: int) -> None:
        for number in itertools.count():
            if stopping.is_set():
                return
            began = time.monotonic()
            try:
                _request(storage, kind, f"{kind.__name__}_{client}_{number // 3}", number % 3)
            except Exception as error:
                failures.append(error)
                return
            took.append(time.monotonic() - began)
            stopping.wait(0.002)

    threads = [threading.Thread(target=run, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield took
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


def _request(storage: Storage, kind: type[Before] | type[After], id: str, step: int) -> None:
    def insert(tx: Transaction) -> None:
        tx.insert(kind(id=id, owner="client", weight=1_001))

    def rewrite(tx: Transaction) -> None:
        known = tx.get(kind, id, for_update=True)
        assert known is not None
        tx.replace(attrs.evolve(known, weight=known.weight + 1))

    if step == 0:
        storage.transact(HERE, insert)
    elif step == 1:
        storage.transact(HERE, rewrite)
    else:
        storage.read(HERE, lambda snapshot: snapshot.find(kind, "by_owner", ("owner_7",)))


def _until(true: Callable[[], bool], patience_s: float = 60.0) -> None:
    deadline = time.monotonic() + patience_s
    pause = threading.Event()
    while not true():
        assert time.monotonic() < deadline
        pause.wait(0.01)
