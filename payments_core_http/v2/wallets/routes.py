"""Rows of an account's wallets."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.requirements import ACCOUNTS_KEY
from payments_core_http.v2.wallets import bodies, views
from payments_core_http.v2.wallets import handlers as wallets
from payments_core_http.wire.query import PageQuery

WALLETS = (
    Route(
        "POST", "/v2/accounts/{accountId}/wallets/challenge", wallets.create_challenge,
        needs=ACCOUNTS_KEY, body=bodies.CreateChallenge, success=201,
        errors=(
            NotFound, errors.AccountSuspended, errors.UnsupportedChain, errors.StorageLimitReached,
        ),
        response=views.ChallengeView, operation="createWalletChallenge",
        summary="Request the text that a wallet signs to be linked.",
    ),
    Route(
        "POST", "/v2/accounts/{accountId}/wallets", wallets.add, needs=ACCOUNTS_KEY,
        body=bodies.AddWallet, success=201,
        errors=(
            NotFound, errors.AccountSuspended, errors.ActionAlreadyUsed,
            errors.ActionExpired, errors.ResourceConflict, errors.DependencyFailed,
            errors.ScreeningRefused, errors.StorageLimitReached,
        ),
        response=views.WalletView,
        summary="Link the wallet that signed a challenge.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/wallets", wallets.list_wallets, needs=ACCOUNTS_KEY,
        query=PageQuery, errors=(NotFound,),
        response=ListOf(views.WalletView),
        summary="List an account's wallets, oldest first.",
    ),
    Route(
        "DELETE", "/v2/accounts/{accountId}/wallets/{walletId}", wallets.remove,
        needs=ACCOUNTS_KEY, errors=(NotFound,),
        response=views.WalletView,
        summary="Unlink a wallet; its address is free for another account.",
    ),
)  # fmt: skip
