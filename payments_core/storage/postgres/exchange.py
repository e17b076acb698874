"""A transaction in PostgreSQL as it travels: what is sent when, and what is waited for.

BEGIN goes with the first statement; what writes goes with the next question, or with COMMIT. So
a transaction waits once for each of its questions and once for its end. Every statement that
writes says by an error that it could not do what was wanted, and the server then runs nothing
behind it: so COMMIT can be sent before the answers to the writes have come.

A COMMIT whose answer is lost is unknown, whether or not the writes travelled with it: the server
runs them in order, so a row that the transaction inserts is there exactly if it was committed,
and by that the ledger resolves it. What must not become unknown is that a connection had died in
the pool: so COMMIT is never in the first packet of a transaction, and whatever goes wrong before
the second has committed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import psycopg

from payments_core.storage.port import StorageError
from payments_core.storage.postgres.errors import commit_error, plain, storage_error
from payments_core.storage.postgres.wire import Encoded, Failed, Param, Row, Wire, encoded

Means = Callable[[psycopg.Error], StorageError]

WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED"
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Exchange:
    """One transaction on a connection."""

    def __init__(self, wire: Wire, begin: str) -> None:
        self._wire = wire
        self._begin = begin
        self._begun = False
        self._queue: list[tuple[str, Encoded]] = []
        self._means: list[Means] = []
        self._failure: StorageError | None = None

    def later(self, sql: str, values: Sequence[Param], means: Means = storage_error) -> None:
        """Run a statement before anything else is answered; `means` translates its error."""
        self.require_whole()
        try:
            self._queue.append((sql, encoded(values)))
        except psycopg.Error as error:
            raise self.end(storage_error(error)) from error
        self._means.append(means)

    def ask(self, sql: str, values: Sequence[Param]) -> list[Row]:
        """Run what is queued and this, and return its rows."""
        self.later(sql, values)
        return self._run()[-1]

    def end(self, failure: StorageError) -> StorageError:
        """Take note of why nothing of this transaction will be committed."""
        self._failure = failure
        return failure

    def require_whole(self) -> None:
        """Raise what ended the transaction, should the work have swallowed it."""
        if self._failure is not None:
            raise self._failure

    def commit(self) -> None:
        """Run what is queued, and commit. Raises CommitUnknown where no answer came."""
        self.require_whole()
        if not self._begun:
            if not self._queue:
                return
            self._run()
        queue, means = self._taken()
        try:
            self._wire.run([*queue, ("COMMIT", ())])
        except Failed as failed:
            error, broken = failed.error, self._wire.broken
            if broken or failed.place >= len(queue):
                raise self.end(commit_error(error, broken=broken)) from plain(error)
            raise self.end(means[failed.place](error)) from plain(error)

    def leave(self) -> None:
        """Undo what was not committed, and let the connection go."""
        self._queue.clear()
        if self._wire.broken or not self._wire.in_transaction:
            return
        if self._begin == SNAPSHOT:  # nothing to undo, and no lock that another could run into
            self._wire.leave("COMMIT")
            return
        with suppress(Failed):
            self._wire.run([("ROLLBACK", ())])

    def _run(self) -> list[list[Row]]:
        queue, means = self._taken()
        if not self._begun:
            queue, means = [(self._begin, ()), *queue], [storage_error, *means]
            self._begun = True
        try:
            return self._wire.run(queue)
        except Failed as failed:
            place = 0 if self._wire.broken else failed.place
            raise self.end(means[place](failed.error)) from plain(failed.error)

    def _taken(self) -> tuple[list[tuple[str, Encoded]], list[Means]]:
        queue, means = self._queue, self._means
        self._queue, self._means = [], []
        return queue, means
