"""A collection that takes over the rows of another one, in either database."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, ClassVar

import attrs
import psycopg
import pytest

from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.port import Storage
from payments_core.storage.records import Collection, Document, Index, Record
from payments_core.storage_loader import open_storage
from tests.servers import drop_schema, fresh_schema, postgres_or_skip

STORAGES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
HERE, THERE = "env_a", "env_b"
ROWS = 1_200
"""More than two pages."""


@attrs.frozen(kw_only=True)
class Crate(Record):
    """As an earlier release had them, in a collection of their own."""

    collection: ClassVar[Collection] = Collection("crates")

    weight: int = 0


@attrs.frozen(kw_only=True)
class PlainBox(Record):
    """What the earlier release had beside them."""

    collection: ClassVar[Collection] = Collection("boxes")

    size: int = 0


def _from_crate(document: Document) -> Document:
    rest = {name: value for name, value in document.items() if name != "weight"}
    return {**rest, "material": "wood", "size": document.get("weight", "?") * 10, "schema": 2}


@attrs.frozen(kw_only=True)
class Box(Record):
    """One collection for both."""

    collection: ClassVar[Collection] = Collection(
        "boxes",
        columns={"size": int},
        indexes=(Index("by_size", order=("size",)),),
        schema=2,
        upgrades={1: lambda document: {**document, "material": "paper"}},
        takes_over={"crates": _from_crate},
    )

    material: str
    size: int = 0


@pytest.fixture(params=STORAGES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/data.db"
        return
    made = fresh_schema(postgres_or_skip())
    yield made
    drop_schema(made)


Opener = Callable[..., Storage]


@pytest.fixture
def opener(url: str) -> Iterator[Opener]:
    """Starts a process of a release, as far as its storage is concerned."""
    with ExitStack() as stack:

        def start(*kinds: type[Record]) -> Storage:
            storage = stack.enter_context(closing(open_storage(url, kinds)))
            storage.migrate()
            return storage

        yield start


def execute(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Run a statement beside the storage."""
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as server:
            done = server.execute(sql.encode())
            return done.fetchall() if done.description else []
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
        return file.execute(sql).fetchall()


def fill(storage: Storage) -> None:
    """Crates in two partitions, one of them changed, and a box."""
    storage.transact(
        HERE, lambda tx: [tx.insert(Crate(id=f"c{number:04}", weight=1)) for number in range(ROWS)]
    )
    storage.transact(THERE, lambda tx: tx.insert(Crate(id="c0000", weight=7)))
    storage.transact(HERE, lambda tx: tx.insert(PlainBox(id="b", size=5)))
    storage.transact(HERE, lambda tx: tx.replace(Crate(id="c0001", version=1, schema=1, weight=2)))


def read(storage: Storage, partition: str, id: str) -> Box | None:
    return storage.read(partition, lambda snapshot: snapshot.get(Box, id))


def require_all_moved(storage: Storage, url: str) -> None:
    """Every row is a box, at its version and with its columns, and the crates are gone."""
    assert execute(url, "SELECT count(*) FROM boxes WHERE size IS NOT NULL") == [(ROWS + 2,)]
    assert read(storage, HERE, "c0000") == Box(
        id="c0000", version=1, schema=2, material="wood", size=10
    )
    assert read(storage, HERE, "c0001") == Box(
        id="c0001", version=2, schema=2, material="wood", size=20
    )
    other = read(storage, THERE, "c0000")
    assert other is not None
    assert other.size == 70
    box = read(storage, HERE, "b")
    assert box is not None
    assert (box.material, box.size) == ("paper", 5)
    largest = storage.read(HERE, lambda snapshot: snapshot.find(Box, "by_size", limit=2))
    assert [found.id for found in largest.records] == ["b", "c0000"]
    assert execute(url, "SELECT * FROM crates") == [(1,)]


def test_every_row_becomes_one_of_the_collection_that_takes_over(opener: Opener, url: str) -> None:
    fill(opener(PlainBox, Crate))
    require_all_moved(opener(Box), url)
    require_all_moved(opener(Box), url)


