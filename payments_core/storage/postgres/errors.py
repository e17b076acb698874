"""The meaning of PostgreSQL's errors to a caller, by their SQLSTATE.

No text made here contains row data: of the server's message only the primary part is
kept, since DETAIL and CONTEXT quote values. Of a failed connection's reason only known
words are kept: libpq quotes parameters of the URL, and one may be a part of a password.
"""

from __future__ import annotations

import re

import psycopg
from psycopg import errors

from payments_core.storage.port import (
    CommitUnknown,
    LockTimeout,
    StorageError,
    StorageUnavailable,
)

DIVISION_BY_ZERO = "22012"
UNIQUE_VIOLATION = "23505"
INSUFFICIENT_PRIVILEGE = "42501"
READ_ONLY = "25006"

_UNAVAILABLE = (
    "08",  # the connection
    READ_ONLY,  # this server has become a standby, or is one
    "25P03",  # idle_in_transaction_session_timeout
    "25P04",  # transaction_timeout
    "40",  # serialization failure, deadlock, and a COMMIT whose outcome is not known
    "53",  # disk full, out of memory, too many connections
    "57",  # shut down, starting up, cancelled by statement_timeout
    "58",  # the server's disk or system failed
)
_ENDED = ("08000", "08001", "08003", "08004", "08006", "57P01", "57P02", "57P03", "57P05")
_LOST = ("08", "57P01", "57P02", "57P03", "57P05", READ_ONLY)
_STALE = ("26000", "42P05", "0A000")
"""A prepared statement is gone, taken, or planned for a table before a migration."""
_RACES = ("40001", "40P01")
_UNKNOWN = ("08", "40003", "57", "58", "XX")
"""Errors of COMMIT with an unknown outcome. Citus' coordinator also answers XX000 if
a node ended while it committed its part: the rows may be stored. And its statement_timeout may come
when the node has committed and the coordinator has not."""
_UNTRACKED = "behind a pooler that does not track prepared statements, add prepare=off to the URL"
_NOT_MIGRATED = "has `migrate` been run?"
_HINTS = {
    "26000": _UNTRACKED,
    "42P05": _UNTRACKED,
    "42P01": _NOT_MIGRATED,
    "42703": _NOT_MIGRATED,
    "3F000": _NOT_MIGRATED,
}
"""The remedy, if the server's message does not name it."""

_PLACE = r'connection to server (?:at|on socket) "[^"\s@]*"(?: \([0-9A-Fa-f.:]+\))?(?:, port \d+)?'
_REASONS = (
    "Connection refused",
    "Connection reset by peer",
    "Connection timed out",
    "timeout expired",
    "No route to host",
    "Network is unreachable",
    "Host is unreachable",
    "No such file or directory",
    "Permission denied",
    "failed to resolve host",
    "invalid port number",
    "server closed the connection unexpectedly",
    "server does not support SSL",
    "SSL error: certificate verify failed",
    "no password supplied",
    "(?:password|Peer|Ident|LDAP|PAM|GSSAPI|certificate) authentication failed",
    "no pg_hba.conf entry",
    "too many connections",
    "remaining connection slots are reserved",
    "sorry, too many clients already",
    "the database system is (?:starting up|shutting down|in recovery mode|not yet accepting|not a)",
    "session is (?:not )?read-only",
    "server is (?:not )?in hot standby mode",
    # PgBouncer's own.
    "unsupported startup parameter(?: in options)?",
    "no such (?:database|user)",
    "SASL authentication failed",
    "pgbouncer cannot connect to server",
    "server login has been failing",
    "no more connections allowed",
    "query_wait_timeout",
    "client_login_timeout",
)
_STARTUP_REFUSED = "unsupported startup parameter"
_STARTUP_HINT = (
    "a pooler refuses the settings that a connection begins with: add settings=off to the URL, "
    "leave out options, and set both for the role or the database (ALTER ROLE, ALTER DATABASE)"
)
_KNOWN = re.compile(rf"(?:{_PLACE} failed: )?(?:(?:FATAL|ERROR): +)?(?:{'|'.join(_REASONS)})")


