# Printed from the OpenAPI document by docs/client: run `make client`.
"""The events of webhooks: a struct for each event, with its payload."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from payments_core_http.client.structs import Known, Response


class Envelope(Response, frozen=True, kw_only=True):
    """What every event has."""

    id: str
    """The event's id, which is the same in every delivery."""
    name: str
    """The event's name."""
    api_version: str
    """The dated contract of the event; it never changes."""
    created_at: datetime
    """When the change that it reports was committed."""


class PaymentPayload(Response, frozen=True, kw_only=True):
    """Payment payload."""

    payment_id: str
    """The Payment's id."""
    account_id: str | None
    """The recipient's account; null if a wallet or a bank account is paid."""
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
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    settled_amount_atomic: str
    """What the recipient has received, after the fee, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    returned_amount_atomic: str
    """What the recipient of a payment from a vault has sent back, in the smallest unit."""
    reference: str | None
    """Your own id or text for it; null without one, and if a visitor of a public page wrote
it.
"""
    external_user_id: str | None
    """Your own id of the recipient's user; null if no account is paid."""
    metadata: dict[str, Any] | None
    """Your own data; null without any."""


class PaymentProcessingPayload(Response, frozen=True, kw_only=True):
    """Payment processing payload."""

    payment_id: str
    """The Payment's id."""
    account_id: str | None
    """The recipient's account; null if a wallet or a bank account is paid."""
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
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    settled_amount_atomic: str
    """What the recipient has received, after the fee, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    returned_amount_atomic: str
    """What the recipient of a payment from a vault has sent back, in the smallest unit."""
    reference: str | None
    """Your own id or text for it; null without one, and if a visitor of a public page wrote
it.
"""
    external_user_id: str | None
    """Your own id of the recipient's user; null if no account is paid."""
    metadata: dict[str, Any] | None
    """Your own data; null without any."""
    receipt_id: str | None
    """The transfer that was seen; null if a vault's transfer was authorized and is not sent
yet.
"""
    confirmations: int | None
    """How many blocks were on top of its block."""
    required: int | None
    """How many blocks must be on top; null if the chain's own finality decides."""
    estimated_at: datetime | None
    """When it counts, about; null if nobody knows."""


class PaymentInReviewPayload(Response, frozen=True, kw_only=True):
    """Payment in review payload."""

    payment_id: str
    """The Payment's id."""
    account_id: str | None
    """The recipient's account; null if a wallet or a bank account is paid."""
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
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    settled_amount_atomic: str
    """What the recipient has received, after the fee, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    returned_amount_atomic: str
    """What the recipient of a payment from a vault has sent back, in the smallest unit."""
    reference: str | None
    """Your own id or text for it; null without one, and if a visitor of a public page wrote
it.
"""
    external_user_id: str | None
    """Your own id of the recipient's user; null if no account is paid."""
    metadata: dict[str, Any] | None
    """Your own data; null without any."""
    refund_id: str | None
    """The refund that waits; null if the transfer to the recipient waits, or a return of
misdirected funds.
"""


class PaymentMisdirectedPayload(Response, frozen=True, kw_only=True):
    """Payment misdirected payload."""

    payment_id: str
    """The Payment's id."""
    account_id: str | None
    """The account's id."""
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
    receipt_id: str
    """The receipt's id."""
    reason: str
    """Why it does not count."""
    chain_id: int
    """The chain on which it arrived."""
    asset_symbol: str
    """The token that arrived."""
    token_address: str
    """The address of the asset's contract on the chain."""
    amount_atomic: str
    """The amount that arrived, in the token's smallest unit."""
    from_: str
    """The address that sent the funds."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    reference: str | None
    """Your own id or text for it; null without one, and if a visitor of a public page wrote
it.
"""
    external_user_id: str | None
    """Your own id of the recipient's user; null if no account is paid."""
    metadata: dict[str, Any] | None
    """Your own data; null without any."""


