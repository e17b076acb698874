"""Tables and indexes under two releases: what the one brings, and what the other still needs.

A process of either release may start at any time, and each start migrates.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import attrs
import psycopg
import pytest

from payments_core.storage.capabilities import FinishesMigrations
from payments_core.storage.port import Storage, Transaction, UniqueConflict
from payments_core.storage.records import Collection, Index, Record, Unique
from payments_core.storage_loader import open_storage
from tests.servers import drop_schema, fresh_schema, postgres_or_skip

STORAGES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
HERE = "env_a"
Opener = Callable[[type[Record]], Storage]


@attrs.frozen(kw_only=True)
class Before(Record):
    """As the old release has it: found by its place, and alone there."""

    collection: ClassVar[Collection] = Collection(
        "crates",
        columns={"place": str, "weight": int},
        indexes=(Index("by_place", ("place",)), Index("by_weight", order=("weight",))),
        uniques=(Unique("place", ("place",)),),
    )

    place: str | None = None
    weight: int = 0


@attrs.frozen(kw_only=True)
class After(Record):
    """As the new one has it: found by its seal, and no two of one seal; the place is nobody's."""

    collection: ClassVar[Collection] = Collection(
        "crates",
        columns={"place": str, "weight": int, "seal": str},
        indexes=(
            Index("by_weight", order=("weight",)),
            Index("by_seal", ("seal",), ("weight",)),
        ),
        uniques=(Unique("seal", ("seal",)),),
        schema=2,
        oldest_reader=1,
    )

    place: str | None = None
    weight: int = 0
    seal: str | None = None


