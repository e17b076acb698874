"""How often a transaction waits for the server."""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import attrs
import psycopg
import pytest
from psycopg.pq import ConnStatus

from payments_core.conformance.storage.harness import (
    PARTITION,
    Rendezvous,
    fetch,
    fetch_existing,
    lock_existing,
    run_concurrently,
)
from payments_core.conformance.storage.jobs import claim, job
from payments_core.conformance.storage.records import (
    Counter,
    Letter,
    Mark,
    Note,
)
from payments_core.storage.port import (
    StorageError,
    StorageUnavailable,
    Transaction,
    UniqueConflict,
    VersionConflict,
)
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.pipeline import PipelinedConnection
from payments_core.storage.postgres.pool import to_driver_connection
from payments_core.storage.postgres.snapshot import TOGETHER
from payments_core.storage.reads import Get, Lock
from tests.storage.postgres.conftest import Trips

pytestmark = pytest.mark.postgres


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The first word of each statement, by the packet in which it is sent."""
    found: list[list[str]] = []
    run = PipelinedConnection.run

    def noted(pipeline: PipelinedConnection, statements: Any) -> Any:
        found.append([sql.split()[0] for sql, _ in statements])
        return run(pipeline, statements)

    monkeypatch.setattr(PipelinedConnection, "run", noted)
    return found


def test_a_read_waits_once_for_each_question(trips: Trips, through: PostgresStorage) -> None:
    def look() -> None:
        through.read(PARTITION, lambda s: [s.get(Counter, "c1"), s.get(Counter, "c2")])

    look()
    assert trips(look) == 2


def test_records_are_fetched_by_one_statement_and_many_in_one_snapshot(
    through: PostgresStorage, sent: list[list[str]]
) -> None:
    sent.clear()
    for n in range(3):
        [one] = through.fetch(PARTITION, Get(Counter, "c1"))
        assert one.id == "c1"
        through.read(PARTITION, lambda snapshot: snapshot.get(Counter, "c2"))
        two = through.fetch(PARTITION, Get(Counter, "c3"), Get(Counter, f"{n}"))
        assert [record and record.id for record in two] == ["c3", None]
        many = [Get(Counter, f"c{n % 5}") for n in range(TOGETHER)]
        last = [Get(Counter, "c3"), Get(Counter, f"none {n}")]
        found = through.fetch(PARTITION, *many, *last)
        assert [record and record.id for record in found] == [
            *(one.id for one in many), "c3", None
        ]  # fmt: skip
        news = [Get(Counter, f"none {n}") for n in range(TOGETHER + 1)]
        assert set(through.fetch(PARTITION, *news)) == {None}
    each = [["SELECT"], ["BEGIN", "SELECT"], ["SELECT"], ["BEGIN", "SELECT"]]
    assert sent == [*each, ["BEGIN", "SELECT"]] * 3


def test_what_a_work_is_going_to_lock_is_asked_for_by_one_statement(
    through: PostgresStorage, sent: list[list[str]]
) -> None:
    reads = [
        Get(Counter, "c0"),
        Get(Counter, "c1", "exclusive"),
        Get(Counter, "c2", "shared"),
        Get(Note, "absent", "exclusive", is_optional=True),
    ]

    def work(tx: Transaction) -> None:
        tx.read_ahead(*reads)
        tx.read_ahead(Get(Note, "no\0ne"), Get(Note, "no\0ne", "shared"))
        kept = tx.get(Counter, "c0")
        assert kept is not None
        held = tx.get(Counter, "c2")
        assert held is not None
        tx.hold(held)
        assert tx.get(Note, "absent", for_update=True) is None
        tx.replace(attrs.evolve(lock_existing(tx, Counter, "c1"), total=7))

    sent.clear()
    through.transact(PARTITION, work)
    # The absent one is looked for twice, the second time with what is only read.
    assert sent == [["BEGIN", "SELECT", "SELECT"], ["UPDATE", "COMMIT"]]
    assert fetch_existing(through, Counter, "c1").total == 7


@pytest.mark.parametrize("ids", [("c0", "c1", "c2"), ("c2", "c0", "c1")])
def test_locks_of_one_statement_are_taken_in_their_order(
    through: PostgresStorage, storage: PostgresStorage, ids: tuple[str, ...]
) -> None:
    """In any other order the two would meet in a deadlock, and one run again."""
    has_lock, runs = threading.Event(), []

    def lock_all_one_by_one() -> None:
        def work(tx: Transaction) -> None:
            runs.append("one by one")
            lock_existing(tx, Counter, ids[0])
            has_lock.set()
            Rendezvous(timeout_s=0.2).wait()  # meanwhile the other comes to wait for it
            for id in ids[1:]:
                lock_existing(tx, Counter, id)

        storage.transact(PARTITION, work)

    def lock_all_at_once() -> None:
        has_lock.wait()

        def work(tx: Transaction) -> None:
            runs.append("at once")
            tx.read_ahead(*(Get(Counter, id, "exclusive") for id in ids))
            assert [lock_existing(tx, Counter, id).id for id in ids] == list(ids)

        through.transact(PARTITION, work)

    assert run_concurrently(lock_all_one_by_one, lock_all_at_once) == [None, None]
    assert runs == ["one by one", "at once"]


def test_many_records_are_locked_by_a_statement_for_each_kind(
    through: PostgresStorage, sent: list[list[str]]
) -> None:
    counters = [Get(Counter, f"c{n}", "exclusive") for n in (3, 0, 4, 1, 2)]
    absent = [Get(Counter, f"none {n}", "exclusive", is_optional=True) for n in range(6)]
    notes = [Get(Note, f"none {n}") for n in range(TOGETHER)]
    found: list[int] = []

    def work(tx: Transaction) -> None:
        tx.read_ahead(*counters, *absent, *notes)
        found[:] = [lock_existing(tx, Counter, one.id).total for one in counters]
        assert [tx.get(Counter, one.id, for_update=True) for one in absent] == [None] * 6
        assert [tx.get(Note, one.id) for one in notes] == [None] * TOGETHER
        tx.replace(attrs.evolve(lock_existing(tx, Counter, "c4"), total=9))

    sent.clear()
    through.transact(PARTITION, work)
    # The locks, and then the absent ones again with what is only read.
    assert sent == [["BEGIN", "SELECT", "SELECT", "SELECT"], ["UPDATE", "COMMIT"]]
    through.transact(PARTITION, work)
    assert found[2] == 9


def test_locks_of_many_records_are_taken_in_the_order_of_their_ids(
    through: PostgresStorage, storage: PostgresStorage
) -> None:
    """Two that lock the same records in different orders do not meet in a deadlock."""
    ids = [f"m{n:02}" for n in range(TOGETHER + 1)]
    storage.transact(
        PARTITION, lambda tx: [tx.insert(Counter(id=id, total=0)) for id in ids] and None
    )
    runs: list[int] = []

    def lock_all(order: list[str], times: int) -> None:
        def work(tx: Transaction) -> None:
            runs.append(1)
            tx.read_ahead(*(Get(Counter, id, "exclusive") for id in order))
            for id in order:
                lock_existing(tx, Counter, id)

        for _ in range(times):
            through.transact(PARTITION, work)

    forth, back = partial(lock_all, ids, 50), partial(lock_all, ids[::-1], 50)
    assert run_concurrently(forth, back) == [None, None]
    assert len(runs) == 100


def test_what_another_changes_while_its_lock_is_waited_for_is_read_as_it_is_then(
    through: PostgresStorage, storage: PostgresStorage
) -> None:
    ids, has_locks = ("c0", "c1", "c2"), threading.Event()

    def change() -> None:
        def work(tx: Transaction) -> None:
            records = [lock_existing(tx, Counter, id) for id in ids]
            has_locks.set()
            Rendezvous(timeout_s=0.2).wait()  # meanwhile the other comes to wait for the first
            for record in records:
                tx.replace(attrs.evolve(record, total=5))

        storage.transact(PARTITION, work)

    def look() -> list[int]:
        has_locks.wait()

        def work(tx: Transaction) -> list[int]:
            locks: tuple[Lock, ...] = ("exclusive", "shared", "none")
            tx.read_ahead(*map(partial(Get, Counter), ids, locks))
            assert tx.get(Counter, "c1") is not None
            found = [lock_existing(tx, Counter, "c0"), tx.get(Counter, "c1"), tx.get(Counter, "c2")]
            return [one.total for one in found if one is not None]

        return through.transact(PARTITION, work)

    assert run_concurrently(change, look) == [None, [5, 5, 5]]


def test_what_comes_while_a_lock_is_waited_for_is_found_and_what_is_read_is_no_older(
    through: PostgresStorage, storage: PostgresStorage, sent: list[list[str]]
) -> None:
    has_lock = threading.Event()

    def make() -> None:
        def work(tx: Transaction) -> None:
            lock_existing(tx, Counter, "c0")
            counter = lock_existing(tx, Counter, "c1")
            has_lock.set()
            Rendezvous(timeout_s=0.2).wait()  # meanwhile the other comes to wait for the first
            tx.insert(Note(id="new", rank=5))
            tx.replace(attrs.evolve(counter, total=5))

        storage.transact(PARTITION, work)

    def look() -> list[int]:
        has_lock.wait()

        def work(tx: Transaction) -> list[int]:
            tx.read_ahead(
                Get(Counter, "c0", "exclusive"),
                Get(Note, "new", "exclusive", is_optional=True),
                Get(Counter, "c1"),
            )
            found = tx.get(Counter, "c1")
            assert found is not None
            return [lock_existing(tx, Note, "new").rank, found.total]

        return through.transact(PARTITION, work)

    assert run_concurrently(make, look) == [None, [5, 5]]


def test_writes_and_the_commit_wait_once_together(trips: Trips, through: PostgresStorage) -> None:
    def work(tx: Transaction) -> None:
        counter = lock_existing(tx, Counter, "c1")
        held = tx.get(Counter, "c2")
        assert held is not None
        tx.hold(held)
        changed = attrs.evolve(counter, total=counter.total + 1)
        news = [Note(id=f"n{counter.total} {n}") for n in range(20)]
        tx.write(news, [changed], [])
        tx.insert(Mark(id=f"m{counter.total}"))

    for _ in range(4):  # by then what comes often is prepared
        assert trips(lambda: through.transact(PARTITION, work)) == 3
    assert fetch_existing(through, Counter, "c1").total == 4


def test_rows_of_a_kind_are_written_by_one_statement(
    through: PostgresStorage, sent: list[list[str]]
) -> None:
    texts = ['"quoted"', "back\\slash", "{braces, and}", "NULL", "naïve ☃", "", None]
    ids = [f"l{n}" for n in range(len(texts))]
    for _ in range(4):  # by then what comes often is prepared
        new = [Letter(id=id, folder=text) for id, text in zip(ids, texts, strict=True)]
        sent.clear()
        through.transact(PARTITION, lambda tx, new=new: tx.write(new))  # type: ignore[misc]
        assert sent == [["BEGIN", "INSERT", "INSERT"], ["COMMIT"]]  # four rows, and three
        sent.clear()

        def turn(tx: Transaction) -> None:
            letters = tx.get_many(Letter, ids, for_update=True).values()
            assert [letter.folder for letter in letters] == texts
            turned = zip(letters, reversed(texts), strict=True)
            tx.write([], [attrs.evolve(letter, folder=text) for letter, text in turned])

        through.transact(PARTITION, turn)
        assert sent == [["BEGIN", "SELECT"], ["UPDATE", "COMMIT"]]
        found = [fetch_existing(through, Letter, id) for id in ids]
        assert [(letter.version, letter.folder) for letter in found] == [
            (2, text) for text in reversed(texts)
        ]
        sent.clear()
        through.transact(PARTITION, lambda tx, found=found: tx.write([], [], found))  # type: ignore[misc]
        guards = ["SELECT"] * len(texts)
        assert sent == [["BEGIN", *guards, "DELETE"], ["COMMIT"]]
        assert [fetch(through, Letter, id) for id in ids] == [None] * len(ids)


def test_commit_is_not_in_the_first_packet(trips: Trips, through: PostgresStorage) -> None:
    assert trips(lambda: through.transact(PARTITION, lambda tx: tx.insert(Mark(id="m")))) == 2


def test_a_transaction_of_no_statements_asks_nothing(
    trips: Trips, through: PostgresStorage
) -> None:
    assert trips(lambda: through.transact(PARTITION, lambda tx: None)) == 0
    assert trips(lambda: through.read(PARTITION, lambda snapshot: None)) == 0


def test_what_is_locked_is_not_asked_for_again(trips: Trips, through: PostgresStorage) -> None:
    def work(tx: Transaction) -> None:
        assert tx.get_many(Counter, ["c1"]).keys() == {"c1"}
        found = tx.get_many(Counter, ["c1", "c2", "c3"], for_update=True)
        for id in found:
            assert tx.get(Counter, id, for_update=True) is found[id]
            tx.hold(found[id])
        tx.replace(attrs.evolve(found["c1"], total=7))
        again = lock_existing(tx, Counter, "c1")
        assert (again.total, again.version) == (7, found["c1"].version + 1)

    assert trips(lambda: through.transact(PARTITION, work)) == 4


def test_a_claim_waits_three_times_however_many_jobs(
    trips: Trips, through: PostgresStorage
) -> None:
    jobs = [job(f"j{n}", lane=f"lane {n % 9}", ordinal=n) for n in range(30)]
    through.transact(PARTITION, lambda tx: tx.write(jobs))
    claimed: list[Any] = []
    assert trips(lambda: claimed.extend(claim(through, limit=20, lane_concurrency=3))) == 3
    assert len(claimed) == 20
    assert trips(lambda: claim(through, queue="another")) == 1


def test_a_hold_that_fails_names_its_record(through: PostgresStorage) -> None:
    stale = attrs.evolve(fetch_existing(through, Counter, "c1"), version=9)

    def work(tx: Transaction) -> None:
        tx.insert(Mark(id="m"))
        tx.hold(stale)
        tx.insert(Mark(id="n"))

    with pytest.raises(VersionConflict, match="suite_counters: c1 has changed"):
        through.transact(PARTITION, work)
    with pytest.raises(UniqueConflict, match="suite_counters: id"):
        through.transact(PARTITION, lambda tx: [lock_existing(tx, Counter, "c1"), tx.insert(stale)])


def test_what_is_held_is_known_and_a_second_version_of_it_is_refused(
    trips: Trips, through: PostgresStorage
) -> None:
    counter = fetch_existing(through, Counter, "c1")

    def twice(tx: Transaction) -> None:
        tx.hold(counter)
        tx.hold(counter)

    assert trips(lambda: through.transact(PARTITION, twice)) == 2
    with pytest.raises(VersionConflict):
        through.transact(
            PARTITION, lambda tx: [tx.hold(counter), tx.hold(attrs.evolve(counter, version=2))]
        )


def test_an_id_that_no_text_can_be_is_nowhere(through: PostgresStorage) -> None:
    nowhere = Counter(id="c\0", version=1)
    for use in (lambda tx: tx.hold(nowhere), lambda tx: tx.delete(nowhere)):
        with pytest.raises(VersionConflict):
            through.transact(PARTITION, use)
    assert through.read(PARTITION, lambda s: s.get_many(Counter, ["c\0", "c1"])).keys() == {"c1"}
    page = through.read(PARTITION, lambda s: s.find(Note, "by_name", ("n\0",)))
    assert (page.records, page.next) == ((), None)
    with pytest.raises(StorageError, match="a text with U"):
        through.read("env\0", lambda snapshot: snapshot.get(Counter, "c1"))


def test_rows_that_fill_the_socket_both_ways_come_through(through: PostgresStorage) -> None:
    notes = [Note(id=f"n{n:03d}", text="x" * 90_000) for n in range(60)]
    through.transact(PARTITION, lambda tx: tx.write(notes))
    found = through.read(PARTITION, lambda s: s.get_many(Note, [note.id for note in notes]))
    assert {note.text for note in found.values()} == {"x" * 90_000}


def test_texts_of_a_list_are_quoted(through: PostgresStorage) -> None:
    ids = ['"quoted"', "back\\slash", "{braces, and}", "NULL", "naïve ☃", " "]
    through.transact(PARTITION, lambda tx: tx.write([Mark(id=id) for id in ids]))
    assert set(through.read(PARTITION, lambda s: s.get_many(Mark, ids))) == set(ids)


def test_a_renewal_waits_twice_however_many_partitions_there_are(
    trips: Trips, through: PostgresStorage
) -> None:
    for number in range(20):
        each = job("j", lane=f"lane {number}")
        through.transact(f"env_{number}", lambda tx, each=each: tx.insert(each))  # type: ignore[misc]
    claimed = claim(through, limit=20)
    assert len(claimed) == 20
    assert trips(lambda: through.renew(claimed, 1)) == 2


def test_a_connection_that_has_ended_says_so_wherever_it_is_noticed(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended() -> PipelinedConnection:
        pipeline = storage._pool.connect()
        pipeline.run([("BEGIN", ()), ("SELECT 1", ())])
        pipeline.send_unawaited("COMMIT")
        pipeline.connection.pgconn.finish()
        return pipeline

    pipeline = ended()
    pipeline.send_unawaited("COMMIT")
    assert pipeline.broken
    assert not pipeline.is_alive()
    with pytest.raises(StorageUnavailable):
        to_driver_connection(ended())
    pipeline = ended()
    silent = SimpleNamespace(is_busy=lambda: False, get_result=lambda: None, status=ConnStatus.BAD)
    monkeypatch.setattr(pipeline, "_pgconn", silent)
    with pytest.raises(psycopg.OperationalError, match="lost"):
        pipeline._read_result()
