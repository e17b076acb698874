# Printed from the OpenAPI document by docs/client: run `make client`.
"""What the service answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from payments_core_http.client.structs import Answer, Known, Page


class Dedupe(Answer, frozen=True, kw_only=True):
    """The headers by which a receiver knows what it has seen."""

    delivery_retry_header: str
    event_header: str


class DeliveryPolicy(Answer, frozen=True, kw_only=True):
    """What a receiver of this deployment's webhooks may rely on."""

    guarantee: Known[Literal["at_least_once"]]
    max_attempts: int
    local_private_destinations_allowed: bool
    dedupe: Dedupe


class WebhookCapabilities(Answer, frozen=True, kw_only=True):
    """What a receiver of this deployment's webhooks may rely on."""

    delivery_policy: DeliveryPolicy


class DeploymentCapabilities(Answer, frozen=True, kw_only=True):
    """What this deployment can do."""

    webhooks: WebhookCapabilities


class PartnerConfig(Answer, frozen=True, kw_only=True):
    """What a credential is, and what it reaches."""

    app_id: str
    environment_id: str
    mode: Known[Literal["sandbox", "production"]]
    partner_id: str
    credential_type: Known[Literal["standard", "restricted"]]
    credential_mode: Known[Literal["app_secret"]]
    api_version: str
    supported_api_versions: list[str]
    scopes: list[str]
    products: list[str]
    capabilities: DeploymentCapabilities


class PayableWallet(Answer, frozen=True, kw_only=True):
    """An address that public Payments may pay, on its chain."""

    type: Known[Literal["wallet"]]
    chain_id: int
    address: str


class Branding(Answer, frozen=True, kw_only=True):
    """What the checkout page shows."""

    name: str | None
    logo_url: str | None
    primary_color: str | None


class PaymentSettings(Answer, frozen=True, kw_only=True):
    """The settings of an environment. `version` is 0, and the times are null, until they are
    first set; null is no limit.
    """

    enabled: bool
    allowed_origins: list[str]
    allowed_destinations: list[PayableWallet]
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    chains: list[int] | None
    assets: list[str] | None
    min_amount: str | None
    max_amount: str | None
    expires_in_seconds: int
    monitoring_seconds: int
    underpayment_tolerance_bps: int
    fee_bps: int
    confirmations: dict[str, int]
    success_url: str | None
    cancel_url: str | None
    branding: Branding
    version: int
    created_at: datetime | None
    updated_at: datetime | None


class CreatedClientSession(Answer, frozen=True, kw_only=True):
    """A new session; its token is told only here."""

    client_session_id: str
    client_session_token: str
    account_id: str
    permissions: list[str]
    exchange_expires_at: datetime
    expires_at: datetime
    created_at: datetime
    updated_at: datetime


class ClientSession(Answer, frozen=True, kw_only=True):
    """A session without its token."""

    client_session_id: str
    account_id: str
    permissions: list[str]
    exchange_expires_at: datetime
    expires_at: datetime
    created_at: datetime
    updated_at: datetime
    revoked_at: datetime | None


class Vault(Answer, frozen=True, kw_only=True):
    """A vault on one chain."""

    vault_id: str
    chain_id: int
    address: str
    status: Known[Literal["counterfactual", "deployed"]]


class Wallet(Answer, frozen=True, kw_only=True):
    """A wallet address of an account."""

    id: str
    wallet_id: str
    account_id: str
    address: str
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    label: str | None
    verified: bool
    verified_at: datetime | None
    created_at: datetime
    updated_at: datetime


class AccountsSettlement(Answer, frozen=True, kw_only=True):
    """Where an account wants to be paid."""

    chain_id: int
    asset_symbol: str


class Kyc(Answer, frozen=True, kw_only=True):
    """The state of the account's verification."""

    status: Known[Literal["not_started", "pending", "approved", "rejected"]]


class Account(Answer, frozen=True, kw_only=True):
    """An account."""

    id: str
    account_id: str
    external_user_id: str
    subject_type: Known[Literal["individual", "business"]]
    status: Known[Literal["active", "suspended", "closed"]]
    username: str | None
    email: str | None
    payment_address: str | None
    vaults: list[Vault]
    wallets: list[Wallet]
    settlement: AccountsSettlement | None
    kyc: Kyc
    capabilities: dict[
        str,
        Known[Literal["inactive", "action_required", "pending", "active", "rejected", "suspended"]],
    ]
    metadata: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


class Balance(Answer, frozen=True, kw_only=True):
    """What a vault holds of one asset, on chain at the newest final block."""

    chain_id: int
    asset_symbol: str
    token_address: str
    decimals: int
    total_atomic: str
    available_atomic: str
    reserved_atomic: str
    available: str


class Balances(Answer, frozen=True, kw_only=True):
    """The balances of an account's vaults."""

    account_id: str
    balances: list[Balance]


class Requirements(Answer, frozen=True, kw_only=True):
    """What a capability still waits for, by name."""

    missing: list[str]
    pending: list[str]
    complete: list[str]


class Action(Answer, frozen=True, kw_only=True):
    """What supplies a requirement, or removes a reason, which `resolves` names. `method` and
    `path` are the request to send next; null where the user, the bank or the operator of
    the deployment acts. `url` is where the user supplies what the bank asks for.
    """

    resolves: str
    description: str
    method: str | None
    path: str | None
    url: str | None


class Capability(Answer, frozen=True, kw_only=True):
    """A capability of an account; `actions` say who supplies what it still waits for, and
    where.
    """

    status: Known[
        Literal["inactive", "action_required", "pending", "active", "rejected", "suspended"]
    ]
    requirements: Requirements
    actions: list[Action]


class Capabilities(Answer, frozen=True, kw_only=True):
    """The capabilities of an account, by name."""

    account_id: str
    capabilities: dict[str, Capability]


class Challenge(Answer, frozen=True, kw_only=True):
    """A text for a wallet to sign; an Aptos wallet takes the nonce beside it."""

    id: str
    challenge_id: str
    account_id: str
    address: str
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    message: str
    nonce: str
    expires_at: datetime
    created_at: datetime


class Verification(Answer, frozen=True, kw_only=True):
    """A verification; the URL is there while the user can still go to it."""

    id: str
    verification_id: str
    account_id: str
    status: Known[Literal["not_started", "pending", "approved", "rejected"]]
    hosted_url: str | None
    created_at: datetime
    updated_at: datetime


class CapabilityActivation(Answer, frozen=True, kw_only=True):
    """A capability that was asked for, what it still waits for, and in `actions` who
    supplies that, and where.
    """

    id: str
    account_id: str
    capability: Known[Literal["us_bank_payout", "us_bank_funding"]]
    status: Known[
        Literal["inactive", "action_required", "pending", "active", "rejected", "suspended"]
    ]
    hosted_url: str | None
    reason: str | None
    requirements: Requirements
    actions: list[Action]
    created_at: datetime
    updated_at: datetime


