"""Two workers whose clocks disagree: none of them loses a Payment's expiry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pytest

from payments_core import background_jobs
from payments_core.chains.port import TransactionView
from payments_core.clock import MINUTE, SECOND, Clock, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.service import PaymentsService
from tests.service.faults import FaultyChain
from tests.service.world import BASE, RING, NoTransport, World

AHEAD_S = 50
"""Less than a lease here: what one worker runs, the other leaves alone."""


@pytest.fixture(autouse=True)
def _leases_outlast_the_skew(monkeypatch: pytest.MonkeyPatch) -> None:
    longer = tuple(attrs.evolve(queue, lease_ms=MINUTE) for queue in background_jobs.QUEUES)
    monkeypatch.setattr(background_jobs, "QUEUES", longer)


class Ahead:
    """A machine whose clock runs ahead of the others'."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> Instant:
        return self._clock.now() + AHEAD_S * SECOND

    def real_now(self) -> Instant:
        return self.now()


class Meanwhile(FaultyChain):
    """A node that is slow to show a transaction: a worker with a fast clock works meanwhile."""

    def __init__(self, world: World) -> None:
        super().__init__(world.chain, 0, lambda call: call())
        self.fast = PaymentsService(
            world.storage,
            KeyRing.parse(RING),
            sandbox_chains=dict(world.service.chains),
            clock=Ahead(world.clock),
            transport=NoTransport(),
        )
        self.ran = 0

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: self.transaction(hash) for hash in hashes}

    def transaction(self, hash: str) -> TransactionView | None:
        self.ran += self.fast.worker("sandbox").run_until_idle()
        return super().transaction(hash)


def test_a_payment_whose_attempt_ends_under_a_slower_clock_still_expires(
    memory_world: World,
) -> None:
    world = memory_world
    payment = world.payment(expires_in_s=300)
    id, expires_at = payment.payment.id, payment.payment.expires_at_ms
    world.advance(265)
    option = world.authorize(world.option(payment))
    world.drain()
    slow = Meanwhile(world)
    world.service = world.restarted(chains={BASE: slow})
    assert (
        slow.fast.parts.ports.clock.now() > expires_at
    )  # the time is over to one and not to the other
    while world.operation_now(option).status != "failed":
        assert world.paid(id).status == "processing"
        world.advance(1)
    assert world.clock.now() < expires_at
    assert slow.ran  # the expiry, while the attempt was still alive
    assert world.paid(id).status == "awaiting_payment"
    world.advance(120)
    assert world.paid(id).status == "expired"
    assert world.event_names(id)["payment.expired"] == 1


def test_a_live_attempt_keeps_the_expiry_waiting_and_its_success_ends_it(
    memory_world: World,
) -> None:
    world = memory_world
    payment = world.payment(expires_in_s=300)
    world.advance(299)
    option = world.authorize(world.option(payment))
    away = FaultyChain(world.chain, 0, lambda call: call())
    world.service = world.restarted(chains={BASE: away})
    world.advance(1)
    due = world.storage.next_due("sandbox.timers")
    assert due is not None
    assert due <= world.clock.now() + 30 * SECOND  # it is still there, and does not spin
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    # What is left of the timers is the hourly purge.
    assert (world.storage.next_due("sandbox.timers") or 0) > world.clock.now() + 60 * SECOND
