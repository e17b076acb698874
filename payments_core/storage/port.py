"""The storage port: what an adapter promises. `payments_core.conformance.storage` proves it.

A partition is an environment's id, `directory`, or `simulated`. Writes never cross partitions.

The promise in one paragraph: what `get(for_update=True)`, `hold` and unique keys decide is
serializable, and durable before `transact` returns. A plain `get` or a `find` inside `transact`
may be stale and decides nothing; hold what you rely on. `read` sees one consistent snapshot that
is never older than a commit already answered.

Modules that help an adapter: `documents` (records as bodies), `query_semantics` and
`claim_semantics` (what a question and a claim mean), `sort_keys` (bytes that sort as values do),
`damaged_records` (rows that cannot be read), `schema_fingerprint` (what a schema was made from) and
`bulk` (many records at once, if it can).
docs/how-to/write-a-storage-adapter.md leads to a whole adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

import attrs

from payments_core.clock import Instant
from payments_core.storage.jobs import Job
from payments_core.storage.records import R, Record, Value

DIRECTORY = "directory"
SIMULATED = "simulated"

SCAN_LIMIT = 10_000
"""`find` looks at no more rows than this for one page; the page then ends short."""

MAX_LOCATE_KEYS = 500
"""`locate` takes no more keys than this at once."""

NO_LANE_OVERRIDES: Mapping[str, int] = MappingProxyType({})
"""No lane has slots of its own."""

T = TypeVar("T")
Item = TypeVar("Item")
Operator = Literal["=", "!=", "<", "<=", ">", ">="]


class StorageError(Exception):
    """Storage could not do as asked; the caller's data is not to blame."""


class StorageUnavailable(StorageError):
    """Out of reach or out of time, and nothing was written. Try again later."""


class LockTimeout(StorageUnavailable):
    """Another transaction holds what this one needs, for longer than a caller should wait."""


class CommitUnknown(StorageError):
    """The answer to COMMIT was lost: the transaction may or may not have happened.

    `payments_core.engine.committer` resolves it by looking up a row that the transaction inserts.
    """


class Conflict(StorageError):
    """Another transaction came first. Running the work again may succeed."""


class VersionConflict(Conflict):
    """The record changed, or is gone, since it was read."""


class UniqueConflict(Conflict):
    """An insert or replace would break a unique key. `unique` is `id` for the primary key."""

    def __init__(self, collection: str, unique: str) -> None:
        super().__init__(f"{collection}: {unique} is taken")
        self.collection = collection
        self.unique = unique


@attrs.frozen
class Where:
    """A filter of a list: records whose column compares so with the value.

    `column` is one that the record's collection declares. As in SQL, a null compares with nothing.
    """

    column: str
    operator: Operator
    value: str | int


Position = tuple[Value, ...]
"""Where a page ended: the order columns of its last row, then its id."""


@attrs.frozen
class Page(Generic[Item]):
    """Records in the index's order; `next` is where to go on, None at the end.

    A page may be short, even empty, and still have a `next`: the scan limit was reached.
    """

    records: tuple[Item, ...]
    next: Position | None


