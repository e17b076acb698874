"""Locks: the promises of `hold` and `get(for_update)` to callers that rely on a record."""

from __future__ import annotations

import threading
from collections.abc import Callable

from payments_core.conformance.storage.harness import (
    Harness,
    Rendezvous,
    fetch_all_pages,
    fetch_existing,
    find_errors,
    lock_existing,
    require_no_errors,
    run_concurrently,
)
from payments_core.conformance.storage.records import Counter, Note
from payments_core.evolve import evolve
from payments_core.storage.port import (
    Conflict,
    Storage,
    StorageUnavailable,
    Transaction,
    VersionConflict,
)


class LockChecks(Harness):
    """Write skew, lost updates, deadlocks."""

    def test_hold_sees_the_writes_of_its_own_work(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        before = fetch_existing(storage, Counter, "c")

        def hold_the_new(tx: Transaction) -> None:
            tx.replace(lock_existing(tx, Counter, "c"))
            tx.hold(lock_existing(tx, Counter, "c"))

        def hold_the_old(tx: Transaction) -> None:
            tx.replace(lock_existing(tx, Counter, "c"))
            tx.hold(before)

        self.require_error(storage, VersionConflict, hold_the_old)
        self.write(storage, hold_the_new)
        assert fetch_existing(storage, Counter, "c").version == 2

    def test_hold_prevents_write_skew(self) -> None:
        """Each of two works relies on the record that the other changes."""
        storage = self.open_handle()
        self.insert(storage, Counter(id="a", total=1), Counter(id="b", total=1))
        seen = [fetch_existing(storage, Counter, id) for id in ("a", "b")]
        meeting = Rendezvous()

        def leave(mine: Counter, other: Counter) -> bool:
            def work(tx: Transaction) -> None:
                tx.hold(other)
                meeting.wait()
                tx.replace(evolve(mine, total=0))

            self.write(storage, work)
            return True

        outcomes = run_concurrently(
            lambda: leave(seen[0], seen[1]), lambda: leave(seen[1], seen[0])
        )
        left = sum(fetch_existing(storage, Counter, id).total for id in ("a", "b"))
        assert left >= 1, "two transactions must not each rely on a record that the other changes"
        assert all(isinstance(error, Conflict) for error in find_errors(outcomes)), outcomes

    def test_a_held_record_does_not_change_before_the_commit(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="right"), Counter(id="c"))
        right = fetch_existing(storage, Counter, "right")
        meeting = Rendezvous()
        order: list[str] = []

        def rely() -> None:
            def work(tx: Transaction) -> None:
                tx.hold(right)
                meeting.wait()  # the other may now try to change the held record
                meeting.wait()
                tx.replace(evolve(lock_existing(tx, Counter, "c"), total=1))

            self.write(storage, work)
            order.append("relied")

        def revoke() -> None:
            def work(tx: Transaction) -> bool:
                meeting.wait()
                tx.replace(evolve(lock_existing(tx, Counter, "right"), total=1))
                return lock_existing(tx, Counter, "c").total == 1

            # A change of the right after it was relied on must see the records that depend on it.
            if not self.write(storage, work):
                order.append("revoked first")

        outcomes = run_concurrently(rely, revoke)
        for error in find_errors(outcomes):
            assert isinstance(error, VersionConflict), outcomes
        assert order in (["relied"], ["revoked first"]), order

    def test_many_may_hold_the_same_record(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="shared"))
        shared = fetch_existing(storage, Counter, "shared")

        def call(number: int) -> None:
            def work(tx: Transaction) -> None:
                tx.hold(shared)
                tx.insert(Note(id=f"n{number}"))

            self.write(storage, work)

        require_no_errors(run_concurrently(*(lambda n=n: call(n) for n in range(6))))
        assert len(fetch_all_pages(storage, Note, "all")) == 6

    def test_get_for_update_loses_no_update(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        meeting = Rendezvous()

        def add() -> None:
            def work(tx: Transaction) -> None:
                counter = lock_existing(tx, Counter, "c")
                meeting.wait()
                tx.replace(evolve(counter, total=counter.total + 1))

            for _ in range(8):
                self.write(storage, work)

        require_no_errors(run_concurrently(add, add, add, add))
        counter = fetch_existing(storage, Counter, "c")
        assert (counter.total, counter.version) == (32, 33)

    def test_get_for_update_is_current_also_after_a_plain_get(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="c"))
        self._add_during_another(storage)
        meeting = Rendezvous(threads=3, timeout_s=0.5)

        def add() -> None:
            def work(tx: Transaction) -> None:
                tx.get(Counter, "c")
                meeting.wait()
                counter = lock_existing(tx, Counter, "c")
                tx.replace(evolve(counter, total=counter.total + 1))

            for _ in range(10):
                self.write(storage, work)

        require_no_errors(run_concurrently(add, add, add))
        assert fetch_existing(storage, Counter, "c").total == 32

    def _add_during_another(self, storage: Storage) -> None:
        """One adds while another is between its plain read and its lock, if it may."""
        looked, written = threading.Event(), threading.Event()

        def add(before: Callable[[Transaction], object]) -> None:
            def work(tx: Transaction) -> None:
                before(tx)
                counter = lock_existing(tx, Counter, "c")
                tx.replace(evolve(counter, total=counter.total + 1))

            self.write(storage, work)

        def read_first(tx: Transaction) -> None:
            tx.get(Counter, "c")
            looked.set()
            written.wait(0.2)  # without result if works are serialized

        def add_between() -> None:
            looked.wait(5)
            add(lambda tx: None)
            written.set()

        require_no_errors(run_concurrently(lambda: add(read_first), add_between))

    def test_locks_taken_in_opposite_orders_end(self) -> None:
        storage = self.open_handle()
        self.insert(storage, Counter(id="a"), Counter(id="b"))
        meeting = Rendezvous()

        def move(first: str, second: str) -> None:
            def work(tx: Transaction) -> None:
                one = lock_existing(tx, Counter, first)
                meeting.wait()
                two = lock_existing(tx, Counter, second)
                tx.replace(evolve(one, total=one.total + 1))
                tx.replace(evolve(two, total=two.total + 1))

            self.write(storage, work)

        outcomes = run_concurrently(lambda: move("a", "b"), lambda: move("b", "a"))
        errors = find_errors(outcomes)
        assert all(isinstance(e, Conflict | StorageUnavailable) for e in errors), outcomes
        totals = {fetch_existing(storage, Counter, id).total for id in ("a", "b")}
        assert totals == {2 - len(errors)}
