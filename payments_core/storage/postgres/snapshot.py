"""The reads of a snapshot or a transaction in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from re import compile, sub

import attrs

from payments_core.storage import documents
from payments_core.storage.damaged_records import AlarmLimit, decode_located, decode_row
from payments_core.storage.port import (
    SCAN_LIMIT,
    LocatedRecord,
    Measure,
    OnDamaged,
    Page,
    Position,
    Where,
)
from payments_core.storage.postgres.pending_transaction import PendingTransaction
from payments_core.storage.postgres.pipeline import Param, ResultRow
from payments_core.storage.postgres.queries import (
    count_statement,
    locate_statement,
    measure_statement,
    page_statement,
    scan_for,
    select_many_statement,
    select_statement,
    select_together_statement,
)
from payments_core.storage.postgres.statements import ARRAYS
from payments_core.storage.query_semantics import valid_lookup_keys, validate_query
from payments_core.storage.reads import Find, Get, Lock, Read
from payments_core.storage.records import Collection, R, Record, Value

Query = tuple[str, tuple[Param, ...]]
"""A statement and its values."""

TOGETHER = 12
"""The maximum number of records read by one statement."""

_CONSTRAINT = compile(r'unique constraint "([^"]*)"')


def index_name(collection: Collection, name: str) -> str:
    """The name in the database of a collection's index or unique key."""
    return f"{collection.name}__{name}"


def unique_key_of(collection: Collection, constraint: str | None, message: str) -> str:
    """The collection's unique key that a database's error names; "id" for the primary key.

    Citus may put the name only in the message, with a shard's number after it.
    """
    keys = {index_name(collection, item.name): item.name for item in collection.uniques}
    quoted = _CONSTRAINT.search(message)
    name = constraint or (quoted.group(1) if quoted else "")
    return keys.get(name) or keys.get(sub(r"_[0-9]+$", "", name), "id")


def names_unique_key(message: str) -> bool:
    """Whether an error's message reports a broken unique key."""
    return _CONSTRAINT.search(message) is not None


@attrs.frozen
class RecordQuery:
    """Records that are read by one statement; `by_list` if they are of one kind and lock."""

    reads: Sequence[Get]
    by_list: bool

    def build(self, partition: str, *, locked: bool) -> Query:
        """The statement, and its values."""
        asked = tuple(
            (read.kind.collection.name, read.lock if locked else "none") for read in self.reads
        )
        ids = [read.id for read in self.reads]
        if self.by_list:
            return select_many_statement(*asked[0]), (partition, ids)
        return select_together_statement(asked), (partition, *ids)

    def split(self, rows: Sequence[ResultRow]) -> Iterable[tuple[Get, bytes | None]]:
        """Each record with its body in the answer, None if it is absent."""
        if self.by_list:
            bodies: dict[bytes | None, bytes | None] = dict(rows)  # type: ignore[arg-type]
            return [(one, bodies.get(one.id.encode())) for one in self.reads]
        return zip(self.reads, rows[0], strict=True)


