"""Who follows the cases of one kind of provider: a row of the table of notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.bringing_forward import bring_forward
from payments_core.engine.ports import Ports
from payments_core.storage.jobs import Job
from payments_core.storage.lookups import locate_with_damaged
from payments_core.storage.port import Transaction
from payments_core.storage.records import Record
from payments_core.tenants.modes import is_of_mode

Routed = Literal["done", "busy", "unknown", "unreadable"]
"""What became of a notice: its case is looked at, is being looked at by a run that may have been
too early, is not known, or has a row that cannot be read."""

R = TypeVar("R", bound=Record)


class NoticeOwner(Protocol):
    """Finds a provider's case in all environments of a mode, and has it looked at."""

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Have the case looked at now. Repeating it changes nothing more. Raises Unavailable."""


def bring_looks_forward(
    ports: Ports,
    mode: str,
    kind: type[R],
    lookup: str,
    reference: str,
    new_job: Callable[[str, R], Job | None],
) -> Routed:
    """Have the records of a reference looked at now, in all environments of a mode.

    `new_job` makes the one job of a record in its partition, None where there is nothing left to
    look at. Raises Unavailable.
    """
    found, damaged = locate_with_damaged(ports.storage, kind, lookup, [(reference,)])
    ours = [one for one in found if is_of_mode(ports.storage, one.partition, mode)]
    if not ours:
        return "unreadable" if damaged else "unknown"
    results: list[Routed] = [
        _bring_one_forward(ports, WorkerAuthority(one.partition, mode), job)
        for one in ours
        if (job := new_job(one.partition, one.record)) is not None
    ]
    return "busy" if "busy" in results else "done"


def _bring_one_forward(ports: Ports, authority: WorkerAuthority, job: Job) -> Routed:
    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Routed]:
        decided = bring_forward(tx, job, ports.clock.now())
        if decided is None:
            return Decision("busy")
        done: Decision[Routed] = Decision("done")
        return done.merge(decided)

    return ports.committer.commit(authority, decide)
