"""Copies one storage into another for test_copy_kills, which kills it on the way.

Usage: python -m tests.maintenance.copy_victim SOURCE TARGET; each step is a line, which is answered
before it goes on. The last step is `retire`, when the target has committed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from payments_core.maintenance.copying import copy
from payments_core.record_types import KINDS
from payments_core.storage.port import Located
from payments_core.storage.records import R, Record
from payments_core.storage.wholesale import BATCH, Alone, Place, Retires, Row, wholesale
from payments_core.storage_loader import open_storage

NOTE = "the records are elsewhere now"


def step(*what: object) -> None:
    """Say what is done, and wait to be told to go on."""
    print(*what, flush=True)
    if not sys.stdin.readline():
        sys.exit(1)


class Stepping:
    """A source that says when it is to be retired."""

    def __init__(self, url: str) -> None:
        self._whole = wholesale(open_storage(url, KINDS))

    def walk(
        self, kind: type[R], *, after: Place | None = None, limit: int = BATCH
    ) -> Sequence[Located[R]]:
        return self._whole.walk(kind, after=after, limit=limit)

    @contextmanager
    def alone(self) -> Iterator[Alone]:
        with self._whole.alone() as alone:
            yield SteppingAlone(alone)


class SteppingAlone:
    """The same, had alone."""

    def __init__(self, alone: Alone) -> None:
        self._alone = alone

    def rows(
        self, kind: type[Record], *, after: Place | None = None, limit: int = BATCH
    ) -> Sequence[Row]:
        return self._alone.rows(kind, after=after, limit=limit)

    def load(self, kind: type[Record], rows: Sequence[Row]) -> None:
        self._alone.load(kind, rows)

    def is_retired(self) -> bool:
        assert isinstance(self._alone, Retires)
        return self._alone.is_retired()

    def retire(self, note: str) -> None:
        step("retire")
        assert isinstance(self._alone, Retires)
        self._alone.retire(note)

    def reinstate(self) -> bool:
        assert isinstance(self._alone, Retires)
        return self._alone.reinstate()


def main() -> None:
    """Copy, step by step."""
    source, target = sys.argv[1:]
    opened = open_storage(target, KINDS)
    copied = copy(Stepping(source), opened, KINDS, retire=NOTE, progress=step)  # type: ignore[arg-type]
    print("done", sum(copied.rows.values()), flush=True)


if __name__ == "__main__":
    main()
