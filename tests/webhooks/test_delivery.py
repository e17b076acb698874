"""Events on their way: fan-out, attempts, what crashes repeat, what an endpoint gives up."""

from __future__ import annotations

import json
import logging

import pytest

from payments_core.clock import FixedClock, format_iso
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.events import Event
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.webhooks import verify
from payments_core.webhooks.dispatch.attempt import open_secret
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.record import Delivery
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import TransportResult
from tests.webhooks.webhook_bench import HOOK, OK, PUBLIC, Bench, Wire


class Ahead(FixedClock):
    """A sandbox clock that was advanced by a day."""

    def now(self) -> int:
        return super().now() + 86_400_000


def test_an_event_reaches_every_active_endpoint_that_subscribed() -> None:
    bench = Bench()
    everything = bench.endpoint("https://a.example/")
    subscribed = bench.endpoint("https://b.example/", "account.created")
    other = bench.endpoint("https://c.example/", "account.updated")
    disabled = bench.endpoint("https://d.example/")
    bench.endpoints.update(bench.authority, disabled.id, EndpointChanges(status="disabled"))
    bench.happen()
    bench.run()
    assert [d.status for d in bench.deliveries(everything)] == ["delivered"]
    assert [d.status for d in bench.deliveries(subscribed)] == ["delivered"]
    assert bench.deliveries(other) == bench.deliveries(disabled) == ()


def test_another_environment_hears_nothing() -> None:
    bench = Bench()
    elsewhere = bench.environment("env_b")
    bench.endpoints.create(elsewhere, url=HOOK)
    bench.happen()
    bench.run()
    assert bench.wire.sent == []


def test_the_request_is_the_one_of_the_interface() -> None:
    bench = Bench(clock=Ahead())
    endpoint, secret = bench.endpoints.create(bench.authority, url="https://P.example:443/a?b=c")
    id = bench.happen(external_user_id="Zoë/1 &\r\n")
    bench.run()
    ((request, addresses),) = bench.wire.sent
    (delivery,) = bench.deliveries(endpoint)
    assert addresses == (PUBLIC,)
    assert (request.destination.host, request.destination.port) == ("p.example", 443)
    assert request.destination.path == "/a?b=c"
    body = json.loads(request.body)
    assert list(body) == ["id", "name", "apiVersion", "createdAt", "payload"]
    assert (body["id"], body["name"], body["apiVersion"]) == (id, "account.created", "2026-09-09")
    assert body["createdAt"] == format_iso(bench.clock.now())
    assert set(body["payload"]) == {"accountId", "externalUserId", "status"}
    real_s = bench.clock.real_now() // 1000
    headers = dict(request.headers)
    assert headers.pop("x-service-signature").startswith(f"t={real_s},v1=")
    assert headers.pop("webhook-signature").startswith("v1,")
    assert headers == {
        "Content-Type": "application/json",
        "User-Agent": "payments-core-webhooks/1",
        "x-service-event": "account.created",
        "x-service-event-id": id,
        "x-service-delivery": delivery.id,
        "x-service-account-id": "acct_1",
        "x-service-external-user-id": "Zo%C3%AB%2F1%20%26%0D%0A",
        "x-service-timestamp": str(real_s),
        "webhook-id": id,
        "webhook-timestamp": str(real_s),
    }
    assert verify(request.body, request.headers, secret, now=real_s).id == id


def test_an_event_without_an_account_names_none() -> None:
    bench = Bench()
    bench.endpoint()
    bench.happen(account_id=None, external_user_id=None)
    bench.run()
    ((request, _),) = bench.wire.sent
    assert not {"x-service-account-id", "x-service-external-user-id"} & set(request.headers)


def test_a_delivery_keeps_what_was_sent_and_what_came_back() -> None:
    bench = Bench(wire=Wire([TransportResult(202, b"caf\xc3\xa9 \x00 \xff" + b"x" * 9000)]))
    endpoint = bench.endpoint()
    id = bench.happen()
    bench.run()
    (delivery,) = bench.deliveries(endpoint)
    assert delivery.request_body == bench.wire.sent[0][0].body.decode()
    assert delivery.response_body == "café \ufffd \ufffd" + "x" * (4096 - 9)
    assert (delivery.response_status, delivery.event_id) == (202, id)
    assert delivery.delivered_at_ms == bench.clock.now()


def test_a_retry_keeps_delivery_event_and_body_and_signs_again() -> None:
    bench = Bench(wire=Wire([TransportResult(500), OK]))
    endpoint, secret = bench.endpoints.create(bench.authority, url=HOOK)
    bench.happen()
    bench.run()
    assert bench.deliveries(endpoint)[0].status == "failed"
    bench.run_for(29)
    assert len(bench.wire.sent) == 1
    bench.run_for(1)
    (first, _), (second, _) = bench.wire.sent
    assert first.body == second.body
    changed = {name for name in first.headers if first.headers[name] != second.headers[name]}
    assert changed == {
        "x-service-timestamp",
        "x-service-signature",
        "webhook-timestamp",
        "webhook-signature",
    }
    verify(second.body, second.headers, secret, now=bench.clock.now() / 1000)
    assert bench.deliveries(endpoint)[0].status == "delivered"
    assert bench.jobs_of(endpoint) == ()


def test_only_the_failing_endpoint_is_tried_again() -> None:
    class Uneven(Wire):
        def send(self, request, addresses, deadline):  # type: ignore[no-untyped-def]
            super().send(request, addresses, deadline)
            return OK if request.destination.host == "good.example" else TransportResult(503)

    bench = Bench(wire=Uneven())
    good, bad = bench.endpoint("https://good.example/"), bench.endpoint("https://bad.example/")
    bench.happen()
    bench.run_for(300)
    assert bench.deliveries(good)[0].attempts == 1
    assert bench.deliveries(bad)[0].attempts == 4


