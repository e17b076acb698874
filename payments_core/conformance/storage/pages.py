"""Finding: order, positions, comparisons, nulls, and the scan limit."""

from __future__ import annotations

import itertools
import random
from typing import Any

from payments_core.conformance.storage.harness import (
    PARTITION,
    Harness,
    fetch_all_pages,
    lock_existing,
)
from payments_core.conformance.storage.records import Note, TornNote
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.port import (
    SCAN_LIMIT,
    Operator,
    Page,
    Position,
    Storage,
    Transaction,
    Where,
)

TEXTS = ("", "Z", "a", "aa", "a b", "b", "é", "z", "ß", "€", "\ufffd", "😀", "'\"\\%_")
OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")


class PageChecks(Harness):
    """The promises of `find` in a snapshot."""

    def test_records_come_in_the_order_of_the_index_then_by_id(self) -> None:
        storage = self.open_handle()
        notes = self._insert_notes(storage)
        expected = sorted(notes, key=lambda note: (note.rank, note.id))
        for limit in (1, 2, 3, 50):
            found = fetch_all_pages(storage, Note, "by_rank", ("one",), limit=limit)
            assert [note.id for note in found] == [note.id for note in expected]

    def test_a_descending_index_turns_the_ids_round_too(self) -> None:
        storage = self.open_handle()
        notes = self._insert_notes(storage)
        expected = sorted(notes, key=lambda note: (note.rank, note.id), reverse=True)
        for limit in (1, 2, 3, 50):
            found = fetch_all_pages(storage, Note, "newest", ("one",), limit=limit)
            assert [note.id for note in found] == [note.id for note in expected]

    def test_texts_are_ordered_by_code_point(self) -> None:
        storage = self.open_handle()
        notes = [Note(id=f"n{place}", name=text) for place, text in enumerate(TEXTS)]
        random.Random(1).shuffle(notes)
        self.insert(storage, *notes)
        for limit in (1, 4, 50):
            found = fetch_all_pages(storage, Note, "by_name", ("one",), limit=limit)
            assert [note.name for note in found] == sorted(TEXTS)
        for text in TEXTS:
            found = fetch_all_pages(
                storage, Note, "by_name", ("one",), where=[Where("name", "<", text)]
            )
            assert [note.name for note in found] == [t for t in sorted(TEXTS) if t < text]

    def test_ids_are_ordered_by_code_point(self) -> None:
        storage = self.open_handle()
        ids = [text for text in TEXTS if text]
        self.insert(storage, *(Note(id=id) for id in ids))
        assert [note.id for note in fetch_all_pages(storage, Note, "all", limit=2)] == sorted(ids)

    def test_two_order_columns(self) -> None:
        storage = self.open_handle()
        pairs = itertools.product(("b", "a", "é"), (2, -1, 10))
        notes = [Note(id=f"n{i}", name=n, rank=r) for i, (n, r) in enumerate(pairs)]
        self.insert(storage, *notes)
        expected = sorted(notes, key=lambda note: (note.name, note.rank, note.id))
        for limit in (1, 2, 50):
            found = fetch_all_pages(storage, Note, "by_name_and_rank", ("one",), limit=limit)
            assert [note.id for note in found] == [note.id for note in expected]

    def test_every_comparison(self) -> None:
        storage = self.open_handle()
        notes = self._insert_notes(storage)
        for operator in OPERATORS:
            for value in (-5, 1, 2, 99):
                found = fetch_all_pages(
                    storage,
                    Note,
                    "by_rank",
                    ("one",),
                    where=[Where("rank", operator, value)],
                    limit=2,
                )
                expected = {n.id for n in notes if _compare(n.rank, operator, value)}
                assert {note.id for note in found} == expected, (operator, value)

    def test_a_null_compares_with_nothing(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="a"), Note(id="b", size=1), Note(id="c", size=2))
        found = {
            operator: [
                note.id
                for note in fetch_all_pages(
                    storage, Note, "all", where=[Where("size", operator, 1)], limit=1
                )
            ]
            for operator in OPERATORS
        }
        assert found == {
            "=": ["b"],
            "!=": ["c"],
            "<": [],
            "<=": ["b"],
            ">": ["c"],
            ">=": ["b", "c"],
        }

    def test_every_comparison_must_hold(self) -> None:
        storage = self.open_handle()
        notes = self._insert_notes(storage)
        where = [Where("rank", ">", 0), Where("rank", "<", 3), Where("tag", "=", "even")]
        found = fetch_all_pages(storage, Note, "by_rank", ("one",), where=where, limit=1)
        expected = {note.id for note in notes if 0 < note.rank < 3 and note.tag == "even"}
        assert expected
        assert {note.id for note in found} == expected

    def test_a_null_key_finds_the_nulls(self) -> None:
        storage = self.open_handle()
        notes = self._insert_notes(storage)
        found = fetch_all_pages(storage, Note, "by_tag", (None,), limit=2)
        assert {note.id for note in found} == {note.id for note in notes if note.tag is None}
        assert fetch_all_pages(storage, Note, "by_tag", ("odd",)) == []

    def test_the_key_takes_its_own_rows_only(self) -> None:
        storage = self.open_handle()
        self._insert_notes(storage)
        self.insert(storage, Note(id="other", group="two", rank=1))
        found = fetch_all_pages(storage, Note, "by_rank", ("two",))
        assert [note.id for note in found] == ["other"]
        assert fetch_all_pages(storage, Note, "by_rank", ("none",)) == []
        assert fetch_all_pages(storage, Note, "by_rank", ("one' OR ''='",)) == []

    def test_a_position_stays_while_rows_come_and_go(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{rank}", rank=rank) for rank in range(0, 60, 10)))
        first = self._find_page(storage, limit=3)
        assert [note.rank for note in first.records] == [0, 10, 20]

        def work(tx: Transaction) -> None:
            tx.insert(Note(id="before", rank=5))
            tx.insert(Note(id="n2", rank=20))  # ties with the position, and comes before it
            tx.insert(Note(id="n20a", rank=20))  # ties with the position, and comes after it
            tx.insert(Note(id="after", rank=35))
            tx.delete(lock_existing(tx, Note, "n20"))
            tx.delete(lock_existing(tx, Note, "n40"))

        self.write(storage, work)
        rest: list[str] = []
        after = first.next
        while after is not None:
            page = self._find_page(storage, limit=2, after=after)
            rest.extend(note.id for note in page.records)
            after = page.next
        assert rest == ["n20a", "n30", "after", "n50"]

    def test_a_page_that_ends_with_the_rows_has_no_next(self) -> None:
        storage = self.open_handle()
        assert self._find_page(storage, limit=2) == Page((), None)
        self.insert(storage, Note(id="a"), Note(id="b"))
        page = self._find_page(storage, limit=2)
        assert [note.id for note in page.records] == ["a", "b"]
        assert page.next is None
        assert self._find_page(storage, limit=1).next == (0, "a")
        assert self._find_page(storage, limit=1, after=(0, "b")) == Page((), None)

    def test_a_page_ends_short_at_the_scan_limit(self) -> None:
        storage = self.open_handle()
        rows = SCAN_LIMIT + 5
        for start in range(0, rows, 2_500):
            self.insert(
                storage,
                *(
                    Note(id=f"n{rank:05d}", rank=rank, tag="last" if rank == rows - 1 else None)
                    for rank in range(start, min(start + 2_500, rows))
                ),
            )
        where = [Where("tag", "=", "last")]
        page = storage.read(
            PARTITION, lambda snapshot: snapshot.find(Note, "by_rank", ("one",), where=where)
        )
        assert page.records == ()
        assert page.next is not None
        found = fetch_all_pages(storage, Note, "by_rank", ("one",), where=where)
        assert [note.rank for note in found] == [rows - 1]
        assert len(fetch_all_pages(storage, Note, "newest", ("one",), limit=4_000)) == rows

    def test_a_damaged_row_is_skipped_if_that_is_requested(self) -> None:
        """Then pages continue after it, for any row; otherwise it raises."""
        storage = self.open_handle()
        torn = (0, 2, 3, 6)
        self.insert(
            storage,
            *(
                TornNote(id=f"n{rank}", rank=rank)
                if rank in torn
                else Note(id=f"n{rank}", rank=rank)
                for rank in range(7)
            ),
        )
        for index, where, limit in itertools.product(
            ("by_rank", "newest"), ((), (Where("rank", ">=", 0),)), (1, 2, 3, 7, 50)
        ):
            options: dict[str, Any] = {"where": where, "limit": limit}
            found, after = [], None
            for _ in range(8):
                page = self._find_page(storage, index, after=after, skip_damaged=True, **options)
                found += [note.rank for note in page.records]
                after = page.next
                if after is None:
                    break
            assert after is None, "the pages must end"
            assert found == sorted((1, 4, 5), reverse=index == "newest"), (index, where, limit)
            try:
                self._find_page(storage, index, after=None, **{**options, "limit": 4})
            except UnreadableDocument:
                continue
            raise AssertionError("a damaged row must raise unless it is to be skipped")

    def test_a_query_that_does_not_fit_the_index_is_refused(self) -> None:
        storage = self.open_handle()
        for work in (
            lambda snapshot: snapshot.find(Note, "by_rank"),
            lambda snapshot: snapshot.find(Note, "by_rank", ("one", "two")),
            lambda snapshot: snapshot.find(Note, "by_rank", ("one",), after=("n",)),
            lambda snapshot: snapshot.find(Note, "by_rank", ("one",), after=("1", "n")),
            lambda snapshot: snapshot.find(Note, "by_rank", ("one",), after=(2**63, "n")),
            lambda snapshot: snapshot.find(Note, "by_rank", ("one",), limit=0),
        ):
            try:
                storage.read(PARTITION, work)
            except ValueError:
                continue
            raise AssertionError("an invalid query must be refused")

    def _insert_notes(self, storage: Storage) -> list[Note]:
        """Notes with ties in rank, in an order of ids that is not that of insertion."""
        notes = [
            Note(id=f"n{number * 7 % 12:02d}", rank=number % 4 - 1, tag=tag)
            for number, tag in zip(range(12), itertools.cycle(["even", None]), strict=False)
        ]
        self.insert(storage, *notes)
        return notes

    def _find_page(
        self,
        storage: Storage,
        index: str = "by_rank",
        *,
        after: Position | None = None,
        **options: Any,
    ) -> Page[Note]:
        return storage.read(
            PARTITION, lambda snapshot: snapshot.find(Note, index, ("one",), after=after, **options)
        )


def _compare(left: int, operator: Operator, right: int) -> bool:
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]
