# Printed from the OpenAPI document by docs/client: run `make client`.
"""What the service returns."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from payments_core_http.client.structs import Known, Page, Response


class Dedupe(Response, frozen=True, kw_only=True):
    """The headers by which a receiver detects duplicates."""

    delivery_retry_header: str
    """The header that is the same in every retry of a delivery."""
    event_header: str
    """The header that is the same in every delivery of an event."""


class DeliveryPolicy(Response, frozen=True, kw_only=True):
    """What a receiver of this deployment's webhooks may rely on."""

    guarantee: Known[Literal["at_least_once"]]
    """How often an event is delivered."""
    max_attempts: int
    """The number of failed attempts after which a delivery is abandoned."""
    local_private_destinations_allowed: bool
    """Whether endpoints may be on this machine; only in a sandbox."""
    dedupe: Dedupe
    """The headers by which a receiver detects duplicates."""


class WebhookCapabilities(Response, frozen=True, kw_only=True):
    """What a receiver of this deployment's webhooks may rely on."""

    delivery_policy: DeliveryPolicy
    """What a receiver may rely on."""


class DeploymentCapabilities(Response, frozen=True, kw_only=True):
    """What this deployment can do."""

    webhooks: WebhookCapabilities
    """What this deployment's webhooks can do."""


class PartnerConfig(Response, frozen=True, kw_only=True):
    """What a credential is, and what it gives access to."""

    app_id: str
    """The app's id."""
    environment_id: str
    """The id of the app's environment: its sandbox or its production side."""
    mode: Known[Literal["sandbox", "production"]]
    """The environment's mode."""
    partner_id: str
    """The partner's name in payment addresses."""
    credential_type: Known[Literal["standard", "restricted"]]
    """Whether the key is standard or restricted."""
    credential_mode: Known[Literal["app_secret"]]
    """What the credential is for: `app_secret`, for backends."""
    api_version: str
    """The dated contract that the environment is pinned to."""
    supported_api_versions: list[str]
    """The dated contracts that this deployment supports."""
    scopes: list[str]
    """What the key may call."""
    products: list[str]
    """The products that the environment has."""
    capabilities: DeploymentCapabilities
    """What this deployment can do."""


class PayableWallet(Response, frozen=True, kw_only=True):
    """An address that public Payments may pay, on its chain."""

    type: Known[Literal["wallet"]]
    """Its kind."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    address: str
    """The address that public Payments may pay."""


class Branding(Response, frozen=True, kw_only=True):
    """What the checkout page shows."""

    name: str | None
    """Your name on the page; null means that no name is shown."""
    logo_url: str | None
    """Your logo; null without one."""
    primary_color: str | None
    """The color of links, buttons and the line at the top; null means the page's default."""
    currency: str | None
    """The currency of your prices (ISO 4217); null means US dollars."""


class PaymentSettings(Response, frozen=True, kw_only=True):
    """The settings of an environment. `version` is 0, and the times are null, until they are
    first set; a null limit means no limit.
    """

    enabled: bool
    """Whether pages on the allowed origins may create Payments."""
    allowed_origins: list[str]
    """The origins whose pages may frame the checkout page, and create Payments."""
    allowed_destinations: list[PayableWallet]
    """The addresses that public Payments may pay."""
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    """The methods that payers may use."""
    chains: list[int] | None
    """The chains that Payments may be on; null means any chain."""
    assets: list[str] | None
    """The assets that Payments may be in; null means any asset."""
    min_amount: str | None
    """The minimum amount of a Payment; null means no limit."""
    max_amount: str | None
    """The maximum amount of a Payment; null means no limit."""
    expires_in_seconds: int
    """After how many seconds a Payment expires, unless it sets its own."""
    monitoring_seconds: int
    """For how many seconds after its end a Payment's escrow is watched."""
    underpayment_tolerance_bps: int
    """How much of the amount may be missing, in hundredths of a percent."""
    fee_bps: int
    """The fee of new Payments, in hundredths of a percent."""
    confirmations: dict[str, int]
    """How many blocks must follow the block of a transfer, by chain."""
    success_url: str | None
    """Where payers who have paid are sent, unless a Payment sets its own URL."""
    cancel_url: str | None
    """Where payers who cancel are sent, unless a Payment sets its own URL."""
    branding: Branding
    """Your brand on the checkout page."""
    version: int
    """The version to send with a change; 0 until they are set."""
    created_at: datetime | None
    """When they were first set; null until then."""
    updated_at: datetime | None
    """When they last changed; null until they are set."""


class CreatedClientSession(Response, frozen=True, kw_only=True):
    """A new session; its token is shown only here."""

    client_session_id: str
    """The session's id."""
    client_session_token: str
    """The token to exchange once for an access token; shown only here."""
    account_id: str
    """The account's id."""
    permissions: list[str]
    """What the client may do."""
    exchange_expires_at: datetime
    """When the session's token can no longer be exchanged."""
    expires_at: datetime
    """When the session and its access token end."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class ClientSession(Response, frozen=True, kw_only=True):
    """A session without its token."""

    client_session_id: str
    """The session's id."""
    account_id: str
    """The account's id."""
    permissions: list[str]
    """What the client may do."""
    exchange_expires_at: datetime
    """When the session's token can no longer be exchanged."""
    expires_at: datetime
    """When the session and its access token end."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""
    revoked_at: datetime | None
    """When it was revoked; null while it is valid."""


class Vault(Response, frozen=True, kw_only=True):
    """A vault on one chain."""

    vault_id: str
    """The vault's id."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    address: str
    """The vault's address."""
    status: Known[Literal["counterfactual", "deployed"]]
    """Whether its contract is deployed."""


class Wallet(Response, frozen=True, kw_only=True):
    """A wallet address of an account. `verifiedChainIds` has the EVM chains on which the
    contract at the address has proven it, and is null for a wallet that is verified on
    every chain, or on none.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    wallet_id: str
    """The wallet's id."""
    account_id: str
    """The account's id."""
    address: str
    """The address on the chain."""
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    """The family of the chain; it determines the format of addresses and signatures."""
    label: str | None
    """Your own name for the wallet."""
    verified: bool
    """Whether a signature has proven who owns the wallet."""
    verified_at: datetime | None
    """When it was verified; null until then."""
    verified_chain_ids: list[int] | None
    """The EVM chains on which its contract has proven it; null if it is verified on every
chain, or on none.
"""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class AccountsSettlement(Response, frozen=True, kw_only=True):
    """Where an account is to be paid."""

    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""


class Kyc(Response, frozen=True, kw_only=True):
    """The state of the account's verification."""

    status: Known[Literal["not_started", "pending", "approved", "rejected"]]
    """Its state."""


class Account(Response, frozen=True, kw_only=True):
    """An account."""

    id: str
    """The resource's id; ids are opaque and never change."""
    account_id: str
    """The account's id."""
    external_user_id: str
    """Your own id of the account's user."""
    subject_type: Known[Literal["individual", "business"]]
    """Whether the account's holder is a person or a business."""
    status: Known[Literal["active", "suspended", "closed"]]
    """Its state."""
    username: str | None
    """The name in the payment address; null without one."""
    email: str | None
    """The account's email address; null without one."""
    payment_address: str | None
    """`<username>@<partner id>`; null without a username."""
    vaults: list[Vault]
    """The account's vaults, one for each chain."""
    wallets: list[Wallet]
    """The account's wallets."""
    settlement: AccountsSettlement | None
    """The chain and asset in which the account receives payments; null without a preference."""
    kyc: Kyc
    """The state of the account's verification."""
    capabilities: dict[
        str,
        Known[Literal["inactive", "action_required", "pending", "active", "rejected", "suspended"]],
    ]
    """The state of each regulated capability, by its name."""
    labels: list[str]
    """`misdirected` once a token arrived that it is not credited with; never removed."""
    metadata: dict[str, Any] | None
    """Your own data; the service returns it unchanged."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class Balance(Response, frozen=True, kw_only=True):
    """What a vault holds of one asset, on chain at the newest final block."""

    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    token_address: str
    """The address of the asset's contract on the chain."""
    decimals: int
    """How many decimal places the asset has."""
    total_atomic: str
    """What the vault holds on chain at the newest final block, in the smallest unit."""
    available_atomic: str
    """What can still be authorized, in the smallest unit: the total less what is reserved."""
    reserved_atomic: str
    """What is reserved by authorizations that are not final yet, in the smallest unit."""
    available: str
    """What can still be authorized, as a decimal string."""


class Balances(Response, frozen=True, kw_only=True):
    """The balances of an account's vaults."""

    account_id: str
    """The account's id."""
    balances: list[Balance]
    """The balances."""


class Requirements(Response, frozen=True, kw_only=True):
    """The requirements of a capability, by name."""

    missing: list[str]
    """The requirements that are still missing."""
    pending: list[str]
    """The requirements that are being reviewed."""
    complete: list[str]
    """The requirements that are complete."""


class Action(Response, frozen=True, kw_only=True):
    """A step that supplies a requirement or removes a reason; `resolves` names which.
    `method` and `path` are the request to send next; null if the user, the bank or the
    operator of the deployment acts. `url` is where the user supplies what the bank asks
    for.
    """

    resolves: str
    """The requirement or reason that the request resolves."""
    description: str
    """What must be done, and by whom."""
    method: str | None
    """The method of the request to send; null if you cannot act."""
    path: str | None
    """The path of the request to send; null if you cannot act."""
    url: str | None
    """Where the user supplies what the bank asks for; null if nothing is needed."""


class Capability(Response, frozen=True, kw_only=True):
    """A capability of an account; `actions` says who supplies what is missing, and where."""

    status: Known[
        Literal["inactive", "action_required", "pending", "active", "rejected", "suspended"]
    ]
    """Its state."""
    requirements: Requirements
    """The requirements of the capability."""
    actions: list[Action]
    """The next steps that supply missing information or remove a reason."""


class Capabilities(Response, frozen=True, kw_only=True):
    """The capabilities of an account, by name."""

    account_id: str
    """The account's id."""
    capabilities: dict[str, Capability]
    """The state of each regulated capability, by its name."""


class Challenge(Response, frozen=True, kw_only=True):
    """A text for a wallet to sign; an Aptos wallet takes the nonce beside it."""

    id: str
    """The resource's id; ids are opaque and never change."""
    challenge_id: str
    """The challenge's id."""
    account_id: str
    """The account's id."""
    address: str
    """The address whose owner must sign."""
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    """The family of the chain; it determines the format of addresses and signatures."""
    chain_id: int | None
    """The EVM chain on which a contract's answer counts; null for every served one."""
    message: str
    """The text for the wallet to sign."""
    nonce: str
    """A value that makes the message unique; an Aptos wallet takes it as a separate input."""
    expires_at: datetime
    """When the signature is no longer accepted."""
    created_at: datetime
    """When it was created."""


class Verification(Response, frozen=True, kw_only=True):
    """A verification; the URL is present while the user can still use it."""

    id: str
    """The resource's id; ids are opaque and never change."""
    verification_id: str
    """The verification's id."""
    account_id: str
    """The account's id."""
    status: Known[Literal["not_started", "pending", "approved", "rejected"]]
    """Its state."""
    hosted_url: str | None
    """The page to send the user to; null if there is nothing left to do there."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class CapabilityActivation(Response, frozen=True, kw_only=True):
    """A requested capability, its requirements, and in `actions` who supplies what is
    missing, and where.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    account_id: str
    """The account's id."""
    capability: Known[Literal["us_bank_payout", "us_bank_funding"]]
    """The capability's name."""
    status: Known[
        Literal["inactive", "action_required", "pending", "active", "rejected", "suspended"]
    ]
    """Its state."""
    hosted_url: str | None
    """The page to send the user to; null if there is nothing left to do there."""
    reason: str | None
    """Why it was refused; null unless it was."""
    requirements: Requirements
    """The requirements of the capability."""
    actions: list[Action]
    """The next steps that supply missing information or remove a reason."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class PayingWallet(Response, frozen=True, kw_only=True):
    """A vault of the account: payouts are paid from it, and on-ramps credit it."""

    vault_id: str
    """The vault's id."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    address: str
    """The address on the chain."""


class FieldRequirement(Response, frozen=True, kw_only=True):
    """A field of a form; a dot in its name means a nested object."""

    name: str
    """The field's name; a dot means a nested object."""
    type: str
    """The field's type."""
    required: bool
    """Whether the field must be given."""
    min_length: int | None
    """The minimum number of characters; null means no limit."""
    max_length: int | None
    """The maximum number of characters; null means no limit."""
    pattern: str | None
    """The regular expression that the value must match; null means any text."""
    values: list[str] | None
    """The values that the field may have; null means any value."""


