"""Direct options: paid from any wallet, moved by receipts alone."""

from __future__ import annotations

import pytest

from payments_core.errors import InvalidState, PaymentExpired
from tests.service.payer import Payer
from tests.service.world import OTHER_WALLET, WALLET, World, atomic

FULL = atomic("25.00")


def test_a_transfer_from_any_wallet_walks_the_payment_to_its_end(world: World) -> None:
    payer = Payer(world)
    option = payer.option()
    assert option.option.required_atomic == FULL
    assert payer.status(option) == ("pending", None, 0)
    assert payer.paid().selected_option_id is None
    payer.select(option)
    assert payer.status(option) == ("pending", "selected", 0)
    assert payer.paid().status == "awaiting_payment"
    payer.pay()
    world.run()
    assert payer.status(option) == ("processing", "selected", 0)
    assert payer.paid().status == "processing"
    world.finish()
    assert payer.status(option) == ("succeeded", "selected", FULL)
    assert payer.paid().status == "succeeded"
    [receipt] = payer.read(option).receipts
    assert (receipt.status, receipt.option_id) == ("verified", option.option.id)
    assert [name for name, _, _ in world.reported_events(payer.id)] == [
        "payment.created", "payment.processing", "payment.accepted", "payment.executing",
        "payment.succeeded",
    ]  # fmt: skip


def test_an_option_that_nobody_selected_is_paid_all_the_same(world: World) -> None:
    payer = Payer(world)
    option = payer.option()
    payer.pay()
    world.finish()
    assert payer.status(option) == ("succeeded", None, FULL)


def test_a_short_transfer_opens_the_option_again_for_what_remains(world: World) -> None:
    payer = Payer(world)
    option = payer.select(payer.option())
    payer.pay("10.00")
    world.run()
    assert payer.status(option)[0] == "processing"
    world.advance(20)
    assert payer.status(option) == ("pending", "selected", atomic("10.00"))
    assert (payer.paid().status, payer.paid().labels) == ("awaiting_payment", ("underpaid",))
    payer.pay("15.00")
    world.finish()
    assert payer.status(option) == ("succeeded", "selected", FULL)
    assert payer.paid().status == "succeeded"


def test_two_transfers_on_their_way_are_both_waited_for(
    world: World, request: pytest.FixtureRequest
) -> None:
    payer = Payer(world)
    option = payer.option()
    payer.pay("10.00")
    world.run()
    world.chain.mine(1)
    payer.pay("15.00", OTHER_WALLET)
    world.run()
    # a weak storage may give the job of a scan early, and the next scan is then later
    assert len(payer.now(option).sighted) == 2 or "weak" in request.node.name
    world.finish()
    assert payer.status(option) == ("succeeded", None, FULL)
    assert payer.now(option).sighted == ()


def test_what_comes_over_the_amount_is_excess_of_a_payment_that_succeeds(world: World) -> None:
    payer = Payer(world)
    option = payer.option()
    payer.pay("30.00")
    world.finish()
    assert payer.status(option) == ("succeeded", None, atomic("30.00"))
    assert (payer.paid().status, payer.paid().labels) == ("succeeded", ("overpaid",))
    payer.pay("25.00")
    world.finish()
    assert payer.status(option) == ("succeeded", None, atomic("55.00"))
    assert payer.paid().labels == ("overpaid", "duplicate")


def test_a_refresh_asks_for_what_remains(world: World) -> None:
    payer = Payer(world)
    first, second = payer.option(), payer.another()
    payer.select(first)
    payer.pay("10.00")
    world.advance(20)
    assert payer.status(first)[2] == atomic("10.00")
    assert payer.now(second).required_atomic == FULL
    refreshed = payer.refresh(second)
    assert refreshed.option.required_atomic == atomic("15.00")
    assert payer.refresh(first).option.required_atomic == FULL  # 10.00 of them are there


def test_dust_is_not_a_payment_and_keeps_nobody_out(world: World) -> None:
    payer = Payer(world)
    option = payer.select(payer.option())
    payer.pay("0.000001", OTHER_WALLET)
    world.run()
    assert payer.status(option)[0] == "processing"
    other = payer.select(payer.option())  # it was not the payer who sent it
    assert world.option(payer.payment).option.status == "pending"
    world.advance(20)
    assert payer.status(option) == ("pending", "superseded", 1)
    assert payer.status(other) == ("pending", "superseded", 0)


