"""Locating: finds in every partition, their order, and their freshness."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from payments_core.conformance.storage.harness import (
    OTHER_PARTITION,
    PARTITION,
    Harness,
    lock_existing,
    require_no_errors,
    run_concurrently,
)
from payments_core.conformance.storage.records import Note, TornNote
from payments_core.evolve import evolve
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.port import MAX_LOCATE_KEYS, LocatedRecord, Storage, Transaction, Where
from payments_core.storage.records import Value

SIMILAR_TEXTS = (
    "0xab",
    "0xAB",
    "0xab ",
    " 0xab",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "",
    "%",
    "_",
    "'\"\\",
    "[1]",
)
"""Texts that a database may confuse."""


class LookupChecks(Harness):
    """The promises of `locate`."""

    def test_records_of_every_partition_are_located_and_say_which(self) -> None:
        storage = self.open_handle()
        here = Note(id="n", name="shared", text="here")
        self.insert(storage, here, Note(id="other"), partition=PARTITION)
        self.insert(storage, Note(id="n", name="shared", text="there"), partition=OTHER_PARTITION)
        found = storage.locate(Note, "named", [("shared",)])
        assert [(item.partition, item.record.text) for item in found] == [
            (PARTITION, "here"),
            (OTHER_PARTITION, "there"),
        ]
        assert found[0] == LocatedRecord(PARTITION, evolve(here, version=1, schema=1))
        assert list(storage.locate(Note, "named", [("unknown",)])) == []

    def test_located_records_come_by_partition_then_by_id(self) -> None:
        storage = self.open_handle()
        partitions = ("b", "B", "a", "é", "aa")
        ids = ("z", "Z", "a", "😀", "\ufffd")
        for number, partition in enumerate(partitions):
            notes = [Note(id=id, name=f"key {(number + n) % 3}") for n, id in enumerate(ids)]
            self.insert(storage, *notes, partition=partition)
        found = storage.locate(Note, "named", [("key 2",), ("key 0",), ("key 1",)])
        assert places(found) == [(p, id) for p in sorted(partitions) for id in sorted(ids)]

    def test_many_keys_are_located_at_once(self) -> None:
        storage = self.open_handle()
        for start in range(0, MAX_LOCATE_KEYS, 100):
            notes = [Note(id=f"n{n:03d}", name=f"k{n}") for n in range(start, start + 100)]
            self.insert(storage, *notes, partition=(PARTITION, OTHER_PARTITION)[start // 100 % 2])
        keys = [(f"k{n}",) for n in range(MAX_LOCATE_KEYS)]
        found = storage.locate(Note, "named", keys, limit=MAX_LOCATE_KEYS + 1)
        assert sorted(item.record.name for item in found) == sorted(key for (key,) in keys)
        assert list(storage.locate(Note, "named", [])) == []

    def test_a_key_that_is_asked_for_twice_locates_a_record_once(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", name="k"))
        assert places(storage.locate(Note, "named", [("k",), ["k"], ("k",)])) == [(PARTITION, "n")]

    def test_a_key_is_located_by_all_its_columns_together(self) -> None:
        storage = self.open_handle()
        pairs = [(tag, size) for tag in ("a", "b") for size in (1, 2, -(2**63), 2**63 - 1)]
        notes = [Note(id=f"n{n}", tag=tag, size=size) for n, (tag, size) in enumerate(pairs)]
        self.insert(storage, *notes)
        keys = [("a", 1), ("b", 2), ("a", 2**63 - 1), ("b", -(2**63)), ("c", 1)]
        found = {(i.record.tag, i.record.size) for i in storage.locate(Note, "tagged", keys)}
        assert found == set(keys[:-1])

    def test_keys_are_compared_to_the_letter(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{n}", name=text) for n, text in enumerate(SIMILAR_TEXTS)))
        for n, text in enumerate(SIMILAR_TEXTS):
            assert places(storage.locate(Note, "named", [(text,)])) == [(PARTITION, f"n{n}")], text

    def test_a_null_in_a_key_locates_nothing(self) -> None:
        storage = self.open_handle()
        self.insert(
            storage, Note(id="a"), Note(id="b", tag="t"), Note(id="c", size=1),
            Note(id="d", tag="t", size=1),
        )  # fmt: skip
        keys = [(None, None), ("t", None), (None, 1), ("t", 1)]
        for key in keys[:3]:
            assert list(storage.locate(Note, "tagged", [key])) == []
        assert places(storage.locate(Note, "tagged", keys)) == [(PARTITION, "d")]

    def test_what_no_record_can_have_locates_nothing(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", name="k", tag="t", size=1))
        names = [("k\0",), ("x" * 100_000,), ("k",)]
        assert places(storage.locate(Note, "named", names)) == [(PARTITION, "n")]
        sizes = [("t", 2**63), ("t", -(2**64)), ("t", 1)]
        assert places(storage.locate(Note, "tagged", sizes)) == [(PARTITION, "n")]

    def test_every_comparison_must_hold_for_what_is_located(self) -> None:
        storage = self.open_handle()
        for partition in (PARTITION, OTHER_PARTITION):
            notes = [
                Note(id=f"n{n}", name="k", rank=n, size=None if n % 2 else n) for n in range(8)
            ]
            self.insert(storage, *notes, partition=partition)
        where = [Where("rank", ">", 2), Where("size", "!=", 4)]
        expected = [(PARTITION, "n6"), (OTHER_PARTITION, "n6")]
        assert places(storage.locate(Note, "named", [("k",)], where=where)) == expected
        found = storage.locate(Note, "named", [("k",)], where=where, limit=2)
        assert places(found) == expected, (
            "the limit must count only records that match the comparisons"
        )
        later = storage.locate(Note, "named", [("k",)], where=where, after=expected[0])
        assert places(later) == expected[1:]

    def test_locating_continues_after_the_last_row(self) -> None:
        storage = self.open_handle()
        for partition in (OTHER_PARTITION, PARTITION):
            notes = [Note(id=f"n{n}", name=f"key {n % 3}") for n in range(10)]
            self.insert(storage, *notes, partition=partition)
        expected = [
            (p, f"n{n}") for p in (PARTITION, OTHER_PARTITION) for n in range(10) if n % 3 < 2
        ]
        for limit in (1, 2, 3, 50):
            assert self._locate_all(storage, limit) == expected, limit

    def test_a_place_stays_while_records_come_and_go(self) -> None:
        storage = self.open_handle()
        ids = ("b", "d", "f", "h")
        self.insert(storage, *(Note(id=id, name="key 0") for id in ids))
        first = places(storage.locate(Note, "named", [("key 0",)], limit=2))
        assert first == [(PARTITION, "b"), (PARTITION, "d")]

        def work(tx: Transaction) -> None:
            for id in ("a", "c", "e", "g"):
                tx.insert(Note(id=id, name="key 0"))
            for id in ("d", "f"):
                tx.delete(lock_existing(tx, Note, id))

        self.write(storage, work)
        assert self._locate_all(storage, 2, first[-1]) == [
            (PARTITION, "e"),
            (PARTITION, "g"),
            (PARTITION, "h"),
        ]

    def test_a_changed_record_is_located_by_what_it_says_now(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", tag="old", size=1), Note(id="gone", tag="old", size=1))

        def work(tx: Transaction) -> None:
            tx.replace(evolve(lock_existing(tx, Note, "n"), tag="new", text="changed"))
            tx.delete(lock_existing(tx, Note, "gone"))

        self.write(storage, work)
        assert list(storage.locate(Note, "tagged", [("old", 1)])) == []
        (found,) = storage.locate(Note, "tagged", [("old", 1), ("new", 1)])
        assert (found.record.version, found.record.text) == (2, "changed")
        self.write(storage, lambda tx: tx.replace(evolve(lock_existing(tx, Note, "n"), tag=None)))
        assert list(storage.locate(Note, "tagged", [("new", 1)])) == []

    def test_an_answered_commit_is_located(self) -> None:
        self._require_commits_located(*[self.open_handle()] * 2)

    def test_an_answered_commit_of_another_handle_is_located(self) -> None:
        self.require_capability("multi_process")
        self._require_commits_located(self.open_handle(), self.open_handle())

    def _require_commits_located(self, writer: Storage, reader: Storage) -> None:
        """Committed records are located: by their writer, and by other, constant readers."""
        committed: list[str] = []
        done = threading.Event()

        def locate_ids() -> set[str]:
            found = reader.locate(Note, "named", [("known",)], where=[Where("rank", "=", 7)])
            return {item.record.id for item in found}

        def insert_and_locate(number: int) -> None:
            id = f"n{number:02d}"
            self.insert(writer, Note(id=id, name="known", rank=7), partition=f"env {id}")
            committed.append(id)
            assert locate_ids() == set(committed), "locate must return every committed record"

        def write() -> None:
            try:
                for number in range(10, 40):
                    insert_and_locate(number)
            finally:
                done.set()

        def read() -> None:
            while not done.is_set():
                known = set(committed)
                assert known <= locate_ids(), (
                    "locate must not return a version older than a committed one"
                )

        for number in range(10):  # alone, or others' reads might refresh this one's view
            insert_and_locate(number)
        require_no_errors(run_concurrently(write, read, read))

    def test_what_is_not_committed_is_not_located(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", name="before"))
        seen: list[list[tuple[str, str]]] = []
        inside = threading.Event()
        looked = threading.Event()

        def write() -> None:
            def work(tx: Transaction) -> None:
                tx.insert(Note(id="m", name="after"))
                tx.replace(evolve(lock_existing(tx, Note, "n"), name="after"))
                inside.set()
                looked.wait(0.1)  # without result if readers wait for writers
                raise ArithmeticError

            self.require_error(storage, ArithmeticError, work)

        def read() -> None:
            inside.wait(5)
            seen.extend(places(storage.locate(Note, "named", [(k,)])) for k in ("before", "after"))
            looked.set()

        require_no_errors(run_concurrently(write, read))
        assert seen == [[(PARTITION, "n")], []]

    def test_a_query_that_does_not_fit_the_lookup_is_refused(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n", name="1", tag="t", size=1))
        questions: list[tuple[str, Sequence[Sequence[Value]], int]] = [
            ("named", [()], 1),
            ("named", [("1", "1")], 1),
            ("named", [("1",), (1,)], 1),
            ("tagged", [("t", "1")], 1),
            ("tagged", [("t", True)], 1),
            ("named", [("1",)], 0),
            ("named", [("1",)] * (MAX_LOCATE_KEYS + 1), 1),
        ]
        for lookup, keys, limit in questions:
            try:
                storage.locate(Note, lookup, keys, limit=limit)
            except ValueError:
                continue
            raise AssertionError(f"an invalid query must be refused: {keys[:2]}")

    def test_a_damaged_row_is_reported_if_that_is_requested(self) -> None:
        """Then the other located records come, page after page; otherwise it raises."""
        storage = self.open_handle()
        for partition in (PARTITION, OTHER_PARTITION):
            notes = [Note(id=f"n{rank}", name="shared", rank=rank) for rank in (1, 3)]
            torn = [TornNote(id=f"n{rank}", name="shared", rank=rank) for rank in (0, 2, 4)]
            self.insert(storage, *notes, *torn, partition=partition)
        keys = [("shared",), ("unknown",)]
        for limit in (1, 2, 3, 10, 50):
            found: list[tuple[str, str]] = []
            damaged: list[tuple[str, str]] = []
            after: tuple[str, str] | None = None
            for _ in range(12):
                before = len(damaged)
                page = storage.locate(
                    Note, "named", keys, after=after, limit=limit,
                    on_damaged=lambda *place, into=damaged: into.append(place),
                )  # fmt: skip
                found += places(page)
                seen = [*damaged[before:], *places(page)]
                if not seen:
                    break
                after = max(seen)
            both = (PARTITION, OTHER_PARTITION)
            assert found == [(partition, f"n{rank}") for partition in both for rank in (1, 3)]
            assert set(damaged) == {
                (partition, f"n{rank}") for partition in both for rank in (0, 2, 4)
            }
        try:
            storage.locate(Note, "named", keys)
        except UnreadableDocument:
            return
        raise AssertionError("a damaged row must raise without `on_damaged`")

    def _locate_all(
        self, storage: Storage, limit: int, after: tuple[str, str] | None = None
    ) -> list[tuple[str, str]]:
        """The places of all records that two keys locate, in pages of a size."""
        found: list[tuple[str, str]] = []
        while True:
            some = storage.locate(Note, "named", [("key 1",), ("key 0",)], after=after, limit=limit)
            assert len(some) <= limit, "a page must not exceed its limit"
            found.extend(places(some))
            if len(some) < limit:
                return found
            assert found[-1] != after, "the next page must continue after the last record"
            after = found[-1]


def places(found: Sequence[LocatedRecord[Note]]) -> list[tuple[str, str]]:
    """The partitions and ids of located records."""
    return [(item.partition, item.record.id) for item in found]
