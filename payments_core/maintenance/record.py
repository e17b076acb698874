"""Records of maintenance in a storage."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Record


@attrs.frozen(kw_only=True, slots=False)
class CopyMark(Record):
    """The mark of one move: the source has it, and the copy to which the records were moved.

    Two copies may be equal while only one of them is in use.
    """

    collection: ClassVar[Collection] = Collection("copy_marks")


RowRepairAction = Literal["repaired", "removed"]


@attrs.frozen(kw_only=True, slots=False)
class RowRepair(Record):
    """An operator's repair or removal of a damaged row, in the partition of that row.

    `document_sha256` is of the previous document, which the command printed.
    """

    collection: ClassVar[Collection] = Collection("row_repairs", schema=2)

    table: str
    row_id: str
    row_version: int
    action: RowRepairAction
    document_sha256: str
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


COUNT_ID = "stored_bytes"


@attrs.frozen(kw_only=True, slots=False)
class StorageCount(Record):
    """How far the stored bytes of an environment are counted: one row in its partition.

    `bytes` are those of the rows before its place: the collection `kind`, after the id `after`,
    or at its beginning. A count that has ended has no `kind`.
    """

    collection: ClassVar[Collection] = Collection("storage_counts", schema=2)

    began_at_ms: Instant
    kind: str | None
    after: str | None = None
    bytes: int = 0

    began_at: ClassVar[FieldView[datetime]] = instant_view("began_at_ms")
