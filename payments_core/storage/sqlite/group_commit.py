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
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from payments_core.storage.port import CommitUnknown, StorageError
from payments_core.storage.sqlite.transaction import storage_error
from payments_core.waiting import current_pool

T = TypeVar("T")
WorkFunction = Callable[[sqlite3.Connection], T]

GROUP_LIMIT = 64
"""The maximum number of works that delay each other if one of them is slow."""


class _PendingWork(Generic[T]):
    """A work, and its outcome."""

    def __init__(self, run: WorkFunction[T], durable: bool) -> None:
        self.run = run
        self.durable = durable
        self.turn = current_pool().new_turn()
        """Released once: with the answer, or to lead."""
        self.leads = False
        self.answered = False
        self.committing = False
        self.settled = False
        self.result: T | None = None
        self.error: BaseException | None = None

    def run_on(self, connection: sqlite3.Connection) -> None:
        """Run, and keep the outcome."""
        self.result, self.error = None, None
        try:
            self.result = self.run(connection)
        except sqlite3.Error as error:
            self.fail(storage_error(error), error)
        except Exception as error:
            self.error = error

    def fail(self, error: StorageError, cause: BaseException) -> None:
        """Keep a separate error: a raised one gets the traceback of its thread."""
        self.result, self.error = None, type(error)(str(error))
        self.error.__cause__ = cause

    def result_or_raise(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # the work has run


class GroupCommit:
    """Runs works on a connection that one thread at a time may use."""

    def __init__(
        self,
        writing: Callable[[bool], AbstractContextManager[sqlite3.Connection]],
        commit: Callable[[sqlite3.Connection], None],
        *,
        limit: int = GROUP_LIMIT,
    ) -> None:
        """`writing` begins a transaction; its argument: whether the commit waits for the disk."""
        self._writing = writing
        self._commit = commit
        self._limit = limit
        self._mutex = threading.Lock()
        self._queue: deque[_PendingWork[Any]] = deque()
        self._led = False

    def run(self, run: WorkFunction[T], *, durable: bool = True) -> T:
        """Run and commit, perhaps with others; return or raise as the work did.

        It changes no schema, which SQLite does not count as a change. Work that is not `durable`
        may be undone by a power cut, but not by the end of a process.
        Raises StorageUnavailable or CommitUnknown if the commit of the group failed.
        """
        mine = _PendingWork(run, durable)
        try:
            with self._mutex:
                self._queue.append(mine)
                mine.leads = not self._led
                self._led = True
            if mine.leads:
                current_pool().gather()
            else:
                mine.turn.acquire()
            if not mine.answered:
                self._lead_group(mine)
        finally:  # also after Ctrl-C: nobody else would lead for the waiting callers
            self._step_down(mine)
        return mine.result_or_raise()

    def _lead_group(self, mine: _PendingWork[T]) -> None:
        """Commit a group that contains `mine`, answer the others, and pass the lead on."""
        with self._mutex:
            group = [self._queue.popleft() for _ in range(min(self._limit, len(self._queue)))]
        others = [waiting for waiting in group if waiting is not mine]
        try:
            if len(group) == 1 or not self._commit_together(group):
                for waiting in group:
                    self._commit_alone(waiting)
        except BaseException as error:  # Ctrl-C, or a work that leaves by SystemExit
            others = self._requeue_uncommitted(others, error)
            raise
        finally:
            self._step_down(mine)
            for waiting in others:
                waiting.answered = True
                waiting.turn.release()

    def _requeue_uncommitted(
        self, others: Sequence[_PendingWork[Any]], error: BaseException
    ) -> list[_PendingWork[Any]]:
        """Put back works that a stopped leader has not begun to commit; return the rest."""
        back = [w for w in others if not (w.settled or w.committing)]
        with self._mutex:
            self._queue.extendleft(reversed(back))
        for waiting in others:
            if waiting.committing and not waiting.settled:
                waiting.fail(CommitUnknown("the group commit was stopped"), error)
        return [waiting for waiting in others if waiting not in back]

    def _step_down(self, mine: _PendingWork[Any]) -> None:
        """Stop waiting; if it leads, pass the lead to the first waiting work, if any."""
        with self._mutex:
            if mine in self._queue:
                self._queue.remove(mine)
            if not mine.leads:
                return
            mine.leads = False
            if self._queue:
                self._queue[0].leads = True
                self._queue[0].turn.release()
            else:
                self._led = False

    def _commit_together(self, group: Sequence[_PendingWork[Any]]) -> bool:
        """Run a group in one transaction; False if nothing was done and each must run alone.

        A full disk or an interrupt makes SQLite undo everything by itself.
        """
        try:
            with self._writing(any(waiting.durable for waiting in group)) as connection:
                for waiting in group:
                    before = connection.total_changes
                    waiting.run_on(connection)
                    has_written = connection.total_changes > before
                    if not connection.in_transaction or (waiting.error and has_written):
                        return False
                for waiting in group:
                    waiting.committing = True
                self._commit(connection)
        except StorageError as error:
            for waiting in group:
                waiting.fail(error, error.__cause__ or error)
        for waiting in group:
            waiting.settled = True
        return True

    def _commit_alone(self, waiting: _PendingWork[Any]) -> None:
        try:
            with self._writing(waiting.durable) as connection:
                waiting.run_on(connection)
                if waiting.error is None:
                    waiting.committing = True
                    self._commit(connection)
        except StorageError as error:
            waiting.fail(error, error.__cause__ or error)
        waiting.settled = True
