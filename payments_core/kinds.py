"""Every kind of record, for the adapters that make tables of them. Add a new collection here."""

from __future__ import annotations

from payments_core.accounts.record import Account, Wallet, WalletChallenge
from payments_core.chains.books import (
    SimulatedBalance,
    SimulatedChainState,
    SimulatedReorg,
    SimulatedSender,
    SimulatedTime,
    SimulatedTransaction,
)
from payments_core.chains.outgoing import Outgoing, Replacement, Sender
from payments_core.chains.scanner import ScanCursor, ScanWish
from payments_core.client_sessions.record import ClientSession, SessionExchange
from payments_core.deposits.record import Deposit, DepositAddress
from payments_core.disputes.record import Dispute
from payments_core.events import Event
from payments_core.funding.record import FundingOperation
from payments_core.idempotency.record import StoredAnswer
from payments_core.jobs.record import Job
from payments_core.journal.record import Entry
from payments_core.kyc.record import Verification
from payments_core.mandates.record import Mandate
from payments_core.options.record import DirectOption, Option
from payments_core.payment_settings.record import PaymentSettings, PaymentSettingsVersion
from payments_core.payments.record import Payment, PaymentLink
from payments_core.receipts.record import Evidence, Receipt
from payments_core.refunds.record import Refund
from payments_core.sandbox.record import ArmedFailures
from payments_core.storage.records import Record
from payments_core.tenants.record import (
    App,
    Environment,
    KeyUse,
    MasterKeyMark,
    Operator,
    PartnerName,
    SecretAddress,
)
from payments_core.upkeep.record import CopyMark
from payments_core.vaults.record import Policy, PolicyVersion, Vault, VaultBalance, YieldSettings
from payments_core.webhooks.record import ConsoleAction, Delivery, Endpoint

KINDS: tuple[type[Record], ...] = (
    # The directory
    App,
    PartnerName,
    SecretAddress,
    MasterKeyMark,
    Operator,
    CopyMark,
    ScanCursor,
    ScanWish,
    # Each environment
    Environment,
    KeyUse,
    ClientSession,
    SessionExchange,
    Account,
    Wallet,
    WalletChallenge,
    Verification,
    Vault,
    Policy,
    PolicyVersion,
    VaultBalance,
    YieldSettings,
    Mandate,
    DepositAddress,
    Deposit,
    PaymentSettings,
    PaymentSettingsVersion,
    Payment,
    PaymentLink,
    Option,
    DirectOption,
    FundingOperation,
    Evidence,
    Receipt,
    Entry,
    Refund,
    Dispute,
    Outgoing,
    Replacement,
    Sender,
    Event,
    Endpoint,
    Delivery,
    ConsoleAction,
    StoredAnswer,
    Job,
    # The simulated chains and clock
    SimulatedTime,
    SimulatedChainState,
    SimulatedTransaction,
    SimulatedSender,
    SimulatedBalance,
    SimulatedReorg,
    ArmedFailures,
)
