"""Decisions and their commit: joined, drawn again alike, and resolved when in doubt."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core.accounts.vaults.record import VaultBalance
from payments_core.clock import FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.committer import MAX_ATTEMPTS, Committer
from payments_core.engine.decision import Decision, WorkerAuthority, lock_shared
from payments_core.engine.events import CATALOGUE, NewEvent
from payments_core.engine.identifiers import Identifiers, IdSequence
from payments_core.errors import InvalidState, Unavailable
from payments_core.storage import one_by_one
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import CommitUnknown, StorageUnavailable, VersionConflict
from tests.core.examples import a_balance

AUTHORITY = WorkerAuthority("env_1", "sandbox")


class Late:
    """A storage whose first commit is answered by nobody, and takes place only afterwards."""

    def __init__(self, inner: MemoryStorage) -> None:
        self._inner = inner
        self._pending: Callable[[], Any] | None = None
        self.calls = 0

    def transact(self, partition: str, work: Callable[[Any], Any]) -> Any:
        self.calls += 1
        if self.calls == 1:
            self._inner.transact(partition, work)
            rows = self._inner.read(partition, lambda s: s.get(VaultBalance, "v"))
            self._inner.transact(partition, lambda tx: tx.delete(rows))
            self._pending = lambda: self._inner.transact(
                partition, lambda tx: tx.insert(attrs.evolve(rows, version=0))
            )
            raise CommitUnknown("still on its way")
        if self._pending is not None:
            self._pending()
            self._pending = None
        return self._inner.transact(partition, work)

    def read(self, partition: str, work: Callable[[Any], Any]) -> Any:
        return self._inner.read(partition, work)


class Failing:
    """A storage that raises the given errors in turn, and then none."""

    def __init__(self, transact: list[Exception], read: list[Exception]) -> None:
        self._inner = MemoryStorage()
        self._transact, self._read = transact, read

    def transact(self, partition: str, work: Callable[[Any], Any]) -> Any:
        if self._transact:
            error = self._transact.pop(0)
            if isinstance(error, CommitUnknown):
                self._inner.transact(partition, work)
            raise error
        return self._inner.transact(partition, work)

    def read(self, partition: str, work: Callable[[Any], Any]) -> Any:
        if self._read:
            raise self._read.pop(0)
        return self._inner.read(partition, work)

    fetch = one_by_one.fetch


def ledger(storage: Any) -> Committer:
    clock = FixedClock()
    entropy = random.Random(1).randbytes
    return Committer(storage, clock, Identifiers(clock, entropy), KeyRing.parse(KeyRing.generate()))


def insert(tx: Any, id_sequence: IdSequence) -> Decision[str]:
    if tx.get(VaultBalance, "v", for_update=True) is not None:
        raise InvalidState("balance", "there", "insert")
    return Decision("made", inserts=(a_balance(id="v"),))


def test_a_commit_that_arrives_late_is_recognised_as_our_own() -> None:
    storage = Late(MemoryStorage())
    assert ledger(storage).commit(AUTHORITY, insert) == "made"
    assert storage.calls == 2


class Unanswered(MemoryStorage):
    """A storage whose first commits are answered by nobody; some of them take place."""

    def __init__(self, *take_place: bool) -> None:
        super().__init__()
        self._take_place = [*take_place]

    def transact(self, partition: str, work: Callable[[Any], Any]) -> Any:
        if not self._take_place:
            return super().transact(partition, work)
        if self._take_place.pop(0):
            super().transact(partition, work)
        else:
            with pytest.raises(Undone):
                super().transact(partition, lambda tx: undo(work(tx)))
        raise CommitUnknown("no answer")


class Undone(Exception):
    """Nothing of the work is committed."""


def undo(result: object) -> None:
    raise Undone


def draw_next(tx: Any, id_sequence: IdSequence) -> Decision[str]:
    """A decision that takes the next number there is: run twice, it takes two."""
    taken = [id for id in ("v1", "v2") if tx.get(VaultBalance, id) is not None]
    id = f"v{len(taken) + 1}"
    return Decision(id, inserts=(a_balance(id=id),))


@pytest.mark.parametrize("take_place", [(True,), (False, True), (False, False, True), (False,)])
def test_a_commit_whose_answer_was_lost_is_looked_up_before_it_is_run_again(
    take_place: tuple[bool, ...],
) -> None:
    """A decision that sees its own effect decides otherwise: it would draw from a vault twice."""
    storage = Unanswered(*take_place)
    assert ledger(storage).commit(AUTHORITY, draw_next) == "v1"
    assert storage.read("env_1", lambda s: s.get(VaultBalance, "v1")) is not None
    assert storage.read("env_1", lambda s: s.get(VaultBalance, "v2")) is None


def test_a_lost_race_is_run_again_but_not_for_ever() -> None:
    races: list[Exception] = [VersionConflict("x")] * (MAX_ATTEMPTS - 1)
    assert ledger(Failing(races, [])).commit(AUTHORITY, insert) == "made"
    with pytest.raises(Unavailable):
        ledger(Failing([VersionConflict("x")] * MAX_ATTEMPTS, [])).commit(AUTHORITY, insert)


def test_storage_out_of_reach_is_unavailable_wherever_it_strikes() -> None:
    with pytest.raises(Unavailable) as caught:
        ledger(Failing([StorageUnavailable()], [])).commit(AUTHORITY, insert)
    assert isinstance(caught.value.__cause__, StorageUnavailable)
    with pytest.raises(Unavailable):
        ledger(Failing([CommitUnknown()], [StorageUnavailable()])).commit(AUTHORITY, insert)


def test_a_run_again_draws_the_same_ids() -> None:
    id_sequence = ledger(MemoryStorage()).id_sequence()
    first = [id_sequence.issue("a"), id_sequence.issue("b"), id_sequence.issue("a")]
    id_sequence.reset()
    assert [id_sequence.issue("a"), id_sequence.issue("b"), id_sequence.issue("a")] == first
    assert len(set(first)) == 3
    assert id_sequence.has_issued(first[0])
    assert not id_sequence.has_issued("a_other")


def test_what_is_held_is_current_or_absent() -> None:
    storage = MemoryStorage()
    storage.transact("env_1", lambda tx: tx.insert(a_balance(id="v")))
    found = storage.transact("env_1", lambda tx: lock_shared(tx, VaultBalance, "v"))
    assert found is not None
    assert storage.transact("env_1", lambda tx: lock_shared(tx, VaultBalance, "w")) is None


def test_joining_keeps_the_first_result_and_adds_up_the_rest() -> None:
    one, two = a_balance(id="1"), a_balance(id="2")
    joined = Decision("r", inserts=(one,)).merge(Decision(None, inserts=(two,), replaces=(one,)))
    assert joined.result == "r"
    assert (joined.inserts, joined.replaces) == ((one, two), (one,))


def test_a_refused_decision_writes_nothing() -> None:
    storage = MemoryStorage()

    def decide(tx: Any, id_sequence: IdSequence) -> Decision[None]:
        tx.insert(a_balance(id="v"))
        raise InvalidState("x", "y", "z")

    with pytest.raises(InvalidState):
        ledger(storage).commit(AUTHORITY, decide)
    assert storage.read("env_1", lambda s: s.get(VaultBalance, "v")) is None


def test_a_commit_that_adds_work_wakes_the_worker_and_no_other_does() -> None:
    woken: list[str] = []
    book = ledger(MemoryStorage())
    book.on_commit(lambda: woken.append("now"))
    book.commit(AUTHORITY, insert)
    assert woken == []
    payload = dict.fromkeys(("accountId", "externalUserId", "status"), "x")
    happened = NewEvent("account.created", payload, "2026-09-09")
    book.commit(AUTHORITY, lambda tx, id_sequence: Decision(None, events=(happened,)))
    assert woken == ["now"]


def test_an_events_payload_has_exactly_its_catalogued_fields() -> None:
    for event in CATALOGUE:
        NewEvent(event.name, dict.fromkeys(event.fields), "v")
        with pytest.raises(ValueError, match=event.name):
            NewEvent(event.name, dict.fromkeys((*event.fields, "more")), "v")
        with pytest.raises(ValueError, match=event.name):
            NewEvent(event.name, dict.fromkeys(list(event.fields)[1:]), "v")
    with pytest.raises(KeyError):
        NewEvent("payment.unheard_of", {}, "v")
