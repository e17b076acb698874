"""Every state of a Vault option, reached as payers reach it, and what its payer can do there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payments_core.errors import (
    ActionAlreadyUsed,
    ActionExpired,
    ActionInvalid,
    InvalidState,
    OptionLocked,
    OptionSuperseded,
    PaymentExpired,
)
from payments_core.payments.details import OptionDetails
from payments_core.payments.options.lifecycle import OPTION
from tests.service.world import World


def pending(world: World) -> OptionDetails:
    return world.option(world.payment())


def processing(world: World) -> OptionDetails:
    return world.authorized()


def succeeded(world: World) -> OptionDetails:
    option = world.authorized()
    world.finish()
    return option


def expired(world: World) -> OptionDetails:
    option = world.option(world.payment(expires_in_s=300))
    world.advance(310)
    return option


def failed(world: World) -> OptionDetails:
    option = world.authorized()
    world.fail("transfer")
    world.finish()
    return option


def cancelled(world: World) -> OptionDetails:
    option = pending(world)
    world.resources.payments.cancel(option.payment.id)
    return option


def superseded(world: World) -> OptionDetails:
    option = pending(world)
    world.option(world.resources.payments.read(option.payment.id))
    return option


Reach = Callable[[World], OptionDetails]
Refused = type[Exception] | None

# How it is reached; status, selection, whether it is over; the operation; what authorizing,
# refreshing and choosing another way answer.
TABLE: dict[
    str, tuple[Reach, tuple[str, str, bool], str, tuple[Refused, Refused, Refused]]
] = {
    "pending": (
        pending, ("pending", "selected", False), "awaiting_authorization",
        (None, None, None),
    ),
    "processing": (
        processing, ("processing", "selected", False), "authorized",
        (ActionAlreadyUsed, InvalidState, OptionLocked),
    ),
    "succeeded": (
        succeeded, ("succeeded", "selected", True), "confirmed",
        (ActionAlreadyUsed, InvalidState, InvalidState),
    ),
    "expired": (
        expired, ("expired", "selected", True), "expired",
        (PaymentExpired, PaymentExpired, PaymentExpired),
    ),
    "failed": (
        failed, ("failed", "selected", True), "failed",
        (ActionAlreadyUsed, InvalidState, None),
    ),
    "cancelled": (
        cancelled, ("cancelled", "selected", True), "cancelled",
        (InvalidState, InvalidState, InvalidState),
    ),
    "superseded": (
        superseded, ("pending", "superseded", False), "cancelled",
        (OptionSuperseded, OptionSuperseded, None),
    ),
}  # fmt: skip


def attempt(call: Callable[[], object], refused: Refused) -> None:
    if refused is None:
        call()
        return
    with pytest.raises(refused):
        call()


@pytest.mark.parametrize("name", TABLE)
def test_the_option_and_its_operation_are_in_step(light_world: World, name: str) -> None:
    reach, (status, selection, is_terminal), operation, _ = TABLE[name]
    option = reach(light_world)
    found = light_world.option_now(option)
    assert (found.status, found.selection_status) == (status, selection)
    assert (found.status in OPTION.terminal) == is_terminal
    assert (found.action_id is not None) == (name == "pending")
    assert light_world.operation_now(option).status == operation


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("act", ["authorize", "refresh", "another"])
def test_what_its_payer_can_do_there(memory_world: World, name: str, act: str) -> None:
    reach, _, _, answers = TABLE[name]
    option = reach(memory_world)
    before = memory_world.option_now(option)
    events = memory_world.event_names()
    service, payment_id = memory_world.service, option.payment.id
    action_id = option.option.action_id or option.option.used_action_ids[0]
    calls = {
        "authorize": (lambda: memory_world.authorize(option, action_id=action_id), answers[0]),
        "refresh": (
            lambda: service.acting_as(memory_world.client).options.refresh(
                payment_id, option.option.id
            ),
            answers[1],
        ),
        "another": (
            lambda: service.acting_as(memory_world.client).options.create(payment_id),
            answers[2],
        ),
    }
    call, refused = calls[act]
    attempt(call, refused)
    if refused is not None:
        assert memory_world.option_now(option) == before
        assert memory_world.event_names() == events


def test_an_action_is_worth_nothing_after_its_time_or_its_refresh(world: World) -> None:
    option = pending(world)
    world.system.advance(300)
    with pytest.raises(ActionExpired):
        world.authorize(option)
    refreshed = world.service.acting_as(world.client).options.refresh(
        option.payment.id, option.option.id
    )
    with pytest.raises(ActionInvalid):
        world.authorize(option)
    assert world.authorize(refreshed).option.status == "processing"


def test_another_option_takes_the_place_of_one_that_failed(world: World) -> None:
    option = failed(world)
    payment = world.resources.payments.read(option.payment.id)
    another = world.authorize(world.option(payment))
    before = world.option_now(option)
    assert (before.status, before.selection_status) == ("failed", "superseded")
    world.finish()
    assert world.option_now(another).status == "succeeded"
    assert world.option_now(option) == before


def test_an_option_stays_processing_while_its_transfer_is_sent_again(world: World) -> None:
    world.chain.mine(60)
    option = world.authorized()
    world.run()
    world.reorg(2)
    world.run()
    assert world.option_now(option).status == "processing"
    world.finish()
    assert world.option_now(option).status == "succeeded"