class PaymentReconciledPayload(Response, frozen=True, kw_only=True):
    """Payment reconciled payload."""

    payment_id: str
    """The Payment's id."""
    account_id: str | None
    """The recipient's account; null if a wallet or a bank account is paid."""
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
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    amount_atomic: str
    """The Payment's amount, in the asset's smallest unit."""
    received_amount_atomic: str
    """The sum of verified receipts, in the smallest unit."""
    excess_amount_atomic: str
    """What was received beyond the amount and has not been refunded, in the smallest unit."""
    settled_amount_atomic: str
    """What the recipient has received, after the fee, in the smallest unit."""
    refunded_amount_atomic: str
    """The sum of final refunds, in the smallest unit."""
    created_by: Known[Literal["server", "client", "public"]] | None
    """Who created it: your backend, a client token, or public checkout. Null for Payments
that are older than this field.
"""
    returned_amount_atomic: str
    """What the recipient of a payment from a vault has sent back, in the smallest unit."""
    reference: str | None
    """Your own id or text for it; null without one, and if a visitor of a public page wrote
it.
"""
    external_user_id: str | None
    """Your own id of the recipient's user; null if no account is paid."""
    metadata: dict[str, Any] | None
    """Your own data; null without any."""
    note: str | None
    """The note of the last decision; null without one."""


class RefundPayload(Response, frozen=True, kw_only=True):
    """Refund payload."""

    payment_id: str
    """The Payment's id."""
    refund_id: str
    """The refund's id."""
    status: Known[Literal["created", "failed", "submitted", "succeeded"]]
    """Its state."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""


class VaultFundingPayload(Response, frozen=True, kw_only=True):
    """Vault funding payload."""

    payment_id: str
    """The Payment's id."""
    option_id: str
    """The option's id."""
    funding_operation_id: str
    """The id of the transfer from the payer's vault."""
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
    """Rises by one at each change of `status`; a higher version is newer."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""


class DepositPayload(Response, frozen=True, kw_only=True):
    """Deposit payload."""

    account_id: str | None
    """The account's id."""
    deposit_id: str
    """The deposit's id."""
    status: Known[Literal["confirmed", "detected", "failed", "rejected", "settled"]]
    """Its state."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    amount_atomic: str
    """The amount in the asset's smallest unit, as a digit string."""
    transaction_hash: str
    """The hash of the transaction on the chain."""


class DepositMisdirectedPayload(Response, frozen=True, kw_only=True):
    """Deposit misdirected payload."""

    account_id: str | None
    """The account's id."""
    deposit_id: str
    """The deposit's id."""
    status: Known[Literal["confirmed", "detected", "failed", "rejected", "settled"]]
    """Its state."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    reason: str
    """Why it does not count."""
    chain_id: int
    """The chain on which it arrived."""
    asset_symbol: str
    """The token that arrived."""
    token_address: str
    """The address of the asset's contract on the chain."""
    amount_atomic: str
    """The amount that arrived, in the token's smallest unit."""
    from_: str
    """The address that sent the funds."""
    transaction_hash: str
    """The hash of the transaction on the chain."""


class DepositReturnedPayload(Response, frozen=True, kw_only=True):
    """Deposit returned payload."""

    account_id: str | None
    """The account's id."""
    deposit_id: str
    """The deposit's id."""
    status: Known[Literal["confirmed", "detected", "failed", "rejected", "settled"]]
    """Its state."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    reason: str
    """Why it does not count."""
    chain_id: int
    """The chain on which it arrived."""
    asset_symbol: str
    """The token that arrived."""
    token_address: str
    """The address of the asset's contract on the chain."""
    amount_atomic: str
    """The amount that arrived, in the token's smallest unit."""
    from_: str
    """The address that sent the funds."""
    transaction_hash: str
    """The hash of the transaction on the chain."""
    destination: str
    """The address that got it."""
    return_transaction_hash: str
    """The transaction that sent it back."""


