"""Locks: what `hold` and `get(for_update)` promise to those who rely on a record."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

from payments_core.conformance.storage.records import Counter, Note
from payments_core.conformance.storage.setting import (
    Meeting,
    Setting,
    all_pages,
    errors_among,
    fetch_known,
    locked,
    require_no_errors,
    together,
)
from payments_core.storage.port import (
    Conflict,
    Storage,
    StorageUnavailable,
    Transaction,
    VersionConflict,
)


class LockChecks(Setting):
    """Write skew, lost updates, deadlocks."""

    def test_hold_sees_the_writes_of_its_own_work(self) -> None:
        storage = self.start()
        self.insert(storage, Counter(id="c"))
        before = fetch_known(storage, Counter, "c")

        def hold_the_new(tx: Transaction) -> None:
            tx.replace(locked(tx, Counter, "c"))
            tx.hold(locked(tx, Counter, "c"))

        def hold_the_old(tx: Transaction) -> None:
            tx.replace(locked(tx, Counter, "c"))
            tx.hold(before)

        self.refused(storage, VersionConflict, hold_the_old)
        self.write(storage, hold_the_new)
        assert fetch_known(storage, Counter, "c").version == 2

    def test_hold_prevents_write_skew(self) -> None:
        """Each of two works relies on the record that the other changes."""
        storage = self.start()
        self.insert(storage, Counter(id="a", total=1), Counter(id="b", total=1))
        seen = [fetch_known(storage, Counter, id) for id in ("a", "b")]
        meeting = Meeting()

        def leave(mine: Counter, other: Counter) -> bool:
            def work(tx: Transaction) -> None:
                tx.hold(other)
                meeting.wait()
                tx.replace(attrs.evolve(mine, total=0))

            self.write(storage, work)
            return True

        outcomes = together(lambda: leave(seen[0], seen[1]), lambda: leave(seen[1], seen[0]))
        left = sum(fetch_known(storage, Counter, id).total for id in ("a", "b"))
        assert left >= 1, "both works relied on what the other changed"
        assert all(isinstance(error, Conflict) for error in errors_among(outcomes)), outcomes

    def test_a_held_record_does_not_change_before_the_commit(self) -> None:
        storage = self.start()
        self.insert(storage, Counter(id="right"), Counter(id="c"))
        right = fetch_known(storage, Counter, "right")
        meeting = Meeting()
        order: list[str] = []

        def rely() -> None:
            def work(tx: Transaction) -> None:
                tx.hold(right)
                meeting.wait()  # the other may now try to change what is held
                meeting.wait()
                tx.replace(attrs.evolve(locked(tx, Counter, "c"), total=1))

            self.write(storage, work)
            order.append("relied")

        def revoke() -> None:
            def work(tx: Transaction) -> bool:
                meeting.wait()
                tx.replace(attrs.evolve(locked(tx, Counter, "right"), total=1))
                return locked(tx, Counter, "c").total == 1

            # Whoever changed the right after it was relied on must see what rested on it.
            if not self.write(storage, work):
                order.append("revoked first")

        outcomes = together(rely, revoke)
        for error in errors_among(outcomes):
            assert isinstance(error, VersionConflict), outcomes
        assert order in (["relied"], ["revoked first"]), order

    def test_many_may_hold_the_same_record(self) -> None:
        storage = self.start()
        self.insert(storage, Counter(id="shared"))
        shared = fetch_known(storage, Counter, "shared")

        def call(number: int) -> None:
            def work(tx: Transaction) -> None:
                tx.hold(shared)
                tx.insert(Note(id=f"n{number}"))

            self.write(storage, work)

        require_no_errors(together(*(lambda n=n: call(n) for n in range(6))))
        assert len(all_pages(storage, Note, "all")) == 6

    def test_get_for_update_loses_no_update(self) -> None:
        storage = self.start()
        self.insert(storage, Counter(id="c"))
        meeting = Meeting()

        def add() -> None:
            def work(tx: Transaction) -> None:
                counter = locked(tx, Counter, "c")
                meeting.wait()
                tx.replace(attrs.evolve(counter, total=counter.total + 1))

            for _ in range(8):
                self.write(storage, work)

        require_no_errors(together(add, add, add, add))
        counter = fetch_known(storage, Counter, "c")
        assert (counter.total, counter.version) == (32, 33)

    def test_get_for_update_is_current_also_after_a_plain_get(self) -> None:
        storage = self.start()
        self.insert(storage, Counter(id="c"))
        self._add_amid_another(storage)
        meeting = Meeting(threads=3, patience_s=0.5)

        def add() -> None:
            def work(tx: Transaction) -> None:
                tx.get(Counter, "c")
                meeting.wait()
                counter = locked(tx, Counter, "c")
                tx.replace(attrs.evolve(counter, total=counter.total + 1))

            for _ in range(10):
                self.write(storage, work)

        require_no_errors(together(add, add, add))
        assert fetch_known(storage, Counter, "c").total == 32

    def _add_amid_another(self, storage: Storage) -> None:
        """One adds while another is between its plain look and its lock, if it may."""
        looked, written = threading.Event(), threading.Event()

        def add(before: Callable[[Transaction], object]) -> None:
            def work(tx: Transaction) -> None:
                before(tx)
                counter = locked(tx, Counter, "c")
                tx.replace(attrs.evolve(counter, total=counter.total + 1))

            self.write(storage, work)

        def look(tx: Transaction) -> None:
            tx.get(Counter, "c")
            looked.set()
            written.wait(0.2)  # in vain where works are kept apart

        def other() -> None:
            looked.wait(5)
            add(lambda tx: None)
            written.set()

        require_no_errors(together(lambda: add(look), other))

    def test_locks_taken_in_opposite_orders_end(self) -> None:
        storage = self.start()
        self.insert(storage, Counter(id="a"), Counter(id="b"))
        meeting = Meeting()

        def move(first: str, second: str) -> None:
            def work(tx: Transaction) -> None:
                one = locked(tx, Counter, first)
                meeting.wait()
                two = locked(tx, Counter, second)
                tx.replace(attrs.evolve(one, total=one.total + 1))
                tx.replace(attrs.evolve(two, total=two.total + 1))

            self.write(storage, work)

        outcomes = together(lambda: move("a", "b"), lambda: move("b", "a"))
        errors = errors_among(outcomes)
        assert all(isinstance(e, Conflict | StorageUnavailable) for e in errors), outcomes
        totals = {fetch_known(storage, Counter, id).total for id in ("a", "b")}
        assert totals == {2 - len(errors)}
