"""One writer for many threads: works commit in groups, and share the wait for the disk.

There is no writer thread. Who comes while nobody leads is the leader: it runs the works that
wait, its own among them, in one transaction, each in a savepoint; who comes meanwhile waits, and
the first of these leads the next group. No outcome leaves before the COMMIT, refusals included:
they may rest on a neighbour's rows.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from payments_core.storage.port import CommitUnknown, StorageError, StorageUnavailable
from payments_core.storage.sqlite_rows import storage_error

T = TypeVar("T")
Run = Callable[[sqlite3.Connection], T]

GROUP_LIMIT = 64
"""So many works at most hold each other up, should one of them be slow."""


class _Waiting(Generic[T]):
    """A work, and what became of it."""

    def __init__(self, run: Run[T]) -> None:
        self.run = run
        self.turn = threading.Lock()
        self.turn.acquire()  # released once: with the answer, or to lead
        self.answered = False
        self.result: T | None = None
        self.error: BaseException | None = None

    def try_on(self, connection: sqlite3.Connection) -> None:
        """Run, and keep the outcome."""
        self.result, self.error = None, None
        try:
            self.result = self.run(connection)
        except Exception as error:
            self.error = error

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # the work has run


class Groups:
    """Runs works on a connection that one thread at a time may use."""

    def __init__(
        self,
        writing: Callable[[], AbstractContextManager[sqlite3.Connection]],
        commit: Callable[[sqlite3.Connection], None],
        *,
        limit: int = GROUP_LIMIT,
    ) -> None:
        self._writing = writing
        self._commit = commit
        self._limit = limit
        self._mutex = threading.Lock()
        self._queue: deque[_Waiting[Any]] = deque()
        self._led = False

    def run(self, run: Run[T]) -> T:
        """Run and commit, perhaps with others; return or raise as the work did.

        Raises StorageUnavailable or CommitUnknown where the commit of the group failed.
        """
        mine = _Waiting(run)
        with self._mutex:
            self._queue.append(mine)
            leads = not self._led
            self._led = True
        if not leads:
            self._await_turn(mine)
        if not mine.answered:
            self._lead(mine)
        return mine.outcome()

    def _await_turn(self, mine: _Waiting[T]) -> None:
        try:
            mine.turn.acquire()
        except BaseException:  # Ctrl-C in a waiting thread: nobody may be left to wait for it
            with self._mutex:
                waits = mine in self._queue
                if waits:
                    self._queue.remove(mine)
                appointed = waits and not mine.turn.locked()
            if appointed:
                self._pass_on()
            raise

    def _lead(self, mine: _Waiting[T]) -> None:
        """Commit a group that holds `mine`, answer the others, and pass the lead on."""
        with self._mutex:
            group = [self._queue.popleft() for _ in range(min(self._limit, len(self._queue)))]
        others = [waiting for waiting in group if waiting is not mine]
        begun: list[bool] = []  # whether a COMMIT was begun
        try:
            for undone in self._commit_together(group, begun):
                begun.clear()
                self._commit_alone(undone, begun)
        except BaseException:  # Ctrl-C, or a work that leaves by SystemExit
            if not begun:
                with self._mutex:
                    self._queue.extendleft(reversed(others))
                others = []
            for waiting in others:
                waiting.error = CommitUnknown("the leader of the group was stopped")
            raise
        finally:
            self._pass_on()
            for waiting in others:
                waiting.answered = True
                waiting.turn.release()

    def _pass_on(self) -> None:
        """Let the first that waits lead, or nobody."""
        with self._mutex:
            if self._queue:
                self._queue[0].turn.release()
            else:
                self._led = False

    def _commit_together(
        self, group: Sequence[_Waiting[Any]], begun: list[bool]
    ) -> Sequence[_Waiting[Any]]:
        """Run a group in one transaction; return those that must run alone.

        A full disk or an interrupt makes SQLite undo everything, not one savepoint.
        """
        if len(group) == 1:
            return group
        try:
            with self._writing() as connection:
                for waiting in group:
                    connection.execute("SAVEPOINT work")
                    waiting.try_on(connection)
                    if not connection.in_transaction:
                        return group
                    if waiting.error is not None:
                        connection.execute("ROLLBACK TO work")
                    connection.execute("RELEASE work")
                begun.append(True)
                self._commit(connection)
        except sqlite3.Error as error:
            _fail(group, storage_error(error), error)
        except StorageError as error:
            _fail(group, error, error)
        return ()

    def _commit_alone(self, waiting: _Waiting[Any], begun: list[bool]) -> None:
        try:
            with self._writing() as connection:
                waiting.try_on(connection)
                if waiting.error is None:
                    begun.append(True)
                    self._commit(connection)
        except sqlite3.Error as error:
            _fail([waiting], storage_error(error), error)
        except StorageError as error:
            _fail([waiting], error, error)


def _fail(group: Sequence[_Waiting[Any]], error: StorageError, cause: Exception) -> None:
    """Give each its own error, since a raised one takes the traceback of its thread."""
    kind = type(error) if isinstance(error, CommitUnknown | StorageUnavailable) else StorageError
    for waiting in group:
        waiting.result, waiting.error = None, kind(str(error))
        waiting.error.__cause__ = cause
