"""The port's methods for many records, by its methods for one.

An adapter that cannot do better takes the functions as its methods, as `storage/memory` does:
`get_many = one_by_one.get_many` in the class of its rows, `fetch = one_by_one.fetch` in that of its
storage. One that can do better saves statements. The cost is not a statement's work: around each
one a thread releases the interpreter and has to wait for it again, and for the network too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from payments_core.storage.port import Position, Snapshot, Storage, Transaction, Where
from payments_core.storage.reads import Get, Read
from payments_core.storage.records import R, Record, Value

T = TypeVar("T")


def get_many(
    rows: Any, kind: type[R], ids: Collection[str], *, for_update: bool = False
) -> Mapping[str, R]:
    """See `Transaction.get_many`; without `for_update`, `Snapshot.get_many`."""
    lock = {"for_update": True} if for_update else {}
    found = ((id, rows.get(kind, id, **lock)) for id in sorted(ids))
    return {id: record for id, record in found if record is not None}


def count(
    rows: Snapshot,
    kind: type[R],
    index: str,
    key: Sequence[Value] = (),
    *,
    where: Sequence[Where] = (),
    after: Position | None = None,
    limit: int,
) -> int:
    """See `Snapshot.count`: rows are read here, so damaged ones do not count."""
    page = rows.find(kind, index, key, where=where, after=after, limit=limit, skip_damaged=True)
    return len(page.records)


def read_ahead(rows: Snapshot, *reads: Read) -> None:
    """See `Snapshot.read_ahead`: each query waits when it is made."""


def write(
    tx: Transaction,
    inserts: Sequence[Record],
    replaces: Sequence[Record] = (),
    deletes: Sequence[Record] = (),
) -> None:
    """See `Transaction.write`."""
    for record in replaces:
        tx.replace(record)
    for record in deletes:
        tx.delete(record)
    for record in inserts:
        tx.insert(record)


def read_apart(storage: Storage, partition: str, work: Callable[[Snapshot], T]) -> T:
    """See `Storage.read_apart`: all queries see one moment."""
    return storage.read(partition, work)


def fetch(storage: Storage, partition: str, *reads: Get) -> Sequence[Any]:
    """See `Storage.fetch`."""
    return storage.read(
        partition,
        lambda snapshot: [snapshot.get(read.kind, read.id) for read in reads],
    )
