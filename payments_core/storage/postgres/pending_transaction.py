"""A transaction in PostgreSQL on the wire: what is sent when, and which answers are awaited.

BEGIN is sent with the first statement; writes are sent with the next query, or with COMMIT. So
a transaction waits once for each of its queries and once for its end. Every statement that
writes raises an error if it could not do its work, and the server then runs nothing
after it: so COMMIT can be sent before the answers to the writes have come.

A COMMIT whose answer is lost is unknown, whether or not the writes were sent with it: the server
runs them in order, so a row that the transaction inserts exists exactly if it was committed, and by
that the committer resolves it. If a connection has died in the pool, the result must be known: so
COMMIT is never in the first packet of a transaction, and any error before the second means that
nothing was committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import psycopg

from payments_core.storage.port import StorageError
from payments_core.storage.postgres.errors import commit_error, redact_error, storage_error
from payments_core.storage.postgres.pipeline import (
    EncodedParams,
    Param,
    PipelinedConnection,
    ResultRow,
    StatementFailed,
    encode_params,
)

ErrorTranslator = Callable[[psycopg.Error], StorageError]

BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WITHOUT_BEGIN = ""
"""Statements sent together are a separate transaction, and each sees its own moment."""


class PendingTransaction:
    """One transaction on a connection."""

    def __init__(self, pipeline: PipelinedConnection, begin: str) -> None:
        self._pipeline = pipeline
        self._begin = begin
        self._begun = False
        self._queue: list[tuple[str, EncodedParams]] = []
        self._means: list[ErrorTranslator] = []
        self._failure: StorageError | None = None

    def enqueue(
        self, sql: str, values: Sequence[Param], translate: ErrorTranslator = storage_error
    ) -> None:
        """Queue a statement to run before the next answer; `translate` converts its error."""
        self.raise_failure()
        try:
            self._queue.append((sql, encode_params(values)))
        except psycopg.Error as error:
            raise self.fail(storage_error(error)) from error
        self._means.append(translate)

    def query(self, sql: str, values: Sequence[Param]) -> list[ResultRow]:
        """Run the queued statements and this one, and return its rows."""
        self.enqueue(sql, values)
        return self._run()[-1]

    def query_many(self, *statements: tuple[str, Sequence[Param]]) -> list[list[ResultRow]]:
        """Run the queued statements and these, waiting once; return the rows of these."""
        for sql, values in statements:
            self.enqueue(sql, values)
        return self._run()[-len(statements) :]

    def fail(self, failure: StorageError) -> StorageError:
        """Record why nothing of this transaction will be committed."""
        self._failure = failure
        return failure

    def raise_failure(self) -> None:
        """Raise the error that ended the transaction, if the work swallowed it."""
        if self._failure is not None:
            raise self._failure

    def commit(self) -> None:
        """Run the queued statements, and commit. Raises CommitUnknown without an answer."""
        self.raise_failure()
        if not self._begun:
            if not self._queue:
                return
            self._run()
        queue, translate = self._take_queue()
        try:
            self._pipeline.run([*queue, ("COMMIT", ())])
        except StatementFailed as failed:
            error, broken = failed.error, self._pipeline.broken
            if broken or failed.place >= len(queue):
                raise self.fail(commit_error(error, broken=broken)) from redact_error(error)
            raise self.fail(translate[failed.place](error)) from redact_error(error)

    def close(self) -> None:
        """Roll back uncommitted work, and release the connection."""
        self._queue.clear()
        if self._pipeline.broken or not self._pipeline.in_transaction:
            return
        if (
            self._begin == BEGIN_SNAPSHOT
        ):  # nothing to undo, and no lock that another could run into
            self._pipeline.send_unawaited("COMMIT")
            return
        with suppress(StatementFailed):
            self._pipeline.run([("ROLLBACK", ())])

    def _run(self) -> list[list[ResultRow]]:
        queue, translate = self._take_queue()
        if not self._begun and self._begin != WITHOUT_BEGIN:
            queue, translate = [(self._begin, ()), *queue], [storage_error, *translate]
        self._begun = True
        try:
            return self._pipeline.run(queue)
        except StatementFailed as failed:
            place = 0 if self._pipeline.broken else failed.place
            raise self.fail(translate[place](failed.error)) from redact_error(failed.error)

    def _take_queue(self) -> tuple[list[tuple[str, EncodedParams]], list[ErrorTranslator]]:
        queue, translate = self._queue, self._means
        self._queue, self._means = [], []
        return queue, translate
