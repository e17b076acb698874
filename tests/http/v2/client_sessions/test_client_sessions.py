"""The routes of configuration and of client sessions."""

from __future__ import annotations

from payments_core.clock import FixedClock, format_iso
from tests.http.api_harness import ApiHarness

MISSING = "client_session_" + "A" * 24


def test_the_config_names_every_field_of_the_interface(api: ApiHarness) -> None:
    environment = api.environment
    assert api.call("GET", "/v2/partners/config").json == {
        "appId": api.app_row.id,
        "environmentId": environment.id,
        "mode": "sandbox",
        "partnerId": "shop",
        "credentialType": "standard",
        "credentialMode": "app_secret",
        "apiVersion": "2026-09-09",
        "supportedApiVersions": ["2026-01-01", "2026-09-09"],
        "scopes": [
            "v2:accounts", "v2:console", "v2:deposit_addresses", "v2:kyc", "v2:payments",
            "v2:vaults", "v2:webhooks",
        ],
        "products": list(environment.products),
        "capabilities": {
            "webhooks": {
                "deliveryPolicy": {
                    "guarantee": "at_least_once",
                    "maxAttempts": 10,
                    "localPrivateDestinationsAllowed": False,
                    "dedupe": {
                        "deliveryRetryHeader": "x-service-delivery",
                        "eventHeader": "x-service-event-id",
                    },
                }
            }
        },
    }  # fmt: skip


def test_a_restricted_key_reads_its_own_scopes(api: ApiHarness) -> None:
    seen = api.call("GET", "/v2/partners/config", auth=api.basic(api.restricted_secret)).json
    assert (seen["credentialType"], seen["scopes"]) == ("restricted", ["v2:accounts"])


def test_a_session_is_created() -> None:
    clock = FixedClock()
    api = ApiHarness(clock)
    seen = api.session(permissions=["payments:read", "account:read"], expiresInSeconds=600)
    assert seen.status == 201
    body = seen.json
    assert list(body) == [
        "clientSessionId", "clientSessionToken", "accountId", "permissions", "exchangeExpiresAt",
        "expiresAt", "createdAt", "updatedAt",
    ]  # fmt: skip
    assert body["accountId"] == api.account_id
    assert body["permissions"] == ["account:read", "payments:read"]
    assert body["exchangeExpiresAt"] == format_iso(clock.now() + 300_000)
    assert body["expiresAt"] == format_iso(clock.now() + 600_000)


def test_a_session_reads_the_account_unless_more_is_asked_for(api: ApiHarness) -> None:
    assert api.session().json["permissions"] == ["account:read"]


def test_a_session_is_for_an_account_by_either_name(api: ApiHarness) -> None:
    body = {"accountId": api.account_id}
    assert api.call("POST", "/v2/client-sessions", body).status == 201
    assert api.session(accountId=api.account_id).faults == {
        "accountId": "cannot be given together with externalUserId"
    }
    assert list(api.call("POST", "/v2/client-sessions", raw=b"{}").faults) == ["externalUserId"]
    assert list(api.call("POST", "/v2/client-sessions").faults) == ["externalUserId"]


def test_all_faults_of_a_session_are_reported(api: ApiHarness) -> None:
    body = {"expiresInSeconds": 59, "permissions": [1, ""], "ttl": 1}
    seen = api.call("POST", "/v2/client-sessions", body)
    assert list(seen.faults) == [
        "expiresInSeconds", "permissions[0]", "permissions[1]", "ttl", "externalUserId",
    ]  # fmt: skip


def test_a_missing_account_is_not_created(api: ApiHarness) -> None:
    seen = api.call("POST", "/v2/client-sessions", {"externalUserId": "nobody"})
    assert (seen.status, seen.code) == (404, "not_found")


def test_an_unknown_permission_is_403(api: ApiHarness) -> None:
    assert api.session(permissions=["payments:steal"]).code == "insufficient_permissions"


def test_an_unknown_permission_is_refused_before_the_account_is_looked_up(api: ApiHarness) -> None:
    for name in ("user-1", "nobody"):
        seen = api.session(externalUserId=name, permissions=["payments:steal", "account:read"])
        assert (seen.status, seen.code) == (403, "insufficient_permissions")
        assert seen.json["error"]["details"]["required"] == ["payments:steal"]


