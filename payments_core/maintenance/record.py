"""What upkeep notes in a storage."""

from __future__ import annotations

from typing import ClassVar

import attrs

from payments_core.storage.records import Collection, Record


@attrs.frozen(kw_only=True)
class CopyMark(Record):
    """Of one move: the source has it, and of all copies of the source that to which it was moved.

    Two copies may be equal while only one of them is at work.
    """

    collection: ClassVar[Collection] = Collection("copy_marks")
