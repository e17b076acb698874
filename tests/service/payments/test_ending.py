"""How a Payment ends without its funds: cancelled, expired, or after a transfer that failed."""

from __future__ import annotations

import attrs
import pytest

from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.engine.decision import WorkerAuthority
from payments_core.errors import InvalidState, OptionExpired, PaymentExpired
from payments_core.payments.expiry import POLL_MS, PaymentExpiry, end_expiry, expiry_job_id
from payments_core.payments.record import Payment
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob
from payments_core.storage.records import Record
from tests.service.world import BASE, World, atomic


def statuses(world: World, payment_id: str) -> list[str]:
    return [entry.status for entry in world.paid(payment_id).timeline]


def test_a_waiting_payment_is_cancelled_with_all_its_options(world: World) -> None:
    payment = world.payment()
    first, second = world.option(payment), world.option(payment)
    details = world.resources.payments.cancel(payment.payment.id)
    assert details.payment.status == "cancelled"
    assert world.paid(payment.payment.id).cancelled_at_ms == world.clock.now()
    for option in (first, second):
        assert world.option_now(option).status == "cancelled"
        assert world.option_now(option).action_id is None
        assert world.operation_now(option).status == "cancelled"
    assert world.event_names(payment.payment.id) == {
        "payment.created": 1,
        "payment.cancelled": 1,
    }
    world.advance(3_700)
    assert world.paid(payment.payment.id).status == "cancelled"
    with pytest.raises(InvalidState):
        world.resources.payments.cancel(payment.payment.id)
    with pytest.raises(InvalidState):
        world.option(payment)
    with pytest.raises(InvalidState):
        world.authorize(second)
    with pytest.raises(InvalidState):
        world.service.acting_as(world.client).options.refresh(payment.payment.id, second.option.id)


def test_an_authorization_not_yet_sent_is_withdrawn_and_its_reservation_given_back(
    world: World,
) -> None:
    option = world.authorized()
    world.resources.payments.cancel(option.payment.id)
    assert world.paid(option.payment.id).status == "cancelled"
    assert not world.paid(option.payment.id).is_pending
    assert world.option_now(option).status == "failed"
    assert world.operation_now(option).status == "cancelled"
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert world.get(OutboundTransfer, str(option.operation.outgoing_id)).status == "withdrawn"
    world.finish()
    assert world.sent() == 0
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert world.paid(option.payment.id).status == "cancelled"


def test_once_a_slot_is_reserved_nothing_can_be_cancelled(world: World) -> None:
    option = world.authorized()
    outbox = Outbox(world.service.parts.ports, world.service.chains)
    authority = WorkerAuthority(world.environment_id, "sandbox")
    outbox.ensure_signed(authority, BASE, str(option.operation.outgoing_id))
    for _ in range(2):
        with pytest.raises(InvalidState):
            world.resources.payments.cancel(option.payment.id)
        assert world.paid(option.payment.id).status == "processing"
        assert world.held()[1] == atomic("25")
        world.run()
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"
    with pytest.raises(InvalidState):
        world.resources.payments.cancel(option.payment.id)


