"""Direct options: what a payer may ask for and select, and when no more."""

from __future__ import annotations

import pytest

from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    CapabilityNotActive,
    EntitlementRequired,
    InsufficientPermissions,
    InvalidState,
    NotFound,
    OptionExpired,
    OptionLocked,
    OptionSuperseded,
    PaymentOptionLimitReached,
    PaymentsError,
    Unauthorized,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.payment_settings.record import PaymentTerms
from payments_core.payments.options import limits
from payments_core.payments.options.limits import MAX_OPTIONS
from payments_core.tenants.record import PRODUCTS
from tests.service.payer import Payer, coming
from tests.service.world import (
    BASE,
    OTHER_WALLET,
    STRANGER,
    USDC,
    WALLET,
    World,
    atomic,
    once,
)

FULL = atomic("25.00")


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("more", "error"),
        [
            ({"method": "vault"}, InsufficientPermissions),
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
        assert payer.paid().option_ids == ()

    def test_a_method_that_the_payment_does_not_allow(self, world: World) -> None:
        payer = Payer(world, allowed_methods=("vault",))
        with pytest.raises(CapabilityNotActive):
            payer.option()

    def test_more_than_ten_options_of_strangers(self, world: World) -> None:
        payer = Payer(world)
        world.option(payer.payment)
        for _ in range(10):
            payer.another()
        with pytest.raises(PaymentOptionLimitReached) as caught:
            payer.another()
        assert caught.value.limit == 10
        assert len(payer.paid().option_ids) == 11

    def test_more_than_a_hundred_options_of_everybody(
        self, memory_world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "MAX_OPTIONS_OF_ALL", 3)
        payer = Payer(memory_world)
        for _ in range(2):
            payer.another()
        memory_world.option(payer.payment)
        for action in (payer.another, lambda: memory_world.option(payer.payment)):
            with pytest.raises(PaymentOptionLimitReached) as caught:
                action()
            assert caught.value.limit == 3

    def test_an_accounts_call_with_an_option_that_has_no_account(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        options = world.service.acting_as(world.client).options
        for call in (options.read, options.refresh):
            with pytest.raises(NotFound):
                call(payer.id, option.option.id)
        assert options.list(payer.id) == ()
        with pytest.raises(NotFound):
            world.service.acting_as(world.client).options.authorize(
                payer.id, option.option.id, action_id="action_" + "a" * 24
            )

    def test_an_option_of_another_payment_and_one_that_never_was(self, world: World) -> None:
        payer, other = Payer(world), Payer(world)
        foreign = other.option()
        vault = world.option(payer.payment)
        for id in (foreign.option.id, vault.option.id, "pay_option_" + "A" * 24):
            options = world.service.acting_as(payer.authority).public_options
            for call in (options.read, options.select, options.refresh):
                with pytest.raises(NotFound):
                    call(payer.id, id)

    def test_another_payments_authority(self, world: World) -> None:
        payer, other = Payer(world), Payer(world)
        option = payer.option()
        checkout = world.service.acting_as(other.authority).public_payments
        for call in (
            lambda: world.service.acting_as(other.authority).public_options.read(
                payer.id, option.option.id
            ),
            lambda: world.service.acting_as(other.authority).public_options.select(
                payer.id, option.option.id
            ),
            lambda: world.service.acting_as(other.authority).public_options.create(
                payer.id, method="direct"
            ),
            lambda: world.service.acting_as(other.authority).public_payments.list_methods(payer.id),
            lambda: checkout.read(payer.id),
            lambda: checkout.read_state(payer.id),
        ):
            with pytest.raises(Unauthorized):
                call()

    @pytest.mark.parametrize("off", ["payments", "public_checkout"])
    def test_a_product_taken_away_between_the_check_and_the_commit(
        self, world: World, off: str
    ) -> None:
        payer = Payer(world)
        authority = payer.authority
        left = [name for name in PRODUCTS if name != off]
        world.service.tenants.set_products(world.environment_id, left)
        with pytest.raises(EntitlementRequired):
            world.service.acting_as(authority).public_options.create(payer.id, method="direct")
        assert payer.paid().option_ids == ()

    def test_any_change_of_a_payment_that_was_covered(self, world: World) -> None:
        payer = Payer(world)
        option, other = payer.option(), payer.another()
        payer.pay()
        world.finish()
        for action in (
            payer.option, lambda: payer.select(option), lambda: payer.select(other),
            lambda: payer.refresh(other),
        ):  # fmt: skip
            with pytest.raises(InvalidState):
                action()


class TestHowMany:
    def test_strangers_never_use_up_what_an_account_may_create(self, world: World) -> None:
        """Each selects a new option whenever the other has."""
        payer = Payer(world)
        for _ in range(10):
            world.option(payer.payment)
            payer.select(payer.another())
        with pytest.raises(PaymentOptionLimitReached):
            payer.another()
        option = world.option(payer.payment)
        world.authorize(option)
        world.finish()
        assert payer.paid().status == "succeeded"

    def test_an_account_has_ten_and_one_for_each_that_strangers_have(self, world: World) -> None:
        payer = Payer(world)
        payer.another()
        for _ in range(11):
            world.option(payer.payment)
        with pytest.raises(PaymentOptionLimitReached) as caught:
            world.option(payer.payment)
        assert caught.value.limit == 10

    def test_one_accounts_options_do_not_count_for_another(self, world: World) -> None:
        payer, other = Payer(world), world.client_of(world.account("other"))
        for _ in range(10):
            world.option(payer.payment, other)
        with pytest.raises(PaymentOptionLimitReached):
            world.option(payer.payment, other)
        world.authorize(world.option(payer.payment))


class TestAskingAgain:
    def test_the_open_option_is_the_answer(self, world: World) -> None:
        payer = Payer(world)
        first, named = payer.option(), payer.option(payer_address=WALLET)
        assert first.option.id != named.option.id
        before = payer.paid()
        assert payer.option() == payer.read(first)
        assert payer.option(payer_address=WALLET.lower()) == payer.read(named)
        assert payer.paid() == before
        selected = payer.select(first)
        assert payer.option() == payer.read(selected)

    def test_with_ten_of_them_as_well(self, world: World) -> None:
        payer = Payer(world)
        first = payer.option()
        for _ in range(9):
            payer.another()
        assert payer.option().option.id == first.option.id

    def test_an_option_that_is_not_as_new_is_another(self, world: World) -> None:
        payer = Payer(world)
        ids = [payer.option().option.id]
        payer.submit(payer.read(payer.option()))  # names a transaction
        ids.append(payer.option().option.id)
        payer.select(payer.option())
        vault = world.option(payer.payment)  # supersedes it
        ids.append(vault.option.id)
        ids.append(payer.option().option.id)
        payer.pay("10.00", OTHER_WALLET)
        world.finish()  # so less remains, and the newest was paid by
        ids.append(payer.option().option.id)
        assert payer.option().option.id == ids[-1]
        assert list(payer.paid().option_ids) == ids

    def test_its_receipts_are_shown(self, world: World) -> None:
        """A transfer that a reorg undid leaves the option as new."""
        world.chain.mine(60)
        payer = Payer(world)
        option = payer.option()
        payer.pay()
        world.run()
        world.reorg(1)
        world.finish()
        assert payer.status(option) == ("pending", None, 0)
        again = payer.option()
        assert again == payer.read(option)
        assert [receipt.status for receipt in again.receipts] == ["reorged"]


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
        option, other = payer.select(payer.option()), payer.another()
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

    def test_invented_transactions_leave_the_vault_eight_of_ten_minutes(self, world: World) -> None:
        payer = Payer(world)  # everybody who has its link can do all of this
        options = [payer.another() for _ in range(MAX_OPTIONS)]
        locked = []
        for minute in range(20):
            selected = options[minute // 10]
            if minute % 10 == 0:
                payer.select(selected)
            if minute % 2 == 0:
                payer.submit(selected, f"0x{minute:064x}")
            with pytest.raises((OptionLocked, PaymentOptionLimitReached)) as caught:
                payer.another()
            if caught.type is OptionLocked:
                locked.append(minute)
            world.system.advance(60)
        assert locked == [0, 1, 10, 11]
        world.authorize(world.option(payer.payment))

    def test_a_transfer_that_paid_begins_no_lock_of_a_rest(self, world: World) -> None:
        payer = Payer(world)
        option, other = payer.select(payer.option()), payer.another()
        payer.submit(option, payer.pay("10.00"))
        world.finish()
        payer.submit(option)
        with pytest.raises(OptionLocked):
            payer.select(other)

    def test_an_expired_one_cannot_be_selected(self, world: World) -> None:
        payer = Payer(world, expires_in_s=300)
        option, other = payer.option(), payer.another()
        payer.pay("10.00")
        world.run()
        world.advance(310)
        assert payer.status(option)[0] == payer.status(other)[0] == "expired"
        assert payer.paid().status == "action_required"
        with pytest.raises((OptionExpired, InvalidState)):
            payer.refresh(option)


class TestDust:
    """What a stranger who has the Payment's secret sends and names, each time for a fee."""

    def test_locks_no_longer_than_until_it_is_seen(self, world: World) -> None:
        payer = Payer(world)
        option, other = payer.select(payer.option()), payer.another()
        payer.submit(option, payer.pay("0.000001", OTHER_WALLET))
        with pytest.raises(OptionLocked):
            payer.select(other)
        world.run()
        assert payer.status(option)[0] == payer.paid().status == "processing"
        payer.select(other)
        world.authorize(world.option(payer.payment))

    def test_counts_and_stays_on_the_option_that_was_left(self, world: World) -> None:
        payer = Payer(world)
        option = payer.select(payer.option())
        payer.submit(option, payer.pay("0.000001", OTHER_WALLET))
        world.run()
        world.authorize(world.option(payer.payment))
        world.finish()
        assert payer.status(option)[1:] == ("superseded", 1)
        found = payer.paid()
        assert (found.received_atomic, found.counted_atomic, found.excess_atomic) == (
            atomic("25.000001"),
            FULL,
            1,
        )
        assert (found.status, "overpaid" in found.labels) == ("succeeded", True)
        world.reconcile(payer.payment, "refund_excess")
        world.finish()
        assert (payer.paid().excess_atomic, payer.paid().refunded_atomic) == (0, 1)

    def test_locks_where_together_it_is_a_tenth(self, world: World) -> None:
        payer = Payer(world)
        option, other = payer.select(payer.option()), payer.another()
        payer.submit(option, payer.pay("2.499999", OTHER_WALLET))
        world.run()
        payer.another()
        # Not a third one: a payer who claims early would find the first one final.
        payer.submit(option, payer.pay("0.000001", OTHER_WALLET))
        world.run()
        with pytest.raises(OptionLocked):
            payer.select(other)
        world.advance(20)
        assert payer.paid().received_atomic == atomic("2.50")
        payer.select(other)

    def test_begins_no_more_locks_than_invented_transactions(self, world: World) -> None:
        """Named before it is sent, each locks for as long as no node knows it."""
        payer = Payer(world)
        escrow, locked = str(payer.paid().escrow_address), []
        option = payer.select(payer.option())
        for minute in range(10):
            if minute % 2 == 0:
                payer.submit(option, coming(f"dust-{minute}"))
            try:
                payer.another()
            except OptionLocked:
                locked.append(minute)
            world.system.advance(59)
            if minute % 2 == 1:
                world.chain.transfer(USDC.address, None, escrow, 1, f"dust-{minute - 1}")
                world.run()
            world.system.advance(1)
        assert locked == [0, 1]

    def test_of_another_token_locks_nothing(self, world: World) -> None:
        payer = Payer(world)
        option, other = payer.select(payer.option()), payer.another()
        escrow = str(payer.paid().escrow_address)
        hash = world.chain.transfer(STRANGER, None, escrow, FULL, "made-up")
        payer.submit(option, hash)
        world.run()
        payer.select(other)


class TestAPartThatIsNoDust:
    def test_each_of_three_thirds_locks_until_it_is_final(self, world: World) -> None:
        payer = Payer(world, "0.30")
        option, other = payer.select(payer.option()), payer.another()
        for number in range(3):
            payer.submit(option, payer.pay("0.10"))
            world.run()
            with pytest.raises(OptionLocked):
                payer.select(other)
            world.advance(20)
            assert payer.paid().counted_atomic == (number + 1) * atomic("0.10")
        world.finish()
        assert payer.paid().status == "succeeded"

    def test_the_last_cent_locks_as_a_whole_alone(self, world: World) -> None:
        payer = Payer(world)
        payer.pay("24.99")
        world.advance(20)
        option, other = payer.select(payer.option()), payer.another()
        payer.submit(option, payer.pay("0.009999"))
        world.run()
        payer.select(other)
        payer.submit(other, payer.pay("0.000001", OTHER_WALLET))
        world.run()
        payer.another()
        world.advance(20)
        assert payer.paid().counted_atomic == FULL

    def test_what_covers_with_tolerance_locks(self, world: World) -> None:
        world.resources.payment_settings.replace(PaymentTerms(tolerance_bps=1_000))
        payer = Payer(world)
        payer.pay("22.49")
        world.advance(20)
        option, other = payer.select(payer.option()), payer.another()
        payer.submit(option, payer.pay("0.01"))
        world.run()
        with pytest.raises(OptionLocked):
            payer.select(other)

    def test_a_reorg_ends_the_lock_and_its_return_begins_it_again(self, world: World) -> None:
        world.chain.mine(60)
        payer = Payer(world)
        option, other = payer.select(payer.option()), payer.another()
        payer.submit(option, payer.pay("10.00"))
        world.run()
        with pytest.raises(OptionLocked):
            payer.select(other)
        world.reorg(1, reinclude=True)
        world.run()
        with pytest.raises(OptionLocked):
            payer.select(other)
        world.reorg(2)
        world.advance(20)
        payer.select(other)

    def test_what_is_locked_out_no_more_is_counted_for_the_option_before(
        self, world: World
    ) -> None:
        """The choice changes before any node knows the transfer; nothing of it is lost."""
        payer = Payer(world)
        option = payer.select(payer.option())
        world.authorize(world.option(payer.payment))
        payer.submit(option, payer.pay("25.00"))
        world.finish()
        assert payer.status(option)[1:] == ("superseded", FULL)
        found = payer.paid()
        assert (found.received_atomic, found.excess_atomic, found.status) == (
            2 * FULL,
            FULL,
            "succeeded",
        )
        assert set(found.labels) == {"duplicate"}


def test_a_retry_makes_no_second_option(world: World) -> None:
    payer = Payer(world)
    payer.option(idempotency_key=once("k"))
    with pytest.raises(AlreadyResponded):
        payer.option(idempotency_key=once("k"))
    assert len(payer.paid().option_ids) == 1


def test_the_partner_sees_the_option_on_the_payment(world: World) -> None:
    payer = Payer(world)
    option = payer.option()
    [shown] = world.resources.payments.read(payer.id).options
    assert shown.option == payer.now(option)


def test_a_trusted_library_user_may_act_for_the_payer(world: World) -> None:
    payer = Payer(world)
    trusted = world.service.tenants.system_authority(world.environment_id)
    created = world.service.acting_as(trusted).public_options.create(
        payer.id, method="direct", chain_id=BASE
    )
    assert payer.status(created)[0] == "pending"