def test_a_row_that_cannot_be_read_is_moved_as_it_is(opener: Opener, url: str) -> None:
    earlier = opener(PlainBox, Crate)
    for id in ("a", "b", "c"):
        earlier.transact(HERE, lambda tx, id=id: tx.insert(Crate(id=id, weight=1)))  # type: ignore[misc]
    execute(url, "UPDATE crates SET body = '{' WHERE id = 'a'")
    execute(url, """UPDATE crates SET body = '{"id":"b","schema":1}' WHERE id = 'b'""")
    storage = opener(Box)
    for id in ("a", "b"):
        with pytest.raises(UnreadableDocument):
            read(storage, HERE, id)
    kept = execute(url, "SELECT id, version, body, size FROM boxes ORDER BY id")
    assert kept[0] == ("a", 1, "{", None)
    assert (kept[1][1], kept[1][3]) == (1, None)
    assert '"material":"wood"' in kept[1][2]
    assert read(storage, HERE, "c") is not None


def test_a_process_that_still_runs_cannot_write_where_nobody_reads(opener: Opener) -> None:
    earlier = opener(PlainBox, Crate)
    opener(Box)
    with pytest.raises(Exception, match="crates"):
        earlier.transact(HERE, lambda tx: tx.insert(Crate(id="late")))


@pytest.mark.parametrize("is_fresh", [False, True])
def test_a_process_of_the_earlier_release_cannot_start_again(
    opener: Opener, url: str, is_fresh: bool
) -> None:
    if not is_fresh:
        fill(opener(PlainBox, Crate))
    opener(Box)
    for sql in (
        "CREATE TABLE crates (partition text, id text, version bigint, body text)",
        "INSERT INTO crates (partition, id, version, body) VALUES ('p', 'late', 1, '{}')",
        "SELECT body FROM crates WHERE partition = 'p' AND id = 'c0000'",
    ):
        with pytest.raises((psycopg.Error, sqlite3.Error)):
            execute(url, sql)
    with pytest.raises(Exception, match="crates"):
        opener(PlainBox, Crate)
    boxes = [(0 if is_fresh else ROWS + 2,)]
    assert execute(url, "SELECT count(*) FROM boxes") == boxes
    assert execute(url, "SELECT * FROM crates") == [(1,)]
    opener(Box)
    assert execute(url, "SELECT count(*) FROM boxes") == boxes


def test_rows_that_an_earlier_release_wrote_after_a_takeover_without_a_view_move_too(
    opener: Opener, url: str
) -> None:
    opener(Box)
    execute(url, "DROP VIEW crates")
    opener(Crate).transact(HERE, lambda tx: tx.insert(Crate(id="late", weight=1)))
    moved = read(opener(Box), HERE, "late")
    assert moved is not None
    assert moved.size == 10
    assert execute(url, "SELECT * FROM crates") == [(1,)]


KILLED = """
import os, signal, sys
from payments_core.storage import takeover
from payments_core.storage_loader import open_storage
from tests.storage.test_takeover import Box

calls = iter(range(700))

def convert(*_, real=takeover.convert_row):
    if next(calls, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*_)

import payments_core.storage.postgres.takeover, payments_core.storage.sqlite.schema
payments_core.storage.postgres.takeover.convert_row = convert
payments_core.storage.sqlite.schema.convert_row = convert
open_storage(sys.argv[1], [Box]).migrate()
"""


def test_a_takeover_killed_in_the_middle_is_done_by_the_next_process(
    opener: Opener, url: str
) -> None:
    fill(opener(PlainBox, Crate))
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, url],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=60,
    )
    assert ended.returncode == -signal.SIGKILL
    assert execute(url, "SELECT count(*) FROM crates") == [(ROWS + 1,)]
    assert execute(url, "SELECT count(*) FROM boxes") == [(1,)]
    require_all_moved(opener(Box), url)
