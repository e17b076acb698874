"""Real servers for tests: a private PostgreSQL cluster, started once and ended with the tests.

`PAYMENTS_TEST_POSTGRES` names a database to use instead. Each test gets a schema of its own.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from functools import cache
from pathlib import Path

import psycopg
import pytest

OVERRIDE = "PAYMENTS_TEST_POSTGRES"
START_S = 60


class NoPostgres(Exception):
    """Why there is no PostgreSQL to test with."""


def postgres_or_skip() -> str:
    """The URL of a database for tests; skips the test where there can be none."""
    try:
        return postgres_url()
    except NoPostgres as reason:
        pytest.skip(str(reason))


@cache
def postgres_url() -> str:
    """The URL of a database for tests."""
    return os.environ.get(OVERRIDE) or _started_cluster()


def fresh_schema(url: str) -> str:
    """The same database with an empty schema as its search path."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
    sign = "&" if "?" in url else "?"
    return f"{url}{sign}options=-csearch_path%3D{name}"


def drop_schema(url: str) -> None:
    """Drop a schema that `fresh_schema` made."""
    name = url.rpartition("search_path%3D")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(f'DROP SCHEMA "{name}" CASCADE'.encode())


def _started_cluster() -> str:
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    root = Path(tempfile.mkdtemp(prefix="pg"))  # short: a socket's path holds 107 bytes
    data = root / "data"
    data.mkdir(mode=0o700)
    user = _unprivileged()
    if user:
        os.chown(root, user.pw_uid, user.pw_gid)
        os.chown(data, user.pw_uid, user.pw_gid)
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    _run(user, initdb, "-D", data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-sync")
    with (data / "postgresql.conf").open("a") as settings:
        # Nothing here survives the machine, so nothing waits for the disk; crashes of the
        # client, which the tests do make, lose nothing by that.
        settings.write(
            "listen_addresses = ''\n"
            f"unix_socket_directories = '{root}'\n"
            "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n"
            "deadlock_timeout = 50ms\nmax_connections = 200\nshared_buffers = 64MB\n"
        )
    log = data / "log"
    _run(user, pg_ctl, "start", "-w", "-t", str(START_S), "-D", data, "-l", log)
    atexit.register(_run, user, pg_ctl, "stop", "-m", "immediate", "-D", data)
    return f"postgresql://tests@/postgres?host={root}"


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        places = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
        found = max(map(str, places), default=None)
    if found is None:
        raise NoPostgres(f"{name} is neither on the PATH nor in /usr/lib/postgresql/*/bin")
    return found


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom to run the server as: it refuses to be root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoPostgres("PostgreSQL refuses to run as root, and there is no other user")


def _run(user: pwd.struct_passwd | None, *command: str | Path) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        user=user.pw_uid if user else None,
        group=user.pw_gid if user else None,
        extra_groups=[] if user else None,
        cwd="/",
        stdout=subprocess.PIPE if command[0].endswith("initdb") else subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    if done.returncode != 0:
        raise NoPostgres(f"{command[0]} failed: {done.stdout}")
