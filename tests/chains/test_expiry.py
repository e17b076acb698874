"""A Payment whose node is away when its time ends, on the simulated chain and on a real node."""

from __future__ import annotations

import logging

import pytest

from tests.chains.scenes import Scene

UNREAD = "ALARM: chain 8453 was not scanned"


@pytest.fixture
def is_cabled() -> bool:
    return True


def test_while_the_node_is_away_the_payment_waits_and_an_alarm_names_the_chain(
    world: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    payment = world.payment("25.00", expires_in_s=300)
    world.advance(200)
    world.spend("25.00", str(payment.payment.escrow_address))
    world.cut()
    with caplog.at_level(logging.ERROR, "payments_core.payments.expiry"):
        world.advance(100 + 14 * 60)
        assert UNREAD not in caplog.text
        world.advance(7 * 60)
        assert caplog.text.count(UNREAD) == 1  # it is repeated each quarter of an hour
        world.advance(15 * 60)
        assert caplog.text.count(UNREAD) == 2
    assert world.paid(payment.payment.id).status == "awaiting_payment"
    assert world.event_names(payment.payment.id) == {"payment.created": 1}
    world.mend()
    world.finish()
    world.advance(600)
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels) == ("succeeded", ())
    assert world.event_names(payment.payment.id)["payment.expired"] == 0
