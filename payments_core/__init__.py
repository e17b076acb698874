"""Stablecoin Payments and accounts as an embeddable library.

`PaymentsService` is the library: it has an attribute for each resource. `open_storage` opens the
storage that it needs by a URL, and `KeyRing` holds its master keys. Everything that callers pass,
receive and catch can be imported from here; docs/reference/python.md describes it. A program that
only verifies webhooks imports `payments_core.webhooks`, and loads nothing of the service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from payments_core.requirements import require_python

require_python()

if TYPE_CHECKING:
    from payments_core.acceptance import Acceptance
    from payments_core.accounts.address_balances import (
        AddressBalance,
        AddressHoldings,
        ValuedBalance,
    )
    from payments_core.accounts.bank_accounts.fields import (
        FieldRequirement,
        NewBankAccount,
        NewPostalAddress,
    )
    from payments_core.accounts.bank_accounts.operations import BankAccountRequirements
    from payments_core.accounts.bank_accounts.record import BankAccount
    from payments_core.accounts.capabilities.operations import ActivatedCapability
    from payments_core.accounts.capabilities.record import CapabilityActivation
    from payments_core.accounts.capabilities.requirements import Capability
    from payments_core.accounts.new_wallets import NewWallet
    from payments_core.accounts.operations import AccountDetails, NewAccount
    from payments_core.accounts.record import Account, Settlement, Wallet, WalletChallenge
    from payments_core.accounts.vaults.operations import Holding
    from payments_core.accounts.vaults.policies import VaultPolicy
    from payments_core.accounts.vaults.provisioning import ProvisionedVault
    from payments_core.accounts.vaults.record import (
        AllowedDestination,
        Policy,
        PolicyTerms,
        Vault,
        YieldSettings,
    )
    from payments_core.accounts.vaults.yields import VaultYield
    from payments_core.accounts.verification.record import Verification
    from payments_core.accounts.wallet_signatures import MessageSignature
    from payments_core.banks.port import PostalAddress
    from payments_core.contracts.versions import Contract, Versions
    from payments_core.credentials.keyring import KeyRing, WeakKeyRing
    from payments_core.credentials.tokens import Claims
    from payments_core.deposits.operations import DepositCheck, IssuedAddress
    from payments_core.deposits.record import Deposit, DepositAddress
    from payments_core.engine.audit import Actor, AuditEntry, CallSource
    from payments_core.engine.events import Event
    from payments_core.engine.idempotency.record import IdempotentRequest, Response
    from payments_core.errors import (
        AccountSuspended,
        ActionAlreadyUsed,
        ActionExpired,
        ActionInvalid,
        AmountOutOfRange,
        BadInput,
        CapabilityNotActive,
        ClientTokenExpired,
        ConfigurationError,
        ConflictError,
        CredentialMismatch,
        DependencyError,
        DependencyFailed,
        DestinationNotAllowed,
        EntitlementRequired,
        FieldError,
        Forbidden,
        FundsOutOfReach,
        IdempotencyConflict,
        IdempotencyInProgress,
        IdempotencyKeyRequired,
        InsufficientBalance,
        InsufficientPermissions,
        InvalidJson,
        InvalidState,
        LimitReached,
        Missing,
        NotFound,
        OptionExpired,
        OptionLocked,
        OptionSuperseded,
        OriginNotAllowed,
        PaymentExpired,
        PaymentOptionLimitReached,
        PaymentsError,
        PolicyDenied,
        PolicyInactive,
        ProviderSignatureInvalid,
        ReconciliationActionNotAllowed,
        ResourceConflict,
        ScreeningRefused,
        ServiceUnavailable,
        StorageLimitReached,
        Unauthenticated,
        Unauthorized,
        Unavailable,
        Unprocessable,
        UnsupportedAsset,
        UnsupportedChain,
        UnsupportedVersion,
        UsernameTaken,
        ValidationFailed,
        VersionMismatch,
        WebhookLimitReached,
        WebhookUrlInUse,
        WebhookUrlNotAllowed,
    )
    from payments_core.misdirected.record import SentBack
    from payments_core.money import Money
    from payments_core.networks import (
        Asset,
        FeePolicy,
        NativeCurrency,
        Network,
        Networks,
        shipped_networks,
    )
    from payments_core.payment_settings.record import (
        AllowedWallet,
        Branding,
        PaymentSettings,
        PaymentTerms,
    )
    from payments_core.payments.checkout.checkout import CheckoutState, ExchangedLink
    from payments_core.payments.checkout.options import CheckoutMethod
    from payments_core.payments.checkout.public import NewPublicPayment, Shop
    from payments_core.payments.collects import NewCollect
    from payments_core.payments.destinations import (
        ToAccount,
        ToBankAccount,
        ToPaymentAddress,
        ToWallet,
    )
    from payments_core.payments.details import OptionDetails, PaymentDetails
    from payments_core.payments.disputes.lifecycle import PaymentSession
    from payments_core.payments.disputes.record import Dispute
    from payments_core.payments.funding.record import FundingOperation
    from payments_core.payments.journal.record import JournalBalances, JournalEntry
    from payments_core.payments.mandates.operations import MandateDetails, NewMandate
    from payments_core.payments.mandates.record import Mandate
    from payments_core.payments.operations import NewPayment, ReceiptsWithJournal
    from payments_core.payments.options.offer import Offer, OfferTerms
    from payments_core.payments.options.record import PaymentOption, Submission
    from payments_core.payments.receipts.progress import ReceiptProgress
    from payments_core.payments.receipts.record import Receipt
    from payments_core.payments.record import (
        DecisionNote,
        Destination,
        PayerTotal,
        Payment,
        PaymentRoute,
        Payout,
        Reconciliation,
        Source,
        TimelineEntry,
    )
    from payments_core.payments.refunding.operations import NewRefund
    from payments_core.payments.refunds.record import Refund
    from payments_core.payments.sends import NewSend
    from payments_core.quotes.operations import QuoteDetails
    from payments_core.quotes.record import Quote
    from payments_core.quotes.request import NewQuote
    from payments_core.resources import Resources
    from payments_core.service import PaymentsService
    from payments_core.settings import Settings, WalletConnect
    from payments_core.storage.documents import UnreadableDocument
    from payments_core.storage.port import Page, StorageUnavailable, Where
    from payments_core.storage_loader import open_storage
    from payments_core.tenants.authorization import Authority, Requirement
    from payments_core.tenants.client_sessions import CreatedSession, ExchangedSession
    from payments_core.tenants.master_keys import UnknownKeyRing
    from payments_core.tenants.operator_sessions import BegunSession
    from payments_core.tenants.operators import NewPassword
    from payments_core.tenants.record import (
        App,
        ClientSession,
        Environment,
        Key,
        Operator,
        OperatorSession,
    )
    from payments_core.webhooks.destinations import RefusedPrefix
    from payments_core.webhooks.dispatch.replay import Recovery
    from payments_core.webhooks.endpoint_fields import EndpointChanges
    from payments_core.webhooks.feed import FeedPage
    from payments_core.webhooks.filters import EventFilter
    from payments_core.webhooks.record import Delivery, Endpoint, FailedAttempt, OlderSecret
    from payments_core.webhooks.settings import WebhookSettings

__version__ = "0.1.0"

__all__ = [
    # The service and its parts
    "PaymentsService", "Resources", "Settings", "open_storage", "KeyRing", "WebhookSettings",
    "RefusedPrefix", "WalletConnect", "Versions", "Contract",
    # Arguments of operations
    "NewAccount", "NewWallet", "MessageSignature", "NewBankAccount", "NewPostalAddress",
    "Settlement", "NewPayment", "NewSend", "NewCollect", "ToAccount",
    "ToPaymentAddress", "ToWallet", "ToBankAccount", "NewPublicPayment", "NewRefund", "NewMandate",
    "NewQuote",
    "PolicyTerms", "AllowedDestination", "PaymentTerms", "AllowedWallet", "Branding",
    "EndpointChanges", "EventFilter", "Authority", "Requirement", "IdempotentRequest", "Response",
    "Page", "Where",
    # Results of operations
    "AccountDetails", "Account", "AddressBalance", "AddressHoldings", "ValuedBalance",
    "Wallet", "WalletChallenge",
    "Verification", "Capability",
    "CapabilityActivation", "ActivatedCapability", "BankAccount", "BankAccountRequirements",
    "FieldRequirement", "PostalAddress", "Vault", "Policy",
    "YieldSettings", "Holding", "VaultPolicy", "ProvisionedVault", "VaultYield", "Asset",
    "Acceptance", "FeePolicy", "NativeCurrency", "Network", "Networks", "shipped_networks",
    "Money", "Deposit", "DepositAddress", "IssuedAddress", "DepositCheck", "PaymentDetails",
    "OptionDetails", "Payment", "Destination", "Source", "PayerTotal",
    "PaymentRoute", "TimelineEntry", "DecisionNote", "Reconciliation", "JournalBalances",
    "JournalEntry", "ReceiptsWithJournal", "QuoteDetails", "Quote",
    "Receipt", "ReceiptProgress", "SentBack", "PaymentOption", "Submission", "Offer",
    "OfferTerms", "FundingOperation", "Refund", "Payout",
    "MandateDetails", "Mandate", "PaymentSession", "Dispute", "CheckoutState", "ExchangedLink",
    "CheckoutMethod", "Shop", "Claims", "PaymentSettings", "Event", "Endpoint", "OlderSecret",
    "Delivery", "FailedAttempt", "Recovery", "FeedPage", "App", "Environment", "Key", "Operator",
    "NewPassword", "OperatorSession", "BegunSession", "AuditEntry", "Actor", "CallSource",
    "ClientSession", "CreatedSession", "ExchangedSession",
    # Errors
    "PaymentsError", "BadInput", "Unauthenticated", "Forbidden", "Missing", "ConflictError",
    "Unprocessable", "DependencyError", "LimitReached", "ServiceUnavailable", "ConfigurationError",
    "ValidationFailed", "InvalidJson", "IdempotencyKeyRequired", "UnsupportedVersion",
    "VersionMismatch", "Unauthorized", "ClientTokenExpired", "ProviderSignatureInvalid",
    "InsufficientPermissions",
    "EntitlementRequired", "OriginNotAllowed", "CredentialMismatch", "AccountSuspended",
    "NotFound", "ResourceConflict", "IdempotencyConflict", "IdempotencyInProgress",
    "FundsOutOfReach", "InvalidState", "ActionAlreadyUsed", "OptionSuperseded", "OptionLocked",
    "WebhookUrlInUse", "WebhookLimitReached", "UsernameTaken", "InsufficientBalance",
    "PolicyDenied", "PolicyInactive", "PaymentExpired",
    "OptionExpired", "ActionExpired", "ActionInvalid", "AmountOutOfRange", "UnsupportedChain",
    "UnsupportedAsset", "DestinationNotAllowed", "ScreeningRefused",
    "ReconciliationActionNotAllowed", "CapabilityNotActive", "WebhookUrlNotAllowed",
    "DependencyFailed",
    "PaymentOptionLimitReached", "StorageLimitReached", "Unavailable", "FieldError",
    "StorageUnavailable", "UnknownKeyRing", "UnreadableDocument", "WeakKeyRing",
]  # fmt: skip

# The module of each name, which is loaded when the name is first used: a receiver that only
# verifies webhooks does not load the service. `name:other` if the module has another name for it.
_MODULES = {
    "payments_core.accounts.address_balances": "AddressBalance AddressHoldings ValuedBalance",
    "payments_core.accounts.bank_accounts.fields": (
        "FieldRequirement NewBankAccount NewPostalAddress"
    ),
    "payments_core.accounts.bank_accounts.operations": "BankAccountRequirements",
    "payments_core.accounts.bank_accounts.record": "BankAccount",
    "payments_core.accounts.capabilities.operations": "ActivatedCapability",
    "payments_core.accounts.capabilities.record": "CapabilityActivation",
    "payments_core.accounts.capabilities.requirements": "Capability",
    "payments_core.accounts.new_wallets": "NewWallet",
    "payments_core.accounts.operations": "AccountDetails NewAccount",
    "payments_core.accounts.record": "Account Settlement Wallet WalletChallenge",
    "payments_core.accounts.wallet_signatures": "MessageSignature",
    "payments_core.accounts.vaults.operations": "Holding",
    "payments_core.accounts.vaults.policies": "VaultPolicy",
    "payments_core.accounts.vaults.provisioning": "ProvisionedVault",
    "payments_core.accounts.vaults.record": (
        "AllowedDestination Policy PolicyTerms Vault YieldSettings"
    ),
    "payments_core.accounts.vaults.yields": "VaultYield",
    "payments_core.accounts.verification.record": "Verification",
    "payments_core.acceptance": "Acceptance",
    "payments_core.networks": "Asset FeePolicy NativeCurrency Network Networks shipped_networks",
    "payments_core.banks.port": "PostalAddress",
    "payments_core.credentials.keyring": "KeyRing WeakKeyRing",
    "payments_core.credentials.tokens": "Claims",
    "payments_core.deposits.operations": "DepositCheck IssuedAddress",
    "payments_core.deposits.record": "Deposit DepositAddress",
    "payments_core.engine.audit": "Actor AuditEntry CallSource",
    "payments_core.engine.events": "Event",
    "payments_core.engine.idempotency.record": "IdempotentRequest Response",
    "payments_core.errors": (
        "AccountSuspended ActionAlreadyUsed ActionExpired ActionInvalid AmountOutOfRange "
        "BadInput CapabilityNotActive ClientTokenExpired ConfigurationError ConflictError "
        "CredentialMismatch DependencyError DependencyFailed "
        "DestinationNotAllowed EntitlementRequired FieldError Forbidden IdempotencyConflict "
        "IdempotencyInProgress IdempotencyKeyRequired InsufficientBalance "
        "InsufficientPermissions InvalidJson FundsOutOfReach InvalidState LimitReached Missing "
        "NotFound OptionExpired OptionLocked OptionSuperseded OriginNotAllowed PaymentExpired "
        "PaymentOptionLimitReached PaymentsError PolicyDenied PolicyInactive "
        "ProviderSignatureInvalid "
        "ReconciliationActionNotAllowed ResourceConflict ScreeningRefused "
        "ServiceUnavailable StorageLimitReached Unauthenticated Unauthorized Unavailable "
        "Unprocessable "
        "UnsupportedAsset UnsupportedChain UnsupportedVersion UsernameTaken ValidationFailed "
        "VersionMismatch WebhookLimitReached WebhookUrlInUse WebhookUrlNotAllowed"
    ),
    "payments_core.misdirected.record": "SentBack",
    "payments_core.money": "Money",
    "payments_core.payment_settings.record": (
        "AllowedWallet Branding PaymentSettings PaymentTerms"
    ),
    "payments_core.payments.checkout.checkout": "CheckoutState ExchangedLink",
    "payments_core.payments.checkout.options": "CheckoutMethod",
    "payments_core.payments.checkout.public": "NewPublicPayment Shop",
    "payments_core.payments.collects": "NewCollect",
    "payments_core.payments.destinations": "ToAccount ToBankAccount ToPaymentAddress ToWallet",
    "payments_core.payments.details": "OptionDetails PaymentDetails",
    "payments_core.payments.disputes.lifecycle": "PaymentSession",
    "payments_core.payments.disputes.record": "Dispute",
    "payments_core.payments.funding.record": "FundingOperation",
    "payments_core.payments.journal.record": "JournalBalances JournalEntry",
    "payments_core.payments.mandates.operations": "MandateDetails NewMandate",
    "payments_core.payments.mandates.record": "Mandate",
    "payments_core.payments.operations": "NewPayment ReceiptsWithJournal",
    "payments_core.payments.options.offer": "Offer OfferTerms",
    "payments_core.payments.options.record": "PaymentOption Submission",
    "payments_core.payments.receipts.progress": "ReceiptProgress",
    "payments_core.payments.receipts.record": "Receipt",
    "payments_core.payments.record": (
        "DecisionNote Destination PayerTotal Payment PaymentRoute Payout Reconciliation Source "
        "TimelineEntry"
    ),
    "payments_core.payments.refunding.operations": "NewRefund",
    "payments_core.payments.refunds.record": "Refund",
    "payments_core.payments.sends": "NewSend",
    "payments_core.quotes.operations": "QuoteDetails",
    "payments_core.quotes.record": "Quote",
    "payments_core.quotes.request": "NewQuote",
    "payments_core.resources": "Resources",
    "payments_core.service": "PaymentsService",
    "payments_core.settings": "Settings WalletConnect",
    "payments_core.storage.documents": "UnreadableDocument",
    "payments_core.storage.port": "Page StorageUnavailable Where",
    "payments_core.storage_loader": "open_storage",
    "payments_core.tenants.authorization": "Authority Requirement",
    "payments_core.tenants.client_sessions": "CreatedSession ExchangedSession",
    "payments_core.tenants.master_keys": "UnknownKeyRing",
    "payments_core.tenants.operator_sessions": "BegunSession",
    "payments_core.tenants.operators": "NewPassword",
    "payments_core.tenants.record": "App ClientSession Environment Key Operator OperatorSession",
    "payments_core.contracts.versions": "Contract Versions",
    "payments_core.webhooks.destinations": "RefusedPrefix",
    "payments_core.webhooks.endpoint_fields": "EndpointChanges",
    "payments_core.webhooks.feed": "FeedPage",
    "payments_core.webhooks.filters": "EventFilter",
    "payments_core.webhooks.record": "Delivery Endpoint FailedAttempt OlderSecret",
    "payments_core.webhooks.dispatch.replay": "Recovery",
    "payments_core.webhooks.settings": "WebhookSettings",
}
_LAZY = {
    name.partition(":")[0]: (module, name.rpartition(":")[2])
    for module, names in _MODULES.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, own_name = _LAZY[name]
    return getattr(import_module(module), own_name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