class PayingWallet(Answer, frozen=True, kw_only=True):
    """A vault of the account: payouts are paid from it, and on-ramps credit it."""

    vault_id: str
    chain_id: int
    address: str


class FieldRequirement(Answer, frozen=True, kw_only=True):
    """A field of a form; a dot in its name stands for an object."""

    name: str
    type: str
    required: bool
    min_length: int | None
    max_length: int | None
    pattern: str | None
    values: list[str] | None


class BankAccountRequirements(Answer, frozen=True, kw_only=True):
    """Whether bank accounts can be added and, if not, why and what removes the reasons; and
    what a new one takes.
    """

    eligible: bool
    reasons: list[str]
    actions: list[Action]
    rails: list[Known[Literal["ach", "wire"]]]
    wallets: list[PayingWallet]
    fields: list[FieldRequirement]


class BankAddress(Answer, frozen=True, kw_only=True):
    """Where the holder lives or has its seat."""

    line1: str
    line2: str | None
    city: str
    state: str
    postal_code: str
    country: str


class BankAccount(Answer, frozen=True, kw_only=True):
    """A bank account. Of its number there are the last four digits."""

    id: str
    bank_account_id: str
    account_id: str
    status: Known[Literal["pending", "active", "rejected", "disabled"]]
    currency: str
    country: str
    account_holder_name: str
    account_holder_type: Known[Literal["individual", "business"]]
    last4: str
    routing_number: str
    account_type: Known[Literal["checking", "savings"]]
    bank_name: str | None
    address: BankAddress
    reason: str | None
    created_at: datetime
    updated_at: datetime


class OnrampRequirements(Answer, frozen=True, kw_only=True):
    """Whether on-ramps can be added and, if not, why and what removes the reasons; and what
    a new one takes.
    """

    eligible: bool
    reasons: list[str]
    actions: list[Action]
    rails: list[Known[Literal["ach_push", "wire"]]]
    wallets: list[PayingWallet]
    fields: list[FieldRequirement]


class OnrampDestination(Answer, frozen=True, kw_only=True):
    """Where the stablecoins go."""

    type: Known[Literal["vault", "wallet"]]
    chain_id: int
    asset_symbol: str
    address: str


class OnrampBankAccount(Answer, frozen=True, kw_only=True):
    """A reusable on-ramp. Of its number there are the last four digits."""

    id: str
    onramp_bank_account_id: str
    account_id: str
    status: Known[Literal["pending", "active", "rejected", "disabled"]]
    currency: str
    destination: OnrampDestination
    bank_name: str | None
    last4: str | None
    reason: str | None
    created_at: datetime
    updated_at: datetime


class DepositInstructions(Answer, frozen=True, kw_only=True):
    """Where others send money; it never changes. The reference goes on the transfer."""

    bank_name: str
    bank_address: str
    beneficiary_name: str
    beneficiary_address: str
    account_number: str
    routing_number: str
    rails: list[Known[Literal["ach_push", "wire"]]]
    reference: str


class BankTransaction(Answer, frozen=True, kw_only=True):
    """A bank transfer to an on-ramp, and how far its money has come. `amount` is in dollars;
    `amountAtomic` of the asset is credited for it. A `micro_deposit` is never credited.
    """

    id: str
    transaction_id: str
    onramp_bank_account_id: str
    account_id: str
    type: Known[Literal["transfer", "micro_deposit"]]
    status: Known[
        Literal["scheduled", "received", "in_review", "submitted", "settled", "refunded", "failed"]
    ]
    status_version: int
    rail: Known[Literal["ach_push", "wire"]]
    currency: Known[Literal["usd"]]
    amount: str
    amount_atomic: str
    destination: OnrampDestination
    transaction_hash: str | None
    sender_name: str | None
    reference: str | None
    reason: str | None
    expected_at: datetime | None
    received_at: datetime | None
    submitted_at: datetime | None
    settled_at: datetime | None
    refunded_at: datetime | None
    created_at: datetime
    updated_at: datetime


class VaultDetails(Answer, frozen=True, kw_only=True):
    """A vault on one chain, whose it is, and which policy governs it."""

    id: str
    vault_id: str
    account_id: str
    chain_id: int
    address: str
    status: Known[Literal["counterfactual", "deployed"]]
    policy_id: str
    created_at: datetime
    updated_at: datetime


class AllowedWalletOrAllowedAccount(Answer, frozen=True, kw_only=True):
    """Either `AllowedWallet` or `AllowedAccount`: what the one at hand does not have is
    None.
    """

    type: Known[Literal["wallet", "account"]]
    address: str | None = None
    chain_id: int | None = None
    account_id: str | None = None


class Policy(Answer, frozen=True, kw_only=True):
    """What a vault may be used for, in one version; null is no limit."""

    id: str
    policy_id: str
    vault_id: str
    account_id: str
    version: int
    status: Known[Literal["active", "paused"]]
    per_payment_limit: str | None
    daily_limit: str | None
    allowed_chains: list[int] | None
    allowed_assets: list[str] | None
    allowed_destinations: list[AllowedWalletOrAllowedAccount] | None
    created_at: datetime
    updated_at: datetime


class YieldSettings(Answer, frozen=True, kw_only=True):
    """Whether a vault's idle funds earn, and how."""

    vault_id: str
    account_id: str
    enabled: bool
    strategy: str | None
    created_at: datetime
    updated_at: datetime


class Mandate(Answer, frozen=True, kw_only=True):
    """A standing approval; `remainingAtomic` is of the present period."""

    id: str
    mandate_id: str
    account_id: str
    vault_id: str
    chain_id: int
    asset_symbol: str
    amount_per_period: str
    amount_per_period_atomic: str
    period: Known[Literal["day", "week", "month"]]
    remaining_atomic: str
    status: str
    reference: str | None
    metadata: dict[str, Any] | None
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    revoked_at: datetime | None


class DepositAddress(Answer, frozen=True, kw_only=True):
    """An account's static address on a chain."""

    id: str
    account_id: str
    chain_id: int
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    address: str
    created_at: datetime


class Deposit(Answer, frozen=True, kw_only=True):
    """A transfer to a deposit address, and how far it has come."""

    id: str
    deposit_id: str
    account_id: str
    deposit_address_id: str
    chain_id: int
    asset_symbol: str
    amount: str
    amount_atomic: str
    status: Known[Literal["confirmed", "detected", "failed", "settled"]]
    """A status of a deposit."""
    transaction_hash: str
    from_: str
    created_at: datetime
    updated_at: datetime
    settled_at: datetime | None


class Check(Answer, frozen=True, kw_only=True):
    """An account's newest deposits after a look at the chain."""

    account_id: str
    checked_at: datetime
    deposits: list[Deposit]


class Fees(Answer, frozen=True, kw_only=True):
    """What the recipient pays, frozen at creation; the amount is what the release keeps
    back.
    """

    fee_bps: int
    fee_amount_atomic: str
    paid_by: Known[Literal["recipient"]]


