"""Vaults, policies, mandates and yield settings, as a partner's backend calls them."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import BASE, Checkout

SHOP = "0xe0dA8Ca1c0C4FE1e95cD7Ea0736DD09dE9201032"


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def vaults_of(checkout: Checkout) -> str:
    return f"/v2/accounts/{checkout.payer}/vaults"


def vault_id(checkout: Checkout) -> str:
    listed = checkout.api.call("GET", vaults_of(checkout)).json["data"]
    return str(next(vault["id"] for vault in listed if vault["chainId"] == BASE))


def policy_of(checkout: Checkout) -> str:
    return f"{vaults_of(checkout)}/{vault_id(checkout)}/policy"


class TestVaults:
    def test_a_list_has_every_vault_in_pages(self, checkout: Checkout) -> None:
        seen = checkout.api.call("GET", vaults_of(checkout)).json
        assert [vault["chainId"] for vault in seen["data"]] == [1, 10, 137, 8453, 42161]
        assert list(seen["data"][0]) == [
            "id", "vaultId", "accountId", "chainId", "address", "status", "policyId", "createdAt",
            "updatedAt",
        ]  # fmt: skip
        first = checkout.api.call("GET", vaults_of(checkout) + "?limit=3").json
        rest = f"{vaults_of(checkout)}?limit=3&cursor={first['nextCursor']}"
        assert first["data"] + checkout.api.call("GET", rest).json["data"] == seen["data"]

    def test_a_vault_that_is_there_is_answered_with_200(self, checkout: Checkout) -> None:
        seen = checkout.api.call("POST", vaults_of(checkout), {"chainId": BASE})
        assert (seen.status, seen.json["vaultId"]) == (200, vault_id(checkout))

    def test_a_vault_that_is_lacking_is_made_with_201(self) -> None:
        checkout = Checkout(MemoryStorage())
        chains = checkout.api.service.chains
        polygon = chains.pop(137)  # type: ignore[attr-defined]
        account_id = checkout.account("early")
        path = f"/v2/accounts/{account_id}/vaults"
        refused = checkout.api.call("POST", path, {"chainId": 137})
        assert (refused.status, refused.code) == (422, "unsupported_chain")
        chains[137] = polygon  # type: ignore[index]
        made = checkout.api.call("POST", path, {"chainId": 137}, key="k")
        assert made.status == 201
        again = checkout.api.call("POST", path, {"chainId": 137}, key="k")
        assert (again.status, again.body) == (201, made.body)
        assert again.headers["idempotent-replayed"] == "true"
        other = checkout.api.call("POST", path, {"chainId": 137}, key="k-2")
        assert (other.status, other.json) == (200, made.json)

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({}, 400, "validation_error"),
            ({"chainId": "8453"}, 400, "validation_error"),
            ({"chainId": 5}, 422, "unsupported_chain"),
        ],
    )
    def test_what_cannot_be_provisioned_is_refused(
        self, checkout: Checkout, body: Any, status: int, code: str
    ) -> None:
        seen = checkout.api.call("POST", vaults_of(checkout), body)
        assert (seen.status, seen.code) == (status, code)


class TestPolicies:
    def test_a_policy_lives_through_its_versions(self, checkout: Checkout) -> None:
        path = policy_of(checkout)
        first = checkout.api.call("GET", path).json
        assert list(first) == [
            "id", "policyId", "vaultId", "accountId", "version", "status", "perPaymentLimit",
            "dailyLimit", "allowedChains", "allowedAssets", "allowedDestinations", "createdAt",
            "updatedAt",
        ]  # fmt: skip
        assert (first["version"], first["status"], first["dailyLimit"]) == (1, "active", None)
        body = {
            "status": "active",
            "perPaymentLimit": "25",
            "dailyLimit": "100.5",
            "allowedChains": [BASE],
            "allowedAssets": ["USDC"],
            "allowedDestinations": [
                {"type": "wallet", "address": SHOP.lower(), "chainId": BASE},
                {"type": "account", "accountId": checkout.merchant},
            ],
            "version": 1,
        }
        seen = checkout.api.call("PUT", path, body)
        assert seen.status == 200
        second = seen.json
        assert (second["version"], second["perPaymentLimit"]) == (2, "25.00")
        assert second["dailyLimit"] == "100.50"
        assert second["allowedDestinations"] == [
            {"type": "wallet", "address": SHOP, "chainId": BASE},
            {"type": "account", "accountId": checkout.merchant},
        ]
        assert checkout.api.call("GET", path).json == second
        stale = checkout.api.call("PUT", path, body)
        assert (stale.status, stale.code) == (409, "conflict")
        third = checkout.api.call("PUT", path, {"status": "paused"}).json
        assert (third["version"], third["allowedChains"]) == (3, None)
        assert checkout.api.call("GET", f"{path}?version=1").json == first
        assert checkout.api.call("GET", f"{path}?version=2").json == second
        assert checkout.api.call("GET", f"{path}?version=4").status == 404
        assert checkout.api.call("GET", f"{path}?version=0").status == 400

    def test_what_was_read_can_be_sent_back_field_by_field(self, checkout: Checkout) -> None:
        path = policy_of(checkout)
        wallet = {"type": "wallet", "address": SHOP}
        body = {"status": "paused", "allowedDestinations": [wallet], "dailyLimit": "1.5"}
        first = checkout.api.call("PUT", path, body).json
        facts = ("id", "policyId", "vaultId", "accountId", "createdAt", "updatedAt")
        back = {name: value for name, value in first.items() if name not in facts}
        second = checkout.api.call("PUT", path, back).json
        for name in set(back) - {"version"}:
            assert second[name] == first[name]

    @pytest.mark.parametrize("body", [{}, {"dailyLimit": "6"}, None])
    def test_no_policy_is_set_free_without_saying_so(self, checkout: Checkout, body: Any) -> None:
        path = policy_of(checkout)
        paused = checkout.api.call("PUT", path, {"status": "paused", "dailyLimit": "5"}).json
        seen = checkout.api.call("PUT", path, body)
        assert seen.status == 400
        assert body is None or seen.faults == {"status": "is required"}
        assert checkout.api.call("GET", path).json == paused
        assert (paused["status"], paused["dailyLimit"]) == ("paused", "5.00")

    def test_every_fault_is_named_at_once(self, checkout: Checkout) -> None:
        body = {
            "perPaymentLimit": 5,
            "allowedChains": "all",
            "allowedDestinations": [{"type": "bank"}, {"type": "account"}],
            "version": 0,
            "limit": "1",
        }
        seen = checkout.api.call("PUT", policy_of(checkout), body)
        assert seen.status == 400
        assert set(seen.faults) == {
            "status", "perPaymentLimit", "allowedChains", "allowedDestinations[0].type",
            "allowedDestinations[1].accountId", "version", "limit",
        }  # fmt: skip
        body = {
            "status": "active",
            "perPaymentLimit": "0",
            "dailyLimit": "1.0000001",
            "allowedChains": [5],
            "allowedAssets": ["EURC", "USDC", "USDC"],
            "allowedDestinations": [{"type": "wallet", "address": "x"}],
        }
        seen = checkout.api.call("PUT", policy_of(checkout), body)
        assert set(seen.faults) == {
            "perPaymentLimit", "dailyLimit", "allowedChains[0]", "allowedAssets[0]",
            "allowedAssets[2]", "allowedDestinations[0].address",
        }  # fmt: skip
        assert checkout.api.call("GET", policy_of(checkout)).json["version"] == 1

    def test_an_authorization_beyond_the_limit_is_denied_by_name(self, checkout: Checkout) -> None:
        body = {"status": "active", "perPaymentLimit": "24.99"}
        assert checkout.api.call("PUT", policy_of(checkout), body).status == 200
        payment = checkout.create().json
        seen = checkout.authorize(payment, checkout.option(payment))
        assert (seen.status, seen.code) == (422, "policy_denied")
        assert seen.json["error"]["details"]["rule"] == "perPaymentLimit"
        assert checkout.available(checkout.payer) == ("100.00", "0")


class TestYieldSettings:
    def test_they_are_stored_and_cannot_be_enabled(self, checkout: Checkout) -> None:
        path = f"{vaults_of(checkout)}/{vault_id(checkout)}/yield-settings"
        assert checkout.api.call("GET", path).json["enabled"] is False
        body = {"enabled": False, "strategy": "lending"}
        stored = checkout.api.call("PUT", path, body)
        assert (stored.status, stored.json["strategy"]) == (200, "lending")
        seen = checkout.api.call("PUT", path, {"enabled": True})
        assert (seen.status, seen.code) == (422, "capability_not_active")
        assert seen.json["error"]["details"]["capability"] == "yield"
        assert checkout.api.call("GET", path).json == stored.json
        assert set(checkout.api.call("PUT", path, {"strategy": ""}).faults) == {
            "enabled", "strategy",
        }  # fmt: skip


class TestMandates:
    def create(self, checkout: Checkout, **more: Any) -> Any:
        body = {
            "vaultId": vault_id(checkout),
            "amountPerPeriod": "25.5",
            "period": "month",
            **more,
        }
        return checkout.api.call("POST", f"/v2/accounts/{checkout.payer}/mandates", body)

    def test_a_mandate_lives_from_creation_to_revocation(self, checkout: Checkout) -> None:
        path = f"/v2/accounts/{checkout.payer}/mandates"
        seen = self.create(checkout, expiresAt="2099-01-01T00:00:00+01:00", reference="r")
        assert seen.status == 201
        mandate = seen.json
        assert list(mandate) == [
            "id", "mandateId", "accountId", "vaultId", "chainId", "assetSymbol",
            "amountPerPeriod", "amountPerPeriodAtomic", "period", "remainingAtomic", "status",
            "reference", "metadata", "expiresAt", "createdAt", "updatedAt", "revokedAt",
        ]  # fmt: skip
        assert (mandate["amountPerPeriod"], mandate["remainingAtomic"]) == ("25.50", "25500000")
        assert (mandate["status"], mandate["expiresAt"]) == ("active", "2098-12-31T23:00:00.000Z")
        assert checkout.api.call("GET", path).json["data"] == [mandate]
        revoked = checkout.api.call("DELETE", f"{path}/{mandate['id']}")
        assert (revoked.status, revoked.json["status"]) == (200, "revoked")
        assert revoked.json["revokedAt"] is not None
        checkout.advance(60)
        again = checkout.api.call("DELETE", f"{path}/{mandate['id']}")
        assert (again.status, again.body) == (200, revoked.body)
        assert checkout.api.call("DELETE", f"{path}/mandate_{'x' * 24}").status == 404

    @pytest.mark.parametrize(
        ("more", "status", "code"),
        [
            ({"amountPerPeriod": "0"}, 422, "amount_out_of_range"),
            ({"amountPerPeriod": 5}, 400, "validation_error"),
            ({"amountPerPeriod": "1.0000001"}, 400, "validation_error"),
            ({"period": "year"}, 400, "validation_error"),
            ({"assetSymbol": "EURC"}, 422, "unsupported_asset"),
            ({"expiresAt": "2020-01-01T00:00:00Z"}, 400, "validation_error"),
            ({"expiresAt": "2099-01-01T00:00:00"}, 400, "validation_error"),
            ({"expiresAt": "9999-12-31T23:59:59-12:00"}, 400, "validation_error"),
            ({"expiresAt": "0001-01-01T00:00:00+14:00"}, 400, "validation_error"),
            ({"expiresAt": "next month"}, 400, "validation_error"),
            ({"vaultId": "nonsense"}, 404, "not_found"),
            ({"reference": ""}, 400, "validation_error"),
        ],
    )
    def test_what_cannot_be_approved_is_refused(
        self, checkout: Checkout, more: dict[str, Any], status: int, code: str
    ) -> None:
        seen = self.create(checkout, **more)
        assert (seen.status, seen.code) == (status, code)
        path = f"/v2/accounts/{checkout.payer}/mandates"
        assert checkout.api.call("GET", path).json["data"] == []


def routes(checkout: Checkout, account: str, vault: str, mandate: str) -> list[Any]:
    """Every call on vaults, policies, yield settings and mandates."""
    vaults = f"/v2/accounts/{account}/vaults"
    mandates = f"/v2/accounts/{account}/mandates"
    new = {"vaultId": vault, "amountPerPeriod": "1", "period": "day"}
    return [
        ("GET", vaults, None),
        ("POST", vaults, {"chainId": BASE}),
        ("GET", f"{vaults}/{vault}/policy", None),
        ("PUT", f"{vaults}/{vault}/policy", {"status": "active"}),
        ("GET", f"{vaults}/{vault}/yield-settings", None),
        ("PUT", f"{vaults}/{vault}/yield-settings", {"enabled": False}),
        ("GET", mandates, None),
        ("POST", mandates, new),
        ("DELETE", f"{mandates}/{mandate}", None),
    ]


def test_every_route_needs_the_scope(checkout: Checkout) -> None:
    tenants = checkout.api.service.tenants
    _, wide = tenants.create_key(
        checkout.api.partition, "restricted", "vaults", scopes=["v2:vaults"]
    )
    mandate = TestMandates().create(checkout).json["id"]
    for method, path, body in routes(checkout, checkout.payer, vault_id(checkout), mandate):
        for auth, status in (
            (checkout.api.basic(checkout.api.restricted_secret), 403),
            (None, 401),
        ):
            assert checkout.api.call(method, path, body, auth=auth).status == status
        seen = checkout.api.call(method, path, body, auth=checkout.api.basic(wide))
        assert seen.status in (200, 201)


def test_another_tenants_objects_look_like_none(checkout: Checkout) -> None:
    tenants = checkout.api.service.tenants
    mandate = TestMandates().create(checkout).json["id"]
    known = routes(checkout, checkout.payer, vault_id(checkout), mandate)
    nobody = "x" * 24
    missing = routes(checkout, f"acct_{nobody}", f"vault_{nobody}", f"mandate_{nobody}")
    other = tenants.create_app("Other", "other")
    _, secret = tenants.create_key(other.environments["sandbox"], "standard", "k")
    auth = checkout.api.basic(secret, other.id)
    for calls in zip(known, missing, strict=True):
        answers = [checkout.api.call(method, path, body, auth=auth) for method, path, body in calls]
        bodies = [seen.json for seen in answers]
        for body in bodies:
            del body["error"]["details"]["requestId"]
        assert [seen.status for seen in answers] == [404, 404]
        assert bodies[0] == bodies[1]