class BankAccountRequirements(Response, frozen=True, kw_only=True):
    """Whether bank accounts can be added and, if not, why and what removes the reasons; the
    fields of a new one, and the texts of a payout to it.
    """

    eligible: bool
    """Whether a bank account or on-ramp can be added now."""
    reasons: list[str]
    """Why nothing can be added now; empty if `eligible` is true."""
    actions: list[Action]
    """The next steps that supply missing information or remove a reason."""
    rails: list[Known[Literal["ach", "wire"]]]
    """The kinds of bank transfer that are possible."""
    wallets: list[PayingWallet]
    """The account's wallets."""
    fields: list[FieldRequirement]
    """The fields of the form to show."""
    payout_fields: list[FieldRequirement]
    """The texts of a Payment to a bank account, which are optional."""


class BankAddress(Response, frozen=True, kw_only=True):
    """The holder's home address or registered office."""

    line1: str
    """The first line of the street address."""
    line2: str | None
    """The second line of the street address."""
    city: str
    """The city."""
    state: str
    """The state, as two letters."""
    postal_code: str
    """The postal code."""
    country: str
    """The country, as two letters (ISO 3166-1)."""


class BankAccount(Response, frozen=True, kw_only=True):
    """A bank account, with the last four digits of its number."""

    id: str
    """The resource's id; ids are opaque and never change."""
    bank_account_id: str
    """The id of the bank account; null if there is none."""
    account_id: str
    """The account's id."""
    status: Known[Literal["pending", "active", "rejected", "disabled"]]
    """Its state."""
    currency: str
    """The currency of the bank account."""
    country: str
    """The country, as two letters (ISO 3166-1)."""
    account_holder_name: str
    """The name of the bank account's holder."""
    account_holder_type: Known[Literal["individual", "business"]]
    """Whether the holder is a person or a business."""
    last4: str
    """The last four digits of the number, with `*` for each of them that a number of fewer
than eight digits hides; the whole number is never returned.
"""
    routing_number: str
    """The bank's routing number (ABA)."""
    account_type: Known[Literal["checking", "savings"]]
    """The kind of bank account."""
    bank_name: str | None
    """The bank's name; null if it is not known."""
    address: BankAddress
    """The holder's home address or registered office."""
    reason: str | None
    """Why the bank refuses it; null unless it does."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class OnrampRequirements(Response, frozen=True, kw_only=True):
    """Whether on-ramps can be added and, if not, why and what removes the reasons; and the
    fields of a new one.
    """

    eligible: bool
    """Whether a bank account or on-ramp can be added now."""
    reasons: list[str]
    """Why nothing can be added now; empty if `eligible` is true."""
    actions: list[Action]
    """The next steps that supply missing information or remove a reason."""
    rails: list[Known[Literal["ach_push", "wire"]]]
    """The kinds of bank transfer that are possible."""
    wallets: list[PayingWallet]
    """The account's wallets."""
    fields: list[FieldRequirement]
    """The fields of the form to show."""


class OnrampDestination(Response, frozen=True, kw_only=True):
    """Where the stablecoins go."""

    type: Known[Literal["vault", "wallet"]]
    """Its kind."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    address: str
    """The vault or wallet that is credited."""


class OnrampBankAccount(Response, frozen=True, kw_only=True):
    """A reusable on-ramp, with the last four digits of its number."""

    id: str
    """The resource's id; ids are opaque and never change."""
    onramp_bank_account_id: str
    """The id of the on-ramp bank account."""
    account_id: str
    """The account's id."""
    status: Known[Literal["pending", "active", "rejected", "disabled"]]
    """Its state."""
    currency: str
    """The currency of the bank account."""
    destination: OnrampDestination
    """Where the funds go."""
    bank_name: str | None
    """The bank's name; null if it is not known."""
    last4: str | None
    """The last four digits of the number, with `*` for each of them that a number of fewer
than eight digits hides; the whole number is never returned.
"""
    reason: str | None
    """Why the bank refuses it; null unless it does."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class DepositInstructions(Response, frozen=True, kw_only=True):
    """Where others send money; the instructions never change. The transfer must carry the
    reference.
    """

    bank_name: str
    """The bank's name."""
    bank_address: str
    """The bank's postal address."""
    beneficiary_name: str
    """The name to send money to."""
    beneficiary_address: str
    """The postal address of the beneficiary."""
    account_number: str
    """The number to send money to."""
    routing_number: str
    """The routing number to send money to."""
    rails: list[Known[Literal["ach_push", "wire"]]]
    """The kinds of bank transfer that are possible."""
    reference: str
    """The text that the transfer must carry."""


class BankTransaction(Response, frozen=True, kw_only=True):
    """A bank transfer to an on-ramp, and the state of its money. `amount` is in dollars;
    `amountAtomic` of the asset is credited for it. A `micro_deposit` is never credited.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    transaction_id: str
    """The transaction's id."""
    onramp_bank_account_id: str
    """The id of the on-ramp bank account."""
    account_id: str
    """The account's id."""
    type: Known[Literal["transfer", "micro_deposit"]]
    """A transfer, or a micro-deposit, which is never credited."""
    status: Known[
        Literal["scheduled", "received", "in_review", "submitted", "settled", "refunded", "failed"]
    ]
    """Its state."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    rail: Known[Literal["ach_push", "wire"]]
    """The kind of bank transfer."""
    currency: Known[Literal["usd"]]
    """The currency of the transfer."""
    amount: str
    """The amount in dollars, as a decimal string."""
    amount_atomic: str
    """What is credited for it, in the asset's smallest unit."""
    destination: OnrampDestination
    """Where the funds go."""
    transaction_hash: str | None
    """The transaction that credits the stablecoins; null until there is one."""
    sender_name: str | None
    """Who sent the money, according to the bank; null if the bank does not say."""
    reference: str | None
    """The sender's text on the transfer; null without one."""
    reason: str | None
    """The reason; null without one."""
    expected_at: datetime | None
    """When the money is expected; null if that is not known."""
    received_at: datetime | None
    """When the money arrived; null until then."""
    submitted_at: datetime | None
    """When the credit was sent to the chain; null until then."""
    settled_at: datetime | None
    """When it settled; null until then."""
    refunded_at: datetime | None
    """When the money was sent back; null unless it was."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class VaultDetails(Response, frozen=True, kw_only=True):
    """A vault on one chain, its account, and the policy that governs it."""

    id: str
    """The resource's id; ids are opaque and never change."""
    vault_id: str
    """The vault's id."""
    account_id: str
    """The account's id."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    address: str
    """The vault's address."""
    status: Known[Literal["counterfactual", "deployed"]]
    """Whether it is deployed."""
    policy_id: str
    """The id of the vault's policy."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class AllowedWalletOrAllowedAccount(Response, frozen=True, kw_only=True):
    """Either `AllowedWallet` or `AllowedAccount`: fields that the actual form lacks are
    None.
    """

    type: Known[Literal["wallet", "account"]]
    address: str | None = None
    """The address that may be paid."""
    chain_id: int | None = None
    """The chain on which it may be paid; null means any chain."""
    account_id: str | None = None
    """The account's id."""


class Policy(Response, frozen=True, kw_only=True):
    """What a vault may be used for, in one version; null means no limit."""

    id: str
    """The resource's id; ids are opaque and never change."""
    policy_id: str
    """The id of the vault's policy."""
    vault_id: str
    """The vault's id."""
    account_id: str
    """The account's id."""
    version: int
    """The version; it rises at each change."""
    status: Known[Literal["active", "paused"]]
    """Its state."""
    per_payment_limit: str | None
    """The maximum for one Payment, as a decimal string; null means no limit."""
    daily_limit: str | None
    """The maximum for a UTC day, as a decimal string; null means no limit."""
    allowed_chains: list[int] | None
    """The chains that it may pay on; null means any chain."""
    allowed_assets: list[str] | None
    """The assets that it may pay; null means any asset."""
    allowed_destinations: list[AllowedWalletOrAllowedAccount] | None
    """Who may be paid; null means anyone."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class YieldSettings(Response, frozen=True, kw_only=True):
    """Whether a vault's idle funds earn, and how."""

    vault_id: str
    """The vault's id."""
    account_id: str
    """The account's id."""
    enabled: bool
    """Whether idle funds earn yield."""
    strategy: str | None
    """Where idle funds earn yield; null if none is chosen."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class Mandate(Response, frozen=True, kw_only=True):
    """A standing approval; `remainingAtomic` is of the current period."""

    id: str
    """The resource's id; ids are opaque and never change."""
    mandate_id: str
    """The id of the mandate that approves the transfer."""
    account_id: str
    """The account's id."""
    vault_id: str
    """The vault's id."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    amount_per_period: str
    """How much it approves for each period, as a decimal string."""
    amount_per_period_atomic: str
    """The same in the asset's smallest unit."""
    period: Known[Literal["day", "week", "month"]]
    """How often the approval renews."""
    remaining_atomic: str
    """What is left in the current period, in the smallest unit."""
    status: str
    """Its state."""
    reference: str | None
    """Your own id or text for it."""
    metadata: dict[str, Any] | None
    """Your own data; the service returns it unchanged."""
    expires_at: datetime | None
    """When the approval ends; null if it does not end."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""
    revoked_at: datetime | None
    """When it was revoked; null while it is valid."""


class DepositAddress(Response, frozen=True, kw_only=True):
    """An account's static address on a chain."""

    id: str
    """The resource's id; ids are opaque and never change."""
    account_id: str
    """The account's id."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    """The family of the chain; it determines the format of addresses and signatures."""
    address: str
    """The address on the chain."""
    created_at: datetime
    """When it was created."""


class SendingBackFailure(Response, frozen=True, kw_only=True):
    """Why the funds are not back."""

    reason: str
    """Why the funds are not back."""


class SentBack(Response, frozen=True, kw_only=True):
    """The newest transfer that sends misdirected funds back, on their own chain."""

    destination: str
    """The address that gets them."""
    status: Known[Literal["created", "failed", "submitted", "succeeded"]]
    """Its state."""
    in_review: bool
    """Whether screening holds it: it is not sent before its destination is clear."""
    transaction_hash: str | None
    """The hash of the transaction on the chain; null until there is one."""
    failure: SendingBackFailure | None
    """Why it failed; null unless it did."""


class Deposit(Response, frozen=True, kw_only=True):
    """A transfer to a deposit address, and its state."""

    id: str
    """The resource's id; ids are opaque and never change."""
    deposit_id: str
    """The deposit's id."""
    account_id: str
    """The account's id."""
    deposit_address_id: str
    """The id of the deposit address."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    token_address: str
    """The address of the asset's contract on the chain."""
    amount: str
    """How much arrived, as a decimal string."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    status: Known[Literal["confirmed", "detected", "failed", "rejected", "settled"]]
    """Its state."""
    rejection_reason: (
        Known[
            Literal[
                "wrong_chain",
                "wrong_token",
                "wrong_recipient",
                "wrong_amount",
                "transaction_failed",
                "not_final",
                "already_used",
            ]
        ]
        | None
    )
    """Why it does not count; null unless it was rejected."""
    transaction_hash: str
    """The hash of the transaction on the chain; null until there is one."""
    from_: str
    """The address that sent the funds."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""
    settled_at: datetime | None
    """When it settled; null until then."""
    sent_back: SentBack | None = None
    """The newest transfer that sends its misdirected funds back; absent without one."""


class Check(Response, frozen=True, kw_only=True):
    """An account's newest deposits after a check of the chain."""

    account_id: str
    """The account's id."""
    checked_at: datetime
    """When the chain was read."""
    deposits: list[Deposit]
    """The newest deposits."""


class Fees(Response, frozen=True, kw_only=True):
    """The fees that the recipient pays, fixed at creation; the release withholds the amount."""

    fee_bps: int
    """The fee in hundredths of a percent of what is released."""
    fee_amount_atomic: str
    """The fee, in the asset's smallest unit."""
    paid_by: Known[Literal["recipient"]]
    """Who pays the fee."""


class Source(Response, frozen=True, kw_only=True):
    """The vault that pays, under which mandate, and the version of its policy that allowed
    it.
    """

    type: Known[Literal["vault"]]
    """Its kind."""
    account_id: str
    """The account's id."""
    external_user_id: str
    """Your own id of the account's user."""
    vault_id: str
    """The vault's id."""
    address: str
    """The vault that pays."""
    mandate_id: str | None
    """The mandate; null without one."""
    policy_version: int | None
    """The version of the vault's policy that allowed it; null until then."""


