"""Commits in groups: no outcome before the COMMIT, and each work whole or absent."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_core.conformance.storage.harness import (
    PARTITION,
    fetch,
    lock_existing,
    run_concurrently,
)
from payments_core.conformance.storage.jobs import claim, job
from payments_core.conformance.storage.records import RECORD_TYPES, Counter, Mark, Note
from payments_core.storage.jobs import Job
from payments_core.storage.port import (
    CommitUnknown,
    StorageError,
    StorageUnavailable,
    Transaction,
    UniqueConflict,
)
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.storage.lossy import fail_next_sqlite_commit
from tests.storage.sqlite.groups import count_commits, in_one_group, insert, there

Work = Callable[[Transaction], Any]


def test_a_group_has_one_commit_and_each_its_own_outcome(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = count_commits(storage, monkeypatch)

    def refuse(tx: Transaction) -> None:
        raise ArithmeticError("no")

    outcomes = in_one_group(
        storage,
        insert(storage, "a", "code"),
        insert(storage, "b", "code"),
        lambda: storage.transact(PARTITION, refuse),
        insert(storage, "c"),
    )
    assert len(commits) == 2, "one for the work that waited, one for the group"
    assert [outcomes[0], outcomes[3]] == ["a", "c"]
    assert isinstance(outcomes[1], UniqueConflict)
    assert isinstance(outcomes[2], ArithmeticError)
    assert there(storage, "a", "b", "c") == [True, False, True]


def test_a_work_that_fails_after_it_has_written_undoes_only_itself(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = count_commits(storage, monkeypatch)

    def fail(tx: Transaction) -> None:
        tx.insert(Note(id="failed"))
        raise ArithmeticError("no")

    outcomes = in_one_group(
        storage,
        insert(storage, "a"),
        lambda: storage.transact(PARTITION, fail),
        insert(storage, "b"),
    )
    assert len(commits) == 3, "of the work that waited, and of the two that succeeded alone"
    assert [outcomes[0], outcomes[2]] == ["a", "b"]
    assert isinstance(outcomes[1], ArithmeticError)
    assert there(storage, "a", "failed", "b") == [True, False, True]


def test_works_of_a_group_see_each_other_in_turn(storage: SqliteStorage) -> None:
    storage.transact(PARTITION, lambda tx: tx.insert(Counter(id="c")))

    def add(tx: Transaction) -> int:
        counter = lock_existing(tx, Counter, "c")
        tx.replace(attrs.evolve(counter, total=counter.total + 1))
        return counter.total

    calls = [lambda: storage.transact(PARTITION, add)] * 5
    assert in_one_group(storage, *calls) == [0, 1, 2, 3, 4]


def test_a_group_is_no_larger_than_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES, group_limit=2)
    storage.migrate()
    commits = count_commits(storage, monkeypatch)
    calls = [insert(storage, f"n{number}") for number in range(5)]
    assert in_one_group(storage, *calls) == [f"n{number}" for number in range(5)]
    assert len(commits) == 4
    storage.close()


def test_claims_and_works_share_a_commit(storage: SqliteStorage) -> None:
    storage.transact(PARTITION, lambda tx: tx.insert(job("j")))
    claimed, _, again = in_one_group(
        storage, lambda: claim(storage), insert(storage, "n"), lambda: claim(storage)
    )
    assert [item.job.id for item in (*claimed, *again)] == ["j"]
    assert there(storage, "n") == [True]


def test_no_outcome_leaves_before_the_commit(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal too: the row that it rests on may yet fail to be committed."""
    reported: list[str] = []
    seen: list[list[str]] = []
    commit = storage._commit

    def watched(connection: sqlite3.Connection) -> None:
        seen.append(list(reported))
        commit(connection)

    def telling(call: Callable[[], Any], name: str) -> Callable[[], Any]:
        def run() -> None:
            try:
                call()
            except UniqueConflict:
                reported.append(f"{name} refused")
                return
            reported.append(name)

        return run

    monkeypatch.setattr(storage, "_commit", watched)
    in_one_group(
        storage,
        telling(insert(storage, "a", "code"), "a"),
        telling(insert(storage, "b", "code"), "b"),
    )
    assert seen == [[], []]
    assert sorted(reported) == ["a", "b refused"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_FULL, StorageUnavailable),
        (sqlite3.SQLITE_IOERR, CommitUnknown),
    ],
)
def test_where_the_commit_fails_all_fail(
    storage: SqliteStorage, code: int, expected: type[Exception]
) -> None:
    outcomes = in_one_group(
        storage,
        insert(storage, "a", "code"),
        insert(storage, "b", "code"),
        insert(storage, "c"),
        # The work that waits commits first; the failure is for the group.
        amid=lambda: _fail_after_one(storage, code),
    )
    assert [type(outcome) for outcome in outcomes] == [expected] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert there(storage, "a", "b", "c") == [False] * 3
    assert insert(storage, "a", "code")() == "a"


def _fail_after_one(storage: SqliteStorage, code: int) -> None:
    def first(connection: sqlite3.Connection) -> None:
        fail_next_sqlite_commit(storage, code, applied=False)
        connection.execute("COMMIT")

    storage._commit = first  # type: ignore[method-assign]


