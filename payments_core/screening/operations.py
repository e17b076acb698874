"""An operator's decisions on what screening has not cleared: list, clear or block."""

from __future__ import annotations

from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.bringing_forward import bring_known_forward
from payments_core.engine.ports import Ports
from payments_core.errors import InvalidState, NotFound
from payments_core.evolve import evolve
from payments_core.screening.judging import Concern, Decided, decide_by_hand, decision_id
from payments_core.screening.record import HeldTransfer, HoldStatus, ScreeningVerdict
from payments_core.storage.jobs import Job
from payments_core.storage.port import Page, Position, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import Label, PageLimit


class ScreeningDecisions:
    """The held transfers of an environment, and the decisions on them."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock

    def list(
        self,
        authority: Authority,
        status: HoldStatus = "in_review",
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[HeldTransfer]:
        """The held transfers of a status, the oldest first."""
        return self._storage.read(
            authority.partition,
            lambda snapshot: snapshot.find(
                HeldTransfer, "by_status", (status,), after=after, limit=limit
            ),
        )

    def get(self, authority: Authority, held_id: str) -> HeldTransfer:
        """A held transfer. Raises NotFound."""
        held = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(HeldTransfer, held_id)
        )
        if held is None:
            raise NotFound("held transfer")
        return held

    @once_per_key
    def decide(
        self,
        authority: Authority,
        held_id: str,
        outcome: Decided,
        *,
        operator: Label,
        idempotency_key: IdempotencyKey = None,
    ) -> ScreeningVerdict:
        """Clear or block the subject of a held transfer, for its resource and direction alone.

        What is in review is signed or blocked at once. What is blocked was ended, and is requested
        again by whoever needs it: then a cleared subject passes. What an operator has blocked stays
        in the list, so that it can be cleared later. Other subjects of the transfer
        need verdicts of their own. `operator` is the name of who decides, which is stored.

        Raises NotFound, and InvalidState while the transfer is being looked at.
        """

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[ScreeningVerdict]:
            now = self._clock.now()
            job = tx.get(Job, held_id, for_update=True)
            held = tx.get(HeldTransfer, held_id, for_update=True)
            if held is None:
                raise NotFound("held transfer")
            moved = Decision(None) if job is None else bring_known_forward(job, now)
            if moved is None:
                raise InvalidState("held transfer", "looked at", "decide")
            concern = Concern(held.subject, held.direction)
            known_id = decision_id(held.resource, concern)
            known = tx.get(ScreeningVerdict, known_id, for_update=True)
            verdict = decide_by_hand(
                held.resource, concern, known, outcome=outcome, operator=operator, now=now
            )
            stored: Decision[ScreeningVerdict] = Decision(
                verdict,
                inserts=(verdict,) if known is None else (),
                replaces=() if known is None else (verdict,),
            )
            ended: Decision[None] = Decision(None)
            if held.status == "blocked" and job is None:  # no job follows the decision
                if outcome == "clear":
                    ended = Decision(None, deletes=(held,))
                else:
                    kept = evolve(held, decided_by=operator, updated_at_ms=now)
                    ended = Decision(None, replaces=(kept,))
            return stored.merge(moved, ended)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)