class AccountPayload(Response, frozen=True, kw_only=True):
    """Account payload."""

    account_id: str | None
    """The account's id."""
    external_user_id: str
    """Your own id of the account's user."""
    status: Known[Literal["active", "suspended", "closed"]]
    """The account's state."""


class AccountCapabilityUpdatedPayload(Response, frozen=True, kw_only=True):
    """Account capability updated payload."""

    account_id: str | None
    """The account's id."""
    capability: Known[Literal["us_bank_payout", "us_bank_funding"]]
    """The capability's name."""
    status: str
    """The capability's new state."""


class BankAccountPayload(Response, frozen=True, kw_only=True):
    """Bank account payload."""

    account_id: str | None
    """The account's id."""
    bank_account_id: str
    """The id of the bank account."""
    status: str
    """Its state."""


class BankFundingPayload(Response, frozen=True, kw_only=True):
    """Bank funding payload."""

    account_id: str | None
    """The account's id."""
    onramp_bank_account_id: str
    """The id of the on-ramp bank account."""
    transaction_id: str
    """The id of the bank transaction."""
    status: Known[
        Literal["failed", "in_review", "received", "refunded", "scheduled", "settled", "submitted"]
    ]
    """Its state."""
    status_version: int
    """Rises by one at each change of `status`; a higher version is newer."""
    amount: str
    """The amount in dollars, as a decimal string."""


class DisputePayload(Response, frozen=True, kw_only=True):
    """Dispute payload."""

    session_id: str
    """The session's id."""
    payment_id: str
    """The Payment's id."""
    status: Known[Literal["flagged", "resolved"]]
    """Its state."""


class WebhookPayload(Response, frozen=True, kw_only=True):
    """Webhook payload."""

    webhook_id: str
    """The endpoint that receives the test event."""


class WebhookFailingPayload(Response, frozen=True, kw_only=True):
    """Webhook failing payload."""

    webhook_id: str
    """The endpoint that the event is about; the event is not sent to it."""
    delivery_id: str
    """The delivery that failed."""
    failure_reason: str | None
    """Why it fails, in a sentence; null if it works again."""


class WebhookRecoveredPayload(Response, frozen=True, kw_only=True):
    """Webhook recovered payload."""

    webhook_id: str
    """The endpoint that the event is about; the event is not sent to it."""
    delivery_id: str
    """The delivery that was accepted."""
    failure_reason: str | None
    """Why it fails, in a sentence; null if it works again."""


class PaymentCreated(Envelope, frozen=True, kw_only=True):
    """A Payment was created and waits for funds."""

    name: Literal["payment.created"]
    payload: PaymentPayload


class PaymentProcessing(Envelope, frozen=True, kw_only=True):
    """Funds are on their way and are not proven yet."""

    name: Literal["payment.processing"]
    payload: PaymentProcessingPayload


class PaymentUnderpaid(Envelope, frozen=True, kw_only=True):
    """Proven funds do not cover the amount."""

    name: Literal["payment.underpaid"]
    payload: PaymentPayload


class PaymentAccepted(Envelope, frozen=True, kw_only=True):
    """Proven funds cover the amount."""

    name: Literal["payment.accepted"]
    payload: PaymentPayload


class PaymentInReview(Envelope, frozen=True, kw_only=True):
    """Screening has not cleared whom a transfer concerns; it waits, and nothing is signed."""

    name: Literal["payment.in_review"]
    payload: PaymentInReviewPayload


class PaymentExecuting(Envelope, frozen=True, kw_only=True):
    """The release to the recipient was sent."""

    name: Literal["payment.executing"]
    payload: PaymentPayload


class PaymentSucceeded(Envelope, frozen=True, kw_only=True):
    """The recipient has the funds, and this is final."""

    name: Literal["payment.succeeded"]
    payload: PaymentPayload


