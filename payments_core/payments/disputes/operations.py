"""Sessions and disputes: read, flag, resolve (interface "Flag a dispute", contract §6)."""

from __future__ import annotations

from typing import get_args

from payments_core.engine.decision import Decision, held
from payments_core.engine.idempotency.record import Idempotent
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import FieldError, NotFound, ValidationFailed
from payments_core.payments.disputes import lifecycle
from payments_core.payments.disputes.lifecycle import Session
from payments_core.payments.disputes.record import Dispute, Resolution
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority

REASON_CHARACTERS = 512
DESCRIPTION_CHARACTERS = 2_048
NOTE_CHARACTERS = 1_024


class Disputes:
    """Reads sessions, and keeps the one dispute that each may have."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock

    def session(self, authority: Authority, session_id: str) -> Session:
        """A session with its dispute. Raises NotFound; a send or a collect has no session."""

        def look(snapshot: Snapshot) -> Session:
            payment = _payment(snapshot, session_id)
            return Session(payment, snapshot.get(Dispute, session_id))

        return self._storage.read(authority.partition, look)

    def flag(
        self,
        authority: Authority,
        session_id: str,
        *,
        reason: str,
        description: str | None = None,
        idempotent: Idempotent | None = None,
    ) -> Session:
        """Dispute a settled session, once.

        `reason` has 1 to 512 characters, `description` up to 2,048. The session stays settled.
        Raises ValidationFailed, NotFound, InvalidState.
        """
        faults = _too_long("description", description, DESCRIPTION_CHARACTERS)
        if not 1 <= len(reason) <= REASON_CHARACTERS:
            message = f"must have 1 to {REASON_CHARACTERS} characters"
            faults.insert(0, FieldError("reason", message))
        _refuse(faults)
        payment_id = self._payment_id(authority, session_id)
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[Session]:
            session = _session(tx, payment_id)
            # Of two at once, the second finds the id taken, runs again, and sees the first.
            nonce = draw.id("dispute")
            flagged = lifecycle.flag(session, reason, description, nonce=nonce, now=now)
            return flagged.as_decision(Session(session.payment, flagged.record))

        return self._ledger.commit(authority, decide, idempotent=idempotent)

    def resolve(
        self,
        authority: Authority,
        session_id: str,
        *,
        resolution: Resolution,
        note: str | None = None,
        idempotent: Idempotent | None = None,
    ) -> Session:
        """End a flagged dispute. `note` has up to 1,024 characters.

        The Payment may have been refunded meanwhile. Raises ValidationFailed, NotFound,
        InvalidState.
        """
        faults = _too_long("note", note, NOTE_CHARACTERS)
        if resolution not in get_args(Resolution):
            names = ", ".join(get_args(Resolution))
            faults.insert(0, FieldError("resolution", f"must be one of {names}"))
        _refuse(faults)
        payment_id = self._payment_id(authority, session_id)
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[Session]:
            session = _session(tx, payment_id)
            resolved = lifecycle.resolve(session, resolution, note, now=now)
            return resolved.as_decision(Session(session.payment, resolved.record))

        return self._ledger.commit(authority, decide, idempotent=idempotent)

    def _payment_id(self, authority: Authority, session_id: str) -> str:
        """Whose session this is; that never changes, so it may be read beforehand."""
        return self._storage.read(
            authority.partition, lambda snapshot: _payment(snapshot, session_id).id
        )


def _payment(snapshot: Snapshot, session_id: str) -> Payment:
    """The receive Payment of a session. Raises NotFound."""
    page = snapshot.find(Payment, "by_session", (session_id,), limit=1)
    if not page.records or page.records[0].intent != "receive":
        raise NotFound("session")
    return page.records[0]


def _session(tx: Transaction, payment_id: str) -> Session:
    """The session as it is until the commit: its Payment held, its dispute locked."""
    payment = held(tx, Payment, payment_id)
    if payment is None:
        raise NotFound("session")
    return Session(payment, tx.get(Dispute, payment.session_id, for_update=True))


def _too_long(path: str, text: str | None, most: int) -> list[FieldError]:
    if text is None or len(text) <= most:
        return []
    return [FieldError(path, f"must have at most {most} characters")]


def _refuse(faults: list[FieldError]) -> None:
    if faults:
        raise ValidationFailed(tuple(faults))