def test_where_the_group_cannot_begin_all_fail(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES, busy_timeout_s=0.05)
    storage.migrate()
    other = sqlite3.connect(tmp_path / "data.db", isolation_level=None, check_same_thread=False)
    commit = storage._commit

    def then_lock(connection: sqlite3.Connection) -> None:
        commit(connection)
        other.execute("BEGIN IMMEDIATE")

    def lock_after() -> None:
        storage._commit = then_lock  # type: ignore[method-assign]

    outcomes = in_one_group(storage, insert(storage, "a"), insert(storage, "b"), amid=lock_after)
    assert [type(outcome) for outcome in outcomes] == [StorageUnavailable] * 2
    other.close()
    storage.close()


def test_an_error_of_sqlite_in_a_work_is_the_storages(storage: SqliteStorage) -> None:
    outcomes = in_one_group(
        storage,
        insert(storage, "a"),
        lambda: storage._write(lambda connection: connection.execute("SELECT nothing")),
    )
    assert outcomes[0] == "a"
    assert isinstance(outcomes[1], StorageError)
    assert isinstance(outcomes[1].__cause__, sqlite3.Error)


def test_works_of_an_undone_group_run_singly(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt, like a full disk, can undo the whole group and not one savepoint."""
    commits = count_commits(storage, monkeypatch)
    runs: list[str] = []

    def interrupted(tx: Any) -> str:
        runs.append("interrupted")
        tx._connection.set_progress_handler(lambda: 1, 1)
        try:
            tx.insert(Note(id="i"))
        finally:
            tx._connection.set_progress_handler(None, 0)
        return "not reached"

    def counted(id: str) -> Callable[[], Any]:
        def work(tx: Transaction) -> str:
            runs.append(id)
            tx.insert(Note(id=id))
            return id

        return lambda: storage.transact(PARTITION, work)

    outcomes = in_one_group(
        storage, counted("a"), lambda: storage.transact(PARTITION, interrupted), counted("b")
    )
    assert [outcomes[0], outcomes[2]] == ["a", "b"]
    assert isinstance(outcomes[1], StorageUnavailable)
    assert runs == ["a", "interrupted", "a", "interrupted", "b"]
    assert there(storage, "a", "i", "b") == [True, False, True]
    assert len(commits) == 3


def test_a_disk_full_in_a_group_fails_only_who_needs_the_room(storage: SqliteStorage) -> None:
    with storage._open_write_transaction() as writer:
        writer.execute("ROLLBACK")
    pages = writer.execute("PRAGMA page_count").fetchone()[0]

    def large(tx: Transaction) -> None:
        for number in range(50):
            tx.insert(Note(id=f"large {number}", text="x" * 9_000))

    outcomes = in_one_group(
        storage,
        insert(storage, "a"),
        lambda: storage.transact(PARTITION, large),
        insert(storage, "b"),
        amid=lambda: writer.execute(f"PRAGMA max_page_count = {pages + 2}"),
    )
    writer.execute("PRAGMA max_page_count = 1000000")
    assert [outcomes[0], outcomes[2]] == ["a", "b"]
    assert isinstance(outcomes[1], StorageUnavailable)
    assert there(storage, "a", "large 0", "b") == [True, False, True]


def test_many_threads_and_a_second_handle_lose_nothing(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    other = SqliteStorage(tmp_path / "data.db", RECORD_TYPES)
    storage.transact(PARTITION, lambda tx: tx.insert(Counter(id="c")))

    def add(handle: SqliteStorage, thread: int) -> None:
        for number in range(20):

            def work(tx: Transaction, number: int = number) -> None:
                counter = lock_existing(tx, Counter, "c")
                tx.replace(attrs.evolve(counter, total=counter.total + 1))
                tx.insert(Mark(id=f"m{thread}_{number}"))

            handle.transact(PARTITION, work)

    calls = [lambda t=t: add((storage, other)[t % 2], t) for t in range(8)]
    assert run_concurrently(*calls) == [None] * 8
    counter = fetch(other, Counter, "c")
    assert counter is not None
    assert counter.total == 160
    other.close()


def test_only_a_group_of_claims_alone_leaves_the_disk_behind(storage: SqliteStorage) -> None:
    modes: list[int] = []
    commit = storage._commit

    def seen(connection: sqlite3.Connection) -> None:
        modes.append(connection.execute("PRAGMA synchronous").fetchone()[0])
        commit(connection)

    storage._commit = seen  # type: ignore[method-assign]

    def claim() -> object:
        return storage.claim("q", 10, lease_ms=5, limit=1, lane_concurrency=1)

    def due(id: str) -> Callable[[], Any]:
        job = Job(id=id, queue="q", lane=id, kind="k", due_at=1, subject="s")
        return lambda: storage.transact(PARTITION, lambda tx: tx.insert(job))

    due("a")()
    claim()
    due("b")()
    in_one_group(storage, claim, insert(storage, "beside"))
    full, normal = 2, 1
    assert modes[:3] == [full, normal, full]
    assert modes[3:] == [full, full]
