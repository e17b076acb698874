"""The routes of configuration and of client sessions."""

from __future__ import annotations

from payments_core.clock import FixedClock, format_iso
from tests.http.door import Door

MISSING = "client_session_" + "A" * 24


def test_the_config_names_every_field_of_the_interface(door: Door) -> None:
    environment = door.environment
    assert door.call("GET", "/v2/partners/config").json == {
        "appId": door.app_row.id,
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


def test_a_restricted_key_reads_its_own_scopes(door: Door) -> None:
    seen = door.call("GET", "/v2/partners/config", auth=door.basic(door.restricted_secret)).json
    assert (seen["credentialType"], seen["scopes"]) == ("restricted", ["v2:accounts"])


def test_a_session_is_created() -> None:
    clock = FixedClock()
    door = Door(clock)
    seen = door.session(permissions=["payments:read", "account:read"], expiresInSeconds=600)
    assert seen.status == 201
    body = seen.json
    assert list(body) == [
        "clientSessionId", "clientSessionToken", "accountId", "permissions", "exchangeExpiresAt",
        "expiresAt", "createdAt", "updatedAt",
    ]  # fmt: skip
    assert body["accountId"] == door.account_id
    assert body["permissions"] == ["account:read", "payments:read"]
    assert body["exchangeExpiresAt"] == format_iso(clock.now() + 300_000)
    assert body["expiresAt"] == format_iso(clock.now() + 600_000)


def test_a_session_reads_the_account_unless_more_is_asked_for(door: Door) -> None:
    assert door.session().json["permissions"] == ["account:read"]


def test_a_session_is_for_an_account_by_either_name(door: Door) -> None:
    body = {"accountId": door.account_id}
    assert door.call("POST", "/v2/client-sessions", body).status == 201
    assert door.session(accountId=door.account_id).faults == {
        "accountId": "cannot be given together with externalUserId"
    }
    assert list(door.call("POST", "/v2/client-sessions", raw=b"{}").faults) == ["externalUserId"]
    assert list(door.call("POST", "/v2/client-sessions").faults) == ["externalUserId"]


def test_all_faults_of_a_session_are_reported(door: Door) -> None:
    body = {"expiresInSeconds": 59, "permissions": [1, ""], "ttl": 1}
    seen = door.call("POST", "/v2/client-sessions", body)
    assert list(seen.faults) == [
        "expiresInSeconds", "permissions[0]", "permissions[1]", "ttl", "externalUserId",
    ]  # fmt: skip


def test_a_missing_account_is_not_created(door: Door) -> None:
    seen = door.call("POST", "/v2/client-sessions", {"externalUserId": "nobody"})
    assert (seen.status, seen.code) == (404, "not_found")


def test_an_unknown_permission_is_403(door: Door) -> None:
    assert door.session(permissions=["payments:steal"]).code == "insufficient_permissions"


def test_an_unknown_permission_is_refused_before_the_account_is_looked_up(door: Door) -> None:
    for name in ("user-1", "nobody"):
        seen = door.session(externalUserId=name, permissions=["payments:steal", "account:read"])
        assert (seen.status, seen.code) == (403, "insufficient_permissions")
        assert seen.json["error"]["details"]["required"] == ["payments:steal"]


def test_a_permission_needs_its_product(door: Door) -> None:
    left = [name for name in door.environment.products if name != "deposit_addresses"]
    door.service.tenants.set_products(door.partition, left)
    seen = door.session(permissions=["deposits:read"])
    assert (seen.status, seen.code) == (403, "entitlement_required")
    assert seen.json["error"]["details"]["product"] == "deposit_addresses"


def test_a_closed_account_gets_no_session_a_suspended_one_does(door: Door) -> None:
    path = f"/v2/accounts/{door.account_id}"
    door.call("PATCH", path, {"status": "suspended"})
    assert door.session().status == 201
    door.call("PATCH", path, {"status": "closed"})
    seen = door.session()
    assert (seen.status, seen.code) == (403, "account_suspended")
    assert "closed" in seen.json["error"]["message"]


def test_a_restricted_key_creates_no_session(door: Door) -> None:
    auth = door.basic(door.restricted_secret)
    seen = door.call("POST", "/v2/client-sessions", {"externalUserId": "user-1"}, auth=auth)
    assert (seen.status, seen.code) == (403, "insufficient_permissions")


def test_a_session_is_created_once_per_key(door: Door) -> None:
    body = {"externalUserId": "user-1"}
    first = door.call("POST", "/v2/client-sessions", body, key="k")
    again = door.call("POST", "/v2/client-sessions", body, key="k")
    assert first.body == again.body and again.headers["idempotent-replayed"] == "true"


def test_the_token_is_exchanged_once(door: Door) -> None:
    created = door.session().json
    seen = door.exchange(created["clientSessionToken"], key="ignored")
    assert seen.status == 200
    body = seen.json
    assert list(body) == ["accessToken", "tokenType", "accountId", "permissions", "expiresAt"]
    assert (body["tokenType"], body["accountId"]) == ("Bearer", door.account_id)
    assert body["permissions"] == ["account:read"]
    assert body["expiresAt"] == created["expiresAt"]
    again = door.exchange(created["clientSessionToken"], key="ignored")
    assert (again.status, again.code) == (401, "unauthorized")
    assert again.headers["www-authenticate"] == "Bearer"


def test_an_exchange_comes_too_late_after_300_seconds() -> None:
    clock = FixedClock()
    door = Door(clock)
    token = door.session().json["clientSessionToken"]
    clock.advance(300)
    assert door.exchange(token).code == "client_token_expired"


def test_an_exchange_takes_only_a_session_token(door: Door) -> None:
    for auth in (None, "", f"Bearer {door.access_token()}", f"Bearer {door.secret}"):
        assert door.call("POST", "/v2/client/auth/exchange", auth=auth).code == "unauthorized"


def test_an_exchange_takes_no_token_in_its_body(door: Door) -> None:
    token = door.session().json["clientSessionToken"]
    seen = door.exchange(token, body={"clientSessionToken": token})
    assert list(seen.faults) == ["clientSessionToken"]
    assert door.exchange(token).status == 200


def test_a_revoked_session_opens_nothing() -> None:
    clock = FixedClock()
    door = Door(clock)
    created = door.session().json
    clock.advance(60)
    assert created["updatedAt"] == created["createdAt"]
    path = f"/v2/client-sessions/{created['clientSessionId']}"
    seen = door.call("DELETE", path)
    assert (seen.status, seen.json["updatedAt"]) == (200, seen.json["revokedAt"])
    assert seen.json["updatedAt"] == format_iso(clock.now())
    assert seen.json["revokedAt"] is not None and "clientSessionToken" not in seen.json
    assert door.call("DELETE", path).json == seen.json
    assert door.exchange(created["clientSessionToken"]).code == "unauthorized"


def test_an_unknown_session_cannot_be_revoked(door: Door) -> None:
    for id in (MISSING, "client_session_x"):
        assert door.call("DELETE", f"/v2/client-sessions/{id}").code == "not_found"
