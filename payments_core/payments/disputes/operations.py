"""Sessions and disputes: read, flag, resolve (interface "Flag a dispute", contract §6)."""

from __future__ import annotations

from typing import get_args

from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotentRequest
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import FieldError, NotFound, ValidationFailed
from payments_core.payments.disputes import lifecycle
from payments_core.payments.disputes.lifecycle import PaymentSession
from payments_core.payments.disputes.record import Dispute, Resolution
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority

MAX_REASON_CHARACTERS = 512
MAX_DESCRIPTION_CHARACTERS = 2_048
MAX_NOTE_CHARACTERS = 1_024


class Disputes:
    """Reads sessions, and keeps the one dispute that each may have."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock

    def get_session(self, authority: Authority, session_id: str) -> PaymentSession:
        """A session with its dispute. Raises NotFound; a send or a collect has no session."""

        def load(snapshot: Snapshot) -> PaymentSession:
            payment = _load_payment(snapshot, session_id)
            return PaymentSession(payment, snapshot.get(Dispute, session_id))

        return self._storage.read(authority.partition, load)

    def flag(
        self,
        authority: Authority,
        session_id: str,
        *,
        reason: str,
        description: str | None = None,
        idempotent: IdempotentRequest | None = None,
    ) -> PaymentSession:
        """Dispute a settled session, once.

        `reason` has 1 to 512 characters, `description` up to 2,048. The session stays settled.
        Raises ValidationFailed, NotFound, InvalidState.
        """
        faults = _find_length_faults("description", description, MAX_DESCRIPTION_CHARACTERS)
        if not 1 <= len(reason) <= MAX_REASON_CHARACTERS:
            message = f"must have 1 to {MAX_REASON_CHARACTERS} characters"
            faults.insert(0, FieldError("reason", message))
        _require_no_faults(faults)
        payment_id = self._load_payment_id(authority, session_id)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[PaymentSession]:
            session = _lock_session(tx, payment_id)
            # Of two at once, the second finds the id taken, runs again, and sees the first.
            nonce = id_sequence.issue("dispute")
            flagged = lifecycle.flag(session, reason, description, nonce=nonce, now=now)
            return flagged.as_decision(PaymentSession(session.payment, flagged.record))

        return self._committer.commit(authority, decide, idempotent=idempotent)

    def resolve(
        self,
        authority: Authority,
        session_id: str,
        *,
        resolution: Resolution,
        note: str | None = None,
        idempotent: IdempotentRequest | None = None,
    ) -> PaymentSession:
        """End a flagged dispute. `note` has up to 1,024 characters.

        The Payment may have been refunded meanwhile. Raises ValidationFailed, NotFound,
        InvalidState.
        """
        faults = _find_length_faults("note", note, MAX_NOTE_CHARACTERS)
        if resolution not in get_args(Resolution):
            names = ", ".join(get_args(Resolution))
            faults.insert(0, FieldError("resolution", f"must be one of {names}"))
        _require_no_faults(faults)
        payment_id = self._load_payment_id(authority, session_id)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[PaymentSession]:
            session = _lock_session(tx, payment_id)
            resolved = lifecycle.resolve(session, resolution, note, now=now)
            return resolved.as_decision(PaymentSession(session.payment, resolved.record))

        return self._committer.commit(authority, decide, idempotent=idempotent)

    def _load_payment_id(self, authority: Authority, session_id: str) -> str:
        """Whose session this is; that never changes, so it may be read beforehand."""
        return self._storage.read(
            authority.partition, lambda snapshot: _load_payment(snapshot, session_id).id
        )


def _load_payment(snapshot: Snapshot, session_id: str) -> Payment:
    """The receive Payment of a session. Raises NotFound."""
    page = snapshot.find(Payment, "by_session", (session_id,), limit=1)
    if not page.records or page.records[0].intent != "receive":
        raise NotFound("session")
    return page.records[0]


def _lock_session(tx: Transaction, payment_id: str) -> PaymentSession:
    """The session as it is until the commit: its Payment held, its dispute locked."""
    payment = lock_shared(tx, Payment, payment_id)
    if payment is None:
        raise NotFound("session")
    return PaymentSession(payment, tx.get(Dispute, payment.session_id, for_update=True))


def _find_length_faults(path: str, text: str | None, maximum: int) -> list[FieldError]:
    if text is None or len(text) <= maximum:
        return []
    return [FieldError(path, f"must have at most {maximum} characters")]


def _require_no_faults(faults: list[FieldError]) -> None:
    if faults:
        raise ValidationFailed(tuple(faults))
