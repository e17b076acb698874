"""Authorization: one pure function of a call's requirement and its credential's present rights.

The effective rights of every call are the token's, limited to the issuing key's present rights, and
to the environment's present products (interface "Authentication" rule 1). Writing calls check again
inside their transaction, where `Authority.confirm` holds the records that the answer depends on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.engine.audit import NO_SOURCE, PROGRAM, Actor, CallSource, Trace
from payments_core.engine.decision import lock_shared
from payments_core.errors import (
    EntitlementRequired,
    InsufficientPermissions,
    StorageLimitReached,
    Unauthorized,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get
from payments_core.tenants.record import (
    PERMISSION_PRODUCTS,
    SCOPE_PRODUCT,
    ClientSession,
    Environment,
    Key,
    OperatorSession,
)

Caller = Literal["server", "client", "payer", "trusted", "public", "operator"]


@attrs.frozen
class Requirement:
    """The requirement of a route.

    `scopes` apply to server keys and `permissions` to client tokens; all of them are needed. An
    operator has every scope, whose products must be enabled. `products` must be enabled for every
    caller. `standard_only` refuses restricted keys. A `public` call has no credential at all: it
    names its app, and the settings decide on its origin.
    """

    __repr__ = brief_repr

    caller: Caller
    scopes: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    standard_only: bool = False


MAX_PERSON_CHARACTERS = 200
"""The maximum length of a name in the audit trail."""

SYSTEM_REQUIREMENT = Requirement("trusted")


def authorize(
    requirement: Requirement,
    environment: Environment,
    key: Key | None,
    session: ClientSession | None,
    payment_id: str | None = None,
    operator: OperatorSession | None = None,
) -> None:
    """Return if the call is allowed.

    Raises InsufficientPermissions if the credential lacks something, and then
    EntitlementRequired if the environment lacks a product.
    """
    if requirement.caller == "trusted":
        return
    needed: list[str] = []
    if requirement.caller == "public":
        pass  # public calls depend only on the products
    elif requirement.caller == "payer":
        if payment_id is None:
            raise Unauthorized()
    elif requirement.caller == "client":
        if session is None:
            raise Unauthorized()
        _require_all(requirement.permissions, session.permissions)
        needed = [p for name in requirement.permissions for p in PERMISSION_PRODUCTS[name]]
    elif requirement.caller == "operator":
        if operator is None:
            raise Unauthorized()
        needed = [SCOPE_PRODUCT[scope] for scope in requirement.scopes]
    else:
        if key is None or key.kind == "publishable":
            raise Unauthorized()
        if requirement.standard_only:
            require_standard_key(key)
        if key.kind == "restricted":
            _require_all(requirement.scopes, key.scopes)
        needed = [SCOPE_PRODUCT[scope] for scope in requirement.scopes]
    for product in (*needed, *requirement.products):
        if product not in environment.products:
            raise EntitlementRequired(product)


def _require_all(needed: tuple[str, ...], granted: tuple[str, ...]) -> None:
    missing = tuple(name for name in needed if name not in granted)
    if missing:
        raise InsufficientPermissions(missing)


def effective_scopes(environment: Environment, key: Key) -> tuple[str, ...]:
    """The scopes that a key has now: a standard key's follow the products (contract §2)."""
    enabled = {s for s, product in SCOPE_PRODUCT.items() if product in environment.products}
    granted = SCOPE_PRODUCT.keys() if key.kind == "standard" else key.scopes
    return tuple(sorted(enabled & set(granted)))


def key_is_live(key: Key, now: Instant) -> bool:
    """Whether a key opens anything now."""
    return key.revoked_at_ms is None and (key.expires_at_ms is None or now < key.expires_at_ms)


def require_standard_key(key: Key | None) -> None:
    """Raise InsufficientPermissions for a server key that is not a standard key."""
    if key is not None and key.kind != "standard":
        raise InsufficientPermissions(("a standard key",))