class TestWhichOptionATransferIsFor:
    def test_the_one_that_names_it(self, world: World) -> None:
        payer = Payer(world)
        named, selected = payer.option(), payer.select(payer.another())
        hash = payer.pay()
        payer.submit(named, hash)
        world.finish()
        assert payer.status(named) == ("succeeded", None, FULL)
        assert payer.status(selected) == ("cancelled", "selected", 0)

    def test_the_one_of_its_sender(self, world: World) -> None:
        payer = Payer(world)
        own = payer.option(payer_address=WALLET.lower())
        assert own.option.payer_address == WALLET
        payer.select(payer.option())
        payer.pay(source=WALLET)
        world.finish()
        assert payer.status(own) == ("succeeded", None, FULL)

    def test_the_selected_one_and_not_the_newest(self, world: World) -> None:
        payer = Payer(world)
        selected = payer.select(payer.option())
        newest = payer.another()
        payer.pay()
        world.finish()
        assert payer.status(selected) == ("succeeded", "selected", FULL)
        assert payer.status(newest) == ("cancelled", None, 0)

    def test_the_newest_where_a_vault_is_selected(self, world: World) -> None:
        payer = Payer(world)
        first, newest = payer.option(), payer.another()
        world.option(payer.payment)
        payer.pay()
        world.finish()
        assert payer.status(newest) == ("succeeded", None, FULL)
        assert payer.status(first)[0] == "cancelled"

    def test_a_superseded_one_still_matches_the_wallet_that_it_named(self, world: World) -> None:
        payer = Payer(world)
        first = payer.select(payer.option(payer_address=WALLET))
        second = payer.select(payer.option(payer_address=OTHER_WALLET))
        assert payer.status(first)[1] == "superseded"
        payer.pay(source=WALLET)
        world.finish()
        assert payer.status(first) == ("succeeded", "superseded", FULL)
        assert payer.status(second)[2] == 0

    def test_it_stays_so_through_a_reorg_and_another_choice(self, world: World) -> None:
        world.chain.mine(60)
        payer = Payer(world)
        first = payer.select(payer.option())
        payer.pay()
        world.run()
        payer.select(payer.option())
        world.reorg(1, reinclude=True)
        world.finish()
        assert payer.status(first) == ("succeeded", "superseded", FULL)

    def test_a_vaults_transfer_is_for_none(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        vault = world.authorize(world.option(payer.payment))
        world.finish()
        assert world.option_now(vault).status == "succeeded"
        assert payer.status(option) == ("cancelled", None, 0)


class TestReorgs:
    def test_a_transfer_undone_for_good_opens_the_option_again(self, world: World) -> None:
        world.chain.mine(60)
        payer = Payer(world)
        option = payer.select(payer.option())
        payer.pay()
        world.run()
        assert payer.status(option)[0] == "processing"
        world.reorg(2)
        world.advance(20)
        assert payer.status(option) == ("pending", "selected", 0)
        assert payer.paid().status == "awaiting_payment"
        payer.pay()
        world.finish()
        assert payer.status(option) == ("succeeded", "selected", FULL)

    def test_one_that_comes_back_counts_once(self, world: World) -> None:
        world.chain.mine(60)
        payer = Payer(world)
        option = payer.option()
        payer.pay()
        world.run()
        world.reorg(1, reinclude=True)
        world.finish()
        assert payer.status(option) == ("succeeded", None, FULL)
        assert (payer.paid().received_atomic, payer.paid().status) == (FULL, "succeeded")

    def test_an_option_that_is_over_stays_so_when_the_final_is_undone(self, world: World) -> None:
        world.chain.mine(60)
        payer = Payer(world)
        option = payer.option()
        payer.pay()
        world.run()
        world.advance(8)
        assert payer.status(option) == ("succeeded", None, FULL)
        world.reorg(30)
        world.finish()
        assert payer.status(option) == ("succeeded", None, 0)
        assert "reorged" in payer.paid().labels


class TestTheEndOfThePayment:
    def test_its_time_runs_out(self, world: World) -> None:
        payer = Payer(world, expires_in_s=300)
        option = payer.select(payer.option())
        world.advance(310)
        assert payer.status(option) == ("expired", "selected", 0)
        for action in (payer.option, lambda: payer.select(option), lambda: payer.refresh(option)):
            with pytest.raises(PaymentExpired):
                action()
        with pytest.raises(PaymentExpired):
            payer.submit(option)
        assert payer.read(option).option.status == "expired"
        assert payer.details().payment.status == "expired"

    def test_a_late_transfer_is_written_down_with_the_expired_option(self, world: World) -> None:
        payer = Payer(world, expires_in_s=300)
        option = payer.select(payer.option())
        world.advance(310)
        payer.pay()
        world.finish()
        assert payer.status(option) == ("expired", "selected", FULL)
        assert (payer.paid().status, payer.paid().labels) == ("action_required", ("late",))

    def test_part_of_it_came(self, world: World) -> None:
        payer = Payer(world, expires_in_s=300)
        option = payer.option()
        payer.pay("10.00")
        world.advance(310)
        assert payer.status(option) == ("expired", None, atomic("10.00"))
        assert payer.paid().status == "action_required"

    def test_a_transfer_on_its_way_is_waited_for(self, world: World) -> None:
        payer = Payer(world, expires_in_s=300)
        option = payer.option()
        world.advance(299)
        payer.pay()
        world.run()
        assert payer.status(option)[0] == "processing"
        world.finish()
        assert payer.status(option) == ("succeeded", None, FULL)
        assert payer.paid().status == "succeeded"

    def test_one_that_was_short_expires_with_it_in_one_commit(self, world: World) -> None:
        payer = Payer(world, expires_in_s=300)
        option = payer.option()
        world.advance(299)
        payer.pay("10.00")
        world.run()
        world.finish()
        assert payer.status(option) == ("expired", None, atomic("10.00"))
        assert payer.paid().status == "action_required"

    def test_it_was_cancelled(self, world: World) -> None:
        payer = Payer(world)
        option = payer.select(payer.option())
        details = world.resources.payments.cancel(payer.id)
        assert [item.option.status for item in details.options] == ["cancelled"]
        assert payer.status(option) == ("cancelled", "selected", 0)
        for action in (
            payer.option, lambda: payer.select(option), lambda: payer.refresh(option),
            lambda: payer.submit(option),
        ):  # fmt: skip
            with pytest.raises(InvalidState):
                action()
        assert payer.read(option).option.status == "cancelled"
        payer.pay()
        world.finish()
        assert payer.status(option) == ("cancelled", "selected", FULL)

    def test_it_is_not_cancelled_while_a_transfer_is_on_its_way(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        payer.pay()
        world.run()
        with pytest.raises(InvalidState):
            world.resources.payments.cancel(payer.id)
        assert payer.status(option)[0] == "processing"
