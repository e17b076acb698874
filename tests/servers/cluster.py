"""A PostgreSQL of one's own, to be stopped, killed, copied and promoted.

    from tests.servers.cluster import Cluster

    with Cluster(tcp=True) as primary, Cluster.standby_of(primary) as standby:
        ...                      # commits at `primary.url()` wait for the standby's disk
        primary.kill()
        standby.promote()
        ...                      # and are all at `standby.url()`
        primary.follow(standby)  # the other way round

Tests that only need a database take one of `tests.servers.postgres`, which they share.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

import psycopg

from tests.servers.ports import free_port
from tests.servers.programs import NoPostgres, postgres_programs
from tests.servers.unprivileged import new_folder, own, run, usable

START_S = 60
USER = "tests"
SOCKET_PORT = 5432

ORDINARY = {"max_connections": "200", "shared_buffers": "64MB", "wal_keep_size": "256MB"}
"""What every cluster has beside PostgreSQL's own settings: a standby may fall behind a little."""

HASTY = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "deadlock_timeout": "50ms",
}
"""Nothing waits for the disk. A crash of a client loses nothing by that, one of the server may."""

StopMode = Literal["smart", "fast", "immediate"]


class Cluster:
    """A private cluster in a temporary folder, with its superuser `tests`.

    Made when it is first started; ended and removed by `remove()`, at the end of a `with`, or
    with the process that made it. What cannot be is a `NoPostgres`, with the program's own words.
    When root makes it, it runs as the user `postgres`, or `nobody`.
    """

    def __init__(
        self,
        major: int | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        tcp: bool = False,
    ) -> None:
        """`settings` are PostgreSQL's own: `{"fsync": "off", "synchronous_commit": "on"}`.

        Unless they say otherwise, commits wait for the disk, as they do by default. `tcp` lets
        it listen on a free port of the loopback, too, where a password is asked for: the socket
        lies in a folder that nobody else can enter, a port is there for all.
        """
        self.programs = usable(postgres_programs(major))
        self.folder = new_folder("pg")
        self.tcp = tcp
        self.port = free_port() if tcp else SOCKET_PORT
        self.settings = {**ORDINARY, **(settings or {})}
        self._password = secrets.token_hex()
        self._owner = os.getpid()
        atexit.register(self.remove)

    @classmethod
    def standby_of(cls, primary: Cluster, *, synchronous: bool = True) -> Self:
        """A new replica of the same version with the same settings, as `follow` makes it."""
        made = cls(primary.programs.major, settings=primary.settings, tcp=primary.tcp)
        made.follow(primary, synchronous=synchronous)
        return made

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The file that the server writes its log to, over all its restarts."""
        return self.folder / "log"

    @property
    def pid(self) -> int | None:
        """The postmaster's, or None if there is none or it is dead."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n")[0])
        except (FileNotFoundError, ValueError):
            return None
        return pid if _is_alive(pid) and _works_in(pid, self.data) else None

    def url(self, database: str = "postgres", *, tcp: bool = False) -> str:
        """Where clients connect: through its socket, or by `tcp` if it was made so.

        It stays the same over restarts. Only this process's user and root can use the socket's
        where root made the cluster; the other has a password in it, so log neither.
        """
        if not tcp:
            place = f"host={quote(str(self.folder))}&port={self.port}"
            return f"postgresql://{USER}@/{database}?{place}"
        if not self.tcp:
            raise NoPostgres("this cluster does not listen on a port: make it with tcp=True")
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> Self:
        """Make it if it is new, start it, and return when it takes connections.

        After `kill()` or an immediate stop that is when it has recovered. A server that runs
        is left alone.
        """
        if self.pid is not None:
            return self
        if not self.data.exists():
            self._make()
        self._write_settings()
        self._pg_ctl("start", "-w", "-t", str(START_S), "-l", str(self.log))
        return self

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop it and return when it has stopped.

        `smart` waits for the clients to leave, `fast` ends their transactions, `immediate` ends
        its processes without a word to anyone: the next start recovers from the log of writes.
        """
        if self.pid is not None:
            self._pg_ctl("stop", "-w", "-t", str(START_S), "-m", mode)

    def restart(self, mode: StopMode = "immediate") -> None:
        """Stop it as `stop` does, and start it at the same place."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """SIGKILL to all its processes at once, and leave it ready for `start()`.

        It is what a power cut does to the processes, but what they wrote stays with the system:
        `fsync = off` can lose nothing here. Reads /proc.
        """
        pid = self.pid
        if pid is None:
            return
        os.kill(pid, signal.SIGSTOP)  # so that it starts no more of them meanwhile
        processes = [*_children(pid), pid]
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        _wait(lambda: not any(map(_is_alive, processes)), "its processes to die")
        # A dead process keeps its number until its parent looks, and a live one may get it.
        # Then the next server would think that this one still runs.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for lock in self.folder.glob(".s.PGSQL.*"):
            lock.unlink()

    def configure(self, **settings: str) -> None:
        """Change settings, of a server that runs too where PostgreSQL can; else `restart()`."""
        self.settings.update(settings)
        if self.pid is not None:
            self._write_settings()
            self._pg_ctl("reload")

    def follow(self, primary: Cluster, *, synchronous: bool = True) -> None:
        """Become a streaming replica of a running primary, by `pg_basebackup`, and start.

        What this cluster had before is gone, so it is also how a primary that failed comes back.
        Returns when it streams. If `synchronous`, commits at the primary wait from then on for
        this one alone, as its `synchronous_commit` says ("on": until it is on both disks), and
        forever while this one is away: `primary.stop_waiting()` ends that. The roles and the
        password are the primary's.
        """
        self.stop("immediate")
        shutil.rmtree(self.data, ignore_errors=True)
        source = f"host='{primary.folder}' port={primary.port} user={USER}"
        run(
            self.programs.path("pg_basebackup"),
            *("-D", self.data, "-d", source, "-X", "stream", "-c", "fast", "--no-sync"),
        )
        self._password = primary._password
        self.settings.pop("synchronous_standby_names", None)
        self.settings["primary_conninfo"] = f"{source} application_name={self.folder.name}"
        self._write("standby.signal", "")
        self.start()
        primary._await_standby(self.folder.name, ("streaming",), "state")
        if synchronous:
            primary.configure(synchronous_standby_names=f'"{self.folder.name}"')
            primary._await_standby(self.folder.name, ("sync", "quorum"), "sync_state")

    def copy(self, stopped: Cluster) -> None:
        """Become what another new one is, which has been stopped, and start."""
        shutil.copytree(stopped.data, self.data)
        own(self.data, *self.data.rglob("*"))
        self._password = stopped._password
        self.start()

    def promote(self) -> None:
        """From a replica to a primary; returns when it takes writes.

        It does not look whether the old primary is dead: `kill()` that first, or there are two.
        """
        self._pg_ctl("promote", "-w", "-t", str(START_S))
        del self.settings["primary_conninfo"]
        self._write_settings()

    def stop_waiting(self) -> None:
        """Let commits go on without a standby, also those that wait already."""
        self.configure(synchronous_standby_names="")

    def remove(self) -> None:
        """End it and remove its folder."""
        if os.getpid() != self._owner:
            return  # a fork's end is not ours
        atexit.unregister(self.remove)
        with suppress(NoPostgres):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.remove()

    # Its files and programs.

    def _make(self) -> None:
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(self._password)
        own(password)
        run(
            self.programs.path("initdb"),
            *("-D", self.data, "-U", USER, "-E", "UTF8", "--no-sync", "--pwfile", password),
            *("--auth-local", "trust", "--auth-host", "scram-sha-256"),
        )
        password.unlink()
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write("include = 'tests.conf'\n")

    def _write_settings(self) -> None:
        place = {
            "unix_socket_directories": str(self.folder),
            "listen_addresses": "127.0.0.1" if self.tcp else "",
            "port": str(self.port),
        }
        rows = {**place, **self.settings}.items()
        quoted = ((name, value.replace("'", "''")) for name, value in rows)
        self._write("tests.conf", "".join(f"{name} = '{value}'\n" for name, value in quoted))

    def _write(self, name: str, text: str) -> None:
        file = self.data / name
        file.write_text(text)
        own(file)

    def _pg_ctl(self, action: str, *arguments: str) -> None:
        try:
            run(self.programs.path("pg_ctl"), action, "-D", self.data, *arguments)
        except NoPostgres as reason:
            log = self.log.read_text()[-2000:] if self.log.exists() else ""
            raise NoPostgres(f"{reason}\n{log}") from None

    def _await_standby(self, name: str, states: tuple[str, ...], column: str) -> None:
        def there() -> bool:
            row = connection.execute(
                f"SELECT {column} FROM pg_stat_replication WHERE application_name = %s",
                (name,),
            ).fetchone()
            return row is not None and row[0] in states

        with psycopg.connect(self.url(), autocommit=True) as connection:
            _wait(there, f"the standby's {column} to be {states[0]}")


def _wait(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + START_S
    while not done():
        if time.monotonic() > deadline:
            raise NoPostgres(f"waited {START_S} s for {what}")
        time.sleep(0.01)


def _stat(pid: int) -> list[str]:
    """State, parent and so on, after the name, which may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _is_alive(pid: int) -> bool:
    if not Path("/proc/self/stat").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    try:
        return _stat(pid)[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _works_in(pid: int, folder: Path) -> bool:
    """False of a stranger who has a dead server's number."""
    if not Path("/proc/self/cwd").exists():
        return True
    try:
        return Path(f"/proc/{pid}/cwd").resolve() == folder.resolve()
    except OSError:
        return False


def _children(parent: int) -> list[int]:
    if not Path("/proc/self/stat").exists():
        raise NoPostgres("to kill a server takes /proc, to find its processes")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                if int(_stat(int(entry.name))[1]) == parent:
                    found.append(int(entry.name))
    return found