def session_is_valid(session: ClientSession, environment: Environment) -> bool:
    """Whether neither a session nor the key that made it was revoked.

    An expired key does not end its sessions.
    """
    issuer = environment.key(session.issuer_key_id)
    return session.revoked_at_ms is None and issuer is not None and issuer.revoked_at_ms is None


@attrs.frozen(kw_only=True, slots=False)
class Authority:
    """A call's proven identity, and its rights.

    `key` is the server key, `session` the client session, `operator` the log-in of the
    environment's operator; a trusted authority, for embedding programs, has none of them but the
    `host` in whose name it acts, and a public one has the `origin` that the browser sent.
    `needs_room` is for writes that a full environment refuses. `api_version` is the version that
    the call is bound to. `source` is where the call came from; the resource sets its `operation`
    and the ids that it names, for the audit trail.

    >>> shop.authority
    <Authority: trusted, sandbox environment env_...>
    >>> service.acting_as(shop.authority).payments.read(paid.id).payment.status
    'succeeded'
    """

    requirement: Requirement
    environment: Environment
    key: Key | None = None
    session: ClientSession | None = None
    operator: OperatorSession | None = None
    payment_id: str | None = None
    origin: str | None = None
    needs_room: bool = False
    api_version: str
    host: Actor = PROGRAM
    source: CallSource = NO_SOURCE
    operation: str | None = None
    named_ids: tuple[str, ...] = ()

    checked_by_class: ClassVar[bool] = True

    def __repr__(self) -> str:
        caller, environment = self.requirement.caller, self.environment
        return f"<Authority: {caller}, {environment.mode} environment {environment.id}>"

    @property
    def partition(self) -> str:
        """The environment's id."""
        return self.environment.id

    @property
    def mode(self) -> str:
        """The environment's mode."""
        return self.environment.mode

    @property
    def account_id(self) -> str:
        """The account that a client token is bound to. Raises Unauthorized for others."""
        if self.session is None:
            raise Unauthorized()
        return self.session.account_id

    def require_payment(self, payment_id: str) -> None:
        """Return if a payer's authority is for this Payment. Raises Unauthorized."""
        if self.requirement.caller != "trusted" and self.payment_id != payment_id:
            raise Unauthorized()

    @property
    def principal(self) -> str:
        """The principal of retries: the app for server keys, the account for client tokens, the
        operator for log-ins, and app and origin for public creation (contract §4)."""
        if self.operator is not None:
            return f"operator:{self.operator.operator_id}"
        if self.session is not None:
            return account_principal(self.session.account_id)
        if self.payment_id is not None:
            return f"payment:{self.payment_id}"
        if self.requirement.caller == "public":
            return f"origin:{self.environment.app_id}:{self.origin}"
        return app_principal(self.environment.app_id)

    @property
    def actor(self) -> Actor:
        """Who acts, for the audit trail."""
        if self.operator is not None:
            return Actor("operator", self.operator.username)
        if self.session is not None:
            return Actor("client_session", self.session.id, self.session.account_id)
        if self.key is not None:
            return Actor("key", self.key.id, self.key.name or None)
        if self.requirement.caller == "payer":
            return Actor("payer", self.payment_id)
        if self.requirement.caller == "public":
            return Actor("public", None, self.origin)
        return self.host

    @property
    def trace(self) -> Trace | None:
        """The trace of the operation, None for reads."""
        if self.operation is None:
            return None
        return Trace(self.actor, self.operation, self.named_ids, self.source)

    def name_person(self, person: str) -> Authority:
        """The authority of a program that acts for a person. Raises ValidationFailed."""
        if not 0 < len(person) <= MAX_PERSON_CHARACTERS or not person.isprintable():
            raise ValidationFailed.at(
                "person", f"must have 1 to {MAX_PERSON_CHARACTERS} printable characters"
            )
        return evolve(self, host=evolve(self.host, id=person))

    def trace_as(self, operation: str, named_ids: tuple[str, ...]) -> Authority:
        """The authority, whose commits leave an entry in the audit trail. An operation that calls
        another one keeps its own name."""
        if self.operation is not None:
            return self
        return evolve(self, operation=operation, named_ids=named_ids)

    def require_allowed(self) -> None:
        """Return if its credential and environment meet the requirement. Raises as `authorize`."""
        authorize(
            self.requirement,
            self.environment,
            self.key,
            self.session,
            self.payment_id,
            self.operator,
        )

    @property
    def reads(self) -> Sequence[Get]:
        """The queries of `confirm`."""
        relied: list[Get] = [Get(Environment, self.environment.id, "shared")]
        if self.session is not None:
            relied.append(Get(ClientSession, self.session.id, "shared"))
        if self.operator is not None:
            relied.append(Get(OperatorSession, self.operator.id, "shared"))
        return relied

    def confirm(self, tx: Transaction) -> None:
        """Hold the records that this authority depends on; raise if it is no longer valid.

        They are read again rather than held as they were: a hold that fails ends the transaction,
        and most changes of an environment do not affect this caller.
        """
        self.confirm_in(lock_shared(tx, Environment, self.environment.id), tx)

    def confirm_in(self, environment: Environment | None, tx: Transaction) -> None:
        """As `confirm`, in an environment that is held already."""
        if environment is None:
            raise Unauthorized()
        if environment.version != self.environment.version:
            key = environment.key(self.key.id) if self.key else None
            if self.key is not None and (key is None or key.revoked_at_ms is not None):
                raise Unauthorized()
            evolve(self, environment=environment, key=key).require_allowed()
        if self.needs_room:
            _require_below_limit(environment)
        if self.session is not None:
            session = lock_shared(tx, ClientSession, self.session.id)
            if session is None or not session_is_valid(session, environment):
                raise Unauthorized()
        if self.operator is not None and lock_shared(tx, OperatorSession, self.operator.id) is None:
            raise Unauthorized()  # logged out meanwhile


