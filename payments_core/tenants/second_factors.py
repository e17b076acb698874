"""What an operator does with the second factor: set it up, confirm it, use it, turn it off."""

from __future__ import annotations

import base64
from typing import TypeVar

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.engine.audit import Trace
from payments_core.engine.decision import Decide, Decision, WorkerAuthority
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import InvalidState, NotFound, Unauthorized, ValidationFailed
from payments_core.evolve import evolve
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.tenants.operators import Operators
from payments_core.tenants.record import Operator, OperatorSession
from payments_core.tenants.refused_attempts import record_refusal
from payments_core.tenants.second_factor import (
    SECOND_FACTOR_SEAL,
    RecoveryCodes,
    SecondFactor,
    digest_recovery_code,
    new_recovery_codes,
    new_totp_secret,
    use_code,
    write_uri,
)
from payments_core.validation.fields import Credential

T = TypeVar("T")

MAX_SESSIONS_READ = 100
"""An environment has far fewer live log-ins."""


@attrs.frozen
class Enrolment:
    """A second factor that is not confirmed yet: the secret of the app, and its URI."""

    __repr__ = brief_repr

    secret: str = attrs.field(repr=False)
    uri: str = attrs.field(repr=False)


@attrs.frozen
class FactorState:
    """Whether an operator has a second factor, or is setting one up."""

    confirmed_at_ms: Instant | None = None
    recovery_codes_left: int = 0
    enrolment: Enrolment | None = None


