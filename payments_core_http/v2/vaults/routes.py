"""Rows of vaults, their policies and yield settings, and of mandates."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core.tenants.authorization import Requirement
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.vaults import bodies, views
from payments_core_http.v2.vaults import handlers as vaults
from payments_core_http.wire.query import PageQuery

VAULTS_KEY = Requirement("server", scopes=("v2:vaults",))

VAULTS = (
    Route(
        "GET", "/v2/accounts/{accountId}/vaults", vaults.list_vaults, needs=VAULTS_KEY,
        query=PageQuery, errors=(NotFound,),
        response=ListOf(views.VaultDetailsView),
        summary="List an account's vaults.",
    ),
    Route(
        "POST", "/v2/accounts/{accountId}/vaults", vaults.provision, needs=VAULTS_KEY,
        body=bodies.ProvisionVault, success=201, success_if_existing=200,
        errors=(NotFound, errors.InvalidState, errors.UnsupportedChain),
        response=views.VaultDetailsView,
        summary="Create the account's vault on a chain; 200 if it has one.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/vaults/{vaultId}/policy", vaults.read_policy,
        needs=VAULTS_KEY, query=bodies.PolicyQuery, errors=(NotFound,),
        response=views.PolicyView,
        summary="Read a vault's policy, in its current or an earlier version.",
    ),
    Route(
        "PUT", "/v2/accounts/{accountId}/vaults/{vaultId}/policy", vaults.replace_policy,
        needs=VAULTS_KEY, body=bodies.ReplacePolicy, errors=(NotFound, errors.ResourceConflict),
        response=views.PolicyView,
        summary="Replace a vault's policy as a whole; an absent field means no limit.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/vaults/{vaultId}/yield-settings",
        vaults.read_yield_settings, needs=VAULTS_KEY, errors=(NotFound,),
        response=views.YieldSettingsView,
        summary="Read a vault's yield settings.",
    ),
    Route(
        "PUT", "/v2/accounts/{accountId}/vaults/{vaultId}/yield-settings",
        vaults.replace_yield_settings, needs=VAULTS_KEY, body=bodies.ReplaceYieldSettings,
        errors=(NotFound, errors.CapabilityNotActive),
        response=views.YieldSettingsView,
        summary="Replace a vault's yield settings.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/mandates", vaults.list_mandates, needs=VAULTS_KEY,
        query=PageQuery, errors=(NotFound,),
        response=ListOf(views.MandateView), operation="listMandates",
        summary="List an account's mandates, newest first.",
    ),
    Route(
        "POST", "/v2/accounts/{accountId}/mandates", vaults.create_mandate, needs=VAULTS_KEY,
        body=bodies.CreateMandate, success=201,
        errors=(
            NotFound, errors.AccountSuspended, errors.UnsupportedAsset, errors.AmountOutOfRange,
            errors.StorageLimitReached,
        ),
        response=views.MandateView, operation="createMandate",
        summary="Approve collections from a vault, up to an amount per period.",
    ),
    Route(
        "DELETE", "/v2/accounts/{accountId}/mandates/{mandateId}", vaults.revoke_mandate,
        needs=VAULTS_KEY, errors=(NotFound,),
        response=views.MandateView, operation="revokeMandate",
        summary="Revoke a mandate.",
    ),
)  # fmt: skip
