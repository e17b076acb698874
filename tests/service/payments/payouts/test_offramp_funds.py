"""The books of payouts against the balance of the off-ramp address."""

from __future__ import annotations

import attrs
import pytest

from payments_core.chains.port import AddressSpec
from payments_core.maintenance import offramp_funds
from payments_core.maintenance.offramp_funds import OfframpFunds, compare_offramp_funds
from payments_core.payments.record import OFFRAMP_OWNER
from tests.service.payments.payouts.payout_harness import PayoutHarness
from tests.service.world import BASE, WALLET

CENTS = 10_000


def compare(harness: PayoutHarness) -> OfframpFunds:
    world = harness.world
    [row] = compare_offramp_funds(world.storage, world.service.chains, world.environment_id)
    return row


def in_cents(row: OfframpFunds) -> list[int]:
    """What is held, at the bank and settled; what is on the chain, and free."""
    assert row.on_chain is not None
    assert row.free is not None
    amounts = (row.held, row.at_bank, row.settled, row.on_chain, row.free)
    return [amount // CENTS for amount in amounts]


def test_each_payout_is_counted_where_its_status_says(harness: PayoutHarness) -> None:
    world = harness.world
    assert compare_offramp_funds(world.storage, world.service.chains, world.environment_id) == ()
    harness.settled("40.00")
    harness.submitted("10.00")
    returned = harness.settled("25.00")
    harness.bank.return_payout(harness.payout(returned).key, "R03")
    harness.look(returned)
    row = compare(harness)
    spec = AddressSpec(world.environment_id, "escrow", OFFRAMP_OWNER)
    assert (row.asset.chain_id, row.address) == (BASE, world.chain.derive(spec))
    assert in_cents(row) == [2_500, 1_000, 4_000, 7_500, 4_000]
    assert (row.booked, row.difference, row.needed) == (7_500 * CENTS, 0, 3_500 * CENTS)

    world.reconcile(returned, "refund")
    world.finish()
    assert in_cents(compare(harness)) == [0, 1_000, 4_000, 5_000, 4_000]


def test_a_payout_whose_funds_are_not_final_is_not_counted(memory_harness: PayoutHarness) -> None:
    memory_harness.send()
    assert in_cents(compare(memory_harness)) == [0, 0, 0, 0, 0]


def test_other_payments_are_passed_by_on_every_page(
    memory_harness: PayoutHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offramp_funds, "BATCH", 1)
    memory_harness.settled("10.00")
    memory_harness.world.payment()
    memory_harness.settled("15.00")
    assert in_cents(compare(memory_harness)) == [0, 0, 2_500, 2_500, 2_500]


def test_what_was_moved_away_is_missing(memory_harness: PayoutHarness) -> None:
    memory_harness.settled("40.00")
    memory_harness.submitted("10.00")
    row, world = compare(memory_harness), memory_harness.world
    for cents, free in ((4_000, 0), (100, -100)):
        amount, name = cents * CENTS, f"moved {cents}"
        world.chain.transfer(row.asset.address, row.address, WALLET, amount, name)
        world.advance(30)
        assert in_cents(compare(memory_harness))[-1] == free
    assert compare(memory_harness).difference == -4_100 * CENTS


def test_a_chain_that_is_not_served_has_no_balance(memory_harness: PayoutHarness) -> None:
    memory_harness.settled()
    world = memory_harness.world
    [row] = compare_offramp_funds(world.storage, {}, world.environment_id)
    assert (row.on_chain, row.difference, row.free) == (None, None, None)


def test_a_payout_without_funds_needs_none_and_covers_no_other(
    memory_harness: PayoutHarness,
) -> None:
    held = memory_harness.submitted("25.00")
    memory_harness.bank.return_payout(memory_harness.payout(held).key, "R03")
    memory_harness.look(held)
    payment = memory_harness.payment(held)
    undone = attrs.evolve(
        payment, books=attrs.evolve(payment.books, payer=0, offramp=-(25 * CENTS), bank=25 * CENTS)
    )
    row = OfframpFunds(asset=payment.asset, address="0x1", on_chain=2_500 * CENTS)
    row = row.add(payment).add(undone)
    assert (row.held, row.at_bank, row.booked) == (2_475 * CENTS, 25 * CENTS, 2_500 * CENTS)
    assert (row.needed, row.difference, row.free) == (2_500 * CENTS, 0, 0)