class PaymentActionRequired(Envelope, frozen=True, kw_only=True):
    """The Payment waits for your decision."""

    name: Literal["payment.action_required"]
    payload: PaymentPayload


class PaymentOverpaid(Envelope, frozen=True, kw_only=True):
    """Proven funds exceed the amount; the excess is held."""

    name: Literal["payment.overpaid"]
    payload: PaymentPayload


class PaymentExpired(Envelope, frozen=True, kw_only=True):
    """The Payment expired with nothing received."""

    name: Literal["payment.expired"]
    payload: PaymentPayload


class PaymentCancelled(Envelope, frozen=True, kw_only=True):
    """The Payment was cancelled before funds moved."""

    name: Literal["payment.cancelled"]
    payload: PaymentPayload


class PaymentLate(Envelope, frozen=True, kw_only=True):
    """Funds were proven after the Payment's end or release."""

    name: Literal["payment.late"]
    payload: PaymentPayload


class PaymentMisdirected(Envelope, frozen=True, kw_only=True):
    """Funds that do not count are at the escrow: another token, or another chain."""

    name: Literal["payment.misdirected"]
    payload: PaymentMisdirectedPayload


class PaymentReorged(Envelope, frozen=True, kw_only=True):
    """A reorg undid a proven receipt, or restored one."""

    name: Literal["payment.reorged"]
    payload: PaymentPayload


class PaymentReconciled(Envelope, frozen=True, kw_only=True):
    """Your decision was carried out."""

    name: Literal["payment.reconciled"]
    payload: PaymentReconciledPayload


class PaymentRefunded(Envelope, frozen=True, kw_only=True):
    """A refund is final."""

    name: Literal["payment.refunded"]
    payload: PaymentPayload


class PaymentFailed(Envelope, frozen=True, kw_only=True):
    """The Payment was written off."""

    name: Literal["payment.failed"]
    payload: PaymentPayload


class RefundCreated(Envelope, frozen=True, kw_only=True):
    """A refund was requested."""

    name: Literal["refund.created"]
    payload: RefundPayload


class RefundSucceeded(Envelope, frozen=True, kw_only=True):
    """A refund is final on chain."""

    name: Literal["refund.succeeded"]
    payload: RefundPayload


class RefundFailed(Envelope, frozen=True, kw_only=True):
    """A refund failed permanently; it can be requested again."""

    name: Literal["refund.failed"]
    payload: RefundPayload


class VaultFundingAuthorized(Envelope, frozen=True, kw_only=True):
    """A payer's vault authorized the transfer."""

    name: Literal["vault_funding.authorized"]
    payload: VaultFundingPayload


class VaultFundingBroadcast(Envelope, frozen=True, kw_only=True):
    """The transfer was sent to the chain."""

    name: Literal["vault_funding.broadcast"]
    payload: VaultFundingPayload


class VaultFundingConfirmed(Envelope, frozen=True, kw_only=True):
    """The transfer is proven and final."""

    name: Literal["vault_funding.confirmed"]
    payload: VaultFundingPayload


class VaultFundingFailed(Envelope, frozen=True, kw_only=True):
    """The transfer will not happen."""

    name: Literal["vault_funding.failed"]
    payload: VaultFundingPayload


class DepositDetected(Envelope, frozen=True, kw_only=True):
    """Funds were seen at a deposit address."""

    name: Literal["deposit.detected"]
    payload: DepositPayload


class DepositConfirmed(Envelope, frozen=True, kw_only=True):
    """The deposit is final on chain."""

    name: Literal["deposit.confirmed"]
    payload: DepositPayload


class DepositSettled(Envelope, frozen=True, kw_only=True):
    """The deposit is in the account's vault."""

    name: Literal["deposit.settled"]
    payload: DepositPayload


class DepositFailed(Envelope, frozen=True, kw_only=True):
    """The chain undid the deposit, or its sweep failed."""

    name: Literal["deposit.failed"]
    payload: DepositPayload


