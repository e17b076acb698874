"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

from payments_core.conformance.storage.records import RECORD_TYPES, Mark
from payments_core.storage.port import (
    CommitUnknown,
    Page,
    Position,
    Snapshot,
    Storage,
    Transaction,
    Where,
)
from payments_core.storage.records import R, Record, Value

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

PARTITION = "env_here"
OTHER_PARTITION = "env_there"
HANG_TIMEOUT_S = 30.0

OPENED = "opened"
"""The output of another process when it has read the data."""

ONE_PROCESS = (
    "{who} could not open the data: {why}. A database that only one process or one handle can open"
    " declares neither `persistent` nor `multi_process`, and passes without both."
)


@attrs.frozen
class AdapterLocation:
    """Where another process finds the same data: `module:function`, called with URL and kinds."""

    opener: str
    url: str


class Harness:
    """Override `open`, declare what the adapter can do, and override the hooks that it needs.

    One check opens several handles on the same data if `multi_process` is declared, and with
    `persistent` opens it again, with other kinds too. A check of something undeclared is skipped,
    and the skip is reported.
    """

    persistent: bool = False
    """Data outlives `close` and the process."""

    multi_process: bool = False
    """Several handles, in several processes, use the same data at once. Needs `location`."""

    can_lose_commits: bool = False
    """`lose_next_commit` works."""

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        """A handle to this test's data: nothing at the first call, later the existing data."""
        raise NotImplementedError  # the adapter's own test class says how

    def location(self) -> AdapterLocation:
        """How another process opens the same data."""
        raise NotImplementedError  # the adapter's own test class says how

    def lose_next_commit(self, storage: Storage, *, applied: bool) -> None:
        """Let the next COMMIT of this handle go unanswered, after it happened or before.

        To the adapter it must look like an error of its driver; `transact` then raises
        CommitUnknown. Commits after that one succeed.
        """
        raise NotImplementedError  # the adapter's own test class says how

    # What a test runner calls around each check.

    def setup_method(self) -> None:
        """Before each check."""
        self._opened: list[Storage] = []
        self._marks = 0

    def teardown_method(self) -> None:
        """After each check."""
        for storage in self._opened:
            storage.close()

    # Shared by the checks.

    def open_handle(self, record_types: Sequence[type[Record]] = RECORD_TYPES) -> Storage:
        """A handle with its schema up to date, closed after the check."""
        is_further = bool(self._opened)
        try:
            storage = self.open(record_types)
            self._opened.append(storage)
            storage.migrate()
        except Exception as error:
            if not is_further:
                raise
            why = f"{type(error).__name__}: {error}"
            raise AssertionError(ONE_PROCESS.format(who="another handle", why=why)) from error
        return storage

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")

    def write(
        self, storage: Storage, work: Callable[[Transaction], T], partition: str = PARTITION
    ) -> T:
        """Transact, and resolve a lost COMMIT by a mark that the transaction inserts."""
        self._marks += 1
        mark = Mark(id=f"mark_{threading.get_ident()}_{self._marks}_{id(work)}")
        results: list[T] = []

        def work_with_mark(tx: Transaction) -> None:
            tx.insert(mark)
            results.append(work(tx))

        while True:
            try:
                storage.transact(partition, work_with_mark)
            except CommitUnknown:
                if storage.read(partition, lambda snapshot: snapshot.get(Mark, mark.id)) is None:
                    continue
            return results[-1]

    def insert(self, storage: Storage, *records: Record, partition: str = PARTITION) -> None:
        """Insert records in one transaction."""

        def work(tx: Transaction) -> None:
            for record in records:
                tx.insert(record)

        self.write(storage, work, partition)

    def require_error(
        self,
        storage: Storage,
        error: type[E],
        work: Callable[[Transaction], object],
        partition: str = PARTITION,
    ) -> E:
        """The error with which the work must end."""
        try:
            storage.transact(partition, work)
        except error as raised:
            return raised
        raise AssertionError(f"{error.__name__} was not raised")

    def run_child(self, mode: str, *arguments: str) -> subprocess.Popen[str]:
        """Another process that has opened the same data; see `child.py` for the modes."""
        address = self.location()
        module = "payments_core.conformance.storage.child"
        child = subprocess.Popen(
            [sys.executable, "-m", module, address.opener, address.url, mode, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        line = _read_first_line(child)
        if line != OPENED:
            child.communicate(timeout=HANG_TIMEOUT_S)
            why = line or f"it ended with {child.returncode}, and its error is above"
            raise AssertionError(ONE_PROCESS.format(who="another process", why=why))
        return child


def _read_first_line(child: subprocess.Popen[str]) -> str:
    """A line, a byte at a time: later bytes are for the check, which may read by other means."""
    assert child.stdout is not None
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(child.stdout.fileno(), 1)):
        line += byte
    return line.decode().strip()


def fetch(storage: Storage, kind: type[R], id: str, partition: str = PARTITION) -> R | None:
    """The record in a separate snapshot."""
    return storage.read(partition, lambda snapshot: snapshot.get(kind, id))


def fetch_existing(storage: Storage, kind: type[R], id: str, partition: str = PARTITION) -> R:
    """The record, which must exist."""
    record = fetch(storage, kind, id, partition)
    assert record is not None, f"{id} is missing"
    return record


def lock_existing(tx: Transaction, kind: type[R], id: str) -> R:
    """The record, locked, which must exist."""
    record = tx.get(kind, id, for_update=True)
    assert record is not None, f"{id} is missing"
    return record


def fetch_all_pages(
    storage: Storage,
    kind: type[R],
    index: str,
    key: Sequence[Value] = (),
    *,
    where: Sequence[Where] = (),
    limit: int = 50,
    partition: str = PARTITION,
) -> list[R]:
    """The records of every page in turn, each read in a separate snapshot."""
    found: list[R] = []
    after: Position | None = None
    while True:

        def look(snapshot: Snapshot, after: Position | None = after) -> Page[R]:
            return snapshot.find(kind, index, key, where=where, after=after, limit=limit)

        page = storage.read(partition, look)
        assert len(page.records) <= limit, "a page must not exceed its limit"
        found.extend(page.records)
        if page.next is None:
            return found
        assert page.next != after, "the position of the next page must be after this page"
        after = page.next


class Rendezvous:
    """A barrier where threads wait for each other inside their works, but not for long.

    An adapter that serializes them lets one wait without result; one that does not lets all
    continue at the same moment, and so shows its error every time, not by chance.
    """

    def __init__(self, threads: int = 2, timeout_s: float = 0.2) -> None:
        self._barrier = threading.Barrier(threads)
        self._timeout_s = timeout_s

    def wait(self) -> bool:
        """Whether all threads came."""
        try:
            self._barrier.wait(self._timeout_s)
        except threading.BrokenBarrierError:
            return False
        return True


def run_concurrently(*calls: Callable[[], T]) -> list[T | Exception]:
    """The result or error of each call, all started at once in separate threads."""
    outcomes: list[T | Exception] = [TimeoutError("the call did not return")] * len(calls)
    start = threading.Barrier(len(calls))

    def run(place: int, call: Callable[[], T]) -> None:
        start.wait(HANG_TIMEOUT_S)
        try:
            outcomes[place] = call()
        except Exception as error:
            outcomes[place] = error

    threads = [
        threading.Thread(target=run, args=(place, call), daemon=True)
        for place, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_TIMEOUT_S)
    return outcomes


def find_errors(outcomes: Sequence[T | Exception]) -> list[Exception]:
    """The errors of `run_concurrently`."""
    return [outcome for outcome in outcomes if isinstance(outcome, Exception)]


def require_no_errors(outcomes: Sequence[T | Exception]) -> None:
    """Raise the first error of `run_concurrently`, if there is one."""
    for error in find_errors(outcomes):
        raise AssertionError(f"a thread failed: {error!r}") from error
