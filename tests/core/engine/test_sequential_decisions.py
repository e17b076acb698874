"""Decisions for one commit, of which one rests on another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import attrs
import pytest

from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.sequential_decisions import DecideOne, decide_sequentially
from payments_core.errors import Unavailable
from payments_core.storage.port import ClaimedJob, Transaction
from payments_core.storage.records import Collection, Index, Record
from tests.core.engine.jobs.bench import AUTHORITY, STOPPING, Bench


@attrs.frozen(kw_only=True)
class Purse(Record):
    collection: ClassVar[Collection] = Collection(
        "purses", columns={"owner": str}, indexes=(Index("of_owner", key=("owner",)),)
    )

    owner: str = "me"
    amount: int = 0


def purse(bench: Bench, id: str = "purse") -> Purse | None:
    return bench.storage.read(AUTHORITY.partition, lambda snapshot: snapshot.get(Purse, id))


def state(bench: Bench) -> tuple[int, int]:
    """The purse's amount and version."""
    found = purse(bench)
    assert found is not None
    return found.amount, found.version


def commit(bench: Bench, subjects: str, decide: DecideOne) -> None:
    """Do a job for each letter in one commit."""
    for subject in subjects:
        bench.add(subject)
    claimed: Sequence[ClaimedJob] = bench.storage.claim(
        STOPPING.full_name("sandbox"), bench.clock.now(), lease_ms=1_000, limit=9,
        lane_concurrency=1,
    )  # fmt: skip
    ordered = sorted(claimed, key=lambda item: item.job.subject)
    bench.committer.finish_all(AUTHORITY, ordered, partial(decide_sequentially, decide=decide))


def locked(tx: Transaction, id: str = "purse") -> Purse:
    found = tx.get(Purse, id, for_update=True)
    assert found is not None
    return found


def fill(bench: Bench, *purses: Purse) -> None:
    bench.storage.transact(AUTHORITY.partition, lambda tx: tx.write(purses))


def test_each_decision_sees_what_those_before_it_made_of_a_record() -> None:
    bench = Bench()
    fill(bench, Purse(id="purse", amount=1), Purse(id="other"))
    other = purse(bench, "other")

    def double(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[None]:
        found = tx.get_many(Purse, ["purse", "absent"], for_update=True)["purse"]
        assert locked(tx) == found
        assert tx.get_many(Purse, ["purse", "other"]) == {"purse": found, "other": other}
        return Decision(None, replaces=(attrs.evolve(found, amount=found.amount * 2),))

    commit(bench, "abc", double)
    assert state(bench) == (8, 2), "written once"
    assert bench.jobs() == {}


def test_a_record_that_one_decision_makes_is_changed_by_the_next() -> None:
    bench = Bench()

    def put(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[None]:
        found = tx.get(Purse, "purse", for_update=True)
        if found is None:
            return Decision(None, inserts=(Purse(id="purse", amount=1),))
        tx.hold(found)  # it is nobody else's
        more = attrs.evolve(found, amount=found.amount + 1)
        return Decision(None, holds=(found,), replaces=(more,))

    commit(bench, "abc", put)
    assert state(bench) == (3, 1)


def test_what_one_decision_removes_is_gone_for_the_next() -> None:
    bench = Bench()
    fill(bench, Purse(id="purse"))
    seen: list[bool] = []

    def remove(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[None]:
        found = tx.get(Purse, "purse", for_update=True)
        seen.append(found is not None)
        return Decision(None, deletes=() if found is None else (found,))

    commit(bench, "ab", remove)
    assert seen == [True, False]
    assert purse(bench) is None


def test_what_is_relied_on_is_held_unless_it_is_written_as_well() -> None:
    bench = Bench()
    fill(bench, Purse(id="kept"), Purse(id="purse"))
    stale = attrs.evolve(Purse(id="kept"), version=7)

    def rely(
        tx: Transaction, id_sequence: IdSequence, item: ClaimedJob, *, on: Purse
    ) -> Decision[None]:
        found = locked(tx)
        return Decision(None, holds=(on, found), replaces=(attrs.evolve(found, amount=1),))

    kept = purse(bench, "kept")
    assert kept is not None
    commit(bench, "a", partial(rely, on=kept))
    assert state(bench) == (1, 2)
    with pytest.raises(Unavailable):
        commit(bench, "b", partial(rely, on=stale))


def test_no_decision_looks_for_records_of_a_kind_that_another_has_changed() -> None:
    bench = Bench()
    fill(bench, Purse(id="purse"))

    def look(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[Any]:
        [found] = tx.find(Purse, "of_owner", ("me",)).records
        return Decision(None, replaces=(attrs.evolve(found, amount=1),))

    with pytest.raises(AssertionError, match="Purse"):
        commit(bench, "ab", look)
    assert state(bench) == (0, 1), "nothing was written"
    assert len(bench.jobs()) == 2


def test_no_decision_overwrites_what_another_made_of_a_record_unseen() -> None:
    """By itself it would be refused: the record has another version by then."""
    bench = Bench()
    fill(bench, Purse(id="purse"))
    known = purse(bench)
    assert known is not None

    def add(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[None]:
        return Decision(None, replaces=(attrs.evolve(known, amount=known.amount + 1),))

    with pytest.raises(AssertionError, match="purse"):
        commit(bench, "ab", add)
    assert state(bench) == (0, 1)


@pytest.mark.parametrize("when", ["in the transaction", "in the decision"])
def test_no_decision_relies_on_a_record_as_it_was_before_another(when: str) -> None:
    bench = Bench()
    fill(bench, Purse(id="purse"))
    known = purse(bench)
    assert known is not None

    def decide(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[None]:
        if item.job.subject == "a":
            return Decision(None, replaces=(attrs.evolve(locked(tx), amount=1),))
        if when == "in the transaction":
            tx.hold(known)
            return Decision(None)
        return Decision(None, holds=(known,))

    with pytest.raises(AssertionError, match="purse"):
        commit(bench, "ab", decide)
    assert state(bench) == (0, 1)


def test_what_a_decision_raises_leaves_nothing_of_the_others() -> None:
    bench = Bench()
    fill(bench, Purse(id="purse"))

    def choke(tx: Transaction, id_sequence: IdSequence, item: ClaimedJob) -> Decision[None]:
        if item.job.subject == "b":
            raise ValueError("damaged")
        return Decision(None, replaces=(attrs.evolve(locked(tx), amount=1),))

    with pytest.raises(ValueError, match="damaged"):
        commit(bench, "ab", choke)
    assert state(bench) == (0, 1)