class SecondFactors:
    """Second factors of operators. Codes are checked with the real clock, also in a sandbox."""

    def __init__(self, ports: Ports, operators: Operators, issuer: str) -> None:
        """`issuer` is the name of the service that an app shows."""
        self._ports = ports
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._entropy = ports.entropy
        self._key_ring = ports.key_ring
        self._host = ports.host
        self._operators = operators
        self._issuer = issuer

    def read(self, authority: Authority) -> FactorState:
        """The state of the caller's factor."""
        operator = self._find_caller(authority)
        factor = self._load(operator)
        if factor is None:
            return FactorState()
        if factor.confirmed_at_ms is not None:
            return FactorState(factor.confirmed_at_ms, len(factor.recovery_digests))
        secret = self._open(factor)
        account = f"{operator.username} ({operator.mode})"
        issuer = f"{self._issuer}: {authority.environment.app_name}"
        return FactorState(
            enrolment=Enrolment(secret, write_uri(secret, account=account, issuer=issuer))
        )

    def begin(self, authority: Authority, password: Credential) -> None:
        """Make a new secret, which counts once it is confirmed.

        Raises Unavailable, InvalidState if there is a factor, and ValidationFailed for a wrong
        password: a stolen session cannot lock its operator out.
        """
        operator = self._find_caller(authority)
        try:
            self._operators.verify(operator.username, password, mode=operator.mode)
        except Unauthorized:
            self._record_refusal(authority, operator, "second_factor.begin")
            raise ValidationFailed.at("password", "is wrong") from None
        secret, now = new_totp_secret(self._entropy), self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            known = tx.get(SecondFactor, operator.id, for_update=True)
            if known is not None and known.is_of(operator) and known.confirmed_at_ms is not None:
                raise InvalidState("second factor", "on", "begin")
            fresh = SecondFactor(
                id=operator.id,
                operator_created_at_ms=operator.created_at_ms,
                sealed_secret=self._seal(operator.id, secret),
                created_at_ms=now,
            )
            if known is None:
                return Decision(None, inserts=(fresh,))
            return Decision(None, replaces=(evolve(fresh, version=known.version),))

        self._committer.commit(authority.trace_as("second_factor.begin", ()), decide)

    @once_per_key
    def confirm(
        self, authority: Authority, code: Credential, *, idempotency_key: IdempotencyKey = None
    ) -> RecoveryCodes:
        """Turn the factor on with a code of the app; the recovery codes, and all other sessions of
        the operator end. Raises InvalidState without a factor that waits for it, and
        ValidationFailed for a wrong code."""
        operator = self._find_caller(authority)
        codes = new_recovery_codes(self._entropy)
        proven = self._require_code(authority, operator, code, "second_factor.confirm")
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[RecoveryCodes]:
            factor = tx.get(SecondFactor, operator.id, for_update=True)
            if factor is None or factor.sealed_secret != proven.sealed_secret:
                raise InvalidState("second factor", "off", "confirm")
            if factor.confirmed_at_ms is not None:
                raise InvalidState("second factor", "on", "confirm")
            confirmed = evolve(
                factor, confirmed_at_ms=now, recovery_digests=_digest_all(factor, codes)
            )
            return Decision(
                codes, replaces=(confirmed,), deletes=_lock_other_sessions(tx, authority)
            )

        return self._commit(authority, "second_factor.confirm", decide, idempotency_key)

    @once_per_key
    def renew_recovery_codes(
        self, authority: Authority, code: Credential, *, idempotency_key: IdempotencyKey = None
    ) -> RecoveryCodes:
        """New recovery codes in place of the ones before. Raises as `turn_off`."""
        operator = self._find_caller(authority)
        codes, operation = new_recovery_codes(self._entropy), "second_factor.renew_recovery_codes"
        self._require_code(authority, operator, code, operation)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[RecoveryCodes]:
            factor = _lock_confirmed(tx, operator, "renew_recovery_codes")
            renewed = evolve(factor, recovery_digests=_digest_all(factor, codes))
            return Decision(codes, replaces=(renewed,))

        return self._commit(authority, operation, decide, idempotency_key)

    @once_per_key
    def turn_off(
        self, authority: Authority, code: Credential, *, idempotency_key: IdempotencyKey = None
    ) -> None:
        """Remove the factor. Raises InvalidState without one, and ValidationFailed for a wrong
        code."""
        operator = self._find_caller(authority)
        self._require_code(authority, operator, code, "second_factor.turn_off")

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            return Decision(None, deletes=(_lock_confirmed(tx, operator, "turn_off"),))

        self._commit(authority, "second_factor.turn_off", decide, idempotency_key)

    def reset(self, username: str, *, mode: str) -> Operator:
        """Remove the factor of an operator who has lost it. It is for who runs the deployment.

        Raises NotFound, also without a factor.
        """
        operator = self._operators.find_by_name(username, mode=mode)
        if operator is None:
            raise NotFound("operator")
        partition = operator.environment_id
        trace = Trace(self._host, "second_factor.reset")

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            factor = tx.get(SecondFactor, operator.id, for_update=True)
            if factor is None or not factor.is_of(operator):
                raise NotFound("second factor")
            return Decision(None, deletes=(factor,))

        self._committer.commit(WorkerAuthority(partition, mode, trace), decide)
        return operator

    def prove(self, operator: Operator, code: Credential) -> Instant | None:
        """When the operator's factor was confirmed, of which this is a code; None without a factor.

        The code is used up. Raises Unauthorized for a wrong one, also while too many were wrong.
        """
        factor = self._load(operator)
        if factor is None or factor.confirmed_at_ms is None:
            return None
        if not self._use_code(operator, code):
            raise Unauthorized()
        return factor.confirmed_at_ms

    def require_confirmed_at(
        self, tx: Transaction, operator: Operator, confirmed_at_ms: Instant | None
    ) -> None:
        """Return if the factor is still the one that was proven. Raises Unauthorized."""
        factor = tx.get(SecondFactor, operator.id, for_update=True)
        is_on = factor is not None and factor.is_of(operator)
        if (factor.confirmed_at_ms if factor and is_on else None) != confirmed_at_ms:
            raise Unauthorized()

    def _require_code(
        self, authority: Authority, operator: Operator, code: str, operation: str
    ) -> SecondFactor:
        """Use a code of a factor up. Raises InvalidState without one, ValidationFailed."""
        factor = self._load(operator)
        if factor is None:
            raise InvalidState("second factor", "off", "use a code")
        if not self._use_code(operator, code):
            self._record_refusal(authority, operator, operation)
            raise ValidationFailed.at(
                "code", "is wrong, was used before, or came after too many wrong ones"
            )
        return factor

    def _record_refusal(self, authority: Authority, operator: Operator, operation: str) -> None:
        source = authority.source
        record_refusal(self._ports, operation, operator, mode=operator.mode, source=source)

    def _use_code(self, operator: Operator, code: str) -> bool:
        """Commit the attempt, whether it counts or not."""
        now = self._clock.real_now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            factor = tx.get(SecondFactor, operator.id, for_update=True)
            if factor is None or not factor.is_of(operator):
                return Decision(False)
            changed, counts = use_code(factor, self._open(factor), code, now=now)
            return Decision(counts, replaces=() if changed is factor else (changed,))

        return self._committer.commit(
            WorkerAuthority(operator.environment_id, operator.mode), decide
        )

    def _commit(
        self,
        authority: Authority,
        operation: str,
        decide: Decide[T],
        idempotency_key: IdempotencyKey,
    ) -> T:
        return self._committer.commit(
            authority.trace_as(operation, ()), decide, idempotent=idempotency_key
        )

    def _find_caller(self, authority: Authority) -> Operator:
        session = authority.operator
        operator = None if session is None else self._operators.find(session.operator_id)
        if operator is None:
            raise Unauthorized()
        return operator

    def _load(self, operator: Operator) -> SecondFactor | None:
        read = Get(SecondFactor, operator.id)
        [factor] = self._storage.fetch(operator.environment_id, read)
        return factor if factor is not None and factor.is_of(operator) else None

    def _seal(self, id: str, secret: str) -> str:
        sealed = self._key_ring.seal(SECOND_FACTOR_SEAL, id, secret.encode())
        return base64.b64encode(sealed).decode()

    def _open(self, factor: SecondFactor) -> str:
        sealed = base64.b64decode(factor.sealed_secret)
        return self._key_ring.open(SECOND_FACTOR_SEAL, factor.id, sealed).decode()


def _lock_confirmed(tx: Transaction, operator: Operator, action: str) -> SecondFactor:
    factor = tx.get(SecondFactor, operator.id, for_update=True)
    if factor is None or not factor.is_of(operator) or factor.confirmed_at_ms is None:
        raise InvalidState("second factor", "off", action)
    return factor


def _lock_other_sessions(tx: Transaction, authority: Authority) -> tuple[OperatorSession, ...]:
    """The sessions of the environment, which has one operator, without the caller's.

    Whoever logs in locks the factor first, so that none begins meanwhile without it.
    """
    page = tx.find(OperatorSession, "by_beginning", limit=MAX_SESSIONS_READ, skip_damaged=True)
    own = authority.operator
    ids = sorted(one.id for one in page.records if own is None or one.id != own.id)
    ended = (tx.get(OperatorSession, id, for_update=True) for id in ids)
    return tuple(session for session in ended if session is not None)


def _digest_all(factor: SecondFactor, codes: RecoveryCodes) -> tuple[str, ...]:
    return tuple(digest_recovery_code(factor.id, code) for code in codes.codes)
