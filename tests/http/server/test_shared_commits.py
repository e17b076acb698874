"""Requests of one server that write at the same time share commits of the storage."""

from __future__ import annotations

import http.client
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from payments_core.clock import SystemClock
from payments_core.conformance.storage.harness import PARTITION, fetch, run_concurrently
from payments_core.conformance.storage.records import RECORD_TYPES, Note
from payments_core.engine.identifiers import Identifiers
from payments_core.entropy import system_entropy
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core_http.server.thread_pool import ThreadPool
from payments_core_http.serving import build_server

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

THREADS = 8
CLIENTS, REQUESTS = 16, 10
SOON_S = 10.0


@pytest.fixture
def pool() -> ThreadPool:
    return ThreadPool(THREADS)


@pytest.fixture
def storage(tmp_path: Path, pool: ThreadPool) -> Iterator[SqliteStorage]:
    path = tmp_path / "data.db"
    with closing(SqliteStorage(path, RECORD_TYPES, waits=pool)) as storage:
        storage.migrate()
        yield storage


def test_requests_that_write_share_commits(
    storage: SqliteStorage, pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[None] = []
    commit = storage._commit

    def counted(connection: sqlite3.Connection) -> None:
        commits.append(None)
        commit(connection)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        note = Note(id=environ["PATH_INFO"].strip("/"))
        storage.transact(PARTITION, lambda tx: tx.insert(note))
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    monkeypatch.setattr(storage, "_commit", counted)
    together = threading.Barrier(CLIENTS)

    def send(port: int, client: int) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SOON_S)) as connection:
            for number in range(REQUESTS):
                together.wait(SOON_S)
                connection.request("POST", f"/{client}-{number}")
                assert connection.getresponse().read() == b"ok"

    with build_server(answer, Identifiers(SystemClock(), system_entropy), pool=pool) as server:
        outcomes = run_concurrently(*[lambda c=c: send(server.port, c) for c in range(CLIENTS)])
    assert outcomes == [None] * CLIENTS
    ids = [f"{client}-{number}" for client in range(CLIENTS) for number in range(REQUESTS)]
    assert all(fetch(storage, Note, id) for id in ids)
    assert len(commits) < len(ids) / 2, len(commits)
