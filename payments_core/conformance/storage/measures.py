"""Measuring: how many bytes a partition stores, a page of rows at a time."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.conformance.storage.harness import (
    OTHER_PARTITION,
    PARTITION,
    Harness,
    fetch_existing,
)
from payments_core.conformance.storage.records import Letter, Note, TornNote
from payments_core.evolve import evolve
from payments_core.storage import documents
from payments_core.storage.port import Storage
from payments_core.storage.records import Record

LONG_ID = "x" * 499


class MeasureChecks(Harness):
    """The promises of `measure`."""

    def test_the_measured_bytes_are_those_of_the_bodies(self) -> None:
        storage = self.open_handle()
        texts = ("", "e", "é", "€", "😀", '"\n\\', "\0", "long " * 9_000)
        notes = [Note(id=f"n{rank}", text=text) for rank, text in enumerate(texts)]
        others = (Note(id="n0", text="elsewhere"), Note(id="n99"))
        assert _measure(storage, Note) == 0
        self.insert(storage, *notes)
        self.insert(storage, *others, partition=OTHER_PARTITION)
        self.insert(storage, Letter(id="letter", text="not a note"))
        for limit in (1, 2, len(texts), 1_000):
            assert _measure(storage, Note, limit=limit) == _sum_bodies(notes), limit
            assert _measure(storage, Note, OTHER_PARTITION, limit=limit) == _sum_bodies(others)
        assert _measure(storage, Note, "env_nobody's") == 0

    def test_the_measured_bytes_follow_each_change(self) -> None:
        storage = self.open_handle()
        kept, changed, gone = (Note(id=id) for id in ("kept", "changed", "gone"))
        self.insert(storage, kept, changed, gone)
        stored = fetch_existing(storage, Note, "changed")
        longer = evolve(stored, text="longer " * 1_000)
        self.write(storage, lambda tx: tx.replace(longer))
        self.write(storage, lambda tx: tx.delete(documents.stamp(gone, 1)))
        expected = _sum_bodies([kept]) + len(documents.encode(documents.stamp(longer, 2)))
        assert _measure(storage, Note) == expected

    def test_damaged_rows_are_measured_too(self) -> None:
        storage = self.open_handle()
        rows: list[Record] = [Note(id="a"), TornNote(id="b", text=7), Note(id="c")]
        self.insert(storage, *rows)
        for limit in (1, 2, 50):
            assert _measure(storage, Note, limit=limit) == _sum_bodies(rows), limit

    def test_a_page_of_measured_rows_ends_at_its_limit(self) -> None:
        """A position stays valid if its row is gone; a longer page would hold up other work."""
        storage = self.open_handle()
        ids = ("B", "a", "a b", "b", LONG_ID, f"{LONG_ID}y", f"{LONG_ID}z", "é", "😀")
        by_id = {id: Note(id=id, text="t" * 2**place) for place, id in enumerate(ids)}
        self.insert(storage, *reversed(by_id.values()))
        assert list(ids) == sorted(ids)
        for place, id in enumerate(ids):
            later = [by_id[one] for one in ids[place + 1 :]]
            page = storage.measure(PARTITION, Note, id, 1)
            assert page.bytes <= _sum_bodies(later[:1]), id
            assert page.next in (None, *ids[place + 1 : place + 2]), id
            assert _measure(storage, Note, after=id, limit=2) == _sum_bodies(later), id
        self.write(storage, lambda tx: tx.delete(documents.stamp(by_id["a b"], 1)))
        later = [by_id[one] for one in ids[3:]]
        assert _measure(storage, Note, after="a b", limit=2) == _sum_bodies(later)


def _measure(
    storage: Storage,
    kind: type[Record],
    partition: str = PARTITION,
    *,
    after: str | None = None,
    limit: int = 3,
) -> int:
    """The bytes of every page in turn."""
    total = 0
    while True:
        page = storage.measure(partition, kind, after, limit)
        total += page.bytes
        if page.next is None:
            return total
        assert after is None or page.next > after, "a page must end after the one before"
        after = page.next


def _sum_bodies(records: Sequence[Record]) -> int:
    """The bytes of new records, as they are stored."""
    return sum(len(documents.encode(documents.stamp(record, 1))) for record in records)
