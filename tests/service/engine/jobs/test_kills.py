"""kill -9 of a worker: another continues its jobs within seconds, and each is done once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from payments_core.clock import SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.jobs.worker import Worker
from payments_core.engine.ports import Ports
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Storage
from payments_core.storage_loader import open_storage
from tests.servers import drop_schema, fresh_schema, postgres_or_skip
from tests.service.engine.jobs.kill_victim import QUEUES, THREADS

PARTITIONS = ("env_a", "env_b")
JOBS = 12
PATIENCE_S = 20
ROOT = Path(__file__).parents[4]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A storage that several processes share."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'data.db'}"
        return
    schema = fresh_schema(postgres_or_skip())
    yield schema
    drop_schema(schema)


@pytest.fixture
def storage(url: str) -> Iterator[Storage]:
    """The storage with jobs of two environments in both queues."""
    with closing(open_storage(url)) as storage:
        storage.migrate()
        for partition in PARTITIONS:
            for number in range(JOBS // len(PARTITIONS)):
                queue = QUEUES[number % len(QUEUES)]
                job = Job(
                    id=f"job {number}", queue=queue.full_name("sandbox"), lane=f"lane {number}",
                    kind="note", due_at=SystemClock().now(), subject="subject",
                )  # fmt: skip
                storage.transact(partition, lambda tx, job=job: tx.insert(job))  # type: ignore[misc]
        yield storage


class Survivor:
    """A worker of this process, and the jobs that it has ended."""

    def __init__(self, storage: Storage) -> None:
        ring = KeyRing.parse(KeyRing.generate())
        self._committer = Ports.over(storage, ring, SystemClock()).committer
        self._lock = threading.Lock()
        self.ended: list[tuple[str, str]] = []
        self.all_ended = threading.Event()
        self.worker = Worker(storage, SystemClock(), "sandbox", {"note": self._end}, QUEUES)

    def _end(self, claimed: ClaimedJob) -> None:
        self._committer.commit(
            WorkerAuthority.of(claimed), lambda tx, ids: Decision(None), claimed=claimed
        )
        with self._lock:
            self.ended.append((claimed.partition, claimed.job.id))
            if len(self.ended) == JOBS:
                self.all_ended.set()


@contextmanager
def victim(url: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """A worker with as many jobs begun as it has threads."""
    command = [sys.executable, "-m", "tests.service.engine.jobs.kill_victim", url, name]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert all(child.stdout.readline() for _ in range(THREADS))
            yield child
        finally:
            child.kill()


def test_the_work_of_a_killed_worker_goes_on_within_6_s_at_another(
    url: str, storage: Storage
) -> None:
    survivor = Survivor(storage)
    with victim(url, "victim") as child:
        survivor.worker.take_over("survivor")
        survivor.worker.start()
        # Longer than a lease: what runs is renewed, and what waits is given back.
        assert not survivor.all_ended.wait(6)
        held = JOBS - len(survivor.ended)
        assert held >= THREADS
        child.kill()
        child.wait()
        killed_at = time.monotonic()
        assert survivor.all_ended.wait(PATIENCE_S)
        took_s = time.monotonic() - killed_at
    assert survivor.worker.stop()
    assert took_s < 6, took_s
    assert len(set(survivor.ended)) == JOBS


def test_a_worker_that_starts_again_goes_on_within_2_s(url: str, storage: Storage) -> None:
    with victim(url, "the only one") as child:
        child.kill()
        child.wait()
    killed_at = time.monotonic()
    again = Survivor(storage)
    assert again.worker.take_over("the only one") >= THREADS
    again.worker.start()
    assert again.all_ended.wait(PATIENCE_S)
    took_s = time.monotonic() - killed_at
    assert again.worker.stop()
    assert took_s < 2, took_s
    assert len(set(again.ended)) == JOBS