class Source(Answer, frozen=True, kw_only=True):
    """The vault that pays, under which mandate, and the version of its policy that allowed
    it.
    """

    type: Known[Literal["vault"]]
    account_id: str
    external_user_id: str
    vault_id: str
    address: str
    mandate_id: str | None
    policy_version: int | None


class Destination(Answer, frozen=True, kw_only=True):
    """Who is paid. The address of a bank account is the off-ramp address."""

    type: Known[Literal["account", "payment_address", "wallet", "bank_account"]]
    account_id: str | None
    external_user_id: str | None
    payment_address: str | None
    address: str
    bank_account_id: str | None
    rail: Known[Literal["ach", "wire"]] | None
    ach_reference: str | None
    wire_message: str | None


class Escrow(Answer, frozen=True, kw_only=True):
    """Where the Payment's funds are received."""

    chain_id: int
    address: str


class Submission(Answer, frozen=True, kw_only=True):
    """A transaction that the payer says to have sent; its receipts say whether it has."""

    chain_id: int
    transaction_hash: str
    submitted_at: datetime


class ChainAmount(Answer, frozen=True, kw_only=True):
    """An amount of an asset on a chain."""

    amount_atomic: str
    asset_symbol: str
    decimals: int
    chain_id: int


class TokenAmount(Answer, frozen=True, kw_only=True):
    """An amount with its decimal text and its token."""

    amount_atomic: str
    amount_decimal: str
    asset_symbol: str
    decimals: int
    chain_id: int
    token_address: str


class VaultExecutionOrTransferExecution(Answer, frozen=True, kw_only=True):
    """Either `VaultExecution` or `TransferExecution`: what the one at hand does not have is
    None.
    """

    type: Known[Literal["vault_authorization", "transfer"]]
    action_id: str | None = None
    expires_at: datetime | None = None
    chain_id: int | None = None
    token_address: str | None = None
    to: str | None = None
    amount_atomic: str | None = None


class Receipt(Answer, frozen=True, kw_only=True):
    """A transfer to the escrow and what became of it. `optionId` is null for what came by no
    option.
    """

    id: str
    payment_id: str
    option_id: str | None
    chain_id: int
    transaction_hash: str
    log_index: int
    token_address: str
    from_: str
    to: str
    amount_atomic: str
    block_number: int
    block_hash: str
    status: Known[Literal["observed", "rejected", "reorged", "verified"]]
    """A status of a receipt."""
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
    observed_at: datetime
    verified_at: datetime | None


class OptionOrDirectOption(Answer, frozen=True, kw_only=True):
    """Either `Option` or `DirectOption`: what the one at hand does not have is None."""

    id: str
    provider_code: Known[Literal["vault", "direct"]]
    payment_method_type: Known[Literal["account_balance", "wallet"]]
    payment_method_id: Known[Literal["vault.service", "direct.transfer"]]
    type: Known[Literal["account_balance", "wallet"]]
    display_name: Known[Literal["Pay with Service Vault", "Pay from any wallet"]]
    status: Known[
        Literal["cancelled", "creating", "expired", "failed", "pending", "processing", "succeeded"]
    ]
    """A status of an option."""
    selection_status: Known[Literal["selected", "superseded"]] | None
    """A status of a selection."""
    required_amount_atomic: str
    paid_amount_atomic: str
    remaining_amount_atomic: str
    is_terminal: bool
    confirmation_mode: Known[Literal["provider_webhook", "chain"]]
    transaction_submissions: list[str | Submission]
    source_amount: ChainAmount
    destination_amount: ChainAmount
    payer_amount: TokenAmount
    recipient_amount: TokenAmount
    provider_fee: TokenAmount
    execution: VaultExecutionOrTransferExecution | None
    expires_at: datetime | None
    refreshable: bool
    fee_amount_atomic: str
    action_expires_at: datetime | None
    quote_expires_at: datetime | None
    order_expires_at: datetime | None
    receipts: list[Receipt]
    payer_address: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class FundingOperation(Answer, frozen=True, kw_only=True):
    """A funding operation."""

    id: str
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
    """A status of a funding operation."""
    status_version: int
    commercial_fee_mode: Known[Literal["parent_payment"]]
    transaction_hash: str | None
    authorized_at: datetime | None
    broadcast_at: datetime | None
    confirmed_at: datetime | None
    expires_at: datetime | None


class PaymentOptionEntry(Answer, frozen=True, kw_only=True):
    """An option of the Payment; a Vault option's funding operation, and the authorization's
    metadata.
    """

    option: OptionOrDirectOption
    funding_operation: FundingOperation | None
    metadata: dict[str, Any] | None


class RefundFailure(Answer, frozen=True, kw_only=True):
    """Why a refund failed."""

    reason: str


class Refund(Answer, frozen=True, kw_only=True):
    """One transfer back: from the escrow or from the recipient's vault. The off-ramp
    address, from which what a bank did not pay goes back, is an escrow too.
    """

    id: str
    refund_id: str
    payment_id: str
    amount: str
    amount_atomic: str
    asset_symbol: str
    chain_id: int
    source: Known[Literal["escrow", "vault"]]
    destination: str
    reason: str | None
    purpose: Known[Literal["refund", "reconcile_refund", "refund_excess"]]
    status: Known[Literal["created", "failed", "submitted", "succeeded"]]
    """A status of a refund."""
    status_version: int
    transaction_hash: str | None
    failure: RefundFailure | None
    created_at: datetime
    updated_at: datetime
    succeeded_at: datetime | None


class PayoutFailure(Answer, frozen=True, kw_only=True):
    """Why the bank did not pay: its own word, or what became of the transfer to it."""

    reason: str


class Payout(Answer, frozen=True, kw_only=True):
    """What the bank is asked to pay. `attempt` counts the payouts of the Payment;
    `reference` is the bank's, and `settlesOn` the settlement date of the rail: expected,
    until it has settled.
    """

    status: Known[Literal["cancelled", "created", "failed", "returned", "settled", "submitted"]]
    """A status of a payout."""
    attempt: int
    bank_account_id: str
    rail: Known[Literal["ach", "wire"]]
    amount: str
    currency: str
    reference: str | None
    settles_on: str | None
    return_code: str | None
    failure: PayoutFailure | None
    submitted_at: datetime | None
    settled_at: datetime | None
    returned_at: datetime | None


class NotedReconciliation(Answer, frozen=True, kw_only=True):
    """The same, with the note of the last decision."""

    status: Known[Literal["none", "open", "resolved"]]
    labels: list[
        Known[
            Literal[
                "duplicate",
                "execution_failed",
                "late",
                "overpaid",
                "reorged",
                "returned",
                "underpaid",
            ]
        ]
    ]
    resolution: (
        Known[Literal["accept", "refund", "refund_excess", "retry_execution", "write_off"]] | None
    )
    resolved_at: datetime | None
    note: str | None