# What an endpoint gives up.


def test_what_was_abandoned_stays_so_when_the_endpoint_comes_back() -> None:
    bench = Bench(wire=Wire([TransportResult(500)]))
    endpoint = bench.endpoint()
    early = bench.happen()
    bench.run()
    for status in ("disabled", "active"):
        bench.endpoints.update(bench.authority, endpoint.id, EndpointChanges(status=status))  # type: ignore[arg-type]
    late = bench.happen()
    bench.wire.answers[:] = [OK]
    bench.run_for(86_400)
    found = {delivery.event_id: delivery.status for delivery in bench.deliveries(endpoint)}
    assert found == {early: "abandoned", late: "delivered"}


def test_narrowing_abandons_only_what_is_no_longer_wanted() -> None:
    bench = Bench(wire=Wire([TransportResult(500)]))
    endpoint = bench.endpoint()
    bench.happen("account.created")
    bench.happen("account.updated")
    bench.run()
    bench.endpoints.update(
        bench.authority, endpoint.id, EndpointChanges(subscribed_events=("account.updated",))
    )
    bench.run()
    by_name = {d.event_name: d.status for d in bench.stored(endpoint)}
    assert by_name == {"account.created": "abandoned", "account.updated": "failed"}


def test_abandoning_covers_more_than_a_page() -> None:
    bench = Bench(wire=Wire([TransportResult(500)]))
    endpoint = bench.endpoint()
    for _ in range(120):
        bench.happen()
    bench.run()
    bench.endpoints.update(bench.authority, endpoint.id, EndpointChanges(status="disabled"))
    bench.run()
    page = bench.storage.read(
        bench.authority.partition,
        lambda tx: tx.find(Delivery, "by_status", (endpoint.id, "abandoned"), limit=500),
    )
    assert len(page.records) == 120


def test_more_endpoints_than_a_page_are_all_served() -> None:
    bench = Bench(settings=WebhookSettings(max_active_endpoints=101))
    endpoints = [bench.endpoint(f"https://h{n}.example/") for n in range(101)]
    bench.happen()
    bench.run()
    assert all(len(bench.deliveries(endpoint)) == 1 for endpoint in endpoints)
    assert len(bench.wire.sent) == 101


# Crashes and strangers.


class Crash(BaseException):
    """The process ends here."""


def test_a_crash_after_sending_sends_the_same_again() -> None:
    class Dying(Wire):
        def send(self, request, addresses, deadline):  # type: ignore[no-untyped-def]
            super().send(request, addresses, deadline)
            if len(self.sent) == 1:
                raise Crash
            return OK

    bench = Bench(wire=Dying())
    endpoint = bench.endpoint()
    bench.happen()
    with pytest.raises(Crash):
        bench.run()
    bench.run_for(60)
    (first, _), (second, _) = bench.wire.sent
    assert first.body == second.body
    assert first.headers["x-service-delivery"] == second.headers["x-service-delivery"]
    (delivery,) = bench.deliveries(endpoint)
    assert (delivery.status, delivery.attempts) == ("delivered", 1)


def test_a_job_without_its_event_or_delivery_ends() -> None:
    bench = Bench()
    endpoint = bench.endpoint()
    id = bench.happen()
    event = bench.storage.read(bench.authority.partition, lambda tx: tx.get(Event, id))
    assert event is not None
    bench.storage.transact(bench.authority.partition, lambda tx: tx.delete(event))
    bench.run()
    assert bench.deliveries(endpoint) == ()
    bench.happen()
    bench.worker.run_due(limit=1)
    (delivery,) = bench.stored(endpoint)
    bench.storage.transact(bench.authority.partition, lambda tx: tx.delete(delivery))
    bench.run()
    assert bench.jobs_of(endpoint) == ()
    assert bench.wire.sent == []


def test_no_secret_is_logged_or_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    bench = Bench(wire=Wire([TransportResult(failure="no timely answer")]))
    endpoint, secret = bench.endpoints.create(bench.authority, url=HOOK)
    bench.happen()
    bench.run()
    other_ring = KeyRing.parse(KeyRing.generate())
    bench.attempts._key_ring = other_ring  # the secret no longer opens: the job fails
    bench.attempts._opened.clear()
    bench.run_for(3600)
    assert "SealBroken" in caplog.text
    shown = caplog.text + repr(endpoint) + repr(bench.stored(endpoint))
    assert secret not in shown
    assert open_secret(bench.key_ring, endpoint) == secret
    assert endpoint.sealed_secret not in shown


@pytest.mark.parametrize("seed", range(8))
def test_weak_storage_loses_and_doubles_nothing(seed: int) -> None:
    bench = Bench(MemoryStorage(Weakness(seed=seed)), wire=Wire([TransportResult(500)] * 7 + [OK]))
    endpoints = [bench.endpoint(f"https://h{n}.example/") for n in range(3)]
    ids = {bench.happen() for _ in range(15)}
    for _ in range(40):
        bench.run_for(300)
    for endpoint in endpoints:
        deliveries = bench.stored(endpoint)
        assert {d.event_id for d in deliveries} == ids
        assert len(deliveries) == len(ids)
        assert {d.status for d in deliveries} == {"delivered"}
    bodies: dict[str, set[bytes]] = {}
    for request, _ in bench.wire.sent:
        bodies.setdefault(request.headers["x-service-delivery"], set()).add(request.body)
    assert len(bodies) == 45
    assert all(len(variants) == 1 for variants in bodies.values())
