# Printed from the OpenAPI document by docs/client: run `make client`.
"""Every operation of the service as a function that builds its call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from payments_core_http.client.bodies import (
    AccountDestination,
    AllowedAccountInput,
    BankDestination,
    BrandingInput,
    EventFilterInput,
    OnrampDestinationInput,
    OwnAccountInput,
    OwnersCall,
    PaymentAddressDestination,
    PaymentSettingsAllowedWallet,
    PostalAddress,
    Proof,
    Settlement,
    SettlementDomain,
    SettlementPayload,
    SettlementTypes,
    VaultsAllowedWallet,
    VaultSource,
    WalletDestination,
    WalletInput,
    WalletOnChainDestination,
)
from payments_core_http.client.calls import Call, PageCall, given
from payments_core_http.client.responses import (
    AccessToken,
    Account,
    AddressBalanceResponse,
    AddressHoldingsResponse,
    AddressOwnerResponse,
    Advanced,
    ArmedFailure,
    AuditEntry,
    BalanceRow,
    Balances,
    BankAccount,
    BankAccountRequirements,
    BankDeposit,
    BankTransaction,
    Capabilities,
    CapabilityActivation,
    Chain,
    Challenge,
    Check,
    CheckoutState,
    ChosenUsernameResponse,
    ClientSession,
    CreatedClientSession,
    CreatedPayment,
    CreatedPublicPayment,
    CreatedRefund,
    DecidedOrder,
    DecidedPayout,
    Deliveries,
    Delivery,
    Deposit,
    DepositAddress,
    DepositInstructions,
    Endpoint,
    Endpoints,
    EndpointWithHealth,
    EndpointWithSecret,
    Event,
    ExchangedLink,
    FlaggedSession,
    Funded,
    FundedOption,
    GeneratedAddressResponse,
    Health,
    KycDoneResponse,
    LinkedAddressesResponse,
    LoggedRequest,
    Mandate,
    Methods,
    MoneyAccountResponse,
    OneEndpoint,
    OnrampBankAccount,
    OnrampRequirements,
    OwnAccount,
    PartnerConfig,
    PayerPayment,
    Payment,
    PaymentOption,
    PaymentSettings,
    PayoutRow,
    Policy,
    PreferencesResponse,
    PublicPayment,
    PublicPaymentOption,
    QuotedAddressResponse,
    QuoteResponse,
    Ran,
    Receipt,
    Receipts,
    RecipientPayment,
    RecoveringEndpoint,
    Refund,
    ResentEvent,
    ResolvedAddressResponse,
    RetriedDelivery,
    RoleModuleResponse,
    Sandbox,
    Session,
    SettlementResponse,
    SupportedChainsResponse,
    TestedEndpoint,
    TransactionResponse,
    TransactionRow,
    TransactionsResponse,
    Transferred,
    TransferStateResponse,
    Triggered,
    UsernameAvailabilityResponse,
    VaultDetails,
    Verification,
    Wallet,
    YieldSettings,
)
from payments_core_http.client.structs import Page


def partner_read_config() -> Call[PartnerConfig]:
    """Describe this credential and its permissions."""
    return Call(
        operation="readPartnerConfig",
        method="GET",
        path="/v2/partners/config",
        response=PartnerConfig,
        credential="app_secret",
    )


def payment_settings_read() -> Call[PaymentSettings]:
    """Read the settings that apply to all Payments of the environment. Needs a standard key."""
    return Call(
        operation="readPaymentSettings",
        method="GET",
        path="/v2/partners/payment-settings",
        response=PaymentSettings,
        credential="app_secret",
    )


def payment_settings_replace(
    *,
    enabled: bool,
    allowed_origins: Sequence[str] | UnsetType | None = UNSET,
    allowed_destinations: Sequence[PaymentSettingsAllowedWallet] | UnsetType | None = UNSET,
    allowed_methods: Sequence[Literal["vault", "direct", "routing", "hosted_onramp"]]
    | UnsetType
    | None = UNSET,
    chains: Sequence[int] | UnsetType | None = UNSET,
    assets: Sequence[str] | UnsetType | None = UNSET,
    min_amount: str | UnsetType | None = UNSET,
    max_amount: str | UnsetType | None = UNSET,
    expires_in_seconds: int | UnsetType | None = UNSET,
    monitoring_seconds: int | UnsetType | None = UNSET,
    underpayment_tolerance_bps: int | UnsetType | None = UNSET,
    fee_bps: int | UnsetType | None = UNSET,
    confirmations: Mapping[str, int] | UnsetType | None = UNSET,
    success_url: str | UnsetType | None = UNSET,
    cancel_url: str | UnsetType | None = UNSET,
    branding: BrandingInput | UnsetType | None = UNSET,
    version: int | UnsetType | None = UNSET,
    created_at: str | UnsetType | None = UNSET,
    updated_at: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[PaymentSettings]:
    """Replace all payment settings; existing Payments keep their settings. Needs a standard
    key. The whole settings: an absent field returns to its default, and null means no
    limit. `enabled` is required. `version` is the version that you read and replace, 0 if
    they were never set; a version that is not current is a conflict. `createdAt` and
    `updatedAt` are ignored, so that you can send back what you read.

    `enabled`: Whether pages on the allowed origins may create Payments.
    `allowed_origins`: The origins whose pages may frame the checkout page, and create Payments.
    `allowed_destinations`: The addresses that public Payments may pay.
    `allowed_methods`: The methods that payers may use.
    `chains`: The chains that Payments may be on; null means any chain.
    `assets`: The assets that Payments may be in; null means any asset.
    `min_amount`: The minimum amount of a Payment; null means no limit. A decimal string such as
      25.00, with no sign or exponent.
    `max_amount`: The maximum amount of a Payment; null means no limit. A decimal string such as
      25.00, with no sign or exponent.
    `expires_in_seconds`: After how many seconds a Payment expires, unless it sets its own.
    `monitoring_seconds`: For how many seconds after its end a Payment's escrow is watched.
    `underpayment_tolerance_bps`: How much of the amount may be missing, in hundredths of a
      percent.
    `fee_bps`: The fee of new Payments, in hundredths of a percent.
    `confirmations`: How many blocks must follow the block of a transfer, by chain.
    `success_url`: Where payers who have paid are sent, unless a Payment sets its own URL. An
      http(s) URL.
    `cancel_url`: Where payers who cancel are sent, unless a Payment sets its own URL. An
      http(s) URL.
    `branding`: Your brand on the checkout page.
    `version`: The version that you read; 0 if they were never set.
    `created_at`: Ignored, so that you can send back what you read.
    `updated_at`: Ignored, so that you can send back what you read.
    """
    return Call(
        operation="replacePaymentSettings",
        method="PUT",
        path="/v2/partners/payment-settings",
        response=PaymentSettings,
        credential="app_secret",
        body=given(
            {
                "enabled": enabled,
                "allowedOrigins": allowed_origins,
                "allowedDestinations": allowed_destinations,
                "allowedMethods": allowed_methods,
                "chains": chains,
                "assets": assets,
                "minAmount": min_amount,
                "maxAmount": max_amount,
                "expiresInSeconds": expires_in_seconds,
                "monitoringSeconds": monitoring_seconds,
                "underpaymentToleranceBps": underpayment_tolerance_bps,
                "feeBps": fee_bps,
                "confirmations": confirmations,
                "successUrl": success_url,
                "cancelUrl": cancel_url,
                "branding": branding,
                "version": version,
                "createdAt": created_at,
                "updatedAt": updated_at,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def client_sessions_create(
    *,
    external_user_id: str | UnsetType | None = UNSET,
    account_id: str | UnsetType | None = UNSET,
    expires_in_seconds: int | UnsetType | None = UNSET,
    permissions: Sequence[str] | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[CreatedClientSession]:
    """Give a browser or mobile app access to one account. Needs a standard key. Access for a
    browser or mobile app to one existing account.

    `external_user_id`: Your own id of the account's user.
    `account_id`: The account's id.
    `expires_in_seconds`: After how many seconds it expires.
    `permissions`: What the client may do.
    """
    return Call(
        operation="createClientSession",
        method="POST",
        path="/v2/client-sessions",
        response=CreatedClientSession,
        credential="app_secret",
        body=given(
            {
                "externalUserId": external_user_id,
                "accountId": account_id,
                "expiresInSeconds": expires_in_seconds,
                "permissions": permissions,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def client_sessions_revoke(client_session_id: str) -> Call[ClientSession]:
    """End a client session and its tokens at once. Needs a standard key."""
    return Call(
        operation="revokeClientSession",
        method="DELETE",
        path="/v2/client-sessions/{clientSessionId}",
        response=ClientSession,
        credential="app_secret",
        path_arguments={"clientSessionId": client_session_id},
    )


def accounts_create(
    *,
    external_user_id: str,
    subject_type: Literal["individual", "business"],
    username: str | UnsetType | None = UNSET,
    email: str | UnsetType | None = UNSET,
    wallets: Sequence[WalletInput] | UnsetType | None = UNSET,
    settlement: Settlement | UnsetType | None = UNSET,
    metadata: Mapping[str, Any] | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Account]:
    """Create an account, with a vault on every chain. Needs `v2:accounts`. A new account for
    one of your users.

    `external_user_id`: Your own id of the account's user.
    `subject_type`: Whether the account's holder is a person or a business.
    `username`: The name in the payment address; null without one. 3 to 20 letters, digits or
      underscores.
    `email`: The account's email address; null without one. An email address.
    `wallets`: The account's wallets.
    `settlement`: The chain and asset in which the account receives payments; null without a
      preference.
    `metadata`: Your own data; the service returns it unchanged.
    """
    return Call(
        operation="createAccount",
        method="POST",
        path="/v2/accounts",
        response=Account,
        credential="app_secret",
        body=given(
            {
                "externalUserId": external_user_id,
                "subjectType": subject_type,
                "username": username,
                "email": email,
                "wallets": wallets,
                "settlement": settlement,
                "metadata": metadata,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def accounts_list(
    *, external_user_id: str | None = None, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[Account], Account]:
    """List accounts, newest first. Needs `v2:accounts`. All accounts, or the account of an
    external user.
    """
    return PageCall(
        operation="listAccounts",
        method="GET",
        path="/v2/accounts",
        response=Page[Account],
        credential="app_secret",
        query={"externalUserId": external_user_id, "cursor": cursor, "limit": limit},
    )


def accounts_read(account_id: str) -> Call[Account]:
    """Read an account. Needs `v2:accounts`."""
    return Call(
        operation="readAccount",
        method="GET",
        path="/v2/accounts/{accountId}",
        response=Account,
        credential="app_secret",
        path_arguments={"accountId": account_id},
    )


def accounts_change(
    account_id: str,
    *,
    email: str | UnsetType | None = UNSET,
    metadata: Mapping[str, Any] | UnsetType | None = UNSET,
    status: Literal["active", "suspended", "closed"] | UnsetType = UNSET,
    idempotency_key: str | None = None,
) -> Call[Account]:
    """Change an account's email, metadata or status. Needs `v2:accounts`. An absent field
    stays as it is; null clears it.

    `email`: The account's email address; null clears it. An email address.
    `metadata`: Your own data; the service returns it unchanged.
    `status`: The new state.
    """
    return Call(
        operation="changeAccount",
        method="PATCH",
        path="/v2/accounts/{accountId}",
        response=Account,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"email": email, "metadata": metadata, "status": status}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def accounts_read_balances(account_id: str) -> Call[Balances]:
    """Read what the account's vaults hold, at the newest final block. Needs `v2:accounts`."""
    return Call(
        operation="readAccountBalances",
        method="GET",
        path="/v2/accounts/{accountId}/balances",
        response=Balances,
        credential="app_secret",
        path_arguments={"accountId": account_id},
    )


