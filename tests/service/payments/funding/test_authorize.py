"""Authorizing: what refuses it, in which order, and what a retry of it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core.chains.port import Chain, FinalBalances
from payments_core.clock import DAY
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    AccountSuspended,
    ActionAlreadyUsed,
    ActionExpired,
    ActionInvalid,
    DependencyFailed,
    IdempotencyConflict,
    InsufficientBalance,
    InvalidState,
    NotFound,
    OptionSuperseded,
    PaymentExpired,
    PaymentsError,
    PolicyInactive,
)
from payments_core.payments.details import OptionDetails
from tests.service.faults import FaultyChain, chain_away
from tests.service.world import BASE, World, answer_of, atomic, once


def away(world: World) -> FaultyChain:
    """Cut the service off from the chain, until the chain is healed."""
    chain: Chain = world.chain
    faulty = FaultyChain(chain, 1, chain_away, until=10**9)
    world.service = world.restarted(chains={BASE: faulty})
    return faulty


def broken(world: World) -> tuple[OptionDetails, list[tuple[type[PaymentsError], Any]]]:
    """An option that everything is wrong with, and how each thing is mended, in order."""
    world.chain  # noqa: B018  taken before the service is cut off
    payment = world.payment("500.00", expires_in_s=86_400)
    option = world.option(payment)
    world.option(payment)
    world.resources.accounts.change(world.payer.id, status="suspended")
    world.pause_policy()
    chain = away(world)
    current: dict[str, OptionDetails] = {}

    def take_selected() -> OptionDetails:
        selected = world.paid(payment.payment.id).selected_option_id
        found = world.service.acting_as(world.client).options.read(
            payment.payment.id, str(selected)
        )
        world.system.advance(301)
        current["expired"] = found
        return attrs.evolve(found, option=attrs.evolve(found.option, action_id="wrong"))

    def refreshed() -> OptionDetails:
        return world.service.acting_as(world.client).options.refresh(
            payment.payment.id, current["expired"].option.id
        )

    def reactivate() -> None:
        world.resources.accounts.change(world.payer.id, status="active")

    steps = [
        (AccountSuspended, reactivate),
        (OptionSuperseded, take_selected),
        (ActionInvalid, lambda: current["expired"]),
        (ActionExpired, refreshed),
        (PolicyInactive, lambda: world.pause_policy("active")),
        (DependencyFailed, chain.heal),
        (InsufficientBalance, lambda: world.fund("400.00")),
    ]
    return option, steps


def test_the_first_thing_that_is_wrong_is_reported(world: World) -> None:
    option, steps = broken(world)
    for error, mend in steps:
        with pytest.raises(PaymentsError) as caught:
            world.authorize(option)
        assert type(caught.value) is error
        mended = mend()
        option = mended if isinstance(mended, OptionDetails) else option
    authorized = world.authorize(option)
    assert authorized.operation.status == "authorized"
    assert authorized.operation.policy_version == 3
    assert world.event_names(option.payment.id) == {
        "payment.created": 1,
        "payment.processing": 1,
        "vault_funding.authorized": 1,
    }


def test_the_payment_is_looked_at_before_its_option(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    superseded = world.option(payment)
    world.option(payment)
    world.system.advance(300)
    with pytest.raises(PaymentExpired):
        world.authorize(superseded)
    cancelled = world.payment()
    superseded = world.option(cancelled)
    world.option(cancelled)
    world.resources.payments.cancel(cancelled.payment.id)
    with pytest.raises(InvalidState):
        world.authorize(superseded)
    with pytest.raises(NotFound):
        world.service.acting_as(world.client).options.authorize(
            "payment_none", superseded.option.id, action_id="a"
        )


def test_what_is_refused_changes_nothing(world: World) -> None:
    option = world.option(world.payment("100.01"))
    before = (world.paid(option.payment.id), world.option_now(option), world.operation_now(option))
    with pytest.raises(InsufficientBalance) as caught:
        world.authorize(option)
    assert caught.value.available_atomic == atomic("100")
    assert caught.value.required_atomic == atomic("100.01")
    after = (world.paid(option.payment.id), world.option_now(option), world.operation_now(option))
    assert after == before
    assert world.held() == (atomic("100"), 0, atomic("100"))


def test_a_vault_that_never_held_anything_has_an_insufficient_balance(world: World) -> None:
    payment = world.payment("1.00", chain_id=10)  # a chain on which nothing has happened yet
    option = world.option(payment)
    with pytest.raises(InsufficientBalance) as caught:
        world.authorize(option)
    assert caught.value.available_atomic == 0


def test_the_whole_balance_can_be_spent_and_not_a_unit_more(world: World) -> None:
    first = world.option(world.payment("99.999999"))
    second = world.option(world.payment("0.000001"))
    third = world.option(world.payment("0.000001"))
    world.authorize(first)
    world.authorize(second)
    with pytest.raises(InsufficientBalance):
        world.authorize(third)
    world.finish()
    assert world.held() == (0, 0, 0)
    with pytest.raises(InsufficientBalance):
        world.authorize(world.service.acting_as(world.client).options.refresh(
            third.payment.id, third.option.id
        ))  # fmt: skip


def test_an_answer_of_the_chain_that_was_overtaken_reserves_nothing(world: World) -> None:
    """The chain is asked; a transfer becomes final and its reservation ends; then we commit."""
    world.authorized("70.00")
    option = world.option(world.payment("60.00"))

    def overtaken(call: Callable[[], Any]) -> Any:
        answer = call()
        world.finish()
        return answer

    chain = FaultyChain(world.chain, 1, overtaken)
    service = world.restarted(chains={BASE: chain})
    with pytest.raises(InsufficientBalance) as caught:
        service.acting_as(world.client).options.authorize(
            option.payment.id,
            option.option.id,
            action_id=str(option.option.action_id),
        )
    assert caught.value.available_atomic == atomic("30")
    assert world.held() == (atomic("30"), 0, atomic("30"))


def test_a_chain_that_is_always_overtaken_is_a_dependency_that_failed(world: World) -> None:
    world.authorized("70.00")
    option = world.option(world.payment("20.00"))

    def stuck(call: Callable[[], Any]) -> Any:
        answer = call()
        return attrs.evolve(answer, height=0) if isinstance(answer, FinalBalances) else answer

    world.finish()
    chain = FaultyChain(world.chain, 1, stuck, until=10**9)
    service = world.restarted(chains={BASE: chain})
    with pytest.raises(DependencyFailed):
        service.acting_as(world.client).options.authorize(
            option.payment.id,
            option.option.id,
            action_id=str(option.option.action_id),
        )
    assert world.operation_now(option).status == "awaiting_authorization"


def test_metadata_is_kept_with_the_operation(world: World) -> None:
    option = world.option(world.payment())
    metadata = {"order": "7", "lines": [{"sku": "a", "n": 2}], "none": None}
    world.authorize(option, metadata=metadata)
    assert world.operation_now(option).metadata == metadata


def test_a_retry_finds_its_answer_whatever_has_happened_since(world: World) -> None:
    option = world.option(world.payment())
    world.authorize(option, idempotency_key=once("a"))
    stored = answer_of(lambda: world.authorize(option, idempotency_key=once("a")))
    assert stored is not None
    world.finish()
    world.resources.accounts.change(world.payer.id, status="suspended")
    world.pause_policy()
    assert answer_of(lambda: world.authorize(option, idempotency_key=once("a"))) == stored
    world.system.advance(29 * DAY // 1_000)
    assert answer_of(lambda: world.authorize(option, idempotency_key=once("a"))) == stored
    assert world.sent() == 2


def test_a_key_serves_one_request(world: World) -> None:
    option = world.option(world.payment())
    world.authorize(option, idempotency_key=once("a"))
    other = world.option(world.payment())
    with pytest.raises(IdempotencyConflict):
        world.authorize(other, idempotency_key=once("a", "another"))
    with pytest.raises(IdempotencyConflict):
        world.authorize(option, idempotency_key=once("a", "another"))
    assert world.operation_now(other).status == "awaiting_authorization"
    assert world.held()[1] == atomic("25")


def test_a_failure_stores_nothing_so_that_the_key_may_try_again(world: World) -> None:
    option = world.option(world.payment("150.00"))
    for _ in range(2):
        with pytest.raises(InsufficientBalance):
            world.authorize(option, idempotency_key=once("a"))
    world.fund("50.00")
    assert answer_of(lambda: world.authorize(option, idempotency_key=once("a"))) is None
    assert world.operation_now(option).status == "authorized"


def test_a_stored_answer_expires_and_its_key_serves_again(world: World) -> None:
    server = world.server
    from payments_core.payments.destinations import ToAccount
    from payments_core.payments.operations import NewPayment

    new = NewPayment(amount="1", destination=ToAccount(account_id=world.merchant.id))
    first = world.service.acting_as(server).payments.receive(
        new, idempotency_key=once("c", "first")
    )
    world.system.advance(30 * DAY // 1_000 - 1)
    with pytest.raises(AlreadyResponded):
        world.service.acting_as(server).payments.receive(new, idempotency_key=once("c", "first"))
    world.system.advance(1)
    second = world.service.acting_as(server).payments.receive(
        new, idempotency_key=once("c", "second")
    )
    assert second.payment.id != first.payment.id
    with pytest.raises(AlreadyResponded):
        world.service.acting_as(server).payments.receive(new, idempotency_key=once("c", "second"))
    with pytest.raises(IdempotencyConflict):
        world.service.acting_as(server).payments.receive(new, idempotency_key=once("c", "first"))


def test_the_stored_answer_is_sealed(world: World) -> None:
    from payments_core.engine.idempotency.record import StoredResponse

    payment = world.payment()
    option = world.option(payment)
    world.authorize(option, idempotency_key=once("a"))
    stored = world.get(StoredResponse, "a")
    assert "OptionDetails" not in stored.sealed_body
    assert option.option.id not in stored.sealed_body


def test_an_action_is_used_up_for_ever(world: World) -> None:
    option = world.option(world.payment())
    world.authorize(option)
    for _ in range(2):
        with pytest.raises(ActionAlreadyUsed):
            world.authorize(option)
        with pytest.raises(ActionInvalid):
            world.authorize(option, action_id="made-up")
        world.finish()
