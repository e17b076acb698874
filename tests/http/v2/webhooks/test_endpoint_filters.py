"""Filters and formats of endpoints over HTTP: what is refused, shown, and sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_core.webhooks.receiver import verify
from tests.http.api_harness import Seen
from tests.http.console import HOOK, Console

LARGE = {"field": "payload.amountAtomic", "op": ">=", "value": "100000000"}


@pytest.fixture
def console() -> Console:
    return Console()


def create(console: Console, **more: Any) -> Seen:
    return console.call("POST", console.collection, {"url": HOOK, **more})


def faults(seen: Seen) -> dict[str, str]:
    assert (seen.status, seen.code) == (400, "validation_error"), seen.body
    return {fault["path"]: fault["message"] for fault in seen.json["error"]["details"]["fields"]}


def test_filters_are_shown_and_changed(console: Console) -> None:
    usdc = {"field": "payload.assetSymbol", "op": "in", "values": ["USDC", "EURC"]}
    made = create(console, filters=[LARGE, usdc, LARGE]).json["webhookEndpoint"]
    shown = [{**LARGE, "values": []}, {**usdc, "value": None}]
    assert (made["filters"], made["bodyFormat"]) == (shown, "envelope")
    console.patch(made, description="Ours")
    [listed] = console.get("webhooks").json["webhookEndpoints"]
    assert listed["filters"] == shown
    console.patch(made, filters=shown[:1], bodyFormat="cloudevents")  # as they are shown
    read = console.get(f"webhooks/{made['id']}").json["webhookEndpoint"]
    assert (read["filters"], read["bodyFormat"]) == (shown[:1], "cloudevents")
    console.patch(made, filters=[])
    assert console.get(f"webhooks/{made['id']}").json["webhookEndpoint"]["filters"] == []


def test_every_fault_has_its_path_and_nothing_is_stored(console: Console) -> None:
    seen = create(
        console,
        filters=[
            {"field": "payload.amount_atomic", "op": "=", "value": "1"},
            {"field": "payload.amountAtomic", "op": ">=", "value": "1e8"},
            {"field": "payload.assetSymbol", "op": "<", "value": "USDC"},
            {"field": "payload.chainId", "op": "in", "values": ["8453", "Base"]},
        ],
    )
    assert set(faults(seen)) == {
        "filters[0].field", "filters[1].value", "filters[2].op", "filters[3].values[1]",
    }  # fmt: skip
    assert console.get("webhooks").json["webhookEndpoints"] == []


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"filters": [LARGE] * 11}, "filters"),
        ({"filters": None}, "filters"),
        ({"filters": [{"field": "name"}]}, "filters[0].op"),
        ({"filters": [{**LARGE, "op": "matches"}]}, "filters[0].op"),
        ({"filters": [{**LARGE, "value": 100000000}]}, "filters[0].value"),
        ({"filters": [{**LARGE, "code": "x"}]}, "filters[0].code"),
        ({"filters": [{"field": "name", "op": "in", "values": ["x"] * 51}]}, "filters[0].values"),
        ({"bodyFormat": "binary"}, "bodyFormat"),
        ({"bodyFormat": None}, "bodyFormat"),
    ],
)
def test_what_is_wrong_is_refused(console: Console, more: dict[str, Any], path: str) -> None:
    assert path in faults(create(console, **more))
    made = create(console).json["webhookEndpoint"]
    seen = console.call("PATCH", f"/v2/console/webhooks/{made['id']}", more)
    assert path in faults(seen)


def test_a_cloud_event_verifies_and_reads_as_the_event(console: Console) -> None:
    made = create(
        console,
        bodyFormat="cloudevents",
        filters=[{"field": "name", "op": "=", "value": "account.updated"}],
    ).json
    console.happen("account.created")
    event_id = console.happen("account.updated")
    console.run()
    [request] = console.receiver.sent
    assert request.headers["Content-Type"] == "application/cloudevents+json"
    unix_s = int(request.headers["x-service-timestamp"])
    event = verify(request.body, request.headers, made["signingSecret"], now=unix_s)
    shown = console.get(f"events/{event_id}").json
    read = [event.id, event.name, event.api_version, event.created_at, event.payload]
    assert read == list(shown.values())
    body = json.loads(request.body)
    assert (body["specversion"], body["type"], body["subject"]) == (
        "1.0", "account.updated", event.payload["accountId"],
    )  # fmt: skip