class Timeline(Answer, frozen=True, kw_only=True):
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
    """A status of a Payment."""
    at: datetime
    reason: str | None


class Failure(Answer, frozen=True, kw_only=True):
    """Why the execution failed."""

    reason: str


class CreatedPayment(Answer, frozen=True, kw_only=True):
    """A new receive Payment, with the secret that is told at creation and its replay only."""

    id: str
    payment_id: str
    intent: Known[Literal["receive", "send", "collect"]]
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
    """A status of a Payment."""
    status_version: int
    account_id: str | None
    external_user_id: str | None
    amount: str
    amount_atomic: str
    asset_symbol: str
    decimals: int
    chain_id: int
    token_address: str
    received_amount_atomic: str
    remaining_amount_atomic: str
    excess_amount_atomic: str
    settled_amount_atomic: str
    refunded_amount_atomic: str
    returned_amount_atomic: str
    fees: Fees
    source: Source | None
    destination: Destination
    escrow: Escrow | None
    release_transaction_hash: str | None
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    selected_option_id: str | None
    options: list[PaymentOptionEntry]
    receipts: list[Receipt]
    refunds: list[Refund]
    payout: Payout | None
    reconciliation: NotedReconciliation
    session_id: str | None
    timeline: list[Timeline]
    failure: Failure | None
    reference: str | None
    description: str | None
    metadata: dict[str, Any] | None
    api_version: str
    payment_url: str | None
    success_url: str | None
    cancel_url: str | None
    created_by: Known[Literal["server", "client", "public"]] | None
    expires_at: datetime | None
    monitoring_expires_at: datetime | None
    succeeded_at: datetime | None
    cancelled_at: datetime | None
    created_at: datetime
    updated_at: datetime
    client_secret: str


class Payment(Answer, frozen=True, kw_only=True):
    """A Payment, whole. A send has no escrow and no time limit; only those that receive have
    a session and a checkout link.
    """

    id: str
    payment_id: str
    intent: Known[Literal["receive", "send", "collect"]]
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
    """A status of a Payment."""
    status_version: int
    account_id: str | None
    external_user_id: str | None
    amount: str
    amount_atomic: str
    asset_symbol: str
    decimals: int
    chain_id: int
    token_address: str
    received_amount_atomic: str
    remaining_amount_atomic: str
    excess_amount_atomic: str
    settled_amount_atomic: str
    refunded_amount_atomic: str
    returned_amount_atomic: str
    fees: Fees
    source: Source | None
    destination: Destination
    escrow: Escrow | None
    release_transaction_hash: str | None
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    selected_option_id: str | None
    options: list[PaymentOptionEntry]
    receipts: list[Receipt]
    refunds: list[Refund]
    payout: Payout | None
    reconciliation: NotedReconciliation
    session_id: str | None
    timeline: list[Timeline]
    failure: Failure | None
    reference: str | None
    description: str | None
    metadata: dict[str, Any] | None
    api_version: str
    payment_url: str | None
    success_url: str | None
    cancel_url: str | None
    created_by: Known[Literal["server", "client", "public"]] | None
    expires_at: datetime | None
    monitoring_expires_at: datetime | None
    succeeded_at: datetime | None
    cancelled_at: datetime | None
    created_at: datetime
    updated_at: datetime


class Entry(Answer, frozen=True, kw_only=True):
    """One movement of a Payment's money: what each account gained, or lost with a minus."""

    number: int
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
    subject: str
    postings: dict[str, str]
    created_at: datetime


class Journal(Answer, frozen=True, kw_only=True):
    """Where a Payment's money is, and how it came there. The balances add up to zero."""

    balances: dict[str, str]
    entries: list[Entry]


class Receipts(Page[Receipt], frozen=True, kw_only=True):
    """What a Payment received, and where its money is."""

    journal: Journal


class CreatedRefund(Answer, frozen=True, kw_only=True):
    """A new refund; `refunds` lists all that the request made, this one first. There are
    several where the funds came from several senders and no destination was named.
    """

    id: str
    refund_id: str
    payment_id: str
    amount: str
    amount_atomic: str
    asset_symbol: str
    chain_id: int
    source: Known[Literal["escrow", "vault"]]
    destination: str
    reason: str | None
    purpose: Known[Literal["refund", "reconcile_refund", "refund_excess"]]
    status: Known[Literal["created", "failed", "submitted", "succeeded"]]
    """A status of a refund."""
    status_version: int
    transaction_hash: str | None
    failure: RefundFailure | None
    created_at: datetime
    updated_at: datetime
    succeeded_at: datetime | None
    refunds: list[Refund]


class Dispute(Answer, frozen=True, kw_only=True):
    """A dispute; what belongs to its end is null until then."""

    status: Known[Literal["flagged", "resolved"]]
    reason: str
    description: str | None
    created_at: datetime
    resolution: Known[Literal["won", "lost", "withdrawn"]] | None
    note: str | None
    resolved_at: datetime | None


class Session(Answer, frozen=True, kw_only=True):
    """A session, whole."""

    object: Known[Literal["session"]]
    id: str
    status: Known[Literal["open", "pending", "routing", "settled", "refunded", "failed", "expired"]]
    payment_id: str
    amount: str
    amount_atomic: str
    asset_symbol: str
    decimals: int
    chain_id: int
    dispute: Dispute | None
    request_id: str
    created_at: datetime
    updated_at: datetime


class FlaggedDispute(Answer, frozen=True, kw_only=True):
    """A dispute as its flagging answers it, with these fields and no others."""

    status: Known[Literal["flagged", "resolved"]]
    reason: str
    description: str | None
    created_at: datetime


class FlaggedSession(Answer, frozen=True, kw_only=True):
    """A session as the flagging of its dispute answers it, with these fields and no others."""

    object: Known[Literal["session"]]
    id: str
    status: Known[Literal["open", "pending", "routing", "settled", "refunded", "failed", "expired"]]
    dispute: FlaggedDispute
    request_id: str


class Endpoint(Answer, frozen=True, kw_only=True):
    """A webhook endpoint; its secret is told at creation and rotation only."""

    id: str
    app_id: str
    environment_id: str
    url: str
    description: str | None
    subscribed_events: list[str]
    status: Known[Literal["active", "disabled", "archived"]]
    created_at: datetime
    updated_at: datetime


class EndpointWithSecret(Answer, frozen=True, kw_only=True):
    """A webhook endpoint and its signing secret."""

    webhook_endpoint: Endpoint
    signing_secret: str


class EventType(Answer, frozen=True, kw_only=True):
    """An event of the catalog, with the fields of its payload."""

    name: str
    meaning: str
    fields: list[str]
    emitted: bool


class Endpoints(Page[Endpoint], frozen=True, kw_only=True):
    """The endpoints, what can be subscribed to, and what receivers may rely on."""

    data: list[Endpoint] = msgspec.field(name="webhookEndpoints")
    event_catalog: list[EventType]
    delivery_policy: DeliveryPolicy


