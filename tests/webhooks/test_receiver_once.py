"""Applying an event once, on a real SQLite and PostgreSQL: repeated, together, interrupted."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import psycopg
import pytest

from payments_core.webhooks import process_once
from payments_core.webhooks.receiver import Paramstyle, table_sql
from tests import servers

WAIT_S = 20

# A receiver that dies after its effect and before its commit.
CRASHING = """
import os, signal, sys
from payments_core.webhooks import process_once
from tests.webhooks.test_receiver_once import connected, inserted

connection = connected(sys.argv[1])
def effect():
    inserted(connection)
    os.kill(os.getpid(), signal.SIGKILL)
process_once(connection, "evt_1", effect, paramstyle=sys.argv[2])
"""


def connected(place: str, **options: Any) -> Any:
    if place.startswith("postgresql:"):
        return psycopg.connect(place, **options)
    return sqlite3.connect(place, timeout=WAIT_S, **options)


def inserted(connection: Any) -> None:
    connection.execute("INSERT INTO orders VALUES ('1')")


@attrs.frozen
class Shop:
    """A receiver's database, with the orders that events have paid."""

    place: str
    paramstyle: Paramstyle

    def connect(self, **options: Any) -> Any:
        return connected(self.place, **options)

    def process(self, connection: Any, effect: Callable[[], object], id: str = "evt_1") -> bool:
        return process_once(connection, id, effect, paramstyle=self.paramstyle)

    def counts(self) -> tuple[int, int]:
        """The orders, and the events recorded, as another connection sees them."""
        connection = self.connect()
        found = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("orders", "webhook_events_applied")
        ]
        connection.close()
        return found[0], found[1]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    schema = ""
    if request.param == "postgres":
        schema = servers.fresh_schema(servers.postgres_or_skip())
        made = Shop(schema, "format")
    else:
        made = Shop(str(tmp_path / "shop.db"), "qmark")
    connection = made.connect()
    connection.execute(table_sql())
    connection.execute(table_sql())
    connection.execute("CREATE TABLE orders (id TEXT)")
    connection.commit()
    connection.close()
    yield made
    if schema:
        servers.drop_schema(schema)


def test_an_event_is_applied_once(shop: Shop) -> None:
    connection = shop.connect()
    effect = lambda: inserted(connection)  # noqa: E731
    assert shop.process(connection, effect) is True
    assert shop.process(connection, effect) is False
    assert shop.process(connection, effect, "evt_2") is True
    connection.close()
    assert shop.counts() == (2, 2)


def test_an_effect_that_fails_leaves_nothing_and_can_come_again(shop: Shop) -> None:
    connection = shop.connect()

    def failing() -> None:
        inserted(connection)
        raise KeyError("no such order")

    with pytest.raises(KeyError, match="no such order"):
        shop.process(connection, failing)
    assert shop.counts() == (0, 0)
    assert shop.process(connection, lambda: inserted(connection))
    connection.close()
    assert shop.counts() == (1, 1)


def test_an_effect_whose_statement_the_database_refuses_leaves_nothing(shop: Shop) -> None:
    connection = shop.connect()

    def failing() -> None:
        inserted(connection)
        connection.execute("INSERT INTO no_such_table VALUES (1)")

    with pytest.raises((sqlite3.OperationalError, psycopg.errors.UndefinedTable)):
        shop.process(connection, failing)
    assert shop.process(connection, lambda: inserted(connection))  # the connection still works
    connection.close()
    assert shop.counts() == (1, 1)


def test_a_crash_between_effect_and_commit_leaves_nothing_and_can_come_again(shop: Shop) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, shop.place, shop.paramstyle],
        cwd=Path(__file__).parents[2], check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    connection = shop.connect()
    assert shop.process(connection, lambda: inserted(connection))
    connection.close()
    assert shop.counts() == (1, 1)


def test_of_many_deliveries_at_once_one_applies(shop: Shop) -> None:
    applied: list[bool] = []
    together = threading.Barrier(8)

    def receive() -> None:
        connection = shop.connect()
        together.wait(WAIT_S)
        applied.append(shop.process(connection, lambda: inserted(connection)))
        connection.close()

    run(*[receive] * 8)
    assert sorted(applied) == [False] * 7 + [True]
    assert shop.counts() == (1, 1)


