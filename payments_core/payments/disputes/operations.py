"""Sessions and disputes: read, flag, resolve (interface "Flag a dispute", contract §6)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound
from payments_core.payments.disputes import lifecycle
from payments_core.payments.disputes.lifecycle import PaymentSession
from payments_core.payments.disputes.record import Dispute, Resolution
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key

DisputeReason = Annotated[str, Meta(min_length=1, max_length=512)]
DisputeDescription = Annotated[str, Meta(max_length=2_048)]
DisputeNote = Annotated[str, Meta(max_length=1_024)]


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

    @once_per_key
    def flag(
        self,
        authority: Authority,
        session_id: str,
        *,
        reason: DisputeReason,
        description: DisputeDescription | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> PaymentSession:
        """Dispute a settled session, once.

        `reason` has 1 to 512 characters, `description` up to 2,048. The session stays settled.
        Raises ValidationFailed, NotFound, InvalidState.
        """
        payment_id = self._load_payment_id(authority, session_id)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[PaymentSession]:
            session = _lock_session(tx, payment_id)
            # Of two concurrent calls, the second finds the id taken, runs again, and sees the
            # first.
            nonce = id_sequence.issue("dispute")
            flagged = lifecycle.flag(session, reason, description, nonce=nonce, now=now)
            return flagged.as_decision(PaymentSession(session.payment, flagged.record))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    @once_per_key
    def resolve(
        self,
        authority: Authority,
        session_id: str,
        *,
        resolution: Resolution,
        note: DisputeNote | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> PaymentSession:
        """Resolve a flagged dispute. `note` has up to 1,024 characters.

        The Payment may have been refunded meanwhile. Raises ValidationFailed, NotFound,
        InvalidState.
        """
        payment_id = self._load_payment_id(authority, session_id)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[PaymentSession]:
            session = _lock_session(tx, payment_id)
            resolved = lifecycle.resolve(session, resolution, note, now=now)
            return resolved.as_decision(PaymentSession(session.payment, resolved.record))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _load_payment_id(self, authority: Authority, session_id: str) -> str:
        """The account of this session; it never changes, so it may be read beforehand."""
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
    """The session as it is until the commit: its Payment locked shared, its dispute locked."""
    payment = lock_shared(tx, Payment, payment_id)
    if payment is None:
        raise NotFound("session")
    return PaymentSession(payment, tx.get(Dispute, payment.session_id, for_update=True))
