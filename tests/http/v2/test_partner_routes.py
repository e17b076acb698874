"""Accounts, Payments, the console and the sandbox, as a partner's backend calls them."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import BASE, Checkout

CHECKSUMMED = "0xe0dA8Ca1c0C4FE1e95cD7Ea0736DD09dE9201032"


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


class TestAccounts:
    def test_a_new_account_has_a_vault_on_every_chain_with_one_address(
        self, checkout: Checkout
    ) -> None:
        body = {
            "externalUserId": "user",
            "subjectType": "business",
            "username": "Shop_1",
            "wallets": [{"address": CHECKSUMMED.lower(), "chainType": "evm", "label": "main"}],
            "settlement": {"chainId": 137, "assetSymbol": "USDC"},
            "metadata": {"tier": 1},
        }
        seen = checkout.api.call("POST", "/v2/accounts", body)
        assert seen.status == 201
        account = seen.json
        assert account["id"] == account["accountId"]
        assert account["paymentAddress"] == "Shop_1@shop"
        assert {vault["chainId"] for vault in account["vaults"]} == {1, 10, 137, 8453, 42161}
        assert len({vault["address"] for vault in account["vaults"]}) == 1
        [wallet] = account["wallets"]
        assert (wallet["address"], wallet["verified"]) == (CHECKSUMMED, False)
        assert account["kyc"] == {"status": "not_started"}
        assert checkout.api.call("GET", f"/v2/accounts/{account['id']}").json == account

    def test_every_fault_is_named_at_once(self, checkout: Checkout) -> None:
        body = {
            "externalUserId": "",
            "subjectType": "robot",
            "username": "a b",
            "wallets": [{"address": "0x12", "chainType": "evm"}, {"chainType": "evm"}],
            "age": 7,
        }
        seen = checkout.api.call("POST", "/v2/accounts", body)
        assert seen.status == 400
        assert set(seen.faults) == {
            "externalUserId", "subjectType", "username", "wallets[0].address", "wallets[1].address",
            "age",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("more", "status", "code"),
        [
            ({"externalUserId": "payer"}, 409, "conflict"),
            ({"username": "MERCHANT"}, 409, "username_taken"),
            ({"settlement": {"chainId": 5, "assetSymbol": "USDC"}}, 422, "unsupported_chain"),
            ({"settlement": {"chainId": 137, "assetSymbol": "USDT"}}, 422, "unsupported_asset"),
            ({"wallets": [{"address": "0x12", "chainType": "evm"}]}, 400, "validation_error"),
        ],
    )
    def test_what_cannot_be_created_is_refused(
        self, checkout: Checkout, more: dict[str, Any], status: int, code: str
    ) -> None:
        body = {"externalUserId": "new", "subjectType": "individual", **more}
        seen = checkout.api.call("POST", "/v2/accounts", body)
        assert (seen.status, seen.code) == (status, code)
        assert not checkout.api.call("GET", "/v2/accounts?externalUserId=new").json["data"]

    def test_a_patch_changes_what_it_names_and_null_clears(self, checkout: Checkout) -> None:
        path = f"/v2/accounts/{checkout.payer}"
        patch = {"email": "a@b.example", "metadata": {"a": 1}}
        assert checkout.api.call("PATCH", path, patch).json["email"] == "a@b.example"
        changed = checkout.api.call("PATCH", path, {"email": None}).json
        assert (changed["email"], changed["metadata"]) == (None, {"a": 1})
        assert checkout.api.call("PATCH", path, {"status": "closed"}).status == 200
        seen = checkout.api.call("PATCH", path, {"status": "active"})
        assert (seen.status, seen.code) == (409, "invalid_state")

    def test_a_suspended_payer_cannot_pay_and_a_suspended_recipient_not_be_paid(
        self, checkout: Checkout
    ) -> None:
        payment = checkout.create().json
        checkout.api.call("PATCH", f"/v2/accounts/{checkout.payer}", {"status": "suspended"})
        seen = checkout.pay(payment)
        assert (seen.status, seen.code) == (403, "account_suspended")
        checkout.api.call("PATCH", f"/v2/accounts/{checkout.merchant}", {"status": "suspended"})
        seen = checkout.create(key="again")
        assert (seen.status, seen.code) == (422, "destination_not_allowed")


class TestPayments:
    @pytest.mark.parametrize(
        ("more", "status", "code"),
        [
            ({"amount": "0"}, 422, "amount_out_of_range"),
            ({"amount": "1e3"}, 400, "validation_error"),
            ({"amount": "-1"}, 400, "validation_error"),
            ({"amount": "1.0000001"}, 400, "validation_error"),
            ({"amount": 25}, 400, "validation_error"),
            ({"chainId": 5}, 422, "unsupported_chain"),
            ({"assetSymbol": "EURC"}, 422, "unsupported_asset"),
            ({"intent": "send"}, 400, "validation_error"),
            ({"destination": {"type": "wallet", "address": "x"}}, 400, "validation_error"),
            ({"destination": {"type": "account"}}, 400, "validation_error"),
            (
                {"destination": {"type": "payment_address", "paymentAddress": "merchant@other"}},
                404,
                "not_found",
            ),
            ({"expiresInSeconds": 299}, 400, "validation_error"),
        ],
    )
    def test_what_cannot_be_created_is_refused(
        self, checkout: Checkout, more: dict[str, Any], status: int, code: str
    ) -> None:
        seen = checkout.create(**more)
        assert (seen.status, seen.code) == (status, code)
        assert not checkout.api.call("GET", "/v2/payments").json["data"]
        assert checkout.create().status == 201  # a failure stored nothing under the key

    def test_settlement_preferences_choose_chain_and_asset(self, checkout: Checkout) -> None:
        settlement = {"chainId": 1, "assetSymbol": "USDT"}
        account = checkout.account("other", settlement=settlement)
        payment = checkout.create(destination={"type": "account", "accountId": account}).json
        assert (payment["chainId"], payment["assetSymbol"]) == (1, "USDT")
        assert checkout.create(key="b").json["chainId"] == BASE

    def test_a_list_pages_and_filters(self, checkout: Checkout) -> None:
        ids = [checkout.create(key=f"k{n}", reference=f"r{n % 2}").json["id"] for n in range(5)]
        seen: list[str] = []
        cursor = ""
        for _ in range(3):
            page = checkout.api.call("GET", f"/v2/payments?limit=2{cursor}").json
            seen += [payment["id"] for payment in page["data"]]
            cursor = f"&cursor={page['nextCursor']}"
        assert not page["hasNextPage"]
        assert sorted(seen) == sorted(ids)
        filtered = checkout.api.call("GET", "/v2/payments?reference=r1&status=awaiting_payment")
        assert {payment["id"] for payment in filtered.json["data"]} == {ids[1], ids[3]}
        none = checkout.api.call("GET", "/v2/payments?createdBefore=2020-01-01T00:00:00Z")
        assert none.json["data"] == []

    @pytest.mark.parametrize(
        "query",
        [
            "limit=0",
            "limit=101",
            "limit=x",
            "cursor=abc",
            "status=done",
            "createdAfter=today",
            "a=1",
        ],
    )
    def test_a_wrong_query_is_refused_by_name(self, checkout: Checkout, query: str) -> None:
        seen = checkout.api.call("GET", f"/v2/payments?{query}")
        assert seen.status == 400
        assert set(seen.faults) == {query.partition("=")[0]}

    def test_a_cursor_of_another_list_is_refused(self, checkout: Checkout) -> None:
        for n in range(3):
            checkout.create(key=f"k{n}")
        cursor = checkout.api.call("GET", "/v2/payments?limit=1").json["nextCursor"]
        for target in (
            f"/v2/accounts?limit=1&cursor={cursor}",
            f"/v2/payments?limit=1&status=succeeded&cursor={cursor}",
            f"/v2/payments?limit=1&cursor={cursor[:-1]}",
        ):
            seen = checkout.api.call("GET", target)
            assert (seen.status, set(seen.faults)) == (400, {"cursor"})

    def test_a_cancelled_payment_takes_no_action(self, checkout: Checkout) -> None:
        payment = checkout.create().json
        option = checkout.option(payment)
        cancel = f"/v2/payments/{payment['id']}/cancel"
        cancelled = checkout.api.call("POST", cancel).json
        assert cancelled["status"] == "cancelled"
        assert cancelled["options"][0]["option"]["status"] == "cancelled"
        for seen in (
            checkout.api.call("POST", cancel),
            checkout.pay(payment),
            checkout.authorize(payment, option),
        ):
            assert (seen.status, seen.code) == (409, "invalid_state")
        read = checkout.pay(payment, f"/{option['id']}", method="GET")
        assert read.json["option"]["status"] == "cancelled"

    def test_an_expired_payment_takes_no_action(self, checkout: Checkout) -> None:
        payment = checkout.create(expiresInSeconds=300).json
        option = checkout.option(payment)
        checkout.advance(310)
        assert checkout.read(payment["id"])["status"] == "expired"
        for seen in (checkout.pay(payment), checkout.authorize(payment, option)):
            assert (seen.status, seen.code) == (422, "payment_expired")

    def test_another_tenants_payment_looks_like_none(self, checkout: Checkout) -> None:
        tenants = checkout.api.service.tenants
        other = tenants.create_app("Other", "other")
        _, secret = tenants.create_key(other.environments["sandbox"], "standard", "k")
        auth = checkout.api.basic(secret, other.id)
        payment = checkout.create().json
        known = checkout.api.call("GET", f"/v2/payments/{payment['id']}", auth=auth)
        missing = checkout.api.call("GET", "/v2/payments/payment_" + "x" * 24, auth=auth)
        malformed = checkout.api.call("GET", "/v2/payments/nonsense", auth=auth)
        bodies = [seen.json for seen in (known, missing, malformed)]
        for body in bodies:
            del body["error"]["details"]["requestId"]
        assert [seen.status for seen in (known, missing, malformed)] == [404] * 3
        assert bodies[0] == bodies[1] == bodies[2]


class TestConsole:
    def create(self, checkout: Checkout, **more: Any) -> Any:
        api = checkout.api
        path = f"/v2/console/apps/{api.app_row.id}/environments/{api.partition}/webhooks"
        return api.call("POST", path, {"url": "https://example.com/hook", **more})

    def test_an_endpoint_lives_from_creation_to_archive(self, checkout: Checkout) -> None:
        made = self.create(checkout, subscribedEvents=["payment.succeeded"]).json
        assert set(made) == {"webhookEndpoint", "signingSecret"}
        endpoint = made["webhookEndpoint"]
        path = f"/v2/console/webhooks/{endpoint['id']}"
        listed = checkout.api.call("GET", "/v2/console/webhooks").json
        assert listed["webhookEndpoints"] == [endpoint]
        assert {"name", "meaning", "fields", "emitted"} == set(listed["eventCatalog"][0])
        assert listed["deliveryPolicy"]["maxAttempts"] == 10
        rotated = checkout.api.call("POST", f"{path}/rotate-secret").json
        assert rotated["signingSecret"] != made["signingSecret"]
        assert checkout.api.call("PATCH", path, {"status": "archived"}).status == 200
        seen = checkout.api.call("PATCH", path, {"status": "active"})
        assert (seen.status, seen.code) == (409, "invalid_state")

    def test_one_active_endpoint_per_url(self, checkout: Checkout) -> None:
        assert self.create(checkout).status == 201
        seen = self.create(checkout, url="HTTPS://EXAMPLE.com:443/hook")
        assert (seen.status, seen.code) == (409, "webhook_url_in_use")

    @pytest.mark.parametrize(
        "url", ["https://user:secret@example.com/", "https://10.0.0.1/", "http://169.254.169.254/"]
    )
    def test_a_forbidden_url_is_refused(self, checkout: Checkout, url: str) -> None:
        seen = self.create(checkout, url=url)
        assert (seen.status, seen.code) == (422, "webhook_url_not_allowed")

    def test_the_console_needs_both_scopes(self, checkout: Checkout) -> None:
        tenants = checkout.api.service.tenants
        _, secret = tenants.create_key(
            checkout.api.partition, "restricted", "half", scopes=["v2:webhooks"]
        )
        seen = checkout.api.call("GET", "/v2/console/webhooks", auth=checkout.api.basic(secret))
        assert (seen.status, seen.code) == (403, "insufficient_permissions")


class TestSandbox:
    def test_it_shows_its_clock_and_chains_and_mines(self, checkout: Checkout) -> None:
        before = checkout.api.call("GET", "/v2/sandbox").json
        assert {chain["chainId"] for chain in before["chains"]} == {1, 10, 137, 8453, 42161}
        mined = checkout.api.call("POST", "/v2/sandbox/blocks", {"chainId": BASE, "count": 7})
        assert {chain["networkKind"] for chain in before["chains"]} == {"simulated"}
        [base] = [chain for chain in before["chains"] if chain["chainId"] == BASE]
        assert mined.json["latest"]["number"] == base["latest"]["number"] + 7
        assert mined.json["latest"]["number"] - mined.json["final"]["number"] == 3

    def test_funding_with_one_key_credits_once(self, checkout: Checkout) -> None:
        body = {"chainId": BASE, "assetSymbol": "USDC", "amount": "5"}
        path = f"/v2/sandbox/accounts/{checkout.merchant}/fund"
        first = checkout.api.call("POST", path, body, key="k")
        again = checkout.api.call("POST", path, body, key="k")
        assert first.body == again.body
        assert checkout.available(checkout.merchant) == ("5.00", "0")

    def test_the_clock_moves_and_stamps_everything(self, checkout: Checkout) -> None:
        before = checkout.create(key="a").json["createdAt"]
        moved = checkout.advance(3_600).json
        after = checkout.create(key="b").json["createdAt"]
        assert before < after == moved["now"]

    def test_with_a_second_app_there_is_no_sandbox(self, checkout: Checkout) -> None:
        checkout.api.service.tenants.create_app("Other", "other")
        for method, path, body in (
            ("GET", "/v2/sandbox", None),
            ("POST", "/v2/sandbox/run", None),
            ("POST", "/v2/sandbox/clock", {"advanceSeconds": 1}),
            ("POST", "/v2/sandbox/blocks", {"chainId": BASE}),
        ):
            seen = checkout.api.call(method, path, body)
            assert (seen.status, seen.code) == (404, "not_found")
        assert checkout.fund(checkout.payer, "1").status == 404

    def test_a_restricted_key_has_no_sandbox(self, checkout: Checkout) -> None:
        auth = checkout.api.basic(checkout.api.restricted_secret)
        seen = checkout.api.call("POST", "/v2/sandbox/run", auth=auth)
        assert (seen.status, seen.code) == (403, "insufficient_permissions")


def test_a_slash_too_many_is_not_a_route(checkout: Checkout) -> None:
    seen = checkout.api.call("GET", "/v2/payments/")
    assert (seen.status, seen.code) == (404, "route_not_found")


def test_null_is_absent_in_the_optional_fields_of_a_creation(checkout: Checkout) -> None:
    nothing = dict.fromkeys(("username", "email", "wallets", "settlement", "metadata"))
    body = {"externalUserId": "bare", "subjectType": "individual"}
    made = checkout.api.call("POST", "/v2/accounts", {**body, **nothing})
    assert (made.status, made.json["wallets"]) == (201, [])
    session = {"accountId": made.json["id"], "externalUserId": None}
    optional = {"expiresInSeconds": None, "permissions": None}
    seen = checkout.api.call("POST", "/v2/client-sessions", {**session, **optional})
    assert (seen.status, seen.json["permissions"]) == (201, ["account:read"])
    refused = checkout.api.call("PATCH", f"/v2/accounts/{made.json['id']}", {"status": None})
    assert list(refused.faults) == ["status"]
