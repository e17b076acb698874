"""Journal, chain and bank compared: nothing differs, and each difference of one atom is named."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from payments_core.banks.simulated.incoming_records import SimulatedIncoming
from payments_core.banks.simulated.records import SimulatedPayout
from payments_core.books.differences import MEANINGS
from payments_core.books.period import day_of
from payments_core.chains.simulated.records import SimulatedBalance, SimulatedTransaction
from payments_core.money import Atomic
from payments_core.onramps.record import BankTransaction, FundingEntry
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.refunding.operations import NewRefund
from payments_core.storage.port import SIMULATED
from payments_core.storage.records import Record
from tests.service.books.month import HOUR_S, Month
from tests.service.world import BASE, USDC, World


def post(number: int, more: int) -> Callable[[Month], None]:
    """An entry moves more, or less, between the same accounts."""

    def plant(month: Month) -> None:
        entry = month.entry(number)
        gains = max(entry.postings, key=lambda name: entry.postings[name])
        loses = min(entry.postings, key=lambda name: entry.postings[name])
        postings = {
            **entry.postings,
            gains: Atomic(entry.postings[gains] + more),
            loses: Atomic(entry.postings[loses] - more),
        }
        month.change(JournalEntry, entry.id, postings=postings)

    return plant


def log_of(hash: Callable[[Month], str | None], more: int) -> Callable[[Month], None]:
    """The chain's transaction moved more, or less."""

    def plant(month: Month) -> None:
        row = month.transaction(hash(month))
        log = attrs.evolve(row.logs[0], amount_atomic=row.logs[0].amount_atomic + more)
        month.change(SimulatedTransaction, row.id, SIMULATED, logs=(log, *row.logs[1:]))

    return plant


def gone(hash: Callable[[Month], str | None]) -> Callable[[Month], None]:
    return lambda month: month.remove(
        SimulatedTransaction, month.transaction(hash(month)).id, SIMULATED
    )


def hold(more: int, which: str = "payment_id") -> Callable[[Month], None]:
    """An escrow holds more than came by what was seen."""

    def plant(month: Month) -> None:
        escrow = month.world.paid(getattr(month, which)).escrow_address
        id = f"{BASE}:{USDC.address}:{escrow}"
        found = month.world.storage.read(SIMULATED, lambda s: s.get(SimulatedBalance, id))
        if found is None:
            month.add(SimulatedBalance(id=id, total_atomic=Atomic(more)), SIMULATED)
        else:
            month.change(SimulatedBalance, id, SIMULATED, total_atomic=found.total_atomic + more)

    return plant


def second_log(month: Month) -> None:
    """The transaction that paid has another transfer to the escrow, which nobody counted."""
    row = month.transaction(month.receipt().transaction_hash)
    more = attrs.evolve(row.logs[0], amount_atomic=Atomic(1))
    month.change(SimulatedTransaction, row.id, SIMULATED, logs=(*row.logs, more))


def pay_out_twice(month: Month) -> None:
    payout = month.payout()
    key = payout.id.rpartition("/")[0] + "/2"
    month.add(attrs.evolve(payout, id=key, amount_cents=1, version=0), SIMULATED)


def receipt_hash(month: Month) -> str:
    return month.receipt().transaction_hash


def release_hash(month: Month) -> str | None:
    return month.payment().release_hash


def refund_hash(month: Month) -> str | None:
    return month.refund().transaction_hash


def first_of(kind: type[Record], id: str) -> Callable[[Month], None]:
    return lambda month: month.remove(kind, f"{month.transaction_id}/{id}")


def change_incoming(month: Month) -> None:
    id = month.world.get(BankTransaction, month.transaction_id).incoming_id
    month.change(SimulatedIncoming, id, SIMULATED, amount_cents=1_233)