class Snapshot(Protocol):
    """What a `read` may do."""

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
        turns both round. Texts are ordered by code point. A None in `key` finds the nulls.
        `after` is the `next` of another page, and holds when the record there is gone.

        A row whose document cannot be read raises UnreadableDocument. With `skip_damaged` it is
        passed over with an alarm (`damaged_records.decode_row`), and the page may be short: that
        is for lists that people read, and never for what decides about money.

        Raises ValueError for a question that does not fit the index, as
        `query_semantics.validate_query` does, and for an `after` that no page of it can have
        ended at UnfitPosition, which is one.
        """


class Transaction(Snapshot, Protocol):
    """What the work of a `transact` may do. Take locks parent first: environment, then down.

    `find` is as in a snapshot, but what it returns may be stale.

    A Conflict ends the work: nothing of it will be committed, even where the work swallows the
    error, and any further call may raise it again. (A SQL transaction is over after an error.)
    """

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        """The record, or None. With `for_update`, locked until the end and certainly current.

        What is absent cannot be locked: where absence decides something, insert a row under a
        key that all who decide it share.
        """

    def hold(self, record: Record) -> None:
        """Promise that `record` is unchanged until the commit. Raises VersionConflict.

        The version is compared with what this transaction sees, its own writes included.
        """

    def insert(self, record: Record) -> None:
        """Store a new record at version 1. Raises UniqueConflict.

        Here and in `replace` a ValueError says that no storage could keep the record, and nothing
        of it was written: `Collection.values` and `documents.encode` raise it.
        """

    def replace(self, record: Record) -> None:
        """Store `record` over its `version`, which rises by one.

        Raises VersionConflict where the stored version is another, and UniqueConflict.
        """

    def delete(self, record: Record) -> None:
        """Remove the record at its `version`. Raises VersionConflict."""


@attrs.frozen
class ClaimedJob:
    """A leased job; `job.claims` fences it: finish only while the stored counter is the same."""

    partition: str
    job: Job


OnDamaged = Callable[[str, str], None]
"""Is told the partition and the id of a row that cannot be read."""


@attrs.frozen
class LocatedRecord(Generic[Item]):
    """A record that `locate` found, and the partition that it lies in."""

    partition: str
    record: Item


class Storage(Protocol):
    """An adapter. It may be used from many threads, and by several processes at once."""

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        """Run `work` and commit what it wrote, durably, before returning its result.

        `work` does no I/O; it may run more than once, and in another thread. Whatever it raises
        undoes its writes and comes out unchanged. Raises Conflict, StorageUnavailable,
        CommitUnknown.
        """

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        """Run `work` on one snapshot, which stays open for about a second at the most."""

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
        """The records of any partition that a lookup finds, for those who know no partition.

        They are those whose lookup columns equal one of `keys`, up to 500 at once, and that
        satisfy every `where`, each once. A null in a key matches nothing. They come in the order
        of (partition, id), at most `limit` of them, and go on behind `after`, the partition and
        id of the last one; fewer than `limit` are the end. Like `read`, it sees what is committed
        and is never older than a commit already answered.

        A row whose document cannot be read raises UnreadableDocument. With `on_damaged` it is
        passed over, `on_damaged` is told of it, and the answer may be short. So one tenant's
        damaged row does not stop what is done for all (`lookups.locate_all`).

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

        A lane that `lane_overrides` names has as many slots as that says, which may be none.

        A job is due when `due_at <= now` and its `lease_until <= now`. A claim sets `lease_until`
        to `now + lease_ms` and `holder` to the name given, raises `claims` and the record's
        version by one, and returns the job as it is then. Within a lane jobs come in the order of
        (due_at, ordinal, id); a lane whose slots have live leases (`lease_until > now`, due or
        not) gives none. Lanes take turns in a ring, one job each, so that neither a full nor a
        long lane starves another: a claim goes on where the one before it ended, of this handle
        at least. The ring's order is the adapter's choice.

        A lane belongs to its partition: lanes of one name in two partitions share nothing.
        Partitions take turns too, in a ring of this handle at least; each gives as many jobs as
        the claim has room for, and the next claim begins with the next partition. The leases of
        each partition may be a transaction of their own.

        What this handle committed is found at once, however many lanes have nothing due. All
        else, be it committed by another handle, loaded, or written by the release before, is
        found within a few seconds, and most often at once too.
        The jobs are `payments_core.storage.jobs.Job`.
        Raises as `transact` does; what a claim leased whose answer was lost comes back in time.
        """

    def renew(self, claimed: Sequence[ClaimedJob], until: Instant) -> Sequence[ClaimedJob]:
        """Move the end of leases to `until`; return those that were still held, as given.

        A lease is held while the stored job has the version that the claim gave it, whether or
        not its end has passed. Nothing but `lease_until` changes: the version stays, so that what
        was claimed can still be finished with. A lease that was lost is left as it is. So is one
        whose job another transaction has locked, which no claim can take meanwhile: it is held, and
        nobody waits for it. The jobs may be of several partitions.
        A renewal need not survive a crash of the database. Raises as `transact` does.
        """

    def end_leases(self, queue: str, holder: str, now: Instant) -> int:
        """Make due again at once what `holder` has leased of a queue; how many jobs it was.

        For a process that knows that the holder is dead. The version of each rises, so that a
        holder that lives after all cannot finish it; `claims` stays. Leases that ended by `now`
        and those of other holders are left as they are, and so are jobs that are parked. One that
        ends more than 10 minutes from now may be left too.
        Raises ValueError for no name, and as `transact` does.
        """

    def next_due(self, queue: str, after: Instant | None = None) -> Instant | None:
        """The earliest instant at which a job of the queue can be claimed, or None.

        `max(due_at, lease_until)` of each job counts; lanes are not looked at, so it may be early.
        With `after`, the earliest of those instants that is later than it.
        """

    def migrate(self) -> None:
        """Bring the schema up to date. Safe to call at every start, from many processes.

        Rows from before get their new columns, indexes, unique keys and lookups, from the record
        as it is read now; what the release before reads by stays. Raises StorageError where rows
        already break a new unique key, and then nothing has changed.
        """

    def close(self) -> None:
        """Give back connections and files. Calls after it raise StorageUnavailable.

        Calling it again does nothing. Calls that are under way may end, or raise it too.
        """


@runtime_checkable
class FinishesMigrations(Protocol):
    """A storage whose rows the release before may have written without the newest columns."""

    def finish_migration(self) -> int:
        """Give every row the columns that its record says, once that release no longer runs.

        How many rows were put right. It may be called again, and while the service runs.
        """


@runtime_checkable
class ChecksWritability(Protocol):
    """A storage that can tell, without writing, that writes are about to fail."""

    def require_writable(self) -> None:
        """Return unless it is known that writes fail, or will soon. Raises StorageUnavailable.

        It takes no lock and waits for no disk: readiness asks for it, as often as anybody likes.
        """


@runtime_checkable
class ReportsConfigProblems(Protocol):
    """A storage whose database may be set up so that the port's promises do not hold."""

    def config_errors(self) -> Sequence[str]:
        """What of that would lose, or hide, what was answered, each in a sentence for operators.

        Raises StorageUnavailable.
        """

    def config_warnings(self) -> Sequence[str]:
        """What may do so, unless somebody knows better. Raises StorageUnavailable."""
