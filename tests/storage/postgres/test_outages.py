"""Connections that end, servers that restart, fail over, or are not there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import attrs
import psycopg
import pytest

from payments_core.conformance.storage.harness import (
    PARTITION,
    Rendezvous,
    fetch,
    fetch_existing,
    find_errors,
    lock_existing,
    run_concurrently,
)
from payments_core.conformance.storage.records import RECORD_TYPES, Counter, Mark
from payments_core.storage.port import CommitUnknown, StorageError, StorageUnavailable, Transaction
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.errors import NodeLost
from payments_core.storage.records import Record
from tests.servers import HASTY, Cluster, NoPostgres
from tests.storage.postgres.proxy import Cut, Proxy

pytestmark = pytest.mark.postgres

STRICT = "BEGIN ISOLATION LEVEL SERIALIZABLE"


def insert(storage: PostgresStorage, *records: Record) -> None:
    storage.transact(PARTITION, lambda tx: [tx.insert(record) for record in records])


def terminate(url: str, pid: int) -> None:
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 1000)", (pid,))


def pid_of(tx: Any) -> int:
    return int(tx._transaction.query("SELECT pg_backend_pid()", ())[0][0])


@pytest.fixture
def through(proxy: Proxy) -> Iterator[PostgresStorage]:
    storage = PostgresStorage(proxy.url, RECORD_TYPES)
    yield storage
    storage.close()


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("asks", [True, False])
def test_a_connection_cut_at_the_commit_leaves_it_unknown(
    through: PostgresStorage, proxy: Proxy, cut: Cut, asks: bool
) -> None:
    insert(through, Counter(id="c"))

    def work(tx: Transaction) -> None:
        counter = lock_existing(tx, Counter, "c") if asks else None
        tx.insert(Mark(id="m"))
        if counter is not None:
            tx.replace(attrs.evolve(counter, total=1))

    proxy.cut_next_commit(cut)
    with pytest.raises(CommitUnknown):
        through.transact(PARTITION, work)
    assert (fetch(through, Mark, "m") is not None) == (cut == "after")
    assert fetch_existing(through, Counter, "c").total == int(asks and cut == "after")


def test_a_node_that_the_server_lost_is_waited_for_and_drops_no_connection(
    storage: PostgresStorage,
) -> None:
    insert(storage, Counter(id="c"))
    idle = set(storage._pool._idle)
    runs = 0

    def work(tx: Transaction) -> None:
        nonlocal runs
        runs += 1
        tx.insert(Mark(id="m"))
        if runs < 3:
            raise StorageUnavailable("a node is away") from NodeLost("connection refused")

    storage.transact(PARTITION, work)
    assert runs == 3
    assert idle
    assert idle <= set(storage._pool._idle)
    assert fetch(storage, Mark, "m") is not None


def test_a_connection_that_ends_before_the_commit_has_the_work_run_again(
    storage: PostgresStorage, url: str
) -> None:
    runs: list[int] = []

    def work(tx: Transaction) -> None:
        runs.append(pid_of(tx))
        tx.insert(Mark(id="m"))
        if len(runs) == 1:
            terminate(url, runs[0])
        tx.get(Mark, "m")

    storage.transact(PARTITION, work)
    assert len(set(runs)) == 2
    assert fetch(storage, Mark, "m") is not None


def test_a_work_that_ends_every_connection_is_given_up(storage: PostgresStorage, url: str) -> None:
    hasty = PostgresStorage(f"{url}&failover_s=0", RECORD_TYPES)

    def work(tx: Transaction) -> None:
        terminate(url, pid_of(tx))
        tx.get(Mark, "m")

    with pytest.raises(StorageUnavailable, match="terminating connection"):
        hasty.transact(PARTITION, work)
    hasty.close()


def test_connections_that_died_in_the_pool_cost_the_caller_nothing(
    storage: PostgresStorage, url: str
) -> None:
    pids: list[int] = []

    def nested(depth: int) -> None:
        def work(tx: Transaction) -> None:
            pids.append(pid_of(tx))
            if depth:
                nested(depth - 1)

        storage.transact(PARTITION, work)

    nested(3)
    assert len(set(pids)) == 4
    for pid in pids:
        terminate(url, pid)
    insert(storage, Mark(id="m"))
    assert fetch(storage, Mark, "m") is not None


def test_a_pooled_connection_that_dies_unseen_costs_a_retry(
    storage: PostgresStorage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is not yet known when it is taken."""
    pid = storage.transact(PARTITION, pid_of)
    terminate(url, pid)
    monkeypatch.setattr(
        "payments_core.storage.postgres.pipeline.PipelinedConnection.is_alive",
        lambda pipeline: True,
    )
    insert(storage, Mark(id="m"))
    terminate(url, storage.transact(PARTITION, pid_of))
    assert fetch(storage, Mark, "m") is not None
    terminate(url, storage.transact(PARTITION, pid_of))
    with pytest.raises(StorageUnavailable), storage._open_snapshot():
        pass