@pytest.mark.parametrize("first_fails", [False, True])
def test_the_second_of_two_at_once_waits_for_what_becomes_of_the_first(
    shop: Shop, first_fails: bool
) -> None:
    applying, go_on = threading.Event(), threading.Event()
    outcomes: dict[str, object] = {}

    def first() -> None:
        connection = shop.connect()

        def effect() -> None:
            inserted(connection)
            applying.set()
            assert go_on.wait(WAIT_S)
            if first_fails:
                raise KeyError("no such order")

        try:
            outcomes["first"] = shop.process(connection, effect)
        except KeyError:
            outcomes["first"] = "failed"
        connection.close()

    def second() -> None:
        assert applying.wait(WAIT_S)
        connection = shop.connect()
        late = threading.Timer(0.2, go_on.set)  # while the second is at its insert
        late.start()
        outcomes["second"] = shop.process(connection, lambda: inserted(connection))
        assert go_on.is_set()
        connection.close()
        late.join()

    run(first, second)
    assert outcomes == {"first": "failed" if first_fails else True, "second": first_fails}
    assert shop.counts() == (1, 1)


def run(*targets: Callable[[], None]) -> None:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


SQLITE_OPTIONS: list[dict[str, Any]] = [
    {"isolation_level": ""}, {"isolation_level": None}, {"isolation_level": "IMMEDIATE"},
]  # fmt: skip
if sys.version_info >= (3, 12):
    SQLITE_OPTIONS += [{"autocommit": True}, {"autocommit": False}]


@pytest.mark.parametrize("options", SQLITE_OPTIONS, ids=str)
def test_every_way_of_sqlites_transactions_commits_and_undoes(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    shop = Shop(str(tmp_path / "shop.db"), "qmark")
    connection = shop.connect(**options)
    connection.execute(table_sql())
    connection.execute("CREATE TABLE orders (id TEXT)")
    connection.commit()

    def failing() -> None:
        inserted(connection)
        raise KeyError("no such order")

    assert shop.process(connection, lambda: inserted(connection))
    with pytest.raises(KeyError):
        shop.process(connection, failing, "evt_2")
    assert not shop.process(connection, lambda: inserted(connection))
    connection.close()
    assert shop.counts() == (1, 1)


@pytest.mark.parametrize(
    "options", [it for it in SQLITE_OPTIONS if it != {"autocommit": False}], ids=str
)
def test_a_transaction_that_is_under_way_is_neither_joined_nor_undone(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """A handler that shares a connection would undo the other's effect with its own."""
    shop = Shop(str(tmp_path / "shop.db"), "qmark")
    connection = shop.connect(**options)
    connection.execute(table_sql())
    connection.execute("CREATE TABLE orders (id TEXT)")
    connection.commit()
    connection.execute("BEGIN")
    inserted(connection)
    with pytest.raises(ValueError, match="in progress"):
        shop.process(connection, lambda: inserted(connection))
    connection.execute("COMMIT")
    connection.close()
    assert shop.counts() == (1, 0)


@pytest.mark.postgres
def test_a_postgresql_connection_that_commits_by_itself_is_refused() -> None:
    schema = servers.fresh_schema(servers.postgres_or_skip())
    with psycopg.connect(schema, autocommit=True) as connection:
        connection.execute(table_sql().encode())
        with pytest.raises(ValueError, match="autocommit"):
            process_once(connection, "evt_1", lambda: None, paramstyle="format")
        counted = connection.execute("SELECT count(*) FROM webhook_events_applied").fetchone()
        assert counted == (0,)
    servers.drop_schema(schema)


@pytest.mark.postgres
def test_a_pipeline_that_cannot_say_what_it_inserted_loses_no_event() -> None:
    schema = servers.fresh_schema(servers.postgres_or_skip())
    applied: list[str] = []
    with psycopg.connect(schema) as connection:
        connection.execute(table_sql().encode())
        connection.commit()
        with connection.pipeline(), pytest.raises(ValueError, match="how many rows"):
            process_once(connection, "evt_1", lambda: applied.append("early"), paramstyle="format")
        assert process_once(
            connection, "evt_1", lambda: applied.append("once"), paramstyle="format"
        )
    assert applied == ["once"]
    servers.drop_schema(schema)


def test_a_table_has_a_plain_name() -> None:
    assert "mine" in table_sql("mine")
    with pytest.raises(ValueError, match="identifier"):
        table_sql("x; DROP TABLE orders")
    with pytest.raises(ValueError, match="identifier"):
        process_once(sqlite3.connect(":memory:"), "evt_1", lambda: None, table="x y")
