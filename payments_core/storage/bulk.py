"""Many records at once, for adapters that can do it in fewer statements.

An adapter's rows may offer `get_many`, `count`, `write` and `read_ahead` as declared here, and its
storage `fetch` and `read_apart`; without them each record is read or written separately, to the
same effect. The cost is not the statement's work: around each one a thread releases the interpreter
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
    """A record that is about to be read.

    `shared` is for records that will be held, `exclusive` for `get(for_update=True)`. `is_optional`
    says that it is often absent, so that an adapter verifies that at once.
    """

    kind: type[Record]
    id: str
    lock: Lock = "none"
    is_optional: bool = False


@attrs.frozen
class Find:
    """A first page that is about to be read, without comparisons."""

    kind: type[Record]
    index: str
    key: tuple[Value, ...]
    limit: int


Question = Get | Find

# An adapter's methods are looked up by name: `isinstance` of a protocol takes some microseconds.
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
        """As `get`, for each of the ids; absent records are not in the result."""


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
        """How many records the page of `find` has for the same query."""


class WritesMany(Protocol):
    """A transaction that can write many records in one go."""

    def write(
        self, inserts: Sequence[Record], replaces: Sequence[Record], deletes: Sequence[Record]
    ) -> None:
        """As `replace`, `delete` and `insert` for each, in this order.

        A record given twice is refused with VersionConflict, as its version has changed.
        """


class ReadsAhead(Protocol):
    """Rows that can answer many queries in one go."""

    def read_ahead(self, questions: Sequence[Question]) -> None:
        """Cache the answers for the calls with these queries; other calls work as usual.

        A cached answer is as good as a fresh one: a transaction's own writes count, and
        locks are taken here, in the order of the queries, or all of a kind where its first one
        is, by their ids. Either call may raise an error.
        """


class FetchesRecords(Protocol):
    """A storage that reads a few records of one moment without opening a snapshot."""

    def fetch(self, partition: str, questions: Sequence[Get]) -> Sequence[Record | None]:
        """As `read` with a `get` for each."""


class ReadsApart(Protocol):
    """A storage that answers independent queries without opening a snapshot."""

    def read_apart(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        """As `read`, but each query may be answered as of a different moment.

        No answer is older than a commit answered before its query.
        """


def read_ahead(snapshot: Snapshot, *questions: Question) -> None:
    """Announce queries, so that an adapter may wait once for all of them.

    It changes no result: `get` and `find` are called as without it.
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
    """Run `work`, which makes one query, or several that need not be of one moment."""
    offered: ReadApart | None = getattr(storage, "read_apart", None)
    if offered is None:
        return storage.read(partition, work)
    result: T = offered(partition, work)
    return result


def get_many(snapshot: Snapshot, kind: type[R], ids: Collection[str]) -> Mapping[str, R]:
    """The existing records of these ids."""
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
    """How many records `find` would return, damaged ones included: at most `limit`.

    Like `find`, it reads at most SCAN_LIMIT rows.
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
