"""What is compared: Payments, and bank transfers to on-ramps; each with journal, chain and bank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import attrs

from payments_core.banks.incoming import FundingBank
from payments_core.banks.port import Bank
from payments_core.books import bank_check, chain_check, journal_check
from payments_core.books.chain_reading import ChainReader, Escrow, SeenTransactions
from payments_core.books.differences import Difference
from payments_core.books.payment_case import PaymentCase, WantedTransfer, iter_wanted, load_cases
from payments_core.books.tally import Tally
from payments_core.chains.port import AddressSpec, Chain
from payments_core.clock import Clock
from payments_core.networks import Asset
from payments_core.onramps.record import BankTransaction, FundingEntry
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot

Case = TypeVar("Case")


class Comparison(Protocol[Case]):
    """One kind of resource with a journal of its own."""

    @property
    def record(self) -> type[Payment | BankTransaction]:
        """The class of the resource."""

    @property
    def entry(self) -> type[JournalEntry | FundingEntry]:
        """The class of its entries."""

    @property
    def counted_as(self) -> str:
        """The field of a Tally that counts it."""

    def owner_of(self, entry: Any) -> str:
        """The id of the resource that an entry belongs to."""

    def asset_of(self, owner: Any) -> Asset:
        """The asset of a resource's entries."""

    def id_of(self, case: Case) -> str:
        """The id of the resource."""

    def entries_of(self, case: Case) -> Sequence[JournalEntry | FundingEntry]:
        """Its entries, in their order."""

    def load(self, snapshot: Snapshot, ids: Sequence[str]) -> list[Case]:
        """The resources of these ids that exist, with all that the comparison needs."""

    def check(
        self, partition: str, cases: Sequence[Case], tally: Tally
    ) -> Mapping[str, Sequence[Difference]]:
        """The differences of each, by its id. Raises ChainUnavailable, BankUnavailable."""


class PaymentComparison:
    """Payments of every intent, with their payouts."""

    record: Final = Payment
    entry: Final = JournalEntry
    counted_as: Final = "payments"

    def __init__(self, clock: Clock, chains: Mapping[int, Chain], bank: Bank | None) -> None:
        self._clock = clock
        self._reader = ChainReader(chains)
        self._bank = bank

    def owner_of(self, entry: JournalEntry) -> str:
        return entry.payment_id

    def asset_of(self, owner: Payment) -> Asset:
        return owner.asset

    def id_of(self, case: PaymentCase) -> str:
        return case.payment.id

    def entries_of(self, case: PaymentCase) -> Sequence[JournalEntry]:
        return case.entries

    def load(self, snapshot: Snapshot, ids: Sequence[str]) -> list[PaymentCase]:
        found = snapshot.get_many(Payment, ids)
        return load_cases(snapshot, [found[id] for id in ids if id in found])

    def check(
        self, partition: str, cases: Sequence[PaymentCase], tally: Tally
    ) -> Mapping[str, Sequence[Difference]]:
        wanted = {case.payment.id: tuple(iter_wanted(case)) for case in cases}
        seen = self._reader.read_transactions(_join(wanted), tally)
        held = self._reader.read_balances(self._iter_escrows(cases, tally), tally)
        found = {}
        for case in cases:
            payment = case.payment
            differences = list(journal_check.check_payment(case))
            differences += _check_transfers(
                payment.id, payment.asset, wanted[payment.id], seen, tally
            )
            differences += chain_check.check_further_logs(case, seen.views)
            # What differs in an entry or a transaction shows in the escrow too: it is named once.
            if payment.id in held and not differences:
                booked = chain_check.book_escrow(payment)
                differences += chain_check.check_escrow(
                    payment.id, str(payment.escrow_address), payment.asset, booked, held[payment.id]
                )
            differences += self._check_payouts(partition, payment, tally)
            found[payment.id] = differences
        return found

    def _iter_escrows(self, cases: Sequence[PaymentCase], tally: Tally) -> Iterator[Escrow]:
        """The escrows of the Payments of which nothing is on its way."""
        for payment in (case.payment for case in cases):
            if payment.escrow_address is None:
                continue
            if chain_check.is_quiet(payment, self._clock.now()):
                yield Escrow(payment.id, payment.escrow_address, payment.asset)
            else:
                tally.in_progress += 1

    def _check_payouts(
        self, partition: str, payment: Payment, tally: Tally
    ) -> Iterator[Difference]:
        if payment.payout is None:
            return
        if self._bank is None:
            tally.unchecked["payouts: no bank is configured"] += 1
            return
        tally.payouts += 1
        now = self._clock.now()
        yield from bank_check.check_payouts(self._bank, partition, payment, now=now)


