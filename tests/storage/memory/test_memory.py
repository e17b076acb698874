"""The memory adapter's weak mode: as weak as the port allows, and no weaker."""

from __future__ import annotations

import attrs
import pytest

from payments_core.conformance.storage.harness import PARTITION, fetch_existing, lock_existing
from payments_core.conformance.storage.jobs import LEASE_MS, NOW, QUEUE, claim, job
from payments_core.conformance.storage.records import Counter, Note
from payments_core.storage.memory.adapter import MemoryStorage, Weakness, open_url
from payments_core.storage.port import (
    CommitUnknown,
    Snapshot,
    StorageUnavailable,
    Transaction,
    VersionConflict,
    Where,
)

SOUND = Weakness(
    stale_get=0, stale_find=0, short_page=0, rerun=0, lost_commit=0, short_claim=0, clock_ahead=0
)


def raised(storage: MemoryStorage, total: int) -> None:
    def work(tx: Transaction) -> None:
        tx.replace(attrs.evolve(lock_existing(tx, Counter, "c"), total=total))

    storage.transact(PARTITION, work)


def test_a_plain_get_and_a_find_may_be_stale_but_a_locked_get_and_a_read_are_not() -> None:
    storage = MemoryStorage(attrs.evolve(SOUND, stale_get=1, stale_find=1))
    storage.transact(PARTITION, lambda tx: tx.insert(Counter(id="c")))
    storage.transact(PARTITION, lambda tx: tx.insert(Note(id="n", rank=1)))
    for total in range(1, 30):
        raised(storage, total)

    def work(tx: Transaction) -> tuple[int, int]:
        plain = tx.get(Counter, "c")
        return plain.total if plain else -1, lock_existing(tx, Counter, "c").total

    seen = [storage.transact(PARTITION, work) for _ in range(50)]
    assert {total for _, total in seen} == {29}
    assert len({total for total, _ in seen}) > 5
    assert storage.read(PARTITION, lambda snapshot: snapshot.find(Note, "all")).records
    assert all(storage.locate(Note, "named", [("",)]) for _ in range(50))
    assert fetch_existing(storage, Counter, "c").total == 29


def test_a_stale_find_may_lack_what_was_inserted() -> None:
    storage = MemoryStorage(attrs.evolve(SOUND, stale_find=1))
    storage.transact(PARTITION, lambda tx: tx.insert(Note(id="n")))
    found = [storage.transact(PARTITION, lambda tx: tx.find(Note, "all")).records for _ in range(5)]
    assert found == [()] * 5


def test_works_run_again_without_need() -> None:
    storage = MemoryStorage(attrs.evolve(SOUND, rerun=0.5))
    runs = 0

    def work(tx: Transaction) -> None:
        nonlocal runs
        runs += 1

    for _ in range(20):
        storage.transact(PARTITION, work)
    assert runs > 25


def test_a_work_runs_again_when_what_it_relied_on_has_changed() -> None:
    storage = MemoryStorage(SOUND)
    storage.transact(PARTITION, lambda tx: tx.insert(Counter(id="c")))
    changes = iter([7])
    held = fetch_existing(storage, Counter, "c")
    totals: list[int] = []

    def work(tx: Transaction) -> None:
        totals.append(lock_existing(tx, Counter, "c").total)
        for total in changes:
            _beside(storage, total)

    def refuse(tx: Transaction) -> None:
        tx.hold(held)

    storage.transact(PARTITION, work)
    assert totals == [0, 7]
    with pytest.raises(VersionConflict):
        storage.transact(PARTITION, refuse)


def test_a_refusal_that_rested_on_what_has_changed_is_taken_back() -> None:
    storage = MemoryStorage(SOUND)
    storage.transact(PARTITION, lambda tx: tx.insert(Counter(id="c")))
    changes = iter([7])

    def work(tx: Transaction) -> int:
        total = lock_existing(tx, Counter, "c").total
        for change in changes:
            _beside(storage, change)
        if total == 0:
            raise ArithmeticError
        return total

    assert storage.transact(PARTITION, work) == 7


def _beside(storage: MemoryStorage, total: int) -> None:
    """Change the counter as another thread would, amid a work."""
    tx = storage._begin(PARTITION)
    tx.replace(attrs.evolve(lock_existing(tx, Counter, "c"), total=total))
    storage._apply(PARTITION, tx)


