"""What a machine whose clock was hours ahead has written does not stand still when it is right."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from payments_core.clock import HOUR, MINUTE, SECOND, Clock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.payments.destinations import ToWallet
from payments_core.payments.sends import NewSend
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from tests.service.world import RING, WALLET, NoTransport, World

JUMP_S = 3 * 3_600


class Ahead:
    """A machine whose clock is ahead of the others'."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> Instant:
        return self._clock.now() + JUMP_S * SECOND

    def real_now(self) -> Instant:
        return self.now()


def send(world: World, service: PaymentsService) -> str:
    new = NewSend(amount="25.00", account_id=world.payer.id, destination=ToWallet(address=WALLET))
    return service.acting_as(world.server).payments.send(new).payment.id


def authorize(world: World, service: PaymentsService) -> str:
    payment = world.payment("25.00", expires_in_s=86_400)
    option = service.acting_as(world.client).options.create(payment.payment.id)
    service.acting_as(world.client).options.authorize(
        payment.payment.id, option.option.id, action_id=option.option.action_id
    )
    return payment.payment.id


@pytest.mark.parametrize("begin", [send, authorize])
def test_what_was_begun_goes_on_at_the_next_start(
    light_world: World, begin: Callable[[World, PaymentsService], str]
) -> None:
    """The chains' time is right, as real chains' is."""
    world = light_world
    chains = world.service.chains
    ahead = PaymentsService(
        world.storage,
        KeyRing.parse(RING),
        chains=chains,
        clock=Ahead(world.clock),
        transport=NoTransport(),
    )
    id = begin(world, ahead)
    world.service = world.restarted(chains=chains)
    world.run()
    assert world.paid(id).status in ("executing", "processing")
    world.finish()
    assert world.paid(id).status == "succeeded"


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("begin", [send, authorize])
def test_a_sandbox_continues_where_it_was(
    light_world: World,
    begin: Callable[[World, PaymentsService], str],
    restarted: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its simulated chains would stand still until their newest block's time is reached."""
    caplog.set_level(logging.WARNING)
    world = light_world
    world.run()
    before = world.clock.now()
    world.system.advance(JUMP_S)
    ids = [begin(world, world.service)]
    world.run()
    ids.append(begin(world, world.service))
    world.system.advance(-JUMP_S)
    if restarted:
        world.clock = SandboxClock(world.storage, world.system)
        world.service = world.restarted()
    world.finish()
    assert {world.paid(id).status for id in ids} == {"succeeded"}
    assert before + 3 * HOUR <= world.clock.now() < before + 3 * HOUR + 3 * MINUTE
    assert "this machine's clock was ahead, and the sandbox's time does not go back" in caplog.text


def test_a_sandbox_that_was_never_wrong_is_left(
    light_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    world = light_world
    world.chain.mine(1_000)
    now = world.clock.now()
    world.service = world.restarted()
    world.run()
    assert world.clock.now() == now
    assert caplog.messages == []
