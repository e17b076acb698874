"""Expiry concludes from what the chain shows, and not from the clock alone (contract §6)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_core.clock import HOUR, SECOND
from payments_core.errors import PaymentExpired
from payments_core.payments.details import PaymentDetails
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.world import World, atomic

EXPIRES_S = 300
DAY_S = 86_400


def move_to(world: World, instant: int) -> None:
    """Move the clock alone: the service does not run meanwhile."""
    world.system.advance((instant - world.clock.now()) / SECOND)
    assert world.clock.now() == instant


def settle(world: World) -> None:
    """Let the service read the chain, and do what falls due."""
    world.service.parts.scanner("sandbox").wake(8453)
    world.run()
    world.advance(60)


def begun(world: World) -> PaymentDetails:
    """A Payment, on a chain that is scanned."""
    world.run()
    return world.payment(expires_in_s=EXPIRES_S)


def outcome(world: World, payment: PaymentDetails) -> tuple[str, tuple[str, ...]]:
    found = world.paid(payment.payment.id)
    return found.status, found.labels


@pytest.mark.parametrize("away_s", [600, 3_600, 25 * 3_600, 40 * DAY_S])
def test_what_came_in_time_counts_however_late_the_service_looks(world: World, away_s: int) -> None:
    payment = begun(world)
    move_to(world, payment.payment.expires_at_ms - 60 * SECOND)
    world.pay(payment, "25.00")
    move_to(world, payment.payment.expires_at_ms + away_s * SECOND)
    settle(world)
    assert outcome(world, payment) == ("succeeded", ())
    assert world.event_names(payment.payment.id)["payment.expired"] == 0


def test_a_part_that_came_in_time_is_short_and_not_late(world: World) -> None:
    payment = begun(world)
    move_to(world, payment.payment.expires_at_ms - 1)
    world.pay(payment, "10.00")
    move_to(world, payment.payment.expires_at_ms + HOUR)
    settle(world)
    assert outcome(world, payment) == ("action_required", ("underpaid",))


@pytest.mark.parametrize(
    ("offset_ms", "wanted"),
    [
        (-1, ("succeeded", ())),
        (0, ("succeeded", ())),
        (1, ("action_required", ("late",))),
    ],
)
@pytest.mark.parametrize("looks_after_s", [0, 2, 3_600, 3 * DAY_S])
def test_the_time_of_the_block_decides_whether_a_payment_is_late(
    memory_world: World, offset_ms: int, wanted: tuple[str, tuple[str, ...]], looks_after_s: int
) -> None:
    world = memory_world
    payment = begun(world)
    move_to(world, payment.payment.expires_at_ms + offset_ms)
    world.pay(payment, "25.00")
    world.system.advance(looks_after_s)
    settle(world)
    assert outcome(world, payment) == wanted


@pytest.mark.parametrize(
    ("offset_ms", "status"), [(-1, "action_required"), (0, "expired"), (1, "expired")]
)
@pytest.mark.parametrize("looks_after_s", [0, 3 * DAY_S])
def test_the_time_of_the_block_decides_whether_it_is_within_the_window(
    memory_world: World, offset_ms: int, status: str, looks_after_s: int
) -> None:
    world = memory_world
    payment = begun(world)
    world.advance(EXPIRES_S + 10)
    move_to(world, payment.payment.monitoring_expires_at_ms + offset_ms)
    world.pay(payment, "25.00")
    world.system.advance(looks_after_s)
    settle(world)
    assert outcome(world, payment) == (status, ("late",))


def test_nobody_can_begin_to_pay_while_the_chain_is_awaited(world: World) -> None:
    payment = begun(world)
    option = world.option(payment)
    move_to(world, payment.payment.expires_at_ms)
    for attempt in (lambda: world.option(payment), lambda: world.authorize(option)):
        with pytest.raises(PaymentExpired):
            attempt()
    assert outcome(world, payment) == ("awaiting_payment", ())
    settle(world)
    assert outcome(world, payment) == ("expired", ())


def test_what_comes_late_is_late_even_if_it_is_seen_before_the_expiry(world: World) -> None:
    payment = begun(world)
    world.advance(EXPIRES_S)
    world.system.advance(0.001)
    world.pay(payment, "25.00")
    world.service.parts.scanner("sandbox").wake(8453)
    world.run()
    assert outcome(world, payment)[0] == "awaiting_payment"  # and not `processing`
    world.advance(30)
    assert outcome(world, payment) == ("action_required", ("late",))
    names = world.event_names(payment.payment.id)
    assert (names["payment.expired"], names["payment.processing"]) == (1, 0)


def test_dust_that_keeps_coming_does_not_postpone_the_expiry(memory_world: World) -> None:
    world = memory_world
    payment = begun(world)
    world.advance(EXPIRES_S - 2)
    for _ in range(20):
        world.pay(payment, "0.01")
        world.advance(1)
    assert world.event_names(payment.payment.id)["payment.action_required"] == 1
    found = world.paid(payment.payment.id)
    assert (found.status, found.labels[0]) == ("action_required", "underpaid")


def test_a_reorg_that_moves_a_payment_behind_its_time_makes_it_late(world: World) -> None:
    payment = begun(world)
    world.advance(EXPIRES_S - 1)
    world.pay(payment, "25.00")
    world.run()
    world.system.advance(2)
    world.reorg(4, reinclude=True)
    settle(world)
    assert outcome(world, payment) == ("action_required", ("late",))
    assert world.paid(payment.payment.id).received_atomic == atomic("25")


@given(
    paid_ms=st.sampled_from(
        [-200_000, -1, 0, 1, 3_000, 60_000, DAY_S * SECOND - 1, DAY_S * SECOND, 25 * HOUR]
    ),
    looks_ms=st.integers(0, 40 * HOUR),
    amount=st.sampled_from(["10.00", "25.00", "30.00"]),
)
@settings(max_examples=15, deadline=None)
def test_when_we_look_changes_nothing(paid_ms: int, looks_ms: int, amount: str) -> None:
    """A service that was away comes to the same end as one that looks all the time."""
    ends = []
    for runs in (True, False):
        world = World(MemoryStorage()).open()
        payment = begun(world)
        paid_at = payment.payment.expires_at_ms + paid_ms
        if runs:
            world.service.worker("sandbox").run_through(paid_at, world._move)
        else:
            move_to(world, paid_at)
        world.pay(payment, amount)
        if runs:
            world.advance(60)
        else:
            world.system.advance(looks_ms / SECOND)
        settle(world)
        world.advance(EXPIRES_S + 10)
        ends.append(outcome(world, payment))
    assert ends[0] == ends[1]
