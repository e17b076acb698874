"""Rows of Money Accounts."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import Route
from payments_core_http.v1.accounts import bodies, views
from payments_core_http.v1.accounts import handlers as accounts
from payments_core_http.v1.requirements import ACCOUNTS_KEY, ANYBODY, ANYBODY_DEPOSITS

LEGACY_ACCOUNTS = (
    Route(
        "POST", "/sdk/v1/register", accounts.register, needs=ACCOUNTS_KEY,
        body=bodies.RegisterMoneyAccount,
        errors=(
            errors.UsernameTaken, errors.UnsupportedChain, errors.UnsupportedAsset,
            errors.ScreeningRefused, errors.DependencyFailed, errors.StorageLimitReached,
        ),
        response=views.MoneyAccountResponse, operation="registerLegacyUser",
        summary="Create a Money Account.",
    ),
    Route(
        "GET", "/sdk/v1/check-username", accounts.check_username, needs=ANYBODY,
        credential="basic_app_id", query=bodies.WantedUsername,
        response=views.UsernameAvailabilityResponse, operation="checkLegacyUsername",
        summary="Check whether an account could have a username.",
    ),
    Route(
        "POST", "/sdk/v1/update-username", accounts.set_username, needs=ACCOUNTS_KEY,
        body=bodies.ChooseUsername,
        errors=(NotFound, errors.AccountSuspended, errors.InvalidState, errors.UsernameTaken),
        response=views.ChosenUsernameResponse, operation="setLegacyUsername",
        summary="Give an account its username, once.",
    ),
    Route(
        "POST", "/sdk/v1/add-address", accounts.add_address, needs=ACCOUNTS_KEY,
        body=bodies.AddAddress,
        errors=(
            NotFound, errors.AccountSuspended, errors.ActionAlreadyUsed, errors.ResourceConflict,
            errors.ScreeningRefused, errors.DependencyFailed, errors.StorageLimitReached,
        ),
        response=views.LinkedAddressesResponse, operation="addLegacyAddress",
        summary="Link a wallet to an account by the wallet's signature of a message.",
    ),
    Route(
        "POST", "/sdk/v1/update-preferences", accounts.set_preferences, needs=ACCOUNTS_KEY,
        body=bodies.ChoosePreferences,
        errors=(
            NotFound, errors.AccountSuspended, errors.UnsupportedChain, errors.UnsupportedAsset,
        ),
        response=views.PreferencesResponse, operation="setLegacyPreferences",
        summary="Set the chain and token in which an account is to be paid.",
    ),
    Route(
        "POST", "/sdk/v1/generate", accounts.generate_address, needs=ANYBODY_DEPOSITS,
        credential="basic_app_id", body=bodies.GenerateAddress, idempotency="ignored",
        policy="legacy_deposit_addresses", creation_policy="legacy_deposit_addresses_minute",
        errors=(NotFound, errors.AccountSuspended, errors.UnsupportedChain),
        response=views.GeneratedAddressResponse, operation="generateLegacyAddress",
        summary="Get an account's deposit address on a chain; every call returns the same one.",
    ),
    Route(
        "GET", "/sdk/v1/get-user", accounts.read_user, needs=ACCOUNTS_KEY,
        query=bodies.NamedUser, errors=(NotFound,),
        response=views.MoneyAccountResponse, operation="readLegacyUser",
        summary="Read a Money Account by its id or its username.",
    ),
    Route(
        "GET", "/sdk/v1/get-user-byaddress", accounts.read_address_owner, needs=ACCOUNTS_KEY,
        query=bodies.UserAddress, errors=(NotFound,),
        response=views.AddressOwnerResponse, operation="readLegacyAddressOwner",
        summary="Read the Money Account that a wallet address is linked to.",
    ),
    Route(
        "GET", "/sdk/v1/resolve", accounts.resolve, needs=ANYBODY, credential="basic_app_id",
        query=bodies.UserPaymentAddress, errors=(NotFound,),
        response=views.ResolvedAddressResponse, operation="resolveLegacyAddress",
        summary="Read the account that a payment address pays.",
    ),
    Route(
        "GET", "/sdk/v1/is-kyc-done", accounts.read_kyc, needs=ANYBODY, credential="basic_app_id",
        query=bodies.AnyNameOfUser, errors=(NotFound,),
        response=views.KycDoneResponse, operation="readLegacyKyc",
        summary="Check whether an account is verified.",
    ),
)  # fmt: skip
