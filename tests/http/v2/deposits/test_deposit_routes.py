"""The routes of deposit addresses and deposits, for a backend and for an account's browser."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.accounts.operations import NewAccount
from payments_core.addresses import NATIVE_ADDRESS
from payments_core.clock import format_iso
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout
from tests.shipped import CHAINS

NOBODY = "acct_" + "A" * 24
WALLET = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def issue(checkout: Checkout, account_id: str | None = None, body: Any = None, **more: Any) -> Seen:
    path = f"/v2/accounts/{account_id or checkout.payer}/deposit-addresses"
    return checkout.api.call("POST", path, {"chainId": BASE} if body is None else body, **more)


def check(checkout: Checkout, body: Any = None, **more: Any) -> Seen:
    path = f"/v2/accounts/{checkout.payer}/deposit-addresses/check"
    return checkout.api.call("POST", path, body, **more)


def deposits(checkout: Checkout, query: str = "", **more: Any) -> Seen:
    return checkout.api.call("GET", f"/v2/accounts/{checkout.payer}/deposits{query}", **more)


def send(checkout: Checkout, to: str, amount: str = "5.00") -> Any:
    body = {"chainId": BASE, "assetSymbol": "USDC", "to": to, "amount": amount}
    seen = checkout.api.call("POST", "/v2/sandbox/transfers", body)
    assert seen.status in (200, 201), seen.body
    return seen.json


def test_the_first_request_makes_the_address_and_all_others_give_it(checkout: Checkout) -> None:
    first = issue(checkout)
    assert first.status == 201
    assert list(first.json) == ["id", "accountId", "chainId", "chainType", "address", "createdAt"]
    assert first.json["id"].startswith("deposit_address_")
    assert first.json == {
        "id": first.json["id"],
        "accountId": checkout.payer,
        "chainId": BASE,
        "chainType": "evm",
        "address": first.json["address"],
        "createdAt": format_iso(checkout.clock.now()),
    }
    checkout.advance(3_600)
    for _ in range(3):
        again = issue(checkout)
        assert (again.status, again.body) == (200, first.body)
    others = [issue(checkout, body={"chainId": chain_id}) for chain_id in CHAINS]
    assert sorted(seen.status for seen in others) == [200, 201, 201, 201, 201]
    assert {seen.json["address"] for seen in others} == {first.json["address"]}


def test_a_key_replays_the_201(checkout: Checkout) -> None:
    first = issue(checkout, key="k")
    again = issue(checkout, key="k")
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert issue(checkout).status == 200
    assert issue(checkout, body={"chainId": 137}, key="k").code == "idempotency_conflict"


def test_addresses_are_listed_with_cursors(checkout: Checkout) -> None:
    made = [issue(checkout, body={"chainId": chain_id}).json for chain_id in CHAINS]
    path = f"/v2/accounts/{checkout.payer}/deposit-addresses"
    first = checkout.api.call("GET", f"{path}?limit=3").json
    assert (first["limit"], first["hasNextPage"]) == (3, True)
    rest = checkout.api.call("GET", f"{path}?limit=3&cursor={first['nextCursor']}").json
    assert sorted((*first["data"], *rest["data"]), key=str) == sorted(made, key=str)
    assert rest["nextCursor"] is None
    other = f"/v2/accounts/{checkout.merchant}/deposit-addresses"
    assert checkout.api.call("GET", other).json["data"] == []
    foreign = checkout.api.call("GET", f"{other}?limit=3&cursor={first['nextCursor']}")
    assert (foreign.status, set(foreign.faults)) == (400, {"cursor"})


def test_a_deposit_is_shown_at_every_stage_exactly_as_the_contract_says(checkout: Checkout) -> None:
    issued = issue(checkout).json
    sent = send(checkout, issued["address"])
    seen_at = format_iso(checkout.clock.now())
    seen = check(checkout)
    assert seen.status == 200
    assert list(seen.json) == ["accountId", "checkedAt", "deposits"]
    assert (seen.json["accountId"], seen.json["checkedAt"]) == (checkout.payer, seen_at)
    [deposit] = seen.json["deposits"]
    assert list(deposit) == [
        "id", "depositId", "accountId", "depositAddressId", "chainId", "assetSymbol",
        "tokenAddress", "amount", "amountAtomic", "status", "rejectionReason", "transactionHash",
        "from", "createdAt", "updatedAt", "settledAt",
    ]  # fmt: skip
    assert deposit["id"].startswith("deposit_")
    assert deposit == {
        "id": deposit["id"],
        "depositId": deposit["id"],
        "accountId": checkout.payer,
        "depositAddressId": issued["id"],
        "chainId": BASE,
        "assetSymbol": "USDC",
        "tokenAddress": CHAINS[BASE].tokens[0].address,
        "amount": "5.00",
        "amountAtomic": "5000000",
        "status": "detected",
        "rejectionReason": None,
        "transactionHash": sent["transactionHash"],
        "from": deposit["from"],
        "createdAt": seen_at,
        "updatedAt": seen_at,
        "settledAt": None,
    }
    assert checkout.available(checkout.payer) == ("100.00", "0")
    checkout.advance(30)
    [settled] = deposits(checkout).json["data"]
    assert (settled["id"], settled["status"]) == (deposit["id"], "settled")
    assert settled["settledAt"] == settled["updatedAt"] > seen_at
    assert checkout.available(checkout.payer) == ("105.00", "0")
    assert check(checkout, {"chainId": BASE}).json["deposits"] == [settled]


def test_deposits_are_listed_by_status_and_page(checkout: Checkout) -> None:
    address = issue(checkout).json["address"]
    for amount in ("1.00", "2.00", "3.00"):
        send(checkout, address, amount)
        check(checkout)
        checkout.advance(30)
    send(checkout, address, "4.00")
    check(checkout)
    first = deposits(checkout, "?limit=2").json
    assert [item["amount"] for item in first["data"]] == ["4.00", "3.00"]
    rest = deposits(checkout, f"?limit=2&cursor={first['nextCursor']}").json
    assert [item["amount"] for item in rest["data"]] == ["2.00", "1.00"]
    assert rest["hasNextPage"] is False
    assert [d["amount"] for d in deposits(checkout, "?status=detected").json["data"]] == ["4.00"]
    assert len(deposits(checkout, "?status=settled").json["data"]) == 3
    assert deposits(checkout, "?status=failed").json["data"] == []
    assert deposits(checkout, "?status=pending").faults.keys() == {"status"}


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, {"chainId"}),
        ({"chainId": "8453"}, {"chainId"}),
        ({"chainId": True}, {"chainId"}),
        ({"chainId": 0}, {"chainId"}),
        ({"chainId": 1.5}, {"chainId"}),
        ({"chainId": BASE, "address": WALLET}, {"address"}),
        ({"chainID": BASE, "address": WALLET}, {"chainID", "chainId", "address"}),
    ],
)
def test_a_malformed_request_names_every_fault_and_makes_nothing(
    checkout: Checkout, body: Any, paths: set[str]
) -> None:
    seen = issue(checkout, body=body)
    assert (seen.status, seen.code) == (400, "validation_error")
    assert set(seen.faults) == paths
    path = f"/v2/accounts/{checkout.payer}/deposit-addresses"
    assert checkout.api.call("GET", path).json["data"] == []


def test_what_cannot_be_done_says_why(checkout: Checkout) -> None:
    assert issue(checkout, body={"chainId": 5}).code == "unsupported_chain"
    assert check(checkout, {"chainId": 5}).code == "unsupported_chain"
    path = f"/v2/accounts/{checkout.payer}"
    checkout.api.call("PATCH", path, {"status": "suspended"})
    assert (issue(checkout).status, issue(checkout).code) == (403, "account_suspended")


def test_a_silent_chain_is_a_failed_dependency(checkout: Checkout) -> None:
    address = issue(checkout).json["address"]
    send(checkout, address)
    order = {"dependency": "chain", "operation": "scan", "times": 1, "chainId": BASE}
    assert checkout.api.call("POST", "/v2/sandbox/failures", order).status < 300
    seen = check(checkout, {"chainId": BASE}, key="look")
    assert (seen.status, seen.code) == (424, "dependency_failed")
    assert seen.json["error"]["details"]["dependency"] == "chain"
    assert seen.json["error"]["details"]["retryable"] is True
    assert deposits(checkout).json["data"] == []
    again = check(checkout, {"chainId": BASE}, key="look")
    assert [item["status"] for item in again.json["deposits"]] == ["detected"]
    checkout.advance(30)
    replayed = check(checkout, {"chainId": BASE}, key="look")
    assert replayed.body == again.body
    assert replayed.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("account_id", [NOBODY, "stranger", "acct_short"])
def test_a_foreign_account_looks_like_none(checkout: Checkout, account_id: str) -> None:
    if account_id == "stranger":
        account_id = strangers_account(checkout)
    path = f"/v2/accounts/{account_id}"
    seen = [
        issue(checkout, account_id),
        checkout.api.call("GET", f"{path}/deposit-addresses"),
        checkout.api.call("POST", f"{path}/deposit-addresses/check"),
        checkout.api.call("GET", f"{path}/deposits"),
    ]
    assert {(answer.status, answer.code) for answer in seen} == {(404, "not_found")}
    assert {answer.json["error"]["message"] for answer in seen} == {"No such account."}


def strangers_account(checkout: Checkout) -> str:
    service = checkout.api.service
    app = service.tenants.create_app("Other", "other")
    authority = service.tenants.system_authority(app.environments["sandbox"])
    new = NewAccount(external_user_id="payer", subject_type="individual")
    account_id = service.acting_as(authority).accounts.create(new).account.id
    service.acting_as(authority).deposits.issue_address(account_id, BASE)
    return account_id


class TestRights:
    ROUTES = (
        ("POST", "/v2/accounts/{}/deposit-addresses", {"chainId": BASE}),
        ("GET", "/v2/accounts/{}/deposit-addresses", None),
        ("POST", "/v2/accounts/{}/deposit-addresses/check", None),
        ("GET", "/v2/accounts/{}/deposits", None),
    )

    @pytest.mark.parametrize(("method", "path", "body"), ROUTES)
    def test_a_restricted_key_needs_the_scope(
        self, checkout: Checkout, method: str, path: str, body: Any
    ) -> None:
        api = checkout.api
        path = path.format(checkout.payer)
        seen = api.call(method, path, body, auth=api.basic(api.restricted_secret))
        assert (seen.status, seen.code) == (403, "insufficient_permissions")
        assert seen.json["error"]["details"]["required"] == ["v2:deposit_addresses"]
        _, secret = api.service.tenants.create_key(
            api.partition, "restricted", "deposits", scopes=["v2:deposit_addresses"]
        )
        assert api.call(method, path, body, auth=api.basic(secret)).status in (200, 201)

    @pytest.mark.parametrize(("method", "path", "body"), ROUTES)
    def test_without_the_product_nobody_gets_in(
        self, checkout: Checkout, method: str, path: str, body: Any
    ) -> None:
        api = checkout.api
        products = [p for p in api.environment.products if p != "deposit_addresses"]
        api.service.tenants.set_products(api.partition, products)
        seen = api.call(method, path.format(checkout.payer), body)
        assert (seen.status, seen.code) == (403, "entitlement_required")


class TestTheBrowser:
    def mine(
        self, checkout: Checkout, method: str, *permissions: str, body: Any = None, **more: Any
    ) -> Seen:
        token = checkout.access_token("payer", *permissions)
        more.setdefault("auth", f"Bearer {token}")
        return checkout.api.call(method, "/v2/client/me/deposit-addresses", body, **more)

    def test_it_gets_and_lists_its_own_address(self, checkout: Checkout) -> None:
        theirs = issue(checkout, checkout.merchant).json
        body = {"chainId": BASE}
        made = self.mine(checkout, "POST", "deposits:write", body=body)
        assert (made.status, made.json["accountId"]) == (201, checkout.payer)
        assert made.json["address"] != theirs["address"]
        again = self.mine(checkout, "POST", "deposits:write", body=body)
        assert (again.status, again.body) == (200, made.body)
        assert issue(checkout).body == made.body
        listed = self.mine(checkout, "GET", "deposits:read")
        assert listed.json["data"] == [made.json]
        assert listed.headers["access-control-allow-origin"] == "*"

    def test_each_call_needs_its_permission(self, checkout: Checkout) -> None:
        body = {"chainId": BASE}
        for method, wrong, sent in (
            ("POST", "deposits:read", body),
            ("GET", "deposits:write", None),
            ("POST", "payments:read", body),
        ):
            seen = self.mine(checkout, method, wrong, body=sent)
            assert (seen.status, seen.code) == (403, "insufficient_permissions")
        assert self.mine(checkout, "GET", "deposits:read").json["data"] == []
        server = self.mine(checkout, "GET", "deposits:read", auth="")
        assert (server.status, server.headers["www-authenticate"].split()[0]) == (401, "Bearer")

    def test_it_names_no_other_account(self, checkout: Checkout) -> None:
        body = {"chainId": BASE, "accountId": checkout.merchant}
        seen = self.mine(checkout, "POST", "deposits:write", body=body)
        assert (seen.status, set(seen.faults)) == (400, {"accountId"})


def test_a_token_that_is_not_credited_is_sent_back(checkout: Checkout) -> None:
    api, path = checkout.api, f"/v2/accounts/{checkout.payer}"
    address = issue(checkout, checkout.payer).json["address"]
    checkout.transfer(address, "5.00", assetSymbol="USDbC")
    [deposit] = api.call("GET", f"{path}/deposits?status=rejected").json["data"]
    assert (deposit["status"], deposit["rejectionReason"]) == ("rejected", "wrong_token")
    assert (deposit["assetSymbol"], deposit["amount"]) == ("USDbC", "5.00")
    assert "sentBack" not in deposit
    assert api.call("GET", path).json["labels"] == ["misdirected"]
    to = f"{path}/deposits/{deposit['id']}/return"
    body = {"destination": WALLET}
    assert api.call("POST", to, body).code == "idempotency_key_required"
    first = api.call("POST", to, body, key="return-1")
    assert (first.status, first.json["sentBack"]["status"]) == (200, "created")
    assert api.call("POST", to, body, key="return-1").body == first.body
    again = api.call("POST", to, body, key="return-2")
    assert (again.status, again.code) == (409, "conflict")
    checkout.advance(60)
    checkout.advance(60)
    [after] = api.call("GET", f"{path}/deposits").json["data"]
    sent_back = after["sentBack"]
    assert (sent_back["status"], sent_back["destination"]) == ("succeeded", WALLET)
    assert sent_back["transactionHash"]
    missing = api.call("POST", f"{path}/deposits/deposit_{24 * '0'}/return", {}, key="return-3")
    assert (missing.status, missing.code) == (404, "not_found")


def test_native_coin_is_noticed_by_a_check_and_sent_back(checkout: Checkout) -> None:
    api, path = checkout.api, f"/v2/accounts/{checkout.payer}"
    checkout.transfer(issue(checkout).json["address"], "0.01", assetSymbol="ETH")
    assert deposits(checkout).json["data"] == []
    assert check(checkout, key="check").json["deposits"] == []
    checkout.advance(60)
    [deposit] = deposits(checkout).json["data"]
    assert (deposit["status"], deposit["rejectionReason"]) == ("rejected", "wrong_token")
    assert (deposit["assetSymbol"], deposit["tokenAddress"]) == ("ETH", NATIVE_ADDRESS)
    assert deposit["amountAtomic"] == str(10**16)
    assert api.call("GET", path).json["labels"] == ["misdirected"]
    to = f"{path}/deposits/{deposit['id']}/return"
    refused = api.call("POST", to, {}, key="return-1")
    assert (refused.status, set(refused.faults)) == (400, {"destination"})
    assert api.call("POST", to, {"destination": WALLET}, key="return-2").status == 200
    checkout.advance(60)
    checkout.advance(60)
    [after] = deposits(checkout).json["data"]
    assert (after["sentBack"]["status"], after["sentBack"]["inReview"]) == ("succeeded", False)
