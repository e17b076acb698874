"""All partitions at once, for tools that must see everything: an optional protocol beyond the port.

An adapter that offers it can be walked through while the service runs (`walk`), and can be had
alone (`alone`): nobody else writes then, and what is loaded is there as a whole or not at all.
SQLite, PostgreSQL and memory offer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import attrs

from payments_core.storage import documents
from payments_core.storage.port import Located, Storage, StorageError
from payments_core.storage.records import R, Record, Value

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

        Each call sees what is committed. Raises StorageUnavailable.
        """

    def alone(self) -> AbstractContextManager[Alone]:
        """Keep everybody else from writing. What was loaded is committed at the end, durably.

        An exception undoes it, and comes out unchanged. Others who write meanwhile get
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

    Others go on writing: what changes behind the walk is not seen, what comes before it is.
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
