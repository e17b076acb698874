"""Rows whose stored body cannot be read: they are set aside or passed over, with an alarm.

A damaged job must not stop its queue: an adapter leases its row for ever, by its column and with
its body as it was. A damaged row must not stop a list, where the caller of `find` says so. An alarm
names the place of a row and never what it contains.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from payments_core.storage import documents
from payments_core.storage.records import R, Record

_log = logging.getLogger(__name__)

T = TypeVar("T")


def try_decode(kind: type[R], body: bytes | str) -> R | None:
    """The record of a stored body, or None."""
    try:
        return documents.decode(kind, body)
    except Exception:  # whatever is wrong with it
        return None


def decode_row(
    kind: type[R], partition: str, id: str, body: bytes | str, *, skip_damaged: bool
) -> R | None:
    """The record of a row that `find` came to. Raises UnreadableDocument.

    With `skip_damaged`, a row that cannot be read, or whose record says another id, gives an alarm
    and None.
    """
    if not skip_damaged:
        return documents.decode(kind, body)
    record = try_decode(kind, body)
    if record is None or record.id != id:
        log_damaged_row(kind, partition, id)
        return None
    return record


def load_listed(partition: str, records: Sequence[R], load: Callable[[R], T]) -> tuple[T, ...]:
    """What `load` makes of each record of a list, from rows that belong to it.

    A record is shown as a whole or not at all: where such a row cannot be read, the list passes
    over the record, with an alarm.
    """
    loaded: list[T] = []
    for record in records:
        try:
            loaded.append(load(record))
        except documents.UnreadableDocument:  # its text may quote what the row holds
            name = type(record).collection.name
            message = "ALARM: %s of %s in %s is not listed: a row that belongs to it is damaged"
            _log.critical(message, record.id, partition, name)
    return tuple(loaded)


def log_damaged_row(kind: type[Record], partition: str, id: str) -> None:
    """Tell the operator which row was passed over."""
    name = kind.collection.name
    _log.critical("ALARM: %s of %s in %s cannot be read and is skipped", id, partition, name)


def log_damaged_jobs(jobs: Iterable[tuple[str, str]]) -> None:
    """Tell the operator which jobs were set aside, by partition and id."""
    for partition, id in jobs:
        _log.critical("ALARM: job %s of %s cannot be read and is set aside", id, partition)
