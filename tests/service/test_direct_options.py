"""Direct options: paid from any wallet, moved by receipts alone."""

from __future__ import annotations

import pytest

from payments_core.errors import (
    CapabilityNotActive,
    EntitlementRequired,
    InsufficientPermissions,
    InvalidState,
    NotFound,
    OptionExpired,
    OptionLocked,
    OptionSuperseded,
    PaymentExpired,
    PaymentOptionLimitReached,
    PaymentsError,
    Unauthorized,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.idempotency.record import AlreadyAnswered
from payments_core.tenants.record import PRODUCTS
from tests.service.payer import Payer
from tests.service.world import BASE, OTHER_WALLET, WALLET, World, atomic, once

FULL = atomic("25.00")


def test_a_transfer_from_any_wallet_walks_the_payment_to_its_end(world: World) -> None:
    payer = Payer(world)
    option = payer.option()
    assert option.option.required == FULL
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
    assert [name for name, _, _ in world.told(payer.id)] == [
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


def test_two_transfers_on_their_way_are_both_waited_for(world: World) -> None:
    payer = Payer(world)
    option = payer.option()
    payer.pay("10.00")
    world.run()
    world.chain.mine(1)
    payer.pay("15.00", OTHER_WALLET)
    world.run()
    assert len(payer.now(option).sighted) == 2
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
    first, second = payer.option(), payer.option()
    payer.select(first)
    payer.pay("10.00")
    world.advance(20)
    assert payer.status(first)[2] == atomic("10.00")
    assert payer.now(second).required == FULL
    refreshed = payer.refresh(second)
    assert refreshed.option.required == atomic("15.00")
    assert payer.refresh(first).option.required == FULL  # 10.00 of them are there


def test_dust_is_no_payment_and_keeps_nobody_out(world: World) -> None:
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
        named, selected = payer.option(), payer.select(payer.option())
        hash = payer.pay()
        payer.submit(named, hash)
        world.finish()
        assert payer.status(named) == ("succeeded", None, FULL)
        assert payer.status(selected) == ("pending", "selected", 0)

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
        newest = payer.option()
        payer.pay()
        world.finish()
        assert payer.status(selected) == ("succeeded", "selected", FULL)
        assert payer.status(newest) == ("pending", None, 0)

    def test_the_newest_where_a_vault_is_selected(self, world: World) -> None:
        payer = Payer(world)
        first, newest = payer.option(), payer.option()
        world.option(payer.payment)
        payer.pay()
        world.finish()
        assert payer.status(newest) == ("succeeded", None, FULL)
        assert payer.status(first)[0] == "pending"

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
        assert payer.status(option) == ("pending", None, 0)


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
        assert (payer.paid().received, payer.paid().status) == (FULL, "succeeded")

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
        world.advance(300)
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
        world.advance(300)
        payer.pay()
        world.finish()
        assert payer.status(option) == ("expired", "selected", FULL)
        assert (payer.paid().status, payer.paid().labels) == ("action_required", ("late",))

    def test_part_of_it_came(self, world: World) -> None:
        payer = Payer(world, expires_in_s=300)
        option = payer.option()
        payer.pay("10.00")
        world.advance(300)
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
        details = world.service.payments.cancel(world.server, payer.id)
        assert [item.option.status for item in details.direct_options] == ["cancelled"]
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
            world.service.payments.cancel(world.server, payer.id)
        assert payer.status(option)[0] == "processing"


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("more", "error"),
        [
            ({"method": "vault"}, InsufficientPermissions),
            ({"method": "routing"}, CapabilityNotActive),
            ({"method": "hosted_onramp"}, CapabilityNotActive),
            ({"chain_id": 137}, UnsupportedChain),
            ({"asset_symbol": "USDT"}, UnsupportedAsset),
            ({"payer_address": "0x12"}, ValidationFailed),
            ({"payer_address": "0x" + "0" * 40}, ValidationFailed),
        ],
    )
    def test_another_way_to_pay(
        self, world: World, more: dict[str, object], error: type[PaymentsError]
    ) -> None:
        payer = Payer(world)
        with pytest.raises(error):
            payer.option(**more)
        assert payer.paid().direct_option_ids == ()

    def test_a_method_that_the_payment_does_not_allow(self, world: World) -> None:
        payer = Payer(world, allowed_methods=("vault",))
        with pytest.raises(CapabilityNotActive):
            payer.option()

    def test_more_than_ten_options_of_all_kinds(self, world: World) -> None:
        payer = Payer(world)
        world.option(payer.payment)
        for _ in range(9):
            payer.option()
        with pytest.raises(PaymentOptionLimitReached):
            payer.option()
        with pytest.raises(PaymentOptionLimitReached):
            world.option(payer.payment)

    def test_an_option_of_another_payment_and_one_that_never_was(self, world: World) -> None:
        payer, other = Payer(world), Payer(world)
        foreign = other.option()
        vault = world.option(payer.payment)
        for id in (foreign.option.id, vault.option.id, "pay_option_" + "A" * 24):
            paying = world.service.paying
            for call in (paying.get, paying.select, paying.refresh):
                with pytest.raises(NotFound):
                    call(payer.authority, payer.id, id)

    def test_another_payments_authority(self, world: World) -> None:
        payer, other = Payer(world), Payer(world)
        option = payer.option()
        paying, checkout = world.service.paying, world.service.checkout
        for call in (
            lambda: paying.get(other.authority, payer.id, option.option.id),
            lambda: paying.select(other.authority, payer.id, option.option.id),
            lambda: paying.create(other.authority, payer.id, method="direct"),
            lambda: paying.methods(other.authority, payer.id),
            lambda: checkout.payment(other.authority, payer.id),
            lambda: checkout.state(other.authority, payer.id),
        ):
            with pytest.raises(Unauthorized):
                call()

    @pytest.mark.parametrize("off", ["payments", "public_checkout"])
    def test_a_product_taken_away_between_the_door_and_the_commit(
        self, world: World, off: str
    ) -> None:
        payer = Payer(world)
        authority = payer.authority
        left = [name for name in PRODUCTS if name != off]
        world.service.tenants.set_products(world.environment_id, left)
        with pytest.raises(EntitlementRequired):
            world.service.paying.create(authority, payer.id, method="direct")
        assert payer.paid().direct_option_ids == ()

    def test_any_change_of_a_payment_that_was_covered(self, world: World) -> None:
        payer = Payer(world)
        option, other = payer.option(), payer.option()
        payer.pay()
        world.finish()
        for action in (
            payer.option, lambda: payer.select(option), lambda: payer.select(other),
            lambda: payer.refresh(other),
        ):  # fmt: skip
            with pytest.raises(InvalidState):
                action()


class TestSelecting:
    def test_one_supersedes_another_of_either_kind(self, world: World) -> None:
        payer = Payer(world)
        first = payer.select(payer.option())
        vault = world.option(payer.payment)
        assert payer.status(first)[1] == "superseded"
        second = payer.select(payer.option())
        assert world.option_now(vault).selection_status == "superseded"
        assert world.operation_now(vault).status == "cancelled"
        assert payer.paid().selected_option_id == second.option.id
        for action in (payer.select, payer.refresh):
            with pytest.raises(OptionSuperseded):
                action(first)

    def test_the_selected_one_again_changes_nothing(self, world: World) -> None:
        payer = Payer(world)
        option = payer.select(payer.option())
        before = payer.now(option), payer.paid()
        assert payer.select(option).option == before[0]
        assert (payer.now(option), payer.paid()) == before

    def test_a_vaults_authorization_locks_the_choice(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        world.authorize(world.option(payer.payment))
        for action in (payer.option, lambda: payer.select(option)):
            with pytest.raises(OptionLocked) as caught:
                action()
            assert caught.value.option_id is None
        assert payer.status(option) == ("pending", None, 0)

    def test_a_transfer_that_was_submitted_locks_the_choice_until_its_end(
        self, world: World
    ) -> None:
        payer = Payer(world)
        option, other = payer.select(payer.option()), payer.option()
        payer.submit(option, payer.pay("10.00"))
        world.run()
        for action in (
            payer.option,
            lambda: payer.select(other),
            lambda: world.option(payer.payment),
        ):
            with pytest.raises(OptionLocked) as caught:
                action()
            assert caught.value.option_id == option.option.id
        world.advance(20)
        payer.select(other)
        assert payer.status(option) == ("pending", "superseded", atomic("10.00"))

    def test_an_expired_one_cannot_be_selected(self, world: World) -> None:
        payer = Payer(world, expires_in_s=300)
        option, other = payer.option(), payer.option()
        payer.pay("10.00")
        world.run()
        world.advance(300)
        assert payer.status(option)[0] == payer.status(other)[0] == "expired"
        assert payer.paid().status == "action_required"
        with pytest.raises((OptionExpired, InvalidState)):
            payer.refresh(option)


def test_a_retry_makes_no_second_option(world: World) -> None:
    payer = Payer(world)
    payer.option(idempotent=once("k"))
    with pytest.raises(AlreadyAnswered):
        payer.option(idempotent=once("k"))
    assert len(payer.paid().direct_option_ids) == 1


def test_the_partner_sees_the_option_on_the_payment(world: World) -> None:
    payer = Payer(world)
    option = payer.option()
    [shown] = world.service.payments.get(world.server, payer.id).direct_options
    assert shown.option == payer.now(option)


def test_a_trusted_library_user_may_act_for_the_payer(world: World) -> None:
    payer = Payer(world)
    trusted = world.service.tenants.trusted(world.environment_id)
    created = world.service.paying.create(trusted, payer.id, method="direct", chain_id=BASE)
    assert payer.status(created)[0] == "pending"
