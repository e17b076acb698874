"""Client sessions: create, exchange, authenticate, revoke (interface "Client sessions")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Protocol

import attrs
from msgspec import Meta

from payments_core.brief_repr import brief_repr
from payments_core.clock import SECOND, Instant
from payments_core.credentials.tokens import (
    ACCESS_PREFIX,
    CLIENT_SESSION_PREFIX,
    Claims,
    TokenInvalid,
)
from payments_core.engine.decision import Decision, WorkerAuthority, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    ClientTokenExpired,
    EntitlementRequired,
    InsufficientPermissions,
    NotFound,
    Unauthorized,
)
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, Transaction
from payments_core.storage.reads import Get
from payments_core.storage.records import Record
from payments_core.tenants.authorization import (
    Authority,
    require_standard_key,
    session_is_valid,
)
from payments_core.tenants.idempotency import once_per_key
from payments_core.tenants.record import (
    PERMISSION_PRODUCTS,
    ClientSession,
    Environment,
    SessionExchange,
)
from payments_core.validation.fields import AccountId, Credential, ExternalUserId

EXCHANGE_WITHIN_MS = 300 * SECOND
DEFAULT_EXPIRY_S = 900
DEFAULT_PERMISSIONS = ("account:read",)

SessionExpiry = Annotated[int, Meta(ge=60, le=86_400)]
PermissionNames = Annotated[
    Sequence[Annotated[str, Meta(min_length=1, max_length=64)]], Meta(min_length=1, max_length=20)
]


@attrs.frozen
class CreatedSession:
    """A new session and its one-time token, which is shown only here.

    >>> created = server.client_sessions.create(external_user_id="eve")
    >>> exchanged = service.client_tokens.exchange(created.token, mode="sandbox")
    """

    __repr__ = brief_repr

    session: ClientSession
    token: str = attrs.field(repr=False)


@attrs.frozen
class ExchangedSession:
    """A session, its access token, and its present rights.

    >>> created = server.client_sessions.create(external_user_id="eve")
    >>> service.client_tokens.exchange(created.token, mode="sandbox").permissions
    ('account:read',)
    """

    __repr__ = brief_repr

    session: ClientSession
    access_token: str = attrs.field(repr=False)
    permissions: tuple[str, ...]


class AccountDirectory(Protocol):
    """Finds and holds the account that a session is for; accounts are in a room above this one."""

    def look_up(
        self, authority: Authority, account_id: str | None, external_user_id: str | None
    ) -> Record:
        """The account by exactly one of its two ids. Raises ValidationFailed, NotFound."""

    def hold_open(self, tx: Transaction, account_id: str) -> object:
        """Hold the account as it is until the commit. Raises AccountSuspended for a closed one."""


class ClientSessions:
    """Issues and checks a browser's access to one account."""

    def __init__(self, ports: Ports, accounts: AccountDirectory) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._tokens = ports.tokens
        self._accounts = accounts

    @once_per_key
    def create(
        self,
        authority: Authority,
        *,
        account_id: AccountId | None = None,
        external_user_id: ExternalUserId | None = None,
        expires_in_s: SessionExpiry = DEFAULT_EXPIRY_S,
        permissions: PermissionNames | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> CreatedSession:
        """A session for an existing account; the strict look-up never creates one.

        Raises ValidationFailed, NotFound, InsufficientPermissions for an unknown permission,
        EntitlementRequired for one whose product is disabled, and AccountSuspended for a
        closed account; a suspended one can still read.
        """
        if authority.key is None:
            raise Unauthorized()  # a session has the rights of the key that made it
        require_standard_key(authority.key)
        wanted = tuple(sorted(set(DEFAULT_PERMISSIONS if permissions is None else permissions)))
        issuer_key_id = authority.key.id
        _require_known(wanted)
        account = self._accounts.look_up(authority, account_id, external_user_id)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[CreatedSession]:
            # The records behind the authority may have changed since; they are held as they are
            # now.
            _require_grantable(wanted, lock_shared(tx, Environment, authority.partition))
            self._accounts.hold_open(tx, account.id)
            session = ClientSession(
                id=id_sequence.issue("client_session"),
                account_id=account.id,
                issuer_key_id=issuer_key_id,
                permissions=wanted,
                api_version=authority.api_version,
                created_at_ms=now,
                exchange_expires_at_ms=min(now + EXCHANGE_WITHIN_MS, now + expires_in_s * SECOND),
                expires_at_ms=now + expires_in_s * SECOND,
            )
            claims = _claims(authority.environment, session, session.exchange_expires_at_ms)
            token = self._tokens.mint(CLIENT_SESSION_PREFIX, claims)
            return Decision(CreatedSession(session, token), inserts=(session,))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def exchange(self, token: Credential, *, mode: str) -> ExchangedSession:
        """Exchange the session token, once, for an access token.

        Raises Unauthorized (malformed, forged, consumed, revoked) before ClientTokenExpired.
        """
        claims = self._read(CLIENT_SESSION_PREFIX, token)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[ExchangedSession]:
            environment, session = _require_valid_session(
                lock_shared(tx, Environment, claims.environment_id),
                lock_shared(tx, ClientSession, claims.subject),
                mode,
            )
            exchanged = tx.get(SessionExchange, session.id, for_update=True)
            _require_exchangeable(session, exchanged, now)
            access = self._tokens.mint(
                ACCESS_PREFIX, _claims(environment, session, session.expires_at_ms)
            )
            exchange = SessionExchange(
                id=session.id, nonce=id_sequence.issue("exchange"), exchanged_at_ms=now
            )
            return Decision(
                ExchangedSession(session, access, effective_permissions(environment, session)),
                inserts=(exchange,),
                refusals={"id": Unauthorized()},
            )

        return self._committer.commit(WorkerAuthority(claims.environment_id, mode), decide)

    def find_exchangeable(
        self, token: Credential, *, mode: str
    ) -> tuple[Environment, ClientSession]:
        """The caller of a session token, if it can be exchanged now; nothing is changed.

        Raises Unauthorized before ClientTokenExpired, as `exchange` does.
        """
        claims = self._read(CLIENT_SESSION_PREFIX, token)

        def load(snapshot: Snapshot) -> tuple[Environment, ClientSession]:
            environment, session = _require_valid_session(
                snapshot.get(Environment, claims.environment_id),
                snapshot.get(ClientSession, claims.subject),
                mode,
            )
            exchanged = snapshot.get(SessionExchange, session.id)
            _require_exchangeable(session, exchanged, self._clock.now())
            return environment, session

        return self._storage.read(claims.environment_id, load)

    def authenticate(
        self, access_token: Credential, *, mode: str
    ) -> tuple[Environment, ClientSession]:
        """The caller of an access token. Raises Unauthorized before ClientTokenExpired."""
        claims = self._read(ACCESS_PREFIX, access_token)
        environment, session = self._storage.fetch(
            claims.environment_id,
            Get(Environment, claims.environment_id),
            Get(ClientSession, claims.subject),
        )
        environment, session = _require_valid_session(environment, session, mode)
        if self._clock.now() >= session.expires_at_ms:
            raise ClientTokenExpired()
        return environment, session

    @once_per_key
    def revoke(
        self, authority: Authority, session_id: str, *, idempotency_key: IdempotencyKey = None
    ) -> ClientSession:
        """End a session; ending it twice is not an error. Raises NotFound."""
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[ClientSession]:
            session = tx.get(ClientSession, session_id, for_update=True)
            if session is None:
                raise NotFound("client session")
            if session.revoked_at_ms is not None:
                return Decision(session)
            revoked = evolve(session, revoked_at_ms=now)
            return Decision(revoked, replaces=(revoked,))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _read(self, prefix: str, token: str) -> Claims:
        try:
            return self._tokens.read(prefix, token)
        except TokenInvalid:
            raise Unauthorized() from None


def _require_valid_session(
    environment: Environment | None, session: ClientSession | None, mode: str
) -> tuple[Environment, ClientSession]:
    if environment is None or environment.mode != mode or session is None:
        raise Unauthorized()
    if not session_is_valid(session, environment):
        raise Unauthorized()
    return environment, session


def _require_exchangeable(
    session: ClientSession, exchanged: SessionExchange | None, now: Instant
) -> None:
    if exchanged is not None:
        raise Unauthorized()
    if now >= session.exchange_expires_at_ms:
        raise ClientTokenExpired()


def effective_permissions(environment: Environment, session: ClientSession) -> tuple[str, ...]:
    """The session's permissions whose products the environment has now."""
    return tuple(
        name
        for name in session.permissions
        if set(PERMISSION_PRODUCTS[name]) <= set(environment.products)
    )


def _require_known(permissions: Sequence[str]) -> None:
    unknown = tuple(name for name in permissions if name not in PERMISSION_PRODUCTS)
    if unknown:
        raise InsufficientPermissions(unknown)


def _require_grantable(permissions: Sequence[str], environment: Environment | None) -> None:
    assert environment is not None
    for name in permissions:
        for product in PERMISSION_PRODUCTS[name]:
            if product not in environment.products:
                raise EntitlementRequired(product)


def _claims(environment: Environment, session: ClientSession, expires_at: int) -> Claims:
    return Claims(environment.id, session.id, session.api_version, expires_at)
