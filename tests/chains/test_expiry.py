"""A Payment whose node is away when its time ends."""

from __future__ import annotations

import logging

import pytest

from payments_core.payments.details import PaymentDetails
from tests.chains.scenes import Scene, SimulatedScene

UNREAD = "ALARM: chain 8453 was not scanned"


@pytest.fixture
def is_cabled() -> bool:
    return True


def paid_before_the_node_went(world: Scene) -> PaymentDetails:
    """A Payment of five minutes that is paid in time, and whose node is then away."""
    payment = world.payment("25.00", expires_in_s=300)
    world.advance(200)
    world.spend("25.00", str(payment.payment.escrow_address))
    world.cut()
    return payment


def test_what_came_in_time_counts_when_the_node_is_back(world: Scene) -> None:
    payment = paid_before_the_node_went(world)
    world.advance(200)
    assert world.paid(payment.payment.id).status == "awaiting_payment"
    assert world.event_names(payment.payment.id) == {"payment.created": 1}
    world.mend()
    world.finish()
    world.advance(60)
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels) == ("succeeded", ())
    assert world.event_names(payment.payment.id)["payment.expired"] == 0


def test_an_alarm_names_a_chain_that_is_not_read_each_quarter_of_an_hour(
    simulated_world: SimulatedScene, caplog: pytest.LogCaptureFixture
) -> None:
    world = simulated_world
    paid_before_the_node_went(world)
    with caplog.at_level(logging.ERROR, "payments_core.payments.expiry"):
        for seconds, alarms in ((100 + 14 * 60, 0), (7 * 60, 1), (15 * 60, 2)):
            world.advance(seconds)
            assert caplog.text.count(UNREAD) == alarms
    world.mend()
    world.finish()
