"""On-ramp bank accounts, their instructions and transactions as v2 returns them (contract §7)."""

from __future__ import annotations

from typing import Literal

import attrs

from payments_core.banks.incoming import IncomingRail
from payments_core.clock import format_iso, format_iso_or_none
from payments_core.onramps.following import FUNDING
from payments_core.onramps.lifecycle import format_cents
from payments_core.onramps.operations import OnrampRequirements, OpenedInstructions
from payments_core.onramps.record import (
    BankTransaction,
    BankTransactionStatus,
    BankTransactionType,
    OnrampAccount,
    OnrampAccountStatus,
    OnrampDestination,
)
from payments_core_http.v2.accounts.actions import ActionView, actions_of_reasons
from payments_core_http.v2.bank_accounts.views import (
    FieldRequirementView,
    PayingWalletView,
    field_requirement,
    wallet,
)
from payments_core_http.wire.classes import frozen_view


@frozen_view
class OnrampDestinationView:
    """Where the stablecoins go."""

    type: Literal["vault", "wallet"]
    chainId: int
    assetSymbol: str
    address: str
    """The vault or wallet that is credited."""


@frozen_view
class OnrampBankAccountView:
    """A reusable on-ramp, with the last four digits of its number."""

    id: str
    onrampBankAccountId: str
    accountId: str
    status: OnrampAccountStatus
    currency: str
    destination: OnrampDestinationView
    bankName: str | None
    last4: str | None
    reason: str | None
    """Why the bank refuses it; null unless it does."""
    createdAt: str
    updatedAt: str


@frozen_view
class OnrampRequirementsView:
    """Whether on-ramps can be added and, if not, why and what removes the reasons; and the fields
    of a new one."""

    eligible: bool
    reasons: tuple[str, ...]
    actions: tuple[ActionView, ...]
    rails: tuple[IncomingRail, ...]
    wallets: tuple[PayingWalletView, ...]
    fields: tuple[FieldRequirementView, ...]


@frozen_view
class DepositInstructionsView:
    """Where others send money; the instructions never change.

    The transfer must carry the reference.
    """

    bankName: str
    """The bank's name."""
    bankAddress: str
    """The bank's postal address."""
    beneficiaryName: str
    """The name to send money to."""
    beneficiaryAddress: str
    """The postal address of the beneficiary."""
    accountNumber: str = attrs.field(repr=False)
    """The number to send money to."""
    routingNumber: str
    """The routing number to send money to."""
    rails: tuple[IncomingRail, ...]
    reference: str
    """The text that the transfer must carry."""


@frozen_view
class BankTransactionView:
    """A bank transfer to an on-ramp, and the state of its money.

    `amount` is in dollars; `amountAtomic` of the asset is credited for it. A `micro_deposit` is
    never credited.
    """

    id: str
    transactionId: str
    onrampBankAccountId: str
    accountId: str
    type: BankTransactionType
    """A transfer, or a micro-deposit, which is never credited."""
    status: BankTransactionStatus
    statusVersion: int
    rail: IncomingRail
    currency: Literal["usd"]
    """The currency of the transfer."""
    amount: str
    """The amount in dollars, as a decimal string."""
    amountAtomic: str
    """What is credited for it, in the asset's smallest unit."""
    destination: OnrampDestinationView
    transactionHash: str | None
    """The transaction that credits the stablecoins; null until there is one."""
    senderName: str | None
    """Who sent the money, according to the bank; null if the bank does not say."""
    reference: str | None
    """The sender's text on the transfer; null without one."""
    reason: str | None
    expectedAt: str | None
    receivedAt: str | None
    """When the money arrived; null until then."""
    submittedAt: str | None
    """When the credit was sent to the chain; null until then."""
    settledAt: str | None
    refundedAt: str | None
    """When the money was sent back; null unless it was."""
    createdAt: str
    updatedAt: str


def onramp_account(record: OnrampAccount) -> OnrampBankAccountView:
    """A reusable on-ramp."""
    instructions = record.instructions
    return OnrampBankAccountView(
        id=record.id,
        onrampBankAccountId=record.id,
        accountId=record.account_id,
        status=record.status,
        currency=record.currency,
        destination=_destination(record.destination),
        bankName=None if instructions is None else instructions.bank_name,
        last4=None if instructions is None else instructions.last4,
        reason=record.reason,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


def onramp_requirements(account_id: str, found: OnrampRequirements) -> OnrampRequirementsView:
    """What a new on-ramp needs."""
    return OnrampRequirementsView(
        eligible=found.eligible,
        reasons=found.reasons,
        actions=actions_of_reasons(account_id, found.reasons, FUNDING),
        rails=found.rails,
        wallets=tuple(map(wallet, found.vaults)),
        fields=tuple(map(field_requirement, found.fields)),
    )


def deposit_instructions(opened: OpenedInstructions) -> DepositInstructionsView:
    """Where others send money."""
    instructions = opened.instructions
    return DepositInstructionsView(
        bankName=instructions.bank_name,
        bankAddress=instructions.bank_address,
        beneficiaryName=instructions.beneficiary_name,
        beneficiaryAddress=instructions.beneficiary_address,
        accountNumber=opened.account_number,
        routingNumber=instructions.routing_number,
        rails=instructions.rails,
        reference=instructions.reference,
    )


def bank_transaction(record: BankTransaction) -> BankTransactionView:
    """A bank transfer to an on-ramp."""
    return BankTransactionView(
        id=record.id,
        transactionId=record.id,
        onrampBankAccountId=record.onramp_account_id,
        accountId=record.account_id,
        type=record.type,
        status=record.status,
        statusVersion=record.status_version,
        rail=record.rail,
        currency="usd",
        amount=format_cents(record.amount_cents),
        amountAtomic=str(record.amount_atomic),
        destination=_destination(record.destination),
        transactionHash=record.transaction_hash,
        senderName=record.sender_name,
        reference=record.reference,
        reason=record.reason,
        expectedAt=format_iso_or_none(record.expected_at_ms),
        receivedAt=format_iso_or_none(record.received_at_ms),
        submittedAt=format_iso_or_none(record.submitted_at_ms),
        settledAt=format_iso_or_none(record.settled_at_ms),
        refundedAt=format_iso_or_none(record.refunded_at_ms),
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


def _destination(destination: OnrampDestination) -> OnrampDestinationView:
    return OnrampDestinationView(
        type=destination.type,
        chainId=destination.chain_id,
        assetSymbol=destination.asset_symbol,
        address=destination.address,
    )
