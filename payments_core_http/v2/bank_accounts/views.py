"""Capability activations and bank accounts as v2 returns them."""

from __future__ import annotations

from payments_core.accounts.bank_accounts.fields import FieldRequirement
from payments_core.accounts.bank_accounts.operations import PAYOUT, BankAccountRequirements
from payments_core.accounts.bank_accounts.record import BankAccount, BankAccountStatus
from payments_core.accounts.capabilities.operations import ActivatedCapability
from payments_core.accounts.capabilities.record import CapabilityStatus
from payments_core.accounts.vaults.record import Vault
from payments_core.banks.port import BankAccountType
from payments_core.banks.rails import Rail
from payments_core.banks.return_codes import HolderType
from payments_core.banks.reviews import BankCapability
from payments_core.clock import format_iso
from payments_core_http.v2.accounts.actions import (
    ActionView,
    actions_of_capability,
    actions_of_reasons,
)
from payments_core_http.v2.accounts.views import RequirementsView, requirements
from payments_core_http.wire.classes import frozen_view
from payments_core_http.wire.names import name_on_wire


@frozen_view
class CapabilityActivationView:
    """A requested capability, its requirements (contract §7), and in `actions` who supplies what
    is missing, and where."""

    id: str
    accountId: str
    capability: BankCapability
    status: CapabilityStatus
    hostedUrl: str | None
    reason: str | None
    """Why it was refused; null unless it was."""
    requirements: RequirementsView
    actions: tuple[ActionView, ...]
    createdAt: str
    updatedAt: str


@frozen_view
class BankAddressView:
    """The holder's home address or registered office."""

    line1: str
    line2: str | None
    city: str
    state: str
    postalCode: str
    country: str


@frozen_view
class BankAccountView:
    """A bank account, with the last four digits of its number."""

    id: str
    bankAccountId: str
    accountId: str
    status: BankAccountStatus
    currency: str
    country: str
    accountHolderName: str
    accountHolderType: HolderType
    last4: str
    routingNumber: str
    accountType: BankAccountType
    bankName: str | None
    address: BankAddressView
    """The holder's home address or registered office."""
    reason: str | None
    """Why the bank refuses it; null unless it does."""
    createdAt: str
    updatedAt: str


@frozen_view
class PayingWalletView:
    """A vault of the account: payouts are paid from it, and on-ramps credit it."""

    vaultId: str
    chainId: int
    address: str


@frozen_view
class FieldRequirementView:
    """A field of a form; a dot in its name means a nested object."""

    name: str
    """The field's name; a dot means a nested object."""
    type: str
    """The field's type."""
    required: bool
    """Whether the field must be given."""
    minLength: int | None
    """The minimum number of characters; null means no limit."""
    maxLength: int | None
    """The maximum number of characters; null means no limit."""
    pattern: str | None
    """The regular expression that the value must match; null means any text."""
    values: tuple[str, ...] | None
    """The values that the field may have; null means any value."""


@frozen_view
class BankAccountRequirementsView:
    """Whether bank accounts can be added and, if not, why and what removes the reasons; the fields
    of a new one, and the texts of a payout to it."""

    eligible: bool
    reasons: tuple[str, ...]
    actions: tuple[ActionView, ...]
    rails: tuple[Rail, ...]
    wallets: tuple[PayingWalletView, ...]
    fields: tuple[FieldRequirementView, ...]
    payoutFields: tuple[FieldRequirementView, ...]
    """The texts of a Payment to a bank account, which are optional."""


def capability_activation(activated: ActivatedCapability) -> CapabilityActivationView:
    """A requested capability."""
    activation = activated.activation
    return CapabilityActivationView(
        id=activation.id,
        accountId=activation.account_id,
        capability=activation.capability,
        status=activation.status,
        hostedUrl=activation.hosted_url,
        reason=activation.reason,
        requirements=requirements(activated.capability),
        actions=actions_of_capability(activation.account_id, activated.capability),
        createdAt=format_iso(activation.created_at_ms),
        updatedAt=format_iso(activation.updated_at_ms),
    )


def bank_account(record: BankAccount) -> BankAccountView:
    """A bank account (contract §7)."""
    address = record.address
    return BankAccountView(
        id=record.id,
        bankAccountId=record.id,
        accountId=record.account_id,
        status=record.status,
        currency=record.currency,
        country=record.country,
        accountHolderName=record.holder_name,
        accountHolderType=record.holder_type,
        last4=record.last4,
        routingNumber=record.routing_number,
        accountType=record.account_type,
        bankName=record.bank_name,
        address=BankAddressView(
            line1=address.line1,
            line2=address.line2,
            city=address.city,
            state=address.state,
            postalCode=address.postal_code,
            country=address.country,
        ),
        reason=record.reason,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


def bank_account_requirements(
    account_id: str, found: BankAccountRequirements
) -> BankAccountRequirementsView:
    """What a new bank account needs."""
    return BankAccountRequirementsView(
        eligible=found.eligible,
        reasons=found.reasons,
        actions=actions_of_reasons(account_id, found.reasons, PAYOUT),
        rails=found.rails,
        wallets=tuple(map(wallet, found.vaults)),
        fields=tuple(map(field_requirement, found.fields)),
        payoutFields=tuple(map(field_requirement, found.payout_fields)),
    )


def wallet(vault: Vault) -> PayingWalletView:
    """A vault of the account."""
    return PayingWalletView(vaultId=vault.id, chainId=vault.chain_id, address=vault.address)


def field_requirement(field: FieldRequirement) -> FieldRequirementView:
    """A field of a form."""
    return FieldRequirementView(
        name=name_on_wire(field.name),
        type=field.type,
        required=field.required,
        minLength=field.min_length,
        maxLength=field.max_length,
        pattern=field.pattern,
        values=field.values,
    )