PLANTS: tuple[tuple[str, str, Callable[[Month], None], int, int], ...] = (
    ("journal_short", "a receipt of an atom less", post(1, -1), 25_000_000, 24_999_999),
    ("journal_over", "a receipt of an atom more", post(1, 1), 25_000_000, 25_000_001),
    ("journal_short", "a release of an atom less", post(2, -1), 25_000_000, 24_999_999),
    ("journal_over", "a refund of an atom more", post(3, 1), 10_000_000, 10_000_001),
    (
        "journal_missing", "no entry of a receipt",
        lambda month: month.remove(JournalEntry, month.entry(1).id), 25_000_000, 0,
    ),
    (
        "journal_missing", "no entry of a refund",
        lambda month: month.remove(JournalEntry, month.entry(3).id), 10_000_000, 0,
    ),
    (
        "journal_missing", "no entry of a credit from the bank",
        first_of(FundingEntry, "000003"), 12_340_000, 0,
    ),
    (
        "journal_over", "an entry that nothing explains",
        lambda month: month.add(
            attrs.evolve(
                month.entry(1), id=f"{month.payment_id}/000004", number=4, version=0, subject="x"
            ),
            month.world.environment_id,
        ), 0, 25_000_000,
    ),
    ("chain_missing", "a receipt that is not in the chain", gone(receipt_hash), 25_000_000, 0),
    ("chain_missing", "a release that is not in the chain", gone(release_hash), 25_000_000, 0),
    ("chain_missing", "a refund that is not in the chain", gone(refund_hash), 10_000_000, 0),
    ("chain_missing", "an atom that an escrow lacks", hold(-1, "overpaid_id"), 1, 0),
    ("chain_extra", "an atom that nobody booked", hold(1), 0, 1),
    ("chain_extra", "an atom for a Payment that nobody paid", hold(1, "open_id"), 0, 1),
    ("chain_extra", "a second transfer in a counted transaction", second_log, 0, 1),
    ("chain_amount", "a receipt of an atom less", log_of(receipt_hash, -1), 25_000_000, 24_999_999),
    ("chain_amount", "a release of an atom more", log_of(release_hash, 1), 25_000_000, 25_000_001),
    (
        "bank_missing", "a payout that the bank does not know",
        lambda month: month.remove(SimulatedPayout, month.payout().id, SIMULATED), 4_000, 0,
    ),
    ("bank_extra", "a payout that was made twice", pay_out_twice, 0, 1),
    (
        "bank_amount", "a payout of a cent less",
        lambda month: month.change(
            SimulatedPayout, month.payout().id, SIMULATED, amount_cents=3_999
        ), 4_000, 3_999,
    ),
    ("bank_amount", "a transfer to an on-ramp of a cent less", change_incoming, 1_234, 1_233),
)  # fmt: skip


@pytest.fixture
def month(memory_world: World) -> Month:
    return Month(memory_world)


def test_each_kind_of_difference_is_planted() -> None:
    assert {kind for kind, *_ in PLANTS} == MEANINGS.keys()


def test_nothing_differs_when_all_went_well(world: World) -> None:
    differences, tally = Month(world).compare()
    assert differences == []
    assert tally.is_clean
    assert (tally.payments, tally.bank_transfers, tally.payouts) == (4, 1, 1)
    assert tally.entries == 11
    assert tally.transfers == 7  # two receipts and releases, a refund, a payout's, a credit


@pytest.mark.parametrize(
    ("kind", "plant", "expected", "found"),
    [pytest.param(kind, *rest, id=f"{kind}-{name}") for kind, name, *rest in PLANTS],
)
def test_a_planted_difference_is_named_once(
    month: Month, kind: str, plant: Callable[[Month], None], expected: int, found: int
) -> None:
    plant(month)
    differences, tally = month.compare()
    assert [(one.kind, one.expected, one.found) for one in differences] == [(kind, expected, found)]
    assert tally.differences == {kind: 1}
    assert not tally.is_clean


def test_an_older_payment_is_compared_if_it_moved_in_the_period(month: Month) -> None:
    world = month.world
    world.advance(3 * 24 * HOUR_S)
    world.resources.payments.refund(month.payment_id, NewRefund(amount="1.00"))
    world.finish()
    world.advance(HOUR_S)
    today = day_of(world.clock.now())
    assert month.compare(today)[0] == []
    assert month.compare(today)[1].payments == 1
    post(1, -1)(month)
    assert [one.kind for one in month.compare(today)[0]] == ["journal_short"]
