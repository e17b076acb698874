"""All partitions at once, for tools that must see everything: an optional protocol beyond the port.

An adapter that offers it can be walked through while the service runs (`walk`), and can be had
alone (`alone`): nobody else writes then, and what is loaded is there as a whole or not at all.
SQLite, PostgreSQL and memory offer it. A damaged row does not end a walk: it is told, and passed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import attrs

from payments_core.storage import documents
from payments_core.storage.port import Located, Storage, StorageError
from payments_core.storage.records import R, Record, Value
from payments_core.storage.unreadable import readable

_log = logging.getLogger(__name__)

BATCH = 1_000

Place = tuple[str, str]
"""Where a record lies: its partition and its id."""


@attrs.frozen
class Row:
    """A record at rest: `columns` in the order of its collection's, `body` as it was stored."""

    partition: str
    id: str
    version: int
    columns: tuple[Value, ...]
    body: str = attrs.field(repr=False)

    @property
    def place(self) -> Place:
        """Where it lies."""
        return self.partition, self.id

    def read(self, kind: type[R]) -> R:
        """The record, as the kind knows it."""
        return documents.decode(kind, self.body)


class Alone(Protocol):
    """A storage that nobody else writes to meanwhile."""

    def rows(
        self, kind: type[Record], *, after: Place | None = None, limit: int = BATCH
    ) -> Sequence[Row]:
        """Rows of every partition by (partition, id); none are the end."""

    def load(self, kind: type[Record], rows: Sequence[Row]) -> None:
        """Store rows exactly as they are: versions, schemas and unknown fields too.

        Raises UniqueConflict for what is there already, or breaks a unique key; the whole then
        ends, and nothing is stored.
        """


@runtime_checkable
class Retires(Protocol):
    """A storage, had alone, that can be made to refuse every later write, of any release."""

    def is_retired(self) -> bool:
        """Whether it refuses them."""

    def retire(self, note: str) -> None:
        """Refuse all writes from the end of this on; their errors say the note."""

    def reinstate(self) -> bool:
        """Take writes again; whether it had been retired."""


@runtime_checkable
class Wholesale(Protocol):
    """An adapter that can be walked through, and had alone."""

    def walk(
        self, kind: type[R], *, after: Place | None = None, limit: int = BATCH
    ) -> Sequence[Located[R]]:
        """The records of every partition by (partition, id), behind `after`; none are the end.

        Each call sees what is committed. A row that cannot be read, or whose record says another
        id, is passed over with an alarm. Raises StorageUnavailable.
        """

    def alone(self) -> AbstractContextManager[Alone]:
        """Keep everybody else from writing. What was loaded is committed at the end, durably.

        An exception undoes it, and comes out unchanged; one of `load`'s that was swallowed comes
        out at the end. Others who write meanwhile get
        StorageUnavailable when their patience ends. Raises StorageUnavailable where others do not
        stop writing, and CommitUnknown.
        """


class NotWholesale(StorageError):
    """This adapter cannot be walked through."""


def wholesale(storage: Storage) -> Wholesale:
    """The storage as one that can be walked through. Raises NotWholesale."""
    if not isinstance(storage, Wholesale):
        raise NotWholesale(f"a {type(storage).__name__} cannot be seen as a whole")
    return storage


def every(storage: Storage, kind: type[R], *, batch: int = BATCH) -> Iterator[Located[R]]:
    """All records of a kind, in every partition. Raises NotWholesale, StorageUnavailable.

    Others go on writing: what changes behind the walk is not seen, what comes before it is. What
    cannot be read is missing, and told by an alarm each.
    """
    whole = wholesale(storage)
    after: Place | None = None
    while found := whole.walk(kind, after=after, limit=batch):
        yield from found
        after = (found[-1].partition, found[-1].record.id)


def row_of(partition: str, record: Record) -> Row:
    """The row of a record that has its version and schema, to be loaded."""
    return Row(
        partition,
        record.id,
        record.version,
        type(record).collection.values(record),
        documents.encode(record).decode(),
    )


def records_of(
    kind: type[R],
    after: Place | None,
    behind: Callable[[Place | None], Sequence[tuple[str, str, str | bytes]]],
) -> list[Located[R]]:
    """What a walk gives of the rows behind a place: partition, id and body, a batch at a time.

    An alarm is given as the walk passes a row. What lies behind the last record is left to the
    next call, which begins there, so each is told once.
    """
    while rows := behind(after):
        found: list[Located[R]] = []
        passed: list[Place] = []
        for partition, id, body in rows:
            record = readable(kind, body)
            if record is None or record.id != id:
                passed.append((partition, id))
                continue
            _alarm_of(kind, passed)
            passed.clear()
            found.append(Located(partition, record))
        if found:
            return found
        _alarm_of(kind, passed)
        after = passed[-1]
    return []


def _alarm_of(kind: type[Record], passed: Sequence[Place]) -> None:
    for partition, id in passed:
        name = kind.collection.name
        _log.critical(
            "ALARM: %s of %s in %s cannot be read and is passed over", id, partition, name
        )
