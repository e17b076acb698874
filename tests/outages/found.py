"""What is in the storage when all is over, read there directly and past the service.

It looks to the laws of the model (`tests/service/model`) as the model's own world does, so that
they judge a deployment of many processes too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.accounts.record import Account
from payments_core.accounts.vaults.record import Vault, VaultBalance
from payments_core.chains.outbox.record import OutboundTransfer, Sender
from payments_core.chains.port import AddressSpec, Heads
from payments_core.chains.simulated.records import (
    SimulatedBalance,
    SimulatedSender,
    SimulatedTransaction,
)
from payments_core.clock import SECOND
from payments_core.deposits.record import Deposit, DepositAddress
from payments_core.engine.events import Event
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.onramps.record import BankTransaction, FundingEntry, OnrampAccount
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.service import PaymentsService
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.maintenance import scan_all
from payments_core.storage.port import SIMULATED
from payments_core.storage.records import R, Record
from payments_core.tenants.record import ClientSession
from payments_core.webhooks.record import Delivery, Endpoint
from tests.service.model.mirror import Commit, Mirror
from tests.service.model.onchain import ChainIndex

KINDS: tuple[type[Record], ...] = (
    Account, ClientSession, Vault, VaultBalance, DepositAddress, Deposit, Payment, PaymentOption,
    FundingOperation, Receipt, JournalEntry, Refund, OutboundTransfer, Sender, Event,
    Delivery, Endpoint, BankAccount, BankTransaction, FundingEntry, OnrampAccount,
    StoredResponse, Job, SimulatedTransaction, SimulatedBalance, SimulatedSender,
)  # fmt: skip
LIVE: Mapping[type[Record], tuple[str, ...]] = {
    Payment: ("processing", "accepted", "executing"),
    Refund: ("created", "submitted"),
    Deposit: ("detected", "confirmed"),
    FundingOperation: ("authorized", "broadcast", "unknown"),
    OutboundTransfer: ("queued", "reserved"),
    Delivery: ("pending", "failed"),
}
"""What goes on by itself, and must come to its end."""
LATE_MS = 5 * SECOND


@attrs.frozen
class _Chain:
    """A chain as it stood, as the model asks it."""

    heads: Heads

    def peek_heads(self) -> Heads:
        return self.heads


class Found:
    """Every record of the environment, and of the simulated chains."""

    def __init__(self, service: PaymentsService, environment_id: str) -> None:
        service.refresh()
        self.environment_id = environment_id
        self.mirror = Mirror()
        for kind in KINDS:
            for located in scan_all(service.parts.ports.storage, kind):
                self.mirror.records[located.partition][kind][located.record.id] = located.record
        self.reorged_deeply: set[int] = set()
        self.chains = {id: _Chain(chain.heads()) for id, chain in service.chains.items()}
        self.derive = next(iter(service.chains.values())).derive

    def all(self, kind: type[R]) -> dict[str, R]:
        """Every record of a kind in the environment."""
        return self.mirror.all(self.environment_id, kind)

    def simulated(self, kind: type[R]) -> dict[str, R]:
        """Every record of a kind of the simulated chains."""
        return self.mirror.all(SIMULATED, kind)

    @property
    def accounts(self) -> list[Account]:
        return list(self.all(Account).values())

    @property
    def deposit_addresses(self) -> list[str]:
        return [address.address for address in self.all(DepositAddress).values()]

    def vault_address(self, account: Account) -> str:
        """Where an account's vaults are, on all chains."""
        return self.derive(AddressSpec(self.environment_id, "vault", account.id))

    def whole(self) -> Commit:
        """All records of the environment, as if one commit had made them."""
        kinds = self.mirror.records[self.environment_id].values()
        changes = ((None, record) for records in kinds for record in records.values())
        return Commit(self.environment_id, tuple(changes))

    def chain_index(self) -> ChainIndex:
        """Who sent what to whom on the chains, and for which purpose."""
        index = ChainIndex()
        for outgoing in self.all(OutboundTransfer).values():
            purpose = (outgoing.purpose, outgoing.owner_id)
            index.purposes[outgoing.id] = purpose
            index.sent_for[purpose].append(outgoing.id)
        for payment in self.all(Payment).values():
            if payment.escrow_address is not None:
                index.escrows[payment.escrow_address] = payment.id
        transactions = self.simulated(SimulatedTransaction).values()
        index.count_transfers(Commit(SIMULATED, tuple((None, row) for row in transactions)))
        return index


def under_way(service: PaymentsService) -> Counter[str]:
    """What has not come to its end, by kind and status; and jobs that nobody does."""
    service.refresh()
    found: Counter[str] = Counter()
    for kind, live in LIVE.items():
        for located in scan_all(service.parts.ports.storage, kind):
            status = getattr(located.record, "status", "")
            if status in live:
                found[f"{kind.__name__} {status}"] += 1
    now = service.parts.ports.clock.now()
    for one in scan_all(service.parts.ports.storage, Job):
        due = max(one.record.due_at, one.record.lease_until)
        if due < now - LATE_MS:
            found["Job late"] += 1
        elif due < NEVER and one.record.lease_until > now:
            found["Job leased"] += 1
    return found
