"""Webhooks, events and keys on the dashboard."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest

from payments_core.clock import DAY, HOUR, SECOND, parse_iso, to_datetime
from payments_core.engine.events import BY_NAME, Event
from payments_core.webhooks import trimming
from payments_core.webhooks.health import DISABLED_WORDS, EndpointHealth
from payments_core.webhooks.lifecycle import new_delivery
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.transports.port import TransportResult
from payments_core_http.dashboard.events import list_subjects
from payments_core_http.dashboard.words import explain_delivery, name_state
from tests.http.console import LATER, NEVER, OK, OTHER, Console
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser

LIST = "/dashboard/webhooks"


def hook(endpoint: Any) -> str:
    return f"{LIST}/{endpoint['id']}"


def fail(console: Console, answer: TransportResult = NEVER) -> tuple[Any, str]:
    """An endpoint with a delivery that it refused, and the page of that."""
    endpoint = console.endpoint()
    console.receiver.answer = answer
    event_id = console.happen()
    console.run()
    delivery = console.delivery(endpoint, event_id)
    return endpoint, f"{hook(endpoint)}/deliveries/{delivery['id']}"


def texts(browser: OperatorBrowser, path: str) -> str:
    return re.sub(r"\s+", " ", browser.open(path).text)


class TestDeliveries:
    def test_a_failed_delivery_is_found_understood_and_retried(self, console: Console) -> None:
        endpoint, path = fail(console)
        browser = open_browser(console)
        html = browser.open(f"{hook(endpoint)}?status=abandoned")
        assert path in {str(one["href"]) for one in html.all("a")}
        assert "HealthAbandoned 2026-09-21 14:13:20 UTC: The endpoint answered 400" in texts(
            browser, hook(endpoint)
        )
        text = texts(browser, path)
        assert "The endpoint answered 400. Only 408, 425, 429 and 5xx are retried" in text
        assert "Attempts1 of 10" in text
        assert '"name": "account.created"' in text
        assert "Status 400 no" in text
        console.receiver.answer = OK
        seen = browser.submit(path, f"{path}/retry")
        assert seen.headers["location"] == path
        assert "The delivery is queued" in texts(browser, seen.headers["location"])
        console.run()
        assert "The endpoint answered 200." in texts(browser, path)
        assert "HealthThe newest delivery arrived: 2026" in texts(browser, hook(endpoint))
        assert "UTC, answered 200." in texts(browser, "/dashboard/webhooks")
        assert f"{path}/retry" not in browser.forms(path)
        kept = "2026-09-21 14:13:20 UTC 400 The endpoint answered 400, which is not tried again.no"
        assert kept in texts(browser, path), "what failed is kept when it has arrived"

    def test_every_failed_attempt_is_kept_with_its_answer(self, console: Console) -> None:
        _, path = fail(console, LATER)
        for answer in (TransportResult(500, b"down <b>"), NEVER):
            console.receiver.answer = answer
            console.advance(3_600)
        text = texts(open_browser(console), path)
        shown = [text.index(said) for said in ("400 The end", "500 The end", "503 The end")]
        assert shown == sorted(shown), "the newest first"
        assert "down <b>" in text
        assert "busy" in text

    def test_the_next_attempt_is_shown(self, console: Console) -> None:
        _, path = fail(console, LATER)
        text = texts(open_browser(console), path)
        assert "Attempt 1 of 10 failed: the endpoint answered 503. The delivery is retried." in text
        assert "The next attempt is at 2026-09-21 14:13:50 UTC." in text

    def test_by_status_and_by_pages(self, console: Console) -> None:
        endpoint, path = fail(console)
        console.receiver.answer = OK
        for _ in range(26):
            console.happen()
            console.system.advance(0.01)
        console.run()
        browser = open_browser(console)
        html = browser.open(f"{hook(endpoint)}?status=delivered")
        [following] = [str(one["href"]) for one in html.all("a") if one.get("rel") == "next"]
        assert following.startswith("?status=delivered&cursor=")
        rest = browser.open(hook(endpoint) + following)
        found = [one["href"] for one in rest.all("a") if "/deliveries/" in str(one["href"])]
        assert len(found) == 1
        assert path not in browser.get(f"{hook(endpoint)}?status=delivered").body.decode()

    def test_a_delivery_of_another_endpoint_is_not_there(self, console: Console) -> None:
        _, path = fail(console)
        other = console.endpoint(OTHER)
        wrong = f"{hook(other)}/deliveries/{path.rpartition('/')[2]}"
        assert open_browser(console).get(wrong).status == 404


def _endpoint(**more: Any) -> Endpoint:
    return Endpoint(
        id="webhook_1", url="https://a.example", url_digest="d", sealed_secret="s",
        created_at_ms=0, updated_at_ms=0, **more,
    )  # fmt: skip


def _delivery(console: Console, **more: Any) -> Delivery:
    event_id = console.happen()
    service = console.api.service
    authority = service.tenants.system_authority(console.api.partition)
    event = service.acting_as(authority).events.read(event_id)
    return attrs.evolve(new_delivery(event, _endpoint(), "{}", now=0), **more)


@pytest.mark.parametrize(
    ("facts", "endpoint", "said"),
    [
        ({"status": "pending"}, {}, "waits for its next attempt"),
        ({"status": "failed", "attempts": 3}, {}, "the endpoint did not answer"),
        ({"status": "delivered", "response_status": 204}, {}, "The endpoint answered 204."),
        ({"response_status": 301, "attempts": 1}, {}, "The endpoint answered 301. Only 408"),
        ({"response_status": 500, "attempts": 10}, {}, "All 10 attempts failed; at the last one"),
        ({"attempts": 10}, {}, "the endpoint did not answer"),
        ({"attempts": 2}, {"status": "archived"}, "The endpoint is archived."),
        ({"attempts": 2}, {"closed_revision": 2, "revision": 2}, "was disabled during"),
        ({"attempts": 0}, {"subscribed_events": ("payment.created",)}, "no longer subscribed to"),
        ({"attempts": 1}, {}, "an address that webhooks must not use"),
    ],
)  # fmt: skip
def test_each_end_of_a_delivery_is_explained(
    console: Console, facts: Any, endpoint: Any, said: str
) -> None:
    delivery = _delivery(console, **{"status": "abandoned", **facts})
    assert said in explain_delivery(delivery, _endpoint(**endpoint), 10)


class TestEndpoints:
    def test_a_test_event(self, console: Console) -> None:
        endpoint, browser = console.endpoint(), open_browser(console)
        seen = browser.submit(hook(endpoint), f"{hook(endpoint)}/test")
        console.run()
        assert "webhook.test" in texts(browser, seen.headers["location"])
        assert len(console.receiver.sent) == 1

    def test_a_rotated_secret_is_shown_once_and_signs(self, console: Console) -> None:
        endpoint, browser = console.endpoint(), open_browser(console)
        path = f"{hook(endpoint)}/rotate"
        form = browser.forms(path)[path]
        seen = browser.post(path, {**form, "overlap": "3600"})
        assert (seen.status, seen.headers["cache-control"]) == (200, "no-store")
        assert seen.headers["content-type"] == "text/html; charset=utf-8"
        [secret] = re.findall(r"whsec_[\w+/=]+", seen.body.decode())
        again = browser.post(path, {**form, "overlap": "3600"})
        assert secret in again.body.decode(), "the same form again, as after a reload"
        for other in (hook(endpoint), path, LIST):
            assert b"whsec_" not in browser.get(other).body
        assert browser.post(path, {**form, "overlap": "x", "idempotencyKey": "k"}).status == 400

    def test_missed_events_are_recovered(self, console: Console) -> None:
        endpoint, path = fail(console)
        browser = open_browser(console)
        console.receiver.answer = OK
        recover = f"{hook(endpoint)}/recover"
        since = browser.forms(recover)[recover]["since"]
        assert parse_iso(f"{since}Z") < console.clock.now()
        seen = browser.submit(recover, recover)
        assert seen.headers["location"] == hook(endpoint)
        console.run()
        assert "The endpoint answered 200." in texts(browser, path)
        form = {**browser.forms(recover)[recover], "since": "then"}
        assert browser.post(recover, form).status == 400

    def test_what_is_archived_can_only_be_looked_at(self, console: Console) -> None:
        endpoint = console.endpoint()
        console.patch(endpoint, status="archived")
        browser = open_browser(console)
        found = set(browser.forms(hook(endpoint)))
        assert found == {"/dashboard/logout", "/dashboard/search", hook(endpoint)}
        assert "Archived" in texts(browser, LIST)

    def test_without_any_the_list_says_so(self, console: Console) -> None:
        assert "There are no endpoints yet." in texts(open_browser(console), LIST)


ANSWERS = {
    "untried": (None, "wait", "Active", "No delivery has ended yet."),
    "works": (OK, "good", "Active", "The newest delivery arrived: 2026"),
    "refuses": (NEVER, "warn", "Failing", "The endpoint answered 400"),
    "fails": (LATER, "warn", "Failing", "The endpoint answered 503"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_endpoint_has_the_badge_of_its_health(console: Console, name: str) -> None:
    answer, tone, word, said = ANSWERS[name]
    endpoint = console.endpoint()
    if answer is not None:
        console.receiver.answer = answer
        console.happen()
        console.run()
    browser = open_browser(console)
    for path in (LIST, hook(endpoint)):
        assert f'<span class="badge {tone}">{word}</span>' in browser.get(path).body.decode()
        text = texts(browser, path)
        assert said in text
        is_counted = "Of the newest 1 deliveries, 1 did not arrive." in text
        assert is_counted == (word == "Failing")
    console.patch(endpoint, status="disabled")
    assert '<span class="badge end">Disabled</span>' in browser.get(LIST).body.decode()


def test_an_endpoint_that_the_service_disabled_says_why(console: Console) -> None:
    endpoint = console.endpoint()
    console.receiver.answer = NEVER
    for _ in range(15):
        console.happen()
        console.run()
        console.clock.advance_to(console.clock.now() + DAY // 4)
    browser = open_browser(console)
    said = "Disabled by the service. The endpoint answered 400, which is not tried again. "
    for path in (LIST, hook(endpoint)):
        assert said + DISABLED_WORDS in texts(browser, path)
    for status in ("active", "disabled"):
        console.patch(endpoint, status=status)
        for path in (LIST, hook(endpoint)):
            assert "Disabled by the service" not in texts(browser, path), "its owner did it"


def test_deliveries_that_wait_do_not_hide_that_an_endpoint_fails() -> None:
    for since, state in ((None, "untried"), (1, "failing")):
        endpoint = _endpoint(failing_since_ms=since)
        health = EndpointHealth(endpoint=endpoint, newest=None, searched=20, failed=0)
        assert name_state(health) == state


def test_one_delivery_that_arrives_does_not_hide_that_others_fail(console: Console) -> None:
    arrived = _delivery(console, status="delivered", response_status=200)
    for since, state in ((None, "active"), (1, "failing")):
        endpoint = _endpoint(failing_since_ms=since)
        health = EndpointHealth(endpoint=endpoint, newest=arrived, searched=4, failed=2)
        assert name_state(health) == state


class TestEvents:
    def test_an_event_links_all_that_it_is_about(self, console: Console) -> None:
        endpoint, path = fail(console)
        console.endpoint(OTHER)
        console.run()
        browser = open_browser(console)
        listed = browser.open("/dashboard/events?name=webhook.failing")
        links = [str(one["href"]) for one in listed.all("a")]
        assert hook(endpoint) in links
        [event] = [one for one in links if one.startswith("/dashboard/events/evt_")]
        page = browser.open(event)
        links = [str(one["href"]) for one in page.all("a")]
        assert {hook(endpoint), path} <= set(links)
        assert "every other active endpoint" in page.text, "the failing one does not get it"
        for link in links:
            if link.startswith("/dashboard/"):
                assert browser.get(link).status == 200, link

    @pytest.mark.parametrize("name", sorted(BY_NAME))
    def test_each_kind_of_event_leads_to_its_subject(self, name: str) -> None:
        fields = {field: f"{field}_1" for field in BY_NAME[name].fields}
        event = Event(id="evt_1", name=name, payload=fields, api_version="", created_at_ms=0)
        named = {subject.id for subject in list_subjects(event)}
        ids = ("paymentId", "webhookId", "deliveryId")
        assert {f"{field}_1" for field in ids if field in fields} <= named

    def test_the_list_filters_and_leads_to_the_payment_and_its_deliveries(
        self, console: Console
    ) -> None:
        endpoint = console.endpoint()
        payment = console.create().json
        console.happen("account.updated")
        console.run()
        browser = open_browser(console)
        html = browser.open("/dashboard/events?name=payment.created")
        hrefs = [str(one["href"]) for one in html.all("a")]
        assert f"/dashboard/payments/{payment['id']}" in hrefs
        [event] = [href for href in hrefs if href.startswith("/dashboard/events/evt_")]
        assert "account.updated" in texts(browser, "/dashboard/events")
        page = browser.open(event)
        assert payment["id"] in page.text
        leads = [str(one["href"]) for one in page.all("a")]
        assert any(href.startswith(f"{hook(endpoint)}/deliveries/") for href in leads)

    def test_an_event_says_who_got_it_when_its_deliveries_are_deleted(
        self, console: Console, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(trimming.KEPT, "active", 0)  # type: ignore[index]
        endpoint = console.endpoint()
        path = f"/dashboard/events/{console.happen()}"
        console.run()
        assert len(console.deliveries(endpoint)) == 1
        console.advance(DAY // SECOND + 2 * HOUR // SECOND)  # the worker purges every hour
        assert console.deliveries(endpoint) == []
        browser = open_browser(console)
        assert "Delivered The delivery is no longer kept." in texts(browser, path)
        assert "A delivery is kept for a day after its end." in texts(browser, hook(endpoint))
        assert browser.submit(path, f"{path}/resend").headers["location"] == path
        console.run()
        assert len(console.receiver.sent) == 2
        assert len(console.deliveries(endpoint)) == 1

    def test_an_event_is_sent_again(self, console: Console) -> None:
        console.endpoint()
        path = f"/dashboard/events/{console.happen()}"
        console.run()
        browser = open_browser(console)
        seen = browser.submit(path, f"{path}/resend")
        assert seen.headers["location"] == path
        console.run()
        assert len(console.receiver.sent) == 2

    def test_what_cannot_be_sent_is_refused_in_words(self, console: Console) -> None:
        path = f"/dashboard/events/{console.happen()}"
        seen = open_browser(console).submit(path, f"{path}/resend")
        assert (seen.status, seen.code) == (409, "conflict")
        assert b"No active webhook endpoint can get" in seen.body


class TestKeys:
    def test_names_and_last_use_and_no_secret(self, console: Console) -> None:
        browser = open_browser(console)
        text = texts(browser, "/dashboard/keys")
        used = "Last used: 2026-09-21 14:13:20 UTC"
        assert re.search(rf"main Active Standard key ?key_\S+{used}", text)
        assert re.search(r"v2:webhooks Active Restricted key ?key_\S+Last used: never", text)
        body = browser.get("/dashboard/keys").body.decode()
        assert not re.search(r"[srp]k_sandbox_", body)
        assert all(key.digest not in body for key in console.api.environment.keys)

    def test_states(self, console: Console) -> None:
        tenants, partition = console.api.service.tenants, console.api.partition
        now = console.clock.now()
        tenants.create_key(partition, "standard", "short", expires_at=to_datetime(now + 1_000))
        gone, _ = tenants.create_key(partition, "standard", "gone")
        tenants.revoke_key(partition, gone.id)
        console.system.advance(2)
        text = texts(open_browser(console), "/dashboard/keys")
        assert "short Expired Standard key" in text
        assert "gone Revoked Standard key" in text
