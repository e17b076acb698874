"""What upkeep notes in a storage."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.storage.records import Collection, Record


@attrs.frozen(kw_only=True)
class CopyMark(Record):
    """Of one move: the source has it, and of all copies of the source that to which it was moved.

    Two copies may be equal while only one of them is at work.
    """

    collection: ClassVar[Collection] = Collection("copy_marks")


RowRepairAction = Literal["repaired", "removed"]


@attrs.frozen(kw_only=True)
class RowRepair(Record):
    """That an operator repaired or removed a damaged row, in the partition of that row.

    `document_sha256` is of the document before, which the command printed.
    """

    collection: ClassVar[Collection] = Collection("row_repairs")

    table: str
    row_id: str
    row_version: int
    action: RowRepairAction
    document_sha256: str
    created_at: Instant
