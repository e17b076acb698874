"""Many records at once, for adapters that can do it in fewer statements.

An adapter's rows may offer `get_many`, `count`, `write` and `read_ahead` as declared here, and its
storage `fetch` and `read_apart`; without them each record is read or written by itself, to the same
effect. What costs is not the statement's work: around each one a thread gives up the interpreter
and has to wait for it again, and for the network too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import attrs

from payments_core.storage.port import Position, Snapshot, Storage, Transaction, Where
from payments_core.storage.records import R, Record, Value

T = TypeVar("T")

Lock = Literal["none", "shared", "exclusive"]


@attrs.frozen
class Get:
    """A record that is about to be asked for.

    `shared` is for what will be held, `exclusive` for `get(for_update=True)`. `is_optional` says
    that it is often absent, so that an adapter makes certain of that at once.
    """

    kind: type[Record]
    id: str
    lock: Lock = "none"
    is_optional: bool = False


@attrs.frozen
class Find:
    """A first page that is about to be asked for, without comparisons."""

    kind: type[Record]
    index: str
    key: tuple[Value, ...]
    limit: int


Question = Get | Find

# What an adapter offers is asked for by name: `isinstance` of a protocol takes some microseconds.
ReadAhead = Callable[[Sequence[Question]], None]
Fetch = Callable[[str, Sequence[Get]], Sequence[Record | None]]
ReadApart = Callable[[str, Callable[[Snapshot], Any]], Any]
ReadMany = Callable[..., Mapping[str, Any]]
Write = Callable[[Sequence[Record], Sequence[Record], Sequence[Record]], None]


class ReadsMany(Protocol):
    """Rows that can be read by many ids in one go."""

    def get_many(
        self, kind: type[R], ids: Collection[str], *, for_update: bool = False
    ) -> Mapping[str, R]:
        """As `get`, for each of the ids; those that are absent are not in the answer."""


@runtime_checkable
class CountsRecords(Protocol):
    """Rows that can be counted without reading their documents."""

    def count(
        self,
        kind: type[R],
        index: str,
        key: Sequence[Value],
        *,
        where: Sequence[Where],
        after: Position | None,
        limit: int,
    ) -> int:
        """How many records a page has that `find` answers to the same question."""


class WritesMany(Protocol):
    """A transaction that can write many records in one go."""

    def write(
        self, inserts: Sequence[Record], replaces: Sequence[Record], deletes: Sequence[Record]
    ) -> None:
        """As `replace`, `delete` and `insert` for each, in this order.

        A record that comes twice is refused with VersionConflict, as its version has changed.
        """


class ReadsAhead(Protocol):
    """Rows that can answer many questions in one go."""

    def read_ahead(self, questions: Sequence[Question]) -> None:
        """Keep the answers for the calls that ask these questions; others are asked as ever.

        An answer that is kept is as good as one from now: a transaction's own writes count, and
        locks are taken here, in the order of the questions. What fails is raised by either call.
        """


class FetchesRecords(Protocol):
    """A storage that reads a few records of one moment without opening a snapshot."""

    def fetch(self, partition: str, questions: Sequence[Get]) -> Sequence[Record | None]:
        """As `read` with a `get` for each."""


class ReadsApart(Protocol):
    """A storage that answers questions which need not agree, without opening a snapshot."""

    def read_apart(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        """As `read`, but each question may be answered of a moment of its own.

        None is older than a commit that was answered before it was asked.
        """


def read_ahead(snapshot: Snapshot, *questions: Question) -> None:
    """Say what will be asked, so that an adapter may wait once for all of it.

    It changes no answer: `get` and `find` are called as without it.
    """
    if len(questions) > 1:
        offered: ReadAhead | None = getattr(snapshot, "read_ahead", None)
        if offered is not None:
            offered(questions)


def fetch(storage: Storage, partition: str, *questions: Get) -> Sequence[Any]:
    """The records of one snapshot, None for those that are absent."""
    offered: Fetch | None = getattr(storage, "fetch", None)
    if offered is not None:
        return offered(partition, questions)

    def load(snapshot: Snapshot) -> Sequence[Any]:
        read_ahead(snapshot, *questions)
        return [snapshot.get(question.kind, question.id) for question in questions]

    return storage.read(partition, load)


def read_apart(storage: Storage, partition: str, work: Callable[[Snapshot], T]) -> T:
    """Run `work`, which asks one question, or some whose answers need not be of one moment."""
    offered: ReadApart | None = getattr(storage, "read_apart", None)
    if offered is None:
        return storage.read(partition, work)
    result: T = offered(partition, work)
    return result


def get_many(snapshot: Snapshot, kind: type[R], ids: Collection[str]) -> Mapping[str, R]:
    """The records of those ids that there are."""
    offered: ReadMany | None = getattr(snapshot, "get_many", None)
    if offered is not None:
        return offered(kind, ids)
    found = ((id, snapshot.get(kind, id)) for id in ids)
    return {id: record for id, record in found if record is not None}


def count(
    snapshot: Snapshot,
    kind: type[R],
    index: str,
    key: Sequence[Value] = (),
    *,
    where: Sequence[Where] = (),
    after: Position | None = None,
    limit: int,
) -> int:
    """How many records `find` would answer with, damaged ones included: `limit` at most.

    As `find`, it looks at no more than SCAN_LIMIT rows.
    """
    if isinstance(snapshot, CountsRecords):
        return snapshot.count(kind, index, key, where=where, after=after, limit=limit)
    page = snapshot.find(kind, index, key, where=where, after=after, limit=limit, skip_damaged=True)
    return len(page.records)


def lock_many(tx: Transaction, kind: type[R], ids: Collection[str]) -> Mapping[str, R]:
    """The same, locked until the end and certainly current; always in one order."""
    offered: ReadMany | None = getattr(tx, "get_many", None)
    if offered is not None:
        return offered(kind, ids, for_update=True)
    found = ((id, tx.get(kind, id, for_update=True)) for id in sorted(ids))
    return {id: record for id, record in found if record is not None}


def write(
    tx: Transaction,
    inserts: Sequence[Record],
    replaces: Sequence[Record] = (),
    deletes: Sequence[Record] = (),
) -> None:
    """Replace, delete and insert, in this order. Raises VersionConflict, UniqueConflict."""
    offered: Write | None = getattr(tx, "write", None)
    if offered is not None:
        offered(inserts, replaces, deletes)
        return
    for record in replaces:
        tx.replace(record)
    for record in deletes:
        tx.delete(record)
    for record in inserts:
        tx.insert(record)
