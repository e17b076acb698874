"""The webhook console, field by field, with each refusal of interface and contract."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from payments_core.engine.events import BY_NAME
from payments_core.webhooks.transports.port import TransportResult
from tests.http.api_harness import Seen
from tests.http.checkout import BASE
from tests.http.console import DELIVERY, HOOK, LATER, NEVER, OK, OTHER, Console, conflict

ENDPOINT = {
    "id", "appId", "environmentId", "url", "description", "subscribedEvents", "status",
    "createdAt", "updatedAt", "filters", "bodyFormat",
}  # fmt: skip
ENVELOPE = {"id", "name", "apiVersion", "createdAt", "payload"}


@pytest.fixture
def console() -> Console:
    return Console()


# What the answers hold.


def test_each_answer_about_an_endpoint_has_its_fields(console: Console) -> None:
    made = console.call("POST", console.collection, {"url": HOOK, "description": "mine"})
    assert made.status == 201
    assert set(made.json) == {"webhookEndpoint", "signingSecret"}
    endpoint = made.json["webhookEndpoint"]
    assert set(endpoint) == ENDPOINT
    assert endpoint["subscribedEvents"] == []
    path = f"/v2/console/webhooks/{endpoint['id']}"
    read = console.call("GET", path).json
    assert (read["webhookEndpoint"], set(read)) == (endpoint, {"webhookEndpoint", "health"})
    changed = console.call("PATCH", path, {"description": "yours"})
    assert (changed.status, set(changed.json)) == (200, {"webhookEndpoint"})
    rotated = console.call("POST", f"{path}/rotate-secret")
    assert (rotated.status, set(rotated.json)) == (200, {"webhookEndpoint", "signingSecret"})
    for seen in (made, changed, rotated):
        assert seen.headers["cache-control"] == "no-store"
    for seen in (changed, console.call("GET", path), console.get("webhooks")):
        assert made.json["signingSecret"] not in seen.body.decode()


def test_the_list_has_the_catalog_and_the_delivery_policy(console: Console) -> None:
    endpoint = console.endpoint()
    listed = console.get("webhooks").json
    assert set(listed) == {
        "webhookEndpoints", "eventCatalog", "deliveryPolicy", "limit", "hasNextPage", "nextCursor",
    }  # fmt: skip
    assert listed["webhookEndpoints"] == [endpoint]
    for event in listed["eventCatalog"]:
        known = BY_NAME[event["name"]]
        assert (event["meaning"], event["fields"]) == (known.meaning, list(known.fields))
    config = console.call("GET", "/v2/partners/config").json
    assert listed["deliveryPolicy"] == config["capabilities"]["webhooks"]["deliveryPolicy"]
    assert set(listed["deliveryPolicy"]) == {
        "guarantee", "maxAttempts", "localPrivateDestinationsAllowed", "dedupe",
    }  # fmt: skip


def test_a_delivery_leaves_out_the_moments_that_do_not_apply(console: Console) -> None:
    endpoint = console.endpoint()
    event_id = console.happen()
    console.receiver.answer = LATER
    console.run()
    failed = console.delivery(endpoint, event_id)
    assert set(failed) == DELIVERY | {"nextAttemptAt"}
    assert (failed["status"], failed["responseStatus"], failed["responseBody"]) == (
        "failed", 503, "busy",
    )  # fmt: skip
    assert failed["failureReason"] == "The endpoint answered 503."
    assert failed["requestBody"].encode() == console.receiver.sent[-1].body
    console.receiver.answer = TransportResult(failure="refused")
    console.advance(31)
    unanswered = console.delivery(endpoint, event_id)
    assert (unanswered["responseStatus"], unanswered["responseBody"]) == (None, None)
    assert unanswered["failureReason"] == "The endpoint did not answer: refused."
    console.receiver.answer = OK
    console.advance(61)
    delivered = console.delivery(endpoint, event_id)
    assert set(delivered) == DELIVERY | {"deliveredAt"}
    assert (delivered["status"], delivered["attempts"]) == ("delivered", 3)
    assert delivered["failureReason"] is None
    console.receiver.answer = NEVER
    second = console.happen()
    console.run()
    abandoned = console.delivery(endpoint, second)
    assert (set(abandoned), abandoned["status"]) == (DELIVERY, "abandoned")
    assert abandoned["failureReason"] == "The endpoint answered 400, which is not tried again."
    assert console.retry(endpoint, abandoned).json == {
        "webhookId": endpoint["id"], "deliveryId": abandoned["id"], "status": "pending",
    }  # fmt: skip
    again = console.delivery(endpoint, second)
    assert (set(again), again["failureReason"]) == (DELIVERY, None)


def test_an_endpoint_shows_whether_it_accepts_deliveries(console: Console) -> None:
    endpoint = console.endpoint()

    def health() -> Any:
        return console.get(f"webhooks/{endpoint['id']}").json["health"]

    nothing = {"deliveryId": None, "failureReason": None, "checkedAt": None}
    assert health() == {"status": "unknown", **nothing}
    first = console.happen()
    console.receiver.answer = LATER
    console.run()
    failed = console.delivery(endpoint, first)
    assert health() == {
        "status": "failing",
        "deliveryId": failed["id"],
        "failureReason": "The endpoint answered 503.",
        "checkedAt": failed["updatedAt"],
    }
    console.happen()  # what waits for its first attempt says nothing yet
    assert health()["status"] == "failing"
    console.receiver.answer = OK
    console.advance(31)
    assert (health()["status"], health()["failureReason"]) == ("ok", None)


def test_deliveries_come_by_pages_most_recently_updated_first(console: Console) -> None:
    endpoint = console.endpoint()
    path = f"webhooks/{endpoint['id']}/deliveries"
    for _ in range(5):
        console.happen()
        console.run()
        console.advance(1)
    found: list[Any] = []
    cursor = ""
    for more in (True, True, False):
        page = console.get(f"{path}?limit=2{cursor}").json
        assert set(page) == {
            "webhookEndpoint", "deliveries", "limit", "hasNextPage", "nextCursor",
        }  # fmt: skip
        assert page["webhookEndpoint"] == {"id": endpoint["id"], "status": "active"}
        assert (page["limit"], page["hasNextPage"]) == (2, more)
        found += page["deliveries"]
        cursor = f"&cursor={page['nextCursor']}"
    assert page["nextCursor"] is None
    assert len({item["id"] for item in found}) == 5
    updates = [item["updatedAt"] for item in found]
    assert updates == sorted(updates, reverse=True)
    assert console.get(path).json["limit"] == 50
    other = console.endpoint(OTHER)
    foreign = console.get(f"{path}?limit=2").json["nextCursor"]
    for target in (
        f"{path}?limit=0",
        f"{path}?limit=101",
        f"{path}?cursor=abc",
        f"webhooks/{other['id']}/deliveries?cursor={foreign}",
        f"events?cursor={foreign}",
    ):
        seen = console.get(target)
        assert (seen.status, seen.code) == (400, "validation_error"), target


# Retries: each conflict of the interface.


def test_a_retry_is_refused_where_the_endpoint_is_not_active(console: Console) -> None:
    endpoint = console.endpoint()
    console.receiver.answer = NEVER
    event_id = console.happen()
    console.run()
    delivery = console.delivery(endpoint, event_id)
    for status in ("disabled", "archived"):
        console.patch(endpoint, status=status)
        conflict(console.retry(endpoint, delivery), status)


def test_a_retry_is_refused_where_the_delivery_is_pending_or_delivered(console: Console) -> None:
    endpoint = console.endpoint()
    console.receiver.answer = NEVER
    event_id = console.happen()
    console.run()
    delivery = console.delivery(endpoint, event_id)
    assert console.retry(endpoint, delivery).status == 200
    conflict(console.retry(endpoint, delivery), "pending")  # it was requeued already
    console.receiver.answer = OK
    console.run()
    conflict(console.retry(endpoint, delivery), "delivered")


def test_a_retry_is_refused_where_the_endpoint_is_no_longer_subscribed(console: Console) -> None:
    endpoint = console.endpoint()
    console.receiver.answer = LATER
    event_id = console.happen()
    console.run()
    console.patch(endpoint, subscribedEvents=["account.updated"])
    console.run()
    delivery = console.delivery(endpoint, event_id)
    assert delivery["status"] == "abandoned"
    conflict(console.retry(endpoint, delivery), "not subscribed")


def test_a_retry_is_refused_while_the_delivery_is_being_processed(console: Console) -> None:
    endpoint = console.endpoint()
    console.receiver.answer = LATER
    event_id = console.happen()
    console.run()
    delivery = console.delivery(endpoint, event_id)
    assert delivery["status"] == "failed"
    seen: list[Seen] = []
    console.receiver.before = lambda: seen.extend(
        (
            console.retry(endpoint, delivery),
            console.post(f"events/{event_id}/resend", {"webhookId": endpoint["id"]}),
        )
    )
    console.advance(31)
    assert len(seen) == 2
    for answer in seen:
        conflict(answer, "An attempt of this delivery is in progress")


def test_a_retry_with_a_key_is_answered_again(console: Console) -> None:
    endpoint = console.endpoint()
    console.receiver.answer = NEVER
    event_id = console.happen()
    console.run()
    delivery = console.delivery(endpoint, event_id)
    first = console.retry(endpoint, delivery, key="k")
    again = console.retry(endpoint, delivery, key="k")
    assert (first.status, again.status) == (200, 200)
    assert first.body == again.body
    assert again.headers["idempotent-replayed"] == "true"


# Events.


def test_events_come_newest_first_as_they_are_delivered(console: Console) -> None:
    console.endpoint(HOOK, "account.created")
    ids = []
    for _ in range(3):
        console.advance(1)
        ids.append(console.happen())
    console.run()
    listed = console.get("events?name=account.created&limit=3").json
    assert set(listed) == {"data", "limit", "hasNextPage", "nextCursor"}
    assert [event["id"] for event in listed["data"]] == ids[::-1]
    sent = {
        json.loads(request.body)["id"]: json.loads(request.body)
        for request in console.receiver.sent
    }
    for event in listed["data"]:
        assert set(event) == ENVELOPE
        assert event == sent[event["id"]]
        assert console.get(f"events/{event['id']}").json == event


def test_events_page_and_filter(console: Console) -> None:
    before = console.advance(10).json["now"]
    ids = []
    for name in ("account.created", "account.updated", "dispute.flagged"):
        console.advance(1)
        ids.append(console.happen(name))
    after = console.advance(1).json["now"]
    found, cursor = [], ""
    for _ in range(3):
        page = console.get(f"events?limit=1&createdAfter={quote(before)}{cursor}").json
        found += [event["id"] for event in page["data"]]
        cursor = f"&cursor={page['nextCursor']}"
    assert found == ids[::-1]

    def listed(query: str) -> list[str]:
        return [event["id"] for event in console.get(f"events?{query}").json["data"]]

    assert listed(f"createdAfter={quote(after)}") == []
    assert ids[1] not in listed(f"createdBefore={quote(before)}")
    assert listed(f"name=account.updated&createdAfter={quote(before)}") == [ids[1]]
    owner = console.get(f"events/{ids[0]}").json["payload"]["accountId"]
    assert ids[0] in listed(f"accountId={owner}&createdAfter={quote(before)}")
    own = console.get(f"events?accountId={console.payer}").json["data"]
    assert own
    assert {event["payload"].get("accountId", console.payer) for event in own} == {console.payer}
    assert listed("accountId=acct_nobody") == []


def test_a_wrong_query_for_events_names_every_fault(console: Console) -> None:
    query = "name=no.such&createdAfter=yesterday&createdBefore=2026-01-01T00:00:00&limit=0&x=1"
    seen = console.get(f"events?{query}")
    assert seen.status == 400
    assert {"limit", "x"} <= set(seen.faults)
    seen = console.get("events?name=no.such&createdAfter=yesterday0&createdBefore=2026-01-01T00:00")
    assert (seen.status, set(seen.faults)) == (400, {"name", "createdAfter", "createdBefore"})


# Whose events.


def test_a_payment_to_an_outside_wallet_names_no_account_of_ours(console: Console) -> None:
    console.endpoint()
    outside = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    payment = console.create(destination={"type": "wallet", "address": outside}).json
    assert (payment["accountId"], payment["externalUserId"]) == (None, None)
    console.transfer(payment["escrow"]["address"], "25.00", chainId=BASE)
    console.advance(60)
    assert console.read(payment["id"])["status"] == "succeeded"
    paid = console.create(destination={"type": "wallet", "address": outside}, key="vault").json
    option = console.option(paid)
    assert console.authorize(paid, option).status == 200
    console.advance(60)
    assert console.read(paid["id"])["status"] == "succeeded"
    reported = [
        request
        for request in console.receiver.sent
        if json.loads(request.body)["payload"].get("paymentId") in (payment["id"], paid["id"])
    ]
    names = {request.headers["x-service-event"] for request in reported}
    assert {"payment.created", "payment.accepted", "payment.succeeded"} <= names
    assert "vault_funding.confirmed" in names
    for request in reported:
        body = json.loads(request.body)
        assert body["payload"].get("accountId") is None
        assert "x-service-account-id" not in request.headers
        assert "x-service-external-user-id" not in request.headers
        everything = request.body.decode() + str(dict(request.headers))
        for internal in ("acct_", "env_", "vault_", "app_", '"payer"', '"merchant"'):
            if internal == "vault_":
                everything = everything.replace("vault_funding", "")
            assert internal not in everything, (internal, everything)


def test_an_accounts_events_name_it_and_its_user_percent_encoded(console: Console) -> None:
    console.endpoint(HOOK, "account.created")
    user = "Zoë & co/1 %\r\n"
    body = {"externalUserId": user, "subjectType": "individual"}
    seen = console.call("POST", "/v2/accounts", body)
    assert seen.status == 201, seen.body
    console.run()
    [request] = console.receiver.sent
    assert request.headers["x-service-account-id"] == seen.json["id"]
    header = request.headers["x-service-external-user-id"]
    assert header == quote(user, safe="")
    assert header.isascii()
