"""One writer for many threads: works commit in groups, and share the wait for the disk.

There is no writer thread. A caller that comes while nobody leads is the leader: it runs the works
that wait, its own included, in one transaction; later callers wait, and the first of these leads
the next group. A request of a server's pool lets the others of that pool come first: a group writes
the pages that its works share only once. No outcome is returned before the COMMIT, refusals
included: they may depend on a neighbour's rows.

A work that raises after it has written undoes the whole group, and each then runs alone. That is
rare, and savepoints would copy every page that a work changes.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, Generic, TypeVar

from payments_core.storage.port import CommitUnknown, StorageError
from payments_core.storage.sqlite.transaction import storage_error
from payments_core.waiting import NO_WAITS, Gate, Waits

T = TypeVar("T")
WorkFunction = Callable[[sqlite3.Connection], T]

GROUP_LIMIT = 64
"""The maximum number of works that delay each other if one of them is slow."""


class _PendingWork(Generic[T]):
    """A work, and its outcome."""

    def __init__(self, run: WorkFunction[T], durable: bool, gate: Gate) -> None:
        self.run = run
        self.durable = durable
        self.gate = gate
        """Released with the answer, or to lead."""
        self.answered = False
        self.committing = False
        self.settled = False
        self.result: T | None = None
        self.error: BaseException | None = None
        # Of a leader.
        self.group: Sequence[_PendingWork[Any]] = ()
        self.heir: _PendingWork[Any] | None = None
        """The next leader."""
        self.has_left = False

    def run_on(self, connection: sqlite3.Connection) -> None:
        """Run, and keep the outcome."""
        self.result, self.error = None, None
        try:
            self.result = self.run(connection)
        except sqlite3.Error as error:
            self.fail(storage_error(error), error)
        except Exception as error:
            self.error = error

    def is_done_by(self, leader: _PendingWork[Any]) -> bool:
        """Whether its outcome counts, in a group of this leader.

        An exception of another package may be meant for the leader: a time limit is raised wherever
        its thread is. Then the caller runs the work itself.
        """
        return self is leader or self.error is None or _is_own(self.error)

    def fail(self, error: StorageError, cause: BaseException | None) -> None:
        """Keep a separate error: a raised one gets the traceback of its thread."""
        self.result, self.error = None, type(error)(str(error))
        self.error.__cause__ = cause

    def wake(self) -> None:
        """End its wait. It waits once, so a second time does nothing."""
        try:
            self.gate.release()
        except RuntimeError:  # woken before, by a call that was stopped
            return

    def result_or_raise(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # the work has run


def _is_own(error: BaseException) -> bool:
    """Whether it is an exception of this package, such as a refusal."""
    return type(error).__module__.partition(".")[0] == __name__.partition(".")[0]


class GroupCommit:
    """Runs works on a connection that one thread at a time may use."""

    def __init__(
        self,
        writing: Callable[[bool], AbstractContextManager[sqlite3.Connection]],
        commit: Callable[[sqlite3.Connection], None],
        waits: Waits = NO_WAITS,
        limit: int = GROUP_LIMIT,
    ) -> None:
        """`writing` begins a transaction; its argument: whether the commit waits for the disk."""
        self._writing = writing
        self._commit = commit
        self._limit = limit
        self._waits = waits
        self._mutex = threading.Lock()
        self._queue: deque[_PendingWork[Any]] = deque()
        """Works without an answer, also those of the present group."""
        self._leader: _PendingWork[Any] | None = None

    def run(self, run: WorkFunction[T], *, durable: bool = True) -> T:
        """Run and commit, perhaps with others; return or raise as the work did.

        It changes no schema, which SQLite does not count as a change. Work that is not `durable`
        may be undone by a power cut, but not by the end of a process.
        Raises StorageUnavailable or CommitUnknown if the commit of the group failed.
        """
        mine = _PendingWork(run, durable, self._waits.new_gate())
        try:
            try:
                self._take_part(mine)
            finally:  # also after Ctrl-C: nobody else would lead for the waiting callers
                self._leave(mine)
        finally:
            # Ctrl-C or a time limit may also have stopped that.
            if not mine.has_left:
                self._leave(mine)
        return mine.result_or_raise()

    def _take_part(self, mine: _PendingWork[T]) -> None:
        """Have the work done by another, or lead."""
        with self._mutex:
            self._queue.append(mine)
            leads = self._leader is None
            if leads:
                self._leader = mine
        if leads:
            self._waits.gather()
        else:
            mine.gate.acquire()
        if not mine.answered:
            self._lead_group(mine)

    def _lead_group(self, mine: _PendingWork[T]) -> None:
        """Commit a group that contains `mine`."""
        with self._mutex:
            mine.group = group = tuple(islice(self._queue, self._limit))
        if len(group) == 1 or not self._commit_together(mine):
            for waiting in group:
                self._commit_alone(waiting, mine)

    def _leave(self, mine: _PendingWork[T]) -> None:
        """Answer the group, if it leads, and pass the lead to the first work without an answer.

        What a stopped leader has not begun to commit stays in the queue. It may be stopped at any
        place, and called again.
        """
        stopped = sys.exception()
        with self._mutex:
            if self._leader is mine:
                for waiting in mine.group:
                    if waiting.committing and not waiting.settled:
                        waiting.fail(CommitUnknown("the group commit was stopped"), stopped)
                        waiting.settled = True
                    if waiting.settled:
                        self._forget(waiting)
                        waiting.answered = True
            self._forget(mine)
            if self._leader is mine:
                mine.heir = self._queue[0] if self._queue else None
                self._leader = mine.heir
        if mine.heir is not None:
            mine.heir.wake()
        for waiting in mine.group:
            if waiting.answered and waiting is not mine:
                waiting.wake()
        mine.has_left = True

    def _forget(self, waiting: _PendingWork[Any]) -> None:
        if waiting in self._queue:
            self._queue.remove(waiting)

    def _commit_together(self, mine: _PendingWork[Any]) -> bool:
        """Run a group in one transaction; False if nothing was done and each must run alone.

        A full disk or an interrupt makes SQLite undo everything by itself.
        """
        group = done = mine.group
        try:
            with self._writing(any(waiting.durable for waiting in group)) as connection:
                for waiting in group:
                    before = connection.total_changes
                    waiting.run_on(connection)
                    has_written = connection.total_changes > before
                    if not connection.in_transaction or (waiting.error and has_written):
                        return False
                done = [waiting for waiting in group if waiting.is_done_by(mine)]
                for waiting in done:
                    waiting.committing = True
                self._commit(connection)
        except StorageError as error:
            for waiting in done:
                waiting.fail(error, error.__cause__ or error)
        for waiting in done:
            waiting.settled = True
        return True

    def _commit_alone(self, waiting: _PendingWork[Any], mine: _PendingWork[Any]) -> None:
        try:
            with self._writing(waiting.durable) as connection:
                waiting.run_on(connection)
                if waiting.error is None:
                    waiting.committing = True
                    self._commit(connection)
        except StorageError as error:
            waiting.fail(error, error.__cause__ or error)
        waiting.settled = waiting.is_done_by(mine)
