"""The storage behind Debian's PgBouncer in transaction mode: docs/how-to/pgbouncer.md."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import psycopg
import pytest

from payments_core.conformance.storage import AdapterLocation, StorageConformance
from payments_core.conformance.storage.harness import (
    PARTITION,
    fetch,
    fetch_existing,
    lock_existing,
)
from payments_core.conformance.storage.records import (
    RECORD_TYPES,
    RECORD_TYPES_AFTER_MIGRATION,
    Counter,
    Mark,
)
from payments_core.storage.port import CommitUnknown, Storage, StorageError, StorageUnavailable
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.records import Record
from tests.servers import NoPostgres
from tests.servers.pgbouncer import (
    MigratedBesideStorage,
    NoPgBouncer,
    Pooler,
    direct_url,
    empty_database,
    fresh_database,
    shared_cluster,
)
from tests.storage.lossy import cut_next_postgres_commit

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def shared_pooler() -> Iterator[Pooler]:
    try:
        with Pooler(shared_cluster()) as made:
            yield made
    except (NoPgBouncer, NoPostgres) as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def shared_database(shared_pooler: Pooler) -> str:
    return fresh_database(shared_cluster())


@pytest.fixture
def database(shared_database: str) -> str:
    empty_database(shared_cluster(), shared_database)
    return shared_database


@pytest.fixture
def storage(shared_pooler: Pooler, database: str) -> Iterator[PostgresStorage]:
    made = MigratedBesideStorage(
        shared_pooler.url(database), direct_url(shared_cluster(), database), RECORD_TYPES
    )
    made.migrate()
    yield made
    made.close()


class TestPgBouncer(StorageConformance):
    persistent = True
    multi_process = True
    can_lose_commits = True
    maintenance_access = True

    @pytest.fixture(autouse=True)
    def _place(self, shared_pooler: Pooler, database: str) -> None:
        self.url = shared_pooler.url(database)
        self.direct = direct_url(shared_cluster(), database)

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        return MigratedBesideStorage(self.url, self.direct, record_types)

    def location(self) -> AdapterLocation:
        return AdapterLocation("tests.servers.pgbouncer:open_beside", f"{self.url}|{self.direct}")

    def lose_next_commit(self, storage: Storage, *, applied: bool) -> None:
        assert isinstance(storage, PostgresStorage)
        cut_next_postgres_commit(storage, applied=applied)


def test_the_default_url_is_refused_with_what_to_do(shared_pooler: Pooler, database: str) -> None:
    opened = PostgresStorage(shared_pooler.url(database, "failover_s=0"), RECORD_TYPES)
    with pytest.raises(StorageUnavailable, match=r"unsupported startup.*add settings=off"):
        opened.migrate()
    opened.close()


def test_a_migration_through_a_pooler_is_refused_with_what_to_do(
    shared_pooler: Pooler, database: str, storage: PostgresStorage
) -> None:
    """It would leave its session's timeouts to the next client of the server connection."""
    pooled = PostgresStorage(shared_pooler.url(database), RECORD_TYPES)
    pooled.migrate()  # which has nothing to do
    pooled.close()
    newer = PostgresStorage(shared_pooler.url(database), RECORD_TYPES_AFTER_MIGRATION)
    for change in (newer.migrate, newer.finish_migration):
        with pytest.raises(StorageError, match="the URL of the server itself"):
            change()
    newer.close()


def test_timeouts_of_the_role_hold_behind_the_pooler(storage: PostgresStorage) -> None:
    assert not [doubt for doubt in storage.config_warnings() if "timeout" in doubt]


def test_timeouts_that_nobody_set_are_reported(database: str, storage: PostgresStorage) -> None:
    with psycopg.connect(shared_cluster().url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE unset LOGIN SUPERUSER")
    url = shared_cluster().url(database).replace("//tests@", "//unset@")
    bare = PostgresStorage(f"{url}&settings=off", RECORD_TYPES)
    assert "lock_timeout is 0: a call may wait for a locked row without end" in (
        bare.config_warnings()
    )
    bare.close()


def test_no_call_leaves_a_setting_to_the_next_one(
    database: str, storage: PostgresStorage, shared_pooler: Pooler
) -> None:
    """A server connection is everybody's between two transactions."""
    names = ("lock_timeout", "statement_timeout", "synchronous_commit", "transaction_isolation")
    sql = "SELECT " + ", ".join(f"current_setting('{name}')" for name in names)

    def settings() -> Any:
        return storage.transact(PARTITION, lambda tx: tx._transaction.query(sql, ()))  # type: ignore[attr-defined]

    before = settings()
    storage.transact(PARTITION, lambda tx: tx.insert(Mark(id="m")))
    with storage.lock_exclusively() as access:
        access.read_rows(Mark)
    storage.scan_page(Mark)
    storage.server_time()
    assert settings() == before


def test_a_pooler_that_is_killed_loses_nothing_that_was_answered(database: str) -> None:
    cluster = shared_cluster()
    with Pooler(cluster) as pooler:
        storage = MigratedBesideStorage(
            f"{pooler.url(database)}&failover_s=20", direct_url(cluster, database), RECORD_TYPES
        )
        storage.migrate()
        storage.transact(PARTITION, lambda tx: tx.insert(Counter(id="c")))
        stop = threading.Event()
        done: list[str] = []
        unknown: list[str] = []
        failed: list[Exception] = []

        def keep_adding(thread: int) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                id = f"{thread}.{number}"

                def work(tx: Any, id: str = id) -> None:
                    counter = lock_existing(tx, Counter, "c")
                    tx.replace(attrs.evolve(counter, total=counter.total + 1))
                    tx.insert(Mark(id=id))

                try:
                    storage.transact(PARTITION, work)
                    done.append(id)
                except CommitUnknown:
                    unknown.append(id)
                except Exception as error:
                    failed.append(error)

        threads = [threading.Thread(target=keep_adding, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            enough = len(done) + 20
            while len(done) < enough and not failed:
                stop.wait(0.01)
            pooler.kill()
            pooler.start()
        stop.set()
        for thread in threads:
            thread.join()
        assert failed == []
        found = {id for id in (*done, *unknown) if fetch(storage, Mark, id)}
        assert found >= set(done)
        assert fetch_existing(storage, Counter, "c").total == len(found)
        storage.close()


def test_server_connections_that_end_by_their_age_cost_no_caller_anything(database: str) -> None:
    cluster = shared_cluster()
    with Pooler(cluster, settings={"server_lifetime": "0", "server_idle_timeout": "1"}) as pooler:
        storage = MigratedBesideStorage(
            pooler.url(database), direct_url(cluster, database), RECORD_TYPES
        )
        storage.migrate()
        pids = {
            storage.transact(
                PARTITION,
                lambda tx: tx._transaction.query("SELECT pg_backend_pid()", ())[0][0],  # type: ignore[attr-defined]
            )
            for _ in range(10)
        }
        assert len(pids) > 1
        storage.close()
