"""Rows whose stored body cannot be read: they are set aside or skipped, with an alarm.

A damaged job must not stop its queue: an adapter leases its row permanently, by its column and with
its body as it was. A damaged row must not stop a list, if the caller of `find` says so, nor what
other rows decide. An alarm names the place of a row and never its content.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from payments_core.storage import documents
from payments_core.storage.port import Transaction
from payments_core.storage.records import R, Record

_log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_ALARMS = 5
"""The number of rows named for one list; `payments admin damaged list` names all."""

_SKIPPED = "ALARM: %s of %s in %s cannot be read and is skipped"


def try_decode(kind: type[R], body: bytes | str) -> R | None:
    """The record of a stored body, or None."""
    try:
        return documents.decode(kind, body)
    except Exception:  # for any error
        return None


class AlarmLimit:
    """The alarms of one `find` or of one list: MAX_ALARMS, and one that reports further rows.

    A page of damaged rows could fill the log otherwise, at each request.
    """

    def __init__(self) -> None:
        self._raised = 0

    def raise_one(self, message: str, *facts: str) -> None:
        """Log an alarm if the maximum is not reached."""
        self._raised += 1
        if self._raised <= MAX_ALARMS:
            _log.critical(message, *facts)
        elif self._raised == MAX_ALARMS + 1:
            _log.critical("ALARM: more rows of the same list cannot be read and are skipped")


def decode_row(
    kind: type[R],
    partition: str,
    id: str,
    body: bytes | str,
    *,
    skip_damaged: bool,
    alarms: AlarmLimit,
) -> R | None:
    """The record of a row that `find` reads. Raises UnreadableDocument.

    With `skip_damaged`, a row that cannot be read, or whose record has another id, gives an alarm
    and None.
    """
    if not skip_damaged:
        return documents.decode(kind, body)
    record = try_decode(kind, body)
    if record is None or record.id != id:
        alarms.raise_one(_SKIPPED, id, partition, kind.collection.name)
        return None
    return record


def decode_located(
    kind: type[R],
    partition: str,
    id: str,
    body: bytes | str,
    on_damaged: Callable[[str, str], None] | None,
) -> R | None:
    """The record of a row that `locate` reads. Raises UnreadableDocument without `on_damaged`.

    `on_damaged` is called for a row that cannot be read or has another id; the result is None.
    """
    if on_damaged is None:
        return documents.decode(kind, body)
    record = try_decode(kind, body)
    if record is None or record.id != id:
        on_damaged(partition, id)
        return None
    return record


def lock_readable(
    tx: Transaction, partition: str, kind: type[R], ids: Collection[str]
) -> Mapping[str, R]:
    """The existing records of these ids, locked; a row that cannot be read gives an alarm.

    It is for decisions that hold whatever the damaged row says.
    """
    try:
        return tx.get_many(kind, ids, for_update=True)
    except documents.UnreadableDocument:
        return {id: one for id in sorted(ids) if (one := _try_lock(tx, partition, kind, id))}


def _try_lock(tx: Transaction, partition: str, kind: type[R], id: str) -> R | None:
    try:
        return tx.get(kind, id, for_update=True)
    except documents.UnreadableDocument:  # its text may quote the row's content
        log_damaged_row(kind, partition, id)
        return None


def load_listed(
    partition: str, kind: type[Record], ids: Iterable[str], load: Callable[[str], T]
) -> tuple[T, ...]:
    """The result of `load` for each record of a list, by its id, and its related rows.

    A record is shown completely or not at all: if a related row cannot be read, the list skips
    the record, with an alarm.
    """
    loaded: list[T] = []
    alarms = AlarmLimit()
    for id in ids:
        try:
            loaded.append(load(id))
        except documents.UnreadableDocument:  # its text may quote the row's content
            message = "ALARM: %s of %s in %s is not listed: a row that belongs to it is damaged"
            alarms.raise_one(message, id, partition, kind.collection.name)
    return tuple(loaded)


@contextmanager
def leave_out_damaged(what: str, partition: str) -> Iterator[None]:
    """Wraps one tenant's part of work for all tenants: if one of its rows cannot be
    read, it is left out with an alarm, and the others continue."""
    try:
        yield
    except documents.UnreadableDocument:  # its text may quote the row's content
        _log.critical("ALARM: %s of %s is skipped: a row cannot be read", what, partition)


def require_row(kind: type[R], id: str, record: R | None) -> R:
    """The record that another one names. Raises UnreadableDocument if its row was removed."""
    if record is None:
        raise documents.UnreadableDocument(f"{kind.collection.name}: {id} is missing")
    return record


def log_damaged_row(kind: type[Record], partition: str, id: str) -> None:
    """Report to the operator which row was skipped."""
    _log.critical(_SKIPPED, id, partition, kind.collection.name)


def log_damaged_jobs(jobs: Iterable[tuple[str, str]]) -> None:
    """Report to the operator which jobs were set aside, by partition and id."""
    for partition, id in jobs:
        _log.critical("ALARM: job %s of %s cannot be read and is set aside", id, partition)
