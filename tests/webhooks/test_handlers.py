"""Events for a function in this process: as durable as webhooks (decision 0017)."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

import pytest

from payments_core.errors import ValidationFailed, WebhookLimitReached
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.webhooks.filters import EventFilter
from payments_core.webhooks.handlers import MAX_OVERDUE
from payments_core.webhooks.operations import EndpointChanges
from payments_core.webhooks.received import ReceivedEvent
from payments_core.webhooks.record import Delivery
from payments_core.webhooks.settings import WebhookSettings
from tests.service.conftest import funded
from tests.service.faults import EVERY_CALL, Crashed, Fault, FaultyStorage, commit_lost, crash
from tests.service.world import World

QUICK = Settings(webhooks=WebhookSettings(attempt_s=0))
CREATED = ("payment.created",)


@pytest.fixture
def world() -> World:
    return funded(MemoryStorage())


class Seen:
    """A handler that keeps what it was given, and fails so many times first."""

    def __init__(self, failures: int = 0) -> None:
        self.events: list[ReceivedEvent] = []
        self.failures = failures

    def __call__(self, event: ReceivedEvent) -> None:
        self.events.append(event)
        if len(self.events) <= self.failures:
            raise KeyError("a secret that must not be shown")

    @property
    def ids(self) -> list[str]:
        return [event.id for event in self.events]


def run(service: PaymentsService) -> None:
    service.worker("sandbox").run_until_idle()


def deliveries(world: World, endpoint_id: str) -> list[Delivery]:
    _, page = world.resources.webhooks.list_deliveries(endpoint_id)
    return list(page.records)


def test_a_handler_is_given_the_events_it_asked_for(world: World) -> None:
    seen = Seen()
    endpoint = world.resources.on_event("shop", seen, subscribed_events=CREATED)
    payment = world.payment()
    world.resources.payments.cancel(payment.payment.id)
    run(world.service)
    [event] = seen.events
    assert (event.name, event.payload["paymentId"]) == ("payment.created", payment.payment.id)
    [delivery] = deliveries(world, endpoint.id)
    assert (delivery.status, delivery.event_id) == ("delivered", event.id)


def test_what_fails_comes_again_by_the_schedule_with_the_same_id(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen(failures=2)
    endpoint = world.resources.on_event("shop", seen, subscribed_events=CREATED)
    world.payment()
    run(world.service)
    [failed] = deliveries(world, endpoint.id)
    assert (failed.status, failed.failure) == ("failed", "The handler raised KeyError.")
    world.advance(29)
    assert len(seen.events) == 1
    world.advance(1)
    world.advance(60)
    assert len(seen.events) == 3
    assert len(set(seen.ids)) == 1
    assert [d.status for d in deliveries(world, endpoint.id)] == ["delivered"]
    assert [record.levelno for record in caplog.records if "shop" in record.getMessage()] == (
        [logging.ERROR] * 2
    )


def test_events_wait_for_a_process_that_was_killed(world: World) -> None:
    first, second = Seen(), Seen()
    endpoint = world.resources.on_event("shop", first, subscribed_events=CREATED)
    payment = world.payment()
    after = world.restarted()  # the first was killed before its worker ran
    again = after.acting_as(after.tenants.system_authority(world.environment_id)).on_event(
        "shop",
        second,
        subscribed_events=CREATED,
    )
    run(after)
    assert again.id == endpoint.id
    assert [event.payload["paymentId"] for event in second.events] == [payment.payment.id]
    assert first.events == []


@pytest.mark.parametrize(("fault", "counted"), [(crash, EVERY_CALL), (commit_lost, ("transact",))])
def test_a_crash_at_any_call_of_the_worker_loses_no_event(
    world: World, fault: Fault, counted: tuple[str, ...]
) -> None:
    seen = Seen()
    world.resources.on_event("shop", seen, subscribed_events=CREATED)
    for at in range(1, 100):
        payment = world.payment()
        storage = FaultyStorage(world.storage, at, fault, ())
        dying = world.restarted(storage)
        dying.acting_as(world.server).on_event("shop", seen, subscribed_events=CREATED)
        storage.count(counted)
        with suppress(Crashed):
            run(dying)
        had_its_fault = storage.had_its_fault
        world.advance(300)
        reported = [one.id for one in seen.events if one.payload["paymentId"] == payment.payment.id]
        assert len(set(reported)) == 1, at
        if not had_its_fault:
            return
    raise AssertionError("the worker never ends")


def test_a_handler_that_hangs_stops_no_other_and_is_bounded(world: World) -> None:
    service = world.restarted(settings=QUICK)
    go, seen, begun = threading.Event(), Seen(), Seen()

    def hang(event: ReceivedEvent) -> None:
        begun(event)
        go.wait()

    stuck = service.acting_as(world.server).on_event("stuck", hang, subscribed_events=CREATED)
    service.acting_as(world.server).on_event("quick", seen, subscribed_events=CREATED)
    for _ in range(MAX_OVERDUE + 2):
        world.payment()
    try:
        run(service)
        assert len(begun.events) == MAX_OVERDUE
        assert len(set(seen.ids)) == MAX_OVERDUE + 2
        assert {d.failure for d in deliveries(world, stuck.id) if d.status == "failed"} == (
            {"The handler did not return within 0 s."}
        )
        assert sum(d.status == "pending" for d in deliveries(world, stuck.id)) == 2
    finally:
        go.set()


def test_a_worker_without_the_handler_says_so(world: World) -> None:
    endpoint = world.resources.on_event("shop", Seen(), subscribed_events=CREATED)
    world.payment()
    run(world.restarted())
    [delivery] = deliveries(world, endpoint.id)
    assert delivery.failure == "No handler of this name is registered where the worker runs."


def test_another_start_may_ask_for_other_events(world: World) -> None:
    first = world.resources.on_event("shop", Seen(), subscribed_events=CREATED)
    again = world.resources.on_event("shop", Seen())
    assert (again.id, again.subscribed_events) == (first.id, ())


def test_who_disabled_a_handler_keeps_it_so(world: World) -> None:
    seen = Seen()
    endpoint = world.resources.on_event("shop", seen, subscribed_events=CREATED)
    world.resources.webhooks.change(endpoint.id, EndpointChanges(status="disabled"))
    again = world.resources.on_event("shop", seen, subscribed_events=CREATED)
    assert (again.id, again.status) == (endpoint.id, "disabled")
    world.payment()
    run(world.service)
    assert seen.events == []


def test_what_is_wrong_is_said_at_once(world: World) -> None:
    service, server = world.service, world.server
    for name in ("", "Shop", "a" * 65, "a/b", 5):
        with pytest.raises(ValidationFailed) as caught:
            service.acting_as(server).on_event(name, print)  # type: ignore[arg-type]
        assert [fault.path for fault in caught.value.fields] == ["name"]
    with pytest.raises(ValidationFailed):
        service.acting_as(server).on_event("shop", print, subscribed_events=["payment.unknown"])  # type: ignore[list-item]
    with pytest.raises(ValidationFailed):
        service.acting_as(server).on_event("shop", None)  # type: ignore[arg-type]
    assert service.acting_as(server).webhooks.list().records == ()
    few = world.restarted(settings=Settings(webhooks=WebhookSettings(max_active_endpoints=1)))
    few.acting_as(server).on_event("shop", print)
    with pytest.raises(WebhookLimitReached):
        few.acting_as(server).on_event("more", print)


def test_a_registration_that_is_refused_changes_nothing(world: World) -> None:
    first, second = Seen(), Seen()
    world.resources.on_event("shop", first, subscribed_events=CREATED)
    with pytest.raises(ValidationFailed):
        world.resources.on_event("shop", second, filters=(EventFilter("payload.x", "exists"),))
    world.payment()
    run(world.service)
    assert (len(first.events), second.events) == (1, [])


def test_nobody_outside_can_name_a_handler(world: World) -> None:
    with pytest.raises(ValidationFailed):
        world.resources.webhooks.create(url="handler:shop")