class Destination(Response, frozen=True, kw_only=True):
    """Who is paid. For a bank account, the address is the off-ramp address."""

    type: Known[Literal["account", "payment_address", "wallet", "bank_account"]]
    """Its kind."""
    account_id: str | None
    """The account that is paid; null if no account is paid."""
    external_user_id: str | None
    """Your own id of that account's user; null without an account."""
    payment_address: str | None
    """The payment address that was named; null without one."""
    address: str
    """The address that is paid; for a bank account, the off-ramp address."""
    bank_account_id: str | None
    """The id of the bank account; null if there is none."""
    rail: Known[Literal["ach", "wire"]] | None
    """The kind of bank transfer."""
    ach_reference: str | None
    """The text on the recipient's statement for an ACH payment."""
    wire_message: str | None
    """The message of a wire."""


class Escrow(Response, frozen=True, kw_only=True):
    """Where the Payment's funds are received."""

    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    address: str
    """The address to which payers send."""


class Submission(Response, frozen=True, kw_only=True):
    """A transaction that the payer says it has sent; the receipts show whether it did."""

    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    transaction_hash: str
    """The hash of the transaction on the chain; null until there is one."""
    submitted_at: datetime
    """When it was submitted."""


class ChainAmount(Response, frozen=True, kw_only=True):
    """An amount of an asset on a chain."""

    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""


class TokenAmount(Response, frozen=True, kw_only=True):
    """An amount with its decimal text and its token."""

    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    amount_decimal: str
    """The amount, as a decimal string in whole units of the asset."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    token_address: str
    """The address of the asset's contract on the chain."""


class TokenAmountOrTokenAmount(Response, frozen=True, kw_only=True):
    """Either `TokenAmount` or `TokenAmount`: fields that the actual form lacks are None."""

    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    amount_decimal: str
    """The amount, as a decimal string in whole units of the asset."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    token_address: str
    """The address of the asset's contract on the chain."""


class VaultExecutionOrTransferExecutionOrRedirectExecution(Response, frozen=True, kw_only=True):
    """Either `VaultExecution` or `TransferExecution` or `RedirectExecution`: fields that the
    actual form lacks are None.
    """

    type: Known[Literal["vault_authorization", "transfer", "redirect"]]
    action_id: str | None = None
    """The one-time action that authorizes this transfer."""
    expires_at: datetime | None = None
    """When the action expires."""
    chain_id: int | None = None
    """The number of the chain, such as 8453 for Base."""
    token_address: str | None = None
    """The address of the asset's contract on the chain."""
    to: str | None = None
    """The escrow's or the router's address."""
    amount_atomic: str | None = None
    """How much to send, in the smallest unit."""
    url: str | None = None
    """The provider's page for this payer only."""
    price: str | None = None
    """What the payer pays in all, as a decimal string."""
    currency: str | None = None
    """The currency of the price (ISO 4217)."""


class Receipt(Response, frozen=True, kw_only=True):
    """A transfer to the escrow and its result. `optionId` is null for a transfer that
    belongs to no option. `sentBack` is there if the return of misdirected funds was
    requested.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    payment_id: str
    """The Payment's id."""
    option_id: str | None
    """The option's id; null without one."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    transaction_hash: str
    """The hash of the transaction on the chain; null until there is one."""
    log_index: int
    """The index of the transfer's log in its block."""
    token_address: str
    """The address of the asset's contract on the chain."""
    from_: str
    """The address that sent the funds."""
    to: str
    """The address that receives the funds."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    block_number: int
    """The number of the block that the transfer is in."""
    block_hash: str
    """The hash of the block that the transfer is in."""
    status: Known[Literal["observed", "rejected", "reorged", "verified"]]
    """Its state."""
    rejection_reason: (
        Known[
            Literal[
                "wrong_chain",
                "wrong_token",
                "wrong_recipient",
                "wrong_amount",
                "transaction_failed",
                "not_final",
                "already_used",
            ]
        ]
        | None
    )
    """Why it does not count; null unless it was rejected."""
    observed_at: datetime
    """When it was first seen."""
    verified_at: datetime | None
    """When it was verified; null until then."""
    sent_back: SentBack | None = None
    """The newest transfer that sends its misdirected funds back; absent without one."""


class Offer(Response, frozen=True, kw_only=True):
    """What the provider of an option says about its newest offer. The receipts show whether
    anything arrived.
    """

    status: Known[Literal["asked", "refused", "waiting", "paid", "delivered", "returned", "failed"]]
    """What the provider says: it may still say that it was paid after it has delivered."""
    payment_transaction_hash: str | None
    """The payer's transfer to a router; null until the router has seen it."""
    transaction_hash: str | None
    """The transfer to the escrow, or back to the payer's `refundAddress`; null until there
is one.
"""
    amount_atomic: str | None
    """The amount in the newest transfer, in the smallest unit of its asset."""


class OptionOrPublicOption(Response, frozen=True, kw_only=True):
    """Either `Option` or `PublicOption`: fields that the actual form lacks are None."""

    id: str
    """The resource's id; ids are opaque and never change."""
    provider_code: Known[Literal["vault"]]
    """The method: `vault`, `direct`, `routing` or `hosted_onramp`."""
    payment_method_type: Known[Literal["account_balance"]]
    """The kind of method."""
    payment_method_id: Known[Literal["vault.service"]]
    """The method by its provider's name."""
    type: Known[Literal["account_balance"]]
    """Its kind."""
    display_name: Known[Literal["Pay with Service Vault"]]
    """The text to show to a payer."""
    status: Known[
        Literal["cancelled", "creating", "expired", "failed", "pending", "processing", "succeeded"]
    ]
    """Its state."""
    selection_status: Known[Literal["selected", "superseded"]] | None
    """Whether it is selected or superseded; null until it is selected."""
    required_amount_atomic: str
    """The amount that the option is to deliver, in the smallest unit."""
    paid_amount_atomic: str
    """What was received by this option, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    is_terminal: bool
    """Whether `status` is final."""
    confirmation_mode: Known[Literal["provider_webhook", "chain"]]
    transaction_submissions: list[str | Submission]
    source_amount: ChainAmount
    """What leaves the payer's vault or wallet."""
    destination_amount: ChainAmount
    """What the escrow is to receive."""
    payer_amount: TokenAmount
    """What the payer pays."""
    recipient_amount: TokenAmount
    """The amount for the recipient."""
    provider_fee: TokenAmountOrTokenAmount | None
    execution: VaultExecutionOrTransferExecutionOrRedirectExecution | None
    expires_at: datetime | None
    """When it expires."""
    refreshable: bool
    """Whether a refresh can give it new terms and a new action."""
    fee_amount_atomic: str
    """The fee, in the asset's smallest unit."""
    action_expires_at: datetime | None
    """When the one-time action expires; null without one."""
    quote_expires_at: datetime | None
    """When its terms expire; null if they do not expire."""
    order_expires_at: datetime | None
    """When a provider's order expires; null without one."""
    receipts: list[Receipt]
    """The transfers that were seen at the escrow."""
    payer_address: str | None = None
    """The address that the payer says it pays from; null without one."""
    refund_address: str | None = None
    """Where a router returns what it cannot deliver; null for other methods."""
    offer: Offer | None = None
    """What the provider says; null without one."""
    created_at: datetime | None = None
    """When it was created."""
    updated_at: datetime | None = None
    """When it last changed."""


class FundingOperation(Response, frozen=True, kw_only=True):
    """A funding operation."""

    id: str
    """The resource's id; ids are opaque and never change."""
    status: Known[
        Literal[
            "authorized",
            "awaiting_authorization",
            "broadcast",
            "cancelled",
            "confirmed",
            "expired",
            "failed",
            "unknown",
        ]
    ]
    """Its state."""
    status_version: int
    """Rises by one at each change; 2 once it is authorized."""
    commercial_fee_mode: Known[Literal["parent_payment"]]
    """Where fees are charged: with the Payment, not with the transfer."""
    transaction_hash: str | None
    """The hash of the transaction on the chain; null until there is one."""
    authorized_at: datetime | None
    """When the transfer was authorized; null until then."""
    broadcast_at: datetime | None
    """When the transfer was sent to the chain; null until then."""
    confirmed_at: datetime | None
    """When the transfer was final on the chain; null until then."""
    expires_at: datetime | None
    """When the one-time action expires; null if it does not expire."""


class PaymentOptionEntry(Response, frozen=True, kw_only=True):
    """An option of the Payment; a Vault option's funding operation, and the authorization's
    metadata.
    """

    option: OptionOrPublicOption
    """The option."""
    funding_operation: FundingOperation | None
    """The transfer from the payer's vault; null for an option without one."""
    metadata: dict[str, Any] | None
    """The metadata of the authorization; null without one."""


class RefundFailure(Response, frozen=True, kw_only=True):
    """Why a refund failed."""

    reason: str
    """Why it failed."""


class Refund(Response, frozen=True, kw_only=True):
    """One transfer back: from the escrow or from the recipient's vault. The off-ramp
    address, from which a payout that the bank did not pay goes back, is an escrow too.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    refund_id: str
    """The refund's id."""
    payment_id: str
    """The Payment's id."""
    amount: str
    """How much goes back, as a decimal string."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    source: Known[Literal["escrow", "vault"]]
    """Whether it comes from the escrow or from the recipient's vault."""
    destination: str
    """The address that gets it."""
    reason: str | None
    """The reason; null without one."""
    purpose: Known[Literal["refund", "reconcile_refund", "refund_excess"]]
    """What it was made for: a requested refund, or a decision of a reconciliation."""
    status: Known[Literal["created", "failed", "submitted", "succeeded"]]
    """Its state."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    in_review: bool
    """Whether screening holds it: it is not sent before its destination is clear."""
    transaction_hash: str | None
    """The hash of the transaction on the chain; null until there is one."""
    failure: RefundFailure | None
    """Why it failed; null unless it did."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""
    succeeded_at: datetime | None
    """When it succeeded; null until then."""


class PayoutFailure(Response, frozen=True, kw_only=True):
    """Why the bank did not pay: the bank's reason, or why the transfer to the bank failed."""

    reason: str
    """The bank's reason, or why the transfer to the bank failed."""


class Payout(Response, frozen=True, kw_only=True):
    """What the bank is asked to pay. `attempt` counts the payouts of the Payment;
    `reference` is the bank's, and `settlesOn` the settlement date of the rail: expected,
    until it has settled.
    """

    status: Known[Literal["cancelled", "created", "failed", "returned", "settled", "submitted"]]
    """Its state."""
    attempt: int
    """The number of this payout of the Payment; each retry is a new payout."""
    bank_account_id: str
    """The bank account that is paid."""
    rail: Known[Literal["ach", "wire"]]
    """The kind of bank transfer."""
    amount: str
    """The amount in the bank's currency, as a decimal string."""
    currency: str
    """The currency that the bank pays."""
    reference: str | None
    """The bank's own id of the payment; null until it has one."""
    settles_on: str | None
    """The settlement date; an expected date until the payout has settled."""
    return_code: str | None
    """The bank's code for the return, for example R01; null unless it was returned."""
    failure: PayoutFailure | None
    """Why it failed; null unless it did."""
    submitted_at: datetime | None
    """When the bank was asked to pay; null until then."""
    settled_at: datetime | None
    """When it settled; null until then."""
    returned_at: datetime | None
    """When the bank returned the payout; null unless it was returned."""


class NotedReconciliation(Response, frozen=True, kw_only=True):
    """The exceptions, whether they were resolved, and the note of the last decision."""

    status: Known[Literal["none", "open", "resolved"]]
    """Its state."""
    labels: list[
        Known[
            Literal[
                "blocked",
                "duplicate",
                "execution_failed",
                "in_review",
                "late",
                "misdirected",
                "overpaid",
                "reorged",
                "returned",
                "underpaid",
            ]
        ]
    ]
    """The exceptions that occurred; labels are added and never removed, except `in_review`."""
    resolution: (
        Known[
            Literal[
                "accept",
                "refund",
                "refund_excess",
                "retry_execution",
                "write_off",
                "return_misdirected",
            ]
        ]
        | None
    )
    """How it was resolved; null until then."""
    resolved_at: datetime | None
    """When it was resolved; null until then."""
    note: str | None
    """The note of the last decision; null without one."""


