"""The storage port: the promises of an adapter. `payments_core.conformance.storage` proves them.

A partition is an environment's id, `directory`, or `simulated`. Writes never cross partitions.

The promise in one paragraph: decisions by `get(for_update=True)`, `hold` and unique keys are
serializable, and durable before `transact` returns. A plain `get` or a `find` inside `transact`
may be stale and decides nothing; hold what you rely on. `read` sees one consistent snapshot that
is never older than a commit already answered.

Modules that help an adapter: `documents` (records as bodies), `query_semantics` and
`claim_semantics` (the meaning of a query and a claim), `sort_keys` (bytes that sort as values do),
`damaged_records` (rows that cannot be read), `schema_fingerprint` (the source of a schema) and
`one_by_one` (the methods for many records, by those for one). `capabilities` declares what a
storage may offer besides. docs/how-to/write-a-storage-adapter.md describes a complete adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Ids
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.storage.jobs import Job
from payments_core.storage.reads import Get, Read
from payments_core.storage.records import R, Record, Value

DIRECTORY = "directory"
SIMULATED = "simulated"

SCAN_LIMIT = 10_000
"""`find` reads at most this many rows for one page; the page then ends short."""

MAX_LOCATE_KEYS = 500
"""The maximum number of keys of one `locate`."""

NO_LANE_OVERRIDES: Mapping[str, int] = MappingProxyType({})
"""No lane has its own number of slots."""

T = TypeVar("T")
Item = TypeVar("Item")
Operator = Literal["=", "!=", "<", "<=", ">", ">="]


class StorageError(Exception):
    """The storage could not carry out the call; the caller's data is not at fault."""


class StorageUnavailable(StorageError):
    """The storage was unreachable or too slow, and nothing was written. Try again later."""


class LockTimeout(StorageUnavailable):
    """Another transaction holds a lock for longer than a caller should wait."""


class CommitUnknown(StorageError):
    """The answer to COMMIT was lost: the transaction may or may not have happened.

    `payments_core.engine.committer` resolves it by looking up a row that the transaction inserts.
    """


class Conflict(StorageError):
    """Another transaction was first. Running the work again may succeed."""


class VersionConflict(Conflict):
    """The record was changed or deleted since it was read."""


class UniqueConflict(Conflict):
    """An insert or replace would break a unique key. `unique` is `id` for the primary key."""

    def __init__(self, collection: str, unique: str) -> None:
        super().__init__(f"{collection}: {unique} is taken")
        self.collection = collection
        self.unique = unique


@attrs.frozen
class Where:
    """A filter of a list: records whose column compares with the value in this way.

    `column` is one that the record's collection declares. As in SQL, a null never matches.

    >>> succeeded = (Where("status", "=", "succeeded"),)
    >>> storage.read(
    ...     shop.authority.partition,
    ...     lambda snapshot: snapshot.find(Payment, "by_created", where=succeeded),
    ... )
    Page(records=<... Payment>)
    """

    column: str
    operator: Operator
    value: str | int


Position = tuple[Value, ...]
"""The position at which a page ended: the order columns of its last row, then its id."""


@attrs.frozen
class Page(Generic[Item]):
    """Records in the index's order; `next` is where to continue, None at the end.

    A page may be short, even empty, and still have a `next`: the scan limit was reached.

    >>> first = shop.payments.list(limit=2)
    >>> first
    Page(records=<2 PaymentDetails>, next=(...))
    >>> second = shop.payments.list(limit=2, after=first.next)
    """

    __repr__ = brief_repr

    records: tuple[Item, ...]
    next: Position | None


@attrs.frozen
class Measure:
    """The bytes of a page of rows; `next` is the id to continue after, None at the end."""

    bytes: int
    next: str | None


class Snapshot(Protocol):
    """The operations of a `read`."""

    def get(self, kind: type[R], id: str) -> R | None:
        """The record, or None."""

    def find(
        self,
        kind: type[R],
        index: str,
        key: Sequence[Value] = (),
        *,
        where: Sequence[Where] = (),
        after: Position | None = None,
        limit: int = 50,
        skip_damaged: bool = False,
    ) -> Page[R]:
        """A page of the records whose index key equals `key` and that satisfy every `where`.

        They come in the order of the index's order columns, then of the id; a descending index
        reverses both. Texts are ordered by code point. A None in `key` finds the nulls.
        `after` is the `next` of another page, and stays valid if the record there is gone.

        A row whose document cannot be read raises UnreadableDocument. With `skip_damaged` it is
        skipped with an alarm (`damaged_records.decode_row`), and the page may be short: that
        is for display, and never for decisions about money.

        Raises ValueError for a query that does not fit the index, as
        `query_semantics.validate_query` does, and UnfitPosition, which is a ValueError, for an
        `after` that no page of it can have returned.
        """

    def get_many(self, kind: type[R], ids: Ids[str]) -> Mapping[str, R]:
        """The existing records of these ids."""

    def count(
        self,
        kind: type[R],
        index: str,
        key: Sequence[Value] = (),
        *,
        where: Sequence[Where] = (),
        after: Position | None = None,
        limit: int,
    ) -> int:
        """How many records a page of `find` would have: at most `limit`.

        A damaged row counts where the adapter counts rows without reading them, and not elsewhere:
        the number is for display, and never for decisions about money.
        """

    def read_ahead(self, *reads: Read) -> None:
        """Announce queries, so that the adapter may wait once for all of them.

        It changes no result: `get` and `find` are called as without it, and other queries work as
        usual. A transaction's own writes count, and locks may be taken here: in the order of the
        queries, or all of a kind where its first one is, by their ids. May raise what they raise.
        """