class OneEndpoint(Answer, frozen=True, kw_only=True):
    """A webhook endpoint, named."""

    webhook_endpoint: Endpoint


class TestedEndpoint(Answer, frozen=True, kw_only=True):
    """The test that is on its way to an endpoint."""

    webhook_id: str
    event_id: str
    delivery_id: str
    status: Known[Literal["pending", "failed", "delivered", "abandoned"]]


class RecoveringEndpoint(Answer, frozen=True, kw_only=True):
    """A recovery that is under way."""

    webhook_id: str
    since: datetime
    status: Known[Literal["recovering"]]


class Delivery(Answer, frozen=True, kw_only=True):
    """A delivery; the moments that do not apply are left out, never null."""

    id: str
    webhook_endpoint_id: str
    outbox_event_id: str
    event_name: str
    status: Known[Literal["pending", "failed", "delivered", "abandoned"]]
    attempts: int
    response_status: int | None
    request_body: str
    response_body: str | None
    next_attempt_at: datetime | None = None
    delivered_at: datetime | None = None
    created_at: datetime
    updated_at: datetime


class EndpointState(Answer, frozen=True, kw_only=True):
    """Which endpoint, and whether it is active."""

    id: str
    status: Known[Literal["active", "disabled", "archived"]]


class Deliveries(Page[Delivery], frozen=True, kw_only=True):
    """An endpoint's deliveries."""

    data: list[Delivery] = msgspec.field(name="deliveries")
    webhook_endpoint: EndpointState


class RetriedDelivery(Answer, frozen=True, kw_only=True):
    """A delivery that was put back."""

    webhook_id: str
    delivery_id: str
    status: Known[Literal["pending", "failed", "delivered", "abandoned"]]


class Event(Answer, frozen=True, kw_only=True):
    """An event, as its deliveries carry it."""

    id: str
    name: str
    api_version: str
    created_at: datetime
    payload: dict[str, Any]


class ResentEvent(Answer, frozen=True, kw_only=True):
    """The deliveries of an event that were put on their way again."""

    event_id: str
    deliveries: list[RetriedDelivery]


class Block(Answer, frozen=True, kw_only=True):
    """A block of a simulated chain."""

    number: int
    hash: str


class Chain(Answer, frozen=True, kw_only=True):
    """The newest block of a simulated chain, and the newest final one."""

    chain_id: int
    latest: Block
    final: Block


class ArmedFailure(Answer, frozen=True, kw_only=True):
    """What is to fail next, and how often still; without a chain, on all of them."""

    dependency: str
    operation: str
    chain_id: int | None
    times: int


class Sandbox(Answer, frozen=True, kw_only=True):
    """The sandbox's clock and chains, and what is to fail next."""

    now: datetime
    real_now: datetime
    chains: list[Chain]
    failures: list[ArmedFailure]


class Funded(Answer, frozen=True, kw_only=True):
    """A credit of the faucet, already final."""

    account_id: str
    chain_id: int
    asset_symbol: str
    amount: str
    amount_atomic: str
    address: str
    transaction_hash: str


class BankDeposit(Answer, frozen=True, kw_only=True):
    """A bank transfer that was made; `bankTransferId` is the bank's own id of it."""

    bank_transfer_id: str
    onramp_bank_account_id: str
    amount: str
    rail: Known[Literal["ach_push", "wire"]]
    status: Known[Literal["scheduled", "in_review", "received", "returned", "cancelled"]]
    expected_at: datetime | None


class Advanced(Answer, frozen=True, kw_only=True):
    """The time that the clock shows now, and how many jobs fell due on the way."""

    now: datetime
    jobs_run: int


class Triggered(Answer, frozen=True, kw_only=True):
    """The event that was sent on order."""

    event_id: str
    name: str
    payload: dict[str, Any]


class DecidedPayout(Answer, frozen=True, kw_only=True):
    """A Payment's payout after the bank's decision, and what became of the Payment."""

    payment_id: str
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
    """A status of a Payment."""
    payout: Payout


class Ran(Answer, frozen=True, kw_only=True):
    """How many jobs were run."""

    jobs_run: int


class Transferred(Answer, frozen=True, kw_only=True):
    """A stranger's transfer. `block` is null where a reorg has dropped it already."""

    transaction_hash: str
    chain_id: int
    asset_symbol: str
    amount: str
    amount_atomic: str
    from_: str
    to: str
    succeeded: bool
    block: Block | None


class Health(Answer, frozen=True, kw_only=True):
    """The answer of both routes."""

    status: str


class MoneyAccount(Answer, frozen=True, kw_only=True):
    """A Money Account: the account that v2 has under the same id."""

    user_id: str
    username: str | None
    payment_address: str | None
    vault_address: str
    addresses: list[str]
    kyc_status: Known[Literal["not_started", "pending", "completed", "rejected"]]
    is_kyc: bool = msgspec.field(name="isKYC")
    kyc_provider_token: str | None
    preferred_settlement_chain: int | None
    preferred_settlement_token: str | None
    created_at: datetime


class MoneyAccountAnswer(Answer, frozen=True, kw_only=True):
    """A Money Account."""

    success: bool
    request_id: str
    data: MoneyAccount


class LinkedAddress(Answer, frozen=True, kw_only=True):
    """A wallet address of an account."""

    address: str
    chain_type: Known[Literal["evm", "solana", "aptos"]]


class AddressOwner(Answer, frozen=True, kw_only=True):
    """The account that a wallet address is linked to."""

    user_id: str
    partner_id: str
    username: str | None
    addresses: list[LinkedAddress]
    vault_address: str
    is_kyc: bool = msgspec.field(name="isKYC")
    kyc_provider_token: str | None


class AddressOwnerAnswer(Answer, frozen=True, kw_only=True):
    """The account that an address is linked to."""

    success: bool
    request_id: str
    data: AddressOwner


class LinkedAddresses(Answer, frozen=True, kw_only=True):
    """The wallet addresses of an account."""

    user_id: str
    addresses: list[LinkedAddress]


class LinkedAddressesAnswer(Answer, frozen=True, kw_only=True):
    """The account's addresses, with the new one."""

    success: bool
    request_id: str
    data: LinkedAddresses
    message: str


class UsernameAvailability(Answer, frozen=True, kw_only=True):
    """Whether an account could have the username now."""

    username: str
    available: bool


class UsernameAvailabilityAnswer(Answer, frozen=True, kw_only=True):
    """Whether a username is available."""

    success: bool
    request_id: str
    data: UsernameAvailability


class ChosenUsername(Answer, frozen=True, kw_only=True):
    """The payment address that a username makes."""

    payment_address: str


class ChosenUsernameAnswer(Answer, frozen=True, kw_only=True):
    """The new payment address."""

    success: bool
    request_id: str
    data: ChosenUsername
    message: str


class Preferences(Answer, frozen=True, kw_only=True):
    """Where an account wants to be paid."""

    user_id: str
    preferred_settlement_chain: int
    preferred_settlement_token: str


