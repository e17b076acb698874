"""The sandbox's own routes, as an integrator calls them."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.engine.events import CATALOGUE
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.v2.sandbox.routes import SANDBOX
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout

WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
PAYMENT = "payment_" + "A" * 24
OPTION = "pay_option_" + "A" * 24


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def post(checkout: Checkout, path: str, body: Any = None, **more: Any) -> Seen:
    return checkout.api.call("POST", f"/v2/sandbox/{path}", body, **more)


def transfer(checkout: Checkout, **more: Any) -> Seen:
    body = {"chainId": BASE, "assetSymbol": "USDC", "amount": "7.50", "to": WALLET, **more}
    key = body.pop("key", None)
    return post(checkout, "transfers", body, key=key)


def chain(checkout: Checkout) -> Any:
    seen = checkout.api.call("GET", "/v2/sandbox").json
    return next(item for item in seen["chains"] if item["chainId"] == BASE)


class TestTransfers:
    def test_a_transfer_shows_its_transaction_and_its_block(self, checkout: Checkout) -> None:
        seen = transfer(checkout, to=WALLET.lower())
        assert seen.status == 200
        reported = seen.json
        assert reported["block"] == chain(checkout)["latest"]
        assert reported.pop("block")
        assert reported.pop("transactionHash").startswith("0x")
        assert reported.pop("from").startswith("0x")
        assert reported == {
            "chainId": BASE, "assetSymbol": "USDC", "amount": "7.50", "amountAtomic": "7500000",
            "to": WALLET, "succeeded": True,
        }  # fmt: skip

    def test_a_wallet_without_the_funds_fails_and_one_with_them_does_not(
        self, checkout: Checkout
    ) -> None:
        other = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"
        assert transfer(checkout, **{"from": WALLET, "to": other}).json["succeeded"] is False
        transfer(checkout)
        seen = transfer(checkout, **{"from": WALLET, "to": other})
        assert (seen.json["succeeded"], seen.json["from"]) == (True, WALLET)
        assert transfer(checkout, reverts=True).json["succeeded"] is False

    def test_a_vault_is_not_a_source(self, checkout: Checkout) -> None:
        account = checkout.api.call("GET", f"/v2/accounts/{checkout.payer}").json
        seen = transfer(checkout, **{"from": account["vaults"][0]["address"]})
        assert (seen.status, list(seen.faults)) == (400, ["from"])

    def test_a_key_makes_one_transfer(self, checkout: Checkout) -> None:
        first, second = transfer(checkout, key="k"), transfer(checkout, key="k")
        assert first.body == second.body
        assert second.headers["idempotent-replayed"] == "true"
        seen = transfer(checkout, key="k", amount="8.00")
        assert (seen.status, seen.code) == (409, "idempotency_conflict")

    @pytest.mark.parametrize(
        ("more", "status", "code"),
        [
            ({"chainId": 5}, 422, "unsupported_chain"),
            ({"assetSymbol": "EURC"}, 422, "unsupported_asset"),
            ({"amount": 7.5}, 400, "validation_error"),
            ({"amount": "-1"}, 400, "validation_error"),
            ({"to": "0x12"}, 400, "validation_error"),
            ({"from": 5}, 400, "validation_error"),
            ({"from_": WALLET}, 400, "validation_error"),
            ({"reverts": "yes"}, 400, "validation_error"),
        ],
    )
    def test_what_cannot_be_transferred_is_refused(
        self, checkout: Checkout, more: Any, status: int, code: str
    ) -> None:
        before = chain(checkout)
        seen = transfer(checkout, **more)
        assert (seen.status, seen.code) == (status, code)
        assert chain(checkout) == before


class TestReorgs:
    def test_a_reorg_answers_the_chain_as_it_is_then(self, checkout: Checkout) -> None:
        transfer(checkout)
        before = chain(checkout)
        seen = post(checkout, "reorgs", {"chainId": BASE, "depth": 2})
        assert seen.status == 200
        assert seen.json == chain(checkout)
        assert seen.json["latest"]["number"] == before["latest"]["number"]
        assert seen.json["latest"]["hash"] != before["latest"]["hash"]

    def test_a_reorg_may_put_back_what_it_dropped(self, checkout: Checkout) -> None:
        before = transfer(checkout).json["block"]["number"]
        seen = post(checkout, "reorgs", {"chainId": BASE, "depth": 1, "reinclude": True})
        assert seen.json["latest"]["number"] == before + 1

    @pytest.mark.parametrize("depth", [0, 51, "1", None])
    def test_its_depth_has_bounds(self, checkout: Checkout, depth: Any) -> None:
        seen = post(checkout, "reorgs", {"chainId": BASE, "depth": depth})
        assert (seen.status, list(seen.faults)) == (400, ["depth"])


class TestFailures:
    def test_what_is_ordered_is_shown_and_happens(self, checkout: Checkout) -> None:
        payment = checkout.create().json
        option = checkout.option(payment)
        order = {"dependency": "chain", "operation": "balances", "times": 1, "chainId": BASE}
        assert post(checkout, "failures", order).json == order
        assert checkout.api.call("GET", "/v2/sandbox").json["failures"] == [order]
        seen = checkout.authorize(payment, option)
        assert (seen.status, seen.code) == (424, "dependency_failed")
        assert checkout.api.call("GET", "/v2/sandbox").json["failures"] == []
        assert checkout.authorize(payment, option).status in (200, 202)

    def test_by_default_one_call_of_any_chain_fails(self, checkout: Checkout) -> None:
        seen = post(checkout, "failures", {"dependency": "chain"})
        assert seen.json == {
            "dependency": "chain", "operation": "any", "times": 1, "chainId": None,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({"dependency": "bank", "operation": "broadcast"}, 400, "validation_error"),
            ({"dependency": "router", "operation": "broadcast"}, 400, "validation_error"),
            ({"dependency": "moon"}, 400, "validation_error"),
            ({"dependency": "chain", "operation": "prepare"}, 400, "validation_error"),
            ({"dependency": "chain", "times": 0}, 400, "validation_error"),
            ({"dependency": "chain", "times": 101}, 400, "validation_error"),
            ({"dependency": "chain", "chainId": 5}, 422, "unsupported_chain"),
            ({"dependency": "kyc", "chainId": BASE}, 400, "validation_error"),
            ({}, 400, "validation_error"),
        ],
    )
    def test_what_cannot_fail_is_refused(
        self, checkout: Checkout, body: Any, status: int, code: str
    ) -> None:
        seen = post(checkout, "failures", body)
        assert (seen.status, seen.code) == (status, code)
        assert checkout.api.call("GET", "/v2/sandbox").json["failures"] == []


class TestEvents:
    def test_an_event_is_shown_and_listed_for_delivery(self, checkout: Checkout) -> None:
        payment = checkout.create().json
        seen = post(checkout, "events", {"name": "payment.succeeded", "paymentId": payment["id"]})
        assert seen.status == 200
        assert seen.json["eventId"].startswith("evt_")
        assert seen.json["name"] == "payment.succeeded"
        assert seen.json["payload"]["paymentId"] == payment["id"]
        assert seen.json["payload"]["settledAmountAtomic"] == payment["amountAtomic"]
        assert checkout.read(payment["id"])["status"] == "awaiting_payment"

    def test_the_whole_catalog_is_on_order(self, checkout: Checkout) -> None:
        for event in CATALOGUE:
            seen = post(checkout, "events", {"name": event.name})
            assert seen.status == 200, seen.body
            assert set(seen.json["payload"]) == set(event.fields)

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"name": "payment.nonsense"}, 400),
            ({"name": 5}, 400),
            ({}, 400),
            ({"name": "payment.created", "paymentId": PAYMENT}, 404),
            ({"name": "payment.created", "paymentId": "x"}, 404),
            ({"name": "account.created", "accountId": "acct_" + "A" * 24}, 404),
        ],
    )
    def test_what_is_not_there_is_refused(self, checkout: Checkout, body: Any, status: int) -> None:
        assert post(checkout, "events", body).status == status


class TestVerifications:
    def test_the_sandbox_decides_who_is_verified(self, checkout: Checkout) -> None:
        api = f"accounts/{checkout.payer}/kyc"
        assert post(checkout, api, {"status": "pending"}).json["status"] == "pending"
        assert post(checkout, api, {"status": "approved"}).json["status"] == "approved"
        account = checkout.api.call("GET", f"/v2/accounts/{checkout.payer}").json
        assert account["kyc"]["status"] == "approved"
        assert post(checkout, api, {"status": "rejected"}).code == "invalid_state"
        assert post(checkout, api, {"status": "maybe"}).status == 400
        absent = "accounts/acct_" + "A" * 24 + "/kyc"
        assert post(checkout, absent, {"status": "approved"}).status == 404

    def test_the_next_start_fails_when_it_was_ordered(self, checkout: Checkout) -> None:
        assert post(checkout, "failures", {"dependency": "kyc"}).status == 200
        path = f"/v2/accounts/{checkout.payer}/verifications"
        seen = checkout.api.call("POST", path, {})
        assert (seen.status, seen.code) == (424, "dependency_failed")
        assert seen.json["error"]["details"]["dependency"] == "kyc"
        assert checkout.api.call("POST", path, {}).status == 201


class TestBanks:
    def test_a_deposit_for_an_on_ramp_that_is_nobodys_is_not_found(
        self, checkout: Checkout
    ) -> None:
        body = {"onrampBankAccountId": "onramp_account_1", "amount": "10.00", "rail": "wire"}
        seen = post(checkout, "bank-deposits", body)
        assert (seen.status, seen.code) == (404, "not_found")
        seen = post(checkout, "bank-deposits", {**body, "amount": 10, "outcome": "x"})
        assert (seen.status, seen.code) == (400, "validation_error")


BODIES: dict[str, Any] = {
    "fund": {"chainId": BASE, "assetSymbol": "USDC", "amount": "1"},
    "blocks": {"chainId": BASE},
    "clock": {"advanceSeconds": 1},
    "transfers": {"chainId": BASE, "assetSymbol": "USDC", "amount": "1", "to": WALLET},
    "reorgs": {"chainId": BASE, "depth": 1},
    "kyc": {"status": "approved"},
    "failures": {"dependency": "chain"},
    "events": {"name": "webhook.test"},
    "bank-deposits": {"onrampBankAccountId": "o", "amount": "1", "rail": "wire"},
    "{paymentId}": {"outcome": "settle"},
    "{optionId}": {"outcome": "pay"},
}


@pytest.mark.parametrize("route", SANDBOX, ids=lambda route: route.name)
def test_every_route_is_for_a_standard_key_of_the_only_app(checkout: Checkout, route: Any) -> None:
    path = (
        route.path.replace("{accountId}", checkout.payer)
        .replace("{paymentId}", PAYMENT)
        .replace("{optionId}", OPTION)
    )
    body = BODIES.get(route.path.rpartition("/")[2])
    restricted = checkout.api.basic(checkout.api.restricted_secret)
    assert checkout.api.call(route.method, path, body, auth=restricted).status == 403
    assert checkout.api.call(route.method, path, body, auth=None).status == 401
    checkout.api.service.tenants.create_app("Another", "another")
    seen = checkout.api.call(route.method, path, body)
    assert (seen.status, seen.code) == (404, "not_found")
