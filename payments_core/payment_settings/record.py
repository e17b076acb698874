"""Payment settings as they are stored (contract §6 "Public checkout").

There is one row for each environment, and no row until they are first set: DEFAULTS apply then.
A Payment copies its terms when it is created; later changes do not affect it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal, get_args

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import DAY, SECOND, Instant
from payments_core.engine.decision import lock_shared
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get
from payments_core.storage.records import Collection, Record

PaymentMethod = Literal["vault", "direct", "routing", "hosted_onramp"]
PAYMENT_METHODS: tuple[PaymentMethod, ...] = get_args(PaymentMethod)
"""The methods to pay a Payment."""

SETTINGS_ID = "payment_settings"
"""The id of an environment's one row."""

AMOUNT_DECIMALS = 6
"""The maximum number of decimals of the minimum and maximum amount, for any asset."""


@attrs.frozen(kw_only=True)
class AllowedWallet:
    """An address on a chain that public Payments may pay, in its canonical form."""

    chain_id: int
    address: str


@attrs.frozen(kw_only=True)
class Branding:
    """The partner's branding on the checkout page. `currency` (ISO 4217) is the one that the
    merchant's prices are in; None means US dollars."""

    __repr__ = brief_repr

    name: str | None = None
    logo_url: str | None = None
    primary_color: str | None = None
    currency: str | None = None


@attrs.frozen(kw_only=True)
class PaymentTerms:
    """The terms of the settings.

    Only public creation is bound by `enabled`, the allowed origins and destinations, `chains`,
    `assets` and the minimum and maximum amount, decimal strings; if the chain or the asset is left
    open, it takes the service's own default, or the first of a list that lacks it. None means no
    limit. `allowed_methods`, the expiry and the URLs apply to every Payment whose creation gives
    none; the rest applies to every Payment. `confirmations` has, by chain, how many
    blocks must be on top of one before it is final for a Payment.

    >>> terms = PaymentTerms(fee_bps=100, branding=Branding(name="The shop"))
    >>> shop.payment_settings.replace(terms).terms == terms
    True
    """

    __repr__ = brief_repr

    enabled: bool = False
    allowed_origins: tuple[str, ...] = ()
    allowed_destinations: tuple[AllowedWallet, ...] = ()
    allowed_methods: tuple[PaymentMethod, ...] = PAYMENT_METHODS
    chains: tuple[int, ...] | None = None
    assets: tuple[str, ...] | None = None
    min_amount: str | None = None
    max_amount: str | None = None
    expires_in_s: int = 3_600
    monitoring_s: int = DAY // SECOND
    tolerance_bps: int = 0
    fee_bps: int = 0
    confirmations: Mapping[int, int] = attrs.field(factory=dict)
    success_url: str | None = None
    cancel_url: str | None = None
    branding: Branding = Branding()

    def allows_origin(self, origin: str | None) -> bool:
        """Whether a browser on that origin may create Payments."""
        return self.enabled and origin is not None and origin in self.allowed_origins

    def freeze_for_payment(
        self, chain_id: int, *, now: Instant, expires_in_s: int | None = None
    ) -> dict[str, Any]:
        """The terms that a Payment on that chain copies permanently, by its fields' names.

        `expires_in_s` is the expiry given at its creation.
        """
        lasts_s = self.expires_in_s if expires_in_s is None else expires_in_s
        expires_at = now + lasts_s * SECOND
        return {
            "fee_bps": self.fee_bps,
            "tolerance_bps": self.tolerance_bps,
            "confirmations": self.confirmations.get(chain_id, 0),
            "expires_at_ms": expires_at,
            "monitoring_expires_at_ms": expires_at + self.monitoring_s * SECOND,
        }


DEFAULT_TERMS = PaymentTerms()


@attrs.frozen(kw_only=True, slots=False)
class PaymentSettings(Record):
    """The settings of an environment; `settings_version` rises by one with every change.

    >>> shop.payment_settings.read().terms.branding
    Branding(name='The shop')
    """

    collection: ClassVar[Collection] = Collection("payment_settings", schema=2)

    settings_version: int = 0
    terms: PaymentTerms = DEFAULT_TERMS
    created_at_ms: Instant | None = None
    updated_at_ms: Instant | None = None

    created_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("updated_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class PaymentSettingsVersion(Record):
    """The terms of one version of the settings; the id ends in its number."""

    collection: ClassVar[Collection] = Collection("payment_settings_versions", schema=2)

    terms: PaymentTerms
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


DEFAULT_SETTINGS = PaymentSettings(id=SETTINGS_ID)


READ_SETTINGS = Get(PaymentSettings, SETTINGS_ID, "shared", is_optional=True)
"""The queries of `lock_settings`."""


def lock_settings(tx: Transaction) -> PaymentSettings:
    """The settings as they are until the commit, or DEFAULT_SETTINGS."""
    return lock_shared(tx, PaymentSettings, SETTINGS_ID) or DEFAULT_SETTINGS
