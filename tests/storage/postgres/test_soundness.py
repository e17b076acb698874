"""Databases that are set up so that something would be lost, or not be found."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from payments_core.conformance.storage.harness import PARTITION, fetch
from payments_core.conformance.storage.records import RECORD_TYPES, Mark
from payments_core.storage.port import StorageError
from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.records import Record

pytestmark = pytest.mark.postgres


class Later(Record):
    collection = Mark.collection.__class__("suite_later")


@pytest.fixture
def other_schema(url: str) -> Iterator[str]:
    """A schema of the same database, empty."""
    name = url.rpartition("%3D")[2] + "_in_front"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
        yield name
        connection.execute(f'DROP SCHEMA "{name}" CASCADE'.encode())


def test_a_schema_that_came_in_front_gets_no_tables(
    url: str, storage: PostgresStorage, other_schema: str
) -> None:
    """As one does that is named like the role: the search path begins with it by default."""
    storage.transact(PARTITION, lambda tx: tx.insert(Mark(id="m")))
    own = url.rpartition("%3D")[2]
    shadowed = url.replace(own, f"{other_schema},{own}")
    again = PostgresStorage(shadowed, RECORD_TYPES)
    again.migrate()  # which has nothing to do
    assert fetch(again, Mark, "m") is not None
    (fault,) = [one for one in again.config_errors() if "schema" in one]
    assert f"search_path%3D{own}" in fault
    again.close()
    newer = PostgresStorage(shadowed, [*RECORD_TYPES, Later])
    with pytest.raises(StorageError, match=f"would be made in {other_schema}"):
        newer.migrate()
    assert fetch(newer, Mark, "m") is not None
    newer.close()


def test_a_search_path_to_nothing_is_refused(url: str) -> None:
    nowhere = PostgresStorage(url.replace(url.rpartition("%3D")[2], "nowhere"), RECORD_TYPES)
    with pytest.raises(StorageError, match="no schema in the search path"):
        nowhere.migrate()
    nowhere.close()


def test_a_database_of_another_encoding_is_refused(url: str) -> None:
    name = url.rpartition("%3D")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'".encode()
        )
        parts = urlsplit(url)
        latin = PostgresStorage(
            parts._replace(path=f"/{name}", query=_without_options(url)).geturl(), RECORD_TYPES
        )
        try:
            with pytest.raises(
                StorageError, match="encoding of the database is LATIN1; it must be UTF8"
            ):
                latin.migrate()
        finally:
            latin.close()
            connection.execute(f"DROP DATABASE {name}".encode())


def test_the_client_writes_utf8_whatever_its_surroundings_say(
    url: str, storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    other = PostgresStorage(url, RECORD_TYPES)
    other.transact(PARTITION, lambda tx: tx.insert(Mark(id="№é")))
    assert fetch(storage, Mark, "№é") is not None
    other.close()


def test_settings_that_lose_what_was_answered_are_reported(
    url: str, storage: PostgresStorage
) -> None:
    unsound = PostgresStorage(f"{url}%20-csynchronous_commit%3Doff", RECORD_TYPES)
    assert any("synchronous_commit is off" in fault for fault in unsound.config_errors())
    unsound.close()
    assert all("is off: a crash" in doubt for doubt in storage.config_warnings())
    sound = PostgresStorage(f"{url}%20-csynchronous_commit%3Don", RECORD_TYPES)
    assert not any("synchronous_commit" in fault for fault in sound.config_errors())
    sound.close()


def _without_options(url: str) -> str:
    parts = urlsplit(url).query.split("&")
    return "&".join(part for part in parts if not part.startswith("options="))
