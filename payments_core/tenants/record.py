"""Apps, environments, keys and client sessions as they are stored.

An environment is one record in its own partition, with its keys inside: a reader knows
all rights at one moment, and its version changes with every grant and revocation. Writing calls
hold it, so that none commits with rights that were revoked meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.credentials.secrets import Mode, SecretKind
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.storage.records import Collection, Index, Record, Unique

PRODUCTS = (
    "accounts",
    "payments",
    "public_checkout",
    "deposit_addresses",
    "kyc",
    "vaults",
    "webhooks",
    "bank_payouts",
    "bank_funding",
    "hosted_onramp",
    "legacy_sdk",
)
DEFAULT_PRODUCTS = tuple(product for product in PRODUCTS if product != "legacy_sdk")
"""Most routes of the legacy interface need no secret: only an app that uses them should open them.
"""


STORAGE_LIMIT_BYTES = 20_000_000_000
"""How many bytes an environment without a limit of its own may store."""

SCOPE_PRODUCT: Mapping[str, str] = {
    "v2:accounts": "accounts",
    "v2:payments": "payments",
    "v2:deposit_addresses": "deposit_addresses",
    "v2:kyc": "kyc",
    "v2:vaults": "vaults",
    "v2:webhooks": "webhooks",
    "v2:console": "webhooks",
}

PERMISSION_PRODUCTS: Mapping[str, tuple[str, ...]] = {
    "account:read": ("accounts",),
    "payments:read": ("payments",),
    "payments:write": ("payments",),
    "deposits:read": ("deposit_addresses",),
    "deposits:write": ("deposit_addresses",),
    "vault_payments:write": ("payments", "vaults"),
}


@attrs.frozen(kw_only=True)
class Key:
    """One secret of an environment, by its digest. A restricted key keeps its own scopes.

    >>> key, secret = service.tenants.create_key(
    ...     app.environments["sandbox"], "restricted", "reports", scopes=("v2:payments",)
    ... )
    >>> key.scopes
    ('v2:payments',)
    """

    __repr__ = brief_repr

    id: str
    kind: SecretKind
    name: str
    digest: str = attrs.field(repr=False)
    scopes: tuple[str, ...] = ()
    created_at_ms: Instant
    expires_at_ms: Instant | None = None
    revoked_at_ms: Instant | None = None

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    expires_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("expires_at_ms")
    revoked_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("revoked_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class Environment(Record):
    """One mode of an app: its rights, its version pin, its keys. The id is its partition.

    `rate_limits` has its own limits, by the rule of a rate policy, and `storage_limit_bytes` its
    own limit of what it may store. It stored `stored_bytes` when they were last counted, at
    `counted_at`; both are None until then.

    >>> service.tenants.get_environment(app.environments["production"]).mode
    'production'
    """

    collection: ClassVar[Collection] = Collection("environments", columns={"app_id": str}, schema=3)

    app_id: str
    partner_id: str
    app_name: str
    mode: Mode
    api_version: str
    products: tuple[str, ...]
    keys: tuple[Key, ...] = ()
    rate_limits: Mapping[str, int] = attrs.field(factory=dict)
    storage_limit_bytes: int | None = None
    stored_bytes: int | None = None
    counted_at_ms: Instant | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    counted_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("counted_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    def __attrs_post_init__(self) -> None:
        # Every request reads its environment: one that nobody can change is decoded once.
        object.__setattr__(self, "rate_limits", MappingProxyType(dict(self.rate_limits)))

    @property
    def effective_storage_limit_bytes(self) -> int:
        """The limit of the environment's stored bytes: its own, or the default."""
        own = self.storage_limit_bytes
        return STORAGE_LIMIT_BYTES if own is None else own

    def key(self, key_id: str) -> Key | None:
        """The key of that id, in any state."""
        return next((key for key in self.keys if key.id == key_id), None)


@attrs.frozen(kw_only=True, slots=False)
class App(Record):
    """A directory row: which environments an app has, by mode.

    >>> app.partner_id, sorted(app.environments)
    ('shop', ['production', 'sandbox'])
    """

    collection: ClassVar[Collection] = Collection(
        "apps",
        columns={"created_at": int},
        indexes=(Index("by_created", order=("created_at",)),),
        schema=2,
    )

    name: str
    partner_id: str
    environments: Mapping[str, str]
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class PartnerName(Record):
    """A directory row, by the partner's slug: it belongs to one app."""

    collection: ClassVar[Collection] = Collection("partner_names")

    app_id: str


