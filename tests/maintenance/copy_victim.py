"""Copies one storage into another for test_copy_kills, which kills it on the way.

Usage: python -m tests.maintenance.copy_victim SOURCE TARGET; each step is a line, which is answered
before it continues. The last step is `retire`, when the target has committed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from payments_core.maintenance.storage_copy import copy
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.maintenance import (
    BATCH,
    ExclusiveAccess,
    PrimaryKey,
    RecordRow,
    Retirable,
    require_maintenance_access,
)
from payments_core.storage.port import LocatedRecord
from payments_core.storage.records import R, Record
from payments_core.storage_loader import open_storage

NOTE = "the records are elsewhere now"


def step(*what: object) -> None:
    """Say what is done, and wait for the signal to continue."""
    print(*what, flush=True)
    if not sys.stdin.readline():
        sys.exit(1)


class Stepping:
    """A source that says when it is to be retired."""

    def __init__(self, url: str) -> None:
        self._whole = require_maintenance_access(open_storage(url, RECORD_TYPES))

    def scan_page(
        self, kind: type[R], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[LocatedRecord[R]]:
        return self._whole.scan_page(kind, after=after, limit=limit)

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        return self._whole.read_rows(kind, after=after, limit=limit)

    @contextmanager
    def lock_exclusively(self) -> Iterator[ExclusiveAccess]:
        with self._whole.lock_exclusively() as alone:
            yield SteppingAlone(alone)


class SteppingAlone:
    """The same, had alone."""

    def __init__(self, alone: ExclusiveAccess) -> None:
        self._alone = alone

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        return self._alone.read_rows(kind, after=after, limit=limit)

    def load(self, kind: type[Record], rows: Sequence[RecordRow]) -> None:
        self._alone.load(kind, rows)

    def is_retired(self) -> bool:
        assert isinstance(self._alone, Retirable)
        return self._alone.is_retired()

    def retire(self, note: str) -> None:
        step("retire")
        assert isinstance(self._alone, Retirable)
        self._alone.retire(note)

    def reinstate(self) -> bool:
        assert isinstance(self._alone, Retirable)
        return self._alone.reinstate()


def main() -> None:
    """Copy, step by step."""
    source, target = sys.argv[1:]
    opened = open_storage(target, RECORD_TYPES)
    copied = copy(Stepping(source), opened, RECORD_TYPES, retire=NOTE, progress=step)  # type: ignore[arg-type]
    print("done", sum(copied.rows.values()), flush=True)


if __name__ == "__main__":
    main()
