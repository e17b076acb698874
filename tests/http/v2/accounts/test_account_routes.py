"""Wallets, handles, preferences and verifications, as a partner's backend calls them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from payments_core.accounts.verification.operations import Verifications
from payments_core.accounts.verification.simulated import SimulatedKyc
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout
from tests.signers import AptosWallet, EvmWallet, Signer, SolanaWallet

WALLET = EvmWallet(11)
NOBODY = "acct_" + "x" * 24


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


class Partner:
    """The calls under one account."""

    def __init__(self, checkout: Checkout, account_id: str | None = None) -> None:
        self.api = checkout.api
        self.id = account_id or checkout.payer

    def call(self, method: str, path: str = "", body: Any = None, **more: Any) -> Seen:
        return self.api.call(method, f"/v2/accounts/{self.id}{path}", body, **more)

    @property
    def account(self) -> Any:
        return self.call("GET").json

    def challenge(self, wallet: Signer, **more: Any) -> Any:
        body = {"address": wallet.address, "chainType": wallet.chain_type}
        seen = self.call("POST", "/wallets/challenge", body, **more)
        assert seen.status == 201, seen.body
        return seen.json

    def answer(self, asked: Any, wallet: Signer, **more: Any) -> dict[str, Any]:
        body = {
            "challengeId": asked["challengeId"],
            "signature": wallet.sign(asked["message"], asked["nonce"]),
        }
        if wallet.public_key is not None:
            body["publicKey"] = wallet.public_key
        return {**body, **more}

    def link(self, wallet: Signer, **more: Any) -> Seen:
        return self.call("POST", "/wallets", self.answer(self.challenge(wallet), wallet, **more))


@pytest.fixture
def payer(checkout: Checkout) -> Partner:
    return Partner(checkout)


@pytest.fixture
def merchant(checkout: Checkout) -> Partner:
    return Partner(checkout, checkout.merchant)


class TestWallets:
    @pytest.mark.parametrize("wallet", [WALLET, SolanaWallet(1), AptosWallet(1)])
    def test_a_wallet_is_linked_by_its_signature(self, payer: Partner, wallet: Signer) -> None:
        asked = payer.challenge(wallet)
        assert set(asked) == {
            "id", "challengeId", "accountId", "address", "chainType", "chainId", "message",
            "nonce", "expiresAt", "createdAt",
        }  # fmt: skip
        assert (asked["id"], asked["accountId"]) == (asked["challengeId"], payer.id)
        seen = payer.call("POST", "/wallets", payer.answer(asked, wallet, label="main"))
        assert seen.status == 201
        made = seen.json
        assert made == {
            "id": made["id"],
            "walletId": made["id"],
            "accountId": payer.id,
            "address": wallet.address,
            "chainType": wallet.chain_type,
            "label": "main",
            "verified": True,
            "verifiedAt": asked["createdAt"],
            "verifiedChainIds": None,
            "createdAt": asked["createdAt"],
            "updatedAt": asked["createdAt"],
        }
        assert made["id"].startswith("wallet_")
        assert payer.call("GET", "/wallets").json["data"] == [made] == payer.account["wallets"]

    def test_a_wallet_is_removed_and_another_account_may_have_it(
        self, payer: Partner, merchant: Partner
    ) -> None:
        made = payer.link(WALLET).json
        seen = merchant.link(WALLET)
        assert (seen.status, seen.code) == (409, "conflict")
        for path in (f"/wallets/{made['id']}", "/wallets/wallet_x", "/wallets/wallet_" + "x" * 24):
            seen = merchant.call("DELETE", path)
            assert (seen.status, seen.code) == (404, "not_found")
        removed = payer.call("DELETE", f"/wallets/{made['id']}")
        assert (removed.status, removed.json) == (200, made)
        assert payer.call("DELETE", f"/wallets/{made['id']}").status == 404
        assert payer.account["wallets"] == []
        assert merchant.link(WALLET).status == 201

    def test_what_a_challenge_cannot_be_for_is_refused(self, payer: Partner) -> None:
        for body, faults in (
            ({"address": "0x12", "chainType": "evm"}, {"address"}),
            ({"address": WALLET.address, "chainType": "btc"}, {"chainType"}),
            ({"address": WALLET.address.swapcase(), "chainType": "evm"}, {"address"}),
            ({}, {"address", "chainType"}),
        ):
            seen = payer.call("POST", "/wallets/challenge", body)
            assert (seen.status, set(seen.faults)) == (400, faults)

    def test_a_challenge_ends_and_is_used_once(self, checkout: Checkout, payer: Partner) -> None:
        asked, late = payer.challenge(WALLET), payer.challenge(WALLET)
        body = payer.answer(asked, WALLET)
        assert payer.call("POST", "/wallets", body).status == 201
        seen = payer.call("POST", "/wallets", body)
        assert (seen.status, seen.code) == (409, "action_already_used")
        assert "challenge" in seen.json["error"]["message"]
        checkout.advance(601)
        seen = payer.call("POST", "/wallets", payer.answer(late, WALLET))
        assert (seen.status, seen.code) == (422, "action_expired")
        assert seen.json["error"]["details"]["expiredAt"] == late["expiresAt"]

    def test_a_challenge_of_another_account_looks_like_none(
        self, payer: Partner, merchant: Partner
    ) -> None:
        body = payer.answer(payer.challenge(WALLET), WALLET)
        answers = [
            merchant.call("POST", "/wallets", body),
            merchant.call("POST", "/wallets", {**body, "challengeId": "wallet_challenge_none"}),
        ]
        for seen in answers:
            assert (seen.status, seen.code) == (404, "not_found")
        texts = [seen.json["error"]["message"] for seen in answers]
        assert texts[0] == texts[1]
        assert payer.call("POST", "/wallets", body).status == 201

    def test_every_fault_of_a_signature_is_named(self, payer: Partner) -> None:
        asked = payer.challenge(AptosWallet(1))
        other = payer.answer(asked, AptosWallet(2))
        cases: list[tuple[dict[str, Any], set[str]]] = [
            ({"challengeId": asked["id"]}, {"signature"}),
            ({"challengeId": asked["id"], "signature": "0x12"}, {"signature", "publicKey"}),
            (other, {"publicKey"}),
            ({**payer.answer(asked, AptosWallet(1)), "label": "", "x": 1}, {"label", "x"}),
            ({}, {"challengeId", "signature"}),
        ]
        for body, faults in cases:
            seen = payer.call("POST", "/wallets", body)
            assert (seen.status, set(seen.faults)) == (400, faults)
        assert payer.account["wallets"] == []

    def test_a_suspended_account_links_nothing(self, payer: Partner) -> None:
        body = payer.answer(payer.challenge(WALLET), WALLET)
        payer.call("PATCH", "", {"status": "suspended"})
        address = {"address": WALLET.address, "chainType": "evm"}
        for seen in (
            payer.call("POST", "/wallets", body),
            payer.call("POST", "/wallets/challenge", address),
        ):
            assert (seen.status, seen.code) == (403, "account_suspended")

    def test_a_repeated_key_answers_the_same_bytes(self, payer: Partner) -> None:
        address = {"address": WALLET.address, "chainType": "evm"}
        first = payer.call("POST", "/wallets/challenge", address, key="c")
        assert payer.call("POST", "/wallets/challenge", address, key="c").body == first.body
        body = payer.answer(first.json, WALLET)
        made = payer.call("POST", "/wallets", body, key="w")
        again = payer.call("POST", "/wallets", body, key="w")
        assert (made.status, again.body) == (201, made.body)
        assert again.headers["idempotent-replayed"] == "true"
        assert len(payer.account["wallets"]) == 1

    def test_a_list_pages(self, payer: Partner) -> None:
        ids = {payer.link(EvmWallet(number)).json["id"] for number in range(1, 4)}
        first = payer.call("GET", "/wallets?limit=2").json
        rest = payer.call("GET", f"/wallets?limit=2&cursor={first['nextCursor']}").json
        assert {item["id"] for item in (*first["data"], *rest["data"])} == ids
        assert (first["limit"], first["hasNextPage"], rest["hasNextPage"]) == (2, True, False)

    def test_paths_of_one_method_say_so(self, payer: Partner) -> None:
        seen = payer.call("DELETE", "/wallets/challenge")
        assert (seen.status, seen.headers["allow"]) == (405, "OPTIONS, POST")
        seen = payer.call("GET", "/wallets/wallet_" + "x" * 24)
        assert (seen.status, seen.headers["allow"]) == (405, "DELETE, OPTIONS")


class TestSettlementAndHandle:
    def test_a_preference_is_replaced(self, payer: Partner) -> None:
        body = {"chainId": 1, "assetSymbol": "USDT"}
        seen = payer.call("PUT", "/settlement-preferences", body)
        assert (seen.status, seen.json["settlement"]) == (200, body)
        assert payer.account == seen.json

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({"chainId": 5, "assetSymbol": "USDC"}, 422, "unsupported_chain"),
            ({"chainId": 137, "assetSymbol": "USDT"}, 422, "unsupported_asset"),
            ({"chainId": "1", "assetSymbol": "USDC"}, 400, "validation_error"),
            ({"chainId": 1}, 400, "validation_error"),
        ],
    )
    def test_a_preference_that_cannot_be_is_refused(
        self, payer: Partner, body: Any, status: int, code: str
    ) -> None:
        seen = payer.call("PUT", "/settlement-preferences", body)
        assert (seen.status, seen.code) == (status, code)
        assert payer.account["settlement"] is None

    def test_a_handle_is_given_once(self, payer: Partner) -> None:
        seen = payer.call("PUT", "/handle", {"username": "MERCHANT"})
        assert (seen.status, seen.code) == (409, "username_taken")
        seen = payer.call("PUT", "/handle", {"username": "a b"})
        assert (seen.status, set(seen.faults)) == (400, {"username"})
        seen = payer.call("PUT", "/handle", {"username": "Payer"}, key="h")
        assert (seen.status, seen.json["paymentAddress"]) == (200, "Payer@shop")
        assert payer.call("PUT", "/handle", {"username": "Payer"}, key="h").body == seen.body
        again = payer.call("PUT", "/handle", {"username": "Payer"})
        assert (again.status, again.body) == (200, seen.body)
        for username in ("PAYER", "other"):
            seen = payer.call("PUT", "/handle", {"username": username})
            assert (seen.status, seen.code) == (409, "invalid_state")

    def test_a_closed_account_takes_neither(self, payer: Partner) -> None:
        payer.call("PATCH", "", {"status": "closed"})
        for path, body in (
            ("/handle", {"username": "payer"}),
            ("/settlement-preferences", {"chainId": 1, "assetSymbol": "USDC"}),
        ):
            seen = payer.call("PUT", path, body)
            assert (seen.status, seen.code) == (403, "account_suspended")


class TestVerifications:
    def test_a_verification_is_started_and_listed(self, payer: Partner) -> None:
        seen = payer.call("POST", "/verifications", {"returnUrl": "https://shop.example/done"})
        assert seen.status == 201
        made = seen.json
        assert made == {
            "id": made["id"],
            "verificationId": made["id"],
            "accountId": payer.id,
            "status": "pending",
            "hostedUrl": made["hostedUrl"],
            "createdAt": made["createdAt"],
            "updatedAt": made["createdAt"],
        }
        assert made["id"].startswith("verification_")
        assert made["hostedUrl"].startswith("https://")
        assert payer.call("GET", "/verifications").json["data"] == [made]
        assert payer.account["kyc"] == {"status": "pending"}
        seen = payer.call("POST", "/verifications")
        assert (seen.status, seen.code) == (409, "invalid_state")

    def test_a_decision_shows_on_the_account_and_ends_the_url(self, payer: Partner) -> None:
        payer.call("POST", "/verifications")
        service = payer.api.service
        trusted = service.tenants.system_authority(payer.api.partition)
        service.acting_as(trusted).sandbox.decide_kyc(payer.id, "approved")
        [listed] = payer.call("GET", "/verifications").json["data"]
        assert (listed["status"], listed["hostedUrl"]) == ("approved", None)
        assert payer.account["kyc"] == {"status": "approved"}
        payout = payer.call("GET", "/capabilities").json["capabilities"]["us_bank_payout"]
        assert payout["requirements"]["complete"] == ["kyc"]

    def test_a_repeated_key_starts_one(self, payer: Partner) -> None:
        first = payer.call("POST", "/verifications", {}, key="v")
        assert (first.status, payer.call("POST", "/verifications", {}, key="v").body) == (
            201, first.body,
        )  # fmt: skip
        assert len(payer.call("GET", "/verifications").json["data"]) == 1

    def test_a_provider_out_of_reach_changes_nothing(
        self, payer: Partner, caplog: pytest.LogCaptureFixture
    ) -> None:
        service, fails = payer.api.service, iter((True, False))
        provider = SimulatedKyc(lambda: next(fails))
        service.parts.verifications = Verifications(
            service.parts.ports,
            {"sandbox": provider},
            RemoteCalls(1),
        )
        seen = payer.call("POST", "/verifications", {}, key="v")
        assert (seen.status, seen.code) == (424, "dependency_failed")
        [said] = caplog.messages  # the operator reads why, and the caller does not
        assert seen.json["error"]["details"]["requestId"] in said
        assert re.search(r"the kyc failed: .+", said)
        assert said.rpartition(": ")[2] not in seen.body.decode()
        details = seen.json["error"]["details"]
        assert (details["dependency"], details["retryable"]) == ("kyc", True)
        assert payer.call("GET", "/verifications").json["data"] == []
        assert payer.account["kyc"] == {"status": "not_started"}
        assert payer.call("POST", "/verifications", {}, key="v").status == 201

    @pytest.mark.parametrize("url", ["javascript:alert(1)", "x", 7, "https://a b"])
    def test_a_return_url_is_a_url(self, payer: Partner, url: Any) -> None:
        seen = payer.call("POST", "/verifications", {"returnUrl": url})
        assert (seen.status, set(seen.faults)) == (400, {"returnUrl"})


def test_capabilities_are_inactive_and_say_why(payer: Partner) -> None:
    missing = ["kyc", "activation", "bank_review"]
    found = payer.call("GET", "/capabilities").json
    assert found["accountId"] == payer.id
    assert found["capabilities"].keys() == {"us_bank_payout", "us_bank_funding"}
    for name, capability in found["capabilities"].items():
        assert capability["status"] == "inactive"
        assert capability["requirements"] == {"missing": missing, "pending": [], "complete": []}
        assert [action["resolves"] for action in capability["actions"]] == missing
        assert capability["actions"][1] == {
            "resolves": "activation",
            "description": f"Request the capability {name}.",
            "method": "POST",
            "path": f"/v2/accounts/{payer.id}/capability-activations",
            "url": None,
        }
    assert set(payer.account["capabilities"].values()) == {"inactive"}


ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/wallets", None),
    ("POST", "/wallets", {"challengeId": "wallet_challenge_none", "signature": "0x12"}),
    ("POST", "/wallets/challenge", {"address": WALLET.address, "chainType": "evm"}),
    ("DELETE", "/wallets/wallet_" + "x" * 24, None),
    ("PUT", "/settlement-preferences", {"chainId": 1, "assetSymbol": "USDC"}),
    ("PUT", "/handle", {"username": "somebody"}),
    ("GET", "/capabilities", None),
    ("GET", "/verifications", None),
    ("POST", "/verifications", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
class TestEveryRoute:
    def test_an_unknown_account_and_another_tenants_look_alike(
        self, checkout: Checkout, payer: Partner, method: str, path: str, body: Any
    ) -> None:
        tenants = checkout.api.service.tenants
        other = tenants.create_app("Other", "other")
        _, secret = tenants.create_key(other.environments["sandbox"], "standard", "k")
        auth = checkout.api.basic(secret, other.id)
        answers = []
        for account_id in (payer.id, NOBODY):
            seen = Partner(checkout, account_id).call(method, path, body, auth=auth)
            assert (seen.status, seen.code) == (404, "not_found")
            error = seen.json["error"]
            del error["details"]["requestId"]
            answers.append(error)
        assert answers[0] == answers[1]

    def test_it_needs_its_scope_and_its_product(
        self, checkout: Checkout, payer: Partner, method: str, path: str, body: Any
    ) -> None:
        api, tenants = checkout.api, checkout.api.service.tenants
        scope = "v2:kyc" if path == "/verifications" else "v2:accounts"
        for scopes, allowed in (([scope], True), (["v2:payments"], False)):
            _, secret = tenants.create_key(api.partition, "restricted", scope, scopes=scopes)
            seen = payer.call(method, path, body, auth=api.basic(secret))
            assert (seen.status == 403) is not allowed
        assert seen.code == "insufficient_permissions"
        assert payer.call(method, path, body, auth=None).status == 401