class DepositMisdirected(Envelope, frozen=True, kw_only=True):
    """A token that is not credited is at a deposit address."""

    name: Literal["deposit.misdirected"]
    payload: DepositMisdirectedPayload


class DepositReturned(Envelope, frozen=True, kw_only=True):
    """A deposit that is not credited was sent back, and this is final."""

    name: Literal["deposit.returned"]
    payload: DepositReturnedPayload


class AccountCreated(Envelope, frozen=True, kw_only=True):
    """An account was created."""

    name: Literal["account.created"]
    payload: AccountPayload


class AccountUpdated(Envelope, frozen=True, kw_only=True):
    """An account's data or status changed."""

    name: Literal["account.updated"]
    payload: AccountPayload


class AccountCapabilityUpdated(Envelope, frozen=True, kw_only=True):
    """A capability of an account changed."""

    name: Literal["account.capability_updated"]
    payload: AccountCapabilityUpdatedPayload


class BankAccountCreated(Envelope, frozen=True, kw_only=True):
    """A bank account was added."""

    name: Literal["bank_account.created"]
    payload: BankAccountPayload


class BankAccountUpdated(Envelope, frozen=True, kw_only=True):
    """The bank approved or rejected a bank account."""

    name: Literal["bank_account.updated"]
    payload: BankAccountPayload


class BankFundingScheduled(Envelope, frozen=True, kw_only=True):
    """A bank transfer is on its way."""

    name: Literal["bank_funding.scheduled"]
    payload: BankFundingPayload


class BankFundingReceived(Envelope, frozen=True, kw_only=True):
    """A bank transfer has arrived."""

    name: Literal["bank_funding.received"]
    payload: BankFundingPayload


class BankFundingInReview(Envelope, frozen=True, kw_only=True):
    """The bank reviews a transfer, the account cannot be credited now, or the credit failed."""

    name: Literal["bank_funding.in_review"]
    payload: BankFundingPayload


class BankFundingSubmitted(Envelope, frozen=True, kw_only=True):
    """The bank transfer's stablecoins were sent."""

    name: Literal["bank_funding.submitted"]
    payload: BankFundingPayload


class BankFundingSettled(Envelope, frozen=True, kw_only=True):
    """The bank transfer's stablecoins have arrived."""

    name: Literal["bank_funding.settled"]
    payload: BankFundingPayload


class BankFundingRefunded(Envelope, frozen=True, kw_only=True):
    """The bank transfer was sent back."""

    name: Literal["bank_funding.refunded"]
    payload: BankFundingPayload


class BankFundingFailed(Envelope, frozen=True, kw_only=True):
    """The bank transfer never arrived."""

    name: Literal["bank_funding.failed"]
    payload: BankFundingPayload


class DisputeFlagged(Envelope, frozen=True, kw_only=True):
    """A dispute was flagged."""

    name: Literal["dispute.flagged"]
    payload: DisputePayload


class DisputeResolved(Envelope, frozen=True, kw_only=True):
    """A dispute was resolved."""

    name: Literal["dispute.resolved"]
    payload: DisputePayload


class WebhookTest(Envelope, frozen=True, kw_only=True):
    """A test event that you requested for one endpoint."""

    name: Literal["webhook.test"]
    payload: WebhookPayload


class WebhookFailing(Envelope, frozen=True, kw_only=True):
    """An endpoint fails; the other endpoints get this at most once an hour."""

    name: Literal["webhook.failing"]
    payload: WebhookFailingPayload


class WebhookRecovered(Envelope, frozen=True, kw_only=True):
    """An endpoint that failed works again; the other endpoints get this."""

    name: Literal["webhook.recovered"]
    payload: WebhookRecoveredPayload


class UnknownEvent(Envelope, frozen=True, kw_only=True):
    """An event that a later service sends, and that this release does not know."""

    payload: Mapping[str, Any]


