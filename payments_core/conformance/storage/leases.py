"""Leases: how they end, are renewed, revoked from dead holders, and fenced."""

from __future__ import annotations

from payments_core.conformance.storage.harness import (
    OTHER_PARTITION,
    Harness,
    fetch,
    fetch_existing,
)
from payments_core.conformance.storage.jobs import (
    LEASE_MS,
    NOW,
    QUEUE,
    claim,
    finish,
    ids,
    job,
    places,
)
from payments_core.conformance.storage.records import Mark
from payments_core.evolve import evolve
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import Transaction, VersionConflict


class LeaseChecks(Harness):
    """The promises of `claim`, `renew` and `end_leases` about leases."""

    def test_an_expired_lease_comes_back_with_a_higher_counter(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("j"))
        (first,) = claim(storage)
        assert ids(claim(storage, now=NOW + LEASE_MS - 1)) == []
        (second,) = claim(storage, now=NOW + LEASE_MS)
        assert (second.job.id, second.job.claims) == ("j", 2)
        assert second.job.lease_until == NOW + 2 * LEASE_MS
        assert first.job.claims == 1

    def test_an_expired_lease_is_fenced(self) -> None:
        """A holder that lost the lease cannot finish the job that another has claimed."""
        storage = self.open_handle()
        self.insert(storage, job("j"))
        (first,) = claim(storage)
        (second,) = claim(storage, now=NOW + LEASE_MS)

        def finish_late(tx: Transaction) -> None:
            tx.insert(Mark(id="late"))
            tx.delete(first.job)

        self.require_error(storage, VersionConflict, finish_late)
        put_off = evolve(first.job, due_at=NEVER)
        self.require_error(storage, VersionConflict, lambda tx: tx.replace(put_off))
        assert fetch(storage, Mark, "late") is None
        assert fetch_existing(storage, Job, "j") == second.job
        finish(self, storage, second)
        assert fetch(storage, Job, "j") is None

    def test_a_renewed_lease_lasts_longer_and_can_be_finished_with(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("j"), job("k", ordinal=1))
        (claimed,) = claim(storage, limit=1)
        assert storage.renew([claimed], NOW + 3 * LEASE_MS) == [claimed]
        stored = fetch_existing(storage, Job, "j")
        assert stored == evolve(claimed.job, lease_until=NOW + 3 * LEASE_MS)
        assert ids(claim(storage, now=NOW + 3 * LEASE_MS - 1)) == []
        assert storage.next_due(QUEUE, NOW) == NOW + 3 * LEASE_MS
        self.write(storage, lambda tx: tx.delete(claimed.job))  # as it was claimed
        assert ids(claim(storage)) == ["k"]

    def test_leases_of_several_partitions_are_renewed_at_once(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("j", lane="a"), job("k", lane="b"))
        self.insert(storage, job("j", lane="c"), partition=OTHER_PARTITION)
        claimed = list(claim(storage))
        for leases in (2, 3):
            renewed = storage.renew(claimed, NOW + leases * LEASE_MS)
            assert sorted(places(renewed)) == sorted(places(claimed))
        assert len(claimed) == 3
        assert ids(claim(storage, now=NOW + 3 * LEASE_MS - 1)) == []
        assert storage.renew([], NOW) == []

    def test_a_lease_that_was_lost_is_not_renewed(self) -> None:
        storage = self.open_handle()
        self.insert(storage, *(job(id, lane=id) for id in ("taken", "gone", "held")))
        first = {item.job.id: item for item in claim(storage)}
        finish(self, storage, first["gone"])
        storage.renew([first["held"]], NOW + 3 * LEASE_MS)
        (second,) = claim(storage, now=NOW + LEASE_MS)
        assert second.job.id == "taken"
        assert ids(storage.renew(list(first.values()), NOW + 5 * LEASE_MS)) == ["held"]
        assert fetch_existing(storage, Job, "taken") == second.job
        assert fetch(storage, Job, "gone") is None

    def test_the_leases_of_a_dead_holder_end(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("mine", lane="a"), job("mine too", lane="b"))
        self.insert(storage, job("mine", lane="c"), partition=OTHER_PARTITION)
        mine = list(claim(storage, holder="me"))
        self.insert(storage, job("theirs", lane="d"), job("nobody's", lane="e"))
        others = [*claim(storage, holder="they", limit=1), *claim(storage)]
        self.insert(storage, job("elsewhere", queue="other"))
        others += claim(storage, queue="other", holder="me")
        assert sorted(item.job.holder for item in others) == ["", "me", "they"]
        assert storage.end_leases(QUEUE, "me", NOW + 1) == 3
        assert storage.end_leases(QUEUE, "me", NOW + 1) == 0
        again = claim(storage, now=NOW + 1)
        assert sorted(places(again)) == sorted(places(mine))
        assert {item.job.claims for item in again} == {2}
        assert ids(claim(storage, queue="other", now=NOW + 1)) == []

    def test_the_latest_leases_are_found(self) -> None:
        """A clock that was hours ahead wrote them; by these they can be ended."""
        storage, hours = self.open_handle(), 3 * 3_600_000
        self.insert(storage, job("now", lane="a"), job("late", lane="b"), job("parked", lane="c"))
        self.insert(storage, job("later", lane="d"), partition=OTHER_PARTITION)
        self.insert(storage, job("elsewhere", queue="other", lease_until=NOW + hours))
        self.insert(storage, job("due later", lane="e", due_at=NOW + hours))
        held = {item.job.id: item for item in claim(storage)}
        late = storage.renew([held["late"]], NOW + hours)
        later = storage.renew([held["later"]], NOW + hours + 1)
        self.write(storage, lambda tx: tx.replace(evolve(held["parked"].job, lease_until=NEVER)))
        found = storage.find_leases(QUEUE, NOW + LEASE_MS)
        assert places(found) == places([*later, *late])
        assert found[1].job == fetch_existing(storage, Job, "late")
        assert found[1].job.lease_until == NOW + hours
        assert ids(storage.find_leases(QUEUE, NOW + LEASE_MS, limit=1)) == ["later"]
        assert ids(storage.find_leases(QUEUE, NOW + hours)) == ["later"]
        assert ids(storage.find_leases(QUEUE, NOW)) == ["later", "late", "now"]
        assert ids(storage.find_leases(QUEUE, NOW + hours + 1)) == []
        self.write(storage, lambda tx: tx.replace(evolve(found[1].job, lease_until=0, holder="")))
        assert ids(claim(storage)) == ["late"], "its lane goes on"

    def test_a_holder_whose_leases_were_ended_is_fenced(self) -> None:
        """A holder that seemed dead lives: its jobs can be claimed, and it cannot finish them."""
        storage = self.open_handle()
        self.insert(storage, job("j"))
        (claimed,) = claim(storage, holder="me")
        storage.end_leases(QUEUE, "me", NOW)
        assert storage.renew([claimed], NOW + 3 * LEASE_MS) == []
        self.require_error(storage, VersionConflict, lambda tx: tx.delete(claimed.job))
        assert ids(claim(storage)) == ["j"]

    def test_no_lease_is_ended_but_those_that_live(self) -> None:
        storage = self.open_handle()
        self.insert(storage, job("parked", lane="a"), job("over", lane="b"))
        claimed = {item.job.id: item.job for item in claim(storage, holder="me")}
        parked = evolve(claimed["parked"], lease_until=NEVER)
        self.write(storage, lambda tx: tx.replace(parked))
        assert storage.end_leases(QUEUE, "me", NOW + LEASE_MS) == 0
        assert fetch_existing(storage, Job, "parked").lease_until == NEVER
        assert fetch_existing(storage, Job, "over") == claimed["over"]
        try:
            storage.end_leases(QUEUE, "", NOW)
        except ValueError:
            return
        raise AssertionError("an empty holder name must be refused")