def test_a_payment_that_receives_nothing_expires_with_its_options(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    first, second = world.option(payment), world.option(payment)
    world.advance(299)
    assert world.paid(payment.payment.id).status == "awaiting_payment"
    world.advance(10)
    assert statuses(world, payment.payment.id) == ["awaiting_payment", "expired"]
    assert world.option_now(first).status == "expired"
    assert world.operation_now(first).status == "cancelled"  # when it was superseded
    assert world.option_now(second).status == "expired"
    assert world.operation_now(second).status == "expired"
    assert world.event_names(payment.payment.id) == {"payment.created": 1, "payment.expired": 1}
    for call in (
        lambda: world.option(payment),
        lambda: world.authorize(second),
        lambda: world.service.acting_as(world.client).options.refresh(
            payment.payment.id, second.option.id
        ),
    ):
        with pytest.raises(PaymentExpired) as caught:
            call()
        assert caught.value.expired_at == payment.payment.expires_at_ms
    with pytest.raises(InvalidState):
        world.resources.payments.cancel(payment.payment.id)
    assert world.service.acting_as(world.client).options.read(payment.payment.id, first.option.id)


def test_time_refuses_a_payer_even_before_the_worker_comes(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    option = world.option(payment)
    world.system.advance(300)
    with pytest.raises(PaymentExpired):
        world.authorize(option)
    with pytest.raises(PaymentExpired):
        world.option(payment)
    assert world.paid(payment.payment.id).status == "awaiting_payment"


def test_an_early_worker_does_not_lose_the_expiry(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    early: list[ClaimedJob] = []
    while not early:  # by a clock that is ahead of everybody else's
        now = payment.payment.expires_at_ms + 60_000
        early += world.storage.claim(
            "sandbox.timers", now, lease_ms=60_000, limit=1, lane_concurrency=1
        )
    PaymentExpiry(world.service.parts.ports, {}, lambda authority, chain_id: None).run(early[0])
    assert world.paid(payment.payment.id).status == "awaiting_payment"
    world.advance(310)
    assert world.paid(payment.payment.id).status == "expired"


def test_a_live_attempt_outlives_the_expiry_and_succeeds(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    world.advance(299)
    option = world.option(payment)
    world.authorize(option)
    world.advance(2)
    assert world.clock.now() > payment.payment.expires_at_ms
    assert world.paid(payment.payment.id).status == "processing"
    world.finish()
    assert statuses(world, payment.payment.id)[-1] == "succeeded"
    assert world.event_names()["payment.expired"] == 0


def test_expiry_comes_at_once_when_the_last_attempt_fails(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    other = world.option(payment)
    world.advance(299)
    option = world.authorize(world.option(payment))
    world.drain()
    world.finish()
    assert statuses(world, payment.payment.id) == [
        "awaiting_payment", "processing", "awaiting_payment", "expired",
    ]  # fmt: skip
    timeline = world.paid(payment.payment.id).timeline
    assert timeline[-1].at_ms - timeline[-2].at_ms < POLL_MS  # its job does not sleep on
    assert world.option_now(option).status == "failed"
    assert world.operation_now(option).status == "failed"
    assert world.option_now(other).status == "expired"
    assert world.held() == (0, 0, 0)
    assert world.event_names(payment.payment.id) == {
        "payment.created": 1,
        "payment.processing": 1,
        "payment.expired": 1,
        "vault_funding.authorized": 1,
        "vault_funding.broadcast": 1,
        "vault_funding.failed": 1,
    }


def test_a_transfer_that_reverts_frees_everything_for_another_try(world: World) -> None:
    option = world.authorized()
    world.drain()
    world.run()
    world.advance(1)
    assert world.operation_now(option).status == "broadcast"  # a failure must be final, too
    assert world.held()[1] == atomic("25")
    world.finish()
    operation = world.operation_now(option)
    assert (operation.status, operation.failure) == ("failed", "transaction_failed")
    assert world.option_now(option).status == "failed"
    payment = world.paid(option.payment.id)
    assert payment.status == "awaiting_payment"
    assert payment.timeline[-1].reason == "transaction_failed"
    assert not payment.is_pending
    assert world.held() == (0, 0, 0)
    assert world.event_names(payment.id)["vault_funding.failed"] == 1

    world.fund("30.00")
    again = world.authorize(world.option(world.resources.payments.read(payment.id)))
    world.finish()
    assert world.paid(payment.id).status == "succeeded"
    assert world.option_now(again).status == "succeeded"
    assert world.option_now(option).selection_status == "superseded"
    assert world.held() == (atomic("5"), 0, atomic("5"))
    assert world.sent() == 3


def test_a_failed_payment_can_still_be_cancelled_or_refreshed_not(world: World) -> None:
    option = world.authorized()
    world.drain()
    world.finish()
    with pytest.raises(InvalidState):
        world.service.acting_as(world.client).options.refresh(option.payment.id, option.option.id)
    world.resources.payments.cancel(option.payment.id)
    assert world.paid(option.payment.id).status == "cancelled"
    assert world.option_now(option).status == "failed"


def test_a_refused_cancel_changes_nothing(world: World) -> None:
    option = world.authorized()
    world.run()
    before = (world.paid(option.payment.id), world.option_now(option), world.operation_now(option))
    with pytest.raises(InvalidState):
        world.resources.payments.cancel(option.payment.id)
    after = (world.paid(option.payment.id), world.option_now(option), world.operation_now(option))
    assert after == before


def test_options_of_a_payment_that_expired_are_expired_for_refresh_too(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    option = world.option(payment)
    world.advance(310)
    with pytest.raises((PaymentExpired, OptionExpired)):
        world.service.acting_as(world.client).options.refresh(payment.payment.id, option.option.id)


def expiry_of(world: World, payment_id: str) -> Job | None:
    return world.storage.read(
        world.environment_id, lambda snapshot: snapshot.get(Job, expiry_job_id(payment_id))
    )


def test_a_payment_that_settles_leaves_no_job_at_its_expiry(world: World) -> None:
    option = world.authorized()
    id = option.payment.id
    world.run()
    waiting = expiry_of(world, id)
    assert waiting is not None
    assert waiting.due_at == option.payment.expires_at_ms
    world.finish()
    assert world.paid(id).status == "succeeded"
    assert expiry_of(world, id) is None
    world.advance(3_700)
    assert (world.paid(id).status, world.option_now(option).status) == ("succeeded", "succeeded")


def test_what_is_still_on_its_way_keeps_the_job_at_the_expiry(memory_world: World) -> None:
    world = memory_world
    payment = world.payment().payment
    pending = attrs.evolve(payment, sighted=("evidence",))

    def ended(one: Payment) -> tuple[Record, ...]:
        return world.storage.transact(world.environment_id, lambda tx: end_expiry(tx, one).deletes)

    assert ended(payment) == (expiry_of(world, payment.id),)
    assert ended(pending) == ()