class Transaction(Snapshot, Protocol):
    """The operations of the work of a `transact`. Take locks parent first: environment, then down.

    `find` works as in a snapshot, but its records may be stale.

    A Conflict ends the work: nothing of it will be committed, even if the work swallows the
    error, and any further call may raise it again. (A SQL transaction is over after an error.)
    """

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        """The record, or None. With `for_update`, locked until the end and certainly current.

        An absent record cannot be locked: if absence decides something, insert a row under a
        key that all deciding code shares.
        """

    def get_many(
        self, kind: type[R], ids: Ids[str], *, for_update: bool = False
    ) -> Mapping[str, R]:
        """The existing records of these ids; with `for_update`, locked in the order of the ids."""

    def hold(self, record: Record) -> None:
        """Ensure that `record` is unchanged until the commit. Raises VersionConflict.

        The version is compared with what this transaction sees, its own writes included.
        """

    def insert(self, record: Record) -> None:
        """Store a new record at version 1. Raises UniqueConflict.

        Here and in `replace` a ValueError means that no storage could keep the record, and nothing
        of it was written: `Collection.values` and `documents.encode` raise it.
        """

    def replace(self, record: Record) -> None:
        """Store `record` over its `version`, which rises by one.

        Raises VersionConflict if the stored version differs, and UniqueConflict.
        """

    def delete(self, record: Record) -> None:
        """Remove the record at its `version`. Raises VersionConflict."""

    def write(
        self,
        inserts: Sequence[Record],
        replaces: Sequence[Record] = (),
        deletes: Sequence[Record] = (),
    ) -> None:
        """Replace, delete and insert, in this order. Raises VersionConflict, UniqueConflict.

        A record given twice is refused with VersionConflict, as its version has changed.
        """


@attrs.frozen
class ClaimedJob:
    """A leased job; `job.claims` fences it: finish only while the stored counter is the same."""

    partition: str
    job: Job

    checked_by_class: ClassVar[bool] = True


OnDamaged = Callable[[str, str], None]
"""Called with the partition and the id of a row that cannot be read."""


@attrs.frozen
class LocatedRecord(Generic[Item]):
    """A record that `locate` found, and its partition."""

    partition: str
    record: Item


