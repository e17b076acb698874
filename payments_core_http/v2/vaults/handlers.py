"""Vaults, with their policies, mandates and yield settings, for the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from payments_core.accounts.vaults.record import AllowedDestination, PolicyTerms
from payments_core.clock import parse_iso, to_datetime
from payments_core.engine.idempotency.record import Response
from payments_core.payments.mandates.operations import NewMandate
from payments_core_http.calls import ApiCall
from payments_core_http.v2.vaults import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def list_vaults(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """An account's vaults, by chain."""
    page = call.resources.vaults.list(
        call.path["accountId"], after=call.decode_position(), limit=call.query.limit
    )
    return call.respond_page(page, views.vault)


def provision(service: PaymentsService, call: ApiCall[bodies.ProvisionVault, None]) -> Response:
    """The account's vault on a chain: 201 if it was made, 200 if it was there."""
    return call.run_idempotent(
        lambda idempotent: call.resources.vaults.provision(
            call.path["accountId"], call.body.chainId, idempotency_key=idempotent
        ),
        views.provisioned_vault,
        status=lambda provisioned: 201 if provisioned.is_new else 200,
    )


def read_policy(service: PaymentsService, call: ApiCall[None, bodies.PolicyQuery]) -> Response:
    """A vault's policy, in its current or an earlier version."""
    found = call.resources.vaults.read_policy(
        call.path["accountId"],
        call.path["vaultId"],
        policy_version=call.query.version,
    )
    return call.respond(views.policy(found))


def replace_policy(service: PaymentsService, call: ApiCall[bodies.ReplacePolicy, None]) -> Response:
    """A vault's policy in its next version."""
    body = call.body
    terms = PolicyTerms(
        status=body.status,
        per_payment_limit=body.perPaymentLimit,
        daily_limit=body.dailyLimit,
        allowed_chains=body.allowedChains,
        allowed_assets=body.allowedAssets,
        allowed_destinations=_destinations(body.allowedDestinations),
    )
    return call.run_idempotent(
        lambda idempotent: call.resources.vaults.replace_policy(
            call.path["accountId"],
            call.path["vaultId"],
            terms,
            policy_version=body.version,
            idempotency_key=idempotent,
        ),
        views.policy,
    )


def read_yield_settings(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """A vault's yield settings."""
    found = call.resources.vaults.read_yield_settings(call.path["accountId"], call.path["vaultId"])
    return call.respond(views.yield_settings(found))


def replace_yield_settings(
    service: PaymentsService, call: ApiCall[bodies.ReplaceYieldSettings, None]
) -> Response:
    """A vault's new yield settings."""
    return call.run_idempotent(
        lambda idempotent: call.resources.vaults.replace_yield_settings(
            call.path["accountId"],
            call.path["vaultId"],
            enabled=call.body.enabled,
            strategy=call.body.strategy,
            idempotency_key=idempotent,
        ),
        views.yield_settings,
    )


def list_mandates(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """An account's mandates, newest first."""
    page = call.resources.mandates.list(
        call.path["accountId"], after=call.decode_position(), limit=call.query.limit
    )
    return call.respond_page(page, views.mandate)


def create_mandate(service: PaymentsService, call: ApiCall[bodies.CreateMandate, None]) -> Response:
    """A new mandate over one of the account's vaults."""
    body = call.body
    new = NewMandate(
        vault_id=body.vaultId,
        asset_symbol=body.assetSymbol,
        amount_per_period=body.amountPerPeriod,
        period=body.period,
        expires_at=UNSET if body.expiresAt is UNSET else to_datetime(parse_iso(body.expiresAt)),
        reference=body.reference,
        metadata=body.metadata,
    )
    return call.run_idempotent(
        lambda idempotent: call.resources.mandates.create(
            call.path["accountId"], new, idempotency_key=idempotent
        ),
        views.mandate,
    )


def revoke_mandate(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The end of a mandate; ending it twice gives the same response."""
    return call.run_idempotent(
        lambda idempotent: call.resources.mandates.revoke(
            call.path["accountId"],
            call.path["mandateId"],
            idempotency_key=idempotent,
        ),
        views.mandate,
    )


def _destinations(
    given: tuple[bodies.AllowedWallet | bodies.AllowedAccount, ...] | None,
) -> tuple[AllowedDestination, ...] | None:
    if given is None:
        return None
    return tuple(
        AllowedDestination(type=item.type, account_id=item.accountId)
        if isinstance(item, bodies.AllowedAccount)
        else AllowedDestination(type=item.type, address=item.address, chain_id=item.chainId)
        for item in given
    )
