"""Mandates: create, list, revoke (contract §5). Payments draw on them."""

from __future__ import annotations

from datetime import datetime

import attrs
from msgspec import UNSET, UnsetType

from payments_core.accounts.queries import list_for_account
from payments_core.accounts.record import Account
from payments_core.accounts.vaults.provisioning import require_own_vault
from payments_core.accounts.vaults.record import Vault
from payments_core.amounts import parse_positive_amount
from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant, from_datetime
from payments_core.engine.decision import Decision, lock_shared
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import AccountSuspended, NotFound, ValidationFailed
from payments_core.networks import DEFAULT_SYMBOL
from payments_core.payments.mandates import lifecycle
from payments_core.payments.mandates.record import Mandate, Period
from payments_core.storage.port import Page, Position, Transaction
from payments_core.tenants.authorization import Authority, require_room
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import (
    Amount,
    AssetSymbol,
    Id,
    MetadataInput,
    PageLimit,
    Reference,
)

MAX_INSTANT = 253_402_300_799_999
"""The end of the year 9999: no later moment can be written in ISO 8601."""


@attrs.frozen(kw_only=True)
class NewMandate:
    """The input of a mandate.

    `amount_per_period` is decimal text in whole tokens: the maximum that may be collected in each
    `period`. `vault_id` names a vault of the account, whose chain is the mandate's. `expires_at` is
    an aware datetime. Without it the mandate ends when it is revoked; None is refused, as it may be
    a lost value.

    >>> new = NewMandate(vault_id=vault.id, amount_per_period="10.00", period="month")
    >>> shop.mandates.create(eve.id, new, idempotency_key="mandate-1").status
    'active'
    """

    __repr__ = brief_repr

    vault_id: Id
    amount_per_period: Amount
    period: Period
    asset_symbol: AssetSymbol = DEFAULT_SYMBOL
    expires_at: datetime | UnsetType = UNSET
    reference: Reference | None = None
    metadata: MetadataInput | None = None


@attrs.frozen
class MandateDetails:
    """A mandate, with its status at the present time.

    >>> new = NewMandate(vault_id=vault.id, amount_per_period="10.00", period="week")
    >>> shop.mandates.create(eve.id, new).remaining_atomic
    10000000
    """

    __repr__ = brief_repr

    mandate: Mandate
    status: str
    remaining_atomic: int


class Mandates:
    """Creates, lists and revokes standing approvals to collect from vaults."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock

    @once_per_key
    def create(
        self,
        authority: Authority,
        account_id: str,
        new: NewMandate,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> MandateDetails:
        """A new mandate over a vault of the account.

        Raises ValidationFailed, NotFound, AccountSuspended, UnsupportedAsset, AmountOutOfRange,
        and StorageLimitReached if it has metadata.
        """
        if new.metadata:
            authority = require_room(authority)
        now = self._clock.now()
        expires_at_ms = None if new.expires_at is UNSET else from_datetime(new.expires_at)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[MandateDetails]:
            if expires_at_ms is not None and not now < expires_at_ms <= MAX_INSTANT:
                raise ValidationFailed.at(
                    "expires_at", "must be in the future, before the year 10000"
                )
            account = lock_shared(tx, Account, account_id)
            vault = require_own_vault(lock_shared(tx, Vault, new.vault_id), account)
            assert account is not None
            if account.status != "active":
                raise AccountSuspended(account.id, account.status)
            asset = self._networks.find_asset(vault.chain_id, new.asset_symbol)
            mandate = Mandate(
                id=id_sequence.issue("mandate"),
                account_id=account.id,
                vault_id=vault.id,
                chain_id=asset.chain_id,
                asset_symbol=asset.symbol,
                token_address=asset.address,
                decimals=asset.decimals,
                amount_per_period_atomic=parse_positive_amount(
                    new.amount_per_period, asset, "amount_per_period"
                ),
                period=new.period,
                expires_at_ms=expires_at_ms,
                reference=new.reference,
                metadata=new.metadata,
                created_at_ms=now,
                updated_at_ms=now,
            )
            return Decision(_details_at(mandate, now), inserts=(mandate,))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def list(
        self,
        authority: Authority,
        account_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[MandateDetails]:
        """The account's mandates, newest first. Raises NotFound."""
        now = self._clock.now()
        page = list_for_account(
            self._storage, authority, account_id, Mandate, after=after, limit=limit
        )
        return Page(tuple(_details_at(mandate, now) for mandate in page.records), page.next)

    @once_per_key
    def revoke(
        self,
        authority: Authority,
        account_id: str,
        mandate_id: str,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> MandateDetails:
        """End a mandate; Payments already drawn continue. May be repeated. Raises NotFound."""
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[MandateDetails]:
            if lock_shared(tx, Account, account_id) is None:
                raise NotFound("account")
            mandate = tx.get(Mandate, mandate_id, for_update=True)
            if mandate is None or mandate.account_id != account_id:
                raise NotFound("mandate")
            if mandate.status == "revoked":
                return Decision(_details_at(mandate, now))
            revoked = lifecycle.revoke(mandate, now=now)
            return revoked.as_decision(_details_at(revoked.record, now))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)


def _details_at(mandate: Mandate, now: Instant) -> MandateDetails:
    return MandateDetails(
        mandate, lifecycle.status_of(mandate, now), lifecycle.remaining(mandate, now)
    )
