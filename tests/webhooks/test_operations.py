"""The console's operations on endpoints and deliveries."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from payments_core.engine.idempotency.record import AlreadyResponded, IdempotentRequest, Response
from payments_core.errors import (
    InvalidState,
    NotFound,
    PaymentsError,
    ResourceConflict,
    ValidationFailed,
    WebhookLimitReached,
    WebhookUrlInUse,
    WebhookUrlNotAllowed,
)
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.record import Endpoint
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.signing import is_secret
from payments_core.webhooks.transports.port import TransportResult
from tests.webhooks.webhook_bench import HOOK, OK, Bench, Wire


@pytest.fixture(params=[None, 1, 2, 3])
def bench(request: pytest.FixtureRequest) -> Bench:
    weakness = None if request.param is None else Weakness(seed=request.param)
    return Bench(MemoryStorage(weakness), wire=Wire([TransportResult(500)]))


def update(bench: Bench, endpoint: Endpoint, **changes: Any) -> Endpoint:
    return bench.endpoints.update(bench.authority, endpoint.id, EndpointChanges(**changes))


# Endpoints.


def test_creation_gives_an_active_endpoint_and_its_secret_once(bench: Bench) -> None:
    endpoint, secret = bench.endpoints.create(
        bench.authority, url=HOOK, description="mine",
        subscribed_events=("account.created", "account.created"),
    )  # fmt: skip
    assert endpoint.id.startswith("webhook_")
    assert (endpoint.status, endpoint.url, endpoint.description) == ("active", HOOK, "mine")
    assert endpoint.subscribed_events == ("account.created",)
    assert is_secret(secret)
    found = bench.endpoints.get(bench.authority, endpoint.id)
    assert found.url == HOOK
    assert secret not in repr(found)
    assert secret not in found.sealed_secret


def test_endpoints_are_listed_oldest_first_by_pages(bench: Bench) -> None:
    made = []
    for n in range(5):
        made.append(bench.endpoint(f"https://h{n}.example/").id)
        bench.clock.advance(1)
    first = bench.endpoints.list(bench.authority, limit=3)
    rest = bench.endpoints.list(bench.authority, limit=3, after=first.next)
    assert [e.id for e in (*first.records, *rest.records)] == made
    assert rest.next is None


@pytest.mark.parametrize(
    "same",
    [
        "https://partner.example/hook",
        "HTTPS://PARTNER.example.:443/hook#part",
        "https://partner.example/a/../hook",
        "https://partner.example/h%6Fok",
    ],
)
def test_one_active_endpoint_per_url(bench: Bench, same: str) -> None:
    first = bench.endpoint(HOOK)
    with pytest.raises(WebhookUrlInUse):
        bench.endpoint(same)
    update(bench, first, status="disabled")
    second = bench.endpoint(same)
    with pytest.raises(WebhookUrlInUse):
        update(bench, first, status="active")
    update(bench, second, status="archived")
    assert update(bench, first, status="active").status == "active"


def test_another_environment_may_have_the_same_url(bench: Bench) -> None:
    bench.endpoint(HOOK)
    bench.endpoints.create(bench.environment("env_b"), url=HOOK)


def test_an_archived_endpoint_cannot_be_changed(bench: Bench) -> None:
    endpoint = bench.endpoint()
    update(bench, endpoint, status="archived")
    for status in ("active", "disabled", "archived"):
        with pytest.raises(InvalidState):
            update(bench, endpoint, status=status)
    with pytest.raises(InvalidState):
        bench.endpoints.rotate_secret(bench.authority, endpoint.id)


def test_a_patch_changes_what_it_names(bench: Bench) -> None:
    endpoint = bench.endpoint(HOOK, "account.created")
    changed = update(bench, endpoint, description="new")
    assert (changed.description, changed.subscribed_events) == ("new", ("account.created",))
    changed = update(bench, endpoint, subscribed_events=())
    assert (changed.description, changed.subscribed_events) == ("new", ())


def test_a_rotation_makes_another_secret(bench: Bench) -> None:
    endpoint, first = bench.endpoints.create(bench.authority, url=HOOK)
    _, second = bench.endpoints.rotate_secret(bench.authority, endpoint.id)
    assert is_secret(second)
    assert first != second


@pytest.mark.parametrize(
    ("input", "paths"),
    [
        ({"subscribed_events": ("account.created", "nope")}, ["subscribed_events[1]"]),
        ({"subscribed_events": ("account.created",) * 101}, ["subscribed_events"]),
        ({"description": "x" * 513, "subscribed_events": ("no",)},
         ["description", "subscribed_events[0]"]),
        ({"url": "https://a.example/" + "x" * 2031}, ["url"]),
    ],
)  # fmt: skip
def test_each_wrong_field_is_named(input: dict[str, Any], paths: list[str]) -> None:
    bench = Bench()
    with pytest.raises(ValidationFailed) as raised:
        bench.endpoints.create(bench.authority, **{"url": HOOK, **input})
    assert [fault.path for fault in raised.value.fields] == paths
    if "url" not in input:
        endpoint = bench.endpoint()
        with pytest.raises(ValidationFailed):
            update(bench, endpoint, **input)


def test_limits_are_inclusive() -> None:
    bench = Bench()
    bench.endpoints.create(
        bench.authority, url="https://a.example/" + "x" * 2030, description="x" * 512,
        subscribed_events=("account.created",) * 100,
    )  # fmt: skip


def test_a_url_that_leads_inside_is_refused_and_one_that_leads_nowhere_is_not() -> None:
    bench = Bench()
    bench.names.table |= {"inside.example": ("10.1.2.3",), "later.example": None}
    with pytest.raises(WebhookUrlNotAllowed) as raised:
        bench.endpoint("https://inside.example/")
    assert "10.1.2.3" not in str(raised.value)
    bench.endpoint("https://later.example/")


def test_loopback_is_for_a_local_sandbox_alone() -> None:
    local = {"localhost": ("::1", "127.0.0.1")}
    bench = Bench()
    bench.names.table |= local
    with pytest.raises(WebhookUrlNotAllowed):
        bench.endpoint("https://localhost/")
    with pytest.raises(WebhookUrlNotAllowed):
        bench.endpoint("http://partner.example/")
    bench = Bench(settings=WebhookSettings(local_allowed=True))
    bench.names.table |= local
    bench.endpoint("http://localhost:8000/")
    assert bench.settings.delivery_policy()["localPrivateDestinationsAllowed"] is True


def test_another_environments_endpoint_is_not_found(bench: Bench) -> None:
    endpoint, stranger = bench.endpoint(), bench.environment("env_b")
    with pytest.raises(NotFound):
        bench.endpoints.get(stranger, endpoint.id)
    with pytest.raises(NotFound):
        bench.endpoints.update(stranger, endpoint.id, EndpointChanges(status="disabled"))
    with pytest.raises(NotFound):
        bench.endpoints.rotate_secret(stranger, endpoint.id)
    with pytest.raises(NotFound):
        bench.endpoints.list_deliveries(stranger, endpoint.id)
    with pytest.raises(NotFound):
        bench.endpoints.retry(stranger, endpoint.id, "delivery_x")


def test_a_repeated_creation_is_answered_and_not_made_again() -> None:
    bench = Bench(settings=WebhookSettings(max_active_endpoints=1))  # so that it is full now

    def asked() -> IdempotentRequest:
        return IdempotentRequest("key", "print", lambda made: Response(201, made[1].encode(), "v"))

    _, secret = bench.endpoints.create(bench.authority, url=HOOK, idempotency_key=asked())
    bench.names.table["partner.example"] = ("10.0.0.1",)  # what is true now does not matter
    with pytest.raises(AlreadyResponded) as raised:
        bench.endpoints.create(bench.authority, url=HOOK, idempotency_key=asked())
    assert raised.value.response.body.decode() == secret
    assert len(bench.endpoints.list(bench.authority).records) == 1


def test_of_many_creations_at_once_one_wins() -> None:
    bench = Bench(MemoryStorage(Weakness(seed=5)))
    results: list[object] = []

    def create() -> None:
        try:
            results.append(bench.endpoint())
        except PaymentsError as error:
            results.append(type(error))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(result, Endpoint) for result in results) == 1
    assert results.count(WebhookUrlInUse) == 7


# Deliveries.


def test_deliveries_come_most_recently_updated_first_by_pages(bench: Bench) -> None:
    endpoint = bench.endpoint()
    ids = []
    for _ in range(5):
        ids.append(bench.happen())
        bench.run()
        bench.clock.advance(1)
    found, page = bench.endpoints.list_deliveries(bench.authority, endpoint.id, limit=3)
    assert found.id == endpoint.id
    _, rest = bench.endpoints.list_deliveries(
        bench.authority, endpoint.id, limit=3, after=page.next
    )
    listed = [*page.records, *rest.records]
    assert {d.event_id for d in listed} == set(ids)
    updates = [d.updated_at_ms for d in listed]
    assert updates == sorted(updates, reverse=True)


def test_a_retry_sends_a_failed_delivery_now_with_all_its_attempts() -> None:
    bench = Bench(wire=Wire([TransportResult(500)]))
    endpoint = bench.endpoint()
    bench.happen()
    bench.run_for(200)
    (failed,) = bench.deliveries(endpoint)
    assert (failed.status, failed.attempts) == ("failed", 3)
    retried = bench.endpoints.retry(bench.authority, endpoint.id, failed.id)
    assert (retried.status, retried.attempts) == ("pending", 0)
    assert len(bench.jobs_of(endpoint)) == 1  # the job it had, and no second one
    bench.wire.answers[:] = [OK]
    bench.run()
    (delivered,) = bench.deliveries(endpoint)
    assert (delivered.status, delivered.attempts) == ("delivered", 1)
    assert bench.run_for(86_400) == 0
    assert len({request.body for request, _ in bench.wire.sent}) == 1


@pytest.mark.parametrize("seed", range(6))
def test_an_abandoned_delivery_can_be_retried_again_and_again(seed: int) -> None:
    bench = Bench(MemoryStorage(Weakness(seed=seed)), wire=Wire([TransportResult(400)]))
    endpoint = bench.endpoint()
    bench.happen()
    bench.run_for(60)
    for sent in range(2, 5):
        (abandoned,) = bench.stored(endpoint)
        assert abandoned.status == "abandoned"
        bench.endpoints.retry(bench.authority, endpoint.id, abandoned.id)
        bench.run_for(120)
        assert len(bench.wire.sent) >= sent
    assert len({request.headers["x-service-delivery"] for request, _ in bench.wire.sent}) == 1


def test_each_conflict_of_a_retry() -> None:
    bench = Bench(wire=Wire([TransportResult(500)]))
    endpoint = bench.endpoint()
    bench.happen()
    bench.worker.run_due(limit=1)
    (pending,) = bench.stored(endpoint)

    def refused(why: str) -> None:
        with pytest.raises(ResourceConflict) as raised:
            bench.endpoints.retry(bench.authority, endpoint.id, pending.id)
        assert why in str(raised.value)

    refused("pending")
    bench.run()
    update(bench, endpoint, subscribed_events=("account.updated",))
    refused("not subscribed")
    update(bench, endpoint, status="disabled")
    refused("disabled")
    update(bench, endpoint, status="active", subscribed_events=())
    bench.endpoints.retry(bench.authority, endpoint.id, pending.id)
    refused("pending")
    bench.wire.answers[:] = [OK]
    bench.run()
    refused("delivered")


def test_a_delivery_under_way_cannot_be_retried() -> None:
    class Watched(Wire):
        def send(self, request, addresses, deadline):  # type: ignore[no-untyped-def]
            (delivery,) = bench.stored(endpoint)
            if self.sent:
                with pytest.raises(ResourceConflict):
                    bench.endpoints.retry(bench.authority, endpoint.id, delivery.id)
            super().send(request, addresses, deadline)
            return TransportResult(500)

    bench = Bench(wire=Watched())
    endpoint = bench.endpoint()
    bench.happen()
    bench.run_for(30)
    assert len(bench.wire.sent) == 2


def test_a_delivery_belongs_to_its_endpoint() -> None:
    bench = Bench(wire=Wire([TransportResult(500)]))
    one, two = bench.endpoint("https://a.example/"), bench.endpoint("https://b.example/")
    bench.happen()
    bench.run()
    (delivery,) = bench.deliveries(one)
    with pytest.raises(NotFound):
        bench.endpoints.retry(bench.authority, two.id, delivery.id)


def test_of_many_retries_at_once_one_wins() -> None:
    bench = Bench(MemoryStorage(Weakness(seed=3)), wire=Wire([TransportResult(400)]))
    endpoint = bench.endpoint()
    bench.happen()
    bench.run_for(60)
    (delivery,) = bench.stored(endpoint)
    results: list[str] = []

    def retry() -> None:
        try:
            bench.endpoints.retry(bench.authority, endpoint.id, delivery.id)
            results.append("won")
        except PaymentsError as error:
            results.append(error.code)

    threads = [threading.Thread(target=retry) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count("won") == 1
    assert results.count("conflict") == 5
    assert len(bench.jobs_of(endpoint)) == 1


# How many.


def test_an_environment_has_so_many_active_endpoints_and_archived_ones_make_room() -> None:
    bench = Bench(settings=WebhookSettings(max_active_endpoints=3))
    made = [bench.endpoint(f"https://h{n}.example/") for n in range(3)]
    with pytest.raises(WebhookLimitReached, match="at most 3 active webhook endpoints"):
        bench.endpoint("https://h3.example/")
    update(bench, made[0], status="disabled")
    bench.endpoint("https://h3.example/")
    with pytest.raises(WebhookLimitReached, match="at most 3"):
        update(bench, made[0], status="active")
    assert update(bench, made[1], status="active", description="same").description == "same"
    other = bench.environment("env_b")
    bench.endpoints.create(other, url=HOOK)
    update(bench, made[1], status="archived")
    assert update(bench, made[0], status="active").status == "active"