@pytest.fixture(params=STORAGES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/data.db"
        return
    made = fresh_schema(postgres_or_skip())
    yield made
    drop_schema(made)


@pytest.fixture
def opener(url: str) -> Iterator[Opener]:
    """Starts a process of a release, as far as storage sees it: opens, and migrates."""
    with contextlib.ExitStack() as stack:

        def start(kind: type[Record]) -> Storage:
            storage = stack.enter_context(contextlib.closing(open_storage(url, [kind])))
            storage.migrate()
            return storage

        yield start


def insert(storage: Storage, *records: Record) -> None:
    def work(tx: Transaction) -> None:
        for record in records:
            tx.insert(record)

    storage.transact(HERE, work)


def ids(storage: Storage, kind: type[Record], index: str, *key: str) -> list[str]:
    page = storage.read(HERE, lambda snapshot: snapshot.find(kind, index, key))
    return [record.id for record in page.records]


def finish(storage: Storage) -> int:
    assert isinstance(storage, FinishesMigrations)
    return storage.finish_migration()


def indexes(storage: Storage, url: str) -> set[str]:
    """The names of the indexes that a table has, without the collection's."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as server:
            asked = "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
            names: Sequence[tuple[str]] = server.execute(asked.encode()).fetchall()
    else:
        import sqlite3

        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            names = file.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
    prefix = "crates__"
    return {name.removeprefix(prefix) for (name,) in names if name.startswith(prefix)}


def test_a_unique_key_that_the_old_release_relies_on_holds_while_that_runs(opener: Opener) -> None:
    old = opener(Before)
    insert(old, Before(id="a", place="dock"))
    opener(After)
    with pytest.raises(UniqueConflict) as refused:
        insert(old, Before(id="b", place="dock"))
    assert refused.value.unique == "place"


def test_an_index_that_the_old_release_reads_by_stays_while_that_runs(
    opener: Opener, url: str
) -> None:
    old = opener(Before)
    new = opener(After)
    assert {"by_place", "place"} <= indexes(new, url)
    finish(new)
    assert indexes(new, url) == {"by_weight", "by_seal", "seal"}
    assert ids(old, Before, "by_weight") == []


def test_indexes_of_the_same_columns_are_one_that_is_read_from_either_end(
    opener: Opener, url: str
) -> None:
    @attrs.frozen(kw_only=True)
    class Sorted(Before):
        collection: ClassVar[Collection] = attrs.evolve(
            Before.collection,
            indexes=(
                *Before.collection.indexes,
                Index("heaviest", order=("weight",), descending=True),
                Index("all"),
            ),
        )

    storage = opener(Sorted)
    assert indexes(storage, url) == {"by_place", "by_weight", "place"}
    insert(storage, *(Sorted(id=id, weight=weight) for id, weight in (("a", 2), ("b", 1))))
    assert ids(storage, Sorted, "heaviest") == ["a", "b"]
    assert ids(storage, Sorted, "by_weight") == ["b", "a"]
    found = plan(url, f"SELECT id FROM crates WHERE partition = '{HERE}' {HEAVIEST}")
    assert "crates__by_weight" in found
    assert "TEMP B-TREE" not in found
    assert "Sort" not in found


HEAVIEST = "ORDER BY weight DESC, id DESC LIMIT 3"


def plan(url: str, sql: str) -> str:
    """How the database would find it in a table of many rows."""
    rows: Sequence[tuple[object, ...]]
    if url.startswith("postgresql"):
        with psycopg.connect(url) as server:
            server.execute("SET enable_sort = off")
            rows = server.execute(f"EXPLAIN {sql}".encode()).fetchall()
    else:
        import sqlite3

        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            rows = file.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
    return " ".join(str(row[-1]) for row in rows)


def test_an_old_process_that_starts_late_takes_nothing_from_the_new_one(
    opener: Opener, url: str
) -> None:
    new = opener(After)
    insert(new, After(id="a", seal="red"))
    opener(Before)
    assert {"by_seal", "seal"} <= indexes(new, url)
    with pytest.raises(UniqueConflict):
        insert(new, After(id="b", seal="red"))


def test_the_old_release_may_come_back_after_the_end(opener: Opener, url: str) -> None:
    new = opener(After)
    insert(new, After(id="a", place="dock", seal="red"))
    finish(new)
    old = opener(Before)
    assert {"by_place", "place"} <= indexes(old, url)
    assert ids(old, Before, "by_place", "dock") == ["a"]


def test_a_new_key_that_the_old_release_does_not_know_refuses_it_by_no_name_of_its_own(
    opener: Opener,
) -> None:
    """So a key over what was there comes a release after the code that keeps it."""

    @attrs.frozen(kw_only=True)
    class Heavy(Before):
        collection: ClassVar[Collection] = attrs.evolve(
            Before.collection,
            uniques=(*Before.collection.uniques, Unique("weight", ("weight",))),
        )

    old = opener(Before)
    opener(Heavy)
    insert(old, Before(id="a", weight=1))
    with pytest.raises(UniqueConflict) as refused:
        insert(old, Before(id="b", weight=1))
    assert refused.value.unique not in {item.name for item in Before.collection.uniques}


def test_what_the_old_release_wrote_meanwhile_is_found_when_it_has_ended(opener: Opener) -> None:
    """Its new rows have none of the new columns, and in those that it rewrote they are stale."""
    old, new = opener(Before), opener(After)
    insert(new, After(id="kept", weight=3, seal="red"), After(id="same", weight=1, seal="blue"))
    insert(old, Before(id="old", weight=2))
    old.transact(HERE, rewrite_as_old)
    finish(new)
    finish(new)
    assert ids(new, After, "by_seal", "red") == ["kept"]
    assert ids(new, After, "by_seal", "blue") == ["same"]
    assert ids(new, After, "by_weight") == ["same", "old", "kept"]
    assert finish(new) == 0


def rewrite_as_old(tx: Transaction) -> None:
    known = tx.get(Before, "kept", for_update=True)
    assert known is not None
    tx.replace(attrs.evolve(known, weight=9))
    again = tx.get(Before, "kept", for_update=True)
    assert again is not None
    tx.replace(attrs.evolve(again, weight=3))


def test_two_rows_that_break_a_new_key_are_reported_when_the_old_release_has_ended(
    opener: Opener,
) -> None:
    """The old one rewrites what it does not know, so it cannot make two of one seal; the new one
    is refused as it tries."""
    old, new = opener(Before), opener(After)
    insert(new, After(id="a", seal="red"))
    old.transact(HERE, lambda tx: tx.replace(known(tx, "a")))
    with pytest.raises(UniqueConflict):
        insert(new, After(id="b", seal="red"))


def known(tx: Transaction, id: str) -> Before:
    found = tx.get(Before, id, for_update=True)
    assert found is not None
    return attrs.evolve(found, weight=found.weight + 1)
