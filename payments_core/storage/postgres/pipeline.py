"""One connection to PostgreSQL, used with pipelines of prepared statements.

psycopg connects and keeps the socket; the statements go through its wrapper of libpq. The cost of a
statement in its cursors is most of the cost of a small transaction, and a cursor waits for
each answer. Here `run` waits once for the answers to many statements, and the end of a snapshot is
not waited for at all.
"""

from __future__ import annotations

import hashlib
import select
import time
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.pq import ConnStatus, ExecStatus, PipelineStatus, TransactionStatus

from payments_core.storage.postgres.errors import ServerTimeout, from_result
from payments_core.waiting import NO_WAITS, Waits

Connection = psycopg.Connection[tuple[Any, ...]]
Scalar = str | int | bytes | None
Param = Scalar | Sequence[Scalar]
EncodedParams = Sequence[bytes | None]
ResultRow = tuple[bytes | None, ...]

PREPARE_AFTER_USES = 3
"""A statement is prepared at its n-th use on a connection."""
MAX_PREPARED = 500
"""Each prepared statement costs the server some tens of kilobytes per connection."""

_SUCCESS = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)


class StatementFailed(Exception):
    """A statement failed, and none after it was run. `place` is its index, from 0."""

    def __init__(self, error: psycopg.Error, place: int) -> None:
        super().__init__(place)
        self.error = error
        self.place = place