@attrs.frozen
class AuthorityToChange:
    """The authority of a call that changes its environment, which it holds exclusively at once:
    two calls that both held it shared would wait for each other."""

    authority: Authority

    @property
    def partition(self) -> str:
        """The environment's id."""
        return self.authority.partition

    @property
    def mode(self) -> str:
        """The environment's mode."""
        return self.authority.mode

    @property
    def reads(self) -> Sequence[Get]:
        """The queries of `confirm`."""
        _, *others = self.authority.reads
        return (Get(Environment, self.partition, "exclusive"), *others)

    @property
    def trace(self) -> Trace | None:
        """The trace of the operation."""
        return self.authority.trace

    def confirm(self, tx: Transaction) -> None:
        """Hold the records of the authority. Raises as `Authority.confirm`."""
        self.authority.confirm_in(tx.get(Environment, self.partition, for_update=True), tx)


def app_principal(app_id: str) -> str:
    """The principal of retries with a server key."""
    return f"app:{app_id}"


def account_principal(account_id: str) -> str:
    """The principal of retries with a client token."""
    return f"account:{account_id}"


def require_room(authority: Authority) -> Authority:
    """The authority, whose commit is refused if its environment stores as much as it may.

    It is for what a partner stores besides its Payments. What moves money needs no room.
    """
    return evolve(authority, needs_room=True)


def _require_below_limit(environment: Environment) -> None:
    """Return if an environment may store more. Raises StorageLimitReached."""
    stored, limit = environment.stored_bytes, environment.effective_storage_limit_bytes
    if stored is not None and stored >= limit:
        assert environment.counted_at_ms is not None
        raise StorageLimitReached(stored, limit, environment.counted_at_ms)


def require_product(authority: Authority, product: str) -> Authority:
    """The authority, which also needs the product in its environment, also at the commit.

    Raises EntitlementRequired.
    """
    requirement = evolve(authority.requirement, products=(*authority.requirement.products, product))
    narrowed = evolve(authority, requirement=requirement)
    narrowed.require_allowed()
    return narrowed