def test_a_permission_needs_its_product(api: ApiHarness) -> None:
    left = [name for name in api.environment.products if name != "deposit_addresses"]
    api.service.tenants.set_products(api.partition, left)
    seen = api.session(permissions=["deposits:read"])
    assert (seen.status, seen.code) == (403, "entitlement_required")
    assert seen.json["error"]["details"]["product"] == "deposit_addresses"


def test_a_closed_account_gets_no_session_a_suspended_one_does(api: ApiHarness) -> None:
    path = f"/v2/accounts/{api.account_id}"
    api.call("PATCH", path, {"status": "suspended"})
    assert api.session().status == 201
    api.call("PATCH", path, {"status": "closed"})
    seen = api.session()
    assert (seen.status, seen.code) == (403, "account_suspended")
    assert "closed" in seen.json["error"]["message"]


def test_a_restricted_key_creates_no_session(api: ApiHarness) -> None:
    auth = api.basic(api.restricted_secret)
    seen = api.call("POST", "/v2/client-sessions", {"externalUserId": "user-1"}, auth=auth)
    assert (seen.status, seen.code) == (403, "insufficient_permissions")


def test_a_session_is_created_once_per_key(api: ApiHarness) -> None:
    body = {"externalUserId": "user-1"}
    first = api.call("POST", "/v2/client-sessions", body, key="k")
    again = api.call("POST", "/v2/client-sessions", body, key="k")
    assert first.body == again.body and again.headers["idempotent-replayed"] == "true"


def test_the_token_is_exchanged_once(api: ApiHarness) -> None:
    created = api.session().json
    seen = api.exchange(created["clientSessionToken"], key="ignored")
    assert seen.status == 200
    body = seen.json
    assert list(body) == ["accessToken", "tokenType", "accountId", "permissions", "expiresAt"]
    assert (body["tokenType"], body["accountId"]) == ("Bearer", api.account_id)
    assert body["permissions"] == ["account:read"]
    assert body["expiresAt"] == created["expiresAt"]
    again = api.exchange(created["clientSessionToken"], key="ignored")
    assert (again.status, again.code) == (401, "unauthorized")
    assert again.headers["www-authenticate"] == "Bearer"


def test_an_exchange_comes_too_late_after_300_seconds() -> None:
    clock = FixedClock()
    api = ApiHarness(clock)
    token = api.session().json["clientSessionToken"]
    clock.advance(300)
    assert api.exchange(token).code == "client_token_expired"


def test_an_exchange_takes_only_a_session_token(api: ApiHarness) -> None:
    for auth in (None, "", f"Bearer {api.access_token()}", f"Bearer {api.secret}"):
        assert api.call("POST", "/v2/client/auth/exchange", auth=auth).code == "unauthorized"


def test_an_exchange_takes_no_token_in_its_body(api: ApiHarness) -> None:
    token = api.session().json["clientSessionToken"]
    seen = api.exchange(token, body={"clientSessionToken": token})
    assert list(seen.faults) == ["clientSessionToken"]
    assert api.exchange(token).status == 200


def test_a_revoked_session_opens_nothing() -> None:
    clock = FixedClock()
    api = ApiHarness(clock)
    created = api.session().json
    clock.advance(60)
    assert created["updatedAt"] == created["createdAt"]
    path = f"/v2/client-sessions/{created['clientSessionId']}"
    seen = api.call("DELETE", path)
    assert (seen.status, seen.json["updatedAt"]) == (200, seen.json["revokedAt"])
    assert seen.json["updatedAt"] == format_iso(clock.now())
    assert seen.json["revokedAt"] is not None and "clientSessionToken" not in seen.json
    assert api.call("DELETE", path).json == seen.json
    assert api.exchange(created["clientSessionToken"]).code == "unauthorized"


def test_an_unknown_session_cannot_be_revoked(api: ApiHarness) -> None:
    for id in (MISSING, "client_session_x"):
        assert api.call("DELETE", f"/v2/client-sessions/{id}").code == "not_found"
