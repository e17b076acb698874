"""The routes of sessions and disputes, as a partner's backend calls them."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.clock import format_iso
from payments_core.engine.events import Event
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout

NO_SESSION = "ses_" + "A" * 24


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


@pytest.fixture
def settled(checkout: Checkout) -> Any:
    """A Payment that has succeeded."""
    payment = checkout.create().json
    checkout.authorize(payment, checkout.option(payment))
    for _ in range(2):
        checkout.run()
        checkout.advance(60)
    read = checkout.read(payment["id"])
    assert read["status"] == "succeeded"
    return read


def flag(checkout: Checkout, session_id: str, body: Any = None, **more: Any) -> Seen:
    more.setdefault("auth", f"Bearer {checkout.api.secret}")
    body = {"reason": "not delivered"} if body is None else body
    return checkout.api.call("POST", f"/v2/sessions/{session_id}/dispute", body, **more)


def resolve(checkout: Checkout, session_id: str, body: Any = None, **more: Any) -> Seen:
    body = {"resolution": "won"} if body is None else body
    return checkout.api.call("POST", f"/v2/sessions/{session_id}/dispute/resolve", body, **more)


def read(checkout: Checkout, session_id: str, **more: Any) -> Seen:
    return checkout.api.call("GET", f"/v2/sessions/{session_id}", **more)


def stored(checkout: Checkout) -> tuple[int, int]:
    """How many events there are about disputes, and how many stored answers."""
    partition, storage = checkout.api.partition, checkout.api.service.parts.ports.storage
    events = storage.read(partition, lambda s: s.find(Event, "by_created", limit=1_000)).records
    answers = storage.read(partition, lambda s: s.find(StoredResponse, "by_expiry", limit=1_000))
    disputed = [event for event in events if event.name.startswith("dispute.")]
    return len(disputed), len(answers.records)


def test_a_flagging_answers_exactly_what_the_interface_shows(
    checkout: Checkout, settled: Any
) -> None:
    body = {"reason": "not delivered", "description": "Nothing came."}
    seen = flag(checkout, settled["sessionId"], body)
    assert seen.status == 200
    assert seen.json == {
        "object": "session",
        "id": settled["sessionId"],
        "status": "settled",
        "dispute": {
            "status": "flagged",
            "reason": "not delivered",
            "description": "Nothing came.",
            "createdAt": format_iso(checkout.clock.now()),
        },
        "requestId": seen.headers["x-request-id"],
    }
    assert list(seen.json) == ["object", "id", "status", "dispute", "requestId"]
    assert list(seen.json["dispute"]) == ["status", "reason", "description", "createdAt"]


def test_a_session_is_read_before_and_after_its_dispute(checkout: Checkout, settled: Any) -> None:
    session_id = settled["sessionId"]
    before = read(checkout, session_id)
    assert before.status == 200
    assert before.json == {
        "object": "session",
        "id": session_id,
        "status": "settled",
        "paymentId": settled["id"],
        "amount": "25.00",
        "amountAtomic": "25000000",
        "assetSymbol": "USDC",
        "decimals": 6,
        "chainId": BASE,
        "dispute": None,
        "requestId": before.headers["x-request-id"],
        "createdAt": settled["createdAt"],
        "updatedAt": settled["updatedAt"],
    }
    flagged = flag(checkout, session_id).json["dispute"]
    during = read(checkout, session_id).json
    nothing_yet = {"resolution": None, "note": None, "resolvedAt": None}
    assert during["dispute"] == {**flagged, **nothing_yet}
    assert flagged["description"] is None
    assert during["updatedAt"] == flagged["createdAt"]
    checkout.advance(60)
    resolved = resolve(checkout, session_id, {"resolution": "lost", "note": "our fault"})
    assert resolved.status == 200
    assert resolved.json["dispute"] == {
        **flagged,
        "status": "resolved",
        "resolution": "lost",
        "note": "our fault",
        "resolvedAt": format_iso(checkout.clock.now()),
    }
    after = read(checkout, session_id)
    own = {"requestId": after.headers["x-request-id"]}
    assert after.json == {**resolved.json, **own}
    assert resolved.json["requestId"] == resolved.headers["x-request-id"] != own["requestId"]
    assert after.json["status"] == "settled"
    assert after.json["updatedAt"] == after.json["dispute"]["resolvedAt"]
    assert checkout.read(settled["id"]) == settled  # nothing of it moves the Payment


def test_a_session_shows_its_status_in_the_older_words(checkout: Checkout) -> None:
    payment = checkout.create(expiresInSeconds=300).json
    assert read(checkout, payment["sessionId"]).json["status"] == "open"
    checkout.advance(310)
    assert read(checkout, payment["sessionId"]).json["status"] == "expired"


def test_a_dispute_comes_once_and_only_about_a_settled_session(
    checkout: Checkout, settled: Any
) -> None:
    waiting = checkout.create(key="other").json
    for seen in (
        flag(checkout, waiting["sessionId"]),
        resolve(checkout, waiting["sessionId"]),
        resolve(checkout, settled["sessionId"]),
    ):
        assert (seen.status, seen.code) == (409, "invalid_state")
    assert flag(checkout, settled["sessionId"]).status == 200
    assert flag(checkout, settled["sessionId"]).code == "invalid_state"
    assert resolve(checkout, settled["sessionId"]).status == 200
    assert flag(checkout, settled["sessionId"]).code == "invalid_state"
    assert resolve(checkout, settled["sessionId"]).code == "invalid_state"
    assert stored(checkout)[0] == 2


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, ["reason"]),
        ({"reason": ""}, ["reason"]),
        ({"reason": "x" * 513}, ["reason"]),
        ({"reason": None}, ["reason"]),
        ({"reason": 1, "description": 2, "amount": "1"}, ["reason", "description", "amount"]),
        ({"reason": "r", "description": "x" * 2_049}, ["description"]),
        ({"reason": "a\0b"}, ["reason"]),
        ([], [""]),
    ],
)
def test_a_flagging_names_all_its_faults_and_stores_nothing(
    checkout: Checkout, settled: Any, body: Any, paths: list[str]
) -> None:
    before = stored(checkout)
    seen = flag(checkout, settled["sessionId"], body, key="k")
    assert (seen.status, seen.code) == (400, "validation_error")
    assert list(seen.faults) == paths
    assert read(checkout, settled["sessionId"]).json["dispute"] is None
    assert stored(checkout) == before
    assert flag(checkout, settled["sessionId"], key="k").status == 200


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, ["resolution"]),
        ({"resolution": "draw", "note": "x" * 1_025}, ["resolution", "note"]),
        ({"resolution": "won", "reason": "r"}, ["reason"]),
        ({"resolution": ["won"]}, ["resolution"]),
    ],
)
def test_a_resolution_names_all_its_faults(
    checkout: Checkout, settled: Any, body: Any, paths: list[str]
) -> None:
    flag(checkout, settled["sessionId"])
    seen = resolve(checkout, settled["sessionId"], body)
    assert (seen.status, list(seen.faults)) == (400, paths)
    assert read(checkout, settled["sessionId"]).json["dispute"]["status"] == "flagged"


def test_a_retry_replays_the_stored_answer_with_its_request_id(
    checkout: Checkout, settled: Any
) -> None:
    first = flag(checkout, settled["sessionId"], key="k")
    _, rotated = checkout.api.service.tenants.create_key(
        checkout.api.partition, "standard", "rotated"
    )
    again = flag(checkout, settled["sessionId"], key="k", auth=f"Bearer {rotated}")
    assert (again.status, again.body) == (200, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json["requestId"] == first.headers["x-request-id"] != again.headers["x-request-id"]
    seen = flag(checkout, settled["sessionId"], {"reason": "other"}, key="k")
    assert (seen.status, seen.code) == (409, "idempotency_conflict")
    assert flag(checkout, settled["sessionId"]).code == "invalid_state"
    done = resolve(checkout, settled["sessionId"], key="r")
    assert resolve(checkout, settled["sessionId"], key="r").body == done.body
    assert stored(checkout)[0] == 2


def test_another_tenants_session_looks_like_none(checkout: Checkout, settled: Any) -> None:
    tenants = checkout.api.service.tenants
    other = tenants.create_app("Other", "other")
    _, secret = tenants.create_key(other.environments["sandbox"], "standard", "k")
    basic, bearer = checkout.api.basic(secret, other.id), f"Bearer {secret}"
    for call, auth in ((read, basic), (flag, bearer), (resolve, basic)):
        ids = (settled["sessionId"], NO_SESSION, "ses_nonsense", settled["id"])
        answers = [call(checkout, id, auth=auth) for id in ids]  # type: ignore[operator]
        errors = [seen.json["error"] for seen in answers]
        for error in errors:
            assert error["details"].pop("requestId")
        assert {seen.status for seen in answers} == {404}
        assert errors == [errors[0]] * len(errors)
        assert errors[0]["message"] == "No such session."
    assert read(checkout, settled["sessionId"]).json["dispute"] is None


def test_disputes_need_the_scope_of_payments(checkout: Checkout, settled: Any) -> None:
    api = checkout.api
    basic, bearer = api.basic(api.restricted_secret), f"Bearer {api.restricted_secret}"
    for call, auth in ((read, basic), (flag, bearer), (resolve, basic)):
        seen = call(checkout, settled["sessionId"], auth=auth)  # type: ignore[operator]
        assert (seen.status, seen.code) == (403, "insufficient_permissions")


def test_the_events_of_a_dispute_are_in_the_outbox_and_said_to_be_sent(
    checkout: Checkout, settled: Any
) -> None:
    flag(checkout, settled["sessionId"])
    resolve(checkout, settled["sessionId"], {"resolution": "withdrawn"})
    partition, storage = checkout.api.partition, checkout.api.service.parts.ports.storage
    events = storage.read(partition, lambda s: s.find(Event, "by_created", limit=1_000)).records
    reported = {event.name: event.payload for event in events if event.name.startswith("dispute.")}
    facts = {"sessionId": settled["sessionId"], "paymentId": settled["id"]}
    assert reported == {
        "dispute.flagged": {**facts, "status": "flagged"},
        "dispute.resolved": {**facts, "status": "resolved"},
    }
    catalog = checkout.api.call("GET", "/v2/console/webhooks").json["eventCatalog"]
    assert all(event["emitted"] for event in catalog if event["name"] in reported)