class Timeline(Response, frozen=True, kw_only=True):
    """A status and when it began."""

    status: Known[
        Literal[
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
    ]
    """Its state."""
    at: datetime
    """When the state began."""
    reason: str | None
    """Why this state occurred again, or a decision's note; null without either."""


class Failure(Response, frozen=True, kw_only=True):
    """Why the execution failed."""

    reason: str
    """Why it failed."""


class CreatedPayment(Response, frozen=True, kw_only=True):
    """A new receive Payment, with the secret that is shown only at creation and its replay."""

    id: str
    """The resource's id; ids are opaque and never change."""
    payment_id: str
    """The Payment's id."""
    intent: Known[Literal["receive", "send", "collect"]]
    """The direction of the money: `receive`, `send` or `collect`."""
    status: Known[
        Literal[
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
    ]
    """Its state, as listed in the table of state machines."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    account_id: str | None
    """The recipient's account; null if a wallet or a bank account is paid."""
    external_user_id: str | None
    """Your own id of the recipient's user; null if no account is paid."""
    amount: str
    """The Payment's amount, as a decimal string in whole units of the asset."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    token_address: str
    """The address of the asset's contract on the chain."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    settled_amount_atomic: str
    """What the recipient has received, after the fee, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    returned_amount_atomic: str
    """What the recipient of a payment from a vault has sent back, in the smallest unit."""
    fees: Fees
    """The fees that the recipient pays, fixed at creation."""
    source: Source | None
    """The vault that pays; null without one."""
    destination: Destination
    """Where the funds go."""
    escrow: Escrow | None
    """Where its funds are received; null for a send, which has no escrow."""
    release_transaction_hash: str | None
    """The hash of the transaction that pays the recipient; null before its first broadcast."""
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    """The methods that may pay it; empty if the payer cannot choose one."""
    selected_option_id: str | None
    """The option that the payer has selected; null without one."""
    options: list[PaymentOptionEntry]
    """The options by which the payer has begun to pay."""
    receipts: list[Receipt]
    """The transfers that were seen at the escrow."""
    refunds: list[Refund]
    """The refunds, oldest first."""
    payout: Payout | None
    """What the bank pays; null unless the destination is a bank account."""
    reconciliation: NotedReconciliation
    """The exceptions, and whether they were resolved."""
    session_id: str | None
    """The id of its session, for disputes; null unless it is a receive Payment."""
    timeline: list[Timeline]
    """Its states in order, each with its time."""
    failure: Failure | None
    """Why it failed; null unless it did."""
    reference: str | None
    """Your own id or text for it."""
    description: str | None
    """Your text about it, which the payer sees."""
    metadata: dict[str, Any] | None
    """Your own data; the service returns it unchanged."""
    api_version: str
    """The dated contract under which it was made; it does not change."""
    payment_url: str | None
    """The link to the hosted checkout page, for the payer; null if there is none."""
    success_url: str | None
    """Where the checkout page sends a payer who has paid."""
    cancel_url: str | None
    """Where the checkout page sends a payer who cancels."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    expires_at: datetime | None
    """When it can no longer be paid; null for a send."""
    monitoring_expires_at: datetime | None
    """When the escrow is no longer watched for transfers; null for a send."""
    succeeded_at: datetime | None
    """When it succeeded; null until then."""
    cancelled_at: datetime | None
    """When it was cancelled; null unless it was."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""
    client_secret: str
    """The credential for this one Payment, for the payer's browser."""


class Payment(Response, frozen=True, kw_only=True):
    """A Payment with all its fields. A send has no escrow and no time limit; only a receive
    Payment has a session and a checkout link.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    payment_id: str
    """The Payment's id."""
    intent: Known[Literal["receive", "send", "collect"]]
    """The direction of the money: `receive`, `send` or `collect`."""
    status: Known[
        Literal[
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
    ]
    """Its state, as listed in the table of state machines."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    account_id: str | None
    """The recipient's account; null if a wallet or a bank account is paid."""
    external_user_id: str | None
    """Your own id of the recipient's user; null if no account is paid."""
    amount: str
    """The Payment's amount, as a decimal string in whole units of the asset."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    token_address: str
    """The address of the asset's contract on the chain."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    settled_amount_atomic: str
    """What the recipient has received, after the fee, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    returned_amount_atomic: str
    """What the recipient of a payment from a vault has sent back, in the smallest unit."""
    fees: Fees
    """The fees that the recipient pays, fixed at creation."""
    source: Source | None
    """The vault that pays; null without one."""
    destination: Destination
    """Where the funds go."""
    escrow: Escrow | None
    """Where its funds are received; null for a send, which has no escrow."""
    release_transaction_hash: str | None
    """The hash of the transaction that pays the recipient; null before its first broadcast."""
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    """The methods that may pay it; empty if the payer cannot choose one."""
    selected_option_id: str | None
    """The option that the payer has selected; null without one."""
    options: list[PaymentOptionEntry]
    """The options by which the payer has begun to pay."""
    receipts: list[Receipt]
    """The transfers that were seen at the escrow."""
    refunds: list[Refund]
    """The refunds, oldest first."""
    payout: Payout | None
    """What the bank pays; null unless the destination is a bank account."""
    reconciliation: NotedReconciliation
    """The exceptions, and whether they were resolved."""
    session_id: str | None
    """The id of its session, for disputes; null unless it is a receive Payment."""
    timeline: list[Timeline]
    """Its states in order, each with its time."""
    failure: Failure | None
    """Why it failed; null unless it did."""
    reference: str | None
    """Your own id or text for it."""
    description: str | None
    """Your text about it, which the payer sees."""
    metadata: dict[str, Any] | None
    """Your own data; the service returns it unchanged."""
    api_version: str
    """The dated contract under which it was made; it does not change."""
    payment_url: str | None
    """The link to the hosted checkout page, for the payer; null if there is none."""
    success_url: str | None
    """Where the checkout page sends a payer who has paid."""
    cancel_url: str | None
    """Where the checkout page sends a payer who cancels."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    expires_at: datetime | None
    """When it can no longer be paid; null for a send."""
    monitoring_expires_at: datetime | None
    """When the escrow is no longer watched for transfers; null for a send."""
    succeeded_at: datetime | None
    """When it succeeded; null until then."""
    cancelled_at: datetime | None
    """When it was cancelled; null unless it was."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class Entry(Response, frozen=True, kw_only=True):
    """One movement of a Payment's money: the change of each account, negative for a debit."""

    number: int
    """Its number in the journal, from 1."""
    cause: Known[
        Literal[
            "receipt",
            "receipt_reorged",
            "release",
            "release_reorged",
            "send",
            "send_reorged",
            "refund",
            "refund_reorged",
            "payout_submitted",
            "payout_settled",
            "payout_returned",
        ]
    ]
    """What moved the money."""
    subject: str
    """The id of the receipt, transfer, refund or payout that moved the money."""
    postings: dict[str, str]
    """The change of each account, in the smallest unit; negative for a debit. They add up to
zero.
"""
    note: str | None
    """What it means, in a sentence, if a reorg undid what the Payment had accepted; else
null.
"""
    created_at: datetime
    """When it was created."""


class Journal(Response, frozen=True, kw_only=True):
    """Where a Payment's money is, and how it got there. The balances add up to zero."""

    balances: dict[str, str]
    """What each account holds, in the smallest unit; they add up to zero."""
    entries: list[Entry]
    """The movements, oldest first."""


class Receipts(Page[Receipt], frozen=True, kw_only=True):
    """What a Payment received, and where its money is."""

    journal: Journal
    """Where the Payment's money is, and how it got there."""


class CreatedRefund(Response, frozen=True, kw_only=True):
    """A new refund; `refunds` lists all that the request made, this one first. There are
    several if the funds came from several senders and no destination was named.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    refund_id: str
    """The refund's id."""
    payment_id: str
    """The Payment's id."""
    amount: str
    """How much goes back, as a decimal string."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    source: Known[Literal["escrow", "vault"]]
    """Whether it comes from the escrow or from the recipient's vault."""
    destination: str
    """The address that gets it."""
    reason: str | None
    """The reason; null without one."""
    purpose: Known[Literal["refund", "reconcile_refund", "refund_excess"]]
    """What it was made for: a requested refund, or a decision of a reconciliation."""
    status: Known[Literal["created", "failed", "submitted", "succeeded"]]
    """Its state."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    in_review: bool
    """Whether screening holds it: it is not sent before its destination is clear."""
    transaction_hash: str | None
    """The hash of the transaction on the chain; null until there is one."""
    failure: RefundFailure | None
    """Why it failed; null unless it did."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""
    succeeded_at: datetime | None
    """When it succeeded; null until then."""
    refunds: list[Refund]
    """All refunds that the request made, this one first."""


class BalanceRow(Response, frozen=True, kw_only=True):
    """What an account of the journal had on a day, of one asset. The opening balance with
    what was gained, and without what was lost, is the closing balance, and that opens the
    next day.
    """

    date: str
    """The day in UTC."""
    account: str
    """The account of the journal: `payer` and `sender` are the world outside, `escrow` and
`excess` what is held, `recipient` what was passed on, `fees` your fees, `offramp` and
`bank` the way of payouts and of bank transfers.
"""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    token_address: str
    """The address of the asset's contract on the chain."""
    decimals: int
    """How many decimal places the asset has."""
    opening_atomic: str
    """The balance at the beginning of the day, in the smallest unit."""
    gained_atomic: str
    """The sum of what the account gained, in the smallest unit."""
    lost_atomic: str
    """The sum of what the account lost, in the smallest unit."""
    closing_atomic: str
    """The balance at the end of the day, in the smallest unit."""
    opening: str
    """The balance at the beginning of the day, as a decimal string."""
    closing: str
    """The balance at the end of the day, as a decimal string."""


class TransactionRow(Response, frozen=True, kw_only=True):
    """One movement of money in the journal: of a Payment, or of a bank transfer to an on-
    ramp.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    date: str
    """The day in UTC on which it was booked: when what moved the money was final."""
    created_at: datetime
    """When it was created."""
    cause: str
    """What moved the money."""
    subject: str
    """The id of the receipt, transfer, refund, payout or bank transfer that moved the money."""
    payment_id: str | None
    """The Payment's id."""
    bank_transaction_id: str | None
    """The bank transfer that it belongs to; null unless it is of an on-ramp."""
    account_id: str | None
    """The account's id."""
    external_user_id: str | None
    """Your own id of the account's user."""
    reference: str | None
    """Your own id or text for it."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    token_address: str
    """The address of the asset's contract on the chain."""
    decimals: int
    """How many decimal places the asset has."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    amount: str
    """How much moved, as a decimal string."""
    postings: dict[str, str]
    """The change of each account, in the smallest unit; negative for a debit. They add up to
zero.
"""
    transaction_hash: str | None
    """The hash of the transaction on the chain; null until there is one."""


class PayoutRow(Response, frozen=True, kw_only=True):
    """A payout to a bank account, as it is now: it may settle and come back later."""

    payment_id: str
    """The Payment's id."""
    date: str
    """The day in UTC on which its Payment was created."""
    account_id: str | None
    """The account's id."""
    external_user_id: str | None
    """Your own id of the account's user."""
    reference: str | None
    """Your own id or text for it."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    amount: str
    """How much the bank pays, as a decimal string."""
    currency: str
    """The currency that the bank pays."""
    rail: Known[Literal["ach", "wire"]]
    """The kind of bank transfer."""
    status: Known[Literal["cancelled", "created", "failed", "returned", "settled", "submitted"]]
    """Its state."""
    attempt: int
    """The number of this payout of the Payment; each retry is a new payout."""
    bank_account_id: str
    """The bank account that is paid."""
    bank_reference: str | None
    """The bank's own id of the payment; null until it has one."""
    return_code: str | None
    """The bank's code for the return, for example R01; null unless it was returned."""
    created_at: datetime
    """When it was created."""
    submitted_at: datetime | None
    """When the bank was asked to pay; null until then."""
    settles_on: str | None
    """The settlement date; an expected date until the payout has settled."""
    settled_at: datetime | None
    """When it settled; null until then."""
    returned_at: datetime | None
    """When the bank returned the payout; null unless it was returned."""


class Dispute(Response, frozen=True, kw_only=True):
    """A dispute; the fields of its resolution are null until then."""

    status: Known[Literal["flagged", "resolved"]]
    """Its state."""
    reason: str
    """What is disputed."""
    description: str | None
    """The text of the person who flagged it; null without one."""
    created_at: datetime
    """When it was created."""
    resolution: Known[Literal["won", "lost", "withdrawn"]] | None
    """How it was resolved; null until then."""
    note: str | None
    """The note of the person who resolved it; null without one."""
    resolved_at: datetime | None
    """When it was resolved; null until then."""


class Session(Response, frozen=True, kw_only=True):
    """A session with all its fields."""

    object: Known[Literal["session"]]
    """The kind of object."""
    id: str
    """The resource's id; ids are opaque and never change."""
    status: Known[Literal["open", "pending", "routing", "settled", "refunded", "failed", "expired"]]
    """The Payment's state, with the older names."""
    payment_id: str
    """The Payment's id."""
    amount: str
    """The amount, as a decimal string in whole units of the asset."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    dispute: Dispute | None
    """The dispute; null without one."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class FlaggedDispute(Response, frozen=True, kw_only=True):
    """A dispute that was just flagged, with these fields and no others."""

    status: Known[Literal["flagged", "resolved"]]
    """Its state."""
    reason: str
    """What is disputed."""
    description: str | None
    """The text of the person who flagged it; null without one."""
    created_at: datetime
    """When it was created."""


class FlaggedSession(Response, frozen=True, kw_only=True):
    """A session whose dispute was just flagged, with these fields and no others."""

    object: Known[Literal["session"]]
    """The kind of object."""
    id: str
    """The resource's id; ids are opaque and never change."""
    status: Known[Literal["open", "pending", "routing", "settled", "refunded", "failed", "expired"]]
    """The Payment's state, with the older names."""
    dispute: FlaggedDispute
    """The dispute; null without one."""
    request_id: str
    """The id of this request; quote it when you ask for support."""


class EventFilter(Response, frozen=True, kw_only=True):
    """A rule that an event must satisfy to be sent."""

    field: str
    """The path of a field of the event."""
    op: Known[Literal["=", "!=", ">", ">=", "<", "<=", "in", "exists", "absent"]]
    """How the field is compared."""
    value: str | None
    """What it is compared with; null where the operator takes no value."""
    values: list[str]
    """The values of `in`."""


class Endpoint(Response, frozen=True, kw_only=True):
    """A webhook endpoint; its secret is shown only at creation and rotation."""

    id: str
    """The resource's id; ids are opaque and never change."""
    app_id: str
    """The app's id."""
    environment_id: str
    """The id of the app's environment: its sandbox or its production side."""
    url: str
    """Where deliveries are sent."""
    description: str | None
    """Your own text about it; null without one."""
    subscribed_events: list[str]
    """The names of the events to send; an empty list means every event."""
    filters: list[EventFilter]
    """Rules that an event must satisfy, all of them, to be sent; at most 10."""
    body_format: Known[Literal["envelope", "cloudevents"]]
    """The form of the bodies: the service's own envelope, or CloudEvents 1.0 in the
structured mode.
"""
    status: Known[Literal["active", "disabled", "archived"]]
    """Its state."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class EndpointWithSecret(Response, frozen=True, kw_only=True):
    """A webhook endpoint and its signing secret."""

    webhook_endpoint: Endpoint
    """The endpoint."""
    signing_secret: str
    """The secret that signs the endpoint's deliveries; shown only at creation and rotation."""


class EventType(Response, frozen=True, kw_only=True):
    """An event of the catalog, with the fields of its payload."""

    name: str
    """The event's name."""
    meaning: str
    """What the event means."""
    fields: list[str]
    """The names of its payload's fields."""
    emitted: bool
    """Whether this version of the service sends the event."""


class Endpoints(Page[Endpoint], frozen=True, kw_only=True):
    """The endpoints, what can be subscribed to, and what receivers may rely on."""

    data: list[Endpoint] = msgspec.field(name="webhookEndpoints")
    event_catalog: list[EventType]
    """Every event that can be subscribed to."""
    delivery_policy: DeliveryPolicy
    """What a receiver may rely on."""


class EndpointHealth(Response, frozen=True, kw_only=True):
    """The outcome of the endpoint's newest delivery that has one."""

    status: Known[Literal["unknown", "ok", "failing"]]
    """Whether that delivery was accepted."""
    delivery_id: str | None
    """The newest delivery that has an outcome; null without one."""
    failure_reason: str | None
    """Why that delivery failed; null unless it did."""
    checked_at: datetime | None
    """When that delivery last changed; null without one."""


class EndpointWithHealth(Response, frozen=True, kw_only=True):
    """A webhook endpoint, and whether it accepts its deliveries."""

    webhook_endpoint: Endpoint
    """The endpoint."""
    health: EndpointHealth
    """Whether the endpoint accepts its deliveries."""


class OneEndpoint(Response, frozen=True, kw_only=True):
    """A response with one webhook endpoint."""

    webhook_endpoint: Endpoint
    """The endpoint."""


class TestedEndpoint(Response, frozen=True, kw_only=True):
    """The test event that is queued for an endpoint."""

    webhook_id: str
    """The endpoint's id."""
    event_id: str
    """The event's id."""
    delivery_id: str
    """The delivery's id."""
    status: Known[Literal["pending", "failed", "delivered", "abandoned"]]
    """Its state."""


class RecoveringEndpoint(Response, frozen=True, kw_only=True):
    """A recovery that is in progress."""

    webhook_id: str
    """The endpoint's id."""
    since: datetime
    """The time from which events are sent again."""
    status: Known[Literal["recovering"]]
    """The state of the recovery."""


class Delivery(Response, frozen=True, kw_only=True):
    """A delivery; times that do not apply are absent, never null."""

    id: str
    """The resource's id; ids are opaque and never change."""
    webhook_endpoint_id: str
    """The endpoint's id."""
    outbox_event_id: str
    """The event's id."""
    event_name: str
    """The event's name."""
    status: Known[Literal["pending", "failed", "delivered", "abandoned"]]
    """Its state; an `abandoned` delivery is not sent again by itself."""
    attempts: int
    """How many times it has been sent since its last replay."""
    response_status: int | None
    """The HTTP status of the last attempt; null if there was no response."""
    request_body: str
    """The exact text that was sent."""
    response_body: str | None
    """The start of the endpoint's response; null without one."""
    failure_reason: str | None
    """Why it failed, in a sentence; null if nothing failed."""
    next_attempt_at: datetime | None = None
    """When it is sent again; absent if no attempt is scheduled."""
    delivered_at: datetime | None = None
    """When the endpoint accepted it; absent until then."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class EndpointState(Response, frozen=True, kw_only=True):
    """Which endpoint, and whether it is active."""

    id: str
    """The resource's id; ids are opaque and never change."""
    status: Known[Literal["active", "disabled", "archived"]]
    """Its state."""


class Deliveries(Page[Delivery], frozen=True, kw_only=True):
    """An endpoint's deliveries: those of the last day, and the newest older ones of each
    end.
    """

    data: list[Delivery] = msgspec.field(name="deliveries")
    webhook_endpoint: EndpointState
    """The endpoint."""


class RetriedDelivery(Response, frozen=True, kw_only=True):
    """A delivery that is scheduled again."""

    webhook_id: str
    """The endpoint's id."""
    delivery_id: str
    """The delivery's id."""
    status: Known[Literal["pending", "failed", "delivered", "abandoned"]]
    """Its state."""


class Event(Response, frozen=True, kw_only=True):
    """An event, as in its deliveries."""

    id: str
    """The event's id, which is the same in every delivery."""
    name: str
    """The event's name."""
    api_version: str
    """The dated contract of the event; it never changes."""
    created_at: datetime
    """When the change that it reports was committed."""
    payload: dict[str, Any]
    """What the event is about; the fields depend on the event."""


class ResentEvent(Response, frozen=True, kw_only=True):
    """The deliveries of an event that are queued again."""

    event_id: str
    """The event's id."""
    deliveries: list[RetriedDelivery]
    """The deliveries, newest first."""


class LoggedRequest(Response, frozen=True, kw_only=True):
    """A request that was made with a credential of the environment, and how it ended."""

    id: str
    """The `x-request-id` of its response."""
    method: str
    """Its method."""
    path: str
    """Its path, without the query; text that looks like a secret is replaced."""
    credential: str
    """The kind of credential that its route takes."""
    status: int
    """The HTTP status of its response."""
    error_code: str | None
    """The error's code; null if it succeeded."""
    duration_ms: int
    """How long the response took, in milliseconds."""
    created_at: datetime
    """When its response was sent."""


class Actor(Response, frozen=True, kw_only=True):
    """Who made a change."""

    type: str
    """`key`, `operator`, `client_session`, `payer`, `public` (a visitor of a shop's page),
`program` (that embeds the service), `command_line`, `provider`, `system` (the service
itself), or `unknown` (before the trail had actors).
"""
    id: str | None
    """The id of the key or of the client session, the name of the operator or of another
person, the kind of the provider, or the Payment of the payer; null if there is none.
"""
    name: str | None
    """The name of the key at that time, the account of the client session, the origin of the
visitor's page, or the work of the service; null if there is none.
"""


class AuditEntry(Response, frozen=True, kw_only=True):
    """A change, by whom, from where, and its outcome. It has no credential and no body."""

    id: str
    """The id of the entry."""
    actor: Actor
    """Who made the change."""
    operation: str
    """The resource and what was done, such as `payments.refund`; for work of the service
itself, the name of the event that it caused.
"""
    object_id: str | None
    """What was changed: the first id that the request names, or the id of what it made; null
for settings of the environment.
"""
    related_ids: list[str]
    """The other ids that the request names, and the id of what it made."""
    outcome: str
    """`succeeded`, or `refused` for a log-in."""
    ip_address: str | None
    """The client's address; null if it is unknown, or if the change came from no request."""
    request_id: str | None
    """The `x-request-id` of the response; null if the change came from no request."""
    created_at: datetime
    """When the change was made."""


class Block(Response, frozen=True, kw_only=True):
    """A block of a simulated chain."""

    number: int
    """The block's number."""
    hash: str
    """The block's hash."""


class Chain(Response, frozen=True, kw_only=True):
    """The newest block of a sandbox's chain, and its newest final block. `networkKind` is
    `simulated` for a chain in the sandbox's books, `local` on its own node, and `real`
    for a public testnet, which the sandbox's controls cannot change.
    """

    chain_id: int
    """The number of the sandbox's chain."""
    name: str
    """The network's name."""
    network_kind: Known[Literal["real", "local", "simulated"]]
    """Where the chain is. Real funds that are sent to its addresses are lost."""
    is_testnet: bool
    """Whether it is a public testnet."""
    explorer_url: str | None
    """The explorer that shows it to everybody; null if none does."""
    latest: Block
    """The newest block."""
    final: Block
    """The newest final block."""


class ArmedFailure(Response, frozen=True, kw_only=True):
    """Which calls fail next, and how many more times; without a chain, on all chains."""

    dependency: str
    """The dependency that fails: `chain`, `kyc`, `bank`, `router` or `screening`."""
    operation: str
    """The operation that fails; `*` means any."""
    chain_id: int | None
    """The chain that fails; null means any chain."""
    times: int
    """How many more times the operation fails."""


class Sandbox(Response, frozen=True, kw_only=True):
    """The sandbox's clock and chains, and which calls fail next."""

    now: datetime
    """The time on the sandbox's clock; all timestamps use this clock."""
    real_now: datetime
    """The real time."""
    chains: list[Chain]
    """The chains that are served: simulated ones, and testnets."""
    failures: list[ArmedFailure]
    """The failures that will occur next."""


class Funded(Response, frozen=True, kw_only=True):
    """A credit of the faucet, already final."""

    account_id: str
    """The account's id."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    amount: str
    """The amount, as a decimal string in whole units of the asset."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    address: str
    """The vault that was credited."""
    transaction_hash: str
    """The hash of the transaction on the chain; null until there is one."""


class BankDeposit(Response, frozen=True, kw_only=True):
    """A bank transfer that was made; `bankTransferId` is the bank's own id of it."""

    bank_transfer_id: str
    """The bank's own id of the transfer."""
    onramp_bank_account_id: str
    """The id of the on-ramp bank account."""
    amount: str
    """The amount, as a decimal string in whole units of the asset."""
    rail: Known[Literal["ach_push", "wire"]]
    """The kind of bank transfer."""
    status: Known[Literal["scheduled", "in_review", "received", "returned", "cancelled"]]
    """Its state."""
    expected_at: datetime | None
    """When the money is expected; null if that is not known."""


class Advanced(Response, frozen=True, kw_only=True):
    """The new time of the clock, and how many jobs were run."""

    now: datetime
    """The time on the sandbox's clock; all timestamps use this clock."""
    jobs_run: int
    """How many jobs were run."""


class Triggered(Response, frozen=True, kw_only=True):
    """The event that was triggered."""

    event_id: str
    """The event's id."""
    name: str
    """The event's name."""
    payload: dict[str, Any]
    """What the event is about; the fields depend on the event."""


class DecidedPayout(Response, frozen=True, kw_only=True):
    """A Payment's payout after the bank's decision, and the Payment's new state."""

    payment_id: str
    """The Payment's id."""
    status: Known[
        Literal[
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
    ]
    """Its state."""
    payout: Payout
    """What the bank pays; null unless the destination is a bank account."""


class DecidedOrder(Response, frozen=True, kw_only=True):
    """An order at the simulated on-ramp, which pays the escrow some seconds later."""

    payment_id: str
    """The Payment's id."""
    option_id: str
    """The option's id; null without one."""
    status: Known[Literal["asked", "refused", "waiting", "paid", "delivered", "returned", "failed"]]
    """What the on-ramp has said about the order; the next look shows more."""


class Ran(Response, frozen=True, kw_only=True):
    """How many jobs were run."""

    jobs_run: int
    """How many jobs were run."""


class Transferred(Response, frozen=True, kw_only=True):
    """A transfer in a simulated chain. `block` is null if a reorg has already dropped it."""

    transaction_hash: str
    """The hash of the transaction on the chain; null until there is one."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    amount: str
    """The amount, as a decimal string in whole units of the asset."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    from_: str
    """The address that sent the funds."""
    to: str
    """The address that receives the funds."""
    succeeded: bool
    """Whether the transfer succeeded on the chain."""
    block: Block | None
    """The block that the transfer is in; null if a reorg has dropped it."""


class Health(Response, frozen=True, kw_only=True):
    """The answer of both health checks."""

    status: str
    """Whether the process answers."""


class MoneyAccount(Response, frozen=True, kw_only=True):
    """A Money Account: the account that v2 has under the same id."""

    user_id: str
    """The account's id."""
    username: str | None
    """The name in the payment address; null without one."""
    payment_address: str | None
    """`<username>@<partner id>`; null without a username."""
    vault_address: str
    """The address of the account's vault."""
    addresses: list[str]
    """The account's wallet addresses."""
    kyc_status: Known[Literal["not_started", "pending", "completed", "rejected"]]
    """The state of the account's verification."""
    is_kyc: bool = msgspec.field(name="isKYC")
    """Whether the account is verified."""
    kyc_provider_token: str | None
    """The id of the verification; it gives no access."""
    preferred_settlement_chain: int | None
    """The chain on which the account wants to be paid."""
    preferred_settlement_token: str | None
    """The symbol of the token in which the account wants to be paid."""
    created_at: datetime
    """When it was created."""


class MoneyAccountResponse(Response, frozen=True, kw_only=True):
    """A Money Account."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: MoneyAccount
    """The Money Account."""


class LinkedAddress(Response, frozen=True, kw_only=True):
    """A wallet address of an account."""

    address: str
    """The address on the chain."""
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    """The family of the chain; it determines the format of addresses and signatures."""


class AddressOwner(Response, frozen=True, kw_only=True):
    """The account that a wallet address is linked to."""

    user_id: str
    """The account's id."""
    partner_id: str
    """The partner whose account it is."""
    username: str | None
    """The name in the payment address; null without one."""
    addresses: list[LinkedAddress]
    """The account's wallet addresses."""
    vault_address: str
    """The address of the account's vault."""
    is_kyc: bool = msgspec.field(name="isKYC")
    """Whether the account is verified."""
    kyc_provider_token: str | None
    """The id of the verification; it gives no access."""


class AddressOwnerResponse(Response, frozen=True, kw_only=True):
    """The account that an address is linked to."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: AddressOwner
    """The account that the address is linked to."""


class LinkedAddresses(Response, frozen=True, kw_only=True):
    """The wallet addresses of an account."""

    user_id: str
    """The account's id."""
    addresses: list[LinkedAddress]
    """The account's wallet addresses."""


class LinkedAddressesResponse(Response, frozen=True, kw_only=True):
    """The account's addresses, with the new one."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: LinkedAddresses
    """The account's addresses."""
    message: str
    """What was done."""


class UsernameAvailability(Response, frozen=True, kw_only=True):
    """Whether an account could have the username now."""

    username: str
    """The requested name."""
    available: bool
    """Whether an account could have it now."""


class UsernameAvailabilityResponse(Response, frozen=True, kw_only=True):
    """Whether a username is available."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: UsernameAvailability
    """Whether the name is available."""


class ChosenUsername(Response, frozen=True, kw_only=True):
    """The payment address that a username makes."""

    payment_address: str
    """`<username>@<partner id>`; null without a username."""


class ChosenUsernameResponse(Response, frozen=True, kw_only=True):
    """The new payment address."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: ChosenUsername
    """The payment address."""
    message: str
    """What was done."""


class Preferences(Response, frozen=True, kw_only=True):
    """Where an account is to be paid."""

    user_id: str
    """The account's id."""
    preferred_settlement_chain: int
    """The chain on which the account wants to be paid."""
    preferred_settlement_token: str
    """The symbol of the token in which the account wants to be paid."""


class PreferencesResponse(Response, frozen=True, kw_only=True):
    """The changed preferences."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: Preferences
    """The preferences."""
    message: str
    """What was done."""


class ResolvedAddress(Response, frozen=True, kw_only=True):
    """The account that a payment address pays."""

    user_id: str
    """The account's id."""
    username: str
    """The name in the payment address; null without one."""
    payment_address: str
    """The requested payment address."""
    vault_address: str
    """The address of the account's vault."""


class ResolvedAddressResponse(Response, frozen=True, kw_only=True):
    """The account behind a payment address."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: ResolvedAddress
    """The account behind the payment address."""


class KycDone(Response, frozen=True, kw_only=True):
    """Whether an account is verified. The token is a reference that gives no access."""

    is_kyc: bool = msgspec.field(name="isKYC")
    """Whether the account is verified."""
    kyc_provider_token: str | None
    """The id of the verification; it gives no access."""


class KycDoneResponse(Response, frozen=True, kw_only=True):
    """Whether an account is verified."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: KycDone
    """Whether the account is verified."""


class GeneratedAddress(Response, frozen=True, kw_only=True):
    """An account's deposit address on a chain; the same at every call."""

    user_id: str
    """The account's id."""
    deposit_address: str
    """The account's static address on the chain."""
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    """The family of the chain; it determines the format of addresses and signatures."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""


class GeneratedAddressResponse(Response, frozen=True, kw_only=True):
    """A deposit address."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: GeneratedAddress
    """The deposit address."""


class QuotedAmounts(Response, frozen=True, kw_only=True):
    """The input and output amounts, in whole tokens; `fee` is in the output token."""

    input_amount: str
    """The input amount, in whole tokens."""
    input_token: str
    """The symbol of the token that the payer sends."""
    input_chain: int
    """The chain that the payer pays on."""
    output_amount: str
    """The output amount, in whole tokens."""
    output_token: str
    """The symbol of the token that the recipient gets."""
    output_chain: int
    """The chain on which the recipient is paid."""
    fee: str
    """The fee, as a decimal string."""
    expires_at: datetime
    """When it expires."""


class QuotedAddress(Response, frozen=True, kw_only=True):
    """An address for one payment, and its quote."""

    deposit_address: str
    """The address for this one payment."""
    quote: QuotedAmounts
    """The terms."""
    quote_id: str
    """The quote's id."""


class QuotedAddressResponse(Response, frozen=True, kw_only=True):
    """An address for one payment."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: QuotedAddress
    """The address and its terms."""


class QuoteData(Response, frozen=True, kw_only=True):
    """Where a quote is paid."""

    deposit_address: str
    """The address to pay to."""
    quote_id: str
    """The quote's id."""


class TokenIn(Response, frozen=True, kw_only=True):
    """What the payer sends: exactly `inputTokenAmountRaw` of the token."""

    address: str
    """The address of the token's contract."""
    input_token_amount_raw: str
    """What the payer sends, in the token's smallest unit."""
    input_token_amount_raw_formatted: str
    """The same amount as `inputTokenAmountRaw`, as a decimal string."""
    input_value_in_usd: str | None = msgspec.field(name="inputValueInUSD")
    """The value of the input amount in US dollars; null without a price."""


class TokenOut(Response, frozen=True, kw_only=True):
    """What the recipient is expected to get, and the minimum in `minimumOutput`, as raw
    amounts.
    """

    address: str
    """The address of the token's contract."""
    output_token_amount_raw: str
    """What the recipient is expected to get, in the token's smallest unit."""
    output_token_amount_raw_formatted: str
    """The same amount as `outputTokenAmountRaw`, as a decimal string."""
    output_value_in_usd: str | None = msgspec.field(name="outputValueInUSD")
    """The value of the output amount in US dollars; null without a price."""
    minimum_output: str
    """The minimum that the recipient gets, in the token's smallest unit."""


class QuotePayload(Response, frozen=True, kw_only=True):
    """What a quote offers. `estimatedTime` is in seconds, `quoteExpiry` in Unix seconds.
    `exchangeRate` is how many output tokens one input token buys, before the fee.
    """

    token_in: TokenIn
    """What the payer sends."""
    token_out: TokenOut
    """What the recipient gets."""
    estimated_time: int
    """How many seconds the transfer is expected to take."""
    quote_expiry: int
    """When the quote expires, in Unix seconds."""
    exchange_rate: str
    """How many output tokens one input token buys, before the fee."""


class Quote(Response, frozen=True, kw_only=True):
    """A quote."""

    quote_data: QuoteData
    """Where the quote is paid."""
    payload: QuotePayload
    """What the quote offers."""


class QuoteResponse(Response, frozen=True, kw_only=True):
    """A quote."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: Quote
    """The quote."""


class TransferState(Response, frozen=True, kw_only=True):
    """Whether the recipient has the funds."""

    is_transfer_done: bool
    """Whether the recipient has the funds."""


class TransferStateResponse(Response, frozen=True, kw_only=True):
    """Whether a transfer is done."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: TransferState
    """Whether the transfer is done."""


class SettlementsSettlement(Response, frozen=True, kw_only=True):
    """A settlement that was accepted; `get-transaction` shows its progress."""

    message: str
    """What happens next."""
    transaction_id: str
    """The id to read its transaction by."""
    status: Known[Literal["pending"]]
    """Its state."""


class SettlementResponse(Response, frozen=True, kw_only=True):
    """A settlement that was accepted."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: SettlementsSettlement
    """The settlement."""


class NativeCurrency(Response, frozen=True, kw_only=True):
    """What a chain's fees are paid in."""

    name: str
    """The currency's name."""
    symbol: str
    """The symbol of the currency or token."""
    decimals: int
    """How many decimal places the asset has."""


class Token(Response, frozen=True, kw_only=True):
    """A token on a chain."""

    symbol: str
    """The symbol of the currency or token."""
    address: str
    """The address of the token's contract."""
    decimals: int
    """How many decimal places the asset has."""


class SupportedChain(Response, frozen=True, kw_only=True):
    """A chain of the registry; `isActive` says whether this deployment serves it."""

    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    name: str
    """The chain's name."""
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    """The family of the chain; it determines the format of addresses and signatures."""
    native_currency: NativeCurrency
    """The currency in which the chain's fees are paid."""
    tokens: list[Token]
    """The tokens on the chain."""
    rpc_url: str
    """A public node of the chain."""
    explorer_url: str
    """The chain's block explorer; `https://sandbox.invalid` if there is none."""
    is_active: bool
    """Whether this deployment serves the chain."""


class SupportedChains(Response, frozen=True, kw_only=True):
    """The chains of the registry."""

    chains: list[SupportedChain]
    """The chains."""


class SupportedChainsResponse(Response, frozen=True, kw_only=True):
    """The chains of the registry."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: SupportedChains
    """The chains that are known."""


class AddressBalance(Response, frozen=True, kw_only=True):
    """What an address holds, as a decimal and in the smallest unit."""

    balance: str
    """The balance, as a decimal string."""
    balance_raw: str
    """The balance in the token's smallest unit, as a digit string."""
    decimals: int
    """How many decimal places the asset has."""


class AddressBalanceResponse(Response, frozen=True, kw_only=True):
    """What an address holds."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: AddressBalance
    """What the address holds."""


class Holding(Response, frozen=True, kw_only=True):
    """What an address holds of a token; `usdValue` is null for a token without a price."""

    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    chain_name: str
    """The chain's name."""
    token: str
    """The token's symbol."""
    token_address: str
    """The address of the asset's contract on the chain."""
    balance: str
    """The balance, as a decimal string."""
    balance_raw: str
    """The balance in the token's smallest unit, as a digit string."""
    decimals: int
    """How many decimal places the asset has."""
    usd_value: str | None
    """The value in US dollars, rounded down to the cent; null without a price."""


class AddressHoldings(Response, frozen=True, kw_only=True):
    """What an address holds on every chain of its type, each value rounded down to the cent."""

    address: str
    """The address on the chain."""
    address_type: Known[Literal["evm", "solana", "aptos"]]
    """The family of chains that the address belongs to."""
    balances: list[Holding]
    """The balance of each token."""
    total_usd_value: str
    """The sum of the values in US dollars."""


class AddressHoldingsResponse(Response, frozen=True, kw_only=True):
    """What an address holds on every chain of its type."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: AddressHoldings
    """What the address holds on each chain."""


class Party(Response, frozen=True, kw_only=True):
    """One side of a transaction, as far as it is known."""

    user_id: str | None
    """The account's id."""
    payment_address: str | None
    """`<username>@<partner id>`; null without a username."""
    wallet_address: str | None
    """The wallet's address; null if it is not known."""


class Transaction(Response, frozen=True, kw_only=True):
    """A movement of funds. `fee` is what the recipient pays of `amount`."""

    id: str
    """The resource's id; ids are opaque and never change."""
    type: Known[Literal["deposit", "payment", "settlement"]]
    """Its kind."""
    status: Known[Literal["pending", "processing", "completed", "failed"]]
    """Its state."""
    amount: str
    """The amount, as a decimal string in whole units of the asset."""
    token: str
    """The token's symbol."""
    from_: Party
    """Who pays."""
    to: Party
    """Who is paid."""
    fee: str
    """The fee, as a decimal string."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    tx_hash: str | None
    """The hash of the transaction on the chain; null until there is one."""
    created_at: datetime
    """When it was created."""
    completed_at: datetime | None
    """When it was completed; null until then."""


class TransactionResponse(Response, frozen=True, kw_only=True):
    """A transaction."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: Transaction
    """The transaction."""


class ListedTransaction(Response, frozen=True, kw_only=True):
    """A transaction in a list: each side is a payment address, or otherwise a wallet
    address.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    type: Known[Literal["deposit", "payment", "settlement"]]
    """Its kind."""
    status: Known[Literal["pending", "processing", "completed", "failed"]]
    """Its state."""
    amount: str
    """The amount, as a decimal string in whole units of the asset."""
    token: str
    """The token's symbol."""
    from_: str | None
    """The payer's payment address, otherwise its wallet; null if it is not known."""
    to: str | None
    """The recipient's payment address, otherwise its wallet; null if it is not known."""
    fee: str
    """The fee, as a decimal string."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    tx_hash: str | None
    """The hash of the transaction on the chain; null until there is one."""
    created_at: datetime
    """When it was created."""
    completed_at: datetime | None
    """When it was completed; null until then."""


class Pagination(Response, frozen=True, kw_only=True):
    """The position of the page. `totalCount` counts 1,000 transactions at most."""

    page: int
    """The number of the page, from 1."""
    limit: int
    """How many transactions a page has."""
    total_pages: int
    """How many pages there are."""
    total_count: int
    """The number of transactions; at most 1,000 are counted."""


class Transactions(Response, frozen=True, kw_only=True):
    """A page of transactions, newest first."""

    transactions: list[ListedTransaction]
    """The transactions, newest first."""
    pagination: Pagination
    """The position of the page."""


class TransactionsResponse(Response, frozen=True, kw_only=True):
    """A page of transactions."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: Transactions
    """The page."""


class RoleModule(Response, frozen=True, kw_only=True):
    """A vault's role module. `txHash` is the newest transaction for it, once it was sent."""

    vault_address: str
    """The address of the account's vault."""
    role_module_address: str
    """The address of the role module."""
    tx_hash: str | None
    """The hash of the transaction on the chain; null until there is one."""
    status: Known[Literal["pending", "processing", "completed", "failed"]]
    """Its state."""


class RoleModuleResponse(Response, frozen=True, kw_only=True):
    """A vault's role module."""

    success: bool
    """Whether the request succeeded."""
    request_id: str
    """The id of this request; quote it when you ask for support."""
    data: RoleModule
    """The vault's role module."""


class OwnAccount(Response, frozen=True, kw_only=True):
    """The token's account, and what the token may do now."""

    id: str
    """The resource's id; ids are opaque and never change."""
    account_id: str
    """The account's id."""
    external_user_id: str
    """Your own id of the account's user."""
    subject_type: Known[Literal["individual", "business"]]
    """Whether the account's holder is a person or a business."""
    status: Known[Literal["active", "suspended", "closed"]]
    """Its state."""
    username: str | None
    """The name in the payment address; null without one."""
    payment_address: str | None
    """`<username>@<partner id>`; null without a username."""
    vaults: list[Vault]
    """The account's vaults, one for each chain."""
    wallets: list[Wallet]
    """The account's wallets."""
    settlement: AccountsSettlement | None
    """The chain and asset in which the account receives payments; null without a preference."""
    kyc: Kyc
    """The state of the account's verification."""
    capabilities: dict[
        str,
        Known[Literal["inactive", "action_required", "pending", "active", "rejected", "suspended"]],
    ]
    """The state of each regulated capability, by its name."""
    permissions: list[str]
    """What the client may do."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class PayingVault(Response, frozen=True, kw_only=True):
    """The vault that a send or a collect comes from, without its owner."""

    type: Known[Literal["vault"]]
    """Its kind."""
    address: str
    """The address on the chain."""


class FundedOptionOrPublicPaymentOption(Response, frozen=True, kw_only=True):
    """Either `FundedOption` or `PublicPaymentOption`: fields that the actual form lacks are
    None.
    """

    payment_id: str
    """The Payment's id."""
    option: OptionOrPublicOption
    funding_operation: FundingOperation | None = None
    """The transfer from the payer's vault; null for an option without one."""


class Reconciliation(Response, frozen=True, kw_only=True):
    """The exceptions, and whether they were resolved."""

    status: Known[Literal["none", "open", "resolved"]]
    """Its state."""
    labels: list[
        Known[
            Literal[
                "blocked",
                "duplicate",
                "execution_failed",
                "in_review",
                "late",
                "misdirected",
                "overpaid",
                "reorged",
                "returned",
                "underpaid",
            ]
        ]
    ]
    """The exceptions that occurred; labels are added and never removed, except `in_review`."""
    resolution: (
        Known[
            Literal[
                "accept",
                "refund",
                "refund_excess",
                "retry_execution",
                "write_off",
                "return_misdirected",
            ]
        ]
        | None
    )
    """How it was resolved; null until then."""
    resolved_at: datetime | None
    """When it was resolved; null until then."""


class RecipientPayment(Response, frozen=True, kw_only=True):
    """A Payment as its recipient sees it: all of it except the partner's metadata, its notes
    and reasons for refunds, and what only the payer may see. Options are the recipient's
    own, if it pays itself; the ids of others' options are null.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    payment_id: str
    """The Payment's id."""
    intent: Known[Literal["receive", "send", "collect"]]
    """The direction of the money: `receive`, `send` or `collect`."""
    status: Known[
        Literal[
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
    ]
    """Its state, as listed in the table of state machines."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    account_id: str | None
    """The recipient's account; null if a wallet or a bank account is paid."""
    external_user_id: str | None
    """Your own id of the recipient's user; null if no account is paid."""
    amount: str
    """The Payment's amount, as a decimal string in whole units of the asset."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    token_address: str
    """The address of the asset's contract on the chain."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    settled_amount_atomic: str
    """What the recipient has received, after the fee, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    returned_amount_atomic: str
    """What the recipient of a payment from a vault has sent back, in the smallest unit."""
    fees: Fees
    """The fees that the recipient pays, fixed at creation."""
    source: PayingVault | None
    """The vault that pays; null without one."""
    destination: Destination
    """Where the funds go."""
    escrow: Escrow | None
    """Where its funds are received; null for a send, which has no escrow."""
    release_transaction_hash: str | None
    """The hash of the transaction that pays the recipient; null before its first broadcast."""
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    """The methods that may pay it; empty if the payer cannot choose one."""
    selected_option_id: str | None
    """The option that the payer has selected; null without one."""
    options: list[FundedOptionOrPublicPaymentOption]
    """The options by which the payer has begun to pay."""
    receipts: list[Receipt]
    """The transfers that were seen at the escrow."""
    refunds: list[Refund]
    """The refunds, oldest first."""
    payout: Payout | None
    """What the bank pays; null unless the destination is a bank account."""
    reconciliation: Reconciliation
    """The exceptions, and whether they were resolved."""
    session_id: str | None
    """The id of its session, for disputes; null unless it is a receive Payment."""
    timeline: list[Timeline]
    """Its states in order, each with its time."""
    failure: Failure | None
    """Why it failed; null unless it did."""
    reference: str | None
    """Your own id or text for it."""
    description: str | None
    """Your text about it, which the payer sees."""
    api_version: str
    """The dated contract under which it was made; it does not change."""
    payment_url: str | None
    """The link to the hosted checkout page, for the payer; null if there is none."""
    success_url: str | None
    """Where the checkout page sends a payer who has paid."""
    cancel_url: str | None
    """Where the checkout page sends a payer who cancels."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    expires_at: datetime | None
    """When it can no longer be paid; null for a send."""
    monitoring_expires_at: datetime | None
    """When the escrow is no longer watched for transfers; null for a send."""
    succeeded_at: datetime | None
    """When it succeeded; null until then."""
    cancelled_at: datetime | None
    """When it was cancelled; null unless it was."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class Payee(Response, frozen=True, kw_only=True):
    """Who is paid, as far as a payer may see: never an account id, a vault or a wallet."""

    type: Known[Literal["account", "payment_address", "wallet", "bank_account"]]
    """Its kind."""
    payment_address: str | None
    """`<username>@<partner id>`; null without a username."""


class VaultExecution(Response, frozen=True, kw_only=True):
    """What the payer can do now: authorize this transfer, once, with this action."""

    type: Known[Literal["vault_authorization"]]
    """Its kind."""
    action_id: str
    """The one-time action that authorizes this transfer."""
    expires_at: datetime
    """When the action expires."""


class Option(Response, frozen=True, kw_only=True):
    """A Vault option."""

    id: str
    """The resource's id; ids are opaque and never change."""
    provider_code: Known[Literal["vault"]]
    """The method: `vault`, `direct`, `routing` or `hosted_onramp`."""
    payment_method_type: Known[Literal["account_balance"]]
    """The kind of method."""
    payment_method_id: Known[Literal["vault.service"]]
    """The method by its provider's name."""
    type: Known[Literal["account_balance"]]
    """Its kind."""
    display_name: Known[Literal["Pay with Service Vault"]]
    """The text to show to a payer."""
    status: Known[
        Literal["cancelled", "creating", "expired", "failed", "pending", "processing", "succeeded"]
    ]
    """Its state."""
    selection_status: Known[Literal["selected", "superseded"]]
    """Whether it is the selected option or was superseded by another."""
    required_amount_atomic: str
    """The amount that the option is to deliver, in the smallest unit."""
    paid_amount_atomic: str
    """What was received by this option, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    is_terminal: bool
    """Whether `status` is final."""
    confirmation_mode: Known[Literal["provider_webhook"]]
    """What confirms that the option was paid."""
    transaction_submissions: list[str]
    """Always empty: the service itself sends the transfer."""
    source_amount: ChainAmount
    """What leaves the payer's vault or wallet."""
    destination_amount: ChainAmount
    """What the escrow is to receive."""
    payer_amount: TokenAmount
    """What the payer pays."""
    recipient_amount: TokenAmount
    """The amount for the recipient."""
    provider_fee: TokenAmount
    """What the method's provider charges."""
    execution: VaultExecution | None
    """What the payer can do now; null if there is nothing to do."""
    expires_at: datetime | None
    """When it expires."""
    refreshable: bool
    """Whether a refresh can give it new terms and a new action."""
    fee_amount_atomic: str
    """The fee, in the asset's smallest unit."""
    action_expires_at: datetime | None
    """When the one-time action expires; null without one."""
    quote_expires_at: datetime | None
    """When its terms expire; null if they do not expire."""
    order_expires_at: datetime | None
    """When a provider's order expires; null without one."""
    receipts: list[Receipt]
    """The transfers that were seen at the escrow."""


class FundedOption(Response, frozen=True, kw_only=True):
    """An option with its funding operation."""

    payment_id: str
    """The Payment's id."""
    option: Option
    """The option."""
    funding_operation: FundingOperation
    """The transfer from the payer's vault; null for an option without one."""


class Moment(Response, frozen=True, kw_only=True):
    """A status and when it began."""

    status: Known[
        Literal[
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
    ]
    """Its state."""
    at: datetime
    """When the state began."""


class PayerPayment(Response, frozen=True, kw_only=True):
    """A Payment as seen by a payer who holds its secret: its terms, its timeline, and the
    payer's own part in it.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    payment_id: str
    """The Payment's id."""
    intent: Known[Literal["receive", "send", "collect"]]
    """The direction of the money: `receive`, `send` or `collect`."""
    status: Known[
        Literal[
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
    ]
    """Its state, as listed in the table of state machines."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    amount: str
    """The Payment's amount, as a decimal string in whole units of the asset."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    token_address: str
    """The address of the asset's contract on the chain."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    destination: Payee
    """Where the funds go."""
    escrow: Escrow | None
    """Where its funds are received; null for a send, which has no escrow."""
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    """The methods that may pay it; empty if the payer cannot choose one."""
    selected_option_id: str | None
    """The option that the payer has selected; null without one."""
    options: list[FundedOption]
    """The options by which the payer has begun to pay."""
    receipts: list[Receipt]
    """The transfers that were seen at the escrow."""
    timeline: list[Moment]
    """Its states in order, each with its time."""
    reference: str | None
    """Your own id or text for it."""
    description: str | None
    """Your text about it, which the payer sees."""
    api_version: str
    """The dated contract under which it was made; it does not change."""
    payment_url: str | None
    """The link to the hosted checkout page, for the payer; null if there is none."""
    success_url: str | None
    """Where the checkout page sends a payer who has paid."""
    cancel_url: str | None
    """Where the checkout page sends a payer who cancels."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    expires_at: datetime | None
    """When it can no longer be paid; null for a send."""
    succeeded_at: datetime | None
    """When it succeeded; null until then."""
    cancelled_at: datetime | None
    """When it was cancelled; null unless it was."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class PaymentOption(Response, frozen=True, kw_only=True):
    """An option under its Payment's id."""

    payment_id: str
    """The Payment's id."""
    option: Option
    """The option."""


class AccessToken(Response, frozen=True, kw_only=True):
    """What the session token was exchanged for."""

    access_token: str
    """The client's bearer token for `/v2/client`."""
    token_type: Known[Literal["Bearer"]]
    """How the token is sent."""
    account_id: str
    """The account's id."""
    permissions: list[str]
    """What the client may do."""
    expires_at: datetime
    """When it expires."""


class ExchangedLink(Response, frozen=True, kw_only=True):
    """The Payment of a link's code; the code works until `expiresAt`."""

    payment_id: str
    """The Payment's id."""
    client_secret: str
    """The credential for the Payment."""
    expires_at: datetime
    """When the link expires."""


class TransferExecutionOrRedirectExecution(Response, frozen=True, kw_only=True):
    """Either `TransferExecution` or `RedirectExecution`: fields that the actual form lacks
    are None.
    """

    type: Known[Literal["transfer", "redirect"]]
    chain_id: int | None = None
    """The number of the chain, such as 8453 for Base."""
    token_address: str | None = None
    """The address of the asset's contract on the chain."""
    to: str | None = None
    """The escrow's or the router's address."""
    amount_atomic: str | None = None
    """How much to send, in the smallest unit."""
    url: str | None = None
    """The provider's page for this payer only."""
    price: str | None = None
    """What the payer pays in all, as a decimal string."""
    currency: str | None = None
    """The currency of the price (ISO 4217)."""


class PublicOption(Response, frozen=True, kw_only=True):
    """An option without an account. Without a `selectionStatus` it was never selected;
    without an `execution` there is nothing to do.
    """

    id: str
    """The resource's id; ids are opaque and never change."""
    provider_code: Known[Literal["direct", "routing", "hosted_onramp"]]
    """The method: `vault`, `direct`, `routing` or `hosted_onramp`."""
    payment_method_type: Known[Literal["wallet", "fiat"]]
    """The kind of method."""
    payment_method_id: Known[
        Literal["direct.transfer", "routing.transfer", "hosted_onramp.redirect"]
    ]
    """The method by its provider's name."""
    type: Known[Literal["wallet", "fiat"]]
    """Its kind."""
    display_name: Known[Literal["Pay from any wallet", "Pay with any token", "Pay by card or bank"]]
    """The text to show to a payer."""
    status: Known[
        Literal["cancelled", "creating", "expired", "failed", "pending", "processing", "succeeded"]
    ]
    """Its state."""
    selection_status: Known[Literal["selected", "superseded"]] | None
    """Whether it is selected or superseded; null until it is selected."""
    required_amount_atomic: str
    """The amount that the option is to deliver, in the smallest unit."""
    paid_amount_atomic: str
    """What was received by this option, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    is_terminal: bool
    """Whether `status` is final."""
    confirmation_mode: Known[Literal["chain"]]
    """What confirms that the option was paid."""
    transaction_submissions: list[Submission]
    """The transactions that the payer says it has sent; they prove nothing."""
    source_amount: ChainAmount
    """What leaves the payer's vault or wallet."""
    destination_amount: ChainAmount
    """What the escrow is to receive."""
    payer_amount: TokenAmount
    """What the payer pays."""
    recipient_amount: TokenAmount
    """The amount for the recipient."""
    provider_fee: TokenAmount | None
    """What the method's provider charges; null if it is in what the payer pays."""
    payer_address: str | None
    """The address that the payer says it pays from; null without one."""
    refund_address: str | None
    """Where a router returns what it cannot deliver; null for other methods."""
    execution: TransferExecutionOrRedirectExecution | None
    """What the payer can do now; null if there is nothing to do."""
    offer: Offer | None
    """What the provider says; null without one."""
    expires_at: datetime
    """When its terms expire."""
    refreshable: bool
    """Whether a refresh can give it new terms and a new action."""
    fee_amount_atomic: Known[Literal["0"]]
    """The fee, in the asset's smallest unit."""
    action_expires_at: None
    """When the one-time action expires; null without one."""
    quote_expires_at: datetime | None
    """When the provider's terms expire: do not pay later, but refresh. Null without a
provider.
"""
    order_expires_at: datetime | None
    """When an on-ramp's order expires; null without one."""
    receipts: list[Receipt]
    """The transfers that were seen at the escrow."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class PublicMoment(Response, frozen=True, kw_only=True):
    """A status and when it began."""

    status: Known[
        Literal[
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
    ]
    """Its state."""
    at: datetime
    """When the state began."""


class CreatedPublicPayment(Response, frozen=True, kw_only=True):
    """A new Payment, with the secret and the link that are shown only at its creation."""

    id: str
    """The resource's id; ids are opaque and never change."""
    payment_id: str
    """The Payment's id."""
    intent: Known[Literal["receive", "send", "collect"]]
    """The direction of the money: `receive`, `send` or `collect`."""
    status: Known[
        Literal[
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
    ]
    """Its state, as listed in the table of state machines."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    amount: str
    """The Payment's amount, as a decimal string in whole units of the asset."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    token_address: str
    """The address of the asset's contract on the chain."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    escrow: Escrow | None
    """Where its funds are received; null for a send, which has no escrow."""
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    """The methods that may pay it; empty if the payer cannot choose one."""
    selected_option_id: str | None
    """The option that the payer has selected; null without one."""
    options: list[PublicOption]
    """The options by which the payer has begun to pay."""
    timeline: list[PublicMoment]
    """Its states in order, each with its time."""
    reference: str | None
    """Your own id or text for it."""
    description: str | None
    """Your text about it, which the payer sees."""
    api_version: str
    """The dated contract under which it was made; it does not change."""
    success_url: str | None
    """Where the checkout page sends a payer who has paid."""
    cancel_url: str | None
    """Where the checkout page sends a payer who cancels."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    expires_at: datetime
    """When it can no longer be paid; null for a send."""
    succeeded_at: datetime | None
    """When it succeeded; null until then."""
    cancelled_at: datetime | None
    """When it was cancelled; null unless it was."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""
    client_secret: str
    """The credential for this one Payment, for the payer's browser."""
    payment_url: str
    """The link to the hosted checkout page."""


class PublicPayment(Response, frozen=True, kw_only=True):
    """A Payment's terms, its options without an account, and its timeline."""

    id: str
    """The resource's id; ids are opaque and never change."""
    payment_id: str
    """The Payment's id."""
    intent: Known[Literal["receive", "send", "collect"]]
    """The direction of the money: `receive`, `send` or `collect`."""
    status: Known[
        Literal[
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
    ]
    """Its state, as listed in the table of state machines."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    amount: str
    """The Payment's amount, as a decimal string in whole units of the asset."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    decimals: int
    """How many decimal places the asset has."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    token_address: str
    """The address of the asset's contract on the chain."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    escrow: Escrow | None
    """Where its funds are received; null for a send, which has no escrow."""
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    """The methods that may pay it; empty if the payer cannot choose one."""
    selected_option_id: str | None
    """The option that the payer has selected; null without one."""
    options: list[PublicOption]
    """The options by which the payer has begun to pay."""
    timeline: list[PublicMoment]
    """Its states in order, each with its time."""
    reference: str | None
    """Your own id or text for it."""
    description: str | None
    """Your text about it, which the payer sees."""
    api_version: str
    """The dated contract under which it was made; it does not change."""
    success_url: str | None
    """Where the checkout page sends a payer who has paid."""
    cancel_url: str | None
    """Where the checkout page sends a payer who cancels."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    payment_url: str | None
    """The link to the hosted checkout page; null if the service has no public URL."""
    expires_at: datetime
    """When it can no longer be paid; null for a send."""
    succeeded_at: datetime | None
    """When it succeeded; null until then."""
    cancelled_at: datetime | None
    """When it was cancelled; null unless it was."""
    created_at: datetime
    """When it was created."""
    updated_at: datetime
    """When it last changed."""


class OptionState(Response, frozen=True, kw_only=True):
    """The state of an option."""

    id: str
    """The resource's id; ids are opaque and never change."""
    status: Known[
        Literal["cancelled", "creating", "expired", "failed", "pending", "processing", "succeeded"]
    ]
    """Its state."""
    selection_status: Known[Literal["selected", "superseded"]] | None
    """Whether it is the selected option or was superseded by another."""
    paid_amount_atomic: str
    """What was received by this option, in the smallest unit."""


class Progress(Response, frozen=True, kw_only=True):
    """The newest transfer that does not count yet."""

    receipt_id: str
    """The transfer."""
    confirmations: int
    """How many blocks are on top of its block."""
    required: int | None
    """How many blocks must be on top; null if the chain's own finality decides."""
    estimated_at: datetime | None
    """When it counts, about; null if nobody knows."""


class CheckoutState(Response, frozen=True, kw_only=True):
    """The state of a Payment. The response changes only when the state does."""

    payment_id: str
    """The Payment's id."""
    status: Known[
        Literal[
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
    ]
    """Its state."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    remaining_amount_atomic: str
    """What is still to be received, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    selected_option_id: str | None
    """The option that the payer has selected; null without one."""
    options: list[OptionState]
    """The options by which the payer has begun to pay."""
    progress: Progress | None
    """The transfer that the Payment waits for; null without one."""
    expires_at: datetime
    """When it expires."""


class MethodAsset(Response, frozen=True, kw_only=True):
    """A token that a method accepts."""

    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    token_address: str
    """The address of the asset's contract on the chain."""
    decimals: int
    """How many decimal places the asset has."""


class Method(Response, frozen=True, kw_only=True):
    """A way to pay. If it is not `available`, the Payment allows it, but it is not active
    here, or its provider does not answer now.
    """

    provider_code: Known[Literal["vault", "direct", "routing", "hosted_onramp"]]
    """The method: `vault`, `direct`, `routing` or `hosted_onramp`."""
    display_name: str
    """The text to show to a payer."""
    available: bool
    """Whether it can be used now."""
    unavailable_reason: Known[Literal["capability_not_active"]] | None
    """Why it is not available; null if it is available."""
    assets: list[MethodAsset]
    """The assets that are accepted; none for `hosted_onramp`, which is paid in a currency."""


class Methods(Response, frozen=True, kw_only=True):
    """The ways to pay a Payment without an account."""

    payment_id: str
    """The Payment's id."""
    methods: list[Method]
    """The ways to pay."""


class PublicPaymentOption(Response, frozen=True, kw_only=True):
    """An option without an account, under its Payment's id."""

    payment_id: str
    """The Payment's id."""
    option: PublicOption
    """The option."""