def accounts_read_capabilities(account_id: str) -> Call[Capabilities]:
    """List the bank flows that the account can use, and what is missing. Needs
    `v2:accounts`.
    """
    return Call(
        operation="readAccountCapabilities",
        method="GET",
        path="/v2/accounts/{accountId}/capabilities",
        response=Capabilities,
        credential="app_secret",
        path_arguments={"accountId": account_id},
    )


def accounts_set_handle(
    account_id: str, *, username: str, idempotency_key: str | None = None
) -> Call[Account]:
    """Give an account its username, once. Needs `v2:accounts`. The name of the account's
    payment address.

    `username`: The name in the payment address; null without one. 3 to 20 letters, digits or
      underscores.
    """
    return Call(
        operation="setAccountHandle",
        method="PUT",
        path="/v2/accounts/{accountId}/handle",
        response=Account,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"username": username}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def accounts_set_settlement(
    account_id: str, *, chain_id: int, asset_symbol: str, idempotency_key: str | None = None
) -> Call[Account]:
    """Set the chain and asset in which the account is to be paid. Needs `v2:accounts`. Where
    the account is to be paid.

    `chain_id`: The number of the chain, such as 8453 for Base.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    """
    return Call(
        operation="setAccountSettlement",
        method="PUT",
        path="/v2/accounts/{accountId}/settlement-preferences",
        response=Account,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"chainId": chain_id, "assetSymbol": asset_symbol}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def wallets_add(
    account_id: str,
    *,
    challenge_id: str,
    signature: str,
    public_key: str | UnsetType | None = UNSET,
    label: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Wallet]:
    """Link the wallet that signed a challenge. Needs `v2:accounts`. The wallet's signature
    of a challenge. EVM: 65 bytes in hex, by `personal_sign`, or for a contract wallet
    what its contract accepts (ERC-1271), in up to 4,096 bytes of hex; for one that is not
    deployed yet, wrapped with the call that deploys it (ERC-6492). Solana: 64 bytes in
    base58 or base64, by `signMessage`. Aptos: 64 bytes in hex, by `signMessage` with the
    challenge's `message` and `nonce`, and the public key beside them.

    `challenge_id`: The challenge's id.
    `signature`: The wallet's signature.
    `public_key`: The wallet's public key, if its chain cannot recover it from the signature.
    `label`: Your own name for the wallet.
    """
    return Call(
        operation="addWallet",
        method="POST",
        path="/v2/accounts/{accountId}/wallets",
        response=Wallet,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given(
            {
                "challengeId": challenge_id,
                "signature": signature,
                "publicKey": public_key,
                "label": label,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def wallets_list(
    account_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[Wallet], Wallet]:
    """List an account's wallets, oldest first. Needs `v2:accounts`. The parameters of every
    list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listWallets",
        method="GET",
        path="/v2/accounts/{accountId}/wallets",
        response=Page[Wallet],
        credential="app_secret",
        path_arguments={"accountId": account_id},
        query={"cursor": cursor, "limit": limit},
    )


def wallets_create_challenge(
    account_id: str,
    *,
    address: str,
    chain_type: Literal["evm", "solana", "aptos"],
    chain_id: int | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Challenge]:
    """Request the text that a wallet signs to be linked. Needs `v2:accounts`. The wallet
    that is to sign. For a contract wallet, `chainId` names the EVM chain on which its
    contract is to accept the signature. Without it, every EVM chain that the service
    serves is asked. Also refused: an address that is not valid for its chain type, and a
    chain for another type.

    `address`: The address on the chain.
    `chain_type`: The family of the chain; it determines the format of addresses and signatures.
    `chain_id`: The number of the chain, such as 8453 for Base.
    """
    return Call(
        operation="createWalletChallenge",
        method="POST",
        path="/v2/accounts/{accountId}/wallets/challenge",
        response=Challenge,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"address": address, "chainType": chain_type, "chainId": chain_id}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def wallets_remove(account_id: str, wallet_id: str) -> Call[Wallet]:
    """Unlink a wallet; its address is free for another account. Needs `v2:accounts`."""
    return Call(
        operation="removeWallet",
        method="DELETE",
        path="/v2/accounts/{accountId}/wallets/{walletId}",
        response=Wallet,
        credential="app_secret",
        path_arguments={"accountId": account_id, "walletId": wallet_id},
    )


def verifications_start(
    account_id: str,
    *,
    return_url: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Verification]:
    """Start a verification; returns the URL to send the user to. Needs `v2:kyc`. Where the
    provider sends the user afterwards.

    `return_url`: Where the hosted page sends the user afterwards. An http(s) URL.
    """
    return Call(
        operation="startVerification",
        method="POST",
        path="/v2/accounts/{accountId}/verifications",
        response=Verification,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"returnUrl": return_url}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def verifications_list(
    account_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[Verification], Verification]:
    """List an account's verifications, newest first. Needs `v2:kyc`. The parameters of every
    list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listVerifications",
        method="GET",
        path="/v2/accounts/{accountId}/verifications",
        response=Page[Verification],
        credential="app_secret",
        path_arguments={"accountId": account_id},
        query={"cursor": cursor, "limit": limit},
    )


def bank_accounts_activate(
    account_id: str,
    *,
    capability: Literal["us_bank_payout", "us_bank_funding"],
    return_url: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[CapabilityActivation]:
    """Request a capability; returns its requirements. Needs `v2:accounts`. The capability,
    and where the bank's pages send the user back to.

    `capability`: The capability's name.
    `return_url`: Where the hosted page sends the user afterwards. An http(s) URL.
    """
    return Call(
        operation="activateBankAccountCapability",
        method="POST",
        path="/v2/accounts/{accountId}/capability-activations",
        response=CapabilityActivation,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"capability": capability, "returnUrl": return_url}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def bank_accounts_read_requirements(account_id: str) -> Call[BankAccountRequirements]:
    """Read whether bank accounts can be added, and the fields of a new one. Needs
    `v2:accounts`.
    """
    return Call(
        operation="readBankAccountRequirements",
        method="GET",
        path="/v2/accounts/{accountId}/bank-account-requirements",
        response=BankAccountRequirements,
        credential="app_secret",
        path_arguments={"accountId": account_id},
    )


def bank_accounts_add(
    account_id: str,
    *,
    account_holder_name: str,
    account_holder_type: Literal["individual", "business"],
    account_number: str,
    routing_number: str,
    account_type: Literal["checking", "savings"],
    address: PostalAddress,
    bank_name: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[BankAccount]:
    """Add a US bank account, which the bank reviews. Needs `v2:accounts`. An account at a US
    bank. Its number is stored encrypted, and never returned. Also refused: a routing
    number that is not valid.

    `account_holder_name`: The name of the bank account's holder. 22 characters at most, in
      printable ASCII, as US banks carry it.
    `account_holder_type`: Whether the holder is a person or a business.
    `account_number`: The account's number; it is stored encrypted, and never returned. 4 to 17
      digits.
    `routing_number`: The bank's routing number (ABA). An ABA routing number of 9 digits.
    `account_type`: The kind of bank account.
    `bank_name`: The bank's name; null if it is not known. 35 characters at most, in printable
      ASCII, as US banks carry it.
    `address`: The holder's home address or registered office.
    """
    return Call(
        operation="addBankAccount",
        method="POST",
        path="/v2/accounts/{accountId}/bank-accounts",
        response=BankAccount,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given(
            {
                "currency": "usd",
                "country": "US",
                "accountHolderName": account_holder_name,
                "accountHolderType": account_holder_type,
                "accountNumber": account_number,
                "routingNumber": routing_number,
                "accountType": account_type,
                "bankName": bank_name,
                "address": address,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def bank_accounts_list(
    account_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[BankAccount], BankAccount]:
    """List an account's bank accounts, newest first. Needs `v2:accounts`. The parameters of
    every list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listBankAccounts",
        method="GET",
        path="/v2/accounts/{accountId}/bank-accounts",
        response=Page[BankAccount],
        credential="app_secret",
        path_arguments={"accountId": account_id},
        query={"cursor": cursor, "limit": limit},
    )


def onramps_read_requirements(account_id: str) -> Call[OnrampRequirements]:
    """Read whether on-ramps can be added, and the fields of a new one. Needs `v2:accounts`."""
    return Call(
        operation="readOnrampRequirements",
        method="GET",
        path="/v2/accounts/{accountId}/onramp-bank-account-requirements",
        response=OnrampRequirements,
        credential="app_secret",
        path_arguments={"accountId": account_id},
    )


def onramps_add(
    account_id: str, *, destination: OnrampDestinationInput, idempotency_key: str | None = None
) -> Call[OnrampBankAccount]:
    """Add a reusable on-ramp; the bank assigns its account number. Needs `v2:accounts`. A
    reusable on-ramp; the bank assigns its number. Also refused: a wallet without an
    address, or a vault with one.

    `destination`: Where the funds go.
    """
    return Call(
        operation="addOnramp",
        method="POST",
        path="/v2/accounts/{accountId}/onramp-bank-accounts",
        response=OnrampBankAccount,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"currency": "usd", "destination": destination}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def onramps_list(
    account_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[OnrampBankAccount], OnrampBankAccount]:
    """List an account's on-ramps, newest first. Needs `v2:accounts`. The parameters of every
    list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listOnramps",
        method="GET",
        path="/v2/accounts/{accountId}/onramp-bank-accounts",
        response=Page[OnrampBankAccount],
        credential="app_secret",
        path_arguments={"accountId": account_id},
        query={"cursor": cursor, "limit": limit},
    )


def onramps_read_instructions(
    account_id: str, onramp_bank_account_id: str
) -> Call[DepositInstructions]:
    """Read the account number that others send money to. Needs `v2:accounts`."""
    return Call(
        operation="readOnrampInstructions",
        method="GET",
        path="/v2/accounts/{accountId}/onramp-bank-accounts/{onrampBankAccountId}/deposit-instructions",
        response=DepositInstructions,
        credential="app_secret",
        path_arguments={"accountId": account_id, "onrampBankAccountId": onramp_bank_account_id},
    )


def onramps_list_transactions(
    account_id: str,
    onramp_bank_account_id: str,
    *,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageCall[Page[BankTransaction], BankTransaction]:
    """List the bank transfers to an on-ramp, newest first. Needs `v2:accounts`. The
    parameters of every list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listOnrampTransactions",
        method="GET",
        path="/v2/accounts/{accountId}/onramp-bank-accounts/{onrampBankAccountId}/transactions",
        response=Page[BankTransaction],
        credential="app_secret",
        path_arguments={"accountId": account_id, "onrampBankAccountId": onramp_bank_account_id},
        query={"cursor": cursor, "limit": limit},
    )


def vaults_list(
    account_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[VaultDetails], VaultDetails]:
    """List an account's vaults. Needs `v2:vaults`. The parameters of every list; a list's
    own query adds its filters.
    """
    return PageCall(
        operation="listVaults",
        method="GET",
        path="/v2/accounts/{accountId}/vaults",
        response=Page[VaultDetails],
        credential="app_secret",
        path_arguments={"accountId": account_id},
        query={"cursor": cursor, "limit": limit},
    )


def vaults_provision(
    account_id: str, *, chain_id: int, idempotency_key: str | None = None
) -> Call[VaultDetails]:
    """Create the account's vault on a chain; 200 if it has one. Needs `v2:vaults`. Returns
    200 if it already existed. The chain on which the account is to have a vault.

    `chain_id`: The number of the chain, such as 8453 for Base.
    """
    return Call(
        operation="provisionVault",
        method="POST",
        path="/v2/accounts/{accountId}/vaults",
        response=VaultDetails,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"chainId": chain_id}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def vaults_read_policy(
    account_id: str, vault_id: str, *, version: int | None = None
) -> Call[Policy]:
    """Read a vault's policy, in its current or an earlier version. Needs `v2:vaults`. Which
    version of a policy to read; without one, the current version.
    """
    return Call(
        operation="readVaultPolicy",
        method="GET",
        path="/v2/accounts/{accountId}/vaults/{vaultId}/policy",
        response=Policy,
        credential="app_secret",
        path_arguments={"accountId": account_id, "vaultId": vault_id},
        query={"version": version},
    )


def vaults_replace_policy(
    account_id: str,
    vault_id: str,
    *,
    status: Literal["active", "paused"],
    per_payment_limit: str | UnsetType | None = UNSET,
    daily_limit: str | UnsetType | None = UNSET,
    allowed_chains: Sequence[int] | UnsetType | None = UNSET,
    allowed_assets: Sequence[str] | UnsetType | None = UNSET,
    allowed_destinations: Sequence[VaultsAllowedWallet | AllowedAccountInput]
    | UnsetType
    | None = UNSET,
    version: int | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Policy]:
    """Replace a vault's policy as a whole; an absent field means no limit. Needs
    `v2:vaults`. The whole policy: an absent field or null means no limit, and an empty
    list allows nothing. `status` is required, so that a change of a limit does not resume
    a paused vault by accident. `version` is the version that you read and replace; a
    version that is not current is a conflict.

    `status`: Whether the vault may pay at all.
    `per_payment_limit`: The maximum for one Payment, as a decimal string; null means no limit.
      A decimal string such as 25.00, with no sign or exponent.
    `daily_limit`: The maximum for a UTC day, as a decimal string; null means no limit. A
      decimal string such as 25.00, with no sign or exponent.
    `allowed_chains`: The chains that it may pay on; null means any chain.
    `allowed_assets`: The assets that it may pay; null means any asset.
    `allowed_destinations`: Who may be paid; null means anyone.
    `version`: The version that you read and replace.
    """
    return Call(
        operation="replaceVaultPolicy",
        method="PUT",
        path="/v2/accounts/{accountId}/vaults/{vaultId}/policy",
        response=Policy,
        credential="app_secret",
        path_arguments={"accountId": account_id, "vaultId": vault_id},
        body=given(
            {
                "status": status,
                "perPaymentLimit": per_payment_limit,
                "dailyLimit": daily_limit,
                "allowedChains": allowed_chains,
                "allowedAssets": allowed_assets,
                "allowedDestinations": allowed_destinations,
                "version": version,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def vaults_read_yield_settings(account_id: str, vault_id: str) -> Call[YieldSettings]:
    """Read a vault's yield settings. Needs `v2:vaults`."""
    return Call(
        operation="readVaultYieldSettings",
        method="GET",
        path="/v2/accounts/{accountId}/vaults/{vaultId}/yield-settings",
        response=YieldSettings,
        credential="app_secret",
        path_arguments={"accountId": account_id, "vaultId": vault_id},
    )


def vaults_replace_yield_settings(
    account_id: str,
    vault_id: str,
    *,
    enabled: bool,
    strategy: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[YieldSettings]:
    """Replace a vault's yield settings. Needs `v2:vaults`. Whether a vault's idle funds are
    to earn, and how.

    `enabled`: Whether idle funds earn yield.
    `strategy`: Where idle funds earn yield; null if none is chosen.
    """
    return Call(
        operation="replaceVaultYieldSettings",
        method="PUT",
        path="/v2/accounts/{accountId}/vaults/{vaultId}/yield-settings",
        response=YieldSettings,
        credential="app_secret",
        path_arguments={"accountId": account_id, "vaultId": vault_id},
        body=given({"enabled": enabled, "strategy": strategy}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def mandates_create(
    account_id: str,
    *,
    vault_id: str,
    amount_per_period: str,
    period: Literal["day", "week", "month"],
    asset_symbol: str | UnsetType | None = UNSET,
    expires_at: datetime | str | UnsetType = UNSET,
    reference: str | UnsetType | None = UNSET,
    metadata: Mapping[str, Any] | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Mandate]:
    """Approve collections from a vault, up to an amount per period. Needs `v2:vaults`. A
    standing approval to collect from a vault; periods are those of the UTC calendar. A
    null `expiresAt` is refused: it may be a value that was lost, and without one the
    mandate never expires.

    `vault_id`: The vault's id.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    `amount_per_period`: How much it approves for each period, as a decimal string. A decimal
      string such as 25.00, with no sign or exponent.
    `period`: How often the approval renews.
    `expires_at`: When it expires. An ISO 8601 time with a zone.
    `reference`: Your own id or text for it.
    `metadata`: Your own data; the service returns it unchanged.
    """
    return Call(
        operation="createMandate",
        method="POST",
        path="/v2/accounts/{accountId}/mandates",
        response=Mandate,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given(
            {
                "vaultId": vault_id,
                "assetSymbol": asset_symbol,
                "amountPerPeriod": amount_per_period,
                "period": period,
                "expiresAt": expires_at,
                "reference": reference,
                "metadata": metadata,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def mandates_list(
    account_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[Mandate], Mandate]:
    """List an account's mandates, newest first. Needs `v2:vaults`. The parameters of every
    list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listMandates",
        method="GET",
        path="/v2/accounts/{accountId}/mandates",
        response=Page[Mandate],
        credential="app_secret",
        path_arguments={"accountId": account_id},
        query={"cursor": cursor, "limit": limit},
    )


def mandates_revoke(account_id: str, mandate_id: str) -> Call[Mandate]:
    """Revoke a mandate. Needs `v2:vaults`."""
    return Call(
        operation="revokeMandate",
        method="DELETE",
        path="/v2/accounts/{accountId}/mandates/{mandateId}",
        response=Mandate,
        credential="app_secret",
        path_arguments={"accountId": account_id, "mandateId": mandate_id},
    )


def deposits_issue_address(
    account_id: str, *, chain_id: int, idempotency_key: str | None = None
) -> Call[DepositAddress]:
    """Get the account's deposit address on a chain; 200 if it has one. Needs
    `v2:deposit_addresses`. Returns 200 if it already existed. The chain on which the
    account is to have a deposit address.

    `chain_id`: The number of the chain, such as 8453 for Base.
    """
    return Call(
        operation="issueDepositAddress",
        method="POST",
        path="/v2/accounts/{accountId}/deposit-addresses",
        response=DepositAddress,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"chainId": chain_id}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def deposits_list_addresses(
    account_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[DepositAddress], DepositAddress]:
    """List an account's deposit addresses. Needs `v2:deposit_addresses`. The parameters of
    every list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listDepositAddresses",
        method="GET",
        path="/v2/accounts/{accountId}/deposit-addresses",
        response=Page[DepositAddress],
        credential="app_secret",
        path_arguments={"accountId": account_id},
        query={"cursor": cursor, "limit": limit},
    )


def deposits_check(
    account_id: str, *, chain_id: int | UnsetType = UNSET, idempotency_key: str | None = None
) -> Call[Check]:
    """Look for an account's deposits now, and send failed sweeps again. Needs
    `v2:deposit_addresses`. The chain to check; without one, all of them. Null is refused,
    since it may be a value that was lost.

    `chain_id`: The number of the chain, such as 8453 for Base.
    """
    return Call(
        operation="checkDeposits",
        method="POST",
        path="/v2/accounts/{accountId}/deposit-addresses/check",
        response=Check,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"chainId": chain_id}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def deposits_send_back(
    account_id: str,
    deposit_id: str,
    *,
    destination: str | UnsetType = UNSET,
    idempotency_key: str | None = None,
) -> Call[Deposit]:
    """Send a rejected deposit back, on its own chain. Needs `v2:deposit_addresses`. Where a
    deposit goes back to; without a destination, to its sender. A null `destination` is
    refused: it may be a value that was lost.

    `destination`: The address that gets it, in place of the sender.
    """
    return Call(
        operation="returnDeposit",
        method="POST",
        path="/v2/accounts/{accountId}/deposits/{depositId}/return",
        response=Deposit,
        credential="app_secret",
        path_arguments={"accountId": account_id, "depositId": deposit_id},
        body=given({"destination": destination}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def deposits_list(
    account_id: str,
    *,
    status: Literal["detected", "confirmed", "settled", "rejected", "failed"] | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageCall[Page[Deposit], Deposit]:
    """List an account's deposits, newest first. Needs `v2:deposit_addresses`. All deposits,
    or those with a status.
    """
    return PageCall(
        operation="listDeposits",
        method="GET",
        path="/v2/accounts/{accountId}/deposits",
        response=Page[Deposit],
        credential="app_secret",
        path_arguments={"accountId": account_id},
        query={"status": status, "cursor": cursor, "limit": limit},
    )


def payments_receive(
    *,
    amount: str,
    destination: AccountDestination | PaymentAddressDestination | WalletDestination,
    asset_symbol: str | UnsetType | None = UNSET,
    chain_id: int | UnsetType | None = UNSET,
    reference: str | UnsetType | None = UNSET,
    description: str | UnsetType | None = UNSET,
    expires_in_seconds: int | UnsetType | None = UNSET,
    allowed_methods: Sequence[Literal["vault", "direct", "routing", "hosted_onramp"]]
    | UnsetType
    | None = UNSET,
    success_url: str | UnsetType | None = UNSET,
    cancel_url: str | UnsetType | None = UNSET,
    metadata: Mapping[str, Any] | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[CreatedPayment]:
    """Create a Payment that receives. Needs `v2:payments`. A receive Payment. Absent expiry,
    methods and URLs are those of the payment settings.

    `amount`: The amount, as a decimal string in whole units of the asset. A decimal string such
      as 25.00, with no sign or exponent.
    `destination`: Where the funds go.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    `chain_id`: The number of the chain, such as 8453 for Base.
    `reference`: Your own id or text for it.
    `description`: Your text about it, which the payer sees.
    `expires_in_seconds`: After how many seconds it expires.
    `allowed_methods`: The methods that may pay it; empty if the payer cannot choose one.
    `success_url`: Where the checkout page sends a payer who has paid. An http(s) URL.
    `cancel_url`: Where the checkout page sends a payer who cancels. An http(s) URL.
    `metadata`: Your own data; the service returns it unchanged.
    """
    return Call(
        operation="createPayment",
        method="POST",
        path="/v2/payments",
        response=CreatedPayment,
        credential="app_secret",
        body=given(
            {
                "intent": "receive",
                "amount": amount,
                "destination": destination,
                "assetSymbol": asset_symbol,
                "chainId": chain_id,
                "reference": reference,
                "description": description,
                "expiresInSeconds": expires_in_seconds,
                "allowedMethods": allowed_methods,
                "successUrl": success_url,
                "cancelUrl": cancel_url,
                "metadata": metadata,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def payments_send(
    *,
    amount: str,
    source: VaultSource,
    destination: AccountDestination
    | PaymentAddressDestination
    | WalletOnChainDestination
    | BankDestination,
    reference: str | UnsetType | None = UNSET,
    metadata: Mapping[str, Any] | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Payment]:
    """Create a Payment that sends from an account's vault. Needs `v2:payments`. A Payment
    from a vault directly to the recipient.

    `amount`: The amount, as a decimal string in whole units of the asset. A decimal string such
      as 25.00, with no sign or exponent.
    `source`: The vault that pays; null without one.
    `destination`: Where the funds go.
    `reference`: Your own id or text for it.
    `metadata`: Your own data; the service returns it unchanged.
    """
    return Call(
        operation="createPayment",
        method="POST",
        path="/v2/payments",
        response=Payment,
        credential="app_secret",
        body=given(
            {
                "intent": "send",
                "amount": amount,
                "source": source,
                "destination": destination,
                "reference": reference,
                "metadata": metadata,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def payments_collect(
    *,
    amount: str,
    mandate_id: str,
    destination: AccountDestination | PaymentAddressDestination | WalletDestination,
    asset_symbol: str | UnsetType | None = UNSET,
    chain_id: int | UnsetType | None = UNSET,
    reference: str | UnsetType | None = UNSET,
    description: str | UnsetType | None = UNSET,
    metadata: Mapping[str, Any] | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Payment]:
    """Create a Payment that collects by a mandate. Needs `v2:payments`. A Payment collected
    from a vault under its mandate, which defines its chain and asset.

    `amount`: The amount, as a decimal string in whole units of the asset. A decimal string such
      as 25.00, with no sign or exponent.
    `mandate_id`: The id of the mandate that approves the transfer.
    `destination`: Where the funds go.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    `chain_id`: The number of the chain, such as 8453 for Base.
    `reference`: Your own id or text for it.
    `description`: Your text about it, which the payer sees.
    `metadata`: Your own data; the service returns it unchanged.
    """
    return Call(
        operation="createPayment",
        method="POST",
        path="/v2/payments",
        response=Payment,
        credential="app_secret",
        body=given(
            {
                "intent": "collect",
                "amount": amount,
                "mandateId": mandate_id,
                "destination": destination,
                "assetSymbol": asset_symbol,
                "chainId": chain_id,
                "reference": reference,
                "description": description,
                "metadata": metadata,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def payments_list(
    *,
    status: Literal[
        "accepted",
        "action_required",
        "awaiting_payment",
        "cancelled",
        "executing",
        "expired",
        "failed",
        "partially_refunded",
        "processing",
        "refunded",
        "succeeded",
    ]
    | None = None,
    intent: Literal["receive", "send", "collect"] | None = None,
    account_id: str | None = None,
    reference: str | None = None,
    created_after: datetime | str | None = None,
    created_before: datetime | str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageCall[Page[Payment], Payment]:
    """List Payments, newest first. Needs `v2:payments`. The Payments that match all filters;
    the times are ISO 8601 with a zone.

    `status`: a status of a Payment.
    `created_after`: an ISO 8601 time with a zone.
    `created_before`: an ISO 8601 time with a zone.
    """
    return PageCall(
        operation="listPayments",
        method="GET",
        path="/v2/payments",
        response=Page[Payment],
        credential="app_secret",
        query={
            "status": status,
            "intent": intent,
            "accountId": account_id,
            "reference": reference,
            "createdAfter": created_after,
            "createdBefore": created_before,
            "cursor": cursor,
            "limit": limit,
        },
    )


def payments_read(payment_id: str) -> Call[Payment]:
    """Read a Payment. Needs `v2:payments`."""
    return Call(
        operation="readPayment",
        method="GET",
        path="/v2/payments/{paymentId}",
        response=Payment,
        credential="app_secret",
        path_arguments={"paymentId": payment_id},
    )


def payments_cancel(payment_id: str, *, idempotency_key: str | None = None) -> Call[Payment]:
    """Cancel a Payment before funds move. Needs `v2:payments`."""
    return Call(
        operation="cancelPayment",
        method="POST",
        path="/v2/payments/{paymentId}/cancel",
        response=Payment,
        credential="app_secret",
        path_arguments={"paymentId": payment_id},
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def payments_list_receipts(
    payment_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Receipts, Receipt]:
    """List a Payment's receipts with its journal. Needs `v2:payments`. The parameters of
    every list; a list's own query adds its filters.
    """
    return PageCall(
        operation="readPaymentReceipts",
        method="GET",
        path="/v2/payments/{paymentId}/receipts",
        response=Receipts,
        credential="app_secret",
        path_arguments={"paymentId": payment_id},
        query={"cursor": cursor, "limit": limit},
    )


def payments_reconcile(
    payment_id: str,
    *,
    action: Literal[
        "accept", "refund", "refund_excess", "retry_execution", "write_off", "return_misdirected"
    ],
    note: str | UnsetType | None = UNSET,
    destination: str | UnsetType = UNSET,
    receipt_id: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Payment]:
    """Resolve a Payment that needs a decision. Needs `v2:payments`. What the partner decides
    about a Payment with an exception. A null `destination` is refused: it may be a value
    that was lost.

    `action`: Your decision.
    `note`: Your note, which is kept with it.
    `destination`: For what goes back: an address, in place of the sender.
    `receipt_id`: For `return_misdirected`: the receipt whose funds go back.
    """
    return Call(
        operation="reconcilePayment",
        method="POST",
        path="/v2/payments/{paymentId}/reconcile",
        response=Payment,
        credential="app_secret",
        path_arguments={"paymentId": payment_id},
        body=given(
            {"action": action, "note": note, "destination": destination, "receiptId": receipt_id}
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def payments_refund(
    payment_id: str,
    *,
    amount: str | UnsetType = UNSET,
    destination: str | UnsetType = UNSET,
    reason: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[CreatedRefund]:
    """Refund received funds, in full or in part. Needs `v2:payments`. How much to refund and
    to whom; without these, all that can be refunded, to its sender. A null `amount` or
    `destination` is refused: it may be a value that was lost.

    `amount`: How much to refund; if absent, all that can be refunded. A decimal string such as
      25.00, with no sign or exponent.
    `destination`: The address to refund to; if absent, the payer's address.
    `reason`: Your reason.
    """
    return Call(
        operation="createRefund",
        method="POST",
        path="/v2/payments/{paymentId}/refunds",
        response=CreatedRefund,
        credential="app_secret",
        path_arguments={"paymentId": payment_id},
        body=given({"amount": amount, "destination": destination, "reason": reason}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def payments_list_refunds(
    payment_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[Refund], Refund]:
    """List the refunds of a Payment, newest first. Needs `v2:payments`. The parameters of
    every list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listRefunds",
        method="GET",
        path="/v2/payments/{paymentId}/refunds",
        response=Page[Refund],
        credential="app_secret",
        path_arguments={"paymentId": payment_id},
        query={"cursor": cursor, "limit": limit},
    )


def reports_list_balances(
    *, to: str, from_: str, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[BalanceRow], BalanceRow]:
    """Read the balance of each account of the journal on each day of a period. Needs
    `v2:payments`. The period is the days `from` to before `to`, in UTC. They must be
    closed, which a day is ten minutes after its end; then the report never changes.

    `to`: a day such as 2026-11-01.
    `from_`: a day such as 2026-11-01.
    """
    return PageCall(
        operation="readBalanceReport",
        method="GET",
        path="/v2/reports/balance",
        response=Page[BalanceRow],
        credential="app_secret",
        query={"to": to, "from": from_, "cursor": cursor, "limit": limit},
    )


def reports_list_transactions(
    *, to: str, from_: str, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[TransactionRow], TransactionRow]:
    """List every movement of a period, oldest first. Needs `v2:payments`. The period is the
    days `from` to before `to`, in UTC. They must be closed, which a day is ten minutes
    after its end; then the report never changes.

    `to`: a day such as 2026-11-01.
    `from_`: a day such as 2026-11-01.
    """
    return PageCall(
        operation="readTransactionReport",
        method="GET",
        path="/v2/reports/transactions",
        response=Page[TransactionRow],
        credential="app_secret",
        query={"to": to, "from": from_, "cursor": cursor, "limit": limit},
    )


def reports_list_payouts(
    *, to: str, from_: str, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[PayoutRow], PayoutRow]:
    """List the payouts whose Payments were created in a period, newest first. Needs
    `v2:payments`. The period is the days `from` to before `to`, in UTC. They must be
    closed, which a day is ten minutes after its end; then the report never changes.

    `to`: a day such as 2026-11-01.
    `from_`: a day such as 2026-11-01.
    """
    return PageCall(
        operation="readPayoutReport",
        method="GET",
        path="/v2/reports/payouts",
        response=Page[PayoutRow],
        credential="app_secret",
        query={"to": to, "from": from_, "cursor": cursor, "limit": limit},
    )


def sessions_read(session_id: str) -> Call[Session]:
    """Read a session: a receive Payment in the older vocabulary, with its dispute. Needs
    `v2:payments`.
    """
    return Call(
        operation="readSession",
        method="GET",
        path="/v2/sessions/{sessionId}",
        response=Session,
        credential="app_secret",
        path_arguments={"sessionId": session_id},
    )


def sessions_flag_dispute(
    session_id: str,
    *,
    reason: str,
    description: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[FlaggedSession]:
    """Flag a dispute about a settled session, once. Needs `v2:payments`. Why a settled
    session is disputed.

    `reason`: What is disputed.
    `description`: Your text about it.
    """
    return Call(
        operation="flagDispute",
        method="POST",
        path="/v2/sessions/{sessionId}/dispute",
        response=FlaggedSession,
        credential="app_secret_as_bearer",
        path_arguments={"sessionId": session_id},
        body=given({"reason": reason, "description": description}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sessions_resolve_dispute(
    session_id: str,
    *,
    resolution: Literal["won", "lost", "withdrawn"],
    note: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Session]:
    """Record how a dispute ended. Needs `v2:payments`. How a dispute ended.

    `resolution`: How it was resolved.
    `note`: Your note.
    """
    return Call(
        operation="resolveDispute",
        method="POST",
        path="/v2/sessions/{sessionId}/dispute/resolve",
        response=Session,
        credential="app_secret",
        path_arguments={"sessionId": session_id},
        body=given({"resolution": resolution, "note": note}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def webhooks_create(
    app_id: str,
    environment_id: str,
    *,
    url: str,
    description: str | UnsetType | None = UNSET,
    subscribed_events: Sequence[str] | UnsetType = UNSET,
    filters: Sequence[EventFilterInput] | UnsetType = UNSET,
    body_format: Literal["envelope", "cloudevents"] | UnsetType = UNSET,
    idempotency_key: str | None = None,
) -> Call[EndpointWithSecret]:
    """Register a webhook endpoint; returns its signing secret. Needs `v2:webhooks`,
    `v2:console`. An endpoint; without `subscribedEvents` it receives every event. Null is
    refused, since it may be a value that was lost.

    `url`: Where deliveries are sent.
    `description`: Your own text about it.
    `subscribed_events`: The names of the events to send; an empty list means every event.
    `filters`: Rules that an event must satisfy, all of them, to be sent; at most 10.
    `body_format`: The form of the bodies: the service's own envelope, or CloudEvents 1.0 in the
      structured mode.
    """
    return Call(
        operation="createWebhook",
        method="POST",
        path="/v2/console/apps/{appId}/environments/{environmentId}/webhooks",
        response=EndpointWithSecret,
        credential="app_secret",
        path_arguments={"appId": app_id, "environmentId": environment_id},
        body=given(
            {
                "url": url,
                "description": description,
                "subscribedEvents": subscribed_events,
                "filters": filters,
                "bodyFormat": body_format,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def webhooks_list(
    *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Endpoints, Endpoint]:
    """List the endpoints, with the event catalog and the delivery policy. Needs
    `v2:webhooks`, `v2:console`. The parameters of every list; a list's own query adds its
    filters.
    """
    return PageCall(
        operation="listWebhooks",
        method="GET",
        path="/v2/console/webhooks",
        response=Endpoints,
        credential="app_secret",
        query={"cursor": cursor, "limit": limit},
    )


def webhooks_read(webhook_id: str) -> Call[EndpointWithHealth]:
    """Read an endpoint. Needs `v2:webhooks`, `v2:console`."""
    return Call(
        operation="readWebhook",
        method="GET",
        path="/v2/console/webhooks/{webhookId}",
        response=EndpointWithHealth,
        credential="app_secret",
        path_arguments={"webhookId": webhook_id},
    )


def webhooks_change(
    webhook_id: str,
    *,
    description: str | UnsetType | None = UNSET,
    subscribed_events: Sequence[str] | UnsetType = UNSET,
    filters: Sequence[EventFilterInput] | UnsetType = UNSET,
    body_format: Literal["envelope", "cloudevents"] | UnsetType = UNSET,
    status: Literal["active", "disabled", "archived"] | UnsetType = UNSET,
    idempotency_key: str | None = None,
) -> Call[OneEndpoint]:
    """Change an endpoint's description, subscriptions or status. Needs `v2:webhooks`,
    `v2:console`. An absent field stays as it is; a null description removes it.

    `description`: Your own text about it; null clears it.
    `subscribed_events`: The names of the events to send; an empty list means every event.
    `filters`: Rules that an event must satisfy, all of them, to be sent; at most 10.
    `body_format`: The form of the bodies: the service's own envelope, or CloudEvents 1.0 in the
      structured mode.
    `status`: The new state.
    """
    return Call(
        operation="changeWebhook",
        method="PATCH",
        path="/v2/console/webhooks/{webhookId}",
        response=OneEndpoint,
        credential="app_secret",
        path_arguments={"webhookId": webhook_id},
        body=given(
            {
                "description": description,
                "subscribedEvents": subscribed_events,
                "filters": filters,
                "bodyFormat": body_format,
                "status": status,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def webhooks_rotate_secret(
    webhook_id: str,
    *,
    overlap_seconds: int | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[EndpointWithSecret]:
    """Replace the signing secret; the old one ends at once, or with an overlap. Needs
    `v2:webhooks`, `v2:console`. How long the previous secret still signs together with
    the new one: up to seven days.

    `overlap_seconds`: For how many seconds the previous secret also signs deliveries.
    """
    return Call(
        operation="rotateWebhookSecret",
        method="POST",
        path="/v2/console/webhooks/{webhookId}/rotate-secret",
        response=EndpointWithSecret,
        credential="app_secret",
        path_arguments={"webhookId": webhook_id},
        body=given({"overlapSeconds": overlap_seconds}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def webhooks_test(webhook_id: str, *, idempotency_key: str | None = None) -> Call[TestedEndpoint]:
    """Send a test event to this endpoint only, regardless of its subscriptions. Needs
    `v2:webhooks`, `v2:console`.
    """
    return Call(
        operation="testWebhook",
        method="POST",
        path="/v2/console/webhooks/{webhookId}/test",
        response=TestedEndpoint,
        credential="app_secret",
        path_arguments={"webhookId": webhook_id},
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def webhooks_recover(
    webhook_id: str, *, since: datetime | str, idempotency_key: str | None = None
) -> Call[RecoveringEndpoint]:
    """Send the subscribed events since a time that the endpoint has not received. Needs
    `v2:webhooks`, `v2:console`. The time from which to recover; an ISO 8601 time with a
    zone, at most 30 days ago.

    `since`: The time from which events are sent again. An ISO 8601 time with a zone.
    """
    return Call(
        operation="recoverWebhook",
        method="POST",
        path="/v2/console/webhooks/{webhookId}/recover",
        response=RecoveringEndpoint,
        credential="app_secret",
        path_arguments={"webhookId": webhook_id},
        body=given({"since": since}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def webhooks_list_deliveries(
    webhook_id: str, *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Deliveries, Delivery]:
    """List the kept deliveries, most recently updated first. Needs `v2:webhooks`,
    `v2:console`. The parameters of every list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listWebhookDeliveries",
        method="GET",
        path="/v2/console/webhooks/{webhookId}/deliveries",
        response=Deliveries,
        credential="app_secret",
        path_arguments={"webhookId": webhook_id},
        query={"cursor": cursor, "limit": limit},
    )


def webhooks_retry_delivery(
    webhook_id: str, delivery_id: str, *, idempotency_key: str | None = None
) -> Call[RetriedDelivery]:
    """Retry a failed or abandoned delivery that is kept. Needs `v2:webhooks`, `v2:console`."""
    return Call(
        operation="retryWebhookDelivery",
        method="POST",
        path="/v2/console/webhooks/{webhookId}/deliveries/{deliveryId}/retry",
        response=RetriedDelivery,
        credential="app_secret",
        path_arguments={"webhookId": webhook_id, "deliveryId": delivery_id},
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def events_list(
    *,
    name: str | None = None,
    account_id: str | None = None,
    created_after: datetime | str | None = None,
    created_before: datetime | str | None = None,
    after: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageCall[Page[Event], Event]:
    """List events, newest first; or each event once, oldest first, after a cursor. Needs
    `v2:webhooks`, `v2:console`. The events that match all filters; the times are ISO 8601
    with a zone. Also refused: `after` together with `cursor`, `createdAfter` or
    `createdBefore`.

    `name`: an event of the catalog.
    `created_after`: an ISO 8601 time with a zone.
    `created_before`: an ISO 8601 time with a zone.
    """
    return PageCall(
        operation="listEvents",
        method="GET",
        path="/v2/console/events",
        response=Page[Event],
        credential="app_secret",
        query={
            "name": name,
            "accountId": account_id,
            "createdAfter": created_after,
            "createdBefore": created_before,
            "after": after,
            "cursor": cursor,
            "limit": limit,
        },
    )


def events_read(event_id: str) -> Call[Event]:
    """Read an event. Needs `v2:webhooks`, `v2:console`."""
    return Call(
        operation="readEvent",
        method="GET",
        path="/v2/console/events/{eventId}",
        response=Event,
        credential="app_secret",
        path_arguments={"eventId": event_id},
    )


def events_resend(
    event_id: str, *, webhook_id: str | UnsetType = UNSET, idempotency_key: str | None = None
) -> Call[ResentEvent]:
    """Deliver an event again, to one endpoint or to all that are subscribed. Needs
    `v2:webhooks`, `v2:console`. The endpoint to send to; without `webhookId`, every
    active endpoint that is subscribed. Null is refused, since it may be a value that was
    lost.

    `webhook_id`: The endpoint's id.
    """
    return Call(
        operation="resendEvent",
        method="POST",
        path="/v2/console/events/{eventId}/resend",
        response=ResentEvent,
        credential="app_secret",
        path_arguments={"eventId": event_id},
        body=given({"webhookId": webhook_id}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def requests_list(
    *,
    status: str | None = None,
    path: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageCall[Page[LoggedRequest], LoggedRequest]:
    """List the newest API requests of the environment, newest first. Needs `v2:webhooks`,
    `v2:console`. With a `status`, only requests whose response has that status, or a
    status of that class; with a `path`, only those whose path contains it.

    `status`: a status such as 404, or 4xx.
    """
    return PageCall(
        operation="listRequests",
        method="GET",
        path="/v2/console/requests",
        response=Page[LoggedRequest],
        credential="app_secret",
        query={"status": status, "path": path, "cursor": cursor, "limit": limit},
    )


def audit_list(
    *,
    actor_type: Literal[
        "key",
        "operator",
        "client_session",
        "payer",
        "public",
        "program",
        "command_line",
        "provider",
        "system",
        "unknown",
    ]
    | None = None,
    actor_id: str | None = None,
    operation: str | None = None,
    object_id: str | None = None,
    created_after: datetime | str | None = None,
    created_before: datetime | str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> PageCall[Page[AuditEntry], AuditEntry]:
    """List who changed what in the environment, newest first. Needs `v2:webhooks`,
    `v2:console`. Only entries that match every given filter. A page may be short and
    still have a next one.

    `created_after`: an ISO 8601 time with a zone.
    `created_before`: an ISO 8601 time with a zone.
    """
    return PageCall(
        operation="listAuditEntries",
        method="GET",
        path="/v2/console/audit",
        response=Page[AuditEntry],
        credential="app_secret",
        query={
            "actorType": actor_type,
            "actorId": actor_id,
            "operation": operation,
            "objectId": object_id,
            "createdAfter": created_after,
            "createdBefore": created_before,
            "cursor": cursor,
            "limit": limit,
        },
    )


def sandbox_read() -> Call[Sandbox]:
    """Read the sandbox's clock and chains. Needs a standard key."""
    return Call(
        operation="readSandbox",
        method="GET",
        path="/v2/sandbox",
        response=Sandbox,
        credential="app_secret",
    )


def sandbox_fund(
    account_id: str,
    *,
    chain_id: int,
    asset_symbol: str,
    amount: str,
    idempotency_key: str | None = None,
) -> Call[Funded]:
    """Credit an account's vault; the credit is final when the call returns. Needs a standard
    key. A credit of the faucet.

    `chain_id`: The number of the chain, such as 8453 for Base.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    `amount`: The amount, as a decimal string in whole units of the asset. A decimal string such
      as 25.00, with no sign or exponent.
    """
    return Call(
        operation="fundSandboxAccount",
        method="POST",
        path="/v2/sandbox/accounts/{accountId}/fund",
        response=Funded,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"chainId": chain_id, "assetSymbol": asset_symbol, "amount": amount}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_decide_kyc(
    account_id: str,
    *,
    status: Literal["pending", "approved", "rejected"],
    idempotency_key: str | None = None,
) -> Call[Verification]:
    """Set the provider's decision about an account's verification. Needs a standard key. The
    decision about an account's verification.

    `status`: The provider's decision.
    """
    return Call(
        operation="decideSandboxKyc",
        method="POST",
        path="/v2/sandbox/accounts/{accountId}/kyc",
        response=Verification,
        credential="app_secret",
        path_arguments={"accountId": account_id},
        body=given({"status": status}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_deposit_at_bank(
    *,
    onramp_bank_account_id: str,
    amount: str,
    rail: Literal["ach_push", "wire"],
    outcome: Literal["receive", "review", "return", "cancel", "unmatched"]
    | UnsetType
    | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[BankDeposit]:
    """Make a bank transfer to an on-ramp; it arrives by its rail's calendar. Needs a
    standard key. A bank transfer to an on-ramp bank account, and the bank's decision
    about it.

    `onramp_bank_account_id`: The id of the on-ramp bank account.
    `amount`: The amount, as a decimal string in whole units of the asset. A decimal string such
      as 25.00, with no sign or exponent.
    `rail`: The kind of bank transfer.
    `outcome`: The bank's decision about the transfer.
    """
    return Call(
        operation="depositAtSandboxBank",
        method="POST",
        path="/v2/sandbox/bank-deposits",
        response=BankDeposit,
        credential="app_secret",
        body=given(
            {
                "onrampBankAccountId": onramp_bank_account_id,
                "amount": amount,
                "rail": rail,
                "outcome": outcome,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_mine_blocks(
    *, chain_id: int, count: int | UnsetType | None = UNSET, idempotency_key: str | None = None
) -> Call[Chain]:
    """Add blocks to a chain. Needs a standard key. Blocks to add to a chain.

    `chain_id`: The number of the chain, such as 8453 for Base.
    `count`: How many blocks to add.
    """
    return Call(
        operation="mineSandboxBlocks",
        method="POST",
        path="/v2/sandbox/blocks",
        response=Chain,
        credential="app_secret",
        body=given({"chainId": chain_id, "count": count}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_advance_clock(
    *, advance_seconds: int, idempotency_key: str | None = None
) -> Call[Advanced]:
    """Advance the clock, and do the work that becomes due on the way. Needs a standard key.
    How far to move the clock.

    `advance_seconds`: By how many seconds to advance the clock.
    """
    return Call(
        operation="advanceSandboxClock",
        method="POST",
        path="/v2/sandbox/clock",
        response=Advanced,
        credential="app_secret",
        body=given({"advanceSeconds": advance_seconds}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_trigger_event(
    *,
    name: str,
    account_id: str | UnsetType | None = UNSET,
    payment_id: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Triggered]:
    """Send any event of the catalog, with a realistic payload. Needs a standard key. An
    event of the catalog, and what it is about.

    `name`: The name.
    `account_id`: The account's id.
    `payment_id`: The Payment's id.
    """
    return Call(
        operation="triggerSandboxEvent",
        method="POST",
        path="/v2/sandbox/events",
        response=Triggered,
        credential="app_secret",
        body=given({"name": name, "accountId": account_id, "paymentId": payment_id}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_fail_dependency(
    *,
    dependency: Literal["chain", "kyc", "bank", "router", "onramp", "screening"],
    operation: str | UnsetType | None = UNSET,
    times: int | UnsetType | None = UNSET,
    chain_id: int | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[ArmedFailure]:
    """Make the next calls to a dependency fail. Needs a standard key. Which calls fail next,
    and how often.

    `dependency`: The dependency that fails: `chain`, `kyc`, `bank`, `router` or `screening`.
    `operation`: The operation that fails; `*` means any.
    `times`: How many more times the operation fails.
    `chain_id`: The chain that fails; if absent, any chain.
    """
    return Call(
        operation="failSandboxDependency",
        method="POST",
        path="/v2/sandbox/failures",
        response=ArmedFailure,
        credential="app_secret",
        body=given(
            {"dependency": dependency, "operation": operation, "times": times, "chainId": chain_id}
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_decide_payout(
    payment_id: str,
    *,
    outcome: Literal["settle", "return"],
    code: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[DecidedPayout]:
    """Make the simulated bank settle or return a Payment's payout. Needs a standard key. The
    bank's decision about a payout; a return has its code.

    `outcome`: The bank's decision about the payout.
    `code`: The bank's reason for a return. A return code such as R01.
    """
    return Call(
        operation="decideSandboxPayout",
        method="POST",
        path="/v2/sandbox/payouts/{paymentId}",
        response=DecidedPayout,
        credential="app_secret",
        path_arguments={"paymentId": payment_id},
        body=given({"outcome": outcome, "code": code}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_decide_order(
    option_id: str,
    *,
    outcome: Literal["pay", "pay_short", "pay_twice", "fail", "return"],
    idempotency_key: str | None = None,
) -> Call[DecidedOrder]:
    """Play the buyer at the simulated on-ramp. Needs a standard key. What the buyer at the
    simulated on-ramp does, or the on-ramp itself. The buyer pays the price, half of it or
    two times, or does not pay (`fail`); with `return` the on-ramp gives the money back.
    After the order's expiry it is late.

    `outcome`: What happens.
    """
    return Call(
        operation="decideSandboxOrder",
        method="POST",
        path="/v2/sandbox/onramp-orders/{optionId}",
        response=DecidedOrder,
        credential="app_secret",
        path_arguments={"optionId": option_id},
        body=given({"outcome": outcome}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_reorg_chain(
    *,
    chain_id: int,
    depth: int,
    reinclude: bool | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Chain]:
    """Remove a chain's last blocks and their transactions. Needs a standard key. How many of
    a chain's last blocks to drop, and whether their transactions come back.

    `chain_id`: The number of the chain, such as 8453 for Base.
    `depth`: How many of the last blocks to drop.
    `reinclude`: Whether the dropped transactions come back in other blocks.
    """
    return Call(
        operation="reorgSandboxChain",
        method="POST",
        path="/v2/sandbox/reorgs",
        response=Chain,
        credential="app_secret",
        body=given({"chainId": chain_id, "depth": depth, "reinclude": reinclude}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_run(*, idempotency_key: str | None = None) -> Call[Ran]:
    """Run all due jobs before the call returns. Needs a standard key."""
    return Call(
        operation="runSandboxWork",
        method="POST",
        path="/v2/sandbox/run",
        response=Ran,
        credential="app_secret",
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def sandbox_transfer(
    *,
    chain_id: int,
    asset_symbol: str,
    amount: str,
    to: str,
    reverts: bool | UnsetType | None = UNSET,
    from_: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[Transferred]:
    """Send a transfer to any address; it is in a block when the call returns. Needs a
    standard key.

    `chain_id`: The number of the chain, such as 8453 for Base.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    `amount`: The amount, as a decimal string in whole units of the asset. A decimal string such
      as 25.00, with no sign or exponent.
    `to`: The address that receives the funds.
    `reverts`: Whether the transaction fails on the chain.
    `from_`: The address that sent the funds.
    """
    return Call(
        operation="makeSandboxTransfer",
        method="POST",
        path="/v2/sandbox/transfers",
        response=Transferred,
        credential="app_secret",
        body=given(
            {
                "chainId": chain_id,
                "assetSymbol": asset_symbol,
                "amount": amount,
                "to": to,
                "reverts": reverts,
                "from": from_,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def health_check() -> Call[Health]:
    """The process is alive."""
    return Call(
        operation="checkHealth",
        method="GET",
        path="/healthz",
        response=Health,
        credential="none",
    )


def health_check_readiness() -> Call[Health]:
    """The process can serve: its storage answers."""
    return Call(
        operation="checkReadiness",
        method="GET",
        path="/readyz",
        response=Health,
        credential="none",
    )


def legacy_register(
    *,
    username: str | UnsetType | None = UNSET,
    addresses: Sequence[str] | UnsetType | None = UNSET,
    preferred_settlement_chain: int | UnsetType | None = UNSET,
    preferred_settlement_token: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[MoneyAccountResponse]:
    """Create a Money Account. Needs a standard key. A new Money Account. An address given
    here is not verified; its format shows the chain type. Also refused: an address that
    is not valid for any chain type, or that is given twice.

    `username`: The name in the payment address; null without one. 3 to 20 letters, digits or
      underscores.
    `addresses`: The account's wallet addresses.
    `preferred_settlement_chain`: The chain on which the account wants to be paid.
    `preferred_settlement_token`: The symbol of the token in which the account wants to be paid.
    """
    return Call(
        operation="registerLegacyUser",
        method="POST",
        path="/sdk/v1/register",
        response=MoneyAccountResponse,
        credential="app_secret",
        body=given(
            {
                "username": username,
                "addresses": addresses,
                "preferredSettlementChain": preferred_settlement_chain,
                "preferredSettlementToken": preferred_settlement_token,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def legacy_get_user(
    *, user_id: str | None = None, username: str | None = None
) -> Call[MoneyAccountResponse]:
    """Read a Money Account by its id or its username. Needs a standard key. An account by
    its id or its username.

    `username`: 3 to 20 letters, digits or underscores.
    """
    return Call(
        operation="readLegacyUser",
        method="GET",
        path="/sdk/v1/get-user",
        response=MoneyAccountResponse,
        credential="app_secret",
        query={"userId": user_id, "username": username},
    )


def legacy_get_user_by_address(*, address: str) -> Call[AddressOwnerResponse]:
    """Read the Money Account that a wallet address is linked to. Needs a standard key. A
    wallet address that is linked to an account; its format shows the chain type.
    """
    return Call(
        operation="readLegacyAddressOwner",
        method="GET",
        path="/sdk/v1/get-user-byaddress",
        response=AddressOwnerResponse,
        credential="app_secret",
        query={"address": address},
    )


def legacy_add_address(
    *,
    user_id: str,
    address: str,
    chain_type: Literal["evm", "solana", "aptos"],
    signature: str,
    message: str,
    public_key: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[LinkedAddressesResponse]:
    """Link a wallet to an account by the wallet's signature of a message. Needs a standard
    key. A wallet's signature of a message, which links the wallet. A message works once.
    EVM: 65 bytes in hex, by `personal_sign`, or for a contract wallet what its contract
    accepts (ERC-1271), also wrapped (ERC-6492). Solana: 64 bytes in base58 or base64, of
    the message as it is or in the envelope of off-chain messages. Aptos: 64 bytes in hex,
    of the full message with its prefix, and the public key beside them.

    `user_id`: The account's id.
    `address`: The address on the chain.
    `chain_type`: The family of the chain; it determines the format of addresses and signatures.
    `signature`: The wallet's signature.
    `message`: The text that the wallet signed.
    `public_key`: The wallet's public key, if its chain cannot recover it from the signature.
    """
    return Call(
        operation="addLegacyAddress",
        method="POST",
        path="/sdk/v1/add-address",
        response=LinkedAddressesResponse,
        credential="app_secret",
        body=given(
            {
                "userId": user_id,
                "address": address,
                "chainType": chain_type,
                "signature": signature,
                "message": message,
                "publicKey": public_key,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def legacy_check_username(*, username: str) -> Call[UsernameAvailabilityResponse]:
    """Check whether an account could have a username. The username to check.

    `username`: 3 to 20 letters, digits or underscores.
    """
    return Call(
        operation="checkLegacyUsername",
        method="GET",
        path="/sdk/v1/check-username",
        response=UsernameAvailabilityResponse,
        credential="app_id",
        query={"username": username},
    )


def legacy_update_username(
    *, user_id: str, username: str, idempotency_key: str | None = None
) -> Call[ChosenUsernameResponse]:
    """Give an account its username, once. Needs a standard key. The username of an account
    that does not have one yet.

    `user_id`: The account's id.
    `username`: The name in the payment address; null without one. 3 to 20 letters, digits or
      underscores.
    """
    return Call(
        operation="setLegacyUsername",
        method="POST",
        path="/sdk/v1/update-username",
        response=ChosenUsernameResponse,
        credential="app_secret",
        body=given({"userId": user_id, "username": username}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def legacy_update_preferences(
    *,
    user_id: str,
    preferred_settlement_chain: int | UnsetType | None = UNSET,
    preferred_settlement_token: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[PreferencesResponse]:
    """Set the chain and token in which an account is to be paid. Needs a standard key. Where
    the account is to be paid; an absent field stays as it is. Also refused: a body that
    would change nothing.

    `user_id`: The account's id.
    `preferred_settlement_chain`: The chain on which the account wants to be paid.
    `preferred_settlement_token`: The symbol of the token in which the account wants to be paid.
    """
    return Call(
        operation="setLegacyPreferences",
        method="POST",
        path="/sdk/v1/update-preferences",
        response=PreferencesResponse,
        credential="app_secret",
        body=given(
            {
                "userId": user_id,
                "preferredSettlementChain": preferred_settlement_chain,
                "preferredSettlementToken": preferred_settlement_token,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def legacy_resolve(*, payment_address: str) -> Call[ResolvedAddressResponse]:
    """Read the account that a payment address pays. `<username>@<resolver>`."""
    return Call(
        operation="resolveLegacyAddress",
        method="GET",
        path="/sdk/v1/resolve",
        response=ResolvedAddressResponse,
        credential="app_id",
        query={"paymentAddress": payment_address},
    )


def legacy_is_kyc_done(
    *, user_id: str | None = None, username: str | None = None, payment_address: str | None = None
) -> Call[KycDoneResponse]:
    """Check whether an account is verified. An account by its id, its username or its
    payment address.

    `username`: 3 to 20 letters, digits or underscores.
    """
    return Call(
        operation="readLegacyKyc",
        method="GET",
        path="/sdk/v1/is-kyc-done",
        response=KycDoneResponse,
        credential="app_id",
        query={"userId": user_id, "username": username, "paymentAddress": payment_address},
    )


def legacy_generate(*, user_id: str, chain_id: int) -> Call[GeneratedAddressResponse]:
    """Get an account's deposit address on a chain; every call returns the same one. The
    account of the deposit address, and its chain.

    `user_id`: The account's id.
    `chain_id`: The number of the chain, such as 8453 for Base.
    """
    return Call(
        operation="generateLegacyAddress",
        method="POST",
        path="/sdk/v1/generate",
        response=GeneratedAddressResponse,
        credential="app_id",
        body=given({"userId": user_id, "chainId": chain_id}),
    )


def legacy_get_deposit_address(
    *,
    payment_address: str,
    raw_amount: str,
    source_address: str,
    source_chain_id: int,
    source_chain_token: str,
) -> Call[QuotedAddressResponse]:
    """Give a payer an address for one payment to a payment address. Who is paid, and the
    input amount, in the token's smallest unit. `sourceChainToken` is the symbol or the
    address of a token.

    `payment_address`: `<username>@<partner id>`; null without a username.
    `raw_amount`: The input amount, in the token's smallest unit. A digit string of at most 78
      digits.
    `source_address`: The payer's wallet.
    `source_chain_id`: The chain that the payer pays on.
    `source_chain_token`: The token that the payer pays with.
    """
    return Call(
        operation="createLegacyDepositAddress",
        method="POST",
        path="/sdk/v1/get-deposit-address",
        response=QuotedAddressResponse,
        credential="sdk_key",
        body=given(
            {
                "paymentAddress": payment_address,
                "rawAmount": raw_amount,
                "sourceAddress": source_address,
                "sourceChainId": source_chain_id,
                "sourceChainToken": source_chain_token,
            }
        ),
    )


def legacy_quote(
    *,
    amount: Decimal,
    user_id: str | UnsetType | None = UNSET,
    source_address: str | UnsetType | None = UNSET,
    source_chain_id: int | UnsetType | None = UNSET,
    source_chain_token: str | UnsetType | None = UNSET,
    destination_user_id: str | UnsetType | None = UNSET,
    destination_payment_address: str | UnsetType | None = UNSET,
    destination_wallet_address: str | UnsetType | None = UNSET,
    destination_chain_id: int | UnsetType | None = UNSET,
    destination_token: str | UnsetType | None = UNSET,
) -> Call[QuoteResponse]:
    """Quote a transfer, on one chain or across two, with its own deposit address. The payer,
    the recipient and the amount in whole tokens of `sourceChainToken`. The service reads
    the number exactly. Without a chain or token, the preference of the payer or recipient
    applies, or else USDC on Base. Also refused: a number that no amount of a token can
    be.

    `amount`: The amount, as a decimal string in whole units of the asset.
    `user_id`: The account's id.
    `source_address`: The payer's wallet.
    `source_chain_id`: The chain that the payer pays on.
    `source_chain_token`: The token that the payer pays with.
    `destination_user_id`: The recipient by its account.
    `destination_payment_address`: The recipient by its payment address.
    `destination_wallet_address`: The recipient by its wallet.
    `destination_chain_id`: The chain on which the recipient is paid.
    `destination_token`: The token in which the recipient is paid.
    """
    return Call(
        operation="createLegacyQuote",
        method="POST",
        path="/sdk/v1/quote",
        response=QuoteResponse,
        credential="app_id",
        body=given(
            {
                "amount": amount,
                "userId": user_id,
                "sourceAddress": source_address,
                "sourceChainId": source_chain_id,
                "sourceChainToken": source_chain_token,
                "destinationUserId": destination_user_id,
                "destinationPaymentAddress": destination_payment_address,
                "destinationWalletAddress": destination_wallet_address,
                "destinationChainID": destination_chain_id,
                "destinationToken": destination_token,
            }
        ),
    )


def legacy_read_transfer(
    *, quote_id: str | None = None, deposit_address: str | None = None, chain_id: int | None = None
) -> Call[TransferStateResponse]:
    """Check the same, with the fields in the query string. The transfer to check: that of a
    quote, or one to a deposit address. Also refused: a deposit address without its chain,
    or a quote with one.
    """
    return Call(
        operation="readLegacyTransfer",
        method="GET",
        path="/sdk/v1/verify-transfer",
        response=TransferStateResponse,
        credential="app_id",
        query={"quoteId": quote_id, "depositAddress": deposit_address, "chainId": chain_id},
    )


def legacy_verify_transfer(
    *,
    quote_id: str | UnsetType | None = UNSET,
    deposit_address: str | UnsetType | None = UNSET,
    chain_id: int | UnsetType | None = UNSET,
) -> Call[TransferStateResponse]:
    """Check whether the transfer of a quote, or to a deposit address, is done. The transfer
    to check: that of a quote, or one to a deposit address. Also refused: a deposit
    address without its chain, or a quote with one.

    `quote_id`: The quote's id.
    `deposit_address`: The address to pay to.
    `chain_id`: The number of the chain, such as 8453 for Base.
    """
    return Call(
        operation="verifyLegacyTransfer",
        method="POST",
        path="/sdk/v1/verify-transfer",
        response=TransferStateResponse,
        credential="app_id",
        body=given({"quoteId": quote_id, "depositAddress": deposit_address, "chainId": chain_id}),
    )


def legacy_settle(
    *,
    payload: SettlementPayload,
    signature: str,
    domain: SettlementDomain,
    types: SettlementTypes,
    idempotency_key: str | None = None,
) -> Call[SettlementResponse]:
    """Pay a quote from the payer's vault, with a signature of the payer's wallet. What the
    payer of a quote has signed (EIP-712, or ERC-1271), and the signature in hex. Also
    refused: a domain, types or numbers that no settlement of any quote can have.

    `payload`: The message that was signed.
    `signature`: The wallet's signature.
    `domain`: The domain of the typed data.
    `types`: The types of the typed data.
    """
    return Call(
        operation="settleLegacyQuote",
        method="POST",
        path="/sdk/v1/settle",
        response=SettlementResponse,
        credential="app_id",
        body=given({"payload": payload, "signature": signature, "domain": domain, "types": types}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def legacy_supported_chains() -> Call[SupportedChainsResponse]:
    """List the chains and their tokens."""
    return Call(
        operation="listLegacyChains",
        method="GET",
        path="/sdk/v1/supported-chains",
        response=SupportedChainsResponse,
        credential="none",
    )


def legacy_get_balance(
    *,
    user_id: str | UnsetType | None = UNSET,
    payment_address: str | UnsetType | None = UNSET,
    address: str | UnsetType | None = UNSET,
    chain_type: Literal["evm", "solana", "aptos"] | UnsetType | None = UNSET,
) -> Call[AddressBalanceResponse]:
    """Read the USDC balance of an account's vault, or of any address. Needs a standard key.
    An account's vault, or any address. The balance is of USDC; on EVM, of USDC on
    Polygon.

    `user_id`: The account's id.
    `payment_address`: `<username>@<partner id>`; null without a username.
    `address`: The address on the chain.
    `chain_type`: The family of the chain; it determines the format of addresses and signatures.
    """
    return Call(
        operation="readLegacyBalance",
        method="POST",
        path="/sdk/v1/get-balance",
        response=AddressBalanceResponse,
        credential="app_secret",
        body=given(
            {
                "userId": user_id,
                "paymentAddress": payment_address,
                "address": address,
                "chainType": chain_type,
            }
        ),
    )


def legacy_get_balances(
    *, user_address: str, amount: Decimal | None = None
) -> Call[AddressHoldingsResponse]:
    """Read an address's balances on every chain of its type, valued in US dollars. An
    address, on all chains of its type. With `amount`, only balances above that number of
    whole tokens.
    """
    return Call(
        operation="readLegacyBalances",
        method="GET",
        path="/sdk/v1/get-balances",
        response=AddressHoldingsResponse,
        credential="app_id",
        query={"userAddress": user_address, "amount": amount},
    )


def legacy_get_transaction(*, transaction_id: str) -> Call[TransactionResponse]:
    """Read a transaction. Needs a standard key. A transaction by its id."""
    return Call(
        operation="readLegacyTransaction",
        method="GET",
        path="/sdk/v1/get-transaction",
        response=TransactionResponse,
        credential="app_secret",
        query={"transactionId": transaction_id},
    )


def legacy_get_transactions(
    *,
    user_id: str,
    page: int | None = None,
    limit: int | None = None,
    type: Literal["deposit", "payment", "settlement"] | None = None,
    status: Literal["pending", "processing", "completed", "failed"] | None = None,
    chain_id: int | None = None,
    before: str | None = None,
) -> Call[TransactionsResponse]:
    """List an account's transactions, newest first. Needs a standard key. An account's
    transactions, newest first. Pages reach 1,000 transactions; `before` is the id of a
    transaction, and the list begins after it.
    """
    return Call(
        operation="listLegacyTransactions",
        method="GET",
        path="/sdk/v1/get-transactions",
        response=TransactionsResponse,
        credential="app_secret",
        query={
            "userId": user_id,
            "page": page,
            "limit": limit,
            "type": type,
            "status": status,
            "chainId": chain_id,
            "before": before,
        },
    )


def legacy_deploy_role_module(
    *, user_id: str, tx_data: OwnersCall, signature: str, idempotency_key: str | None = None
) -> Call[RoleModuleResponse]:
    """Deploy the role module of an account's vault, and enable it in the vault. Needs a
    standard key. What the owner of an account's vault has signed (EIP-712, or ERC-1271),
    and the signature.

    `user_id`: The account's id.
    `tx_data`: The call that the vault is to make.
    `signature`: The wallet's signature.
    """
    return Call(
        operation="deployLegacyRoleModule",
        method="POST",
        path="/sdk/v1/deploy-role-module",
        response=RoleModuleResponse,
        credential="app_secret",
        body=given({"userId": user_id, "txData": tx_data, "signature": signature}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def own_account_read() -> Call[OwnAccount]:
    """Read the token's account, and what the token may do now. Needs `account:read`."""
    return Call(
        operation="readOwnAccount",
        method="GET",
        path="/v2/client/me",
        response=OwnAccount,
        credential="access_token",
    )


def own_deposits_issue_address(
    *, chain_id: int, idempotency_key: str | None = None
) -> Call[DepositAddress]:
    """Get the caller's own deposit address on a chain; 200 if it has one. Needs
    `deposits:write`. Returns 200 if it already existed. The chain on which the account is
    to have a deposit address.

    `chain_id`: The number of the chain, such as 8453 for Base.
    """
    return Call(
        operation="issueOwnDepositAddress",
        method="POST",
        path="/v2/client/me/deposit-addresses",
        response=DepositAddress,
        credential="access_token",
        body=given({"chainId": chain_id}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def own_deposits_list_addresses(
    *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[DepositAddress], DepositAddress]:
    """List the caller's own deposit addresses. Needs `deposits:read`. The parameters of
    every list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listOwnDepositAddresses",
        method="GET",
        path="/v2/client/me/deposit-addresses",
        response=Page[DepositAddress],
        credential="access_token",
        query={"cursor": cursor, "limit": limit},
    )


def own_payments_create(
    *,
    amount: str,
    intent: Literal["receive"] | UnsetType | None = UNSET,
    destination: OwnAccountInput | UnsetType | None = UNSET,
    asset_symbol: str | UnsetType | None = UNSET,
    chain_id: int | UnsetType | None = UNSET,
    reference: str | UnsetType | None = UNSET,
    description: str | UnsetType | None = UNSET,
    expires_in_seconds: int | UnsetType | None = UNSET,
    allowed_methods: Sequence[Literal["vault", "direct", "routing", "hosted_onramp"]]
    | UnsetType
    | None = UNSET,
    success_url: str | UnsetType | None = UNSET,
    cancel_url: str | UnsetType | None = UNSET,
    metadata: Mapping[str, Any] | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[CreatedPayment]:
    """Create a receive Payment to the account. Needs `payments:write`. A receive Payment to
    the caller's own account: a browser's token cannot spend from a vault. `metadata` must
    be null or absent: only the partner's backend sets it.

    `intent`: The direction of the money: `receive`, `send` or `collect`.
    `amount`: The amount, as a decimal string in whole units of the asset. A decimal string such
      as 25.00, with no sign or exponent.
    `destination`: Where the funds go.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    `chain_id`: The number of the chain, such as 8453 for Base.
    `reference`: Your own id or text for it.
    `description`: Your text about it, which the payer sees.
    `expires_in_seconds`: After how many seconds it expires.
    `allowed_methods`: The methods that may pay it; empty if the payer cannot choose one.
    `success_url`: Where the checkout page sends a payer who has paid. An http(s) URL.
    `cancel_url`: Where the checkout page sends a payer who cancels. An http(s) URL.
    `metadata`: Your own data; the service returns it unchanged.
    """
    return Call(
        operation="createOwnPayment",
        method="POST",
        path="/v2/client/me/payments",
        response=CreatedPayment,
        credential="access_token",
        body=given(
            {
                "intent": intent,
                "amount": amount,
                "destination": destination,
                "assetSymbol": asset_symbol,
                "chainId": chain_id,
                "reference": reference,
                "description": description,
                "expiresInSeconds": expires_in_seconds,
                "allowedMethods": allowed_methods,
                "successUrl": success_url,
                "cancelUrl": cancel_url,
                "metadata": metadata,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def own_payments_list(
    *, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[RecipientPayment], RecipientPayment]:
    """List the Payments that the account receives, newest first. Needs `payments:read`. The
    parameters of every list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listOwnPayments",
        method="GET",
        path="/v2/client/me/payments",
        response=Page[RecipientPayment],
        credential="access_token",
        query={"cursor": cursor, "limit": limit},
    )


def own_payments_read(payment_id: str) -> Call[RecipientPayment]:
    """Read a Payment that the own account receives. Needs `payments:read`."""
    return Call(
        operation="readOwnPayment",
        method="GET",
        path="/v2/client/me/payments/{paymentId}",
        response=RecipientPayment,
        credential="access_token",
        path_arguments={"paymentId": payment_id},
    )


def own_payments_read_as_payer(payment_id: str, *, payment_secret: str) -> Call[PayerPayment]:
    """Read a Payment to be paid. Needs `payments:read`."""
    return Call(
        operation="readOwnPayment",
        method="GET",
        path="/v2/client/me/payments/{paymentId}",
        response=PayerPayment,
        credential="access_token",
        path_arguments={"paymentId": payment_id},
        headers={"X-Service-Payment-Secret": payment_secret},
    )


def own_options_create(
    payment_id: str,
    *,
    payment_secret: str,
    provider_code: Literal["vault"] | UnsetType | None = UNSET,
    chain_id: int | UnsetType | None = UNSET,
    asset_symbol: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[PaymentOption]:
    """Offer the caller's vault as a way to pay, and select it. Needs `vault_payments:write`.
    An offer to pay from the caller's own vault, in the Payment's asset.

    `provider_code`: The method: `vault`, `direct`, `routing` or `hosted_onramp`.
    `chain_id`: The number of the chain, such as 8453 for Base.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    """
    return Call(
        operation="createOption",
        method="POST",
        path="/v2/client/me/payments/{paymentId}/options",
        response=PaymentOption,
        credential="access_token",
        path_arguments={"paymentId": payment_id},
        headers={"X-Service-Payment-Secret": payment_secret},
        body=given(
            {"providerCode": provider_code, "chainId": chain_id, "assetSymbol": asset_symbol}
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def own_options_list(
    payment_id: str, *, payment_secret: str, cursor: str | None = None, limit: int | None = None
) -> PageCall[Page[FundedOption], FundedOption]:
    """List the caller's options of a Payment. Needs `payments:read`. The parameters of every
    list; a list's own query adds its filters.
    """
    return PageCall(
        operation="listOptions",
        method="GET",
        path="/v2/client/me/payments/{paymentId}/options",
        response=Page[FundedOption],
        credential="access_token",
        path_arguments={"paymentId": payment_id},
        query={"cursor": cursor, "limit": limit},
        headers={"X-Service-Payment-Secret": payment_secret},
    )


def own_options_read(payment_id: str, option_id: str, *, payment_secret: str) -> Call[FundedOption]:
    """Read an option and its funding operation. Needs `payments:read`."""
    return Call(
        operation="readOption",
        method="GET",
        path="/v2/client/me/payments/{paymentId}/options/{optionId}",
        response=FundedOption,
        credential="access_token",
        path_arguments={"paymentId": payment_id, "optionId": option_id},
        headers={"X-Service-Payment-Secret": payment_secret},
    )


def own_options_authorize(
    payment_id: str,
    option_id: str,
    *,
    payment_secret: str,
    action_id: str,
    proof: Proof,
    metadata: Mapping[str, Any] | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[FundedOption]:
    """Authorize exactly one transfer from the caller's vault to the escrow. Needs
    `vault_payments:write`. The one-time action that authorizes exactly one transfer.

    `action_id`: The one-time action that authorizes this transfer.
    `proof`: The proof that the payer approves.
    `metadata`: Your own data; the service returns it unchanged.
    """
    return Call(
        operation="authorizeOption",
        method="POST",
        path="/v2/client/me/payments/{paymentId}/options/{optionId}/authorize",
        response=FundedOption,
        credential="access_token",
        path_arguments={"paymentId": payment_id, "optionId": option_id},
        headers={"X-Service-Payment-Secret": payment_secret},
        body=given({"actionId": action_id, "proof": proof, "metadata": metadata}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def own_options_refresh(
    payment_id: str, option_id: str, *, payment_secret: str, idempotency_key: str | None = None
) -> Call[PaymentOption]:
    """Get a new one-time action for an option. Needs `vault_payments:write`."""
    return Call(
        operation="refreshOption",
        method="POST",
        path="/v2/client/me/payments/{paymentId}/options/{optionId}/refresh",
        response=PaymentOption,
        credential="access_token",
        path_arguments={"paymentId": payment_id, "optionId": option_id},
        headers={"X-Service-Payment-Secret": payment_secret},
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def public_sessions_exchange(*, session_token: str) -> Call[AccessToken]:
    """Exchange a session token, once, for an access token."""
    return Call(
        operation="exchangeClientSession",
        method="POST",
        path="/v2/client/auth/exchange",
        response=AccessToken,
        credential="none",
        bearer=session_token,
    )


def public_links_exchange(code: str) -> Call[ExchangedLink]:
    """Exchange a checkout link's code for the Payment's client secret."""
    return Call(
        operation="exchangePaymentLink",
        method="POST",
        path="/v2/public/payment-links/{code}/exchange",
        response=ExchangedLink,
        credential="none",
        path_arguments={"code": code},
    )


def public_payments_create(
    app_id: str,
    *,
    amount: str,
    destination: WalletDestination,
    asset_symbol: str | UnsetType | None = UNSET,
    chain_id: int | UnsetType | None = UNSET,
    reference: str | UnsetType | None = UNSET,
    success_url: str | UnsetType | None = UNSET,
    cancel_url: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[CreatedPublicPayment]:
    """Create a Payment from a shop's page, on an origin that the settings allow. A receive
    Payment to one of the wallets that the payment settings allow. Without `chainId` and
    `assetSymbol` it is USDC on chain 8453, or the first that the settings allow if they
    exclude that. The URLs must be under an allowed origin.

    `amount`: The amount, as a decimal string in whole units of the asset. A decimal string such
      as 25.00, with no sign or exponent.
    `destination`: Where the funds go.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    `chain_id`: The number of the chain, such as 8453 for Base.
    `reference`: Your own id or text for it.
    `success_url`: Where the checkout page sends a payer who has paid. An http(s) URL.
    `cancel_url`: Where the checkout page sends a payer who cancels. An http(s) URL.
    """
    return Call(
        operation="createPublicPayment",
        method="POST",
        path="/v2/public/apps/{appId}/payments",
        response=CreatedPublicPayment,
        credential="none",
        path_arguments={"appId": app_id},
        body=given(
            {
                "amount": amount,
                "destination": destination,
                "assetSymbol": asset_symbol,
                "chainId": chain_id,
                "reference": reference,
                "successUrl": success_url,
                "cancelUrl": cancel_url,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def public_payments_read(payment_id: str, *, client_secret: str) -> Call[PublicPayment]:
    """Read the Payment, with its options without an account."""
    return Call(
        operation="readPublicPayment",
        method="GET",
        path="/v2/public/payments/{paymentId}",
        response=PublicPayment,
        credential="none",
        bearer=client_secret,
        path_arguments={"paymentId": payment_id},
    )


def public_payments_read_state(payment_id: str, *, client_secret: str) -> Call[CheckoutState]:
    """Poll the Payment's state; 304 while it has not changed."""
    return Call(
        operation="readPublicPaymentState",
        method="GET",
        path="/v2/public/payments/{paymentId}/state",
        response=CheckoutState,
        credential="none",
        bearer=client_secret,
        path_arguments={"paymentId": payment_id},
    )


def public_payments_list_methods(payment_id: str, *, client_secret: str) -> Call[Methods]:
    """List the ways to pay without an account."""
    return Call(
        operation="listPublicMethods",
        method="GET",
        path="/v2/public/payments/{paymentId}/methods",
        response=Methods,
        credential="none",
        bearer=client_secret,
        path_arguments={"paymentId": payment_id},
    )


def public_options_create(
    payment_id: str,
    *,
    client_secret: str,
    provider_code: Literal["vault", "direct", "routing", "hosted_onramp"],
    chain_id: int | UnsetType | None = UNSET,
    asset_symbol: str | UnsetType | None = UNSET,
    payer_address: str | UnsetType | None = UNSET,
    refund_address: str | UnsetType | None = UNSET,
    idempotency_key: str | None = None,
) -> Call[PublicPaymentOption]:
    """Offer a way to pay without an account; it is not selected yet. A way to pay without an
    account. `payerAddress` is the wallet that will send, for `direct`. For `routing`,
    `chainId` and `assetSymbol` name what the payer sends, and `refundAddress` is the
    payer's address on that chain, which gets what cannot be delivered; all three are
    required. `hosted_onramp` takes none of these.

    `provider_code`: The method: `vault`, `direct`, `routing` or `hosted_onramp`.
    `chain_id`: The number of the chain, such as 8453 for Base.
    `asset_symbol`: The asset's symbol, such as `USDC`.
    `payer_address`: The address that the payer says it pays from; null without one.
    `refund_address`: Where a router returns what it cannot deliver.
    """
    return Call(
        operation="createPublicOption",
        method="POST",
        path="/v2/public/payments/{paymentId}/options",
        response=PublicPaymentOption,
        credential="none",
        bearer=client_secret,
        path_arguments={"paymentId": payment_id},
        body=given(
            {
                "providerCode": provider_code,
                "chainId": chain_id,
                "assetSymbol": asset_symbol,
                "payerAddress": payer_address,
                "refundAddress": refund_address,
            }
        ),
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def public_options_read(
    payment_id: str, option_id: str, *, client_secret: str
) -> Call[PublicPaymentOption]:
    """Read an option: where to send what, and what arrived."""
    return Call(
        operation="readPublicOption",
        method="GET",
        path="/v2/public/payments/{paymentId}/options/{optionId}",
        response=PublicPaymentOption,
        credential="none",
        bearer=client_secret,
        path_arguments={"paymentId": payment_id, "optionId": option_id},
    )


def public_options_select(
    payment_id: str, option_id: str, *, client_secret: str, idempotency_key: str | None = None
) -> Call[PublicPaymentOption]:
    """Select the option to pay by; the previous option is superseded."""
    return Call(
        operation="selectPublicOption",
        method="POST",
        path="/v2/public/payments/{paymentId}/options/{optionId}/select",
        response=PublicPaymentOption,
        credential="none",
        bearer=client_secret,
        path_arguments={"paymentId": payment_id, "optionId": option_id},
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def public_options_refresh(
    payment_id: str, option_id: str, *, client_secret: str, idempotency_key: str | None = None
) -> Call[PublicPaymentOption]:
    """Refresh the option: a new quote for the amount that still remains."""
    return Call(
        operation="refreshPublicOption",
        method="POST",
        path="/v2/public/payments/{paymentId}/options/{optionId}/refresh",
        response=PublicPaymentOption,
        credential="none",
        bearer=client_secret,
        path_arguments={"paymentId": payment_id, "optionId": option_id},
        takes_key=True,
        idempotency_key=idempotency_key,
    )


def public_options_submit_transaction(
    payment_id: str,
    option_id: str,
    *,
    client_secret: str,
    transaction_hash: str,
    chain_id: int,
    idempotency_key: str | None = None,
) -> Call[PublicPaymentOption]:
    """Submit the hash of the transfer to look for; at most five times for one option. A
    transaction that the payer says it has sent; the service checks it.

    `transaction_hash`: The hash of the transaction on the chain.
    `chain_id`: The number of the chain, such as 8453 for Base.
    """
    return Call(
        operation="submitPublicTransaction",
        method="POST",
        path="/v2/public/payments/{paymentId}/options/{optionId}/submissions",
        response=PublicPaymentOption,
        credential="none",
        bearer=client_secret,
        path_arguments={"paymentId": payment_id, "optionId": option_id},
        body=given({"transactionHash": transaction_hash, "chainId": chain_id}),
        takes_key=True,
        idempotency_key=idempotency_key,
    )