Event: TypeAlias = (
    PaymentCreated
    | PaymentProcessing
    | PaymentUnderpaid
    | PaymentAccepted
    | PaymentInReview
    | PaymentExecuting
    | PaymentSucceeded
    | PaymentActionRequired
    | PaymentOverpaid
    | PaymentExpired
    | PaymentCancelled
    | PaymentLate
    | PaymentMisdirected
    | PaymentReorged
    | PaymentReconciled
    | PaymentRefunded
    | PaymentFailed
    | RefundCreated
    | RefundSucceeded
    | RefundFailed
    | VaultFundingAuthorized
    | VaultFundingBroadcast
    | VaultFundingConfirmed
    | VaultFundingFailed
    | DepositDetected
    | DepositConfirmed
    | DepositSettled
    | DepositFailed
    | DepositMisdirected
    | DepositReturned
    | AccountCreated
    | AccountUpdated
    | AccountCapabilityUpdated
    | BankAccountCreated
    | BankAccountUpdated
    | BankFundingScheduled
    | BankFundingReceived
    | BankFundingInReview
    | BankFundingSubmitted
    | BankFundingSettled
    | BankFundingRefunded
    | BankFundingFailed
    | DisputeFlagged
    | DisputeResolved
    | WebhookTest
    | WebhookFailing
    | WebhookRecovered
    | UnknownEvent
)
"""Any event, distinguished by its class: `match event: case PaymentSucceeded(): ...`."""

BY_NAME: Mapping[str, type[Event]] = {
    "payment.created": PaymentCreated,
    "payment.processing": PaymentProcessing,
    "payment.underpaid": PaymentUnderpaid,
    "payment.accepted": PaymentAccepted,
    "payment.in_review": PaymentInReview,
    "payment.executing": PaymentExecuting,
    "payment.succeeded": PaymentSucceeded,
    "payment.action_required": PaymentActionRequired,
    "payment.overpaid": PaymentOverpaid,
    "payment.expired": PaymentExpired,
    "payment.cancelled": PaymentCancelled,
    "payment.late": PaymentLate,
    "payment.misdirected": PaymentMisdirected,
    "payment.reorged": PaymentReorged,
    "payment.reconciled": PaymentReconciled,
    "payment.refunded": PaymentRefunded,
    "payment.failed": PaymentFailed,
    "refund.created": RefundCreated,
    "refund.succeeded": RefundSucceeded,
    "refund.failed": RefundFailed,
    "vault_funding.authorized": VaultFundingAuthorized,
    "vault_funding.broadcast": VaultFundingBroadcast,
    "vault_funding.confirmed": VaultFundingConfirmed,
    "vault_funding.failed": VaultFundingFailed,
    "deposit.detected": DepositDetected,
    "deposit.confirmed": DepositConfirmed,
    "deposit.settled": DepositSettled,
    "deposit.failed": DepositFailed,
    "deposit.misdirected": DepositMisdirected,
    "deposit.returned": DepositReturned,
    "account.created": AccountCreated,
    "account.updated": AccountUpdated,
    "account.capability_updated": AccountCapabilityUpdated,
    "bank_account.created": BankAccountCreated,
    "bank_account.updated": BankAccountUpdated,
    "bank_funding.scheduled": BankFundingScheduled,
    "bank_funding.received": BankFundingReceived,
    "bank_funding.in_review": BankFundingInReview,
    "bank_funding.submitted": BankFundingSubmitted,
    "bank_funding.settled": BankFundingSettled,
    "bank_funding.refunded": BankFundingRefunded,
    "bank_funding.failed": BankFundingFailed,
    "dispute.flagged": DisputeFlagged,
    "dispute.resolved": DisputeResolved,
    "webhook.test": WebhookTest,
    "webhook.failing": WebhookFailing,
    "webhook.recovered": WebhookRecovered,
}