class PostgresSnapshot:
    """The operations of a snapshot."""

    def __init__(self, transaction: PendingTransaction, partition: str) -> None:
        self._transaction = transaction
        self._partition = partition
        self._answers: dict[Query, list[ResultRow]] = {}
        """The rows that were read ahead."""

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        if "\0" in id:  # PostgreSQL has no such text, so no such row
            return None
        query = self._get_query(kind.collection.name, id, "exclusive" if for_update else "none")
        rows = self._ask(query)
        if for_update and not rows:
            # A row deleted and inserted again during the wait is seen by the next read.
            rows = self._transaction.query(*query)
        return documents.decode(kind, rows[0][0] or b"") if rows else None

    def read_ahead(self, *reads: Read) -> None:
        possible = [read for read in reads if is_possible(read)]
        records = {self._record_query(one): one for one in possible if isinstance(one, Get)}
        pages = [self._find_query(one) for one in possible if isinstance(one, Find)]
        unknown = [query for query in records if query not in self._answers]
        together = split_reads([records[query] for query in unknown])
        pages = [query for query in pages if query not in self._answers]
        queries = [*(several.build(self._partition, locked=False) for several in together), *pages]
        if not queries:
            return
        answers = self._transaction.query_many(*queries)
        for several, rows in zip(together, answers, strict=False):
            for read, body in several.split(rows):
                found: list[ResultRow] = [] if body is None else [(body,)]
                self._answers[self._record_query(read)] = found
        self._answers.update(zip(pages, answers[len(together) :], strict=True))

    def _record_query(self, read: Get) -> Query:
        """The statement that `get` would run, if the announced query is one."""
        return self._get_query(read.kind.collection.name, read.id, "none")

    def _find_query(self, read: Find) -> Query:
        """The statement that `find` would run, if the announced query is one."""
        collection = read.kind.collection
        most = min(read.limit, SCAN_LIMIT) + 1
        sql = page_statement(
            collection.name,
            collection.index(read.index),
            tuple(value is None for value in read.key),
            (),
            False,
            scan_for(most),
        )
        known = (value for value in read.key if value is not None)
        return sql, (self._partition, *known, most)

    def _get_query(self, table: str, id: str, lock: Lock) -> Query:
        return select_statement(table, lock), (self._partition, id)

    def _ask(self, query: Query) -> list[ResultRow]:
        """The rows that were read ahead, or those that the server returns now."""
        known = self._answers.get(query)
        return self._transaction.query(*query) if known is None else known

    def get_many(
        self, kind: type[R], ids: Ids[str], *, for_update: bool = False
    ) -> Mapping[str, R]:
        wanted = sorted({id for id in ids if "\0" not in id})
        sql = select_many_statement(kind.collection.name, "exclusive" if for_update else "none")
        found: dict[str, R] = {}
        for _ in range(1 + for_update):  # as in `get`
            if wanted:
                for _, body in self._transaction.query(sql, (self._partition, wanted)):
                    record = documents.decode(kind, body or b"")
                    found[record.id] = record
                wanted = [id for id in wanted if id not in found]
        return found

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
        chosen = validate_query(kind.collection, index, key, after, limit)
        if any(isinstance(value, str) and "\0" in value for value in key):
            return Page((), None)
        nulls = tuple(value is None for value in key)
        inside = (self._partition, *(value for value in key if value is not None))
        types = [kind.collection.columns[column] for column in chosen.order]

        def fetch(
            position: Position | None,
            comparisons: Sequence[Where],
            most: int,
            scan: int,
            skipped: int = 0,
        ) -> list[ResultRow]:
            """Rows of body and position after one: at most so many of the scan."""
            sql = page_statement(
                kind.collection.name,
                chosen,
                nulls,
                tuple((item.column, item.operator) for item in comparisons),
                position is not None,
                scan,
                skipped,
            )
            values = (item.value for item in comparisons)
            return self._ask((sql, (*inside, *(position or ()), *values, most)))

        def position_of(row: ResultRow) -> Position:
            return tuple(
                None if text is None else type_(text.decode())
                for type_, text in zip((*types, str), row[1:], strict=True)
            )

        most = limit if where else min(limit, SCAN_LIMIT)
        rows = fetch(after, where, most + 1, SCAN_LIMIT if where else scan_for(most + 1))
        decode = partial(
            decode_row, kind, self._partition, skip_damaged=skip_damaged, alarms=AlarmLimit()
        )
        found = (decode((row[-1] or b"").decode(), row[0] or b"") for row in rows[:most])
        records = tuple(record for record in found if record is not None)
        if len(rows) > most:
            return Page(records, position_of(rows[most - 1]))
        if not where:
            return Page(records, None)
        if len(rows) == most:  # full: does another row follow?
            last = position_of(rows[-1])
            return Page(records, last if fetch(last, (), 1, 1) else None)
        # The last row scanned, and the next.
        edge = fetch(after, (), 2, 2, skipped=SCAN_LIMIT - 1)
        return Page(records, position_of(edge[0]) if len(edge) == 2 else None)

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
        chosen = validate_query(kind.collection, index, key, after, limit)
        if any(isinstance(value, str) and "\0" in value for value in key):
            return 0
        comparisons = tuple((item.column, item.operator) for item in where)
        nulls = tuple(value is None for value in key)
        sql = count_statement(kind.collection.name, chosen, nulls, comparisons, after is not None)
        values = (
            self._partition,
            *(value for value in key if value is not None),
            *(after or ()),
            *(item.value for item in where),
            limit,
        )
        return int((self._transaction.query(sql, values)[0][0] or b"").decode())


def is_possible(read: Read) -> bool:
    """Whether PostgreSQL can have such a row: it stores no text with U+0000."""
    texts = (read.id,) if isinstance(read, Get) else read.key
    return not any(isinstance(text, str) and "\0" in text for text in texts)


def split_reads(reads: Sequence[Get]) -> Sequence[RecordQuery]:
    """All in one statement; or one for each kind and lock, if they are many.

    Long lists, such as those of batches, would need a text for each, and a connection prepares a
    limited number.
    """
    if len(reads) <= TOGETHER:
        return [RecordQuery(reads, by_list=False)] if reads else []
    groups: dict[tuple[str, Lock], list[Get]] = {}
    for read in reads:
        groups.setdefault((read.kind.collection.name, read.lock), []).append(read)
    return [RecordQuery(alike, by_list=True) for alike in groups.values()]


def measure(
    transaction: PendingTransaction,
    partition: str,
    kind: type[Record],
    after: str | None,
    limit: int,
) -> Measure:
    """See `Storage.measure`; in one statement."""
    values = (partition, limit) if after is None else (partition, limit, after)
    sql = measure_statement(kind.collection.name, after is not None)
    ((rows, measured, last),) = transaction.query(sql, values)
    is_full = int(rows or 0) == limit
    return Measure(int(measured or 0), (last or b"").decode() if is_full else None)


def locate(
    transaction: PendingTransaction,
    kind: type[R],
    lookup: str,
    keys: Sequence[Sequence[Value]],
    where: Sequence[Where],
    after: tuple[str, str] | None,
    limit: int,
    on_damaged: OnDamaged | None,
) -> list[LocatedRecord[R]]:
    """See `Storage.locate`; in a transaction."""
    collection = kind.collection
    chosen = collection.lookup(lookup)
    found = valid_lookup_keys(collection, chosen, keys, limit)
    sql = locate_statement(
        collection.name,
        chosen,
        tuple(ARRAYS[collection.columns[column]] for column in chosen.columns),
        tuple((item.column, item.operator) for item in where),
        after is not None,
    )
    values = (
        *([key[place] for key in found] for place in range(len(chosen.columns))),
        *(item.value for item in where),
        *(after or ()),
        limit,
    )
    rows = [
        ((partition or b"").decode(), (id or b"").decode(), body or b"")
        for partition, id, body in transaction.query(sql, values)
    ]
    return [
        LocatedRecord(partition, record)
        for partition, id, body in rows
        if (record := decode_located(kind, partition, id, body, on_damaged)) is not None
    ]
