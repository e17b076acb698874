"""Options of a payer: how many, which one counts, and what its action is worth."""

from __future__ import annotations

import pytest

from payments_core.clock import SECOND
from payments_core.errors import (
    AccountSuspended,
    ActionExpired,
    ActionInvalid,
    CapabilityNotActive,
    DependencyFailed,
    InvalidState,
    NotFound,
    OptionLocked,
    OptionSuperseded,
    PaymentOptionLimitReached,
    Unauthorized,
    UnsupportedAsset,
    UnsupportedChain,
)
from payments_core.payments.destinations import ToWallet
from tests.service.world import BASE, World, atomic


def test_a_new_option_is_selected_and_offers_one_action(world: World) -> None:
    payment = world.payment("25.00")
    option = world.option(payment).option
    assert (option.status, option.selection_status) == ("pending", "selected")
    assert option.required_atomic == atomic("25")
    assert option.vault_address == world.vault_address()
    assert option.action_id is not None
    assert option.action_expires_at_ms == world.clock.now() + 300 * SECOND
    assert option.expires_at_ms == payment.payment.expires_at_ms
    assert world.paid(payment.payment.id).selected_option_id == option.id
    assert world.paid(payment.payment.id).status_version == 1
    assert world.event_names(payment.payment.id) == {"payment.created": 1}


