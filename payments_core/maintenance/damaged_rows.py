"""Damaged rows: how they are found, and repaired or removed by an operator.

A row is damaged if its document cannot be read, or names another record. Lists skip it with
an alarm, and decisions about money refuse it. Only a backup shows its old content, so
nothing here is automatic: an operator supplies the whole document, or deletes the row.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence

import attrs

from payments_core.engine.audit import Trace
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, ResourceConflict, ValidationFailed
from payments_core.evolve import evolve
from payments_core.maintenance.record import RowRepair, RowRepairAction
from payments_core.storage import documents
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.maintenance import (
    BATCH,
    PrimaryKey,
    Progress,
    RecordRow,
    require_maintenance_access,
)
from payments_core.storage.port import Storage, Transaction
from payments_core.storage.records import Record


@attrs.frozen
class DamagedRow:
    """The place of a damaged row."""

    collection: str
    partition: str
    id: str


@attrs.frozen
class RowCheck:
    """The damaged rows among the rows read; `is_complete` if all rows were read."""

    damaged: tuple[DamagedRow, ...]
    rows_read: int
    is_complete: bool


def check_rows(
    storage: Storage,
    kinds: Sequence[type[Record]],
    *,
    max_rows: int | None = None,
    progress: Progress | None = None,
) -> RowCheck:
    """Read the rows of all kinds, a batch of each in turn, up to about `max_rows` in all.

    So a large collection does not keep others from being read. Raises NoMaintenanceAccess,
    StorageUnavailable.
    """
    access = require_maintenance_access(storage)
    damaged: list[DamagedRow] = []
    read: Counter[str] = Counter()
    ahead: deque[tuple[type[Record], PrimaryKey | None]] = deque((kind, None) for kind in kinds)
    while ahead and (max_rows is None or read.total() < max_rows):
        kind, after = ahead.popleft()
        rows = access.read_rows(kind, after=after, limit=BATCH)
        name = kind.collection.name
        read[name] += len(rows)
        if progress is not None:
            progress(name, read[name])
        damaged += [
            DamagedRow(name, row.partition, row.id) for row in rows if _is_damaged(kind, row)
        ]
        if len(rows) == BATCH:
            ahead.append((kind, rows[-1].primary_key))
    return RowCheck(tuple(damaged), read.total(), not ahead)


_OPERATIONS: Mapping[RowRepairAction, str] = {
    "repaired": "rows.repair",
    "removed": "rows.remove",
}
"""What the audit trail calls each action."""


class DamagedRows:
    """Shows, repairs and removes one damaged row. Every change stores a RowRepair beside it."""

    def __init__(self, ports: Ports, kinds: Sequence[type[Record]]) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._host = ports.host
        self._kinds = {kind.collection.name: kind for kind in kinds}

    def get(self, place: DamagedRow) -> RecordRow:
        """The row as it is stored.

        Raises NotFound, NoMaintenanceAccess, ResourceConflict for a row that is not damaged, and
        ValidationFailed for a collection that does not exist.
        """
        kind = self._kind(place)
        row = self._find_row(kind, place)
        if row is None:
            raise NotFound("row")
        if not _is_damaged(kind, row):
            raise ResourceConflict(f"The row {place.id} in {place.collection} is not damaged.")
        return row

    def repair(self, place: DamagedRow, document: bytes) -> RowRepair:
        """Replace the damaged document with this one. Its columns are set from it.

        Raises as `get`, and ValidationFailed for a document that does not fit the collection, or
        is not of this record.
        """
        row = self.get(place)
        try:
            record = documents.decode(self._kind(place), document)
        except documents.UnreadableDocument as error:
            raise ValidationFailed.at("document", f"cannot be read: {error}") from error
        if record.id != row.id:
            raise ValidationFailed.at("document", f"is of another record: {record.id}")
        repaired = evolve(record, version=row.version)
        return self._commit(place, row, "repaired", Decision(None, replaces=(repaired,)))

    def remove(self, place: DamagedRow) -> RowRepair:
        """Delete the row. References in other records stay. Raises as `get`."""
        row = self.get(place)
        return self._commit(
            place, row, "removed", Decision(None, deletes=(_stand_in(self._kind(place), row),))
        )

    def _commit(
        self, place: DamagedRow, row: RecordRow, action: RowRepairAction, change: Decision[None]
    ) -> RowRepair:
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[RowRepair]:
            # The change names the version that was read: it does not affect later changes.
            note = RowRepair(
                id=id_sequence.issue("repair"),
                table=place.collection,
                row_id=row.id,
                row_version=row.version,
                action=action,
                document_sha256=hashlib.sha256(encode_body(row)).hexdigest(),
                created_at_ms=now,
            )
            return Decision(note, inserts=(note,)).merge(change)

        trace = Trace(self._host, _OPERATIONS[action], (row.id,))
        return self._committer.commit(WorkerAuthority(row.partition, "upkeep", trace), decide)

    def _kind(self, place: DamagedRow) -> type[Record]:
        kind = self._kinds.get(place.collection)
        if kind is None:
            raise ValidationFailed.at("collection", f"must be one of {', '.join(self._kinds)}")
        return kind

    def _find_row(self, kind: type[Record], place: DamagedRow) -> RecordRow | None:
        for row in self._iterate_rows(kind, (place.partition, place.id[:-1])):
            if row.primary_key >= (place.partition, place.id):
                return row if row.primary_key == (place.partition, place.id) else None
        return None

    def _iterate_rows(self, kind: type[Record], after: PrimaryKey) -> Iterator[RecordRow]:
        """The rows after a place: there are few between an id and its prefix."""
        access = require_maintenance_access(self._storage)
        while rows := access.read_rows(kind, after=after, limit=BATCH):
            yield from rows
            after = rows[-1].primary_key


def encode_body(row: RecordRow) -> bytes:
    """The bytes of a stored document, which need not be a text."""
    return row.body.encode(errors="surrogateescape")


def _is_damaged(kind: type[Record], row: RecordRow) -> bool:
    record = try_decode(kind, row.body)
    return record is None or record.id != row.id


def _stand_in(kind: type[Record], row: RecordRow) -> Record:
    """A record with the place and the version of a row that cannot be read, for its deletion."""
    damaged: type[Record] = type(kind.__name__, (Record,), {"collection": kind.collection})
    return damaged(id=row.id, version=row.version)