class PipelinedConnection:
    """A connection, with its unanswered statements. It belongs to one thread at a time."""

    def __init__(
        self,
        connection: Connection,
        *,
        prepares: bool = True,
        response_timeout_ms: int | None = None,
        waits: Waits = NO_WAITS,
    ) -> None:
        """The server may be silent for `response_timeout_ms` milliseconds, or forever if None."""
        self.connection = connection
        self.permit: Any = None
        """The pool's count of it while it is taken."""
        self.is_unanswered: bool = False
        """Whether it was closed because the server did not answer."""
        self._response_timeout_ms = response_timeout_ms
        self._waits = waits
        self.made_at: float = time.monotonic()
        self.used_at_ms: float = self.made_at
        self._pgconn = connection.pgconn
        self._prepares = prepares
        self._names: dict[str, bytes] = {}
        self._uses: dict[str, int] = {}
        self._spoilt: dict[str, int] = {}
        """How often the preparation of a text failed."""
        self._sent: list[str | None] = []
        """For each awaited answer the text that it prepares, None for a statement's own."""
        self._unread = 0
        """Unread answers to `send_unawaited`."""
        self._midway = False
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)

    @property
    def broken(self) -> bool:
        """Whether the connection has ended, or its state is unknown."""
        return self._midway or self._pgconn.status == ConnStatus.BAD

    @property
    def is_free(self) -> bool:
        """Whether another caller may use it: it is open, and its transaction, if any, ends."""
        return not self.broken and (self._unread > 0 or not self.in_transaction)

    @property
    def in_transaction(self) -> bool:
        """Whether the server waits for the end of a transaction, failed or not."""
        return self._pgconn.transaction_status != TransactionStatus.IDLE

    def run(self, statements: Sequence[tuple[str, EncodedParams]]) -> list[list[ResultRow]]:
        """Send statements, with `$1`, `$2`, … for their values, and return the rows of each.

        Raises Failed; if the connection ended, it is closed, and `place` has no meaning.
        """
        self._midway = True
        try:
            if self._pgconn.pipeline_status == PipelineStatus.OFF:
                self._pgconn.enter_pipeline_mode()
            for sql, values in statements:
                self._send(sql, values)
            self._pgconn.pipeline_sync()
            self._flush()
            while self._unread:
                self._skip_result()
            rows = self._read_results()
        except psycopg.Error as error:
            self.connection.close()
            raise StatementFailed(error, 0) from None
        self._midway = False
        if isinstance(rows, StatementFailed):
            raise rows
        return rows

    def send_unawaited(self, sql: str) -> None:
        """Send a statement without waiting for its answer, which is skipped later."""
        self._midway = True
        try:
            self._pgconn.send_query_params(sql.encode(), ())
            self._pgconn.pipeline_sync()
            self._unread += 1
            self._pgconn.flush()
        except psycopg.Error:
            self.connection.close()
        self._midway = False

    def drain(self) -> None:
        """Read unread answers, so that the driver's own cursors can use the connection."""
        self._midway = True
        try:
            while self._unread:
                self._skip_result()
            if self._pgconn.pipeline_status != PipelineStatus.OFF:
                self._pgconn.exit_pipeline_mode()
        except psycopg.Error as error:
            self.connection.close()
            raise StatementFailed(error, 0) from None
        self._midway = False

    def is_alive(self) -> bool:
        """Whether the server is not known to have ended the connection. Makes no call."""
        try:
            while self._poll.poll(0):
                self._pgconn.consume_input()
        except psycopg.Error:
            return False
        return not self.broken

    def _send(self, sql: str, values: EncodedParams) -> None:
        name = self._names.get(sql) or self._prepare(sql)
        if name:
            self._pgconn.send_query_prepared(name, values)
        else:
            self._pgconn.send_query_params(sql.encode(), values)
        self._sent.append(None)

    def _prepare(self, sql: str) -> bytes:
        """Prepare the statement if it is used often, and return its name."""
        if not self._prepares or len(self._names) >= MAX_PREPARED:
            return b""
        uses = self._uses[sql] = self._uses.get(sql, 0) + 1
        if uses < PREPARE_AFTER_USES:
            if len(self._uses) > 2 * MAX_PREPARED:
                self._uses.clear()
            return b""
        name = _statement_name(sql, self._spoilt.get(sql, 0))
        self._pgconn.send_prepare(name, sql.encode())
        self._names[sql] = name
        self._sent.append(sql)
        return name

    def _read_results(self) -> list[list[ResultRow]] | StatementFailed:
        """The rows of each statement, or the first failure."""
        rows: list[list[ResultRow]] = []
        failure: StatementFailed | None = None
        sent, self._sent = self._sent, []
        try:
            for prepares in sent:
                result = self._read_result()
                if result.status not in _SUCCESS:
                    failure = failure or StatementFailed(from_result(result), len(rows))
                    if prepares is not None:
                        self._forget(prepares)
                elif prepares is None:
                    rows.append(_result_rows(result))
            self._read_result()  # of the sync
        except psycopg.Error:
            if failure is None:
                raise
            self.connection.close()  # the server said why it was going to end it
        return failure or rows

    def _forget(self, sql: str) -> None:
        """Record that a text was not prepared, since it or a statement before it failed.

        The server has no statement of that name, but a pooler that tracks names has recorded
        it, and refuses the same name from us again. So the next try gets another one.
        """
        del self._names[sql]
        self._spoilt[sql] = self._spoilt.get(sql, 0) + 1
        self._uses[sql] = 0

    def _skip_result(self) -> None:
        self._read_result()
        self._read_result()
        self._unread -= 1

    def _read_result(self) -> psycopg.pq.abc.PGresult:
        """The next complete answer."""
        is_busy, get_result = self._pgconn.is_busy, self._pgconn.get_result
        while True:
            while is_busy():
                self._wait()
                self._pgconn.consume_input()
            result = get_result()
            if result is not None:
                return result
            # It was the mark between two statements, or the end of the connection.
            if self._pgconn.status == ConnStatus.BAD:
                raise psycopg.OperationalError("the connection was lost")

    def _flush(self) -> None:
        """Hand everything to the system; answers of the server are read meanwhile."""
        while self._pgconn.flush():
            self._poll.modify(self._pgconn.socket, select.POLLIN | select.POLLOUT)
            events = self._wait()
            self._poll.modify(self._pgconn.socket, select.POLLIN)
            if events & ~select.POLLOUT:
                self._pgconn.consume_input()

    def _wait(self) -> int:
        """The readiness of the socket. The server's own timeouts do not end a hanging server,
        and the system's do not end one whose system still acknowledges packets."""
        with self._waits.announce():
            ready = self._poll.poll(self._response_timeout_ms)
        if not ready:
            self.is_unanswered = True
            raise ServerTimeout(f"no response within {self._response_timeout_ms} ms")
        return ready[0][1]


def encode_params(values: Sequence[Param]) -> list[bytes | None]:
    """Values as the texts that PostgreSQL reads. Raises DataError for U+0000."""
    return [_encode_param(value) for value in values]


def _statement_name(sql: str, tries: int) -> bytes:
    """The name of a prepared statement, after some failed tries on this connection.

    It depends on the text: behind a pooler that mixes up its servers' connections, another's name
    would be run in its place, and with such names that is the same statement.
    """
    digest = hashlib.blake2b(sql.encode(), digest_size=16).hexdigest()
    return f"payments_{digest}{f'_{tries}' * bool(tries)}".encode()


def _result_rows(result: psycopg.pq.abc.PGresult) -> list[ResultRow]:
    value, columns = result.get_value, range(result.nfields)
    return [tuple([value(row, column) for column in columns]) for row in range(result.ntuples)]


def _encode_param(value: Param) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        if "\0" in value:  # libpq would end the text there
            raise psycopg.DataError("a text with U+0000 cannot be stored")
        return value.encode()
    if isinstance(value, int):
        return b"%d" % value
    return b"{%b}" % b",".join([_encode_element(item) for item in value])


def _encode_element(value: Scalar) -> bytes:
    text = _encode_param(value)
    if text is None:
        return b"NULL"
    if isinstance(value, int):
        return text
    return b'"%b"' % text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
