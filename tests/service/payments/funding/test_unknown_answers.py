"""A chain whose answer is lost: it is asked first, and never sent another transaction."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.errors import InvalidState
from payments_core.payments.details import OptionDetails
from payments_core.payments.tracking.jobs import LOST_AFTER_FAILURES
from tests.service.world import World, atomic


def funding_told(world: World, option: OptionDetails) -> list[tuple[str, int]]:
    """The events of the operation, by its versions."""
    events = world.events(option.payment.id)
    reported = [event for event in events if event.name.startswith("vault_funding.")]
    reported.sort(key=lambda event: event.payload["statusVersion"])
    return [(event.name.partition(".")[2], event.payload["statusVersion"]) for event in reported]


def paid_once(world: World, option: OptionDetails) -> None:
    done = world.paid(option.payment.id)
    assert (done.status, done.received_atomic, done.excess_atomic) == ("succeeded", atomic("25"), 0)
    assert world.operation_now(option).status == "confirmed"
    assert world.sent() == 2  # the transfer and the release
    assert world.held() == (atomic("75"), 0, atomic("75"))


def test_an_answer_that_is_lost_leaves_it_unknown_until_the_chain_was_asked(world: World) -> None:
    option = world.authorized("25.00")
    world.fail("lost_answer")
    world.run()
    unknown = world.operation_now(option)
    assert (unknown.status, unknown.status_version) == ("unknown", 3)
    assert world.held() == (atomic("100"), atomic("25"), atomic("75"))
    assert world.paid(option.payment.id).status == "processing"
    assert world.option_now(option).status == "processing"
    world.advance(1)
    known = world.operation_now(option)
    assert (known.status, known.status_version) == ("broadcast", 4)
    assert world.sent() == 1
    world.finish()
    paid_once(world, option)
    assert funding_told(world, option) == [("authorized", 2), ("broadcast", 4), ("confirmed", 5)]


def test_what_never_arrived_is_authorized_again_and_the_same_bytes_are_sent(world: World) -> None:
    option = world.authorized("25.00")
    world.fail("broadcast")
    world.run()
    assert world.operation_now(option).status == "unknown"
    assert world.sent() == 0
    world.finish()
    paid_once(world, option)
    assert world.operation_now(option).status_version == 6
    assert funding_told(world, option) == [("authorized", 2), ("broadcast", 5), ("confirmed", 6)]


@pytest.mark.parametrize(
    "failures",
    [("broadcast", "lost_answer"), ("broadcast", "transaction"), ("lost_answer", "transaction")],
)
def test_one_loss_after_the_other_sends_it_once(world: World, failures: Sequence[str]) -> None:
    option = world.authorized("25.00")
    for operation in failures:
        world.fail(operation, times=2)
    world.finish()
    paid_once(world, option)


def test_a_transfer_nobody_knows_about_is_unknown_and_stays_reserved(world: World) -> None:
    option = world.authorized("25.00")
    world.leave_scans_to_others()
    world.run()
    assert world.operation_now(option).status == "broadcast"
    world.fail("heads", times=LOST_AFTER_FAILURES + 2)
    world.advance_until(lambda: world.operation_now(option).status == "unknown", 1, most=20)
    assert world.operation_now(option).status_version == 4
    assert world.balance_now().reserved_atomic == atomic("25")
    world.finish()
    paid_once(world, option)


def test_nothing_unknown_can_be_cancelled_or_expires(world: World) -> None:
    option = world.authorized("25.00", expires_in_s=300)
    world.fail("lost_answer")
    world.run()
    before = world.operation_now(option)
    assert before.status == "unknown"
    with pytest.raises(InvalidState):
        world.resources.payments.cancel(option.payment.id)
    assert world.operation_now(option) == before
    world.system.advance(301)
    world.finish()
    paid_once(world, option)
    assert world.event_names(option.payment.id)["payment.expired"] == 0


def test_a_transfer_that_reverted_while_its_answer_was_lost_fails(world: World) -> None:
    option = world.authorized("25.00")
    world.fail("transfer")
    world.fail("lost_answer")
    world.run()
    # a weak storage may give the next look early, which finds what was broadcast
    assert world.operation_now(option).status in ("unknown", "broadcast")
    world.finish()
    operation = world.operation_now(option)
    assert (operation.status, operation.failure) == ("failed", "transaction_failed")
    assert world.paid(option.payment.id).status == "awaiting_payment"
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert funding_told(world, option)[-1][0] == "failed"


def test_what_was_signed_outlives_the_expiry_while_the_chain_refuses_it(world: World) -> None:
    payment = world.payment("25.00", expires_in_s=300)
    world.advance(298)
    option = world.authorize(world.option(payment))
    world.fail("broadcast", times=6)
    world.advance(3)
    assert world.clock.now() > payment.payment.expires_at_ms
    assert world.operation_now(option).status in ("authorized", "unknown")
    assert world.paid(option.payment.id).status == "processing"
    assert world.held()[1] == atomic("25")
    world.advance(600)
    paid_once(world, option)
