"""What is judged when a play is over: the books, the chains, and the providers' own records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

from payments_core.accounts.verification.record import Verification
from payments_core.books.differences import Difference
from payments_core.books.period import Period, day_of
from payments_core.books.tally import Tally
from payments_core.chains.outbox.record import OutboundTransfer, Sender
from payments_core.chains.port import AddressKind, AddressSpec
from payments_core.deposits.record import Deposit, DepositAddress
from payments_core.onramps.record import BankTransaction
from payments_core.payments.record import OFFRAMP_OWNER, Payment
from payments_core.payments.refunds.record import Refund
from payments_core.routers.cctp.records import CctpRoute
from payments_core.storage.maintenance import scan_all
from tests.going_live.chains import Transfer
from tests.going_live.customers import Customer, Stage
from tests.outages.found import Found, under_way

Place = tuple[int, str]
"""A chain, and an address on it."""


@attrs.frozen(kw_only=True)
class Evidence:
    """All that is known. `cases` are those of the KYC provider, `bank` are the bank's rows by their
    kind and key, and `transfers` are those of the chains; `tokens` is what the chains say that each
    address of ours has, and `sent` how many transactions each operator has in a chain.
    `purchases` are those of the hosted on-ramp."""

    customers: Sequence[Customer]
    merchant_id: str
    found: Found
    verifications: Sequence[Verification]
    routes: Sequence[CctpRoute]
    cases: Sequence[Mapping[str, Any]]
    bank: Mapping[str, Mapping[str, Mapping[str, Any]]]
    purchases: Mapping[str, Mapping[str, Any]]
    transfers: Sequence[Transfer]
    tokens: Mapping[Place, int]
    sent: Mapping[str, int]
    left: Mapping[str, int]
    differences: Sequence[Difference] = ()
    """What `payments reconcile` names, once all has come to its end."""

    @property
    def payments(self) -> Sequence[Payment]:
        """All Payments."""
        return list(self.found.all(Payment).values())

    @property
    def refunds(self) -> Sequence[Refund]:
        """All refunds."""
        return list(self.found.all(Refund).values())

    @property
    def deposits(self) -> Sequence[Deposit]:
        """All deposits."""
        return list(self.found.all(Deposit).values())

    @property
    def bank_transactions(self) -> Sequence[BankTransaction]:
        """What the books say of transfers to on-ramps."""
        return list(self.found.all(BankTransaction).values())

    @property
    def outgoing(self) -> Sequence[OutboundTransfer]:
        """What the books say was sent."""
        return list(self.found.all(OutboundTransfer).values())

    def vault(self, account_id: str) -> str:
        """The address of an account's vaults, on every chain."""
        return self.found.derive(AddressSpec(self.found.environment_id, "vault", account_id))

    @property
    def offramp(self) -> str:
        """The address that has the tokens of payouts, on every chain."""
        return self.escrow(OFFRAMP_OWNER)

    def escrow(self, owner_id: str) -> str:
        """The address of an escrow."""
        return self.found.derive(AddressSpec(self.found.environment_id, "escrow", owner_id))

    def came(self, place: Place) -> int:
        """What was transferred to an address."""
        return sum(t.amount_atomic for t in self.transfers if (t.chain_id, t.recipient) == place)

    def went(self, place: Place) -> int:
        """What was transferred from an address."""
        return sum(t.amount_atomic for t in self.transfers if (t.chain_id, t.sender) == place)


def compare_books(stage: Stage) -> tuple[Difference, ...]:
    """What `payments reconcile` names of all days until today.

    Escrows are compared by the laws alone: nothing is an hour old yet.
    """
    live, tally = stage.live, Tally()
    service = live.service
    end = day_of(service.parts.ports.clock.now()) + timedelta(days=1)
    comparison = service.parts.book_comparison("production")
    period = Period(end - timedelta(days=2), end)
    found = tuple(comparison.compare(live.environment_id, period, tally))
    assert not tally.unchecked, tally
    return found


def gather(stage: Stage) -> Evidence:
    """What there is now."""
    live = stage.live
    found, storage = Found(live.service, live.environment_id), live.service.parts.ports.storage
    routes = [one.record for one in scan_all(storage, CctpRoute)]
    transfers = [one for chain in live.chains.values() for one in chain.read_transfers()]
    accounts = [*(one.account_id for one in stage.customers), stage.merchant_id]
    owners: list[tuple[AddressKind, str]] = [("vault", id) for id in accounts if id]
    owners += [("escrow", OFFRAMP_OWNER), *(("escrow", id) for id in found.all(BankTransaction))]
    spec = [AddressSpec(live.environment_id, kind, id) for kind, id in owners]
    ours = [
        *map(found.derive, spec),
        *(str(payment.escrow_address) for payment in found.all(Payment).values()
          if payment.escrow_address),
        *(address.address for address in found.all(DepositAddress).values()),
        *(route.address for route in routes),
    ]  # fmt: skip
    senders = found.all(Sender).values()
    return Evidence(
        customers=list(stage.customers),
        merchant_id=stage.merchant_id,
        found=found,
        verifications=[one.record for one in scan_all(storage, Verification)],
        routes=routes,
        cases=live.kyc.read()["cases"],
        bank=live.bank.read(),
        purchases=live.cards.read(),
        transfers=transfers,
        tokens={
            (id, address): chain.count_tokens(address)
            for id, chain in live.chains.items()
            for address in ours
        },
        sent={
            one.id: live.chains[int(one.id.partition(":")[0])].count_sent(one.id.split(":")[1])
            for one in senders
        },
        left={k: n for k, n in under_way(live.service).items() if k != "Job leased"},
    )
