"""A month of a merchant, with all that can happen to its books, and short ways to alter it."""

from __future__ import annotations

from datetime import date
from typing import Any

import attrs

from payments_core.banks.simulated.records import SimulatedPayout
from payments_core.books.differences import Difference
from payments_core.books.period import Period, day_of
from payments_core.books.tally import Tally
from payments_core.chains.simulated.records import SimulatedTransaction
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import SIMULATED, Transaction
from payments_core.storage.records import R, Record
from tests.service.onramps.setting import OnrampSetting
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import BASE, World

HOUR_S = 3_600


class Month:
    """Payments that were refunded in part, not paid and overpaid; a payout and a bank transfer."""

    def __init__(self, world: World) -> None:
        self.world = world
        payouts, onramp = PayoutHarness(world), OnrampSetting(world)
        paid = world.payment("25.00")
        world.pay(paid, "25.00")
        world.finish()
        world.refund(paid, "10.00")
        world.finish()
        open_, overpaid = world.payment("5.00"), world.payment("5.00")
        world.pay(overpaid, "5.000001")
        world.finish()
        paid_out = payouts.settled("40.00")
        onramp.deposit("12.34", "wire")
        world.run()
        world.advance(60)
        world.advance(3 * HOUR_S)  # the Payment that nobody pays has expired, and is quiet
        self.payment_id = paid.payment.id
        self.open_id, self.overpaid_id = open_.payment.id, overpaid.payment.id
        self.payout_id = paid_out.payment.id
        self.transaction_id = onramp.transaction.id

    def compare(self, first: date | None = None) -> tuple[list[Difference], Tally]:
        """What differs in the period that ends tomorrow."""
        world, tally = self.world, Tally()
        comparison = world.service.parts.book_comparison("sandbox")
        found = list(comparison.compare(world.environment_id, self.period(first), tally))
        return found, tally

    def period(self, first: date | None = None) -> Period:
        """The ten days that end with today, or from a day to today."""
        today = day_of(self.world.clock.now()).toordinal()
        return Period(first or date.fromordinal(today - 9), date.fromordinal(today + 1))

    # Altering.

    def change(self, kind: type[R], id: str, partition: str | None = None, **changes: Any) -> None:
        def work(tx: Transaction) -> None:
            found = tx.get(kind, id, for_update=True)
            assert found is not None
            tx.replace(attrs.evolve(found, **changes))  # type: ignore[misc]

        self.world.storage.transact(partition or self.world.environment_id, work)

    def remove(self, kind: type[Record], id: str, partition: str | None = None) -> None:
        def work(tx: Transaction) -> None:
            found = tx.get(kind, id, for_update=True)
            assert found is not None
            tx.delete(found)

        self.world.storage.transact(partition or self.world.environment_id, work)

    def add(self, record: Record, partition: str) -> None:
        self.world.storage.transact(partition, lambda tx: tx.insert(record))

    # Finding.

    def entry(self, number: int) -> JournalEntry:
        """An entry of the refunded Payment: its receipt, its release, its refund."""
        return self.world.get(JournalEntry, f"{self.payment_id}/{number:06}")

    def receipt(self) -> Receipt:
        found = self.world.resources.payments.list_receipts(self.payment_id)
        return found.receipts.records[0]

    def refund(self) -> Refund:
        return self.world.resources.payments.read(self.payment_id).refunds[0]

    def payment(self) -> Payment:
        return self.world.paid(self.payment_id)

    def payout(self) -> SimulatedPayout:
        payout = self.world.paid(self.payout_id).payout
        assert payout is not None
        found = self.world.storage.read(SIMULATED, lambda s: s.get(SimulatedPayout, payout.key))
        assert found is not None
        return found

    def transaction(self, hash: str | None) -> SimulatedTransaction:
        id = f"{BASE}:{hash}"
        found = self.world.storage.read(SIMULATED, lambda s: s.get(SimulatedTransaction, id))
        assert found is not None
        return found
