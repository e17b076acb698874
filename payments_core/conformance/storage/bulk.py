"""Many records at once: the same as one by one, for adapters that do it in fewer statements."""

from __future__ import annotations

from functools import partial
from operator import methodcaller
from typing import Any

from payments_core.conformance.storage.harness import (
    PARTITION,
    Harness,
    fetch,
    fetch_existing,
    lock_existing,
)
from payments_core.conformance.storage.records import Counter, Letter, Note
from payments_core.evolve import evolve
from payments_core.storage.port import (
    Position,
    Snapshot,
    Transaction,
    UniqueConflict,
    VersionConflict,
    Where,
)
from payments_core.storage.reads import Find, Get

TEXTS = ('"quoted" \\ and {braced}', "naïve ☃ \N{GRINNING FACE}", "", "line\nbreak", "'; --")


class BulkChecks(Harness):
    """`get_many`, `count`, `read_ahead`, `write`, `read_apart` and `fetch`.

    An adapter that takes them from `payments_core.storage.one_by_one` passes too.
    """

    def test_what_is_read_ahead_changes_no_answer(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{n}", rank=n) for n in range(3)), Counter(id="c"))
        reads = (
            Get(Note, "n1"),
            Get(Counter, "c"),
            Get(Note, "absent"),
            Get(Note, "im\0possible"),
            Find(Note, "newest", ("one",), 2),
        )

        def look(snapshot: Snapshot) -> Any:
            found = [snapshot.get(read.kind, read.id) for read in reads[:-1]]
            return found, snapshot.find(Note, "newest", ("one",), limit=2)

        def look_ahead(snapshot: Snapshot) -> Any:
            for _ in range(2):  # known records are not read again
                snapshot.read_ahead(*reads)
            snapshot.read_ahead(reads[-1], reads[-1])
            return look(snapshot)

        plain = storage.read(PARTITION, look)
        assert storage.read(PARTITION, look_ahead) == plain
        assert storage.read_apart(PARTITION, look_ahead) == plain
        assert self.write(storage, look_ahead) == plain
        assert list(storage.fetch(PARTITION, *reads[:-1])) == plain[0]
        assert storage.fetch(PARTITION, Get(Note, "n2"))[0].rank == 2

    def test_a_long_list_read_ahead_changes_no_answer(self) -> None:
        """A batch of jobs locks the records of all of them."""
        storage = self.open_handle()
        ids = [f"n{n:02}" for n in range(40)]
        self.insert(storage, *(Note(id=id, text=id) for id in ids[::2]), Counter(id="c"))
        gets = [Get(Note, id, "exclusive", is_optional=True) for id in reversed(ids)]
        reads = (*gets, Get(Counter, "c"), Get(Counter, "absent"), *gets[:3])

        def look(rows: Any, **lock: bool) -> Any:
            notes = [rows.get(Note, id, **lock) for id in ids]
            return notes, rows.get(Counter, "c"), rows.get(Counter, "absent")

        def look_ahead(rows: Any, **lock: bool) -> Any:
            rows.read_ahead(*reads)
            return look(rows, **lock)

        plain = storage.read(PARTITION, look)
        assert [note and note.text for note in plain[0][:3]] == ["n00", None, "n02"]
        assert storage.read(PARTITION, look_ahead) == plain
        assert storage.read_apart(PARTITION, look_ahead) == plain

        def work(tx: Transaction) -> None:
            assert look_ahead(tx, for_update=True) == plain
            tx.replace(evolve(lock_existing(tx, Note, "n38"), text="x"))
            tx.insert(Note(id="n39", text="y"))

        self.write(storage, work)
        assert fetch_existing(storage, Note, "n38").text == "x"
        assert fetch_existing(storage, Note, "n39").text == "y"

    def test_what_is_read_apart_is_as_new_as_what_was_committed(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n"))

        def look(snapshot: Snapshot) -> Any:
            found = snapshot.get(Note, "n")
            return found, snapshot.find(Note, "newest", ("one",), limit=9).records

        for rank in range(3):
            note = fetch_existing(storage, Note, "n")
            self.write(storage, lambda tx, note=note: tx.replace(evolve(note, rank=rank)))  # type: ignore[misc]  # noqa: B023
            found, listed = storage.read_apart(PARTITION, look)
            assert found.rank == rank
            assert listed == (found,)

    def test_what_a_work_writes_counts_over_what_it_read_ahead(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{n}") for n in range(3)), Counter(id="c"))

        def work(tx: Transaction) -> None:
            locked = (Get(Note, f"n{n}", "exclusive") for n in range(3))
            absent = Get(Note, "new", "exclusive", is_optional=True)
            page = Find(Note, "newest", ("one",), 9)
            tx.read_ahead(Get(Counter, "c", "shared"), *locked, absent, page)

            def find() -> list[str]:
                found = tx.find(Note, "newest", ("one",), limit=9).records
                return sorted(f"{note.id}{note.text}" for note in found)

            assert find() == find() == ["n0", "n1", "n2"]
            counter = tx.get(Counter, "c")
            assert counter is not None
            tx.hold(counter)
            notes = [lock_existing(tx, Note, f"n{n}") for n in range(3)]
            assert tx.get(Note, "new", for_update=True) is None
            tx.replace(evolve(notes[0], text="x"))
            tx.write([Note(id="new")], [evolve(notes[1], text="y")], [notes[2]])
            assert lock_existing(tx, Note, "n0").text == "x"
            assert lock_existing(tx, Note, "n1").text == "y"
            assert tx.get(Note, "n2") is None
            assert find() == ["n0x", "n1y", "new"]
            assert lock_existing(tx, Note, "new").version == 1
            tx.replace(evolve(lock_existing(tx, Note, "n0"), text="z"))
            tx.replace(evolve(lock_existing(tx, Counter, "c"), total=1))

        self.write(storage, work)
        assert fetch_existing(storage, Note, "n0").text == "z"
        assert fetch_existing(storage, Note, "n0").version == 3
        assert fetch_existing(storage, Counter, "c").total == 1

    def test_what_is_held_after_a_change_of_its_own_is_refused(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="n"), Counter(id="c"))

        def work(tx: Transaction) -> None:
            tx.read_ahead(Get(Note, "n", "exclusive"), Get(Counter, "c", "shared"))
            note = lock_existing(tx, Note, "n")
            tx.hold(note)
            tx.replace(evolve(note, text="x"))
            tx.hold(note)

        self.require_error(storage, VersionConflict, work)

    def test_many_are_read_like_one_by_one(self) -> None:
        storage = self.open_handle()
        notes = [Note(id=f"n{n}", text=text, rank=n) for n, text in enumerate(TEXTS)]
        self.insert(storage, *notes)
        wanted = {f"n{n}" for n in range(len(TEXTS))} | {"absent"}
        found = storage.read(PARTITION, lambda snapshot: snapshot.get_many(Note, wanted))
        assert found == {id: fetch_existing(storage, Note, id) for id in wanted - {"absent"}}
        assert storage.read(PARTITION, lambda snapshot: snapshot.get_many(Note, ())) == {}

    def test_as_many_are_counted_as_are_found(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{n}", tag=str(n % 2), rank=n) for n in range(9)))
        behind = storage.read(
            PARTITION, lambda snapshot: snapshot.find(Note, "newest", ("one",), limit=4).next
        )
        odd = (Where("tag", "=", "1"),)

        def compare(snapshot: Snapshot, group: str, after: Position | None, more: Any) -> None:
            counted = snapshot.count(Note, "newest", (group,), after=after, **more)
            left, next = more["limit"], after
            while left:  # a page may end short
                page = snapshot.find(Note, "newest", (group,), after=next, **more | {"limit": left})
                left, next = left - len(page.records), page.next
                if next is None:
                    break
            assert counted == more["limit"] - left, (group, after, more)

        for where in ((), odd, (*odd, Where("rank", ">", 3))):
            for after in (None, behind):
                for limit in (1, 2, 100):
                    more = {"where": where, "limit": limit}
                    for group in ("one", "none", "no\0ne"):
                        work = partial(compare, group=group, after=after, more=more)
                        storage.read(PARTITION, work)

    def test_many_are_written_like_one_by_one(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"old {n}", rank=n) for n in range(len(TEXTS))))
        self.insert(storage, *(Note(id=f"gone {n}") for n in range(3)), Counter(id="c"))
        self.insert(storage, *(Letter(id=f"letter {n}") for n in range(len(TEXTS))))

        def work(tx: Transaction) -> None:
            letters = tx.get_many(
                Letter, [f"letter {n}" for n in range(len(TEXTS))], for_update=True
            )
            old = tx.get_many(Note, [f"old {n}" for n in range(len(TEXTS))], for_update=True)
            gone = tx.get_many(Note, [f"gone {n}" for n in range(3)], for_update=True)
            changed = [
                evolve(old[f"old {n}"], text=text, left=text or None, rank=-n)
                for n, text in enumerate(TEXTS)
            ]
            counter = evolve(lock_existing(tx, Counter, "c"), total=2**63 - 1)
            moved = [
                evolve(letters[f"letter {n}"], text=text, folder=text or None)
                for n, text in enumerate(TEXTS)
            ]
            tx.write([Note(id="new")], [*changed, counter, *moved], list(gone.values()))

        self.write(storage, work)
        for n, text in enumerate(TEXTS):
            note = fetch_existing(storage, Note, f"old {n}")
            assert (note.version, note.text, note.left, note.rank) == (2, text, text or None, -n)
            letter = fetch_existing(storage, Letter, f"letter {n}")
            assert (letter.version, letter.text, letter.folder) == (2, text, text or None)
        assert fetch_existing(storage, Counter, "c").total == 2**63 - 1
        assert fetch_existing(storage, Note, "new").version == 1
        assert all(fetch(storage, Note, f"gone {n}") is None for n in range(3))

    def test_one_stale_record_of_many_is_refused_and_nothing_is_written(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{n}") for n in range(3)))
        first, *others = (fetch_existing(storage, Note, f"n{n}") for n in range(3))
        self.write(storage, lambda tx: tx.replace(evolve(lock_existing(tx, Note, "n0"), text="x")))
        changed = [evolve(note, text="y") for note in (first, *others)]
        self.require_error(storage, VersionConflict, lambda tx: tx.write([], changed))
        self.require_error(storage, VersionConflict, lambda tx: tx.write([], [], [first, *others]))
        twice = [evolve(others[0], text="y"), evolve(others[0], text="z")]
        for replaces, deletes in ((twice, []), (twice[:1], others[:1])):
            work = methodcaller("write", [], replaces, deletes)
            self.require_error(storage, VersionConflict, work)
        found = [fetch_existing(storage, Note, f"n{n}").text for n in range(3)]
        assert found == ["x", "", ""]
        self.insert(storage, Counter(id="a"), Counter(id="b"))
        stale = [fetch_existing(storage, Counter, id) for id in ("a", "b")]
        self.write(storage, lambda tx: tx.replace(lock_existing(tx, Counter, "b")))
        more = [evolve(counter, total=7) for counter in stale]
        self.require_error(storage, VersionConflict, lambda tx: tx.write([], more))
        assert fetch_existing(storage, Counter, "a").total == 0

    def test_a_unique_key_holds_among_many(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{n}", code=f"c{n}") for n in range(3)))
        notes = [fetch_existing(storage, Note, f"n{n}") for n in range(3)]
        same = [evolve(note, code="same") for note in notes]
        error = self.require_error(storage, UniqueConflict, lambda tx: tx.write([], same))
        assert (error.collection, error.unique) == ("suite_notes", "code")
        taken = [Note(id="a"), Note(id="b", code="c1")]
        error = self.require_error(storage, UniqueConflict, lambda tx: tx.write(taken))
        assert error.unique == "code"
        assert fetch(storage, Note, "a") is None

    def test_a_unique_key_moves_from_one_of_many_to_another(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Note(id="a", code="c"), Note(id="b"))
        for giver, taker in (("a", "b"), ("b", "a")):

            def work(tx: Transaction, giver: str = giver, taker: str = taker) -> None:
                gives, takes = lock_existing(tx, Note, giver), lock_existing(tx, Note, taker)
                changed = [evolve(gives, code=None), evolve(takes, code="c")]
                tx.write([], changed)

            self.write(storage, work)
            assert fetch_existing(storage, Note, taker).code == "c"
            assert fetch_existing(storage, Note, giver).code is None
