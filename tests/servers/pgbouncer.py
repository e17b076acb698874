"""A PgBouncer of one's own before a cluster, in transaction mode, to be killed and started again.

Its settings are those of docs/how-to/pgbouncer.md; so are those of the role that connects.
Its tests share a database and empty it: a search path would be a setting in the startup packet.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Self
from urllib.parse import quote

import psycopg

from payments_core.storage.postgres.adapter import PostgresStorage, open_url
from payments_core.storage.records import Record
from tests.servers.cluster import HASTY, Cluster
from tests.servers.programs import NoServer
from tests.servers.unprivileged import new_folder, own, server_user

ROLE = "pooled"
PORT = 6432
START_S = 20
UNTRACKED = "settings=off&prepare=off"
"""What the URL says for a PgBouncer that tracks no prepared statements: before 1.21, or as set."""

ROLE_SETTINGS = {
    "lock_timeout": "2s",
    "statement_timeout": "8s",
    "idle_in_transaction_session_timeout": "60s",
    "jit": "off",
}
POOLER_SETTINGS = {
    "pool_mode": "transaction",
    "auth_type": "scram-sha-256",
    "default_pool_size": "20",
    "max_client_conn": "500",
    "query_wait_timeout": "5",
    "server_login_retry": "1",
}


class NoPgBouncer(NoServer):
    """Why there is no PgBouncer to test with."""


class Pooler:
    """PgBouncer in a temporary folder, before one cluster; ended with the process that made it."""

    def __init__(self, cluster: Cluster, *, settings: Mapping[str, str] | None = None) -> None:
        self._program = _program()
        self.folder = new_folder("pb")
        self._cluster = cluster
        self._settings = {**POOLER_SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        _make_role(cluster)
        self._write_files()
        atexit.register(self.remove)

    @property
    def log(self) -> str:
        """What PgBouncer has written to its log."""
        return (self.folder / "log").read_text()

    def url(self, database: str, query: str = UNTRACKED) -> str:
        """Where clients connect; `query` has our own parameters of the URL."""
        place = f"host={quote(str(self.folder))}&port={PORT}"
        return f"postgresql://{ROLE}:{ROLE}@/{database}?{place}{'&' * bool(query)}{query}"

    def start(self) -> Self:
        """Start it, and return when it takes connections."""
        user = server_user()
        self._process = subprocess.Popen(
            [self._program, "-q", str(self.folder / "pgbouncer.ini")],
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + START_S
        while not (self.folder / f".s.PGSQL.{PORT}").exists():
            if self._process.poll() is not None or time.monotonic() > until:
                raise NoPgBouncer(f"PgBouncer did not start: {self.log[-2000:]}")
            time.sleep(0.01)
        return self

    def kill(self) -> None:
        """SIGKILL, and leave it ready for `start()`."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """End it and remove its folder."""
        if os.getpid() != self._owner:
            return  # a fork's end is not ours
        atexit.unregister(self.remove)
        self._end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None
        (self.folder / f".s.PGSQL.{PORT}").unlink(missing_ok=True)
        (self.folder / "pid").unlink(missing_ok=True)

    def _write_files(self) -> None:
        place = f"host={self._cluster.folder} port={self._cluster.port}"
        files = {
            "logfile": "log",
            "pidfile": "pid",
            "auth_file": "userlist.txt",
            "unix_socket_dir": ".",
        }
        settings = {
            "listen_port": str(PORT),
            **self._settings,
            **{name: str(self.folder / file) for name, file in files.items()},
        }
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        self._write("pgbouncer.ini", f"[databases]\n* = {place}\n[pgbouncer]\n{lines}")
        self._write("userlist.txt", f'"{ROLE}" "{ROLE}"\n')
        self._write("log", "")

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        own(self.folder / name)


class MigratedBesideStorage(PostgresStorage):
    """A storage behind a pooler, whose `migrate` goes to the server itself, as the page says."""

    def __init__(self, url: str, direct: str, record_types: Sequence[type[Record]]) -> None:
        super().__init__(url, record_types)
        self._direct = direct

    def migrate(self) -> None:
        direct = open_url(self._direct, self._record_types)
        try:
            direct.migrate()
        finally:
            direct.close()
        super().migrate()


def open_beside(urls: str, record_types: Sequence[type[Record]]) -> MigratedBesideStorage:
    """`URL of the pooler|URL of the server`."""
    pooled, direct = urls.split("|")
    return MigratedBesideStorage(pooled, direct, record_types)


@cache
def shared_cluster() -> Cluster:
    """The cluster behind the poolers of this process."""
    return Cluster(settings=HASTY).start()


def fresh_database(cluster: Cluster) -> str:
    """The name of a new, empty database that the role owns."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER {ROLE}".encode())
    return name


def empty_database(cluster: Cluster, name: str) -> None:
    """Drop all tables of a database that `fresh_database` made."""
    with psycopg.connect(cluster.url(name), autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute(f"CREATE SCHEMA public AUTHORIZATION {ROLE}".encode())


def direct_url(cluster: Cluster, database: str) -> str:
    """The URL of the server itself, for the same role."""
    return cluster.url(database).replace("//tests@", f"//{ROLE}@")


def _make_role(cluster: Cluster) -> None:
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        sql = "SELECT 1 FROM pg_roles WHERE rolname = %s"
        if connection.execute(sql, (ROLE,)).fetchone() is None:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}'".encode())
        for name, value in ROLE_SETTINGS.items():
            connection.execute(f"ALTER ROLE {ROLE} SET {name} = '{value}'".encode())


def _program() -> str:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))
    found = shutil.which("pgbouncer", path=path)
    if found is None:
        raise NoPgBouncer("there is no pgbouncer on the PATH or in /usr/sbin")
    return found
