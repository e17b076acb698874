"""Ordered failures: the next uses of a dependency fail, each of them once (contract §11).

A simulated adapter asks `Failures.consume` before it does something, or `FaultInjection` inside a
separate transaction, if the failure and the work must be one.
"""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.chains.simulated.failure_records import (
    ArmedFailure,
    ArmedFailures,
    Dependency,
    matches,
)
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import ValidationFailed
from payments_core.evolve import evolve
from payments_core.storage.port import SIMULATED, Snapshot, Transaction
from payments_core.storage.reads import Get

ANY = "any"
MAX_TIMES = 100

OPERATIONS: Mapping[Dependency, tuple[str, ...]] = {
    "chain": (
        ANY,
        "heads",
        "transaction",
        "balances",
        "scan",
        "broadcast",
        "lost_answer",
        "transfer",
    ),
    "kyc": (ANY, "start"),
    "bank": (
        ANY,
        "request_capability",
        "find_capability",
        "register_account",
        "find_account",
        "submit",
        "find_payout",
        "list_notices",
        "open_virtual_account",
        "find_incoming",
        "return_incoming",
        "deliver",
        "list_incoming_notices",
        "acknowledge",
        "lost_answer",
    ),
    "screening": (ANY, "screen"),
    "router": (
        ANY,
        "open",
        "deliver",
        "lost_answer",
        "return",
        "offer",
        "refuse_offer",
        "follow_offer",
    ),
    "onramp": (ANY, "offer", "refuse_offer", "look"),
}
"""The operations of each dependency that can fail. A new port adds its row.

For a chain, `any` is the next call of any kind. After a `lost_answer` the broadcast has
happened without an answer; a `transfer` of the service's is included and reverts. A router
that is to `return` sends back the next payment.
"""

_ID = "failures"
READ_FAILURES = Get(ArmedFailures, _ID)
"""The query of `load_armed_failures`."""
_AUTHORITY = WorkerAuthority(SIMULATED, "sandbox")
_KEPT_USES = 32


class Failures:
    """The armed failures: listed, armed, and used up."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer

    def list_armed(self) -> tuple[ArmedFailure, ...]:
        """The armed failures, in the order in which they were armed."""
        row = self._storage.read(SIMULATED, load_armed_failures)
        return row.armed if row else ()

    def arm(
        self, dependency: Dependency, operation: str, times: int, chain_id: int | None = None
    ) -> ArmedFailure:
        """Let the next `times` uses fail; an earlier count for the same is replaced.

        Raises ValidationFailed.
        """
        item = _validate_failure(dependency, operation, times, chain_id)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[ArmedFailure]:
            row = _lock_failures(tx)
            if row is None:
                return Decision(item, inserts=(ArmedFailures(id=_ID, armed=(item,)),))
            others = tuple(other for other in row.armed if evolve(other, times=item.times) != item)
            return Decision(item, replaces=(evolve(row, armed=(*others, item)),))

        return self._committer.commit(_AUTHORITY, decide)

    def consume(self, dependency: Dependency, operation: str, chain_id: int | None = None) -> bool:
        """Whether this use is to fail; if so, it is counted. Raises Unavailable.

        Without anything armed this is one read.
        """
        row = self._storage.read(SIMULATED, load_armed_failures)
        wanted = (ANY, operation)
        return (
            row is not None
            and row.has(dependency, wanted, chain_id)
            and self.take(dependency, wanted, chain_id)
        )

    def is_armed(self, dependency: Dependency, operation: str) -> bool:
        """Whether this operation itself is to fail."""
        row = self._storage.read(SIMULATED, load_armed_failures)
        return row is not None and row.has(dependency, (operation,), None)

    def take(
        self, dependency: Dependency, operations: tuple[str, ...], chain_id: int | None = None
    ) -> bool:
        """Use up one failure that was seen to be armed; False if others did meanwhile."""

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            faults = FaultInjection(tx, id_sequence, dependency, chain_id)
            return Decision(faults.take(*operations)).merge(faults.as_decision())

        return self._committer.commit(_AUTHORITY, decide)


class FaultInjection:
    """The armed failures within one transaction; `as_decision` must be joined to its decision.

    Make it before anything else is locked: the row comes first in the order of locks.
    """

    def __init__(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        dependency: Dependency,
        chain_id: int | None = None,
    ) -> None:
        self._before = self._row = _lock_failures(tx)
        self._use = id_sequence.issue("fault")
        self._dependency = dependency
        self._chain_id = chain_id

    def take(self, *operations: str) -> bool:
        """Whether this use is to fail as one of these operations."""
        row, use = self._row, f"{self._use}/{operations[-1]}"
        if row is None:
            return False
        if use in row.taken:  # by this decision, whose COMMIT was not answered
            return True
        for place, item in enumerate(row.armed):
            if matches(item, self._dependency, operations, self._chain_id):
                left = (evolve(item, times=item.times - 1),) if item.times > 1 else ()
                armed = (*row.armed[:place], *left, *row.armed[place + 1 :])
                self._row = evolve(row, armed=armed, taken=(*row.taken, use)[-_KEPT_USES:])
                return True
        return False

    def as_decision(self) -> Decision[None]:
        """The row after the used failures."""
        if self._row is None or self._row == self._before:
            return Decision(None)
        return Decision(None, replaces=(self._row,))


def load_armed_failures(snapshot: Snapshot) -> ArmedFailures | None:
    """The row of all armed failures, for a snapshot that is already open."""
    return snapshot.get(ArmedFailures, _ID)


def _lock_failures(tx: Transaction) -> ArmedFailures | None:
    return tx.get(ArmedFailures, _ID, for_update=True)


def _validate_failure(
    dependency: Dependency, operation: str, times: int, chain_id: int | None
) -> ArmedFailure:
    if operation not in OPERATIONS[dependency]:
        known = ", ".join(OPERATIONS[dependency])
        raise ValidationFailed.at("operation", f"must be one of {known}")
    if not 1 <= times <= MAX_TIMES:
        raise ValidationFailed.at("times", f"must be 1 to {MAX_TIMES}")
    if chain_id is not None and dependency != "chain":
        raise ValidationFailed.at("chain_id", "is only for the dependency chain")
    return ArmedFailure(dependency=dependency, operation=operation, chain_id=chain_id, times=times)