class PreferencesAnswer(Answer, frozen=True, kw_only=True):
    """The changed preferences."""

    success: bool
    request_id: str
    data: Preferences
    message: str


class ResolvedAddress(Answer, frozen=True, kw_only=True):
    """The account that a payment address pays."""

    user_id: str
    username: str
    payment_address: str
    vault_address: str


class ResolvedAddressAnswer(Answer, frozen=True, kw_only=True):
    """The account behind a payment address."""

    success: bool
    request_id: str
    data: ResolvedAddress


class KycDone(Answer, frozen=True, kw_only=True):
    """Whether an account is verified. The token is a reference that opens nothing."""

    is_kyc: bool = msgspec.field(name="isKYC")
    kyc_provider_token: str | None


class KycDoneAnswer(Answer, frozen=True, kw_only=True):
    """Whether an account is verified."""

    success: bool
    request_id: str
    data: KycDone


class GeneratedAddress(Answer, frozen=True, kw_only=True):
    """An account's deposit address on a chain; the same at every call."""

    user_id: str
    deposit_address: str
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    chain_id: int


class GeneratedAddressAnswer(Answer, frozen=True, kw_only=True):
    """A deposit address."""

    success: bool
    request_id: str
    data: GeneratedAddress


class QuotedAmounts(Answer, frozen=True, kw_only=True):
    """What goes in and what comes out, in whole tokens; `fee` is in the token that comes
    out.
    """

    input_amount: str
    input_token: str
    input_chain: int
    output_amount: str
    output_token: str
    output_chain: int
    fee: str
    expires_at: datetime


class QuotedAddress(Answer, frozen=True, kw_only=True):
    """An address for one payment, and its quote."""

    deposit_address: str
    quote: QuotedAmounts
    quote_id: str


class QuotedAddressAnswer(Answer, frozen=True, kw_only=True):
    """An address for one payment."""

    success: bool
    request_id: str
    data: QuotedAddress


class QuoteData(Answer, frozen=True, kw_only=True):
    """Where a quote is paid."""

    deposit_address: str
    quote_id: str


class TokenIn(Answer, frozen=True, kw_only=True):
    """What the payer sends: exactly `inputTokenAmountRaw` of the token."""

    address: str
    input_token_amount_raw: str
    input_token_amount_raw_formatted: str
    input_value_in_usd: str | None = msgspec.field(name="inputValueInUSD")


class TokenOut(Answer, frozen=True, kw_only=True):
    """What the recipient is expected to get, and the least in `minimumOutput`, as raw
    amount.
    """

    address: str
    output_token_amount_raw: str
    output_token_amount_raw_formatted: str
    output_value_in_usd: str | None = msgspec.field(name="outputValueInUSD")
    minimum_output: str


class QuotePayload(Answer, frozen=True, kw_only=True):
    """What a quote offers. `estimatedTime` is in seconds, `quoteExpiry` in Unix seconds.
    `exchangeRate` is how many tokens out one token in buys, before the fee.
    """

    token_in: TokenIn
    token_out: TokenOut
    estimated_time: int
    quote_expiry: int
    exchange_rate: str


class Quote(Answer, frozen=True, kw_only=True):
    """A quote."""

    quote_data: QuoteData
    payload: QuotePayload


class QuoteAnswer(Answer, frozen=True, kw_only=True):
    """A quote."""

    success: bool
    request_id: str
    data: Quote


class TransferState(Answer, frozen=True, kw_only=True):
    """Whether the recipient has the funds."""

    is_transfer_done: bool


class TransferStateAnswer(Answer, frozen=True, kw_only=True):
    """Whether a transfer is done."""

    success: bool
    request_id: str
    data: TransferState


class SettlementsSettlement(Answer, frozen=True, kw_only=True):
    """A settlement that was accepted; `get-transaction` tells how far it is."""

    message: str
    transaction_id: str
    status: Known[Literal["pending"]]


class SettlementAnswer(Answer, frozen=True, kw_only=True):
    """A settlement that was accepted."""

    success: bool
    request_id: str
    data: SettlementsSettlement


class NativeCurrency(Answer, frozen=True, kw_only=True):
    """What a chain's fees are paid in."""

    name: str
    symbol: str
    decimals: int


class Token(Answer, frozen=True, kw_only=True):
    """A token on a chain."""

    symbol: str
    address: str
    decimals: int


class SupportedChain(Answer, frozen=True, kw_only=True):
    """A chain of the registry; `isActive` says whether this deployment serves it."""

    chain_id: int
    name: str
    chain_type: Known[Literal["evm", "solana", "aptos"]]
    native_currency: NativeCurrency
    tokens: list[Token]
    rpc_url: str
    explorer_url: str
    is_active: bool


class SupportedChains(Answer, frozen=True, kw_only=True):
    """The chains of the registry."""

    chains: list[SupportedChain]


class SupportedChainsAnswer(Answer, frozen=True, kw_only=True):
    """The chains of the registry."""

    success: bool
    request_id: str
    data: SupportedChains


class AddressBalance(Answer, frozen=True, kw_only=True):
    """What an address holds, as a decimal and in the smallest unit."""

    balance: str
    balance_raw: str
    decimals: int


class AddressBalanceAnswer(Answer, frozen=True, kw_only=True):
    """What an address holds."""

    success: bool
    request_id: str
    data: AddressBalance


class Holding(Answer, frozen=True, kw_only=True):
    """What an address holds of a token; `usdValue` is null for a token without a price."""

    chain_id: int
    chain_name: str
    token: str
    token_address: str
    balance: str
    balance_raw: str
    decimals: int
    usd_value: str | None


class AddressHoldings(Answer, frozen=True, kw_only=True):
    """What an address holds on every chain of its type, each value rounded down to the cent."""

    address: str
    address_type: Known[Literal["evm", "solana", "aptos"]]
    balances: list[Holding]
    total_usd_value: str


class AddressHoldingsAnswer(Answer, frozen=True, kw_only=True):
    """What an address holds on every chain of its type."""

    success: bool
    request_id: str
    data: AddressHoldings


class Party(Answer, frozen=True, kw_only=True):
    """One side of a transaction, as far as it is known."""

    user_id: str | None
    payment_address: str | None
    wallet_address: str | None


class Transaction(Answer, frozen=True, kw_only=True):
    """A movement of funds. `fee` is what the recipient pays of `amount`."""

    id: str
    type: Known[Literal["deposit", "payment", "settlement"]]
    status: Known[Literal["pending", "processing", "completed", "failed"]]
    amount: str
    token: str
    from_: Party
    to: Party
    fee: str
    chain_id: int
    tx_hash: str | None
    created_at: datetime
    completed_at: datetime | None


class TransactionAnswer(Answer, frozen=True, kw_only=True):
    """A transaction."""

    success: bool
    request_id: str
    data: Transaction


