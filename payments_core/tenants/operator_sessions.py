"""The log-ins of operators: begin, authenticate, end (interface "Partner dashboard session").

A session is in its environment's partition, where writing calls hold it: after a log-out nothing
more is committed in its name. Its token is sealed and names the environment, so that an operator of
one environment cannot even name another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import HOUR, MINUTE, Instant, is_ahead
from payments_core.credentials.tokens import OPERATOR_PREFIX, Claims, TokenInvalid
from payments_core.engine.audit import NO_SOURCE, Actor, CallSource, Trace
from payments_core.engine.decision import Decision, WorkerAuthority, lock_shared
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import Unauthorized, Unavailable
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.operators import Operators
from payments_core.tenants.record import Environment, Operator, OperatorSession
from payments_core.tenants.refused_attempts import record_refusal
from payments_core.tenants.second_factors import SecondFactors
from payments_core.validation.fields import Credential

LOG_IN, LOG_OUT = "dashboard.log_in", "dashboard.log_out"
"""The operations of the audit trail."""

IDLE_MS = 30 * MINUTE
"""A session ends after this time without use."""

LIFETIME_MS = 12 * HOUR
"""A session ends after this time, even if it is used."""

MAX_SESSIONS = 10
"""The maximum number of live log-ins of an environment; another one ends the oldest."""


@attrs.frozen
class BegunSession:
    """A new session and its token, which is shown only here.

    >>> service.operator_sessions.begin("ann", renewed.password, mode="sandbox")
    BegunSession(session=OperatorSession(id='...', ...))
    """

    __repr__ = brief_repr

    session: OperatorSession
    token: str = attrs.field(repr=False)


class OperatorSessions:
    """Logs operators in and out.

    >>> begun = service.operator_sessions.begin("ann", ann.password, mode="sandbox")
    >>> environment, log_in = service.operator_sessions.authenticate(begun.token, mode="sandbox")
    >>> log_in.username
    'ann'
    """

    def __init__(self, ports: Ports, operators: Operators, second_factors: SecondFactors) -> None:
        self._ports = ports
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._tokens = ports.tokens
        self._operators = operators
        self._second_factors = second_factors

    def begin(
        self,
        username: Credential,
        password: Credential,
        *,
        mode: str,
        code: Credential = "",
        replaced: Credential | None = None,
        source: CallSource = NO_SOURCE,
    ) -> BegunSession:
        """A new session of the operator with this name and password.

        `code` is one of the operator's second factor, and is ignored without a factor. `replaced`
        is the browser's previous token, whose session ends. Ended sessions are removed with it. A
        refused attempt from `source` leaves an entry in the audit trail, one for each minute, and
        the error is the same whatever was wrong. Raises Unauthorized, Unavailable.
        """
        try:
            operator = self._operators.verify(username, password, mode=mode)
            confirmed_at_ms = self._second_factors.prove(operator, code)
        except Unauthorized:
            self._record_refusal(username, mode, source)
            raise
        partition = operator.environment_id
        before = self._find_session_id(replaced, partition)
        known = self._storage.read(partition, _find_sessions)
        now = self._clock.real_now()
        gone = {session.id for session in known if is_over(session, now)}
        if before is not None:
            gone.add(before)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[BegunSession]:
            environment = lock_shared(tx, Environment, partition)
            if environment is None or environment.mode != mode:
                raise Unauthorized()
            self._second_factors.require_confirmed_at(tx, operator, confirmed_at_ms)
            session = OperatorSession(
                id=id_sequence.issue("operator_session"),
                operator_id=operator.id,
                username=operator.username,
                password_set_at_ms=operator.password_set_at_ms,
                began_at_ms=now,
                used_at_ms=now,
                ends_at_ms=now + LIFETIME_MS,
            )
            claims = Claims(partition, session.id, environment.api_version, session.ends_at_ms)
            token = self._tokens.mint(OPERATOR_PREFIX, claims)
            return Decision(
                BegunSession(session, token), inserts=(session,), deletes=_lock_all(tx, gone)
            )

        trace = Trace(Actor("operator", operator.username), LOG_IN, (), source)
        begun = self._committer.commit(WorkerAuthority(partition, mode, trace), decide)
        self._end_excess(WorkerAuthority(partition, mode), begun.session.id)
        return begun

    def authenticate(self, token: Credential, *, mode: str) -> tuple[Environment, OperatorSession]:
        """The caller of a token. Raises Unauthorized, without a reason."""
        claims = self._read(token)

        def load(snapshot: Snapshot) -> tuple[Environment | None, OperatorSession | None]:
            return (
                snapshot.get(Environment, claims.environment_id),
                snapshot.get(OperatorSession, claims.subject),
            )

        environment, session = self._storage.read(claims.environment_id, load)
        now = self._clock.real_now()
        if environment is None or environment.mode != mode or session is None:
            raise Unauthorized()
        if is_over(session, now) or not _has_operator(
            session, environment, self._operators.find(session.operator_id)
        ):
            raise Unauthorized()
        if now - session.used_at_ms >= MINUTE:
            self._record_use(environment, session, now)
        return environment, session

    def end(self, authority: Authority) -> None:
        """End the caller's session; its later calls are refused."""
        session = authority.operator
        if session is None:
            raise Unauthorized()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            stored = tx.get(OperatorSession, session.id, for_update=True)
            return Decision(None, deletes=() if stored is None else (stored,))

        trace = Trace(authority.actor, LOG_OUT, (), authority.source)
        self._committer.commit(WorkerAuthority(authority.partition, authority.mode, trace), decide)

    def _record_refusal(self, username: str, mode: str, source: CallSource) -> None:
        operator = self._operators.find_by_name(username, mode=mode)
        record_refusal(self._ports, LOG_IN, operator, mode=mode, source=source)

    def _end_excess(self, authority: WorkerAuthority, newest_id: str) -> None:
        """End the oldest sessions beyond the maximum.

        It reads after the commit: of simultaneous log-ins, the last to read sees them all.
        After a crash in between, the next log-in ends them.
        """
        known = self._storage.read(authority.partition, _find_sessions)
        older = [session.id for session in known if session.id != newest_id]
        excess = older[: max(0, len(older) - MAX_SESSIONS + 1)]
        if excess:
            self._committer.commit(
                authority,
                lambda tx, id_sequence: Decision(None, deletes=_lock_all(tx, excess)),
            )

    def _find_session_id(self, token: str | None, partition: str) -> str | None:
        """The session of a token of this environment, or None."""
        try:
            claims = self._read(token or "")
        except Unauthorized:
            return None
        return claims.subject if claims.environment_id == partition else None

    def _record_use(self, environment: Environment, session: OperatorSession, now: Instant) -> None:
        """Record the session's use, at most once a minute."""

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            stored = tx.get(OperatorSession, session.id, for_update=True)
            if stored is None or now <= stored.used_at_ms:
                return Decision(None)
            return Decision(None, replaces=(evolve(stored, used_at_ms=now),))

        with suppress(Unavailable):  # the call itself continues; the next one records it
            self._committer.commit(WorkerAuthority(environment.id, environment.mode), decide)

    def _read(self, token: str) -> Claims:
        try:
            return self._tokens.read(OPERATOR_PREFIX, token)
        except TokenInvalid:
            raise Unauthorized() from None


def is_over(session: OperatorSession, now: Instant) -> bool:
    """Whether a session has expired: unused for too long, or too old; or nobody knows, since it was
    used under a clock that was ahead."""
    is_old = now >= session.ends_at_ms or now - session.used_at_ms >= IDLE_MS
    return is_old or is_ahead(session.used_at_ms, now)


def _has_operator(
    session: OperatorSession, environment: Environment, operator: Operator | None
) -> bool:
    """Whether the operator still exists, in this environment, with the same password."""
    return (
        operator is not None
        and operator.environment_id == environment.id
        and operator.password_set_at_ms == session.password_set_at_ms
    )


def _lock_all(tx: Transaction, ids: Iterable[str]) -> tuple[OperatorSession, ...]:
    """The sessions that still exist, locked."""
    found = (tx.get(OperatorSession, id, for_update=True) for id in sorted(ids))
    return tuple(session for session in found if session is not None)


def _find_sessions(snapshot: Snapshot) -> Sequence[OperatorSession]:
    """The sessions of an environment, the oldest first; hardly more than MAX_SESSIONS."""
    return snapshot.find(OperatorSession, "by_beginning", limit=100, skip_damaged=True).records
