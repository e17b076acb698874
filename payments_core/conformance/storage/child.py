"""Another process on the same data; started by the suite, and often killed by it.

`python -m payments_core.conformance.storage.child OPENER URL MODE [ARGUMENT ...]`
"""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

from payments_core.conformance.storage.harness import OPENED, PARTITION, lock_existing
from payments_core.conformance.storage.records import (
    RECORD_TYPES,
    RECORD_TYPES_AFTER_MIGRATION,
    Counter,
    IndexedParcel,
    Mark,
    Note,
)
from payments_core.evolve import evolve
from payments_core.storage.port import Storage, Transaction
from payments_core.storage.records import Record


def write_until_killed(storage: Storage, threads: str) -> None:
    """Transact forever in threads; print a name after its transaction was answered."""

    def run(thread: int) -> None:
        for number in itertools.count(1):
            name = f"{thread}.{number}"

            def work(tx: Transaction, name: str = name) -> None:
                counter = lock_existing(tx, Counter, "c")
                tx.insert(Mark(id=name))
                tx.insert(Note(id=name, code=name, text="x" * 2_000))
                tx.replace(evolve(counter, total=counter.total + 1))

            storage.transact(PARTITION, work)
            _print_line(name)

    for thread in range(int(threads)):
        threading.Thread(target=run, args=(thread,)).start()
    threading.Event().wait()


def crash_before_commit(storage: Storage) -> None:
    """Write, and be killed before the commit."""

    def work(tx: Transaction) -> None:
        tx.insert(Mark(id="uncommitted"))
        tx.insert(Note(id="uncommitted", code="the code"))
        os.kill(os.getpid(), signal.SIGKILL)

    storage.transact(PARTITION, work)


def increment(storage: Storage, times: str) -> None:
    """Raise the counter, a number of times."""

    def work(tx: Transaction) -> None:
        counter = lock_existing(tx, Counter, "c")
        tx.replace(evolve(counter, total=counter.total + 1))

    for _ in range(int(times)):
        storage.transact(PARTITION, work)


def claim(storage: Storage, queue: str, now: str, lease_ms: str) -> None:
    """Claim until there is nothing left, and print the claimed jobs."""
    while batch := storage.claim(
        queue, int(now), lease_ms=int(lease_ms), limit=2, lane_concurrency=1
    ):
        for claimed in batch:
            _print_line(claimed.job.id)


def migrate(storage: Storage, id: str) -> None:
    """Migrate on command, then write a row of the new kind."""
    _print_line("ready")
    sys.stdin.readline()
    storage.migrate()
    storage.transact(PARTITION, lambda tx: tx.insert(IndexedParcel(id=id, label=id)))


MODES: dict[str, tuple[Callable[..., None], Sequence[type[Record]]]] = {
    "stream": (write_until_killed, RECORD_TYPES),
    "die_inside": (crash_before_commit, RECORD_TYPES),
    "add": (increment, RECORD_TYPES),
    "claim": (claim, RECORD_TYPES),
    "migrate": (migrate, RECORD_TYPES_AFTER_MIGRATION),
}


def main(opener: str, url: str, mode: str, *arguments: str) -> None:
    """Open the storage, report success or the error, and run the mode."""
    module, _, function = opener.partition(":")
    run, record_types = MODES[mode]
    try:
        storage: Storage = getattr(importlib.import_module(module), function)(url, record_types)
        if record_types is RECORD_TYPES:  # otherwise the tables may still have to be created
            storage.read(PARTITION, lambda snapshot: snapshot.get(Mark, "none"))
    except Exception as error:
        _print_line(" ".join(f"{type(error).__name__}: {error}".split()))
        raise
    _print_line(OPENED)
    run(storage, *arguments)
    storage.close()


def _print_line(line: str) -> None:
    """One line, handed to the system at once, so that it outlives this process."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