class ListedTransaction(Answer, frozen=True, kw_only=True):
    """The same in a list: a side is its payment address, or else its wallet address."""

    id: str
    type: Known[Literal["deposit", "payment", "settlement"]]
    status: Known[Literal["pending", "processing", "completed", "failed"]]
    amount: str
    token: str
    from_: str | None
    to: str | None
    fee: str
    chain_id: int
    tx_hash: str | None
    created_at: datetime
    completed_at: datetime | None


class Pagination(Answer, frozen=True, kw_only=True):
    """Where the page is. `totalCount` counts 1,000 transactions at most."""

    page: int
    limit: int
    total_pages: int
    total_count: int


class Transactions(Answer, frozen=True, kw_only=True):
    """A page of transactions, newest first."""

    transactions: list[ListedTransaction]
    pagination: Pagination


class TransactionsAnswer(Answer, frozen=True, kw_only=True):
    """A page of transactions."""

    success: bool
    request_id: str
    data: Transactions


class RoleModule(Answer, frozen=True, kw_only=True):
    """A vault's role module. `txHash` is of the newest transaction for it, once it was sent."""

    vault_address: str
    role_module_address: str
    tx_hash: str | None
    status: Known[Literal["pending", "processing", "completed", "failed"]]


class RoleModuleAnswer(Answer, frozen=True, kw_only=True):
    """A vault's role module."""

    success: bool
    request_id: str
    data: RoleModule


class OwnAccount(Answer, frozen=True, kw_only=True):
    """The token's account, and what the token may do now."""

    id: str
    account_id: str
    external_user_id: str
    subject_type: Known[Literal["individual", "business"]]
    status: Known[Literal["active", "suspended", "closed"]]
    username: str | None
    payment_address: str | None
    vaults: list[Vault]
    wallets: list[Wallet]
    settlement: AccountsSettlement | None
    kyc: Kyc
    capabilities: dict[
        str,
        Known[Literal["inactive", "action_required", "pending", "active", "rejected", "suspended"]],
    ]
    permissions: list[str]
    created_at: datetime
    updated_at: datetime


class PayingVault(Answer, frozen=True, kw_only=True):
    """The vault that a send or a collect comes from, without whose it is."""

    type: Known[Literal["vault"]]
    address: str


class FundedOptionOrDirectPaymentOption(Answer, frozen=True, kw_only=True):
    """Either `FundedOption` or `DirectPaymentOption`: what the one at hand does not have is
    None.
    """

    payment_id: str
    option: OptionOrDirectOption
    funding_operation: FundingOperation | None = None


class Reconciliation(Answer, frozen=True, kw_only=True):
    """What is out of the ordinary, and whether it was settled."""

    status: Known[Literal["none", "open", "resolved"]]
    labels: list[
        Known[
            Literal[
                "duplicate",
                "execution_failed",
                "late",
                "overpaid",
                "reorged",
                "returned",
                "underpaid",
            ]
        ]
    ]
    resolution: (
        Known[Literal["accept", "refund", "refund_excess", "retry_execution", "write_off"]] | None
    )
    resolved_at: datetime | None


class RecipientPayment(Answer, frozen=True, kw_only=True):
    """A Payment as its recipient sees it: whole, but for the partner's metadata, its notes
    and reasons for refunds, and whatever belongs to the payer alone. Options are the
    recipient's own, if it pays itself; the ids of others' are null.
    """

    id: str
    payment_id: str
    intent: Known[Literal["receive", "send", "collect"]]
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
    """A status of a Payment."""
    status_version: int
    account_id: str | None
    external_user_id: str | None
    amount: str
    amount_atomic: str
    asset_symbol: str
    decimals: int
    chain_id: int
    token_address: str
    received_amount_atomic: str
    remaining_amount_atomic: str
    excess_amount_atomic: str
    settled_amount_atomic: str
    refunded_amount_atomic: str
    returned_amount_atomic: str
    fees: Fees
    source: PayingVault | None
    destination: Destination
    escrow: Escrow | None
    release_transaction_hash: str | None
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    selected_option_id: str | None
    options: list[FundedOptionOrDirectPaymentOption]
    receipts: list[Receipt]
    refunds: list[Refund]
    payout: Payout | None
    reconciliation: Reconciliation
    session_id: str | None
    timeline: list[Timeline]
    failure: Failure | None
    reference: str | None
    description: str | None
    api_version: str
    payment_url: str | None
    success_url: str | None
    cancel_url: str | None
    created_by: Known[Literal["server", "client", "public"]] | None
    expires_at: datetime | None
    monitoring_expires_at: datetime | None
    succeeded_at: datetime | None
    cancelled_at: datetime | None
    created_at: datetime
    updated_at: datetime


class Payee(Answer, frozen=True, kw_only=True):
    """Who is paid, as far as a payer is told: never an account id, a vault or a wallet."""

    type: Known[Literal["account", "payment_address", "wallet", "bank_account"]]
    payment_address: str | None


class VaultExecution(Answer, frozen=True, kw_only=True):
    """What the payer can do now: authorize this transfer, once, with this action."""

    type: Known[Literal["vault_authorization"]]
    action_id: str
    expires_at: datetime


class Option(Answer, frozen=True, kw_only=True):
    """A Vault option."""

    id: str
    provider_code: Known[Literal["vault"]]
    payment_method_type: Known[Literal["account_balance"]]
    payment_method_id: Known[Literal["vault.service"]]
    type: Known[Literal["account_balance"]]
    display_name: Known[Literal["Pay with Service Vault"]]
    status: Known[
        Literal["cancelled", "creating", "expired", "failed", "pending", "processing", "succeeded"]
    ]
    """A status of an option."""
    selection_status: Known[Literal["selected", "superseded"]]
    """A status of a selection."""
    required_amount_atomic: str
    paid_amount_atomic: str
    remaining_amount_atomic: str
    is_terminal: bool
    confirmation_mode: Known[Literal["provider_webhook"]]
    transaction_submissions: list[str]
    source_amount: ChainAmount
    destination_amount: ChainAmount
    payer_amount: TokenAmount
    recipient_amount: TokenAmount
    provider_fee: TokenAmount
    execution: VaultExecution | None
    expires_at: datetime | None
    refreshable: bool
    fee_amount_atomic: str
    action_expires_at: datetime | None
    quote_expires_at: datetime | None
    order_expires_at: datetime | None
    receipts: list[Receipt]


class FundedOption(Answer, frozen=True, kw_only=True):
    """An option with its funding operation."""

    payment_id: str
    option: Option
    funding_operation: FundingOperation


class Moment(Answer, frozen=True, kw_only=True):
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
    """A status of a Payment."""
    at: datetime