@attrs.frozen(kw_only=True, slots=False)
class CredentialIndexEntry(Record):
    """A directory row, by a secret's digest: in which environment, and which key it is.

    It has the app and the key's expiry, so that a secret with another app's id, and one that has
    expired, are refused without reading the environment; a revoked key has no row, like a
    secret that never existed. The key in its environment is authoritative.

    `master_key` is the name of the ring's key that made the digest; rows older than the field have
    none. A row that was remade under a later master key has the key's own digest in `key_digest`.
    """

    collection: ClassVar[Collection] = Collection(
        "secret_addresses",
        columns={"key_id": str},
        indexes=(Index("by_key", key=("key_id",)),),
        schema=2,
    )

    app_id: str
    environment_id: str
    key_id: str
    expires_at_ms: Instant | None = None
    master_key: str | None = None
    key_digest: str | None = attrs.field(default=None, repr=False)

    expires_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("expires_at_ms")

    @property
    def proven_digest(self) -> str:
        """The digest of the key that the secret belongs to."""
        return self.key_digest or self.id

    def may_open(self, app_id: str | None, now: Instant) -> bool:
        """Whether the secret has not expired and, if an app is named, belongs to it."""
        return app_id in (None, self.app_id) and (
            self.expires_at_ms is None or now < self.expires_at_ms
        )


@attrs.frozen(kw_only=True, slots=False)
class KeyUse(Record):
    """When a key was last used, to the minute; separate from the key, which every call holds."""

    collection: ClassVar[Collection] = Collection("key_uses", schema=2)

    last_used_at_ms: Instant

    last_used_at: ClassVar[FieldView[datetime]] = instant_view("last_used_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class Operator(Record):
    """A directory row, by mode and login name: an operator of an environment's dashboard.

    The hash contains its salt and cost. A session is bound to the password that it began with.

    >>> [(operator.username, operator.mode) for operator in service.operators.list()]
    [('ann', 'sandbox')]
    """

    collection: ClassVar[Collection] = Collection(
        "operators",
        columns={"environment_id": str, "created_at": int},
        indexes=(Index("by_created", order=("created_at",)),),
        uniques=(Unique("environment", ("environment_id",)),),
        schema=2,
    )

    username: str
    mode: Mode
    environment_id: str
    password_hash: str = attrs.field(repr=False)
    password_set_at_ms: Instant
    created_at_ms: Instant

    password_set_at: ClassVar[FieldView[datetime]] = instant_view("password_set_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


def operator_id(mode: str, username: str) -> str:
    """The id of the operator of that name: each mode has its own names."""
    return f"{mode}:{username}"


@attrs.frozen(kw_only=True, slots=False)
class OperatorSession(Record):
    """One log-in of an environment's operator; its token is sealed, so it is not stored.

    `password_set_at` is the operator's value at the log-in: a new password ends the sessions of the
    old one. The other instants are from the real clock, even if a sandbox's is ahead. `used_at` is
    exact to the minute. An ended session has no row.

    >>> begun = service.operator_sessions.begin("ann", renewed.password, mode="sandbox")
    >>> begun.session.username
    'ann'
    """

    collection: ClassVar[Collection] = Collection(
        "operator_sessions",
        columns={"began_at": int},
        indexes=(Index("by_beginning", order=("began_at",)),),
        schema=2,
    )

    operator_id: str
    username: str
    password_set_at_ms: Instant
    began_at_ms: Instant
    used_at_ms: Instant
    ends_at_ms: Instant

    password_set_at: ClassVar[FieldView[datetime]] = instant_view("password_set_at_ms")
    began_at: ClassVar[FieldView[datetime]] = instant_view("began_at_ms")
    used_at: ClassVar[FieldView[datetime]] = instant_view("used_at_ms")
    ends_at: ClassVar[FieldView[datetime]] = instant_view("ends_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class MasterKeyMark(Record):
    """A directory row, by a master key's name: its mark."""

    collection: ClassVar[Collection] = Collection(
        "master_key_marks", columns={}, indexes=(Index("all"),)
    )

    mark: str


@attrs.frozen(kw_only=True, slots=False)
class ClientSession(Record):
    """Access to one account, made by one key, until `expires_at` or its revocation.

    The tokens of a session are sealed, so none is stored.

    >>> session = server.client_sessions.create(external_user_id="eve").session
    >>> session.account_id == eve.id, session.permissions
    (True, ('account:read',))
    """

    collection: ClassVar[Collection] = Collection("client_sessions", schema=2)

    account_id: str
    issuer_key_id: str
    permissions: tuple[str, ...]
    api_version: str
    created_at_ms: Instant
    exchange_expires_at_ms: Instant
    expires_at_ms: Instant
    revoked_at_ms: Instant | None = None

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    exchange_expires_at: ClassVar[FieldView[datetime]] = instant_view("exchange_expires_at_ms")
    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")
    revoked_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("revoked_at_ms")

    @property
    def updated_at_ms(self) -> Instant:
        """When it last changed: only its revocation changes it."""
        return self.created_at_ms if self.revoked_at_ms is None else self.revoked_at_ms

    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class SessionExchange(Record):
    """The one exchange of a session, under the session's id; `nonce` identifies the call."""

    collection: ClassVar[Collection] = Collection("session_exchanges", schema=2)

    nonce: str
    exchanged_at_ms: Instant

    exchanged_at: ClassVar[FieldView[datetime]] = instant_view("exchanged_at_ms")
