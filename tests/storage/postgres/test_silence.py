"""A server that hangs: its connections stay, and nobody answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from payments_core.conformance.storage.harness import PARTITION, fetch
from payments_core.conformance.storage.records import RECORD_TYPES, Mark
from payments_core.storage.port import CommitUnknown, StorageUnavailable
from payments_core.storage.postgres.adapter import PostgresStorage
from tests.storage.postgres.proxy import Proxy

pytestmark = pytest.mark.postgres

PATIENCE_S = 1.1
HASTY = "&statement_timeout_ms=100&answer_grace_s=1&connect_timeout=2&failover_s=20"
"""`failover_s` is long, so that a call that looked for another server would be seen."""
MUCH = "x" * 20_000_000
"""More than the sockets on the way take."""


@pytest.fixture
def hasty(proxy: Proxy) -> Iterator[PostgresStorage]:
    storage = PostgresStorage(proxy.url + HASTY, RECORD_TYPES)
    storage.transact(
        PARTITION, lambda tx: tx.get(Mark, "m")
    )  # a snapshot would not await its COMMIT
    yield storage
    storage.close()


@contextmanager
def in_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert PATIENCE_S <= time.monotonic() - began < PATIENCE_S + 2


def test_a_call_has_an_end_though_nobody_answers(hasty: PostgresStorage, proxy: Proxy) -> None:
    proxy.hang()
    with in_time(), pytest.raises(StorageUnavailable, match="no response within 1100 ms"):
        fetch(hasty, Mark, "m")
    proxy.go_on()
    assert fetch(hasty, Mark, "m") is None


def test_a_server_that_takes_nothing_in_has_the_same_time(
    hasty: PostgresStorage, proxy: Proxy
) -> None:
    proxy.hang()
    with in_time(), pytest.raises(StorageUnavailable, match="no response"):
        hasty.transact(PARTITION, lambda tx: tx.get(Mark, MUCH))


def test_a_commit_that_nobody_answers_is_unknown(hasty: PostgresStorage, proxy: Proxy) -> None:
    proxy.hang_at_next_commit()
    with in_time(), pytest.raises(CommitUnknown, match="no response"):
        hasty.transact(PARTITION, lambda tx: (tx.get(Mark, "m"), tx.insert(Mark(id="m"))))
    proxy.go_on()
    assert fetch(hasty, Mark, "other") is None


def test_the_other_connections_to_a_server_that_hangs_are_dropped(
    hasty: PostgresStorage, proxy: Proxy
) -> None:
    met = threading.Barrier(3)

    def meet() -> None:
        hasty.read(PARTITION, lambda snapshot: (snapshot.get(Mark, "m"), met.wait(10)))

    threads = [threading.Thread(target=meet) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert proxy.connections == 3
    proxy.hang()
    with in_time(), pytest.raises(StorageUnavailable, match="no response"):
        fetch(hasty, Mark, "m")
    proxy.go_on()
    assert fetch(hasty, Mark, "m") is None
    assert proxy.connections == 4


def test_a_server_may_be_waited_for_without_end(proxy: Proxy) -> None:
    patient = PostgresStorage(f"{proxy.url}{HASTY}&answer_grace_s=0", RECORD_TYPES)
    assert fetch(patient, Mark, "m") is None
    proxy.hang()
    later = threading.Timer(PATIENCE_S + 0.3, proxy.go_on)
    later.start()
    with in_time():
        assert fetch(patient, Mark, "m") is None
    later.join()
    patient.close()
