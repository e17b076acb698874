"""What every request goes through, in which order, and what every response carries."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from payments_core.contracts.versions import CURRENT_VERSION
from payments_core.engine.identifiers import is_identifier
from payments_core_http.errors import logger
from payments_core_http.observability import health
from payments_core_http.routing import Route, group_by_path
from tests.http.api_harness import KEY, ROWS, ApiHarness, read

NO_ID = "payment_" + "A" * 24


def test_the_process_is_alive_without_a_credential(api: ApiHarness) -> None:
    assert api.call("GET", "/healthz", auth=None).json == {"status": "ok"}


def test_the_process_is_ready_while_storage_answers(api: ApiHarness) -> None:
    assert api.call("GET", "/readyz", auth=None).json == {"status": "ready"}


def test_the_process_is_not_ready_without_storage(api: ApiHarness) -> None:
    api.service.out_of_reach()
    seen = api.call("GET", "/readyz", auth=None)
    assert (seen.status, seen.code, seen.headers["retry-after"]) == (503, "unavailable", "1")
    assert api.call("GET", "/healthz", auth=None).status == 200


def test_the_process_is_not_ready_while_storage_hangs(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, asked = threading.Event(), []

    def hang(*_: object) -> None:
        asked.append(1)
        hangs.wait(30)

    monkeypatch.setattr(api.service.parts.ports.storage, "read", hang)
    monkeypatch.setattr(health, "READY_TIMEOUT_S", 0.05)
    seen = [api.call("GET", "/readyz", auth=None) for _ in range(3)]
    assert {one.status for one in seen} == {503}
    assert len(asked) == 1  # the three left one thread behind, not three
    hangs.set()
    monkeypatch.undo()
    assert api.call("GET", "/readyz", auth=None).status == 200


def test_storage_out_of_reach_is_503_with_retry_after(api: ApiHarness) -> None:
    api.service.out_of_reach()
    seen = api.make()
    assert (seen.status, seen.code, seen.headers["retry-after"]) == (503, "unavailable", "1")


@pytest.mark.parametrize(
    ("method", "target", "auth", "status"),
    [
        ("GET", "/healthz", None, 200),
        ("GET", "/v2/partners/config", "", 200),
        ("GET", "/v2/partners/config", None, 401),
        ("GET", "/nowhere", None, 404),
        ("GET", "/v2/partners/config/", "", 404),
        ("POST", "/v2/partners/config", "", 405),
        ("OPTIONS", "/v2/partners/config", None, 204),
        ("HEAD", "/v2/partners/config", "", 200),
        ("GET", "/v2/burst", "", 500),
        ("GET", f"/v2/things/{NO_ID}", "", 404),
        ("OPTIONS", "/nowhere", None, 404),
    ],
)
def test_every_response_carries_its_id_and_its_version(
    api: ApiHarness, method: str, target: str, auth: str | None, status: int
) -> None:
    seen = api.call(method, target, auth=auth)
    assert seen.status == status
    assert is_identifier(seen.headers["x-request-id"], "req")
    assert seen.headers["service-version"] == CURRENT_VERSION
    assert seen.headers["cache-control"] == "no-store"
    if seen.body and status >= 400:
        assert seen.headers["content-type"] == "application/json"
        assert seen.json["error"]["details"]["requestId"] == seen.headers["x-request-id"]
        assert set(seen.json["error"]) == {"code", "message", "details"}


def test_request_ids_are_not_repeated(api: ApiHarness) -> None:
    ids = {api.call("GET", "/healthz").headers["x-request-id"] for _ in range(20)}
    assert len(ids) == 20


def test_an_unknown_path_is_route_not_found(api: ApiHarness) -> None:
    seen = api.call("POST", "/v2/nothing", {"a": 1})
    assert (seen.status, seen.code) == (404, "route_not_found")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v2/partners/config", "GET, HEAD, OPTIONS"),
        ("/v2/client-sessions", "OPTIONS, POST"),
        ("/v2/things", "GET, HEAD, OPTIONS, POST"),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "BREW"])
def test_another_method_is_405_with_what_is_allowed(
    api: ApiHarness, path: str, allowed: str, method: str
) -> None:
    seen = api.call(method, path, auth=None, valid=False)
    assert (seen.status, seen.code) == (405, "method_not_allowed")
    assert seen.headers["allow"] == allowed


@pytest.mark.parametrize("name", ["REQUEST_URI", "RAW_URI"])
@pytest.mark.parametrize(
    "target",
    ["/v2%2Fthings", "/v2%2fthings?name=a", "/v2/things%2F", "http://host/v2%2Fthings?x#%2F"],
)
def test_an_encoded_slash_separates_nothing(api: ApiHarness, name: str, target: str) -> None:
    """Servers decode the path before WSGI sees it; the target as it was sent is beside it."""
    for method in ("GET", "POST", "OPTIONS", "PATCH"):
        seen = api.call(method, "/v2/things", environ={name: target})
        assert (seen.status, seen.code) == (404, "route_not_found")


def test_a_slash_in_a_query_and_an_escaped_percent_sign_are_not_encoded_slashes(
    api: ApiHarness,
) -> None:
    for target in ("/v2/things?name=a%2Fb", "/v2/things?/v2%2Fthings", "/v2/things"):
        assert api.call("GET", "/v2/things", environ={"REQUEST_URI": target}).status == 200
    twice = api.call(
        "GET", "/v2/payments/payment_1%2F", environ={"REQUEST_URI": "/v2/payments/payment_1%252F"}
    )
    assert twice.code == "not_found"


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("path", ["//v2/things", "///v2/things", "/v2//things"])
def test_a_path_with_a_slash_too_many_is_404(api: ApiHarness, method: str, path: str) -> None:
    seen = api.call(method, path, valid=False)
    assert (seen.status, seen.code) == (404, "route_not_found")


def test_a_strange_method_on_an_unknown_path_is_404(api: ApiHarness) -> None:
    assert api.call("BREW", "/coffee", valid=False).code == "route_not_found"
    assert api.call("OPTIONS", "*", valid=False).code == "route_not_found"
    assert api.call("WEBSOCKET", "/v2/things", valid=False).status in (404, 405)


def test_head_is_get_without_the_body(api: ApiHarness) -> None:
    get = api.call("GET", "/v2/partners/config")
    head = api.call("HEAD", "/v2/partners/config")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


def test_options_lists_the_methods_without_a_credential(api: ApiHarness) -> None:
    seen = api.call("OPTIONS", "/v2/things", auth=None)
    assert (seen.status, seen.body) == (204, b"")
    assert seen.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert "access-control-allow-origin" not in seen.headers


def test_a_preflight_of_a_client_route_is_answered_before_credentials(api: ApiHarness) -> None:
    seen = api.call(
        "OPTIONS",
        "/v2/client/auth/exchange",
        auth=None,
        headers={"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"},
    )
    assert seen.status == 204
    assert seen.headers["access-control-allow-origin"] == "*"
    assert seen.headers["access-control-allow-methods"] == "OPTIONS, POST"
    assert seen.headers["access-control-allow-headers"] == (
        "Authorization, X-Service-Payment-Secret, Idempotency-Key, Service-Version, Content-Type"
    )
    assert "access-control-allow-credentials" not in seen.headers


def test_a_server_route_has_no_preflight(api: ApiHarness) -> None:
    seen = api.call(
        "OPTIONS",
        "/v2/things",
        auth=None,
        headers={"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"},
    )
    assert not [name for name in seen.headers if name.startswith("access-control")]


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_browser_may_read_the_answers_of_client_routes_errors_too(
    api: ApiHarness, method: str
) -> None:
    seen = api.call(method, "/v2/client/auth/exchange", auth="Bearer no")
    assert seen.status in (401, 405)
    assert seen.headers["access-control-allow-origin"] == "*"
    exposed = seen.headers["access-control-expose-headers"].split(", ")
    assert {"Service-Version", "Retry-After", "ETag", "X-Request-Id", "Idempotent-Replayed"} < set(
        exposed
    )


def test_an_unforeseen_fault_is_reported_without_its_trace_and_logged_without_secrets(
    api: ApiHarness, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger=logger.name):
        seen = api.call("GET", "/v2/burst")
    assert (seen.status, seen.code) == (500, "internal_error")
    assert b"RuntimeError" not in seen.body and b"Traceback" not in seen.body
    [record] = caplog.records
    reported = record.getMessage()
    assert seen.headers["x-request-id"] in reported and "GET /v2/burst" in reported
    assert "RuntimeError" in reported and "[redacted]" in reported
    assert "sk_sandbox_AAAA" not in reported and api.secret not in reported


def test_a_fault_outside_any_row_is_ours_too(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter([RuntimeError("no"), "req_" + "B" * 24])

    def new(prefix: str) -> str:
        item = next(drawn)
        if isinstance(item, Exception):
            raise item
        return item

    monkeypatch.setattr(api.service.parts.ports.identifiers, "new", new)
    assert api.call("GET", "/healthz").code == "internal_error"


class TestOrder:
    """The first check that fails answers, whatever else is wrong."""

    def test_the_route_comes_before_the_credential(self, api: ApiHarness) -> None:
        assert api.call("GET", "/v2/nothing", auth=None).status == 404
        assert api.call("PUT", "/v2/things", auth=None).status == 405

    def test_the_credential_comes_before_the_version(self, api: ApiHarness) -> None:
        seen = api.call("GET", "/v2/things", auth="x", headers={"Service-Version": "1999-01-01"})
        assert seen.status == 401

    def test_the_version_comes_before_the_scope(self, api: ApiHarness) -> None:
        auth = api.basic(api.restricted_secret)
        seen = api.call("GET", "/v2/scoped", auth=auth, headers={"Service-Version": "1999-01-01"})
        assert seen.code == "unsupported_version"

    def test_the_scope_comes_before_the_headers(self, api: ApiHarness) -> None:
        auth = api.basic(api.restricted_secret)
        seen = api.call("GET", "/v2/scoped?unknown=1", auth=auth)
        assert seen.code == "insufficient_permissions"

    def test_the_headers_come_before_the_body(self, api: ApiHarness) -> None:
        assert api.call("POST", "/v2/things", raw=b"{").code == "idempotency_key_required"

    def test_the_body_comes_before_idempotency(self, api: ApiHarness) -> None:
        assert api.make({"name": "a"}, key="same").status == 201
        assert api.make({"name": 7}, key="same").code == "validation_error"

    def test_idempotency_comes_before_the_resource(self, api: ApiHarness) -> None:
        id = api.make().json["id"]
        path = f"/v2/things/{id}/close"
        assert api.call("POST", path, key="close").status == 200
        assert api.call("POST", path, key="close").headers["idempotent-replayed"] == "true"
        assert api.call("POST", path, key="other").code == "invalid_state"
        assert api.call("POST", "/v2/things/bad/close", key="close").code == "idempotency_conflict"


def test_a_malformed_id_is_the_same_not_found_as_an_unknown_one(api: ApiHarness) -> None:
    answers = []
    for id in (NO_ID, "payment_short", "acct_" + "A" * 24, "%00", "..", "payment_" + "é" * 24):
        seen = api.call("GET", f"/v2/things/{id}".encode().decode("latin-1"))
        error = seen.json["error"]
        error["details"].pop("requestId")
        answers.append((seen.status, error))
    assert answers == [answers[0]] * len(answers)
    assert answers[0][0] == 404 and answers[0][1]["code"] == "not_found"


def test_two_rows_for_one_place_are_refused() -> None:
    with pytest.raises(ValueError, match="two rows for GET"):
        group_by_path(
            (*ROWS, Route("GET", "/v2/things", read, needs=KEY, response=Any, summary="Again."))
        )


def test_a_path_names_only_known_ids() -> None:
    with pytest.raises(ValueError, match="PATH_IDS"):
        Route("GET", "/v2/x/{somethingId}", read, needs=KEY, response=Any, summary="Unknown.")


def test_idempotency_needs_somebody_whose_key_it_is() -> None:
    with pytest.raises(ValueError, match="principal"):
        Route(
            "POST",
            "/v2/x",
            read,
            needs=None,
            idempotency="required",
            response=Any,
            summary="Whose?",
        )