def test_a_lost_commit_happened_or_not() -> None:
    storage = MemoryStorage(attrs.evolve(SOUND, lost_commit=1))
    kept = 0
    for number in range(40):
        with pytest.raises(CommitUnknown):
            storage.transact(PARTITION, lambda tx, id=f"n{number}": tx.insert(Note(id=id)))
        kept += storage.read(PARTITION, lambda s, id=f"n{number}": s.get(Note, id)) is not None
    assert 5 < kept < 35
    assert storage.transact(PARTITION, lambda tx: "nothing was written, so nothing is lost")


def test_pages_with_comparisons_end_short() -> None:
    storage = MemoryStorage(attrs.evolve(SOUND, short_page=1))
    storage.transact(PARTITION, lambda tx: [tx.insert(Note(id=f"n{n}", size=n)) for n in range(20)])

    def look(snapshot: Snapshot) -> tuple[int, int]:
        page = snapshot.find(Note, "all", where=[Where("size", ">=", 0)])
        assert page.next is not None
        return len(page.records), len(snapshot.find(Note, "all").records)

    short, whole = storage.read(PARTITION, look)
    assert 1 <= short <= 5
    assert whole == 20


def test_a_read_is_one_snapshot_while_others_write() -> None:
    storage = MemoryStorage(SOUND)
    storage.transact(PARTITION, lambda tx: tx.insert(Counter(id="c")))

    def look(snapshot: Snapshot) -> list[int]:
        first = snapshot.get(Counter, "c")
        raised(storage, 5)
        second = snapshot.get(Counter, "c")
        return [counter.total for counter in (first, second) if counter]

    assert storage.read(PARTITION, look) == [0, 0]
    assert fetch_existing(storage, Counter, "c").total == 5


def test_claims_give_less_than_they_could() -> None:
    storage = MemoryStorage(attrs.evolve(SOUND, short_claim=1))
    storage.transact(PARTITION, lambda tx: [tx.insert(job(f"j{n}", lane=f"{n}")) for n in range(9)])
    sizes = [len(claim(storage, limit=3)) for _ in range(30)]
    assert sum(sizes) == 9
    assert 0 in sizes


def test_a_fast_clock_takes_live_leases() -> None:
    storage = MemoryStorage(attrs.evolve(SOUND, clock_ahead=1, clock_ahead_ms=LEASE_MS))
    storage.transact(PARTITION, lambda tx: tx.insert(job("j", due_at=NOW + 1)))
    first, second = claim(storage), claim(storage)
    assert [item.job.claims for item in (*first, *second)] == [1]
    assert claim(storage, now=NOW + LEASE_MS)[0].job.claims == 2
    assert storage.next_due(QUEUE) == NOW + 3 * LEASE_MS


def test_it_is_unavailable_when_asked_to_be() -> None:
    storage = MemoryStorage(attrs.evolve(SOUND, unavailable=1))
    with pytest.raises(StorageUnavailable):
        storage.transact(PARTITION, lambda tx: None)


def test_the_same_seed_does_the_same() -> None:
    def history(seed: int) -> list[bool]:
        storage = MemoryStorage(Weakness(seed=seed, lost_commit=0.5))
        reported = []
        for number in range(40):
            try:
                storage.transact(PARTITION, lambda tx, n=number: tx.insert(Note(id=f"n{n}")))
                reported.append(True)
            except CommitUnknown:
                reported.append(False)
        return reported

    assert history(7) == history(7)
    assert history(7) != history(8)


@pytest.mark.parametrize("weakness", [None, SOUND])
def test_a_work_may_not_start_another_transaction(weakness: Weakness | None) -> None:
    storage = MemoryStorage(weakness)
    with pytest.raises(RuntimeError):
        storage.transact(PARTITION, lambda tx: storage.transact(PARTITION, lambda inner: None))
    storage.transact(PARTITION, lambda tx: None)


def test_urls() -> None:
    assert open_url("memory:", ())._weakness is None
    assert open_url("memory://", ())._weakness is None
    assert open_url("memory:weak", ())._weakness == Weakness()
    assert open_url("memory:weak?seed=7", ())._weakness == Weakness(seed=7)
    for url in ("memory:strong", "memory:weak?speed=7"):
        with pytest.raises(ValueError, match="expected memory:"):
            open_url(url, ())
