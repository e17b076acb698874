"""Every kind of record, for the adapters that make tables of them. Add a new collection here."""

from __future__ import annotations

from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.accounts.capabilities.record import CapabilityActivation
from payments_core.accounts.record import (
    Account,
    SignedMessage,
    Wallet,
    WalletChallenge,
    WalletProof,
)
from payments_core.accounts.vaults.record import (
    Policy,
    PolicyVersion,
    Vault,
    VaultBalance,
    YieldSettings,
)
from payments_core.accounts.verification.record import Verification
from payments_core.banks.notice_reader import NoticeReaderState
from payments_core.banks.simulated.incoming_records import (
    SimulatedIncoming,
    SimulatedIncomingNotice,
    SimulatedVirtualAccount,
)
from payments_core.banks.simulated.records import (
    SimulatedBankNotice,
    SimulatedPayout,
    SimulatedReview,
)
from payments_core.books.record import ClosedDay, Closing
from payments_core.chains.outbox.record import OutboundTransfer, Replacement, ReturnAddress, Sender
from payments_core.chains.scanner import ScanCursor, ScanRequest
from payments_core.chains.simulated.failure_records import ArmedFailures
from payments_core.chains.simulated.records import (
    SimulatedBalance,
    SimulatedChainState,
    SimulatedModule,
    SimulatedReorg,
    SimulatedSender,
    SimulatedTime,
    SimulatedTransaction,
)
from payments_core.deposits.record import Deposit, DepositAddress
from payments_core.engine.audit import AuditEntry
from payments_core.engine.events import Event
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.hosted_onramps.simulated.records import SimulatedOrder
from payments_core.legacy.role_modules.record import RoleModuleInstallation
from payments_core.legacy.settlements.record import QuoteSettlement
from payments_core.maintenance.record import CopyMark, RowRepair, StorageCount
from payments_core.notices.record import StoredNotice
from payments_core.onramps.record import (
    BankTransaction,
    FundingEntry,
    OnrampAccount,
    UnmatchedTransfer,
)
from payments_core.payment_settings.record import PaymentSettings, PaymentSettingsVersion
from payments_core.payments.disputes.record import Dispute
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.options.offer import Offer
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.purged import PurgedPayment
from payments_core.payments.receipts.record import Receipt, TrackedTransaction
from payments_core.payments.record import Payment, PaymentLink
from payments_core.payments.refunds.record import Refund
from payments_core.quotes.record import DeliveryClaim, Quote, RouteDelivery
from payments_core.routers.cctp.records import CctpLine, CctpRoute, CctpTransfer
from payments_core.routers.simulated.records import (
    SimulatedExchange,
    SimulatedOffer,
    SimulatedRoute,
)
from payments_core.screening.record import HeldTransfer, ScreeningVerdict
from payments_core.storage.jobs import Job, ParkedJobMark
from payments_core.storage.records import Record
from payments_core.tenants.record import (
    App,
    ClientSession,
    CredentialIndexEntry,
    Environment,
    KeyUse,
    MasterKeyMark,
    Operator,
    OperatorSession,
    PartnerName,
    SessionExchange,
)
from payments_core.tenants.request_log import RequestLogPage
from payments_core.tenants.second_factor import SecondFactor
from payments_core.webhooks.delivered import DeliveredEvents
from payments_core.webhooks.feed import FeedBatch, FeedEnd
from payments_core.webhooks.record import Delivery, Endpoint

RECORD_TYPES: tuple[type[Record], ...] = (
    # The directory
    App,
    StoredNotice,
    PartnerName,
    CredentialIndexEntry,
    MasterKeyMark,
    Operator,
    CopyMark,
    ScanCursor,
    ScanRequest,
    NoticeReaderState,
    DeliveryClaim,
    CctpRoute,
    CctpTransfer,
    CctpLine,
    # Each environment
    Environment,
    KeyUse,
    ClientSession,
    SessionExchange,
    OperatorSession,
    SecondFactor,
    RequestLogPage,
    Account,
    Wallet,
    WalletChallenge,
    WalletProof,
    SignedMessage,
    Verification,
    CapabilityActivation,
    BankAccount,
    Vault,
    Policy,
    PolicyVersion,
    VaultBalance,
    YieldSettings,
    Mandate,
    DepositAddress,
    Deposit,
    OnrampAccount,
    BankTransaction,
    FundingEntry,
    UnmatchedTransfer,
    PaymentSettings,
    PaymentSettingsVersion,
    Payment,
    PaymentLink,
    PurgedPayment,
    PaymentOption,
    Offer,
    FundingOperation,
    TrackedTransaction,
    Receipt,
    JournalEntry,
    ClosedDay,
    Closing,
    Refund,
    Dispute,
    Quote,
    RouteDelivery,
    OutboundTransfer,
    Replacement,
    ReturnAddress,
    Sender,
    ScreeningVerdict,
    HeldTransfer,
    RoleModuleInstallation,
    QuoteSettlement,
    Event,
    Endpoint,
    Delivery,
    DeliveredEvents,
    FeedBatch,
    FeedEnd,
    AuditEntry,
    StoredResponse,
    Job,
    ParkedJobMark,
    RowRepair,
    StorageCount,
    # The simulated chains and clock
    SimulatedTime,
    SimulatedChainState,
    SimulatedTransaction,
    SimulatedSender,
    SimulatedBalance,
    SimulatedModule,
    SimulatedReorg,
    ArmedFailures,
    # The simulated bank
    SimulatedReview,
    SimulatedPayout,
    SimulatedBankNotice,
    SimulatedVirtualAccount,
    SimulatedIncoming,
    SimulatedIncomingNotice,
    # The simulated router
    SimulatedRoute,
    SimulatedOffer,
    SimulatedOrder,
    SimulatedExchange,
)
