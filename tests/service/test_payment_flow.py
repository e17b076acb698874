"""One Payment from its creation to `succeeded`, with everything in step."""

from __future__ import annotations

from tests.service.world import World, atomic


def test_a_payment_goes_from_creation_to_succeeded(world: World) -> None:
    payment = world.payment("25.00")
    option = world.option(payment)
    world.authorize(option)
    world.finish()
    done = world.paid(payment.payment.id)
    assert done.status == "succeeded"
    assert [entry.status for entry in done.timeline] == [
        "awaiting_payment", "processing", "accepted", "executing", "succeeded",
    ]  # fmt: skip
    assert world.held() == (atomic("75"), 0, atomic("75"))