class Storage(Protocol):
    """An adapter. It may be used from many threads, and by several processes at once."""

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        """Run `work` and commit what it wrote, durably, before returning its result.

        `work` does no I/O; it may run more than once, and in another thread. Its errors
        undo its writes and are raised unchanged. Raises Conflict, StorageUnavailable,
        CommitUnknown.
        """

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        """Run `work` on one snapshot, which stays open for about a second at most."""

    def read_apart(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        """Run `work`, whose queries may each be answered as of a different moment.

        No answer is older than a commit answered before its query.
        """

    def fetch(self, partition: str, *reads: Get) -> Sequence[Any]:
        """The records of one moment, None for those that are absent; a few of them."""

    def locate(
        self,
        kind: type[R],
        lookup: str,
        keys: Sequence[Sequence[Value]],
        *,
        where: Sequence[Where] = (),
        after: tuple[str, str] | None = None,
        limit: int = 100,
        on_damaged: OnDamaged | None = None,
    ) -> Sequence[LocatedRecord[R]]:
        """The records of any partition that a lookup finds, for callers that know no partition.

        They are those whose lookup columns equal one of `keys`, up to 500 at once, and that
        satisfy every `where`, each once. A null in a key matches nothing. They come in the order
        of (partition, id), at most `limit` of them, and continue after `after`, the partition and
        id of the last one; fewer than `limit` is the end. Like `read`, it sees committed records
        and is never older than a commit already answered.

        A row whose document cannot be read raises UnreadableDocument. With `on_damaged` it is
        skipped, `on_damaged` is called for it, and the result may be short. So one tenant's
        damaged row does not stop work for all (`lookups.locate_all`).

        Raises ValueError for keys that are too many or do not fit the lookup, StorageUnavailable.
        """

    def claim(
        self,
        queue: str,
        now: Instant,
        *,
        lease_ms: int,
        limit: int,
        lane_concurrency: int,
        lane_overrides: Mapping[str, int] = NO_LANE_OVERRIDES,
        holder: str = "",
    ) -> Sequence[ClaimedJob]:
        """Lease up to `limit` due jobs of a queue, at most `lane_concurrency` of each lane at a
        time.

        A lane in `lane_overrides` has that many slots, which may be none.

        A job is due when `due_at <= now` and its `lease_until <= now`. A claim sets `lease_until`
        to `now + lease_ms` and `holder` to the name given, raises `claims` and the record's
        version by one, and returns the job in that state. Within a lane jobs come in the order of
        (due_at, ordinal, id); a lane whose slots have live leases (`lease_until > now`, due or
        not) gives none. Lanes take turns in a ring, one job each, so that neither a full nor a
        long lane starves another: a claim continues where the previous claim ended, of this handle
        at least. The ring's order is the adapter's choice.

        A lane belongs to its partition: lanes of one name in two partitions share nothing.
        Partitions take turns too, in a ring of this handle at least; each gives as many jobs as
        the claim has room for, and the next claim begins with the next partition. The leases of
        each partition may be a separate transaction.

        Jobs that this handle committed are found at once, however many lanes have nothing due. All
        others, committed by another handle, loaded, or written by the previous release, are found
        within a few seconds, and usually at once too. The jobs are
        `payments_core.storage.jobs.Job`. Raises as `transact` does; jobs leased by a claim whose
        answer was lost become due again in time.
        """

    def renew(self, claimed: Sequence[ClaimedJob], until: Instant) -> Sequence[ClaimedJob]:
        """Move the end of leases to `until`; return those that were still held, as given.

        A lease is held while the stored job has the version that the claim gave it, whether or not
        its end has passed. Nothing but `lease_until` changes: the version stays, so that the
        claimed job can still be finished. A lost lease is left as it is. So is one whose job
        another transaction has locked, which no claim can take meanwhile: it is held, and nothing
        waits for it. The jobs may be of several partitions. A renewal need not survive a crash of
        the database. Raises as `transact` does.
        """

    def end_leases(self, queue: str, holder: str, now: Instant) -> int:
        """Make the jobs that `holder` has leased in a queue due again at once; return how many.

        For a process that knows that the holder is dead. The version of each rises, so that a
        holder that still lives cannot finish it; `claims` stays. Leases that ended by `now` and
        those of other holders are left as they are, and so are jobs that are parked. One that ends
        more than 10 minutes from now may be left too. Raises ValueError without a name, and as
        `transact` does.
        """

    def find_leases(self, queue: str, after: Instant, limit: int = 100) -> Sequence[ClaimedJob]:
        """The jobs of a queue whose `lease_until` is later than `after`, the latest first, at most
        `limit` of them.

        Parked jobs are not among them. Like `read`, it sees committed rows and is never older than
        a claim already answered; a row that cannot be read is left out. It locks nothing and
        leases nothing: a worker finds by it the leases that a wrong clock wrote hours ahead, and
        ends them. It is called every few seconds, and so reads leases only, not the jobs that
        fall due later. Raises StorageUnavailable.
        """

    def next_due(self, queue: str, after: Instant | None = None) -> Instant | None:
        """The earliest instant at which a job of the queue can be claimed, or None.

        `max(due_at, lease_until)` of each job counts; lanes are ignored, so it may be too early.
        With `after`, the earliest of those instants that is later than it.
        """

    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        """The bytes that the bodies of the next `limit` rows of a kind have in a partition.

        A body counts as `documents.encode` made it, in UTF-8, also if it is damaged. The rows come
        in the order of their ids, after `after`, the `next` of another page, whose row may be gone.
        A page may be short and still have a `next`; None is the end. It sees committed rows, and
        locks nothing. A partition is measured once an hour, page by page, beside its other work:
        so read no body whose length the database knows. Raises StorageUnavailable.
        """

    def migrate(self) -> None:
        """Bring the schema up to date. Safe to call at every start, from many processes.

        Existing rows get their new columns, indexes, unique keys and lookups, from the record
        as it is read now; those that the previous release uses stay. Raises StorageError if rows
        already break a new unique key, and then nothing has changed.
        """

    def close(self) -> None:
        """Close connections and files. Calls after it raise StorageUnavailable.

        Calling it again does nothing. Calls in progress may complete, or raise it too.
        """
