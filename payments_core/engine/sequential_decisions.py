"""Decisions of several jobs for one commit, each based on the decisions before it.

Jobs of an environment that are done together may change one record, one after the other: the
reservations of several Payments are in one vault's balance. So each decision sees the transaction
as those before it will leave it, and of each record the last version is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.evolve import evolve
from payments_core.storage.port import ClaimedJob, Page, Transaction
from payments_core.storage.records import R, Record

DecideOne = Callable[[Transaction, IdSequence, ClaimedJob], Decision[Any]]

_Key = tuple[type[Record], str]


def decide_sequentially(
    tx: Transaction, id_sequence: IdSequence, ours: Sequence[ClaimedJob], decide: DecideOne
) -> dict[str, Decision[Any]]:
    """A decision for each job by its id, for `Committer.finish_all`.

    Errors of `decide` are passed on, and nothing is committed. An AssertionError means that a
    decision depends on a record that another has changed, without having read it here.
    """
    ahead = _TransactionAhead(tx)
    decisions: dict[str, Decision[Any]] = {}
    for item in ours:
        decision = decide(cast(Transaction, ahead), id_sequence, item)
        decisions[item.job.id] = decision
        ahead.add(decision)
    return {id: ahead.keep_last(decision) for id, decision in decisions.items()}


class _TransactionAhead:
    """A transaction as it will be after some decisions.

    It returns records by their ids. Pages come from the storage, so no page may
    be read of a kind that was changed.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._changed: dict[_Key, Record | None] = {}
        self._inserted: set[_Key] = set()
        self._read: set[_Key] = set()
        """The records that the present decision has read."""

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        key = (kind, id)
        self._read.add(key)
        if key in self._changed:
            return cast("R | None", self._changed[key])
        return self._tx.get(kind, id, for_update=for_update)

    def get_many(
        self, kind: type[R], ids: Collection[str], *, for_update: bool = False
    ) -> Mapping[str, R]:
        self._read |= {(kind, id) for id in ids}
        wanted = [id for id in sorted(ids) if (kind, id) not in self._changed]
        read = self._tx.get_many(kind, wanted, for_update=for_update)
        known = {id: self._changed[kind, id] for id in ids if (kind, id) in self._changed}
        return {**read, **{id: cast(R, one) for id, one in known.items() if one is not None}}

    def find(self, kind: type[R], *args: Any, **more: Any) -> Page[R]:
        if any(changed is kind for changed, _ in self._changed):
            raise AssertionError(f"a decision looks for {kind.__name__} that another has changed")
        return self._tx.find(kind, *args, **more)

    def hold(self, record: Record) -> None:
        if _key_of(record) in self._changed:  # a changed record is locked
            self._require_current(record)
        else:
            self._tx.hold(record)

    def add(self, decision: Decision[Any]) -> None:
        """Show this decision to the next ones. Raises AssertionError if it has missed another."""
        for record in decision.holds:
            if _key_of(record) in self._changed:
                self._require_current(record)
        for record in (*decision.inserts, *decision.replaces, *decision.deletes):
            key = _key_of(record)
            if key in self._changed and key not in self._read:
                raise AssertionError(f"a decision overwrites another's change of {record.id}")
        self._read.clear()
        for record in decision.inserts:
            self._inserted.add(_key_of(record))
        for record in (*decision.inserts, *decision.replaces):
            self._changed[_key_of(record)] = record
        for record in decision.deletes:
            self._changed[_key_of(record)] = None

    def keep_last(self, decision: Decision[Any]) -> Decision[Any]:
        """The decision without records that a later one has changed."""
        changed, inserted = self._changed, self._inserted
        return evolve(
            decision,
            holds=tuple(one for one in decision.holds if _key_of(one) not in changed),
            inserts=tuple(
                last for one in decision.inserts if (last := changed[_key_of(one)]) is not None
            ),
            replaces=tuple(
                one
                for one in decision.replaces
                if changed[_key_of(one)] is one and _key_of(one) not in inserted
            ),
            deletes=tuple(one for one in decision.deletes if _key_of(one) not in inserted),
        )

    def _require_current(self, record: Record) -> None:
        if self._changed[_key_of(record)] != record:
            raise AssertionError(f"a decision relies on {record.id} as it was before another")


def _key_of(record: Record) -> _Key:
    return type(record), record.id