def test_an_action_never_outlives_its_payment(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    world.system.advance(100)
    option = world.option(payment).option
    assert option.action_expires_at_ms == payment.payment.expires_at_ms
    world.system.advance(100)
    refreshed = world.service.acting_as(world.client).options.refresh(payment.payment.id, option.id)
    assert refreshed.option.action_expires_at_ms == payment.payment.expires_at_ms


def test_ten_options_and_no_more(world: World) -> None:
    payment = world.payment()
    for _ in range(10):
        last = world.option(payment)
    with pytest.raises(PaymentOptionLimitReached) as caught:
        world.option(payment)
    assert caught.value.limit == 10
    world.authorize(last)
    assert len(world.paid(payment.payment.id).option_ids) == 10


def test_the_option_before_is_superseded(world: World) -> None:
    payment = world.payment()
    first, second = world.option(payment), world.option(payment)
    before = world.option_now(first)
    assert (before.status, before.selection_status) == ("pending", "superseded")
    assert before.action_id is None
    assert world.operation_now(first).status == "cancelled"
    assert world.operation_now(first).status_version == 2
    with pytest.raises(OptionSuperseded) as caught:
        world.authorize(first)
    assert caught.value.option_id == first.option.id
    with pytest.raises(OptionSuperseded):
        world.service.acting_as(world.client).options.refresh(payment.payment.id, first.option.id)
    world.authorize(second)


def test_an_authorization_under_way_locks_the_selection(world: World) -> None:
    option = world.authorized()
    with pytest.raises(OptionLocked) as caught:
        world.service.acting_as(world.client).options.create(option.payment.id)
    assert caught.value.option_id == option.option.id
    world.run()
    with pytest.raises(OptionLocked):
        world.service.acting_as(world.client).options.create(option.payment.id)
    world.finish()
    with pytest.raises(InvalidState):
        world.service.acting_as(world.client).options.create(option.payment.id)


def test_a_refresh_voids_the_action_before(world: World) -> None:
    payment = world.payment()
    old = world.option(payment)
    world.system.advance(10)
    new = world.service.acting_as(world.client).options.refresh(payment.payment.id, old.option.id)
    assert new.option.action_id != old.option.action_id
    assert new.option.action_expires_at_ms == world.clock.now() + 300 * SECOND
    with pytest.raises(ActionInvalid):
        world.authorize(old)
    world.authorize(new)
    with pytest.raises(InvalidState):
        world.service.acting_as(world.client).options.refresh(payment.payment.id, old.option.id)


@pytest.mark.parametrize("came", [("0.000001",), ("10.00",), ("10.00", "14.999999")])
@pytest.mark.parametrize("opened_after", [0, 1])
def test_a_refresh_asks_for_what_remains_by_then(
    world: World, came: tuple[str, ...], opened_after: int
) -> None:
    """What strangers pay meanwhile does not leave the vault too, whenever the option began."""
    payment = world.payment("25.00")
    option = None
    for number, part in enumerate((*came, None)):
        if number == opened_after:
            option = world.option(payment)
        if part is not None:
            world.pay(payment, part)
            world.finish()
    assert option is not None
    remaining = atomic("25") - sum(atomic(part) for part in came)
    refreshed = world.service.acting_as(world.client).options.refresh(
        payment.payment.id, option.option.id
    )
    assert refreshed.option.required_atomic == remaining
    assert (
        refreshed.operation.amount_atomic == remaining == world.operation_now(option).amount_atomic
    )
    world.authorize(refreshed)
    assert world.held()[1] == remaining
    world.finish()
    paid = world.paid(payment.payment.id)
    assert (paid.status, paid.received_atomic, paid.excess_atomic) == ("succeeded", atomic("25"), 0)
    assert paid.labels == ("underpaid",)
    assert world.held() == (atomic("100") - remaining, 0, atomic("100") - remaining)


def test_an_action_that_was_not_used_in_time_needs_a_refresh(world: World) -> None:
    payment = world.payment()
    option = world.option(payment)
    world.system.advance(299)
    new = world.option(payment)
    world.system.advance(300)
    with pytest.raises(ActionExpired) as caught:
        world.authorize(new)
    assert caught.value.expired_at == new.option.action_expires_at_ms
    refreshed = world.service.acting_as(world.client).options.refresh(
        payment.payment.id, new.option.id
    )
    world.authorize(refreshed)
    assert option.option.id != new.option.id


def test_the_last_moment_of_an_action_still_counts(world: World) -> None:
    option = world.option(world.payment())
    world.system.advance(299.999)
    world.authorize(option)


def test_another_accounts_option_does_not_exist(world: World) -> None:
    payment = world.payment()
    option = world.option(payment)
    stranger = world.client_of(world.account("stranger"))
    with pytest.raises(NotFound):
        world.service.acting_as(stranger).options.read(payment.payment.id, option.option.id)
    with pytest.raises(NotFound):
        world.service.acting_as(stranger).options.refresh(payment.payment.id, option.option.id)
    with pytest.raises(NotFound):
        world.authorize(option, stranger)
    assert world.service.acting_as(stranger).options.list(payment.payment.id) == ()
    with pytest.raises(NotFound):
        world.service.acting_as(world.client).options.read(payment.payment.id, "pay_option_none")
    other = world.payment()
    with pytest.raises(NotFound):
        world.service.acting_as(world.client).options.read(other.payment.id, option.option.id)
    with pytest.raises(NotFound):
        world.service.acting_as(world.client).options.authorize(
            other.payment.id, option.option.id, action_id="x"
        )
    with pytest.raises(NotFound):
        world.service.acting_as(world.client).options.create("payment_none")
    with pytest.raises(NotFound):
        world.service.acting_as(world.client).options.list("payment_none")


def test_another_payer_may_take_over_the_selection(world: World) -> None:
    payment = world.payment("10.00")
    mine = world.option(payment)
    other = world.account("other")
    world.fund("10.00", other)
    client = world.client_of(other)
    theirs = world.option(payment, client)
    with pytest.raises(OptionSuperseded):
        world.authorize(mine)
    world.authorize(theirs, client)
    world.finish()
    assert world.paid(payment.payment.id).status == "succeeded"
    assert world.held(other) == (0, 0, 0)
    assert world.held() == (atomic("100"), 0, atomic("100"))
    [shown] = world.service.acting_as(client).options.list(payment.payment.id)
    assert shown.option.id == theirs.option.id


def test_a_payment_may_forbid_vaults(memory_world: World) -> None:
    payment = memory_world.payment(allowed_methods=("direct",))
    with pytest.raises(CapabilityNotActive):
        memory_world.option(payment)


def test_a_vault_pays_in_the_payments_asset_alone(memory_world: World) -> None:
    payment = memory_world.payment().payment
    with pytest.raises(UnsupportedChain) as caught:
        memory_world.service.acting_as(memory_world.client).options.create(payment.id, chain_id=1)
    assert caught.value.message == "Chain 1 is not the Payment's chain, which is 8453."
    with pytest.raises(UnsupportedAsset):
        memory_world.service.acting_as(memory_world.client).options.create(
            payment.id, asset_symbol="USDT"
        )
    assert memory_world.service.acting_as(memory_world.client).options.create(
        payment.id, chain_id=BASE, asset_symbol="USDC"
    )


def test_a_suspended_payer_gets_no_option(world: World) -> None:
    payment = world.payment()
    world.resources.accounts.change(world.payer.id, status="suspended")
    with pytest.raises(AccountSuspended):
        world.option(payment)
    world.resources.accounts.change(world.payer.id, status="active")
    world.option(payment)


def test_a_server_key_is_not_a_payer(memory_world: World) -> None:
    payment = memory_world.payment()
    with pytest.raises(Unauthorized):
        memory_world.resources.options.create(payment.payment.id)


def test_an_account_without_a_vault_on_the_chain_cannot_offer_one(memory_world: World) -> None:
    chains = dict(memory_world.service.chains)
    narrow = memory_world.restarted(chains={BASE: chains[BASE]})
    account = memory_world.account("before")
    memory_world.service, wide = narrow, memory_world.service
    late = memory_world.account("late")
    memory_world.service = wide
    wallet = ToWallet(address=memory_world.vault_address(account))
    payment = memory_world.payment(destination=wallet, chain_id=1)
    client = memory_world.client_of(late)
    with pytest.raises(UnsupportedChain):
        memory_world.option(payment, client)
    assert memory_world.option(payment, memory_world.client_of(account))


def test_a_chain_that_is_served_no_longer_hides_no_other_balance(memory_world: World) -> None:
    payment = memory_world.payment("1.00", chain_id=1)
    option = memory_world.option(payment)
    memory_world.service = memory_world.restarted(chains={BASE: memory_world.chain})
    assert memory_world.held() == (atomic("100"), 0, atomic("100"))
    with pytest.raises(DependencyFailed):
        memory_world.authorize(option)
