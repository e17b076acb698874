"""Every kind of record, for the adapters that make tables of them. Add a new collection here."""

from __future__ import annotations

from payments_core.accounts.record import Account, Wallet
from payments_core.chains.books import (
    SimulatedBalance,
    SimulatedChainState,
    SimulatedSender,
    SimulatedTime,
    SimulatedTransaction,
)
from payments_core.chains.outbox import Outgoing, Sender
from payments_core.client_sessions.record import ClientSession, SessionExchange
from payments_core.events import Event
from payments_core.funding.record import FundingOperation
from payments_core.idempotency.record import StoredAnswer
from payments_core.jobs.record import Job
from payments_core.options.record import Option
from payments_core.payments.record import Payment, PaymentLink
from payments_core.receipts.record import Receipt
from payments_core.storage.records import Record
from payments_core.tenants.record import App, Environment, KeyUse, PartnerName, SecretAddress
from payments_core.vaults.record import Policy, Vault, VaultBalance
from payments_core.webhooks.record import ConsoleAction, Delivery, Endpoint

KINDS: tuple[type[Record], ...] = (
    # The directory
    App,
    PartnerName,
    SecretAddress,
    # Each environment
    Environment,
    KeyUse,
    ClientSession,
    SessionExchange,
    Account,
    Wallet,
    Vault,
    Policy,
    VaultBalance,
    Payment,
    PaymentLink,
    Option,
    FundingOperation,
    Receipt,
    Outgoing,
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
)
