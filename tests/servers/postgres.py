"""The PostgreSQLs that tests share: one of each version, started when first asked for.

`PAYMENTS_TEST_POSTGRES` names a database to use instead, or says `citus`.
`PAYMENTS_TEST_POSTGRES_MAJOR` chooses a version among those that are there. Each test gets a schema
of its own.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.servers.citus import shared_citus
from tests.servers.cluster import HASTY, Cluster
from tests.servers.programs import NoPostgres, chosen_major, postgres_by_major, postgres_programs

OVERRIDE = "PAYMENTS_TEST_POSTGRES"
SUPPORTED = (15, 18)
"""The oldest and the newest version that the storage is tested on."""


def postgres_or_skip(major: int | None = None) -> str:
    """The URL of a database for tests; skips the test where there can be none.

    Who named a server or a version wants no test skipped: then it fails.
    """
    try:
        return postgres_url(major)
    except NoPostgres as reason:
        if os.environ.get(OVERRIDE) or chosen_major():
            raise
        pytest.skip(str(reason))


def postgres_url(major: int | None = None) -> str:
    """The URL of a database for tests, of one major version or of the preferred one."""
    given = _given_url()
    if not given:
        return _shared_cluster(postgres_programs(major).major).url()
    wanted = major or chosen_major()
    if wanted and wanted != major_of(given):
        raise NoPostgres(f"{OVERRIDE} is a PostgreSQL {major_of(given)}, not {wanted}")
    return given


def majors_to_test() -> tuple[int, ...]:
    """The versions that a suite runs on, whether they are there or not.

    The chosen one, or the given server's, or else those supported and the preferred one.
    """
    given, chosen = _given_url(), chosen_major()
    if chosen:
        return (chosen,)
    if given:
        return (major_of(given),)
    return tuple(sorted({*SUPPORTED, *list(postgres_by_major())[:1]}))


@cache
def major_of(url: str) -> int:
    """The version of a server that runs."""
    with psycopg.connect(url) as connection:
        return connection.info.server_version // 10_000


def fresh_schema(url: str) -> str:
    """The same database with an empty schema as its search path."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
    sign = "&" if "?" in url else "?"
    return f"{url}{sign}options=-csearch_path%3D{name}"


@contextmanager
def fresh_database(url: str) -> Iterator[str]:
    """An empty database of the same server, for a program that makes its own schemas."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield make_conninfo(url, dbname=name)
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def drop_schema(url: str) -> None:
    """Drop a schema that `fresh_schema` made."""
    name = url.rpartition("search_path%3D")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(f'DROP SCHEMA "{name}" CASCADE'.encode())


def _given_url() -> str | None:
    given = os.environ.get(OVERRIDE)
    return shared_citus().url() if given == "citus" else given


@cache
def _shared_cluster(major: int) -> Cluster:
    return Cluster(major, settings=HASTY).start()
