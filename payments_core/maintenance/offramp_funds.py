"""The funds at the off-ramp address, by the books and by the chain; nothing is written.

Each payout draws an amount from a vault. It stays at the off-ramp address until a refund takes it
back, whatever the bank does: settled funds belong to the operator, who may move them. Funds without
a final decision, and those at the bank, must stay, because a refund may need them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from payments_core.chains.port import Chain
from payments_core.evolve import evolve
from payments_core.networks import Asset
from payments_core.payments.record import Payment
from payments_core.storage.port import Page, Position, Snapshot, Storage

BATCH = 200


@attrs.frozen(kw_only=True)
class OfframpFunds:
    """The funds of the payouts of one asset at one address, in atomic units.

    `held` is for payouts that were not yet submitted, or that failed or were returned; a
    payout that continued although its transfer was undone by a reorg reduces it. `needed` is
    the amount that must stay, by Payment. `on_chain` is the balance at the newest final block; None
    if the deployment does not serve the chain.
    """

    asset: Asset
    address: str
    held: int = 0
    at_bank: int = 0
    settled: int = 0
    needed: int = 0
    on_chain: int | None = None

    @property
    def booked(self) -> int:
        """The amount drawn from vaults and not returned."""
        return self.held + self.at_bank + self.settled

    @property
    def difference(self) -> int | None:
        """The chain's excess over the books; below zero if funds are missing or were moved away."""
        return None if self.on_chain is None else self.on_chain - self.booked

    @property
    def free(self) -> int | None:
        """The amount that no decision can need now; below zero if the address is short."""
        return None if self.on_chain is None else self.on_chain - self.needed

    def add(self, payment: Payment) -> OfframpFunds:
        """Add the funds of a payout."""
        books = payment.books
        return evolve(
            self,
            held=self.held + books.offramp,
            at_bank=self.at_bank + books.bank,
            settled=self.settled + books.recipient,
            needed=self.needed + max(0, books.offramp + books.bank),
        )


def compare_offramp_funds(
    storage: Storage, chains: Mapping[int, Chain], partition: str
) -> tuple[OfframpFunds, ...]:
    """The funds of an environment's payouts, one row for each chain, asset and address.

    It reads all Payments of the environment, in pages. The chain is read after the books, and a
    transfer becomes final there before the books show it: while some are in progress, the two may
    differ. Raises ChainUnavailable, StorageUnavailable, UnreadableDocument.
    """
    rows: dict[tuple[int, str, str], OfframpFunds] = {}
    for payment in _iter_payments(storage, partition):
        if payment.payout is None:
            continue
        key = (payment.chain_id, payment.asset.address, payment.destination.address)
        row = rows.get(key) or OfframpFunds(asset=payment.asset, address=key[2])
        rows[key] = row.add(payment)
    return tuple(_read_chain(rows[key], chains) for key in sorted(rows))


def _read_chain(row: OfframpFunds, chains: Mapping[int, Chain]) -> OfframpFunds:
    chain = chains.get(row.asset.chain_id)
    if chain is None:
        return row
    found = chain.balances(row.asset.address, (row.address,))
    return evolve(row, on_chain=found.amounts[row.address])


def _iter_payments(storage: Storage, partition: str) -> Iterator[Payment]:
    after: Position | None = None
    while True:

        def look(snapshot: Snapshot, after: Position | None = after) -> Page[Payment]:
            return snapshot.find(Payment, "by_created", after=after, limit=BATCH)

        page = storage.read(partition, look)
        yield from page.records
        after = page.next
        if after is None:
            return