@attrs.frozen
class TransactionCase:
    """A bank transfer with its entries, as one snapshot had them."""

    transaction: BankTransaction
    entries: tuple[FundingEntry, ...]


MAX_ENTRIES = 1_000
"""The entries of one bank transfer that are read: it has a handful."""


class TransactionComparison:
    """Bank transfers to on-ramps."""

    record: Final = BankTransaction
    entry: Final = FundingEntry
    counted_as: Final = "bank_transfers"

    def __init__(self, clock: Clock, chains: Mapping[int, Chain], bank: FundingBank | None) -> None:
        self._clock = clock
        self._chains = chains
        self._reader = ChainReader(chains)
        self._bank = bank

    def owner_of(self, entry: FundingEntry) -> str:
        return entry.transaction_id

    def asset_of(self, owner: BankTransaction) -> Asset:
        return owner.destination.asset

    def id_of(self, case: TransactionCase) -> str:
        return case.transaction.id

    def entries_of(self, case: TransactionCase) -> Sequence[FundingEntry]:
        return case.entries

    def load(self, snapshot: Snapshot, ids: Sequence[str]) -> list[TransactionCase]:
        found = snapshot.get_many(BankTransaction, ids)
        return [
            TransactionCase(
                found[id],
                snapshot.find(FundingEntry, "by_transaction", (id,), limit=MAX_ENTRIES).records,
            )
            for id in ids
            if id in found
        ]

    def check(
        self, partition: str, cases: Sequence[TransactionCase], tally: Tally
    ) -> Mapping[str, Sequence[Difference]]:
        wanted = {case.transaction.id: _want_credit(case.transaction) for case in cases}
        seen = self._reader.read_transactions(_join(wanted), tally)
        escrows = {one.owner_id: one for one in self._iter_escrows(partition, cases, tally)}
        held = self._reader.read_balances(escrows.values(), tally)
        found = {}
        for case in cases:
            transaction = case.transaction
            id, asset = transaction.id, transaction.destination.asset
            differences = list(journal_check.check_bank_transaction(transaction, case.entries))
            differences += _check_transfers(id, asset, wanted[id], seen, tally)
            if id in held and not differences:
                booked = int(transaction.books.escrow)
                address = escrows[id].address
                differences += chain_check.check_escrow(id, address, asset, booked, held[id])
            if self._bank is None:
                tally.unchecked["transfers to on-ramps: no bank is configured"] += 1
            else:
                differences += bank_check.check_incoming(self._bank, transaction)
            found[id] = differences
        return found

    def _iter_escrows(
        self, partition: str, cases: Sequence[TransactionCase], tally: Tally
    ) -> Iterator[Escrow]:
        for transaction in (case.transaction for case in cases):
            asset = transaction.destination.asset
            if not chain_check.is_quiet_transaction(transaction, self._clock.now()):
                tally.in_progress += 1
            elif asset.chain_id in self._chains:
                spec = AddressSpec(partition, "escrow", transaction.id)
                yield Escrow(transaction.id, self._chains[asset.chain_id].derive(spec), asset)


def _check_transfers(
    resource_id: str,
    asset: Asset,
    wanted: Sequence[WantedTransfer],
    seen: SeenTransactions,
    tally: Tally,
) -> Iterator[Difference]:
    known = [one for one in wanted if one.chain_id in seen.served]
    tally.transfers += len(known)
    yield from chain_check.check_transfers(resource_id, asset, known, seen.views)


def _join(wanted: Mapping[str, Sequence[WantedTransfer]]) -> Iterator[WantedTransfer]:
    for some in wanted.values():
        yield from some


def _want_credit(transaction: BankTransaction) -> tuple[WantedTransfer, ...]:
    if transaction.status != "settled" or transaction.transaction_hash is None:
        return ()
    to = transaction.destination
    return (
        WantedTransfer(
            subject=str(transaction.credit_id),
            chain_id=to.chain_id,
            hash=transaction.transaction_hash,
            token_address=to.token_address,
            recipient=to.address,
            amount_atomic=transaction.amount_atomic,
        ),
    )