def test_what_is_old_or_long_unused_is_closed(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = storage.transact(PARTITION, pid_of)
    assert storage.transact(PARTITION, pid_of) == first
    monkeypatch.setattr("payments_core.storage.postgres.pool.MAX_LIFETIME_S", 0)
    second = storage.transact(PARTITION, pid_of)
    assert second != first
    monkeypatch.undo()
    monkeypatch.setattr("payments_core.storage.postgres.pool.MAX_IDLE_S", -1)
    assert storage.transact(PARTITION, pid_of) == second
    assert storage.transact(PARTITION, pid_of) != second


def test_no_more_connections_are_made_than_the_url_allows(
    storage: PostgresStorage, url: str
) -> None:
    single = PostgresStorage(f"{url}&pool=1&pool_timeout_s=0", RECORD_TYPES)
    with pytest.raises(StorageUnavailable, match="all 1 connections were in use for 0 s"):
        single.read(PARTITION, lambda s: single.read(PARTITION, lambda inner: inner.get(Mark, "m")))
    assert fetch(single, Mark, "m") is None
    single.close()


def test_who_waits_for_a_connection_gets_the_one_that_comes_back(
    storage: PostgresStorage, url: str
) -> None:
    single = PostgresStorage(f"{url}&pool=1", RECORD_TYPES)
    inside = threading.Event()

    def hold(tx: Transaction) -> None:
        tx.get(Mark, "m")
        inside.set()
        time.sleep(0.1)

    thread = threading.Thread(target=single.transact, args=(PARTITION, hold))
    thread.start()
    assert inside.wait(5)
    assert fetch(single, Mark, "m") is None
    thread.join()
    single.close()


def test_a_connection_in_use_is_closed_when_it_comes_back_to_a_closed_storage(
    url: str, storage: PostgresStorage
) -> None:
    other = PostgresStorage(url, RECORD_TYPES)

    def work(tx: Transaction) -> int:
        pid = pid_of(tx)
        other.close()
        return pid

    pid = other.transact(PARTITION, work)
    with psycopg.connect(url, autocommit=True) as connection:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        until = time.monotonic() + 5
        while connection.execute(sql, (pid,)).fetchone() != (0,):
            assert time.monotonic() < until


def test_a_fork_does_not_share_its_parents_connections(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fetch(storage, Mark, "m") is None
    monkeypatch.setattr(storage._pool, "_process", 1)
    with pytest.raises(StorageUnavailable, match="fork"):
        fetch(storage, Mark, "m")


def test_an_interrupt_amid_an_answer_ends_the_connection(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C: what the server says next belongs to nobody."""
    first = storage.transact(PARTITION, pid_of)

    def interrupted(pipeline: Any) -> None:
        raise KeyboardInterrupt

    pipeline_class = "payments_core.storage.postgres.pipeline.PipelinedConnection"
    monkeypatch.setattr(f"{pipeline_class}._read_result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(storage, Mark, "m")
    monkeypatch.undo()
    assert storage.transact(PARTITION, pid_of) != first


def test_a_work_that_a_stricter_isolation_undoes_runs_again(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an engine does whose READ COMMITTED is SERIALIZABLE: 40001 at a write or at COMMIT."""
    monkeypatch.setattr("payments_core.storage.postgres.adapter.BEGIN_WRITE", STRICT)
    insert(storage, Counter(id="a"), Counter(id="b"))
    meeting = Rendezvous()
    runs: list[str] = []

    def copy(source: str, target: str) -> None:
        def work(tx: Transaction) -> None:
            runs.append(target)
            seen = tx.get(Counter, source)
            written = tx.get(Counter, target)
            assert seen is not None
            assert written is not None
            meeting.wait()
            tx.replace(attrs.evolve(written, total=seen.total + 1))

        storage.transact(PARTITION, work)

    assert find_errors(run_concurrently(lambda: copy("a", "b"), lambda: copy("b", "a"))) == []
    assert len(runs) == 3
    totals = {fetch_existing(storage, Counter, id).total for id in ("a", "b")}
    assert totals == {1, 2}  # as one after the other


def test_a_refused_connection_is_unavailable_and_shows_no_password() -> None:
    url = "postgresql://me:sesame@localhost:1/none?failover_s=0&connect_timeout=1"
    nowhere = PostgresStorage(url, RECORD_TYPES)
    for call in (nowhere.migrate, nowhere.finish_migration, lambda: nowhere.next_due("q")):
        with pytest.raises(StorageUnavailable) as caught:
            call()
        assert "sesame" not in f"{caught.value!r} {caught.value.__cause__!r} {nowhere!r}"
    nowhere.close()


def test_too_many_connections_are_unavailable(postgres_server: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS lonely")
        connection.execute("CREATE ROLE lonely LOGIN CONNECTION LIMIT 0")
    storage = PostgresStorage(
        postgres_server.replace("tests@", "lonely@") + "&failover_s=0", RECORD_TYPES
    )
    with pytest.raises(StorageUnavailable, match="too many connections"):
        storage.next_due("q")
    storage.close()


def test_a_url_of_several_hosts_goes_to_the_one_that_lives(
    storage: PostgresStorage, url: str
) -> None:
    several = url.replace("host=", "host=/nonexistent,").replace("port=", "port=1,")
    second = PostgresStorage(several, RECORD_TYPES)
    insert(second, Mark(id="m"))
    assert fetch(storage, Mark, "m") is not None
    second.close()


@pytest.fixture
def primary() -> Iterator[Cluster]:
    try:
        made = Cluster(settings=HASTY)
    except NoPostgres as reason:
        pytest.skip(str(reason))
    with made:
        yield made


def test_a_restart_in_the_middle_costs_no_caller_anything(primary: Cluster) -> None:
    """Works that were under way run again; only a COMMIT on its way may be unknown."""
    primary.configure(fsync="on", synchronous_commit="on")
    storage = PostgresStorage(f"{primary.url()}&failover_s=30", RECORD_TYPES)
    storage.migrate()
    insert(storage, Counter(id="c"))
    stop = threading.Event()
    done: list[str] = []
    unknown: list[str] = []
    failed: list[Exception] = []

    def keep_adding(thread: int) -> None:
        for number in range(10_000):
            if stop.is_set():
                return
            id = f"{thread}.{number}"

            def work(tx: Transaction, id: str = id) -> None:
                counter = lock_existing(tx, Counter, "c")
                tx.replace(attrs.evolve(counter, total=counter.total + 1))
                tx.insert(Mark(id=id))

            try:
                storage.transact(PARTITION, work)
                done.append(id)
            except CommitUnknown:
                unknown.append(id)
            except StorageError as error:
                failed.append(error)

    threads = [threading.Thread(target=keep_adding, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    primary.restart("immediate")
    enough = len(done) + 20
    until = time.monotonic() + 30
    while len(done) < enough:
        assert time.monotonic() < until
        stop.wait(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []
    found = {id for id in (*done, *unknown) if fetch(storage, Mark, id)}
    assert found >= set(done)
    assert fetch_existing(storage, Counter, "c").total == len(found)
    storage.close()


def test_a_failover_is_followed_to_the_new_primary(primary: Cluster) -> None:
    primary.configure(synchronous_commit="on")
    with Cluster.standby_of(primary) as standby:
        places = f"host={primary.folder},{standby.folder}&port={primary.port},{standby.port}"
        url = f"postgresql://tests@/postgres?{places}"
        storage = PostgresStorage(f"{url}&failover_s=30", RECORD_TYPES)
        storage.migrate()
        insert(storage, Mark(id="before"))
        primary.kill()
        promotion = threading.Timer(0.3, standby.promote)
        promotion.start()
        insert(storage, Mark(id="after"))
        assert fetch(storage, Mark, "before") is not None
        promotion.join()
        storage.close()


def test_a_standby_is_not_a_server_for_its_answers_are_old(primary: Cluster) -> None:
    made = PostgresStorage(primary.url(), RECORD_TYPES)
    made.migrate()
    made.close()
    with Cluster.standby_of(primary, synchronous=False) as standby:
        storage = PostgresStorage(f"{standby.url()}&failover_s=1", RECORD_TYPES)
        for use in (lambda: fetch(storage, Mark, "m"), lambda: insert(storage, Mark(id="m"))):
            with pytest.raises(StorageUnavailable, match=r"read-only|hot standby"):
                use()
        storage.close()
        insisting = PostgresStorage(
            f"{standby.url()}&failover_s=1&target_session_attrs=any", RECORD_TYPES
        )
        assert fetch(insisting, Mark, "m") is None
        with pytest.raises(StorageUnavailable, match="25006"):
            insert(insisting, Mark(id="m"))
        insisting.close()


def test_the_right_to_a_connection_that_could_not_be_made_comes_back() -> None:
    nowhere = PostgresStorage("postgresql://me@localhost:1/none?failover_s=0&pool=1", RECORD_TYPES)
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="failed"):
            fetch(nowhere, Mark, "m")