class ServerTimeout(psycopg.OperationalError):
    """The server is alive, as far as the system knows, but does not answer."""


class NodeLost(psycopg.OperationalError):
    """The server is alive, but reports that a machine behind it went away.

    Citus' coordinator does this. Its other machines, and our connections to it, are healthy.
    """


def storage_error(error: psycopg.Error) -> StorageError:
    """Our error for a driver's error. Raise it `from` `redact_error(error)`.

    A lock that did not come within `lock_timeout` is LockTimeout and not Conflict: nothing
    shows that the other transaction will commit, and a caller that ran again at once would only
    wait in the same queue.
    """
    state = error.sqlstate
    text = f"PostgreSQL: {_message(error)}"
    if state is None:
        away = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return StorageUnavailable(text) if away else StorageError(text)
    text = f"{text} ({state})"
    if state == "55P03":
        return LockTimeout(text)
    if state in _HINTS:
        text = f"{text}; {_HINTS[state]}"
    return (StorageUnavailable if state.startswith((*_UNAVAILABLE, *_STALE)) else StorageError)(
        text
    )


def connect_error(error: psycopg.Error) -> psycopg.Error:
    """Why a connection could not be made, without secrets."""
    known = dict.fromkeys(found.group() for found in _KNOWN.finditer(str(error)))
    why = "; ".join(known) or "the reason may contain the URL and is not shown"
    if _STARTUP_REFUSED in why:
        why = f"{why}; {_STARTUP_HINT}"
    return psycopg.OperationalError(f"could not connect: {why}")


def commit_error(error: psycopg.Error, *, broken: bool) -> StorageError:
    """Our error for an error that came while COMMIT was on its way.

    Only a server's answer on a connection that stays open, with a state that proves a
    rollback, proves that nothing happened. An error that ends the connection may follow the commit:
    a shutdown does not undo it.
    """
    state = error.sqlstate
    if broken or state is None or state.startswith(_UNKNOWN):
        return CommitUnknown(f"PostgreSQL: {_message(error)}")
    return storage_error(error)


def is_connection_lost(error: BaseException | None) -> bool:
    """Whether another connection may succeed: this one ended, or leads to a standby.

    After a connection without any answer there is no time left for another.
    """
    if not isinstance(error, psycopg.Error) or isinstance(error, ServerTimeout):
        return False
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith((*_LOST, *_STALE))


def is_node_lost(error: BaseException | None) -> bool:
    """Whether it is a machine behind the server that went away."""
    return isinstance(error, NodeLost)


def is_race(error: BaseException | None) -> bool:
    """Whether the server rolled the transaction back for another's sake, and it may run again."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _RACES


def redact_error(error: psycopg.Error) -> psycopg.Error:
    """A copy of an error with its primary message alone, as the cause of ours."""
    bare = type(error)(_message(error))
    bare.sqlstate = error.sqlstate
    return bare.with_traceback(error.__traceback__)


def from_result(result: psycopg.pq.abc.PGresult) -> psycopg.Error:
    """The driver's error for a failed statement's result."""
    field = psycopg.pq.DiagnosticField
    state = (result.error_field(field.SQLSTATE) or b"").decode() or None
    message = (result.error_field(field.MESSAGE_PRIMARY) or b"").decode("utf-8", "replace")
    severity = result.error_field(field.SEVERITY_NONLOCALIZED)
    try:
        kind: type[psycopg.Error] = errors.lookup(state or "")
        if state in _ENDED and severity == b"ERROR":  # FATAL: the server disconnects
            kind = NodeLost
    except KeyError:
        kind = psycopg.OperationalError if state is None else psycopg.DatabaseError
    error = kind(message or "the connection was lost", info=result)
    error.sqlstate = state
    return error


def _message(error: psycopg.Error) -> str:
    primary = error.diag.message_primary
    return " ".join((primary or str(error) or "the connection was lost").split())
