"""Many records at once: the same as one by one, for adapters that do it in fewer statements."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs

from payments_core.conformance.storage.harness import (
    PARTITION,
    Harness,
    fetch,
    fetch_existing,
    lock_existing,
)
from payments_core.conformance.storage.records import Counter, Note
from payments_core.storage import bulk
from payments_core.storage.port import (
    Snapshot,
    Transaction,
    UniqueConflict,
    VersionConflict,
    Where,
)

TEXTS = ('"quoted" \\ and {braced}', "naïve ☃ \N{GRINNING FACE}", "", "line\nbreak", "'; --")


class BulkChecks(Harness):
    """What `payments_core.storage.bulk` reads and writes through the adapter.

    An adapter without `get_many`, `count` and `write` passes too: each record then goes by itself.
    """

    def test_many_are_read_like_one_by_one(self) -> None:
        storage = self.open_handle()
        notes = [Note(id=f"n{n}", text=text, rank=n) for n, text in enumerate(TEXTS)]
        self.insert(storage, *notes)
        wanted = {f"n{n}" for n in range(len(TEXTS))} | {"absent"}
        found = storage.read(PARTITION, lambda snapshot: bulk.get_many(snapshot, Note, wanted))
        assert found == {id: fetch_existing(storage, Note, id) for id in wanted - {"absent"}}
        assert storage.read(PARTITION, lambda snapshot: bulk.get_many(snapshot, Note, ())) == {}

    def test_as_many_are_counted_as_are_found(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{n}", tag=str(n % 2), rank=n) for n in range(9)))
        behind = storage.read(
            PARTITION, lambda snapshot: snapshot.find(Note, "newest", ("one",), limit=4).next
        )
        odd = (Where("tag", "=", "1"),)

        def compare(snapshot: Snapshot, group: str, question: Any) -> None:
            found = snapshot.find(Note, "newest", (group,), **question).records
            if isinstance(snapshot, bulk.CountsRecords) or not question["where"]:
                counted = bulk.count(snapshot, Note, "newest", (group,), **question)
                assert counted == len(found), (group, question)

        for where in ((), odd, (*odd, Where("rank", ">", 3))):
            for after in (None, behind):
                for limit in (1, 2, 100):
                    question = {"where": where, "after": after, "limit": limit}
                    for group in ("one", "none", "no\0ne"):
                        storage.read(PARTITION, partial(compare, group=group, question=question))

    def test_many_are_written_like_one_by_one(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"old {n}", rank=n) for n in range(len(TEXTS))))
        self.insert(storage, *(Note(id=f"gone {n}") for n in range(3)), Counter(id="c"))

        def work(tx: Transaction) -> None:
            old = bulk.lock_many(tx, Note, [f"old {n}" for n in range(len(TEXTS))])
            gone = bulk.lock_many(tx, Note, [f"gone {n}" for n in range(3)])
            changed = [
                attrs.evolve(old[f"old {n}"], text=text, left=text or None, rank=-n)
                for n, text in enumerate(TEXTS)
            ]
            counter = attrs.evolve(lock_existing(tx, Counter, "c"), total=2**63 - 1)
            bulk.write(tx, [Note(id="new")], [*changed, counter], list(gone.values()))

        self.write(storage, work)
        for n, text in enumerate(TEXTS):
            note = fetch_existing(storage, Note, f"old {n}")
            assert (note.version, note.text, note.left, note.rank) == (2, text, text or None, -n)
        assert fetch_existing(storage, Counter, "c").total == 2**63 - 1
        assert fetch_existing(storage, Note, "new").version == 1
        assert all(fetch(storage, Note, f"gone {n}") is None for n in range(3))

    def test_one_stale_record_of_many_is_refused_and_nothing_is_written(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{n}") for n in range(3)))
        first, *others = (fetch_existing(storage, Note, f"n{n}") for n in range(3))
        self.write(
            storage, lambda tx: tx.replace(attrs.evolve(lock_existing(tx, Note, "n0"), text="x"))
        )
        changed = [attrs.evolve(note, text="y") for note in (first, *others)]
        self.require_error(storage, VersionConflict, lambda tx: bulk.write(tx, [], changed))
        self.require_error(
            storage, VersionConflict, lambda tx: bulk.write(tx, [], [], [first, *others])
        )
        found = [fetch_existing(storage, Note, f"n{n}").text for n in range(3)]
        assert found == ["x", "", ""]

    def test_a_unique_key_holds_among_many(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(Note(id=f"n{n}", code=f"c{n}") for n in range(3)))
        notes = [fetch_existing(storage, Note, f"n{n}") for n in range(3)]
        same = [attrs.evolve(note, code="same") for note in notes]
        error = self.require_error(storage, UniqueConflict, lambda tx: bulk.write(tx, [], same))
        assert (error.collection, error.unique) == ("suite_notes", "code")
        taken = [Note(id="a"), Note(id="b", code="c1")]
        error = self.require_error(storage, UniqueConflict, lambda tx: bulk.write(tx, taken))
        assert error.unique == "code"
        assert fetch(storage, Note, "a") is None
