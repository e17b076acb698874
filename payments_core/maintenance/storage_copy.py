"""Copying a whole storage into an empty one, and proving that nothing was lost on the way.

Both sides are locked exclusively from the first row to the last, and the copy is one transaction of
the target, which commits only after an equal comparison. So a kill leaves an empty target or a
complete one, and a new run handles both. A source that can be retired is retired at the end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from payments_core.entropy import system_entropy
from payments_core.evolve import evolve
from payments_core.maintenance.record import CopyMark
from payments_core.storage import documents
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.maintenance import (
    BATCH,
    ExclusiveAccess,
    PrimaryKey,
    RecordRow,
    Retirable,
    require_maintenance_access,
    to_record_row,
)
from payments_core.storage.port import DIRECTORY, Storage
from payments_core.storage.records import Document, Record

MAX_EXAMPLES = 20

UNREADABLE = "the record cannot be read"

Progress = Callable[[str, str, int], None]
"""Called with the step (`copy` or `verify`), the collection, and the number of rows so far."""


@attrs.frozen
class CollectionComparison:
    """One collection on both sides; equal digests mean the same rows."""

    collection: str
    source_rows: int
    target_rows: int
    source_digest: str
    target_digest: str


@attrs.frozen
class Difference:
    """One row that differs, and why; without its content."""

    collection: str
    partition: str
    id: str
    what: str


@attrs.frozen
class Differences:
    """The differences of a comparison; `examples` are the first of `count`."""

    collections: tuple[CollectionComparison, ...]
    count: int
    examples: tuple[Difference, ...]


@attrs.frozen
class CopyResult:
    """The result of a copy: the rows written by collection, none if the target had them.

    `source_retired` means that the source now refuses writes.
    """

    rows: Mapping[str, int]
    differences: Differences
    source_retired: bool


class TargetInUse(Exception):
    """The target contains records other than those of the source."""

    def __init__(self, differences: Differences) -> None:
        held = [one for one in differences.collections if one.target_rows]
        super().__init__(
            "the target is not empty, and it is not a copy of the source: "
            + ", ".join(f"{one.collection} has {one.target_rows}" for one in held)
        )
        self.differences = differences


class CannotRetire(Exception):
    """The source cannot be retired, and would stay in use beside its copy."""

    def __init__(self, source: Storage) -> None:
        super().__init__(f"a {type(source).__name__} cannot be retired")


class SourceRetired(Exception):
    """The source was moved before: a second copy would be in use beside the first."""

    def __init__(self) -> None:
        super().__init__(
            "the source was already moved, and its copy is in use; if the copy is lost, "
            "reinstate the source first"
        )


class CopyDiffers(Exception):
    """The copy would have differed from the source, or the source is damaged; it was undone."""

    def __init__(self, differences: Differences) -> None:
        super().__init__(_summarize(differences))
        self.differences = differences


class CopyWrittenTo(Exception):
    """The copy differs from the retired source: it has been in use since."""

    def __init__(self, differences: Differences) -> None:
        super().__init__(f"the copy differs from the source: {_summarize(differences)}")
        self.differences = differences


def _summarize(differences: Differences) -> str:
    """How many rows differ, and where the first of them are."""
    places = [
        f"{one.id} of {one.partition} in {one.collection}: {one.what}"
        for one in differences.examples
    ]
    more = ["and more"] if differences.count > len(places) else []
    return f"{differences.count} rows differ: {'; '.join([*places, *more])}"


def copy(
    source: Storage,
    target: Storage,
    record_types: Sequence[type[Record]],
    *,
    retire: str | None = None,
    progress: Progress | None = None,
) -> CopyResult:
    """Copy every record of the kinds, compare both sides, and only then commit.

    Both storages have been migrated. With `retire`, a text that names the new place of the records,
    the source refuses writes afterwards; killed before that, call it again: a target that holds
    exactly the source's records, except for CopyMarks, is compared again and left as it is.

    Raises CannotRetire, SourceRetired, TargetInUse, CopyDiffers, NoMaintenanceAccess, and the
    errors of `MaintenanceAccess.lock_exclusively`: none of them changes anything except a CopyMark
    in the source, and except CommitUnknown, after which call it again.
    """
    report_progress = progress or _ignore_progress
    if retire is not None:
        _write_copy_mark(source)
    with require_maintenance_access(source).lock_exclusively() as old:
        with require_maintenance_access(target).lock_exclusively() as new:
            rows: dict[str, int] = {}
            if all(not new.read_rows(kind, limit=1) for kind in record_types):
                if isinstance(old, Retirable) and old.is_retired():
                    raise SourceRetired()
                rows = {
                    kind.collection.name: _copy_collection(old, new, kind, report_progress)
                    for kind in record_types
                }
                differences = _compare_collections(old, new, record_types, report_progress)
                if differences.count:
                    raise CopyDiffers(differences)
            else:
                known = {row.primary_key for row in _iter_rows(new, CopyMark)}
                new.load(
                    CopyMark,
                    [it for it in _iter_rows(old, CopyMark) if it.primary_key not in known],
                )
                differences = _compare_collections(old, new, record_types, report_progress)
                if differences.count:
                    raise TargetInUse(differences)
        if retire is not None and isinstance(old, Retirable):
            old.retire(retire)
        return CopyResult(rows, differences, retire is not None)


def _write_copy_mark(source: Storage) -> None:
    """Mark the source so that only the coming copy equals it."""
    with require_maintenance_access(source).lock_exclusively() as old:
        if not isinstance(old, Retirable):
            raise CannotRetire(source)
        if not old.is_retired():
            mark = CopyMark(id=f"copy_{system_entropy(16).hex()}")
            old.load(CopyMark, [to_record_row(DIRECTORY, documents.stamp(mark, 1))])


def verify(
    source: Storage,
    target: Storage,
    record_types: Sequence[type[Record]],
    *,
    progress: Progress | None = None,
) -> Differences:
    """Compare every record of the kinds, both ways, while nobody writes to either side.

    Raises NoMaintenanceAccess, and the errors of `MaintenanceAccess.lock_exclusively`.
    """
    with (
        require_maintenance_access(source).lock_exclusively() as old,
        require_maintenance_access(target).lock_exclusively() as new,
    ):
        return _compare_collections(old, new, record_types, progress or _ignore_progress)


def reinstate(
    storage: Storage,
    copy: Storage | None,
    record_types: Sequence[type[Record]],
    *,
    progress: Progress | None = None,
) -> bool:
    """Let a retired source accept writes again, after its `migrate`; return whether it was retired.

    If the copy differs from the source in any row, nothing changes, and CopyWrittenTo is
    raised: its new writes are not in the source, and open work would be done on both. (A copy to
    which it was not moved lacks its CopyMark.) None is for a copy that is lost: then
    nothing is compared. Raises NoMaintenanceAccess, and the errors of
    `MaintenanceAccess.lock_exclusively`.
    """
    with require_maintenance_access(storage).lock_exclusively() as alone:
        if copy is not None:
            with require_maintenance_access(copy).lock_exclusively() as other:
                differences = _compare_collections(
                    alone, other, record_types, progress or _ignore_progress
                )
            if differences.count:
                raise CopyWrittenTo(differences)
        return isinstance(alone, Retirable) and alone.reinstate()


def _copy_collection(
    source: ExclusiveAccess, target: ExclusiveAccess, kind: type[Record], report_progress: Progress
) -> int:
    """Copy one collection; return how many rows it has.

    The columns are made from the records, so that those of the target agree with its bodies. Rows
    that cannot be read are left out, and the comparison finds them.
    """
    count = 0
    for rows in _iter_batches(source, kind):
        records = [(row, try_decode(kind, row.body)) for row in rows]
        target.load(
            kind,
            [
                evolve(row, columns=kind.collection.values(record))
                for row, record in records
                if record is not None
            ],
        )
        count += len(rows)
        report_progress("copy", kind.collection.name, count)
    return count


def _compare_collections(
    source: ExclusiveAccess,
    target: ExclusiveAccess,
    record_types: Sequence[type[Record]],
    report_progress: Progress,
) -> Differences:
    collections: list[CollectionComparison] = []
    count = 0
    examples: list[Difference] = []
    for kind in record_types:
        comparison = _Comparison(kind, report_progress)
        comparison.run(_iter_rows(source, kind), _iter_rows(target, kind))
        collections.append(comparison.result())
        count += comparison.count
        examples += comparison.examples
    return Differences(tuple(collections), count, tuple(examples[:MAX_EXAMPLES]))


class _Comparison:
    """One collection, scanned on both sides at once, in the order of (partition, id)."""

    def __init__(self, kind: type[Record], report_progress: Progress) -> None:
        self._kind = kind
        self._report_progress = report_progress
        self._digests = (hashlib.sha256(), hashlib.sha256())
        self._rows = [0, 0]
        self.count = 0
        self.examples: list[Difference] = []

    def run(self, source: Iterator[RecordRow], target: Iterator[RecordRow]) -> None:
        here, there = next(source, None), next(target, None)
        while here is not None or there is not None:
            if there is None or (here is not None and here.primary_key < there.primary_key):
                assert here is not None
                legible = try_decode(self._kind, here.body) is not None
                self._note_one_sided(
                    0, here, "the target does not have the record" if legible else UNREADABLE
                )
                here = next(source, None)
            elif here is None or there.primary_key < here.primary_key:
                self._note_one_sided(1, there, "only the target has the record")
                there = next(target, None)
            else:
                self._compare_pair(here, there)
                here, there = next(source, None), next(target, None)

    def result(self) -> CollectionComparison:
        first, second = (digest.hexdigest() for digest in self._digests)
        here, there = self._rows
        return CollectionComparison(self._kind.collection.name, here, there, first, second)

    def _note_one_sided(self, side: int, row: RecordRow, what: str) -> None:
        self._add_row(side, _digest_input(row))
        self._add_difference(row, what)

    def _compare_pair(self, here: RecordRow, there: RecordRow) -> None:
        digest_input = _digest_input(here)
        self._add_row(0, digest_input)
        same = here.body == there.body and here.version == there.version
        self._add_row(1, digest_input if same else _digest_input(there))
        what = self._find_difference(here, there)
        if what is not None:
            self._add_difference(here, what)

    def _find_difference(self, here: RecordRow, there: RecordRow) -> str | None:
        if here.body != there.body:
            return "the records differ"
        if here.version != there.version:
            return "the versions differ"
        record = try_decode(self._kind, there.body)
        if record is None:
            return UNREADABLE
        try:
            made = to_record_row(there.partition, record)
            again = record if made.body == there.body else made.read(self._kind)
        except Exception:  # for any error
            return UNREADABLE
        if again != record:
            return "the record changes when it is encoded again"
        if (record.id, record.version) != (there.id, there.version):
            return "the id or version of the row differs from its record"
        if made.columns != there.columns:
            return "the target's columns are not those of the record"
        # In the form of another release, a record may have had other columns then.
        if made.columns != here.columns and _read_schema(here.body) == self._kind.collection.schema:
            return "the source's columns are not those of the record"
        return None

    def _add_row(self, side: int, digest_input: bytes) -> None:
        self._digests[side].update(digest_input)
        self._rows[side] += 1
        if side == 0 and self._rows[0] % BATCH == 0:
            self._report_progress("verify", self._kind.collection.name, self._rows[0])

    def _add_difference(self, row: RecordRow, what: str) -> None:
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            name = self._kind.collection.name
            self.examples.append(Difference(name, row.partition, row.id, what))


def _digest_input(row: RecordRow) -> bytes:
    """A row in the form for the digests."""
    text = f"{row.partition}\0{row.id}\0{row.version}\0{row.body}\n"
    return text.encode(errors="surrogateescape")  # damaged rows may hold bytes that are not text


def _read_schema(body: str) -> int:
    document: Document = json.loads(body)
    schema: int = document.get("schema", 0)
    return schema


def _iter_rows(alone: ExclusiveAccess, kind: type[Record]) -> Iterator[RecordRow]:
    for rows in _iter_batches(alone, kind):
        yield from rows


def _iter_batches(alone: ExclusiveAccess, kind: type[Record]) -> Iterator[Sequence[RecordRow]]:
    after: PrimaryKey | None = None
    while rows := alone.read_rows(kind, after=after):
        yield rows
        after = rows[-1].primary_key


def _ignore_progress(step: str, collection: str, rows: int) -> None:
    """Ignore the progress."""