class PayerPayment(Answer, frozen=True, kw_only=True):
    """A Payment as a payer sees it, who holds its secret: its terms, its course, and the
    payer's own part in it.
    """

    id: str
    payment_id: str
    intent: Known[Literal["receive", "send", "collect"]]
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
    """A status of a Payment."""
    status_version: int
    amount: str
    amount_atomic: str
    asset_symbol: str
    decimals: int
    chain_id: int
    token_address: str
    received_amount_atomic: str
    remaining_amount_atomic: str
    excess_amount_atomic: str
    refunded_amount_atomic: str
    destination: Payee
    escrow: Escrow | None
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    selected_option_id: str | None
    options: list[FundedOption]
    receipts: list[Receipt]
    timeline: list[Moment]
    reference: str | None
    description: str | None
    api_version: str
    payment_url: str | None
    success_url: str | None
    cancel_url: str | None
    created_by: Known[Literal["server", "client", "public"]] | None
    expires_at: datetime | None
    succeeded_at: datetime | None
    cancelled_at: datetime | None
    created_at: datetime
    updated_at: datetime


class PaymentOption(Answer, frozen=True, kw_only=True):
    """An option under its Payment's id."""

    payment_id: str
    option: Option


class AccessToken(Answer, frozen=True, kw_only=True):
    """What the session token was exchanged for."""

    access_token: str
    token_type: Known[Literal["Bearer"]]
    account_id: str
    permissions: list[str]
    expires_at: datetime


class ExchangedLink(Answer, frozen=True, kw_only=True):
    """The Payment that a link's code stands for; the code works until `expiresAt`."""

    payment_id: str
    client_secret: str
    expires_at: datetime


class TransferExecution(Answer, frozen=True, kw_only=True):
    """What the payer can do now: send to the Payment's escrow what remains of it and is not
    on its way yet.
    """

    type: Known[Literal["transfer"]]
    chain_id: int
    token_address: str
    to: str
    amount_atomic: str


class DirectOption(Answer, frozen=True, kw_only=True):
    """A direct option. It was never selected where it has no `selectionStatus`, and there is
    nothing to send where it has no `execution`.
    """

    id: str
    provider_code: Known[Literal["direct"]]
    payment_method_type: Known[Literal["wallet"]]
    payment_method_id: Known[Literal["direct.transfer"]]
    type: Known[Literal["wallet"]]
    display_name: Known[Literal["Pay from any wallet"]]
    status: Known[
        Literal["cancelled", "creating", "expired", "failed", "pending", "processing", "succeeded"]
    ]
    """A status of an option."""
    selection_status: Known[Literal["selected", "superseded"]] | None
    """A status of a selection."""
    required_amount_atomic: str
    paid_amount_atomic: str
    remaining_amount_atomic: str
    is_terminal: bool
    confirmation_mode: Known[Literal["chain"]]
    transaction_submissions: list[Submission]
    source_amount: ChainAmount
    destination_amount: ChainAmount
    payer_amount: TokenAmount
    recipient_amount: TokenAmount
    provider_fee: TokenAmount
    payer_address: str | None
    execution: TransferExecution | None
    expires_at: datetime
    refreshable: bool
    fee_amount_atomic: Known[Literal["0"]]
    action_expires_at: None
    quote_expires_at: None
    order_expires_at: None
    receipts: list[Receipt]
    created_at: datetime
    updated_at: datetime


class PublicMoment(Answer, frozen=True, kw_only=True):
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
    """A status of a Payment."""
    at: datetime


class CreatedPublicPayment(Answer, frozen=True, kw_only=True):
    """A new Payment, with the secret and the link that are told at its creation only."""

    id: str
    payment_id: str
    intent: Known[Literal["receive", "send", "collect"]]
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
    """A status of a Payment."""
    status_version: int
    amount: str
    amount_atomic: str
    asset_symbol: str
    decimals: int
    chain_id: int
    token_address: str
    received_amount_atomic: str
    remaining_amount_atomic: str
    excess_amount_atomic: str
    refunded_amount_atomic: str
    escrow: Escrow | None
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    selected_option_id: str | None
    options: list[DirectOption]
    timeline: list[PublicMoment]
    reference: str | None
    description: str | None
    api_version: str
    success_url: str | None
    cancel_url: str | None
    created_by: Known[Literal["server", "client", "public"]] | None
    expires_at: datetime
    succeeded_at: datetime | None
    cancelled_at: datetime | None
    created_at: datetime
    updated_at: datetime
    client_secret: str
    payment_url: str


class PublicPayment(Answer, frozen=True, kw_only=True):
    """A Payment's terms, its direct options, and its course."""

    id: str
    payment_id: str
    intent: Known[Literal["receive", "send", "collect"]]
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
    """A status of a Payment."""
    status_version: int
    amount: str
    amount_atomic: str
    asset_symbol: str
    decimals: int
    chain_id: int
    token_address: str
    received_amount_atomic: str
    remaining_amount_atomic: str
    excess_amount_atomic: str
    refunded_amount_atomic: str
    escrow: Escrow | None
    allowed_methods: list[Known[Literal["vault", "direct", "routing", "hosted_onramp"]]]
    selected_option_id: str | None
    options: list[DirectOption]
    timeline: list[PublicMoment]
    reference: str | None
    description: str | None
    api_version: str
    success_url: str | None
    cancel_url: str | None
    created_by: Known[Literal["server", "client", "public"]] | None
    expires_at: datetime
    succeeded_at: datetime | None
    cancelled_at: datetime | None
    created_at: datetime
    updated_at: datetime


class OptionState(Answer, frozen=True, kw_only=True):
    """How an option stands."""

    id: str
    status: Known[
        Literal["cancelled", "creating", "expired", "failed", "pending", "processing", "succeeded"]
    ]
    """A status of an option."""
    selection_status: Known[Literal["selected", "superseded"]] | None
    """A status of a selection."""
    paid_amount_atomic: str


class CheckoutState(Answer, frozen=True, kw_only=True):
    """How a Payment stands. It changes when the state does, and at no other time."""

    payment_id: str
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
    """A status of a Payment."""
    status_version: int
    amount_atomic: str
    received_amount_atomic: str
    remaining_amount_atomic: str
    excess_amount_atomic: str
    refunded_amount_atomic: str
    selected_option_id: str | None
    options: list[OptionState]
    expires_at: datetime


class MethodAsset(Answer, frozen=True, kw_only=True):
    """A token that a method takes."""

    chain_id: int
    asset_symbol: str
    token_address: str
    decimals: int


class Method(Answer, frozen=True, kw_only=True):
    """A way to pay. One that is not `available` is allowed by the Payment, and not active
    here.
    """

    provider_code: Known[Literal["vault", "direct", "routing", "hosted_onramp"]]
    display_name: str
    available: bool
    unavailable_reason: Known[Literal["capability_not_active"]] | None
    assets: list[MethodAsset]


class Methods(Answer, frozen=True, kw_only=True):
    """The ways to pay a Payment without an account."""

    payment_id: str
    methods: list[Method]


class DirectPaymentOption(Answer, frozen=True, kw_only=True):
    """A direct option under its Payment's id."""

    payment_id: str
    option: DirectOption
