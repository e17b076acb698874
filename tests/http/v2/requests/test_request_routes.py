"""The request log of the API: what is listed of the requests, and what never is."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.tenants.request_log import PAGE_REQUESTS
from tests.http.checkout import Checkout
from tests.http.dashboard.test_request_pages import ACCOUNT, Recorded, record

LIST = "/v2/console/requests"


@pytest.fixture
def recorded(checkout: Checkout) -> Recorded:
    return record(checkout)


def list_requests(recorded: Recorded, query: str = "", **more: Any) -> Any:
    seen = recorded.call("GET", f"{LIST}{query}", **more)
    assert seen.status == 200, seen.body
    return seen.json


def test_a_request_is_listed_with_how_it_ended(recorded: Recorded) -> None:
    made = recorded.call("POST", "/v2/accounts", ACCOUNT)
    refused = recorded.call("POST", "/v2/accounts?note=mine", {**ACCOUNT, "email": "none"})
    failed, succeeded = list_requests(recorded)["data"]
    assert failed.pop("createdAt") > succeeded["createdAt"]
    assert failed.pop("durationMs") >= 0
    assert failed == {
        "id": refused.headers["x-request-id"], "method": "POST", "path": "/v2/accounts",
        "credential": "server_key", "status": 400, "errorCode": "validation_error",
    }  # fmt: skip
    assert (succeeded["id"], succeeded["errorCode"]) == (made.headers["x-request-id"], None)


def test_neither_queries_nor_bodies_nor_secrets_are_shown(recorded: Recorded) -> None:
    key = recorded.api.secret
    recorded.call("POST", "/v2/accounts?note=mine", {**ACCOUNT, "email": "secret@shop.example"})
    recorded.call("GET", f"/v2/payments/{key}")
    text = recorded.call("GET", LIST).body.decode()
    for secret in ("note", "secret@shop.example", key, key[3:]):
        assert secret not in text
    assert "/v2/payments/sk_sandbox_[redacted]" in text


def test_requests_are_found_by_a_status_or_a_class_of_them(recorded: Recorded) -> None:
    recorded.call("GET", "/v2/accounts")
    recorded.call("GET", "/v2/accounts?limit=0")
    recorded.call("GET", "/v2/accounts/acct_nobody")
    for query, found in (
        ("4xx", [404, 400]), ("404", [404]), ("2xx", [200]), ("5xx", []), ("401", []),
    ):  # fmt: skip
        listed = list_requests(recorded, f"?status={query}")["data"]
        assert [one["status"] for one in listed] == found, query


def test_requests_are_found_by_a_part_of_their_path(recorded: Recorded) -> None:
    for path in ("/v2/accounts", "/v2/accounts/acct_nobody", "/v2/payments"):
        recorded.call("GET", path)
    for query, found in (
        ("path=acct_nobody", ["/v2/accounts/acct_nobody"]),
        ("path=accounts&status=2xx", ["/v2/accounts"]),
        ("path=refunds", []),
    ):
        assert [one["path"] for one in list_requests(recorded, f"?{query}")["data"]] == found


@pytest.mark.parametrize("status", ["", "4", "xx", "4x", "4XX", "600", "4xx%0a", "404a", "٤04"])
def test_anything_else_is_refused_as_a_status(recorded: Recorded, status: str) -> None:
    seen = recorded.call("GET", f"{LIST}?status={status}".encode().decode("latin-1"))
    assert (seen.status, seen.code) == (400, "validation_error")
    assert seen.json["error"]["details"]["fields"][0]["path"] == "status"


def test_the_list_has_pages_that_miss_nothing(recorded: Recorded) -> None:
    for _ in range(3):
        for _ in range(PAGE_REQUESTS):
            recorded.api.call("GET", "/v2/accounts")
        recorded.recorder.flush()
    seen: list[str] = []
    cursor = ""
    while True:
        page = list_requests(recorded, f"?limit=25{cursor}")
        seen += [request["id"] for request in page["data"]]
        if not page["hasNextPage"]:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert len(seen) == len(set(seen)) == 3 * PAGE_REQUESTS
    stolen = recorded.call("GET", f"{LIST}?status=2xx&limit=25{cursor}")
    assert (stolen.status, stolen.code) == (400, "validation_error")


def test_who_follows_the_log_does_not_fill_it(recorded: Recorded) -> None:
    recorded.call("GET", "/v2/accounts")
    for query in ("", "?status=4xx", "?limit=0"):
        recorded.call("GET", f"{LIST}{query}")
    assert [one["path"] for one in list_requests(recorded)["data"]] == ["/v2/accounts"]


def test_another_environment_has_a_log_of_its_own(recorded: Recorded) -> None:
    tenants = recorded.api.service.tenants
    other = tenants.create_app("Other", "other")
    _, secret = tenants.create_key(other.environments["sandbox"], "standard", "k")
    auth = recorded.api.basic(secret, other.id)
    recorded.call("GET", "/v2/accounts")
    for _ in range(2 * PAGE_REQUESTS):
        recorded.api.call("GET", "/v2/payments", auth=auth)
    assert [one["path"] for one in list_requests(recorded)["data"]] == ["/v2/accounts"]
    theirs = list_requests(recorded, auth=auth)["data"]
    assert {one["path"] for one in theirs} == {"/v2/payments"}
