"""Tests, resends and recoveries over HTTP, and who may ask for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_core.webhooks.receiver import verify
from tests.http.console import DELIVERY, HOOK, OTHER, Console, conflict

NOBODY = "webhook_" + "x" * 24
NOTHING = "evt_" + "x" * 24


@pytest.fixture
def console() -> Console:
    return Console()


# Tests.


def test_a_test_reaches_its_endpoint_alone_and_verifies(console: Console) -> None:
    made = console.call(
        "POST", console.collection, {"url": HOOK, "subscribedEvents": ["account.updated"]}
    ).json
    endpoint, other = made["webhookEndpoint"], console.endpoint(OTHER)
    seen = console.post(f"webhooks/{endpoint['id']}/test")
    assert seen.status == 201
    assert set(seen.json) == {"webhookId", "eventId", "deliveryId", "status"}
    assert (seen.json["webhookId"], seen.json["status"]) == (endpoint["id"], "pending")
    console.run()
    [request] = console.receiver.sent
    assert request.headers["x-service-delivery"] == seen.json["deliveryId"]
    body = json.loads(request.body)
    assert (body["id"], body["name"]) == (seen.json["eventId"], "webhook.test")
    assert body["payload"] == {"webhookId": endpoint["id"]}
    unix_s = int(request.headers["x-service-timestamp"])
    event = verify(request.body, request.headers, made["signingSecret"], now=unix_s)
    assert event.id == seen.json["eventId"]
    assert not {name for name in request.headers if name.startswith("x-service-account")}
    assert not console.deliveries(other)


def test_a_test_with_a_key_is_sent_once(console: Console) -> None:
    endpoint = console.endpoint()
    path = f"webhooks/{endpoint['id']}/test"
    first, again = console.post(path, key="k"), console.post(path, key="k")
    assert first.body == again.body
    console.run()
    assert len(console.receiver.sent) == 1


def test_only_an_active_endpoint_is_tested(console: Console) -> None:
    endpoint = console.endpoint()
    console.patch(endpoint, status="disabled")
    conflict(console.post(f"webhooks/{endpoint['id']}/test"), "disabled")


# Resends.


def test_a_resend_repeats_ids_and_body(console: Console) -> None:
    endpoint = console.endpoint()
    event_id = console.happen()
    console.run()
    [first] = console.receiver.sent
    seen = console.post(f"events/{event_id}/resend", {"webhookId": endpoint["id"]})
    delivery = console.delivery(endpoint, event_id)
    assert seen.status == 200
    assert seen.json == {
        "eventId": event_id,
        "deliveries": [
            {"webhookId": endpoint["id"], "deliveryId": delivery["id"], "status": "pending"}
        ],
    }
    assert set(delivery) == DELIVERY
    console.run()
    [_, second] = console.receiver.sent
    assert first.body == second.body
    for header in ("x-service-delivery", "x-service-event-id", "x-service-event"):
        assert first.headers[header] == second.headers[header]
    assert console.delivery(endpoint, event_id)["attempts"] == 1


def test_a_resend_without_a_body_goes_to_all_that_are_subscribed(console: Console) -> None:
    event_id = console.happen()
    console.run()
    one, two = console.endpoint(), console.endpoint(OTHER, "account.created")
    console.endpoint("https://93.184.216.34/third", "account.updated")
    seen = console.post(f"events/{event_id}/resend", key="k")
    assert {item["webhookId"] for item in seen.json["deliveries"]} == {one["id"], two["id"]}
    assert console.post(f"events/{event_id}/resend", key="k").body == seen.body
    console.run()
    assert len(console.receiver.sent) == 2


def test_each_conflict_of_a_resend(console: Console) -> None:
    endpoint = console.endpoint()
    event_id = console.happen()
    console.run()
    path, body = f"events/{event_id}/resend", {"webhookId": endpoint["id"]}
    assert console.post(path, body).status == 200
    conflict(console.post(path, body), "pending")
    console.patch(endpoint, subscribedEvents=["account.updated"])
    conflict(console.post(path, body), "not subscribed")
    conflict(console.post(path), "none is subscribed")
    console.patch(endpoint, status="disabled")
    conflict(console.post(path, body), "disabled")


# Recoveries.


def test_a_recovery_brings_what_was_missed(console: Console) -> None:
    since = console.advance(1).json["now"]
    missed = [console.happen() for _ in range(3)]
    console.run()
    console.advance(29 * 86_400)
    endpoint = console.endpoint(HOOK, "account.created")
    seen = console.post(f"webhooks/{endpoint['id']}/recover", {"since": since}, key="k")
    assert seen.status == 202
    assert seen.json == {"webhookId": endpoint["id"], "since": since, "status": "recovering"}
    console.run()
    reported = [request.headers["x-service-event-id"] for request in console.receiver.sent]
    assert sorted(reported) == sorted(missed)
    console.advance(2 * 86_400)
    again = console.post(f"webhooks/{endpoint['id']}/recover", {"since": since}, key="k")
    assert (again.status, again.body) == (202, seen.body)
    late = console.post(f"webhooks/{endpoint['id']}/recover", {"since": since})
    assert (late.status, set(late.faults)) == (400, {"since"})


@pytest.mark.parametrize(
    "body", [{}, {"since": "yesterday-evening"}, {"since": 5}, {"since": "2026-01-01T00:00:00"},
             {"since": "2999-01-01T00:00:00Z"}, {"since": None}],
)  # fmt: skip
def test_a_recovery_from_no_time_is_refused(console: Console, body: Any) -> None:
    endpoint = console.endpoint()
    seen = console.post(f"webhooks/{endpoint['id']}/recover", body)
    assert (seen.status, set(seen.faults)) == (400, {"since"})


@pytest.mark.parametrize("since", ["", "yesterday", "2026-11-22", "2026-11-22T10:00:00", "x" * 99])
def test_a_recovery_from_an_invalid_time_says_what_a_time_is(console: Console, since: str) -> None:
    endpoint = console.endpoint()
    seen = console.post(f"webhooks/{endpoint['id']}/recover", {"since": since})
    assert seen.faults == {"since": "must be an ISO 8601 time with a zone"}


def test_a_recovery_of_a_closed_endpoint_is_refused(console: Console) -> None:
    since = console.advance(1).json["now"]
    endpoint = console.endpoint()
    console.patch(endpoint, status="archived")
    conflict(console.post(f"webhooks/{endpoint['id']}/recover", {"since": since}), "archived")


# Who may.


def every_call(console: Console) -> list[tuple[str, str, Any]]:
    endpoint, event_id = console.endpoint(), console.happen()
    console.run()
    path = f"/v2/console/webhooks/{endpoint['id']}"
    delivery = console.delivery(endpoint, event_id)
    return [
        ("POST", console.collection, {"url": OTHER}),
        ("GET", "/v2/console/webhooks", None),
        ("GET", path, None),
        ("PATCH", path, {"description": "new"}),
        ("POST", f"{path}/rotate-secret", None),
        ("GET", f"{path}/deliveries", None),
        ("POST", f"{path}/test", None),
        ("POST", f"{path}/recover", {"since": console.advance(1).json["now"]}),
        ("GET", "/v2/console/events", None),
        ("GET", f"/v2/console/events/{event_id}", None),
        ("POST", f"/v2/console/events/{event_id}/resend", {}),
        ("POST", f"{path}/deliveries/{delivery['id']}/retry", None),
    ]


def test_a_restricted_key_needs_both_scopes_for_every_call(console: Console) -> None:
    calls = every_call(console)
    for method, path, body in calls:
        for has, secret in console.half.items():
            seen = console.call(method, path, body, auth=console.api.basic(secret))
            assert (seen.status, seen.code) == (403, "insufficient_permissions"), path
            lacks = "v2:console" if has == "v2:webhooks" else "v2:webhooks"
            assert seen.json["error"]["details"]["required"] == [lacks]
    for method, path, body in calls[:-1]:
        seen = console.call(method, path, body, auth=console.api.basic(console.whole))
        assert seen.status < 300, (path, seen.body)
    conflict(console.call(*calls[-1], auth=console.api.basic(console.whole)), "pending")


def test_what_is_another_tenants_looks_like_nothing_at_all(console: Console) -> None:
    calls = every_call(console)
    tenants = console.api.service.tenants
    other = tenants.create_app("Other", "other")
    _, secret = tenants.create_key(other.environments["sandbox"], "standard", "k")
    auth = console.api.basic(secret, other.id)
    for method, path, body in calls:
        if "{" in path or path in ("/v2/console/webhooks", "/v2/console/events"):
            continue
        seen = console.call(method, path, body, auth=auth)
        assert (seen.status, seen.code) == (404, "not_found"), path
    own = calls[9][1]
    strange, missing, malformed = (
        console.call("GET", path, auth=auth)
        for path in (own, f"/v2/console/events/{NOTHING}", "/v2/console/events/nonsense")
    )
    bodies = [seen.json for seen in (strange, missing, malformed)]
    for body in bodies:
        del body["error"]["details"]["requestId"]
    assert bodies[0] == bodies[1] == bodies[2]
    assert console.call("GET", "/v2/console/events", auth=auth).json["data"] == []


def test_an_endpoint_that_there_is_not_is_not_found(console: Console) -> None:
    event_id = console.happen()
    for path, body in (
        (f"webhooks/{NOBODY}/test", None),
        (f"webhooks/{NOBODY}/recover", {"since": console.advance(1).json["now"]}),
        (f"events/{event_id}/resend", {"webhookId": NOBODY}),
        (f"events/{event_id}/resend", {"webhookId": "nonsense"}),
        (f"events/{NOTHING}/resend", None),
    ):
        seen = console.post(path, body)
        assert (seen.status, seen.code) == (404, "not_found"), path
